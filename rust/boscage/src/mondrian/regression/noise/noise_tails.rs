//! Heavy tails, and tails of which one is longer: some rows lie farther from their prediction than the local noise allows,
//! and mostly on one side.
//!
//! The factor of a node is an average over its rows. Where the noise of rows in one node differs, its tails are heavier
//! than those of a Gaussian, and a Gaussian that is wide enough for the tails is too wide in the middle. Therefore every row
//! comes from one of two Gaussians, of which the wider is rarer (a contaminated normal distribution, Tukey 1960). In units of
//! the predicted standard deviation they have the offsets `b_k`, the variances `f_k` and the probabilities `p_k`, and together
//! the predicted mean and variance: `sum p_k b_k = 0` and `sum p_k (f_k + b_k^2) = 1`. Where delays or costs are mostly small
//! and sometimes great, the offset of the wider one is positive.
//!
//! Expectation and maximisation (Dempster, Laird and Rubin 1977) finds what maximises the likelihood of left-out rows. Under
//! the constraint on the mean, given the probabilities and the last variances, the likeliest offsets are
//! `b_k = z_k - l f_k`, with the averages `z_k` of the distances and `l = sum p_k z_k / sum p_k f_k`. Some rows at
//! distance 0 are added to the averages, so that few rows do not make tails differ.

use crate::mondrian::regression::hierarchy::tree_predictive::Component;
use crate::mondrian::regression::left_out_fit::TailFit;

const STEPS: usize = 15;
/// The share of the wide one at the start.
const RARE: f64 = 0.1;
/// The greatest share of the wide one, for it is the exception.
const MOST: f64 = 0.5;
/// Its least share: the rarer the wide one, the farther off it lies for the mean to stay 0.
const FEWEST: f64 = 0.01;
/// The narrow and the wide factor at the start, relative to the common factor.
const START: [f64; 2] = [0.6, 5.0];
/// The least factor relative to the common one: errors of zero would make it vanish.
const LEAST: f64 = 1e-3;
/// Rows at distance 0 that are added to the average of each Gaussian, so that few rows do not make tails differ.
const ROWS_WITHOUT: f64 = 10.0;

/// Two Gaussians for each component, which together have its mean and variance.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct NoiseTails {
    /// Of their variances.
    pub(crate) factors: [f64; 2],
    /// Of their means from the component's, in its standard deviations.
    pub(crate) offsets: [f64; 2],
    /// Their probabilities.
    pub(crate) shares: [f64; 2],
}

impl NoiseTails {
    /// The Gaussians under which rows are most likely, `rows` having for each row, by tree, the square of its
    /// distance over the variance, with the sign of the distance, and the variance's logarithm; the factor on all variances
    /// besides, which is about `scale` if there is but one, and `most` at most; and the mean log density but for a constant. The
    /// rows' weights have the mean 1.
    pub(crate) fn fit(
        rows: &[Vec<(f64, f64)>],
        weights: &[f64],
        (scale, most): (f64, f64),
    ) -> (Self, f64, f64) {
        let factors = START.map(|factor| scale * factor);
        let mut tails = Self { factors, offsets: [0.0; 2], shares: [1.0 - RARE, RARE] };
        for _ in 0..STEPS {
            tails = tails.step(rows, weights, LEAST * scale);
        }
        let tails = tails.within(most);
        let densities = rows.iter().zip(weights).map(|(row, weight)| weight * tails.log_density(row));
        let score = densities.sum::<f64>() / rows.len() as f64;
        let Self { factors, offsets, shares } = tails;
        let variance = tails.variance();
        let unit = variance.sqrt();
        let standard = TailFit {
            share: shares[1],
            offset: offsets[1] / unit,
            variance: factors[1] / variance,
            core_variance: factors[0] / variance,
        };
        (Self::of(standard), variance, score)
    }

    pub(crate) fn of(tails: TailFit) -> Self {
        Self {
            factors: [tails.core_variance, tails.variance],
            offsets: [tails.core_offset(), tails.offset],
            shares: [1.0 - tails.share, tails.share],
        }
    }

    pub(crate) fn numbers(&self) -> TailFit {
        let Self { factors: [core_variance, variance], offsets: [_, offset], shares: [_, share] } = *self;
        TailFit { share, offset, variance, core_variance }
    }

