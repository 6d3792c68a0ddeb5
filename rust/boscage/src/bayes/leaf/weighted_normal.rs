//! Normal leaves of rows with weights.

use crate::bayes::leaf::model::{ConjugateLeaf, SubtractedCut};
use crate::bayes::leaf::normal::{NormalPrior, NormalTotals, log_normaliser};
use crate::error::Result;
use crate::math::fixed_point::FixedPoint;
use crate::validate::check_repeats;

/// Leaves as those of [`Normal`](crate::bayes::leaf::normal::Normal), where `n` is the sum of the rows' weights, and sums
/// over rows are weighted.
#[derive(Debug)]
pub(crate) struct WeightedNormal {
    prior: NormalPrior,
    rows: Vec<WeightedSums>,
    units: Units,
}

/// The units of weights, of weighted targets and of their weighted squares.
#[derive(Debug)]
struct Units {
    weight: FixedPoint,
    sum: FixedPoint,
    squares: FixedPoint,
}

/// Number of rows, and sums of weights, and of targets minus the prior mean times the weights.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WeightedSums {
    n_rows: u32,
    weight: i128,
    sum: i128,
    squares: i128,
}

impl WeightedSums {
    const NONE: Self = Self { n_rows: 0, weight: 0, sum: 0, squares: 0 };

    fn add(&mut self, other: &Self) {
        self.n_rows += other.n_rows;
        self.weight += other.weight;
        self.sum += other.sum;
        self.squares += other.squares;
    }

    fn minus(&self, part: &Self) -> Self {
        Self {
            n_rows: self.n_rows - part.n_rows,
            weight: self.weight - part.weight,
            sum: self.sum - part.sum,
            squares: self.squares - part.squares,
        }
    }
}

impl WeightedNormal {
    /// The model of the given targets and weights.
    ///
    /// # Errors
    /// As [`NormalPrior::check`]; as [`check_repeats`].
    pub(crate) fn new((targets, weights): (&[f64], &[f64]), prior: NormalPrior) -> Result<Self> {
        prior.check()?;
        check_repeats(weights, targets.len())?;
        let centred = || targets.iter().map(|y| y - prior.prior_mean).zip(weights);
        let units = Units {
            weight: FixedPoint::of(weights.iter().copied()),
            sum: FixedPoint::of(centred().map(|(y, weight)| weight * y)),
            squares: FixedPoint::of(centred().map(|(y, weight)| weight * y * y)),
        };
        let of_row = |(y, &weight): (f64, &f64)| WeightedSums {
            n_rows: 1,
            // Each row counts, however light it is.
            weight: units.weight.fixed(weight).max(1),
            sum: units.sum.fixed(weight * y),
            squares: units.squares.fixed(weight * y * y),
        };
        Ok(Self { prior, rows: centred().map(of_row).collect(), units })
    }

    /// The statistics as a fitted tree holds them.
    pub(crate) fn totals(&self, stats: &WeightedSums) -> NormalTotals {
        NormalTotals {
            n_rows: stats.n_rows,
            weight: self.units.weight.float(stats.weight),
            sum: self.units.sum.float(stats.sum),
            squares: self.units.squares.float(stats.squares),
        }
    }
}

impl ConjugateLeaf for WeightedNormal {
    type Stats = WeightedSums;
    type MovingCut<'a> = SubtractedCut<'a, Self>;

    fn empty(&self) -> WeightedSums {
        WeightedSums::NONE
    }

    fn add(&self, stats: &mut WeightedSums, row: u32) {
        stats.add(&self.rows[row as usize]);
    }

    fn stands_for_several(&self, stats: &WeightedSums) -> bool {
        self.totals(stats).weight > 1.0
    }

    fn rest(&self, all: &WeightedSums, part: &WeightedSums) -> WeightedSums {
        all.minus(part)
    }

    fn log_likelihood(&self, stats: &WeightedSums) -> f64 {
        let totals = self.totals(stats);
        let shape = self.prior.shape + 0.5 * totals.weight;
        log_normaliser(&self.prior, totals.weight) - shape * libm::log(totals.scale(&self.prior))
    }

