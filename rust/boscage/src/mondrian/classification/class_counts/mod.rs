//! Statistics for classification: which classes each node holds.
//!
//! Interpolated Kneser-Ney lets a restaurant serve a dish at one table at most, so an inner node's
//! customers are `c_jk = tab_left(j),k + tab_right(j),k` and its tables `tab_jk = min(c_jk, 1)` (thesis
//! section 5.4.1, Algorithm 5.3): one bit a class and node suffices, and only leaves count rows. An update stops at the
//! first node whose set of classes stays the same (Algorithm 5.7).
//!
//! *Weights.* A row of weight `w` counts as `w` rows: in a leaf, `c_jk` is the sum of the weights of the rows of class `k`.
//! So `tab_jk = min(W_jk, 1)` at every node, where `W_jk` is the sum over all rows below the node. Where it is less than 1,
//! the class has a part of a table. A node's set holds the classes that have a whole table there. A split also keeps
//! *parts*: the fraction of each `W_jk`, be it of the table or of one more customer. All sums are exact.

mod bits;
mod class_set;
mod leaves;
mod seat;
mod sets;

use std::borrow::Cow;

use crate::data::{RowId, RowTargets, Weight};
use crate::error::Result;
use crate::mondrian::cells::statistics::CellStatistics;
use crate::mondrian::cells::summary::{Words, wrong};
use crate::mondrian::tree::arena::NodeId;
use crate::mondrian::tree::statistics::Statistics;
use bits::bit;
use class_set::ClassSet;
use leaves::LeafCounts;
use seat::SeatFraction;
use sets::SplitSets;

pub(crate) use bits::{Class, WORD, iter_bits};
pub(crate) use leaves::{Held, tally_weights};
pub(crate) use seat::Seat;

/// The classes at every node of one tree: the counts of Algorithm 5.3, which approximate eq. 5.4.
#[derive(Debug, Clone, Default)]
pub(crate) struct ClassCounts {
    sets: SplitSets,
    leaves: LeafCounts,
    /// Parts at each split, in order of class, as far as there are such splits.
    parts: Vec<Box<[SeatFraction]>>,
}

impl ClassCounts {
    /// Words to a set of classes.
    pub(crate) fn words(&self) -> usize {
        self.sets.words()
    }

    /// Whether tables may be in parts.
    pub(crate) fn has_parts(&self) -> bool {
        self.leaves.has_weights()
    }