    /// The variance of both together.
    fn variance(&self) -> f64 {
        let Self { factors, offsets, shares } = self;
        (0..2).map(|k| shares[k] * (factors[k] + offsets[k] * offsets[k])).sum()
    }

    /// With a variance of `most` at most: what the wider one adds is less, and most rows lie as close as before.
    fn within(self, most: f64) -> Self {
        let variance = self.variance();
        if variance <= most {
            return self;
        }
        let narrow = self.factors[0].min(self.factors[1]);
        let kept = ((most - narrow) / (variance - narrow)).max(0.0);
        Self {
            factors: self.factors.map(|factor| narrow.min(most) + kept * (factor - narrow)),
            offsets: self.offsets.map(|offset| kept.sqrt() * offset),
            ..self
        }
    }

    fn step(&self, rows: &[Vec<(f64, f64)>], weights: &[f64], least: f64) -> Self {
        let (mut counts, mut sums, mut squares) = ([0.0; 2], [0.0; 2], [0.0; 2]);
        let mut terms = Vec::new();
        for (row, weight) in rows.iter().zip(weights) {
            self.terms(row, &mut terms);
            let all: f64 = terms.iter().map(|[narrow, wide]| narrow + wide).sum();
            for (&(square, _), terms) in row.iter().zip(&terms) {
                for k in 0..2 {
                    let share = weight * terms[k] / all;
                    counts[k] += share;
                    sums[k] += share * distance(square);
                    squares[k] += share * square.abs();
                }
            }
        }
        let wide = (counts[1] / rows.len() as f64).clamp(FEWEST, MOST);
        let shares = [1.0 - wide, wide];
        let offsets = self.offsets(&shares, [0, 1].map(|k| sums[k] / (counts[k] + ROWS_WITHOUT)));
        let factors = std::array::from_fn(|k| {
            let factor = (squares[k] - 2.0 * offsets[k] * sums[k]) / counts[k] + offsets[k] * offsets[k];
            if factor.is_finite() { factor.max(least) } else { self.factors[k] }
        });
        Self { factors, offsets, shares }
    }

    /// The likeliest offsets of mean zero, given the average distances.
    fn offsets(&self, shares: &[f64; 2], averages: [f64; 2]) -> [f64; 2] {
        let mean = |of: [f64; 2]| shares[0] * of[0] + shares[1] * of[1];
        let pull = mean(averages) / mean(self.factors);
        let offsets = std::array::from_fn(|k| averages[k] - pull * self.factors[k]);
        // Distances of so many orders of magnitude that their sums are no numbers.
        if offsets.iter().all(|offset: &f64| offset.is_finite()) { offsets } else { [0.0; 2] }
    }

    /// Writes the densities under both Gaussians by tree, in units of the greatest; returns its logarithm.
    fn terms(&self, row: &[(f64, f64)], terms: &mut Vec<[f64; 2]>) -> f64 {
        let constants: [f64; 2] = std::array::from_fn(|k| self.shares[k].ln() - 0.5 * self.factors[k].ln());
        terms.clear();
        terms.extend(row.iter().map(|&(square, log_variance)| -> [f64; 2] {
            let distance = distance(square);
            std::array::from_fn(|k| {
                let apart = distance - self.offsets[k];
                constants[k] - 0.5 * (apart * apart / self.factors[k] + log_variance)
            })
        }));
        let most = terms.iter().flatten().copied().fold(f64::NEG_INFINITY, f64::max);
        terms.iter_mut().flatten().for_each(|log| *log = (*log - most).exp());
        most
    }

    fn log_density(&self, row: &[(f64, f64)]) -> f64 {
        let mut terms = Vec::new();
        let most = self.terms(row, &mut terms);
        most + (terms.iter().flatten().sum::<f64>() / row.len() as f64).ln()
    }

    /// A component as two.
    pub(crate) fn part(&self, Component { weight, mean, variance }: Component) -> [Component; 2] {
        // What is left of a variance without a row may be less than nothing, by rounding.
        let std = variance.max(0.0).sqrt();
        std::array::from_fn(|k| Component {
            weight: self.shares[k] * weight,
            mean: mean + self.offsets[k] * std,
            variance: self.factors[k] * variance,
        })
    }
}

