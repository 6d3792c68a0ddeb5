//! BART for two classes (probit).

use super::chain::{BartTrace, Problem, SumsOfTrees};
use super::export::DrawnTree;
use super::noise::{normal_cdf, normal_quantile};
use super::response::Signs;
use super::settings::BartSettings;
use crate::bayes::check_lengths;
use crate::data::Rows;
use crate::error::{Error, Result};
use crate::mondrian::{Label, Run};

/// A posterior over sums of trees whose normal distribution function is the probability of the second class
/// (Chipman et al. 2010, section 4).
///
/// ```
/// use boscage::{BartClassifier, BartSettings, Label, Rows, Run};
///
/// let x: Vec<f64> = (0..40).map(f64::from).collect();
/// let labels: Vec<Label> = x.iter().map(|x| Label::Bool(*x >= 20.0)).collect();
/// let settings = BartSettings { n_trees: 20, n_chains: 2, ..BartSettings::default() };
/// let bart = BartClassifier::fit(&settings, Rows::from_f64(&x, 1)?, &labels, &Run::default())?;
/// let p = bart.predict_proba(Rows::from_f64(&[3.0], 1)?, &Run::default())?;
/// assert!(p[0] < 0.2);
/// # Ok::<(), boscage::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct BartClassifier {
    pub(crate) posterior: SumsOfTrees,
    pub(crate) classes: Vec<Label>,
    pub(crate) annotation: String,
}

impl BartClassifier {
    /// Samples the posterior; `settings` of the noise are of no use here.
    ///
    /// # Errors
    /// Settings, lengths or values that are not as they should be, other than two classes; an interrupt.
    pub fn fit(settings: &BartSettings, rows: Rows<'_>, labels: &[Label], run: &Run<'_>) -> Result<Self> {
        settings.check()?;
        check_lengths(rows, labels.len())?;
        let mut classes = labels.to_vec();
        classes.sort_unstable();
        classes.dedup();
        if classes.len() != 2 {
            return Err(Error::InvalidSetting {
                name: "the number of classes",
                expected: "2",
                found: classes.len().to_string(),
            });
        }
        let positive: Vec<bool> = labels.iter().map(|label| *label == classes[1]).collect();
        let posterior = SumsOfTrees::sample(&problem(settings, positive), settings, rows, run)?;
        Ok(Self { posterior, classes, annotation: String::new() })
    }

    /// The probability of the second class for every row, averaged over draws.
    ///
    /// # Errors
    /// A number of features other than in `fit`; an interrupt.
    pub fn predict_proba(&self, rows: Rows<'_>, run: &Run<'_>) -> Result<Vec<f64>> {
        self.posterior.mean(rows, run, normal_cdf)
    }

    /// The same in every draw, one draw after the other, those of the first chain first.
    ///
    /// # Errors
    /// As [`BartClassifier::predict_proba`].
    pub fn predict_draws(&self, rows: Rows<'_>, run: &Run<'_>) -> Result<Vec<f64>> {
        let sums = self.posterior.at(rows, run)?;
        Ok(sums.into_iter().map(normal_cdf).collect())
    }

    /// The two classes, ascending.
    #[must_use]
    pub fn classes(&self) -> &[Label] {
        &self.classes
    }

    /// What each chain reports of its draws; `sigma` is 1.
    #[must_use]
    pub fn traces(&self) -> &[BartTrace] {
        &self.posterior.traces
    }

    /// How many cuts of each draw are along each dimension, one draw after the other.
    #[must_use]
    pub fn cuts(&self) -> Vec<u32> {
        self.posterior.cuts()
    }

    /// The trees of a draw as arrays; their values add up, to [`BartClassifier::centre`].
    #[must_use]
    pub fn trees(&self, draw: usize) -> Vec<DrawnTree> {
        self.posterior.trees(draw)
    }

    /// What the sum of trees is added to: the quantile of the share of the second class.
    #[must_use]
    pub fn centre(&self) -> f64 {
        self.posterior.centre
    }

    /// Number of draws of all chains.
    #[must_use]
    pub fn n_draws(&self) -> usize {
        self.posterior.n_draws()
    }

    /// Number of features.
    #[must_use]
    pub fn n_features(&self) -> usize {
        self.posterior.n_features
    }

    /// Number of trees in a sum.
    #[must_use]
    pub fn n_trees(&self) -> usize {
        self.posterior.n_trees
    }

    /// Text kept with the model and in its file.
    #[must_use]
    pub fn annotation(&self) -> &str {
        &self.annotation
    }

    /// Sets the text of [`annotation`](Self::annotation).
    pub fn set_annotation(&mut self, text: impl Into<String>) {
        self.annotation = text.into();
    }
}

/// Latent numbers of unit noise; `f` is a priori within 3 for `k` standard deviations.
fn problem(settings: &BartSettings, positive: Vec<bool>) -> Problem<Signs> {
    let n = positive.len() as f64;
    let offset = normal_quantile(positive.iter().filter(|&&positive| positive).count() as f64 / n);
    let latent = vec![0.0; positive.len()];
    Problem {
        targets: latent.clone(),
        centre: offset,
        scale: 1.0,
        sigma: 1.0,
        sigma_mu: 3.0 / (settings.k * (settings.n_trees as f64).sqrt()),
        response: Signs { positive, offset, latent },
    }
}
