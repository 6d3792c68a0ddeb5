//! Which nodes store their boxes: those of other nodes are read off their rows when they are needed.

use crate::mondrian::tree::arena::{Arena, NodeId};

/// In trees of rows, a node of at most so many rows never stores its box.
pub(crate) const FEW: usize = 16;

/// Which nodes store boxes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BoxRule {
    /// Whether splits do; leaves always do.
    pub(crate) splits: bool,
    small: usize,
}

impl BoxRule {
    /// Of a tree without rows, whose leaves are given their boxes.
    pub(crate) const WITHOUT_ROWS: Self = Self { splits: false, small: 0 };

    /// With larger leaves there are fewer nodes for which the same rows are read, so that more of them can do without a box.
    pub(crate) fn new(splits: bool, min_samples_split: usize) -> Self {
        const MANY: usize = 64;
        let small = min_samples_split.saturating_sub(1).saturating_mul(FEW).clamp(FEW, MANY);
        Self { splits, small }
    }

    /// Of trees whose cells are shared out. Rows of a stub cannot be read, so that few nodes do without.
    pub(crate) fn of_cells(splits: bool) -> Self {
        Self { splits, small: FEW }
    }

    /// A node of at most so many rows stores no box.
    pub(super) fn small(self) -> usize {
        self.small
    }

    /// Whether a node is to have a box.
    pub(super) fn keeps(self, arena: &Arena, node: NodeId) -> bool {
        (self.splits || node.is_leaf()) && arena.n_rows(node) > self.small
    }

    /// Whether a node whose number of rows changed from `before` to `now` gets or loses its box.
    pub(super) fn is_due(self, before: usize, now: usize) -> bool {
        (before > self.small) != (now > self.small)
    }
}
