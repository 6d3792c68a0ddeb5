//! The classification posterior: a hierarchy of normalised stable processes by interpolated Kneser-Ney.
//!
//! This approximates the posterior of the nodes' distributions (eq. 5.4); a tree predicts their means at the leaf (eq. 5.3).

use std::ops::Range;

use crate::data::Scalar;
use crate::mondrian::classification::class_counts::{Class, ClassCounts, Seat, WORD};
use crate::mondrian::prediction::stop::{Branch, Stop, n_inside};
use crate::mondrian::tree::Tree;
use crate::mondrian::tree::arena::NodeId;

/// The terms that one stop adds to the prediction.
#[derive(Debug, Clone, Copy)]
struct Term {
    /// To every class with a table at the stop (of a part of a table, that part).
    table: f64,
    /// To every class with a further customer: in both children of a split, `c - 1` times in a leaf.
    customer: f64,
}

/// Where a test row may branch off above a stop.
#[derive(Debug, Clone, Copy)]
struct Fork {
    /// The probability of reaching it.
    reached: f64,
    /// The probability of branching off, given that.
    probability: f64,
}

/// The parts of a stop's predictions that do not depend on the test row.
#[derive(Debug, Clone, Copy)]
struct Restaurant {
    /// The discount `d_j = exp(-gamma (tau_j - tau_parent(j)))` (eq. 5.2).
    discount: f64,
    n_tables: f64,
    /// One over the number of tables and of customers.
    per_table: f64,
    per_customer: f64,
}

/// A stop at some depth of some tree; test rows come in an order in which successive ones share most stops.
#[derive(Debug, Clone, Copy)]
struct Passed {
    tree: usize,
    node: NodeId,
    restaurant: Restaurant,
}

/// Buffers of predictions, and the stops that successive test rows share.
#[derive(Debug, Default)]
pub(crate) struct Buffers {
    /// The stop of the last test row, by depth.
    passed: Vec<Option<Passed>>,
    /// At the last stops.
    forks: Vec<Fork>,
    terms: Vec<Term>,
}

/// The class counts at the stops of a path, by the stop's depth.
pub(crate) trait PathCounts: Copy {
    /// Words to a set of classes.
    fn words(self) -> usize;

    /// Whether successive test rows meet the same counts at the stop's node.
    fn is_shared(self, depth: usize) -> bool;

    fn is_leaf(self, depth: usize) -> bool;

    /// Number of tables at a stop, and of customers.
    fn totals(self, depth: usize) -> (f64, f64);

    /// One word of the classes of which a stop has a whole table.
    fn tables(self, depth: usize, word: usize) -> u64;

    /// One word of the classes of which both children of a split have a whole table.
    fn both(self, depth: usize, word: usize) -> u64;

    /// Whether tables may be in parts.
    fn has_parts(self) -> bool;

    /// The parts of tables at a stop, and of further customers at a split.
    fn each_part(self, depth: usize, visit: impl FnMut(Class, Seat));

    /// The customers of every class of a leaf beyond its table.
    fn each_more(self, depth: usize, visit: impl FnMut(Class, f64));
}

/// The counts on a path of a tree as it is.
#[derive(Debug)]
pub(crate) struct InTree<'a, S> {
    pub(crate) tree: &'a Tree<S, ClassCounts>,
    pub(crate) stops: &'a [Stop],
}

impl<S> Clone for InTree<'_, S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S> Copy for InTree<'_, S> {}

impl<S: Scalar> PathCounts for InTree<'_, S> {
    fn words(self) -> usize {
        self.tree.statistics.words()
    }

    fn is_shared(self, _: usize) -> bool {
        true
    }

    fn is_leaf(self, depth: usize) -> bool {
        self.stops[depth].node.is_leaf()
    }

    fn totals(self, depth: usize) -> (f64, f64) {
        let node = self.stops[depth].node;
        self.tree.statistics.totals(node, self.tree.arena.n_rows(node))
    }

    fn tables(self, depth: usize, word: usize) -> u64 {
        self.tree.statistics.tables(self.stops[depth].node, word)
    }

    fn both(self, depth: usize, word: usize) -> u64 {
        self.tree.statistics.both(self.stops[depth].node, word)
    }

    fn has_parts(self) -> bool {
        self.tree.statistics.has_parts()
    }

    fn each_part(self, depth: usize, visit: impl FnMut(Class, Seat)) {
        self.tree.statistics.each_part(self.stops[depth].node, visit);
    }

    fn each_more(self, depth: usize, visit: impl FnMut(Class, f64)) {
        let node = self.stops[depth].node;
        self.tree.statistics.held(node).each_more(self.tree.arena.n_rows(node), visit);
    }
}

/// What a prediction adds its amounts to, one after the other.
pub(crate) trait Votes {
    /// Adds an amount to the classes of a word of bits.
    fn spread(&mut self, word: usize, bits: u64, amount: f64);

    /// Adds an amount to one class.
    fn one(&mut self, class: Class, amount: f64);
}

/// Sums, by class.
impl Votes for [f64] {
    #[inline]
    fn spread(&mut self, word: usize, bits: u64, amount: f64) {
        spread(bits, amount, &mut self[word * WORD..]);
    }

