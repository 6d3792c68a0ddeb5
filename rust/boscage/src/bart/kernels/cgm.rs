//! CGM: the kernel of Chipman et al. for one tree of the sum (section 4.3.2); it is a step of the chains of
//! chapter 3.

use crate::bart::kernel_table::BartStep;
use crate::bart::kernels::context::Context;
use crate::bart::state::subtree::{fits, without_statistics};
use crate::bart::state::tree::TreeState;
use crate::bayes::leaf::model::ConjugateLeaf;
use crate::bayes::mcmc::moves::{Move, step};
use crate::bayes::mcmc::state::TreeWithRows;
use crate::bayes::target::TargetPosterior;
use crate::bayes::tree::PreorderTree;
use crate::random::keyed::Stream;

/// Probabilities to try grow, prune, change and swap (Chipman et al. 2010).
const MOVES: [f64; 4] = [0.25, 0.25, 0.4, 0.1];

/// Does one step of Chipman et al. (1998). Returns the kind of step, and the new tree if it was accepted.
pub(crate) fn cgm<L: ConjugateLeaf>(
    tree: &TreeState,
    leaf: &L,
    context: &Context<'_>,
    stream: &mut Stream,
) -> (BartStep, Option<PreorderTree<L::Stats>>) {
    let target = TargetPosterior { table: context.table, prior: context.odds, leaf };
    let old = without_statistics(tree, leaf);
    let mut state = TreeWithRows::from_tree(&target, &old).expect("a chain's tree splits its rows");
    let (which, made) = step(&mut state, &MOVES, stream);
    let counted = match which {
        Move::Grow => BartStep::Grow,
        Move::Prune => BartStep::Prune,
        Move::Change | Move::Swap => BartStep::ChangeOrSwap,
    };
    (counted, made.then(|| state.tree()).filter(fits))
}
