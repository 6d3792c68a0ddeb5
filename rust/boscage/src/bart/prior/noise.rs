//! The prior of a variance and its conjugate update. For the noise, the prior is derived from an
//! over-estimate (section 4.2.4).

use std::f64::consts::PI;

use crate::data::Rows;
use crate::math::special_functions::chi_square_quantile;
use crate::random::distributions::chi_square;
use crate::random::keyed::Stream;

/// `sigma^2 ~ nu lambda / chi^2_nu`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct VariancePrior {
    pub(crate) nu: f64,
    pub(crate) lambda: f64,
}

impl VariancePrior {
    /// The prior with `P(sigma <= estimate) = q`.
    pub(crate) fn new(nu: f64, q: f64, estimate: f64) -> Self {
        // With few degrees of freedom the quantile may underflow to zero.
        let scale = (estimate * estimate * chi_square_quantile(1.0 - q, nu)).max(1e-30);
        Self { nu, lambda: scale / nu }
    }

    /// Draws `sigma` given the sum of squares of `n` residuals (Algorithm 4.1, line 4).
    pub(crate) fn draw(&self, n: usize, squares: f64, stream: &mut Stream) -> f64 {
        let scale = self.nu * self.lambda + squares;
        (scale / chi_square(self.nu + n as f64, stream)).sqrt()
    }
}

/// The residual standard deviation of a least squares fit, for a row of weight one (section 4.2.4).
///
/// If there are too few rows, or so many features that the fit would take longer than sampling, it is the standard
/// deviation about the mean.
pub(crate) fn over_estimate(rows: Rows<'_>, targets: &[f64], weights: Option<&[f64]>) -> f64 {
    const MAX_WORK: usize = 1 << 30;
    let (n, p) = (rows.n_rows(), rows.n_features());
    let few = p + 1 < n && p.saturating_mul(p).saturating_mul(n) < MAX_WORK;
    let columns = if few { p } else { 0 };
    let mut basis: Vec<Vec<f64>> = vec![vec![1.0; n]];
    basis.extend((0..columns).map(|d| scaled(filled((0..n).map(|i| rows.at(i, d)).collect()))));
    let mut rest = targets.to_vec();
    if let Some(weights) = weights {
        for column in basis.iter_mut().chain([&mut rest]) {
            column.iter_mut().zip(weights).for_each(|(x, w)| *x *= w.sqrt());
        }
    }
    let rank = project_out(&mut basis, &mut rest);
    let squares: f64 = rest.iter().map(|r| r * r).sum();
    (squares / n.saturating_sub(rank).max(1) as f64).sqrt()
}

/// A column in which the mean of the present values stands for missing ones.
fn filled(mut column: Vec<f64>) -> Vec<f64> {
    let n = column.iter().filter(|x| !x.is_nan()).count();
    if n < column.len() {
        // Divided first, since the sum may overflow.
        let mean: f64 = column.iter().filter(|x| !x.is_nan()).map(|x| x / n as f64).sum();
        column.iter_mut().filter(|x| x.is_nan()).for_each(|x| *x = mean);
    }
    column
}

/// A column scaled so that its largest magnitude is one.
fn scaled(mut column: Vec<f64>) -> Vec<f64> {
    let largest = column.iter().fold(f64::MIN_POSITIVE, |most, x| most.max(x.abs()));
    for x in &mut column {
        *x /= largest;
    }
    column
}

/// Subtracts from `rest` its projection on the columns (modified Gram-Schmidt). Returns the number of
/// independent columns.
fn project_out(basis: &mut [Vec<f64>], rest: &mut [f64]) -> usize {
    let mut rank = 0;
    for k in 0..basis.len() {
        let (done, todo) = basis.split_at_mut(k + 1);
        let own = &mut done[k];
        let norm = own.iter().map(|x| x * x).sum::<f64>().sqrt();
        // A dependent column leaves only rounding errors.
        if norm < 1e-10 * (own.len() as f64).sqrt() {
            continue;
        }
        for x in own.iter_mut() {
            *x /= norm;
        }
        rank += 1;
        for other in todo.iter_mut().map(Vec::as_mut_slice).chain([&mut *rest]) {
            let share: f64 = own.iter().zip(other.iter()).map(|(a, b)| a * b).sum();
            other.iter_mut().zip(own.iter()).for_each(|(x, a)| *x -= share * a);
        }
    }
    rank
}

/// Logarithm of the density of `n` residuals under `N(0, sigma^2)`, given their sum of squares.
pub(crate) fn log_likelihood(n: usize, squares: f64, sigma: f64) -> f64 {
    let variance = sigma * sigma;
    -0.5 * (n as f64 * libm::log(2.0 * PI * variance) + squares / variance)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_prior_has_its_quantile() {
        let prior = VariancePrior::new(3.0, 0.9, 2.0);
        let mut stream = Stream::new(1, 0);
        let n = 100_000;
        let below = (0..n).filter(|_| prior.draw(0, 0.0, &mut stream) <= 2.0).count();
        assert!((below as f64 / f64::from(n) - 0.9).abs() < 5.0 * (0.09 / f64::from(n)).sqrt());
    }

    #[test]
    fn least_squares_leaves_the_noise() {
        let mut stream = Stream::new(2, 0);
        let n = 2000;
        // The third feature is the sum of the others.
        let x: Vec<f64> = (0..n)
            .flat_map(|_| {
                let (a, b) = (stream.unit(), stream.unit());
                [a, b, a + b]
            })
            .collect();
        let mut stream = Stream::new(3, 0);
        let y: Vec<f64> = x
            .chunks(3)
            .map(|x| 5.0 + 3.0 * x[0] - x[1] + 0.1 * crate::random::distributions::normal(&mut stream))
            .collect();
        let rows = Rows::from_f64(&x, 3).unwrap();
        let found = over_estimate(rows, &y, None);
        assert!((found - 0.1).abs() < 0.01, "{found}");
        let few = over_estimate(Rows::from_f64(&x[..9], 3).unwrap(), &[1.0, 2.0, 3.0], None);
        assert!((few - 1.0).abs() < 1e-12, "{few}");
    }
}
