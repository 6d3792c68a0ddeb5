//! Interrupting long work, following its progress, and running it on threads.

use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rayon::prelude::*;

use crate::error::{Error, Result};

/// A stop flag, a progress counter and what work could not do, shared by the thread that works and the thread that waits for it.
///
/// ```
/// let control = boscage::Control::new();
/// control.stop();
/// assert!(control.check().is_err());
/// ```
#[derive(Debug, Default)]
pub struct Control {
    stopped: AtomicBool,
    done: AtomicU64,
    total: AtomicU64,
    /// The bits of a number that is not negative: their order is that of the numbers.
    unexplained: AtomicU64,
}

impl Control {
    /// A control that is not stopped.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Requests the work to end; it then returns [`Error::Interrupted`] within a short time.
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }

    /// Numbers of steps that are done, and of those that are known of so far. The latter grows while work runs, since a call
    /// has several parts (a fit draws trees and then chooses hyperparameters), and adds up over calls with the same control.
    #[must_use]
    pub fn progress(&self) -> (u64, u64) {
        (self.done.load(Ordering::Relaxed), self.total.load(Ordering::Relaxed))
    }

    /// # Errors
    /// [`Error::Interrupted`] once [`Control::stop`] was called.
    pub fn check(&self) -> Result<()> {
        if self.stopped.load(Ordering::Relaxed) { Err(Error::Interrupted) } else { Ok(()) }
    }

    /// The largest share of the targets' norm that the mean of a joint posterior leaves unexplained, beyond its noise, after as
    /// many steps as are taken; 0 if all of its equations were solved. Where it is not 0, predictions are off by about as much.
    #[must_use]
    pub fn unexplained(&self) -> f64 {
        f64::from_bits(self.unexplained.load(Ordering::Relaxed))
    }

    pub(crate) fn leave_unexplained(&self, share: f64) {
        self.unexplained.fetch_max(share.to_bits(), Ordering::Relaxed);
    }

    pub(crate) fn expect(&self, steps: u64) {
        self.total.fetch_add(steps, Ordering::Relaxed);
    }

    pub(crate) fn advance(&self, steps: u64) {
        self.done.fetch_add(steps, Ordering::Relaxed);
    }
}

/// How work is run: the number of threads, and the control that stops and follows it.
#[derive(Debug, Clone, Copy)]
pub struct Run<'a> {
    /// Number of threads; results do not depend on it. 0 is 1.
    pub n_threads: usize,
    /// Stop flag and progress.
    pub control: &'a Control,
}

/// What is done for each `i`. What runs it is compiled once for each kind of result instead of once for each caller.
type Work<'a, R> = &'a (dyn Fn(usize) -> R + Sync);

impl Run<'_> {
    /// The results of `work(i)` for `i < n`, in order of `i`, on `n_threads` threads, unless stopped or one fails.
    pub(crate) fn map<T: Send>(&self, n: usize, work: impl Fn(usize) -> Result<T> + Sync) -> Result<Vec<T>> {
        self.map_work(n, &work)
    }

    /// As [`map`](Self::map), for each range of `len` consecutive ones of `0..n`; the last range may be shorter.
    pub(crate) fn map_ranges<T: Send>(
        &self,
        n: usize,
        len: usize,
        work: impl Fn(Range<usize>) -> Result<T> + Sync,
    ) -> Result<Vec<T>> {
        self.map(n.div_ceil(len), |i| work(i * len..n.min((i + 1) * len)))
    }

    /// The length of ranges of `0..n` of which every thread has one.
    pub(crate) fn len_by_thread(&self, n: usize) -> usize {
        n.div_ceil(self.n_threads.max(1)).max(1)
    }

    fn map_work<T: Send>(&self, n: usize, work: Work<'_, Result<T>>) -> Result<Vec<T>> {
        let failed = AtomicBool::new(false);
        let each = map(self.n_threads, n, |i| {
            // Once one has failed, the others are in vain.
            if failed.load(Ordering::Relaxed) {
                return None;
            }
            let result = self.control.check().and_then(|()| work(i));
            failed.fetch_or(result.is_err(), Ordering::Relaxed);
            Some(result)
        });
        each.into_iter().flatten().collect()
    }
}

impl Default for Run<'static> {
    /// One thread, and a control that never stops.
    fn default() -> Self {
        static NEVER: std::sync::LazyLock<Control> = std::sync::LazyLock::new(Control::new);
        Self { n_threads: 1, control: &NEVER }
    }
}

/// The results of `f(i)` for `i < n`, in order of `i`, on `n_threads` threads. One thread is the calling one.
pub(crate) fn map<R: Send>(n_threads: usize, n: usize, f: impl Fn(usize) -> R + Sync) -> Vec<R> {
    map_on(pool(n_threads.min(n)).as_ref(), n, None, &f)
}

