//! The joint model, judged by rows that are left out in parts.

use crate::data::Scalar;
use crate::error::Result;
use crate::mondrian::joint::Trees;
use crate::mondrian::regression::hierarchy::belief_propagation::Hyperparameters;
use crate::mondrian::regression::hyperparameters::left_out_rows::LeftOutRow;
use crate::mondrian::regression::hyperparameters::search::climb;
use crate::mondrian::regression::hyperparameters::trial::{PARTS, Trial};
use crate::mondrian::regression::joint::{Joint, Standard};
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
            match self.chosen.n_parts {
                1 => self.errors::<1>(&joint, &targets),
                2 => self.errors::<2>(&joint, &targets),
                3 | 4 => self.errors::<4>(&joint, &targets),
                _ => self.errors::<PARTS>(&joint, &targets),
            }
        };
        let few = &self.trees[..self.trees.len().min(FEW_TREES)];
        let few = Trees::new(few, &self.order, lifetime, self.run)?;
        let evaluate = |point: [i32; 2]| {
            let hyper = at(point);
            let errors = errors(&few, hyper)?;
            let square = |(error, weight): (&f64, &f64)| weight * error * error / errors.len() as f64;
            let square = errors.iter().zip(&self.weights).map(square).sum::<f64>();
            Ok((-0.5 * square.ln(), hyper))
        };
        let (_, hyper) = climb([0, 0], &[[0, 1], [0, -1], [-1, 0], [1, 0]], evaluate)?;
        let all = Trees::new(self.trees, &self.order, lifetime, self.run)?;
        let errors = errors(&all, hyper)?.into_iter().map(|error| standard.difference(error)).collect();
        Ok((standard.with(hyper), errors))
    }

    /// The joint model's error for every chosen row, the parts of them being left out side by side.
    fn errors<const L: usize>(&self, joint: &Joint<'_>, targets: &[Vec<f64>]) -> Result<Vec<f64>> {
        let n_parts = self.chosen.n_parts;
        let target = |place: usize, part: usize| targets[part.min(targets.len() - 1)][place];
        let by_part: Vec<[f64; L]> =
            (0..self.order.len()).map(|place| std::array::from_fn(|part| target(place, part))).collect();
        let left_out =
            |place: usize, part: usize| part >= n_parts || self.chosen.part(self.order[place]) == Some(part);
        let sums = joint.sums(&joint.weights(&by_part, left_out, TOLERANCE)?)?;
        let numbers = self.order.iter().map(|&row| self.chosen.numbers[row as usize]);
        let chosen = numbers.enumerate().filter_map(|(place, row)| Some((place, row? as usize)));
        let rows = chosen.map(|(place, row)| {
            let means = (0..sums.len()).map(|tree| {
                let LeftOutRow { path, branch, .. } = &self.places[tree][row];
                joint.left_out(tree, |node| sums[tree][node.index()][row % n_parts], path, branch.as_ref())
            });
            target(place, row % n_parts) - means.sum::<f64>()
        });
        Ok(rows.collect())
    }
}
