//! Dirichlet-multinomial leaves of rows with weights.

use crate::bayes::leaf::dirichlet::{ClassOfRow, ClassTotals, check_alpha};
use crate::bayes::leaf::model::{ConjugateLeaf, MovingCut};
use crate::error::Result;
use crate::math::fixed_point::FixedPoint;
use crate::validate::check_repeats;

/// Leaves as those of [`Dirichlet`](crate::bayes::leaf::dirichlet::Dirichlet), where `c_k` is the sum of the weights of
/// the rows of class `k`, and `n` that of all rows.
#[derive(Debug)]
pub(crate) struct WeightedDirichlet<'a> {
    classes: ClassOfRow<'a>,
    weights: Vec<i128>,
    unit: FixedPoint,
    n_classes: usize,
    /// Of the classes, from `alpha / K`.
    rising_class: LogRising,
    /// Of all rows, from `alpha`.
    rising_all: LogRising,
}

/// `log Gamma(start + by) - log Gamma(start)`.
#[derive(Debug)]
struct LogRising {
    start: f64,
    log_gamma: f64,
}

impl LogRising {
    fn from(start: f64) -> Self {
        Self { start, log_gamma: libm::lgamma(start) }
    }

    fn by(&self, by: f64) -> f64 {
        if by == 0.0 { 0.0 } else { libm::lgamma(self.start + by) - self.log_gamma }
    }
}

/// Number of rows, and sum of weights of each class.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ClassWeights {
    n_rows: u32,
    by_class: Box<[i128]>,
}

impl<'a> WeightedDirichlet<'a> {
    /// The model of rows with these classes, each below `n_classes`, and weights.
    ///
    /// # Errors
    /// An `alpha` outside of [`PSEUDO_COUNTS`](crate::validate::PSEUDO_COUNTS); as [`check_repeats`].
    pub(crate) fn new((classes, weights): (&'a [u32], &[f64]), n_classes: usize, alpha: f64) -> Result<Self> {
        check_alpha(alpha)?;
        check_repeats(weights, classes.len())?;
        let unit = FixedPoint::of(weights.iter().copied());
        // Each row counts, however light it is.
        let weights = weights.iter().map(|&weight| unit.fixed(weight).max(1)).collect();
        let rising_class = LogRising::from(alpha / n_classes as f64);
        let rising_all = LogRising::from(alpha);
        Ok(Self { classes: ClassOfRow::new(classes), weights, unit, n_classes, rising_class, rising_all })
    }

    /// The statistics as a fitted tree holds them.
    pub(crate) fn totals(&self, stats: &ClassWeights) -> ClassTotals {
        let by_class = stats.by_class.iter().map(|&weight| self.unit.float(weight)).collect();
        ClassTotals { n_rows: stats.n_rows, by_class }
    }

    /// `log Gamma(c_k + alpha / K) - log Gamma(alpha / K)`.
    fn of_class(&self, weight: i128) -> f64 {
        self.rising_class.by(self.unit.float(weight))
    }

    /// `log Gamma(n + alpha) - log Gamma(alpha)`.
    fn of_all(&self, weight: i128) -> f64 {
        self.rising_all.by(self.unit.float(weight))
    }
}

impl ConjugateLeaf for WeightedDirichlet<'_> {
    type Stats = ClassWeights;
    type MovingCut<'a>
        = MovingWeightCut<'a>
    where
        Self: 'a;

    fn empty(&self) -> ClassWeights {
        ClassWeights { n_rows: 0, by_class: vec![0; self.n_classes].into() }
    }

    fn add(&self, stats: &mut ClassWeights, row: u32) {
        stats.n_rows += 1;
        stats.by_class[self.classes.of(row)] += self.weights[row as usize];
    }

    fn stands_for_several(&self, stats: &ClassWeights) -> bool {
        self.totals(stats).weight() > 1.0
    }

    fn rest(&self, all: &ClassWeights, part: &ClassWeights) -> ClassWeights {
        ClassWeights {
            n_rows: all.n_rows - part.n_rows,
            by_class: all.by_class.iter().zip(&part.by_class).map(|(all, part)| all - part).collect(),
        }
    }

    fn log_likelihood(&self, stats: &ClassWeights) -> f64 {
        let classes: f64 = stats.by_class.iter().map(|&weight| self.of_class(weight)).sum();
        classes - self.of_all(stats.by_class.iter().sum())
    }

    fn moving_cut<'a>(&'a self, all: &ClassWeights) -> MovingWeightCut<'a> {
        MovingWeightCut::of_sides(self, all.by_class.iter().map(|&weight| [0, weight]))
    }
}

