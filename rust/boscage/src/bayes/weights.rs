//! Weights in log space: sums, effective sample size, resampling.

use crate::mondrian::Stream;

/// Logarithm of the sum of exponentials; minus infinity for no terms.
pub(crate) fn log_sum_exp(logs: &[f64]) -> f64 {
    let best = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if best == f64::NEG_INFINITY {
        return best;
    }
    best + libm::log(logs.iter().map(|log| libm::exp(log - best)).sum())
}

/// A place, drawn by weights that are given by their logarithms and that of their sum.
pub(crate) fn draw_by_weight(logs: &[f64], log_total: f64, stream: &mut Stream) -> usize {
    let mut rest = stream.unit();
    let drawn = logs.iter().position(|log| {
        rest -= libm::exp(log - log_total);
        rest < 0.0
    });
    drawn.unwrap_or(logs.len() - 1)
}

/// Logarithm of the mean of exponentials.
pub(crate) fn log_mean_exp(logs: &[f64]) -> f64 {
    log_sum_exp(logs) - libm::log(logs.len() as f64)
}

/// Normalised weights; equal ones where no particle has any. What is not a number weighs nothing.
pub(crate) fn normalised(logs: &[f64]) -> Vec<f64> {
    let best = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if best == f64::NEG_INFINITY {
        return vec![1.0 / logs.len() as f64; logs.len()];
    }
    // Relative to the largest, which keeps what a logarithm of a large total would round away.
    let weight = |&log: &f64| if log == best { 1.0 } else { libm::exp(log - best).max(0.0) };
    let weights: Vec<f64> = logs.iter().map(weight).collect();
    let total: f64 = weights.iter().sum();
    weights.into_iter().map(|w| w / total).collect()
}

/// Where the greatest of some numbers is, the first of equals.
pub(crate) fn greatest(numbers: &[f64]) -> usize {
    (1..numbers.len()).fold(0, |best, i| if numbers[i] > numbers[best] { i } else { best })
}

/// The effective sample size of normalised weights, `1 / sum w^2`.
pub(crate) fn effective_size(weights: &[f64]) -> f64 {
    1.0 / weights.iter().map(|w| w * w).sum::<f64>()
}

/// How particles are drawn by their weights; the expected number of copies of one is always `C w`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Resampling {
    /// Independent draws.
    Multinomial,
    /// One uniform draw for all: points at equal distances.
    #[default]
    Systematic,
    /// A uniform draw in each of `C` equal strata.
    Stratified,
    /// `floor(C w)` copies of each, and independent draws for the rest.
    Residual,
}

impl Resampling {
    /// As many ancestors as there are weights, in ascending order.
    pub(crate) fn draw(self, weights: &[f64], stream: &mut Stream) -> Vec<u32> {
        let n = weights.len();
        match self {
            Self::Multinomial => multinomial(weights, n, stream),
            Self::Systematic => {
                let u = stream.unit();
                inverse(weights, (0..n).map(|i| (i as f64 + u) / n as f64))
            }
            Self::Stratified => inverse(weights, (0..n).map(|i| (i as f64 + stream.unit()) / n as f64)),
            Self::Residual => residual(weights, stream),
        }
    }
}

/// Independent draws, in ascending order.
pub(crate) fn multinomial(weights: &[f64], n: usize, stream: &mut Stream) -> Vec<u32> {
    let mut points: Vec<f64> = (0..n).map(|_| stream.unit()).collect();
    points.sort_unstable_by(f64::total_cmp);
    inverse(weights, points.into_iter())
}

fn residual(weights: &[f64], stream: &mut Stream) -> Vec<u32> {
    let n = weights.len();
    let copies = |w: f64| (w * n as f64).floor();
    let mut ancestors: Vec<u32> =
        (0..n).flat_map(|i| std::iter::repeat_n(i as u32, copies(weights[i]) as usize)).collect();
    ancestors.truncate(n);
    let left = n - ancestors.len();
    if left > 0 {
        let rests: Vec<f64> = weights.iter().map(|&w| w * n as f64 - copies(w)).collect();
        let total: f64 = rests.iter().sum();
        let rests: Vec<f64> = rests.iter().map(|rest| rest / total).collect();
        ancestors.extend(multinomial(&rests, left, stream));
        ancestors.sort_unstable();
    }
    ancestors
}

/// Where ascending points in [0, 1) fall among weights that sum to one.
fn inverse(weights: &[f64], points: impl Iterator<Item = f64>) -> Vec<u32> {
    // Rounding may leave the sum of weights below the last point.
    let last = weights.iter().rposition(|&w| w > 0.0).expect("some weight is positive");
    let (mut i, mut sum) = (0, weights[0]);
    points
        .map(|point| {
            while point >= sum && i < last {
                i += 1;
                sum += weights[i];
            }
            i as u32
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Resampling; 4] =
        [Resampling::Multinomial, Resampling::Systematic, Resampling::Stratified, Resampling::Residual];

    /// Each scheme's mean number of copies is `C w` within five standard errors, a variance of `C w` being
    /// at least that of any of them.
    #[test]
    fn expected_copies_are_proportional_to_weights() {
        let weights = [0.05, 0.0, 0.45, 0.2, 0.001, 0.299];
        for (index, scheme) in ALL.into_iter().enumerate() {
            let mut stream = Stream::new(3, index);
            let n_draws = 20_000;
            let mut copies = [0.0; 6];
            for _ in 0..n_draws {
                let ancestors = scheme.draw(&weights, &mut stream);
                assert_eq!(ancestors.len(), weights.len());
                for i in ancestors {
                    copies[i as usize] += 1.0;
                }
            }
            for (found, w) in copies.iter().zip(weights) {
                let expected = 6.0 * w;
                let found = found / f64::from(n_draws);
                let error = 5.0 * (expected / f64::from(n_draws)).sqrt();
                assert!((found - expected).abs() <= error, "{scheme:?}: {found} for {expected}");
            }
        }
    }

    /// Systematic resampling gives `floor(C w)` copies or one more, residual resampling at least `floor(C w)`.
    #[test]
    fn low_variance_schemes_keep_whole_copies() {
        let weights = [0.31, 0.07, 0.62];
        for (index, scheme) in [Resampling::Systematic, Resampling::Residual].into_iter().enumerate() {
            let mut stream = Stream::new(5, index);
            for _ in 0..100 {
                let ancestors = scheme.draw(&weights, &mut stream);
                for (i, w) in weights.iter().enumerate() {
                    let copies = ancestors.iter().filter(|&&a| a as usize == i).count();
                    let whole = (3.0 * w).floor() as usize;
                    assert!(copies >= whole);
                    assert!(copies <= whole + 1 || scheme == Resampling::Residual);
                }
            }
        }
    }

    #[test]
    fn weights_are_numbers_whatever_logarithms_are() {
        assert_eq!(normalised(&[0.0, f64::NAN, f64::NEG_INFINITY, 0.0]), [0.5, 0.0, 0.0, 0.5]);
        assert_eq!(normalised(&[f64::NAN; 2]), [0.5; 2]);
        assert_eq!(normalised(&[f64::INFINITY, 1.0, f64::NAN]), [1.0, 0.0, 0.0]);
    }

    #[test]
    fn sums_do_not_overflow() {
        assert_eq!(log_sum_exp(&[-1e5, -1e5]), -1e5 + 2.0f64.ln());
        assert_eq!(log_sum_exp(&[f64::NEG_INFINITY; 2]), f64::NEG_INFINITY);
        assert!((effective_size(&normalised(&[-1e5; 4])) - 4.0).abs() < 1e-12);
    }
}
