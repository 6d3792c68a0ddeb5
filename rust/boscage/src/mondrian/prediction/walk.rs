//! Takes test rows, and training rows that are left out, through all trees of a forest.

use crate::control::{Control, Run};
use crate::data::RowId;
use crate::data::{Rows, Scalar, Table, transpose};
use crate::error::Result;
use crate::mondrian::forest::Forest;
use crate::mondrian::forest::settings::Predictive;
use crate::mondrian::forest::storage::{Storage, with_storage};
use crate::mondrian::prediction::path::{Shells, Space, Walk};
use crate::mondrian::prediction::stop::Stop;
use crate::mondrian::prediction::visitor::Visitor;
use crate::mondrian::process::domain::CoordinateBuffer;
use crate::mondrian::tree::Tree;
use crate::mondrian::tree::arena::NodeId;
use crate::mondrian::tree::scratch::Scratch;
use crate::mondrian::tree::statistics::Statistics;

/// Calls a visitor with every tree's stops for every row, trees in order.
///
/// # Errors
/// A number of features other than in `fit`; an interrupt.
pub(crate) fn predict<P: Statistics, V: Visitor<P>>(
    forest: &Forest<P>,
    rows: Rows<'_>,
    run: &Run<'_>,
    visitor: &V,
) -> Result<Vec<V::Chunk>> {
    /// Rows that are taken through a tree while it is in the cache.
    const CHUNK: usize = 4096;
    let mut filled = Vec::new();
    let rows = forest.complete(rows, &mut filled)?;
    let storage = forest.flushed(run)?;
    let n = rows.n_rows();
    // The same number of chunks for every thread.
    let n_chunks = n.div_ceil(CHUNK).next_multiple_of(run.n_threads.max(1));
    let chunk = n.div_ceil(n_chunks.max(1)).max(1);
    run.map_ranges(n, chunk, |range| {
        let part = rows.slice(range.start, range.end);
        with_storage!(storage, storage => Walker { forest, storage }.predict(part, run.control, visitor))
    })
}

/// The same for rows of the forest, each with itself left out of every tree. The forest is as before.
///
/// # Errors
/// An interrupt.
pub(crate) fn predict_left_out<P: Statistics, V: Visitor<P>>(
    forest: &Forest<P>,
    rows: &[RowId],
    run: &Run<'_>,
    visitor: &V,
) -> Result<Vec<V::Chunk>> {
    let storage = forest.flushed(run)?;
    let chunk = run.len_by_thread(rows.len());
    run.control.expect((rows.len().div_ceil(chunk) * forest.settings.n_estimators) as u64);
    run.map_ranges(rows.len(), chunk, |range| {
        with_storage!(storage, storage => {
            Walker { forest, storage }.leave_out(&rows[range], run.control, visitor)
        })
    })
}

/// Takes a test row's stops in a tree, given by its number; a pointer, so that walks are compiled once for all visitors.
type VisitTree<'a, S, P> = &'a mut dyn FnMut(usize, &Tree<S, P>, RowId, &[Stop]);

/// Takes rows through the trees of a forest.
struct Walker<'a, S, P: Statistics> {
    forest: &'a Forest<P>,
    storage: &'a Storage<S, P>,
}

