//! What is chosen for a forest, and from which rows.
//!
//! The hierarchy is a prior of the whole Mondrian process, of which the trees of some rows are a restriction. So its
//! hyperparameters do not depend on the number of rows, and a rule that takes long looks at the forest of some of them: the
//! first ones in an order that only their contents determine. The mean and the variance of the targets are those of all rows.

use crate::control::Run;
use crate::data::{RowId, Scalar};
use crate::error::Result;
use crate::mondrian::forest::rows_by_contents::{first_of_contents, key_of_contents};
use crate::mondrian::forest::settings::MondrianSettings;
use crate::mondrian::forest::storage::{Storage, with_storage};
use crate::mondrian::forest::{Batch, Forest};
use crate::mondrian::regression::hyperparameters::far_prior::FarPrior;
use crate::mondrian::regression::hyperparameters::heuristic::heuristic;
use crate::mondrian::regression::hyperparameters::leave_one_out::{self, Chosen};
use crate::mondrian::regression::hyperparameters::marginal_likelihood;
use crate::mondrian::regression::joint::common_order;
use crate::mondrian::regression::moments::NodeMoments;
use crate::mondrian::regression::repetitions::distinct_of_keys;
use crate::mondrian::regression::settings::{
    HyperparameterRule, LEAST_PRIOR_RATE, Posterior, RegressionSettings, Trend,
};
use crate::mondrian::regression::trend::start_line::StartLine;
use crate::mondrian::regression::trend::{Design, Observed, Residuals};
use crate::mondrian::tree::Tree;

/// The rows (at most) of a forest that choose its hyperparameters, unless the rule is the heuristic.
pub const RULE_ROWS: usize = 20_000;

/// Moments of targets.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct TargetMoments {
    /// As how many rows all rows count.
    pub weight: f64,
    /// The mean.
    pub mean: f64,
    /// The sum of squared deviations from the mean.
    pub squares: f64,
}

impl TargetMoments {
    /// Of a forest's targets. Every tree's root holds them, each rounded differently; the first is used.
    fn of<S: Scalar>(storage: &Storage<S, NodeMoments>, observed: Observed<'_>) -> Self {
        let tree = &storage.trees[0];
        Self::at_root(tree, &observed.moments(tree))
    }

    /// Those at the root of the first tree.
    pub(crate) fn at_root<S: Scalar>(tree: &Tree<S, NodeMoments>, moments: &NodeMoments) -> Self {
        let Some(root) = tree.arena.root() else { return Self::default() };
        let moments = moments.moments(root);
        let weight = tree.statistics.weight(root, tree.arena.n_rows(root));
        Self { weight, mean: moments.mean, squares: moments.squares }
    }

    /// Whether all targets are the same, up to rounding: their mean has lost its last digits.
    fn is_flat(&self) -> bool {
        const ROUNDING: f64 = 4.0 * f64::EPSILON;
        self.squares <= self.weight * (ROUNDING * self.mean) * (ROUNDING * self.mean)
    }

    /// Whether nothing is left of the targets of these moments, up to rounding.
    fn is_nothing_of(&self, all: &Self) -> bool {
        self.squares <= f64::EPSILON * all.squares || self.is_flat()
    }

    fn variance(&self) -> f64 {
        if self.weight > 0.0 { self.squares / self.weight } else { 0.0 }
    }
}

/// The hyperparameters that are given, or those that the rule chooses.
///
/// # Errors
/// An interrupt.
pub(crate) fn choose<S: Scalar>(
    settings: &RegressionSettings,
    forest: &Forest<NodeMoments>,
    storage: &Storage<S, NodeMoments>,
    run: &Run<'_>,
) -> Result<Chosen> {
    let all = TargetMoments::of(storage, Observed::targets_of(forest));
    let is_brief = settings.hyperparameters.is_some()
        || settings.posterior == Posterior::Fast
        || settings.rule == HyperparameterRule::Heuristic;
    if is_brief || forest.n_rows() <= RULE_ROWS {
        return choose_from(all, settings, forest, storage, run);
    }
    let targets = forest.targets_by_arrival();
    let weights = forest.weights_by_arrival();
    let first = first_of_contents(keys(forest)?, (&targets, weights.as_deref()), RULE_ROWS)?;
    let some = of_rows(&first, settings, forest, run)?;
    let chosen =
        with_storage!(some.flushed(run)?, storage => choose_from(all, settings, &some, storage, run))?;
    Ok(chosen.of_other_trees())
}

/// The keys of the rows' features, in order of arrival.
fn keys(forest: &Forest<NodeMoments>) -> Result<Vec<u64>> {
    let features = forest.features_by_arrival();
    let rows = features.rows(forest.domain.n_features())?;
    let seed = forest.settings.seed;
    let key = |i: usize| key_of_contents(forest.domain.contents(|feature| rows.at(i, feature)), seed);
    Ok((0..rows.n_rows()).map(key).collect())
}

