//! Settings of the regression posterior.

use crate::error::{Error, Result};
use crate::mondrian::forest::settings::MondrianSettings;
use crate::mondrian::joint::kernel::{JointKernel, KernelRule, MAX_REGRESSION_LIMIT_ROWS};
use crate::mondrian::regression::hierarchy::belief_propagation::Hyperparameters;
use crate::mondrian::regression::left_out_fit::LeftOutFit;
use crate::validate::{Interval, SUMS_OF_SQUARES, check_positive, check_targets, check_within};

/// How the posterior at a node is computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Posterior {
    /// Gaussian belief propagation (section 6.3.1).
    Exact,
    /// Empirical mean and variance of the node's rows (section 6.3.3).
    Fast,
    /// Belief propagation, centred on the joint model's mean: there all trees' functions add up to the
    /// targets' (a Gaussian process with the forest's own kernel).
    #[default]
    Joint,
}

/// How hyperparameters that are not given are chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum HyperparameterRule {
    /// By maximum marginal likelihood.
    MarginalLikelihood,
    /// By the heuristic of section 6.3.2.
    Heuristic,
    /// By the leave-one-out predictive of the whole forest.
    #[default]
    LeaveOneOut,
}

/// How the noise varies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Noise {
    /// One variance for the whole forest.
    Global,
    /// A factor of each node, smoothed down the tree; with hyperparameters by the leave-one-out predictive,
    /// also a wider one for some rows.
    #[default]
    Local,
}

/// Settings of the regression posterior.
#[derive(Debug, Clone, PartialEq)]
pub struct RegressionSettings {
    /// The posterior at a node.
    pub posterior: Posterior,
    /// How hyperparameters are chosen.
    pub rule: HyperparameterRule,
    /// How the noise varies.
    pub noise: Noise,
    /// All hyperparameters, if they are given: then updates cost a path, not a tree.
    pub hyperparameters: Option<Hyperparameters>,
    /// What belongs to hyperparameters that are given, as far as posterior and noise use it.
    pub left_out_fit: LeftOutFit,
    /// The noise variance, if it is known; the others are chosen by the rule.
    pub noise_variance: Option<f64>,
    /// The standard deviation of the predictive far from all rows, in units of the targets' own; at least 1. None leaves
    /// it to the rule, as in the thesis. It says nothing about the fast posterior, nor where all hyperparameters are given.
    pub prior_scale: Option<f64>,
    /// Where the rule's choice has less variance than `prior_scale` asks for, a coarse part of the prior adds the rest. It is
    /// spent at this rate, in units of the rate of cuts in the whole box of the reference ranges; from 1e-30 to 1e30. None: at a
    /// quarter or, for the joint posterior with the leave-one-out rule, the lowest rate from there on at which rows that are left
    /// out are predicted hardly wider; then predictions beside all rows are as wide as with a quarter.
    pub prior_rate: Option<f64>,
    /// A linear part of the mean beside the trees, for the joint posterior.
    pub trend: Option<Trend>,
    /// The covariance of the joint posterior.
    pub joint_kernel: JointKernel,
}

/// A linear function of the features, in units of their reference ranges and from the middle of these, with an independent
/// normal prior on its coefficients.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Trend {
    /// The features that it has, in order, at least one; None stands for all.
    pub features: Option<Vec<usize>>,
    /// The coefficients' prior variance, which belongs to the hyperparameters: given if these are, else that under which the targets are
    /// most likely.
    pub variance: Option<f64>,
    /// The factor on the joint model's variances where it decides how uncertain the coefficients are: given or not as the variance is,
    /// and 1 if the variance alone is given.
    pub scale: Option<f64>,
}

impl Default for RegressionSettings {
    fn default() -> Self {
        Self {
            posterior: Posterior::default(),
            rule: HyperparameterRule::default(),
            noise: Noise::default(),
            hyperparameters: None,
            left_out_fit: LeftOutFit::default(),
            noise_variance: None,
            prior_scale: Some(1.0),
            prior_rate: None,
            trend: None,
            joint_kernel: JointKernel::default(),
        }
    }
}

/// Measured on five data sets: with a rate of 1, predictions beside the rows are too sure of themselves (up to half a range
/// away, 90 % intervals cover .84 of the targets on average and .57 at least; .88 and .65 with a quarter), and with an eighth,
/// those among the rows are too wide.
pub(crate) const LEAST_PRIOR_RATE: f64 = 0.25;
/// Of forests that cannot have such a part, and of those in older files.
pub(crate) const OLD_PRIOR_RATE: f64 = 1.0;

/// The longest delay in units of `1 / gamma_2`: the square of its exponential is finite.
const MAX_DELAY: f64 = 300.0;

pub(crate) const PRIOR_RATES: Interval = (1e-30, 1e30, "from 1e-30 to 1e30");

/// The prior variance of a slope in units of `gamma_1`.
const TREND_SHARES: Interval = (1e-30, 1e30, "from 1e-30 to 1e30");

impl RegressionSettings {
    /// Whether a forest with these settings and so many rows has a joint posterior with the covariance of infinitely many trees,
    /// whatever its rows are.
    #[must_use]
    pub fn is_limit(&self, forest: &MondrianSettings, n_rows: usize) -> bool {
        self.posterior == Posterior::Joint && self.kernel_rule(forest, n_rows) == KernelRule::Limit
    }

    /// What decides the covariance of the joint posterior.
    pub(crate) fn kernel_rule(&self, forest: &MondrianSettings, n_rows: usize) -> KernelRule {
        self.joint_kernel.rule(forest, n_rows, MAX_REGRESSION_LIMIT_ROWS)
    }

