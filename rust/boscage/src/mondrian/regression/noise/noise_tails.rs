//! Heavy tails: some rows lie farther from their prediction than the local noise allows.
//!
//! The factor of a node is an average over its rows. Where the noise of rows in one node differs, its tails are heavier
//! than those of a Gaussian, and a Gaussian that is wide enough for the tails is too wide in the middle. Therefore the
//! variance of every row is the predicted one times one of two factors, of which the larger is rarer (a contaminated
//! normal distribution, Tukey 1960). Expectation and maximisation (Dempster, Laird and Rubin 1977) finds the factors
//! and their shares that maximise the likelihood of left-out rows.

use crate::mondrian::regression::hierarchy::tree_predictive::Component;

const STEPS: usize = 15;
/// The wide factor's share at the start.
const RARE: f64 = 0.1;
/// The greatest share of the wide factor, for it is the exception.
const MOST: f64 = 0.5;
/// The narrow and the wide factor at the start, relative to the common factor.
const START: [f64; 2] = [0.6, 5.0];
/// The least factor relative to the common one: errors of zero would make it vanish.
const LEAST: f64 = 1e-3;

/// Two factors on a component's variance, whose mean is one, and their probabilities.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct NoiseTails {
    pub(crate) factors: [f64; 2],
    pub(crate) shares: [f64; 2],
}

impl NoiseTails {
    /// The factors under which rows are most likely, `rows` having for each row, by tree, the square of its
    /// distance over the variance, and the variance's logarithm; the factor on all variances besides, which
    /// is about `scale` if there is but one; and the mean log density but for a constant. The rows' weights have the mean 1.
    pub(crate) fn fit(rows: &[Vec<(f64, f64)>], weights: &[f64], scale: f64) -> (Self, f64, f64) {
        let mut tails = Self { factors: START.map(|factor| scale * factor), shares: [1.0 - RARE, RARE] };
        for _ in 0..STEPS {
            tails = tails.step(rows, weights, LEAST * scale);
        }
        let densities = rows.iter().zip(weights).map(|(row, weight)| weight * tails.log_density(row));
        let score = densities.sum::<f64>() / rows.len() as f64;
        let Self { factors, shares } = tails;
        let mean = shares[0] * factors[0] + shares[1] * factors[1];
        (Self { factors: factors.map(|factor| factor / mean), shares }, mean, score)
    }

    fn step(&self, rows: &[Vec<(f64, f64)>], weights: &[f64], least: f64) -> Self {
        let (mut counts, mut squares) = ([0.0; 2], [0.0; 2]);
        let mut terms = Vec::new();
        for (row, weight) in rows.iter().zip(weights) {
            self.terms(row, &mut terms);
            let all: f64 = terms.iter().map(|[narrow, wide]| narrow + wide).sum();
            for ((ratio, _), terms) in row.iter().zip(&terms) {
                for k in 0..2 {
                    let share = weight * terms[k] / all;
                    counts[k] += share;
                    squares[k] += share * ratio;
                }
            }
        }
        let wide = (counts[1] / rows.len() as f64).min(MOST);
        let factors = std::array::from_fn(|k| {
            let factor = squares[k] / counts[k];
            if factor.is_finite() { factor.max(least) } else { self.factors[k] }
        });
        Self { factors, shares: [1.0 - wide, wide] }
    }

