//! A regressor whose rows are shared out by cell ([`CellShare`]).
//!
//! Belief propagation goes once up and once down each tree, so the messages of subtrees' roots are all that the top of a tree, and
//! other subtrees, need to know of a subtree. After the tops are made, owners do this:
//!
//! 1. All see the moments of all targets. From these and a forest of some rows, which one owner grows, it finds what the rule
//!    chooses (`hyperparameters::choice`).
//! 2. They tell each other their roots' messages under what was chosen (`messages`).
//! 3. For local noise they tell each other sums of sizes of errors (`noise`).
//! 4. They predict (`components`).

mod components;
mod messages;
mod noise;

use crate::error::{Error, Result};
use crate::mondrian::cells::plan::CellPlan;
use crate::mondrian::cells::share::CellShare;
use crate::mondrian::forest::Batch;
use crate::mondrian::regression::regressor::{Regression, check_targets};
use crate::mondrian::regression::settings::{Posterior, RegressionSettings};

/// The cells of one owner of a regressor's cells.
pub type RegressorCells = CellShare<Regression>;

impl CellShare<Regression> {
    /// The rows of an owner's cells; `batch` has those that [`CellPlan::rows_by_owner`] sends to it.
    ///
    /// # Errors
    /// Another posterior than the exact one, which needs all trees in one place; lengths or values that are not as they should be.
    pub fn new(
        plan: CellPlan,
        owner: u32,
        regression: RegressionSettings,
        batch: Batch<'_>,
        targets: &[f64],
    ) -> Result<Self> {
        regression.check()?;
        if regression.posterior != Posterior::Exact {
            let (expected, found) = ("'exact' where cells are shared out", "another".into());
            return Err(Error::InvalidSetting { name: "posterior", expected, found });
        }
        let targets = check_targets(batch.rows.n_rows(), targets)?;
        Self::of_rows(plan, owner, Regression::new(regression), batch, &targets)
    }

    /// The targets of the rows that are here.
    #[must_use]
    pub fn targets(&self) -> Vec<f64> {
        self.model.targets()
    }
}
