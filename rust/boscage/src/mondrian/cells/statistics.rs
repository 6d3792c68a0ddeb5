//! What the owner of a cell tells the other owners about the statistics at the root of its subtree.

use crate::error::Result;
use crate::mondrian::cells::summary::Words;
use crate::mondrian::model::NodePosterior;
use crate::mondrian::tree::arena::NodeId;
use crate::mondrian::tree::statistics::Statistics;

/// Statistics of which [`join`](Statistics::join) reads only a part at a split's children.
pub(crate) trait CellStatistics: Statistics {
    /// That part of a node.
    type Root;

    /// Appends that part of a node.
    fn summarise(&self, node: NodeId, words: &mut Vec<u64>);

    /// The part that [`summarise`](Self::summarise) appended.
    ///
    /// # Errors
    /// Words that end early, or are no such part.
    fn read(words: &mut Words<'_>) -> Result<Self::Root>;

    /// Makes a stub say the same to the split above it.
    fn set_stub(&mut self, stub: NodeId, root: Self::Root);
}

/// A posterior whose statistics can be summarised.
pub(crate) trait CellPosterior: NodePosterior<Statistics: CellStatistics> + Sync {}

impl<P: NodePosterior<Statistics: CellStatistics> + Sync> CellPosterior for P {}
