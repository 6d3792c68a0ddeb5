//! Normal leaves with unknown mean and variance.

use crate::bayes::leaf::model::{ConjugateLeaf, SubtractedCut};
use crate::error::Result;
use crate::validate::{
    GAMMA_SHAPES, PSEUDO_COUNTS, SUMS_OF_SQUARES, check, check_repeats, check_squares, check_within, is_small,
};

/// The prior of a leaf's mean and variance, conjugate to normal targets:
/// `sigma^2 ~ InverseGamma(shape, scale)`, `mu | sigma^2 ~ N(prior_mean, sigma^2 / kappa)`.
///
/// With `n` targets of mean `m` the posterior has `kappa_n = kappa + n`, `shape_n = shape + n / 2` and
/// `scale_n = scale + (sum (y - m)^2 + kappa n (m - prior_mean)^2 / kappa_n) / 2`; the marginal likelihood is
/// `(2 pi)^(-n/2) sqrt(kappa / kappa_n) Gamma(shape_n) / Gamma(shape) scale^shape / scale_n^shape_n`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NormalPrior {
    /// The expected mean.
    pub prior_mean: f64,
    /// The weight of the prior mean, as a number of rows.
    pub kappa: f64,
    /// Shape of the variance's inverse gamma distribution.
    pub shape: f64,
    /// Scale of the variance's inverse gamma distribution.
    pub scale: f64,
}

impl NormalPrior {
    /// A prior whose location and scale are those of the targets. A leaf's variance is expected to be about
    /// the share `noise_share` of the variance of all targets: `scale = shape noise_share var(y)`.
    ///
    /// # Errors
    /// Targets that are not finite, above 1e140 or all below 1e-140 by magnitude; a `noise_share` that is not from
    /// 1e-9 to 1e9; as [`NormalPrior::check`].
    pub fn of_targets(targets: &[f64], kappa: f64, shape: f64, noise_share: f64) -> Result<Self> {
        check_squares(targets)?;
        let n = targets.len().max(1) as f64;
        // Each term is divided by `n` first, so that no sum overflows.
        let mean: f64 = targets.iter().map(|y| y / n).sum();
        let variance: f64 = targets.iter().map(|y| (y - mean) / n * (y - mean)).sum();
        Self::of_moments((mean, variance), kappa, shape, noise_share)
    }

    /// As [`NormalPrior::of_targets`], where each target counts as often as its weight says.
    ///
    /// # Errors
    /// As [`NormalPrior::of_targets`]; weights that [`BayesianTreeRegressor::fit_weighted`] refuses.
    ///
    /// [`BayesianTreeRegressor::fit_weighted`]: crate::BayesianTreeRegressor::fit_weighted
    pub fn of_weighted_targets(
        (targets, weights): (&[f64], &[f64]),
        kappa: f64,
        shape: f64,
        noise_share: f64,
    ) -> Result<Self> {
        check_squares(targets)?;
        check_repeats(weights, targets.len())?;
        let total: f64 = weights.iter().sum();
        let shares = || targets.iter().zip(weights.iter().map(|weight| weight / total));
        let mean: f64 = shares().map(|(y, share)| share * y).sum();
        let variance: f64 = shares().map(|(y, share)| share * (y - mean) * (y - mean)).sum();
        Self::of_moments((mean, variance), kappa, shape, noise_share)
    }

    fn of_moments((mean, variance): (f64, f64), kappa: f64, shape: f64, noise_share: f64) -> Result<Self> {
        // If all targets are equal up to rounding, the variance must still be positive.
        let least = (f64::EPSILON * mean).powi(2).max(f64::MIN_POSITIVE);
        check_within("shape", shape, GAMMA_SHAPES)?;
        check_within("noise_share", noise_share, GAMMA_SHAPES)?;
        let scale = (shape * noise_share * variance.max(least)).clamp(SUMS_OF_SQUARES.0, SUMS_OF_SQUARES.1);
        let prior = Self { prior_mean: mean, kappa, shape, scale };
        prior.check()?;
        Ok(prior)
    }

    /// # Errors
    /// [`Error::InvalidSetting`](crate::Error::InvalidSetting) for a mean above 1e140 by magnitude, `kappa`
    /// not from 1e-100 to 1e100, `shape` not from 1e-9 to 1e9, or `scale` not from 1e-290 to 1e290.
    pub fn check(&self) -> Result<()> {
        let expected = "finite, and at most 1e140 by magnitude";
        check("prior_mean", is_small(self.prior_mean), expected, &self.prior_mean)?;
        check_within("kappa", self.kappa, PSEUDO_COUNTS)?;
        check_within("shape", self.shape, GAMMA_SHAPES)?;
        check_within("scale", self.scale, SUMS_OF_SQUARES)
    }
}

/// Normal leaves under a [`NormalPrior`].
#[derive(Debug)]
pub(crate) struct Normal {
    prior: NormalPrior,
    /// Targets minus the prior mean, so that differences of sums lose little precision.
    centred: Vec<f64>,
    /// By number of rows `n`: the terms of the log likelihood that depend only on `n`.
    by_n: Vec<f64>,
}

/// Sums over a set of rows, of targets minus the prior mean.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct NormalSums {
    n: u32,
    sum: f64,
    squares: f64,
}

impl NormalSums {
    const NONE: Self = Self { n: 0, sum: 0.0, squares: 0.0 };

    fn add(&mut self, y: f64) {
        self.n += 1;
        self.sum += y;
        self.squares += y * y;
    }

