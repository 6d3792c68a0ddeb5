//! What all trees and all targets determine together: hyperparameters, messages, local noise and the joint solution.

use crate::control::Run;
use crate::data::{RowId, Scalar, Table};
use crate::error::Result;
use crate::mondrian::forest::Forest;
use crate::mondrian::forest::storage::Storage;
use crate::mondrian::joint::limit::{LimitFunction, LogisticCovariance};
use crate::mondrian::prediction::stop::Stop;
use crate::mondrian::regression::beside::Beside;
use crate::mondrian::regression::hierarchy::belief_propagation::{
    CoarsePrior, Hyperparameters, Messages, UnitClocks,
};
use crate::mondrian::regression::hierarchy::tree_predictive::StopsAndLaws;
use crate::mondrian::regression::hyperparameters::choice;
use crate::mondrian::regression::hyperparameters::leave_one_out::{Chosen, Together};
use crate::mondrian::regression::joint::equations::Equations;
use crate::mondrian::regression::joint::solution::{JointWeights, Solution};
use crate::mondrian::regression::joint::tree_mean::{self, JointPath};
use crate::mondrian::regression::joint::{Standard, common_order};
use crate::mondrian::regression::left_out_fit::LeftOutFit;
use crate::mondrian::regression::moments::NodeMoments;
use crate::mondrian::regression::noise::local_noise;
use crate::mondrian::regression::noise::noise_tails::NoiseTails;
use crate::mondrian::regression::settings::{Noise, Posterior, RegressionSettings, Trend};
use crate::mondrian::regression::trend::posterior::{Given, Linear};
use crate::mondrian::regression::trend::{Design, Observed, Residuals};
use crate::mondrian::tree::Tree;
use crate::mondrian::tree::arena::{Arena, NodeId};

/// Everything that is computed from the trees and all targets together.
#[derive(Debug, Clone)]
pub(super) struct ForestState {
    pub(super) hyper: Hyperparameters,
    /// Upward messages by tree; none for the fast posterior.
    pub(super) messages: Vec<Messages>,
    /// Factors on the variances by tree and node; none if they are all one.
    pub(super) scales: Option<Vec<Vec<f64>>>,
    /// Factors of some rows beside them.
    pub(super) tails: Option<NoiseTails>,
    /// What was chosen beside the hyperparameters.
    pub(super) left_out_fit: LeftOutFit,
    /// For the joint posterior.
    pub(super) joint: Option<JointState>,
}

/// The joint model and its solution.
#[derive(Debug, Clone)]
pub(super) struct JointState {
    pub(super) together: Together,
    pub(super) solution: Solution,
    /// Where the coarse part of the prior is spent early among the rows.
    beside: Option<Beside>,
}

impl ForestState {
    /// Chooses hyperparameters and passes all messages.
    ///
    /// # Errors
    /// An interrupt.
    pub(super) fn new<S: Scalar>(
        settings: &RegressionSettings,
        forest: &Forest<NodeMoments>,
        storage: &Storage<S, NodeMoments>,
        run: &Run<'_>,
    ) -> Result<Self> {
        Self::of(choice::choose(settings, forest, storage, run)?, settings, forest, storage, run)
    }

    /// Passes all messages, given what was chosen.
    ///
    /// # Errors
    /// An interrupt.
    pub(super) fn of<S: Scalar>(
        chosen: Chosen,
        settings: &RegressionSettings,
        forest: &Forest<NodeMoments>,
        storage: &Storage<S, NodeMoments>,
        run: &Run<'_>,
    ) -> Result<Self> {
        let left_out_fit = chosen.left_out_fit();
        let Chosen { hyper, clocks, together, factors, tails, prior } = chosen;
        let lifetime = forest.settings.lifetime;
        if settings.posterior == Posterior::Fast {
            return Ok(Self { hyper, messages: Vec::new(), scales: None, tails, left_out_fit, joint: None });
        }
        let mut residuals = None;
        let joint = match settings.posterior {
            Posterior::Joint => {
                let alone =
                    || Together { model: Standard::new(&hyper), is_limit: false, share: 1.0, spread: 1.0 };
                let together = together.unwrap_or_else(alone);
                let weights =
                    JointWeights::new(settings, (together.is_limit, factors), forest, storage, run)?;
                let given = given(settings, &together.model);
                let equations = weights.equations(None, &together.model, run)?;
                let solution = weights.solve((&together.model, &equations), given, None, run)?;
                residuals = weights.residuals(&solution);
                let beside = if settings.prior_rate.is_none() {
                    let table = Table::new(&storage.values, forest.domain.n_coordinates());
                    Beside::new(&hyper, forest, table, weights.rows())
                } else {
                    None
                };
                Some(JointState { together, solution, beside })
            }
            Posterior::Exact | Posterior::Fast => None,
        };
        let observed = residuals.as_ref().map_or_else(|| Observed::targets_of(forest), Residuals::observed);
        let of_trees = run.map(storage.trees.len(), |i| {
            let tree = &storage.trees[i];
            let (order, moments) = (tree.arena.preorder(), observed.moments(tree));
            let messages = match clocks.get(i) {
                Some(known) => upward(settings, &hyper, (tree, &moments, &order), known),
                None => {
                    let clocks = UnitClocks::new(tree, lifetime, hyper.gamma2, hyper.delay);
                    upward(settings, &hyper, (tree, &moments, &order), &clocks)
                }
            };
            let scales = (settings.noise == Noise::Local).then(|| {
                let observed = (observed.targets, &*moments);
                local_noise::estimate((tree, &order), observed, (&messages, &hyper), prior)
            });
            Ok((messages, scales))
        })?;
        let (messages, scales): (_, Vec<Option<_>>) = of_trees.into_iter().unzip();
        let scales = scales.into_iter().collect();
        Ok(Self { hyper, messages, scales, tails, left_out_fit, joint })
    }

