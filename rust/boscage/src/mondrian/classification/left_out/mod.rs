//! Rows of the forest, each predicted by the trees without it.
//!
//! Removing a row changes a tree only along the row's own path: classes that only the row had are gone, boxes shrink, a
//! split with no other row on one side is removed, and a split whose other rows have one class becomes a leaf. So the tree
//! without the row can be read off the tree with it, which is neither changed nor copied. A left-out prediction costs about
//! as much as any other, and gives the bits of a tree that forgot the row.

mod without_row;

use crate::control::Run;
use crate::data::{RowId, Scalar, Table, Weight};
use crate::error::Result;
use crate::mondrian::classification::class_counts::{Class, ClassCounts, Seat, tally_weights};
use crate::mondrian::classification::predictive::{Gather, Gathered};
use crate::mondrian::forest::Forest;
use crate::mondrian::forest::storage::{Storage, with_storage};
use crate::mondrian::prediction::branch_rate::BranchRate;
use crate::mondrian::prediction::stop::{Branch, Stop};
use crate::mondrian::prediction::visitor::Visitor;
use crate::mondrian::tree::Tree;
use crate::mondrian::tree::arena::NodeId;
use crate::mondrian::tree::process::Process;
use without_row::Path;

pub(super) use without_row::WithoutRow;

/// Gathers predictions from the paths of rows in trees without them.
pub(super) trait LeftOutVisitor: Sync {
    /// What is gathered for some rows.
    type Chunk: Send;

    /// Nothing gathered yet, for `n_rows` rows.
    fn start(&self, n_rows: usize) -> Self::Chunk;

    /// Whether a row's path in a tree is gathered here.
    fn visits(&self, _tree_index: usize, _row: usize) -> bool {
        true
    }

    /// Adds one row's path in one tree; trees come in order.
    fn visit<S: Scalar>(
        &self,
        tree_index: usize,
        without: WithoutRow<'_, S>,
        row: usize,
        chunk: &mut Self::Chunk,
    );
}

impl LeftOutVisitor for Gather<'_> {
    type Chunk = Gathered;

    fn start(&self, n_rows: usize) -> Gathered {
        Visitor::start(self, n_rows)
    }

    fn visit<S: Scalar>(&self, number: usize, without: WithoutRow<'_, S>, row: usize, chunk: &mut Gathered) {
        self.add(number, without, without.stops(), row, chunk);
    }
}

/// Gathers predictions for rows of the forest, each by all trees without it.
///
/// # Errors
/// An interrupt.
pub(super) fn predict<V: LeftOutVisitor>(
    forest: &Forest<ClassCounts>,
    rows: &[RowId],
    run: &Run<'_>,
    gather: &V,
) -> Result<Vec<V::Chunk>> {
    let storage = forest.flushed(run)?;
    let chunk = run.len_by_thread(rows.len());
    run.control.expect((rows.len().div_ceil(chunk) * forest.settings.n_estimators) as u64);
    run.map_ranges(
        rows.len(),
        chunk,
        |range| with_storage!(storage, storage => predict_chunk(forest, storage, &rows[range], run, gather)),
    )
}

