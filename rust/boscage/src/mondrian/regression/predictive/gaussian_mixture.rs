//! Predictive distributions of regression forests as Gaussian mixtures: moments, densities, probabilities and
//! quantiles.
//!
//! A quantile solves `sum_k w_k Phi((x - m_k) / s_k) = p` by Newton's method in a bracket. A quantile of more than one half is
//! minus that of the mirrored mixture for the probability above it. So probabilities near one are as exact as those near
//! zero.

use crate::error::Result;
use crate::math::logs::log_sum_exp;
use crate::math::special_functions::{normal_cdf, normal_quantile};
use crate::mondrian::regression::hierarchy::tree_predictive::Component;
use crate::validate::{Interval, check_within};

/// `log(sqrt(2 pi))`.
const LOG_SQRT_TAU: f64 = 0.918_938_533_204_672_7;
/// `sqrt(2 pi)`.
const SQRT_TAU: f64 = 2.506_628_274_631_000_7;
const PROBABILITIES: Interval = (0.0, 1.0, "from 0 to 1");
const MAX_STEPS: usize = 250;

/// The predictive distributions of some rows: for each row a Gaussian mixture.
///
/// ```
/// use boscage::{Batch, Domain, MondrianRegressor, MondrianSettings, RegressionSettings, Rows, Run};
///
/// let x: Vec<f64> = (0..100).map(|i| f64::from(i) / 100.0).collect();
/// let y: Vec<f64> = x.iter().map(|x| 3.0 * x).collect();
/// let rows = Rows::from_f64(&x, 1)?;
/// let forest = MondrianRegressor::fit(
///     MondrianSettings { n_estimators: 20, ..MondrianSettings::default() },
///     RegressionSettings::default(),
///     Domain::of_rows(rows, None)?,
///     Batch { rows, ids: None, weights: None },
///     &y,
///     &Run::default(),
/// )?;
/// let mixtures = forest.predict_dist(Rows::from_f64(&[0.25, 0.5], 1)?, &Run::default())?;
/// for (mixture, y) in mixtures.rows().zip([0.75, 1.5]) {
///     // With a probability of 90 % the target is between these.
///     let (low, high) = mixture.interval(0.9)?;
///     assert!(low < y && y < high && high - low < 1.0);
///     assert!((mixture.cdf(high) - mixture.cdf(low) - 0.9).abs() < 1e-12);
/// }
/// # Ok::<(), boscage::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct GaussianMixtures {
    offsets: Vec<usize>,
    components: Vec<Component>,
}

impl GaussianMixtures {
    /// Mixtures of components with positive variances, at least one of which has a positive weight.
    pub(crate) fn of_rows(rows: impl Iterator<Item = Vec<Component>>) -> Self {
        let rows: Vec<Vec<Component>> = rows.collect();
        let mut offsets = vec![0];
        offsets.extend(rows.iter().scan(0, |end, row| {
            *end += row.len();
            Some(*end)
        }));
        Self { offsets, components: rows.into_iter().flatten().collect() }
    }

    /// Where the components of each row begin, and where all end.
    #[must_use]
    pub fn offsets(&self) -> &[usize] {
        &self.offsets
    }

    /// The components of all rows, row after row.
    #[must_use]
    pub fn components(&self) -> &[Component] {
        &self.components
    }

    /// The number of rows.
    #[must_use]
    pub fn n_rows(&self) -> usize {
        self.offsets.len() - 1
    }

    /// The mixture of every row.
    #[must_use]
    pub fn rows(&self) -> impl ExactSizeIterator<Item = GaussianMixture<'_>> {
        let of_row = |ends: &[usize]| GaussianMixture { components: &self.components[ends[0]..ends[1]] };
        self.offsets.windows(2).map(of_row)
    }

    /// The mixture of one row; none if there is no such row.
    #[must_use]
    pub fn get(&self, row: usize) -> Option<GaussianMixture<'_>> {
        self.rows().nth(row)
    }
}

/// The predictive distribution of one row (equation 6.5 of the thesis), of [`GaussianMixtures`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GaussianMixture<'a> {
    components: &'a [Component],
}

