//! Settings of BART: priors (section 4.2.4) and sampler.

use crate::bart::kernel_table::{Kernel, Kernels};
use crate::bayes::prior::ChipmanPrior;
use crate::bayes::smc::proposals::Proposal;
use crate::data::Rows;
use crate::error::{Error, Result};
use crate::validate::{
    GAMMA_SHAPES, Interval, MAX_CHAINS, MAX_DRAWS, MAX_PARTICLES, MAX_STEPS, PSEUDO_COUNTS, check,
    check_count, check_lengths, check_numbers, check_product, check_within,
};

/// A prior of the features' split probabilities (Linero 2018), `s ~ Dirichlet(alpha / p, ..., alpha / p)` for
/// `p` features, under which most features of many are rarely cut.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Sparsity {
    /// The concentration. None: it is sampled, with the prior `alpha / (alpha + p) ~ Beta(1/2, 1)`.
    pub alpha: Option<f64>,
}

/// Largest number of trees in a sum.
const MAX_TREES: (usize, &str) = (100_000, "from 1 to 100000");

/// Largest number of counts or probabilities that are kept by draw and feature.
pub(crate) const MAX_BY_FEATURE: (usize, &str) = (4_000_000_000, "from 1 to 4000000000");

/// Degrees of freedom of the prior of the variance of leaf values.
pub(crate) const SPREAD_DF: f64 = 6.0;

/// Values of `k` for which rounding errors are small compared with the targets.
const SHRINKAGE: Interval = (1e-4, 1e4, "from 0.0001 to 10000");

/// Priors and sampler of sums of trees. Defaults of the priors are those of section 4.2.4.
#[derive(Debug, Clone, PartialEq)]
pub struct BartSettings {
    /// Number of trees in the sum, `M`.
    pub n_trees: usize,
    /// Number of independent chains. The first starts from trees without cuts, each other one from a draw of
    /// the prior.
    pub n_chains: usize,
    /// The only chain to run, from 0; None runs all. Fits of single chains can be joined to that of all chains.
    pub chain: Option<usize>,
    /// Sweeps of a chain before the first kept draw.
    pub n_burn: usize,
    /// Number of draws kept from each chain.
    pub n_draws: usize,
    /// Number of sweeps between two kept draws.
    pub thin: usize,
    /// The kernels that change trees. The defaults are those for 200 trees: begin with [`BartSettings::for_trees`] for
    /// another number of them.
    pub kernels: Kernels,
    /// Number of particles of Particle Gibbs, including the retained one.
    pub n_particles: usize,
    /// The proposal of particles.
    pub proposal: Proposal,
    /// The prior probability that a node is split, by depth (eq. 4.3).
    pub prior: ChipmanPrior,
    /// The prior of split probabilities; None if all features are equally probable.
    pub sparse: Option<Sparsity>,
    /// Shrinkage of leaf values: `2 k` prior standard deviations of the sum of trees are the range of the
    /// targets.
    pub k: f64,
    /// Whether `k` is sampled, for numbers and for two classes. The prior variance of leaf values is then
    /// that of the `k` above times `6 / chi2(6)`.
    pub learn_k: bool,
    /// Degrees of freedom of the prior of the noise variance.
    pub nu: f64,
    /// The prior probability that the noise is less than its over-estimate.
    pub q: f64,
    /// The standard deviation of the noise, if it is known.
    pub sigma: Option<f64>,
    /// An over-estimate of it; a least squares estimate if None.
    pub sigma_estimate: Option<f64>,
    /// Seed of all draws.
    pub seed: u64,
}

impl Default for BartSettings {
    /// Those of a sum of 200 trees; see [`BartSettings::for_trees`].
    fn default() -> Self {
        Self {
            n_trees: 200,
            n_chains: 4,
            chain: None,
            n_burn: 500,
            n_draws: 500,
            thin: 1,
            kernels: Kernels::for_trees(200),
            n_particles: 10,
            proposal: Proposal::Prior,
            prior: ChipmanPrior::new(0.95, 2.0).expect("the default is valid"),
            sparse: None,
            k: 2.0,
            learn_k: false,
            nu: 3.0,
            q: 0.9,
            sigma: None,
            sigma_estimate: None,
            seed: 0,
        }
    }
}

