//! An ordinary line through the targets, about which hyperparameters are chosen: ridge regression, with a penalty by
//! generalised cross-validation (Golub, Heath and Wahba 1979).

use crate::math::matrices::small_cholesky::Cholesky;
use crate::mondrian::regression::trend::{Design, dot};

/// Penalties, in units of the squares of `z`. The least keeps copies of a feature apart from each other.
const PENALTIES: [f64; 8] = [1e-4, 1e-3, 1e-2, 0.1, 1.0, 10.0, 100.0, 1000.0];
/// The least share of the degrees of freedom that a line leaves.
const LEAST_FREE: f64 = 0.05;

/// Sums of products of `z` without its first entry, and of it with targets, about their means.
struct Sums {
    means: Vec<f64>,
    target: f64,
    squares: Vec<f64>,
    products: Vec<f64>,
    /// The number of entries that a line has not.
    beyond: usize,
}

impl Sums {
    fn of(design: &Design, places: impl Iterator<Item = usize> + Clone) -> Self {
        let width = design.columns.n_lines() - 1;
        let n = places.clone().map(|place| design.weight(place)).sum::<f64>();
        let n = if n > 0.0 { n } else { 1.0 };
        let (mut means, mut target) = (vec![0.0; width], 0.0);
        for place in places.clone() {
            let weight = design.weight(place);
            means.iter_mut().zip(&design.row(place)[1..]).for_each(|(mean, z)| *mean += weight * z / n);
            target += weight * design.targets[place] / n;
        }
        let (mut squares, mut products) = (vec![0.0; width * width], vec![0.0; width]);
        let mut apart = vec![0.0; width];
        for place in places {
            let row = &design.row(place)[1..=width];
            apart.iter_mut().zip(row.iter().zip(&means)).for_each(|(apart, (z, mean))| *apart = z - mean);
            let weight = design.weight(place);
            let y = weight * (design.targets[place] - target);
            for i in 0..width {
                products[i] += apart[i] * y;
                for j in 0..=i {
                    squares[i * width + j] += weight * apart[i] * apart[j];
                }
            }
        }
        Self { means, target, squares, products, beyond: design.columns.len() - 1 - width }
    }

    fn factor(&self, penalty: f64) -> Option<Cholesky> {
        let width = self.means.len();
        Cholesky::new(width, |i, j| self.squares[i * width + j] + if i == j { penalty } else { 0.0 })
    }

    /// The line's value at the middle of all ranges, and its slopes.
    fn line(&self, factor: &Cholesky) -> Vec<f64> {
        let slopes = factor.solve(&self.products);
        let at_middle = self.target - dot(&self.means, &slopes);
        std::iter::once(at_middle).chain(slopes).chain(std::iter::repeat_n(0.0, self.beyond)).collect()
    }
}

/// A line, and the penalty that led to it.
#[derive(Debug)]
pub(crate) struct StartLine {
    /// Coefficients of `z`.
    pub(crate) coefficients: Vec<f64>,
    penalty: f64,
}

impl StartLine {
    pub(crate) fn new(design: &Design) -> Self {
        let n = design.order.len();
        let sums = Sums::of(design, 0..n);
        let weight: f64 = (0..n).map(|place| design.weight(place)).sum();
        let free = weight - 1.0;
        let mut best = (f64::INFINITY, Self { coefficients: sums.flat(), penalty: f64::INFINITY });
        for penalty in PENALTIES {
            let Some(factor) = sums.factor(penalty) else { continue };
            let coefficients = sums.line(&factor);
            let squares: f64 = (0..n)
                .map(|place| design.weight(place) * design.residual(place, &coefficients).powi(2))
                .sum();
            let left = free - sums.means.len() as f64 + penalty * factor.trace_of_inverse();
            let score = squares / (left * left);
            if left >= LEAST_FREE * free && score < best.0 {
                best = (score, Self { coefficients, penalty });
            }
        }
        best.1
    }

    /// The line of some of the rows, with the same penalty.
    pub(crate) fn of_some(&self, design: &Design, is_one: impl Fn(usize) -> bool) -> Vec<f64> {
        let places: Vec<usize> = (0..design.order.len()).filter(|&place| is_one(place)).collect();
        let sums = Sums::of(design, places.iter().copied());
        match sums.factor(self.penalty) {
            Some(factor) if self.penalty.is_finite() => sums.line(&factor),
            _ => sums.flat(),
        }
    }
}

impl Sums {
    /// The line without slopes.
    fn flat(&self) -> Vec<f64> {
        std::iter::once(self.target).chain(std::iter::repeat_n(0.0, self.means.len() + self.beyond)).collect()
    }
}
