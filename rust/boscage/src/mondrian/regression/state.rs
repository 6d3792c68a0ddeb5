//! What all trees and all targets determine together: hyperparameters, messages, local noise and the joint solution.

use crate::control::Run;
use crate::data::Scalar;
use crate::error::Result;
use crate::mondrian::forest::Forest;
use crate::mondrian::forest::storage::Storage;
use crate::mondrian::prediction::shared_path::SharedPath;
use crate::mondrian::prediction::stop::Stop;
use crate::mondrian::regression::hierarchy::belief_propagation::{
    CoarsePrior, Hyperparameters, Messages, UnitClocks,
};
use crate::mondrian::regression::hyperparameters::far_prior::FarPrior;
use crate::mondrian::regression::hyperparameters::heuristic::heuristic;
use crate::mondrian::regression::hyperparameters::leave_one_out::{self, Chosen, Together};
use crate::mondrian::regression::hyperparameters::marginal_likelihood;
use crate::mondrian::regression::joint::{self, JointWeights, PassedStop, Solution, Standard};
use crate::mondrian::regression::moments::NodeMoments;
use crate::mondrian::regression::noise::local_noise;
use crate::mondrian::regression::noise::noise_tails::NoiseTails;
use crate::mondrian::regression::settings::{HyperparameterRule, Noise, Posterior, RegressionSettings};
use crate::mondrian::tree::arena::NodeId;

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
    /// For the joint posterior.
    pub(super) joint: Option<JointState>,
}

/// The joint model and its solution.
#[derive(Debug, Clone)]
pub(super) struct JointState {
    pub(super) together: Together,
    pub(super) solution: Solution,
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
        let lifetime = forest.settings.lifetime;
        let Chosen { hyper, clocks, together, tails, prior } =
            choose_hyperparameters(settings, forest, storage, run)?;
        if settings.posterior == Posterior::Fast {
            return Ok(Self { hyper, messages: Vec::new(), scales: None, tails, joint: None });
        }
        let messages = run.map(storage.trees.len(), |i| {
            let tree = &storage.trees[i];
            let hyper = in_messages(&hyper, settings.posterior);
            let upward = |clocks: &_| Messages::upward(tree, &tree.arena.preorder(), &hyper, clocks);
            Ok(match clocks.get(i) {
                Some(known) => upward(known),
                None => upward(&UnitClocks::new(tree, lifetime, hyper.gamma2, hyper.delay)),
            })
        })?;
        let scales = match settings.noise {
            Noise::Global => None,
            Noise::Local => Some(local_noise::estimate(forest, storage, &messages, &hyper, prior, run)?),
        };
        let joint = match settings.posterior {
            Posterior::Joint => {
                let alone = || Together { model: Standard::new(&hyper), share: 1.0, spread: 1.0 };
                let together = together.unwrap_or_else(alone);
                let weights = JointWeights::new(forest, storage, run)?;
                Some(JointState { together, solution: weights.solve(&together.model, None, run)? })
            }
            Posterior::Exact | Posterior::Fast => None,
        };
        Ok(Self { hyper, messages, scales, tails, joint })
    }

    /// A tree's share of the joint mean of a row.
    pub(super) fn joint_mean(
        &self,
        tree_index: usize,
        stops: &[Stop],
        path: &mut SharedPath<PassedStop>,
    ) -> f64 {
        let of = |joint: &JointState| {
            let sums = &joint.solution.sums[tree_index];
            let sum = |node: NodeId| sums[node.index()];
            joint::mean((tree_index, sum), &joint.together.model.hyper, stops, path)
        };
        self.joint.as_ref().map_or(0.0, of)
    }
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

/// The hyperparameters that are given, or those that the rule chooses.
fn choose_hyperparameters<S: Scalar>(
    settings: &RegressionSettings,
    forest: &Forest<NodeMoments>,
    storage: &Storage<S, NodeMoments>,
    run: &Run<'_>,
) -> Result<Chosen> {
    if let Some(hyper) = settings.hyperparameters {
        return Ok(Chosen::alone(hyper));
    }
    let n = forest.n_rows();
    // Every tree's root holds the moments of all targets, each rounded differently; the first is used.
    let tree = &storage.trees[0];
    let moments = tree.arena.root().map(|root| tree.statistics.moments(root)).unwrap_or_default();
    let variance = moments.squares / n.max(1) as f64;
    let mut start = heuristic(moments.mean, variance, n, forest.domain.total_weight());
    let lifetime = forest.settings.lifetime;
    let far = settings.prior_scale.map(|scale| FarPrior {
        variance: scale * scale * (start.clock(f64::INFINITY) + start.noise_variance),
        total_weight: forest.domain.total_weight(),
        lifetime,
    });
    start.noise_variance = settings.noise_variance.unwrap_or(start.noise_variance);
    // Constant targets have no best hyperparameters.
    let flat = moments.squares <= f64::EPSILON * n as f64 * moments.mean * moments.mean || n < 2;
    if settings.posterior == Posterior::Fast || flat {
        return Ok(Chosen::alone(start));
    }
    let fixed = settings.noise_variance.is_some();
    let mut chosen = match settings.rule {
        HyperparameterRule::Heuristic => Chosen::alone(start),
        HyperparameterRule::LeaveOneOut => {
            leave_one_out::maximise(forest, storage, start, far, settings, run)?
        }
        HyperparameterRule::MarginalLikelihood => {
            if !fixed {
                // Half signal and half noise, rather than nearly all signal.
                start.noise_variance = 0.5 * variance;
            }
            Chosen::alone(marginal_likelihood::maximise(&storage.trees, lifetime, start, fixed, run)?)
        }
    };
    if let Some(far) = far {
        chosen.hyper = far.complete(&chosen.hyper);
    }
    Ok(chosen)
}
