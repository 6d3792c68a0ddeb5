//! BART for classes: probit for two classes, one sum of trees for each class if there are more.

use crate::bart::backfitting::general::GeneralBackfitter;
use crate::bart::chain::{BartTrace, Chains, LinkFunction, SumsOfTrees, Watch, fingerprint};
use crate::bart::chain_state::multinomial::Multinomial;
use crate::bart::chain_state::weighted_classes::WeightedClasses;
use crate::bart::chain_state::weighted_normal::WeightedProblem;
use crate::bart::kernels::context::Odds;
use crate::bart::leaves::multinomial::OneClass;
use crate::bart::leaves::poisson::LogGamma;
use crate::bart::posterior::export::{DrawnTree, SharedTree};
use crate::bart::posterior::regressor::{sample, sample_weighted};
use crate::bart::response::{ProbitResponse, ScaledProblem};
use crate::bart::settings::BartSettings;
use crate::control::{Run, Threads};
use crate::data::Rows;
use crate::data::labels::Label;
use crate::data::sorted::columns::SortedColumns;
use crate::error::{Error, Result};
use crate::explain::Contributions;
use crate::math::special_functions::{normal_cdf, normal_quantile};
use crate::random::keyed::Stream;
use crate::validate::{check, check_row_weights};

/// Largest number of trees in all sums together.
const MAX_TREES_IN_ALL: usize = 100_000;

