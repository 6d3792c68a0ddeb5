//! What Mondrian forests have in common, whatever the posterior at their nodes.
//!
//! A model is a [`Forest`] (rows, and trees of the keyed process over them) and a [`NodePosterior`] (what the targets say at
//! the nodes of these trees). Rows come and go here, once for all models; a posterior adds how targets are checked and
//! coded, how it predicts, and what its digest depends on. The two models are [`MondrianForest`] with
//! [`Classification`](crate::mondrian::classification::classifier::Classification) and with
//! [`Regression`](crate::mondrian::regression::regressor::Regression).

use std::fmt::Debug;

use crate::control::Run;
use crate::data::{Rows, SparseRow};
use crate::error::Result;
use crate::mondrian::forest::digest::{Hash, RowHashes};
use crate::mondrian::forest::export::{ExportedTree, structures};
use crate::mondrian::forest::settings::{MondrianSettings, Predictive};
use crate::mondrian::forest::{Batch, Forest, digest};
use crate::mondrian::prediction::completions::Completions;
use crate::mondrian::prediction::novelty;
use crate::mondrian::process::categories::Categories;
use crate::mondrian::process::domain::Domain;
use crate::mondrian::process::substitute::Substitute;
use crate::mondrian::tree::statistics::Statistics;

/// A row's target, as the posterior codes it.
pub(crate) type Target<P> = <<P as NodePosterior>::Statistics as Statistics>::Target;

/// The posterior at the nodes of a forest's trees: what a model is besides rows and trees.
pub(crate) trait NodePosterior: Clone + Debug {
    /// What every node of a tree keeps of its rows' targets.
    type Statistics: Statistics;

    /// Over how many completions at most the prediction of a row that lacks values is averaged (`prediction::donors`).
    const COMPLETIONS: usize = 16;

    /// Records inserted rows, given their targets.
    fn rows_came(&mut self, targets: &[Target<Self>]);

    /// Records removed rows, given their targets.
    fn rows_left(&mut self, targets: &[Target<Self>]);

    /// Called before rows are inserted or removed.
    fn before_rows_change(&mut self, _forest: &mut Forest<Self::Statistics>) {}

    /// Called when test rows are placed in another way.
    fn predictive_changed(&mut self, _forest: &Forest<Self::Statistics>) {}

    /// # Errors
    /// [`Error::NotMergeable`](crate::Error::NotMergeable) for posteriors with other settings.
    fn check_mergeable(&self, other: &Self) -> Result<()>;

    /// Codes targets of another shard as this one codes them.
    fn recode(&mut self, _other: &Self, _targets: &mut [Target<Self>]) {}

    /// Computes what follows from all trees together.
    ///
    /// # Errors
    /// An interrupt.
    fn refresh(&self, _forest: &Forest<Self::Statistics>, _run: &Run<'_>) -> Result<()> {
        Ok(())
    }

    /// Whether [`refresh`](Self::refresh) has nothing to do.
    fn is_fresh(&self) -> bool {
        true
    }

    /// Bytes that stand for the kind of posterior and its settings in a digest.
    fn digest_bytes(&self) -> Vec<u8>;

    /// Bytes that stand for a target in a digest.
    fn target_bytes(&self, target: Target<Self>) -> Vec<u8>;
}

/// A Mondrian forest of either kind: a [`MondrianClassifier`](crate::MondrianClassifier) or a
/// [`MondrianRegressor`](crate::MondrianRegressor).
#[derive(Debug, Clone)]
#[expect(private_bounds, reason = "posteriors are this crate's own")]
pub struct MondrianForest<P: NodePosterior> {
    pub(crate) forest: Forest<P::Statistics>,
    pub(crate) posterior: P,
    /// Text that a user wants in the model file; nothing depends on it.
    pub(crate) annotation: String,
}

#[expect(private_bounds, reason = "posteriors are this crate's own")]
impl<P: NodePosterior> MondrianForest<P> {
    /// Draws the trees of some rows whose targets are checked and coded.
    pub(crate) fn draw(
        settings: MondrianSettings,
        posterior: P,
        domain: Domain,
        batch: Batch<'_>,
        targets: &[Target<P>],
        run: &Run<'_>,
    ) -> Result<Self> {
        let forest = Forest::fit(settings, domain, batch, targets, run)?;
        let mut this = Self { forest, posterior, annotation: String::new() };
        this.posterior.rows_came(targets);
        this.refresh(run)?;
        Ok(this)
    }

    /// Adds rows; `code` checks nothing, and codes their targets when nothing can fail any more.
    pub(crate) fn insert(
        &mut self,
        batch: Batch<'_>,
        code: impl FnOnce(&mut P) -> Vec<Target<P>>,
    ) -> Result<()> {
        let Self { forest, posterior, .. } = self;
        posterior.before_rows_change(forest);
        forest.insert(batch, || {
            let targets = code(posterior);
            posterior.rows_came(&targets);
            targets
        })
    }

