//! The function with the covariance of infinitely many trees, for many rows: by way of landmarks
//! (`mondrian::joint::limit::landmarks`).
//!
//! In the notation there, row `i` has the mean `v_i' B^-1 p` and the leverage `h_i = v_i' B^-1 v_i`. Without the row both `B` and
//! `p` lack its term, so that what is left of its value is `(y_i - v_i' B^-1 p) / (1 - w_i h_i)` (Sherman and Morrison 1950): as
//! with the equations of all rows (`limit`), for the codes of all classes at once. A row that is a landmark is none without
//! itself; predictions of left-out rows look at this, while for calibration, where many rows are left out, landmarks stay.

use crate::control::Run;
use crate::data::{RowId, Scalar, Table};
use crate::error::Result;
use crate::mondrian::classification::class_counts::ClassCounts;
use crate::mondrian::classification::class_table::ClassTable;
use crate::mondrian::classification::joint::codes::common_order;
use crate::mondrian::classification::joint::limit::{Problem, best_noise};
use crate::mondrian::forest::Forest;
use crate::mondrian::forest::storage::Storage;
use crate::mondrian::joint::limit::{
    Covariance, ExponentialCovariance, LandmarkFactor, LandmarkRows, Landmarks, LimitFunction,
};

/// Rows that are left out at a time.
const SOME: usize = 1024;

/// With less noise than this, as few rows find it by themselves, classes have clear borders with details that trees know better: the
/// noise was .1 to 1 on four noisy sets and on satimage, and .003 to .03 on letter and pendigits.
const LEAST_NOISE: f64 = 0.1;

/// Landmarks are the first rows in another order than rows that calibrate, by which they would be judged.
const ORDER: u64 = 0x4c61_6e64_6d61_726b;

/// The equations of a forest, solved.
pub(super) struct LandmarkEquations {
    problem: Problem,
    chosen: LandmarkRows,
    /// The variance of its noise.
    pub(super) noise: f64,
    solution: Solution,
}

/// The solved equations of a problem.
struct Solution {
    landmarks: Landmarks<ExponentialCovariance>,
    factor: LandmarkFactor,
    noise: f64,
    /// The sums `p` for the codes of all classes but the last, and then for a value of 1 at every row.
    sums: Vec<f64>,
    /// `B^-1 p`.
    solved: Vec<f64>,
}

impl LandmarkEquations {
    /// With at most so many landmarks, for a noise that was chosen from the same rows.
    ///
    /// # Errors
    /// An interrupt.
    pub(super) fn new<S: Scalar>(
        forest: &Forest<ClassCounts>,
        storage: &Storage<S, ClassCounts>,
        classes: &ClassTable,
        (most, noise): (usize, f64),
        run: &Run<'_>,
    ) -> Result<Self> {
        let problem = Problem::new(forest, storage, classes, common_order(forest, storage, classes));
        let chosen = landmarks_of(&problem, forest, storage, most);
        let solution = Solution::new(&problem, &chosen, noise, run)?;
        Ok(Self { problem, chosen, noise, solution })
    }

    /// The same with the noise under which the squared error of some rows' left-out codes is least; none if there is so little noise
    /// that landmarks are not worth a trial, or too few rows to tell.
    ///
    /// # Errors
    /// An interrupt.
    pub(super) fn on_trial<S: Scalar>(
        forest: &Forest<ClassCounts>,
        storage: &Storage<S, ClassCounts>,
        classes: &ClassTable,
        most: usize,
        run: &Run<'_>,
    ) -> Result<Option<Self>> {
        let order = common_order(forest, storage, classes);
        let judges = Problem::of_judges(forest, storage, classes, &order);
        if judges.rows.n_rows() < 2 || judges.best_noise(run)? < LEAST_NOISE {
            return Ok(None);
        }
        let problem = Problem::new(forest, storage, classes, order);
        let chosen = landmarks_of(&problem, forest, storage, most);
        let places: Vec<usize> = judges.codes.order.iter().map(|&row| problem.codes.place(row)).collect();
        let mut solution = Solution::new(&problem, &chosen, LEAST_NOISE, run)?;
        let noise = best_noise(|noise| {
            solution.set_noise(&problem, noise, run)?;
            Ok(problem.codes.squares(&places, &solution.residuals(&problem, &places, run)?))
        })?;
        solution.set_noise(&problem, noise, run)?;
        Ok(Some(Self { problem, chosen, noise, solution }))
    }

    /// The function's values for rows of the forest, each by the others: `n_rows x n_classes`. The landmarks stay.
    ///
    /// # Errors
    /// An interrupt.
    pub(super) fn nearly_left_out(&self, rows: &[RowId], run: &Run<'_>) -> Result<Vec<f64>> {
        let places = self.problem.first_copies(rows);
        Ok(self.problem.codes.left_out(&places, &self.solution.residuals(&self.problem, &places, run)?))
    }

