//! The path of test rows down one tree: the stops over which the predictions of every posterior sum.

use crate::data::RowId;
use crate::data::{Scalar, Table};
use crate::mondrian::prediction::branch_rate::BranchRate;
use crate::mondrian::prediction::stop::{Branch, Stop};
use crate::mondrian::process::cell::Cell;
use crate::mondrian::process::domain::Domain;
use crate::mondrian::tree::Tree;
use crate::mondrian::tree::arena::NodeId;
use crate::mondrian::tree::process::partition;
use crate::mondrian::tree::statistics::Statistics;
use crate::random::keyed::Key;

/// What a walk needs besides the tree.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Space<'a, S> {
    pub(crate) domain: &'a Domain,
    pub(crate) lifetime: f64,
    pub(crate) table: Table<'a, S>,
}

/// Test rows on their way down trees, those that go the same way together.
#[derive(Debug)]
pub(crate) struct Walk<'a, S, X> {
    space: Space<'a, S>,
    test_rows: Table<'a, X>,
    branch_rate: BranchRate<'a, S>,
    /// The path to where the walk is.
    stops: Vec<Stop>,
    groups: Vec<Group>,
    buffer: Vec<RowId>,
}

/// A range of the test rows, which reach a node below `depth` stops.
#[derive(Debug, Clone, Copy)]
struct Group {
    node: NodeId,
    start: usize,
    end: usize,
    depth: usize,
    /// The side of the split above that they went to.
    right: bool,
    /// Where the node's rows begin among those that were gathered.
    first: Option<usize>,
}

impl<'a, S: Scalar, X: Scalar> Walk<'a, S, X> {
    pub(crate) fn new(space: Space<'a, S>, test_rows: Table<'a, X>) -> Self {
        let branch_rate = BranchRate::new(space.domain.rates(), space.table);
        Self { space, test_rows, branch_rate, stops: Vec::new(), groups: Vec::new(), buffer: Vec::new() }
    }

    /// The walk of Algorithm 5.8 and Algorithm 6.5: calls `visit` with every test row's whole path and the branch
    /// rate at every stop. Test rows are put in the order of their leaves.
    pub(crate) fn averaged<P: Statistics>(
        &mut self,
        tree: &Tree<S, P>,
        test_rows: &mut [RowId],
        visit: &mut dyn FnMut(RowId, &[Stop]),
    ) {
        self.start(tree, test_rows, visit);
        while let Some(mut group) = self.next_group() {
            self.come(tree, &mut group);
            if let &mut [test_row] = &mut test_rows[group.start..group.end] {
                self.descend(tree, &mut group, test_row);
            } else if !group.node.is_leaf() {
                self.part(tree, group, test_rows);
                continue;
            }
            for &test_row in &test_rows[group.start..group.end] {
                let x = self.test_rows.row(test_row);
                self.branch_rate.of_path(tree, group.first.unwrap_or(0), x, &mut self.stops);
                visit(test_row, &self.stops);
                let forks = self.stops.iter_mut().rev();
                for stop in forks.take_while(|stop| stop.branch != Branch::Never) {
                    stop.branch = Branch::Never;
                }
            }
        }
    }

    /// The walk of test rows that follow the tree's own cuts, drawn from `key`: they branch off above the
    /// last stop, or stay. `shells` are for a test row outside the box on which the tree was drawn; it goes
    /// alone.
    pub(crate) fn realised<P: Statistics>(
        &mut self,
        tree: &Tree<S, P>,
        key: Key,
        mut shells: Option<Shells<'_>>,
        test_rows: &mut [RowId],
        visit: &mut dyn FnMut(RowId, &[Stop]),
    ) {
        self.start(tree, test_rows, visit);
        while let Some(mut group) = self.next_group() {
            let node = group.node;
            if tree.arena.is_paused(node) {
                self.gather(tree, &mut group);
                for &test_row in &test_rows[group.start..group.end] {
                    let x = self.test_rows.row(test_row);
                    let rate = self.branch_rate.of_leaf(tree, (node, 0), x);
                    let branch = self.stop_at(tree, node, Branch::Never).paused(
                        key,
                        group.right,
                        rate,
                        self.space.lifetime,
                    );
                    self.end(tree, node, branch, &[test_row], visit);
                }
                continue;
            }
            self.pass_skips(tree, &mut group, &mut shells, test_rows, visit);
            if group.start == group.end {
                continue;
            }
            let here = &test_rows[group.start..group.end];
            let time = tree.arena.time(node).min(self.space.lifetime);
            if let Some(at) = self.shells_separate(&mut shells, time, here[0]) {
                self.end(tree, node, Branch::At(at), here, visit);
                continue;
            }
            if node.is_leaf() {
                self.end(tree, node, Branch::Never, here, visit);
                continue;
            }
            self.stop(tree, node, Branch::Never);
            let right = self.part(tree, group, test_rows);
            if let Some(shells) = &mut shells {
                shells.cell.descend(right);
            }
        }
    }

