//! Kernels: the ways in which a chain changes one tree, given the others (Algorithm 4.1, line 7).
//!
//! Each kernel leaves the posterior of the tree given its partial residuals, `pi(T_m)` of eq. 4.8, invariant.
//! A kernel is drawn at random for each tree of each sweep; [`kernel_table`](crate::bart::kernel_table) lists
//! them with their default probabilities.
//!
//! Some kernels use [only statistics of leaves](crate::bart::kernel_table::Function::OnLeaves), which a sweep computes anyway.
//! They are cheap, and each changes little:
//!
//! - `grow_prune` splits a leaf or joins two leaves;
//! - `shift` moves a threshold; `shift_inner` does so for a node with cuts below it.
//!
//! The others read rows and [build a new tree](new_tree). They are more expensive, and escape from trees in
//! which small steps get stuck:
//!
//! - `cgm` does a step of Chipman et al. (section 4.3.2);
//! - `particle_gibbs` draws the whole tree by conditional SMC (Algorithm 4.2), `prior_particles` does so with
//!   proposals from the prior, and also draws the trees from which chains start;
//! - `regrow` draws subtrees by conditional importance sampling;
//! - `edit` does Metropolis-Hastings steps on subtrees, with the proposal in `edit_proposal`.
//!
//! `context` holds the inputs that all kernels of a sweep share.

pub(crate) mod cgm;
pub(crate) mod context;
pub(crate) mod edit;
pub(crate) mod edit_proposal;
pub(crate) mod grow_prune;
pub(crate) mod particle_gibbs;
pub(crate) mod prior_particles;
pub(crate) mod regrow;
pub(crate) mod shift;
pub(crate) mod shift_inner;

use crate::bart::kernel_table::{BartStep, NewTree};
use crate::bart::kernels::context::Context;
use crate::bart::settings::BartSettings;
use crate::bart::state::tree::TreeState;
use crate::bayes::leaf::model::ConjugateLeaf;
use crate::error::Result;
use crate::random::keyed::Stream;

/// Replaces a tree by one that a kernel builds, given the row statistics that the other trees leave; this
/// keeps the tree's posterior (eq. 4.8). Returns the kind of step, and whether it changed the tree.
///
/// # Errors
/// An interrupt.
pub(crate) fn new_tree<L: ConjugateLeaf>(
    kernel: NewTree,
    tree: &mut TreeState,
    leaf: &L,
    (context, settings): (&Context<'_>, &BartSettings),
    stream: &mut Stream,
) -> Result<(BartStep, bool)> {
    let (step, new) = match kernel {
        NewTree::Cgm => cgm::cgm(tree, leaf, context, stream),
        NewTree::ParticleGibbs => {
            (BartStep::ParticleGibbs, particle_gibbs::particle_gibbs(tree, leaf, context, settings, stream)?)
        }
        NewTree::Regrow => (BartStep::Regrow, regrow::regrow(tree, leaf, context, settings, stream)?),
        NewTree::Edit => (BartStep::Edit, edit::edit(tree, leaf, context, stream)?),
    };
    if let Some(new) = &new {
        tree.replace(new, context.table);
    }
    Ok((step, new.is_some()))
}
