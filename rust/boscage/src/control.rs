//! Stopping and watching long work, and running it on a number of threads.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rayon::prelude::*;

use crate::error::{Error, Result};

/// A stop flag and a progress counter, shared between the one who works and the one who waits.
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
}

impl Control {
    /// A control that nobody has stopped.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Asks the work to end soon.
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }

    /// Steps done and steps in all.
    #[must_use]
    pub fn progress(&self) -> (u64, u64) {
        (self.done.load(Ordering::Relaxed), self.total.load(Ordering::Relaxed))
    }

    /// # Errors
    /// [`Error::Interrupted`] once [`Control::stop`] was called.
    pub fn check(&self) -> Result<()> {
        if self.stopped.load(Ordering::Relaxed) { Err(Error::Interrupted) } else { Ok(()) }
    }

    pub(crate) fn expect(&self, steps: u64) {
        self.total.fetch_add(steps, Ordering::Relaxed);
    }

    pub(crate) fn advance(&self, steps: u64) {
        self.done.fetch_add(steps, Ordering::Relaxed);
    }
}

/// How work that may take long is run: on how many threads, and who may stop and watch it.
#[derive(Debug, Clone, Copy)]
pub struct Run<'a> {
    /// Number of threads; results do not depend on it.
    pub n_threads: usize,
    /// Stop flag and progress.
    pub control: &'a Control,
}

impl Run<'_> {
    /// `0..n` through `work`, on as many threads as there are, until somebody stops it.
    pub(crate) fn map<T: Send>(&self, n: usize, work: impl Fn(usize) -> Result<T> + Sync) -> Result<Vec<T>> {
        let each = map(self.n_threads, n, |i| {
            self.control.check()?;
            work(i)
        });
        each.into_iter().collect()
    }
}

impl Default for Run<'static> {
    /// One thread, and nobody who stops it.
    fn default() -> Self {
        static NOBODY: std::sync::LazyLock<Control> = std::sync::LazyLock::new(Control::new);
        Self { n_threads: 1, control: &NOBODY }
    }
}

/// `f(i)` for every `i < n`, in order of `i`, on `n_threads` threads (one: in place).
pub(crate) fn map<R: Send>(n_threads: usize, n: usize, f: impl Fn(usize) -> R + Sync + Send) -> Vec<R> {
    match pool(n_threads.min(n)) {
        Some(pool) => pool.install(|| (0..n).into_par_iter().map(f).collect()),
        None => (0..n).map(f).collect(),
    }
}

/// `f(context, i, item)` for every item, on `n_threads` threads, each with contexts of its own; the first error in
/// order of `i` is returned.
pub(crate) fn try_for_each_mut<T: Send, C>(
    n_threads: usize,
    items: &mut [T],
    context: impl Fn() -> C + Sync + Send,
    f: impl Fn(&mut C, usize, &mut T) -> Result<()> + Sync + Send,
) -> Result<()> {
    match pool(n_threads.min(items.len())) {
        Some(pool) => pool.install(|| {
            let ended: Vec<Result<()>> = items
                .par_iter_mut()
                .enumerate()
                .map_init(context, |context, (i, item)| f(context, i, item))
                .collect();
            ended.into_iter().collect()
        }),
        None => {
            let mut context = context();
            items.iter_mut().enumerate().try_for_each(|(i, item)| f(&mut context, i, item))
        }
    }
}

/// Threads that stay for many short pieces of work.
#[derive(Debug)]
pub(crate) struct Threads {
    pool: Option<rayon::ThreadPool>,
}

impl Threads {
    /// As many threads; one works in place.
    pub(crate) fn new(n_threads: usize) -> Self {
        Self { pool: pool(n_threads) }
    }

    /// Does work on one of the threads, which need not be woken for every [`map`](Self::map) in it then.
    pub(crate) fn install<R: Send>(&self, work: impl FnOnce() -> R + Send) -> R {
        match &self.pool {
            Some(pool) => pool.install(work),
            None => work(),
        }
    }

    /// `f(i)` for every `i < n`, in order of `i`; each is handed out on its own, since they may differ in size.
    pub(crate) fn map<R: Send>(&self, n: usize, f: impl Fn(usize) -> R + Sync + Send) -> Vec<R> {
        match &self.pool {
            Some(pool) if n > 1 => pool.install(|| (0..n).into_par_iter().with_max_len(1).map(f).collect()),
            _ => (0..n).map(f).collect(),
        }
    }

    /// [`map`](Self::map) that ends early when stopped.
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

/// More threads than machines have cores only take time to start, which nothing could interrupt. Results do not
/// depend on their number.
const MOST_THREADS: usize = 1024;

/// A pool of more than one thread; where the system refuses it, the work is done in place.
fn pool(n_threads: usize) -> Option<rayon::ThreadPool> {
    if n_threads <= 1 {
        return None;
    }
    rayon::ThreadPoolBuilder::new().num_threads(n_threads.min(MOST_THREADS)).build().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_number_of_threads_can_be_asked_for() {
        let threads = Threads::new(usize::MAX);
        assert_eq!(threads.map(3, |i| i), [0, 1, 2]);
        assert!(threads.install(rayon::current_num_threads) <= MOST_THREADS);
    }
}
