//! The classes that leaves hold, as numbers of rows or as weights.

use std::ops::{AddAssign, SubAssign};

use crate::data::{RowId, RowTargets, Weight, fetch};
use crate::mondrian::classification::class_counts::bits::{Class, bit};
use crate::mondrian::tree::arena::NodeId;

/// In `held`: the leaf holds several classes; the other bits are the index of their counts,
const MIXED: u32 = 1 << 31;
/// or of their weights.
const WEIGHTED: u32 = 1 << 30;

/// The classes of all leaves of one tree.
#[derive(Debug, Clone, Default)]
pub(super) struct LeafCounts {
    /// A leaf's class, or the index of its counts.
    held: Vec<u32>,
    /// Classes and numbers of rows, in order of class.
    counts: Pool<(Class, u32)>,
    /// The weight of a leaf of one class, as far as there are such leaves; none if all of its rows have the weight 1.
    leaf_weights: Vec<Weight>,
    /// Classes and weights of rows of which some have another weight than 1, in order of class.
    weights: Pool<(Class, Weight)>,
}

/// What a leaf holds.
pub(crate) enum Held<'a> {
    /// Rows of one class.
    One(Class),
    /// Rows of several: customers `c_jk` in order of class.
    Several(&'a [(Class, u32)]),
    /// Rows of one class, of which some have another weight than 1, and their weight.
    OneWeighted(Class, Weight),
    /// Such rows of several classes: customers `c_jk` in order of class.
    Weighted(&'a [(Class, Weight)]),
}

impl Held<'_> {
    /// Classes and customers in order of class, given the number of rows.
    pub(crate) fn weights(&self, n_rows: usize) -> Vec<(Class, Weight)> {
        match *self {
            Self::One(class) => vec![(class, Weight::of_rows(n_rows))],
            Self::Several(counts) => {
                counts.iter().map(|&(class, n)| (class, Weight::of_rows(n as usize))).collect()
            }
            Self::OneWeighted(class, weight) => vec![(class, weight)],
            Self::Weighted(weights) => weights.to_vec(),
        }
    }

    /// The customers of one of its classes, given the number of rows.
    pub(crate) fn customers(&self, class: Class, n_rows: usize) -> Weight {
        match *self {
            Self::One(_) => Weight::of_rows(n_rows),
            Self::OneWeighted(_, weight) => weight,
            Self::Several(counts) => Weight::of_rows(number(counts, class) as usize),
            Self::Weighted(weights) => number(weights, class),
        }
    }

    /// Number of tables, and of customers.
    pub(crate) fn totals(&self, n_rows: usize) -> (f64, f64) {
        let n = f64::from(n_rows as u32);
        match *self {
            Self::One(_) => (1.0, n),
            Self::Several(counts) => (counts.len() as f64, n),
            Self::OneWeighted(_, weight) => (weight.min(Weight::ONE).float(), weight.float()),
            Self::Weighted(weights) => {
                let all = |of: fn(Weight) -> Weight| -> Weight {
                    weights.iter().map(|&(_, weight)| of(weight)).sum()
                };
                (all(|weight| weight.min(Weight::ONE)).float(), all(|weight| weight).float())
            }
        }
    }

    /// One word of the classes with a whole table.
    pub(crate) fn tables(&self, word: usize) -> u64 {
        let whole = |class, weight| if weight >= Weight::ONE { bit(class, word) } else { 0 };
        match *self {
            Self::One(class) => bit(class, word),
            Self::Several(counts) => counts.iter().fold(0, |bits, &(class, _)| bits | bit(class, word)),
            Self::OneWeighted(class, weight) => whole(class, weight),
            Self::Weighted(weights) => {
                weights.iter().fold(0, |bits, &(class, weight)| bits | whole(class, weight))
            }
        }
    }

    /// The classes with a whole table, in order.
    pub(super) fn whole(&self) -> Vec<Class> {
        let of = |weights: &[(Class, Weight)]| {
            weights.iter().filter(|(_, weight)| *weight >= Weight::ONE).map(|&(class, _)| class).collect()
        };
        match *self {
            Self::One(class) => vec![class],
            Self::Several(counts) => counts.iter().map(|&(class, _)| class).collect(),
            Self::OneWeighted(class, weight) => of(&[(class, weight)]),
            Self::Weighted(weights) => of(weights),
        }
    }

    /// The classes with part of a table.
    pub(crate) fn each_part(&self, mut visit: impl FnMut(Class, Weight)) {
        let mut each = |class, weight| {
            if weight < Weight::ONE {
                visit(class, weight);
            }
        };
        match *self {
            Self::One(_) | Self::Several(_) => {}
            Self::OneWeighted(class, weight) => each(class, weight),
            Self::Weighted(weights) => weights.iter().for_each(|&(class, weight)| each(class, weight)),
        }
    }

    /// The customers of every class beyond its table.
    pub(crate) fn each_more(&self, n_rows: usize, mut visit: impl FnMut(Class, f64)) {
        let mut beyond = |class, weight: Weight| {
            if weight > Weight::ONE {
                visit(class, (weight - Weight::ONE).float());
            }
        };
        match *self {
            Self::One(class) => visit(class, (n_rows - 1) as f64),
            Self::Several(counts) => counts.iter().for_each(|&(class, n)| visit(class, f64::from(n - 1))),
            Self::OneWeighted(class, weight) => beyond(class, weight),
            Self::Weighted(weights) => weights.iter().for_each(|&(class, weight)| beyond(class, weight)),
        }
    }

    /// The last of its classes.
    pub(super) fn last(&self) -> Class {
        let last = |class: Option<Class>| class.expect("a leaf holds rows");
        match *self {
            Self::One(class) | Self::OneWeighted(class, _) => class,
            Self::Several(counts) => last(counts.last().map(|&(class, _)| class)),
            Self::Weighted(weights) => last(weights.last().map(|&(class, _)| class)),
        }
    }

    /// The number of classes.
    pub(super) fn n_classes(&self) -> u32 {
        match *self {
            Self::One(_) | Self::OneWeighted(..) => 1,
            Self::Several(counts) => counts.len() as u32,
            Self::Weighted(weights) => weights.len() as u32,
        }
    }
}