    #[inline]
    fn one(&mut self, class: Class, amount: f64) {
        self[class as usize] += amount;
    }
}

/// A tree that predicts, by the approximate posterior of the hierarchy (eq. 5.4).
#[derive(Debug, Clone, Copy)]
pub(crate) struct Predictor<C> {
    pub(crate) number: usize,
    pub(crate) counts: C,
    /// The parameter `gamma` of discounts.
    pub(crate) gamma: f64,
}

/// The weights in a prediction of what has nothing to do with where the test row lies.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct OfAllRows {
    /// Of the base measure.
    pub(crate) base: f64,
    /// Of what the tree says of all its rows: the base measure, the root, unless that is a leaf, and a node that branches off
    /// above the root.
    pub(crate) all: f64,
}

impl OfAllRows {
    pub(crate) fn add(&mut self, other: Self) {
        self.base += other.base;
        self.all += other.all;
    }
}

/// Weights below this change no probability.
const NOTHING: f64 = 1e-18;
/// `exp(-x)` beyond this is below [`NOTHING`].
const FAR: f64 = 42.0;

impl<C: PathCounts> Predictor<C> {
    /// Adds the tree's prediction (Algorithm 5.8, eq. 5.6 and eq. 5.7; without branches, eq. 5.3) to `votes`, but for the base
    /// measure `H`.
    ///
    /// Eq. 5.5 is linear in the parent's prediction: with `t` tables and `c` customers at a node of
    /// discount `d`, a class with a table gets `(1 - d) / c`, `1 / c` more for every further customer, and
    /// the parent's prediction has weight `d t / c`. So the prediction is a sum over the path of tables and
    /// customers with scalar weights, which are computed from the last stop up to where the parent's weight
    /// vanishes.
    pub(crate) fn predict<V: Votes + ?Sized>(
        self,
        stops: &[Stop],
        buffers: &mut Buffers,
        votes: &mut V,
    ) -> OfAllRows {
        let (inside, outside) = stops.split_at(n_inside(stops));
        let mut stays = 1.0;
        buffers.forks.clear();
        buffers.forks.extend(outside.iter().map(|stop| {
            let probability = match stop.branch {
                Branch::Never => 0.0,
                Branch::At(_) => 1.0,
                Branch::Rate(rate) => falls(rate * (stop.time - stop.after)),
            };
            let fork = Fork { reached: stays, probability };
            stays *= 1.0 - probability;
            fork
        }));
        // The weight of the stop's own prediction: at the last stop the probability of staying.
        let mut own = stays;
        let mut at_root = 0.0;
        buffers.terms.clear();
        for (i, stop) in outside.iter().enumerate().rev() {
            let restaurant = self.restaurant(buffers, inside.len() + i, stop);
            let (term, parent) = restaurant.weigh(own);
            let fork = buffers.forks[i];
            let (fork_term, fork_parent) = restaurant.weigh_fork(stop, fork, self.gamma);
            buffers.terms.push(Term { table: term.table + fork_term, ..term });
            at_root = fork.reached * fork.probability + if self.is_own(stops, i) { parent } else { own };
            own = parent + fork_parent;
        }
        let mut first = inside.len();
        while first > 0 && own >= NOTHING {
            first -= 1;
            let (term, parent) = self.restaurant(buffers, first, &stops[first]).weigh(own);
            buffers.terms.push(term);
            at_root = if self.is_own(stops, first) { parent } else { own };
            own = parent;
        }
        self.add(first..stops.len(), &buffers.terms, votes);
        OfAllRows { base: own, all: if buffers.terms.len() == stops.len() { at_root } else { own } }
    }

    /// Whether a stop is a root that is a leaf, whose rows are about the test row while that stays in it.
    fn is_own(self, stops: &[Stop], depth: usize) -> bool {
        depth == 0 && stops.len() == 1 && self.counts.is_leaf(0)
    }

    /// Takes away from a prediction what the tree says of all its rows, as [`predict`](Self::predict) left it in the buffers:
    /// what the root of a split adds, or where the root is a leaf, what the node adds that branches off above it.
    pub(crate) fn take_root_away(self, stops: &[Stop], buffers: &Buffers, proba: &mut [f64]) {
        let Some(&term) = buffers.terms.last().filter(|_| buffers.terms.len() == stops.len()) else { return };
        let term = if self.counts.is_leaf(0) { self.above_root(stops, buffers) } else { term };
        for word in 0..self.counts.words() {
            let proba = &mut proba[word * WORD..];
            spread(self.counts.tables(0, word), -term.table, proba);
            if term.customer > 0.0 {
                spread(self.counts.both(0, word), -term.customer, proba);
            }
        }
        if self.counts.has_parts() {
            self.counts.each_part(0, |class, part| proba[class as usize] -= term.of(part));
        }
    }

    /// The terms of the node that branches off above the root.
    fn above_root(self, stops: &[Stop], buffers: &Buffers) -> Term {
        // Boxes are nested: there are forks at all stops, or none at the root.
        let fork = buffers.forks.first().filter(|_| buffers.forks.len() == stops.len());
        let restaurant = self.open(0, &stops[0]);
        let table = fork.map_or(0.0, |&fork| restaurant.weigh_fork(&stops[0], fork, self.gamma).0);
        Term { table, customer: 0.0 }
    }