    /// What a leaf holds.
    pub(crate) fn held(&self, leaf: NodeId) -> Held<'_> {
        self.leaves.held(leaf)
    }

    /// Sets what a leaf holds to numbers of rows by class, in order of class.
    pub(crate) fn set_leaf_counts(&mut self, leaf: NodeId, counts: Vec<(Class, u32)>) {
        self.leaves.set_counts(leaf, counts);
        self.sets.widen(self.held(leaf).last());
    }

    /// One word of the classes of which a node has a whole table.
    pub(crate) fn tables(&self, node: NodeId, word: usize) -> u64 {
        if node.is_leaf() {
            return self.held(node).tables(word);
        }
        self.sets.tables(node, word)
    }

    /// One word of the classes of which both children of a split have a whole table.
    pub(crate) fn both(&self, split: NodeId, word: usize) -> u64 {
        self.sets.both(split, word)
    }

    /// Of the classes at a node: the parts of tables, and of further customers at a split.
    pub(crate) fn each_part(&self, node: NodeId, mut visit: impl FnMut(Class, Seat)) {
        if node.is_leaf() {
            return self
                .held(node)
                .each_part(|class, table| visit(class, Seat { table, more: Weight::NONE }));
        }
        for &SeatFraction { class, fraction } in self.parts(node) {
            let part = Weight::of_fraction(fraction);
            let is_table = self.tables(node, class as usize / WORD) & bit(class, class as usize / WORD) == 0;
            let (table, more) = if is_table { (part, Weight::NONE) } else { (Weight::NONE, part) };
            visit(class, Seat { table, more });
        }
    }

    fn parts(&self, split: NodeId) -> &[SeatFraction] {
        self.parts.get(split.rank()).map_or(&[], |parts| parts)
    }

    /// The table of a class at a node.
    pub(crate) fn table(&self, node: NodeId, class: Class) -> Weight {
        let word = class as usize / WORD;
        if self.tables(node, word) & bit(class, word) != 0 {
            return Weight::ONE;
        }
        if self.has_parts() { self.seat(node, class).table } else { Weight::NONE }
    }

    /// A class at a split, and at a leaf its table.
    pub(crate) fn seat(&self, node: NodeId, class: Class) -> Seat {
        let (word, mut seat) = (class as usize / WORD, Seat::default());
        let whole = |bits: u64| if bits & bit(class, word) == 0 { Weight::NONE } else { Weight::ONE };
        seat.table = whole(self.tables(node, word));
        if !node.is_leaf() {
            seat.more = whole(self.both(node, word));
        }
        self.each_part(node, |other, part| {
            if other == class {
                seat.table += part.table;
                seat.more += part.more;
            }
        });
        seat
    }

    /// The number of classes at a node.
    pub(crate) fn n_classes(&self, node: NodeId) -> u32 {
        if node.is_leaf() {
            return self.held(node).n_classes();
        }
        let mut n = self.sets.lens(node).0;
        self.each_part(node, |_, part| n += u32::from(part.table > Weight::NONE));
        n
    }

    /// The classes of which a node has a whole table.
    pub(crate) fn classes(&self, node: NodeId) -> impl Iterator<Item = Class> + '_ {
        (0..self.words()).flat_map(move |word| iter_bits(word, self.tables(node, word)))
    }

    /// Number of tables of a node with so many rows, and of its customers.
    pub(crate) fn totals(&self, node: NodeId, n_rows: usize) -> (f64, f64) {
        if node.is_leaf() {
            return self.held(node).totals(n_rows);
        }
        let (n_tables, n_both) = self.sets.lens(node);
        if self.parts(node).is_empty() {
            return (f64::from(n_tables), f64::from(n_tables + n_both));
        }
        let Seat { table, more } = self.all_seats(node);
        (table.float(), (table + more).float())
    }

    /// All tables of a split, and all further customers.
    pub(crate) fn all_seats(&self, split: NodeId) -> Seat {
        let (n_tables, n_both) = self.sets.lens(split);
        let (table, more) = (Weight::of_rows(n_tables as usize), Weight::of_rows(n_both as usize));
        let mut all = Seat { table, more };
        self.each_part(split, |_, part| {
            all.table += part.table;
            all.more += part.more;
        });
        all
    }

    /// The classes of which a node has a whole table, as a set by itself.
    fn whole(&self, node: NodeId) -> Cow<'_, ClassSet> {
        if node.is_leaf() {
            return Cow::Owned(ClassSet::of(self.held(node).whole()));
        }
        self.sets.tables_of(node)
    }

    /// Sets the whole tables of a split, and the whole customers beyond, from the tables of its children; returns whether the
    /// tables changed.
    fn join_whole(&mut self, split: NodeId, [left, right]: [NodeId; 2]) -> bool {
        if self.sets.is_wide() {
            let joined = self.whole(left).join(&self.whole(right));
            return self.sets.set(split, joined);
        }
        let mut changed = false;
        for word in 0..self.words() {
            let (left, right) = (self.tables(left, word), self.tables(right, word));
            changed |= self.sets.set_word(split, word, [left | right, left & right]);
        }
        changed
    }

    /// The classes of part of a table at a node, and these parts, in order of class.
    fn table_parts(&self, node: NodeId) -> Vec<(Class, Weight)> {
        let mut parts = Vec::new();
        self.each_part(node, |class, part| {
            if part.table > Weight::NONE {
                parts.push((class, part.table));
            }
        });
        parts
    }

    /// As [`join`](Statistics::join), with parts of tables.
    fn join_weighted(&mut self, split: NodeId, children: [NodeId; 2]) -> bool {
        let tables = |counts: &Self| (counts.whole(split).into_owned(), counts.table_parts(split));
        let before = tables(self);
        self.join_whole(split, children);
        self.join_parts(split, children);
        before != tables(self)
    }

    /// Adds to a split what its children have in parts.
    fn join_parts(&mut self, split: NodeId, children: [NodeId; 2]) {
        let [left, right] = children.map(|child| self.table_parts(child));
        let mut classes: Vec<Class> = left.iter().chain(&right).map(|&(class, _)| class).collect();
        classes.sort_unstable();
        classes.dedup();
        let (mut parts, mut whole) = (Vec::new(), [Vec::new(), Vec::new()]);
        for class in classes {
            let seat = Seat::of(children.map(|child| self.table(child, class)).into_iter().sum());
            for (whole, seats) in whole.iter_mut().zip([seat.table, seat.more]) {
                whole.extend((seats == Weight::ONE).then_some(class));
            }
            parts.extend(
                seat.part().map(|part| SeatFraction { class, fraction: (part.table + part.more).fraction() }),
            );
        }
        self.sets.insert(split, whole);
        if self.parts.len() <= split.rank() && !parts.is_empty() {
            self.parts.resize_with(split.rank() + 1, Box::default);
        }
        if let Some(own) = self.parts.get_mut(split.rank()) {
            *own = parts.into_boxed_slice();
        }
    }
}

