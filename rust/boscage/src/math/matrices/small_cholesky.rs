//! Small symmetric positive definite matrices, by their triangular factor.

/// The lower triangle `L` of `M = L L'`, row after row.
#[derive(Debug, Clone)]
pub(crate) struct Cholesky {
    n: usize,
    lower: Vec<f64>,
}

impl Cholesky {
    /// Of the matrix with these entries; none if it is not positive definite.
    pub(crate) fn new(n: usize, entry: impl Fn(usize, usize) -> f64) -> Option<Self> {
        let mut lower = vec![0.0; n * n];
        for i in 0..n {
            for j in 0..=i {
                let known: f64 = (0..j).map(|k| lower[i * n + k] * lower[j * n + k]).sum();
                let rest = entry(i, j) - known;
                lower[i * n + j] = if i == j { rest.sqrt() } else { rest / lower[j * n + j] };
            }
            if !lower[i * n + i].is_normal() {
                return None;
            }
        }
        Some(Self { n, lower })
    }

    /// Of its triangle, row after row.
    pub(crate) fn of_lower(n: usize, lower: Vec<f64>) -> Self {
        Self { n, lower }
    }

    /// The triangle, row after row.
    pub(crate) fn lower(&self) -> &[f64] {
        &self.lower
    }

    /// `L^-1 b`, whose squared length is `b' M^-1 b`.
    pub(crate) fn half_solve(&self, b: &[f64]) -> Vec<f64> {
        let n = self.n;
        let mut x = b.to_vec();
        for i in 0..n {
            let known: f64 = (0..i).map(|k| self.lower[i * n + k] * x[k]).sum();
            x[i] = (x[i] - known) / self.lower[i * n + i];
        }
        x
    }

    /// `M^-1 b`.
    pub(crate) fn solve(&self, b: &[f64]) -> Vec<f64> {
        let n = self.n;
        let mut x = self.half_solve(b);
        for i in (0..n).rev() {
            let known: f64 = (i + 1..n).map(|k| self.lower[k * n + i] * x[k]).sum();
            x[i] = (x[i] - known) / self.lower[i * n + i];
        }
        x
    }

    /// `ln det M`.
    pub(crate) fn log_determinant(&self) -> f64 {
        (0..self.n).map(|i| 2.0 * self.lower[i * self.n + i].ln()).sum()
    }

    /// The trace of `M^-1`.
    pub(crate) fn trace_of_inverse(&self) -> f64 {
        let unit = |j: usize| -> Vec<f64> { (0..self.n).map(|i| f64::from(u8::from(i == j))).collect() };
        (0..self.n).flat_map(|j| self.half_solve(&unit(j))).map(|x| x * x).sum()
    }
}
