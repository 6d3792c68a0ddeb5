//! Rates and maps of the features, learned from numeric targets: candidates for a regression forest.

use crate::control::{Run, map};
use crate::data::Rows;
use crate::error::Result;
use crate::mondrian::feature_rates::best_split_trees::BestSplitGrower;
use crate::mondrian::feature_rates::binned_axis::Axis;
use crate::mondrian::feature_rates::cut_likelihood::{Measure, maximum_likelihood};
use crate::mondrian::feature_rates::extra_trees::{TargetKind, extra_trees_rates};
use crate::mondrian::feature_rates::metric_learning;
use crate::mondrian::process::domain::{CoordinateBuffer, Domain};
use crate::mondrian::process::feature_map::FeatureMap;
use crate::random::keyed::Stream;
use crate::random::shuffle::shuffle_first;
use crate::validate::{MAX_TREES, check_count, check_lengths, check_n_ranges, check_targets};

/// Largest number of rows for the axes and the extremely randomised trees.
const MAX_ROWS: usize = 10_000;
/// Largest number of rows for trees with best splits.
const SPLIT_ROWS: usize = 4000;
/// Number of trees with best splits.
const SPLIT_TREES: usize = 10;
/// With more features than this, the metric is learned for the most relevant ones only.
const ALL_FEATURES: usize = 256;
const CHOSEN_FEATURES: usize = 40;

/// Rates and maps of all features.
#[derive(Debug, Clone, PartialEq)]
pub struct Rates {
    /// Rates in units of one over a feature's range. Only ratios matter.
    pub weights: Vec<f64>,
    /// One map for each feature.
    pub maps: Vec<FeatureMap>,
}

/// Candidate rates and maps from several methods. The caller chooses among them by a trial.
#[derive(Debug, Clone, PartialEq)]
pub struct CandidateRates {
    /// The importances of features in extremely randomised trees, with maps that are half by rank and half
    /// linear.
    pub importances: Rates,
    /// The rates under which a process makes the cuts of extremely randomised trees with the greatest
    /// likelihood, with the same maps.
    pub extra_tree_cuts: Rates,
    /// The measure under which a process makes the cuts of trees with best splits with the greatest
    /// likelihood.
    pub best_split_cuts: Rates,
    /// The measure whose metric predicts the targets best (metric learning).
    pub metric: Rates,
}

/// Rates and maps learned from numeric targets by several methods, for the reference ranges of a domain.
///
/// # Errors
/// Lengths that differ, no rows; missing values; targets that are not finite; no trees or too many; an interrupt.
pub fn candidate_rates(
    rows: Rows<'_>,
    targets: &[f64],
    domain: &Domain,
    n_estimators: usize,
    seed: u64,
    run: &Run<'_>,
) -> Result<CandidateRates> {
    let n_features = rows.n_features();
    rows.complete()?;
    check_lengths(rows, targets.len())?;
    check_targets(targets)?;
    check_count("n_estimators", n_estimators, MAX_TREES)?;
    check_n_ranges(domain.n_features(), rows)?;
    let (values, targets) = some(rows, targets, Stream::new(seed, n_estimators));
    let rows = Rows::from_f64(&values, n_features)?;
    let axes = Axis::of_rows(rows, domain.low(), domain.high());
    let maps: Vec<FeatureMap> = axes.iter().map(|axis| axis.map(&axis.base)).collect::<Result<_>>()?;

    let mapped = Domain::new(domain.low().to_vec(), domain.high().to_vec(), None)?.with_maps(maps.clone())?;
    let mut buffer = CoordinateBuffer::default();
    let extra_trees = extra_trees_rates(
        mapped.coordinates(rows, &mut buffer)?,
        &targets,
        TargetKind::Regression,
        n_estimators,
        seed,
        run,
    )?;

    let grower = BestSplitGrower::new(&axes, &targets[..targets.len().min(SPLIT_ROWS)]);
    let choices = map(run.n_threads, SPLIT_TREES, |i| {
        run.control.check()?;
        Ok(grower.tree(Stream::new(seed, n_estimators + 1 + i)))
    });
    let choices: Vec<_> = choices.into_iter().collect::<Result<_>>()?;
    let fitted = maximum_likelihood(choices.concat(), &axes);
    let features = worth_learning(&axes, &fitted.weights, &extra_trees.rates);
    let stream = Stream::new(seed, n_estimators + 1 + SPLIT_TREES);
    let learned = metric_learning::learn(&axes, &targets, &fitted, &features, stream, run)?;
    let with_maps = |Measure { weights, masses }: Measure| -> Result<Rates> {
        let maps = axes.iter().zip(masses).map(|(axis, masses)| axis.map(&masses)).collect::<Result<_>>()?;
        Ok(Rates { weights, maps })
    };
    Ok(CandidateRates {
        importances: Rates { weights: extra_trees.importances, maps: maps.clone() },
        extra_tree_cuts: Rates { weights: extra_trees.rates, maps },
        best_split_cuts: with_maps(fitted)?,
        metric: with_maps(learned)?,
    })
}

