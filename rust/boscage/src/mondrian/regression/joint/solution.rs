//! The weights that solve the joint model's equations, and with a trend its coefficients.

use crate::control::Run;
use crate::data::{RowId, Scalar};
use crate::error::Result;
use crate::mondrian::forest::Forest;
use crate::mondrian::forest::storage::Storage;
use crate::mondrian::joint::Trees;
use crate::mondrian::joint::limit::LimitFunction;
use crate::mondrian::regression::joint::equations::{Equations, Joint, Limit};
use crate::mondrian::regression::joint::{Standard, common_order};
use crate::mondrian::regression::moments::NodeMoments;
use crate::mondrian::regression::settings::RegressionSettings;
use crate::mondrian::regression::trend::posterior::{Coefficients, Given, Linear, Products};
use crate::mondrian::regression::trend::start_line::StartLine;
use crate::mondrian::regression::trend::{Columns, Design, Residuals, dot};

/// The share of the targets' norm that may remain unexplained when weights are found that predict.
const TOLERANCE: f64 = 1e-10;
/// Right-hand sides that are solved for at once.
const LANES: usize = 8;

/// The joint model of a forest, which weights are solved for.
pub(crate) struct JointWeights {
    trees: Trees,
    limit: Option<Limit>,
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
        let trees = Trees::new(&storage.trees, &order, forest.settings.lifetime, run)?;
        let targets = order.iter().map(|&row| forest.targets[row as usize]).collect();
        let weights = forest.row_targets().weights_of(&order);
        let line = settings.trend.as_ref().filter(|_| !order.is_empty()).map(|trend| {
            let design = Design::new(forest, trend, &order);
            let line = StartLine::new(&design);
            (design, line)
        });
        let limit = Limit::of(settings, forest, storage, &order);
        Ok(Self { trees, limit, order, targets, weights, line })
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

    /// The weights and sums that determine means, without one row if it is given. `given` is for the trend, if there is one.
    ///
    /// # Errors
    /// An interrupt.
    pub(crate) fn solve(
        &self,
        model: &Standard,
        given: Given,
        left_out: Option<RowId>,
        run: &Run<'_>,
    ) -> Result<Solution> {
        let without = |place: usize, _| Some(self.order[place]) == left_out;
        let weights = self.weights.as_deref();
        let equations = match &self.limit {
            None => Equations::Trees(Joint::new(&self.trees, weights, model.hyper, run)?),
            Some(limit) => Equations::Limit(limit.system(weights, &model.hyper, run)?),
        };
        let (weights, trend) = match &self.line {
            None => {
                let targets: Vec<[f64; 1]> = self.targets.iter().map(|&y| [model.target(y)]).collect();
                (equations.weights(&targets, without, TOLERANCE)?, None)
            }
            Some(line) => {
                let (weights, trend) = solve_with_trend(&equations, model, line, given, without)?;
                (weights, Some(trend))
            }
        };
        let of_columns = trend.as_ref().map_or(&[][..], |trend| &trend.of_columns);
        let (weights, limit, of_trees) = match &self.limit {
            Some(limit) => {
                let share = 1.0 / self.trees.len() as f64;
                let shares: Vec<[f64; 1]> = weights.iter().map(|[weight]| [share * weight]).collect();
                let function = limit.function(&model.hyper, weights.concat(), of_columns);
                (shares, Some(function), TreeColumns::default())
            }
            None => (weights, None, TreeColumns::new(&self.trees, &self.order, of_columns, run)?),
        };
        let sums = self.trees.sums(&weights, run)?.into_iter().map(|tree| tree.concat()).collect();
        let weights = by_row(&self.order, 1, weights.as_flattened());
        let linear = trend.map(|Trend { columns, pivot, posterior, .. }| {
            Linear::new(columns, &pivot, posterior, model.unit, of_trees)
        });
        Ok(Solution { weights, sums, linear, limit })
    }
}

/// A trend in the model's units.
struct Trend {
    columns: Columns,
    pivot: Vec<f64>,
    posterior: Coefficients,
    /// Each share of the weights of every column.
    of_columns: Vec<Vec<f64>>,
}

