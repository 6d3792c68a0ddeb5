//! Kernels that the Bayesian trees of chapter 3 already have, for one tree of the sum: Chipman et al.'s moves, and
//! conditional SMC (Algorithm 4.2).

use std::sync::Arc;

use crate::bart::backfitting::normal::{EDIT, OTHER, PARTICLES, REGROW};
use crate::bart::kernels::context::Context;
use crate::bart::kernels::edit::edit;
use crate::bart::kernels::particle_gibbs;
use crate::bart::kernels::regrow::regrow;
use crate::bart::settings::{BartSettings, Kernel};
use crate::bart::state::tree::{MOST_NODES, TreeState};
use crate::bayes::leaf::model::LeafModel;
use crate::bayes::mcmc::state::State;
use crate::bayes::mcmc::{Move, step};
use crate::bayes::smc::nodes::Root;
use crate::bayes::smc::proposals::Proposal;
use crate::bayes::smc::resampling::Resampling;
use crate::bayes::smc::{Expansion, Island, SmcSettings, sample_conditionally};
use crate::bayes::target::Target;
use crate::bayes::tree::Tree;
use crate::control::{Control, Threads};
use crate::error::Result;
use crate::random::distributions::seed;
use crate::random::keyed::Stream;

/// Probabilities to try to grow, prune, change and swap (Chipman et al. 2010).
const MOVES: [f64; 4] = [0.25, 0.25, 0.4, 0.1];

/// Changes a tree given what the others leave to the leaves: which number of [`Forest::acceptance`] counts the step, and
/// whether the tree is another. An interrupt is the only error.
///
/// [`Forest::acceptance`]: crate::bart::backfitting::normal::Forest::acceptance
pub(crate) fn change<L: LeafModel>(
    tree: &mut TreeState,
    leaf: &L,
    (context, settings): (&Context<'_>, &BartSettings),
    kernel: Kernel,
    stream: &mut Stream,
) -> Result<(usize, bool)> {
    let (which, new) = match kernel {
        Kernel::Cgm => {
            let (which, new) = cgm(tree, leaf, context, stream);
            ((which as usize).min(OTHER), new)
        }
        Kernel::ParticleGibbs => (PARTICLES, particle_gibbs(tree, leaf, context, settings, stream)?),
        Kernel::Regrow => (REGROW, regrow(tree, leaf, context, settings, stream)?),
        Kernel::Edit => (EDIT, edit(tree, leaf, context, stream)?),
        Kernel::Local | Kernel::GrowPrune => unreachable!("they work on sums"),
    };
    let made = new.is_some();
    if let Some(new) = new {
        tree.replace(&new, context.table);
    }
    Ok((which, made))
}

/// One step of Chipman et al. (1998) given the same: the new tree if the move was made.
fn cgm<L: LeafModel>(
    tree: &TreeState,
    leaf: &L,
    context: &Context<'_>,
    stream: &mut Stream,
) -> (Move, Option<Tree<L::Stats>>) {
    let target = Target { table: context.table, prior: context.odds, leaf };
    let mut state = State::from_tree(&target, &bare(tree, leaf)).expect("a chain's tree parts its rows");
    let (which, made) = step(&mut state, &MOVES, stream);
    (which, made.then(|| state.tree()).filter(fits))
}

/// A tree drawn by conditional SMC given the same, the old one being retained.
fn particle_gibbs<L: LeafModel>(
    tree: &TreeState,
    leaf: &L,
    context: &Context<'_>,
    settings: &BartSettings,
    stream: &mut Stream,
) -> Result<Option<Tree<L::Stats>>> {
    if settings.proposal == Proposal::Prior {
        return Ok(particle_gibbs::draw(tree, leaf, context, settings.n_particles, stream)?.filter(fits));
    }
    let target = Target { table: context.table, prior: context.odds, leaf };
    let smc = SmcSettings {
        n_particles: settings.n_particles,
        proposal: settings.proposal,
        expansion: Expansion::Node,
        resampling: Resampling::Multinomial,
        // At every stage.
        ess_threshold: 1.0,
        max_stages: usize::MAX,
        seed: seed(stream),
        ..SmcSettings::default()
    };
    let old = bare(tree, leaf);
    let island = alone(&target, &smc, (Root::of_all(context.table), &old), context.control)?;
    Ok(Some(island.draw(stream)).filter(fits).filter(|new| !same_cuts(new, &old)))
}

/// The only island of a conditional SMC run.
///
/// # Errors
/// An interrupt.
pub(crate) fn alone<L: LeafModel>(
    target: &Target<'_, L>,
    settings: &SmcSettings,
    retained: (Root, &Tree<L::Stats>),
    control: &Control,
) -> Result<Island<L::Stats>> {
    let settings = SmcSettings { n_islands: 1, ..settings.clone() };
    Ok(sample_conditionally(target, &settings, retained, &Threads::new(1), control)?.remove(0))
}

pub(crate) fn bare<L: LeafModel>(tree: &TreeState, leaf: &L) -> Tree<L::Stats> {
    let none = Arc::new(leaf.empty());
    tree.to_tree(|_| Arc::clone(&none))
}

/// Both kernels are reversible: refusing what is too large keeps them so.
pub(crate) fn fits<S>(tree: &Tree<S>) -> bool {
    tree.nodes.len() <= MOST_NODES
}

pub(crate) fn same_cuts<S>(a: &Tree<S>, b: &Tree<S>) -> bool {
    a.nodes.len() == b.nodes.len() && a.nodes.iter().zip(&b.nodes).all(|(a, b)| a.split == b.split)
}
