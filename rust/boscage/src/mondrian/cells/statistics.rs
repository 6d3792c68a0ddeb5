//! What an owner of cells tells others of what a posterior says at the root of a subtree.

use crate::control::Run;
use crate::data::Scalar;
use crate::error::Result;
use crate::mondrian::cells::summary::Words;
use crate::mondrian::model::NodePosterior;
use crate::mondrian::tree::Tree;
use crate::mondrian::tree::arena::NodeId;
use crate::mondrian::tree::statistics::Statistics;

/// Statistics whose [`join`](Statistics::join) needs only a part of what they are at a split's children.
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

/// The numbers that a posterior tells of the root of a subtree, besides statistics.
pub(crate) const N_TOLD: usize = 3;

/// A posterior of which a part at the roots of subtrees suffices for the nodes above, and for those in other subtrees.
pub(crate) trait CellPosterior: NodePosterior<Statistics: CellStatistics> + Sync {
    /// That part of some subtrees of a tree, given by their roots.
    fn tell<S: Scalar>(
        &self,
        tree: &Tree<S, Self::Statistics>,
        roots: &[NodeId],
        lifetime: f64,
    ) -> Vec<[f64; N_TOLD]>;

    /// Takes what others have told of the subtrees that stubs stand for, by tree.
    ///
    /// # Errors
    /// An interrupt.
    fn hear<S: Scalar>(
        &mut self,
        trees: &[Tree<S, Self::Statistics>],
        lifetime: f64,
        told: &[Vec<(NodeId, [f64; N_TOLD])>],
        run: &Run<'_>,
    ) -> Result<()>;
}
