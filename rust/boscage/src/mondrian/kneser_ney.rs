//! The classification posterior: a hierarchy of normalised stable processes by interpolated Kneser-Ney.

use super::classes::{Classes, Held};
use super::route::{Branch, Stop};
use super::tree::Tree;
use crate::data::Scalar;

/// What one stop adds to the prediction.
#[derive(Debug, Clone, Copy)]
struct Term {
    /// To every class with a table at the stop.
    table: f64,
    /// To every class with a further customer: in both children of a split, `n - 1` times in a leaf.
    customer: f64,
}

/// Room for one prediction, kept from one to the next.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    /// Probabilities of branching off above each stop, times that of getting there.
    branches: Vec<f64>,
    terms: Vec<Term>,
}

/// Weights below this change no probability.
const NOTHING: f64 = 1e-18;
/// `exp(-x)` beyond this is below [`NOTHING`].
const FAR: f64 = 42.0;

/// Adds one tree's prediction (eq. 5.6) to `proba`, by class; returns the weight of the base measure `H`.
///
/// Eq. 5.5 is linear in the parent's prediction: with `t` tables and `c` customers at a node of discount
/// `d`, a class with a table gets `(1 - d) / c`, with a further customer `1 / c` more, and the parent's
/// prediction counts `d t / c`. So the prediction is a sum over the path of tables and customers with
/// scalar weights, which are found on the way from the last stop up to where nothing is handed on.
pub(crate) fn predict<S: Scalar>(
    tree: &Tree<S, Classes>,
    stops: &[Stop],
    discount: f64,
    scratch: &mut Scratch,
    proba: &mut [f64],
) -> f64 {
    let mut stays = 1.0;
    scratch.branches.clear();
    scratch.branches.extend(stops.iter().map(|stop| {
        let probability = match stop.branch {
            Branch::Never => 0.0,
            Branch::At(_) => 1.0,
            Branch::Rate(rate) => falls(rate * (stop.time - stop.after)),
        };
        let weight = stays * probability;
        stays *= 1.0 - probability;
        weight
    }));
    // The weight of the node's own prediction: at first what stays at the last stop.
    let mut own = stays;
    let mut first = stops.len();
    scratch.terms.clear();
    for (stop, &branch) in stops.iter().zip(&scratch.branches).rev() {
        if own < NOTHING && first < stops.len() && !scratch.branches[..first].iter().any(|&b| b > 0.0) {
            break;
        }
        let (term, parent) = weigh(tree, stop, own, branch, discount);
        scratch.terms.push(term);
        own = parent;
        first -= 1;
    }
    add(tree, &stops[first..], &scratch.terms, proba);
    own
}

/// What a stop adds, and the weight of its parent's prediction, given the weights of its own prediction and
/// of the branch above it.
fn weigh<S: Scalar>(
    tree: &Tree<S, Classes>,
    stop: &Stop,
    own: f64,
    branch: f64,
    discount: f64,
) -> (Term, f64) {
    let (n_tables, n_both) = tree.statistics.n_tables(stop.node);
    let n_tables = f64::from(n_tables);
    let mut term = Term { table: 0.0, customer: 0.0 };
    let mut parent = 0.0;
    if own >= NOTHING {
        let leaf = stop.node.is_leaf();
        let customers = if leaf { tree.arena.n_rows(stop.node) as f64 } else { n_tables + f64::from(n_both) };
        let d = survives(discount * (stop.time - stop.after));
        term.customer = own / customers;
        term.table = term.customer * (1.0 - d);
        parent = term.customer * d * n_tables;
    }
    if branch > 0.0 {
        // The new node has the stop's tables, one customer each (Algorithm 5.8, lines 9-11).
        let d = expected_discount(stop, discount);
        term.table += branch * (1.0 - d) / n_tables;
        parent += branch * d;
    }
    (term, parent)
}

/// The discount expected at the branch above a stop: over a truncated exponential of rate `h`,
/// `E[exp(-g D)] = h / (h + g) (1 - exp(-(h + g) D)) / (1 - exp(-h D))`.
fn expected_discount(stop: &Stop, discount: f64) -> f64 {
    match stop.branch {
        Branch::Never => 1.0,
        Branch::At(time) => survives(discount * (time - stop.after)),
        Branch::Rate(rate) => {
            let span = stop.time - stop.after;
            rate / (rate + discount) * falls((rate + discount) * span) / falls(rate * span)
        }
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

/// Adds the terms, given from the last stop up, class by class. A class on the path stays on it up to the
/// root, so on the way down every class is met once: where it leaves the path.
fn add<S: Scalar>(tree: &Tree<S, Classes>, stops: &[Stop], terms: &[Term], proba: &mut [f64]) {
    let classes = &tree.statistics;
    let Some(last) = stops.last() else { return };
    for word in 0..classes.words() {
        let proba = &mut proba[word * 64..];
        let mut along = 0.0;
        let mut here = classes.tables(stops[0].node, word);
        for (i, term) in terms.iter().rev().enumerate() {
            if here == 0 {
                break;
            }
            along += term.table;
            let below = stops.get(i + 1).map_or(0, |next| classes.tables(next.node, word));
            spread(here & !below, along, proba);
            let node = stops[i].node;
            if term.customer > 0.0 && !node.is_leaf() {
                spread(classes.both(node, word), term.customer, proba);
            }
            here = below;
        }
    }
    if !last.node.is_leaf() || terms[0].customer == 0.0 {
        return;
    }
    let customer = terms[0].customer;
    match classes.held(last.node) {
        Held::One(class) => proba[class as usize] += (tree.arena.n_rows(last.node) - 1) as f64 * customer,
        Held::Several(counts) => {
            for &(class, n) in counts {
                proba[class as usize] += f64::from(n - 1) * customer;
            }
        }
    }
}

/// Adds an amount to the classes of a word of bits.
fn spread(mut bits: u64, amount: f64, proba: &mut [f64]) {
    while bits != 0 {
        proba[bits.trailing_zeros() as usize] += amount;
        bits &= bits - 1;
    }
}
