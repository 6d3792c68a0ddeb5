//! Where a point leaves a tree: the path that every posterior's prediction sums over.

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

/// What a walk needs to know besides the tree.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Space<'a, S> {
    pub(crate) domain: &'a Domain,
    pub(crate) lifetime: f64,
    pub(crate) table: Table<'a, S>,
}

/// Points on their way down trees, as many together as go the same way.
#[derive(Debug)]
pub(crate) struct Walk<'a, S, X> {
    space: Space<'a, S>,
    points: Table<'a, X>,
    outside: BranchRate<'a, S>,
    /// The path to where the walk is.
    stops: Vec<Stop>,
    tasks: Vec<Task>,
    scratch: Vec<RowId>,
}

/// A range of the points at hand that reach a node below `depth` stops.
#[derive(Debug, Clone, Copy)]
struct Task {
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
    pub(crate) fn new(space: Space<'a, S>, points: Table<'a, X>) -> Self {
        let outside = BranchRate::new(space.domain.rates(), space.table);
        Self { space, points, outside, stops: Vec::new(), tasks: Vec::new(), scratch: Vec::new() }
    }

    /// The walk of Algorithms 5.8 and 6.5: calls `visit` with every point's whole path and the rate of
    /// branching off at every stop. Points are put in the order of their leaves.
    pub(crate) fn averaged<P: Statistics>(
        &mut self,
        tree: &Tree<S, P>,
        points: &mut [RowId],
        mut visit: impl FnMut(RowId, &[Stop]),
    ) {
        self.start(tree, points, &mut visit);
        while let Some(mut task) = self.next_task() {
            self.come(tree, &mut task);
            if let &mut [point] = &mut points[task.start..task.end] {
                self.descend(tree, &mut task, point);
            } else if !task.node.is_leaf() {
                self.part(tree, task, points);
                continue;
            }
            for &point in &points[task.start..task.end] {
                let x = self.points.row(point);
                self.outside.of_path(tree, task.first.unwrap_or(0), x, &mut self.stops);
                visit(point, &self.stops);
                let forks = self.stops.iter_mut().rev();
                for stop in forks.take_while(|stop| stop.branch != Branch::Never) {
                    stop.branch = Branch::Never;
                }
            }
        }
    }

    /// The walk of points that follow the tree's own cuts, drawn from `key`: the last stop is where they branch
    /// off or stay. `shells` are those of a point outside the box on which the tree was drawn, which goes
    /// alone.
    pub(crate) fn realised<P: Statistics>(
        &mut self,
        tree: &Tree<S, P>,
        key: Key,
        mut shells: Option<Shells<'_>>,
        points: &mut [RowId],
        mut visit: impl FnMut(RowId, &[Stop]),
    ) {
        self.start(tree, points, &mut visit);
        while let Some(mut task) = self.next_task() {
            let node = task.node;
            if tree.arena.is_paused(node) {
                self.gather(tree, &mut task);
                for &point in &points[task.start..task.end] {
                    let branch = self.paused(tree, node, key, task.right, point);
                    self.end(tree, node, branch, &[point], &mut visit);
                }
                continue;
            }
            self.pass_skips(tree, &mut task, &mut shells, points, &mut visit);
            if task.start == task.end {
                continue;
            }
            let here = &points[task.start..task.end];
            let time = tree.arena.time(node).min(self.space.lifetime);
            if let Some(at) = self.shells_separate(&mut shells, time, here[0]) {
                self.end(tree, node, Branch::At(at), here, &mut visit);
                continue;
            }
            if node.is_leaf() {
                self.end(tree, node, Branch::Never, here, &mut visit);
                continue;
            }
            self.stop(tree, node, Branch::Never);
            let right = self.part(tree, task, points);
            if let Some(shells) = &mut shells {
                shells.cell.descend(right);
            }
        }
    }

    /// The stop of points so far away that the first cut of any process parts them from the rows.
    pub(crate) fn beyond<P: Statistics>(
        &mut self,
        tree: &Tree<S, P>,
        point: RowId,
        mut visit: impl FnMut(RowId, &[Stop]),
    ) {
        self.stops.clear();
        match tree.arena.root() {
            Some(root) => self.end(tree, root, Branch::At(0.0), &[point], &mut visit),
            None => visit(point, &[]),
        }
    }

    /// Ends the walk of points that a skipped cut above the task's node parts from its rows.
    fn pass_skips<P: Statistics>(
        &mut self,
        tree: &Tree<S, P>,
        task: &mut Task,
        shells: &mut Option<Shells<'_>>,
        points: &mut [RowId],
        visit: &mut impl FnMut(RowId, &[Stop]),
    ) {
        for skip in tree.arena.skips(task.node) {
            let here = &mut points[task.start..task.end];
            if here.is_empty() {
                return;
            }
            if let Some(at) = self.shells_separate(shells, skip.time, here[0]) {
                self.end(tree, task.node, Branch::At(at), here, visit);
                task.end = task.start;
                return;
            }
            let stays = |x: X| skip.keeps(x.into());
            if here.iter().any(|&point| !stays(self.points.row(point)[skip.feature as usize])) {
                let middle = task.start + partition(here, &mut self.scratch, &self.points, skip.cut());
                let (left, right) = (task.start..middle, middle..task.end);
                let (stay, leave) = if skip.right { (right, left) } else { (left, right) };
                self.end(tree, task.node, Branch::At(skip.time), &points[leave], visit);
                (task.start, task.end) = (stay.start, stay.end);
            }
            if let Some(shells) = shells {
                shells.cell.descend(skip.right);
            }
        }
    }

