//! The inputs that all kernels of a sweep share.

use std::sync::Arc;

use crate::bart::leaves::normal::LeafPosterior;
use crate::bart::state::feature_order::{FeatureOrder, Weights};
use crate::bayes::prior::{ChipmanPrior, TreePrior};
use crate::control::Control;
use crate::data::sorted::columns::SortedColumns;

/// The prior of trees: `P(split)` (eq. 4.3), its logarithm and that of `P(stop)`, by depth, and the
/// logarithms of the features' weights unless these are equal.
#[derive(Debug, Clone)]
pub(crate) struct Odds {
    prior: ChipmanPrior,
    by_depth: Vec<(f64, (f64, f64))>,
    pub(crate) log_weights: Option<Vec<f64>>,
}

impl Odds {
    pub(crate) fn new(prior: ChipmanPrior) -> Self {
        const DEPTHS: u32 = 64;
        Self { prior, by_depth: (0..DEPTHS).map(|depth| odds(&prior, depth)).collect(), log_weights: None }
    }

    /// Sets the weights of features.
    pub(crate) fn set_log_weights(odds: &mut Arc<Self>, log_weights: &[f64]) {
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

/// Training rows, the prior of trees, the posterior of leaf values, and the control that may stop the chain.
#[derive(Debug)]
pub(crate) struct Context<'a> {
    pub(crate) table: &'a SortedColumns,
    pub(crate) odds: &'a Odds,
    /// Weights of features, unless these are equal.
    pub(crate) weights: Option<Weights<'a>>,
    pub(crate) leaf: LeafPosterior,
    pub(crate) control: &'a Control,
}

impl<'a> Context<'a> {
    pub(crate) fn new(
        (table, odds): (&'a SortedColumns, &'a Odds),
        leaf: LeafPosterior,
        control: &'a Control,
    ) -> Self {
        let weights = table.log_weights(odds.log_weights.as_deref()).map(Weights::new);
        Self { table, odds, weights, leaf, control }
    }

    /// The features in random order, drawn by weight.
    pub(crate) fn feature_order(&self) -> FeatureOrder<'_> {
        FeatureOrder::new(self.table.varying(), self.weights.as_ref())
    }
}