/// The rows without copies, in order of arrival, if there are copies.
fn distinct(forest: &Forest<NodeMoments>) -> Result<Option<Vec<RowId>>> {
    let features = forest.features_by_arrival();
    let rows = features.rows(forest.domain.n_features())?;
    let value = |row: usize, coordinate: usize| rows.at(row, forest.domain.feature_of(coordinate));
    let (targets, weights) = (forest.targets_by_arrival(), forest.weights_by_arrival());
    let values = (forest.domain.n_coordinates(), value);
    Ok(distinct_of_keys(&keys(forest)?, values, (&targets, weights.as_deref())))
}

/// The trees that a rule looks at, of some rows, which are given in order of arrival.
fn of_rows(
    some: &[RowId],
    settings: &RegressionSettings,
    forest: &Forest<NodeMoments>,
    run: &Run<'_>,
) -> Result<Forest<NodeMoments>> {
    let MondrianSettings { n_estimators, .. } = forest.settings;
    let n_features = forest.domain.n_features();
    let (features, targets) = (forest.features_by_arrival(), forest.targets_by_arrival());
    let weights = forest.weights_by_arrival();
    let own = features.of_rows(some.iter().copied(), n_features);
    let of_first = |of_row: &[f64]| -> Vec<f64> { some.iter().map(|&row| of_row[row as usize]).collect() };
    let weights = weights.as_deref().map(of_first);
    let batch = Batch { rows: own.rows(n_features)?, ids: None, weights: weights.as_deref() };
    let share = Some(0..settings.n_trees_to_choose(n_estimators));
    let trees = MondrianSettings { share, ..forest.settings.clone() };
    Forest::fit(trees, forest.domain.clone(), batch, &of_first(&targets), run)
}

/// The same, given a forest that has the first rows of a larger one, or all. `all` is of the targets of the larger one.
///
/// # Errors
/// An interrupt.
pub(crate) fn choose_from<S: Scalar>(
    all: TargetMoments,
    settings: &RegressionSettings,
    forest: &Forest<NodeMoments>,
    storage: &Storage<S, NodeMoments>,
    run: &Run<'_>,
) -> Result<Chosen> {
    if let Some(given) = Chosen::given(settings) {
        return Ok(given);
    }
    let leaves_out =
        settings.posterior != Posterior::Fast && settings.rule == HyperparameterRule::LeaveOneOut;
    if leaves_out && let Some(distinct) = distinct(forest)? {
        let some = of_rows(&distinct, settings, forest, run)?;
        let chosen =
            with_storage!(some.flushed(run)?, storage => by_rule(all, settings, &some, storage, run))?;
        return Ok(chosen.of_other_trees());
    }
    by_rule(all, settings, forest, storage, run)
}

/// What the rule chooses from all rows of a forest.
fn by_rule<S: Scalar>(
    all: TargetMoments,
    settings: &RegressionSettings,
    forest: &Forest<NodeMoments>,
    storage: &Storage<S, NodeMoments>,
    run: &Run<'_>,
) -> Result<Chosen> {
    let n = forest.n_rows();
    let trend = settings.trend.as_ref().filter(|_| n > 0);
    let line = trend.map(|trend| Line::new(trend, forest, storage));
    let observed = line.as_ref().map_or_else(|| Observed::targets_of(forest), Line::residuals);
    let own = TargetMoments::of(storage, observed);
    let explained = if line.is_some() { own } else { all };
    let (lifetime, total_weight) = (forest.settings.lifetime, forest.domain.total_weight());
    let by_heuristic =
        |moments: &TargetMoments| heuristic(moments.mean, moments.variance(), all.weight, total_weight);
    let far = settings.prior_scale.map(|scale| {
        // Also with a trend, which may end anywhere.
        let start = by_heuristic(&all);
        let is_fitted = settings.rule == HyperparameterRule::LeaveOneOut;
        let widening = if is_fitted { leave_one_out::widening(n) } else { 1.0 };
        let variance = widening * scale * scale * (start.clock(f64::INFINITY) + start.noise_variance);
        FarPrior {
            variance,
            coarse_rate: settings.prior_rate.unwrap_or(LEAST_PRIOR_RATE) * total_weight,
            lifetime,
        }
    });
    let mut start = by_heuristic(&explained);
    start.noise_variance = settings.noise_variance.unwrap_or(start.noise_variance);
    // Constant targets have no best hyperparameters.
    if settings.posterior == Posterior::Fast || n < 2 || all.is_flat() {
        return Ok(Chosen::alone(start));
    }
    let fixed = settings.noise_variance.is_some();
    let mut chosen = match settings.rule {
        HyperparameterRule::Heuristic => Chosen::alone(start),
        // Neither have those that lie on a line.
        _ if own.is_nothing_of(&all) => Chosen::alone(start),
        HyperparameterRule::LeaveOneOut => {
            let line = line.as_ref().map(|line| (&line.design, &line.start));
            leave_one_out::maximise(forest, storage, (observed, line), start, far, settings, run)?
        }
        HyperparameterRule::MarginalLikelihood => {
            if !fixed {
                // Half signal and half noise, rather than nearly all signal.
                start.noise_variance = 0.5 * explained.variance();
            }
            let trees = &storage.trees;
            Chosen::alone(marginal_likelihood::maximise(trees, observed, lifetime, start, fixed, run)?)
        }
    };
    if let Some(far) = far {
        chosen.hyper = far.complete(&chosen.hyper);
    }
    Ok(chosen)
}