/// The same on the threads of a pool, if there is one, at most `max_len` consecutive `i` as one task.
fn map_on<R: Send>(
    pool: Option<&rayon::ThreadPool>,
    n: usize,
    max_len: Option<usize>,
    f: Work<'_, R>,
) -> Vec<R> {
    let Some(pool) = pool else { return (0..n).map(f).collect() };
    let results: Vec<Mutex<Option<R>>> = (0..n).map(|_| Mutex::new(None)).collect();
    for_each(pool, n, max_len, &|i| {
        let result = f(i);
        *results[i].lock().expect(NO_PANIC) = Some(result);
    });
    let result = |slot: Mutex<Option<R>>| slot.into_inner().expect(NO_PANIC).expect("each i was called once");
    results.into_iter().map(result).collect()
}

/// Calls `f(context, i, item)` for every item on `n_threads` threads. No two threads share a context at a
/// time. Returns the first error in order of `i`.
pub(crate) fn try_for_each_mut<T: Send, C: Send>(
    n_threads: usize,
    items: &mut [T],
    context: impl Fn() -> C + Sync + Send,
    f: impl Fn(&mut C, usize, &mut T) -> Result<()> + Sync + Send,
) -> Result<()> {
    match pool(n_threads.min(items.len())) {
        Some(pool) => {
            let items: Vec<Mutex<&mut T>> = items.iter_mut().map(Mutex::new).collect();
            let idle: Mutex<Vec<C>> = Mutex::new(Vec::new());
            let work = |i: usize| {
                let taken = idle.lock().expect(NO_PANIC).pop();
                let mut context = taken.unwrap_or_else(&context);
                let ended = f(&mut context, i, &mut items[i].lock().expect(NO_PANIC));
                idle.lock().expect(NO_PANIC).push(context);
                ended
            };
            map_on(Some(&pool), items.len(), None, &work).into_iter().collect()
        }
        None => {
            let mut context = context();
            items.iter_mut().enumerate().try_for_each(|(i, item)| f(&mut context, i, item))
        }
    }
}

const NO_PANIC: &str = "nothing panics while it holds a lock";

/// Calls `work(i)` for `i < n` on the threads of a pool, at most `max_len` consecutive `i` as one task.
fn for_each(pool: &rayon::ThreadPool, n: usize, max_len: Option<usize>, work: Work<'_, ()>) {
    let max_len = max_len.unwrap_or(usize::MAX);
    pool.install(|| (0..n).into_par_iter().with_max_len(max_len).for_each(work));
}

/// A pool of threads that is kept for many short pieces of work.
#[derive(Debug)]
pub(crate) struct Threads {
    pool: Option<rayon::ThreadPool>,
}

impl Threads {
    /// A pool of `n_threads` threads; with one, work runs on the calling thread.
    pub(crate) fn new(n_threads: usize) -> Self {
        Self { pool: pool(n_threads) }
    }

    /// Runs work on a thread of the pool, so that no [`map`](Self::map) within it has to wake the pool.
    pub(crate) fn install<R: Send>(&self, work: impl FnOnce() -> R + Send) -> R {
        match &self.pool {
            Some(pool) => pool.install(work),
            None => work(),
        }
    }

    /// The results of `f(i)` for `i < n`, in order of `i`. Each `i` is a task, since tasks may differ in
    /// size.
    pub(crate) fn map<R: Send>(&self, n: usize, f: impl Fn(usize) -> R + Sync) -> Vec<R> {
        map_on(self.pool.as_ref().filter(|_| n > 1), n, Some(1), &f)
    }

    /// As [`map`](Self::map), but ends early when stopped.
    ///
    /// # Errors
    /// [`Error::Interrupted`].
    pub(crate) fn try_map<R: Send>(
        &self,
        n: usize,
        control: &Control,
        f: impl Fn(usize) -> R + Sync + Send,
    ) -> Result<Vec<R>> {
        self.map(n, |i| control.check().map(|()| f(i))).into_iter().collect()
    }
}

/// The largest number of threads. Starting more threads than a machine has cores only takes time, and cannot
/// be interrupted. Results do not depend on the number.
const MAX_THREADS: usize = 1024;

/// A pool of threads; None for one thread, or if the system refuses it. Work then runs on the calling thread.
fn pool(n_threads: usize) -> Option<rayon::ThreadPool> {
    if n_threads <= 1 {
        return None;
    }
    rayon::ThreadPoolBuilder::new().num_threads(n_threads.min(MAX_THREADS)).build().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_number_of_threads_can_be_asked_for() {
        let threads = Threads::new(usize::MAX);
        assert_eq!(threads.map(3, |i| i), [0, 1, 2]);
        assert!(threads.install(rayon::current_num_threads) <= MAX_THREADS);
    }
    #[test]
    fn work_ends_with_the_first_failure() {
        let control = Control::new();
        for n_threads in [1, 4] {
            let (run, calls) = (Run { n_threads, control: &control }, AtomicU64::new(0));
            let failing = |i: usize| {
                calls.fetch_add(1, Ordering::Relaxed);
                if i % 2 == 1 { Err(Error::Interrupted) } else { Ok(i) }
            };
            assert_eq!(run.map(100_000, failing), Err(Error::Interrupted));
            assert!(calls.into_inner() < 50_000);
            assert_eq!(run.map(5, Ok), Ok(vec![0, 1, 2, 3, 4]));
        }
    }
}
