//! Labels made visible and harmless for text: a name from a trace can hold anything, also terminal
//! escapes, bidirectional marks and CI commands.
//!
//! One form for all of it: the character's number as Rust writes it, `\u{1b}`, so that two labels that differ
//! also look different and no label moves the cursor, turns text around or starts a command. JSON does not
//! come through here: there a label is a string, escaped by the JSON writer.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// What stands where text was cut.
#[cfg(feature = "traces")]
const ELLIPSIS: char = '…';
/// Combining marks that one character may carry.
const MARKS: usize = 4;

/// `text` with every control, bidirectional and invisible character written as `\u{…}`, and with what a CI
/// system would take for a command (`::` at the start of a word, `##[`, `##vso[`) broken in the same way.
pub(crate) fn visible(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text.chars();
    let mut at_word_start = true;
    let mut marks = MARKS;
    while let Some(c) = rest.next() {
        let next = rest.as_str();
        let command = match c {
            // GitHub trims a line before it looks for `::`, and text can be wrapped at any space.
            // A colon at the end may meet one of ours: `name: value`.
            ':' => at_word_start && (next.is_empty() || next.starts_with(':')),
            // These two are found anywhere in a line.
            '#' => next.starts_with("#[") || next.starts_with("#vso["),
            _ => false,
        };
        // A mark needs a character to stand on, and a pile of them grows over the lines above.
        marks = if c.width() == Some(0) { marks + 1 } else { 0 };
        if command || is_hidden(c) || marks > MARKS {
            out.extend(c.escape_unicode());
            marks = MARKS;
        } else {
            out.push(c);
        }
        at_word_start = c.is_whitespace() || is_hidden(c);
    }
    out
}

/// Characters that show nothing, or that change how their neighbours are shown.
pub(crate) fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}'                    // soft hyphen
            | '\u{34f}'                 // combining grapheme joiner
            | '\u{61c}'                 // Arabic letter mark
            | '\u{115f}' | '\u{1160}'   // Hangul fillers
            | '\u{17b4}' | '\u{17b5}'   // Khmer inherent vowels
            | '\u{180b}'..='\u{180f}'   // Mongolian selectors
            | '\u{200b}'..='\u{200f}'   // zero width, left-to-right and right-to-left marks
            | '\u{2028}'..='\u{202e}'   // line and paragraph separator, bidirectional embeddings
            | '\u{2060}'..='\u{206f}'   // word joiner, invisible operators, bidirectional isolates
            | '\u{2800}'                // blank Braille pattern
            | '\u{3164}' | '\u{ffa0}'   // Hangul fillers
            | '\u{fe00}'..='\u{fe0f}'   // variation selectors
            | '\u{feff}'                // byte order mark
            | '\u{fff9}'..='\u{fffb}'   // interlinear annotation
            | '\u{1bca0}'..='\u{1bca3}' // shorthand format controls
            | '\u{1d173}'..='\u{1d17a}' // musical format controls
            | '\u{e0000}'..='\u{e0fff}' // tags, variation selectors
        )
}

/// A text for a CSV cell: a spreadsheet takes what begins with `=`, `+`, `-`, `@`, a tab or a carriage return for a
/// formula, and a log reader `::` at the start of a line for a command; such a text gets a `'` in front.
#[cfg(feature = "traces")]
pub(crate) fn guarded(text: String) -> String {
    if text.starts_with(['=', '+', '-', '@', '\t', '\r']) || text.starts_with("::") {
        format!("'{text}")
    } else {
        text
    }
}

/// Columns that `text` takes on a terminal (`行列積` takes 6).
pub(crate) fn width(text: &str) -> usize {
    text.width()
}

/// `text`, or as much of its start as fits into `columns` with `…` behind it, cut between characters.
///
/// Combining marks stay with the character that they belong to.
#[cfg(feature = "traces")]
pub(crate) fn cut(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let room = columns.saturating_sub(1);
    let mut end = 0;
    let mut used = 0;
    for (at, c) in text.char_indices() {
        used += c.width().unwrap_or(0);
        if used > room {
            break;
        }
        end = at + c.len_utf8();
    }
    let mut out = text.get(..end).unwrap_or_default().trim_end().to_owned();
    if columns > 0 {
        out.push(ELLIPSIS);
    }
    out
}

