//! A forest of Mondrian trees over one table of rows, whatever the posterior at their nodes.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use super::deferred::Deferred;
use super::domain::Domain;
use super::growth::Workbench;
use super::keyed::Key;
use super::roster::{Arrival, Roster};
use super::route::{Shells, Space, Stop, Walk};
use super::statistics::Statistics;
use super::tree::{Process, Tree};
use super::values::{Values, place, row_of};
use crate::control::{Control, map, try_for_each_mut};
use crate::data::{Rows, Scalar, Table, transpose};
use crate::error::{Error, Result};
use crate::tree::{NodeId, RowId};

/// How a test point's place in a tree is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Predictive {
    /// By the average over every way in which it could branch off (Algorithms 5.8, 6.5). Needs boxes.
    #[default]
    Averaged,
    /// By the tree's own cuts.
    Realised,
}

/// What determines a forest of Mondrian trees, besides rows and domain.
#[derive(Debug, Clone, PartialEq)]
pub struct MondrianSettings {
    /// Number of trees.
    pub n_estimators: usize,
    /// No cut comes at this time or later; `lambda` in the thesis.
    pub lifetime: f64,
    /// A node of fewer rows is not split; at least 2.
    pub min_samples_split: usize,
    /// How test points are placed.
    pub predictive: Predictive,
    /// Seed of the keyed generator.
    pub seed: u64,
}

impl Default for MondrianSettings {
    /// 100 trees, no end of time, leaves of one label.
    fn default() -> Self {
        Self {
            n_estimators: 100,
            lifetime: f64::INFINITY,
            min_samples_split: 2,
            predictive: Predictive::Averaged,
            seed: 0,
        }
    }
}

impl MondrianSettings {
    /// # Errors
    /// A setting outside its domain.
    pub fn check(&self) -> Result<()> {
        let wrong = |name, expected, found: String| Err(Error::InvalidSetting { name, expected, found });
        if self.n_estimators == 0 || self.n_estimators > 100_000 {
            return wrong("n_estimators", "between 1 and 100000", self.n_estimators.to_string());
        }
        if self.lifetime.is_nan() || self.lifetime < 0.0 {
            return wrong("lifetime", "non-negative", self.lifetime.to_string());
        }
        if self.min_samples_split < 2 {
            return wrong("min_samples_split", "at least 2", self.min_samples_split.to_string());
        }
        Ok(())
    }
}

/// Rows, and their ids unless they are to be numbered in order of arrival.
#[derive(Debug, Clone, Copy)]
pub struct Batch<'a> {
    /// The features.
    pub rows: Rows<'a>,
    /// One id a row, none of them in the forest.
    pub ids: Option<&'a [u64]>,
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

/// Rows' values and the trees over them, in the narrowest type that holds every value exactly.
#[derive(Debug, Clone)]
pub(crate) struct Kept<S, P> {
    pub(crate) values: Vec<S>,
    /// Of the box on which the trees are drawn.
    level: u32,
    /// Rows that left while trees had them. Their places in the table stay theirs until every tree has let them go.
    leaving: Vec<RowId>,
    pub(crate) trees: Vec<Tree<S, P>>,
}

#[derive(Debug, Clone)]
pub(crate) enum Body<P> {
    F32(Kept<f32, P>),
    F64(Kept<f64, P>),
}

/// Does the same with a body of either type.
macro_rules! with_body {
    ($body:expr, $kept:ident => $work:expr) => {
        match $body {
            $crate::mondrian::forest::Body::F32($kept) => $work,
            $crate::mondrian::forest::Body::F64($kept) => $work,
        }
    };
}
pub(crate) use with_body;

/// Trees and rows.
#[derive(Debug, Clone)]
pub(crate) struct Forest<P: Statistics> {
    pub(crate) settings: MondrianSettings,
    pub(crate) domain: Domain,
    pub(crate) targets: Vec<P::Target>,
    pub(crate) roster: Roster,
    /// Rows' coordinates and the trees over them. A forest does not depend on when its trees took in its rows and let
    /// others go: they do so together when somebody asks.
    body: Deferred<Body<P>>,
    /// Rows' values, if they are others than their coordinates.
    own: Option<Values>,
    /// Text that a user wants in the model file; nothing depends on it.
    pub(crate) annotation: String,
}

