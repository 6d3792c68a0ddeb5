//! Bayesian decision trees for numbers.

use crate::bayes::leaf::normal::{Normal, NormalPrior, NormalSums, NormalTotals};
use crate::bayes::leaf::weighted_normal::WeightedNormal;
use crate::bayes::posterior::bayesian_trees::{BayesianTrees, FittedLeaf, known};
use crate::bayes::posterior::weighted_trees::Sampler;
use crate::bayes::prior::{ChipmanPrior, TreePrior};
use crate::bayes::tree::PreorderTree;
use crate::control::Run;
use crate::data::Rows;
use crate::error::Result;
use crate::validate::check_lengths;
use crate::validate::check_squares;

/// A posterior over decision trees whose leaves have normal targets with unknown mean and variance.
///
/// ```
/// use boscage::{BayesianTreeRegressor, ChipmanPrior, NormalPrior, Rows, Run, Sampler, SmcSettings};
///
/// let x: Vec<f64> = (0..40).map(f64::from).collect();
/// let y: Vec<f64> = x.iter().map(|x| f64::from(u8::from(*x >= 20.0)) + 0.01 * (x % 3.0)).collect();
/// let trees = BayesianTreeRegressor::fit(
///     &ChipmanPrior::default(),
///     NormalPrior::of_targets(&y, 0.1, 1.5, 0.1)?,
///     &Sampler::Smc(SmcSettings::default()),
///     Rows::from_f64(&x, 1)?,
///     &y,
///     &Run::default(),
/// )?;
/// let mean = trees.predict(Rows::from_f64(&[3.0], 1)?, &Run::default())?;
/// assert!(mean[0].abs() < 0.1);
/// # Ok::<(), boscage::Error>(())
/// ```
pub type BayesianTreeRegressor = BayesianTrees<NormalPrior>;

impl FittedLeaf for NormalPrior {
    type Stats = NormalTotals;

    fn n_rows(totals: &NormalTotals) -> u32 {
        totals.n_rows
    }

    fn weight(totals: &NormalTotals) -> f64 {
        totals.weight
    }

    /// Degrees of freedom, location and scale of the predictive distribution; mean and variance of the rows'
    /// targets.
    fn values(&self, totals: &NormalTotals, values: &mut Vec<f64>) {
        let (df, location, scale) = totals.predictive(self);
        let (mean, variance) = totals.of_targets(self);
        values.extend([df, location, scale, mean, variance]);
    }

    fn prediction(&self, totals: &NormalTotals, prediction: &mut Vec<f64>) {
        prediction.push(totals.predictive(self).1);
    }
}

/// Predictive distributions: one Student t distribution for each row and tree, in row-major order.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Students {
    /// Degrees of freedom.
    pub df: Vec<f64>,
    /// Location.
    pub location: Vec<f64>,
    /// Scale.
    pub scale: Vec<f64>,
}

