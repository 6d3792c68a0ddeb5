//! Mondrian forests: one keyed process a tree, its restriction to the rows, and a posterior at its nodes.

mod cell;
mod classes;
mod classifier;
mod digest;
mod domain;
mod dual;
mod export;
mod extents;
mod feature_map;
pub(crate) mod forest;
mod gaussian;
mod hyperparameters;
mod keyed;
mod kneser_ney;
mod left_out;
mod local_noise;
mod numbers;
mod outside;
mod pilot;
mod regressor;
mod roster;
mod route;
mod statistics;
mod tree;
pub(crate) mod values;

pub use classifier::{Label, MondrianClassifier};
pub use domain::{Domain, MAX_LEVEL};
pub use export::ExportedTree;
pub use feature_map::{FeatureMap, MAX_KNOTS};
pub use forest::{Batch, MondrianSettings, Predictive, Run};
pub use gaussian::{Component, Hyperparameters};
pub use pilot::{Pilot, PilotTask, pilot};
pub use regressor::{HyperparameterRule, MondrianRegressor, Noise, Posterior, RegressionSettings};
pub(crate) use statistics::Statistics;
