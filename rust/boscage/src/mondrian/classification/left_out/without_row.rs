//! A row's path in a tree without the row, read off the tree with it.

use crate::data::{Scalar, Weight};
use crate::mondrian::classification::class_counts::{Class, ClassCounts, Held, Seat, WORD};
use crate::mondrian::classification::kneser_ney::PathCounts;
use crate::mondrian::prediction::stop::Stop;
use crate::mondrian::tree::Tree;
use crate::mondrian::tree::arena::{NodeId, NodeKind};

/// What a row meets in a tree without it.
#[derive(Debug, Default)]
pub(super) struct Path {
    pub(super) stops: Vec<Stop>,
    /// The first so many stops hold the row in the tree as it is.
    pub(super) n_held: usize,
    pub(super) class: Class,
    /// What is left of its class at the last of these stops, from the highest on where less is left than there is with it.
    pub(super) seats: Vec<Seat>,
    /// The classes of the last of these stops, if it is a leaf without the row.
    pub(super) leaf: Option<Vec<(Class, Weight)>>,
}

/// A row's path in a tree without it, and the class counts there.
#[derive(Debug)]
pub(in crate::mondrian::classification) struct WithoutRow<'a, S> {
    pub(super) tree: &'a Tree<S, ClassCounts>,
    pub(super) path: &'a Path,
}

impl<S> Clone for WithoutRow<'_, S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S> Copy for WithoutRow<'_, S> {}

impl<'a, S: Scalar> WithoutRow<'a, S> {
    /// The row's stops. Their nodes are those of the tree with the row, whose splits may be leaves without it.
    pub(in crate::mondrian::classification) fn stops(self) -> &'a [Stop] {
        &self.path.stops
    }

    /// The depth of the split that is a leaf without the row, if there is one; it is the last one above which all nodes are
    /// on the row's path in the tree with it.
    pub(in crate::mondrian::classification) fn merged(self) -> Option<usize> {
        let depth = self.path.n_held.checked_sub(1)?;
        (self.is_own_leaf(depth) && !self.node(depth).is_leaf()).then_some(depth)
    }

    /// The nodes below a stop, in the tree with the row.
    pub(in crate::mondrian::classification) fn below(self, depth: usize) -> Vec<u32> {
        let (mut below, mut splits) = (Vec::new(), vec![self.node(depth)]);
        while let Some(split) = splits.pop() {
            if let NodeKind::Split(left, right) = self.tree.arena.kind(split) {
                below.extend([left, right].map(|node| node.index() as u32));
                splits.extend([left, right]);
            }
        }
        below
    }

    fn node(self, depth: usize) -> NodeId {
        self.path.stops[depth].node
    }

    /// What is left of the row's class at a split, if that is less than there is with the row.
    fn seat(self, depth: usize) -> Option<Seat> {
        let Path { n_held, seats, .. } = self.path;
        seats.get((depth + seats.len()).checked_sub(*n_held)?).copied()
    }

    /// Whether a stop is a leaf that holds the row, or is one without it.
    fn is_own_leaf(self, depth: usize) -> bool {
        self.path.leaf.is_some() && depth + 1 == self.path.n_held
    }

    /// The classes of the row's own leaf, if a stop is that.
    fn own_leaf(&self, depth: usize) -> Option<Held<'a>> {
        self.path.leaf.as_deref().filter(|_| self.is_own_leaf(depth)).map(Held::Weighted)
    }

    /// A word with the bit of the row's class as it is without the row.
    fn without(self, bits: u64, word: usize, has: impl Fn(Seat) -> bool, depth: usize) -> u64 {
        let class = self.path.class as usize;
        match self.seat(depth) {
            Some(seat) if class / WORD == word && !has(seat) => bits & !(1 << (class % WORD)),
            _ => bits,
        }
    }
}

impl<S: Scalar> PathCounts for WithoutRow<'_, S> {
    fn words(self) -> usize {
        self.tree.statistics.words()
    }

    fn is_shared(self, depth: usize) -> bool {
        let Path { n_held, seats, leaf, .. } = self.path;
        let n_changed = seats.len().max(usize::from(leaf.is_some()));
        depth + n_changed < *n_held || depth > *n_held
    }

    fn is_leaf(self, depth: usize) -> bool {
        self.is_own_leaf(depth) || self.node(depth).is_leaf()
    }

    fn totals(self, depth: usize) -> (f64, f64) {
        let (classes, node) = (&self.tree.statistics, self.node(depth));
        let n_rows = self.tree.arena.n_rows(node);
        if let Some(held) = self.own_leaf(depth) {
            return held.totals(n_rows - 1);
        }
        let Some(left) = self.seat(depth) else { return classes.totals(node, n_rows) };
        let (all, own) = (classes.all_seats(node), classes.seat(node, self.path.class));
        let table = all.table - own.table + left.table;
        (table.float(), (table + (all.more - own.more + left.more)).float())
    }

    fn tables(self, depth: usize, word: usize) -> u64 {
        match self.own_leaf(depth) {
            Some(held) => held.tables(word),
            None => {
                let bits = self.tree.statistics.tables(self.node(depth), word);
                self.without(bits, word, |seat| seat.table == Weight::ONE, depth)
            }
        }
    }

    fn both(self, depth: usize, word: usize) -> u64 {
        let bits = self.tree.statistics.both(self.node(depth), word);
        self.without(bits, word, |seat| seat.more == Weight::ONE, depth)
    }

    fn has_parts(self) -> bool {
        self.tree.statistics.has_parts()
    }

    fn each_part(self, depth: usize, mut visit: impl FnMut(Class, Seat)) {
        if let Some(held) = self.own_leaf(depth) {
            return held.each_part(|class, table| visit(class, Seat { table, more: Weight::NONE }));
        }
        let left = self.seat(depth);
        self.tree.statistics.each_part(self.node(depth), |class, part| {
            if left.is_none() || class != self.path.class {
                visit(class, part);
            }
        });
        if let Some(part) = left.and_then(Seat::part) {
            visit(self.path.class, part);
        }
    }

    fn each_more(self, depth: usize, visit: impl FnMut(Class, f64)) {
        let node = self.node(depth);
        match self.own_leaf(depth) {
            Some(held) => held.each_more(0, visit),
            None => self.tree.statistics.held(node).each_more(self.tree.arena.n_rows(node), visit),
        }
    }
}
