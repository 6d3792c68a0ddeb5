//! Regression (thesis chapter 6): a hierarchy of Gaussians at the nodes of every tree.

pub(crate) mod belief_propagation;
pub(crate) mod branch_time;
pub(crate) mod hyperparameters;
pub(crate) mod joint;
pub(crate) mod local_noise;
pub(crate) mod moments;
pub(crate) mod noise_tails;
mod predictive;
pub(crate) mod regressor;
pub(crate) mod row_order;
pub(crate) mod settings;
mod state;
pub(crate) mod subtree_beliefs;
pub(crate) mod tree_predictive;
