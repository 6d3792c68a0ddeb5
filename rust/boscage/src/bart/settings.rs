//! How BART is fitted.

use crate::bayes::{
    ChipmanPrior, MOST_KEPT, MOST_PARTICLES, MOST_RUNS, MOST_STEPS, Proposal, check_count, check_product,
};
use crate::error::{Error, Result};
use crate::mondrian::Stream;

/// Ways to change a tree given the others, and how often each is taken: probabilities that sum to one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Kernels {
    /// Grow or prune, then shift cuts a little.
    pub local: f64,
    /// Grow or prune (Pratola et al. 2013).
    pub growprune: f64,
    /// Grow, prune, change or swap (Chipman et al. 1998).
    pub cgm: f64,
    /// Particle Gibbs (Algorithm 4.2).
    pub pg: f64,
    /// Particle Gibbs below random nodes, without resampling, with proposals that see the targets.
    pub regrow: f64,
    /// Cuts inserted, changed and deleted at random nodes and below, the others staying as far as they still part rows.
    pub edit: f64,
}

impl Kernels {
    /// What reached and explored the posterior best in a given time: nearly always to regrow or to edit where there is
    /// one tree, in which local steps get stuck; with many trees local steps, and hardly ever the others, which cost
    /// much more.
    #[must_use]
    pub fn for_trees(n_trees: usize) -> Self {
        let whole = 5.0 / (5.0 + (n_trees as f64).powi(3));
        let [regrow, edit] = [0.5 * whole; 2];
        Self { local: 1.0 - whole, growprune: 0.0, cgm: 0.0, pg: 0.0, regrow, edit }
    }
}

/// One of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kernel {
    Local,
    GrowPrune,
    Cgm,
    ParticleGibbs,
    Regrow,
    Edit,
}

impl Kernels {
    pub(super) fn draw(self, stream: &mut Stream) -> Kernel {
        // Grow and prune alone are worth no random number, of which they need few.
        let mut u = if self.growprune < 1.0 { stream.unit() } else { 0.0 };
        let shares = [
            (self.growprune, Kernel::GrowPrune),
            (self.local, Kernel::Local),
            (self.cgm, Kernel::Cgm),
            (self.pg, Kernel::ParticleGibbs),
            (self.regrow, Kernel::Regrow),
            (self.edit, Kernel::Edit),
        ];
        let mut drawn = Kernel::Local;
        for (share, kernel) in shares.into_iter().filter(|(share, _)| *share > 0.0) {
            drawn = kernel;
            u -= share;
            if u < 0.0 {
                break;
            }
        }
        drawn
    }
}

/// Split probabilities of dimensions that are learnt, so that most of many dimensions are hardly ever cut
/// (Linero 2018): `s ~ Dirichlet(alpha / p, ..., alpha / p)` for `p` dimensions.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Sparsity {
    /// The concentration; None where it is sampled too, `alpha / (alpha + p) ~ Beta(1/2, 1)` a priori.
    pub alpha: Option<f64>,
}

/// Trees in a sum.
const MOST_TREES: (usize, &str) = (100_000, "from 1 to 100000");

/// Priors and sampler of sums of trees; the defaults of the priors are those of section 4.2.4.
#[derive(Debug, Clone, PartialEq)]
pub struct BartSettings {
    /// Trees in the sum, `M`.
    pub n_trees: usize,
    /// Independent chains, the first starting from trees without cuts, each other from a draw of the prior.
    pub n_chains: usize,
    /// Sweeps of a chain before the first draw that is kept.
    pub n_burn: usize,
    /// Draws kept of each chain.
    pub n_draws: usize,
    /// Sweeps from one draw that is kept to the next.
    pub thin: usize,
    /// How trees are changed; see [`Kernels::for_trees`].
    pub kernels: Kernels,
    /// Particles of Particle Gibbs, the retained one among them.
    pub n_particles: usize,
    /// How particles propose.
    pub proposal: Proposal,
    /// How readily trees split (eq. 4.3).
    pub prior: ChipmanPrior,
    /// Whether split probabilities of dimensions are learnt; None: all dimensions are alike.
    pub sparse: Option<Sparsity>,
    /// Shrinkage of leaves: the range of the targets is `2 k` standard deviations of the sum of trees.
    pub k: f64,
    /// Degrees of freedom of the prior of the noise variance.
    pub nu: f64,
    /// The prior probability that the noise is less than its over-estimate.
    pub q: f64,
    /// The noise's standard deviation, if it is known.
    pub sigma: Option<f64>,
    /// An over-estimate of it; by least squares if none is given.
    pub sigma_estimate: Option<f64>,
    /// Seed of all draws.
    pub seed: u64,
}

