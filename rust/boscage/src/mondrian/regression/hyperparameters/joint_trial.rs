//! The joint model, judged by rows that are left out in parts.

use std::sync::Arc;

use crate::data::{RowId, Scalar};
use crate::error::Result;
use crate::mondrian::joint::kernel::KernelRule;
use crate::mondrian::joint::{LeftOutPlace, Trees};
use crate::mondrian::regression::hierarchy::belief_propagation::Hyperparameters;
use crate::mondrian::regression::hyperparameters::left_out_rows::{LeftOutRow, thin_out};
use crate::mondrian::regression::hyperparameters::search::{FARTHEST, WORTHWHILE, climb};
use crate::mondrian::regression::hyperparameters::trial::{PARTS, Trial};
use crate::mondrian::regression::joint::Standard;
use crate::mondrian::regression::joint::equations::Joint;
use crate::mondrian::regression::joint::landmarks::{LandmarkFactors, LandmarkModel};
use crate::mondrian::regression::joint::limit::{Limit, MeasuredLimit};
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

/// The joint model that a rule has chosen.
pub(super) struct JointTrial {
    pub(super) model: Standard,
    /// Whether it is that of infinitely many trees.
    pub(super) is_limit: bool,
    /// Its error for every chosen row.
    pub(super) errors: Vec<f64>,
    /// The factors of its equations, if it is solved by landmarks.
    pub(super) factors: Option<Arc<LandmarkFactors>>,
}

/// The best hyperparameters with one covariance, and what belongs to them, in the model's units.
struct Found {
    hyper: Hyperparameters,
    is_limit: bool,
    errors: Vec<f64>,
    factors: Option<Arc<LandmarkFactors>>,
}

/// A covariance with which rows are left out in parts.
#[derive(Clone, Copy)]
enum OneCovariance<'a> {
    Trees(&'a Trees),
    Limit(&'a Limit),
}

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

    /// The targets of the parts' problems, side by side.
    fn by_part<const L: usize>(&self) -> Vec<[f64; L]> {
        let target = |place: usize, part: usize| self.targets[part.min(self.targets.len() - 1)][place];
        (0..self.rows.len()).map(|place| std::array::from_fn(|part| target(place, part))).collect()
    }
}