    /// The only stop of a test row so far away that the first cut of any process separates it from the
    /// rows.
    pub(crate) fn beyond<P: Statistics>(
        &mut self,
        tree: &Tree<S, P>,
        test_row: RowId,
        visit: &mut dyn FnMut(RowId, &[Stop]),
    ) {
        self.stops.clear();
        match tree.arena.root() {
            Some(root) => self.end(tree, root, Branch::At(0.0), &[test_row], visit),
            None => visit(test_row, &[]),
        }
    }

    /// Ends the walk of test rows that a skipped cut above the group's node separates from the node's rows.
    fn pass_skips<P: Statistics>(
        &mut self,
        tree: &Tree<S, P>,
        group: &mut Group,
        shells: &mut Option<Shells<'_>>,
        test_rows: &mut [RowId],
        visit: &mut dyn FnMut(RowId, &[Stop]),
    ) {
        for skip in tree.arena.skips(group.node) {
            let here = &mut test_rows[group.start..group.end];
            if here.is_empty() {
                return;
            }
            if let Some(at) = self.shells_separate(shells, skip.time, here[0]) {
                self.end(tree, group.node, Branch::At(at), here, visit);
                group.end = group.start;
                return;
            }
            let stays = |x: X| skip.keeps(x.into());
            if here.iter().any(|&test_row| !stays(self.test_rows.row(test_row)[skip.coordinate as usize])) {
                let middle = group.start + partition(here, &mut self.buffer, &self.test_rows, skip.cut());
                let (left, right) = (group.start..middle, middle..group.end);
                let (stay, leave) = if skip.right { (right, left) } else { (left, right) };
                self.end(tree, group.node, Branch::At(skip.time), &test_rows[leave], visit);
                (group.start, group.end) = (stay.start, stay.end);
            }
            if let Some(shells) = shells {
                shells.cell.descend(skip.right);
            }
        }
    }

    /// The time before `end` at which an outer shell's cut separates a test row from the rows.
    fn shells_separate(&self, shells: &mut Option<Shells<'_>>, end: f64, test_row: RowId) -> Option<f64> {
        let x = self.test_rows.row(test_row);
        shells.as_mut()?.separates(end, |d| x[d as usize].into())
    }

    /// Adds a stop for a split or leaf that test rows reached.
    fn come<P: Statistics>(&mut self, tree: &Tree<S, P>, group: &mut Group) {
        self.stop(tree, group.node, Branch::Never);
        self.gather(tree, group);
    }

    /// Gathers a node's rows if it has no box and those of a node above have not been gathered.
    fn gather<P: Statistics>(&mut self, tree: &Tree<S, P>, group: &mut Group) {
        if group.first.is_none() && !tree.boxes.keeps(&tree.arena, group.node) {
            self.branch_rate.gather(tree, group.node);
            group.first = Some(0);
        }
    }

    /// Takes a single test row from a node to its leaf.
    fn descend<P: Statistics>(&mut self, tree: &Tree<S, P>, group: &mut Group, test_row: RowId) {
        let x = self.test_rows.row(test_row);
        while !group.node.is_leaf() {
            let (right, node) = tree.arena.follow(group.node, |d| x[d as usize].into());
            group.first = first_of(tree, group, right);
            group.node = node;
            self.come(tree, group);
        }
    }