/// Rows that a tree takes in or lets go between two looks at the stop flag.
const BLOCK: usize = 16_384;

impl<P: Statistics> Forest<P> {
    /// The forest of some rows, or of none.
    pub(crate) fn fit(
        settings: MondrianSettings,
        domain: Domain,
        Batch { rows, ids }: Batch<'_>,
        targets: &[P::Target],
        run: &Run<'_>,
    ) -> Result<Self> {
        settings.check()?;
        if rows.n_features() != domain.n_features() {
            return Err(Error::Length {
                what: "feature_range",
                found: domain.n_features(),
                expected: rows.n_features(),
                why: "one value a feature of X",
            });
        }
        run.control.check()?;
        let own = domain.maps().map(|_| Values::F32(Vec::new()));
        let body = Deferred::new(Body::default());
        let (roster, annotation) = (Roster::default(), String::new());
        let mut forest = Self { settings, domain, targets: Vec::new(), roster, body, own, annotation };
        forest.insert(Batch { rows, ids }, || targets.to_vec())?;
        forest.body(run)?;
        Ok(forest)
    }

    /// Number of rows.
    pub(crate) fn n_rows(&self) -> usize {
        self.roster.len()
    }

    /// Adds rows, which the trees take in when somebody asks for these. Targets are asked for when nothing can fail any
    /// more.
    pub(crate) fn insert(
        &mut self,
        Batch { rows, ids }: Batch<'_>,
        targets: impl FnOnce() -> Vec<P::Target>,
    ) -> Result<()> {
        self.check_features(rows.n_features())?;
        // Everything that can be wrong is found before anything changes.
        let coordinates = self.domain.coordinates(rows);
        let arrivals = Arrivals::new(rows, coordinates.as_deref())?;
        check_levels(&self.domain, arrivals)?;
        let ids = self.roster.name(rows.n_rows(), ids)?;
        self.admit(arrivals, &targets(), &ids);
        Ok(())
    }

    /// The trees of just these rows. Interrupted, some rows go on waiting.
    pub(crate) fn body(&self, run: &Run<'_>) -> Result<&Body<P>> {
        let work = |body: &mut Body<P>| {
            let done = catch_unwind(AssertUnwindSafe(|| self.settle_apart(body, run)));
            done.unwrap_or_else(|panic| {
                body.drop_trees();
                resume_unwind(panic)
            })
        };
        self.body.settled(work, || run.control.check())
    }

    /// Settles on a thread of its own if several are to work. Whoever asks may be one of a pool's threads; while it waits
    /// for others, it would take up other work of its pool, which may ask for the same trees.
    fn settle_apart(&self, body: &mut Body<P>, run: &Run<'_>) -> Result<()> {
        if run.n_threads > 1 {
            let own = std::thread::Builder::new();
            let settle = || self.settle(body, run);
            let done = std::thread::scope(|scope| Some(own.spawn_scoped(scope, settle).ok()?.join()));
            if let Some(done) = done {
                return done.unwrap_or_else(|panic| resume_unwind(panic));
            }
        }
        self.settle(body, run)
    }

    /// The same on one thread, and nobody interrupts.
    pub(crate) fn body_alone(&self) -> &Body<P> {
        self.body(&Run::default()).expect("nobody interrupts")
    }

    /// Whether trees are those of just these rows.
    pub(crate) fn is_settled(&self) -> bool {
        let settled = self.body.try_peek(|body| {
            let Backlog { waiting, leaving, .. } = self.backlog(body);
            waiting + leaving == 0
        });
        // Not while somebody sees to it.
        settled.unwrap_or(false)
    }

    /// How many rows trees have to take in and let go before the next prediction: those that came and left since the
    /// last one, or all if trees are drawn anew.
    pub(crate) fn n_pending(&self) -> usize {
        let pending = self.body.try_peek(|body| {
            let Backlog { waiting, leaving, .. } = self.backlog(body);
            match waiting + leaving {
                0 => 0,
                _ if self.is_drawn_anew(body) => self.n_rows().max(1),
                n => n,
            }
        });
        // While somebody sees to it, nobody knows.
        pending.unwrap_or(self.n_rows())
    }

    /// Removes the rows with the given ids, which the trees let go when somebody asks for these; the rows' targets.
    pub(crate) fn forget(&mut self, ids: &[u64]) -> Result<Vec<P::Target>> {
        let rows = self.roster.find(ids)?;
        Ok(self.dismiss(&rows))
    }

