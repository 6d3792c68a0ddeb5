//! Flushes: they apply pending insertions and removals to the trees, and build or drop boxes.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use crate::control::{Control, Run, try_for_each_mut};
use crate::data::RowId;
use crate::data::{Scalar, Table, transpose};
use crate::error::{Result, check_room};
use crate::mondrian::forest::Forest;
use crate::mondrian::forest::settings::Predictive;
use crate::mondrian::forest::storage::{AnyStorage, Applied, Storage, with_storage};
use crate::mondrian::tree::Tree;
use crate::mondrian::tree::boxes::box_rule::BoxRule;
use crate::mondrian::tree::process::Process;
use crate::mondrian::tree::scratch::Scratch;
use crate::mondrian::tree::statistics::Statistics;
use crate::random::keyed::Key;

/// Rows that a tree inserts or removes between two looks at the stop flag.
const BLOCK: usize = 16_384;

/// What takes most of a forest's memory.
const TREES: &str = "all trees (fewer trees or rows need less; with many features the boxes of nodes take most of it, and predictive=\"realised\" needs only those of leaves)";

/// What trees lack before they can be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pending {
    Nothing,
    /// Insertions and removals of so many rows.
    Rows(usize),
    /// Boxes of splits, which are to be built or dropped; perhaps rows as well.
    Boxes,
    /// All trees are grown again, to the same bits: there are none, a row lies outside their box, or this is quicker
    /// because many rows are pending.
    AllTrees,
}

impl<P: Statistics> Forest<P> {
    /// The storage after a flush: trees of just the forest's rows, with the boxes that predictions need.
    ///
    /// # Errors
    /// An interrupt: some rows may stay pending.
    pub(crate) fn flushed(&self, run: &Run<'_>) -> Result<&AnyStorage<P>> {
        let work = |storage: &mut AnyStorage<P>| {
            let done = catch_unwind(AssertUnwindSafe(|| self.flush_apart(storage, run)));
            done.unwrap_or_else(|panic| {
                storage.drop_trees();
                resume_unwind(panic)
            })
        };
        self.storage.flushed(work, || run.control.check())
    }

    /// [`flushed`](Self::flushed) on one thread, without interrupts.
    pub(crate) fn flushed_alone(&self) -> &AnyStorage<P> {
        self.flushed(&Run::default()).expect("nobody interrupts")
    }

    /// Whether there is nothing to flush.
    pub(crate) fn is_flushed(&self) -> bool {
        self.storage.try_peek(|storage| self.pending(storage)) == Some(Pending::Nothing)
    }

    /// The number of rows whose insertions and removals the next flush applies; all of them if trees are drawn anew or
    /// boxes are built, or while another thread flushes.
    pub(crate) fn n_pending(&self) -> usize {
        match self.storage.try_peek(|storage| self.pending(storage)) {
            Some(Pending::Nothing) => 0,
            Some(Pending::Rows(n)) => n,
            Some(Pending::Boxes | Pending::AllTrees) => self.n_rows().max(1),
            None => self.n_rows(),
        }
    }

    /// The one place that decides whether trees are up to date.
    fn pending(&self, storage: &AnyStorage<P>) -> Pending {
        with_storage!(storage, storage => {
            let Applied { arrived, n_removed } = storage.applied_by_all();
            let held = storage.trees.iter().map(Tree::n_rows).min().unwrap_or(0);
            let waiting = self.row_index.rows_from(arrived).count();
            let leaving = storage.leaving.len() - n_removed;
            let boxes = storage.trees.iter().any(|tree| tree.boxes.has_splits() != self.needs_boxes());
            if storage.trees.is_empty() {
                Pending::AllTrees
            } else if waiting + leaving == 0 && !boxes {
                Pending::Nothing
            } else if 2 * waiting + 3 * leaving >= held || self.level(storage) > storage.level {
                Pending::AllTrees
            } else if boxes {
                Pending::Boxes
            } else {
                Pending::Rows(waiting + leaving)
            }
        })
    }

    /// Whether predictions need the boxes of splits.
    pub(crate) fn needs_boxes(&self) -> bool {
        self.settings.predictive == Predictive::Averaged
    }

    /// Which nodes store boxes.
    pub(crate) fn box_rule(&self) -> BoxRule {
        BoxRule::new(self.needs_boxes(), self.settings.min_samples_split)
    }

