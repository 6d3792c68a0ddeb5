//! The posterior of a trend's coefficients, and what it adds to predictions.

use crate::math::matrices::small_cholesky::Cholesky;
use crate::mondrian::regression::trend::{Columns, TrendPart, dot};

/// The prior variances that are tried, as powers of four in the joint model's units.
const POWERS: std::ops::RangeInclusive<i32> = -10..=30;
/// With fewer rows than this, the scale of the covariance is that of the hyperparameters.
const MIN_ROWS: usize = 10;

/// What the posterior follows from, in the joint model's units. Targets are given less a line, the pivot, from which
/// numbers are counted so that nothing cancels; the posterior does not depend on it.
pub(crate) struct Products<'a> {
    /// The pivot's coefficients.
    pub(crate) pivot: &'a [f64],
    /// The prior variance of every coefficient, in units of `tau^2`.
    pub(crate) prior: &'a [f64],
    /// `Z' A^-1 Z`, row after row.
    pub(crate) squares: &'a [f64],
    /// `Z' A^-1 r`.
    pub(crate) with_targets: &'a [f64],
    /// `r' A^-1 r`.
    pub(crate) of_targets: f64,
    pub(crate) n_rows: usize,
    /// As how many rows they count.
    pub(crate) weight: f64,
}

/// What is given of a trend: a rule chooses what is not.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Given {
    /// `tau^2`, in the joint model's units.
    pub(crate) variance: Option<f64>,
    /// The factor on all variances of the joint model. Its rule chooses hyperparameters by squared errors, which do not
    /// depend on it.
    pub(crate) scale: Option<f64>,
}

/// The posterior of the coefficients.
#[derive(Debug, Clone)]
pub(crate) struct Coefficients {
    /// The mean, less the pivot.
    pub(crate) beyond_pivot: Vec<f64>,
    /// Of the inverse of the covariance, `C`.
    factor: Cholesky,
    /// `tau^2`.
    pub(crate) variance: f64,
    pub(crate) scale: f64,
}

impl Coefficients {
    /// With the given prior variance, or that under which the targets are most likely.
    pub(crate) fn new(products: &Products<'_>, given: Given) -> Self {
        let n = products.weight;
        // A line that goes through all of a few rows would say that nothing is uncertain.
        let given = Given { scale: given.scale.or((products.n_rows < MIN_ROWS).then_some(1.0)), ..given };
        let mut best: Option<(f64, Self)> = None;
        let powers = POWERS.map(|power| 4f64.powi(power));
        let tried: Vec<f64> = given.variance.map_or_else(|| powers.collect(), |variance| vec![variance]);
        for variance in tried {
            let Some(factor) = products.factor(variance) else { continue };
            let (beyond_pivot, square) = products.fit(&factor, variance);
            let of_prior: f64 = products.prior.iter().map(|prior| (variance * prior).ln()).sum();
            let log_determinant = factor.log_determinant() + of_prior;
            let score = match given.scale {
                Some(scale) => -0.5 * (square / scale + log_determinant),
                None => -0.5 * (n * square.ln() + log_determinant),
            };
            if score.is_finite() && best.as_ref().is_none_or(|(most, _)| score > *most) {
                let scale = given.scale.unwrap_or(square / n);
                best = Some((score, Self { beyond_pivot, factor, variance, scale }));
            }
        }
        best.map_or_else(|| products.certain(given), |(_, best)| best)
    }
}

