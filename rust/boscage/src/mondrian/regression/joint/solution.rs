//! The weights that solve the joint model's equations, and with a trend its coefficients.

use crate::control::Run;
use crate::data::{RowId, Scalar};
use crate::error::Result;
use crate::mondrian::forest::Forest;
use crate::mondrian::forest::storage::Storage;
use crate::mondrian::joint::Trees;
use crate::mondrian::joint::limit::{LimitFunction, LogisticCovariance};
use crate::mondrian::regression::joint::equations::{Equations, Limit, RowCovariance};
use crate::mondrian::regression::joint::tree_sums::{TreeSums, in_lanes};
use crate::mondrian::regression::joint::without_rows::WithoutRows;
use crate::mondrian::regression::joint::{Standard, common_order};
use crate::mondrian::regression::moments::NodeMoments;
use crate::mondrian::regression::settings::RegressionSettings;
use crate::mondrian::regression::trend::posterior::{Coefficients, Given, Linear, Products};
use crate::mondrian::regression::trend::start_line::StartLine;
use crate::mondrian::regression::trend::{Columns, Design, Residuals, dot};

/// Right-hand sides that are solved for at once.
const LANES: usize = 8;

/// The joint model of a forest, which weights are solved for.
pub(crate) struct JointWeights {
    kernel: RowCovariance,
    order: Vec<RowId>,
    targets: Vec<f64>,
    weights: Option<Vec<f64>>,
    /// With a trend: all rows' `z`, and the line from which its coefficients are counted.
    line: Option<(Design, StartLine)>,
}

impl JointWeights {
    /// # Errors
    /// An interrupt.
    pub(crate) fn new<S: Scalar>(
        settings: &RegressionSettings,
        forest: &Forest<NodeMoments>,
        storage: &Storage<S, NodeMoments>,
        run: &Run<'_>,
    ) -> Result<Self> {
        let order = common_order(forest, storage);
        let kernel = match Limit::of(settings, forest, storage, &order) {
            Some(limit) => RowCovariance::Limit(limit),
            None => RowCovariance::Trees(Trees::new(&storage.trees, &order, forest.settings.lifetime, run)?),
        };
        let targets = order.iter().map(|&row| forest.targets[row as usize]).collect();
        let weights = forest.row_targets().weights_of(&order);
        let line = settings.trend.as_ref().filter(|_| !order.is_empty()).map(|trend| {
            let design = Design::new(forest, trend, &order);
            let line = StartLine::new(&design);
            (design, line)
        });
        Ok(Self { kernel, order, targets, weights, line })
    }

    /// What the trend of a solution leaves of the targets, if there is one.
    ///
    /// # Errors
    /// An interrupt.
    pub(crate) fn residuals<S: Scalar>(
        &self,
        solution: &Solution,
        storage: &Storage<S, NodeMoments>,
        run: &Run<'_>,
    ) -> Result<Option<Residuals>> {
        let both = self.line.as_ref().zip(solution.linear.as_ref());
        both.map(|((design, _), linear)| Residuals::new(design, &linear.coefficients, storage, run))
            .transpose()
    }

    /// All rows, in their common order.
    pub(in crate::mondrian::regression) fn rows(&self) -> &[RowId] {
        &self.order
    }

    /// The trees without one row or another, if the covariance is that of trees.
    pub(in crate::mondrian::regression) fn without_rows<'a>(
        &'a self,
        forest: &'a Forest<NodeMoments>,
    ) -> Option<WithoutRows<'a>> {
        match &self.kernel {
            RowCovariance::Trees(trees) => Some(WithoutRows::new(trees, forest, &self.order)),
            RowCovariance::Limit(_) => None,
        }
    }

    /// The equations of a model, which may be solved without each of several rows; `without` is the covariance of the trees
    /// without the row, if it is another one.
    ///
    /// # Errors
    /// An interrupt.
    pub(in crate::mondrian::regression) fn equations<'a>(
        &'a self,
        without: Option<&'a RowCovariance>,
        model: &Standard,
        run: &'a Run<'a>,
    ) -> Result<Equations<'a>> {
        without.unwrap_or(&self.kernel).equations(self.weights.as_deref(), &model.hyper, run)
    }

    /// The mean by the model's equations, without one row if it is given. `given` is for the trend, if there is one.
    ///
    /// # Errors
    /// An interrupt.
    pub(in crate::mondrian::regression) fn solve(
        &self,
        (model, equations): (&Standard, &Equations<'_>),
        given: Given,
        left_out: Option<RowId>,
        run: &Run<'_>,
    ) -> Result<Solution> {
        let left_out = left_out.and_then(|row| self.order.iter().position(|&own| own == row));
        let (weights, trend) = match &self.line {
            None => {
                let targets: Vec<[f64; 1]> = self.targets.iter().map(|&y| [model.target(y)]).collect();
                (equations.weights(&targets, left_out, run)?, None)
            }
            Some(line) => {
                let (weights, trend) = solve_with_trend((equations, left_out), model, line, given, run)?;
                (weights, Some(trend))
            }
        };
        let of_columns = trend.as_ref().map_or(&[][..], |trend| &trend.of_columns);
        let mean = match equations {
            Equations::Trees(joint) => {
                Mean::Trees(TreeSums::new(joint.trees(), &self.order, (&weights, of_columns), run)?)
            }
            Equations::Limit(limit, _) => Mean::Limit(limit.function(&model.hyper, &weights, of_columns)),
        };
        let linear = trend.map(|TrendSolution { columns, pivot, posterior, .. }| {
            Linear::new(columns, &pivot, posterior, model.unit)
        });
        Ok(Solution { mean, linear })
    }
}

