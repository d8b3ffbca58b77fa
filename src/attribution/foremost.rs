//! The first few of many, in their order, without sorting or keeping the many.

use std::collections::BinaryHeap;

/// The `count` smallest items, smallest first.
pub(crate) fn foremost<T: Ord>(items: impl Iterator<Item = T>, count: usize) -> Vec<T> {
    // The largest of those that are kept is on top, and the first to go.
    let mut kept: BinaryHeap<T> = BinaryHeap::new();
    for item in items {
        if kept.len() < count {
            kept.push(item);
        } else if let Some(mut last) = kept.peek_mut()
            && item < *last
        {
            *last = item;
        }
    }
    kept.into_sorted_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_come_in_order_and_no_more_than_asked_for() {
        let items = [5, 3, 9, 1, 3, 7];
        assert_eq!(foremost(items.into_iter(), 3), [1, 3, 3]);
        assert_eq!(foremost(items.into_iter(), usize::MAX), [1, 3, 3, 5, 7, 9]);
        assert!(foremost(items.into_iter(), 0).is_empty());
    }
}
