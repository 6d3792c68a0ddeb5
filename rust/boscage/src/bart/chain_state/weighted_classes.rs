//! Two classes of rows with weights: a row of weight `w` counts as `w` equal rows, also if `w` is not whole.
//!
//! With `F` the probability that a row's class has, its likelihood is `F^w = F^m F^-a`, where `m` is `w` rounded up. The
//! first factor is that of `m` latent numbers as in the unweighted model (Albert and Chib 1993). The second is a sum of
//! positive terms, `F^-a = sum_k (a)_k / k! (1 - F)^k` with rising factorials `(a)_k`: given the other unknowns `k` has a
//! negative binomial distribution, and given `k` the factor is that of `k` latent numbers of the other class. So all trees
//! see is the mean of `m + k` latent numbers, with as many times the precision of one.

use crate::bart::leaves::weighted_normal::WeightedNormal;
use crate::math::special_functions::normal_cdf;
use crate::random::distributions::{normal, normal_above};
use crate::random::keyed::Stream;

/// The classes and the weights of rows, and the constant that is added to the sum of trees.
#[derive(Debug, Clone)]
pub(crate) struct WeightedClasses {
    pub(crate) positive: Vec<bool>,
    pub(crate) weights: Vec<f64>,
    pub(crate) offset: f64,
}

/// The least probability of a row's class; a sum of trees of so little probability is out of reach of the prior.
const LEAST: f64 = 1e-15;

impl WeightedClasses {
    /// Draws the latent numbers of all rows given the sums of trees: targets become their means, and weights their numbers.
    pub(crate) fn draw(&self, model: &mut WeightedNormal, sums: &[f64], stream: &mut Stream) {
        for (row, &sum) in sums.iter().enumerate() {
            let own = self.towards_own(row, sum);
            let whole = self.weights[row].ceil();
            let others = other_class(whole - self.weights[row], normal_cdf(own).max(LEAST), stream);
            let residuals = sum_above(-own, whole, stream) - sum_above(own, others, stream);
            let mean = residuals / (whole + others);
            model.weights[row] = whole + others;
            model.targets[row] = if self.positive[row] { sum + mean } else { sum - mean };
        }
    }

    /// Logarithm of the likelihood of the classes.
    pub(crate) fn log_likelihood(&self, sums: &[f64]) -> f64 {
        let rows = sums.iter().zip(&self.weights).enumerate();
        rows.map(|(row, (&sum, weight))| {
            weight * libm::log(normal_cdf(self.towards_own(row, sum)).max(f64::MIN_POSITIVE))
        })
        .sum()
    }

    /// The mean of a latent number, with the sign that makes it positive where the row's class is the more probable one.
    fn towards_own(&self, row: usize, sum: f64) -> f64 {
        if self.positive[row] { self.offset + sum } else { -self.offset - sum }
    }
}

/// Draws `k` with the probability `(a)_k / k! (1 - p)^k p^a`: a Poisson number of logarithmic numbers (Quenouille 1949), each
/// drawn as a geometric one of random parameter (Kemp 1981).
fn other_class(a: f64, p: f64, stream: &mut Stream) -> f64 {
    if a == 0.0 {
        return 0.0;
    }
    let (mut k, log_p) = (0.0, libm::log(p));
    let mut left = -a * log_p + libm::log(1.0 - stream.unit());
    while left > 0.0 {
        let log_q = libm::log1p(-libm::exp(log_p * stream.unit()));
        k += 1.0 + (libm::log(1.0 - stream.unit()) / log_q).floor();
        left += libm::log(1.0 - stream.unit());
    }
    k
}

/// The sum of `n` standard normal numbers that are each above `low`.
fn sum_above(low: f64, n: f64, stream: &mut Stream) -> f64 {
    /// The sum of more numbers is drawn as a normal one of the same mean and variance.
    const MANY: f64 = 65_536.0;
    if n <= MANY {
        return (0..n as u32).map(|_| normal_above(low, stream)).sum();
    }
    let density = libm::exp(-0.5 * low * low) / std::f64::consts::TAU.sqrt();
    let mean = density / normal_cdf(-low).max(f64::MIN_POSITIVE);
    let variance = (1.0 - mean * (mean - low)).max(0.0);
    n * mean + (n * variance).sqrt() * normal(stream)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bayes::testing::enumerate::Mean;

    /// `E (1 - p)^-k t^k`, at several `t`, is the sum of the series, `(p / (1 - t))^a`.
    #[test]
    fn numbers_of_the_other_class_are_those_of_the_series() {
        let mut stream = Stream::new(4, 0);
        for (a, p) in [(0.3, 0.9), (0.7, 0.2), (0.99, 0.01), (0.01, 1e-6)] {
            for share in [0.0, 0.5, 0.9f64] {
                let t = share * (1.0 - p);
                let mut mean = Mean::new();
                for _ in 0..200_000 {
                    mean.add(share.powf(other_class(a, p, &mut stream)));
                }
                mean.check((p / (1.0 - t)).powf(a), 5.0, &format!("{a} {p} {share}"));
            }
        }
    }

    /// Means and variances of a single number, by those of many sums of few and of many sums of many.
    #[test]
    fn sums_of_many_have_the_moments_of_sums_of_few() {
        let mut stream = Stream::new(5, 0);
        for low in [-3.0, -0.4, 0.0, 1.3] {
            let [few, many] = [50.0, 70_000.0].map(|n| {
                let mut of_sum = Mean::new();
                (0..20_000).for_each(|_| of_sum.add(sum_above(low, n, &mut stream)));
                let mean = of_sum.sum / of_sum.n;
                (mean / n, (of_sum.squares / of_sum.n - mean * mean) / n)
            });
            assert!((few.0 - many.0).abs() < 5.0 / 1e6f64.sqrt(), "{low}: {few:?} {many:?}");
            assert!((few.1 / many.1 - 1.0).abs() < 0.07, "{low}: {few:?} {many:?}");
        }
    }
}
