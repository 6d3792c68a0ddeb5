//! The joint model, judged by rows that are left out in parts.

use crate::data::{RowId, Scalar};
use crate::error::Result;
use crate::mondrian::joint::Trees;
use crate::mondrian::regression::hierarchy::belief_propagation::Hyperparameters;
use crate::mondrian::regression::hyperparameters::left_out_rows::LeftOutRow;
use crate::mondrian::regression::hyperparameters::search::climb;
use crate::mondrian::regression::hyperparameters::trial::{PARTS, Trial};
use crate::mondrian::regression::joint::Standard;
use crate::mondrian::regression::joint::equations::{Joint, Limit};
use crate::mondrian::regression::settings::RegressionSettings;
use crate::mondrian::regression::trend::Design;
use crate::mondrian::regression::trend::start_line::StartLine;
use crate::mondrian::tree::arena::NodeId;

/// Trees (at most) for which its hyperparameters are sought.
const FEW_TREES: usize = 16;
/// With the covariance of infinitely many trees, rows (about) for which they are sought, the chosen ones among them: the time
/// grows with the square of their number.
const FEW_ROWS: usize = 2000;
/// Accuracy of its weights.
const TOLERANCE: f64 = 1e-2;

/// While hyperparameters are sought, targets are rounded to this, in the joint model's units. Equations that are
/// solved to a hundredth amplify the last bits of targets, which differ where targets are shifted and scaled.
const GRID: f64 = 1.0 / 65536.0;

/// Rows in their common order, with all that is known of them.
struct Observations {
    rows: Vec<RowId>,
    /// In the model's units: by part, or the same for all of them.
    targets: Vec<Vec<f64>>,
    weights: Option<Vec<f64>>,
}

impl Observations {
    /// Only those at some places.
    fn at(&self, places: &[usize]) -> Self {
        let of = |all: &Vec<f64>| places.iter().map(|&place| all[place]).collect();
        Self {
            rows: places.iter().map(|&place| self.rows[place]).collect(),
            targets: self.targets.iter().map(of).collect(),
            weights: self.weights.as_ref().map(of),
        }
    }
}

