//! Log-linear sums of trees for counts (Murray 2021): a leaf multiplies the rate by a factor, which has a
//! conjugate gamma prior.

use std::ops::{Add, Sub};

use crate::bart::leaves::model::LeafModel;
use crate::bart::settings::BartSettings;
use crate::error::{Error, Result};
use crate::math::logs::log_sum_exp;
use crate::random::keyed::Stream;
use crate::validate::check;

/// `exp(mu) ~ Gamma(shape, rate)`, such that the leaf's value `mu` has mean zero and a given standard
/// deviation.
///
/// For `y` events, of which `w` are expected if `mu = 0`, the likelihood is `exp(mu y - w exp(mu))`. The
/// marginal likelihood is `rate^shape / Gamma(shape) Gamma(shape + y) / (rate + w)^(shape + y)`, and the
/// posterior is `Gamma(shape + y, rate + w)`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct LogGamma {
    shape: f64,
    log_rate: f64,
    /// The rate; zero if it underflows.
    rate: f64,
    /// `shape log rate - log Gamma(shape)`.
    log_constant: f64,
}

/// Number of events: counted, and expected in a leaf with value zero.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Events {
    /// Events counted.
    pub count: f64,
    /// Events expected.
    pub expected: f64,
}

impl Add for Events {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { count: self.count + other.count, expected: self.expected + other.expected }
    }
}

impl Sub for Events {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        // If no row is left, rounding may leave a small remainder.
        let rest = |all: f64, part: f64| (all - part).max(0.0);
        Self { count: rest(self.count, other.count), expected: rest(self.expected, other.expected) }
    }
}

impl LogGamma {
    /// The logarithm of `G ~ Gamma(a, b)` has mean `psi(a) - log b` and variance `psi'(a)`.
    pub(crate) fn new(spread: f64) -> Self {
        let (mut low, mut high) = (-700.0, 700.0);
        for _ in 0..200 {
            let middle = 0.5 * (low + high);
            if trigamma(libm::exp(middle)) > spread * spread {
                low = middle;
            } else {
                high = middle;
            }
        }
        let shape = libm::exp(0.5 * (low + high));
        let log_rate = digamma(shape);
        let log_constant = shape * log_rate - libm::lgamma(shape);
        Self { shape, log_rate, rate: libm::exp(log_rate), log_constant }
    }

    pub(crate) fn log_marginal(&self, events: Events) -> f64 {
        let shape = self.shape + events.count;
        self.log_constant + libm::lgamma(shape) - shape * self.log_rate_with(events.expected)
    }

    pub(crate) fn draw(&self, events: Events, stream: &mut Stream) -> f64 {
        stream.log_gamma(self.shape + events.count) - self.log_rate_with(events.expected)
    }

    /// Logarithm of the posterior's rate.
    fn log_rate_with(&self, expected: f64) -> f64 {
        if self.rate >= f64::MIN_POSITIVE {
            libm::log(self.rate + expected)
        } else {
            log_sum_exp(&[self.log_rate, libm::log(expected)])
        }
    }
}

/// `exp`, bounded so that sums over rows are finite.
pub(crate) fn finite_exp(x: f64) -> f64 {
    libm::exp(x.min(600.0))
}

/// Counts `y ~ Poisson(exposure exp(f(x)))` with a sum of trees `f`, as a [`LeafModel`].
#[derive(Debug, Clone, PartialEq)]
pub struct PoissonLeaves {
    counts: Vec<f64>,
    log_exposure: Vec<f64>,
    prior: LogGamma,
}

impl PoissonLeaves {
    /// Counts and their exposures (time, area, or an expected rate). `f` has prior mean zero and standard
    /// deviation `2 / k`.
    ///
    /// # Errors
    /// Counts that are not whole numbers from 0 to 1e15; exposures that are not positive and finite; lengths
    /// that differ; invalid settings.
    pub fn new(counts: &[f64], exposure: &[f64], settings: &BartSettings) -> Result<Self> {
        settings.check()?;
        if counts.len() != exposure.len() {
            return Err(Error::Length {
                what: "exposure",
                found: exposure.len(),
                expected: counts.len(),
                why: "one for each count",
            });
        }
        let is_count = |y: &f64| (0.0..=1e15).contains(y) && y.fract() == 0.0;
        check("y", counts.iter().all(is_count), "whole numbers from 0 to 1e15", &"other values")?;
        let is_positive = |e: &f64| *e > 0.0 && e.is_finite();
        check("exposure", exposure.iter().all(is_positive), "positive and finite", &"other values")?;
        let spread = 2.0 / (settings.k * (settings.n_trees as f64).sqrt());
        Ok(Self {
            counts: counts.to_vec(),
            log_exposure: exposure.iter().map(|&e| libm::log(e)).collect(),
            prior: LogGamma::new(spread),
        })
    }
}

impl LeafModel for PoissonLeaves {
    type Stats = Events;

    fn n_rows(&self) -> usize {
        self.counts.len()
    }

    fn stats(&self, row: usize, others: f64) -> Events {
        Events { count: self.counts[row], expected: finite_exp(self.log_exposure[row] + others) }
    }

    fn log_marginal(&self, stats: Events) -> f64 {
        self.prior.log_marginal(stats)
    }

