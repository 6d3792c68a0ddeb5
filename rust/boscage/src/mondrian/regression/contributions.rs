//! What each tree adds to the predictive mean.

use crate::control::Run;
use crate::data::{Rows, Scalar};
use crate::error::Result;
use crate::explain::{Contributions, LeafTree};
use crate::mondrian::explain::{TreeContributions, covered_trees, of_paths, shapley};
use crate::mondrian::forest::gains::split_gains;
use crate::mondrian::prediction::stop::Stop;
use crate::mondrian::regression::hierarchy::tree_predictive::Detail;
use crate::mondrian::regression::hyperparameters::leave_one_out::Together;
use crate::mondrian::regression::moments::NodeMoments;
use crate::mondrian::regression::predictive::{ForestPosterior, Paths};
use crate::mondrian::regression::regressor::MondrianRegressor;
use crate::mondrian::tree::Tree;

impl TreeContributions<NodeMoments> for ForestPosterior<'_> {
    type Buffers = Paths;

    fn n_outputs(&self) -> usize {
        1
    }

    /// Of eq. 6.4's mean, and of the joint model's, which the forest's mean is made of.
    fn of_tree<S: Scalar>(
        &self,
        tree_index: usize,
        tree: &Tree<S, NodeMoments>,
        stops: &[Stop],
        paths: &mut Paths,
        out: &mut [f64],
    ) {
        let (mut weight, mut sum) = (0.0, 0.0);
        let joint = self.components((tree_index, tree), stops, Detail::Mean, paths, |component, _| {
            weight += component.weight;
            sum += component.weight * component.mean;
        });
        let n_trees = self.forest.settings.n_estimators as f64;
        let own = || sum / weight / n_trees;
        out[0] = match &self.state.joint {
            None => own(),
            Some(state) => {
                let Together { model, share, .. } = &state.together;
                let joint = model.mean(0.0) / n_trees + model.difference(joint);
                // A share of 1 leaves no components to look at.
                if *share == 1.0 { joint } else { (1.0 - share) * own() + share * joint }
            }
        };
    }
}

impl MondrianRegressor {
    /// Shapley values of the predictive mean, with one base for all rows. Those of a row that lacks values are of the row that
    /// substitutes complete; the means over its [`completions`](Self::completions) add up to its prediction.
    ///
    /// # Errors
    /// A number of features other than in `fit`; an interrupt.
    pub fn shapley(&self, rows: Rows<'_>, run: &Run<'_>) -> Result<Contributions> {
        let posterior = self.posterior_by_trees(run)?;
        let mut filled = Vec::new();
        let rows = self.forest.complete(rows, &mut filled)?;
        let found = shapley(&self.forest, &posterior, rows, run)?;
        self.with_rest(self.with_trend(found, rows, run)?, rows, run)
    }

    /// Contributions of the splits on each row's paths to the predictive mean. A base belongs to a row.
    ///
    /// # Errors
    /// As [`MondrianRegressor::shapley`].
    pub fn path_contributions(&self, rows: Rows<'_>, run: &Run<'_>) -> Result<Contributions> {
        let posterior = self.posterior_by_trees(run)?;
        let mut filled = Vec::new();
        let rows = self.forest.complete(rows, &mut filled)?;
        let found = of_paths(&self.forest, &posterior, rows, run)?;
        self.with_rest(self.with_trend(found, rows, run)?, rows, run)
    }

    /// The trees, whose leaves hold what they add to the predictive mean, without a trend; that of the same forest with
    /// [`JointKernel::Trees`](crate::JointKernel::Trees), where the mean is no sum over trees.
    ///
    /// # Errors
    /// An interrupt.
    pub fn leaf_trees(&self, run: &Run<'_>) -> Result<Vec<LeafTree>> {
        let trees = covered_trees(&self.forest, &self.posterior_by_trees(run)?, run)?;
        Ok(trees.into_iter().map(|tree| tree.tree.export()).collect())
    }

    /// How much the splits of each feature explain of the targets' sum of squares, over all trees: less what they would if the
    /// feature had nothing to do with the targets.
    ///
    /// # Errors
    /// An interrupt.
    pub fn split_gains(&self, run: &Run<'_>) -> Result<Vec<f64>> {
        let squares = |numbers: &[(f64, f64)]| {
            let weight = numbers.iter().map(|(_, weight)| weight).sum::<f64>();
            let mean = numbers.iter().map(|(y, weight)| weight * y).sum::<f64>() / weight;
            numbers.iter().map(|(y, weight)| weight * (y - mean).powi(2)).sum()
        };
        split_gains(&self.forest, |y| y, squares, run)
    }

    /// Where the mean is no sum over trees, contributions are those of the same forest with trees that have shares of it. What
    /// these lack of the prediction is shared among the features in proportion to their contributions' sizes, or equally among
    /// those of positive weight where nothing is contributed.
    fn with_rest(&self, mut found: Contributions, rows: Rows<'_>, run: &Run<'_>) -> Result<Contributions> {
        if self.forest_posterior(run)?.state.limit().is_none() {
            return Ok(found);
        }
        let means = self.predict_mean(rows, run)?;
        let n_features = rows.n_features();
        let weights = self.forest.domain.weights();
        let n_cut = weights.iter().filter(|&&weight| weight > 0.0).count() as f64;
        for (row, mean) in means.into_iter().enumerate() {
            let base = found.base[if found.base.len() == 1 { 0 } else { row }];
            let values = &mut found.values[row * n_features..][..n_features];
            let rest = mean - (base + values.iter().sum::<f64>());
            let size: f64 = values.iter().map(|value| value.abs()).sum();
            for (value, &weight) in values.iter_mut().zip(weights) {
                let equal = if weight > 0.0 { 1.0 / n_cut } else { 0.0 };
                *value += rest * if size > 0.0 { value.abs() / size } else { equal };
            }
        }
        Ok(found)
    }

    /// Adds the trend, which is a sum of functions of one feature each; a Shapley value of such a sum is what the row's
    /// value adds to the mean over all training rows.
    fn with_trend(&self, mut found: Contributions, rows: Rows<'_>, run: &Run<'_>) -> Result<Contributions> {
        let Some(linear) = self.posterior_by_trees(run)?.state.trend() else { return Ok(found) };
        let n_features = rows.n_features();
        let mut means = vec![0.0; n_features];
        let mut constant = 0.0;
        let all: Vec<u32> = self.forest.row_index.rows().collect();
        let targets = self.forest.row_targets();
        let weight: f64 = all.iter().map(|&row| targets.weight(row)).sum();
        for &row in &all {
            let own = targets.weight(row);
            let x = self.forest.filled_values(row);
            let (first, parts) = linear.parts(|d| x[d], n_features);
            constant = first;
            means.iter_mut().zip(parts).for_each(|(mean, part)| *mean += own * part / weight);
        }
        let total: f64 = constant + means.iter().sum::<f64>();
        for base in &mut found.base {
            *base += total;
        }
        for (i, values) in found.values.chunks_exact_mut(n_features).enumerate() {
            let (_, parts) = linear.parts(|d| rows.at(i, d), n_features);
            for ((value, part), mean) in values.iter_mut().zip(parts).zip(&means) {
                *value += part - mean;
            }
        }
        Ok(found)
    }
}
