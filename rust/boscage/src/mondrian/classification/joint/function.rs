//! The values for test rows of a function that is a sum over trees.

use crate::control::Run;
use crate::data::{Rows, Scalar};
use crate::error::Result;
use crate::mondrian::classification::class_counts::ClassCounts;
use crate::mondrian::classification::joint::by_trees::{Systems, TreesFunction};
use crate::mondrian::classification::joint::codes::of_all_classes;
use crate::mondrian::forest::Forest;
use crate::mondrian::joint::ColumnMeans;
use crate::mondrian::prediction::clock::Clock;
use crate::mondrian::prediction::stop::{Stop, n_inside};
use crate::mondrian::prediction::visitor::Visitor;
use crate::mondrian::prediction::walk;
use crate::mondrian::tree::Tree;

impl TreesFunction {
    /// The values for test rows, `n_rows x n_classes`.
    ///
    /// # Errors
    /// A number of features other than in `fit`; an interrupt.
    pub(super) fn predict(
        &self,
        forest: &Forest<ClassCounts>,
        rows: Rows<'_>,
        run: &Run<'_>,
    ) -> Result<Vec<f64>> {
        let chunks = walk::predict(forest, rows, run, self)?;
        Ok(chunks.iter().flat_map(|chunk| of_all_classes(chunk, self.n_columns)).collect())
    }
}

impl Visitor<ClassCounts> for TreesFunction {
    type Chunk = Vec<f64>;

    fn start(&self, n_rows: usize) -> Vec<f64> {
        vec![0.0; n_rows * self.n_columns]
    }

    fn visit<S: Scalar>(
        &self,
        tree_index: usize,
        _: &Tree<S, ClassCounts>,
        row: usize,
        stops: &[Stop],
        chunk: &mut Vec<f64>,
    ) {
        let values = &mut chunk[row * self.n_columns..(row + 1) * self.n_columns];
        add_share(&self.means[tree_index], self.clock, stops, values);
    }
}

impl Systems {
    /// The values for test rows, `n_rows x n_classes`, of the function that is found to a tolerance; it is not kept.
    ///
    /// # Errors
    /// A number of features other than in `fit`; an interrupt.
    pub(super) fn predict(
        &self,
        forest: &Forest<ClassCounts>,
        rows: Rows<'_>,
        tolerance: f64,
        run: &Run<'_>,
    ) -> Result<Vec<f64>> {
        let (n_columns, solutions) = (self.codes.n_columns(), self.solutions(tolerance, run)?);
        let system = self.system(run)?;
        let means = ColumnMeans::new(&system, &solutions, n_columns);
        let chunks = walk::predict(forest, rows, run, &TreeByTree { means, n_columns, clock: self.clock })?;
        Ok(chunks.iter().flat_map(|chunk| of_all_classes(&chunk.values, n_columns)).collect())
    }
}

/// A function whose means are found for one tree after the other.
struct TreeByTree<'a> {
    clock: Clock,
    n_columns: usize,
    means: ColumnMeans<'a>,
}

/// The values of some rows so far, and the means in the tree that is being visited.
struct TreeChunk {
    values: Vec<f64>,
    tree: Option<(usize, Vec<f32>)>,
}

impl Visitor<ClassCounts> for TreeByTree<'_> {
    type Chunk = TreeChunk;

    fn start(&self, n_rows: usize) -> TreeChunk {
        TreeChunk { values: vec![0.0; n_rows * self.n_columns], tree: None }
    }

    fn visit<S: Scalar>(
        &self,
        tree_index: usize,
        _: &Tree<S, ClassCounts>,
        row: usize,
        stops: &[Stop],
        chunk: &mut TreeChunk,
    ) {
        let last = chunk.tree.take().filter(|&(tree, _)| tree == tree_index);
        let (_, means) =
            chunk.tree.insert(last.unwrap_or_else(|| (tree_index, self.means.of_tree(tree_index))));
        let values = &mut chunk.values[row * self.n_columns..(row + 1) * self.n_columns];
        add_share(means, self.clock, stops, values);
    }
}

/// Adds a tree's share to a row's values: the mean at the last stop that the row comes to for certain, and parts of what each
/// further stop adds to it. `means` are those at the tree's nodes.
fn add_share(means: &[f32], clock: Clock, stops: &[Stop], values: &mut [f64]) {
    let n_columns = values.len();
    let mut add = |depth: usize, part: f64| {
        let means = &means[stops[depth].node.index() * n_columns..][..n_columns];
        values.iter_mut().zip(means).for_each(|(value, &mean)| *value += part * f64::from(mean));
    };
    let n_inside = n_inside(stops);
    if let Some(last) = n_inside.checked_sub(1) {
        add(last, 1.0);
    }
    for (depth, part) in (n_inside..stops.len()).zip(clock.parts(&stops[n_inside..])) {
        add(depth, part);
        if depth > 0 {
            add(depth - 1, -part);
        }
    }
}
