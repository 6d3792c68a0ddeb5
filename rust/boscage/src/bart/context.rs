//! What the steps of a chain have in common while `sigma` stands.

use std::sync::Arc;

use super::dimension_order::Weights;
use super::leaf::LeafPosterior;
use crate::bayes::{ChipmanPrior, Table, TreePrior};
use crate::control::Control;

/// The prior of trees: `P(split)` (eq. 4.3), its logarithm and that of `P(stop)` by depth, and logarithms of the weights
/// of dimensions where these are not all alike.
#[derive(Debug, Clone)]
pub(super) struct Odds {
    prior: ChipmanPrior,
    by_depth: Vec<(f64, (f64, f64))>,
    pub(super) log_weights: Option<Vec<f64>>,
}

impl Odds {
    pub(super) fn new(prior: ChipmanPrior) -> Self {
        const DEPTHS: u32 = 64;
        Self { prior, by_depth: (0..DEPTHS).map(|depth| odds(&prior, depth)).collect(), log_weights: None }
    }

    /// Gives dimensions other weights from now on.
    pub(super) fn set_log_weights(odds: &mut Arc<Self>, log_weights: &[f64]) {
        Arc::make_mut(odds).log_weights = Some(log_weights.to_vec());
    }

    fn at(&self, depth: u32) -> (f64, (f64, f64)) {
        self.by_depth.get(depth as usize).copied().unwrap_or_else(|| odds(&self.prior, depth))
    }
}

impl TreePrior for Odds {
    fn split_probability(&self, depth: u32) -> f64 {
        self.at(depth).0
    }

    fn log_split_stop(&self, depth: u32) -> (f64, f64) {
        self.at(depth).1
    }

    fn log_weights(&self) -> Option<&[f64]> {
        self.log_weights.as_deref()
    }
}

fn odds(prior: &ChipmanPrior, depth: u32) -> (f64, (f64, f64)) {
    (prior.split_probability(depth), prior.log_split_stop(depth))
}

/// Training rows, the prior of trees, the law of leaves, and who may stop the chain.
#[derive(Debug)]
pub(super) struct Context<'a> {
    pub(super) table: &'a Table,
    pub(super) odds: &'a Odds,
    /// Of dimensions, where these are not all alike.
    pub(super) weights: Option<Weights<'a>>,
    pub(super) leaf: LeafPosterior,
    pub(super) control: &'a Control,
}

impl<'a> Context<'a> {
    pub(super) fn new(
        (table, odds): (&'a Table, &'a Odds),
        leaf: LeafPosterior,
        control: &'a Control,
    ) -> Self {
        Self { table, odds, weights: odds.log_weights.as_deref().map(Weights::new), leaf, control }
    }
}