impl<'a> GaussianMixture<'a> {
    /// The Gaussians, whose weights sum to one but for rounding.
    #[must_use]
    pub fn components(self) -> &'a [Component] {
        self.components
    }

    /// The mean (eq. 6.4).
    #[must_use]
    pub fn mean(self) -> f64 {
        self.average(|component| component.mean)
    }

    /// The variance (eq. 6.4), as the mean squared distance to the mean, so that nothing cancels.
    #[must_use]
    pub fn variance(self) -> f64 {
        let mean = self.mean();
        self.average(|component| component.variance + (component.mean - mean).powi(2))
    }

    /// The logarithm of the density at a value; minus infinity at the infinities.
    #[must_use]
    pub fn log_pdf(self, y: f64) -> f64 {
        if y.is_nan() {
            return y;
        }
        let log = |component: &Component| {
            let z = (y - component.mean) / component.variance.sqrt();
            libm::log(component.weight) - 0.5 * (libm::log(component.variance) + z * z)
        };
        let logs: Vec<f64> = self.components.iter().map(log).collect();
        log_sum_exp(&logs) - libm::log(self.weight()) - LOG_SQRT_TAU
    }

    /// The probability that the target is at most a value.
    #[must_use]
    pub fn cdf(self, y: f64) -> f64 {
        self.average(|component| normal_cdf((y - component.mean) / component.variance.sqrt()))
    }

    /// The value that the target is at most with probability `p`; infinite if that is 0 or 1. It is right to the last
    /// digits at any distance, but for what rounding leaves of the distribution function where the density is low.
    ///
    /// # Errors
    /// [`Error::InvalidSetting`](crate::Error::InvalidSetting) if `p` is not from 0 to 1.
    pub fn quantile(self, p: f64) -> Result<f64> {
        check_within("p", p, PROBABILITIES)?;
        // One less a number of at least one half has no rounding.
        Ok(if p <= 0.5 { self.above_tail(p) } else { self.below_tail(1.0 - p) })
    }

    /// The central interval that holds the target with a probability: what is left of it is shared equally by the values
    /// below and above.
    ///
    /// # Errors
    /// [`Error::InvalidSetting`](crate::Error::InvalidSetting) if `level` is not from 0 to 1.
    pub fn interval(self, level: f64) -> Result<(f64, f64)> {
        check_within("level", level, PROBABILITIES)?;
        let tail = 0.5 * (1.0 - level);
        let low = self.above_tail(tail);
        // About the median, they may come in the other order by rounding.
        Ok((low, self.below_tail(tail).max(low)))
    }

    fn weight(self) -> f64 {
        self.components.iter().map(|component| component.weight).sum()
    }

    fn average(self, of: impl Fn(&Component) -> f64) -> f64 {
        let sum: f64 = self.components.iter().map(|component| component.weight * of(component)).sum();
        sum / self.weight()
    }

    /// The value below which there is a probability of at most one half.
    fn above_tail(self, p: f64) -> f64 {
        lower_quantile(&self.scaled(1.0), p)
    }

    /// The value above which there is a probability of at most one half.
    fn below_tail(self, p: f64) -> f64 {
        -lower_quantile(&self.scaled(-1.0), p)
    }

    /// What a quantile needs of components that have some weight, with means times a sign.
    fn scaled(self, sign: f64) -> Vec<Scaled> {
        let with_weight = self.components.iter().filter(|component| component.weight > 0.0);
        let scaled = |&Component { weight, mean, variance }: &Component| Scaled {
            weight,
            mean: sign * mean,
            scale: variance.sqrt(),
        };
        with_weight.map(scaled).collect()
    }
}

/// A Gaussian with its standard deviation.
struct Scaled {
    weight: f64,
    mean: f64,
    scale: f64,
}

/// The quantile of a mixture for a probability of at most one half.
fn lower_quantile(parts: &[Scaled], p: f64) -> f64 {
    if p == 0.0 {
        return f64::NEG_INFINITY;
    }
    let z = normal_quantile(p);
    // A mixture's quantile lies between the least and the greatest of its components'.
    let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
    let (mut weight, mut centre, mut finest) = (0.0, 0.0, f64::INFINITY);
    for part in parts {
        let own = part.mean + z * part.scale;
        (low, high, finest) = (low.min(own), high.max(own), finest.min(part.scale));
        weight += part.weight;
        centre += part.weight * own;
    }
    let (mut x, mut last_step) = ((centre / weight).max(low).min(high), high - low);
    let target = p * weight;
    for _ in 0..MAX_STEPS {
        let (below, density) = below_and_density(parts, x);
        let excess = below - target;
        if excess == 0.0 {
            break;
        }
        *(if excess < 0.0 { &mut low } else { &mut high }) = x;
        // A step of Newton's method for the logarithm of the distribution function, which bends less in the tails. Between
        // two modes the density vanishes: where a step leaves the bracket or hardly shrinks, the bracket is halved instead.
        let step = below * libm::log1p(excess / target) / density;
        let is_good = (low..=high).contains(&(x - step)) && step.abs() <= 0.5 * last_step;
        let next = if is_good { x - step } else { middle((low, high), finest) };
        last_step = (next - x).abs();
        x = next;
        // Near 0 the distribution function resolves no more than the narrowest component does.
        if last_step <= 2.0 * f64::EPSILON * x.abs().max(finest) {
            break;
        }
    }
    x
}

/// The weighted sums of the components' distribution functions and densities.
fn below_and_density(parts: &[Scaled], x: f64) -> (f64, f64) {
    let (mut below, mut density) = (0.0, 0.0);
    for part in parts {
        let z = (x - part.mean) / part.scale;
        below += part.weight * normal_cdf(z);
        density += part.weight / part.scale * libm::exp(-0.5 * z * z);
    }
    (below, density / SQRT_TAU)
}

/// The middle of a bracket on a scale that is linear up to the standard deviation of the narrowest component and logarithmic
/// beyond, so that few steps lead from the widest component to the narrowest.
fn middle((low, high): (f64, f64), finest: f64) -> f64 {
    let along = 0.5 * (libm::asinh(low / finest) + libm::asinh(high / finest));
    (finest * libm::sinh(along)).max(low).min(high)
}

#[cfg(test)]
mod tests;
