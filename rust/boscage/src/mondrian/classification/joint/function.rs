//! The function's values for test rows.

use crate::control::Run;
use crate::data::{Rows, Scalar};
use crate::error::Result;
use crate::mondrian::classification::class_counts::ClassCounts;
use crate::mondrian::classification::joint::JointFunction;
use crate::mondrian::forest::Forest;
use crate::mondrian::prediction::stop::{Branch, Stop};
use crate::mondrian::prediction::visitor::Visitor;
use crate::mondrian::prediction::walk;
use crate::mondrian::tree::Tree;
use crate::mondrian::tree::arena::NodeId;

impl JointFunction {
    /// The values for test rows, `n_rows x n_classes`.
    ///
    /// # Errors
    /// A number of features other than in `fit`; an interrupt.
    pub(in crate::mondrian::classification) fn predict(
        &self,
        forest: &Forest<ClassCounts>,
        rows: Rows<'_>,
        run: &Run<'_>,
    ) -> Result<Vec<f64>> {
        let mut values = Vec::with_capacity(rows.n_rows() * (self.n_columns + 1));
        for chunk in walk::predict(forest, rows, run, self)? {
            for row in chunk.chunks_exact(self.n_columns) {
                values.extend(row);
                values.push(-row.iter().sum::<f64>());
            }
        }
        Ok(values)
    }

    /// A tree's share of the function at a node.
    fn mean(&self, tree_index: usize, node: NodeId) -> &[f32] {
        &self.means[tree_index][node.index() * self.n_columns..][..self.n_columns]
    }
}

impl Visitor<ClassCounts> for JointFunction {
    type Chunk = Vec<f64>;

    fn start(&self, n_rows: usize) -> Vec<f64> {
        vec![0.0; n_rows * self.n_columns]
    }

    /// Adds a tree's share: the mean at the last stop that the row comes to for certain, and parts of what each further stop
    /// adds to it.
    fn visit<S: Scalar>(
        &self,
        tree_index: usize,
        _: &Tree<S, ClassCounts>,
        row: usize,
        stops: &[Stop],
        chunk: &mut Vec<f64>,
    ) {
        let values = &mut chunk[row * self.n_columns..(row + 1) * self.n_columns];
        let n_inside = stops.iter().take_while(|stop| stop.branch == Branch::Never).count();
        if let Some(last) = n_inside.checked_sub(1) {
            for (value, &mean) in values.iter_mut().zip(self.mean(tree_index, stops[last].node)) {
                *value += f64::from(mean);
            }
        }
        for (depth, part) in (n_inside..stops.len()).zip(self.clock.parts(&stops[n_inside..])) {
            for (value, &mean) in values.iter_mut().zip(self.mean(tree_index, stops[depth].node)) {
                *value += part * f64::from(mean);
            }
            if depth > 0 {
                for (value, &mean) in values.iter_mut().zip(self.mean(tree_index, stops[depth - 1].node)) {
                    *value -= part * f64::from(mean);
                }
            }
        }
    }
}
