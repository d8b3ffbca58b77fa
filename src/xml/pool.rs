//! Texts, element names and lists of children of a document, or of a piece of one, each once.

use std::hash::BuildHasher;
use std::sync::Arc;

use hashbrown::{DefaultHashBuilder, HashTable};

use super::value::{CompositeId, Kind, Tag, TextId, Value};

/// More distinct element names than any schema has; the packed form of a value holds no more.
pub(super) const MAX_TAGS: usize = 1 << 12;

/// Texts, element names and composites, each once.
#[derive(Clone)]
pub(super) struct Pool {
    hasher: DefaultHashBuilder,
    bytes: String,
    ends: Vec<usize>,
    texts: HashTable<usize>,
    /// The pools of one document's pieces share them until one meets another.
    tags: Arc<Tags>,
    children: Vec<Value>,
    composites: Vec<Composite>,
    composite_index: HashTable<usize>,
}

/// Element names, by tag.
#[derive(Debug, Clone)]
struct Tags {
    names: Vec<Box<str>>,
    index: hashbrown::HashMap<Box<str>, Tag>,
}

/// Where a composite's children are, and how much it is when every reference is followed.
#[derive(Debug, Clone, Copy)]
struct Composite {
    start: usize,
    end: usize,
    size: Size,
}

/// What a part counts beside its text: a number has up to 16 digits, and an empty text takes time too.
const PART: u64 = 16;

/// How large a value is when it is written out: references make a value larger than what the file has of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Size {
    /// Levels of elements.
    pub(super) levels: usize,
    /// Bytes of text, and [`PART`] for each part.
    pub(super) bytes: u64,
}

impl Default for Pool {
    fn default() -> Self {
        Pool {
            hasher: DefaultHashBuilder::default(),
            bytes: String::new(),
            ends: Vec::new(),
            texts: HashTable::new(),
            // Tag 0 is reserved, so that a packed value is never 0 or 1 by accident.
            tags: Arc::new(Tags {
                names: vec!["".into()],
                index: hashbrown::HashMap::default(),
            }),
            children: Vec::new(),
            composites: Vec::new(),
            composite_index: HashTable::new(),
        }
    }
}

/// How much a [`Pool`] held.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct PoolMark {
    texts: usize,
    composites: usize,
}

impl Pool {
    /// An empty pool with the same element names under the same numbers.
    pub(super) fn with_names_of(other: &Pool) -> Pool {
        Pool {
            tags: Arc::clone(&other.tags),
            ..Pool::default()
        }
    }

    /// Puts what they stand for in the place of placeholders in all composites. From then on composites can be equal
    /// without being one.
    pub(super) fn replace_imports(&mut self, imports: &[Value]) {
        if imports.is_empty() {
            return;
        }
        for child in &mut self.children {
            *child = super::segments::resolved(imports, *child);
        }
        // A part stands before what it is a part of; what was imported stands behind both, but its size is known.
        for at in 0..self.composites.len() {
            let size = self.size_of(children_at(&self.children, &self.composites, at));
            if let Some(composite) = self.composites.get_mut(at) {
                composite.size = size;
            }
        }
    }

    /// The size of the largest composite, level by level and byte by byte, and the bytes of all of them.
    pub(super) fn sizes(&self) -> (Size, u64) {
        self.composites
            .iter()
            .fold((Size::default(), 0), |(most, all), composite| {
                let size = composite.size;
                let most = Size {
                    levels: most.levels.max(size.levels),
                    bytes: most.bytes.max(size.bytes),
                };
                (most, u64::saturating_add(all, size.bytes))
            })
    }

    pub(super) fn mark(&self) -> PoolMark {
        PoolMark {
            texts: self.ends.len(),
            composites: self.composites.len(),
        }
    }

    /// Forgets every text and composite since the mark.
    pub(super) fn rewind(&mut self, mark: PoolMark) {
        while self.composites.len() > mark.composites {
            let at = self.composites.len() - 1;
            let hash = self.hasher.hash_one(children_at(&self.children, &self.composites, at));
            if let Ok(entry) = self.composite_index.find_entry(hash, |other| *other == at) {
                entry.remove();
            }
            if let Some(composite) = self.composites.pop() {
                self.children.truncate(composite.start);
            }
        }
        while self.ends.len() > mark.texts {
            let at = self.ends.len() - 1;
            let hash = self.hasher.hash_one(text_at(&self.bytes, &self.ends, at));
            if let Ok(entry) = self.texts.find_entry(hash, |other| *other == at) {
                entry.remove();
            }
            self.ends.pop();
            self.bytes.truncate(self.ends.last().copied().unwrap_or(0));
        }
    }