impl BayesianTreeRegressor {
    /// Samples the posterior.
    ///
    /// # Errors
    /// Invalid settings, lengths or values; an interrupt.
    pub fn fit(
        prior: &(impl TreePrior + 'static),
        leaf_prior: NormalPrior,
        sampler: &Sampler,
        rows: Rows<'_>,
        targets: &[f64],
        run: &Run<'_>,
    ) -> Result<Self> {
        Self::fit_known(known(prior), leaf_prior, sampler, rows, (targets, None), run)
    }

    /// Samples the posterior given rows with weights: a row of weight `w` counts as `w` rows, and the density of its target
    /// is raised to the power `w`.
    ///
    /// # Errors
    /// As [`BayesianTreeRegressor::fit`]; weights that are not from 1e-100 to 1e15.
    pub fn fit_weighted(
        prior: &(impl TreePrior + 'static),
        leaf_prior: NormalPrior,
        sampler: &Sampler,
        rows: Rows<'_>,
        (targets, weights): (&[f64], &[f64]),
        run: &Run<'_>,
    ) -> Result<Self> {
        Self::fit_known(known(prior), leaf_prior, sampler, rows, (targets, Some(weights)), run)
    }

    fn fit_known(
        prior: (&dyn TreePrior, Option<ChipmanPrior>),
        leaf_prior: NormalPrior,
        sampler: &Sampler,
        rows: Rows<'_>,
        (targets, weights): (&[f64], Option<&[f64]>),
        run: &Run<'_>,
    ) -> Result<Self> {
        check_lengths(rows, targets.len())?;
        check_squares(targets)?;
        if let Some(weights) = weights {
            let model = WeightedNormal::new((targets, weights), leaf_prior)?;
            return Self::sample(prior, leaf_prior, (&model, |sums| model.totals(sums)), sampler, rows, run);
        }
        let model = Normal::new(targets, leaf_prior)?;
        Self::sample(prior, leaf_prior, (&model, NormalSums::totals), sampler, rows, run)
    }

    /// The predictive mean of every row.
    ///
    /// # Errors
    /// A number of features other than in `fit`; a missing value in a model from an older file; an interrupt.
    pub fn predict(&self, rows: Rows<'_>, run: &Run<'_>) -> Result<Vec<f64>> {
        let of_nodes = self.predictives();
        let [means] =
            self.ensemble.predict(rows, run, 1, |leaves, [out]| out[0] = self.mean(&of_nodes, leaves))?;
        Ok(means)
    }

    /// The predictive mean of every row, and the standard deviation of its predictive distribution, noise
    /// included. It is infinite if a leaf has too few degrees of freedom for a variance.
    ///
    /// # Errors
    /// As [`BayesianTreeRegressor::predict`].
    pub fn predict_with_std(&self, rows: Rows<'_>, run: &Run<'_>) -> Result<(Vec<f64>, Vec<f64>)> {
        let of_nodes = self.predictives();
        let [means, stds] = self.ensemble.predict(rows, run, 1, |leaves, [mean, std]| {
            mean[0] = self.mean(&of_nodes, leaves);
            let trees = leaves.iter().zip(&of_nodes).zip(&self.ensemble.weights);
            let variance: f64 = trees
                .map(|((&leaf, of_nodes), weight)| {
                    let (df, location, scale) = of_nodes[leaf];
                    let own = if df > 2.0 { df / (df - 2.0) } else { f64::INFINITY };
                    weight * (own * scale.powi(2) + (location - mean[0]).powi(2))
                })
                .sum();
            std[0] = variance.sqrt();
        })?;
        Ok((means, stds))
    }

    /// The predictive distribution of every row: a mixture with one Student t distribution for each tree,
    /// weighted as the trees are.
    ///
    /// # Errors
    /// As [`BayesianTreeRegressor::predict`].
    pub fn predict_dist(&self, rows: Rows<'_>, run: &Run<'_>) -> Result<Students> {
        let of_nodes = self.predictives();
        let [df, location, scale] =
            self.ensemble.predict(rows, run, of_nodes.len(), |leaves, [df, location, scale]| {
                for (tree, (&leaf, of_nodes)) in leaves.iter().zip(&of_nodes).enumerate() {
                    (df[tree], location[tree], scale[tree]) = of_nodes[leaf];
                }
            })?;
        Ok(Students { df, location, scale })
    }

    /// The prior of a leaf's mean and variance.
    #[must_use]
    pub fn leaf_prior(&self) -> NormalPrior {
        self.leaf
    }

    /// The predictive mean of a row that is in these leaves.
    fn mean(&self, of_nodes: &[Vec<(f64, f64, f64)>], leaves: &[usize]) -> f64 {
        let trees = leaves.iter().zip(of_nodes).zip(&self.ensemble.weights);
        trees.map(|((&leaf, of_nodes), weight)| weight * of_nodes[leaf].1).sum()
    }

    /// Degrees of freedom, location and scale of the predictive distribution of each node of each tree.
    fn predictives(&self) -> Vec<Vec<(f64, f64, f64)>> {
        let of_tree = |tree: &PreorderTree<NormalTotals>| {
            tree.nodes.iter().map(|node| node.stats.predictive(&self.leaf)).collect()
        };
        self.ensemble.trees.iter().map(of_tree).collect()
    }
}
