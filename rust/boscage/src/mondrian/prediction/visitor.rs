//! What a posterior does with the stops of rows.

use crate::data::Scalar;
use crate::mondrian::prediction::stop::Stop;
use crate::mondrian::tree::Tree;
use crate::mondrian::tree::arena::NodeId;
use crate::mondrian::tree::statistics::Statistics;

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
