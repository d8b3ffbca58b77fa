//! What an export's ids stand for, in eight bytes each: the id table, the string pool, and composite values.
//!
//! An export writes a value once, with an `id`, and repeats it as `<name ref="id"/>`. A [`Value`] is one
//! such value: a number, a text (an index into the pool), or a composite (a list of children, each stored
//! once). Ids count up from 1 in document order, so the table is paged by id; ids far beyond what was defined
//! so far go to a map, so that no id's size alone can take memory.

use std::collections::HashMap;
use std::hash::BuildHasher;
use std::sync::Arc;

use hashbrown::{DefaultHashBuilder, HashTable};

/// A cell's value, packed: 2 bits kind, 12 bits element name, 50 bits payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(super) struct Value(u64);

/// Index of an element name in [`Pool`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Tag(u16);

impl Tag {
    /// No element's.
    pub(super) const NONE: Tag = Tag(0);

    pub(super) fn number(self) -> u16 {
        self.0
    }
}

/// More distinct element names than any schema has; the packed form holds no more.
pub(super) const MAX_TAGS: usize = 1 << 12;

const PAYLOAD_BITS: u32 = 50;
const PAYLOAD_MASK: u64 = (1 << PAYLOAD_BITS) - 1;
const KIND_SHIFT: u32 = 62;

/// What a [`Value`] holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// No id was defined here, or it was defined by an element that nobody needs.
    Undefined,
    /// `<sentinel/>`.
    Null,
    /// A decimal number below 2^50, written the usual way.
    Number(u64),
    /// Any other text.
    Text(TextId),
    /// An element with child elements.
    Composite(CompositeId),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct TextId(u64);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct CompositeId(u64);

impl Value {
    pub(super) const UNDEFINED: Value = Value(0);
    pub(super) const NULL: Value = Value(1);

    fn pack(kind: u64, tag: Tag, payload: u64) -> Value {
        Value(kind << KIND_SHIFT | u64::from(tag.0) << PAYLOAD_BITS | (payload & PAYLOAD_MASK))
    }

    /// The number, when it fits the payload.
    pub(super) fn number(tag: Tag, number: u64) -> Option<Value> {
        (number <= PAYLOAD_MASK).then(|| Value::pack(1, tag, number))
    }

    pub(super) fn text(tag: Tag, text: TextId) -> Value {
        Value::pack(2, tag, text.0)
    }

    pub(super) fn composite(tag: Tag, composite: CompositeId) -> Value {
        Value::pack(3, tag, composite.0)
    }

    /// A placeholder for what an earlier piece of the document defines, by its number among those; see
    /// [`super::segments`]. It has no kind.
    pub(super) fn import(tag: Tag, number: usize) -> Value {
        Value::pack(0, tag, number as u64)
    }

    /// The number of a placeholder.
    pub(super) fn import_number(self) -> Option<usize> {
        // No element name is tag 0, and the kind is above all else.
        if !(1 << PAYLOAD_BITS..1 << KIND_SHIFT).contains(&self.0) {
            return None;
        }
        usize::try_from(self.0 & PAYLOAD_MASK).ok()
    }

    pub(super) fn tag(self) -> Tag {
        Tag(u16::try_from(self.0 >> PAYLOAD_BITS & 0xfff).unwrap_or(0))
    }

    pub(super) fn kind(self) -> Kind {
        let payload = self.0 & PAYLOAD_MASK;
        match self.0 >> KIND_SHIFT {
            1 => Kind::Number(payload),
            2 => Kind::Text(TextId(payload)),
            3 => Kind::Composite(CompositeId(payload)),
            _ if self == Value::NULL => Kind::Null,
            _ => Kind::Undefined,
        }
    }

    /// Equal for equal values of one document.
    pub(super) fn bits(self) -> u64 {
        self.0
    }
}

/// Few, because a piece of a document begins and ends in the middle of one.
const PAGE: usize = 512;

