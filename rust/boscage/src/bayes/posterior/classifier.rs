//! Bayesian decision trees for classes.

use crate::bayes::leaf::dirichlet::{ClassTotals, Counts, Dirichlet};
use crate::bayes::leaf::weighted_dirichlet::WeightedDirichlet;
use crate::bayes::posterior::bayesian_trees::{BayesianTrees, FittedLeaf, known};
use crate::bayes::posterior::weighted_trees::Sampler;
use crate::bayes::prior::{ChipmanPrior, TreePrior};
use crate::bayes::tree::PreorderTree;
use crate::control::Run;
use crate::data::Rows;
use crate::data::labels::Label;
use crate::error::{Error, Result};
use crate::validate::{check_codes, check_lengths};

/// A posterior over decision trees whose leaves have Dirichlet-multinomial classes (thesis chapter 3).
///
/// ```
/// use boscage::{BayesianTreeClassifier, ChipmanPrior, Label, Rows, Run, Sampler, SmcSettings};
///
/// let x: Vec<f64> = (0..40).map(f64::from).collect();
/// let codes: Vec<u32> = (0..40).map(|i| u32::from(i >= 20)).collect();
/// let labels = [Label::Text("low".into()), Label::Text("high".into())];
/// let trees = BayesianTreeClassifier::fit(
///     &ChipmanPrior::default(),
///     1.0,
///     &Sampler::Smc(SmcSettings::default()),
///     Rows::from_f64(&x, 1)?,
///     (&codes, &labels),
///     &Run::default(),
/// )?;
/// let proba = trees.predict_proba(Rows::from_f64(&[3.0], 1)?, &Run::default())?;
/// assert_eq!(trees.classes()[1], Label::Text("low".into()));
/// assert!(proba[1] > 0.9);
/// # Ok::<(), boscage::Error>(())
/// ```
pub type BayesianTreeClassifier = BayesianTrees<ClassLeaves>;

/// Dirichlet-multinomial leaves.
#[derive(Debug, Clone, PartialEq)]
pub struct ClassLeaves {
    /// The concentration of a leaf's Dirichlet prior.
    pub(crate) alpha: f64,
    /// The classes, ascending.
    pub(crate) labels: Vec<Label>,
}

impl FittedLeaf for ClassLeaves {
    type Stats = ClassTotals;

    fn n_rows(totals: &ClassTotals) -> u32 {
        totals.n_rows
    }

    fn weight(totals: &ClassTotals) -> f64 {
        totals.weight()
    }

    /// Weight of the rows of each class.
    fn values(&self, totals: &ClassTotals, values: &mut Vec<f64>) {
        values.extend(&totals.by_class);
    }

    fn prediction(&self, totals: &ClassTotals, prediction: &mut Vec<f64>) {
        prediction.extend(totals.predictive(self.alpha));
    }
}