    /// Applies pending insertions and removals to the trees, and computes what follows from all trees together, such as
    /// hyperparameters. Else the first prediction does it, and takes longer.
    ///
    /// # Errors
    /// An interrupt: some rows may stay pending.
    pub fn flush(&self, run: &Run<'_>) -> Result<()> {
        self.forest.flushed(run)?;
        self.refresh(run)
    }

    /// Computes what follows from all trees together. A share of a forest is told.
    fn refresh(&self, run: &Run<'_>) -> Result<()> {
        if self.is_whole() { self.posterior.refresh(&self.forest, run) } else { Ok(()) }
    }

    fn is_whole(&self) -> bool {
        self.forest.settings.check_whole().is_ok()
    }

    /// Whether there is nothing to [`flush`](Self::flush): trees hold just the forest's rows, with the boxes that
    /// predictions need, and hyperparameters are chosen.
    #[must_use]
    pub fn is_flushed(&self) -> bool {
        (!self.is_whole() || self.posterior.is_fresh()) && self.forest.is_flushed()
    }

    /// How many rows the next flush inserts or removes; all of them if it draws trees anew, because so many rows came or
    /// left or one lies far away, or if it builds boxes.
    #[must_use]
    pub fn n_pending(&self) -> usize {
        self.forest.n_pending()
    }

    /// Removes rows by id: after the next flush the forest is, bit for bit, the one that never saw them.
    ///
    /// # Errors
    /// [`Error::UnknownId`](crate::Error::UnknownId); then nothing has changed.
    pub fn forget(&mut self, ids: &[u64]) -> Result<()> {
        self.posterior.before_rows_change(&mut self.forest);
        let targets = self.forest.forget(ids)?;
        self.posterior.rows_left(&targets);
        Ok(())
    }

    /// Removes all rows but the `n` that arrived last, as [`forget`](Self::forget) does.
    pub fn keep_newest(&mut self, n: usize) {
        self.posterior.before_rows_change(&mut self.forest);
        let targets = self.forest.keep_newest(n);
        self.posterior.rows_left(&targets);
    }

    /// Adds the rows of another shard: the forest of the union, bit for bit.
    ///
    /// # Errors
    /// [`Error::NotMergeable`](crate::Error::NotMergeable) or [`Error::DuplicateId`](crate::Error::DuplicateId): nothing
    /// has changed.
    pub fn merge(&mut self, other: &Self) -> Result<()> {
        self.posterior.check_mergeable(&other.posterior)?;
        self.forest.check_mergeable(&other.forest)?;
        let mut targets = other.forest.targets_by_arrival();
        self.posterior.recode(&other.posterior, &mut targets);
        self.forest.merge(&other.forest, &targets)?;
        self.posterior.rows_came(&targets);
        Ok(())
    }

    /// Says what stands for missing values from now on; with `None` no value may be missing.
    ///
    /// # Errors
    /// As [`Domain::with_substitutes`]; a forest with a row that lacks a value.
    pub fn set_substitutes(&mut self, substitutes: Option<Vec<Substitute>>) -> Result<()> {
        self.forest.set_substitutes(substitutes)
    }

    /// Says what stands for missing values of rows to predict while there are no [substitutes](Domain::substitutes), and until
    /// rows come or leave. The forest stays as it is. Nothing happens if it [is known](Self::takes_missing).
    ///
    /// # Errors
    /// As [`Domain::with_substitutes`].
    pub fn guess_substitutes(&self, substitutes: Vec<Substitute>) -> Result<()> {
        self.forest.guess_substitutes(substitutes)
    }

    /// Whether it is known what stands for missing values of rows to predict.
    #[must_use]
    pub fn takes_missing(&self) -> bool {
        self.forest.domain_to_predict().substitutes().is_some()
    }

    /// Rows in which substitutes stand for missing values; `None` if no value is missing.
    ///
    /// # Errors
    /// As [`Domain::filled`].
    pub fn filled(&self, rows: Rows<'_>) -> Result<Option<Vec<f64>>> {
        self.forest.domain_to_predict().filled(rows)
    }

    /// Rows without missing values, with one or more completions for each row to predict, and where those of each row begin
    /// and all end; `None` if no value is missing. A prediction is the average of those of a row's completions.
    ///
    /// # Errors
    /// As [`Domain::filled`]; an interrupt.
    pub fn completions(&self, rows: Rows<'_>, run: &Run<'_>) -> Result<Option<(Vec<f64>, Vec<usize>)>> {
        let found = Completions::of(&self.forest, rows, P::COMPLETIONS, run)?;
        Ok(found.map(Completions::into_parts))
    }

