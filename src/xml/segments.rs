//! A document read in pieces: what the ids of earlier pieces stand for.
//!
//! A piece that is read while those before it still are knows nothing of their ids. A reference to one of them becomes a
//! placeholder, an *import*; when everything before the piece is known, its imports are looked up ([`Piece::resolve`]) and
//! it becomes a [`Segment`] that later pieces import from. Ids count up in document order, so the segment that has one is
//! found by its range; a document in which they do not is not read in pieces.

use std::sync::Arc;

use hashbrown::HashMap;

use super::ids::{CompositeId, IdTable, Kind, Pool, Tag, Value};

/// What a piece of a document defined, complete.
pub(super) struct Segment {
    ids: IdTable,
    pub(super) pool: Pool,
    /// What the placeholders in `ids` stand for.
    resolved: Vec<Value>,
}

/// The pieces before the one that is read, in their order.
#[derive(Clone, Default)]
pub(super) struct Earlier {
    /// With the first id of each; none is empty.
    segments: Vec<(u64, Arc<Segment>)>,
    highest: u64,
}

/// Composites that were copied already, by segment and place: one that refers to another twice is copied once.
type Copied = HashMap<(usize, CompositeId), Value>;

impl Earlier {
    /// Adds what came next; `false`, and nothing happens, when an id of it does not lie above all before.
    pub(super) fn push(&mut self, segment: &Arc<Segment>) -> bool {
        let Some((lowest, highest)) = segment.ids.range() else {
            return true;
        };
        if !self.segments.is_empty() && lowest <= self.highest {
            return false;
        }
        self.segments.push((lowest, Arc::clone(segment)));
        self.highest = highest;
        true
    }

    /// The value of an id, with its texts and composites copied into `pool`; [`Value::UNDEFINED`] when there is none.
    fn import(&self, id: u64, pool: &mut Pool, copied: &mut Copied) -> Value {
        let after = self.segments.partition_point(|(lowest, _)| *lowest <= id);
        let Some(at) = after.checked_sub(1) else {
            return Value::UNDEFINED;
        };
        let Some((_, segment)) = self.segments.get(at) else {
            return Value::UNDEFINED;
        };
        let value = segment.ids.get(id);
        let value = resolved(&segment.resolved, value);
        copy(value, (at, &segment.pool), pool, copied).unwrap_or(Value::UNDEFINED)
    }
}

/// The value that a placeholder stands for; any other is itself.
pub(super) fn resolved(imports: &[Value], value: Value) -> Value {
    match value.import_number() {
        Some(number) => imports.get(number).copied().unwrap_or_default(),
        None => value,
    }
}

/// As deep as cells are, so it ends. `None`: there is no room for another element name.
fn copy(value: Value, (at, from): (usize, &Pool), into: &mut Pool, copied: &mut Copied) -> Option<Value> {
    match value.kind() {
        Kind::Undefined | Kind::Null => Some(value),
        Kind::Number(number) => Value::number(into.tag(from.tag_name(value.tag()))?, number),
        Kind::Text(text) => Some(Value::text(
            into.tag(from.tag_name(value.tag()))?,
            into.text(from.get_text(text)),
        )),
        Kind::Composite(id) => {
            if let Some(known) = copied.get(&(at, id)) {
                return Some(*known);
            }
            let children: Option<Vec<Value>> = from
                .children(id)
                .iter()
                .map(|child| copy(*child, (at, from), into, copied))
                .collect();
            let tag = into.tag(from.tag_name(value.tag()))?;
            let (composite, _) = into.composite(&children?);
            let value = Value::composite(tag, composite);
            copied.insert((at, id), value);
            Some(value)
        }
    }
}

/// How references to ids of earlier pieces are followed.
#[derive(Default)]
pub(super) enum References {
    /// There is no earlier piece.
    #[default]
    None,
    /// Everything before is known.
    Known(Box<Known>),
    /// What is before is still being read.
    Deferred(Box<Deferred>),
}

/// Earlier pieces, all of them complete.
pub(super) struct Known {
    earlier: Earlier,
    copied: Copied,
    values: HashMap<u64, Value>,
}

/// References that wait for the pieces before.
pub(super) struct Deferred {
    imports: Vec<(Tag, u64)>,
    numbers: HashMap<(u64, Tag), Value>,
    /// The last placeholders by the low bits of the id: most rows refer to the same few values.
    recent: Box<[(u64, Value); RECENT]>,
}

const RECENT: usize = 1024;

impl References {
    pub(super) fn known(earlier: Earlier) -> Self {
        References::Known(Box::new(Known {
            earlier,
            copied: Copied::default(),
            values: HashMap::new(),
        }))
    }

    pub(super) fn deferred() -> Self {
        References::Deferred(Box::new(Deferred {
            imports: Vec::new(),
            numbers: HashMap::new(),
            recent: Box::new([(0, Value::UNDEFINED); RECENT]),
        }))
    }

    /// What an id stands for that this piece does not define; new texts and names go into `pool`.
    pub(super) fn get(&mut self, tag: Tag, id: u64, pool: &mut Pool) -> Value {
        match self {
            References::None => Value::UNDEFINED,
            References::Known(known) => {
                let Known {
                    earlier,
                    copied,
                    values,
                } = &mut **known;
                *values.entry(id).or_insert_with(|| earlier.import(id, pool, copied))
            }
            References::Deferred(deferred) => deferred.placeholder(tag, id),
        }
    }

