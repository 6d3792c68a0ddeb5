//! Regression (thesis chapter 6): a hierarchy of Gaussians at the nodes of every tree.
//!
//! Each tree of the forest is a model of its own: its nodes' means have the prior of section 6.3, targets are Gaussian about
//! the mean of their leaf (eq. 6.1), and belief propagation gives the posterior (eq. 6.2). A tree predicts a mixture of
//! Gaussians over where a test row branches off (eq. 6.3, Algorithm 6.5), and the forest the mixture of all trees
//! (eq. 6.4 and 6.5). `hierarchy` holds the posterior of one tree, `hyperparameters` the rules that choose `mu_H`, `gamma_1`,
//! `gamma_2` and `sigma_y^2` (section 6.3.2 and beyond), `noise` what makes the noise vary from place to place, and `joint` the
//! model in which all trees explain the targets together.

pub(crate) mod hierarchy;
pub(crate) mod hyperparameters;
pub(crate) mod joint;
pub(crate) mod moments;
pub(crate) mod noise;
mod predictive;
pub(crate) mod regressor;
pub(crate) mod settings;
mod state;