/// `text`, or its start and its end with `…` between them: names of one engine begin alike, and end in what they are.
#[cfg(feature = "traces")]
pub(crate) fn cut_middle(text: &str, columns: usize) -> String {
    if width(text) <= columns || columns < 8 {
        return cut(text, columns);
    }
    let head = cut(text, columns / 3);
    let room = columns - width(&head);
    let mut start = text.len();
    let mut used = 0;
    for (at, c) in text.char_indices().rev() {
        used += c.width().unwrap_or(0);
        if used > room {
            break;
        }
        // Combining marks stay with the character before them.
        if c.width().unwrap_or(0) > 0 {
            start = at;
        }
    }
    head + text.get(start..).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(feature = "traces")]
    #[test]
    fn a_long_name_keeps_its_end() {
        assert_eq!(cut_middle("hf2q.decode.layer.ffn.gate_up", 18), "hf2q.….ffn.gate_up");
        assert_eq!(width(&cut_middle("行列積行列積行列積行列積", 11)), 11);
        assert_eq!(cut_middle("short", 18), "short");
    }

    #[test]
    fn a_colon_at_the_end_cannot_meet_ours() {
        assert_eq!(visible(":"), "\\u{3a}");
        assert_eq!(visible("a :"), "a \\u{3a}");
        assert_eq!(visible("a:"), "a:");
    }

    #[test]
    fn what_cannot_be_seen_is_written_out() {
        assert_eq!(visible("a\u{1b}[31mb"), "a\\u{1b}[31mb");
        assert_eq!(visible("a\nb\tc\r"), "a\\u{a}b\\u{9}c\\u{d}");
        assert_eq!(visible("x\u{202e}y\u{2066}z"), "x\\u{202e}y\\u{2066}z");
        assert_eq!(
            visible("\u{feff}a\u{ad}b\u{200b}c\u{2028}d\u{e0041}e\u{9b}"),
            "\\u{feff}a\\u{ad}b\\u{200b}c\\u{2028}d\\u{e0041}e\\u{9b}"
        );
        assert_eq!(
            visible("行列積 ✅ e\u{301}tape a|b `c`"),
            "行列積 ✅ e\u{301}tape a|b `c`"
        );
    }

    #[test]
    fn marks_stand_on_a_character_and_are_few() {
        assert_eq!(visible("\u{301}a"), "\\u{301}a");
        let pile = visible(&format!("a{}", "\u{301}".repeat(1_000)));
        assert!(pile.starts_with("a\u{301}\u{301}\u{301}\u{301}\\u{301}"), "{pile}");
    }

    #[test]
    fn a_label_is_no_ci_command() {
        assert_eq!(visible("::error::x"), "\\u{3a}:error::x");
        assert_eq!(visible("a ::warning::x"), "a \\u{3a}:warning::x");
        assert_eq!(visible("ggml::mul_mat"), "ggml::mul_mat");
        assert_eq!(visible("x##[error]y"), "x\\u{23}#[error]y");
        assert_eq!(visible("##vso[task.x]"), "\\u{23}#vso[task.x]");
    }

    #[test]
    fn cut_is_by_display_width_and_between_characters() {
        let long = "試".repeat(100);
        assert_eq!(width(&cut(&long, 40)), 39);
        assert!(cut(&long, 40).ends_with('…'));
        assert_eq!(cut("gemm", 4), "gemm");
        assert_eq!(cut("gemms", 4), "gem…");
        assert_eq!(cut("e\u{301}e\u{301}e\u{301}", 2), "e\u{301}…");
        assert_eq!(cut("abc", 0), "");
        assert_eq!(width("e\u{301}tape"), 5);
    }
}
