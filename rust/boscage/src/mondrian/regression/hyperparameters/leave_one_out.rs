//! Hyperparameters by the leave-one-out predictive of the forest.
//!
//! The marginal likelihood judges each tree alone, and attributes to noise what one tree cannot explain. The trees
//! together explain more, so a mixture of trees with such hyperparameters is too smooth and much too wide. This rule
//! judges the forest's own predictions: the density of each row's target under the mixture of all trees, each without
//! the row.
//!
//! In one tree, a row is left out by taking its own message away from the belief about its leaf. This is exact for the
//! given trees, in which the cut that separates the row from all others is known. In a leaf that holds other rows too,
//! the row branches off as a test row would.

use std::rc::Rc;
use std::sync::Arc;

use crate::control::Run;
use crate::data::Scalar;
use crate::error::Result;
use crate::mondrian::forest::Forest;
use crate::mondrian::forest::storage::Storage;
use crate::mondrian::regression::hierarchy::belief_propagation::{CoarsePrior, Hyperparameters, UnitClocks};
use crate::mondrian::regression::hyperparameters::far_prior::FarPrior;
use crate::mondrian::regression::hyperparameters::joint_trial::JointTrial;
use crate::mondrian::regression::hyperparameters::search::{best_scale, climb, score};
use crate::mondrian::regression::hyperparameters::trial::{Clocks, LeftOut, Trial};
use crate::mondrian::regression::joint::Standard;
use crate::mondrian::regression::joint::landmarks::LandmarkFactors;
use crate::mondrian::regression::left_out_fit::{JointFit, LeftOutFit, NOISE_ROWS};
use crate::mondrian::regression::moments::NodeMoments;
use crate::mondrian::regression::noise::noise_tails::NoiseTails;
use crate::mondrian::regression::settings::{Noise, Posterior, RegressionSettings};
use crate::mondrian::regression::trend::start_line::StartLine;
use crate::mondrian::regression::trend::{Design, Observed};

/// The noise as a share of `gamma_1`, and `gamma_2` in units of the heuristic's, where the search starts.
const START: (f64, f64) = (1.0 / 16.0, 8.0);
/// The smallest noise as a share of `gamma_1`: with less, rows of one leaf would look like atoms.
const LEAST_NOISE: f64 = 1e-3;
/// Steps of the spread from none to that of the mixture.
const FULL_SPREAD: f64 = 4.0;
/// A delay seldom raises the mean log density by more.
const DELAY_GAINS: f64 = 0.05;
/// Numbers that are fitted: four hyperparameters, the share and the spread of trees, how many rows a parent's factor counts as,
/// and three of the tails.
const FITTED: f64 = 10.0;
/// Values of `gamma_2` whose clocks are kept, 8 bytes a split each: that of the best point so far, and its neighbours.
const REMEMBERED: usize = 3;

/// The joint model's part in a forest's predictions.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Together {
    /// The joint model.
    pub(crate) model: Standard,
    /// Whether it was chosen as that of infinitely many trees.
    pub(crate) is_limit: bool,
    /// The joint mean's share in the forest's, beside that of the mixture's mean.
    pub(crate) share: f64,
    /// Factor on the distances of the mixture's components from their mean.
    pub(crate) spread: f64,
}

impl Together {
    fn of(mu: f64, fit: &JointFit) -> Self {
        let JointFit { gamma1, gamma2, noise_variance, share, spread, is_limit } = *fit;
        let coarse = CoarsePrior::NONE;
        let hyper = Hyperparameters { mu, gamma1, gamma2, noise_variance, delay: 0.0, coarse };
        Self { model: Standard::new(&hyper), is_limit, share, spread }
    }

    fn numbers(&self) -> JointFit {
        let Self { model, is_limit, share, spread } = *self;
        let Hyperparameters { gamma1, gamma2, noise_variance, .. } = model.in_units();
        JointFit { gamma1, gamma2, noise_variance, share, spread, is_limit }
    }
}

