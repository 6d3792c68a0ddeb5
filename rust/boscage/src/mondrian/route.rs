//! Where a point leaves a tree: the path that every posterior's prediction sums over.

use super::cell::Cell;
use super::domain::Domain;
use super::keyed::Key;
use super::outside::Outside;
use super::statistics::Statistics;
use super::tree::Tree;
use crate::data::Scalar;
use crate::tree::NodeId;

/// A split or leaf on a point's way from the root.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stop {
    pub(crate) node: NodeId,
    /// Split time of the stop before; 0 at the root.
    pub(crate) after: f64,
    /// The node's split time; a leaf's is the lifetime.
    pub(crate) time: f64,
    /// Where, between `after` and `time`, the point may branch off above the node.
    pub(crate) branch: Branch,
}

impl Stop {
    /// Says at what rate the point branches off above the node.
    pub(crate) fn set_rate(&mut self, rate: f64) {
        self.branch = if rate > 0.0 { Branch::Rate(rate) } else { Branch::Never };
    }
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

/// Where a point lies with respect to the box on which a tree was drawn.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Place {
    Inside,
    /// In the box of this higher level.
    Outside(u32),
    /// In no box.
    Beyond,
}

/// A point's way down a tree.
#[derive(Debug)]
pub(crate) struct Walk<'a, S> {
    space: Space<'a, S>,
    outside: Outside<S>,
    after: f64,
    pub(crate) stops: Vec<Stop>,
}

impl<'a, S: Scalar> Walk<'a, S> {
    pub(crate) fn new(space: Space<'a, S>) -> Self {
        Self { space, outside: Outside::new(space.domain.rates()), after: 0.0, stops: Vec::new() }
    }

    /// The walk of Algorithms 5.8 and 6.5: the whole path, with the rate of branching off at every stop.
    pub(crate) fn averaged<P: Statistics, X: Scalar>(&mut self, tree: &Tree<S, P>, x: &[X]) {
        self.start();
        let Some(mut node) = tree.arena.root() else { return };
        while !node.is_leaf() {
            self.stop(tree, node, Branch::Never);
            node = tree.arena.follow(node, |d| x[d as usize].into()).1;
        }
        self.stop(tree, node, Branch::Never);
        self.outside.of_path(tree, self.space.table, x, &mut self.stops);
    }

    /// The walk of a point that follows the tree's own cuts, drawn from `key` on the box of `tree_level`: the
    /// last stop is where it branches off or stays.
    pub(crate) fn realised<P: Statistics, X: Scalar>(
        &mut self,
        tree: &Tree<S, P>,
        (key, tree_level): (Key, u32),
        place: Place,
        x: &[X],
    ) {
        self.start();
        let Some(mut node) = tree.arena.root() else { return };
        let mut shells = match place {
            Place::Inside => None,
            Place::Outside(level) => Some(Shells::new(self.space.domain, key, tree_level, level)),
            // So far away that the first cut of any process parts it from the rows.
            Place::Beyond => return self.stop(tree, node, Branch::At(0.0)),
        };
        let value = |d: u32| x[d as usize].into();
        // Time of the last cut, and the side that the point went to.
        let mut came_by = (0.0, false);
        loop {
            if tree.arena.is_paused(node) {
                return self.enter_paused(tree, node, key, came_by, x);
            }
            for skip in tree.arena.skips(node) {
                if let Some(at) = shells.as_mut().and_then(|shells| shells.separates(skip.time, value)) {
                    return self.stop(tree, node, Branch::At(at));
                }
                if (value(skip.feature) > skip.threshold) != skip.right {
                    return self.stop(tree, node, Branch::At(skip.time));
                }
                if let Some(shells) = &mut shells {
                    shells.cell.descend(skip.right);
                }
            }
            let time = tree.arena.time(node).min(self.space.lifetime);
            if let Some(at) = shells.as_mut().and_then(|shells| shells.separates(time, value)) {
                return self.stop(tree, node, Branch::At(at));
            }
            self.stop(tree, node, Branch::Never);
            if node.is_leaf() {
                return;
            }
            let (right, child) = tree.arena.follow(node, value);
            if let Some(shells) = &mut shells {
                shells.cell.descend(right);
            }
            came_by = (time, right);
            node = child;
        }
    }

    /// A paused leaf's cell has no cuts yet. The first that parts the point from the leaf's rows falls
    /// between the point and their box, and so comes at the rate of Algorithm 5.8, from the cut that made
    /// the cell on: none before it parted them.
    fn enter_paused<P: Statistics, X: Scalar>(
        &mut self,
        tree: &Tree<S, P>,
        leaf: NodeId,
        key: Key,
        (since, right): (f64, bool),
        x: &[X],
    ) {
        let rate = self.outside.of_leaf(tree, self.space.table, leaf, x);
        if rate > 0.0 {
            let at = since + key.of_leaf(since, right).exponential() / rate;
            if at < self.space.lifetime {
                return self.stop(tree, leaf, Branch::At(at));
            }
        }
        self.stop(tree, leaf, Branch::Never);
    }

    fn start(&mut self) {
        self.stops.clear();
        self.after = 0.0;
    }

    fn stop<P: Statistics>(&mut self, tree: &Tree<S, P>, node: NodeId, branch: Branch) {
        let time = if node.is_leaf() { self.space.lifetime } else { tree.arena.time(node) };
        self.stops.push(Stop { node, after: self.after, time, branch });
        self.after = time;
    }
}

/// The cuts of the shells that the tree was not drawn on; all its rows lie on their inner side.
#[derive(Debug)]
struct Shells<'a> {
    domain: &'a Domain,
    cell: Cell<'a>,
    tree_level: u32,
}

impl<'a> Shells<'a> {
    fn new(domain: &'a Domain, key: Key, tree_level: u32, level: u32) -> Self {
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
