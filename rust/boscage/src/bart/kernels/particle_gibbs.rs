//! Particle Gibbs for one tree of the sum (Algorithm 4.2): conditional SMC with the old tree retained.

use crate::bart::kernels::context::Context;
use crate::bart::kernels::prior_particles;
use crate::bart::settings::BartSettings;
use crate::bart::state::subtree::{fits, same_cuts, without_statistics};
use crate::bart::state::tree::TreeState;
use crate::bayes::leaf::model::ConjugateLeaf;
use crate::bayes::smc::island::Island;
use crate::bayes::smc::proposals::Proposal;
use crate::bayes::smc::resampling::Resampling;
use crate::bayes::smc::sample_conditionally;
use crate::bayes::smc::settings::{Expansion, SmcSettings};
use crate::bayes::target::{SubtreeRoot, TargetPosterior};
use crate::bayes::tree::PreorderTree;
use crate::control::{Control, Threads};
use crate::error::Result;
use crate::random::distributions::seed;
use crate::random::keyed::Stream;

/// Draws a tree by conditional SMC (Algorithm 4.2); None if it is the old one.
///
/// # Errors
/// An interrupt, here and below.
pub(crate) fn particle_gibbs<L: ConjugateLeaf>(
    tree: &TreeState,
    leaf: &L,
    context: &Context<'_>,
    settings: &BartSettings,
    stream: &mut Stream,
) -> Result<Option<PreorderTree<L::Stats>>> {
    if settings.proposal == Proposal::Prior {
        return Ok(prior_particles::draw(tree, leaf, context, settings.n_particles, stream)?.filter(fits));
    }
    let target = TargetPosterior { table: context.table, prior: context.odds, leaf };
    let smc = SmcSettings {
        n_particles: settings.n_particles,
        proposal: settings.proposal,
        expansion: Expansion::Node,
        resampling: Resampling::Multinomial,
        // Resamples at every stage.
        ess_threshold: 1.0,
        max_stages: usize::MAX,
        seed: seed(stream),
        ..SmcSettings::default()
    };
    let old = without_statistics(tree, leaf);
    let island = one_island(&target, &smc, (SubtreeRoot::of_all(context.table), &old), context.control)?;
    Ok(Some(island.draw(stream)).filter(fits).filter(|new| !same_cuts(new, &old)))
}

/// The only island of a conditional SMC run.
pub(crate) fn one_island<L: ConjugateLeaf>(
    target: &TargetPosterior<'_, L>,
    settings: &SmcSettings,
    retained: (SubtreeRoot, &PreorderTree<L::Stats>),
    control: &Control,
) -> Result<Island<L::Stats>> {
    let settings = SmcSettings { n_islands: 1, ..settings.clone() };
    Ok(sample_conditionally(target, &settings, retained, &Threads::new(1), control)?.remove(0))
}
