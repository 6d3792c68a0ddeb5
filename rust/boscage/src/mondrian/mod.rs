//! Mondrian forests: one keyed process a tree, its restriction to the rows, and a posterior at its nodes.

pub(crate) mod classification;
pub(crate) mod feature_rates;
pub(crate) mod forest;
pub(crate) mod model;
pub(crate) mod prediction;
pub(crate) mod process;
pub(crate) mod regression;
pub(crate) mod tree;

pub use classification::classifier::MondrianClassifier;
pub use feature_rates::extra_trees::{Pilot, PilotTask, pilot};
pub use feature_rates::learn::{LearnedAxes, Rates, learn_axes};
pub use forest::Batch;
pub use forest::export::ExportedTree;
pub use forest::settings::{MondrianSettings, Predictive};
pub use model::MondrianForest;
pub use process::domain::{Domain, MAX_LEVEL};
pub use process::feature_map::{FeatureMap, MAX_KNOTS};
pub use regression::hierarchy::belief_propagation::Hyperparameters;
pub use regression::hierarchy::tree_predictive::Component;
pub use regression::regressor::MondrianRegressor;
pub use regression::settings::{HyperparameterRule, Noise, Posterior, RegressionSettings};