    /// Removes all rows but the `n` that arrived last, as [`forget`](Self::forget) does.
    pub(crate) fn keep_newest(&mut self, n: usize) -> Vec<P::Target> {
        let rows: Vec<RowId> = self.roster.rows().take(self.n_rows().saturating_sub(n)).collect();
        self.dismiss(&rows)
    }

    /// Whether another forest is a shard of the same forest.
    pub(crate) fn check_mergeable(&self, other: &Self) -> Result<()> {
        let (a, b) = (&self.settings, &other.settings);
        for (what, equal) in [
            ("seeds", a.seed == b.seed),
            ("numbers of trees", a.n_estimators == b.n_estimators),
            ("lifetimes", a.lifetime == b.lifetime),
            ("values of min_samples_split", a.min_samples_split == b.min_samples_split),
            (
                "feature ranges",
                self.domain.low() == other.domain.low() && self.domain.high() == other.domain.high(),
            ),
            ("feature weights", self.domain.weights() == other.domain.weights()),
            ("feature maps", self.domain.maps() == other.domain.maps()),
        ] {
            if !equal {
                return Err(Error::NotMergeable { what });
            }
        }
        self.roster.name(other.n_rows(), Some(&other.ids())).map(drop)
    }

    /// Adds the rows of another shard of the same forest, which was checked.
    pub(crate) fn merge(&mut self, other: &Self, target: impl Fn(P::Target) -> P::Target) -> Result<()> {
        let rows: Vec<RowId> = other.roster.rows().collect();
        let ids: Vec<u64> = rows.iter().map(|&row| other.roster.id(row)).collect();
        let targets: Vec<P::Target> = rows.iter().map(|&row| target(other.targets[row as usize])).collect();
        let values: Vec<f64> = rows.iter().flat_map(|&row| other.row_values(row)).collect();
        let rows = Rows::from_f64(&values, self.domain.n_features())?;
        self.insert(Batch { rows, ids: Some(&ids) }, || targets)
    }

    /// Calls a visitor with every tree's stops for every row, trees in order.
    pub(crate) fn predict<V: Visitor<P>>(
        &self,
        rows: Rows<'_>,
        run: &Run<'_>,
        visitor: &V,
    ) -> Result<Vec<V::Chunk>> {
        /// Rows that are taken through a tree while it is in the cache.
        const CHUNK: usize = 4096;
        self.check_features(rows.n_features())?;
        let body = self.body(run)?;
        let n = rows.n_rows();
        // As many chunks for each thread as for the others.
        let n_chunks = n.div_ceil(CHUNK).next_multiple_of(run.n_threads.max(1));
        let chunk = n.div_ceil(n_chunks.max(1)).max(1);
        run.map(n.div_ceil(chunk), |i| {
            let part = rows.slice(i * chunk, ((i + 1) * chunk).min(n));
            with_body!(body, kept => self.predict_chunk(kept, part, run.control, visitor))
        })
    }

    /// The same for rows of the forest, each with itself left out of every tree. The forest is as before.
    pub(crate) fn predict_left_out<V: Visitor<P>>(
        &self,
        rows: &[RowId],
        run: &Run<'_>,
        visitor: &V,
    ) -> Result<Vec<V::Chunk>> {
        let body = self.body(run)?;
        let chunk = rows.len().div_ceil(run.n_threads.max(1)).max(1);
        run.control.expect((rows.len().div_ceil(chunk) * self.settings.n_estimators) as u64);
        run.map(rows.len().div_ceil(chunk), |i| {
            let part = &rows[i * chunk..((i + 1) * chunk).min(rows.len())];
            with_body!(body, kept => self.leave_out_chunk(kept, part, run.control, visitor))
        })
    }

    /// Turns averaged prediction on or off: the boxes of splits are built or dropped.
    pub(crate) fn set_predictive(&mut self, predictive: Predictive, n_threads: usize) {
        self.settings.predictive = predictive;
        let n_features = self.domain.n_features();
        with_body!(self.body.get_mut(), kept => {
            let Kept { values, trees, .. } = kept;
            try_for_each_mut(n_threads, trees, || (), |(), _, tree| {
                let splits = predictive == Predictive::Averaged;
                if tree.extents.has_splits() != splits {
                    tree.build_extents(n_features, splits, Table::new(values, n_features));
                }
                Ok(())
            }).expect("building boxes cannot fail");
        });
    }