    /// Whether no tree holds a row that left the forest.
    pub(crate) fn has_no_leaving_rows(&mut self) -> bool {
        self.reclaim();
        with_storage!(self.storage.get_mut(), storage => storage.leaving.is_empty())
    }

    /// Frees the places of rows that all trees have removed.
    pub(crate) fn reclaim(&mut self) {
        with_storage!(self.storage.get_mut(), storage => {
            if storage.applied.iter().all(|applied| applied.n_removed == storage.leaving.len()) {
                storage.leaving.drain(..).for_each(|row| self.row_index.release(row));
                storage.applied.iter_mut().for_each(|applied| applied.n_removed = 0);
            }
        });
    }

    /// Flushes on a separate thread if the work is parallel. The caller may be a thread of a pool: while such a thread
    /// waits for others, it runs other tasks of its pool, which may read the same trees and would deadlock.
    fn flush_apart(&self, storage: &mut AnyStorage<P>, run: &Run<'_>) -> Result<()> {
        if run.n_threads > 1 {
            let own = std::thread::Builder::new();
            let flush = || self.flush(storage, run);
            let done = std::thread::scope(|scope| Some(own.spawn_scoped(scope, flush).ok()?.join()));
            if let Some(done) = done {
                return done.unwrap_or_else(|panic| resume_unwind(panic));
            }
        }
        self.flush(storage, run)
    }

    /// Makes trees those of the forest's rows.
    fn flush(&self, storage: &mut AnyStorage<P>, run: &Run<'_>) -> Result<()> {
        let pending = self.pending(storage);
        run.control.expect(self.settings.trees().len() as u64);
        with_storage!(storage, storage => match pending {
            Pending::AllTrees => self.draw(storage, run),
            Pending::Nothing | Pending::Rows(_) | Pending::Boxes => self.update(storage, run),
        })
    }

    /// The level of the box that trees of all rows need.
    fn level<S: Scalar>(&self, storage: &Storage<S, P>) -> u32 {
        let table = Table::new(&storage.values, self.domain.n_coordinates());
        let of_row = |row| self.domain.level_of(table.row(row).iter().map(|&value| value.into()));
        let waiting = self.row_index.rows_from(storage.applied_by_all().arrived);
        waiting.fold(storage.level, |level, row| level.max(of_row(row).expect("admitted rows have one")))
    }

    /// Draws trees of all rows (Algorithm 5.1, Algorithm 6.1).
    fn draw<S: Scalar>(&self, storage: &mut Storage<S, P>, run: &Run<'_>) -> Result<()> {
        // The old trees are freed first. Rows that left do not make the box larger.
        (storage.trees, storage.applied, storage.level) = (Vec::new(), Vec::new(), 0);
        let n_features = self.domain.n_coordinates();
        let rows: Vec<RowId> = self.row_index.rows().collect();
        let level = self.level(storage);
        let by_column = transpose(&storage.values, n_features);
        let table = Table::new(&storage.values, n_features).with_transpose(&by_column);
        let tree_of_none = || Tree::new(n_features, self.box_rule());
        let room = || (tree_of_none(), Scratch::new(&self.domain, level), Vec::new());
        let mut trees: Vec<_> = self.settings.trees().map(|_| tree_of_none()).collect();
        let n_trees = trees.len();
        try_for_each_mut(run.n_threads, &mut trees, room, |(grown, scratch, order), i, tree| {
            grown.reset();
            order.clone_from(&rows);
            grown.insert(order, &self.process(i, table), scratch, run.control)?;
            // A copy is as large as it must be; and where one tree after the other grows in the same place, there are no gaps
            // between their copies.
            *tree = grown.clone();
            if i == 0 {
                // The others are about as large.
                check_room(TREES, n_trees.saturating_mul(tree.bytes()))?;
            }
            run.control.advance(1);
            Ok(())
        })?;
        storage.trees = trees;
        storage.level = level;
        let all = Applied { arrived: self.row_index.next_arrival(), n_removed: storage.leaving.len() };
        storage.applied = vec![all; storage.trees.len()];
        Ok(())
    }

