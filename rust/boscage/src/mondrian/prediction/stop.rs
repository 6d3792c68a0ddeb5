//! A node on a test row's way down a tree, and where the row may branch off above it.

use crate::mondrian::tree::arena::NodeId;
use crate::random::keyed::Key;

/// A split or leaf on a test row's way from the root.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stop {
    pub(crate) node: NodeId,
    /// Split time of the stop before; 0 at the root.
    pub(crate) after: f64,
    /// The node's split time; a leaf's is the lifetime.
    pub(crate) time: f64,
    /// Where, between `after` and `time`, the test row may branch off above the node.
    pub(crate) branch: Branch,
}

/// Number of the first stops above which a test row surely does not branch off. Boxes are nested: the others come last.
pub(crate) fn n_inside(stops: &[Stop]) -> usize {
    stops.iter().rposition(|stop| stop.branch == Branch::Never).map_or(0, |last| last + 1)
}

impl Stop {
    /// Sets the rate at which the test row branches off above the node; it is made finite.
    pub(crate) fn set_rate(&mut self, rate: f64) {
        self.branch = if rate > 0.0 { Branch::Rate(rate.min(f64::MAX)) } else { Branch::Never };
    }

    /// Where a test row branches off above a paused leaf, which is on one side of the split above.
    ///
    /// The cuts of a paused leaf's cell are not drawn. The first that separates a test row from the leaf's rows falls
    /// between the row and their box, and so comes at the branch rate of Algorithm 5.8, counted from the cut that made the
    /// cell.
    pub(crate) fn paused(&self, key: Key, right: bool, rate: f64, lifetime: f64) -> Branch {
        if rate > 0.0 {
            let at = self.after + key.of_leaf(self.after, right).exponential() / rate;
            if at < lifetime {
                return Branch::At(at);
            }
        }
        Branch::Never
    }
}

/// How a test row can branch off between two nodes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Branch {
    /// It lies in the node's box.
    Never,
    /// At a random time, exponential of this rate, if that comes before the node's own
    /// (`p_j^s(x) = 1 - exp(-rate (time - after))`, thesis section 5.5.3).
    Rate(f64),
    /// At this time: the tree's own process has a cut there.
    At(f64),
}