    /// A row's values.
    pub(crate) fn row_values(&self, row: RowId) -> Vec<f64> {
        let d = self.domain.n_features();
        match &self.own {
            Some(table) => table.row(row, d),
            None => self.body.peek(|body| with_body!(body, kept => row_of(&kept.values, row, d))),
        }
    }

    /// Bytes of the type that holds every value exactly.
    pub(crate) fn value_width(&self) -> u8 {
        match &self.own {
            Some(table) => table.width(),
            None => self.body.peek(|body| match body {
                Body::F32(_) => 4,
                Body::F64(_) => 8,
            }),
        }
    }

    /// Ids of the rows in order of arrival.
    pub(crate) fn ids(&self) -> Vec<u64> {
        self.roster.rows().map(|row| self.roster.id(row)).collect()
    }

    /// Bytes that trees and rows hold.
    pub(crate) fn bytes(&self) -> usize {
        let own = self.own.as_ref().map_or(0, Values::bytes);
        own + self.body.peek(|body| {
            with_body!(body, kept => {
                let trees: usize = kept.trees.iter().map(Tree::bytes).sum();
                trees + size_of_val::<[_]>(&kept.values)
            })
        })
    }

    /// # Errors
    /// The first invariant that does not hold in some tree, in words.
    pub(crate) fn check(&self) -> std::result::Result<(), String> {
        self.body.peek(|body| {
            with_body!(body, kept => {
                for (i, tree) in kept.trees.iter().enumerate() {
                    tree.arena.check().map_err(|wrong| format!("tree {i}: {wrong}"))?;
                    let held = tree.n_rows() + self.roster.rows_from(tree.lacks_from).count();
                    let expected = self.n_rows() + self.unwanted(tree, &kept.leaving).count();
                    if held != expected {
                        return Err(format!("tree {i} holds and lacks {held} rows of {expected}"));
                    }
                }
                Ok(())
            })
        })
    }

    fn check_features(&self, found: usize) -> Result<()> {
        let expected = self.domain.n_features();
        if found == expected {
            return Ok(());
        }
        Err(Error::Length { what: "a row of X", found, expected, why: "as many features as in fit" })
    }

    /// Whether trees are drawn anew, to the same bits, which is quicker where many rows come or go, and needed where one
    /// lies outside their box.
    fn is_drawn_anew(&self, body: &Body<P>) -> bool {
        let Backlog { held, waiting, leaving } = self.backlog(body);
        2 * waiting + 3 * leaving >= held || with_body!(body, kept => self.level(kept) > kept.level)
    }

    fn backlog(&self, body: &Body<P>) -> Backlog {
        with_body!(body, kept => Backlog {
            held: kept.trees.iter().map(Tree::n_rows).min().unwrap_or(0),
            waiting: self.roster.rows_from(kept.lacks_from()).count(),
            leaving: kept.leaving.len() - kept.trees.iter().map(|tree| tree.n_let_go).min().unwrap_or(0),
        })
    }