/// The covariance under which rows are predicted, but for its hyperparameters.
#[derive(Clone, Copy)]
enum Kernel<'a> {
    Trees(&'a Trees),
    Limit(&'a Limit),
}

impl<S: Scalar> Trial<'_, S> {
    /// The joint model, and its error for every chosen row. Rows are left out in parts.
    ///
    /// With the covariance of the forest's trees, the hyperparameters are those with the least squared error under some of the
    /// trees; with that of infinitely many trees, those with the least absolute error, on which few rows weigh less.
    pub(super) fn joint(
        &self,
        standard: Standard,
        line: Option<(&Design, &StartLine)>,
        settings: &RegressionSettings,
        at: impl Fn([i32; 2]) -> Hyperparameters,
    ) -> Result<(Standard, Vec<f64>)> {
        let all = self.observations(standard, line);
        let climb = |evaluate: &dyn Fn(Hyperparameters) -> Result<f64>| {
            let evaluate = |point: [i32; 2]| {
                let hyper = at(point);
                Ok((evaluate(hyper)?, hyper))
            };
            Ok(climb([0, 0], &[[0, 1], [0, -1], [-1, 0], [1, 0]], evaluate)?.1)
        };
        let (hyper, errors) = match self.limit(settings, &all) {
            Some(limit) => {
                let some = all.at(&self.few_places());
                let few = self.limit(settings, &some).expect("fewer rows have a limit, too");
                let hyper = climb(&|hyper| {
                    let errors = self.errors(Kernel::Limit(&few), &some, hyper)?;
                    Ok(-self.mean(&errors, f64::abs).ln())
                })?;
                (hyper, self.errors(Kernel::Limit(&limit), &all, hyper)?)
            }
            None => {
                let lifetime = self.forest.settings.lifetime;
                let trees = |n: usize| Trees::new(&self.trees[..n], &self.order, lifetime, self.run);
                let few = trees(self.trees.len().min(FEW_TREES))?;
                let hyper = climb(&|hyper| {
                    let errors = self.errors(Kernel::Trees(&few), &all, hyper)?;
                    Ok(-0.5 * self.mean(&errors, |error| error * error).ln())
                })?;
                drop(few);
                (hyper, self.errors(Kernel::Trees(&trees(self.trees.len())?), &all, hyper)?)
            }
        };
        let errors = errors.into_iter().map(|error| standard.difference(error)).collect();
        Ok((standard.with(hyper), errors))
    }

    /// The weighted mean of a function of the chosen rows' errors.
    fn mean(&self, errors: &[f64], of: impl Fn(f64) -> f64) -> f64 {
        let each = errors.iter().zip(&self.weights).map(|(&error, weight)| weight * of(error));
        each.sum::<f64>() / errors.len() as f64
    }

    fn limit(&self, settings: &RegressionSettings, of: &Observations) -> Option<Limit> {
        Limit::of(settings, self.forest, self.storage, &of.rows)
    }

    /// All rows.
    fn observations(&self, standard: Standard, line: Option<(&Design, &StartLine)>) -> Observations {
        let round = |y: f64| (standard.target(y) / GRID).round() * GRID;
        let targets = match line {
            None => vec![self.order.iter().map(|&row| round(self.observed.targets.of(row))).collect()],
            Some((design, line)) => {
                let part = |part: usize| {
                    let others = |place: usize| self.chosen.part(self.order[place]) != Some(part);
                    let mut coefficients = line.of_some(design, others);
                    coefficients[0] = 0.0;
                    (0..self.order.len()).map(|place| round(design.residual(place, &coefficients))).collect()
                };
                (0..self.chosen.n_parts).map(part).collect()
            }
        };
        let weights = self.observed.targets.weights_of(&self.order);
        Observations { rows: self.order.clone(), targets, weights }
    }

    /// Places of all chosen rows, and of as many others as [`FEW_ROWS`] has room for.
    fn few_places(&self) -> Vec<usize> {
        let is_chosen = |place: &usize| self.chosen.numbers[self.order[*place] as usize].is_some();
        let (mut places, others): (Vec<usize>, Vec<usize>) = (0..self.order.len()).partition(is_chosen);
        let room = FEW_ROWS.saturating_sub(places.len()).max(1);
        places.extend(others.iter().step_by(others.len().div_ceil(room).max(1)));
        places.sort_unstable();
        places
    }

    /// The error for every chosen row, the parts of them being left out side by side.
    fn errors(&self, kernel: Kernel<'_>, of: &Observations, hyper: Hyperparameters) -> Result<Vec<f64>> {
        match self.chosen.n_parts {
            1 => self.errors_in::<1>(kernel, of, hyper),
            2 => self.errors_in::<2>(kernel, of, hyper),
            3 | 4 => self.errors_in::<4>(kernel, of, hyper),
            _ => self.errors_in::<PARTS>(kernel, of, hyper),
        }
    }

    fn errors_in<const L: usize>(
        &self,
        kernel: Kernel<'_>,
        of: &Observations,
        hyper: Hyperparameters,
    ) -> Result<Vec<f64>> {
        let n_parts = self.chosen.n_parts;
        // A target of each part's problem, side by side.
        let target = |place: usize, part: usize| of.targets[part.min(of.targets.len() - 1)][place];
        let targets: Vec<[f64; L]> =
            (0..of.rows.len()).map(|place| std::array::from_fn(|part| target(place, part))).collect();
        let is_left_out =
            |place: usize, part: usize| part >= n_parts || self.chosen.part(of.rows[place]) == Some(part);
        let weights = of.weights.as_deref();
        let means: Box<dyn Fn(usize, usize) -> f64> = match kernel {
            Kernel::Trees(trees) => {
                let joint = Joint::new(trees, weights, hyper, self.run)?;
                let sums = trees.sums(&joint.weights(&targets, is_left_out, TOLERANCE)?, self.run)?;
                Box::new(move |_, row| {
                    let of_tree = |tree: usize| {
                        let LeftOutRow { path, branch, .. } = &self.places[tree][row];
                        let sum = |node: NodeId| sums[tree][node.index()][row % n_parts];
                        joint.left_out(tree, sum, path, branch.as_ref())
                    };
                    (0..sums.len()).map(of_tree).sum()
                })
            }
            Kernel::Limit(limit) => {
                let system = limit.system(weights, &hyper, self.run)?;
                let means = system.means(&system.weights(&targets, is_left_out, TOLERANCE)?)?;
                Box::new(move |place, row| means[place][row % n_parts])
            }
        };
        let numbers = of.rows.iter().map(|&row| self.chosen.numbers[row as usize]);
        let chosen = numbers.enumerate().filter_map(|(place, row)| Some((place, row? as usize)));
        Ok(chosen.map(|(place, row)| targets[place][row % n_parts] - means(place, row)).collect())
    }
}
