//! Regression (thesis chapter 6): a hierarchy of Gaussians at the nodes of every tree.

pub(crate) mod belief_propagation;
pub(crate) mod hyperparameters;
pub(crate) mod joint;
pub(crate) mod local_noise;
pub(crate) mod moments;
pub(crate) mod noise_tails;
pub(crate) mod regressor;
pub(crate) mod subtree_beliefs;
