//! Gauss and Legendre's rule on the interval from 0 to 1.

use std::sync::OnceLock;

/// Nodes and weights of a rule.
#[derive(Debug, Clone)]
pub(super) struct QuadratureRule {
    /// The nodes `t`, and `1 - t` without its rounding.
    pub(super) nodes: Vec<f64>,
    pub(super) complements: Vec<f64>,
    pub(super) weights: Vec<f64>,
}

impl QuadratureRule {
    /// The smallest rule that is exact for polynomials of some degree.
    pub(super) fn exact_to(degree: usize) -> Self {
        let n = degree / 2 + 1;
        let roots: Vec<[f64; 2]> = (0..n).map(|k| root(n, k)).collect();
        let total: f64 = roots.iter().map(|[_, weight]| weight).sum();
        Self {
            nodes: roots.iter().map(|[x, _]| 0.5 * (1.0 + x)).collect(),
            complements: roots.iter().map(|[x, _]| 0.5 * (1.0 - x)).collect(),
            weights: roots.iter().map(|[_, weight]| weight / total).collect(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.nodes.len()
    }
}

/// Rules for polynomials up to some degree, each made when it is first needed.
#[derive(Debug, Clone)]
pub(super) struct QuadratureRules(Vec<OnceLock<QuadratureRule>>);

impl QuadratureRules {
    pub(super) fn up_to(degree: usize) -> Self {
        Self(vec![OnceLock::new(); degree / 2 + 1])
    }

    /// The smallest rule that is exact for polynomials of a degree.
    pub(super) fn exact_to(&self, degree: usize) -> &QuadratureRule {
        self.0[degree / 2].get_or_init(|| QuadratureRule::exact_to(degree))
    }
}

/// The `k`-th root of the Legendre polynomial of degree `n`, by Newton's method, and its weight.
fn root(n: usize, k: usize) -> [f64; 2] {
    /// Newton's method doubles the digits of a start that has three or more.
    const STEPS: usize = 6;
    let degree = n as f64;
    let mut x = (std::f64::consts::PI * (k as f64 + 0.75) / (degree + 0.5)).cos();
    let mut slope = 1.0;
    for _ in 0..STEPS {
        let (mut before, mut value) = (1.0, x);
        for i in 2..=n {
            let i = i as f64;
            (before, value) = (value, ((2.0 * i - 1.0) * x * value - (i - 1.0) * before) / i);
        }
        slope = degree * (x * value - before) / (x * x - 1.0);
        x -= value / slope;
    }
    [x, 1.0 / ((1.0 - x * x) * slope * slope)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powers_are_integrated_exactly() {
        for degree in [0, 1, 2, 3, 8, 15, 40, 101] {
            let rule = QuadratureRule::exact_to(degree);
            for power in 0..=degree {
                let found: f64 =
                    rule.nodes.iter().zip(&rule.weights).map(|(t, w)| w * t.powi(power as i32)).sum();
                let expected = 1.0 / (power as f64 + 1.0);
                assert!((found - expected).abs() < 1e-14, "t^{power}: {found} and {expected}");
            }
        }
    }
}
