//! The paths of test rows through trees: where a test row may branch off, and at what rate (thesis section
//! 5.5.3).
//!
//! A test row that lies outside the data box of node `j` branches off above `j` with probability
//!
//! `p_j^s(x) = 1 - exp(-Delta_j eta_j(x))`, `eta_j(x) = sum_d w_d (max(x_d - u_jd, 0) + max(l_jd - x_d, 0))`.
//!
//! Here `Delta_j` is the time from the split of the node's parent to its own, and `eta_j` is the *branch
//! rate*; in the thesis all rates `w_d` are one. An averaged prediction is a mean over all places where the
//! row may branch off (eq. 5.6, 5.7 and 6.3; Algorithms 5.8 and 6.5). A realised prediction
//! (`Predictive::Realised`) follows the tree's own process instead.
//!
//! - `walk` takes many test rows through all trees.
//! - `path` takes the rows that go the same way down one tree together.
//! - `branch_rate` computes the rates from the leaf up, since boxes are nested.
//! - `shared_path` keeps what successive rows have in common.
//! - `visitor` is how a posterior receives the path: as a list of stops (`stop`).
//! - `completions` takes some completed rows for each row that lacks values, and averages their predictions; `donors` says which.
//! - `clock` integrates functions of the time at which a row branches off, and `novelty` scores with it how
//!   usual a row is.

pub(crate) mod branch_rate;
pub(crate) mod clock;
pub(crate) mod completions;
mod donors;
pub(crate) mod novelty;
pub(crate) mod path;
pub(crate) mod shared_path;
pub(crate) mod stop;
pub(crate) mod visitor;
pub(crate) mod walk;
