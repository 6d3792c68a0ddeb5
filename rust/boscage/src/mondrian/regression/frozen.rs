//! Regressors without rows: leaves keep the mean and the sum of squares of their targets.

use std::sync::OnceLock;

use crate::control::Run;
use crate::data::{Rows, Scalar};
use crate::error::{Error, Result};
use crate::mondrian::cells::plan::CellPlan;
use crate::mondrian::cells::share::CellShare;
use crate::mondrian::cells::statistics::CellStatistics;
use crate::mondrian::cells::summary::{Words, wrong};
use crate::mondrian::forest::Batch;
use crate::mondrian::forest::storage::with_storage;
use crate::mondrian::frozen::forest::FrozenForest;
use crate::mondrian::frozen::freezer::Freezer;
use crate::mondrian::frozen::posterior::FrozenPosterior;
use crate::mondrian::regression::hierarchy::belief_propagation::{
    Hyperparameters, Message, Messages, Told, UnitClocks,
};
use crate::mondrian::regression::hyperparameters::choice::TargetMoments;
use crate::mondrian::regression::left_out_fit::LeftOutFit;
use crate::mondrian::regression::moments::{Moments, NodeMoments};
use crate::mondrian::regression::predictive::gaussian_mixture::GaussianMixtures;
use crate::mondrian::regression::regressor::Regression;
use crate::mondrian::regression::settings::{Noise, Posterior, RegressionSettings};
use crate::mondrian::regression::state::ForestState;
use crate::mondrian::tree::Tree;
use crate::mondrian::tree::arena::NodeId;

impl FrozenPosterior for Regression {
    fn write_leaf(&self, statistics: &NodeMoments, leaf: NodeId, words: &mut Vec<u64>) {
        let Moments { mean, squares } = statistics.moments(leaf);
        words.extend([mean, squares].map(f64::to_bits));
    }

    fn read_leaf(
        &self,
        statistics: &mut NodeMoments,
        leaf: NodeId,
        _: u32,
        words: &mut Words<'_>,
    ) -> Result<()> {
        let moments = Moments { mean: words.number()?, squares: words.number()? };
        // Squares of great numbers may be infinite.
        if !moments.mean.is_finite() || moments.squares.is_nan() || moments.squares < 0.0 {
            return Err(wrong("a leaf whose mean is not finite, or whose sum of squares is negative"));
        }
        statistics.set_stub(leaf, (moments, 0.0));
        Ok(())
    }

    /// Messages.
    fn complete<S: Scalar>(
        &mut self,
        trees: &[Tree<S, NodeMoments>],
        lifetime: f64,
        run: &Run<'_>,
    ) -> Result<()> {
        let hyper = self.settings.hyperparameters.ok_or_else(|| Error::InvalidSetting {
            name: "hyperparameters",
            expected: "set once all cells have come",
            found: "none".into(),
        })?;
        let messages = run.map(trees.len(), |i| {
            let tree = &trees[i];
            let clocks = UnitClocks::new(tree, lifetime, hyper.gamma2, hyper.delay);
            Ok(Messages::upward(tree, &tree.statistics, &tree.arena.preorder(), &hyper, &clocks))
        })?;
        self.state = OnceLock::from(ForestState {
            hyper,
            messages,
            scales: None,
            tails: None,
            left_out_fit: LeftOutFit::default(),
            joint: None,
        });
        Ok(())
    }

    /// Messages.
    fn bytes_of(&self, n_indices: usize) -> usize {
        n_indices / 2 * (size_of::<Told<f64>>() + size_of::<Message>())
    }
}

/// A regressor without rows. It predicts what a [`MondrianRegressor`](crate::MondrianRegressor) with the exact posterior, given
/// hyperparameters and global noise does whose predictions are realised, bit for bit.
pub type FrozenRegressor = FrozenForest<Regression>;

impl FrozenRegressor {
    /// Mean and variance of the predictive distribution (eq. 6.4, 6.5) of every row.
    ///
    /// # Errors
    /// A number of features other than in the fit; an interrupt.
    pub fn predict(&self, rows: Rows<'_>, run: &Run<'_>) -> Result<(Vec<f64>, Vec<f64>)> {
        self.model.predict(rows, run)
    }

    /// The predictive distribution of every row; see
    /// [`MondrianRegressor::predict_dist`](crate::MondrianRegressor::predict_dist).
    ///
    /// # Errors
    /// A number of features other than in the fit; an interrupt.
    pub fn predict_dist(&self, rows: Rows<'_>, run: &Run<'_>) -> Result<GaussianMixtures> {
        self.model.predict_dist(rows, run)
    }

    /// The hyperparameters in use.
    ///
    /// # Panics
    /// Never: no forest is made without any.
    #[must_use]
    pub fn hyperparameters(&self) -> Hyperparameters {
        self.model.posterior.settings.hyperparameters.expect("no forest is made without any")
    }
}

/// The posterior of a regressor without rows.
///
/// # Errors
/// Hyperparameters out of range.
pub(crate) fn posterior(hyperparameters: Hyperparameters) -> Result<Regression> {
    let settings = settings(Some(hyperparameters));
    settings.check()?;
    Ok(Regression::new(settings))
}

/// While there are no hyperparameters, the rule says nothing.
fn settings(hyperparameters: Option<Hyperparameters>) -> RegressionSettings {
    RegressionSettings {
        posterior: Posterior::Exact,
        noise: Noise::Global,
        hyperparameters,
        ..RegressionSettings::default()
    }
}

/// Grows a [`FrozenRegressor`] from rows that come a group of cells at a time; see
/// [`ClassifierFreezer`](crate::ClassifierFreezer). Its hyperparameters are set once all cells have come.
pub type RegressorFreezer = Freezer<Regression>;

impl RegressorFreezer {
    /// One without cells.
    ///
    /// # Errors
    /// Settings of averaged predictions.
    pub fn new(plan: CellPlan) -> Result<Self> {
        Self::of(plan, Regression::new(settings(None)))
    }

    /// Grows the cells of [`next_cells`](Self::next_cells) from all rows that the plan sends to their owner, and their targets.
    ///
    /// # Errors
    /// Another number of targets than of rows; targets that are not finite; rows that are not of the plan; an interrupt.
    pub fn grow(&mut self, next: CellPlan, rows: Rows<'_>, targets: &[f64], run: &Run<'_>) -> Result<()> {
        let batch = Batch { rows, ids: None, weights: None };
        let share = CellShare::<Regression>::new(next, 0, settings(None), batch, targets)?;
        self.add(share, run)
    }

    /// The moments of all targets, for [`MondrianRegressor::choose_for`](crate::MondrianRegressor::choose_for).
    ///
    /// # Errors
    /// The first tree is not complete.
    pub fn target_moments(&self) -> Result<TargetMoments> {
        let of_first = with_storage!(self.storage(), storage => {
            storage.trees.first().map(|tree| TargetMoments::at_root(tree, &tree.statistics))
        });
        let (expected, why) = (1, "the first one must be complete");
        of_first.ok_or(Error::Length { what: "trees", found: 0, expected, why })
    }

    /// Sets the hyperparameters.
    ///
    /// # Errors
    /// Hyperparameters out of range.
    pub fn set_hyperparameters(&mut self, hyperparameters: Hyperparameters) -> Result<()> {
        *self.posterior_mut() = posterior(hyperparameters)?;
        Ok(())
    }
}
