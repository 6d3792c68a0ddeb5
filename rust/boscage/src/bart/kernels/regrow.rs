//! Regrow: redraws the subtree of a random node, by importance sampling with the old subtree retained.
//!
//! This is Particle Gibbs (Algorithm 4.2) without resampling, so that a cut survives which is useful only
//! together with the cuts below it. The node is drawn uniformly from all nodes of the tree; so the weight of
//! a new tree is divided by its number of nodes.

use crate::bart::kernels::context::Context;
use crate::bart::kernels::particle_gibbs::one_island;
use crate::bart::settings::BartSettings;
use crate::bart::state::subtree;
use crate::bart::state::subtree::{fits, same_cuts, without_statistics};
use crate::bart::state::tree::TreeState;
use crate::bayes::leaf::model::ConjugateLeaf;
use crate::bayes::smc::proposals::Proposal;
use crate::bayes::smc::settings::{Expansion, SmcSettings};
use crate::bayes::target::TargetPosterior;
use crate::bayes::tree::PreorderTree;
use crate::control::Control;
use crate::error::Result;
use crate::random::distributions::seed;
use crate::random::keyed::Stream;

/// Number of features whose cuts are weighed at a node.
const FEATURES: usize = 10;

/// Number of subtrees that one call redraws, one after the other.
const NODES: usize = 4;

/// Returns the tree with new subtrees; None if nothing changed.
///
/// # Errors
/// An interrupt.
pub(crate) fn regrow<L: ConjugateLeaf>(
    tree: &TreeState,
    leaf: &L,
    context: &Context<'_>,
    settings: &BartSettings,
    stream: &mut Stream,
) -> Result<Option<PreorderTree<L::Stats>>> {
    let target = TargetPosterior { table: context.table, prior: context.odds, leaf };
    let old = without_statistics(tree, leaf);
    let mut new = old.clone();
    for _ in 0..NODES {
        let top = stream.below(new.nodes.len());
        let drawn = below((&target, context.control), (&new, top), settings.n_particles, stream)?;
        // Rejecting all trees that are too large keeps the kernel reversible.
        new = Some(drawn).filter(fits).unwrap_or(new);
    }
    Ok(Some(new).filter(|new| !same_cuts(new, &old)))
}

/// The tree with the subtree of a node redrawn.
fn below<L: ConjugateLeaf>(
    (target, control): (&TargetPosterior<'_, L>, &Control),
    (tree, top): (&PreorderTree<L::Stats>, usize),
    n_particles: usize,
    stream: &mut Stream,
) -> Result<PreorderTree<L::Stats>> {
    let smc = SmcSettings {
        n_particles,
        proposal: Proposal::Exploring(FEATURES),
        // Without resampling, the order of decisions does not matter.
        expansion: Expansion::Layer,
        ess_threshold: 0.0,
        max_stages: usize::MAX,
        seed: seed(stream),
        ..SmcSettings::default()
    };
    let own = top..subtree::end(tree, top);
    let retained = subtree::cut_out(tree, &own);
    let at = (subtree::root(tree, top, target.table), &retained);
    let mut island = one_island(target, &smc, at, control)?;
    let others = tree.nodes.len() - own.len();
    for (weight, tree) in island.weights.iter_mut().zip(&island.trees) {
        *weight /= (others + tree.nodes.len()) as f64;
    }
    Ok(subtree::graft(tree, own, &island.draw(stream)))
}
