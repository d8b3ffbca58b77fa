//! Work on several threads whose results come in the order of the work: what is told and written does not depend on how
//! many threads there are.

use std::num::NonZeroUsize;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

/// How many things are done at once.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Jobs(Option<NonZeroUsize>);

impl Jobs {
    /// One thing after the other, on the calling thread.
    pub const ONE: Jobs = Jobs(Some(NonZeroUsize::MIN));

    /// So many at once; the default is as many as there are cores.
    pub fn new(jobs: NonZeroUsize) -> Self {
        Jobs(Some(jobs))
    }

    /// The number.
    pub fn count(self) -> usize {
        self.0
            .or_else(|| thread::available_parallelism().ok())
            .map_or(1, NonZeroUsize::get)
    }

    /// The same for many rows; one thread for so few that they are done before another has begun.
    pub(crate) fn for_rows(self, rows: usize) -> Self {
        if rows < MANY_ROWS { Jobs::ONE } else { self }
    }

    /// What is left for each of so many things that are done at once.
    pub(crate) fn each_of(self, things: usize) -> Self {
        Jobs(NonZeroUsize::new(self.count() / things.clamp(1, self.count())))
    }
}

/// Some tenths of a millisecond for whoever walks over them.
const MANY_ROWS: usize = 20_000;

/// Does two things, at once when `jobs` is more than one.
pub(crate) fn both<A: Send, B>(jobs: Jobs, a: impl Fn() -> A + Sync, b: impl FnOnce() -> B) -> (A, B) {
    if jobs.count() < 2 {
        return (a(), b());
    }
    thread::scope(|scope| {
        let begun = thread::Builder::new().spawn_scoped(scope, &a);
        let b = b();
        let a = match begun {
            Ok(begun) => begun.join().unwrap_or_else(|panic| resume_unwind(panic)),
            // Without a further thread, this one does it all.
            Err(_) => a(),
        };
        (a, b)
    })
}

/// Does `work` for every item, on as many threads as `jobs` says, and gives the results in the order of the items. After
/// a result for which `ends` is true no further item is begun: behind the first of those results may be missing, never
/// before it.
pub(crate) fn in_order<T: Send, R: Send>(
    jobs: Jobs,
    items: Vec<T>,
    work: impl Fn(T) -> R + Sync,
    ends: impl Fn(&R) -> bool + Sync,
) -> Vec<R> {
    let threads = jobs.count().min(items.len());
    let results = Mutex::new(Vec::with_capacity(items.len()));
    let queue = Mutex::new(items.into_iter().enumerate());
    let ended = AtomicBool::new(false);
    let run = || {
        while !ended.load(Ordering::Relaxed) {
            let next = queue.lock().unwrap_or_else(PoisonError::into_inner).next();
            let Some((at, item)) = next else { return };
            let result = work(item);
            if ends(&result) {
                ended.store(true, Ordering::Relaxed);
            }
            results
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push((at, result));
        }
    };
    thread::scope(|scope| {
        for _ in 1..threads {
            // Without a further thread, this one does it all.
            let _ = thread::Builder::new().spawn_scoped(scope, run);
        }
        run();
    });
    let mut results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    results.sort_unstable_by_key(|(at, _)| *at);
    results.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn jobs(count: usize) -> Jobs {
        Jobs::new(NonZeroUsize::new(count).unwrap())
    }

    #[test]
    fn results_come_in_order_up_to_the_first_that_ends_the_work() {
        for threads in [1, 2, 5, 40] {
            let doubled = in_order(jobs(threads), (0..20).collect(), |n: u32| 2 * n, |_| false);
            assert_eq!(doubled, (0..20).map(|n| 2 * n).collect::<Vec<_>>());
            let seventh = |n: &u32| n % 7 == 3;
            let ending = in_order(jobs(threads), (0..20).collect(), |n: u32| n, seventh);
            assert_eq!(ending.iter().find(|n| seventh(n)), Some(&3));
            assert_eq!(ending[..4], [0, 1, 2, 3]);
        }
        assert!(in_order(jobs(2), Vec::<u32>::new(), |n| n, |_| false).is_empty());
    }

    #[test]
    fn both_are_done_by_one_thread_or_two() {
        for threads in [1, 2, 9] {
            let own = thread::current().id();
            let ((a, by), b) = both(jobs(threads), || (1, thread::current().id()), || 2);
            assert_eq!((a, b, by == own), (1, 2, threads == 1));
        }
    }

    #[test]
    fn few_rows_are_for_one_thread() {
        assert_eq!(jobs(8).for_rows(10).count(), 1);
        assert_eq!(jobs(8).for_rows(1_000_000).count(), 8);
    }

    #[test]
    fn jobs_are_shared_out() {
        assert_eq!(jobs(8).each_of(3).count(), 2);
        assert_eq!(jobs(2).each_of(6).count(), 1);
        assert_eq!(jobs(2).each_of(1).count(), 2);
        assert_eq!(jobs(2).each_of(0).count(), 2);
    }
}
