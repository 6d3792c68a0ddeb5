//! The posterior that the samplers target.

use crate::bayes::cuts::Extent;
use crate::bayes::leaf::model::ConjugateLeaf;
use crate::bayes::prior::TreePrior;
use crate::data::sorted::columns::SortedColumns;
use crate::math::logs::log_sum_exp;
use crate::random::distributions::draw_by_weight;
use crate::random::keyed::Stream;

/// The root of the trees to be grown: its rows, ascending, and its depth, which is positive in a subtree.
#[derive(Debug, Clone)]
pub(crate) struct SubtreeRoot {
    pub(crate) rows: Vec<u32>,
    pub(crate) depth: u32,
}

impl SubtreeRoot {
    /// The root with all rows of a table.
    pub(crate) fn of_all(table: &SortedColumns) -> Self {
        Self { rows: (0..table.n_rows() as u32).collect(), depth: 0 }
    }
}

/// Training rows, the prior of trees given their features (eq. 3.4), and the leaf model with their targets
/// (eq. 3.1).
#[derive(Debug)]
pub(crate) struct TargetPosterior<'a, L> {
    pub(crate) table: &'a SortedColumns,
    pub(crate) prior: &'a dyn TreePrior,
    pub(crate) leaf: &'a L,
}

impl<L: ConjugateLeaf> TargetPosterior<'_, L> {
    /// `log P(split)` and `log P(stop)` of a node whose rows can be split.
    pub(crate) fn log_split_stop(&self, depth: u32) -> (f64, f64) {
        self.prior.log_split_stop(depth)
    }

    /// Log probabilities of the features of a node that is split, by extent.
    pub(crate) fn log_shares(&self, extents: &[Extent]) -> Vec<f64> {
        self.log_shares_of(extents.iter().map(|extent| extent.feature))
    }

    /// Log probabilities of some features, in a node in which exactly these vary.
    pub(crate) fn log_shares_of(&self, features: impl ExactSizeIterator<Item = u32>) -> Vec<f64> {
        if !self.is_weighted() {
            return vec![-libm::log(features.len() as f64); features.len()];
        }
        let all = self.prior.log_weights();
        let mut own: Vec<f64> = features.map(|feature| self.table.log_weight(feature, all)).collect();
        let total = log_sum_exp(&own);
        for log in &mut own {
            *log -= total;
        }
        own
    }

    /// Whether features have different weights.
    pub(crate) fn is_weighted(&self) -> bool {
        self.table.has_more_columns() || self.prior.log_weights().is_some()
    }

    /// Draws an extent of a node from the prior.
    pub(crate) fn draw_extent(&self, extents: &[Extent], stream: &mut Stream) -> usize {
        self.draw_feature(extents.iter().map(|extent| extent.feature), stream)
    }

    /// Draws the index of a feature from the prior.
    pub(crate) fn draw_feature(
        &self,
        features: impl ExactSizeIterator<Item = u32>,
        stream: &mut Stream,
    ) -> usize {
        if !self.is_weighted() {
            return stream.below(features.len());
        }
        draw_by_weight(&self.log_shares_of(features), 0.0, stream)
    }
}
