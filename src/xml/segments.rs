//! A document read in pieces: what the ids of earlier pieces stand for.
//!
//! A piece that is read while those before it still are knows nothing of their ids. A reference to one of them becomes a
//! placeholder, an *import*; when everything before the piece is known, its imports are looked up ([`Piece::resolve`]) and
//! it becomes a [`Segment`] that later pieces import from. Ids count up in document order, so the segment that has one is
//! found by its range; a document in which they do not is not read in pieces.

use std::sync::Arc;

use hashbrown::HashMap;

use super::ids::Definitions;
use super::pool::Pool;
use super::value::{CompositeId, Kind, Tag, Value};

/// What a piece of a document defined, complete.
pub(super) struct Segment {
    ids: Definitions,
    pub(super) pool: Pool,
    /// What the placeholders in `ids` stand for.
    resolved: Vec<Value>,
}

/// The pieces before the one that is read, in their order.
#[derive(Clone, Default)]
pub(super) struct Earlier {
    /// None is empty.
    segments: Vec<Known>,
    highest: u64,
}

/// A piece with what is looked at first, so that most ids cost one look into memory that is far.
#[derive(Clone)]
struct Known {
    lowest: u64,
    values: Arc<[Value]>,
    segment: Arc<Segment>,
}

/// Composites that were copied already, by segment and place: one that refers to another twice is copied once.
type Copied = HashMap<(usize, CompositeId), Value>;

impl Earlier {
    /// Adds what came next; `false`, and nothing happens, when an id of it does not lie above all before.
    pub(super) fn push(&mut self, segment: &Arc<Segment>) -> bool {
        let Some((lowest, highest)) = segment.ids.range else {
            return true;
        };
        if !self.segments.is_empty() && lowest <= self.highest {
            return false;
        }
        self.segments.push(Known {
            lowest,
            values: Arc::clone(&segment.ids.values),
            segment: Arc::clone(segment),
        });
        self.highest = highest;
        true
    }

    /// The value of an id, with its texts and composites copied into `pool`; [`Value::UNDEFINED`] when there is none.
    fn import(&self, id: u64, pool: &mut Pool, copied: &mut Copied) -> Value {
        self.take_over(self.fetch(id), pool, copied)
    }

    /// What an id stands for in the piece that has it.
    #[inline]
    fn fetch(&self, id: u64) -> Option<(usize, Value)> {
        let (at, known) = self.find(id)?;
        let place = usize::try_from(id - known.lowest).unwrap_or(usize::MAX);
        let value = match known.values.get(place) {
            Some(value) => *value,
            None => known.segment.ids.sparse.as_ref()?.get(id),
        };
        Some((at, value))
    }

    /// What was fetched, as a value of another pool.
    fn take_over(&self, fetched: Option<(usize, Value)>, pool: &mut Pool, copied: &mut Copied) -> Value {
        let Some((at, value)) = fetched else {
            return Value::UNDEFINED;
        };
        let Some(known) = self.segments.get(at) else {
            return Value::UNDEFINED;
        };
        let value = resolved(&known.segment.resolved, value);
        copy(value, (at, &known.segment.pool), pool, copied).unwrap_or(Value::UNDEFINED)
    }

    /// The piece that has an id, if one has it.
    fn find(&self, id: u64) -> Option<(usize, &Known)> {
        // Pieces of one length have about as many ids, so most are found where they would be if all had the same number.
        let share = id.saturating_mul(self.segments.len() as u64);
        let guess = usize::try_from(share / self.highest.saturating_add(1)).unwrap_or(usize::MAX);
        for at in [guess, guess.saturating_sub(1), guess.saturating_add(1)] {
            if let Some(known) = self.segments.get(at)
                && known.lowest <= id
                && self.segments.get(at + 1).is_none_or(|next| id < next.lowest)
            {
                return Some((at, known));
            }
        }
        let at = self
            .segments
            .partition_point(|known| known.lowest <= id)
            .checked_sub(1)?;
        Some((at, self.segments.get(at)?))
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
        Kind::Number(number) => Value::number(into.tag_of(value.tag(), from)?, number),
        Kind::Text(text) => Some(Value::text(
            into.tag_of(value.tag(), from)?,
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
            let tag = into.tag_of(value.tag(), from)?;
            let (composite, _) = into.composite(&children?);
            let value = Value::composite(tag, composite);
            copied.insert((at, id), value);
            Some(value)
        }
    }
}

/// How references to ids of earlier pieces are followed.
#[derive(Clone, Default)]
pub(super) struct References {
    /// Those before the piece that is read, as far as they are known.
    earlier: Earlier,
    /// Between what is known and this piece there are others that are still being read: what they may define becomes a
    /// placeholder.
    gap: bool,
    imports: Vec<Import>,
    copied: Copied,
    /// The last values by the low bits of the id: most rows refer to the same few. Empty until there is one.
    recent: Vec<(u64, Value)>,
}

const RECENT: usize = 8192;

impl References {
    /// To everything before.
    pub(super) fn to(earlier: Earlier) -> Self {
        References {
            earlier,
            ..References::default()
        }
    }

