//! All trees of a forest as one model of the labels, beside the average of their predictions.
//!
//! In the average each tree explains every label by itself. Here the trees do so together. The *code* of
//! class `k` of a row is `y_k = 1[the row is of class k] - pi_k`, where `pi_k` is the class's share of the
//! rows. It is modelled as the sum of one function for each tree, and noise. The sum is a Gaussian process
//! with the covariance `K` of `mondrian::joint`, and
//!
//! `f_k(x) = K(x, .) (K + s^2 I)^-1 y_k`
//!
//! is how much more (or less) class `k` is expected at `x` than anywhere. The sum over classes is 0, so that
//! one system less than there are classes is solved. The average `p` over trees (eq. 5.6) is multiplied by
//! what the trees say together:
//!
//! `p_k(x)^a exp(b f_k(x))`, normalised,
//!
//! where `a` and `b` are those under which rows that are left out are most likely (`calibration`). Least
//! squares on codes is no likelihood of labels; `b` gives `f` the scale of a log likelihood. The noise of a row of weight `w`
//! is `s^2 / w`, and the shares of classes are those of the weights.
//!
//! *The clock* is `v(t) = 1 - exp(-g t)` with `g` = [`RATE`] times the sum of the feature weights: as in the
//! hierarchy of chapter 5, what a node has in common with its ancestors fades exponentially with time (eq.
//! 5.2). `K` is then a Mondrian kernel whose lifetime is an exponential time, and the covariance of a test
//! row with the rows below a stop has a closed form (`prediction::clock`). Far away from all rows a test row
//! branches off at once, so that `f` is 0 there, and the prediction is the prior. A class of few rows has
//! large codes, since its share is small, so that larger classes do not outvote it where its rows are.
//!
//! *Rate and noise are fixed*, since neither matters much. The rate was tried from a half to twice its value,
//! and the noise from a third of [`NOISE`] to three times as much. The log loss of test rows changed by a few
//! percent on letters, DNA, satellite images and gamma rays, and by a tenth on digits: less than the joint
//! model gains.
//!
//! *Rows that are left out.* Removing a row can make leaves of splits, and so changes the covariances of
//! other rows. Let `K'` be the covariance of the other rows in trees without the row, and `k` their
//! covariance with it. The mean of the row gives their values the weights `(K' + s^2 I)^-1 k`: one system for
//! each row serves all classes. Conjugate gradients end with weights `w` that leave `r = k - (K' + s^2 I) w`,
//! and `y` has the mean `w y + r (K' + s^2 I)^-1 y`. The last factor is close to the known weights `a` of all
//! rows, so that `w y + r a` has an error of second order, and a rough solution will do.
//!
//! *In groups.* One system for each left-out row is expensive. With [`MANY`] rows or more, the rows that
//! calibrate are left out together, a tenth of all rows at a time at most: a copy of the forest forgets them,
//! and its function is that of a forest with nearly as many rows. So there is one system for each group instead
//! of one for each row, and the columns of all classes are solved for together (`joint::block`). The solution of
//! the whole forest is a poor start for that without a group: the remaining weights do not sum to nearly 0, and
//! leave a residual greater than the codes. Predictions of left-out rows still take a system each.

mod function;
mod left_out;

use crate::control::Run;
use crate::data::{RowId, Rows, Scalar};
use crate::error::Result;
use crate::mondrian::classification::class_counts::{Class, ClassCounts};
use crate::mondrian::classification::class_table::ClassTable;
use crate::mondrian::forest::Forest;
use crate::mondrian::forest::storage::{Storage, with_storage};
use crate::mondrian::joint::row_order::{in_order, places_in};
use crate::mondrian::joint::{ColumnMeans, System, Trees};
use crate::mondrian::prediction::clock::Clock;

/// The rate of the clock in units of the sum of the feature weights.
const RATE: f64 = 0.05;
/// The variance of the noise; that of a tree's function is 1 in the end.
const NOISE: f64 = 0.1;
/// The share of the codes' norm that may remain unexplained.
const TOLERANCE: f64 = 1e-4;
/// The share of the norm of a left-out row's covariances that may remain unexplained where values calibrate. The error of
/// second order has a sign, against the row's own class, and is greatest for rows that are predicted badly: rougher solutions
/// would find too small a weight.
const ROUGH: f64 = 3e-3;
/// The same where values are predictions, and the share of the norm of the codes without a group.
const FINE: f64 = 1e-3;
/// So many rows or more are left out in groups to calibrate, and the share of all rows that one group may be.
const MANY: usize = 1000;
const GROUP: f64 = 0.1;
/// Problems that are solved at the same time.
const LANES: usize = 8;

