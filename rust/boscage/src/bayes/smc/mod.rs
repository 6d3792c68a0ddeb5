//! Sequential Monte Carlo over trees that grow from the root (thesis section 3.3).
//!
//! A particle is a partial tree (`particle`) with a weight. In each stage it decides about one node, or about
//! all nodes that are eligible for expansion, whether to stop or how to split; decisions about different
//! nodes are independent (eq. 3.8). `proposals` draws them from the prior or from the one-step optimal
//! proposal (eq. 3.5), which is proportional to prior times likelihood. The weight is multiplied by prior
//! times likelihood over proposal (eqs. 3.6 and 3.7). Particles are resampled when the weights are uneven
//! (`resampling`). The mean weight after the last stage is an unbiased estimate of the marginal likelihood
//! `p(Y | X)` (Algorithm 3.1, line 18).
//!
//! An `island` is one such run; several islands run independently and are averaged (section 3.4.1.3). `cloud`
//! advances all islands together. The optimal proposal needs the likelihood of every cut of a node. This is
//! affordable because particles that came to a node by the same cuts share it (`shared_node`, `nodes`,
//! `row_set`), and its gaps are weighed once.

pub(crate) mod cloud;
pub(crate) mod island;
pub(crate) mod nodes;
pub(crate) mod particle;
pub(crate) mod proposals;
pub(crate) mod resampling;
pub(crate) mod row_set;
pub(crate) mod settings;
pub(crate) mod shared_node;

#[cfg(test)]
pub(crate) mod tests;

use crate::bayes::leaf::model::ConjugateLeaf;
use crate::bayes::smc::cloud::Cloud;
use crate::bayes::smc::island::Island;
use crate::bayes::smc::settings::SmcSettings;
use crate::bayes::target::{SubtreeRoot, TargetPosterior};
use crate::bayes::tree::PreorderTree;
use crate::control::{Control, Threads};
use crate::error::Result;

/// Runs Algorithm 3.1 on every island; the weights of its particles are those of eq. 3.6.
///
/// # Errors
/// Settings outside their domain; an interrupt.
pub(crate) fn sample<L: ConjugateLeaf>(
    target: &TargetPosterior<'_, L>,
    settings: &SmcSettings,
    threads: &Threads,
    control: &Control,
) -> Result<Vec<Island<L::Stats>>> {
    settings.check()?;
    let root = SubtreeRoot::of_all(target.table);
    let mut cloud = Cloud::new(target, settings, (threads, control), (root, None));
    cloud.run(control)?;
    Ok(cloud.finish())
}

/// Runs Algorithm 3.1 with the first particle of each island held to a given tree (conditional SMC,
/// Algorithm 4.2). Drawing one of the resulting trees by weight leaves the posterior invariant. Ancestors are
/// drawn independently; the resampling scheme of the settings is not used. The root may be an inner node of a
/// larger tree: its subtree is then drawn given the rest of the tree.
///
/// # Errors
/// As [`sample`].
pub(crate) fn sample_conditionally<L: ConjugateLeaf>(
    target: &TargetPosterior<'_, L>,
    settings: &SmcSettings,
    (root, retained): (SubtreeRoot, &PreorderTree<L::Stats>),
    threads: &Threads,
    control: &Control,
) -> Result<Vec<Island<L::Stats>>> {
    settings.check()?;
    let mut cloud = Cloud::new(target, settings, (threads, control), (root, Some(retained)));
    cloud.run(control)?;
    Ok(cloud.finish())
}