impl BayesianTreeClassifier {
    /// Samples the posterior; `codes` has an index into `labels` for every row, and `labels` has each label once.
    /// `alpha` is the concentration of a leaf's Dirichlet prior.
    ///
    /// # Errors
    /// Invalid settings, lengths or values; an interrupt.
    pub fn fit(
        prior: &(impl TreePrior + 'static),
        alpha: f64,
        sampler: &Sampler,
        rows: Rows<'_>,
        (codes, labels): (&[u32], &[Label]),
        run: &Run<'_>,
    ) -> Result<Self> {
        Self::fit_known(known(prior), alpha, sampler, rows, (codes, labels, None), run)
    }

    /// Samples the posterior given rows with weights: a row of weight `w` counts as `w` rows, and the likelihood of its
    /// class is raised to the power `w`.
    ///
    /// # Errors
    /// As [`BayesianTreeClassifier::fit`]; weights that are not from 1e-100 to 1e15.
    pub fn fit_weighted(
        prior: &(impl TreePrior + 'static),
        alpha: f64,
        sampler: &Sampler,
        rows: Rows<'_>,
        (codes, labels, weights): (&[u32], &[Label], &[f64]),
        run: &Run<'_>,
    ) -> Result<Self> {
        Self::fit_known(known(prior), alpha, sampler, rows, (codes, labels, Some(weights)), run)
    }

    fn fit_known(
        prior: (&dyn TreePrior, Option<ChipmanPrior>),
        alpha: f64,
        sampler: &Sampler,
        rows: Rows<'_>,
        (codes, labels, weights): (&[u32], &[Label], Option<&[f64]>),
        run: &Run<'_>,
    ) -> Result<Self> {
        check_lengths(rows, codes.len())?;
        let (classes, labels) = sorted(codes, labels)?;
        let n_classes = labels.len();
        let leaf = ClassLeaves { alpha, labels };
        if let Some(weights) = weights {
            let model = WeightedDirichlet::new((&classes, weights), n_classes, alpha)?;
            return Self::sample(prior, leaf, (&model, |stats| model.totals(stats)), sampler, rows, run);
        }
        let model = Dirichlet::new(&classes, n_classes, alpha)?;
        Self::sample(prior, leaf, (&model, Counts::totals), sampler, rows, run)
    }

    /// Class probabilities, `n_rows x n_classes` in order of [`BayesianTreeClassifier::classes`]: the mean over
    /// trees of the leaves' predictives.
    ///
    /// # Errors
    /// A number of features other than in `fit`; a missing value in a model from an older file; an interrupt.
    pub fn predict_proba(&self, rows: Rows<'_>, run: &Run<'_>) -> Result<Vec<f64>> {
        let n_classes = self.leaf.labels.len();
        let of_nodes: Vec<Vec<f64>> = self.ensemble.trees.iter().map(|tree| self.predictives(tree)).collect();
        let [mut proba] = self.ensemble.predict(rows, run, n_classes, |leaves, [out]: [&mut [f64]; 1]| {
            for ((&leaf, of_nodes), weight) in leaves.iter().zip(&of_nodes).zip(&self.ensemble.weights) {
                let predictive = &of_nodes[leaf * n_classes..][..n_classes];
                out.iter_mut().zip(predictive).for_each(|(sum, p)| *sum += weight * p);
            }
        })?;
        // Rounding may take a weighted sum of probabilities above 1.
        for p in &mut proba {
            *p = p.min(1.0);
        }
        Ok(proba)
    }

    /// The classes, sorted.
    #[must_use]
    pub fn classes(&self) -> &[Label] {
        &self.leaf.labels
    }

    /// The concentration of a leaf's Dirichlet prior.
    #[must_use]
    pub fn alpha(&self) -> f64 {
        self.leaf.alpha
    }

    fn predictives(&self, tree: &PreorderTree<ClassTotals>) -> Vec<f64> {
        tree.nodes.iter().flat_map(|node| node.stats.predictive(self.leaf.alpha)).collect()
    }
}

/// The classes as indices into the sorted labels.
fn sorted(codes: &[u32], labels: &[Label]) -> Result<(Vec<u32>, Vec<Label>)> {
    check_codes(codes, labels.len())?;
    let mut order: Vec<usize> = (0..labels.len()).collect();
    order.sort_by(|&a, &b| labels[a].cmp(&labels[b]));
    if let Some(pair) = order.windows(2).find(|pair| labels[pair[0]] == labels[pair[1]]) {
        return Err(Error::InvalidSetting {
            name: "labels",
            expected: "distinct",
            found: format!("{:?} twice", labels[pair[0]]),
        });
    }
    let mut number = vec![0; labels.len()];
    order.iter().enumerate().for_each(|(i, &label)| number[label] = i as u32);
    let classes = codes.iter().map(|&code| number[code as usize]).collect();
    Ok((classes, order.into_iter().map(|label| labels[label].clone()).collect()))
}