    /// Rows that a tree still has of those that leave.
    fn unwanted<'a, S>(
        &'a self,
        tree: &'a Tree<S, P>,
        leaving: &'a [RowId],
    ) -> impl Iterator<Item = RowId> + 'a {
        leaving[tree.n_let_go..].iter().copied().filter(|&row| self.roster.arrival(row) < tree.lacks_from)
    }

    /// The level of the box that trees of all rows need.
    fn level<S: Scalar>(&self, kept: &Kept<S, P>) -> u32 {
        let table = Table::new(&kept.values, self.domain.n_features());
        let of_row = |row| self.domain.level_of(table.row(row).iter().map(|&value| value.into()));
        let waiting = self.roster.rows_from(kept.lacks_from());
        waiting.fold(kept.level, |level, row| level.max(of_row(row).expect("admitted rows have one")))
    }

    /// Makes trees those of the forest's rows.
    fn settle(&self, body: &mut Body<P>, run: &Run<'_>) -> Result<()> {
        let anew = self.is_drawn_anew(body);
        run.control.expect(self.settings.n_estimators as u64);
        with_body!(body, kept => if anew { self.draw(kept, run) } else { self.follow(kept, run) })
    }

    /// Draws trees of all rows.
    fn draw<S: Scalar>(&self, kept: &mut Kept<S, P>, run: &Run<'_>) -> Result<()> {
        // Those that there are make room first, and rows that left do not make the box larger.
        (kept.trees, kept.level) = (Vec::new(), 0);
        let n_features = self.domain.n_features();
        let rows: Vec<RowId> = self.roster.rows().collect();
        let level = self.level(kept);
        let by_column = transpose(&kept.values, n_features);
        let table = Table::new(&kept.values, n_features).with_transpose(&by_column);
        kept.trees = run.map(self.settings.n_estimators, |i| {
            let mut tree = Tree::new(n_features, self.settings.predictive == Predictive::Averaged);
            let mut bench = Workbench::new(&self.domain, level);
            tree.insert(&mut rows.clone(), &self.process(i, table), &mut bench, run.control)?;
            tree.shrink_to_fit();
            (tree.lacks_from, tree.n_let_go) = (self.roster.next_arrival(), kept.leaving.len());
            run.control.advance(1);
            Ok(tree)
        })?;
        kept.level = level;
        Ok(())
    }

    /// Takes rows that left out of every tree, and gives it those that it lacks.
    fn follow<S: Scalar>(&self, kept: &mut Kept<S, P>, run: &Run<'_>) -> Result<()> {
        let came: Vec<RowId> = self.roster.rows_from(kept.lacks_from()).collect();
        let Kept { values, level, leaving, trees } = kept;
        let table = Table::new(values, self.domain.n_features());
        let bench = || (Workbench::new(&self.domain, *level), Vec::new());
        try_for_each_mut(run.n_threads, trees, bench, |(bench, own), i, tree| {
            let process = self.process(i, table);
            while tree.n_let_go < leaving.len() {
                run.control.check()?;
                let end = leaving.len().min(tree.n_let_go + BLOCK);
                own.clear();
                own.extend(self.unwanted(tree, &leaving[..end]));
                tree.remove(own, &process, bench);
                tree.n_let_go = end;
            }
            let first = came.partition_point(|&row| self.roster.arrival(row) < tree.lacks_from);
            for block in came[first..].chunks(BLOCK) {
                run.control.check()?;
                own.clear();
                own.extend_from_slice(block);
                // A block is short: it is not interrupted, for what would be left is no tree.
                tree.insert(own, &process, bench, &Control::new())?;
                tree.lacks_from = self.roster.arrival(block[block.len() - 1]) + 1;
            }
            run.control.advance(1);
            Ok(())
        })
    }

    fn process<'a, S: Scalar>(&'a self, tree: usize, table: Table<'a, S>) -> Process<'a, S, P::Target> {
        Process {
            domain: &self.domain,
            key: Key::of_tree(self.settings.seed, tree as u64),
            lifetime: self.settings.lifetime,
            min_samples_split: self.settings.min_samples_split,
            table,
            targets: &self.targets,
        }
    }

    /// Puts rows into the table.
    fn admit(&mut self, arrivals: Arrivals<'_>, targets: &[P::Target], ids: &[u64]) {
        self.reclaim();
        let new = self.roster.admit(ids);
        if let Some(own) = &mut self.own {
            own.place(&new, arrivals.rows, self.roster.capacity());
        }
        for (&row, &target) in new.iter().zip(targets) {
            if self.targets.len() <= row as usize {
                self.targets.resize(row as usize + 1, target);
            }
            self.targets[row as usize] = target;
        }
        let (n_features, capacity) = (self.domain.n_features(), self.roster.capacity());
        let rows = arrivals.coordinates;
        let body = self.body.get_mut();
        if let Body::F32(kept) = body {
            match rows.to_exact() {
                Some(values) => return place(&mut kept.values, &new, values, n_features, capacity),
                None => *body = Body::F64(kept.widen()),
            }
        }
        if let Body::F64(kept) = body {
            let values = rows.to_exact().expect("f64 holds every value");
            place(&mut kept.values, &new, values, n_features, capacity);
        }
    }

    /// Takes rows out of the forest.
    fn dismiss(&mut self, rows: &[RowId]) -> Vec<P::Target> {
        self.reclaim();
        self.roster.dismiss(rows);
        let (roster, body) = (&mut self.roster, self.body.get_mut());
        with_body!(body, kept => {
            let some_tree_has = kept.trees.iter().map(|tree| tree.lacks_from).max().unwrap_or(0);
            for &row in rows {
                if roster.arrival(row) < some_tree_has {
                    kept.leaving.push(row);
                } else {
                    roster.release(row);
                }
            }
        });
        rows.iter().map(|&row| self.targets[row as usize]).collect()
    }

    /// Whether no tree has a row that left.
    pub(crate) fn has_let_go(&mut self) -> bool {
        self.reclaim();
        with_body!(self.body.get_mut(), kept => kept.leaving.is_empty())
    }

    /// Frees the places of rows that all trees have let go.
    fn reclaim(&mut self) {
        with_body!(self.body.get_mut(), kept => {
            if kept.trees.iter().all(|tree| tree.n_let_go == kept.leaving.len()) {
                kept.leaving.drain(..).for_each(|row| self.roster.release(row));
                kept.trees.iter_mut().for_each(|tree| tree.n_let_go = 0);
            }
        });
    }

    fn space<'a, S: Scalar>(&'a self, kept: &'a Kept<S, P>) -> Space<'a, S> {
        Space {
            domain: &self.domain,
            lifetime: self.settings.lifetime,
            table: Table::new(&kept.values, self.domain.n_features()),
        }
    }

    fn predict_chunk<S: Scalar, V: Visitor<P>>(
        &self,
        kept: &Kept<S, P>,
        rows: Rows<'_>,
        control: &Control,
        visitor: &V,
    ) -> Result<V::Chunk> {
        if let Some(coordinates) = self.domain.coordinates(rows) {
            return self.predict_values(kept, &coordinates, control, visitor);
        }
        match rows.to_exact::<S>() {
            Some(values) => self.predict_values(kept, &values, control, visitor),
            None => {
                let values = rows.to_exact::<f64>().expect("f64 holds every value");
                self.predict_values(kept, &values, control, visitor)
            }
        }
    }

    fn predict_values<S: Scalar, X: Scalar, V: Visitor<P>>(
        &self,
        kept: &Kept<S, P>,
        values: &[X],
        control: &Control,
        visitor: &V,
    ) -> Result<V::Chunk> {
        /// A tree of so many times the points' number of nodes is still worth being read from end to end.
        const TIMES: usize = 16;
        let n_features = self.domain.n_features();
        let n_points = values.len() / n_features;
        let mut chunk = visitor.start(n_points);
        let by_column = transpose(values, n_features);
        let points = Table::new(values, n_features).with_transpose(&by_column);
        let mut walk = Walk::new(self.space(kept), points);
        // The order in which one tree leaves the points is a good one for the next.
        let (mut inside, outside) = self.places(kept.level, values);
        for (i, tree) in kept.trees.iter().enumerate() {
            control.check()?;
            if n_points * TIMES > tree.arena.n_nodes() {
                tree.fetch_all();
            }
            let mut visit = |row: RowId, stops: &[Stop]| {
                visitor.visit(i, tree, row as usize, stops, &mut chunk);
            };
            self.walk(&mut walk, i, tree, &mut inside, &mut visit);
            for &(row, level) in &outside {
                let levels = level.map(|level| [kept.level, level]);
                self.walk_outside(&mut walk, i, tree, (row, levels), &mut visit);
            }
        }
        Ok(chunk)
    }

    fn leave_out_chunk<S: Scalar, V: Visitor<P>>(
        &self,
        kept: &Kept<S, P>,
        rows: &[RowId],
        control: &Control,
        visitor: &V,
    ) -> Result<V::Chunk> {
        let n_features = self.domain.n_features();
        let table = Table::new(&kept.values, n_features);
        let mut chunk = visitor.start(rows.len());
        let mut walk = Walk::new(self.space(kept), table);
        let mut bench = Workbench::new(&self.domain, kept.level);
        for (i, tree) in kept.trees.iter().enumerate() {
            let mut tree = tree.clone();
            let process = self.process(i, table);
            for (at, &row) in rows.iter().enumerate() {
                control.check()?;
                tree.remove(&mut [row], &process, &mut bench);
                self.walk(&mut walk, i, &tree, &mut [row], &mut |_, stops: &[Stop]| {
                    visitor.visit(i, &tree, at, stops, &mut chunk);
                });
                tree.insert(&mut [row], &process, &mut bench, control)?;
                let changed: Vec<NodeId> = bench.touched().collect();
                visitor.restored(i, &tree, &changed, &mut chunk);
            }
            control.advance(1);
        }
        Ok(chunk)
    }

    /// The points in the box of the trees, which is of level `own`, and the others with the level of the smallest box that holds them,
    /// if one does. Only the realised predictive tells them apart.
    fn places<X: Scalar>(&self, own: u32, points: &[X]) -> (Vec<RowId>, Vec<(RowId, Option<u32>)>) {
        let (mut inside, mut outside) = (Vec::new(), Vec::new());
        for (row, x) in points.chunks_exact(self.domain.n_features()).enumerate() {
            let row = row as RowId;
            if self.settings.predictive == Predictive::Averaged {
                inside.push(row);
                continue;
            }
            match self.domain.level_of(x.iter().map(|&v| v.into())) {
                Ok(level) if level <= own => inside.push(row),
                Ok(level) => outside.push((row, Some(level))),
                Err(_) => outside.push((row, None)),
            }
        }
        (inside, outside)
    }

    /// Takes points in the box of the trees down one of them in the way that the forest predicts.
    fn walk<S: Scalar, X: Scalar>(
        &self,
        walk: &mut Walk<'_, S, X>,
        i: usize,
        tree: &Tree<S, P>,
        points: &mut [RowId],
        visit: &mut impl FnMut(RowId, &[Stop]),
    ) {
        if tree.extents.has_splits() {
            walk.averaged(tree, points, visit);
        } else {
            walk.realised(tree, Key::of_tree(self.settings.seed, i as u64), None, points, visit);
        }
    }

    /// Takes a point outside the box of the trees, but in that of a higher level if both levels are given, down one of
    /// them by its own cuts.
    fn walk_outside<S: Scalar, X: Scalar>(
        &self,
        walk: &mut Walk<'_, S, X>,
        i: usize,
        tree: &Tree<S, P>,
        (point, levels): (RowId, Option<[u32; 2]>),
        visit: &mut impl FnMut(RowId, &[Stop]),
    ) {
        let Some([own, level]) = levels else {
            return walk.beyond(tree, point, visit);
        };
        let key = Key::of_tree(self.settings.seed, i as u64);
        let shells = Shells::new(&self.domain, key, own, level);
        walk.realised(tree, key, Some(shells), &mut [point], visit);
    }
}