impl BartSettings {
    /// The default settings of a sum of so many trees. The kernels that mix well depend on their number.
    #[must_use]
    pub fn for_trees(n_trees: usize) -> Self {
        Self { n_trees, kernels: Kernels::for_trees(n_trees), ..Self::default() }
    }

    /// # Errors
    /// [`Error::InvalidSetting`].
    pub fn check(&self) -> Result<()> {
        let invalid = |name, expected, found: String| Err(Error::InvalidSetting { name, expected, found });
        let counts = [
            ("n_trees", self.n_trees, MAX_TREES),
            ("n_chains", self.n_chains, MAX_CHAINS),
            ("n_draws", self.n_draws, MAX_DRAWS),
            ("thin", self.thin, MAX_STEPS),
            ("n_particles", self.n_particles, MAX_PARTICLES),
        ];
        for (name, value, most) in counts {
            check_count(name, value, most)?;
        }
        check_numbers("chain", self.chain, self.n_chains)?;
        if self.n_burn > MAX_STEPS.0 {
            return invalid("n_burn", "at most 1000000000", self.n_burn.to_string());
        }
        check_product("n_chains * n_draws", &[self.n_chains, self.n_draws], MAX_DRAWS)?;
        let kept = [self.n_chains, self.n_draws, self.n_trees];
        check_product("n_chains * n_draws * n_trees", &kept, MAX_STEPS)?;
        check_product("n_chains * n_draws * thin", &[self.n_chains, self.n_draws, self.thin], MAX_STEPS)?;
        check_product(
            "n_chains * n_burn",
            &[self.n_chains, self.n_burn],
            (MAX_STEPS.0, "at most 1000000000"),
        )?;
        check_within("k", self.k, SHRINKAGE)?;
        check_within("nu", self.nu, GAMMA_SHAPES)?;
        if let Some(alpha) = self.sparse.and_then(|sparse| sparse.alpha) {
            check_within("sparse, the concentration of split probabilities,", alpha, PSEUDO_COUNTS)?;
        }
        for (name, value) in [("sigma", self.sigma), ("sigma_estimate", self.sigma_estimate)] {
            if let Some(value) = value {
                check(name, value > 0.0 && value.is_finite(), "positive and finite", &value)?;
            }
        }
        if !(self.q > 0.0 && self.q < 1.0) {
            return invalid("q", "between 0 and 1, both excluded", self.q.to_string());
        }
        let shares = self.kernels.shares();
        let are_probabilities = shares.iter().all(|p| *p >= 0.0);
        if !are_probabilities || (shares.iter().sum::<f64>() - 1.0).abs() > 1e-9 {
            let name = "the shares of the sampler's kernels";
            return invalid(name, "probabilities that sum to one", format!("{shares:?}"));
        }
        let draws_particles =
            Kernel::ALL.iter().any(|&kernel| kernel.needs_particles() && self.kernels.share(kernel) > 0.0);
        let expected = "at least 2 if trees are drawn by pg or regrow, since one particle is the old tree";
        check("n_particles", self.n_particles >= 2 || !draws_particles, expected, &self.n_particles)?;
        if matches!(self.proposal, Proposal::OptimalSubset(0) | Proposal::Exploring(0)) {
            return invalid("the number of features that a proposal considers", "at least 1", "0".into());
        }
        Ok(())
    }

    /// All settings except the number of draws and the chain to run, as they are hashed. Files store the hash, and a fit is
    /// continued only with equal settings. A setting or kernel of a later version must not change the hash
    /// while it is not used, so that fits in old files can be continued.
    pub(crate) fn hashed(&self) -> Vec<u64> {
        let Self {
            n_trees,
            n_chains,
            chain: _,
            n_burn,
            n_draws: _,
            thin,
            kernels,
            n_particles,
            proposal,
            prior,
            sparse,
            k,
            learn_k,
            nu,
            q,
            sigma,
            sigma_estimate,
            seed,
        } = *self;
        let (shares, later_kernels) = kernels.hashed();
        let (which, n_considered) = match proposal {
            Proposal::Prior => (0, 0),
            Proposal::Empirical => (1, 0),
            Proposal::Optimal => (2, 0),
            Proposal::OptimalSubset(n) => (3, n),
            Proposal::Exploring(n) => (4, n),
        };
        // No valid concentration has the code of None or of a sampled concentration.
        let alpha = sparse.map_or(-1.0, |sparse| sparse.alpha.unwrap_or(0.0));
        let [sigma, sigma_estimate] = [sigma, sigma_estimate].map(|sigma| sigma.unwrap_or(0.0));
        let counts = [n_trees, n_chains, n_burn, thin, n_particles, which, n_considered].map(|n| n as u64);
        let more = [prior.alpha_s(), prior.beta_s(), alpha, k, nu, q, sigma, sigma_estimate];
        let numbers = shares.into_iter().chain(more).map(f64::to_bits);
        let first = counts.into_iter().chain(numbers).chain([seed]);
        first.chain(learn_k.then_some(1)).chain(later_kernels).collect()
    }

