//! Letting trees take in rows that came, let go others that left, and build or drop boxes, when somebody asks for them.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use crate::control::{Control, Run, try_for_each_mut};
use crate::data::RowId;
use crate::data::{Scalar, Table, transpose};
use crate::error::Result;
use crate::mondrian::forest::Forest;
use crate::mondrian::forest::settings::Predictive;
use crate::mondrian::forest::storage::{AnyStorage, Storage, with_storage};
use crate::mondrian::tree::insert::Scratch;
use crate::mondrian::tree::statistics::Statistics;
use crate::mondrian::tree::{Process, Tree};
use crate::random::keyed::Key;

/// Rows that a tree takes in or lets go between two looks at the stop flag.
const BLOCK: usize = 16_384;

/// How far trees are behind the forest's rows.
struct Backlog {
    /// Rows in the trees.
    held: usize,
    /// Rows that some tree lacks.
    waiting: usize,
    /// Rows that some tree has not let go yet.
    leaving: usize,
    /// Whether some tree has boxes of splits though predictions need none, or lacks them.
    boxes: bool,
}

impl Backlog {
    fn is_none(&self) -> bool {
        self.waiting + self.leaving == 0 && !self.boxes
    }
}

impl<P: Statistics> Forest<P> {
    /// The trees of just these rows, with the boxes that predictions need. Interrupted, some rows go on waiting.
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

    /// Flushes on a thread of its own if several are to work. Whoever asks may be one of a pool's threads; while it waits
    /// for others, it would take up other work of its pool, which may ask for the same trees.
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

    /// The same on one thread, and nobody interrupts.
    pub(crate) fn flushed_alone(&self) -> &AnyStorage<P> {
        self.flushed(&Run::default()).expect("nobody interrupts")
    }

    /// Whether trees are those of just these rows, with the boxes that predictions need.
    pub(crate) fn is_flushed(&self) -> bool {
        let flushed = self.storage.try_peek(|storage| self.backlog(storage).is_none());
        // Not while somebody sees to it.
        flushed.unwrap_or(false)
    }

    /// How many rows trees have to take in and let go before the next prediction: those that came and left since the
    /// last one, or all if trees are drawn anew, or build or drop boxes.
    pub(crate) fn n_pending(&self) -> usize {
        let pending = self.storage.try_peek(|storage| match self.backlog(storage) {
            backlog if backlog.is_none() => 0,
            backlog if backlog.boxes || self.is_drawn_anew(storage, &backlog) => self.n_rows().max(1),
            backlog => backlog.waiting + backlog.leaving,
        });
        // While somebody sees to it, nobody knows.
        pending.unwrap_or(self.n_rows())
    }

    /// Whether no tree has a row that left.
    pub(crate) fn has_let_go(&mut self) -> bool {
        self.reclaim();
        with_storage!(self.storage.get_mut(), storage => storage.leaving.is_empty())
    }

    /// Frees the places of rows that all trees have let go.
    pub(crate) fn reclaim(&mut self) {
        with_storage!(self.storage.get_mut(), storage => {
            if storage.trees.iter().all(|tree| tree.n_let_go == storage.leaving.len()) {
                storage.leaving.drain(..).for_each(|row| self.row_index.release(row));
                storage.trees.iter_mut().for_each(|tree| tree.n_let_go = 0);
            }
        });
    }

    /// Whether trees are drawn anew, to the same bits, which is quicker where many rows come or go, and needed where one
    /// lies outside their box.
    fn is_drawn_anew(&self, storage: &AnyStorage<P>, backlog: &Backlog) -> bool {
        let Backlog { held, waiting, leaving, .. } = backlog;
        2 * waiting + 3 * leaving >= *held
            || with_storage!(storage, storage => self.level(storage) > storage.level)
    }

    fn backlog(&self, storage: &AnyStorage<P>) -> Backlog {
        with_storage!(storage, storage => Backlog {
            held: storage.trees.iter().map(Tree::n_rows).min().unwrap_or(0),
            waiting: self.row_index.rows_from(storage.lacks_from()).count(),
            leaving: storage.leaving.len() - storage.trees.iter().map(|tree| tree.n_let_go).min().unwrap_or(0),
            boxes: storage.trees.iter().any(|tree| tree.boxes.has_splits() != self.needs_boxes()),
        })
    }

    /// Whether predictions need the boxes of splits.
    fn needs_boxes(&self) -> bool {
        self.settings.predictive == Predictive::Averaged
    }