/// A posterior over sums of trees for classes. With two classes, the probability of the second is the
/// standard normal distribution function of the sum of trees (Chipman et al. 2010, section 4). With more
/// classes, each class has a sum of trees, and its probability is proportional to the exponential of the sum
/// (Murray 2021).
///
/// ```
/// use boscage::{BartClassifier, BartSettings, Label, Rows, Run};
///
/// let x: Vec<f64> = (0..40).map(f64::from).collect();
/// let labels: Vec<Label> = x.iter().map(|x| Label::Bool(*x >= 20.0)).collect();
/// let settings = BartSettings { n_chains: 2, ..BartSettings::for_trees(20) };
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
    /// Samples the posterior. The settings of the noise are not used.
    ///
    /// # Errors
    /// Invalid settings, lengths or values; fewer than two classes; an interrupt.
    pub fn fit(settings: &BartSettings, rows: Rows<'_>, labels: &[Label], run: &Run<'_>) -> Result<Self> {
        Self::fit_from(None, None, (settings, rows, labels, None), run)
    }

    /// Samples the posterior given rows with weights: a row of weight `w` counts as `w` equal rows, so its likelihood is
    /// raised to the power `w`. If there are two classes, weights are whole numbers.
    ///
    /// # Errors
    /// As [`BartClassifier::fit`]; weights that are not from 1e-12 to 1e9, or not whole numbers from 1 to 65,536 if there are
    /// two classes.
    pub fn fit_weighted(
        settings: &BartSettings,
        rows: Rows<'_>,
        labels: &[Label],
        weights: &[f64],
        run: &Run<'_>,
    ) -> Result<Self> {
        Self::fit_from(None, None, (settings, rows, labels, Some(weights)), run)
    }

    /// Continues the chains of a fit of the same data and settings until there are `n_draws` draws. The
    /// result is equal, bit for bit, to that of a single fit. `watch` is called after every sweep.
    ///
    /// # Errors
    /// As [`BartClassifier::fit_weighted`]; settings (except `n_draws`) or data that differ from those of `from`; fewer draws than
    /// `from` has; an error of `watch`.
    pub fn fit_from(
        from: Option<&Self>,
        watch: Option<&Watch<'_>>,
        (settings, rows, labels, weights): (&BartSettings, Rows<'_>, &[Label], Option<&[f64]>),
        run: &Run<'_>,
    ) -> Result<Self> {
        settings.check_fit(rows, labels.len())?;
        weights.map_or(Ok(()), |weights| check_row_weights(weights, labels.len()))?;
        let mut classes = labels.to_vec();
        classes.sort_unstable();
        classes.dedup();
        let n_trees = settings.n_trees.saturating_mul(classes.len());
        check("the number of classes", classes.len() >= 2, "at least 2", &classes.len())?;
        let known = !settings.learn_k || classes.len() == 2;
        check("k", known, "a number if there are more than two classes", &"a prior of k")?;
        check(
            "n_trees times the number of classes",
            n_trees <= MAX_TREES_IN_ALL,
            "at most 100000",
            &n_trees,
        )?;
        let code = |label| classes.partition_point(|class| class < label);
        let codes: Vec<usize> = labels.iter().map(code).collect();
        let chains = |centres| Chains {
            settings,
            centres,
            fingerprint: fingerprint(settings, rows, observed(&codes, weights)),
            starts_alike: false,
            from: from.map(|from| &from.posterior),
            watch,
        };
        let shares = shares(&codes, weights, classes.len());
        let posterior = if classes.len() > 2 {
            let centres = shares.into_iter().map(libm::log).collect();
            sample_classes((&codes, weights), &chains(centres), rows, run)?
        } else {
            let offset = normal_quantile(shares[1]);
            let (chains, positive) = (chains(vec![offset]), codes.iter().map(|&code| code == 1).collect());
            match weights {
                None => sample(&problem(settings, positive, offset), &chains, rows, run)?,
                Some(weights) => {
                    let classes = WeightedClasses::new(positive, weights, offset)?;
                    sample_weighted(&weighted_problem(settings, classes), &chains, rows, run)?
                }
            }
        };
        Ok(Self { posterior, classes, annotation: String::new() })
    }

    /// As [`BartRegressor::join`](crate::BartRegressor::join).
    ///
    /// # Errors
    /// No chain; chains of other data or settings; a chain given twice.
    pub fn join(chains: Vec<Self>) -> Result<Self> {
        let classes = chains.first().map_or_else(Vec::new, |chain| chain.classes.clone());
        if chains.iter().any(|chain| chain.classes != classes) {
            return Err(Error::NotJoinable { what: "classes" });
        }
        let posterior = SumsOfTrees::join(chains.into_iter().map(|chain| chain.posterior).collect())?;
        Ok(Self { posterior, classes, annotation: String::new() })
    }

    /// Probabilities averaged over draws: of the second class for every row if there are two classes, else of
    /// all classes, row by row.
    ///
    /// # Errors
    /// A number of features other than in `fit`; a missing value in a model from an older file; an interrupt.
    pub fn predict_proba(&self, rows: Rows<'_>, run: &Run<'_>) -> Result<Vec<f64>> {
        self.posterior.mean(rows, run, self.link())
    }

    /// Probabilities in every draw, one draw after the other; draws of the first chain come first.
    ///
    /// # Errors
    /// As [`BartClassifier::predict_proba`].
    pub fn predict_draws(&self, rows: Rows<'_>, run: &Run<'_>) -> Result<Vec<f64>> {
        self.posterior.at(rows, run, self.link())
    }

    fn link(&self) -> LinkFunction {
        if self.posterior.n_sums() == 1 {
            |sums, _| sums.iter_mut().for_each(|f| *f = normal_cdf(*f))
        } else {
            softmax
        }
    }

    /// The classes, ascending.
    #[must_use]
    pub fn classes(&self) -> &[Label] {
        &self.classes
    }

    /// Shapley values of the sum of trees in every draw, before any link to probabilities. The rows of `background` are those
    /// whose shares stand for features that are not known.
    ///
    /// # Errors
    /// A number of features other than in `fit`; a missing value in a model from an older file; an interrupt.
    pub fn shapley_draws(
        &self,
        rows: Rows<'_>,
        background: Rows<'_>,
        run: &Run<'_>,
    ) -> Result<Vec<Contributions>> {
        self.posterior.shapley_draws(rows, background, run)
    }

    /// The trace of each chain; `sigma` is 1.
    #[must_use]
    pub fn traces(&self) -> &[BartTrace] {
        &self.posterior.traces
    }

    /// Number of cuts along each feature in each draw, one draw after the other.
    ///
    /// # Errors
    /// [`Error::Memory`](crate::Error::Memory), if there are too many features for the memory.
    pub fn cuts(&self) -> Result<Vec<u32>> {
        self.posterior.cuts()
    }

    /// The trees of a draw as arrays. With more than two classes the trees of the first class come first. The
    /// sum of the leaf values is added to the [centre](BartClassifier::centres).
    ///
    /// # Errors
    /// A draw that there is not.
    pub fn trees(&self, draw: usize) -> Result<Vec<DrawnTree>> {
        self.posterior.trees(draw)
    }

    /// The trees of all draws, those with the same splits together. Sums are numbered draw by draw, and within a draw
    /// class by class where each class has a sum.
    #[must_use]
    pub fn shared_trees(&self) -> Vec<SharedTree> {
        self.posterior.shared_trees()
    }

    /// The constant that is added to each sum of trees: with two classes the normal quantile of the share of
    /// the second, with more the logarithm of each share.
    #[must_use]
    pub fn centres(&self) -> &[f64] {
        &self.posterior.centres
    }
}