    /// The restaurant of a stop, computed once for successive test rows that share the stop.
    fn restaurant(self, buffers: &mut Buffers, depth: usize, stop: &Stop) -> Restaurant {
        if !self.counts.is_shared(depth) {
            return self.open(depth, stop);
        }
        if buffers.passed.len() <= depth {
            buffers.passed.resize(depth + 1, None);
        }
        match buffers.passed[depth] {
            Some(passed) if passed.node == stop.node && passed.tree == self.number => passed.restaurant,
            _ => {
                let restaurant = self.open(depth, stop);
                let (tree, node) = (self.number, stop.node);
                buffers.passed[depth] = Some(Passed { tree, node, restaurant });
                restaurant
            }
        }
    }

    /// The restaurant of a stop, with the discount of eq. 5.2.
    fn open(self, depth: usize, stop: &Stop) -> Restaurant {
        let Stop { after, time, .. } = *stop;
        let (n_tables, n_customers) = self.counts.totals(depth);
        Restaurant {
            discount: survives(self.gamma * (time - after)),
            n_tables,
            per_table: 1.0 / n_tables,
            per_customer: 1.0 / n_customers,
        }
    }

    /// Adds the terms of some stops (Algorithm 5.4), given from the last stop up, class by class. A class that the last stop holds is
    /// held by all stops above, so on the way down every class is added once: where the path leaves it.
    fn add<V: Votes + ?Sized>(self, depths: Range<usize>, terms: &[Term], votes: &mut V) {
        let counts = self.counts;
        if depths.is_empty() {
            return;
        }
        for word in 0..counts.words() {
            let mut along = 0.0;
            let mut here = counts.tables(depths.start, word);
            for (depth, term) in depths.clone().zip(terms.iter().rev()) {
                if here == 0 {
                    break;
                }
                along += term.table;
                let below = if depth + 1 < depths.end { counts.tables(depth + 1, word) } else { 0 };
                votes.spread(word, here & !below, along);
                if term.customer > 0.0 && !counts.is_leaf(depth) {
                    votes.spread(word, counts.both(depth, word), term.customer);
                }
                here = below;
            }
        }
        if counts.has_parts() {
            for (depth, term) in depths.clone().zip(terms.iter().rev()) {
                counts.each_part(depth, |class, part| votes.one(class, term.of(part)));
            }
        }
        let (last, customer) = (depths.end - 1, terms[0].customer);
        if counts.is_leaf(last) && customer != 0.0 {
            counts.each_more(last, |class, n| votes.one(class, n * customer));
        }
    }
}

impl Term {
    /// What the term gives to a class that has a part of a table at its stop.
    fn of(self, part: Seat) -> f64 {
        self.table * part.table.float() + self.customer * part.more.float()
    }
}

impl Restaurant {
    /// The terms that a stop adds, and the weight of its parent's prediction, given the weight of its own
    /// prediction (eq. 5.5, Algorithm 5.4, line 9).
    fn weigh(&self, own: f64) -> (Term, f64) {
        if own < NOTHING {
            return (Term { table: 0.0, customer: 0.0 }, 0.0);
        }
        let customer = own * self.per_customer;
        (Term { table: customer * (1.0 - self.discount), customer }, customer * self.discount * self.n_tables)
    }

    /// The amount that the node which branches off above a stop adds to every class with a table at the
    /// stop, and the weight of its parent's prediction: the new node has the stop's tables, one customer
    /// each (Algorithm 5.8, lines 9-11; eq. 5.7).
    fn weigh_fork(&self, stop: &Stop, Fork { reached, probability }: Fork, gamma: f64) -> (f64, f64) {
        let weight = reached * probability;
        if weight <= 0.0 {
            return (0.0, 0.0);
        }
        // The discount expected at the branch, times the probability of branching off: over an exponential of
        // rate `h` that comes before `D`, `h / (h + g) (1 - exp(-(h + g) D))`.
        let parent = match stop.branch {
            Branch::Never => weight,
            Branch::At(time) => weight * survives(gamma * (time - stop.after)),
            Branch::Rate(rate) => {
                let either = probability + (1.0 - probability) * (1.0 - self.discount);
                reached * either * (rate / (rate + gamma))
            }
        };
        ((weight - parent).max(0.0) * self.per_table, parent)
    }
}

/// `exp(-x)`.
fn survives(x: f64) -> f64 {
    if x > FAR { 0.0 } else { (-x).exp() }
}

/// `1 - exp(-x)`.
fn falls(x: f64) -> f64 {
    if x > FAR {
        1.0
    } else if x > 0.5 {
        1.0 - (-x).exp()
    } else {
        -(-x).exp_m1()
    }
}

/// Adds an amount to the classes of a word of bits.
fn spread(mut bits: u64, amount: f64, proba: &mut [f64]) {
    while bits != 0 {
        proba[bits.trailing_zeros() as usize] += amount;
        bits &= bits - 1;
    }
}