/// Values by id.
#[derive(Clone, Default)]
pub(super) struct IdTable {
    /// From `first_page` on.
    pages: Vec<Option<Box<[Value; PAGE]>>>,
    first_page: usize,
    /// The lowest and the highest id that was ever defined.
    range: Option<(u64, u64)>,
    far: HashMap<u64, Value>,
    defined: u64,
    /// What [`IdTable::try_define`] replaced since the last mark.
    replaced: Vec<(u64, Value)>,
    defined_at_mark: u64,
}

impl IdTable {
    /// The value of an id; [`Value::UNDEFINED`] when there is none.
    #[inline]
    pub(super) fn get(&self, id: u64) -> Value {
        if let Some((page, at)) = self.split(id)
            && let Some(Some(page)) = self.pages.get(page)
        {
            let value = page.get(at).copied().unwrap_or_default();
            if value != Value::UNDEFINED {
                return value;
            }
        }
        if self.far.is_empty() {
            Value::UNDEFINED
        } else {
            self.far.get(&id).copied().unwrap_or_default()
        }
    }

    /// Defines an id; a later definition replaces an earlier one.
    pub(super) fn define(&mut self, id: u64, value: Value) {
        if self.range.is_none() {
            // A piece of a document begins anywhere, and an element's parts are defined before it.
            let page = usize::try_from(id).unwrap_or(0) / PAGE;
            self.first_page = page.saturating_sub(1);
        }
        self.widen(id);
        self.defined += 1;
        // A page may be added only in proportion to what was defined: 32 bytes a definition at the most.
        let bound = self.defined.saturating_mul(4).saturating_add(2 * PAGE as u64);
        match self.split(id) {
            Some((page, at)) if page < self.pages.len() || ((page * PAGE + at) as u64) < bound => {
                if page >= self.pages.len() {
                    if value == Value::UNDEFINED {
                        self.far.remove(&id);
                        return;
                    }
                    self.pages.resize_with(page + 1, || None);
                }
                if !self.far.is_empty() {
                    self.far.remove(&id);
                }
                if let Some(slot) = self.pages.get_mut(page) {
                    if slot.is_none() && value == Value::UNDEFINED {
                        return;
                    }
                    let page = slot.get_or_insert_with(|| Box::new([Value::UNDEFINED; PAGE]));
                    if let Some(slot) = page.get_mut(at) {
                        *slot = value;
                    }
                }
            }
            _ if value == Value::UNDEFINED => {
                self.far.remove(&id);
            }
            _ => {
                self.far.insert(id, value);
            }
        }
    }

    /// From here on, [`IdTable::rewind`] takes back what [`IdTable::try_define`] defines.
    pub(super) fn mark(&mut self) {
        self.replaced.clear();
        self.defined_at_mark = self.defined;
    }

    /// As [`IdTable::define`], until further notice; tells what the id stood for.
    #[inline]
    pub(super) fn try_define(&mut self, id: u64, value: Value) -> Value {
        if self.far.is_empty()
            && let Some((page, at)) = self.split(id)
            && let Some(Some(page)) = self.pages.get_mut(page)
            && let Some(slot) = page.get_mut(at)
        {
            self.defined += 1;
            let before = std::mem::replace(slot, value);
            self.replaced.push((id, before));
            self.widen(id);
            before
        } else {
            let before = self.get(id);
            self.replaced.push((id, before));
            self.define(id, value);
            before
        }
    }

    /// Takes back every definition since the mark.
    pub(super) fn rewind(&mut self) {
        while let Some((id, value)) = self.replaced.pop() {
            self.define(id, value);
        }
        self.defined = self.defined_at_mark;
    }

    pub(super) fn clear(&mut self) {
        *self = IdTable::default();
    }

    #[inline]
    fn widen(&mut self, id: u64) {
        self.range = Some(match self.range {
            Some((lowest, highest)) => (lowest.min(id), highest.max(id)),
            None => (id, id),
        });
    }

