//! The hierarchy of Gaussians in one tree (thesis section 6.3).
//!
//! The mean `mu_j` of a node differs from that of its parent by a Gaussian of variance
//! `phi_j = v(tau_j) - v(tau_parent(j))`. The *clock* `v(t) = gamma_1 (sigma(gamma_2 t) - sigma(0))`, with the sigmoid
//! `sigma`, rises from 0 to `gamma_1 / 2`. Rows are observed at the leaves with noise `sigma_y^2` (eq. 6.1). Belief
//! propagation (section 6.3.1) computes the posterior (eq. 6.2) in one pass up the tree and one pass down.
//!
//! The hierarchy is closed under marginalisation: a node between two others, where a test row branches off, has a mean
//! whose posterior follows from theirs (a Brownian bridge), and nothing else changes (section 6.3.4).

pub(crate) mod belief_propagation;
pub(crate) mod branch_clock;
pub(crate) mod branch_law;
pub(crate) mod branch_time;
mod clock_part;
pub(crate) mod subtree_beliefs;
pub(crate) mod tree_predictive;
