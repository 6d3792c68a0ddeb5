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
//! *Infinitely many trees.* With few rows (`joint_kernel`), the covariance is that of infinitely many trees
//! (`mondrian::joint::limit`): `k(d) = g / (g + d) (1 - exp(-(g + d) lifetime))`, where `d` is the sum over features of rate times
//! difference. A Cholesky factor of its matrix serves all classes, and left-out rows in closed form. Its rate and noise
//! are others (`limit`). With more rows, some of them represent all (`landmarks`), unless there is little noise, or the rows
//! that calibrate are more likely with the trees' own covariance, which what follows is about.
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

mod by_trees;
mod codes;
mod function;
mod landmarks;
mod left_out;
mod limit;

use crate::control::Run;
use crate::data::{RowId, Rows};
use crate::error::Result;
use crate::mondrian::classification::class_counts::ClassCounts;
use crate::mondrian::classification::class_table::ClassTable;
use crate::mondrian::forest::Forest;
use crate::mondrian::forest::storage::with_storage;
use crate::mondrian::joint::kernel::{KernelRule, LANDMARKS};
use crate::mondrian::joint::limit::{ExponentialCovariance, LimitFunction};
use crate::mondrian::process::domain::Domain;
use codes::of_all_classes;
use landmarks::LandmarkEquations;
use limit::LimitEquations;

pub(super) use by_trees::TreesFunction;

/// The rate of the clock in units of the sum of the feature weights.
const RATE: f64 = 0.05;
/// The variance of the noise; that of a tree's function is 1 in the end.
const NOISE: f64 = 0.1;

fn clock_rate(domain: &Domain) -> f64 {
    RATE * domain.total_weight()
}

/// The function that all trees explain together.
#[derive(Debug, Clone)]
pub(super) enum JointFunction {
    Trees(TreesFunction),
    Limit {
        function: LimitFunction<ExponentialCovariance>,
        /// The variance of the noise, which is that of rows that are left out, too.
        noise: f64,
        /// Whether its rows are landmarks.
        by_landmarks: bool,
    },
}

impl JointFunction {
    /// The functions of a forest that a rule may choose, each with its values for rows that are predicted by others: `n_rows x
    /// n_classes`. Empty if there are no two classes.
    ///
    /// # Errors
    /// An interrupt.
    pub(super) fn candidates(
        forest: &Forest<ClassCounts>,
        classes: &ClassTable,
        rule: KernelRule,
        left_out: &[RowId],
        run: &Run<'_>,
    ) -> Result<Vec<(Self, Vec<f64>)>> {
        if classes.live().len() < 2 || forest.n_rows() == 0 {
            return Ok(Vec::new());
        }
        let by_trees = || -> Result<(Self, Vec<f64>)> {
            let (function, values) = TreesFunction::new(forest, classes, left_out, run)?;
            Ok((Self::Trees(function), values))
        };
        let mut candidates = Vec::new();
        match rule {
            KernelRule::Trees => candidates.push(by_trees()?),
            KernelRule::Limit => {
                let equations = limit_equations(forest, classes, None, run)?;
                let (values, noise) = (equations.left_out(left_out, run)?, equations.noise);
                let function = equations.function();
                candidates.push((Self::Limit { function, noise, by_landmarks: false }, values));
            }
            KernelRule::LeftOut => {
                candidates.push(by_trees()?);
                let on_trial = with_storage!(forest.flushed(run)?, storage => {
                    LandmarkEquations::on_trial(forest, storage, classes, LANDMARKS, run)?
                });
                if let Some(equations) = on_trial {
                    let values = equations.nearly_left_out(left_out, run)?;
                    let (function, noise) = (equations.function(run)?, equations.noise);
                    candidates.push((Self::Limit { function, noise, by_landmarks: true }, values));
                }
            }
        }
        Ok(candidates)
    }

    /// The values for test rows without missing values, `n_rows x n_classes`.
    ///
    /// # Errors
    /// A number of features other than in `fit`; an interrupt.
    pub(super) fn predict(
        &self,
        forest: &Forest<ClassCounts>,
        rows: Rows<'_>,
        run: &Run<'_>,
    ) -> Result<Vec<f64>> {
        match self {
            Self::Trees(function) => function.predict(forest, rows, run),
            Self::Limit { function, .. } => {
                let values = function.at_rows(&forest.domain, rows, run)?;
                Ok(of_all_classes(&values, function.n_columns()).collect())
            }
        }
    }

    /// The values for rows of the forest, each without the row.
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
        match self {
            Self::Trees(function) => function.left_out(forest, classes, rows, run),
            Self::Limit { noise, by_landmarks: false, .. } => {
                limit_equations(forest, classes, Some(*noise), run)?.left_out(rows, run)
            }
            Self::Limit { noise, by_landmarks: true, .. } => {
                let known = (LANDMARKS, *noise);
                let equations = with_storage!(forest.flushed(run)?, storage => {
                    LandmarkEquations::new(forest, storage, classes, known, run)?
                });
                equations.left_out(rows, run)
            }
        }
    }
}

fn limit_equations(
    forest: &Forest<ClassCounts>,
    classes: &ClassTable,
    noise: Option<f64>,
    run: &Run<'_>,
) -> Result<LimitEquations> {
    with_storage!(forest.flushed(run)?, storage => LimitEquations::new(forest, storage, classes, noise, run))
}