    /// Takes everything that was defined, and begins anew in the same memory.
    pub(super) fn take(&mut self) -> Definitions {
        let Some((lowest, highest)) = self.range else {
            return Definitions::default();
        };
        let dense = self.defined.saturating_mul(4).saturating_add(PAGE as u64);
        if !self.far.is_empty() || highest - lowest >= dense {
            return Definitions {
                range: self.range,
                values: [].into(),
                sparse: Some(std::mem::take(self)),
            };
        }
        let values = self.near(lowest, highest).into();
        for page in self.pages.iter_mut().flatten() {
            page.fill(Value::UNDEFINED);
        }
        let pages = std::mem::take(&mut self.pages);
        let range = self.range;
        *self = IdTable {
            pages,
            replaced: std::mem::take(&mut self.replaced),
            ..IdTable::default()
        };
        Definitions {
            range,
            values,
            sparse: None,
        }
    }

    /// The values of so many ids, none of them far: page by page.
    fn near(&self, lowest: u64, highest: u64) -> Vec<Value> {
        let count = usize::try_from(highest - lowest).map_or(0, |more| more + 1);
        let mut values = Vec::with_capacity(count);
        let Some((mut page, mut from)) = self.split(lowest) else {
            // Before the first page there are only ids that nobody needs.
            return (lowest..=highest).map(|id| self.get(id)).collect();
        };
        while values.len() < count {
            let to = PAGE.min(from + count - values.len());
            match self.pages.get(page) {
                Some(Some(page)) => values.extend_from_slice(page.get(from..to).unwrap_or_default()),
                _ => values.resize(values.len() + to - from, Value::UNDEFINED),
            }
            (page, from) = (page + 1, 0);
        }
        values
    }

    /// Page, and place on it; `None` before the first page.
    #[inline]
    fn split(&self, id: u64) -> Option<(usize, usize)> {
        let id = usize::try_from(id).ok()?;
        Some(((id / PAGE).checked_sub(self.first_page)?, id % PAGE))
    }
}

/// What a piece of a document defined, once it is complete.
#[derive(Default)]
pub(super) struct Definitions {
    /// The lowest and the highest id.
    pub(super) range: Option<(u64, u64)>,
    /// From the lowest to the highest; none when there are few among many.
    pub(super) values: Arc<[Value]>,
    /// All of them when they are not there.
    pub(super) sparse: Option<IdTable>,
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_round_trip() {
        let mut pool = Pool::default();
        let tag = pool.tag("duration").unwrap();
        let number = Value::number(tag, PAYLOAD_MASK).unwrap();
        assert_eq!((number.kind(), number.tag()), (Kind::Number(PAYLOAD_MASK), tag));
        assert_eq!(Value::number(tag, PAYLOAD_MASK + 1), None);
        assert_eq!(Value::NULL.kind(), Kind::Null);
        assert_eq!(Value::UNDEFINED.kind(), Kind::Undefined);
        let a = pool.text("a");
        let b = pool.text("b");
        assert_eq!(pool.text("a"), a);
        assert_eq!((pool.get_text(a), pool.get_text(b)), ("a", "b"));
        let (pair, new) = pool.composite(&[number, Value::text(tag, b)]);
        assert!(new);
        assert_eq!(pool.composite(&[number, Value::text(tag, b)]), (pair, false));
        assert_eq!(pool.children(pair), [number, Value::text(tag, b)]);
    }

