//! Effective sample size and resampling (Algorithm 3.1, lines 13 to 15).

use crate::random::distributions::{inverse, multinomial};
use crate::random::keyed::Stream;

/// The effective sample size of normalised weights, `1 / sum w^2`.
pub(crate) fn effective_size(weights: &[f64]) -> f64 {
    1.0 / weights.iter().map(|w| w * w).sum::<f64>()
}

/// How ancestors are drawn by weight. The expected number of copies of a particle of weight `w` is always
/// `C w`, for `C` particles.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Resampling {
    /// Independent draws.
    Multinomial,
    /// Points at equal distances, shifted by one uniform draw.
    #[default]
    Systematic,
    /// One uniform draw in each of `C` equal strata.
    Stratified,
    /// `floor(C w)` copies of each particle, and independent draws for the rest.
    Residual,
}

impl Resampling {
    /// Draws as many ancestors as there are weights, in ascending order.
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

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Resampling; 4] =
        [Resampling::Multinomial, Resampling::Systematic, Resampling::Stratified, Resampling::Residual];

    /// The mean number of copies under each scheme is `C w` within five standard errors. `C w` bounds the
    /// variance of all schemes.
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
    fn equal_weights_are_worth_their_number() {
        assert!((effective_size(&[0.25; 4]) - 4.0).abs() < 1e-12);
    }
}
