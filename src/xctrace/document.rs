//! Cuts the XML document out of what xctrace prints.
//!
//! In: standard output, in pieces of any size. Out: the bytes from `<?xml` (or the root's start tag) to the root's
//! end tag, as soon as they are certain to belong to it. xctrace prints lines of text before and after
//! (`Finished export…`), which an XML reader refuses; their last part is kept, because it may be the only message
//! of a failed export.

use super::process::Tail;

/// How far the document may be from the start of the output, and the root from the start of the document.
const LOOK_AHEAD: usize = 64 << 10;
/// What is kept of the text around the document.
const CHATTER: usize = 4 << 10;
/// What a document begins with.
const STARTS: [&[u8]; 3] = [b"<?xml", b"<trace-query-result", b"<trace-toc"];

/// Where the output has come to.
enum State {
    /// In the text before the document.
    Before,
    /// In the document, before its root.
    Prolog,
    /// In the root; the start of its end tag (`</trace-toc`).
    Inside(Vec<u8>),
    /// In a document with a root that is not xctrace's: the reader will say so.
    Foreign,
    /// After the root's end tag.
    After,
}

/// The sieve.
pub(super) struct Document {
    state: State,
    /// Bytes that are not decided yet.
    held: Vec<u8>,
    chatter: Tail,
}

impl Document {
    /// Before the first byte.
    pub(super) fn new() -> Self {
        Document {
            state: State::Before,
            held: Vec::new(),
            chatter: Tail::default(),
        }
    }

