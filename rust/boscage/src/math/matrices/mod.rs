//! Symmetric matrices. `cholesky` solves systems of some thousand equations, and `small_cholesky` of some dozens; `product_sum`
//! adds products of columns. The large ones work in `blocks`.

mod blocks;
pub(crate) mod cholesky;
pub(crate) mod product_sum;
pub(crate) mod small_cholesky;

/// Solves a dense system by elimination, as a reference for tests.
#[cfg(test)]
pub(crate) fn solve(mut a: Vec<Vec<f64>>, mut b: Vec<f64>) -> Vec<f64> {
    let n = b.len();
    for i in 0..n {
        for j in i + 1..n {
            let factor = a[j][i] / a[i][i];
            let pivot = a[i].clone();
            a[j].iter_mut().zip(pivot).for_each(|(entry, pivot)| *entry -= factor * pivot);
            b[j] -= factor * b[i];
        }
    }
    for i in (0..n).rev() {
        let known: f64 = (i + 1..n).map(|k| a[i][k] * b[k]).sum();
        b[i] = (b[i] - known) / a[i][i];
    }
    b
}
