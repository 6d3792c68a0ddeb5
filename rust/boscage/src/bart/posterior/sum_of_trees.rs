//! Sums of trees with a leaf model of the user's.

use crate::bart::backfitting::general::GeneralBackfitter;
use crate::bart::chain::{BartTrace, Chains, SumsOfTrees, Watch};
use crate::bart::chain_state::general::GeneralChainState;
use crate::bart::kernels::context::Odds;
use crate::bart::leaves::model::LeafModel;
use crate::bart::posterior::export::DrawnTree;
use crate::bart::settings::BartSettings;
use crate::control::{Run, Threads};
use crate::data::Rows;
use crate::data::sorted::columns::SortedColumns;
use crate::error::Result;
use crate::random::keyed::Stream;

/// A posterior over sums of trees given a [`LeafModel`], from the same sampler as that of the other models.
///
/// ```
/// use boscage::{BartSettings, PoissonLeaves, Rows, Run, SumOfTrees};
///
/// let x: Vec<f64> = (0..40).map(f64::from).collect();
/// let counts: Vec<f64> = x.iter().map(|x| if *x < 20.0 { 1.0 } else { 9.0 }).collect();
/// let settings = BartSettings { n_chains: 2, ..BartSettings::for_trees(20) };
/// let model = PoissonLeaves::new(&counts, &[1.0; 40], &settings)?;
/// let rates = SumOfTrees::fit(&settings, Rows::from_f64(&x, 1)?, &model, None, &Run::default())?;
/// let f = rates.predict(Rows::from_f64(&[3.0, 30.0], 1)?, &Run::default())?;
/// assert!(f[0] < 1.0 && f[1] > 1.8);
/// # Ok::<(), boscage::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct SumOfTrees {
    posterior: SumsOfTrees,
}

impl SumOfTrees {
    /// Samples the posterior. The priors of leaf values and noise are those of the model; the ones in
    /// `settings` are not used. `watch` is called after every sweep.
    ///
    /// # Errors
    /// Invalid settings or lengths; a model's `log_marginal` that is not finite; an interrupt; an error of `watch`.
    pub fn fit<M: LeafModel>(
        settings: &BartSettings,
        rows: Rows<'_>,
        model: &M,
        watch: Option<&Watch<'_>>,
        run: &Run<'_>,
    ) -> Result<Self> {
        settings.check_fit(rows, model.n_rows())?;
        let table = SortedColumns::new(rows, &Threads::new(run.n_threads), run.control)?;
        let odds = Odds::new(settings.prior);
        let chains = Chains::alone(settings, watch);
        let sampler = |number: usize, stream: &mut Stream| {
            let setting = (&table, settings, &odds);
            let backfitter = GeneralBackfitter::start(number, setting, model, 0.0, stream, run.control)?;
            Ok(GeneralChainState { backfitter, model: model.clone() })
        };
        Ok(Self { posterior: chains.run(&table, sampler, run)? })
    }

    /// The posterior mean of the sum of trees at every row.
    ///
    /// # Errors
    /// A number of features other than in `fit`; a missing value in a model from an older file; an interrupt.
    pub fn predict(&self, rows: Rows<'_>, run: &Run<'_>) -> Result<Vec<f64>> {
        self.posterior.mean(rows, run, |_, _| {})
    }

    /// The sum of trees at every row in every draw, one draw after the other; draws of the first chain come
    /// first.
    ///
    /// # Errors
    /// As [`SumOfTrees::predict`].
    pub fn predict_draws(&self, rows: Rows<'_>, run: &Run<'_>) -> Result<Vec<f64>> {
        self.posterior.at(rows, run, |_, _| {})
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

    /// The trees of a draw as arrays. The prediction is the sum of their values.
    ///
    /// # Errors
    /// A draw that there is not.
    pub fn trees(&self, draw: usize) -> Result<Vec<DrawnTree>> {
        self.posterior.trees(draw)
    }

    /// Number of draws of all chains.
    #[must_use]
    pub fn n_draws(&self) -> usize {
        self.posterior.n_draws()
    }
}