    /// Takes the next bytes and adds those of the document to `out`; `false` when there is no document within 64 KiB.
    pub(super) fn push(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> bool {
        self.held.extend_from_slice(bytes);
        if matches!(self.state, State::Before) {
            match STARTS.iter().filter_map(|start| find(&self.held, start)).min() {
                Some(at) => {
                    self.chatter.push(self.held.get(..at).unwrap_or_default(), CHATTER);
                    self.held.drain(..at);
                    self.state = State::Prolog;
                }
                None if self.held.len() > LOOK_AHEAD => return false,
                None => return true,
            }
        }
        if matches!(self.state, State::Prolog) {
            self.root(out);
        }
        match &self.state {
            State::Inside(end) => {
                let (certain, ended) = certain(&self.held, end);
                move_front(&mut self.held, certain, out);
                if ended {
                    self.state = State::After;
                }
            }
            State::Foreign => out.append(&mut self.held),
            State::Before | State::Prolog | State::After => {}
        }
        if matches!(self.state, State::After) {
            self.chatter.push(&self.held, CHATTER);
            self.held.clear();
        }
        true
    }

    /// The output has ended: what was held back goes where it belongs.
    pub(super) fn end(&mut self, out: &mut Vec<u8>) {
        if self.has_begun() {
            out.append(&mut self.held);
        } else {
            self.chatter.push(&self.held, CHATTER);
            self.held.clear();
        }
    }

    /// Whether a document was seen.
    pub(super) fn has_begun(&self) -> bool {
        !matches!(self.state, State::Before)
    }

    /// Whether the root's end tag was seen.
    pub(super) fn is_complete(&self) -> bool {
        matches!(self.state, State::After)
    }

    /// The text around the document; without a document what came instead of it.
    pub(super) fn chatter(&self) -> &[u8] {
        if self.has_begun() || self.held.is_empty() {
            self.chatter.bytes()
        } else {
            &self.held
        }
    }

    /// Looks for the root's start tag.
    fn root(&mut self, out: &mut Vec<u8>) {
        let tag = find(&self.held, b"<trace-").and_then(|start| {
            let rest = self.held.get(start..)?;
            let length = find(rest, b">")?;
            Some((start + length, rest.get(1..length)?))
        });
        match tag {
            Some((end, tag)) => {
                let name = tag
                    .split(|byte| byte.is_ascii_whitespace() || *byte == b'/')
                    .next()
                    .unwrap_or_default();
                let next = if tag.ends_with(b"/") {
                    State::After
                } else {
                    State::Inside([b"</".as_slice(), name].concat())
                };
                move_front(&mut self.held, end + 1, out);
                self.state = next;
            }
            None if self.held.len() > LOOK_AHEAD => self.state = State::Foreign,
            None => {}
        }
    }
}

/// Moves the first `length` bytes.
fn move_front(from: &mut Vec<u8>, length: usize, to: &mut Vec<u8>) {
    to.extend_from_slice(from.get(..length).unwrap_or_default());
    from.drain(..length.min(from.len()));
}

/// How many bytes belong to the document whatever follows, and whether its end tag is the last of them.
fn certain(held: &[u8], end: &[u8]) -> (usize, bool) {
    let mut at = 0;
    while let Some(tag) = held
        .get(at..)
        .and_then(|rest| find(rest, b"</"))
        .map(|found| at + found)
    {
        let rest = held.get(tag..).unwrap_or_default();
        if let Some(after) = rest.strip_prefix(end) {
            // `</trace-toc >` is an end tag too; `</trace-toc-x>` is another element's.
            let blanks = after.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
            match after.get(blanks) {
                Some(b'>') => return (tag + end.len() + blanks + 1, true),
                None => return (tag, false),
                Some(_) => {}
            }
        } else if end.starts_with(rest) {
            return (tag, false);
        }
        at = tag + 2;
    }
    // A `<` in the last place may begin the end tag.
    (held.len() - usize::from(held.last() == Some(&b'<')), false)
}

/// Where `needle` first stands.
fn find(bytes: &[u8], needle: &[u8]) -> Option<usize> {
    let first = needle.first()?;
    let mut from = 0;
    loop {
        let rest = bytes.get(from..)?;
        let at = rest.iter().position(|byte| byte == first)?;
        if rest.get(at..).is_some_and(|rest| rest.starts_with(needle)) {
            return Some(from + at);
        }
        from += at + 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The document in `output`, whether it was complete, and the text around it, with pieces of `size` bytes.
    fn cut(output: &str, size: usize) -> (String, bool, String) {
        let (mut document, mut out) = (Document::new(), Vec::new());
        for piece in output.as_bytes().chunks(size) {
            assert!(document.push(piece, &mut out));
        }
        document.end(&mut out);
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        (text(&out), document.is_complete(), text(document.chatter()))
    }

    #[test]
    fn the_document_is_found_however_the_output_is_cut() {
        let cases = [
            (
                "",
                "<?xml version=\"1.0\"?>\n<trace-query-result>\n</trace-query-result>",
                "\n",
            ),
            (
                "Starting…\n<b>\n",
                "<trace-toc><run/></trace-toc-x></trace-toc \n>",
                "\nFinished export\n",
            ),
            ("", "<?xml version=\"1.0\"?><!-- <a> --><trace-query-result/>", ""),
            ("1 < 2\n", "<trace-toc a='b'></trace></t></trace-toc>", "</trace-toc>"),
        ];
        for (before, document, after) in cases {
            for size in 1..=document.len() + before.len() {
                let (out, complete, chatter) = cut(&format!("{before}{document}{after}"), size);
                assert_eq!((out.as_str(), complete), (document, true), "pieces of {size}");
                assert_eq!(chatter, format!("{before}{after}"), "pieces of {size}");
            }
        }
    }

    #[test]
    fn a_cut_document_is_passed_on_whole_and_not_complete() {
        for cut_document in [
            "<?xml",
            "<trace-toc",
            "<trace-toc><run></run",
            "<trace-toc><",
            "<trace-toc></trace-toc",
        ] {
            for size in 1..=cut_document.len() {
                assert_eq!(cut(cut_document, size), (cut_document.to_owned(), false, String::new()));
            }
        }
    }

    #[test]
    fn rows_are_not_held_back() {
        let (mut document, mut out) = (Document::new(), Vec::new());
        document.push(b"<trace-query-result><node><row><a/></row>", &mut out);
        assert!(out.ends_with(b"</row>"));
    }

    #[test]
    fn another_root_is_passed_on() {
        let text = format!("<?xml version=\"1.0\"?><plist>{}</plist>", "<a/>".repeat(LOOK_AHEAD));
        assert_eq!(cut(&text, 4096), (text.clone(), false, String::new()));
        assert_eq!(cut("<?xml?><plist/>", 3).0, "<?xml?><plist/>");
    }

    #[test]
    fn text_without_a_document_has_a_bound() {
        let (mut document, mut out) = (Document::new(), Vec::new());
        assert!(document.push(&vec![b'x'; LOOK_AHEAD], &mut out));
        assert!(!document.push(b"x", &mut out));
        assert!(out.is_empty());
    }
}