/// The distance, given its square with its sign.
fn distance(square: f64) -> f64 {
    square.abs().sqrt().copysign(square)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::keyed::Stream;

    /// Of rows of the same weight.
    fn fit(rows: &[Vec<(f64, f64)>], scale: f64) -> (NoiseTails, f64, f64) {
        NoiseTails::fit(rows, &vec![1.0; rows.len()], (scale, f64::INFINITY))
    }

    /// Rows of a mixture of two Gaussians as trees that differ in their variances predict them.
    fn rows(factors: [f64; 2], offsets: [f64; 2], rare: f64) -> Vec<Vec<(f64, f64)>> {
        let mut stream = Stream::new(3, 0);
        (0..3000)
            .map(|_| {
                let (radius, angle) =
                    (-2.0 * (1.0 - stream.unit()).ln(), std::f64::consts::TAU * stream.unit());
                let k = usize::from(stream.unit() < rare);
                let distance = offsets[k] + (factors[k] * radius).sqrt() * angle.cos();
                let square = distance * distance.abs();
                [0.9, 1.0, 1.1].map(|variance: f64| (square / variance, variance.ln())).to_vec()
            })
            .collect()
    }

    fn score(tails: &NoiseTails, rows: &[Vec<(f64, f64)>]) -> f64 {
        rows.iter().map(|row| tails.log_density(row)).sum::<f64>() / rows.len() as f64
    }

    /// Sum of probabilities, mean and variance of the parts of a standard normal component.
    fn moments(tails: &NoiseTails) -> [f64; 3] {
        let parts = tails.part(Component { weight: 1.0, mean: 0.0, variance: 1.0 });
        let sum = |of: fn(&Component) -> f64| parts.iter().map(|part| part.weight * of(part)).sum::<f64>();
        [sum(|_| 1.0), sum(|part| part.mean), sum(|part| part.variance + part.mean * part.mean)]
    }

    #[test]
    fn the_law_of_the_rows_is_found() {
        let (tails, scale, _) = fit(&rows([0.5, 6.0], [0.0; 2], 0.15), 1.4);
        let factors = tails.factors.map(|factor| scale * factor);
        assert!((factors[0] / 0.5 - 1.0).abs() < 0.1, "{factors:?}");
        assert!((factors[1] / 6.0 - 1.0).abs() < 0.15, "{factors:?}");
        assert!((tails.shares[1] - 0.15).abs() < 0.03, "{:?}", tails.shares);
        assert!(tails.offsets.iter().all(|offset| offset.abs() < 0.15), "{:?}", tails.offsets);
    }

    /// The rare rows lie to one side: to the right, and where targets change their sign, to the left.
    #[test]
    fn a_longer_tail_is_found_on_its_side() {
        let long = [-0.3, 1.7];
        let right = rows([0.4, 4.0], long, 0.15);
        let left: Vec<Vec<_>> =
            right.iter().map(|row| row.iter().map(|&(square, log)| (-square, log)).collect()).collect();
        let (tails, scale, score_of_right) = fit(&right, 1.4);
        for (offset, expected) in tails.offsets.into_iter().zip(long) {
            assert!((scale.sqrt() * offset - expected).abs() < 0.25, "{tails:?}");
        }
        let (mirrored, _, score_of_left) = fit(&left, 1.4);
        assert_eq!((mirrored.factors, mirrored.shares), (tails.factors, tails.shares));
        assert_eq!(mirrored.offsets, tails.offsets.map(|offset| -offset));
        assert_eq!(score_of_left, score_of_right);
        // Worth some hundredths of a nat a row.
        let even = NoiseTails { factors: [0.6, 6.0], offsets: [0.0; 2], shares: [0.85, 0.15] };
        assert!(score(&even, &right) < score_of_right - 0.05);
    }

    /// The parts of a component have its weight, mean and variance.
    #[test]
    fn parts_keep_weight_mean_and_variance() {
        for (factors, offsets, rare) in
            [([0.5, 6.0], [0.0; 2], 0.15), ([0.4, 4.0], [-0.3, 1.7], 0.15), ([1.0, 1.0], [0.5; 2], 0.5)]
        {
            let (tails, ..) = fit(&rows(factors, offsets, rare), 1.0);
            for (found, expected) in moments(&tails).into_iter().zip([1.0, 0.0, 1.0]) {
                assert!((found - expected).abs() < 1e-12, "{tails:?}");
            }
        }
    }

    /// No other law of the same mean is likelier, and each step leads to a likelier one.
    #[test]
    fn the_law_is_the_likeliest() {
        let rows = rows([0.5, 6.0], [0.0; 2], 0.15);
        let (_, _, found) = fit(&rows, 1.4);
        for narrow in 2..12 {
            for wide in 2..20 {
                for rare in 1..10 {
                    let rare = 0.05 * f64::from(rare);
                    let factors = [0.1 * f64::from(narrow), f64::from(wide)];
                    for offset in [-0.8, 0.0, 0.8] {
                        let offsets = [-rare * offset, (1.0 - rare) * offset];
                        let other = NoiseTails { factors, offsets, shares: [1.0 - rare, rare] };
                        let score = score(&other, &rows);
                        assert!(score < found + 1e-4, "{other:?}: {score} and {found}");
                    }
                }
            }
        }
        let mut tails = NoiseTails { factors: [3.0, 4.0], offsets: [0.0; 2], shares: [0.7, 0.3] };
        for _ in 0..30 {
            let next = tails.step(&rows, &vec![1.0; rows.len()], 1e-9);
            assert!(score(&next, &rows) >= score(&tails, &rows) - 1e-12);
            tails = next;
        }
    }

    /// The density is that of a mixture of the parts into which components come.
    #[test]
    fn the_density_is_that_of_the_parts() {
        let tails = NoiseTails { factors: [0.4, 3.4], offsets: [-0.1, 0.9], shares: [0.9, 0.1] };
        let (miss, variances): (f64, _) = (1.3, [0.5, 2.0]);
        let density: f64 = variances
            .iter()
            .flat_map(|&variance| tails.part(Component { weight: 0.5, mean: 0.0, variance }))
            .map(|part| {
                let apart = miss - part.mean;
                part.weight * (-0.5 * apart * apart / part.variance).exp() / part.variance.sqrt()
            })
            .sum();
        let row = variances.map(|variance| (miss * miss / variance, variance.ln()));
        assert!((tails.log_density(&row) - density.ln()).abs() < 1e-12);
    }

    /// Where all together may have no more variance than some rows far off ask for, most rows are predicted as before, and the
    /// density is that of the tails that are returned.
    #[test]
    fn a_bound_on_the_variance_is_at_the_expense_of_the_tail() {
        let rows = rows([0.5, 6.0], [-0.1, 1.2], 0.08);
        let (free, variance, _) = fit(&rows, 1.4);
        let weights = vec![1.0; rows.len()];
        for most in [0.9 * variance, 0.6 * variance, 1.01 * variance * free.factors[0]] {
            let (bounded, found, score_found) = NoiseTails::fit(&rows, &weights, (1.4, most));
            assert!((found / most - 1.0).abs() < 1e-12, "{found} {most}");
            let core = |tails: &NoiseTails, variance: f64| variance * tails.factors[0];
            assert!((core(&bounded, found) / core(&free, variance) - 1.0).abs() < 1e-12, "{bounded:?}");
            for (found, expected) in moments(&bounded).into_iter().zip([1.0, 0.0, 1.0]) {
                assert!((found - expected).abs() < 1e-12, "{bounded:?}");
            }
            let scaled = NoiseTails {
                factors: bounded.factors.map(|factor| most * factor),
                offsets: bounded.offsets.map(|offset| most.sqrt() * offset),
                ..bounded
            };
            assert!((score(&scaled, &rows) - score_found).abs() < 1e-12);
        }
        // With even less there is no tail.
        let least = 0.5 * variance * free.factors[0];
        let (even, found, _) = NoiseTails::fit(&rows, &weights, (1.4, least));
        assert!((found / least - 1.0).abs() < 1e-12);
        assert!(even.factors.iter().all(|factor| (factor - 1.0).abs() < 1e-12) && even.offsets == [0.0; 2]);
    }

    /// Targets that trees predict to the last bit do not take all width away.
    #[test]
    fn atoms_leave_a_width() {
        let rows = vec![vec![(0.0, 0.0); 4]; 20];
        let (tails, scale, score) = fit(&rows, 0.01);
        assert!(scale > 0.0 && score.is_finite(), "{tails:?}");
        assert!(tails.factors.iter().chain(&tails.shares).all(|part| part.is_finite() && *part > 0.0));
        assert_eq!(tails.offsets, [0.0; 2]);
    }
}