/// Everything that a rule chooses.
#[derive(Debug)]
pub(crate) struct Chosen {
    pub(crate) hyper: Hyperparameters,
    /// Of the first trees, as far as they are known.
    pub(crate) clocks: Vec<UnitClocks>,
    /// For the joint posterior.
    pub(crate) together: Option<Together>,
    /// The factors of its equations, if it is solved by landmarks and they are known.
    pub(crate) factors: Option<Arc<LandmarkFactors>>,
    /// For local noise.
    pub(crate) tails: Option<NoiseTails>,
    /// For local noise: how many rows a parent's factor counts as.
    pub(crate) prior: f64,
}

impl Chosen {
    /// Hyperparameters, and nothing else.
    pub(crate) fn alone(hyper: Hyperparameters) -> Self {
        Self { hyper, clocks: Vec::new(), together: None, factors: None, tails: None, prior: NOISE_ROWS }
    }

    /// The same for a forest of other rows or trees.
    pub(crate) fn of_other_trees(self) -> Self {
        Self { clocks: Vec::new(), factors: None, ..self }
    }

    /// What settings give, if they do.
    pub(crate) fn given(settings: &RegressionSettings) -> Option<Self> {
        settings.hyperparameters.map(|hyper| Self::of(hyper, &settings.left_out_fit))
    }

    pub(crate) fn of(hyper: Hyperparameters, fit: &LeftOutFit) -> Self {
        let together = fit.joint.map(|joint| Together::of(hyper.mu, &joint));
        Self { together, tails: fit.tails.map(NoiseTails::of), prior: fit.noise_rows, ..Self::alone(hyper) }
    }

    /// What there is beside the hyperparameters.
    pub(crate) fn left_out_fit(&self) -> LeftOutFit {
        LeftOutFit {
            joint: self.together.as_ref().map(Together::numbers),
            noise_rows: self.prior,
            tails: self.tails.as_ref().map(NoiseTails::numbers),
        }
    }
}

/// The factor on variances that were fitted to so many rows.
///
/// Rows that are left out are predicted better by what was chosen for them than other rows are. Where so many numbers are
/// fitted to `n` rows, the squared error at another row is greater by about the share [`FITTED`]` / n`.
pub(super) fn widening(n_rows: usize) -> f64 {
    1.0 + FITTED / n_rows as f64
}