    /// Writes the densities under both factors by tree, in units of the greatest; returns its logarithm.
    fn terms(&self, row: &[(f64, f64)], terms: &mut Vec<[f64; 2]>) -> f64 {
        let offsets: [f64; 2] = std::array::from_fn(|k| self.shares[k].ln() - 0.5 * self.factors[k].ln());
        terms.clear();
        terms.extend(row.iter().map(|&(ratio, log_variance)| -> [f64; 2] {
            std::array::from_fn(|k| offsets[k] - 0.5 * (ratio / self.factors[k] + log_variance))
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

    /// A component as two, one for each factor.
    pub(crate) fn part(&self, component: Component) -> [Component; 2] {
        std::array::from_fn(|k| Component {
            weight: self.shares[k] * component.weight,
            variance: self.factors[k] * component.variance,
            ..component
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::keyed::Stream;

    /// Of rows of the same weight.
    fn fit(rows: &[Vec<(f64, f64)>], scale: f64) -> (NoiseTails, f64, f64) {
        NoiseTails::fit(rows, &vec![1.0; rows.len()], scale)
    }

    /// Rows of a contaminated normal distribution as trees that differ in their variances predict them.
    fn rows(factors: [f64; 2], rare: f64) -> Vec<Vec<(f64, f64)>> {
        let mut stream = Stream::new(3, 0);
        (0..3000)
            .map(|_| {
                let (radius, angle) =
                    (-2.0 * (1.0 - stream.unit()).ln(), std::f64::consts::TAU * stream.unit());
                let factor = factors[usize::from(stream.unit() < rare)];
                let square = factor * radius * angle.cos().powi(2);
                [0.9, 1.0, 1.1].map(|variance: f64| (square / variance, variance.ln())).to_vec()
            })
            .collect()
    }

    #[test]
    fn the_law_of_the_rows_is_found() {
        let (tails, scale, _) = fit(&rows([0.5, 6.0], 0.15), 1.4);
        let factors = tails.factors.map(|factor| scale * factor);
        assert!((factors[0] / 0.5 - 1.0).abs() < 0.1, "{factors:?}");
        assert!((factors[1] / 6.0 - 1.0).abs() < 0.15, "{factors:?}");
        assert!((tails.shares[1] - 0.15).abs() < 0.03, "{:?}", tails.shares);
        assert!(
            (tails.shares[0] * tails.factors[0] + tails.shares[1] * tails.factors[1] - 1.0).abs() < 1e-12
        );
    }

    /// No other law is likelier, and each step leads to a likelier one.
    #[test]
    fn the_law_is_the_likeliest() {
        let rows = rows([0.5, 6.0], 0.15);
        let score = |tails: &NoiseTails| rows.iter().map(|row| tails.log_density(row)).sum::<f64>() / 3000.0;
        let (_, _, found) = fit(&rows, 1.4);
        for narrow in 2..12 {
            for wide in 2..20 {
                for rare in 1..10 {
                    let rare = 0.05 * f64::from(rare);
                    let factors = [0.1 * f64::from(narrow), f64::from(wide)];
                    let other = score(&NoiseTails { factors, shares: [1.0 - rare, rare] });
                    assert!(other < found + 1e-4, "{factors:?} {rare}: {other} and {found}");
                }
            }
        }
        let mut tails = NoiseTails { factors: [3.0, 4.0], shares: [0.7, 0.3] };
        for _ in 0..30 {
            let next = tails.step(&rows, &vec![1.0; rows.len()], 1e-9);
            assert!(score(&next) >= score(&tails) - 1e-12);
            tails = next;
        }
    }

    /// The density is that of a mixture of the parts into which components come.
    #[test]
    fn the_density_is_that_of_the_parts() {
        let tails = NoiseTails { factors: [0.4, 6.4], shares: [0.9, 0.1] };
        let (miss, variances): (f64, _) = (1.3, [0.5, 2.0]);
        let density: f64 = variances
            .iter()
            .flat_map(|&variance| tails.part(Component { weight: 0.5, mean: 0.0, variance }))
            .map(|part| part.weight * (-0.5 * miss * miss / part.variance).exp() / part.variance.sqrt())
            .sum();
        let row = variances.map(|variance| (miss * miss / variance, variance.ln()));
        assert!((tails.log_density(&row) - density.ln()).abs() < 1e-12);
    }

    /// Targets that trees predict to the last bit do not take all width away.
    #[test]
    fn atoms_leave_a_width() {
        let rows = vec![vec![(0.0, 0.0); 4]; 20];
        let (tails, scale, score) = fit(&rows, 0.01);
        assert!(scale > 0.0 && score.is_finite(), "{tails:?}");
        assert!(tails.factors.iter().chain(&tails.shares).all(|part| part.is_finite() && *part > 0.0));
    }
}
