//! What several threads make of blocks is taken in the order of the blocks, by whichever thread made the one that was missing.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What was made of so many blocks for each thread may wait for what is before it; who makes more waits, since memory would
/// grow.
const EARLY: usize = 4;

/// What was made of blocks, on its way to whoever takes it in their order.
pub(super) struct Taking<P, T> {
    made: Mutex<Made<P>>,
    take: Mutex<T>,
    most_early: usize,
}

struct Made<P> {
    /// The block that is taken next.
    next: usize,
    /// What was made before its turn.
    early: BTreeMap<usize, P>,
    rows: u64,
    /// Somebody is taking, and goes on as long as there is something.
    taken: bool,
}

impl<P, T: FnMut(P)> Taking<P, T> {
    /// For so many threads.
    pub(super) fn new(take: T, threads: usize) -> Self {
        Taking {
            made: Mutex::new(Made {
                next: 0,
                early: BTreeMap::new(),
                rows: 0,
                taken: false,
            }),
            take: Mutex::new(take),
            most_early: EARLY * threads,
        }
    }

    /// Rows of all that was added.
    pub(super) fn into_rows(self) -> u64 {
        self.made.into_inner().unwrap_or_else(PoisonError::into_inner).rows
    }

    /// Takes it, and what was made behind it before, when it is its turn and nobody else is taking.
    pub(super) fn add(&self, number: usize, rows: u64, part: P) {
        let mut made = lock(&self.made);
        made.rows += rows;
        made.early.insert(number, part);
        if made.taken {
            let many = made.early.len() > self.most_early;
            drop(made);
            if many {
                // For as long as one more is taken.
                drop(lock(&self.take));
            }
            return;
        }
        made.taken = true;
        loop {
            let next = made.next;
            let Some(part) = made.early.remove(&next) else { break };
            made.next += 1;
            drop(made);
            lock(&self.take)(part);
            made = lock(&self.made);
        }
        made.taken = false;
    }
}

/// A thread that panicked ends all others soon; until then what it held is what it was.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread;

    use super::*;

    #[test]
    fn parts_are_taken_in_their_order_whoever_makes_them() {
        for threads in [1, 2, 5] {
            let mut taken = Vec::new();
            let taking = Taking::new(|part| taken.push(part), threads);
            let next = AtomicUsize::new(0);
            let run = || {
                while let number @ 0..300 = next.fetch_add(1, Ordering::Relaxed) {
                    if number % 7 == 0 {
                        thread::yield_now();
                    }
                    taking.add(number, 2, number);
                }
            };
            thread::scope(|scope| {
                (0..threads).for_each(|_| drop(scope.spawn(run)));
            });
            assert_eq!(taking.into_rows(), 600);
            assert_eq!(taken, (0..300).collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_part_waits_for_those_before_it() {
        let mut taken = Vec::new();
        let taking = Taking::new(|part| taken.push(part), 2);
        taking.add(2, 1, 'c');
        taking.add(1, 1, 'b');
        taking.add(3, 1, 'd');
        assert_eq!(lock(&taking.made).early.len(), 3);
        taking.add(0, 1, 'a');
        taking.add(5, 1, 'f');
        assert_eq!(taking.into_rows(), 5);
        assert_eq!(taken, ['a', 'b', 'c', 'd']);
    }
}