impl<'a, S: Scalar, P: Statistics> Walker<'a, S, P> {
    fn space(&self) -> Space<'a, S> {
        Space {
            domain: &self.forest.domain,
            lifetime: self.forest.settings.lifetime,
            table: Table::new(&self.storage.values, self.forest.domain.n_coordinates()),
        }
    }

    fn predict<V: Visitor<P>>(&self, rows: Rows<'_>, control: &Control, visitor: &V) -> Result<V::Chunk> {
        let mut chunk = visitor.start(rows.n_rows());
        let visit: VisitTree<'_, S, P> =
            &mut |i, tree, row, stops| visitor.visit(i, tree, row as usize, stops, &mut chunk);
        let mut buffer = CoordinateBuffer::default();
        let coordinates = self.forest.domain.coordinates(rows, &mut buffer)?;
        if let Some(values) = coordinates.to_exact::<S>() {
            self.predict_values(&values, control, visit)?;
        } else {
            let values = coordinates.to_exact::<f64>().expect("f64 holds every value");
            self.predict_values(&values, control, visit)?;
        }
        Ok(chunk)
    }

    fn predict_values<X: Scalar>(
        &self,
        values: &[X],
        control: &Control,
        visit: VisitTree<'_, S, P>,
    ) -> Result<()> {
        /// With at most this many nodes per test row, it pays to read the whole tree into the cache first.
        const TIMES: usize = 16;
        let n_features = self.forest.domain.n_coordinates();
        let n_rows = values.len() / n_features;
        let by_column = transpose(values, n_features);
        let test_rows = Table::new(values, n_features).with_transpose(&by_column);
        let mut walk = Walk::new(self.space(), test_rows);
        // The order in which one tree leaves the test rows suits the next.
        let (mut inside, outside) = self.places(self.storage.level, values);
        for (i, tree) in self.storage.trees.iter().enumerate() {
            control.check()?;
            if n_rows * TIMES > tree.arena.n_nodes() {
                tree.fetch_all();
            }
            let mut visit = |row: RowId, stops: &[Stop]| visit(i, tree, row, stops);
            self.walk(&mut walk, i, tree, &mut inside, &mut visit);
            for &(row, level) in &outside {
                let levels = level.map(|level| [self.storage.level, level]);
                self.walk_outside(&mut walk, i, tree, (row, levels), &mut visit);
            }
        }
        Ok(())
    }

    fn leave_out<V: Visitor<P>>(&self, rows: &[RowId], control: &Control, visitor: &V) -> Result<V::Chunk> {
        let n_features = self.forest.domain.n_coordinates();
        let table = Table::new(&self.storage.values, n_features);
        let mut chunk = visitor.start(rows.len());
        let mut walk = Walk::new(self.space(), table);
        let mut scratch = Scratch::new(&self.forest.domain, self.storage.level);
        for (i, tree) in self.storage.trees.iter().enumerate() {
            let mut tree = tree.clone();
            let process = self.forest.process(i, table);
            for (at, &row) in rows.iter().enumerate() {
                control.check()?;
                tree.remove(&mut [row], &process, &mut scratch);
                self.walk(&mut walk, i, &tree, &mut [row], &mut |_, stops: &[Stop]| {
                    visitor.visit(i, &tree, at, stops, &mut chunk);
                });
                tree.insert(&mut [row], &process, &mut scratch, control)?;
                let changed: Vec<NodeId> = scratch.touched().collect();
                visitor.restored(i, &tree, &changed, &mut chunk);
            }
            control.advance(1);
        }
        Ok(chunk)
    }

    /// The test rows in the box of the trees, which is of level `own`, and the others with the level of the
    /// smallest box that holds them, if one does. Only the realised predictive distinguishes them.
    fn places<X: Scalar>(&self, own: u32, test_rows: &[X]) -> (Vec<RowId>, Vec<(RowId, Option<u32>)>) {
        let (mut inside, mut outside) = (Vec::new(), Vec::new());
        for (row, x) in test_rows.chunks_exact(self.forest.domain.n_coordinates()).enumerate() {
            let row = row as RowId;
            if self.forest.settings.predictive == Predictive::Averaged {
                inside.push(row);
                continue;
            }
            match self.forest.domain.level_of(x.iter().map(|&v| v.into())) {
                Ok(level) if level <= own => inside.push(row),
                Ok(level) => outside.push((row, Some(level))),
                Err(_) => outside.push((row, None)),
            }
        }
        (inside, outside)
    }

    /// Takes test rows in the box of the trees down one tree, averaged or realised as the forest's boxes
    /// are.
    fn walk<X: Scalar>(
        &self,
        walk: &mut Walk<'_, S, X>,
        i: usize,
        tree: &Tree<S, P>,
        test_rows: &mut [RowId],
        visit: &mut dyn FnMut(RowId, &[Stop]),
    ) {
        if tree.boxes.has_splits() {
            walk.averaged(tree, test_rows, visit);
        } else {
            walk.realised(tree, self.forest.key(i), None, test_rows, visit);
        }
    }

    /// Takes a test row outside the box of the trees down one tree by its own cuts; `levels` are those of
    /// both boxes, if some level's box holds the row.
    fn walk_outside<X: Scalar>(
        &self,
        walk: &mut Walk<'_, S, X>,
        i: usize,
        tree: &Tree<S, P>,
        (test_row, levels): (RowId, Option<[u32; 2]>),
        visit: &mut dyn FnMut(RowId, &[Stop]),
    ) {
        let Some([own, level]) = levels else {
            return walk.beyond(tree, test_row, visit);
        };
        let key = self.forest.key(i);
        let shells = Shells::new(&self.forest.domain, key, own, level);
        walk.realised(tree, key, Some(shells), &mut [test_row], visit);
    }
}