/// What a posterior makes of the stops of rows, chunk by chunk.
pub(crate) trait Visitor<P: Statistics>: Sync {
    /// What is gathered for some rows.
    type Chunk: Send;

    /// Nothing gathered yet, for `n_rows` rows.
    fn start(&self, n_rows: usize) -> Self::Chunk;

    /// Takes in one row's stops in one tree; trees come in order.
    fn visit<S: Scalar>(
        &self,
        tree_index: usize,
        tree: &Tree<S, P>,
        row: usize,
        stops: &[Stop],
        chunk: &mut Self::Chunk,
    );

    /// Hears which nodes changed when a row that was left out came back into a tree, parents first.
    fn restored<S: Scalar>(
        &self,
        _tree_index: usize,
        _tree: &Tree<S, P>,
        _changed: &[NodeId],
        _chunk: &mut Self::Chunk,
    ) {
    }
}

impl<P: Statistics> Body<P> {
    /// From now on trees lack all rows.
    fn drop_trees(&mut self) {
        with_body!(self, kept => kept.trees = Vec::new());
    }
}

impl<P> Default for Body<P> {
    fn default() -> Self {
        Self::F32(Kept::default())
    }
}

impl<S, P> Default for Kept<S, P> {
    fn default() -> Self {
        Self { level: 0, values: Vec::new(), leaving: Vec::new(), trees: Vec::new() }
    }
}

