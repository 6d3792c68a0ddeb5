//! The joint mean of a row by the trees: sums of weights on its paths.

use crate::mondrian::prediction::shared_path::SharedPath;
use crate::mondrian::prediction::stop::Stop;
use crate::mondrian::regression::hierarchy::belief_propagation::Hyperparameters;
use crate::mondrian::regression::hierarchy::branch_clock::clock_gain;
use crate::mondrian::regression::hierarchy::branch_time;
use crate::mondrian::regression::hierarchy::tree_predictive::StopsAndLaws;
use crate::mondrian::tree::arena::NodeId;

/// The joint model at a stop of a test row's path.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PassedStop {
    clock: f64,
    /// The tree's share of the mean down to there, of a row that does not branch off before.
    mean: f64,
}

/// What test rows share of their paths, and the clock that the last one shares with the rows below each of its stops.
#[derive(Debug, Clone, Default)]
pub(crate) struct JointPath {
    passed: SharedPath<PassedStop>,
    spans: Vec<f64>,
    /// Number of the last row's first stops above which it does not branch off.
    inside: usize,
    /// For [`smooth`]: the sums down to each stop of a row that does not branch off before; those of the first stops are known.
    smoothed: Vec<f64>,
    n_known: usize,
}

/// A tree's share of the mean of a row: sums by node, each times the expected clock that the row and the
/// node's rows share below the node's parent. The tree is given by its number.
pub(crate) fn mean(
    (tree, sum): (usize, impl Fn(NodeId) -> f64),
    hyper: &Hyperparameters,
    StopsAndLaws { stops, laws }: StopsAndLaws<'_>,
    JointPath { passed, spans, inside, n_known, .. }: &mut JointPath,
) -> f64 {
    let (mut together, mut mean, mut above) = (1.0, 0.0, 0.0);
    spans.clear();
    *inside = 0;
    for (i, (stop, law)) in stops.iter().zip(laws).enumerate() {
        let PassedStop { clock, mean: shared } = passed.at(i, (tree, stop.node), |before| {
            *n_known = i.min(*n_known);
            let before = before.unwrap_or(PassedStop { clock: 0.0, mean: 0.0 });
            let clock = hyper.clock(stop.time);
            let span = (clock - before.clock).max(0.0);
            PassedStop { clock, mean: before.mean + span * sum(stop.node) }
        });
        let span = (clock - above).max(0.0);
        above = clock;
        let Some(law) = law else {
            spans.push(together * span);
            if together == 1.0 {
                // The sums above were added for the row before.
                mean = shared;
                *inside = i + 1;
            } else {
                mean += together * span * sum(stop.node);
            }
            continue;
        };
        let gain = clock_gain(law, stop, hyper).mean;
        let expected = together * branch_time::expected_span(law.probability, span, gain);
        spans.push(expected);
        mean += expected * sum(stop.node);
        together *= 1.0 - law.probability;
    }
    mean
}

/// Adds a tree's share of the means of a row for several right-hand sides, of which `sum` has the sums, along the path on which
/// [`mean`] was found.
pub(crate) fn smooth(
    JointPath { spans, inside, smoothed, n_known, .. }: &mut JointPath,
    stops: &[Stop],
    n_sides: usize,
    sum: impl Fn(NodeId, usize) -> f64,
    means: &mut Vec<f64>,
) {
    means.resize(n_sides, 0.0);
    smoothed.truncate(*n_known * n_sides);
    for i in *n_known..*inside {
        for side in 0..n_sides {
            let above = i.checked_sub(1).map_or(0.0, |above| smoothed[above * n_sides + side]);
            smoothed.push(above + spans[i] * sum(stops[i].node, side));
        }
    }
    *n_known = (*inside).max(*n_known);
    if let Some(last) = inside.checked_sub(1) {
        let known = &smoothed[last * n_sides..][..n_sides];
        means.iter_mut().zip(known).for_each(|(mean, known)| *mean += known);
    }
    for (stop, span) in stops.iter().zip(spans).skip(*inside) {
        for (side, mean) in means.iter_mut().enumerate() {
            *mean += *span * sum(stop.node, side);
        }
    }
}