/// The values of some rows in random order, and their targets in units of their standard deviation.
fn some(rows: Rows<'_>, targets: &[f64], mut stream: Stream) -> (Vec<f64>, Vec<f64>) {
    let mut order: Vec<usize> = (0..rows.n_rows()).collect();
    let n = order.len().min(MAX_ROWS);
    shuffle_first(&mut order, n, &mut stream);
    order.truncate(n);
    let values = order.iter().flat_map(|&i| rows.row(i)).collect();
    let mean = order.iter().map(|&i| targets[i] / n as f64).sum::<f64>();
    let variance = order.iter().map(|&i| (targets[i] - mean) * (targets[i] - mean) / n as f64).sum::<f64>();
    let scale = if variance > 0.0 { variance.sqrt() } else { 1.0 };
    (values, order.iter().map(|&i| (targets[i] - mean) / scale).collect())
}

/// The features to learn: all that have bins, or, if there are many, the most relevant ones by either method.
fn worth_learning(axes: &[Axis], fitted: &[f64], rates: &[f64]) -> Vec<usize> {
    let mut features: Vec<usize> = (0..axes.len()).filter(|&d| axes[d].n_bins() > 0).collect();
    if axes.len() > ALL_FEATURES {
        let shares = |weights: &[f64]| -> Vec<f64> {
            let all: f64 = weights.iter().sum();
            weights.iter().map(|weight| weight / all).collect()
        };
        let (a, b) = (shares(fitted), shares(rates));
        let worth = |d: usize| a[d].max(b[d]);
        features.sort_by(|&d, &e| worth(e).total_cmp(&worth(d)));
        features.truncate(CHOSEN_FEATURES);
    }
    features
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Without information the result must still be rates and maps that a domain accepts.
    #[test]
    fn little_to_learn_from() {
        for (values, y) in [
            (vec![1.0, 2.0], vec![3.0]),
            (vec![1.0, 2.0, 1.0, 3.0], vec![0.0, 1.0]),
            (vec![1.0, 1.0, 1.0, 1.0, 1.0, 1.0], vec![1.0, 2.0, 3.0]),
            ((0..60).map(f64::from).collect(), vec![5.0; 30]),
        ] {
            let rows = Rows::from_f64(&values, 2).unwrap();
            let domain = Domain::of_rows(rows, None).unwrap();
            let found = candidate_rates(rows, &y, &domain, 3, 1, &Run::default()).unwrap();
            for rates in [found.importances, found.extra_tree_cuts, found.best_split_cuts, found.metric] {
                let weighted =
                    Domain::new(domain.low().to_vec(), domain.high().to_vec(), Some(rates.weights));
                assert!(weighted.unwrap().with_maps(rates.maps).is_ok());
            }
        }
    }
}
