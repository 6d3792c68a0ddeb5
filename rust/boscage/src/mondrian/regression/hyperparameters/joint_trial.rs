//! The joint model, judged by rows that are left out in parts.

use crate::data::Scalar;
use crate::error::Result;
use crate::mondrian::joint::Trees;
use crate::mondrian::joint::limit::LimitSystem;
use crate::mondrian::regression::hierarchy::belief_propagation::Hyperparameters;
use crate::mondrian::regression::hyperparameters::left_out_rows::LeftOutRow;
use crate::mondrian::regression::hyperparameters::search::climb;
use crate::mondrian::regression::hyperparameters::trial::{PARTS, Trial};
use crate::mondrian::regression::joint::Standard;
use crate::mondrian::regression::joint::equations::{Joint, Limit};
use crate::mondrian::regression::trend::Design;
use crate::mondrian::regression::trend::start_line::StartLine;

/// Trees (at most) for which its hyperparameters are sought.
const FEW_TREES: usize = 16;
/// Accuracy of its weights.
const TOLERANCE: f64 = 1e-2;

/// While hyperparameters are sought, targets are rounded to this, in the joint model's units. Equations that are
/// solved to a hundredth amplify the last bits of targets, which differ where targets are shifted and scaled.
const GRID: f64 = 1.0 / 65536.0;

impl<S: Scalar> Trial<'_, S> {
    /// The joint model, and its error for every chosen row. Rows are left out in parts.
    pub(super) fn joint(
        &self,
        standard: Standard,
        line: Option<(&Design, &StartLine)>,
        limit: Option<&Limit>,
        at: impl Fn([i32; 2]) -> Hyperparameters,
    ) -> Result<(Standard, Vec<f64>)> {
        let lifetime = self.forest.settings.lifetime;
        let weights = self.observed.targets.weights_of(&self.order);
        let round = |y: f64| (standard.target(y) / GRID).round() * GRID;
        // By part, or the same for all of them.
        let targets: Vec<Vec<f64>> = match line {
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
        let errors = |trees: &Trees, hyper: Hyperparameters| {
            let joint = Joint::new(trees, weights.as_deref(), hyper, self.run)?;
            let joint = (trees, &joint);
            match self.chosen.n_parts {
                1 => self.errors::<1>(joint, &targets),
                2 => self.errors::<2>(joint, &targets),
                3 | 4 => self.errors::<4>(joint, &targets),
                _ => self.errors::<PARTS>(joint, &targets),
            }
        };
        let few = &self.trees[..self.trees.len().min(FEW_TREES)];
        let few = Trees::new(few, &self.order, lifetime, self.run)?;
        let evaluate = |point: [i32; 2]| {
            let hyper = at(point);
            let errors = match (std::env::var("CLIMB").is_ok(), limit) {
                (true, Some(limit)) => {
                    let system = limit.system(weights.as_deref(), &hyper, self.run)?;
                    match self.chosen.n_parts {
                        1 => self.errors_of_limit::<1>(&system, &targets),
                        2 => self.errors_of_limit::<2>(&system, &targets),
                        3 | 4 => self.errors_of_limit::<4>(&system, &targets),
                        _ => self.errors_of_limit::<PARTS>(&system, &targets),
                    }?
                }
                _ => errors(&few, hyper)?,
            };
            let square = |(error, weight): (&f64, &f64)| weight * error * error / errors.len() as f64;
            let square = errors.iter().zip(&self.weights).map(square).sum::<f64>();
            let size = |(error, weight): (&f64, &f64)| weight * error.abs() / errors.len() as f64;
            let size = errors.iter().zip(&self.weights).map(size).sum::<f64>();
            let score = match std::env::var("CRIT").as_deref() {
                Ok("1") => -0.25 * square.ln() - 0.5 * size.ln(),
                Ok("2") => -size.ln(),
                _ => -0.5 * square.ln(),
            };
            Ok((score, hyper))
        };
        let (score, hyper) = climb([0, 0], &[[0, 1], [0, -1], [-1, 0], [1, 0]], evaluate)?;
        if std::env::var("SHOW").is_ok() {
            eprintln!(
                "joint {score:.4} gamma2 {:.4} noise {:.5} n {}",
                hyper.gamma2,
                hyper.noise_variance / hyper.gamma1,
                self.order.len()
            );
        }
        let errors = match limit {
            None => errors(&Trees::new(self.trees, &self.order, lifetime, self.run)?, hyper)?,
            Some(limit) => {
                let system = limit.system(weights.as_deref(), &hyper, self.run)?;
                match self.chosen.n_parts {
                    1 => self.errors_of_limit::<1>(&system, &targets),
                    2 => self.errors_of_limit::<2>(&system, &targets),
                    3 | 4 => self.errors_of_limit::<4>(&system, &targets),
                    _ => self.errors_of_limit::<PARTS>(&system, &targets),
                }?
            }
        };
        let errors = errors.into_iter().map(|error| standard.difference(error)).collect();
        Ok((standard.with(hyper), errors))
    }

    /// The joint model's error for every chosen row, the parts of them being left out side by side.
    fn errors<const L: usize>(
        &self,
        (trees, joint): (&Trees, &Joint<'_>),
        targets: &[Vec<f64>],
    ) -> Result<Vec<f64>> {
        let n_parts = self.chosen.n_parts;
        let targets = self.by_part::<L>(targets);
        let weights = joint.weights(&targets, |place, part| self.is_left_out(place, part), TOLERANCE)?;
        let sums = trees.sums(&weights, self.run)?;
        let rows = self.chosen_places().map(|(place, row)| {
            let means = (0..sums.len()).map(|tree| {
                let LeftOutRow { path, branch, .. } = &self.places[tree][row];
                joint.left_out(tree, |node| sums[tree][node.index()][row % n_parts], path, branch.as_ref())
            });
            targets[place][row % n_parts] - means.sum::<f64>()
        });
        Ok(rows.collect())
    }

    /// The same for infinitely many trees.
    fn errors_of_limit<const L: usize>(
        &self,
        system: &LimitSystem<'_>,
        targets: &[Vec<f64>],
    ) -> Result<Vec<f64>> {
        let targets = self.by_part::<L>(targets);
        let weights = system.weights(&targets, |place, part| self.is_left_out(place, part), TOLERANCE)?;
        let means = system.means(&weights)?;
        let error = |(place, row): (usize, usize)| {
            let part = row % self.chosen.n_parts;
            targets[place][part] - means[place][part]
        };
        Ok(self.chosen_places().map(error).collect())
    }

    /// The targets of each part's problem, given by part or the same for all, side by side.
    fn by_part<const L: usize>(&self, targets: &[Vec<f64>]) -> Vec<[f64; L]> {
        let target = |place: usize, part: usize| targets[part.min(targets.len() - 1)][place];
        (0..self.order.len()).map(|place| std::array::from_fn(|part| target(place, part))).collect()
    }

    /// Whether the row at a place is not in a part's problem.
    fn is_left_out(&self, place: usize, part: usize) -> bool {
        part >= self.chosen.n_parts || self.chosen.part(self.order[place]) == Some(part)
    }

    /// The chosen rows' places, each with its number among them.
    fn chosen_places(&self) -> impl Iterator<Item = (usize, usize)> {
        let numbers = self.order.iter().map(|&row| self.chosen.numbers[row as usize]);
        numbers.enumerate().filter_map(|(place, row)| Some((place, row? as usize)))
    }
}
