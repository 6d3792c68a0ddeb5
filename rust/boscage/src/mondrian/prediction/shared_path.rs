//! What successive test rows share of their paths.

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
    /// What belongs to a node of a tree, given by its number, as the last test row left it; or else it is made, given
    /// what belongs to the stop above. Depths come in order.
    pub(crate) fn at(
        &mut self,
        depth: usize,
        (tree, node): (usize, NodeId),
        make: impl FnOnce(Option<T>) -> T,
    ) -> T {
        match self.stops.get(depth) {
            Some(&(of, passed, value)) if passed == node && of == tree => value,
            _ => {
                self.stops.truncate(depth);
                let value = make(self.stops.last().map(|&(_, _, value)| value));
                self.stops.push((tree, node, value));
                value
            }
        }
    }
}
