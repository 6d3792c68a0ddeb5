//! Conjugate leaves: models of the targets of a leaf whose parameters are integrated out.
//!
//! A leaf model has sufficient statistics that add up over rows, and the marginal likelihood `l(Y | X)` of a
//! set of rows as a function of them (eq. 3.1); `model` is the trait. `dirichlet` is for classes: counts by
//! class, with a Dirichlet prior (eq. 3.2). `normal` is for numbers: count, sum and sum of squares, with a
//! normal-inverse-gamma prior of mean and variance, the extension that section 3.2.1 mentions.
//!
//! `weighted_dirichlet` and `weighted_normal` are the same for rows with weights. A row of weight `w` counts as `w` rows:
//! its likelihood is raised to the power `w`. Weights are added in fixed point, so that sums do not depend on the order
//! of rows, and a light row is not lost beside heavy ones. Fitted trees hold the same totals with and without weights.
//!
//! A cut that moves past one row takes it from the statistics of the right side to those of the left. The
//! marginal likelihoods of all cuts along a feature therefore take one pass over the sorted rows
//! (section 3.3.1, footnote).

pub(crate) mod dirichlet;
pub(crate) mod model;
pub(crate) mod normal;
pub(crate) mod weighted_dirichlet;
pub(crate) mod weighted_normal;
