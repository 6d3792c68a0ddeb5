//! Bayesian decision trees for numbers.

use super::ensemble::Sampler;
use super::limits::check_squares;
use super::normal::{Moments, Normal, NormalPrior};
use super::posterior::{BayesianTrees, Leaf, check_lengths};
use super::prior::ChipmanPrior;
use super::tree::Tree;
use crate::data::Rows;
use crate::error::Result;
use crate::mondrian::Run;

/// A posterior over decision trees whose leaves have normal targets of unknown mean and variance.
///
/// ```
/// use boscage::{BayesianTreeRegressor, ChipmanPrior, NormalPrior, Rows, Run, Sampler, SmcSettings};
///
/// let x: Vec<f64> = (0..40).map(f64::from).collect();
/// let y: Vec<f64> = x.iter().map(|x| f64::from(u8::from(*x >= 20.0)) + 0.01 * (x % 3.0)).collect();
/// let trees = BayesianTreeRegressor::fit(
///     ChipmanPrior::default(),
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

impl Leaf for NormalPrior {
    type Stats = Moments;

    fn n_rows(moments: &Moments) -> u32 {
        moments.n
    }

    /// Degrees of freedom, location and scale of the predictive.
    fn values(&self, moments: &Moments, values: &mut Vec<f64>) {
        let (df, location, scale) = moments.predictive(self);
        values.extend([df, location, scale]);
    }
}

/// Predictive distributions: for each row one Student distribution a tree, row after row.
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
    /// Settings, lengths or values that are not as they should be; an interrupt.
    pub fn fit(
        prior: ChipmanPrior,
        leaf_prior: NormalPrior,
        sampler: &Sampler,
        rows: Rows<'_>,
        targets: &[f64],
        run: &Run<'_>,
    ) -> Result<Self> {
        check_lengths(rows, targets.len())?;
        check_squares(targets)?;
        let model = Normal::new(targets, leaf_prior)?;
        Self::sample(prior, leaf_prior, &model, sampler, rows, run)
    }

    /// The predictive mean of every row.
    ///
    /// # Errors
    /// A number of features other than in `fit`; an interrupt.
    pub fn predict(&self, rows: Rows<'_>, run: &Run<'_>) -> Result<Vec<f64>> {
        let of_nodes = self.predictives();
        self.ensemble.predict(rows, run, 1, |leaves, out: &mut [f64]| {
            let trees = leaves.iter().zip(&of_nodes).zip(&self.ensemble.weights);
            out[0] = trees.map(|((&leaf, of_nodes), weight)| weight * of_nodes[leaf].1).sum();
        })
    }

    /// The predictive distribution of every row: a mixture of Student distributions, one a tree, which weigh
    /// what the trees do.
    ///
    /// # Errors
    /// As [`BayesianTreeRegressor::predict`].
    pub fn predict_dist(&self, rows: Rows<'_>, run: &Run<'_>) -> Result<Students> {
        let of_nodes = self.predictives();
        let n_trees = of_nodes.len();
        let numbers = self.ensemble.predict(rows, run, 3 * n_trees, |leaves, out: &mut [f64]| {
            for (tree, (&leaf, of_nodes)) in leaves.iter().zip(&of_nodes).enumerate() {
                let (df, location, scale) = of_nodes[leaf];
                [out[tree], out[n_trees + tree], out[2 * n_trees + tree]] = [df, location, scale];
            }
        })?;
        let mut students = Students::default();
        for row in numbers.chunks_exact(3 * n_trees) {
            students.df.extend_from_slice(&row[..n_trees]);
            students.location.extend_from_slice(&row[n_trees..2 * n_trees]);
            students.scale.extend_from_slice(&row[2 * n_trees..]);
        }
        Ok(students)
    }

    /// The prior of a leaf's mean and variance.
    #[must_use]
    pub fn leaf_prior(&self) -> NormalPrior {
        self.leaf
    }

    fn predictives(&self) -> Vec<Vec<(f64, f64, f64)>> {
        let of_tree =
            |tree: &Tree<Moments>| tree.nodes.iter().map(|node| node.stats.predictive(&self.leaf)).collect();
        self.ensemble.trees.iter().map(of_tree).collect()
    }
}
