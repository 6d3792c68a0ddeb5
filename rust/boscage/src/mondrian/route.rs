//! Where a point leaves a tree: the path that every posterior's prediction sums over.

use super::cell::Cell;
use super::domain::Domain;
use super::extents::{Bounds, Extents};
use super::keyed::Key;
use super::statistics::Statistics;
use super::tree::Tree;
use crate::data::Scalar;
use crate::tree::{Kind, Link, NodeId, SiteId};

/// A split or leaf on a point's way from the root.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stop {
    pub(crate) node: NodeId,
    pub(crate) site: SiteId,
    /// Split time of the stop before; 0 at the root.
    pub(crate) after: f64,
    /// The node's split time; a leaf's is the lifetime.
    pub(crate) time: f64,
    /// Where, between `after` and `time`, the point may branch off above the node.
    pub(crate) branch: Branch,
}

/// How a point can branch off between two nodes.
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

/// What a walk needs to know besides the tree.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Space<'a, S> {
    pub(crate) domain: &'a Domain,
    pub(crate) lifetime: f64,
    pub(crate) table: &'a [S],
}

/// The tree's own process, for points that lie outside the box on which the tree was drawn.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Outside {
    pub(crate) key: Key,
    /// Level of the tree and of the point.
    pub(crate) tree_level: u32,
    pub(crate) level: u32,
}

/// The stops of Algorithms 5.8 and 6.5: the whole path, with the rate of branching off at every stop.
pub(crate) fn averaged<S: Scalar, P: Statistics, X: Scalar>(
    tree: &Tree<S, P>,
    extents: &Extents<S>,
    space: &Space<'_, S>,
    (x, rates): (&[X], &[X]),
    bounds: &mut Bounds<S>,
    stops: &mut Vec<Stop>,
) {
    stops.clear();
    let arena = &tree.arena;
    let mut next = arena.root();
    let mut after = 0.0;
    while let Some(node) = next {
        let node = arena.below_skips(node);
        let leaf = arena.is_leaf(node);
        let time = if leaf { space.lifetime } else { arena.time(node) };
        let rate = extents.excess(arena, node, x, rates, space.table, bounds);
        let branch = if rate > 0.0 { Branch::Rate(rate) } else { Branch::Never };
        stops.push(Stop { node, site: arena.site(node), after, time, branch });
        if leaf {
            return;
        }
        let right = arena.goes_right(node, |d| x[d as usize].into());
        next = arena.get(Link::Child { of: node, right });
        after = time;
    }
}

/// The stops of a point that follows the tree's own cuts: the last one is where it branches off or stays.
pub(crate) fn realised<S: Scalar, P: Statistics, X: Scalar>(
    tree: &Tree<S, P>,
    space: &Space<'_, S>,
    outside: Option<Outside>,
    x: &[X],
    stops: &mut Vec<Stop>,
) {
    stops.clear();
    let arena = &tree.arena;
    let Some(mut node) = arena.root() else { return };
    let value = |d: u32| x[d as usize].into();
    let mut shells = outside.map(|outside| Shells::new(space.domain, outside));
    let mut after = 0.0;
    loop {
        let time = arena.time(node);
        // A paused leaf's cell is not cut: it takes in whatever falls into it.
        if let Some(shells) = &mut shells
            && !arena.is_paused(node)
            && let Some(at) = shells.separates(time.min(space.lifetime), value)
        {
            return branch_off(tree, space, node, after, at, stops);
        }
        let right = match arena.kind(node) {
            Kind::Leaf => {
                let (site, time) = (arena.site(node), space.lifetime);
                stops.push(Stop { node, site, after, time, branch: Branch::Never });
                return;
            }
            Kind::Skip { child, right } => {
                if arena.goes_right(node, value) != right {
                    return branch_off(tree, space, child, after, time, stops);
                }
                node = child;
                right
            }
            Kind::Split(left_child, right_child) => {
                stops.push(Stop { node, site: arena.site(node), after, time, branch: Branch::Never });
                after = time;
                let right = arena.goes_right(node, value);
                node = if right { right_child } else { left_child };
                right
            }
        };
        if let Some(shells) = &mut shells {
            shells.cell.descend(right);
        }
    }
}

fn branch_off<S: Scalar, P: Statistics>(
    tree: &Tree<S, P>,
    space: &Space<'_, S>,
    node: NodeId,
    after: f64,
    at: f64,
    stops: &mut Vec<Stop>,
) {
    let node = tree.arena.below_skips(node);
    let time = if tree.arena.is_leaf(node) { space.lifetime } else { tree.arena.time(node) };
    stops.push(Stop { node, site: tree.arena.site(node), after, time, branch: Branch::At(at) });
}

/// The cuts of the shells that the tree was not drawn on; all its rows lie on their inner side.
struct Shells<'a> {
    domain: &'a Domain,
    cell: Cell<'a>,
    tree_level: u32,
}

impl<'a> Shells<'a> {
    fn new(domain: &'a Domain, Outside { key, tree_level, level }: Outside) -> Self {
        Self { domain, cell: Cell::root(domain, level, key), tree_level }
    }

    /// The time before `end` at which a cut of an outer shell parts the point from the tree's rows. The
    /// tree's own next cut comes at `end`, so all cuts before it are the shells'.
    fn separates(&mut self, end: f64, value: impl Fn(u32) -> f64) -> Option<f64> {
        while let Some(cut) = self.cell.next_cut(end) {
            let right = value(cut.feature) > cut.threshold;
            let (low, _) = self.domain.bounds(self.tree_level as usize, cut.feature as usize);
            let rows_right = cut.threshold < low;
            if right != rows_right {
                return Some(cut.time);
            }
            self.cell.descend(rows_right);
        }
        None
    }
}