/// An ordinary line through the targets, and what it leaves of them.
struct Line {
    design: Design,
    start: StartLine,
    residuals: Residuals,
}

impl Line {
    fn new<S: Scalar>(
        trend: &Trend,
        forest: &Forest<NodeMoments>,
        storage: &Storage<S, NodeMoments>,
    ) -> Self {
        let design = Design::new(forest, trend, &common_order(forest, storage));
        let start = StartLine::new(&design);
        // Without the first coefficient: the residuals have its mean.
        let slopes: Vec<f64> = std::iter::once(0.0).chain(start.coefficients[1..].iter().copied()).collect();
        let residuals = Residuals::new(&design, &slopes);
        Self { design, start, residuals }
    }

    fn residuals(&self) -> Observed<'_> {
        self.residuals.observed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Rows;
    use crate::mondrian::forest::rows_by_contents::first_by_contents;
    use crate::mondrian::process::domain::Domain;
    use crate::mondrian::regression::regressor::MondrianRegressor;
    use crate::random::keyed::Stream;

    /// A forest of two trees over rows with these targets.
    fn fit(x: &[f64], y: &[f64], regression: &RegressionSettings) -> MondrianRegressor {
        let settings = MondrianSettings {
            n_estimators: 2,
            min_samples_split: 50,
            seed: 3,
            ..MondrianSettings::default()
        };
        let domain = Domain::new(vec![0.0], vec![1.0], None).unwrap();
        let batch = Batch { rows: Rows::from_f64(x, 1).unwrap(), ids: None, weights: None };
        MondrianRegressor::fit(settings, regression.clone(), domain, batch, y, &Run::default()).unwrap()
    }

    #[test]
    fn a_larger_forest_chooses_what_its_first_rows_choose() {
        let (mut stream, run) = (Stream::new(5, 0), Run::default());
        let mut x: Vec<f64> = (0..RULE_ROWS + 300).map(|_| stream.unit()).collect();
        let mut y: Vec<f64> = x.iter().map(|x| (7.0 * x).sin() + 0.3 * stream.unit()).collect();
        let first = first_by_contents(Rows::from_f64(&x, 1).unwrap(), (&y, None), RULE_ROWS, 3).unwrap();
        assert_eq!(first.len(), RULE_ROWS);
        let of_first = |all: &[f64]| -> Vec<f64> { first.iter().map(|&row| all[row as usize]).collect() };
        let (own_x, own_y) = (of_first(&x), of_first(&y));
        for rule in [HyperparameterRule::LeaveOneOut, HyperparameterRule::MarginalLikelihood] {
            let regression =
                RegressionSettings { posterior: Posterior::Exact, rule, ..RegressionSettings::default() };
            let large = fit(&x, &y, &regression);
            let all = with_storage!(large.forest.flushed(&run).unwrap(), storage => {
                TargetMoments::of(storage, Observed::targets_of(&large.forest))
            });
            let mean = y.iter().sum::<f64>() / y.len() as f64;
            assert!(all.weight == y.len() as f64 && (all.mean - mean).abs() < 1e-12);
            let chosen = large.choose(&run).unwrap();
            let of_some = fit(&own_x, &own_y, &regression);
            assert_eq!(of_some.choose_for(all, &run).unwrap(), chosen, "{rule:?}");
            assert_ne!(of_some.choose(&run).unwrap(), chosen, "{rule:?}: the mean is that of all rows");
            x.reverse();
            y.reverse();
            assert_eq!(fit(&x, &y, &regression).choose(&run).unwrap(), chosen, "{rule:?}: in any order");
        }
    }

    #[test]
    fn the_heuristic_looks_at_all_rows() {
        let y: Vec<f64> = (0..RULE_ROWS + 9).map(|row| if row < 5 { 1e3 } else { 0.0 }).collect();
        let x: Vec<f64> = (0..y.len()).map(|row| row as f64 / y.len() as f64).collect();
        let rule = HyperparameterRule::Heuristic;
        let regression =
            RegressionSettings { posterior: Posterior::Exact, rule, ..RegressionSettings::default() };
        let chosen = fit(&x, &y, &regression).choose(&Run::default()).unwrap();
        let n = y.len() as f64;
        let (mean, k) = (5e3 / n, 2000.0);
        let variance = 5e6 / n - mean * mean;
        assert!((chosen[0] - mean).abs() < 1e-12);
        assert!((chosen[1] - variance / (0.5 + 1.0 / k)).abs() < 1e-9 * variance);
    }
}