/// A trend in the model's units.
struct TrendSolution {
    columns: Columns,
    pivot: Vec<f64>,
    posterior: Coefficients,
    /// Each share of the weights of every column.
    of_columns: Vec<Vec<f64>>,
}

/// Each share of the weights of what a trend leaves of the targets, and the trend.
fn solve_with_trend(
    (equations, left_out): (&Equations<'_>, Option<usize>),
    model: &Standard,
    (design, line): &(Design, StartLine),
    given: Given,
    run: &Run<'_>,
) -> Result<(Vec<[f64; 1]>, TrendSolution)> {
    let (n, width) = (design.order.len(), design.columns.len());
    // Targets are solved for beside the columns: they come first.
    let mut sides = vec![vec![0.0; n]; 1 + width];
    for place in 0..n {
        sides[0][place] = model.difference_of(design.residual(place, &line.coefficients));
        for (side, &z) in sides[1..].iter_mut().zip(design.row(place)) {
            side[place] = z;
        }
    }
    let mut solved: Vec<Vec<f64>> = Vec::with_capacity(sides.len());
    for some in sides.chunks(LANES) {
        solved.extend(match some.len() {
            1 | 2 => weights_of::<2>(equations, some, left_out, run)?,
            3 | 4 => weights_of::<4>(equations, some, left_out, run)?,
            _ => weights_of::<LANES>(equations, some, left_out, run)?,
        });
    }
    let n_shares = equations.n_shares() as f64;
    let product = |i: usize, j: usize| n_shares * dot(&sides[i], &solved[j]);
    let mut pivot: Vec<f64> = line.coefficients.iter().map(|&b| model.difference_of(b)).collect();
    pivot[0] = model.target(line.coefficients[0]);
    let products = Products {
        pivot: &pivot,
        prior: &design.columns.prior(),
        squares: &(0..width * width).map(|k| product(1 + k / width, 1 + k % width)).collect::<Vec<f64>>(),
        with_targets: &(0..width).map(|i| product(1 + i, 0)).collect::<Vec<f64>>(),
        of_targets: product(0, 0),
        n_rows: n,
        weight: (0..n).map(|place| design.weight(place)).sum(),
    };
    let posterior = Coefficients::new(&products, given);
    let of_columns = solved.split_off(1);
    let weight = |place: usize| {
        let of_columns = posterior.beyond_pivot.iter().zip(&of_columns);
        [solved[0][place] - of_columns.map(|(b, solved)| b * solved[place]).sum::<f64>()]
    };
    let weights = (0..n).map(weight).collect();
    Ok((weights, TrendSolution { columns: design.columns.clone(), pivot, posterior, of_columns }))
}

/// The weights of at most `L` right-hand sides.
fn weights_of<const L: usize>(
    equations: &Equations<'_>,
    sides: &[Vec<f64>],
    left_out: Option<usize>,
    run: &Run<'_>,
) -> Result<Vec<Vec<f64>>> {
    let found = equations.weights(&in_lanes::<L>(sides, sides[0].len()), left_out, run)?;
    Ok((0..sides.len()).map(|lane| found.iter().map(|found| found[lane]).collect()).collect())
}

/// The joint model's mean, but for a trend.
#[derive(Debug, Clone)]
pub(crate) enum Mean {
    Trees(TreeSums),
    Limit(LimitFunction<LogisticCovariance>),
}

/// What the joint model has found.
#[derive(Debug, Clone)]
pub(crate) struct Solution {
    pub(crate) mean: Mean,
    pub(crate) linear: Option<Linear>,
}

impl Solution {
    pub(crate) fn by_trees(&self) -> Option<&TreeSums> {
        match &self.mean {
            Mean::Trees(sums) => Some(sums),
            Mean::Limit(_) => None,
        }
    }

    pub(crate) fn limit(&self) -> Option<&LimitFunction<LogisticCovariance>> {
        match &self.mean {
            Mean::Trees(_) => None,
            Mean::Limit(function) => Some(function),
        }
    }
}
