//! The function with the covariance of the forest's trees.

use crate::control::Run;
use crate::data::{RowId, Scalar};
use crate::error::Result;
use crate::mondrian::classification::class_counts::ClassCounts;
use crate::mondrian::classification::class_table::ClassTable;
use crate::mondrian::classification::joint::codes::{Codes, common_order};
use crate::mondrian::classification::joint::{NOISE, clock_rate};
use crate::mondrian::forest::Forest;
use crate::mondrian::forest::storage::{Storage, with_storage};
use crate::mondrian::joint::{ColumnMeans, System, Trees};
use crate::mondrian::prediction::clock::Clock;

/// The share of the codes' norm that may remain unexplained.
pub(super) const TOLERANCE: f64 = 1e-4;
/// The share of the norm of a left-out row's covariances that may remain unexplained where values calibrate. The error of
/// second order has a sign, against the row's own class, and is greatest for rows that are predicted badly: rougher solutions
/// would find too small a weight.
pub(super) const ROUGH: f64 = 3e-3;
/// The same where values are predictions, and the share of the norm of the codes without a group.
pub(super) const FINE: f64 = 1e-3;
/// So many rows or more are left out in groups to calibrate, and the share of all rows that one group may be.
const MANY: usize = 1000;
const GROUP: f64 = 0.1;
/// Problems that are solved at the same time.
pub(super) const LANES: usize = 8;

/// A sum of one function for each tree.
#[derive(Debug, Clone)]
pub(in crate::mondrian::classification) struct TreesFunction {
    pub(super) clock: Clock,
    /// All live classes but the last.
    pub(super) n_columns: usize,
    /// For every tree, its share of the function at every node, column by column.
    pub(super) means: Vec<Vec<f32>>,
    /// The solutions `(K + s^2 I)^-1 y_k`, by row in the common order, column by column.
    pub(super) solutions: Vec<f64>,
}

/// The systems of equations of a forest.
pub(super) struct Systems {
    pub(super) clock: Clock,
    trees: Trees,
    pub(super) codes: Codes,
}

impl Systems {
    /// `classes` may have rows that the forest has not.
    pub(super) fn new<S: Scalar>(
        forest: &Forest<ClassCounts>,
        storage: &Storage<S, ClassCounts>,
        classes: &ClassTable,
        run: &Run<'_>,
    ) -> Result<Self> {
        let codes = Codes::new(forest, classes, common_order(forest, storage, classes));
        let trees = Trees::new(&storage.trees, &codes.order, forest.settings.lifetime, run)?;
        Ok(Self { clock: Clock::new(clock_rate(&forest.domain)), trees, codes })
    }

    pub(super) fn system<'a>(&'a self, run: &'a Run<'a>) -> Result<System<'a>> {
        let noise = (NOISE, self.codes.row_weights.as_deref());
        System::new(&self.trees, |time| self.clock.at(time), noise, run)
    }

    /// The solutions for all columns, `n_rows x n_columns`.
    pub(super) fn solutions(&self, tolerance: f64, run: &Run<'_>) -> Result<Vec<f64>> {
        self.system(run)?.weights_of_columns(self.codes.values(), self.codes.n_columns(), tolerance)
    }

    pub(super) fn function(&self, tolerance: f64, run: &Run<'_>) -> Result<TreesFunction> {
        let (n_columns, solutions) = (self.codes.n_columns(), self.solutions(tolerance, run)?);
        let system = self.system(run)?;
        let means = ColumnMeans::new(&system, &solutions, n_columns);
        let means = run.map(system.n_trees(), |tree| Ok(means.of_tree(tree)))?;
        Ok(TreesFunction { clock: self.clock, n_columns, means, solutions })
    }
}

impl TreesFunction {
    /// The function of a forest, and its values for rows that are left out, one after the other or in groups:
    /// `n_rows x n_classes`.
    ///
    /// # Errors
    /// An interrupt.
    pub(super) fn new(
        forest: &Forest<ClassCounts>,
        classes: &ClassTable,
        left_out: &[RowId],
        run: &Run<'_>,
    ) -> Result<(Self, Vec<f64>)> {
        // First the groups, whose forests need memory too.
        let in_groups = forest.n_rows() >= MANY;
        let of_groups = if in_groups { without_groups(forest, classes, left_out, run)? } else { Vec::new() };
        let systems =
            with_storage!(forest.flushed(run)?, storage => Systems::new(forest, storage, classes, run))?;
        let function = systems.function(TOLERANCE, run)?;
        let values = if in_groups {
            of_groups
        } else {
            systems.left_out(forest, left_out, (&function.solutions, ROUGH), run)?
        };
        Ok((function, values))
    }

    /// The function's values for rows of the forest, each without the row.
    ///
    /// # Errors
    /// An interrupt.
    pub(super) fn left_out(
        &self,
        forest: &Forest<ClassCounts>,
        classes: &ClassTable,
        rows: &[RowId],
        run: &Run<'_>,
    ) -> Result<Vec<f64>> {
        let systems =
            with_storage!(forest.flushed(run)?, storage => Systems::new(forest, storage, classes, run))?;
        systems.left_out(forest, rows, (&self.solutions, FINE), run)
    }
}

/// The values for rows of a forest, each of the function of a forest without the rows of its group.
fn without_groups(
    forest: &Forest<ClassCounts>,
    classes: &ClassTable,
    rows: &[RowId],
    run: &Run<'_>,
) -> Result<Vec<f64>> {
    let size = (GROUP * forest.n_rows() as f64) as usize;
    let mut values = Vec::new();
    for group in rows.chunks(size.max(1)) {
        let ids: Vec<u64> = group.iter().map(|&row| forest.row_index.id(row)).collect();
        let features = forest.features_of(group.iter().copied());
        let mut others = forest.clone();
        others.forget(&ids)?;
        let systems =
            with_storage!(others.flushed(run)?, storage => Systems::new(&others, storage, classes, run))?;
        let rows = features.rows(forest.domain.n_features())?;
        values.extend(systems.predict(&others, rows, FINE, run)?);
    }
    Ok(values)
}

#[cfg(test)]
mod tests;
