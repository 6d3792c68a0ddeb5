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

/// Where a point may branch off above a stop.
#[derive(Debug, Clone, Copy)]
struct Fork {
    /// The probability of getting there and branching off.
    weight: f64,
    /// That of branching off if there.
    probability: f64,
}

/// Room for one prediction, kept from one to the next.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    /// At the last stops.
    forks: Vec<Fork>,
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
    // Boxes are nested: the stops above which a point may branch off come last.
    let inside = stops.iter().rposition(|stop| stop.branch == Branch::Never).map_or(0, |last| last + 1);
    let mut stays = 1.0;
    scratch.forks.clear();
    scratch.forks.extend(stops[inside..].iter().map(|stop| {
        let probability = match stop.branch {
            Branch::Never => 0.0,
            Branch::At(_) => 1.0,
            Branch::Rate(rate) => falls(rate * (stop.time - stop.after)),
        };
        let weight = stays * probability;
        stays *= 1.0 - probability;
        Fork { weight, probability }
    }));
    // The weight of the node's own prediction: at first what stays at the last stop.
    let mut own = stays;
    scratch.terms.clear();
    for stop in stops[inside..].iter().zip(&scratch.forks).rev() {
        let (term, parent) = weigh(tree, stop.0, own, discount);
        let (fork_term, fork_parent) = weigh_fork(tree, stop, discount);
        scratch.terms.push(Term { table: term.table + fork_term, ..term });
        own = parent + fork_parent;
    }
    let mut first = inside;
    while first > 0 && own >= NOTHING {
        first -= 1;
        let (term, parent) = weigh(tree, &stops[first], own, discount);
        scratch.terms.push(term);
        own = parent;
    }
    add(tree, &stops[first..], &scratch.terms, proba);
    own
}

/// What a stop adds, and the weight of its parent's prediction, given the weight of its own prediction.
fn weigh<S: Scalar>(tree: &Tree<S, Classes>, stop: &Stop, own: f64, discount: f64) -> (Term, f64) {
    if own < NOTHING {
        return (Term { table: 0.0, customer: 0.0 }, 0.0);
    }
    let (n_tables, n_both) = tree.statistics.n_tables(stop.node);
    let leaf = stop.node.is_leaf();
    let customers = f64::from(if leaf { tree.arena.n_rows(stop.node) as u32 } else { n_tables + n_both });
    let d = survives(discount * (stop.time - stop.after));
    let customer = own / customers;
    (Term { table: customer * (1.0 - d), customer }, customer * d * f64::from(n_tables))
}

/// What the node that forks off above a stop adds to every class with a table at the stop, and the weight of
/// its parent's prediction: it has the stop's tables, one customer each (Algorithm 5.8, lines 9-11).
fn weigh_fork<S: Scalar>(tree: &Tree<S, Classes>, (stop, fork): (&Stop, &Fork), discount: f64) -> (f64, f64) {
    if fork.weight <= 0.0 {
        return (0.0, 0.0);
    }
    let span = stop.time - stop.after;
    // The discount expected at the branch: over a truncated exponential of rate `h`,
    // `E[exp(-g D)] = h / (h + g) (1 - exp(-(h + g) D)) / (1 - exp(-h D))`.
    let d = match stop.branch {
        Branch::Never => 1.0,
        Branch::At(time) => survives(discount * (time - stop.after)),
        Branch::Rate(rate) => rate / (rate + discount) * falls((rate + discount) * span) / fork.probability,
    };
    let (n_tables, _) = tree.statistics.n_tables(stop.node);
    (fork.weight * (1.0 - d) / f64::from(n_tables), fork.weight * d)
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