fn predict_chunk<S: Scalar, V: LeftOutVisitor>(
    forest: &Forest<ClassCounts>,
    storage: &Storage<S, ClassCounts>,
    rows: &[RowId],
    run: &Run<'_>,
    gather: &V,
) -> Result<V::Chunk> {
    let table = Table::new(&storage.values, forest.domain.n_coordinates());
    let mut chunk = gather.start(rows.len());
    let mut walk = Walk {
        branch_rate: BranchRate::new(forest.domain.rates(), table),
        nodes: Vec::new(),
        below: Vec::new(),
        path: Path::default(),
    };
    // The order in which one tree leaves the rows suits the next.
    let mut order: Vec<(RowId, usize)> = rows.iter().copied().zip(0..).collect();
    let (mut groups, mut to_right) = (Vec::new(), Vec::new());
    for (number, tree) in storage.trees.iter().enumerate() {
        let process = forest.process(number, table);
        order.sort_by_key(|&(_, at)| !gather.visits(number, at));
        let n_visited = order.partition_point(|&(_, at)| gather.visits(number, at));
        // Rows go down together and part at splits, so that successive rows share most of their paths.
        groups.push((tree.arena.root().expect("the tree holds the rows"), 0..n_visited, 0));
        while let Some((mut node, range, depth)) = groups.pop() {
            run.control.check()?;
            walk.nodes.truncate(depth);
            if range.len() == 1 {
                let x = table.row(order[range.start].0);
                while !node.is_leaf() {
                    walk.nodes.push(node);
                    node = tree.arena.follow(node, |d| x[d as usize].into()).1;
                }
            }
            walk.nodes.push(node);
            if node.is_leaf() {
                for &(row, at) in &order[range] {
                    walk.walk(tree, &process, row);
                    gather.visit(number, WithoutRow { tree, path: &walk.path }, at, &mut chunk);
                }
                continue;
            }
            let cut = tree.arena.cut(node);
            let mut middle = range.start;
            for i in range.clone() {
                let (row, at) = order[i];
                if cut.goes_right(table.row(row)[cut.coordinate as usize].into()) {
                    to_right.push((row, at));
                } else {
                    order[middle] = (row, at);
                    middle += 1;
                }
            }
            order[middle..range.end].copy_from_slice(&to_right);
            to_right.clear();
            for (right, part) in [(true, middle..range.end), (false, range.start..middle)] {
                if !part.is_empty() {
                    groups.push((tree.arena.child(node, right), part, walk.nodes.len()));
                }
            }
        }
        run.control.advance(1);
    }
    Ok(chunk)
}

/// Takes rows down trees without them.
struct Walk<'a, S> {
    branch_rate: BranchRate<'a, S>,
    /// From the root to the row's leaf.
    nodes: Vec<NodeId>,
    /// The stops below the split that parts the row from all others.
    below: Vec<Stop>,
    path: Path,
}

