//! The classification posterior: a hierarchy of normalised stable processes by interpolated Kneser-Ney.

use super::classes::{Class, Classes, iter_bits};
use super::route::{Branch, Stop};
use super::tree::Tree;
use crate::data::Scalar;
use crate::tree::Kind;

/// What one stop adds to the prediction: `G_j = own + others * G_parent(j)` (eq. 5.5) and the branch above.
#[derive(Debug, Clone, Copy, Default)]
struct Term {
    /// Weight of the branch above this stop in the prediction, times what it keeps for its own tables.
    branch_own: f64,
    /// The same, times what it hands to the parent.
    branch_parent: f64,
    /// `(1 - d) / c` of a split, `-d / c` of a leaf: of every table.
    table: f64,
    /// `1 / c`: of every further customer.
    customer: f64,
    /// `d tab / c`: of the parent.
    parent: f64,
}

/// Room for one prediction, kept from one to the next.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    terms: Vec<Term>,
}

/// Adds one tree's prediction (eq. 5.6) to `proba`, by class; returns the weight of the base measure `H`.
///
/// Eq. 5.5 is linear in the parent's prediction. So the prediction is a sum over the path of each stop's
/// own tables and customers with scalar weights, found in one pass down and one up; classes that leave the
/// path on the way down are added once.
pub(crate) fn predict<S: Scalar>(
    tree: &Tree<S, Classes>,
    stops: &[Stop],
    discount: f64,
    scratch: &mut Scratch,
    proba: &mut [f64],
) -> f64 {
    let classes = &tree.statistics;
    let mut not_separated = 1.0;
    scratch.terms.clear();
    for stop in stops {
        let tables = count(classes.tables(stop.node));
        let mut term = node_term(tree, stop, tables, discount);
        let (probability, expected) = branch(stop, discount);
        let weight = not_separated * probability;
        term.branch_own = weight * (1.0 - expected) / tables;
        term.branch_parent = weight * expected;
        not_separated *= 1.0 - probability;
        scratch.terms.push(term);
    }
    // What remains stays at the last stop, and every stop hands its share up.
    let mut carried = not_separated;
    for term in scratch.terms.iter_mut().rev() {
        let own = carried;
        carried = own * term.parent + term.branch_parent;
        term.table = own * term.table + term.branch_own;
        term.customer *= own;
    }
    add_tables(tree, stops, &scratch.terms, proba);
    carried
}

/// Eq. 5.5 at one stop.
fn node_term<S: Scalar>(tree: &Tree<S, Classes>, stop: &Stop, tables: f64, discount: f64) -> Term {
    let d = (-discount * (stop.time - stop.after)).exp();
    let classes = &tree.statistics;
    match tree.arena.kind(stop.node) {
        Kind::Split(left, right) => {
            let both: u32 = classes
                .tables(left)
                .iter()
                .zip(classes.tables(right))
                .map(|(left, right)| (left & right).count_ones())
                .sum();
            let customers = tables + f64::from(both);
            Term {
                table: (1.0 - d) / customers,
                customer: 1.0 / customers,
                parent: d * tables / customers,
                ..Term::default()
            }
        }
        _ => {
            let customers = tree.arena.n_rows(stop.node) as f64;
            Term {
                table: -d / customers,
                customer: 1.0 / customers,
                parent: d * tables / customers,
                ..Term::default()
            }
        }
    }
}

/// The probability of branching off above a stop, and the discount of the new node expected then
/// (Algorithm 5.8, lines 5-9): over a truncated exponential of rate `h`,
/// `E[exp(-g D)] = h / (h + g) (1 - exp(-(h + g) D)) / (1 - exp(-h D))`.
fn branch(stop: &Stop, discount: f64) -> (f64, f64) {
    match stop.branch {
        Branch::Never => (0.0, 1.0),
        Branch::At(time) => (1.0, (-discount * (time - stop.after)).exp()),
        Branch::Rate(rate) => {
            let span = stop.time - stop.after;
            let probability = -(-rate * span).exp_m1();
            if probability <= 0.0 {
                return (0.0, 1.0);
            }
            let both = rate + discount;
            (probability, rate / both * -(-both * span).exp_m1() / probability)
        }
    }
}

fn add_tables<S: Scalar>(tree: &Tree<S, Classes>, stops: &[Stop], terms: &[Term], proba: &mut [f64]) {
    let classes = &tree.statistics;
    let words = classes.words();
    for word in 0..words {
        let first = (word * 64) as Class;
        let bits = |stop: &Stop| classes.tables(stop.node)[word];
        let mut add = |bits: u64, amount: f64| {
            for class in iter_bits(&[bits]) {
                proba[(first + class) as usize] += amount;
            }
        };
        let mut along = 0.0;
        for (i, (stop, term)) in stops.iter().zip(terms).enumerate() {
            along += term.table;
            let below = stops.get(i + 1).map_or(0, bits);
            add(bits(stop) & !below, along);
            if let Kind::Split(left, right) = tree.arena.kind(stop.node) {
                add(classes.tables(left)[word] & classes.tables(right)[word], term.customer);
            }
        }
    }
    let (Some(stop), Some(term)) = (stops.last(), terms.last()) else { return };
    if tree.arena.is_leaf(stop.node) {
        match classes.counts(stop.node) {
            Some(counts) => {
                for &(class, n) in counts {
                    proba[class as usize] += f64::from(n) * term.customer;
                }
            }
            None => {
                let n = tree.arena.n_rows(stop.node) as f64;
                for class in iter_bits(classes.tables(stop.node)) {
                    proba[class as usize] += n * term.customer;
                }
            }
        }
    }
}

fn count(bits: &[u64]) -> f64 {
    f64::from(bits.iter().map(|word| word.count_ones()).sum::<u32>())
}