impl LeafCounts {
    /// What a leaf holds.
    pub(super) fn held(&self, leaf: NodeId) -> Held<'_> {
        let held = self.held[leaf.rank()];
        if held & (MIXED | WEIGHTED) == 0 {
            return match self.leaf_weights.get(leaf.rank()) {
                None | Some(&Weight::NONE) => Held::One(held),
                Some(&weight) => Held::OneWeighted(held, weight),
            };
        }
        if held & MIXED != 0 {
            Held::Several(&self.counts.lists[(held & !MIXED) as usize])
        } else {
            Held::Weighted(&self.weights.lists[(held & !WEIGHTED) as usize])
        }
    }

    fn set_leaf_to(&mut self, leaf: NodeId, held: u32) {
        self.clear(leaf);
        if self.held.len() <= leaf.rank() {
            self.held.resize(leaf.rank() + 1, 0);
        }
        self.held[leaf.rank()] = held;
    }

    /// Sets what a leaf holds to numbers of rows by class, in order of class.
    pub(super) fn set_counts(&mut self, leaf: NodeId, counts: Vec<(Class, u32)>) {
        if let [(class, _)] = counts[..] {
            return self.set_leaf_to(leaf, class);
        }
        let slot = self.counts.insert(counts);
        self.set_leaf_to(leaf, slot | MIXED);
    }

    fn set_weights(&mut self, leaf: NodeId, weights: Vec<(Class, Weight)>) {
        let [(class, weight)] = weights[..] else {
            let slot = self.weights.insert(weights);
            return self.set_leaf_to(leaf, slot | WEIGHTED);
        };
        self.set_leaf_to(leaf, class);
        if self.leaf_weights.len() <= leaf.rank() {
            self.leaf_weights.resize(leaf.rank() + 1, Weight::NONE);
        }
        self.leaf_weights[leaf.rank()] = weight;
    }

    /// Sets what a leaf holds to some tables, in order of class.
    pub(super) fn set_tables(&mut self, leaf: NodeId, tables: Vec<(Class, Weight)>) {
        if tables.iter().any(|&(_, table)| table < Weight::ONE) {
            return self.set_weights(leaf, tables);
        }
        self.set_counts(leaf, tables.into_iter().map(|(class, _)| (class, 1)).collect());
    }

    /// Sets what a leaf holds to the classes of some rows (Algorithm 5.3, line 1).
    pub(super) fn set(&mut self, leaf: NodeId, rows: &[RowId], targets: RowTargets<'_, Class>) {
        if !targets.weigh_one(rows) {
            return self.set_weights(leaf, tally_weights(rows, targets));
        }
        let first = targets.of(rows[0]);
        if rows.iter().all(|&row| targets.of(row) == first) {
            return self.set_leaf_to(leaf, first);
        }
        self.set_counts(leaf, tally(rows, targets.targets));
    }

    /// Adds rows to what a leaf of `n_before` rows holds (Algorithm 5.7, line 1); returns whether its tables changed.
    pub(super) fn add(
        &mut self,
        leaf: NodeId,
        n_before: usize,
        rows: &[RowId],
        targets: RowTargets<'_, Class>,
    ) -> bool {
        self.change(leaf, n_before, (rows, targets), (add_to, add_to))
    }

    /// Removes rows from what a leaf of `n_before` rows holds; returns whether its tables changed.
    pub(super) fn subtract(
        &mut self,
        leaf: NodeId,
        n_before: usize,
        rows: &[RowId],
        targets: RowTargets<'_, Class>,
    ) -> bool {
        self.change(leaf, n_before, (rows, targets), (take_from, take_from))
    }

    /// Whether some leaf has rows of another weight than 1, or has had such rows.
    pub(super) fn has_weights(&self) -> bool {
        !(self.leaf_weights.is_empty() && self.weights.lists.is_empty())
    }

    /// Forgets what a leaf held.
    pub(super) fn clear(&mut self, leaf: NodeId) {
        let Some(held) = self.held.get_mut(leaf.rank()) else { return };
        if *held & MIXED != 0 {
            self.counts.remove(std::mem::take(held) & !MIXED);
        } else if *held & WEIGHTED != 0 {
            self.weights.remove(std::mem::take(held) & !WEIGHTED);
        } else if let Some(weight) = self.leaf_weights.get_mut(leaf.rank()) {
            *weight = Weight::NONE;
        }
    }

    pub(super) fn fetch_all(&self) {
        fetch(&self.held);
    }

    pub(super) fn bytes(&self) -> usize {
        self.held.capacity() * size_of::<u32>()
            + self.counts.bytes()
            + self.leaf_weights.capacity() * size_of::<Weight>()
            + self.weights.bytes()
    }

    /// Whether some rows of a leaf have another weight than 1.
    fn is_weighted(&self, leaf: NodeId) -> bool {
        matches!(self.held(leaf), Held::OneWeighted(..) | Held::Weighted(_))
    }

    /// Adds or removes rows by class, as weights or as counts; returns whether the leaf's tables changed.
    fn change(
        &mut self,
        leaf: NodeId,
        n_before: usize,
        (rows, targets): (&[RowId], RowTargets<'_, Class>),
        (by_weight, by_count): (Change<Weight>, Change<u32>),
    ) -> bool {
        if self.is_all(leaf, rows, targets) {
            return false;
        }
        if self.is_weighted(leaf) || !targets.weigh_one(rows) {
            return self.reweigh(leaf, n_before, |weights| {
                for (class, weight) in tally_weights(rows, targets) {
                    by_weight(weights, class, weight);
                }
            });
        }
        self.recount(leaf, n_before, |counts| {
            for (class, n) in tally(rows, targets.targets) {
                by_count(counts, class, n);
            }
        })
    }

    /// Changes the weights of a leaf; returns whether its tables changed.
    fn reweigh(
        &mut self,
        leaf: NodeId,
        n_before: usize,
        change: impl FnOnce(&mut Vec<(Class, Weight)>),
    ) -> bool {
        let before = self.held(leaf).weights(n_before);
        let mut weights = before.clone();
        change(&mut weights);
        let tables = |weights: &[(Class, Weight)]| -> Vec<(Class, Weight)> {
            weights.iter().map(|&(class, weight)| (class, weight.min(Weight::ONE))).collect()
        };
        let same = tables(&before) == tables(&weights);
        self.set_weights(leaf, weights);
        !same
    }

    /// Changes the counts of a leaf without weights; returns whether its set of classes changed.
    fn recount(
        &mut self,
        leaf: NodeId,
        n_before: usize,
        change: impl FnOnce(&mut Vec<(Class, u32)>),
    ) -> bool {
        let mut counts = match self.held(leaf) {
            Held::One(class) => vec![(class, n_before as u32)],
            Held::Several(counts) => counts.to_vec(),
            Held::OneWeighted(..) | Held::Weighted(_) => unreachable!("the leaf has no weights"),
        };
        let before: Vec<Class> = counts.iter().map(|&(class, _)| class).collect();
        change(&mut counts);
        let same = before.iter().eq(counts.iter().map(|(class, _)| class));
        self.set_counts(leaf, counts);
        !same
    }

    /// Whether a leaf holds nothing but the class of some rows, all without weights.
    fn is_all(&self, leaf: NodeId, rows: &[RowId], targets: RowTargets<'_, Class>) -> bool {
        matches!(self.held(leaf), Held::One(class) if rows.iter().all(|&row| targets.of(row) == class))
            && targets.weigh_one(rows)
    }
}

