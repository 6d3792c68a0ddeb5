//! Symmetric matrices. `cholesky` solves systems of some thousand equations, and `small_cholesky` of some dozens; `product_sum`
//! adds products of columns. The large ones work in `blocks`.

mod blocks;
pub(crate) mod cholesky;
pub(crate) mod product_sum;
pub(crate) mod small_cholesky;