    /// The same, for one of several threads that each read a piece and then pass by some.
    pub(super) fn across_gaps(&self) -> Self {
        References {
            earlier: self.earlier.clone(),
            gap: true,
            ..References::default()
        }
    }

    /// The pieces that are known.
    pub(super) fn earlier(&self) -> &Earlier {
        &self.earlier
    }

    /// Gets to know what came since, up to and with the piece that was taken last.
    pub(super) fn catch_up(&mut self, earlier: &Earlier) {
        let known = self.earlier.segments.len();
        let since = earlier.segments.get(known..).unwrap_or_default();
        self.earlier.segments.extend_from_slice(since);
        self.earlier.highest = earlier.highest;
    }

    /// Whether an earlier piece that is known can have defined the id.
    #[inline]
    pub(super) fn may_know(&self, id: u64) -> bool {
        id <= self.earlier.highest
    }

    /// What [`References::get`] gave not long ago.
    #[inline]
    pub(super) fn recent(&self, tag: Tag, id: u64) -> Option<Value> {
        let (known, value) = self.recent.get(place(id))?;
        (*known == id && value.tag() == tag).then_some(*value)
    }

    /// What an id stands for that this piece does not define; new texts and names go into `pool`.
    pub(super) fn get(&mut self, tag: Tag, id: u64, pool: &mut Pool) -> Value {
        let value = if self.gap {
            self.imports.push(Import { tag, id, value: None });
            Value::import(tag, self.imports.len() - 1)
        } else if self.earlier.segments.is_empty() {
            return Value::UNDEFINED;
        } else {
            self.earlier.import(id, pool, &mut self.copied)
        };
        if self.recent.is_empty() {
            self.recent.resize(RECENT, (0, Value::UNDEFINED));
        }
        if let Some(recent) = self.recent.get_mut(place(id)) {
            *recent = (id, value);
        }
        value
    }

    /// Forgets values whose texts were taken back from the pool.
    pub(super) fn forget(&mut self) {
        self.copied.clear();
        for (id, value) in &mut self.recent {
            if matches!(value.kind(), Kind::Text(_) | Kind::Composite(_)) {
                (*id, *value) = (0, Value::UNDEFINED);
            }
        }
    }

    /// What the placeholders stand for, by their number; they begin anew. Only numbers are the same in every pool.
    pub(super) fn take_imports(&mut self) -> Vec<Import> {
        self.copied.clear();
        for (id, value) in &mut self.recent {
            if !matches!(value.kind(), Kind::Number(_)) {
                (*id, *value) = (0, Value::UNDEFINED);
            }
        }
        std::mem::take(&mut self.imports)
    }
}

fn place(id: u64) -> usize {
    usize::try_from(id % RECENT as u64).unwrap_or(0)
}

/// A piece that was read but for its imports.
pub(super) struct Piece {
    pub(super) ids: Definitions,
    pub(super) pool: Pool,
    pub(super) imports: Vec<Import>,
}

/// What a placeholder stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Import {
    /// Type of the reference.
    pub(super) tag: Tag,
    pub(super) id: u64,
    /// `None` until it is looked up.
    value: Option<Value>,
}

impl Import {
    /// Takes note of its value.
    fn found(&mut self, value: Value) -> Result<Value, Unresolved> {
        // A reference of another type, or to nothing.
        if value == Value::UNDEFINED || (value.tag() != self.tag && value != Value::NULL) {
            return Err(Unresolved);
        }
        self.value = Some(value);
        Ok(value)
    }
}

/// Why a piece cannot be used: somebody else has to say what is wrong, if anything is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Unresolved;

impl Piece {
    /// Looks up those of its imports that the pieces known to `references` may have. What is wrong with one is for
    /// [`Piece::resolve`], which a piece that lies behind its table does not come to.
    pub(super) fn look_up(&mut self, references: &mut References) {
        let earlier = &references.earlier;
        let known = self.imports.iter_mut().filter(|import| import.id <= earlier.highest);
        // Each is far away in memory. With nothing else to do between them, the processor asks for several at once.
        let fetched: Vec<_> = known.map(|import| (earlier.fetch(import.id), import)).collect();
        let mut copied = Copied::default();
        for (fetched, import) in fetched {
            let found = import.found(earlier.take_over(fetched, &mut self.pool, &mut copied));
            if let Ok(value) = found
                && matches!(value.kind(), Kind::Number(_))
                && let Some(recent) = references.recent.get_mut(place(import.id))
            {
                *recent = (import.id, value);
            }
        }
    }