/// Weights on both sides of a cut.
#[derive(Debug)]
pub(crate) struct MovingWeightCut<'a> {
    model: &'a WeightedDirichlet<'a>,
    classes: Box<[Sides]>,
    left: i128,
    right: i128,
}

/// The weights of a class on both sides, and what it adds to the log likelihoods.
#[derive(Debug)]
struct Sides {
    left: i128,
    right: i128,
    log: f64,
}

impl<'a> MovingWeightCut<'a> {
    fn of_sides(model: &'a WeightedDirichlet<'a>, by_class: impl Iterator<Item = [i128; 2]>) -> Self {
        let side = |[left, right]: [i128; 2]| Sides {
            left,
            right,
            log: model.of_class(left) + model.of_class(right),
        };
        let classes: Box<[Sides]> = by_class.map(side).collect();
        let (left, right) =
            (classes.iter().map(|side| side.left).sum(), classes.iter().map(|side| side.right).sum());
        Self { model, classes, left, right }
    }
}

impl MovingCut for MovingWeightCut<'_> {
    fn shift_all_but(&mut self, rows: impl Iterator<Item = u32>) {
        let rest = self.model.of_rows(rows);
        let side = |(side, &right): (&Sides, &i128)| [side.left + side.right - right, right];
        *self = Self::of_sides(self.model, self.classes.iter().zip(&rest.by_class).map(side));
    }

    fn shift(&mut self, row: u32) {
        let weight = self.model.weights[row as usize];
        let sides = &mut self.classes[self.model.classes.of(row)];
        sides.left += weight;
        sides.right -= weight;
        sides.log = self.model.of_class(sides.left) + self.model.of_class(sides.right);
        self.left += weight;
        self.right -= weight;
    }

    fn log_likelihood(&self) -> f64 {
        let classes: f64 = self.classes.iter().map(|sides| sides.log).sum();
        classes - self.model.of_all(self.left) - self.model.of_all(self.right)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bayes::leaf::dirichlet::Dirichlet;

    const CLASSES: [u32; 8] = [0, 2, 2, 1, 2, 0, 2, 1];
    const WEIGHTS: [f64; 8] = [0.3, 2.5, 1.0, 0.01, 7.0, 1.2, 0.5, 3.0];

    #[test]
    fn whole_weights_are_repeated_rows() {
        let weights = [1, 3, 2, 1, 4, 2, 1, 5];
        let repeated: Vec<u32> =
            CLASSES.iter().zip(weights).flat_map(|(&class, n)| std::iter::repeat_n(class, n)).collect();
        let once = WeightedDirichlet::new((&CLASSES, &weights.map(|n| n as f64)), 3, 0.7).unwrap();
        let often = Dirichlet::new(&repeated, 3, 0.7).unwrap();
        for (n, n_repeated) in [(3, 6), (8, 19)] {
            let (stats, counts) = (once.of_rows(0..n), often.of_rows(0..n_repeated));
            assert!((once.log_likelihood(&stats) - often.log_likelihood(&counts)).abs() < 1e-12);
            assert_eq!(once.totals(&stats).by_class, counts.totals().by_class);
            assert_eq!(once.totals(&stats).n_rows, n);
        }
    }

    /// The integral of `prod_n p(y_n)^w_n` over the probability of the first of two classes.
    #[test]
    fn likelihood_is_the_integral_of_powers() {
        let (classes, weights) = ([0, 1, 1, 0], [0.3, 2.5, 1.1, 1.6]);
        let model = WeightedDirichlet::new((&classes, &weights), 2, 5.0).unwrap();
        let n = 100_000;
        let density = libm::exp(libm::lgamma(5.0) - 2.0 * libm::lgamma(2.5));
        let at = |i: usize| {
            let p = (i as f64 + 0.5) / n as f64;
            p.powf(1.9 + 1.5) * (1.0 - p).powf(3.6 + 1.5) * density / n as f64
        };
        let integral: f64 = (0..n).map(at).sum();
        assert!((model.log_likelihood(&model.of_rows(0..4)) - integral.ln()).abs() < 1e-8);
    }

    #[test]
    fn a_sweep_agrees_with_both_sides_added() {
        let model = WeightedDirichlet::new((&CLASSES, &WEIGHTS), 3, 0.6).unwrap();
        let all = model.of_rows(0..8);
        let mut sweep = model.moving_cut(&all);
        for n in [1, 2, 5, 6, 7] {
            if n == 5 {
                sweep.shift_all_but(5..8);
            } else {
                sweep.shift(n - 1);
            }
            let left = model.of_rows((0..n).rev());
            assert_eq!(model.rest(&all, &left), model.of_rows(n..8));
            let expected = model.log_likelihood(&left) + model.log_likelihood(&model.rest(&all, &left));
            assert!((sweep.log_likelihood() - expected).abs() < 1e-12);
        }
    }
}