/// Rows by class, in order of class.
pub(crate) fn tally(rows: &[RowId], targets: &[Class]) -> Vec<(Class, u32)> {
    let mut counts: Vec<(Class, u32)> = Vec::new();
    for &row in rows {
        let class = targets[row as usize];
        // Nearly always one class, and the last one seen.
        match counts.last_mut() {
            Some(last) if last.0 == class => last.1 += 1,
            _ => match counts.binary_search_by_key(&class, |&(class, _)| class) {
                Ok(i) => counts[i].1 += 1,
                Err(i) => counts.insert(i, (class, 1)),
            },
        }
    }
    counts
}

/// Weights of rows by class, in order of class.
pub(crate) fn tally_weights(rows: &[RowId], targets: RowTargets<'_, Class>) -> Vec<(Class, Weight)> {
    let mut weights = Vec::new();
    for &row in rows {
        add_to(&mut weights, targets.of(row), Weight::of(targets.weight(row)));
    }
    weights
}

/// Adds to a class in a list in order of class, or subtracts from it.
type Change<T> = fn(&mut Vec<(Class, T)>, Class, T);

/// Adds to a class.
fn add_to<T: AddAssign>(list: &mut Vec<(Class, T)>, class: Class, more: T) {
    match list.binary_search_by_key(&class, |&(class, _)| class) {
        Ok(i) => list[i].1 += more,
        Err(i) => list.insert(i, (class, more)),
    }
}