    /// Looks its imports up; the second part is what its placeholders stand for.
    pub(super) fn resolve(mut self, earlier: &Earlier) -> Result<(Segment, Vec<Value>), Unresolved> {
        let mut copied = Copied::default();
        let mut resolved = Vec::with_capacity(self.imports.len());
        for mut import in std::mem::take(&mut self.imports) {
            resolved.push(match import.value {
                Some(value) => value,
                None => import.found(earlier.import(import.id, &mut self.pool, &mut copied))?,
            });
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
    use super::super::ids::IdTable;
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
            ids: table.take(),
            pool,
            imports: Vec::new(),
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
    fn an_id_is_found_in_pieces_of_any_length() {
        let mut earlier = Earlier::default();
        let all: &[&[u64]] = &[&[1], &[2, 3, 4, 900], &[901], &[1_000, 70_000], &[1 << 40], &[u64::MAX]];
        for ids in all {
            let ids: Vec<(u64, u64)> = ids.iter().map(|id| (*id, id % 1000)).collect();
            assert!(earlier.push(&segment(&ids)));
        }
        let mut pool = Pool::default();
        let mut value = |id| earlier.import(id, &mut pool, &mut Copied::default()).kind();
        for id in all.concat() {
            assert_eq!(value(id), Kind::Number(id % 1000), "{id}");
        }
        for id in [
            0,
            5,
            899,
            902,
            999,
            1_001,
            69_999,
            70_001,
            1 << 39,
            (1 << 40) + 1,
            u64::MAX - 1,
        ] {
            assert_eq!(value(id), Kind::Undefined, "{id}");
        }
    }

    #[test]
    fn a_placeholder_becomes_what_the_piece_before_defined() {
        let mut earlier = Earlier::default();
        earlier.push(&segment(&[(1, 10), (7, 70)]));
        let mut pool = Pool::default();
        // Another number for the same name.
        pool.tag("other").unwrap();
        let (tag, outer) = (pool.tag("t").unwrap(), pool.tag("outer").unwrap());
        let mut references = References::default().across_gaps();
        let import = references.get(tag, 7, &mut pool);
        assert_eq!(references.recent(tag, 7), Some(import));
        assert_eq!(references.recent(outer, 7), None);
        let (composite, _) = pool.composite(&[import]);
        let mut ids = IdTable::default();
        ids.define(8, Value::composite(outer, composite));
        ids.define(9, import);
        let imports = references.take_imports();
        assert_eq!(references.recent(tag, 7), None);
        let piece = Piece {
            ids: ids.take(),
            pool,
            imports,
        };
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
    fn what_is_known_is_looked_up_with_the_piece_and_numbers_are_remembered() {
        let mut earlier = Earlier::default();
        earlier.push(&segment(&[(1, 10), (7, 70)]));
        let mut references = References::default().across_gaps();
        references.catch_up(&earlier);
        let mut pool = Pool::default();
        let tag = pool.tag("t").unwrap();
        let placeholders = [7, 8].map(|id| references.get(tag, id, &mut pool).import_number());
        assert_eq!(placeholders, [Some(0), Some(1)]);
        let mut piece = Piece {
            ids: Definitions::default(),
            pool,
            imports: references.take_imports(),
        };
        assert_eq!((references.recent(tag, 7), references.recent(tag, 8)), (None, None));
        piece.look_up(&mut references);
        let seventy = Value::number(tag, 70);
        let found = |piece: &Piece| piece.imports.iter().map(|import| import.value).collect::<Vec<_>>();
        assert_eq!(found(&piece), [seventy, None]);
        assert_eq!((references.recent(tag, 7), references.recent(tag, 8)), (seventy, None));
        // The piece in the gap was joined.
        earlier.push(&segment(&[(8, 80)]));
        let (_, resolved) = piece.resolve(&earlier).unwrap();
        assert_eq!(resolved, [70, 80].map(|number| Value::number(tag, number).unwrap()));
    }

    #[test]
    fn references_to_nothing_or_to_another_type_leave_a_piece_unresolved() {
        let mut earlier = Earlier::default();
        earlier.push(&segment(&[(1, 10)]));
        for (name, id) in [("t", 2), ("u", 1)] {
            let mut pool = Pool::default();
            let tag = pool.tag(name).unwrap();
            let mut references = References::default().across_gaps();
            references.get(tag, id, &mut pool);
            let piece = Piece {
                ids: Definitions::default(),
                pool,
                imports: references.take_imports(),
            };
            assert!(piece.resolve(&earlier).is_err(), "{name} {id}");
        }
    }
}