    /// Applies pending removals and insertions to every tree, and builds or drops its boxes.
    fn update<S: Scalar>(&self, storage: &mut Storage<S, P>, run: &Run<'_>) -> Result<()> {
        let came: Vec<RowId> = self.row_index.rows_from(storage.applied_by_all().arrived).collect();
        let Storage { values, level, leaving, trees, applied } = storage;
        let table = Table::new(values, self.domain.n_coordinates());
        let room = || (Scratch::new(&self.domain, *level), Vec::new());
        let mut each: Vec<_> = trees.iter_mut().zip(applied).collect();
        try_for_each_mut(run.n_threads, &mut each, room, |(scratch, rows), i, (tree, applied)| {
            let process = self.process(i, table);
            // Boxes that are not needed are dropped before updates; those that are lacking are built after them, from
            // all rows at once.
            if !self.needs_boxes() {
                self.fit_boxes(tree, table, run)?;
            }
            while applied.n_removed < leaving.len() {
                run.control.check()?;
                let end = leaving.len().min(applied.n_removed + BLOCK);
                rows.clear();
                rows.extend(applied.to_remove(&leaving[..end], &self.row_index));
                tree.remove(rows, &process, scratch);
                applied.n_removed = end;
            }
            let first = came.partition_point(|&row| self.row_index.arrival(row) < applied.arrived);
            for block in came[first..].chunks(BLOCK) {
                run.control.check()?;
                rows.clear();
                rows.extend_from_slice(block);
                // An interrupted insertion leaves no tree, so that a block, which is short, is not interrupted.
                tree.insert(rows, &process, scratch, &Control::new())?;
                applied.arrived = self.row_index.arrival(block[block.len() - 1]) + 1;
            }
            self.fit_boxes(tree, table, run)?;
            run.control.advance(1);
            Ok(())
        })
    }

    /// Builds or drops a tree's boxes of splits if predictions ask for it.
    fn fit_boxes<S: Scalar>(&self, tree: &mut Tree<S, P>, table: Table<'_, S>, run: &Run<'_>) -> Result<()> {
        if tree.boxes.has_splits() != self.needs_boxes() {
            run.control.check()?;
            tree.build_boxes(self.domain.n_coordinates(), self.box_rule(), table);
        }
        Ok(())
    }

    /// The key of a tree, given its place among those that are drawn here.
    pub(crate) fn key(&self, tree: usize) -> Key {
        Key::of_tree(self.settings.seed, (self.settings.trees().start + tree) as u64)
    }