/// The hyperparameters under which rows that are left out are most likely: the noise's share and `gamma_2`
/// by powers of two, and for each of these the best scale of all variances, which moves no mean. `mu_H` is
/// that of `heuristic`, and so is the noise if it is fixed: then `gamma_1` is sought instead of its share.
/// What has more variance than `far` away from all data is delayed, and judged so.
///
/// For the joint posterior, those under which all trees together predict such rows with least error come first.
/// Then, beside the others, the share of their mean and the spread of the trees about it.
///
/// For local noise, its tails are chosen, and how many rows a parent's factor counts as. Here rows are left out in
/// parts. A row that lies far off increases the errors of its neighbours, so errors that it contributed to would
/// predict its own.
///
/// With a trend, `observed` are the residuals of a line, and the joint model is judged by those of the lines of the rows that
/// are not left out.
pub(crate) fn maximise<S: Scalar>(
    forest: &Forest<NodeMoments>,
    storage: &Storage<S, NodeMoments>,
    (observed, line): (Observed<'_>, Option<(&Design, &StartLine)>),
    heuristic: Hyperparameters,
    far: Option<FarPrior>,
    settings: &RegressionSettings,
    run: &Run<'_>,
) -> Result<Chosen> {
    let trial = Trial::new(forest, storage, observed, settings, run)?;
    let fixed = settings.noise_variance.is_some();
    let joint = match settings.posterior {
        Posterior::Joint => {
            let standard = Standard::new(&heuristic);
            let joint = trial.joint(standard, line, settings, |point| at(&standard.hyper, fixed, point))?;
            Some(JointTrial { model: Standard::new(&joint.model.in_units()), ..joint })
        }
        Posterior::Exact | Posterior::Fast => None,
    };
    let mut directions = vec![[0, 1, 0, 0], [0, -1, 0, 0], [-1, 0, 0, 0], [1, 0, 0, 0]];
    if joint.is_some() {
        directions.extend([[0, 0, -1, 0], [0, 0, 1, 0]]);
    }
    if settings.noise == Noise::Local {
        directions.extend([[0, 0, 0, 1], [0, 0, 0, -1]]);
    }
    let mut search = Search {
        trial,
        joint,
        heuristic,
        far,
        widening: widening(forest.n_rows()),
        fixed,
        noise: settings.noise,
        clocks: Vec::new(),
        last: None,
        at_best: None,
        best: f64::NEG_INFINITY,
    };
    let (score, found) = climb([0, 0, FULL_SPREAD as i32, 0], &directions, |point| search.evaluate(point))?;
    // Targets of so many orders of magnitude that no density is finite.
    let Hyperparameters { gamma1, noise_variance, .. } = found.hyper;
    let usable = score.is_finite() && [gamma1, noise_variance].iter().all(|v| v.is_normal());
    if !usable {
        return Ok(Chosen { together: found.together, ..Chosen::alone(heuristic) });
    }
    let has_coarse_part = |far: &FarPrior| far.complete(&found.hyper).coarse.variance > 0.0;
    let hyper = match far.filter(|_| settings.prior_rate.is_none()).filter(has_coarse_part) {
        Some(far) => search.trial.complete(&found.hyper, far, &search.errors_of(&found)?),
        None => found.hyper,
    };
    let factors = search.joint.as_ref().and_then(|joint| joint.factors.clone());
    Ok(Chosen { hyper, factors, clocks: search.clocks_of(&found.hyper), ..found })
}

/// The hyperparameters at a point of the grid: the noise's share and `gamma_2`, by powers of two.
fn at(heuristic: &Hyperparameters, fixed: bool, [share, gamma2]: [i32; 2]) -> Hyperparameters {
    let gamma2 = heuristic.gamma2 * START.1 * f64::from(gamma2).exp2();
    if fixed {
        let gamma1 = heuristic.gamma1 * f64::from(-share).exp2();
        return Hyperparameters { gamma1, gamma2, ..*heuristic };
    }
    let share = (START.0 * f64::from(share).exp2()).max(LEAST_NOISE);
    Hyperparameters { gamma2, noise_variance: heuristic.gamma1 * share, ..*heuristic }
}

/// Left-out rows under some hyperparameters.
#[derive(Clone)]
struct Known {
    hyper: Hyperparameters,
    left_out: Rc<LeftOut>,
}

/// A search on the grid, and what it remembers of its last points.
struct Search<'a, S> {
    trial: Trial<'a, S>,
    joint: Option<JointTrial>,
    heuristic: Hyperparameters,
    far: Option<FarPrior>,
    /// The factor on variances for what is fitted to few rows.
    widening: f64,
    /// Whether the noise variance is.
    fixed: bool,
    noise: Noise,
    /// Many points share a `gamma_2`, and so most of the work of clocks.
    clocks: Vec<(f64, Rc<Vec<Clocks>>)>,
    /// Points that differ in spread or in what a parent's factor counts as share all else: the last one, and the best one.
    last: Option<Known>,
    at_best: Option<Known>,
    best: f64,
}

