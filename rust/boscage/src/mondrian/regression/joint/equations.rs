//! The equations of the joint model, with the covariance of some trees or that of infinitely many.

use crate::control::Run;
use crate::error::Result;
use crate::mondrian::joint::limit::{LimitFactor, LimitFunction, LogisticCovariance};
use crate::mondrian::joint::{System, Trees};
use crate::mondrian::prediction::stop::Stop;
use crate::mondrian::regression::hierarchy::belief_propagation::Hyperparameters;
use crate::mondrian::regression::hierarchy::branch_time;
use crate::mondrian::regression::joint::Solved;
use crate::mondrian::regression::joint::landmarks::{LandmarkEquations, LandmarkModel};
use crate::mondrian::regression::joint::limit::{Limit, noise_of};
use crate::mondrian::regression::joint::tree_sums::in_lanes;
use crate::mondrian::regression::trend::dot;
use crate::mondrian::tree::arena::NodeId;

/// Right-hand sides that are solved for at once.
const LANES: usize = 8;

/// The share of the targets' norm that may remain unexplained when weights of trees are found that predict.
const TOLERANCE: f64 = 1e-10;

/// The model of some trees with its hyperparameters, of targets whose mean is 0.
pub(crate) struct Joint<'a> {
    hyper: Hyperparameters,
    pub(crate) system: System<'a>,
}

impl<'a> Joint<'a> {
    /// # Errors
    /// An interrupt.
    pub(crate) fn new(
        trees: &'a Trees,
        weights: Option<&[f64]>,
        hyper: Hyperparameters,
        run: &'a Run<'a>,
    ) -> Result<Self> {
        let system = System::new(trees, |time| hyper.clock(time), (noise_of(&hyper), weights), run)?;
        Ok(Self { hyper, system })
    }

    /// The trees of the system.
    pub(super) fn trees(&self) -> &'a Trees {
        self.system.trees()
    }

    /// A tree's share of the mean of a row that it holds with weight 0, `path` leading to its leaf;
    /// `branch` is where the row branches off from the leaf's other rows.
    pub(crate) fn left_out(
        &self,
        tree: usize,
        sum: impl Fn(NodeId) -> f64,
        path: &[NodeId],
        branch: Option<&Stop>,
    ) -> f64 {
        let whole: f64 = path.iter().map(|&node| self.system.span(tree, node) * sum(node)).sum();
        match (branch, path.last()) {
            (Some(stop), Some(&leaf)) => {
                let span = self.system.span(tree, leaf);
                let Hyperparameters { gamma1, gamma2, delay, .. } = self.hyper;
                let probability = branch_time::branch_probability(stop);
                let gain = gamma1 * branch_time::expected_clock(stop, gamma2, delay, probability)
                    - self.hyper.clock(stop.after);
                whole - (span - branch_time::expected_span(probability, span, gain)) * sum(leaf)
            }
            _ => whole,
        }
    }
}

/// The covariance, but for its hyperparameters.
pub(crate) enum RowCovariance {
    Trees(Trees),
    Limit(Limit),
    /// That of infinitely many trees, for many rows.
    Landmarks(LandmarkModel),
}

impl RowCovariance {
    /// # Errors
    /// An interrupt.
    pub(super) fn equations<'a>(
        &'a self,
        weights: Option<&'a [f64]>,
        hyper: &Hyperparameters,
        run: &'a Run<'a>,
    ) -> Result<Equations<'a>> {
        let of_rows = match self {
            Self::Landmarks(model) => return model.equations(weights, hyper, run).map(Equations::Landmarks),
            Self::Trees(trees) => RowEquations::Trees(Joint::new(trees, weights, *hyper, run)?),
            Self::Limit(limit) => {
                let factor = limit.factor(weights, hyper, run)?;
                RowEquations::Limit(LimitEquations { limit, hyper: *hyper, factor })
            }
        };
        Ok(Equations::Rows(of_rows))
    }
}

/// The equations that are solved: for the weights of rows or of landmarks.
pub(in crate::mondrian::regression) enum Equations<'a> {
    Rows(RowEquations<'a>),
    Landmarks(LandmarkEquations<'a>),
}

impl Equations<'_> {
    /// The solution for several values of each row, without the row at a place if it is given.
    ///
    /// # Errors
    /// An interrupt.
    pub(super) fn solve(&self, sides: &[Vec<f64>], left_out: Option<usize>, run: &Run<'_>) -> Result<Solved> {
        match self {
            Self::Rows(equations) => equations.solve(sides, left_out, run),
            Self::Landmarks(equations) => equations.solve(sides, left_out, run),
        }
    }
}

/// Those for weights of the rows: of trees by conjugate gradients, of the limit by a factor. The factor takes less time than the
/// hundreds of products that weights as exact would, and then any row can be left out.
pub(in crate::mondrian::regression) enum RowEquations<'a> {
    Trees(Joint<'a>),
    Limit(LimitEquations<'a>),
}

/// Those of the limit.
pub(in crate::mondrian::regression) struct LimitEquations<'a> {
    limit: &'a Limit,
    hyper: Hyperparameters,
    factor: LimitFactor,
}

impl LimitEquations<'_> {
    /// The mean, given the rows' weights, and then the sums of columns of the same rows.
    pub(super) fn function(
        &self,
        weights: &[f64],
        columns: &[Vec<f64>],
    ) -> LimitFunction<LogisticCovariance> {
        LimitFunction::of_columns(
            self.limit.rows().clone(),
            self.limit.covariance(&self.hyper),
            weights,
            columns,
        )
    }
}

impl RowEquations<'_> {
    fn solve(&self, sides: &[Vec<f64>], left_out: Option<usize>, run: &Run<'_>) -> Result<Solved> {
        let mut weights: Vec<Vec<f64>> = Vec::with_capacity(sides.len());
        for some in sides.chunks(LANES) {
            weights.extend(match (sides.len(), some.len()) {
                (1, _) => self.weights::<1>(some, left_out, run)?,
                (_, 1 | 2) => self.weights::<2>(some, left_out, run)?,
                (_, 3 | 4) => self.weights::<4>(some, left_out, run)?,
                _ => self.weights::<LANES>(some, left_out, run)?,
            });
        }
        let n_shares = match self {
            Self::Trees(joint) => joint.system.n_trees() as f64,
            Self::Limit(_) => 1.0,
        };
        let n = sides.len();
        let products = (0..n * n).map(|k| n_shares * dot(&sides[k / n], &weights[k % n])).collect();
        Ok(Solved { weights, products })
    }

    /// Each share of the rows' weights for at most `L` sides.
    fn weights<const L: usize>(
        &self,
        sides: &[Vec<f64>],
        left_out: Option<usize>,
        run: &Run<'_>,
    ) -> Result<Vec<Vec<f64>>> {
        let targets = in_lanes::<L>(sides, sides[0].len());
        let found = match self {
            Self::Trees(joint) => {
                let solved = joint.system.weights(&targets, |place, _| Some(place) == left_out, TOLERANCE)?;
                run.control.leave_unexplained(solved.unexplained);
                solved.weights
            }
            Self::Limit(limit) => limit.factor.weights_without(&targets, left_out, run)?,
        };
        Ok((0..sides.len()).map(|lane| found.iter().map(|found| found[lane]).collect()).collect())
    }
}
