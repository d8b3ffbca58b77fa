//! The report as GitHub Markdown: for a comment on a pull request, or a step summary.
//!
//! A cell can hold nothing but text: what Markdown, HTML or GitHub itself would act on is escaped. Comments and step
//! summaries have a size limit, so rows are left out at the end of a section, with their number, and where even that is
//! not enough whole sections from the last one on. The first line is a marker by which a job finds its own comment.

use super::ReportOptions;
use super::sections::{Document, document};
use super::sheet::{Align, Cell, Content, Line, Sheet, Style, count, len};
use crate::compare::Comparison;
use crate::label;

/// Most bytes of a comment; GitHub refuses more than 65,536 characters.
pub(super) const COMMENT_BYTES: usize = 60_000;
/// Columns of a cell, and of a sentence.
const CELL_COLUMNS: usize = 160;
const LINE_COLUMNS: usize = 600;
/// A table with more rows is folded.
const LONG: usize = 15;

/// The whole report, in at most `options.markdown_bytes`; empty when not even the marker fits.
pub(super) fn render(comparison: &Comparison, options: &ReportOptions) -> String {
    let Document {
        headline,
        intro,
        sheets,
    } = document(comparison, options);
    let mut out = format!("<!-- trace-attr:{} -->\n", options.name(comparison));
    let mut blocks = vec![Block::opening(&headline, &intro)];
    blocks.extend(sheets.iter().map(Block::new));
    let all = blocks.len();
    let frames = |blocks: &[Block]| blocks.iter().map(Block::frame).sum::<usize>();
    // Rather no other section than half a gate.
    let first = 1 + usize::from(comparison.gate.is_some());
    let mut whole = first;
    loop {
        let rows: usize = blocks.iter().take(whole).map(Block::rows_len).sum();
        let size = out.len() + frames(&blocks) + rows + missing(all - blocks.len()).len();
        if size <= options.markdown_bytes {
            break;
        }
        if blocks.len() <= first && whole > 0 {
            whole = 0;
        } else if blocks.pop().is_none() {
            return String::new();
        }
    }
    let end = missing(all - blocks.len());
    // Later sections keep room for everything but their rows, so one long table does not cost the others.
    let mut reserved = frames(&blocks) + end.len();
    for block in &blocks {
        reserved -= block.frame();
        let room = options.markdown_bytes.saturating_sub(out.len() + reserved);
        block.write(room, &mut out);
    }
    out + &end
}

/// What stands at the end when sections are left out.
fn missing(sections: usize) -> String {
    match sections {
        0 => String::new(),
        1 => "\n1 section does not fit here, see JSON\n".to_owned(),
        more => format!("\n{more} sections do not fit here, see JSON\n"),
    }
}

/// A section in pieces: only whole rows of it can be left out.
struct Block {
    head: String,
    rows: Vec<String>,
    foot: String,
}

impl Block {
    /// The outcome, and what it was made from.
    fn opening(headline: &str, intro: &[Line]) -> Block {
        let mut head = format!("\n**{}**\n", sentence(headline));
        if !intro.is_empty() {
            head.push('\n');
        }
        let rows = intro
            .iter()
            .map(|line| format!("- {}\n", styled(sentence(&line.text), line.style)));
        Block {
            head,
            rows: rows.collect(),
            foot: String::new(),
        }
    }

    fn new(sheet: &Sheet) -> Block {
        let folded = sheet.folded || sheet.rows.len() > LONG;
        let mut head = if folded {
            format!("\n<details><summary>{}</summary>\n\n", html(&sheet.title))
        } else {
            format!("\n### {}\n\n", sentence(&sheet.title))
        };
        let mut rows: Vec<String> = Vec::new();
        let line = |line: &Line, bullet: &str| format!("{bullet} {}\n", styled(sentence(&line.text), line.style));
        if sheet.columns.is_empty() {
            rows.extend(sheet.lines.iter().enumerate().map(|(at, text)| {
                if sheet.numbered {
                    line(text, &format!("{}.", at + 1))
                } else {
                    line(text, "-")
                }
            }));
        } else {
            sheet.lines.iter().for_each(|text| head.push_str(&line(text, "-")));
            let names = sheet.columns.iter().map(|column| match &column.group {
                Some(group) if column.needs_group => cell_text(&format!("{group} {}", column.header)),
                _ => cell_text(&column.header),
            });
            head.push_str(&row(names));
            head.push_str(&row(sheet.columns.iter().map(|column| match column.align {
                Align::Left => ":--".to_owned(),
                Align::Right | Align::Point => "--:".to_owned(),
            })));
            rows.extend(sheet.rows.iter().map(|cells| {
                row(cells.iter().enumerate().map(|(at, text)| {
                    // A row that stands out does so by its key.
                    if at == 0 {
                        styled(cell(text), text.style)
                    } else {
                        cell(text)
                    }
                }))
            }));
        }
        let mut foot = String::new();
        if !sheet.footer.is_empty() {
            foot.push('\n');
            sheet.footer.iter().for_each(|text| foot.push_str(&line(text, "-")));
        }
        if folded {
            foot.push_str("\n</details>\n");
        }
        Block { head, rows, foot }
    }

