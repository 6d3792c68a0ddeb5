//! The standard deviation of leaf values (eq. 4.5): known, or drawn with the rest.

use crate::bart::prior::noise::VariancePrior;
use crate::bart::settings::SPREAD_DF;
use crate::bart::state::tree::TreeState;
use crate::random::keyed::Stream;

/// `sigma_mu`, and its prior if it is drawn.
#[derive(Debug)]
pub(crate) struct LeafSpread {
    pub(crate) sigma_mu: f64,
    prior: Option<VariancePrior>,
}

impl LeafSpread {
    /// A spread that is `sigma_mu`, or has a prior about it.
    pub(crate) fn new(sigma_mu: f64, is_learned: bool) -> Self {
        let prior = is_learned.then_some(VariancePrior { nu: SPREAD_DF, lambda: sigma_mu * sigma_mu });
        Self { sigma_mu, prior }
    }

    /// Draws it given the values of all leaves; from its prior if there are no trees.
    pub(crate) fn draw(&mut self, trees: &[TreeState], stream: &mut Stream) {
        let Some(prior) = &self.prior else { return };
        let leaves = trees.iter().flat_map(|tree| tree.nodes.iter().filter(|node| node.is_leaf()));
        let (n, squares) = leaves.fold((0, 0.0), |(n, sum), leaf| (n + 1, sum + leaf.mu * leaf.mu));
        self.sigma_mu = prior.draw(n, squares, stream);
    }

    /// `sigma_mu`, if it is drawn.
    pub(crate) fn learned(&self) -> Option<f64> {
        self.prior.map(|_| self.sigma_mu)
    }

    /// The shrinkage that corresponds to `sigma_mu`, if it is drawn; `k` corresponds to the prior's centre.
    pub(crate) fn learned_k(&self, k: f64) -> Option<f64> {
        self.prior.map(|prior| k * prior.lambda.sqrt() / self.sigma_mu)
    }
}
