//! What successive test rows share of their paths.

use crate::mondrian::prediction::stop::Stop;
use crate::mondrian::tree::arena::NodeId;

/// What was computed for the stops of the last test row, by depth: test rows come in an order in which successive ones
/// share most stops.
#[derive(Debug, Clone)]
pub(crate) struct SharedPath<T> {
    stops: Vec<(usize, NodeId, T)>,
}

impl<T> Default for SharedPath<T> {
    fn default() -> Self {
        Self { stops: Vec::new() }
    }
}

impl<T: Copy> SharedPath<T> {
    /// What belongs to the last of some stops, which begin at the root of a tree, given by its number. What the last test row
    /// left is known; the rest is made, each stop's given what belongs to the stop above.
    pub(crate) fn follow(
        &mut self,
        tree: usize,
        stops: &[Stop],
        mut make: impl FnMut(usize, Option<T>) -> T,
    ) -> Option<T> {
        // A node of the last row's path has that path's stops above it, and belongs to one tree.
        let mut known = stops.len();
        while known > 0 && !self.holds(known - 1, (tree, stops[known - 1].node)) {
            known -= 1;
        }
        for (depth, stop) in stops.iter().enumerate().skip(known) {
            self.at(depth, (tree, stop.node), |before| make(depth, before));
        }
        self.get(stops.len().checked_sub(1)?)
    }

    /// What is known of a depth.
    pub(crate) fn get(&self, depth: usize) -> Option<T> {
        self.stops.get(depth).map(|&(_, _, value)| value)
    }

    fn holds(&self, depth: usize, at: (usize, NodeId)) -> bool {
        self.stops.get(depth).is_some_and(|&(tree, node, _)| (tree, node) == at)
    }

    /// What belongs to a node of a tree, given by its number, as the last test row left it; or else it is made, given
    /// what belongs to the stop above. Depths come in order.
    pub(crate) fn at(
        &mut self,
        depth: usize,
        (tree, node): (usize, NodeId),
        make: impl FnOnce(Option<T>) -> T,
    ) -> T {
        if !self.holds(depth, (tree, node)) {
            self.stops.truncate(depth);
            let value = make(self.stops.last().map(|&(_, _, value)| value));
            self.stops.push((tree, node, value));
        }
        self.stops[depth].2
    }
}
