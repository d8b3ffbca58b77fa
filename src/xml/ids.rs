//! What an export's ids stand for, in eight bytes each.
//!
//! An export writes a value once, with an `id`, and repeats it as `<name ref="id"/>`. Ids count up from 1 in document order, so
//! the table is paged by id; ids far beyond what was defined so far go to a map, so that no id's size alone can take memory.

use std::collections::HashMap;
use std::sync::Arc;

use super::value::Value;

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

#[cfg(test)]
mod tests {
    use super::super::pool::Pool;
    use super::super::value::Kind;
    use super::*;

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