/// Subtracts from a class that a list has; one of which nothing is left goes.
fn take_from<T: SubAssign + Default + PartialEq>(list: &mut Vec<(Class, T)>, class: Class, less: T) {
    let place = list.binary_search_by_key(&class, |&(class, _)| class).expect(HELD);
    list[place].1 -= less;
    if list[place].1 == T::default() {
        list.remove(place);
    }
}

/// The number of a class that a list has.
fn number<T: Copy>(list: &[(Class, T)], class: Class) -> T {
    list[list.binary_search_by_key(&class, |&(class, _)| class).expect(HELD)].1
}

const HELD: &str = "the leaf held the row";

/// Lists that come and go.
#[derive(Debug, Clone)]
struct Pool<T> {
    lists: Vec<Box<[T]>>,
    free: Vec<u32>,
}

impl<T> Default for Pool<T> {
    fn default() -> Self {
        Self { lists: Vec::new(), free: Vec::new() }
    }
}

impl<T> Pool<T> {
    fn insert(&mut self, list: Vec<T>) -> u32 {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.lists.push(Box::default());
            self.lists.len() as u32 - 1
        });
        self.lists[slot as usize] = list.into_boxed_slice();
        slot
    }

    fn remove(&mut self, slot: u32) {
        self.lists[slot as usize] = Box::default();
        self.free.push(slot);
    }

    fn bytes(&self) -> usize {
        let lists: usize = self.lists.iter().map(|list| size_of_val::<[T]>(list)).sum();
        self.lists.capacity() * size_of::<Box<[T]>>() + lists
    }
}