    /// Checks the settings and the numbers of rows, targets and features.
    ///
    /// # Errors
    /// As [`Self::check`]; lengths that differ, no rows, too many features.
    pub(crate) fn check_fit(&self, rows: Rows<'_>, n_targets: usize) -> Result<()> {
        self.check()?;
        check_lengths(rows, n_targets)?;
        let by_feature = [self.n_chains, self.n_draws, rows.n_features()];
        check_product("n_chains * n_draws * the number of features", &by_feature, MAX_BY_FEATURE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The error for an invalid setting.
    fn refused(settings: &BartSettings) -> String {
        settings.check().expect_err("the setting is invalid").to_string()
    }

    #[test]
    fn numbers_are_within_bounds() {
        let default = BartSettings::default;
        for k in [0.0, 9e-5, 1.1e4, 1e-200, f64::INFINITY, f64::NAN] {
            assert!(refused(&BartSettings { k, ..default() }).starts_with("k must be from 0.0001 to 10000"));
        }
        for nu in [0.0, 1e-10, 1e10, f64::NAN] {
            assert!(refused(&BartSettings { nu, ..default() }).starts_with("nu must be from"));
        }
        for bad in [0.0, -1.0, f64::INFINITY, f64::NAN] {
            assert!(refused(&BartSettings { sigma: Some(bad), ..default() }).starts_with("sigma must be"));
            let settings = BartSettings { sigma_estimate: Some(bad), ..default() };
            assert!(refused(&settings).starts_with("sigma_estimate must be"));
        }
        let sparse = Some(Sparsity { alpha: Some(1e-300) });
        assert!(refused(&BartSettings { sparse, ..default() }).contains("from 1e-100 to 1e100"));
    }

    /// One particle is the old tree, so a kernel that changes trees only by particles needs another one.
    #[test]
    fn particles_are_at_least_two_where_they_are_used() {
        let with = |kernels| BartSettings { n_particles: 1, kernels, ..BartSettings::default() };
        for kernels in [
            Kernels::only(Kernel::ParticleGibbs),
            Kernels::new(&[(Kernel::Local, 0.9), (Kernel::Regrow, 0.1)]),
            Kernels::for_trees(200),
        ] {
            assert!(refused(&with(kernels)).starts_with("n_particles must be at least 2"));
            assert!(BartSettings { n_particles: 2, ..with(kernels) }.check().is_ok());
        }
        assert!(with(Kernels::new(&[(Kernel::Local, 0.5), (Kernel::Edit, 0.5)])).check().is_ok());
    }

    #[test]
    fn shares_of_kernels_are_probabilities_that_sum_to_one() {
        for (local, edit) in [(f64::INFINITY, 0.0), (0.5, 0.4), (1.5, -0.5), (f64::NAN, 1.0)] {
            let kernels = Kernels::new(&[(Kernel::Local, local), (Kernel::Edit, edit)]);
            let error = refused(&BartSettings { kernels, ..BartSettings::default() });
            assert!(error.contains("sampler's kernels must be probabilities that sum to one"), "{error}");
        }
    }

    #[test]
    fn what_is_kept_by_feature_is_bounded() {
        let settings = BartSettings { n_chains: 1, n_draws: 1_000_000, ..BartSettings::default() };
        let x = vec![0.0; 4001];
        let fits = |n: usize| settings.check_fit(Rows::from_f64(&x[..n], n).unwrap(), 1);
        assert!(fits(4000).is_ok());
        assert!(fits(4001).unwrap_err().to_string().contains("the number of features"));
    }
}
