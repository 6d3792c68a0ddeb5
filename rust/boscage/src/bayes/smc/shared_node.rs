//! A node of growing trees, shared by the particles that came to it by the same cuts.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::bayes::cuts::{Extent, Gaps, RankCut};
use crate::bayes::smc::row_set::RowSet;
use crate::math::logs::log_sum_exp;

/// The number of a node. The children of a cut have consecutive numbers, of which the left one is even.
pub(crate) type SharedNodeId = u32;

/// A node of a growing tree.
#[derive(Debug)]
pub(crate) struct SharedNode<S> {
    pub(crate) depth: u32,
    pub(crate) n_rows: u32,
    pub(crate) stats: Arc<S>,
    pub(crate) log_likelihood: f64,
    /// The parent and its cut, from which the rows are computed on demand.
    pub(super) parent: SharedNodeId,
    pub(super) cut: RankCut,
    pub(super) rows: Option<RowSet>,
    pub(super) extents: Option<Vec<Extent>>,
    /// The weighted gaps, by extent.
    pub(super) gaps: Vec<Option<Gaps>>,
    /// Weights of stopping and of a split along each extent.
    pub(super) choices: Option<WeightedChoices>,
    /// The left child of each cut that was proposed.
    pub(super) children: BTreeMap<RankCut, SharedNodeId>,
}

/// Weights of the choices at a node: 0 is to stop, 1, 2, ... are to split along one of some extents.
#[derive(Debug)]
pub(crate) struct WeightedChoices {
    cumulative: Vec<f64>,
    log_total: f64,
}

impl WeightedChoices {
    /// Choices with the given logarithms of weights.
    pub(crate) fn new(mut logs: Vec<f64>) -> Self {
        let log_total = log_sum_exp(&logs);
        let mut sum = 0.0;
        for log in &mut logs {
            sum += libm::exp(*log - log_total);
            *log = sum;
        }
        Self { cumulative: logs, log_total }
    }

    /// Logarithm of the sum of all weights.
    pub(crate) fn log_total(&self) -> f64 {
        self.log_total
    }

    /// The choice at which `u` in `[0, 1)` falls in the cumulative weights.
    pub(crate) fn at(&self, u: f64) -> usize {
        let total = self.cumulative.last().expect("stopping is always a choice");
        let i = self.cumulative.partition_point(|sum| *sum <= u * total);
        i.min(self.cumulative.len() - 1)
    }
}

impl<S> SharedNode<S> {
    pub(super) fn new(
        depth: u32,
        n_rows: u32,
        stats: S,
        log_likelihood: f64,
        (parent, cut): (SharedNodeId, RankCut),
    ) -> Self {
        Self {
            depth,
            n_rows,
            stats: Arc::new(stats),
            log_likelihood,
            parent,
            cut,
            rows: None,
            extents: None,
            gaps: Vec::new(),
            choices: None,
            children: BTreeMap::new(),
        }
    }

    /// The node's rows, ascending.
    pub(crate) fn rows(&self) -> impl Iterator<Item = u32> + '_ {
        self.rows.as_ref().expect("an expanded node has its rows").iter()
    }

    /// The rows as a list, to be read more than once.
    pub(super) fn listed_rows(&self) -> Vec<u32> {
        let mut rows = Vec::with_capacity(self.n_rows as usize);
        rows.extend(self.rows());
        rows
    }

    /// The extents of the features that can be cut.
    pub(crate) fn extents(&self) -> &[Extent] {
        self.extents.as_deref().expect("an expanded node has its extents")
    }

    /// The gaps of an extent.
    pub(crate) fn gaps(&self, extent: usize) -> &Gaps {
        self.gaps[extent].as_ref().expect("extents that a proposal needs were weighed before")
    }

    /// Weights of stopping and of splitting along every extent.
    pub(crate) fn choices(&self) -> &WeightedChoices {
        self.choices.as_ref().expect("the optimal proposal weighs all extents before")
    }

    /// The children of a cut that exists already.
    pub(crate) fn children(&self, cut: RankCut) -> (SharedNodeId, SharedNodeId) {
        let left = self.children[&cut];
        (left, left + 1)
    }

    pub(super) fn bytes(&self) -> usize {
        let gaps: usize = self.gaps.iter().flatten().map(Gaps::bytes).sum();
        let rows = self.rows.as_ref().map_or(0, RowSet::bytes);
        rows + gaps + self.gaps.capacity() * size_of::<Option<Gaps>>()
    }

    /// Drops all that was computed except the rows.
    pub(super) fn drop_findings(&mut self) {
        self.extents = None;
        self.gaps = Vec::new();
        self.choices = None;
        self.children = BTreeMap::new();
    }
}
