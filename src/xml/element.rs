//! An element of a table of contents, whole.

use quick_xml::escape;

/// An element of a table of contents.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Element {
    /// Element name.
    pub name: String,
    /// Attributes in document order, entities resolved.
    pub attributes: Vec<(String, String)>,
    /// Text of the element itself, trimmed.
    pub text: String,
    /// Child elements.
    pub children: Vec<Element>,
}

impl Element {
    /// An attribute's value.
    pub fn attribute(&self, name: &str) -> Option<&str> {
        self.attributes
            .iter()
            .find(|(key, _)| key == name)
            .map(|(_, value)| value.as_str())
    }

    /// The first child of that name.
    pub fn child(&self, name: &str) -> Option<&Element> {
        self.children.iter().find(|child| child.name == name)
    }

    /// The element as an XML document, indented as xctrace does.
    pub fn to_xml(&self) -> String {
        let mut out = String::from("<?xml version=\"1.0\"?>\n\n");
        self.push_xml(&mut out, 0);
        out
    }

    fn push_xml(&self, out: &mut String, depth: usize) {
        let indent = "    ".repeat(depth);
        out.push_str(&format!("{indent}<{}", self.name));
        for (key, value) in &self.attributes {
            out.push_str(&format!(" {key}=\"{}\"", escape::escape(value.as_str())));
        }
        if self.children.is_empty() && self.text.is_empty() {
            out.push_str("/>\n");
        } else if self.children.is_empty() {
            out.push_str(&format!(">{}</{}>\n", escape::escape(self.text.as_str()), self.name));
        } else {
            out.push_str(">\n");
            for child in &self.children {
                child.push_xml(out, depth + 1);
            }
            out.push_str(&format!("{indent}</{}>\n", self.name));
        }
    }

    /// The children of that name.
    pub fn children<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Element> {
        self.children.iter().filter(move |child| child.name == name)
    }
}