    /// # Errors
    /// A hyperparameter that is not positive and finite (`mu`: a target that may be; the coarse variance: not negative), a
    /// variance that no targets have, a
    /// delay that is negative or too long or beside a coarse part, a `prior_scale` below 1, a `prior_rate` beyond its bounds,
    /// a trend without the joint posterior, or whose variance is not given just where the hyperparameters are, or a fit that is
    /// out of range, or without hyperparameters.
    pub fn check(&self) -> Result<()> {
        if let Some(variance) = self.noise_variance {
            check_positive("noise_variance", variance)?;
        }
        if let Some(scale) = self.prior_scale.filter(|scale| !(*scale >= 1.0 && scale.is_finite())) {
            let (name, expected) = ("prior_scale", "at least 1 and finite");
            return Err(Error::InvalidSetting { name, expected, found: scale.to_string() });
        }
        if let Some(rate) = self.prior_rate {
            check_within("prior_rate", rate, PRIOR_RATES)?;
        }
        if let Some(trend) = &self.trend {
            let refused = |expected, found: &str| {
                Err(Error::InvalidSetting { name: "trend", expected, found: found.into() })
            };
            match (trend.variance, self.hyperparameters.is_some()) {
                _ if self.posterior != Posterior::Joint => {
                    return refused("none unless the posterior is the joint one", "one");
                }
                _ if trend
                    .features
                    .as_ref()
                    .is_some_and(|features| features.is_empty() || !features.is_sorted_by(|a, b| a < b)) =>
                {
                    return refused("one whose features are in order, each once", "others");
                }
                // A greater share, or a lesser one, would only be lost in rounding.
                (Some(variance), true) => {
                    let of_trees = self.left_out_fit.joint.map(|joint| joint.gamma1);
                    let gamma1 = of_trees.or(self.hyperparameters.map(|hyper| hyper.gamma1));
                    let share = variance / gamma1.unwrap_or(1.0);
                    check_within("trend_variance / gamma1", share, TREND_SHARES)?;
                }
                (None, false) => {}
                (None, true) => {
                    return refused("one with a variance where all hyperparameters are given", "none");
                }
                (Some(_), false) => {
                    return refused("one without a variance where a rule chooses it", "a variance");
                }
            }
            if let Some(scale) = trend.scale {
                if trend.variance.is_none() {
                    return refused("one without a scale where its variance is not given", "a scale");
                }
                check_positive("trend_scale", scale)?;
            }
        }
        self.left_out_fit.check()?;
        if let Some((name, _)) =
            self.left_out_fit.numbers().first().filter(|_| self.hyperparameters.is_none())
        {
            let expected = "none where a rule chooses it";
            return Err(Error::InvalidSetting { name, expected, found: "a number".into() });
        }
        if let Some(hyper) = &self.hyperparameters {
            check_positive("coarse_rate", hyper.coarse.rate)?;
            check_positive("gamma2", hyper.gamma2)?;
            let of_coarse = Some(("coarse_variance", hyper.coarse.variance)).filter(|own| own.1 != 0.0);
            let variances = [("gamma1", hyper.gamma1), ("noise_variance", hyper.noise_variance)];
            for (name, variance) in variances.into_iter().chain(of_coarse) {
                check_positive(name, variance)?;
                check_within(name, variance, SUMS_OF_SQUARES)?;
            }
            if !(0.0..=MAX_DELAY / hyper.gamma2).contains(&hyper.delay) {
                let (expected, found) = ("from 0 to 300 / gamma2", hyper.delay.to_string());
                return Err(Error::InvalidSetting { name: "delay", expected, found });
            }
            if hyper.delay > 0.0 && hyper.coarse.variance > 0.0 {
                let (expected, found) = ("0 where the prior has a coarse part", hyper.delay.to_string());
                return Err(Error::InvalidSetting { name: "delay", expected, found });
            }
            check_targets(&[hyper.mu]).map_err(|_| Error::InvalidSetting {
                name: "mu",
                expected: "finite, and a target that may be",
                found: hyper.mu.to_string(),
            })?;
        }
        Ok(())
    }

    /// The delay and the coarse part's variance and rate, if a prior is given that is not the thesis'.
    pub(crate) fn beyond_thesis(&self) -> Option<[f64; 3]> {
        let Hyperparameters { delay, coarse, .. } = self.hyperparameters?;
        (delay > 0.0 || coarse.variance > 0.0).then_some([delay, coarse.variance, coarse.rate])
    }

    /// Without settings that have no effect, so that equal forests have equal settings.
    #[must_use]
    pub(crate) fn effective(mut self) -> Self {
        if self.posterior != Posterior::Joint {
            self.joint_kernel = JointKernel::Trees;
        }
        if self.posterior == Posterior::Fast || self.hyperparameters.is_some() {
            self.prior_scale = None;
        }
        if self.posterior != Posterior::Joint {
            self.left_out_fit.joint = None;
        }
        if self.noise == Noise::Global {
            self.left_out_fit = LeftOutFit { joint: self.left_out_fit.joint, ..LeftOutFit::default() };
        }
        // Where a fit of the joint posterior is given, predictions beside all rows are as wide as where it was fitted.
        if self.left_out_fit.joint.is_none() {
            if self.prior_scale.is_none() {
                self.prior_rate = Some(OLD_PRIOR_RATE);
            } else if self.rule != HyperparameterRule::LeaveOneOut || self.posterior != Posterior::Joint {
                self.prior_rate.get_or_insert(LEAST_PRIOR_RATE);
            }
        }
        self
    }
}
