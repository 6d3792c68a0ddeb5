//! Where a point leaves a tree: the path that every posterior's prediction sums over.

use super::cell::Cell;
use super::domain::Domain;
use super::extents::Bounds;
use super::keyed::Key;
use super::statistics::Statistics;
use super::tree::Tree;
use crate::data::Scalar;
use crate::tree::{Kind, NodeId, SiteId};

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

/// Where a point lies with respect to the box on which a tree was drawn.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Place {
    Inside,
    /// In the box of this higher level.
    Outside(u32),
    /// In no box.
    Beyond,
}

/// A point on its way down a tree, one node at a time.
#[derive(Debug)]
pub(crate) struct Walk<'a> {
    /// Of the tree.
    key: Key,
    next: Option<NodeId>,
    after: f64,
    /// Time of the last cut, skipped ones too, and the side that the point went to.
    came_by: (f64, bool),
    shells: Option<Shells<'a>>,
    pub(crate) stops: Vec<Stop>,
}

impl<'a> Walk<'a> {
    pub(crate) fn new() -> Self {
        let key = Key::of_tree(0, 0);
        Self { key, next: None, after: 0.0, came_by: (0.0, false), shells: None, stops: Vec::new() }
    }

    /// Begins the walk of Algorithms 5.8 and 6.5: the whole path, with the rate of branching off at every
    /// stop.
    pub(crate) fn start<S: Scalar, P: Statistics>(&mut self, tree: &Tree<S, P>) {
        self.stops.clear();
        self.next = tree.arena.root();
        self.after = 0.0;
        self.came_by = (0.0, false);
        self.shells = None;
    }

    /// Begins the walk of a point that follows the tree's own cuts, drawn from `key` on the box of
    /// `tree_level`: the last stop is where it branches off or stays.
    pub(crate) fn start_realised<S: Scalar, P: Statistics>(
        &mut self,
        tree: &Tree<S, P>,
        space: &Space<'a, S>,
        (key, tree_level): (Key, u32),
        place: Place,
    ) {
        self.start(tree);
        self.key = key;
        match place {
            Place::Inside => {}
            Place::Outside(level) => self.shells = Some(Shells::new(space.domain, key, tree_level, level)),
            // So far away that the first cut of any process parts it from the rows.
            Place::Beyond => {
                if let Some(root) = self.next {
                    self.branch_off(tree, space.lifetime, root, 0.0);
                }
            }
        }
    }

    /// Goes on by one node; returns whether there is a next one.
    pub(crate) fn step<S: Scalar, P: Statistics, X: Scalar>(
        &mut self,
        tree: &Tree<S, P>,
        space: &Space<'_, S>,
        x: &[X],
        boxes: &mut Boxes<S, X>,
    ) -> bool {
        let Some(node) = self.next else { return false };
        if tree.extents.has_splits() {
            self.step_averaged(tree, space, node, x, boxes);
        } else if tree.arena.is_paused(node) {
            self.enter_paused(tree, space, node, x, boxes);
        } else {
            self.step_realised(tree, space.lifetime, node, |d| x[d as usize].into());
        }
        self.next.is_some()
    }

    fn step_averaged<S: Scalar, P: Statistics, X: Scalar>(
        &mut self,
        tree: &Tree<S, P>,
        space: &Space<'_, S>,
        node: NodeId,
        x: &[X],
        boxes: &mut Boxes<S, X>,
    ) {
        let arena = &tree.arena;
        let kind = arena.kind(node);
        if let Kind::Skip { child, .. } = kind {
            self.next = Some(child);
            return;
        }
        let rate = boxes.excess(tree, space, node, x);
        let branch = if rate > 0.0 { Branch::Rate(rate) } else { Branch::Never };
        self.stop(tree, space.lifetime, node, branch);
        self.next = match kind {
            Kind::Split(left, right) => {
                Some(if arena.goes_right(node, |d| x[d as usize].into()) { right } else { left })
            }
            _ => None,
        };
    }

    /// A paused leaf's cell has no cuts yet. The first that parts the point from the leaf's rows falls
    /// between the point and their box, and so comes at the rate of Algorithm 5.8, from the cut that made
    /// the cell on: none before it parted them.
    fn enter_paused<S: Scalar, P: Statistics, X: Scalar>(
        &mut self,
        tree: &Tree<S, P>,
        space: &Space<'_, S>,
        leaf: NodeId,
        x: &[X],
        boxes: &mut Boxes<S, X>,
    ) {
        let rate = boxes.excess(tree, space, leaf, x);
        let (since, right) = self.came_by;
        if rate > 0.0 {
            let at = since + self.key.of_leaf(since, right).exponential() / rate;
            if at < space.lifetime {
                return self.branch_off(tree, space.lifetime, leaf, at);
            }
        }
        self.stop(tree, space.lifetime, leaf, Branch::Never);
        self.next = None;
    }

    fn step_realised<S: Scalar, P: Statistics>(
        &mut self,
        tree: &Tree<S, P>,
        lifetime: f64,
        node: NodeId,
        value: impl Fn(u32) -> f64 + Copy,
    ) {
        let arena = &tree.arena;
        if let Some(shells) = &mut self.shells
            && let Some(at) = shells.separates(arena.time(node).min(lifetime), value)
        {
            return self.branch_off(tree, lifetime, node, at);
        }
        let right = || arena.goes_right(node, value);
        let right = match arena.kind(node) {
            Kind::Leaf => {
                self.stop(tree, lifetime, node, Branch::Never);
                return self.next = None;
            }
            Kind::Skip { child, right: side } => {
                if side != right() {
                    return self.branch_off(tree, lifetime, node, arena.time(node));
                }
                self.next = Some(child);
                side
            }
            Kind::Split(left_child, right_child) => {
                self.stop(tree, lifetime, node, Branch::Never);
                let right = right();
                self.next = Some(if right { right_child } else { left_child });
                right
            }
        };
        self.came_by = (arena.time(node), right);
        if let Some(shells) = &mut self.shells {
            shells.cell.descend(right);
        }
    }

    /// Ends the walk above the split or leaf that a node is or leads to.
    fn branch_off<S: Scalar, P: Statistics>(
        &mut self,
        tree: &Tree<S, P>,
        lifetime: f64,
        node: NodeId,
        at: f64,
    ) {
        self.stop(tree, lifetime, tree.arena.below_skips(node), Branch::At(at));
        self.next = None;
    }

    fn stop<S: Scalar, P: Statistics>(
        &mut self,
        tree: &Tree<S, P>,
        lifetime: f64,
        node: NodeId,
        branch: Branch,
    ) {
        let arena = &tree.arena;
        let time = if arena.is_leaf(node) { lifetime } else { arena.time(node) };
        self.stops.push(Stop { node, site: arena.site(node), after: self.after, time, branch });
        self.after = time;
    }
}

/// What the boxes are compared with, and room to make some.
#[derive(Debug)]
pub(crate) struct Boxes<S, X> {
    /// Rates of the features in the points' type.
    rates: Vec<X>,
    few: Bounds<S>,
}

impl<S: Scalar, X: Scalar> Boxes<S, X> {
    pub(crate) fn new(domain: &Domain) -> Self {
        let rates = domain.rates().iter().map(|&rate| X::of(rate)).collect();
        Self { rates, few: Bounds::new() }
    }

    fn excess<P: Statistics>(
        &mut self,
        tree: &Tree<S, P>,
        space: &Space<'_, S>,
        node: NodeId,
        x: &[X],
    ) -> f64 {
        tree.extents.excess(&tree.arena, node, x, &self.rates, space.table, &mut self.few)
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