    /// The time before `end` at which an outer shell's cut parts a point from the rows.
    fn shells_separate(&self, shells: &mut Option<Shells<'_>>, end: f64, point: RowId) -> Option<f64> {
        let x = self.points.row(point);
        shells.as_mut()?.separates(end, |d| x[d as usize].into())
    }

    /// A paused leaf's cell has no cuts yet. The first that parts a point from the leaf's rows falls
    /// between the point and their box, and so comes at the rate of Algorithm 5.8, from the cut that made
    /// the cell on: none before it parted them.
    fn paused<P: Statistics>(
        &mut self,
        tree: &Tree<S, P>,
        leaf: NodeId,
        key: Key,
        right: bool,
        point: RowId,
    ) -> Branch {
        let rate = self.outside.of_leaf(tree, (leaf, 0), self.points.row(point));
        if rate > 0.0 {
            let since = self.after();
            let at = since + key.of_leaf(since, right).exponential() / rate;
            if at < self.space.lifetime {
                return Branch::At(at);
            }
        }
        Branch::Never
    }

    /// Makes a stop of a split or leaf that points reached.
    fn come<P: Statistics>(&mut self, tree: &Tree<S, P>, task: &mut Task) {
        self.stop(tree, task.node, Branch::Never);
        self.gather(tree, task);
    }

    /// Gathers a node's rows if it has no box and those of a node above have not been gathered.
    fn gather<P: Statistics>(&mut self, tree: &Tree<S, P>, task: &mut Task) {
        if task.first.is_none() && !tree.boxes.keeps(&tree.arena, task.node) {
            self.outside.gather(tree, task.node);
            task.first = Some(0);
        }
    }

    /// Takes a point that is alone from a node to its leaf.
    fn descend<P: Statistics>(&mut self, tree: &Tree<S, P>, task: &mut Task, point: RowId) {
        let x = self.points.row(point);
        while !task.node.is_leaf() {
            let (right, node) = tree.arena.follow(task.node, |d| x[d as usize].into());
            task.first = first_of(tree, task, right);
            task.node = node;
            self.come(tree, task);
        }
    }

    /// Sends points to the two sides of a split that they reached; the side of the last of them.
    fn part<P: Statistics>(&mut self, tree: &Tree<S, P>, task: Task, points: &mut [RowId]) -> bool {
        let (depth, cut) = (self.stops.len(), tree.arena.cut(task.node));
        let here = &mut points[task.start..task.end];
        let middle = task.start
            + match here {
                &mut [point] => {
                    usize::from(!cut.goes_right(self.points.row(point)[cut.feature as usize].into()))
                }
                _ => partition(here, &mut self.scratch, &self.points, cut),
            };
        let mut last = false;
        for (right, start, end) in [(true, middle, task.end), (false, task.start, middle)] {
            if start < end {
                let node = tree.arena.child(task.node, right);
                let first = first_of(tree, &task, right);
                self.tasks.push(Task { node, start, end, depth, right, first });
                last = right;
            }
        }
        last
    }

    /// Puts points at the root; in a tree without rows their ways end before any stop.
    fn start<P: Statistics>(
        &mut self,
        tree: &Tree<S, P>,
        points: &[RowId],
        visit: &mut impl FnMut(RowId, &[Stop]),
    ) {
        if self.scratch.len() < points.len() {
            self.scratch.resize(points.len(), 0);
        }
        match tree.arena.root() {
            Some(node) if !points.is_empty() => {
                let (end, first) = (points.len(), None);
                self.tasks.push(Task { node, start: 0, end, depth: 0, right: false, first });
            }
            _ => {
                for &point in points {
                    visit(point, &[]);
                }
            }
        }
    }

    fn next_task(&mut self) -> Option<Task> {
        let task = self.tasks.pop()?;
        self.stops.truncate(task.depth);
        Some(task)
    }

    /// The time of the last stop.
    fn after(&self) -> f64 {
        self.stops.last().map_or(0.0, |stop| stop.time)
    }

    fn stop<P: Statistics>(&mut self, tree: &Tree<S, P>, node: NodeId, branch: Branch) {
        let time = if node.is_leaf() { self.space.lifetime } else { tree.arena.time(node) };
        self.stops.push(Stop { node, after: self.after(), time, branch });
    }

    /// Ends the walk of some points at a stop that is theirs alone.
    fn end<P: Statistics>(
        &mut self,
        tree: &Tree<S, P>,
        node: NodeId,
        branch: Branch,
        points: &[RowId],
        visit: &mut impl FnMut(RowId, &[Stop]),
    ) {
        self.stop(tree, node, branch);
        for &point in points {
            visit(point, &self.stops);
        }
        self.stops.pop();
    }
}

/// Where the rows of a split's child on one side begin.
fn first_of<S: Scalar, P: Statistics>(tree: &Tree<S, P>, task: &Task, right: bool) -> Option<usize> {
    let before = |first| first + tree.arena.n_rows(tree.arena.child(task.node, false));
    if right { task.first.map(before) } else { task.first }
}

/// The cuts of the shells that the tree was not drawn on; all its rows lie on their inner side.
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

    /// The time before `end` at which a cut of an outer shell parts the point from the tree's rows. The
    /// tree's own next cut comes at `end`, so all cuts before it are the shells'.
    fn separates(&mut self, end: f64, value: impl Fn(u32) -> f64) -> Option<f64> {
        while let Some(cut) = self.cell.next_cut(end) {
            let right = cut.goes_right(value(cut.feature));
            let (low, _) = self.domain.bounds(self.tree_level as usize, cut.feature as usize);
            let rows_right = cut.goes_right(low);
            if right != rows_right {
                return Some(cut.time);
            }
            self.cell.descend(rows_right);
        }
        None
    }
}
