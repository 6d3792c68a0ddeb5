//! Probabilistic decision trees and forests: Mondrian forests that learn, forget and merge exactly.
//!
//! Implements B. Lakshminarayanan, *Decision Trees and Forests: A Probabilistic Perspective* (2016),
//! chapters 5 and 6, on a keyed Mondrian process: a forest is a function of its seed, its settings and its
//! set of rows, whatever the order in which the rows came.

mod control;
mod data;
mod error;
mod model_file;
mod mondrian;
mod tree;

pub use control::Control;
pub use data::{Rows, Scalar};
pub use error::{Error, Result};
pub use model_file::{AnyModel, ModelKind, load, model_kind};
pub use mondrian::{
    Batch, Component, Domain, ExportedTree, FeatureMap, HyperparameterRule, Hyperparameters, Label,
    LearnedAxes, MAX_KNOTS, MAX_LEVEL, MondrianClassifier, MondrianRegressor, MondrianSettings, Noise, Pilot,
    PilotTask, Posterior, Predictive, Rates, RegressionSettings, Run, learn_axes, pilot,
};