impl<S, P> Kept<S, P> {
    /// Some tree lacks rows that arrived from here on.
    fn lacks_from(&self) -> Arrival {
        self.trees.iter().map(|tree| tree.lacks_from).min().unwrap_or(0)
    }
}

impl<P: Statistics> Kept<f32, P> {
    /// The same with every value as `f64`.
    fn widen(&self) -> Kept<f64, P> {
        Kept {
            level: self.level,
            leaving: self.leaving.clone(),
            values: self.values.iter().map(|&v| f64::from(v)).collect(),
            trees: self.trees.iter().map(Tree::widen).collect(),
        }
    }
}

/// How far trees are behind the forest's rows.
struct Backlog {
    /// Rows in the trees.
    held: usize,
    /// Rows that some tree lacks.
    waiting: usize,
    /// Rows that some tree has not let go yet.
    leaving: usize,
}

/// Rows as they are given, and where they lie for the trees.
#[derive(Debug, Clone, Copy)]
struct Arrivals<'a> {
    rows: Rows<'a>,
    coordinates: Rows<'a>,
}

impl<'a> Arrivals<'a> {
    fn new(rows: Rows<'a>, coordinates: Option<&'a [f32]>) -> Result<Self> {
        let mapped = coordinates.map(|values| Rows::from_f32(values, rows.n_features())).transpose()?;
        Ok(Self { rows, coordinates: mapped.unwrap_or(rows) })
    }
}