impl<S: Scalar> Search<'_, S> {
    /// The score of a point, and all that belongs to it.
    fn evaluate(&mut self, [share, gamma2, spread, prior]: [i32; 4]) -> Result<(f64, Chosen)> {
        let hyper = at(&self.heuristic, self.fixed, [share, gamma2]);
        let spread = (f64::from(spread) / FULL_SPREAD).clamp(0.0, 1.0);
        let prior = NOISE_ROWS * f64::from(prior).exp2();
        let left_out = self.left_out(&hyper)?;
        let (score, chosen) = self.judge(hyper, &left_out, (spread, prior), f64::INFINITY);
        // Variances that are too great far away are judged as they will be, unless the point is much worse without that.
        let is_near = score > self.best - DELAY_GAINS;
        let delayed = self.far.and_then(|far| far.delayed(&chosen.hyper)).filter(|_| is_near);
        let (score, chosen) = match delayed {
            Some(hyper) => {
                let clocks = self.trial.clocks(hyper.gamma2, hyper.delay)?;
                self.judge(hyper, &self.trial.left_out(&hyper, &clocks)?, (spread, prior), 1.0)
            }
            None => (score, chosen),
        };
        if score > self.best {
            self.best = score;
            self.at_best = Some(Known { hyper, left_out });
        }
        Ok((score, chosen))
    }

    /// The left-out rows under hyperparameters without a delay.
    fn left_out(&mut self, hyper: &Hyperparameters) -> Result<Rc<LeftOut>> {
        let known = [&self.last, &self.at_best].into_iter().flatten().find(|known| known.hyper == *hyper);
        if let Some(known) = known {
            return Ok(Rc::clone(&known.left_out));
        }
        let clocks = self.clocks(hyper.gamma2)?;
        let left_out = Rc::new(self.trial.left_out(hyper, &clocks)?);
        self.last = Some(Known { hyper: *hyper, left_out: Rc::clone(&left_out) });
        Ok(left_out)
    }

    fn clocks(&mut self, gamma2: f64) -> Result<Rc<Vec<Clocks>>> {
        match self.clocks.iter().position(|known| known.0 == gamma2) {
            Some(known) => self.clocks[..=known].rotate_right(1),
            None => {
                self.clocks.truncate(REMEMBERED - 1);
                self.clocks.insert(0, (gamma2, Rc::new(self.trial.clocks(gamma2, 0.0)?)));
            }
        }
        Ok(Rc::clone(&self.clocks[0].1))
    }

    /// The score of hyperparameters, with the best factor on all variances, of `most` at most.
    fn judge(
        &self,
        hyper: Hyperparameters,
        left_out: &LeftOut,
        (spread, prior): (f64, f64),
        most: f64,
    ) -> (f64, Chosen) {
        let mut errors = self.trial.errors_with_noise(left_out, prior);
        let together = self.joint.as_ref().map(|joint| Together {
            model: joint.model,
            is_limit: joint.is_limit,
            share: recentre(&mut errors, joint, &self.trial.weights, spread),
            spread,
        });
        let alone = Chosen { together, prior, ..Chosen::alone(hyper) };
        let rows = by_row(&errors);
        if self.fixed {
            return (score(&rows, &self.trial.weights, 1.0), alone);
        }
        let (score, scale, tails) = likeliest(self.noise, &rows, &self.trial.weights, (self.widening, most));
        let (gamma1, noise_variance) = (hyper.gamma1 * scale, hyper.noise_variance * scale);
        (score, Chosen { hyper: Hyperparameters { gamma1, noise_variance, ..hyper }, tails, ..alone })
    }

    /// The errors under what was chosen, and their variances, by tree and row.
    fn errors_of(&self, chosen: &Chosen) -> Result<Vec<Vec<(f64, f64)>>> {
        let clocks = self.trial.clocks(chosen.hyper.gamma2, chosen.hyper.delay)?;
        let left_out = self.trial.left_out(&chosen.hyper, &clocks)?;
        let mut errors = self.trial.errors_with_noise(&left_out, chosen.prior);
        if let (Some(joint), Some(together)) = (&self.joint, &chosen.together) {
            recentre(&mut errors, joint, &self.trial.weights, together.spread);
        }
        Ok(errors)
    }

    /// The clocks of the first trees under hyperparameters, if they are known.
    fn clocks_of(self, hyper: &Hyperparameters) -> Vec<UnitClocks> {
        let is_known = |known: &(f64, _)| known.0 == hyper.gamma2 && hyper.delay == 0.0;
        let known = self.clocks.into_iter().find(is_known);
        let clocks = known.and_then(|(_, clocks)| Rc::into_inner(clocks)).unwrap_or_default();
        clocks.into_iter().map(|clocks| clocks.nodes).collect()
    }
}

