//! The posterior that the samplers aim at.

use super::leaf::LeafModel;
use super::prior::TreePrior;
use super::table::Table;

/// Training rows, the prior of trees given their features (eq. 3.4) and the model of their targets (eq. 3.1).
#[derive(Debug)]
pub(crate) struct Target<'a, L> {
    pub(crate) table: &'a Table,
    pub(crate) prior: &'a dyn TreePrior,
    pub(crate) leaf: &'a L,
}

impl<L: LeafModel> Target<'_, L> {
    /// `log P(split)` and `log P(stop)` of a node whose rows can be split.
    pub(crate) fn log_split_stop(&self, depth: u32) -> (f64, f64) {
        let p = self.prior.split_probability(depth);
        (libm::log(p), libm::log1p(-p))
    }
}
