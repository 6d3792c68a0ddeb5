//! What a posterior keeps of the leaves of trees without rows.

use crate::control::Run;
use crate::data::Scalar;
use crate::error::Result;
use crate::mondrian::cells::statistics::CellPosterior;
use crate::mondrian::cells::summary::Words;
use crate::mondrian::tree::Tree;
use crate::mondrian::tree::arena::NodeId;

/// A posterior whose leaves can be written down.
pub(crate) trait FrozenPosterior: CellPosterior {
    /// Appends what a leaf says; its rows have no weights.
    fn write_leaf(&self, statistics: &Self::Statistics, leaf: NodeId, words: &mut Vec<u64>);

    /// Makes a leaf of so many rows, at least 1, say what [`write_leaf`](Self::write_leaf) appended.
    ///
    /// # Errors
    /// Words that end early, or say nothing that a leaf can.
    fn read_leaf(
        &self,
        statistics: &mut Self::Statistics,
        leaf: NodeId,
        n_rows: u32,
        words: &mut Words<'_>,
    ) -> Result<()>;

    /// Computes what predictions need beside statistics.
    ///
    /// # Errors
    /// An interrupt.
    fn complete<S: Scalar>(
        &mut self,
        trees: &[Tree<S, Self::Statistics>],
        lifetime: f64,
        run: &Run<'_>,
    ) -> Result<()>;

    /// Bytes that it keeps of a tree beside statistics.
    fn bytes_of(&self, n_indices: usize) -> usize;
}