facts_of_draws!(BartClassifier);

/// The classes of rows, and their weights if they have any, as a hash takes them.
fn observed<'a>(codes: &'a [usize], weights: Option<&'a [f64]>) -> impl Iterator<Item = u64> + 'a {
    let weights = weights.unwrap_or_default().iter().map(|weight| weight.to_bits());
    codes.iter().map(|&code| code as u64).chain(weights)
}

/// The standard deviation of leaves with which `k` prior standard deviations of the sum of trees are 3.
fn sigma_mu(settings: &BartSettings) -> f64 {
    3.0 / (settings.k * (settings.n_trees as f64).sqrt())
}

/// Latent targets with unit noise.
fn problem(settings: &BartSettings, positive: Vec<bool>, offset: f64) -> ScaledProblem<ProbitResponse> {
    let latent = vec![0.0; positive.len()];
    ScaledProblem {
        targets: latent.clone(),
        centre: offset,
        scale: 1.0,
        sigma: 1.0,
        sigma_mu: sigma_mu(settings),
        response: ProbitResponse { positive, offset, latent },
    }
}

/// The same for rows with weights.
fn weighted_problem(settings: &BartSettings, classes: WeightedClasses) -> WeightedProblem {
    let n_rows = classes.n_rows();
    WeightedProblem {
        targets: vec![0.0; n_rows],
        weights: vec![1.0; n_rows],
        scale: 1.0,
        sigma: 1.0,
        prior: None,
        sigma_mu: sigma_mu(settings),
        classes: Some(classes),
    }
}

/// The classes' shares of the weight of all rows.
fn shares(codes: &[usize], weights: Option<&[f64]>, n_classes: usize) -> Vec<f64> {
    let mut of_class = vec![0.0; n_classes];
    for (row, &code) in codes.iter().enumerate() {
        of_class[code] += weights.map_or(1.0, |weights| weights[row]);
    }
    let all: f64 = of_class.iter().sum();
    of_class.iter().map(|weight| weight / all).collect()
}

/// One sum of trees for each class. The log odds of two classes have prior standard deviation `5 / k`, about
/// as with two classes.
fn sample_classes(
    (codes, weights): (&[usize], Option<&[f64]>),
    chains: &Chains<'_>,
    rows: Rows<'_>,
    run: &Run<'_>,
) -> Result<SumsOfTrees> {
    let settings = chains.settings;
    let table = SortedColumns::new(rows, &Threads::new(run.n_threads), run.control)?;
    let odds = Odds::new(settings.prior);
    let prior = LogGamma::new(5.0 / (settings.k * (2.0 * settings.n_trees as f64).sqrt()));
    let weight = |row: usize| weights.map_or(1.0, |weights| weights[row]);
    let sampler = |number: usize, stream: &mut Stream| {
        let of_class = |class: usize| OneClass {
            prior,
            counts: (0..codes.len()).map(|row| if codes[row] == class { weight(row) } else { 0.0 }).collect(),
            log_phi: vec![0.0; codes.len()],
        };
        let classes: Vec<OneClass> = (0..chains.centres.len()).map(of_class).collect();
        let backfitter = |(class, &centre): (&OneClass, &f64)| {
            GeneralBackfitter::start(number, (&table, settings, &odds), class, centre, stream, run.control)
        };
        let backfitters = classes.iter().zip(&chains.centres).map(backfitter).collect::<Result<_>>()?;
        Ok(Multinomial { backfitters, classes })
    };
    chains.run(&table, sampler, run)
}

/// Probabilities from their unnormalised logarithms, which are ordered by sum.
fn softmax(sums: &mut [f64], n_rows: usize) {
    for row in 0..n_rows {
        let places = || (row..sums.len()).step_by(n_rows);
        let best = places().map(|i| sums[i]).fold(f64::NEG_INFINITY, f64::max);
        let total: f64 = places().map(|i| libm::exp(sums[i] - best)).sum();
        for i in (row..sums.len()).step_by(n_rows) {
            sums[i] = libm::exp(sums[i] - best) / total;
        }
    }
}