    /// Rows that a tree still has of those that leave.
    pub(crate) fn unwanted<'a, S>(
        &'a self,
        tree: &'a Tree<S, P>,
        leaving: &'a [RowId],
    ) -> impl Iterator<Item = RowId> + 'a {
        leaving[tree.n_let_go..].iter().copied().filter(|&row| self.row_index.arrival(row) < tree.lacks_from)
    }

    /// The level of the box that trees of all rows need.
    fn level<S: Scalar>(&self, storage: &Storage<S, P>) -> u32 {
        let table = Table::new(&storage.values, self.domain.n_features());
        let of_row = |row| self.domain.level_of(table.row(row).iter().map(|&value| value.into()));
        let waiting = self.row_index.rows_from(storage.lacks_from());
        waiting.fold(storage.level, |level, row| level.max(of_row(row).expect("admitted rows have one")))
    }

    /// Makes trees those of the forest's rows.
    fn flush(&self, storage: &mut AnyStorage<P>, run: &Run<'_>) -> Result<()> {
        let anew = self.is_drawn_anew(storage, &self.backlog(storage));
        run.control.expect(self.settings.n_estimators as u64);
        with_storage!(storage, storage => if anew { self.draw(storage, run) } else { self.follow(storage, run) })
    }

    /// Draws trees of all rows.
    fn draw<S: Scalar>(&self, storage: &mut Storage<S, P>, run: &Run<'_>) -> Result<()> {
        // Those that there are make room first, and rows that left do not make the box larger.
        (storage.trees, storage.level) = (Vec::new(), 0);
        let n_features = self.domain.n_features();
        let rows: Vec<RowId> = self.row_index.rows().collect();
        let level = self.level(storage);
        let by_column = transpose(&storage.values, n_features);
        let table = Table::new(&storage.values, n_features).with_transpose(&by_column);
        storage.trees = run.map(self.settings.n_estimators, |i| {
            let mut tree = Tree::new(n_features, self.needs_boxes());
            let mut scratch = Scratch::new(&self.domain, level);
            tree.insert(&mut rows.clone(), &self.process(i, table), &mut scratch, run.control)?;
            tree.shrink_to_fit();
            (tree.lacks_from, tree.n_let_go) = (self.row_index.next_arrival(), storage.leaving.len());
            run.control.advance(1);
            Ok(tree)
        })?;
        storage.level = level;
        Ok(())
    }

    /// Takes rows that left out of every tree, and gives it those that it lacks, and the boxes that it needs.
    fn follow<S: Scalar>(&self, storage: &mut Storage<S, P>, run: &Run<'_>) -> Result<()> {
        let came: Vec<RowId> = self.row_index.rows_from(storage.lacks_from()).collect();
        let Storage { values, level, leaving, trees } = storage;
        let table = Table::new(values, self.domain.n_features());
        let scratch = || (Scratch::new(&self.domain, *level), Vec::new());
        try_for_each_mut(run.n_threads, trees, scratch, |(scratch, own), i, tree| {
            let process = self.process(i, table);
            // Boxes that are not needed need not follow, and those that are lacking are built of all rows at once.
            if !self.needs_boxes() {
                self.fit_boxes(tree, table, run)?;
            }
            while tree.n_let_go < leaving.len() {
                run.control.check()?;
                let end = leaving.len().min(tree.n_let_go + BLOCK);
                own.clear();
                own.extend(self.unwanted(tree, &leaving[..end]));
                tree.remove(own, &process, scratch);
                tree.n_let_go = end;
            }
            let first = came.partition_point(|&row| self.row_index.arrival(row) < tree.lacks_from);
            for block in came[first..].chunks(BLOCK) {
                run.control.check()?;
                own.clear();
                own.extend_from_slice(block);
                // A block is short: it is not interrupted, for what would be left is no tree.
                tree.insert(own, &process, scratch, &Control::new())?;
                tree.lacks_from = self.row_index.arrival(block[block.len() - 1]) + 1;
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
            tree.build_boxes(self.domain.n_features(), self.needs_boxes(), table);
        }
        Ok(())
    }

    pub(crate) fn process<'a, S: Scalar>(
        &'a self,
        tree: usize,
        table: Table<'a, S>,
    ) -> Process<'a, S, P::Target> {
        Process {
            domain: &self.domain,
            key: Key::of_tree(self.settings.seed, tree as u64),
            lifetime: self.settings.lifetime,
            min_samples_split: self.settings.min_samples_split,
            table,
            targets: &self.targets,
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
    use crate::mondrian::forest::Batch;
    use crate::mondrian::forest::settings::MondrianSettings;
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
        let batch = Batch { rows: Rows::from_f32(&x, FEATURES).unwrap(), ids: Some(ids) };
        Forest::fit(settings, domain, batch, &y, &Run::default()).unwrap()
    }

    fn digest(forest: &Forest<ClassCounts>) -> String {
        forest.digest(&[], |class| class.to_le_bytes().to_vec())
    }

    /// Leaves a forest as one whose trees followed as far as some of them, and was then stopped.
    fn flush_some(forest: &mut Forest<ClassCounts>, n_trees: usize) {
        let mut flushed = forest.clone();
        flushed.flushed_alone();
        let drawn_anew =
            forest.storage.peek(|storage| forest.is_drawn_anew(storage, &forest.backlog(storage)));
        if let (AnyStorage::F32(storage), AnyStorage::F32(done), false) =
            (forest.storage.get_mut(), flushed.storage.get_mut(), drawn_anew)
        {
            storage.trees[..n_trees].clone_from_slice(&done.trees[..n_trees]);
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
                let batch = Batch { rows: Rows::from_f32(&x, FEATURES).unwrap(), ids: Some(&came) };
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
                let applied = |tree: &Tree<f32, ClassCounts>| (tree.lacks_from, tree.n_let_go);
                n_uneven += forest.storage.peek(|storage| match storage {
                    AnyStorage::F32(storage) => {
                        usize::from(storage.trees.iter().any(|t| applied(t) != applied(&storage.trees[0])))
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
            let batch = Batch { rows: Rows::from_f32(&x, FEATURES).unwrap(), ids: Some(&more) };
            forest.insert(batch, || y).unwrap();
            assert_eq!(forest.row_index.capacity(), capacity);
        }
        assert!(n_uneven > 1000, "{n_uneven}");
    }

    /// A thread that waits for its part of a parallel task takes up another task of its pool, which may ask for the
    /// trees that it is at work on.
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
                    let batch = Batch { rows: Rows::from_f32(&x, FEATURES).unwrap(), ids: Some(&ids[10..]) };
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
