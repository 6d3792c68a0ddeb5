//! The hierarchy of Gaussians in one tree (thesis section 6.3).
//!
//! The mean `mu_j` of every node differs from its parent's by a Gaussian of variance `phi_j = v(tau_j) - v(tau_parent(j))`,
//! where the *clock* `v(t) = gamma_1 (sigma(gamma_2 t) - sigma(0))` runs from 0 to `gamma_1 / 2`. Rows are observed at the
//! leaves with noise `sigma_y^2` (eq. 6.1). Belief propagation (section 6.3.1) computes the posterior (eq. 6.2) in one pass
//! up and one down the tree. The hierarchy is closed under marginalisation: a test row that branches off between two nodes
//! finds its own mean on the bridge between theirs, so that nothing has to be computed again (section 6.3.4).

pub(crate) mod belief_propagation;
pub(crate) mod branch_time;
pub(crate) mod subtree_beliefs;
pub(crate) mod tree_predictive;
