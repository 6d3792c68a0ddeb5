//! A sampled posterior over decision trees, whatever its leaves are.

use super::ensemble::{Ensemble, PosteriorTree, Report, Sampler};
use super::leaf::LeafModel;
use super::prior::ChipmanPrior;
use super::table::Table;
use super::target::Target;
use crate::control::Threads;
use crate::data::Rows;
use crate::error::{Error, Result};
use crate::mondrian::Run;

/// What a fitted leaf tells of itself; the leaf models of the crate are classes and numbers.
pub trait Leaf: std::fmt::Debug + Clone + Sync {
    /// Sufficient statistics of a node's rows.
    type Stats: std::fmt::Debug + Clone + Send + Sync;

    /// Number of training rows.
    fn n_rows(stats: &Self::Stats) -> u32;

    /// Adds the numbers of [`PosteriorTree::values`].
    fn values(&self, stats: &Self::Stats, values: &mut Vec<f64>);
}

/// A posterior over decision trees (thesis chapter 3): weighted trees, and what the sampler reports.
#[derive(Debug, Clone)]
pub struct BayesianTrees<L: Leaf> {
    pub(crate) ensemble: Ensemble<L::Stats>,
    pub(crate) prior: ChipmanPrior,
    pub(crate) leaf: L,
    pub(crate) annotation: String,
}

impl<L: Leaf> BayesianTrees<L> {
    /// Samples the posterior; `model` knows the targets of the rows.
    pub(super) fn sample(
        prior: ChipmanPrior,
        leaf: L,
        model: &impl LeafModel<Stats = L::Stats>,
        sampler: &Sampler,
        rows: Rows<'_>,
        run: &Run<'_>,
    ) -> Result<Self> {
        let threads = Threads::new(run.n_threads);
        let ensemble = threads.install(|| {
            let table = Table::new(rows, &threads, run.control)?;
            let target = Target { table: &table, prior: &prior, leaf: model };
            Ensemble::sample(&target, sampler, &threads, run.control)
        })?;
        Ok(Self { ensemble, prior, leaf, annotation: String::new() })
    }

    /// The leaf of every row in every tree, `n_rows x n_trees`, as an index into the tree's nodes.
    ///
    /// # Errors
    /// A number of features other than in `fit`; an interrupt.
    pub fn apply(&self, rows: Rows<'_>, run: &Run<'_>) -> Result<Vec<u32>> {
        self.ensemble.predict(rows, run, self.ensemble.trees.len(), |leaves, out| {
            out.iter_mut().zip(leaves).for_each(|(out, &leaf)| *out = leaf as u32);
        })
    }

    /// Every tree as arrays.
    #[must_use]
    pub fn trees(&self) -> Vec<PosteriorTree> {
        let values = |stats: &L::Stats, values: &mut Vec<f64>| self.leaf.values(stats, values);
        self.ensemble.export(|stats| u64::from(L::n_rows(stats)), values)
    }

    /// Weights of the trees; they sum to one.
    #[must_use]
    pub fn weights(&self) -> &[f64] {
        &self.ensemble.weights
    }

    /// What the sampler reported.
    #[must_use]
    pub fn report(&self) -> &Report {
        &self.ensemble.report
    }

    /// The prior of trees.
    #[must_use]
    pub fn prior(&self) -> ChipmanPrior {
        self.prior
    }

    /// Number of features.
    #[must_use]
    pub fn n_features(&self) -> usize {
        self.ensemble.ranges.len()
    }

    /// Text kept with the model and in its file.
    #[must_use]
    pub fn annotation(&self) -> &str {
        &self.annotation
    }

    /// Sets the text of [`annotation`](Self::annotation).
    pub fn set_annotation(&mut self, text: impl Into<String>) {
        self.annotation = text.into();
    }
}

/// Checks that there is a row, and a target for each.
pub(crate) fn check_lengths(rows: Rows<'_>, n_targets: usize) -> Result<()> {
    if rows.n_rows() == 0 {
        return Err(Error::Empty { n_rows: 0, n_features: rows.n_features() });
    }
    if rows.n_rows() != n_targets {
        let why = "one a row of X";
        return Err(Error::Length { what: "y", found: n_targets, expected: rows.n_rows(), why });
    }
    let max = u32::MAX as usize;
    if rows.n_rows() > max {
        return Err(Error::TooManyRows { max, found: rows.n_rows() });
    }
    Ok(())
}