    /// The trend, if there is one.
    pub(super) fn trend(&self) -> Option<&Linear> {
        self.joint.as_ref().and_then(|joint| joint.solution.linear.as_ref())
    }

    /// What widens predictions beside all rows, if something does.
    pub(super) fn beside(&self) -> Option<&Beside> {
        self.joint.as_ref().and_then(|joint| joint.beside.as_ref())
    }

    /// The joint mean as a function, where it is not a sum over trees.
    pub(super) fn limit(&self) -> Option<&LimitFunction<LogisticCovariance>> {
        self.joint.as_ref().and_then(|joint| joint.solution.limit())
    }

    /// A tree's share of the joint mean of a row, if it has one.
    pub(super) fn joint_mean(
        &self,
        tree: (usize, &Arena),
        stops: StopsAndLaws<'_>,
        path: &mut JointPath,
    ) -> f64 {
        let of = |joint: &JointState| {
            let sums = joint.solution.by_trees()?;
            let sum = |node: NodeId| sums.sum(tree, node);
            Some(tree_mean::mean((tree.0, sum), &joint.together.model.hyper, stops, path))
        };
        self.joint.as_ref().and_then(of).unwrap_or(0.0)
    }

    /// What the trend leaves of the targets, if there is one.
    pub(super) fn residuals<S: Scalar>(
        &self,
        settings: &RegressionSettings,
        forest: &Forest<NodeMoments>,
        storage: &Storage<S, NodeMoments>,
    ) -> Option<Residuals> {
        let of = |(linear, trend): (&Linear, &Trend)| {
            let design = Design::new(forest, trend, &common_order(forest, storage));
            Residuals::new(&design, &linear.coefficients)
        };
        self.trend().zip(settings.trend.as_ref()).map(of)
    }

    /// Adds what a tree makes of the entries of a row's `z`, along the path of its joint mean.
    pub(super) fn smooth(
        &self,
        tree: (usize, &Arena),
        stops: &[Stop],
        path: &mut JointPath,
        smoothed: &mut Vec<f64>,
    ) {
        let Some(JointState { solution, .. }) = &self.joint else { return };
        if let (Some(linear), Some(sums)) = (&solution.linear, solution.by_trees()) {
            let sum = |node: NodeId, column: usize| sums.column_sum(tree, node, column);
            tree_mean::smooth(path, stops, linear.columns.len(), sum, smoothed);
        }
    }
}

/// What follows from all trees and targets of the forest without a row, with the hyperparameters of the forest with it.
pub(super) struct Without {
    pub(super) solution: Solution,
    /// If there is a trend, which depends on the row: targets less the trend without the row, and messages about them by tree.
    pub(super) residuals: Option<(Residuals, Vec<Messages>)>,
}

impl Without {
    /// # Errors
    /// An interrupt.
    pub(super) fn new<S: Scalar>(
        settings: &RegressionSettings,
        (state, joint): (&ForestState, &JointState),
        (weights, equations): (&JointWeights, &Equations<'_>),
        (storage, lifetime): (&Storage<S, NodeMoments>, f64),
        row: RowId,
        run: &Run<'_>,
    ) -> Result<Self> {
        let model = &joint.together.model;
        let given = joint.solution.linear.as_ref().map_or_else(|| given(settings, model), Linear::given);
        let solution = weights.solve((model, equations), given, Some(row), run)?;
        let Some(residuals) = weights.residuals(&solution) else {
            return Ok(Self { solution, residuals: None });
        };
        let messages = run.map(storage.trees.len(), |i| {
            let tree = &storage.trees[i];
            let (order, moments) = (tree.arena.preorder(), residuals.observed().moments(tree));
            let clocks = UnitClocks::new(tree, lifetime, state.hyper.gamma2, state.hyper.delay);
            Ok(upward(settings, &state.hyper, (tree, &moments, &order), &clocks))
        })?;
        Ok(Self { solution, residuals: Some((residuals, messages)) })
    }
}

/// What is given of the trend.
fn given(settings: &RegressionSettings, model: &Standard) -> Given {
    let trend = settings.trend.as_ref();
    let variance = trend.and_then(|trend| trend.variance);
    // Hyperparameters that are given are the whole model.
    let scale = settings.hyperparameters.map(|_| trend.and_then(|trend| trend.scale).unwrap_or(1.0));
    Given { variance: variance.map(|variance| model.variance_of(variance)), scale }
}

/// The messages of one tree, given in preorder, about targets with these moments.
fn upward<S: Scalar>(
    settings: &RegressionSettings,
    hyper: &Hyperparameters,
    (tree, moments, order): (&Tree<S, NodeMoments>, &NodeMoments, &[NodeId]),
    clocks: &UnitClocks,
) -> Messages {
    Messages::upward(tree, moments, order, &in_messages(hyper, settings.posterior), clocks)
}

/// The hyperparameters of the messages. The joint posterior takes the coarse part of the prior as known at the nodes: all
/// trees together have learned it, in the joint mean, and of the trees only the deviations from their mean are used, which
/// the rule has fitted without that part.
pub(super) fn in_messages(hyper: &Hyperparameters, posterior: Posterior) -> Hyperparameters {
    match posterior {
        Posterior::Joint => Hyperparameters { coarse: CoarsePrior::NONE, ..*hyper },
        Posterior::Exact | Posterior::Fast => *hyper,
    }
}