    /// The text, interned.
    pub(super) fn text(&mut self, text: &str) -> TextId {
        let hash = self.hasher.hash_one(text);
        let (bytes, ends) = (&self.bytes, &self.ends);
        if let Some(at) = self.texts.find(hash, |at| text_at(bytes, ends, *at) == text) {
            return TextId(*at as u64);
        }
        let at = self.ends.len();
        self.bytes.push_str(text);
        self.ends.push(self.bytes.len());
        let (bytes, ends, hasher) = (&self.bytes, &self.ends, &self.hasher);
        self.texts
            .insert_unique(hash, at, |at| hasher.hash_one(text_at(bytes, ends, *at)));
        TextId(at as u64)
    }

    /// Bytes of all distinct texts.
    pub(super) fn text_bytes(&self) -> usize {
        self.bytes.len()
    }

    pub(super) fn get_text(&self, id: TextId) -> &str {
        usize::try_from(id.0).map_or("", |at| text_at(&self.bytes, &self.ends, at))
    }

    /// The element name, interned; `None` when there are too many.
    pub(super) fn tag(&mut self, name: &str) -> Option<Tag> {
        if let Some(tag) = self.known_tag(name) {
            return Some(tag);
        }
        if self.tags.names.len() >= MAX_TAGS {
            return None;
        }
        let tags = Arc::make_mut(&mut self.tags);
        let tag = Tag(u16::try_from(tags.names.len()).ok()?);
        tags.names.push(name.into());
        tags.index.insert(name.into(), tag);
        Some(tag)
    }

    pub(super) fn known_tag(&self, name: &str) -> Option<Tag> {
        self.tags.index.get(name).copied()
    }

    /// How many element names there are.
    pub(super) fn tag_count(&self) -> usize {
        self.tags.names.len()
    }

    /// The element names from a number on.
    pub(super) fn tags_from(&self, number: usize) -> impl Iterator<Item = &str> {
        self.tags.names.iter().skip(number).map(|name| &**name)
    }

    pub(super) fn tag_name(&self, tag: Tag) -> &str {
        self.tags.names.get(usize::from(tag.0)).map_or("", |name| name)
    }

    /// The tag here of what another pool calls `tag`; `None` when there are too many.
    pub(super) fn tag_of(&mut self, tag: Tag, other: &Pool) -> Option<Tag> {
        if Arc::ptr_eq(&self.tags, &other.tags) {
            return Some(tag);
        }
        let name = other.tag_name(tag);
        // Pieces of one document mostly met the same names in the same order.
        if self.tag_name(tag) == name {
            return Some(tag);
        }
        self.tag(name)
    }

    /// The list of children, interned, and whether it is new.
    pub(super) fn composite(&mut self, children: &[Value]) -> (CompositeId, bool) {
        let hash = self.hasher.hash_one(children);
        let (all, spans) = (&self.children, &self.composites);
        if let Some(at) = self
            .composite_index
            .find(hash, |at| children_at(all, spans, *at) == children)
        {
            return (CompositeId(*at as u64), false);
        }
        let at = self.composites.len();
        let start = self.children.len();
        let size = self.size_of(children);
        self.children.extend_from_slice(children);
        self.composites.push(Composite {
            start,
            end: self.children.len(),
            size,
        });
        let (all, spans, hasher) = (&self.children, &self.composites, &self.hasher);
        self.composite_index
            .insert_unique(hash, at, |at| hasher.hash_one(children_at(all, spans, *at)));
        (CompositeId(at as u64), true)
    }

    /// The size of an element with these children.
    fn size_of(&self, children: &[Value]) -> Size {
        let mut size = Size::default();
        for child in children {
            let own = match child.kind() {
                Kind::Composite(id) => self.size(id),
                Kind::Text(text) => Size {
                    levels: 0,
                    bytes: self.get_text(text).len() as u64,
                },
                _ => Size::default(),
            };
            size.levels = size.levels.max(own.levels);
            size.bytes = size.bytes.saturating_add(own.bytes).saturating_add(PART);
        }
        size.levels += 1;
        size
    }

    pub(super) fn size(&self, id: CompositeId) -> Size {
        usize::try_from(id.0)
            .ok()
            .and_then(|at| self.composites.get(at))
            .map_or_else(Size::default, |composite| composite.size)
    }

    pub(super) fn children(&self, id: CompositeId) -> &[Value] {
        usize::try_from(id.0).map_or(&[], |at| children_at(&self.children, &self.composites, at))
    }
}

fn text_at<'a>(bytes: &'a str, ends: &[usize], at: usize) -> &'a str {
    let start = at
        .checked_sub(1)
        .and_then(|before| ends.get(before))
        .copied()
        .unwrap_or(0);
    ends.get(at).and_then(|end| bytes.get(start..*end)).unwrap_or("")
}

fn children_at<'a>(all: &'a [Value], spans: &[Composite], at: usize) -> &'a [Value] {
    spans
        .get(at)
        .and_then(|composite| all.get(composite.start..composite.end))
        .unwrap_or(&[])
}