/// The function that all trees explain together.
#[derive(Debug, Clone)]
pub(super) struct JointFunction {
    clock: Clock,
    /// All live classes but the last.
    n_columns: usize,
    /// For every tree, its share of the function at every node, column by column.
    means: Vec<Vec<f32>>,
    /// The solutions `(K + s^2 I)^-1 y_k`, by row in the common order, column by column.
    solutions: Vec<f64>,
}

/// The systems of equations of a forest.
struct Systems {
    clock: Clock,
    trees: Trees,
    /// All rows in their common order, and the column of each one's class.
    columns: Vec<usize>,
    /// As how many rows each of them counts, unless all count as one.
    row_weights: Option<Vec<f64>>,
    /// As how many rows those of each class count; some classes may have none.
    class_sizes: Vec<f64>,
    /// The places in the common order, by row.
    places: Vec<u32>,
}

impl Systems {
    /// `classes` may have rows that the forest has not.
    fn new<S: Scalar>(
        forest: &Forest<ClassCounts>,
        storage: &Storage<S, ClassCounts>,
        classes: &ClassTable,
        run: &Run<'_>,
    ) -> Result<Self> {
        let live = classes.live();
        let mut column = vec![0; classes.labels.len()];
        live.iter().enumerate().for_each(|(i, &class)| column[class as usize] = i);
        let by_label = |a: Class, b: Class| column[a as usize].cmp(&column[b as usize]);
        let order = in_order(forest, storage, by_label);
        let columns: Vec<usize> =
            order.iter().map(|&row| column[forest.targets[row as usize] as usize]).collect();
        let row_weights = forest.row_targets().weights_of(&order);
        let mut class_sizes = vec![0.0; live.len()];
        for (place, &column) in columns.iter().enumerate() {
            class_sizes[column] += row_weights.as_ref().map_or(1.0, |weights| weights[place]);
        }
        Ok(Self {
            clock: Clock::new(RATE * forest.domain.total_weight()),
            trees: Trees::new(&storage.trees, &order, forest.settings.lifetime, run)?,
            columns,
            row_weights,
            class_sizes,
            places: places_in(&order),
        })
    }

    fn system<'a>(&'a self, run: &'a Run<'a>) -> Result<System<'a>> {
        System::new(&self.trees, |time| self.clock.at(time), (NOISE, self.row_weights.as_deref()), run)
    }

    /// The codes of all classes but the last, `n_rows x n_columns`, for the rows in their order.
    fn codes(&self) -> Vec<f64> {
        let n: f64 = self.class_sizes.iter().sum();
        let shares = self.class_sizes[..self.n_columns()].iter().map(|size| size / n);
        let of_row = |&column: &usize| {
            let codes = shares.clone().enumerate();
            codes.map(move |(k, share)| f64::from(u8::from(column == k)) - share)
        };
        self.columns.iter().flat_map(of_row).collect()
    }

    /// The solutions for all columns, `n_rows x n_columns`.
    fn solutions(&self, tolerance: f64, run: &Run<'_>) -> Result<Vec<f64>> {
        self.system(run)?.weights_of_columns(self.codes(), self.n_columns(), tolerance)
    }

    fn n_columns(&self) -> usize {
        self.class_sizes.len() - 1
    }

    fn function(&self, tolerance: f64, run: &Run<'_>) -> Result<JointFunction> {
        let (n_columns, solutions) = (self.n_columns(), self.solutions(tolerance, run)?);
        let system = self.system(run)?;
        let means = ColumnMeans::new(&system, &solutions, n_columns);
        let means = run.map(system.n_trees(), |tree| Ok(means.of_tree(tree)))?;
        Ok(JointFunction { clock: self.clock, n_columns, means, solutions })
    }
}

impl JointFunction {
    /// The function of a forest, and its values for rows that are left out, one after the other or in groups:
    /// `n_rows x n_classes`. None if there are no two classes.
    ///
    /// # Errors
    /// An interrupt.
    pub(super) fn new(
        forest: &Forest<ClassCounts>,
        classes: &ClassTable,
        left_out: &[RowId],
        run: &Run<'_>,
    ) -> Result<Option<(Self, Vec<f64>)>> {
        if classes.live().len() < 2 || forest.n_rows() == 0 {
            return Ok(None);
        }
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
        Ok(Some((function, values)))
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
        let features: Vec<f64> = group.iter().flat_map(|&row| forest.row_values(row)).collect();
        let mut others = forest.clone();
        others.forget(&ids)?;
        let systems =
            with_storage!(others.flushed(run)?, storage => Systems::new(&others, storage, classes, run))?;
        let rows = Rows::from_f64_with_missing(&features, forest.domain.n_features())?;
        values.extend(systems.predict(&others, rows, FINE, run)?);
    }
    Ok(values)
}

#[cfg(test)]
mod tests;