    /// Sends test rows to the two sides of a split; returns the side of the group that is walked next.
    fn part<P: Statistics>(&mut self, tree: &Tree<S, P>, group: Group, test_rows: &mut [RowId]) -> bool {
        let (depth, cut) = (self.stops.len(), tree.arena.cut(group.node));
        let here = &mut test_rows[group.start..group.end];
        let middle = group.start
            + match here {
                &mut [test_row] => {
                    usize::from(!cut.goes_right(self.test_rows.row(test_row)[cut.coordinate as usize].into()))
                }
                _ => partition(here, &mut self.buffer, &self.test_rows, cut),
            };
        let mut last = false;
        for (right, start, end) in [(true, middle, group.end), (false, group.start, middle)] {
            if start < end {
                let node = tree.arena.child(group.node, right);
                let first = first_of(tree, &group, right);
                self.groups.push(Group { node, start, end, depth, right, first });
                last = right;
            }
        }
        last
    }

    /// Starts test rows at the root; in a tree without rows their paths have no stop.
    fn start<P: Statistics>(
        &mut self,
        tree: &Tree<S, P>,
        test_rows: &[RowId],
        visit: &mut dyn FnMut(RowId, &[Stop]),
    ) {
        if self.buffer.len() < test_rows.len() {
            self.buffer.resize(test_rows.len(), 0);
        }
        match tree.arena.root() {
            Some(node) if !test_rows.is_empty() => {
                let (end, first) = (test_rows.len(), None);
                self.groups.push(Group { node, start: 0, end, depth: 0, right: false, first });
            }
            _ => {
                for &test_row in test_rows {
                    visit(test_row, &[]);
                }
            }
        }
    }

    fn next_group(&mut self) -> Option<Group> {
        let group = self.groups.pop()?;
        self.stops.truncate(group.depth);
        Some(group)
    }

    /// The time of the last stop.
    fn after(&self) -> f64 {
        self.stops.last().map_or(0.0, |stop| stop.time)
    }

    fn stop<P: Statistics>(&mut self, tree: &Tree<S, P>, node: NodeId, branch: Branch) {
        self.stops.push(self.stop_at(tree, node, branch));
    }

    fn stop_at<P: Statistics>(&self, tree: &Tree<S, P>, node: NodeId, branch: Branch) -> Stop {
        let time = if node.is_leaf() { self.space.lifetime } else { tree.arena.time(node) };
        Stop { node, after: self.after(), time, branch }
    }

    /// Ends the walk of some test rows at a stop that only they have.
    fn end<P: Statistics>(
        &mut self,
        tree: &Tree<S, P>,
        node: NodeId,
        branch: Branch,
        test_rows: &[RowId],
        visit: &mut dyn FnMut(RowId, &[Stop]),
    ) {
        self.stop(tree, node, branch);
        for &test_row in test_rows {
            visit(test_row, &self.stops);
        }
        self.stops.pop();
    }
}

/// Where the rows of a split's child on one side begin.
fn first_of<S: Scalar, P: Statistics>(tree: &Tree<S, P>, group: &Group, right: bool) -> Option<usize> {
    let before = |first| first + tree.arena.n_rows(tree.arena.child(group.node, false));
    if right { group.first.map(before) } else { group.first }
}

/// The cuts of the shells on which the tree was not drawn; all its rows lie on their inner side.
#[derive(Debug)]
pub(crate) struct Shells<'a> {
    domain: &'a Domain,
    cell: Cell<'a>,
    tree_level: u32,
}

impl<'a> Shells<'a> {
    /// Those between the box of `tree_level` and that of `level`.
    pub(crate) fn new(domain: &'a Domain, key: Key, tree_level: u32, level: u32) -> Self {
        Self { domain, cell: Cell::root(domain, level, key), tree_level }
    }

    /// The time before `end` at which a cut of an outer shell separates the test row from the tree's rows.
    /// The tree's own next cut comes at `end`, so all cuts before it are the shells'.
    fn separates(&mut self, end: f64, value: impl Fn(u32) -> f64) -> Option<f64> {
        while let Some(cut) = self.cell.next_cut(end) {
            let right = cut.goes_right(value(cut.coordinate));
            let (low, _) = self.domain.bounds(self.tree_level as usize, cut.coordinate as usize);
            let rows_right = cut.goes_right(low);
            if right != rows_right {
                return Some(cut.time);
            }
            self.cell.descend(rows_right);
        }
        None
    }
}
