//! The statistics that a posterior keeps at every node, and how a tree updates them.

use std::fmt::Debug;

use crate::data::{RowId, RowTargets};
use crate::mondrian::tree::arena::NodeId;

/// Sufficient statistics of the targets at every node of one tree: a function of the node's rows alone, not
/// of the order in which they came. A leaf's are made from its rows, a split's from its children's.
pub(crate) trait Statistics: Clone + Debug + Default + Send + Sync {
    /// A row's target.
    type Target: Copy + Debug + PartialEq + Send + Sync;

    /// Sets a leaf's statistics from all its rows.
    fn set_leaf(&mut self, leaf: NodeId, rows: &[RowId], targets: RowTargets<'_, Self::Target>);

    /// Tries to update a leaf to which `added` rows came, without reading the others; `n_rows` counts all.
    /// Returns whether its parent's statistics may have changed; `None` if [`set_leaf`](Self::set_leaf) is needed.
    fn grow_leaf(
        &mut self,
        leaf: NodeId,
        n_rows: usize,
        added: &[RowId],
        targets: RowTargets<'_, Self::Target>,
    ) -> Option<bool>;

    /// The same for a leaf that `removed` rows left.
    fn shrink_leaf(
        &mut self,
        leaf: NodeId,
        n_rows: usize,
        removed: &[RowId],
        targets: RowTargets<'_, Self::Target>,
    ) -> Option<bool>;

    /// Sets a split's statistics from its children's and their numbers of rows; returns whether its
    /// parent's may have changed.
    fn join(&mut self, split: NodeId, left: (NodeId, usize), right: (NodeId, usize)) -> bool;

    /// Whether all targets of a node are the same.
    fn is_uniform(&self, node: NodeId) -> bool;

    /// Forgets what a freed node held.
    fn clear(&mut self, node: NodeId);

    /// Forgets all nodes. Memory may be kept for others.
    fn reset(&mut self) {
        *self = Self::default();
    }

    /// Reads all of it into the cache.
    fn fetch_all(&self);

    /// Bytes held.
    fn bytes(&self) -> usize;
}
