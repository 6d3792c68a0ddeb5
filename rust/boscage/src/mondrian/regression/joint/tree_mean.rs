//! The joint mean of a row by the trees: sums of weights on its paths.

use crate::mondrian::prediction::shared_path::SharedPath;
use crate::mondrian::prediction::stop::Stop;
use crate::mondrian::regression::hierarchy::belief_propagation::Hyperparameters;
use crate::mondrian::regression::hierarchy::branch_clock::mean_clock_gain;
use crate::mondrian::regression::hierarchy::branch_time;
use crate::mondrian::regression::hierarchy::tree_predictive::StopsAndLaws;
use crate::mondrian::tree::arena::NodeId;

/// The joint model at a stop of a test row's path.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PassedStop {
    clock: f64,
    /// The clock between the stop before and this one.
    span: f64,
    /// The tree's share of the mean down to there, of a row that does not branch off before.
    mean: f64,
}

/// What test rows share of their paths, and what the last one shares with the rows below its stops.
#[derive(Debug, Clone, Default)]
pub(crate) struct JointPath {
    passed: SharedPath<PassedStop>,
    /// The clock that the last row shares with the rows below each of its last stops.
    spans: Vec<f64>,
    /// Number of its first stops above which it does not branch off.
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
    row: StopsAndLaws<'_>,
    JointPath { passed, spans, inside, n_known, .. }: &mut JointPath,
) -> f64 {
    let StopsAndLaws { stops, n_inside, .. } = row;
    let mut make = |depth: usize, before: Option<PassedStop>| {
        *n_known = depth.min(*n_known);
        let above = before.map_or((0.0, 0.0), |before| (before.clock, before.mean));
        let clock = hyper.clock(stops[depth].time);
        let span = (clock - above.0).max(0.0);
        PassedStop { clock, span, mean: above.1 + span * sum(stops[depth].node) }
    };
    let last = passed.follow(tree, &stops[..n_inside], &mut make);
    let (mut together, mut mean) = (1.0, last.map_or(0.0, |last| last.mean));
    spans.clear();
    *inside = n_inside;
    for (depth, stop, law) in row.outside() {
        let here = passed.at(depth, (tree, stop.node), |before| make(depth, before));
        let Some(law) = law else {
            spans.push(together * here.span);
            if together == 1.0 {
                // The sums above were added for the row before.
                mean = here.mean;
                *inside = depth + 1;
            } else {
                mean += together * here.span * sum(stop.node);
            }
            continue;
        };
        let gain = mean_clock_gain(law, stop, hyper);
        let expected = together * branch_time::expected_span(law.probability, here.span, gain);
        spans.push(expected);
        mean += expected * sum(stop.node);
        together *= 1.0 - law.probability;
    }
    mean
}

/// Adds a tree's share of the means of a row for several right-hand sides, of which `sum` has the sums, along the path on which
/// [`mean`] was found.
pub(crate) fn smooth(
    JointPath { passed, spans, inside, smoothed, n_known }: &mut JointPath,
    stops: &[Stop],
    n_sides: usize,
    sum: impl Fn(NodeId, usize) -> f64,
    means: &mut Vec<f64>,
) {
    means.resize(n_sides, 0.0);
    smoothed.truncate(*n_known * n_sides);
    for (i, stop) in stops.iter().enumerate().take(*inside).skip(*n_known) {
        let span = passed.get(i).map_or(0.0, |passed| passed.span);
        for side in 0..n_sides {
            let above = i.checked_sub(1).map_or(0.0, |above| smoothed[above * n_sides + side]);
            smoothed.push(above + span * sum(stop.node, side));
        }
    }
    *n_known = (*inside).max(*n_known);
    if let Some(last) = inside.checked_sub(1) {
        let known = &smoothed[last * n_sides..][..n_sides];
        means.iter_mut().zip(known).for_each(|(mean, known)| *mean += known);
    }
    let outside = &stops[*inside..];
    for (stop, span) in outside.iter().zip(&spans[spans.len() - outside.len()..]) {
        for (side, mean) in means.iter_mut().enumerate() {
            *mean += *span * sum(stop.node, side);
        }
    }
}