impl<S: Scalar> Walk<'_, S> {
    /// Finds the path of a row that is at the end of the walk's nodes.
    fn walk(&mut self, tree: &Tree<S, ClassCounts>, process: &Process<'_, S, Class>, row: RowId) {
        let (arena, x) = (&tree.arena, process.table.row(row));
        self.path.stops.clear();
        self.path.class = process.targets.of(row);
        let last = self.nodes.len() - 1;
        if arena.n_rows(self.nodes[last]) > 1 {
            self.take_classes(tree, process, (row, last + 1), None);
            let rate = |this: &mut Self| this.branch_rate.start_without(tree, this.nodes[last], (row, x));
            if tree.boxes.has_splits() {
                let rate = rate(self);
                self.set_rate(last, rate);
                self.average(tree, x, (rate, last));
            } else if self.path.n_held <= last || pauses(tree, process, (self.nodes[last], row)) {
                let rate = rate(self);
                self.pause(tree, process, x, (rate, last));
            }
            return;
        }
        if last == 0 {
            // No row is left.
            self.path = Path {
                class: self.path.class,
                stops: std::mem::take(&mut self.path.stops),
                ..Path::default()
            };
            return;
        }
        // The sibling takes the place of the split above.
        let sibling = self.sibling(tree, last - 1);
        self.take_classes(tree, process, (row, last - 1), Some(sibling));
        let is_end = self.path.leaf.is_some();
        let after = last.checked_sub(2).map_or(0.0, |above| arena.time(self.nodes[above]));
        if tree.boxes.has_splits() {
            let rate = self.descend(tree, process.lifetime, sibling, after, x);
            if !is_end {
                self.path.stops.append(&mut self.below);
            }
            self.average(tree, x, (rate, last - 1));
        } else if is_end || arena.is_paused(sibling) {
            let rate = self.descend(tree, process.lifetime, sibling, after, x);
            if !is_end {
                self.path.stops.extend(self.below.first());
            }
            self.pause(tree, process, x, (rate, last - 1));
        } else {
            // The tree's own cut, skipped without the row, parts it from the others.
            let time = if sibling.is_leaf() { process.lifetime } else { arena.time(sibling) };
            let branch = Branch::At(arena.time(self.nodes[last - 1]));
            self.path.stops.push(Stop { node: sibling, after, time, branch });
        }
    }

    /// The other child of the split at some depth.
    fn sibling(&self, tree: &Tree<S, ClassCounts>, depth: usize) -> NodeId {
        let (split, node) = (self.nodes[depth], self.nodes[depth + 1]);
        let left = tree.arena.child(split, false);
        if left == node { tree.arena.child(split, true) } else { left }
    }

    /// Takes the row out of the first `n_held` of its nodes, which become stops down to where they end in a leaf. Below the
    /// last of them comes `instead`, unless that one is the row's own leaf.
    fn take_classes(
        &mut self,
        tree: &Tree<S, ClassCounts>,
        process: &Process<'_, S, Class>,
        (row, n_held): (RowId, usize),
        instead: Option<NodeId>,
    ) {
        let (classes, arena) = (&tree.statistics, &tree.arena);
        let class = self.path.class;
        let seats = std::mem::take(&mut self.path.seats);
        let mut seats = self.seats_without(tree, process, (row, n_held), instead, seats);
        // The stopping rule (Algorithm 5.9, line 3) makes splits leaves: all below the highest one.
        let is_lost = |depth: usize| {
            let seat = (depth + seats.len()).checked_sub(n_held).map(|place| seats[place]);
            seat.is_some_and(|seat| seat.table == Weight::NONE)
        };
        let is_uniform = |depth: usize| classes.n_classes(self.nodes[depth]) - u32::from(is_lost(depth)) == 1;
        let others = |depth: usize| {
            let mut rows = Vec::with_capacity(arena.n_rows(self.nodes[depth]));
            arena.collect_rows(self.nodes[depth], &mut rows);
            rows.retain(|&other| other != row);
            rows
        };
        let stops = |depth: usize| {
            process.are_few(arena.n_rows(self.nodes[depth]) - 1, || others(depth).into_iter())
                || is_uniform(depth)
        };
        let n_split = (0..n_held).rev().find(|&depth| !stops(depth)).map_or(0, |depth| depth + 1);
        let is_leaf = n_split < n_held || instead.is_none();
        let n_left = if n_split < n_held { n_split + 1 } else { n_held };
        let leaf = is_leaf.then(|| {
            let depth = n_left - 1;
            if classes.has_parts() || !is_uniform(depth) {
                return tally_weights(&others(depth), process.targets);
            }
            let only = classes.classes(self.nodes[depth]).find(|&other| !is_lost(depth) || other != class);
            let n_others = arena.n_rows(self.nodes[depth]) - 1;
            vec![(only.expect("a class is left"), Weight::of_rows(n_others))]
        });
        seats.truncate((n_left + seats.len()).saturating_sub(n_held));
        let n_held = n_left;
        let mut after = 0.0;
        for (depth, &node) in self.nodes[..n_held].iter().enumerate() {
            let is_leaf = is_leaf && depth + 1 == n_held;
            let time = if is_leaf { process.lifetime } else { arena.time(node) };
            self.path.stops.push(Stop { node, after, time, branch: Branch::Never });
            after = time;
        }
        self.path = Path { stops: std::mem::take(&mut self.path.stops), n_held, class, seats, leaf };
    }

    /// What is left of the row's class at the last of its first `n_held` nodes, from the highest on where less is left than
    /// there is with the row (of a leaf only the table, if nothing comes `instead`). Written to `seats`.
    fn seats_without(
        &self,
        tree: &Tree<S, ClassCounts>,
        process: &Process<'_, S, Class>,
        (row, n_held): (RowId, usize),
        instead: Option<NodeId>,
        mut seats: Vec<Seat>,
    ) -> Vec<Seat> {
        let (classes, class) = (&tree.statistics, self.path.class);
        let table = |node| classes.table(node, class);
        seats.clear();
        let (mut depth, mut left) = (n_held, Weight::NONE);
        if let Some(instead) = instead {
            left = table(instead);
        } else {
            depth -= 1;
            let leaf = self.nodes[depth];
            let held = classes.held(leaf).customers(class, tree.arena.n_rows(leaf));
            let seat = Seat::of(held - Weight::of(process.targets.weight(row)));
            left += seat.table;
            if left < table(leaf) {
                seats.push(seat);
            }
        }
        // Above a node whose table stays, nothing changes.
        while depth > 0 && left < table(self.nodes[depth]) {
            depth -= 1;
            let seat = Seat::of(left + table(self.sibling(tree, depth)));
            left = seat.table;
            seats.push(seat);
        }
        seats.reverse();
        seats
    }

    /// Writes the stops from a node on, with their rates, to `below`; returns the rate of the first.
    fn descend(
        &mut self,
        tree: &Tree<S, ClassCounts>,
        lifetime: f64,
        mut node: NodeId,
        mut after: f64,
        x: &[S],
    ) -> f64 {
        let (arena, top) = (&tree.arena, node);
        let mut first = None;
        self.below.clear();
        loop {
            if first.is_none() && !tree.boxes.keeps(arena, node) {
                self.branch_rate.gather(tree, node);
                first = Some(0);
            }
            let time = if node.is_leaf() { lifetime } else { arena.time(node) };
            self.below.push(Stop { node, after, time, branch: Branch::Never });
            if node.is_leaf() {
                break;
            }
            let (right, child) = arena.follow(node, |d| x[d as usize].into());
            if right {
                first = first.map(|first| first + arena.n_rows(arena.child(node, false)));
            }
            (node, after) = (child, time);
        }
        self.branch_rate.of_path(tree, first.unwrap_or(0), x, &mut self.below);
        match self.below[0].branch {
            Branch::Rate(rate) => {
                self.branch_rate.hold(tree, top);
                rate
            }
            Branch::Never | Branch::At(_) => 0.0,
        }
    }

    fn set_rate(&mut self, depth: usize, rate: f64) {
        if depth < self.path.n_held {
            self.path.stops[depth].set_rate(rate);
        }
    }

    /// Sets the rates above `depth`, given the one there.
    fn average(&mut self, tree: &Tree<S, ClassCounts>, x: &[S], (mut rate, mut depth): (f64, usize)) {
        while rate > 0.0 && depth > 0 {
            depth -= 1;
            rate = self.branch_rate.extend(tree, self.sibling(tree, depth), x);
            self.set_rate(depth, rate);
        }
    }

    /// Sets where the row branches off above the last stop, a paused leaf, given the rate at a depth of its own path.
    fn pause(
        &mut self,
        tree: &Tree<S, ClassCounts>,
        process: &Process<'_, S, Class>,
        x: &[S],
        (mut rate, mut depth): (f64, usize),
    ) {
        let at = self.path.stops.len() - 1;
        while rate > 0.0 && depth > at {
            depth -= 1;
            rate = self.branch_rate.extend(tree, self.sibling(tree, depth), x);
        }
        if rate > 0.0 {
            let right = at > 0 && tree.arena.child(self.nodes[at - 1], true) == self.nodes[at];
            let stop = &mut self.path.stops[at];
            stop.branch = stop.paused(process.key, right, rate, process.lifetime);
        }
    }
}

/// Whether the stopping rule pauses a leaf without one of its rows.
fn pauses<S: Scalar>(
    tree: &Tree<S, ClassCounts>,
    process: &Process<'_, S, Class>,
    (leaf, row): (NodeId, RowId),
) -> bool {
    if tree.arena.is_paused(leaf) {
        return true;
    }
    let others: Vec<RowId> = tree.arena.leaf_rows(leaf).filter(|&other| other != row).collect();
    process.pauses(&others) || process.coincide(&others)
}
