//! Mondrian forests (thesis chapters 5 and 6): one keyed process for each tree, its restriction to the rows,
//! and a posterior at its nodes.
//!
//! - `process` draws the cuts of cells.
//! - `tree` restricts a process to rows, and inserts and removes rows.
//! - `forest` holds the rows and all trees, and updates the trees when they are read.
//! - `prediction` takes test rows through trees.
//! - `joint` solves for what all trees explain together.
//! - `explain` divides predictions among features.
//! - `model` is what forests with any posterior have in common.
//! - `cells` grows a forest whose rows are shared out by cell.
//! - `frozen` has forests without rows, which are grown from more rows than memory holds.
//! - `classification` and `regression` are posteriors at nodes.
//! - `feature_rates` learns the rates of the process from targets.
//!
//! The first four know no posterior. Imports point from later rooms to earlier ones.

pub(crate) mod cells;
pub(crate) mod classification;
pub(crate) mod explain;
pub(crate) mod feature_rates;
pub(crate) mod forest;
pub(crate) mod frozen;
pub(crate) mod joint;
pub(crate) mod model;
pub(crate) mod prediction;
pub(crate) mod process;
pub(crate) mod regression;
pub(crate) mod tree;

pub use cells::counts::CellCount;
pub use cells::plan::{CellPlan, RowExtent};
pub use cells::share::CellShare;
pub use classification::calibration::{CalibrationLink, calibrating_rows};
pub use classification::cell_votes::ClassifierCells;
pub use classification::classifier::MondrianClassifier;
pub use classification::frozen::{ClassifierFreezer, FrozenClassifier};
pub use classification::settings::{Calibration, ClassPosterior, ClassificationSettings};
pub use classification::trend::{ClassTrend, TREND_ROWS};
pub use feature_rates::extra_trees::{ExtraTreesRates, TargetKind, extra_trees_rates};
pub use feature_rates::learn::{CandidateRates, Rates, candidate_rates};
pub use feature_rates::screening::most_important_features;
pub use forest::Batch;
pub use forest::export::ExportedTree;
pub use forest::rows_by_contents::{Copies, first_by_contents, first_of_keys, keys_of_contents};
pub use forest::settings::{MondrianSettings, Predictive};
pub use frozen::forest::FrozenForest;
pub use frozen::freezer::Freezer;
pub use joint::kernel::{JointKernel, LANDMARKS, MAX_CLASSIFICATION_LIMIT_ROWS, MAX_REGRESSION_LIMIT_ROWS};
pub use model::MondrianForest;
pub use process::categories::Categories;
pub use process::domain::{Domain, MAX_LEVEL};
pub use process::feature_map::{FeatureMap, MAX_KNOTS};
pub use process::substitute::{Substitute, SubstituteTerm};
pub use regression::cells::RegressorCells;
pub use regression::frozen::{FrozenRegressor, RegressorFreezer};
pub use regression::hierarchy::belief_propagation::{CoarsePrior, Hyperparameters};
pub use regression::hierarchy::tree_predictive::Component;
pub use regression::hyperparameters::choice::{RULE_ROWS, TargetMoments};
pub use regression::left_out_fit::{JointFit, LeftOutFit, TailFit};
pub use regression::predictive::gaussian_mixture::{GaussianMixture, GaussianMixtures};
pub use regression::regressor::MondrianRegressor;
pub use regression::repetitions::distinct_rows;
pub use regression::settings::{HyperparameterRule, Noise, Posterior, RegressionSettings, Trend};
pub use regression::trend::TrendPart;