impl Default for BartSettings {
    fn default() -> Self {
        Self {
            n_trees: 200,
            n_chains: 4,
            n_burn: 500,
            n_draws: 500,
            thin: 1,
            kernels: Kernels::for_trees(200),
            n_particles: 10,
            proposal: Proposal::Prior,
            prior: ChipmanPrior::new(0.95, 2.0).expect("the default is valid"),
            sparse: None,
            k: 2.0,
            nu: 3.0,
            q: 0.9,
            sigma: None,
            sigma_estimate: None,
            seed: 0,
        }
    }
}

impl BartSettings {
    /// # Errors
    /// [`Error::InvalidSetting`].
    pub fn check(&self) -> Result<()> {
        let invalid = |name, expected, found: String| Err(Error::InvalidSetting { name, expected, found });
        let counts = [
            ("n_trees", self.n_trees, MOST_TREES),
            ("n_chains", self.n_chains, MOST_RUNS),
            ("n_draws", self.n_draws, MOST_KEPT),
            ("thin", self.thin, MOST_STEPS),
            ("n_particles", self.n_particles, MOST_PARTICLES),
        ];
        for (name, value, most) in counts {
            check_count(name, value, most)?;
        }
        if self.n_burn > MOST_STEPS.0 {
            return invalid("n_burn", "at most 1000000000", self.n_burn.to_string());
        }
        check_product("n_chains * n_draws", &[self.n_chains, self.n_draws], MOST_KEPT)?;
        let kept = [self.n_chains, self.n_draws, self.n_trees];
        check_product("n_chains * n_draws * n_trees", &kept, MOST_STEPS)?;
        check_product("n_chains * n_draws * thin", &[self.n_chains, self.n_draws, self.thin], MOST_STEPS)?;
        check_product(
            "n_chains * n_burn",
            &[self.n_chains, self.n_burn],
            (MOST_STEPS.0, "at most 1000000000"),
        )?;
        let positive = [
            ("k", Some(self.k)),
            ("nu", Some(self.nu)),
            ("sigma", self.sigma),
            ("sigma_estimate", self.sigma_estimate),
            ("the concentration of split probabilities", self.sparse.and_then(|sparse| sparse.alpha)),
        ];
        for (name, value) in positive {
            if let Some(value) = value.filter(|value| !(*value > 0.0 && value.is_finite())) {
                return invalid(name, "positive and finite", value.to_string());
            }
        }
        if !(self.q > 0.0 && self.q < 1.0) {
            return invalid("q", "between 0 and 1, both excluded", self.q.to_string());
        }
        let Kernels { local, growprune, cgm, pg, regrow, edit } = self.kernels;
        let all = [local, growprune, cgm, pg, regrow, edit];
        if all.iter().any(|p| p.is_nan() || *p < 0.0) || (all.iter().sum::<f64>() - 1.0).abs() > 1e-9 {
            return invalid("kernels", "six probabilities that sum to one", format!("{all:?}"));
        }
        if matches!(self.proposal, Proposal::OptimalSubset(0) | Proposal::Exploring(0)) {
            return invalid("the number of dimensions that a proposal considers", "at least 1", "0".into());
        }
        Ok(())
    }
}