impl Statistics for ClassCounts {
    type Target = Class;

    /// Algorithm 5.3, line 1.
    fn set_leaf(&mut self, leaf: NodeId, rows: &[RowId], targets: RowTargets<'_, Class>) {
        self.leaves.set(leaf, rows, targets);
        self.sets.widen(self.held(leaf).last());
    }

    /// Algorithm 5.7, line 1; the parent is updated if a class is new to the leaf (lines 4 and 5).
    fn grow_leaf(
        &mut self,
        leaf: NodeId,
        n: usize,
        added: &[RowId],
        targets: RowTargets<'_, Class>,
    ) -> Option<bool> {
        let changed = self.leaves.add(leaf, n - added.len(), added, targets);
        self.sets.widen(self.held(leaf).last());
        Some(changed)
    }

    /// Algorithm 5.7 backwards: rows leave a leaf.
    fn shrink_leaf(
        &mut self,
        leaf: NodeId,
        n: usize,
        removed: &[RowId],
        targets: RowTargets<'_, Class>,
    ) -> Option<bool> {
        Some(self.leaves.subtract(leaf, n + removed.len(), removed, targets))
    }

    /// Algorithm 5.3, lines 5 and 6, and Algorithm 5.7, lines 8 and 9; returns whether the set of classes changed. That
    /// is asked after customers are counted, where line 4 of Algorithm 5.7 asks before, and so misses the customer whom a
    /// child's new table sends.
    fn join(&mut self, split: NodeId, (left, _): (NodeId, usize), (right, _): (NodeId, usize)) -> bool {
        self.sets.make_room(split);
        if self.has_parts() {
            return self.join_weighted(split, [left, right]);
        }
        self.join_whole(split, [left, right])
    }

    fn is_uniform(&self, node: NodeId) -> bool {
        self.n_classes(node) == 1
    }

    fn clear(&mut self, node: NodeId) {
        if node.is_leaf() {
            self.leaves.clear(node);
        } else {
            self.sets.clear(node);
        }
    }

    fn fetch_all(&self) {
        self.sets.fetch_all();
        self.leaves.fetch_all();
    }

    fn bytes(&self) -> usize {
        let parts: usize = self.parts.iter().map(|parts| size_of_val::<[_]>(parts)).sum();
        self.sets.bytes()
            + self.leaves.bytes()
            + self.parts.capacity() * size_of::<Box<[SeatFraction]>>()
            + parts
    }
}

/// A split needs the tables of its children (Algorithm 5.3, lines 5 and 6).
impl CellStatistics for ClassCounts {
    type Root = Vec<(Class, Weight)>;

    fn summarise(&self, node: NodeId, words: &mut Vec<u64>) {
        let mut tables = self.table_parts(node);
        tables.extend(self.classes(node).map(|class| (class, Weight::ONE)));
        tables.sort_unstable();
        words.push(tables.len() as u64);
        for (class, table) in tables {
            // A part of a table is more than 0, so that 0 can stand for a whole one.
            let part = if table == Weight::ONE { 0 } else { table.fraction() };
            words.extend([u64::from(class), part]);
        }
    }

    fn read(words: &mut Words<'_>) -> Result<Self::Root> {
        let tables = (0..words.next()?).map(|_| {
            let (class, part) = (words.next()? as Class, words.next()?);
            Ok((class, if part == 0 { Weight::ONE } else { Weight::of_fraction(part) }))
        });
        let tables: Result<Vec<_>> = tables.collect();
        tables.and_then(
            |tables| if tables.is_empty() { Err(wrong("a cell without classes")) } else { Ok(tables) },
        )
    }

    fn set_stub(&mut self, stub: NodeId, tables: Self::Root) {
        self.leaves.set_tables(stub, tables);
        self.sets.widen(self.held(stub).last());
    }
}
