//! Kernels: the ways in which a chain changes one tree, given the others (Algorithm 4.1, line 7).
//!
//! Each kernel leaves the posterior of the tree given the partial residuals (eq. 4.8) invariant. [`table`] lists them.
//! Two of them work [on the statistics of leaves](table::Function::OnLeaves) that a sweep has gathered anyway:
//! `grow_prune` splits a leaf or joins two, and `shift` moves a threshold (`shift_inner` that of a node with cuts below
//! it). The others look at rows and [build a new tree](new_tree): `cgm` by a step of Chipman et al. (section 4.3.2),
//! `particle_gibbs` by conditional SMC (Algorithm 4.2), `regrow` by conditional importance sampling of subtrees, and
//! `edit` by Metropolis-Hastings steps on subtrees, with the proposals of `edit_proposal`.
//!
//! `prior_particles` is Particle Gibbs for proposals from the prior, which also draws the trees that chains start from.
//! `context` is what all kernels share while the noise stands.

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
pub(crate) mod table;

use crate::bart::kernels::context::Context;
use crate::bart::kernels::table::{BartStep, NewTree};
use crate::bart::settings::BartSettings;
use crate::bart::state::tree::TreeState;
use crate::bayes::leaf::model::ConjugateLeaf;
use crate::error::Result;
use crate::random::keyed::Stream;

/// Replaces a tree by one that a kernel builds, given what the other trees leave to its leaves: the step that was tried,
/// and whether it changed the tree.
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