    fn draw(&self, stats: Events, stream: &mut Stream) -> f64 {
        self.prior.draw(stats, stream)
    }

    fn log_likelihood(&self, sums: &[f64]) -> f64 {
        let rows = self.counts.iter().zip(&self.log_exposure).zip(sums);
        rows.map(|((&y, e), f)| y * (e + f) - finite_exp(e + f) - libm::lgamma(y + 1.0)).sum()
    }
}

/// `psi(x) = d log Gamma(x) / dx`: `x` is increased by `psi(x) = psi(x + 1) - 1 / x`, and then the asymptotic
/// series is used.
fn digamma(mut x: f64) -> f64 {
    let mut sum = 0.0;
    while x < 10.0 {
        sum -= 1.0 / x;
        x += 1.0;
    }
    let y = 1.0 / (x * x);
    let series = y * (1.0 / 12.0 - y * (1.0 / 120.0 - y * (1.0 / 252.0 - y * (1.0 / 240.0 - y / 132.0))));
    sum + libm::log(x) - 0.5 / x - series
}

/// `psi'(x)`, in the same way.
fn trigamma(mut x: f64) -> f64 {
    let mut sum = 0.0;
    while x < 10.0 {
        sum += 1.0 / (x * x);
        x += 1.0;
    }
    let y = 1.0 / (x * x);
    let series = y * (1.0 / 6.0 - y * (1.0 / 30.0 - y * (1.0 / 42.0 - y * (1.0 / 30.0 - y * 5.0 / 66.0))));
    sum + 1.0 / x + 0.5 * y + series / x
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn derivatives_of_the_gamma_function_are_those_of_tables() {
        let euler = 0.577_215_664_901_532_9;
        assert!((digamma(1.0) + euler).abs() < 1e-13);
        assert!((digamma(0.5) + euler + 2.0 * 2.0f64.ln()).abs() < 1e-13);
        let pi2 = std::f64::consts::PI.powi(2);
        assert!((trigamma(1.0) - pi2 / 6.0).abs() < 1e-13);
        assert!((trigamma(0.5) - pi2 / 2.0).abs() < 1e-12);
    }

    /// Under a wide prior the rate underflows; results must follow from its logarithm.
    #[test]
    fn wide_priors_have_a_rate() {
        let wide = LogGamma::new(2000.0);
        assert!(wide.rate == 0.0 && wide.log_rate < -1000.0);
        // One event where `e^-900` are expected: `l = rate^a Gamma(a + 1) / (Gamma(a) (rate + w)^(a + 1))`.
        let events = Events { count: 1.0, expected: 1e-300 };
        let log_expected = libm::log(1e-300);
        let log_marginal =
            wide.shape * wide.log_rate + libm::log(wide.shape) - (wide.shape + 1.0) * log_expected;
        assert!((wide.log_marginal(events) - log_marginal).abs() < 1e-9);
        let nothing = wide.log_marginal(Events::default());
        assert!(nothing.abs() < 1e-12, "{nothing}");
        let mut stream = Stream::new(1, 0);
        let n = 100_000;
        let draws: Vec<f64> = (0..n).map(|_| wide.draw(Events::default(), &mut stream) / 2000.0).collect();
        let mean = draws.iter().sum::<f64>() / f64::from(n);
        let square = draws.iter().map(|x| x * x).sum::<f64>() / f64::from(n);
        assert!(mean.abs() < 5.0 / f64::from(n).sqrt() && (square - 1.0).abs() < 0.05, "{mean} {square}");
    }

    /// Compares closed forms with integrals over the leaf's value on a grid.
    #[test]
    fn likelihood_prior_and_posterior_are_integrals() {
        let prior = LogGamma::new(0.6);
        let density = |mu: f64| {
            let log_gamma_density = prior.log_constant + (prior.shape - 1.0) * mu - prior.rate * mu.exp();
            (log_gamma_density + mu).exp()
        };
        let events = Events { count: 3.0, expected: 1.7 };
        let (mut total, mut squares, mut marginal, mut mean) = (0.0, 0.0, 0.0, 0.0);
        let step = 1e-3;
        for i in -12_000..8000 {
            let mu = f64::from(i) * step;
            let p = step * density(mu);
            let likelihood = (mu * events.count - events.expected * mu.exp()).exp();
            total += p;
            squares += p * mu * mu;
            marginal += p * likelihood;
            mean += p * likelihood * mu;
        }
        assert!((total - 1.0).abs() < 1e-9, "{total}");
        assert!((squares - 0.36).abs() < 1e-8, "{squares}");
        assert!((prior.log_marginal(events) - marginal.ln()).abs() < 1e-9);
        let mut stream = Stream::new(1, 0);
        let n = 200_000;
        let found = (0..n).map(|_| prior.draw(events, &mut stream)).sum::<f64>() / f64::from(n);
        assert!((found - mean / marginal).abs() < 5.0 * 0.6 / f64::from(n).sqrt(), "{found}");
        let none = (0..n).map(|_| prior.draw(Events::default(), &mut stream)).sum::<f64>() / f64::from(n);
        assert!(none.abs() < 5.0 * 0.6 / f64::from(n).sqrt(), "{none}");
    }
}