/// Each share of the weights of what a trend leaves of the targets, and the trend.
fn solve_with_trend(
    equations: &Equations<'_>,
    model: &Standard,
    (design, line): &(Design, StartLine),
    given: Given,
    without: impl Fn(usize, usize) -> bool + Copy,
) -> Result<(Vec<[f64; 1]>, Trend)> {
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
            1 | 2 => weights_of::<2>(equations, some, without)?,
            3 | 4 => weights_of::<4>(equations, some, without)?,
            _ => weights_of::<LANES>(equations, some, without)?,
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
    Ok((weights, Trend { columns: design.columns.clone(), pivot, posterior, of_columns }))
}

/// Each tree's share of the weights of a trend's columns, and its sums.
#[derive(Debug, Clone, Default)]
pub(crate) struct TreeColumns {
    /// Row after row.
    pub(crate) weights: Vec<f32>,
    /// By tree, node after node.
    pub(crate) sums: Vec<Vec<f32>>,
}

impl TreeColumns {
    /// # Errors
    /// An interrupt.
    fn new(trees: &Trees, order: &[RowId], columns: &[Vec<f64>], run: &Run<'_>) -> Result<Self> {
        let (n, width) = (order.len(), columns.len());
        if width == 0 {
            return Ok(Self::default());
        }
        let mut weights = vec![0f32; n * width];
        let mut sums: Vec<Vec<f32>> = Vec::new();
        for (first, some) in columns.chunks(LANES).enumerate() {
            let first = first * LANES;
            let each = in_lanes::<LANES>(some, n);
            let found = trees.sums(&each, run)?;
            sums.resize(found.len(), Vec::new());
            for (sums, found) in sums.iter_mut().zip(&found) {
                sums.resize(found.len() * width, 0.0);
                for (node, found) in found.iter().enumerate() {
                    for (lane, &sum) in found.iter().enumerate().take(some.len()) {
                        sums[node * width + first + lane] = sum as f32;
                    }
                }
            }
            for (place, each) in each.iter().enumerate() {
                for (lane, &weight) in each.iter().enumerate().take(some.len()) {
                    weights[place * width + first + lane] = weight as f32;
                }
            }
        }
        Ok(Self { weights: by_row(order, width, &weights), sums })
    }
}

/// The weights of at most `L` right-hand sides.
fn weights_of<const L: usize>(
    equations: &Equations<'_>,
    sides: &[Vec<f64>],
    without: impl Fn(usize, usize) -> bool,
) -> Result<Vec<Vec<f64>>> {
    let found = equations.weights(&in_lanes::<L>(sides, sides[0].len()), without, TOLERANCE)?;
    Ok((0..sides.len()).map(|lane| found.iter().map(|found| found[lane]).collect()).collect())
}

/// At most `L` vectors side by side, with zeros for those that are lacking.
fn in_lanes<const L: usize>(vectors: &[Vec<f64>], n: usize) -> Vec<[f64; L]> {
    (0..n)
        .map(|place| std::array::from_fn(|lane| vectors.get(lane).map_or(0.0, |vector| vector[place])))
        .collect()
}

/// Some numbers for each row, which are given in an order of the rows.
fn by_row<T: Copy + Default>(order: &[RowId], width: usize, in_order: &[T]) -> Vec<T> {
    let mut by_row = vec![T::default(); width * order.iter().max().map_or(0, |&row| row as usize + 1)];
    for (&row, own) in order.iter().zip(in_order.chunks_exact(width)) {
        by_row[width * row as usize..][..width].copy_from_slice(own);
    }
    by_row
}

/// Each tree's share of the rows' weights, and their sums by tree and node.
#[derive(Debug, Clone)]
pub(crate) struct Solution {
    pub(crate) weights: Vec<f64>,
    pub(crate) sums: Vec<Vec<f64>>,
    pub(crate) linear: Option<Linear>,
    /// The mean as a function, where the covariance is that of infinitely many trees: then a tree's share is that of a
    /// sample of them.
    pub(crate) limit: Option<LimitFunction>,
}
