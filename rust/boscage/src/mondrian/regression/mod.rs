//! Regression (thesis chapter 6): a hierarchy of Gaussians at the nodes of every tree.
//!
//! Each tree of the forest is a model of its own. The means of its nodes have the prior of section 6.3,
//! targets are Gaussian about the mean of their leaf (eq. 6.1), and belief propagation computes the posterior
//! (eq. 6.2). The prediction of a tree is a mixture of Gaussians, one for each place where a test row may
//! branch off (eq. 6.3, Algorithm 6.5), with the mean and variance of eq. 6.4. The prediction of the forest
//! is the mixture of all trees' mixtures (eq. 6.5).
//!
//! - `hierarchy` is the posterior of one tree; `predictive` joins the predictions of all trees.
//! - `hyperparameters` has the rules that choose `mu_H`, `gamma_1`, `gamma_2` and `sigma_y^2` (section 6.3.2
//!   and beyond).
//! - `left_out_fit` is what a rule fits beside them.
//! - `repetitions` finds rows that were repeated, which count once there.
//! - `noise` lets the noise differ from place to place.
//! - `joint` is the model in which the trees explain the targets together, and `trend` gives it a linear
//!   mean.
//! - `beside` widens predictions beside all rows.
//! - `share` has predictions by a forest whose trees are shared out over several workers, and `cells` those
//!   by a forest whose cells are.
//! - `frozen` has regressors without rows.
//! - `uncertainty` divides a predictive variance by its source, and `contributions` a mean by feature.

mod beside;
pub(crate) mod cells;
mod contributions;
pub(crate) mod frozen;
pub(crate) mod hierarchy;
pub(crate) mod hyperparameters;
pub(crate) mod joint;
pub(crate) mod left_out_fit;
pub(crate) mod moments;
pub(crate) mod noise;
pub(crate) mod predictive;
pub(crate) mod regressor;
pub(crate) mod repetitions;
pub(crate) mod settings;
mod share;
mod state;
pub(crate) mod trend;
mod uncertainty;