    /// Bytes that the section takes when it has no rows.
    fn frame(&self) -> usize {
        self.head.len() + self.foot.len() + more(u64::MAX).len()
    }

    /// Bytes of its rows.
    fn rows_len(&self) -> usize {
        self.rows.iter().map(String::len).sum()
    }

    fn write(&self, room: usize, out: &mut String) {
        out.push_str(&self.head);
        let mut left = room.saturating_sub(self.frame());
        for (at, row) in self.rows.iter().enumerate() {
            if row.len() > left {
                out.push_str(&more(len(&self.rows).saturating_sub(u64::try_from(at).unwrap_or(0))));
                break;
            }
            left -= row.len();
            out.push_str(row);
        }
        out.push_str(&self.foot);
    }
}

fn more(rows: u64) -> String {
    format!(
        "\n{} more row{}, see JSON\n",
        count(rows),
        if rows == 1 { "" } else { "s" }
    )
}

fn row(cells: impl Iterator<Item = String>) -> String {
    let cells: Vec<String> = cells.collect();
    format!("| {} |\n", cells.join(" | "))
}

fn cell(cell: &Cell) -> String {
    match &cell.content {
        Content::Text(text) => cell_text(text),
        Content::List(parts) => parts.iter().map(|part| cell_text(part)).collect::<Vec<_>>().join(", "),
    }
}

fn cell_text(text: &str) -> String {
    escape(&label::cut(text, CELL_COLUMNS))
}

fn sentence(text: &str) -> String {
    escape(&label::cut(text, LINE_COLUMNS))
}

/// A comment has no colours: the sign says what is slower.
fn styled(text: String, style: Style) -> String {
    match style {
        Style::Strong | Style::Worse if !text.trim().is_empty() => format!("**{}**", text.trim()),
        _ => text,
    }
}

/// Text between HTML tags, where a backslash is a backslash.
fn html(text: &str) -> String {
    label::cut(text, LINE_COLUMNS)
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

/// Text that Markdown shows as it is, and in which GitHub finds no mention, issue, link, emoji or formula.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        let next = rest.as_str();
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '~' | '$' => {
                out.push('\\');
                out.push(c);
            }
            // GitHub looks for these in the finished text, where a backslash is gone: only a comment parts them.
            '@' | '#' if next.starts_with(|next: char| next.is_alphanumeric()) => {
                out.push(c);
                out.push_str("<!-- -->");
            }
            '#' => out.push_str("\\#"),
            ':' if next.starts_with("//") => out.push_str("\\:"),
            ':' if is_emoji(next) => out.push_str(":<!-- -->"),
            '.' if ends_with_word(&out, "www") => out.push_str("\\."),
            '-' if ends_with_word(&out, "gh") => out.push_str("-<!-- -->"),
            _ => out.push(c),
        }
    }
    out
}

fn ends_with_word(text: &str, word: &str) -> bool {
    let Some(at) = text.len().checked_sub(word.len()) else {
        return false;
    };
    let (before, end) = (text.get(..at).unwrap_or_default(), text.get(at..).unwrap_or_default());
    end.eq_ignore_ascii_case(word) && !before.ends_with(char::is_alphanumeric)
}

/// Whether `rest`, behind a colon, makes a name such as `:x:`.
fn is_emoji(rest: &str) -> bool {
    rest.split_once(':').is_some_and(|(name, _)| {
        !name.is_empty()
            && name
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '+' | '-'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_label_is_markup() {
        assert_eq!(escape("a|b"), "a\\|b");
        assert_eq!(escape("`e` *x* _y_ [z](u)"), "\\`e\\` \\*x\\* \\_y\\_ \\[z\\](u)");
        assert_eq!(escape("<img src=x> & co"), "&lt;img src=x&gt; &amp; co");
        assert_eq!(escape("@octocat #12 x#"), "@<!-- -->octocat #<!-- -->12 x\\#");
        assert_eq!(escape("https://x.y www.z"), "https\\://x.y www\\.z");
        assert_eq!(escape(":x: ggml::mul"), ":<!-- -->x: ggml::mul");
        assert_eq!(escape("back\\slash"), "back\\\\slash");
    }

    #[test]
    fn a_long_table_ends_with_the_number_of_rows_that_are_missing() {
        let block = Block {
            head: "h\n".into(),
            rows: vec!["| a |\n".into(); 100],
            foot: String::new(),
        };
        let mut out = String::new();
        block.write(block.frame() + 12, &mut out);
        assert_eq!(out, "h\n| a |\n| a |\n\n98 more rows, see JSON\n");
    }
}