    fn minus(&self, part: &Self) -> Self {
        Self { n: self.n - part.n, sum: self.sum - part.sum, squares: self.squares - part.squares }
    }

    /// The same, as a fitted tree holds them.
    pub(crate) fn totals(&self) -> NormalTotals {
        NormalTotals { n_rows: self.n, weight: f64::from(self.n), sum: self.sum, squares: self.squares }
    }
}

/// Sums over the rows of a node, of weights, and of targets minus the prior mean, times the weights. Rows without
/// weights weigh 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NormalTotals {
    pub(crate) n_rows: u32,
    pub(crate) weight: f64,
    pub(crate) sum: f64,
    pub(crate) squares: f64,
}

impl NormalTotals {
    /// The posterior's `scale_n`.
    pub(crate) fn scale(&self, prior: &NormalPrior) -> f64 {
        // The sums of squares in `scale_n`, combined; rounding may take the result just below zero.
        prior.scale + 0.5 * (self.squares - self.sum * self.sum / (prior.kappa + self.weight)).max(0.0)
    }

    /// Mean and variance of the targets.
    pub(crate) fn of_targets(&self, prior: &NormalPrior) -> (f64, f64) {
        let mean = self.sum / self.weight;
        // Rounding may take the variance of equal targets just below zero.
        (prior.prior_mean + mean, (self.squares / self.weight - mean * mean).max(0.0))
    }

    /// Degrees of freedom, location and scale of the predictive Student t distribution.
    pub(crate) fn predictive(&self, prior: &NormalPrior) -> (f64, f64, f64) {
        let (kappa, shape) = (prior.kappa + self.weight, prior.shape + 0.5 * self.weight);
        let variance = self.scale(prior) / shape * (1.0 + 1.0 / kappa);
        (2.0 * shape, prior.prior_mean + self.sum / kappa, variance.sqrt())
    }
}

/// The terms of the log likelihood that depend only on the weight of all rows: their number, if they have none.
pub(crate) fn log_normaliser(prior: &NormalPrior, weight: f64) -> f64 {
    0.5 * libm::log(prior.kappa / (prior.kappa + weight)) - 0.5 * weight * libm::log(std::f64::consts::TAU)
        + libm::lgamma(prior.shape + 0.5 * weight)
        - libm::lgamma(prior.shape)
        + prior.shape * libm::log(prior.scale)
}

impl Normal {
    /// The model of the given targets.
    ///
    /// # Errors
    /// As [`NormalPrior::check`].
    pub(crate) fn new(targets: &[f64], prior: NormalPrior) -> Result<Self> {
        prior.check()?;
        Ok(Self {
            prior,
            centred: targets.iter().map(|y| y - prior.prior_mean).collect(),
            by_n: (0..=targets.len()).map(|n| log_normaliser(&prior, n as f64)).collect(),
        })
    }
}

impl ConjugateLeaf for Normal {
    type Stats = NormalSums;
    type MovingCut<'a> = SubtractedCut<'a, Self>;

    fn empty(&self) -> NormalSums {
        NormalSums::NONE
    }

    fn add(&self, moments: &mut NormalSums, row: u32) {
        moments.add(self.centred[row as usize]);
    }

    fn rest(&self, all: &NormalSums, part: &NormalSums) -> NormalSums {
        all.minus(part)
    }

    fn log_likelihood(&self, moments: &NormalSums) -> f64 {
        let shape = self.prior.shape + 0.5 * f64::from(moments.n);
        self.by_n[moments.n as usize] - shape * libm::log(moments.totals().scale(&self.prior))
    }

    fn moving_cut<'a>(&'a self, all: &NormalSums) -> SubtractedCut<'a, Self> {
        SubtractedCut::new(self, all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bayes::leaf::model::MovingCut;

    fn student_log_density(y: f64, (df, location, scale): (f64, f64, f64)) -> f64 {
        let z = (y - location) / scale;
        libm::lgamma(0.5 * (df + 1.0))
            - libm::lgamma(0.5 * df)
            - 0.5 * (df * std::f64::consts::PI).ln()
            - scale.ln()
            - 0.5 * (df + 1.0) * (z * z / df).ln_1p()
    }

    #[test]
    fn likelihood_is_the_product_of_predictives() {
        let targets = [3.1, -0.4, 12.0, 3.3, 2.9];
        let prior = NormalPrior { prior_mean: 1.5, kappa: 0.3, shape: 1.2, scale: 0.7 };
        let model = Normal::new(&targets, prior).unwrap();
        let mut moments = model.empty();
        let mut expected = 0.0;
        for (row, &y) in targets.iter().enumerate() {
            expected += student_log_density(y, moments.totals().predictive(&prior));
            model.add(&mut moments, row as u32);
        }
        assert!((model.log_likelihood(&moments) - expected).abs() < 1e-12);
    }

    #[test]
    fn a_sweep_agrees_with_both_sides_summed() {
        let targets = [3.1, -0.4, 12.0, 3.3, 2.9, 0.0];
        let prior = NormalPrior { prior_mean: 1.5, kappa: 0.3, shape: 1.2, scale: 0.7 };
        let model = Normal::new(&targets, prior).unwrap();
        let all = model.of_rows(0..6);
        let mut sweep = model.moving_cut(&all);
        for n in [1, 4, 5] {
            if n == 4 {
                sweep.shift_all_but(4..6);
            } else {
                sweep.shift(n - 1);
            }
            let expected =
                model.log_likelihood(&model.of_rows(0..n)) + model.log_likelihood(&model.of_rows(n..6));
            assert!((sweep.log_likelihood() - expected).abs() < 1e-12);
        }
    }
}