    /// The same where a row that is a landmark is none without itself.
    ///
    /// # Errors
    /// An interrupt.
    pub(super) fn left_out(&self, rows: &[RowId], run: &Run<'_>) -> Result<Vec<f64>> {
        let Self { problem, chosen, noise, solution } = self;
        let (places, n_columns) = (problem.first_copies(rows), problem.codes.n_columns());
        let mut residuals = solution.residuals(problem, &places, run)?;
        for (&place, residuals) in places.iter().zip(residuals.chunks_exact_mut(n_columns)) {
            if let Some(others) = chosen.without(place) {
                let without = Solution::new(problem, &others, *noise, run)?;
                residuals.copy_from_slice(&without.residuals(problem, &[place], run)?);
            }
        }
        Ok(problem.codes.left_out(&places, &residuals))
    }

    /// # Errors
    /// An interrupt.
    pub(super) fn function(&self, run: &Run<'_>) -> Result<LimitFunction<ExponentialCovariance>> {
        let Solution { landmarks, solved, .. } = &self.solution;
        let n_columns = self.problem.codes.n_columns();
        let weights = landmarks.weights_of(solved, n_columns + 1, run)?;
        let of_column = |k: usize| weights.iter().skip(k).step_by(n_columns + 1).copied().collect();
        let others: Vec<Vec<f64>> = (1..n_columns).map(of_column).collect();
        Ok(landmarks.function(&of_column(0), &others))
    }
}

fn landmarks_of<S: Scalar>(
    problem: &Problem,
    forest: &Forest<ClassCounts>,
    storage: &Storage<S, ClassCounts>,
    most: usize,
) -> LandmarkRows {
    let table = Table::new(&storage.values, forest.domain.n_coordinates());
    LandmarkRows::new(forest.settings.seed ^ ORDER, most, table, &problem.codes.order)
}

impl Solution {
    fn new(problem: &Problem, chosen: &LandmarkRows, noise: f64, run: &Run<'_>) -> Result<Self> {
        let Problem { codes, rows, covariance } = problem;
        let weighted = problem.weighted();
        let landmarks = Landmarks::new(rows.at(&chosen.places()), *covariance, run)?;
        let factor = LandmarkFactor::new(&landmarks, weighted, noise, run)?;
        let values = codes.values();
        let of_column = |k: usize| values.iter().skip(k).step_by(codes.n_columns()).copied().collect();
        let mut columns: Vec<Vec<f64>> = (0..codes.n_columns()).map(of_column).collect();
        columns.push(vec![1.0; codes.order.len()]);
        let all: Vec<usize> = (0..codes.order.len()).collect();
        let sums = landmarks.with_values(weighted, &all, &columns, run)?;
        let solved = factor.solve(&sums, columns.len(), run)?;
        Ok(Self { landmarks, factor, noise, sums, solved })
    }

    fn set_noise(&mut self, problem: &Problem, noise: f64, run: &Run<'_>) -> Result<()> {
        if noise != self.noise {
            self.factor.set_noise(noise, run)?;
            self.solved = self.factor.solve(&self.sums, problem.codes.n_classes(), run)?;
            self.noise = noise;
        }
        Ok(())
    }

    /// What the other rows leave unexplained of each row's code, `n_places x n_columns`.
    fn residuals(&self, problem: &Problem, places: &[usize], run: &Run<'_>) -> Result<Vec<f64>> {
        let parts: Vec<Vec<f64>> = places
            .chunks(SOME)
            .map(|some| self.residuals_of_some(problem, some, run))
            .collect::<Result<_>>()?;
        Ok(parts.concat())
    }

    fn residuals_of_some(&self, problem: &Problem, places: &[usize], run: &Run<'_>) -> Result<Vec<f64>> {
        let (codes, n, n_values) = (&problem.codes, places.len(), problem.codes.n_classes());
        let features = self.landmarks.features(&problem.rows, places, run)?;
        let solved = self.factor.solve(&features, n, run)?;
        let (mut leverages, mut means) = (vec![0.0; n], vec![0.0; n * n_values]);
        let by_landmark = features.chunks_exact(n).zip(solved.chunks_exact(n));
        for ((features, solved), of_values) in by_landmark.zip(self.solved.chunks_exact(n_values)) {
            for i in 0..n {
                leverages[i] += features[i] * solved[i];
                let means = means[i * n_values..(i + 1) * n_values].iter_mut();
                means.zip(of_values).for_each(|(mean, value)| *mean += features[i] * value);
            }
        }
        let shares = codes.shares();
        let mut residuals = Vec::with_capacity(n * codes.n_columns());
        for ((&place, leverage), means) in places.iter().zip(leverages).zip(means.chunks_exact(n_values)) {
            // Of a row of great weight rounding leaves nothing; this much there is at least.
            let weight = codes.weight(place);
            let least = self.noise / (self.noise + weight * problem.covariance.of_itself());
            let rest = (1.0 - weight * leverage).max(least);
            let of_one = 1.0 - means[codes.n_columns()];
            let others = codes.shares_without(place).zip(&shares).take(codes.n_columns()).enumerate();
            residuals.extend(others.map(|(k, (q, p))| {
                let code = f64::from(u8::from(codes.class(place) == k)) - p;
                (code - means[k] + (p - q) * of_one) / rest
            }));
        }
        Ok(residuals)
    }
}

#[cfg(test)]
mod tests;
