//! How a posterior collects its prediction from the stops of each row.

use crate::data::Scalar;
use crate::mondrian::prediction::stop::Stop;
use crate::mondrian::tree::Tree;
use crate::mondrian::tree::arena::NodeId;
use crate::mondrian::tree::statistics::Statistics;

/// Gathers predictions from the stops of rows, chunk by chunk.
pub(crate) trait Visitor<P: Statistics>: Sync {
    /// What is gathered for some rows.
    type Chunk: Send;

    /// Nothing gathered yet, for `n_rows` rows.
    fn start(&self, n_rows: usize) -> Self::Chunk;

    /// Adds one row's stops in one tree; trees come in order.
    fn visit<S: Scalar>(
        &self,
        tree_index: usize,
        tree: &Tree<S, P>,
        row: usize,
        stops: &[Stop],
        chunk: &mut Self::Chunk,
    );

    /// Is told which nodes changed when a left-out row was inserted again, parents first.
    fn restored<S: Scalar>(
        &self,
        _tree_index: usize,
        _tree: &Tree<S, P>,
        _changed: &[NodeId],
        _chunk: &mut Self::Chunk,
    ) {
    }
}
