//! How usual a row is: how long the trees keep it together with rows that they hold.
//!
//! A tree separates a test row `x` from all its rows at the time `T` at which `x` branches off. `T` is an exponential time
//! whose rate is the branch rate `eta_j(x)` along the path of `x` (section 5.5.3), so that it is short where `x` lies far
//! outside the boxes of the nodes, and the lifetime where `x` lies in the box of its leaf. The score is
//!
//! `s(x) = 1/M sum_m E[1 - exp(-g T_m)]`:
//!
//! the probability that a tree, drawn at random, has not separated `x` from all its rows at an exponential time of rate `g`.
//! It is 1 where `x` lies in the box of a leaf that lives for ever, and falls to 0 with the distance from the rows. For one row,
//! at L1 distance `r` in units of the rates, it is `g / (g + r)`. The expectation has a closed form (`clock`), so that nothing is
//! drawn, and the score is a function of the set of rows.
//!
//! *The choice.* Scores were compared by how well they tell test rows from rows of classes that were left out, from rows with
//! permuted features and from uniform noise, on nine sets: this one for rates from a fiftieth to 250 times the sum of the
//! feature weights, the expected time, the expected depth and the Mondrian kernel's density `E[n(T') / n; T' < T]` at random
//! lifetimes `T'`. Slow clocks told best on all three: they look at how the row leaves the cells of many rows, and fast ones
//! at whether it leaves at all. The density was behind, since how many rows a cell has says less than how far it is.

use crate::control::Run;
use crate::data::{RowId, Rows, Scalar};
use crate::error::Result;
use crate::mondrian::forest::Forest;
use crate::mondrian::prediction::clock::Clock;
use crate::mondrian::prediction::stop::{Stop, n_inside};
use crate::mondrian::prediction::visitor::Visitor;
use crate::mondrian::prediction::walk;
use crate::mondrian::tree::Tree;
use crate::mondrian::tree::statistics::Statistics;

/// The rate `g` of the exponential time, in units of the sum of the feature weights: that of the joint model of classes.
const RATE: f64 = 0.05;

/// The scores of test rows.
///
/// # Errors
/// A number of features other than in `fit`; an interrupt.
pub(crate) fn scores<P: Statistics>(forest: &Forest<P>, rows: Rows<'_>, run: &Run<'_>) -> Result<Vec<f64>> {
    let score = Score::of(forest);
    Ok(score.finish(walk::predict(forest, rows, run, &score)?))
}

/// The scores of rows of the forest, each by the forest without it, which stays as it is.
///
/// # Errors
/// An interrupt.
pub(crate) fn left_out_scores<P: Statistics>(
    forest: &Forest<P>,
    rows: &[RowId],
    run: &Run<'_>,
) -> Result<Vec<f64>> {
    let score = Score::of(forest);
    Ok(score.finish(walk::predict_left_out(forest, rows, run, &score)?))
}

/// Sums scores over trees.
struct Score {
    clock: Clock,
    n_trees: usize,
}

impl Score {
    fn of<P: Statistics>(forest: &Forest<P>) -> Self {
        let clock = Clock::new(RATE * forest.domain.total_weight());
        Self { clock, n_trees: forest.settings.n_estimators }
    }

    fn finish(&self, chunks: Vec<Vec<f64>>) -> Vec<f64> {
        let n_trees = self.n_trees as f64;
        // Sums over trees are rounded; no probability is above 1.
        chunks.into_iter().flatten().map(|sum| (sum / n_trees).min(1.0)).collect()
    }
}

impl<P: Statistics> Visitor<P> for Score {
    type Chunk = Vec<f64>;

    fn start(&self, n_rows: usize) -> Vec<f64> {
        vec![0.0; n_rows]
    }

    fn visit<S: Scalar>(&self, _: usize, _: &Tree<S, P>, row: usize, stops: &[Stop], sums: &mut Vec<f64>) {
        let (inside, outside) = stops.split_at(n_inside(stops));
        let certain = inside.last().map_or(0.0, |stop| self.clock.at(stop.time));
        let parts = self.clock.parts(outside);
        let more: f64 = outside.iter().zip(parts).map(|(stop, part)| part * self.clock.span(stop)).sum();
        sums[row] += certain + more;
    }
}
