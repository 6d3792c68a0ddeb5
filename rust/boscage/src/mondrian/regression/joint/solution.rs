//! The weights that solve the joint model's equations, and with a trend its coefficients.

use std::sync::Arc;

use crate::control::Run;
use crate::data::{RowId, Scalar};
use crate::error::Result;
use crate::mondrian::forest::Forest;
use crate::mondrian::forest::storage::Storage;
use crate::mondrian::joint::Trees;
use crate::mondrian::joint::kernel::KernelRule;
use crate::mondrian::joint::limit::{LimitFunction, LogisticCovariance};
use crate::mondrian::regression::joint::equations::{Equations, RowCovariance, RowEquations};
use crate::mondrian::regression::joint::landmarks::{LandmarkFactors, LandmarkModel};
use crate::mondrian::regression::joint::limit::Limit;
use crate::mondrian::regression::joint::tree_sums::TreeSums;
use crate::mondrian::regression::joint::without_rows::WithoutRows;
use crate::mondrian::regression::joint::{Solved, Standard, common_order};
use crate::mondrian::regression::moments::NodeMoments;
use crate::mondrian::regression::settings::RegressionSettings;
use crate::mondrian::regression::trend::posterior::{Coefficients, Given, Linear, Products};
use crate::mondrian::regression::trend::start_line::StartLine;
use crate::mondrian::regression::trend::{Columns, Design, Residuals};

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
    /// `is_limit` says whether the model was chosen as that of infinitely many trees, where settings leave this open; with the
    /// factors of its equations, if they are known.
    ///
    /// # Errors
    /// An interrupt.
    pub(crate) fn new<S: Scalar>(
        settings: &RegressionSettings,
        (is_limit, factors): (bool, Option<Arc<LandmarkFactors>>),
        forest: &Forest<NodeMoments>,
        storage: &Storage<S, NodeMoments>,
        run: &Run<'_>,
    ) -> Result<Self> {
        let order = common_order(forest, storage);
        let limit = || Limit::new(forest, storage, &order);
        let kernel = match settings.kernel_rule(&forest.settings, order.len()) {
            KernelRule::Limit => RowCovariance::Limit(limit()),
            KernelRule::LeftOut if is_limit => {
                let model = LandmarkModel::new(limit(), forest, storage, &order);
                RowCovariance::Landmarks(model.knowing(factors))
            }
            KernelRule::LeftOut | KernelRule::Trees => {
                RowCovariance::Trees(Trees::new(&storage.trees, &order, forest.settings.lifetime, run)?)
            }
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
    pub(crate) fn residuals(&self, solution: &Solution) -> Option<Residuals> {
        let both = self.line.as_ref().zip(solution.linear.as_ref());
        both.map(|((design, _), linear)| Residuals::new(design, &linear.coefficients))
    }

    /// All rows, in their common order.
    pub(in crate::mondrian::regression) fn rows(&self) -> &[RowId] {
        &self.order
    }

    /// The covariance without one row or another.
    pub(in crate::mondrian::regression) fn without_rows<'a>(
        &'a self,
        forest: &'a Forest<NodeMoments>,
    ) -> WithoutRows<'a> {
        WithoutRows::new(&self.kernel, forest, &self.order)
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
                let targets = self.targets.iter().map(|&y| model.target(y)).collect();
                (equations.solve(&[targets], left_out, run)?.weights.remove(0), None)
            }
            Some(line) => {
                let (weights, trend) = solve_with_trend((equations, left_out), model, line, given, run)?;
                (weights, Some(trend))
            }
        };
        let of_columns = trend.as_ref().map_or(&[][..], |trend| &trend.of_columns);
        let mean = match equations {
            Equations::Rows(RowEquations::Trees(joint)) => {
                Mean::Trees(TreeSums::new(joint.trees(), &self.order, (&weights, of_columns), run)?)
            }
            Equations::Rows(RowEquations::Limit(limit)) => Mean::Limit(limit.function(&weights, of_columns)),
            Equations::Landmarks(landmarks) => Mean::Limit(landmarks.function(&weights, of_columns)),
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
) -> Result<(Vec<f64>, TrendSolution)> {
    let (n, width) = (design.order.len(), design.columns.len());
    // Targets are solved for beside the columns: they come first.
    let mut sides = vec![vec![0.0; n]; 1 + width];
    for place in 0..n {
        sides[0][place] = model.difference_of(design.residual(place, &line.coefficients));
        for (side, &z) in sides[1..].iter_mut().zip(design.row(place)) {
            side[place] = z;
        }
    }
    let Solved { weights: mut solved, products } = equations.solve(&sides, left_out, run)?;
    let product = |i: usize, j: usize| products[i * sides.len() + j];
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
    let weight = |(i, of_targets): (usize, &f64)| {
        let of_columns = posterior.beyond_pivot.iter().zip(&of_columns);
        of_targets - of_columns.map(|(b, solved)| b * solved[i]).sum::<f64>()
    };
    let weights = solved[0].iter().enumerate().map(weight).collect();
    Ok((weights, TrendSolution { columns: design.columns.clone(), pivot, posterior, of_columns }))
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
