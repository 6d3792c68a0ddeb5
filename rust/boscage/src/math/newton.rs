//! The least value of a smooth function of a few variables within bounds.
//!
//! Newton's method, with something added to the diagonal of the matrix of second derivatives while a step does not lead down
//! (Levenberg 1944, Marquardt 1963). A variable at a bound stays there while the function falls beyond it (Bertsekas 1982).

use crate::math::matrices::small_cholesky::Cholesky;

const MAX_STEPS: usize = 100;
/// What is added at first, in units of the diagonal, and the most.
const DAMPING: f64 = 1e-4;
const MAX_DAMPING: f64 = 1e12;
/// Steps that are shorter, in units of one and the variable, end the search.
const SHORT: f64 = 1e-11;
/// Of a value, what rounding may hide.
const ROUNDING: f64 = 1e-14;
/// What counts as the diagonal where that is less.
const LEAST_DIAGONAL: f64 = 1e-14;

/// A function at a point.
#[derive(Debug, Clone)]
pub(crate) struct Local {
    pub(crate) value: f64,
    pub(crate) gradient: Vec<f64>,
    /// Second derivatives, row after row; those above the diagonal do not count.
    pub(crate) curvature: Vec<f64>,
}

impl Local {
    /// The variables that may move: all but those that are held by a bound.
    fn free(&self, x: &[f64], bounds: &[(f64, f64)]) -> Vec<usize> {
        let is_free = |&i: &usize| {
            let ((low, high), slope) = (bounds[i], self.gradient[i]);
            !(x[i] <= low && slope >= 0.0 || x[i] >= high && slope <= 0.0)
        };
        (0..x.len()).filter(is_free).collect()
    }

    /// The step of the free variables; none if the damped matrix is not positive definite.
    fn step(&self, free: &[usize], damping: f64) -> Option<Vec<f64>> {
        let n = self.gradient.len();
        let entry = |i: usize, j: usize| self.curvature[free[i] * n + free[j]];
        let added = |i: usize| damping * entry(i, i).abs().max(LEAST_DIAGONAL);
        let factor = Cholesky::new(free.len(), |i, j| entry(i, j) + if i == j { added(i) } else { 0.0 })?;
        let down: Vec<f64> = free.iter().map(|&i| -self.gradient[i]).collect();
        Some(factor.solve(&down))
    }

    /// Whether it lies lower than another, or, where rounding hides that, is flatter.
    fn is_below(&self, other: &Self, free: &[usize]) -> bool {
        let steepest = |local: &Self| free.iter().map(|&i| local.gradient[i].abs()).fold(0.0, f64::max);
        let hidden = ROUNDING * other.value.abs();
        self.value < other.value - hidden
            || self.value <= other.value + hidden && steepest(self) < steepest(other)
    }
}

/// A point where the function is least among those around, from a start within the bounds, and its value there; after many
/// steps the lowest one so far.
pub(crate) fn minimise(f: impl Fn(&[f64]) -> Local, start: &[f64], bounds: &[(f64, f64)]) -> (Vec<f64>, f64) {
    let (mut x, mut at, mut damping) = (start.to_vec(), f(start), DAMPING);
    for _ in 0..MAX_STEPS {
        let Some((next, local)) = lower(&f, (&x, &at), bounds, &mut damping) else { break };
        let is_short = next.iter().zip(&x).all(|(a, b)| (a - b).abs() <= SHORT * (1.0 + b.abs()));
        (x, at) = (next, local);
        if is_short {
            break;
        }
    }
    (x, at.value)
}

/// A lower point, by as little damping as leads to one.
fn lower(
    f: &impl Fn(&[f64]) -> Local,
    (x, at): (&[f64], &Local),
    bounds: &[(f64, f64)],
    damping: &mut f64,
) -> Option<(Vec<f64>, Local)> {
    let free = at.free(x, bounds);
    while !free.is_empty() && *damping < MAX_DAMPING {
        if let Some(step) = at.step(&free, *damping) {
            let mut next = x.to_vec();
            for (&i, step) in free.iter().zip(step) {
                next[i] = (x[i] + step).clamp(bounds[i].0, bounds[i].1);
            }
            let local = f(&next);
            if local.is_below(at, &free) {
                *damping *= 0.1;
                return Some((next, local));
            }
        }
        *damping = 10.0 * damping.max(DAMPING);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rosenbrock's valley, whose least value is at (1, 1).
    fn valley(x: &[f64]) -> Local {
        let (a, b) = (1.0 - x[0], x[1] - x[0] * x[0]);
        Local {
            value: a * a + 100.0 * b * b,
            gradient: vec![-2.0 * a - 400.0 * x[0] * b, 200.0 * b],
            curvature: vec![2.0 - 400.0 * b + 800.0 * x[0] * x[0], -400.0 * x[0], -400.0 * x[0], 200.0],
        }
    }

    #[test]
    fn the_end_of_a_valley_is_found_from_any_side() {
        for start in [[-1.2, 1.0], [3.0, -2.0], [0.0, 0.0]] {
            let (x, least) = minimise(valley, &start, &[(-5.0, 5.0); 2]);
            assert!(x.iter().all(|x| (x - 1.0).abs() < 1e-10) && least < 1e-20, "{x:?}");
        }
    }

    #[test]
    fn variables_stay_within_bounds() {
        // At the bound of one variable, the other is where the rest of the function is least.
        let (x, least) = minimise(valley, &[0.0, 0.0], &[(-5.0, 0.5), (-5.0, 5.0)]);
        assert!(x[0] == 0.5 && (x[1] - 0.25).abs() < 1e-12 && (least - 0.25).abs() < 1e-12, "{x:?}");
        let (x, _) = minimise(valley, &[2.0, 2.0], &[(2.0, 3.0), (-1.0, 2.0)]);
        assert_eq!(x, [2.0, 2.0]);
        assert_eq!(minimise(valley, &[1.0, 1.0], &[(1.0, 1.0); 2]), (vec![1.0, 1.0], 0.0));
    }
}