impl Products<'_> {
    fn width(&self) -> usize {
        self.pivot.len()
    }

    /// Of `C`.
    fn factor(&self, variance: f64) -> Option<Cholesky> {
        let n = self.width();
        let entry = |i: usize, j: usize| 0.5 * (self.squares[i * n + j] + self.squares[j * n + i]);
        Cholesky::new(n, |i, j| entry(i, j) + if i == j { 1.0 / (variance * self.prior[i]) } else { 0.0 })
    }

    /// The posterior mean less the pivot, and the square `r' (A + tau^2 Z Z')^-1 r` of the targets.
    fn fit(&self, factor: &Cholesky, variance: f64) -> (Vec<f64>, f64) {
        let precision = |i: usize| 1.0 / (variance * self.prior[i]);
        let right: Vec<f64> =
            (0..self.width()).map(|i| self.with_targets[i] - self.pivot[i] * precision(i)).collect();
        let beyond = factor.solve(&right);
        let mut square = self.of_targets - 2.0 * dot(&beyond, self.with_targets);
        for (i, beyond_i) in beyond.iter().enumerate() {
            square += beyond_i * dot(&self.squares[i * self.width()..(i + 1) * self.width()], &beyond);
            square += (self.pivot[i] + beyond_i).powi(2) * precision(i);
        }
        // Rounding may leave less than nothing of a perfect line.
        (beyond, square.max(f64::EPSILON * f64::EPSILON * self.of_targets).max(f64::MIN_POSITIVE))
    }

    /// Where numbers overflow: the pivot, as good as certain.
    fn certain(&self, given: Given) -> Coefficients {
        let factor = Cholesky::new(self.width(), |i, j| f64::from(u8::from(i == j)) / f64::EPSILON);
        Coefficients {
            beyond_pivot: vec![0.0; self.width()],
            factor: factor.expect("the matrix is diagonal"),
            variance: given.variance.unwrap_or(1.0),
            scale: given.scale.unwrap_or(f64::MIN_POSITIVE),
        }
    }
}

/// The linear part of a solution.
#[derive(Debug, Clone)]
pub(crate) struct Linear {
    pub(crate) columns: Columns,
    /// In the targets' units.
    pub(crate) coefficients: Vec<f64>,
    posterior: Coefficients,
    /// The joint model's unit.
    unit: f64,
}

impl Linear {
    pub(crate) fn new(columns: Columns, pivot: &[f64], posterior: Coefficients, unit: f64) -> Self {
        let both = pivot.iter().zip(&posterior.beyond_pivot);
        let coefficients = both.map(|(pivot, beyond)| unit * (pivot + beyond)).collect();
        Self { columns, coefficients, posterior, unit }
    }

    /// The prior variance of the coefficients, in the targets' units.
    pub(crate) fn variance(&self) -> f64 {
        self.unit * self.unit * self.posterior.variance
    }

    /// The factor on all variances of the joint model where it decides how uncertain the coefficients are.
    pub(crate) fn scale(&self) -> f64 {
        self.posterior.scale
    }

    /// The first coefficient, and slopes in units of the target per unit of each feature.
    pub(crate) fn by_feature(&self, n_features: usize) -> (f64, Vec<f64>) {
        (self.coefficients[0], self.columns.slopes(&self.coefficients, n_features))
    }

    /// The first coefficient, and what each feature of the trend adds.
    pub(crate) fn by_part(&self) -> (f64, Vec<TrendPart>) {
        (self.coefficients[0], self.columns.by_part(&self.coefficients))
    }

    /// The trend at a row in parts that sum to it: the first coefficient, and one part for each feature.
    pub(crate) fn parts(&self, x: impl Fn(usize) -> f64, n_features: usize) -> (f64, Vec<f64>) {
        (self.coefficients[0], self.columns.parts(&self.coefficients, x, n_features))
    }

    /// For the same hyperparameters without a row.
    pub(crate) fn given(&self) -> Given {
        Given { variance: Some(self.posterior.variance), scale: Some(self.posterior.scale) }
    }

    /// The trend at a row, given its features, and the variance that the uncertainty of its coefficients adds. `smoothed` is
    /// what the trees make of the row's `z`.
    pub(crate) fn at(&self, x: impl Fn(usize) -> f64, smoothed: &[f64]) -> (f64, f64) {
        let z: Vec<f64> = self.columns.of_row(&x).collect();
        let apart: Vec<f64> = z.iter().zip(smoothed).map(|(z, smoothed)| z - smoothed).collect();
        let half = self.posterior.factor.half_solve(&apart);
        let variance = dot(&half, &half) + self.posterior.variance * self.columns.without_rows(x);
        (dot(&z, &self.coefficients), self.unit * self.unit * self.posterior.scale * variance)
    }
}
