//! HTML in the making: what is markup and what is text is told apart by type.
//!
//! Markup is a literal of this program (`&'static str`); everything else goes in as text or as the value of an attribute and
//! is escaped on its way, so no label can be forgotten. Elements close by themselves. What comes out is also
//! well-formed XML.

use crate::label::is_hidden;

/// A piece of a page.
#[derive(Debug, Default)]
pub(super) struct Html {
    markup: String,
}

/// Attributes of an element; `""` as a name leaves one out.
pub(super) type Attributes<'a> = &'a [(&'static str, &'a str)];

impl Html {
    /// An element and what it holds.
    pub(super) fn element(&mut self, tag: &'static str, attributes: Attributes<'_>, content: impl FnOnce(&mut Html)) {
        self.open(tag, attributes);
        self.markup.push('>');
        content(self);
        self.markup.push_str("</");
        self.markup.push_str(tag);
        self.markup.push('>');
    }

    /// An element that holds only text.
    pub(super) fn leaf(&mut self, tag: &'static str, attributes: Attributes<'_>, text: &str) {
        self.element(tag, attributes, |html| html.text(text));
    }

    /// An element that holds nothing: `meta`, `rect`, …
    pub(super) fn empty(&mut self, tag: &'static str, attributes: Attributes<'_>) {
        self.open(tag, attributes);
        self.markup.push_str("/>");
    }

    /// Text.
    pub(super) fn text(&mut self, text: &str) {
        for c in text.chars() {
            match c {
                '&' => self.markup.push_str("&amp;"),
                '<' => self.markup.push_str("&lt;"),
                '>' => self.markup.push_str("&gt;"),
                '"' => self.markup.push_str("&quot;"),
                '\'' => self.markup.push_str("&#39;"),
                // The sections have made these visible already.
                c if c != '\n' && is_hidden(c) => self.markup.extend(c.escape_unicode()),
                c => self.markup.push(c),
            }
        }
    }

    /// Markup, a style sheet or a program of our own.
    pub(super) fn raw(&mut self, markup: &'static str) {
        self.markup.push_str(markup);
    }

    /// JSON that a script element can hold: without `<`, which could end it, in ASCII, so that nothing in it is hidden, and
    /// without `#`, with which commands of CI systems begin.
    pub(super) fn data(&mut self, id: &'static str, json: &str) {
        self.open("script", &[("type", "application/json"), ("id", id)]);
        self.markup.push('>');
        let mut units = [0; 2];
        for c in json.chars() {
            // These stand in strings only.
            if matches!(c, '<' | '>' | '&' | '#' | '\u{7f}') || !c.is_ascii() {
                for unit in c.encode_utf16(&mut units) {
                    self.markup.push_str(&format!("\\u{unit:04x}"));
                }
            } else {
                self.markup.push(c);
            }
        }
        self.markup.push_str("</script>\n");
    }

    /// The whole of it.
    pub(super) fn finish(self) -> String {
        self.markup
    }

    fn open(&mut self, tag: &'static str, attributes: Attributes<'_>) {
        self.markup.push('<');
        self.markup.push_str(tag);
        for (name, value) in attributes.iter().filter(|(name, _)| !name.is_empty()) {
            self.markup.push(' ');
            self.markup.push_str(name);
            self.markup.push_str("=\"");
            self.text(value);
            self.markup.push('"');
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_never_markup() {
        let mut html = Html::default();
        html.element("td", &[("title", "\"><b>")], |html| {
            html.text("<img src=x> & 'co' \u{202e}");
            html.empty("br", &[("", "left out")]);
        });
        assert_eq!(
            html.finish(),
            "<td title=\"&quot;&gt;&lt;b&gt;\">&lt;img src=x&gt; &amp; &#39;co&#39; \\u{202e}<br/></td>"
        );
    }

    #[test]
    fn data_cannot_end_its_element_and_is_the_same_json() {
        let mut html = Html::default();
        let label = "</script><!-- \u{202e} 試 🚀 & \u{7f}";
        html.data("d", &serde_json::to_string(label).unwrap());
        let text = html.finish();
        let json = text
            .strip_prefix("<script type=\"application/json\" id=\"d\">")
            .and_then(|rest| rest.strip_suffix("</script>\n"))
            .unwrap();
        assert!(json.is_ascii() && !json.contains('<'));
        assert_eq!(serde_json::from_str::<String>(json).unwrap(), label);
    }
}