    /// Forgets values whose texts were taken back from the pool.
    pub(super) fn forget(&mut self) {
        if let References::Known(known) = self {
            known.copied.clear();
            known.values.clear();
        }
    }
}

impl Deferred {
    fn placeholder(&mut self, tag: Tag, id: u64) -> Value {
        let recent = usize::try_from(id).ok().and_then(|id| self.recent.get_mut(id % RECENT));
        if let Some((known, value)) = &recent
            && *known == id
            && value.tag() == tag
        {
            return *value;
        }
        let imports = &mut self.imports;
        let value = *self.numbers.entry((id, tag)).or_insert_with(|| {
            imports.push((tag, id));
            Value::import(tag, imports.len() - 1)
        });
        if let Some(recent) = recent {
            *recent = (id, value);
        }
        value
    }
}

/// A piece that was read but for its imports.
pub(super) struct Piece {
    pub(super) ids: IdTable,
    pub(super) pool: Pool,
    pub(super) references: References,
}

/// Why a piece cannot be used: somebody else has to say what is wrong, if anything is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Unresolved;

impl Piece {
    /// Looks its imports up; the second part is what its placeholders stand for.
    pub(super) fn resolve(mut self, earlier: &Earlier) -> Result<(Segment, Vec<Value>), Unresolved> {
        let imports = match self.references {
            References::Deferred(deferred) => deferred.imports,
            References::None | References::Known(_) => Vec::new(),
        };
        let mut copied = Copied::default();
        let mut resolved = Vec::with_capacity(imports.len());
        for (tag, id) in imports {
            let value = earlier.import(id, &mut self.pool, &mut copied);
            // A reference of another type, or to nothing.
            if value == Value::UNDEFINED || (value.tag() != tag && value != Value::NULL) {
                return Err(Unresolved);
            }
            resolved.push(value);
        }
        self.pool.replace_imports(&resolved);
        let segment = Segment {
            ids: self.ids,
            pool: self.pool,
            resolved: resolved.clone(),
        };
        Ok((segment, resolved))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A piece that defines `ids` as numbers of type `t`.
    fn segment(ids: &[(u64, u64)]) -> Arc<Segment> {
        let mut pool = Pool::default();
        let tag = pool.tag("t").unwrap();
        let mut table = IdTable::default();
        for (id, number) in ids {
            table.define(*id, Value::number(tag, *number).unwrap());
        }
        let piece = Piece {
            ids: table,
            pool,
            references: References::None,
        };
        Arc::new(piece.resolve(&Earlier::default()).unwrap().0)
    }

    #[test]
    fn pieces_whose_ids_do_not_count_up_are_not_taken() {
        let mut earlier = Earlier::default();
        assert!(earlier.push(&segment(&[(1, 10), (2, 20)])));
        assert!(earlier.push(&segment(&[])));
        assert!(!earlier.push(&segment(&[(2, 30)])));
        assert!(!earlier.push(&segment(&[(9, 30), (1, 30)])));
        assert!(earlier.push(&segment(&[(3, 30)])));
    }

    #[test]
    fn a_placeholder_becomes_what_the_piece_before_defined() {
        let mut earlier = Earlier::default();
        earlier.push(&segment(&[(1, 10), (7, 70)]));
        let mut pool = Pool::default();
        // Another number for the same name.
        pool.tag("other").unwrap();
        let (tag, outer) = (pool.tag("t").unwrap(), pool.tag("outer").unwrap());
        let mut references = References::deferred();
        let import = references.get(tag, 7, &mut pool);
        assert_eq!(references.get(tag, 7, &mut pool), import);
        let (composite, _) = pool.composite(&[import]);
        let mut ids = IdTable::default();
        ids.define(8, Value::composite(outer, composite));
        ids.define(9, import);
        let piece = Piece { ids, pool, references };
        let (segment, resolved) = piece.resolve(&earlier).unwrap();
        assert_eq!(resolved, [Value::number(tag, 70).unwrap()]);
        assert_eq!(segment.pool.children(composite), resolved);

        earlier.push(&Arc::new(segment));
        let (mut pool, mut copied) = (Pool::default(), Copied::default());
        let seventy = earlier.import(9, &mut pool, &mut copied);
        assert_eq!((seventy.kind(), pool.tag_name(seventy.tag())), (Kind::Number(70), "t"));
        let Kind::Composite(copy) = earlier.import(8, &mut pool, &mut copied).kind() else {
            panic!("a composite stays one");
        };
        assert_eq!(pool.children(copy), [seventy]);
        assert_eq!(earlier.import(6, &mut pool, &mut copied), Value::UNDEFINED);
    }

    #[test]
    fn references_to_nothing_or_to_another_type_leave_a_piece_unresolved() {
        let mut earlier = Earlier::default();
        earlier.push(&segment(&[(1, 10)]));
        for (name, id) in [("t", 2), ("u", 1)] {
            let mut pool = Pool::default();
            let tag = pool.tag(name).unwrap();
            let mut references = References::deferred();
            references.get(tag, id, &mut pool);
            let piece = Piece {
                ids: IdTable::default(),
                pool,
                references,
            };
            assert!(piece.resolve(&earlier).is_err(), "{name} {id}");
        }
    }
}