    pub(crate) fn process<'a, S: Scalar>(
        &'a self,
        tree: usize,
        table: Table<'a, S>,
    ) -> Process<'a, S, P::Target> {
        Process {
            domain: &self.domain,
            key: self.key(tree),
            lifetime: self.settings.lifetime,
            min_samples_split: self.settings.min_samples_split,
            table,
            targets: self.row_targets(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::control::map;
    use crate::data::Rows;
    use crate::mondrian::classification::class_counts::{Class, ClassCounts};
    use crate::mondrian::forest::settings::MondrianSettings;
    use crate::mondrian::forest::{Batch, digest};
    use crate::mondrian::process::domain::Domain;
    use crate::random::keyed::Stream;

    const FEATURES: usize = 3;

    /// A row, which its id determines; few values, so that some coincide.
    fn row(id: u64) -> ([f32; FEATURES], Class) {
        let mut stream = Stream::numbered(id, 0);
        (std::array::from_fn(|_| stream.below(9) as f32), stream.below(3) as Class)
    }

    fn rows(ids: &[u64]) -> (Vec<f32>, Vec<Class>) {
        let (x, y): (Vec<_>, Vec<_>) = ids.iter().map(|&id| row(id)).unzip();
        (x.concat(), y)
    }

    fn fitted(ids: &[u64]) -> Forest<ClassCounts> {
        let (x, y) = rows(ids);
        let domain = Domain::new(vec![0.0; FEATURES], vec![8.0; FEATURES], None).unwrap();
        let settings = MondrianSettings { n_estimators: 5, ..MondrianSettings::default() };
        let batch = Batch { rows: Rows::from_f32(&x, FEATURES).unwrap(), ids: Some(ids), weights: None };
        Forest::fit(settings, domain, batch, &y, &Run::default()).unwrap()
    }

    fn digest(forest: &Forest<ClassCounts>) -> String {
        let rows = digest::RowHashes::new(forest, |class| class.to_le_bytes().to_vec());
        digest::digest(forest, &[], &rows, &digest::tree_hashes(forest, &rows))
    }

    /// Leaves a forest as one whose trees followed as far as some of them, and was then stopped.
    fn flush_some(forest: &mut Forest<ClassCounts>, n_trees: usize) {
        let mut flushed = forest.clone();
        flushed.flushed_alone();
        let drawn_anew = forest.storage.peek(|storage| forest.pending(storage) == Pending::AllTrees);
        if let (AnyStorage::F32(storage), AnyStorage::F32(done), false) =
            (forest.storage.get_mut(), flushed.storage.get_mut(), drawn_anew)
        {
            storage.trees[..n_trees].clone_from_slice(&done.trees[..n_trees]);
            storage.applied[..n_trees].copy_from_slice(&done.applied[..n_trees]);
        }
    }

    #[test]
    fn trees_that_are_differently_far_behind_follow_to_the_same_forest() {
        let mut n_uneven = 0;
        for seed in 0..300 {
            let mut stream = Stream::new(seed, 0);
            let mut held: Vec<u64> = (0..40).collect();
            let mut forest = fitted(&held);
            for _ in 0..12 {
                let came: Vec<u64> = (0..stream.below(5)).map(|_| (stream.unit() * 1e9) as u64).collect();
                let (x, y) = rows(&came);
                let batch =
                    Batch { rows: Rows::from_f32(&x, FEATURES).unwrap(), ids: Some(&came), weights: None };
                forest.insert(batch, || y).unwrap();
                held.extend(came);
                let either = [Predictive::Averaged, Predictive::Realised];
                forest.set_predictive(either[stream.below(5) / 4]);
                let n_left = stream.below(4).min(held.len());
                let left: Vec<u64> =
                    (0..n_left).map(|_| held.swap_remove(stream.below(held.len()))).collect();
                let targets = forest.forget(&left).unwrap();
                assert_eq!(targets, rows(&left).1);
                flush_some(&mut forest, stream.below(6));
                forest.check().unwrap();
                n_uneven += forest.storage.peek(|storage| match storage {
                    AnyStorage::F32(storage) => {
                        usize::from(storage.applied.iter().any(|applied| *applied != storage.applied[0]))
                    }
                    AnyStorage::F64(_) => panic!("small numbers are kept as f32"),
                });
            }
            forest.set_predictive(Predictive::Averaged);
            assert_eq!(digest(&forest), digest(&fitted(&held)), "seed {seed}");
            with_storage!(forest.flushed_alone(), storage => {
                assert!(storage.trees.iter().all(|tree| tree.boxes.has_splits()));
            });
            assert_eq!(forest.n_pending(), 0);
            forest.check().unwrap();
            // All trees have let go of the rows that left: their places are used again.
            let capacity = forest.row_index.capacity();
            let more: Vec<u64> = (0..(capacity - held.len()) as u64).map(|i| 2_000_000_000 + i).collect();
            let (x, y) = rows(&more);
            let batch =
                Batch { rows: Rows::from_f32(&x, FEATURES).unwrap(), ids: Some(&more), weights: None };
            forest.insert(batch, || y).unwrap();
            assert_eq!(forest.row_index.capacity(), capacity);
        }
        assert!(n_uneven > 1000, "{n_uneven}");
    }

    /// A thread that waits for its part of a parallel task takes up another task of its pool, which may
    /// read the trees that it is flushing.
    #[test]
    fn tasks_of_a_pool_may_all_ask_for_the_same_trees() {
        let ids: Vec<u64> = (0..2000).collect();
        let control = Control::new();
        let run = Run { n_threads: 2, control: &control };
        std::thread::scope(|scope| {
            let (done, is_done) = std::sync::mpsc::channel();
            scope.spawn(move || {
                for _ in 0..20 {
                    let mut forest = fitted(&ids[..10]);
                    let (x, y) = rows(&ids[10..]);
                    let batch = Batch {
                        rows: Rows::from_f32(&x, FEATURES).unwrap(),
                        ids: Some(&ids[10..]),
                        weights: None,
                    };
                    forest.insert(batch, || y).unwrap();
                    let asked = map(2, 16, |_| forest.flushed(&run).is_ok());
                    done.send(asked).unwrap();
                }
            });
            for _ in 0..20 {
                let asked = is_done.recv_timeout(Duration::from_secs(60));
                if asked.is_err() {
                    control.stop();
                }
                assert_eq!(asked, Ok(vec![true; 16]));
            }
        });
    }
}
