//! Test rows in trees: where they may branch off, and at what rate (thesis section 5.5.3).
//!
//! A test row that lies outside the data box of node `j` branches off above `j` with probability
//! `p_j^s(x) = 1 - exp(-Delta_j eta_j(x))`, where `Delta_j` is the node's split time less its parent's, and the *branch rate*
//! `eta_j(x) = sum_d w_d (max(x_d - u_jd, 0) + max(l_jd - x_d, 0))`. Predictions average over all these places (eq. 5.6, 5.7
//! and 6.3; Algorithms 5.8 and 6.5), or follow the tree's own process (`Predictive::Realised`). `walk` takes many test rows
//! through all trees; `path` takes those that go the same way down one tree together; `branch_rate` computes the rates from
//! the leaf up, since boxes are nested; a posterior sees the path as a list of stops, through a `visitor`.

pub(crate) mod branch_rate;
pub(crate) mod path;
pub(crate) mod stop;
pub(crate) mod visitor;
pub(crate) mod walk;
