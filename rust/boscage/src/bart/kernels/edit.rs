//! Edit: inserts, changes and deletes cuts in a subtree, and keeps the cuts below that still split rows.
//!
//! Each Metropolis-Hastings step proposes an [edited](crate::bart::kernels::edit_proposal) subtree of a
//! random node. It can delete or move a cut that has other cuts below it. A rotation (Pratola 2016) is a
//! single insertion. Kernels that redraw a whole subtree rarely propose these trees, although they fit about
//! as well as the old one.

use crate::bart::kernels::context::Context;
use crate::bart::kernels::edit_proposal::{Guide, LARGEST, draw, log_chance};
use crate::bart::state::subtree;
use crate::bart::state::subtree::{fits, without_statistics};
use crate::bart::state::tree::TreeState;
use crate::bayes::leaf::model::ConjugateLeaf;
use crate::bayes::mcmc::state::TreeWithRows;
use crate::bayes::target::TargetPosterior;
use crate::bayes::tree::PreorderTree;
use crate::error::Result;
use crate::random::keyed::Stream;

/// Number of Metropolis-Hastings steps in one call, but at most one for each row. A step is cheap compared
/// with redrawing a subtree.
const TOPS: usize = 60;

/// Returns the tree after some steps, if any of them was accepted.
///
/// # Errors
/// An interrupt.
pub(crate) fn edit<L: ConjugateLeaf>(
    tree: &TreeState,
    leaf: &L,
    context: &Context<'_>,
    stream: &mut Stream,
) -> Result<Option<PreorderTree<L::Stats>>> {
    let target = TargetPosterior { table: context.table, prior: context.odds, leaf };
    let mut tree = without_statistics(tree, leaf);
    let mut made = false;
    for _ in 0..TOPS.min(context.table.n_rows()) {
        context.control.check()?;
        let top = stream.below(tree.nodes.len());
        if let Some(new) = edit_below(&target, (&tree, top), stream) {
            (tree, made) = (new, true);
        }
    }
    Ok(made.then_some(tree))
}

/// Does one Metropolis-Hastings step on the subtree of a node, which is drawn uniformly from all nodes.
fn edit_below<L: ConjugateLeaf>(
    target: &TargetPosterior<'_, L>,
    (tree, top): (&PreorderTree<L::Stats>, usize),
    stream: &mut Stream,
) -> Option<PreorderTree<L::Stats>> {
    let own = top..subtree::end(tree, top);
    let root = subtree::root(tree, top, target.table);
    if own.len() > LARGEST {
        return None;
    }
    let start = TreeWithRows::at(target, root.clone());
    let old = start.with_cuts(&subtree::cut_out(tree, &own)).expect("a chain's tree splits its rows");
    let old = Guide::new(&old);
    if !old.can_be_cut() {
        return None;
    }
    let (new, log_way) = draw(&old, root, stream)?;
    let new_guide = Guide::new(&new);
    let n_others = tree.nodes.len() - own.len();
    let log_choose = |guide: &Guide<'_, L>| -libm::log((n_others + guide.n_nodes()) as f64);
    let gain = new_guide.log_posterior() + log_choose(&new_guide) - old.log_posterior() - log_choose(&old);
    let needed = libm::log(1.0 - stream.unit());
    // The probability of one path bounds the sum over all paths from below, and the reverse probability is at
    // most one. So `gain - log_way` bounds the log ratio from above, and rejects most proposals without the
    // recursion.
    if needed >= gain - log_way
        || needed >= gain + log_chance(&new_guide, &old) - log_chance(&old, &new_guide)
    {
        return None;
    }
    // Rejecting all trees that are too large keeps the kernel reversible.
    Some(subtree::graft(tree, own, &new.tree())).filter(fits)
}