/// The mean log density of the rows, and the tails and the factor on all variances that make it so. The factor, widened, is
/// `most` at most.
fn likeliest(
    noise: Noise,
    rows: &[Vec<(f64, f64)>],
    weights: &[f64],
    (widening, most): (f64, f64),
) -> (f64, f64, Option<NoiseTails>) {
    match noise {
        Noise::Global => {
            let (score, scale) = best_scale(rows, weights, most);
            (score, (widening * scale).min(most), None)
        }
        Noise::Local => {
            let (_, scale) = best_scale(rows, weights, f64::INFINITY);
            let (tails, scale, score) = NoiseTails::fit(rows, weights, (scale, most / widening));
            (score, widening * scale, Some(tails))
        }
    }
}

/// Squares of distances over variances, with the signs of the distances, and the variances' logarithms, by row and tree.
fn by_row(left_out: &[Vec<(f64, f64)>]) -> Vec<Vec<(f64, f64)>> {
    let row = |row: usize| {
        let each = left_out.iter().map(|tree| tree[row]);
        each.map(|(miss, variance)| (miss / variance * miss.abs(), variance.ln())).collect()
    };
    (0..left_out[0].len()).map(row).collect()
}

/// A squared error that is greater by no more than this share of itself is as good where the joint mean needs no trees: if it
/// is alone, a mean takes a fraction of the time.
const AS_GOOD: f64 = 0.004;

/// Moves every tree's errors (`left_out`, by tree and row) towards the joint model's errors; returns the share of the way. About
/// their new mean, trees' deviations are multiplied by `spread`.
fn recentre(left_out: &mut [Vec<(f64, f64)>], joint: &JointTrial, weights: &[f64], spread: f64) -> f64 {
    let n_trees = left_out.len() as f64;
    let own: Vec<f64> =
        (0..joint.errors.len()).map(|row| left_out.iter().map(|tree| tree[row].0 / n_trees).sum()).collect();
    let share = best_share((&own, &joint.errors), weights, if joint.is_limit { AS_GOOD } else { 0.0 });
    for tree in left_out {
        for ((miss, _), (own, error)) in tree.iter_mut().zip(own.iter().zip(&joint.errors)) {
            *miss = own + share * (error - own) + spread * (*miss - own);
        }
    }
    share
}

/// The share of the way from the trees' mean errors to the joint model's at which the squared error is least; or 1, if the squared
/// error there exceeds the least one by no more than a share `as_good` of it.
fn best_share((own, joint): (&[f64], &[f64]), weights: &[f64], as_good: f64) -> f64 {
    let (mut product, mut square) = (0.0, 0.0);
    for ((own, joint), weight) in own.iter().zip(joint).zip(weights) {
        product += weight * own * (own - joint);
        square += weight * (own - joint) * (own - joint);
    }
    let share = product / square;
    if !share.is_finite() {
        // Both are equally good, or squares overflow.
        return 0.0;
    }
    let together = |(own, joint): (&f64, &f64)| own + share * (joint - own);
    let errors = own.iter().zip(joint).map(together);
    let least: f64 = errors.zip(weights).map(|(error, weight)| weight * error * error).sum();
    let lost = (1.0 - share) * (1.0 - share) * square;
    if lost <= as_good * least { 1.0 } else { share.clamp(0.0, 1.0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_joint_mean_is_alone_where_this_is_as_good() {
        // Where the errors have nothing to do with each other, with squares a of the trees' and b of the joint model's, the best
        // share is a / (a + b). There the squared error is a b / (a + b), in place of b.
        let joint = [0.5, 0.5, -0.5, -0.5];
        for (size, as_good, expected) in [
            (20.0, AS_GOOD, 1.0),
            (20.0, 0.0, 1600.0 / 1601.0),
            (2.0, AS_GOOD, 16.0 / 17.0),
            (0.5, AS_GOOD, 0.5),
        ] {
            let share = best_share((&[size, -size, size, -size], &joint), &[1.0; 4], as_good);
            assert!((share - expected).abs() < 1e-15, "{share}");
        }
        assert_eq!(best_share((&joint, &joint), &[1.0; 4], AS_GOOD), 0.0);
    }
}