    #[test]
    fn what_came_since_a_mark_can_be_taken_back() {
        let mut pool = Pool::default();
        let tag = pool.tag("x").unwrap();
        let mut ids = IdTable::default();
        let old = pool.text("old");
        ids.define(7, Value::text(tag, old));
        ids.define(1 << 40, Value::text(tag, old));
        ids.mark();
        let mark = pool.mark();
        let new = pool.text("new");
        let (pair, _) = pool.composite(&[Value::text(tag, old), Value::text(tag, new)]);
        for id in [7, 8, 1 << 40, 1 << 41, 7] {
            ids.try_define(id, Value::composite(tag, pair));
        }
        assert_eq!(ids.get(1 << 41).kind(), Kind::Composite(pair));
        ids.rewind();
        pool.rewind(mark);
        for id in [7, 1 << 40] {
            assert_eq!(ids.get(id).kind(), Kind::Text(old), "{id}");
        }
        for id in [8, 1 << 41] {
            assert_eq!(ids.get(id), Value::UNDEFINED, "{id}");
        }
        assert_eq!((ids.defined, pool.mark(), pool.text_bytes()), (2, mark, 3));
        // As if they had never been: the next of each takes their place.
        assert_eq!((pool.text("old"), pool.text("other")), (old, new));
        assert!(pool.composite(&[Value::text(tag, new)]).1);
    }

    #[test]
    fn ids_with_holes_and_of_any_size_cost_what_is_defined() {
        let mut pool = Pool::default();
        let tag = pool.tag("x").unwrap();
        let mut ids = IdTable::default();
        for id in [u64::MAX, 1 << 63, 7, 1 << 40, 100_000_000, 0] {
            ids.define(id, Value::number(tag, id % 1000).unwrap());
        }
        for id in [u64::MAX, 1 << 63, 7, 1 << 40, 100_000_000, 0] {
            assert_eq!(ids.get(id).kind(), Kind::Number(id % 1000), "{id}");
        }
        assert_eq!(ids.get(8), Value::UNDEFINED);
        assert!(ids.pages.len() <= 2);
        ids.define(1 << 63, Value::UNDEFINED);
        ids.define(7, Value::number(tag, 9).unwrap());
        assert_eq!(ids.get(1 << 63), Value::UNDEFINED);
        assert_eq!(ids.get(7).kind(), Kind::Number(9));
    }

    #[test]
    fn what_is_taken_is_all_there_was_and_the_table_is_as_new() {
        let mut pool = Pool::default();
        let tag = pool.tag("x").unwrap();
        let mut table = IdTable::default();
        let number = |id: u64| Value::number(tag, id % 1000).unwrap();
        for ids in [
            vec![],
            vec![0],
            vec![5, 6, 7, 600, 1_100],
            (10_000..12_000).collect(),
            vec![3, 1 << 40],
            vec![u64::MAX],
        ] {
            for id in &ids {
                table.define(*id, number(*id));
            }
            let taken = table.take();
            assert_eq!(taken.range, ids.first().copied().zip(ids.last().copied()));
            for id in &ids {
                let value = match &taken.sparse {
                    Some(sparse) => sparse.get(*id),
                    None => taken.values[usize::try_from(id - ids[0]).unwrap()],
                };
                assert_eq!((value, table.get(*id)), (number(*id), Value::UNDEFINED), "{id}");
            }
            assert!(taken.values.len() <= 4 * ids.len() + PAGE);
            assert_eq!((table.range, table.defined), (None, 0));
        }
        // An id that nobody needs, far below all others.
        (10_000..14_000).for_each(|id| table.define(id, number(id)));
        table.define(100, Value::UNDEFINED);
        let taken = table.take();
        assert_eq!(taken.range, Some((100, 13_999)));
        assert_eq!(
            (taken.values[9_900], taken.values[0]),
            (number(10_000), Value::UNDEFINED)
        );
    }

    #[test]
    fn an_id_that_was_far_and_is_redefined_near_has_one_value() {
        let mut pool = Pool::default();
        let tag = pool.tag("x").unwrap();
        let mut ids = IdTable::default();
        ids.define(20_000, Value::number(tag, 1).unwrap());
        for id in 0..9_000 {
            ids.define(id, Value::number(tag, 2).unwrap());
        }
        ids.define(20_000, Value::number(tag, 3).unwrap());
        assert_eq!(ids.get(20_000).kind(), Kind::Number(3));
        ids.define(20_000, Value::UNDEFINED);
        assert_eq!(ids.get(20_000), Value::UNDEFINED);
    }
}
