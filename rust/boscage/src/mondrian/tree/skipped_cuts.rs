//! The skipped cuts of one tree: one pool, of which every node owns a slice, its *run*.
//!
//! Entries of the pool never change. Where a skipped cut becomes a split, its run is divided in two around the entry,
//! which stays in place. Where the split is removed, the two slices are joined around the entry again.

use std::num::NonZeroU32;
use std::ops::Range;

use crate::data::fetch;
use crate::mondrian::process::cut::SkippedCut;

/// Skipped cuts: a slice of the pool.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct SkippedRun {
    pub(super) start: u32,
    /// The length's complement, which is not zero: a leaf without a run takes no more room.
    not_len: NonZeroU32,
}

impl Default for SkippedRun {
    fn default() -> Self {
        Self::new(0, 0)
    }
}

impl SkippedRun {
    fn new(start: u32, len: u32) -> Self {
        Self { start, not_len: NonZeroU32::new(!len).expect("fewer cuts than numbers") }
    }

    pub(super) fn len(self) -> u32 {
        !self.not_len.get()
    }

    fn end(self) -> u32 {
        self.start + self.len()
    }

    fn range(self) -> Range<usize> {
        self.start as usize..self.end() as usize
    }

    pub(super) fn is_empty(self) -> bool {
        self.len() == 0
    }
}

/// The pool of a tree's skipped cuts.
#[derive(Debug, Clone, Default)]
pub(super) struct SkippedCuts {
    pool: Vec<SkippedCut>,
    /// Entries that are in some run.
    n_used: usize,
}

impl SkippedCuts {
    /// An empty pool with room for the used entries of another.
    pub(super) fn with_room_of(other: &Self) -> Self {
        Self { pool: Vec::with_capacity(other.n_used), n_used: 0 }
    }

    /// Forgets all cuts. Memory is kept for others.
    pub(super) fn reset(&mut self) {
        self.pool.clear();
        self.n_used = 0;
    }

    pub(super) fn n_used(&self) -> usize {
        self.n_used
    }

    /// The cuts of a run, from the top.
    pub(super) fn of(&self, run: SkippedRun) -> &[SkippedCut] {
        &self.pool[run.range()]
    }

    /// Opens a run at the end of the pool.
    pub(super) fn start_run(&self) -> SkippedRun {
        SkippedRun::new(place(self.pool.len()), 0)
    }

    /// Adds a skipped cut to the run opened last.
    pub(super) fn push(&mut self, run: &mut SkippedRun, skip: SkippedCut) {
        self.pool.push(skip);
        self.n_used += 1;
        *run = SkippedRun::new(run.start, run.len() + 1);
    }

    /// Adds a run of some cuts.
    pub(super) fn append(&mut self, cuts: &[SkippedCut]) -> SkippedRun {
        let start = self.pool.len() as u32;
        self.pool.extend_from_slice(cuts);
        self.n_used += cuts.len();
        SkippedRun::new(start, cuts.len() as u32)
    }

    /// A run in two, and the `k`-th cut between them, which is in no run any more.
    pub(super) fn part(&mut self, run: SkippedRun, k: usize) -> (SkippedRun, SkippedCut, SkippedRun) {
        let k = k as u32;
        let skip = self.pool[(run.start + k) as usize];
        self.n_used -= 1;
        (SkippedRun::new(run.start, k), skip, SkippedRun::new(run.start + k + 1, run.len() - k - 1))
    }

    /// One run of two and the cut between them.
    pub(super) fn join(&mut self, above: SkippedRun, between: SkippedCut, below: SkippedRun) -> SkippedRun {
        self.n_used += 1;
        let len = above.len() + 1 + below.len();
        let at = above.end() as usize;
        // Nothing moved since the run was parted.
        if at + 1 == below.start as usize && self.pool[at] == between {
            return SkippedRun::new(above.start, len);
        }
        let start = place(self.pool.len());
        self.pool.extend_from_within(above.range());
        self.pool.push(between);
        self.pool.extend_from_within(below.range());
        SkippedRun::new(start, len)
    }

    /// Gives up a run.
    pub(super) fn free(&mut self, run: SkippedRun) {
        self.n_used -= run.len() as usize;
    }

    /// Whether most of the pool is in no run.
    pub(super) fn is_sparse(&self) -> bool {
        /// Entries that are always kept.
        const LEAST: usize = 64;
        self.pool.len() >= 2 * self.n_used + LEAST
    }

    /// Reads all of the pool into the cache.
    pub(super) fn fetch_all(&self) {
        fetch(&self.pool);
    }

    /// Bytes held.
    pub(super) fn bytes(&self) -> usize {
        self.pool.capacity() * size_of::<SkippedCut>()
    }
}

/// A place in the pool of skipped cuts.
fn place(at: usize) -> u32 {
    u32::try_from(at).expect("a tree has fewer than 2^32 skipped cuts")
}
