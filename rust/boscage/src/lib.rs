//! Probabilistic decision trees and forests: Mondrian forests that learn, forget and merge exactly.
//!
//! Implements B. Lakshminarayanan, *Decision Trees and Forests: A Probabilistic Perspective* (2016).
//!
//! - Chapters 5 and 6, Mondrian forests: [`MondrianClassifier`] and [`MondrianRegressor`]. A forest is a
//!   function of its seed, its settings and its set of rows. It does not depend on the order in which rows
//!   came.
//! - Chapter 3, posteriors over single trees, by SMC and MCMC: [`BayesianTreeClassifier`] and
//!   [`BayesianTreeRegressor`].
//! - Chapter 4, posteriors over sums of trees (BART), by grow and prune, CGM, Particle Gibbs and other
//!   kernels: [`BartRegressor`], [`BartClassifier`], and [`SumOfTrees`] for any other likelihood.
//!
//! Rows are borrowed as [`Rows`]. A [`Run`] sets the threads of a call, and can stop it. Results are the same
//! bits for any number of threads.

mod bart;
mod bayes;
mod control;
mod data;
mod error;
mod explain;
mod math;
mod model_file;
mod mondrian;
mod random;
mod validate;

pub use bart::{
    BartClassifier, BartRegressor, BartSettings, BartStep, BartTrace, DrawnTree, Events, Kernel, Kernels,
    LeafModel, PoissonLeaves, SharedTree, Sparsity, StepCounts, SumOfTrees, Sweep, Watch,
};
pub use bayes::{
    Acceptance, BayesianTreeClassifier, BayesianTreeRegressor, BayesianTrees, CandidateOrder, ChainReport,
    ChipmanPrior, Draw, Expansion, IslandReport, IslandWeights, McmcSettings, Move, NormalPrior,
    PosteriorTree, Proposal, Report, Resampling, Sampler, SmcSettings, Stage, Students, TreePrior,
};
pub use control::{Control, Run};
pub use data::{Label, Rows, Scalar, SparseRow};
pub use error::{Error, Result};
pub use explain::{Contributions, LeafTree};
pub use model_file::{AnyModel, ModelKind, load, model_kind};
pub use mondrian::{
    Batch, Calibration, CalibrationLink, CandidateRates, Categories, CellCount, CellPlan, CellShare,
    ClassPosterior, ClassTrend, ClassificationSettings, ClassifierCells, ClassifierFreezer, CoarsePrior,
    Component, Copies, Domain, ExportedTree, ExtraTreesRates, FeatureMap, Freezer, FrozenClassifier,
    FrozenForest, FrozenRegressor, GaussianMixture, GaussianMixtures, HyperparameterRule, Hyperparameters,
    JointFit, JointKernel, LANDMARKS, LeftOutFit, MAX_CLASSIFICATION_LIMIT_ROWS, MAX_KNOTS, MAX_LEVEL,
    MAX_REGRESSION_LIMIT_ROWS, MondrianClassifier, MondrianForest, MondrianRegressor, MondrianSettings,
    Noise, Posterior, Predictive, RULE_ROWS, Rates, RegressionSettings, RegressorCells, RegressorFreezer,
    RowExtent, Substitute, SubstituteTerm, TREND_ROWS, TailFit, TargetKind, TargetMoments, Trend, TrendPart,
    calibrating_rows, candidate_rates, distinct_rows, extra_trees_rates, first_by_contents, first_of_keys,
    keys_of_contents, most_important_features,
};
pub use random::Stream;