    /// Sets which features are categories, and where these lie, for rows to come. Rows of the forest stay where they
    /// are: a category that they have must keep its place.
    ///
    /// # Errors
    /// As [`Domain::with_categories`].
    pub fn set_categories(&mut self, categories: Vec<(u32, Categories)>) -> Result<()> {
        self.forest.set_categories(categories)
    }

    /// Sets how test rows are placed. The next flush builds or drops the boxes of splits.
    pub fn set_predictive(&mut self, predictive: Predictive) {
        if self.forest.settings.predictive != predictive {
            self.forest.set_predictive(predictive);
            self.posterior.predictive_changed(&self.forest);
        }
    }

    /// Checks every invariant of the trees.
    ///
    /// # Errors
    /// The first one that does not hold, in words: a bug in this crate.
    pub fn check(&self) -> std::result::Result<(), String> {
        self.forest.check()
    }

    /// How usual rows are: the probability that a tree has not separated a row from all its rows at an exponential time.
    /// It is 1 in the boxes of leaves (of infinite lifetime), and falls to 0 with the distance from them.
    ///
    /// # Errors
    /// A number of features other than in `fit`; an interrupt.
    pub fn score_samples(&self, rows: Rows<'_>, run: &Run<'_>) -> Result<Vec<f64>> {
        novelty::scores(&self.forest, rows, run)
    }

    /// The same for rows of the forest, each scored by the forest without it. The forest is as before.
    ///
    /// # Errors
    /// [`Error::UnknownId`](crate::Error::UnknownId); an interrupt.
    pub fn loo_score_samples(&self, ids: &[u64], run: &Run<'_>) -> Result<Vec<f64>> {
        novelty::left_out_scores(&self.forest, &self.forest.row_index.find(ids)?, run)
    }

    /// Bytes that trees and rows hold.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.forest.bytes()
    }

    /// Number of rows.
    #[must_use]
    pub fn n_rows(&self) -> usize {
        self.forest.n_rows()
    }

    /// Ids of the rows in order of arrival.
    #[must_use]
    pub fn ids(&self) -> Vec<u64> {
        self.forest.ids()
    }

    /// The rows' features, `n_rows x n_features` in order of arrival.
    #[must_use]
    pub fn rows(&self) -> Vec<f64> {
        self.forest.row_index.rows().flat_map(|row| self.forest.row_values(row)).collect()
    }

    /// The rows' features in order of arrival, if they are held as sparse rows.
    #[must_use]
    pub fn sparse_rows(&self) -> Option<Vec<SparseRow>> {
        Some(self.forest.sparse_rows()?.cloned().collect())
    }

    /// The rows' weights in order of arrival; none if all are 1.
    #[must_use]
    pub fn row_weights(&self) -> Option<Vec<f64>> {
        self.forest.weights_by_arrival()
    }

    /// Reference ranges and weights.
    #[must_use]
    pub fn domain(&self) -> &Domain {
        &self.forest.domain
    }

    /// Settings of the trees.
    #[must_use]
    pub fn settings(&self) -> &MondrianSettings {
        &self.forest.settings
    }

    /// Text kept with the model and in its file, such as names of features; empty unless set. Neither
    /// predictions nor the digest depend on it.
    #[must_use]
    pub fn annotation(&self) -> &str {
        &self.annotation
    }

    /// Sets the text of [`annotation`](Self::annotation).
    pub fn set_annotation(&mut self, text: impl Into<String>) {
        self.annotation = text.into();
    }

    /// A hash of settings, rows' contents and trees: equal exactly when two forests predict alike
    /// everywhere and will go on to. Of a share, that of a forest which has no more trees; see
    /// [`digest_of`](Self::digest_of).
    #[must_use]
    pub fn digest(&self) -> String {
        let rows = self.row_hashes();
        self.digest_with(&rows, &digest::tree_hashes(&self.forest, &rows))
    }

    /// Every tree as arrays, without boxes and numbers of the posterior.
    #[must_use]
    pub fn tree_structures(&self) -> Vec<ExportedTree> {
        structures(&self.forest)
    }

    /// The hashes of the trees that are drawn here.
    #[must_use]
    pub fn tree_hashes(&self) -> Vec<[u8; 16]> {
        digest::tree_hashes(&self.forest, &self.row_hashes())
    }

    /// The [`digest`](Self::digest) of the forest that this one is a share of, given the hashes of all of its trees in order.
    #[must_use]
    pub fn digest_of(&self, trees: &[[u8; 16]]) -> String {
        self.digest_with(&self.row_hashes(), trees)
    }

    pub(super) fn row_hashes(&self) -> RowHashes {
        RowHashes::new(&self.forest, |target| self.posterior.target_bytes(target))
    }

    fn digest_with(&self, rows: &RowHashes, trees: &[Hash]) -> String {
        digest::digest(&self.forest, &self.posterior.digest_bytes(), rows, trees)
    }
}

#[cfg(test)]
mod tests;