/// # Errors
/// A row that is in the box of no level.
fn check_levels(domain: &Domain, Arrivals { rows, coordinates }: Arrivals<'_>) -> Result<()> {
    (0..rows.n_rows()).try_for_each(|row| match domain.level_of(coordinates.row(row)) {
        Ok(_) => Ok(()),
        Err(feature) => Err(domain.too_far(row, feature, rows.at(row, feature))),
    })
}

#[cfg(test)]
mod tests {
    use super::super::classes::{Class, Classes};
    use super::super::keyed::Stream;
    use super::*;

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

    fn fitted(ids: &[u64]) -> Forest<Classes> {
        let (x, y) = rows(ids);
        let domain = Domain::new(vec![0.0; FEATURES], vec![8.0; FEATURES], None).unwrap();
        let settings = MondrianSettings { n_estimators: 5, ..MondrianSettings::default() };
        let batch = Batch { rows: Rows::from_f32(&x, FEATURES).unwrap(), ids: Some(ids) };
        Forest::fit(settings, domain, batch, &y, &Run::default()).unwrap()
    }

    fn digest(forest: &Forest<Classes>) -> String {
        forest.digest(&[], |class| class.to_le_bytes().to_vec())
    }

    /// Leaves a forest as one whose trees followed as far as some of them, and was then stopped.
    fn settle_some(forest: &mut Forest<Classes>, n_trees: usize) {
        let mut settled = forest.clone();
        settled.body_alone();
        let drawn_anew = forest.body.peek(|body| forest.is_drawn_anew(body));
        if let (Body::F32(kept), Body::F32(done), false) =
            (forest.body.get_mut(), settled.body.get_mut(), drawn_anew)
        {
            kept.trees[..n_trees].clone_from_slice(&done.trees[..n_trees]);
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
                let n_left = stream.below(4).min(held.len());
                let left: Vec<u64> =
                    (0..n_left).map(|_| held.swap_remove(stream.below(held.len()))).collect();
                let targets = forest.forget(&left).unwrap();
                assert_eq!(targets, rows(&left).1);
                settle_some(&mut forest, stream.below(6));
                forest.check().unwrap();
                let kept = |tree: &Tree<f32, Classes>| (tree.lacks_from, tree.n_let_go);
                n_uneven += forest.body.peek(|body| match body {
                    Body::F32(body) => {
                        usize::from(body.trees.iter().any(|t| kept(t) != kept(&body.trees[0])))
                    }
                    Body::F64(_) => panic!("small numbers are kept as f32"),
                });
            }
            assert_eq!(digest(&forest), digest(&fitted(&held)), "seed {seed}");
            assert_eq!(forest.n_pending(), 0);
            forest.check().unwrap();
            // All trees have let go of the rows that left: their places are used again.
            let capacity = forest.roster.capacity();
            let more: Vec<u64> = (0..(capacity - held.len()) as u64).map(|i| 2_000_000_000 + i).collect();
            let (x, y) = rows(&more);
            let batch = Batch { rows: Rows::from_f32(&x, FEATURES).unwrap(), ids: Some(&more) };
            forest.insert(batch, || y).unwrap();
            assert_eq!(forest.roster.capacity(), capacity);
        }
        assert!(n_uneven > 1000, "{n_uneven}");
    }
}