    fn moving_cut<'a>(&'a self, all: &WeightedSums) -> SubtractedCut<'a, Self> {
        SubtractedCut::new(self, all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bayes::leaf::model::MovingCut;
    use crate::bayes::leaf::normal::Normal;

    const TARGETS: [f64; 6] = [3.1, -0.4, 12.0, 3.3, 2.9, 0.0];
    const PRIOR: NormalPrior = NormalPrior { prior_mean: 1.5, kappa: 0.3, shape: 1.2, scale: 0.7 };

    #[test]
    fn whole_weights_are_repeated_rows() {
        let weights = [1, 3, 2, 1, 4, 2];
        let repeated: Vec<f64> =
            TARGETS.iter().zip(weights).flat_map(|(&y, n)| std::iter::repeat_n(y, n)).collect();
        let once = WeightedNormal::new((&TARGETS, &weights.map(|n| n as f64)), PRIOR).unwrap();
        let often = Normal::new(&repeated, PRIOR).unwrap();
        for (n, n_repeated) in [(3, 6), (6, 13)] {
            let (stats, sums) = (once.of_rows(0..n), often.of_rows(0..n_repeated));
            assert!((once.log_likelihood(&stats) - often.log_likelihood(&sums)).abs() < 1e-12);
            let (found, expected) =
                (once.totals(&stats).predictive(&PRIOR), sums.totals().predictive(&PRIOR));
            assert!((found.0 - expected.0).abs() + (found.1 - expected.1).abs() < 1e-12);
            assert!((found.2 - expected.2).abs() < 1e-12);
        }
    }

    /// The integral of `prod_n p(y_n)^w_n` over mean and precision.
    #[test]
    fn likelihood_is_the_integral_of_powers() {
        let (targets, weights) = ([0.3, 1.9, 2.2], [0.4, 2.5, 1.3]);
        let prior = NormalPrior { prior_mean: 1.0, kappa: 0.8, shape: 2.0, scale: 0.9 };
        let model = WeightedNormal::new((&targets, &weights), prior).unwrap();
        let mut integral = 0.0;
        // Midpoints: the logarithm of the precision from -12 to 8, the mean from -29 to 31.
        let (step, width) = (0.02, 0.01);
        for i in 0..1000 {
            let precision = libm::exp(-12.0 + step * (f64::from(i) + 0.5));
            let of_precision = 2.0 * libm::log(0.9 * precision) - libm::lgamma(2.0) - 0.9 * precision;
            for j in 0..6000 {
                let mean = -29.0 + width * (f64::from(j) + 0.5);
                let normal = |y: f64, precision: f64| {
                    0.5 * libm::log(precision / std::f64::consts::TAU) - 0.5 * precision * (y - mean).powi(2)
                };
                let rows = targets.iter().zip(weights).map(|(&y, weight)| weight * normal(y, precision));
                let log = of_precision + normal(1.0, 0.8 * precision) + rows.sum::<f64>();
                integral += step * width * libm::exp(log);
            }
        }
        let found = model.log_likelihood(&model.of_rows(0..3));
        assert!((found - integral.ln()).abs() < 1e-4, "{found} {}", integral.ln());
    }

    /// With weights of very different size, too.
    #[test]
    fn a_sweep_agrees_with_both_sides_added() {
        let weights = [1e-9, 1e9, 0.3, 2.0, 1e-3, 1e12];
        let model = WeightedNormal::new((&TARGETS, &weights), PRIOR).unwrap();
        let all = model.of_rows(0..6);
        let mut sweep = model.moving_cut(&all);
        for n in 1..6 {
            sweep.shift(n - 1);
            assert_eq!(model.rest(&all, &model.of_rows((0..n).rev())), model.of_rows(n..6));
            let expected =
                model.log_likelihood(&model.of_rows(0..n)) + model.log_likelihood(&model.of_rows(n..6));
            assert_eq!(sweep.log_likelihood(), expected);
        }
    }
}