impl<S: Scalar> Trial<'_, S> {
    /// The joint model, and its error for every chosen row. Rows are left out in parts. `at` has the hyperparameters at a point
    /// of the grid: the noise's share and `gamma_2`, by powers of two.
    pub(super) fn joint(
        &self,
        standard: Standard,
        line: Option<(&Design, &StartLine)>,
        settings: &RegressionSettings,
        at: impl Fn([i32; 2]) -> Hyperparameters,
    ) -> Result<JointTrial> {
        let all = self.observations(standard, line);
        let found = match settings.kernel_rule(&self.forest.settings, self.order.len()) {
            KernelRule::Trees => self.by_trees(&all, &at)?,
            KernelRule::Limit => self.by_limit(&all, &at)?,
            KernelRule::LeftOut => {
                let [trees, landmarks] =
                    [self.by_trees(&all, &at)?, self.by_landmarks(&all, &standard, &at)?];
                if self.size(&landmarks.errors) < self.size(&trees.errors) { landmarks } else { trees }
            }
        };
        let Found { hyper, is_limit, errors, factors } = found;
        let errors = errors.into_iter().map(|error| standard.difference(error)).collect();
        Ok(JointTrial { model: standard.with(hyper), is_limit, errors, factors })
    }

    /// With the covariance of infinitely many trees.
    fn by_limit(&self, all: &Observations, at: impl Fn([i32; 2]) -> Hyperparameters) -> Result<Found> {
        let hyper = self.best_of_limit(&all.at(&self.few_places()), at)?;
        let errors = self.errors(OneCovariance::Limit(&self.limit(all)), all, hyper)?;
        Ok(Found { hyper, is_limit: true, errors, factors: None })
    }

    /// The same by way of landmarks.
    fn by_landmarks(
        &self,
        all: &Observations,
        standard: &Standard,
        at: impl Fn([i32; 2]) -> Hyperparameters,
    ) -> Result<Found> {
        let hyper = self.best_of_limit(&all.at(&self.few_places()), at)?;
        let model = LandmarkModel::new(self.limit(all), self.forest, self.storage, &self.order);
        // In the units of the forest's own model, which may need the factors again. Means are the same in all units.
        let own = Standard::new(&standard.with(hyper).in_units()).hyper;
        let equations = model.equations(all.weights.as_deref(), &own, self.run)?;
        let chosen: Vec<(usize, usize)> = self.chosen_places(all).collect();
        let mut errors = vec![0.0; chosen.len()];
        for part in 0..self.chosen.n_parts {
            let of_part: Vec<usize> =
                (0..chosen.len()).filter(|&i| chosen[i].1 % self.chosen.n_parts == part).collect();
            let places: Vec<usize> = of_part.iter().map(|&i| chosen[i].0).collect();
            let targets = &all.targets[part.min(all.targets.len() - 1)];
            let means = equations.left_out(&places, targets, self.run)?;
            for ((i, place), mean) in of_part.into_iter().zip(places).zip(means) {
                errors[i] = targets[place] - mean;
            }
        }
        Ok(Found { hyper, is_limit: true, errors, factors: Some(Arc::clone(equations.factors())) })
    }

    /// With the covariance of the trees.
    fn by_trees(&self, all: &Observations, at: impl Fn([i32; 2]) -> Hyperparameters) -> Result<Found> {
        let lifetime = self.forest.settings.lifetime;
        let trees = |n: usize| Trees::new(&self.trees[..n], &self.order, lifetime, self.run);
        let hyper = self.best_of_trees(&trees(self.trees.len().min(FEW_TREES))?, all, at)?;
        let errors = self.errors(OneCovariance::Trees(&trees(self.trees.len())?), all, hyper)?;
        Ok(Found { hyper, is_limit: false, errors, factors: None })
    }

    /// The hyperparameters under which the squared error is least.
    fn best_of_trees(
        &self,
        trees: &Trees,
        of: &Observations,
        at: impl Fn([i32; 2]) -> Hyperparameters,
    ) -> Result<Hyperparameters> {
        let evaluate = |point: [i32; 2]| {
            let hyper = at(point);
            let errors = self.errors(OneCovariance::Trees(trees), of, hyper)?;
            Ok((-0.5 * self.mean(&errors, |error, weight| weight * error * error).ln(), hyper))
        };
        Ok(climb([0, 0], &[[0, 1], [0, -1], [-1, 0], [1, 0]], evaluate)?.1)
    }

    /// With the covariance of infinitely many trees, the hyperparameters under which the absolute error is least: on it few rows
    /// weigh less than on the squared one.
    fn best_of_limit(
        &self,
        of: &Observations,
        at: impl Fn([i32; 2]) -> Hyperparameters,
    ) -> Result<Hyperparameters> {
        let limit = self.limit(of).measured(self.run)?;
        let evaluate = |[gamma2]: [i32; 1]| {
            // From much noise to little.
            let mut points: Vec<Hyperparameters> =
                (-FARTHEST..=FARTHEST).rev().map(|share| at([share, gamma2])).collect();
            points.dedup();
            self.best_noise(&limit, of, &points)
        };
        Ok(climb([0], &[[1], [-1]], evaluate)?.1)
    }

    /// The best of some hyperparameters that differ in the noise's share only, and its score. The noises are sorted from the
    /// largest, and smaller ones are not tried after two that are worse.
    fn best_noise(
        &self,
        limit: &MeasuredLimit,
        of: &Observations,
        points: &[Hyperparameters],
    ) -> Result<(f64, Hyperparameters)> {
        match self.chosen.n_parts {
            1 => self.best_noise_in::<1>(limit, of, points),
            2 => self.best_noise_in::<2>(limit, of, points),
            3 | 4 => self.best_noise_in::<4>(limit, of, points),
            _ => self.best_noise_in::<PARTS>(limit, of, points),
        }
    }

    fn best_noise_in<const L: usize>(
        &self,
        limit: &MeasuredLimit,
        of: &Observations,
        points: &[Hyperparameters],
    ) -> Result<(f64, Hyperparameters)> {
        let n_parts = self.chosen.n_parts;
        let targets = of.by_part::<L>();
        let places: Vec<LeftOutPlace> = self
            .chosen_places(of)
            .map(|(row, number)| LeftOutPlace { row, problem: number % n_parts })
            .collect();
        let mut best: Option<(f64, usize)> = None;
        let next = |point: usize, means: &[f64]| {
            let errors = places.iter().zip(means).map(|(at, mean)| targets[at.row][at.problem] - mean);
            let errors: Vec<f64> = errors.collect();
            let score = -self.mean(&errors, |error, weight| weight * error.abs()).ln();
            if best.is_none_or(|(most, _)| score > most + WORTHWHILE) {
                best = Some((score, point));
            }
            best.is_some_and(|(_, best)| point < best + 2)
        };
        let is_left_out = |place: usize, part: usize| self.is_left_out(of, place, part);
        limit.left_out_by_noise(
            of.weights.as_deref(),
            points,
            (&targets, is_left_out, &places),
            TOLERANCE,
            self.run,
            next,
        )?;
        // Targets of so many orders of magnitude that no error is finite.
        let (score, point) = best.unwrap_or((f64::NEG_INFINITY, points.len() / 2));
        Ok((score, points[point]))
    }

    /// The product of the mean absolute and the root mean squared error: few rows decide the latter where targets have heavy tails, and
    /// the former hardly sees these rows.
    fn size(&self, errors: &[f64]) -> f64 {
        let absolute = self.mean(errors, |error, weight| weight * error.abs());
        absolute * self.mean(errors, |error, weight| weight * error * error).sqrt()
    }

    /// The mean of a function of the chosen rows' errors and weights.
    fn mean(&self, errors: &[f64], of: impl Fn(f64, f64) -> f64) -> f64 {
        let n = errors.len() as f64;
        errors.iter().zip(&self.weights).map(|(&error, &weight)| of(error, weight) / n).sum()
    }

    fn limit(&self, of: &Observations) -> Limit {
        Limit::new(self.forest, self.storage, &of.rows)
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
        places.extend(thin_out(&others, room));
        places.sort_unstable();
        places
    }

    /// The error for every chosen row, the parts of them being left out side by side.
    fn errors(
        &self,
        kernel: OneCovariance<'_>,
        of: &Observations,
        hyper: Hyperparameters,
    ) -> Result<Vec<f64>> {
        match self.chosen.n_parts {
            1 => self.errors_in::<1>(kernel, of, hyper),
            2 => self.errors_in::<2>(kernel, of, hyper),
            3 | 4 => self.errors_in::<4>(kernel, of, hyper),
            _ => self.errors_in::<PARTS>(kernel, of, hyper),
        }
    }

    fn errors_in<const L: usize>(
        &self,
        kernel: OneCovariance<'_>,
        of: &Observations,
        hyper: Hyperparameters,
    ) -> Result<Vec<f64>> {
        let n_parts = self.chosen.n_parts;
        let targets = of.by_part::<L>();
        let is_left_out = |place: usize, part: usize| self.is_left_out(of, place, part);
        let weights = of.weights.as_deref();
        let means: Box<dyn Fn(usize, usize) -> f64> = match kernel {
            OneCovariance::Trees(trees) => {
                let joint = Joint::new(trees, weights, hyper, self.run)?;
                let weights = joint.system.weights(&targets, is_left_out, TOLERANCE)?.weights;
                let sums = trees.map(|passes| passes.sums(&weights), self.run)?;
                Box::new(move |_, row| {
                    let of_tree = |tree: usize| {
                        let LeftOutRow { path, branch, .. } = &self.places[tree][row];
                        let sum = |node: NodeId| sums[tree][node.index()][row % n_parts];
                        joint.left_out(tree, sum, path, branch.as_ref())
                    };
                    (0..sums.len()).map(of_tree).sum()
                })
            }
            OneCovariance::Limit(limit) => {
                let system = limit.system(weights, &hyper, self.run)?;
                let means = system.means(&system.weights(&targets, is_left_out, TOLERANCE)?)?;
                Box::new(move |place, row| means[place][row % n_parts])
            }
        };
        let chosen = self.chosen_places(of);
        Ok(chosen.map(|(place, row)| targets[place][row % n_parts] - means(place, row)).collect())
    }

    /// Whether the row at a place is not in a part's problem.
    fn is_left_out(&self, of: &Observations, place: usize, part: usize) -> bool {
        part >= self.chosen.n_parts || self.chosen.part(of.rows[place]) == Some(part)
    }

    /// The chosen rows' places, each with its number among them.
    fn chosen_places(&self, of: &Observations) -> impl Iterator<Item = (usize, usize)> {
        let numbers = of.rows.iter().map(|&row| self.chosen.numbers[row as usize]);
        numbers.enumerate().filter_map(|(place, row)| Some((place, row? as usize)))
    }
}
