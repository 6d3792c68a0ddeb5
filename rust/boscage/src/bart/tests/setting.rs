//! What tests of whole chains share: a small table, settings of every kernel, and counts of the trees that a chain visits.

use std::collections::HashMap;
use std::sync::Arc;

use crate::bart::backfitting::normal::NormalBackfitter;
use crate::bart::kernel_table::{Kernel, Kernels};
use crate::bart::kernels::context::Odds;
use crate::bart::settings::BartSettings;
use crate::bart::state::row_passes::carry;
use crate::bart::state::tree::TreeState;
use crate::bayes::leaf::model::ConjugateLeaf;
use crate::bayes::prior::ChipmanPrior;
use crate::bayes::smc::proposals::Proposal;
use crate::bayes::target::TargetPosterior;
use crate::bayes::testing::enumerate::{Exact, Mean, name_of};
use crate::bayes::testing::visit_frequencies::Visits;
use crate::control::{Control, Threads};
use crate::data::Rows;
use crate::data::sorted::columns::SortedColumns;
use crate::random::distributions::normal;
use crate::random::keyed::Stream;

/// Five rows of two features with ties; two rows are equal.
const X: [f64; 10] = [0.0, 1.0, 1.0, 2.0, 3.0, 0.5, 3.5, 0.1, 1.0, 2.0];
pub(crate) const TARGETS: [f64; 5] = [-0.5, 0.3, 0.5, -0.2, 0.4];
pub(crate) const SIGMA: f64 = 0.3;
pub(crate) const SIGMA_MU: f64 = 0.5;

pub(crate) const LOCAL: Kernels = Kernels::only(Kernel::Local);
pub(crate) const GROWPRUNE: Kernels = Kernels::only(Kernel::GrowPrune);
pub(crate) const CGM: Kernels = Kernels::only(Kernel::Cgm);
pub(crate) const PG: Kernels = Kernels::only(Kernel::ParticleGibbs);
pub(crate) const REGROW: Kernels = Kernels::only(Kernel::Regrow);
pub(crate) const EDIT: Kernels = Kernels::only(Kernel::Edit);
pub(crate) const MIXED: Kernels = Kernels::new(&[
    (Kernel::Local, 0.3),
    (Kernel::GrowPrune, 0.2),
    (Kernel::Cgm, 0.2),
    (Kernel::ParticleGibbs, 0.1),
    (Kernel::Regrow, 0.1),
    (Kernel::Edit, 0.1),
]);

pub(crate) fn table() -> SortedColumns {
    SortedColumns::new(Rows::from_f64(&X, 2).unwrap(), &Threads::new(1), &Control::new()).unwrap()
}

pub(crate) fn prior() -> ChipmanPrior {
    ChipmanPrior::new(0.8, 0.7).unwrap()
}

pub(crate) fn settings(kernels: Kernels, n_trees: usize) -> BartSettings {
    BartSettings { n_trees, kernels, n_particles: 4, prior: prior(), ..BartSettings::default() }
}

/// All kernels; Particle Gibbs with every proposal.
pub(crate) fn samplers(n_trees: usize) -> Vec<(&'static str, BartSettings)> {
    let pg = |proposal, n_particles| BartSettings { n_particles, proposal, ..settings(PG, n_trees) };
    vec![
        ("local", settings(LOCAL, n_trees)),
        ("growprune", settings(GROWPRUNE, n_trees)),
        ("cgm", settings(CGM, n_trees)),
        ("pg", pg(Proposal::Prior, 4)),
        ("pg, one free particle", pg(Proposal::Prior, 2)),
        ("pg, empirical", pg(Proposal::Empirical, 4)),
        ("pg, optimal", pg(Proposal::Optimal, 4)),
        ("regrow", settings(REGROW, n_trees)),
        ("edit", settings(EDIT, n_trees)),
        ("mixed", settings(MIXED, n_trees)),
    ]
}

/// The sum of trees at the training rows, computed from leaf values.
pub(crate) fn sums(backfitter: &NormalBackfitter<'_>) -> Vec<f64> {
    let mut sums = vec![0.0; backfitter.residuals.len()];
    for tree in &backfitter.trees {
        let values: Vec<f64> = tree.nodes.iter().map(|node| node.mu).collect();
        carry(&mut sums, &tree.labels, &values);
    }
    sums
}

pub(crate) fn tree_name(tree: &TreeState, table: &SortedColumns) -> String {
    name_of(&tree.to_tree(|_| Arc::new(())), table)
}

/// The state of a chain with known noise that starts from a draw of the prior.
pub(crate) fn from_prior<'a>(
    setting: (&'a SortedColumns, &'a BartSettings, &Odds),
    (targets, sigma): (&[f64], f64),
    stream: &mut Stream,
) -> NormalBackfitter<'a> {
    NormalBackfitter::from_prior(setting, targets, (sigma, SIGMA_MU), stream, &Control::new()).unwrap()
}

/// Means of batches that are much longer than the autocorrelation time are nearly independent.
const BATCH: u32 = 400;

/// How often the first tree is each, and the means of the sum of trees at every row, in a chain with known noise.
pub(crate) fn run(
    setting: (&SortedColumns, &BartSettings, &Odds),
    data: (&[f64], f64),
    n_sweeps: u32,
    stream: &mut Stream,
) -> (Visits, Vec<Mean>) {
    let mut backfitter = from_prior(setting, data, stream);
    let mut visits = Visits::new(n_sweeps);
    let mut means: Vec<Mean> = data.0.iter().map(|_| Mean::new()).collect();
    for _ in 0..n_sweeps / BATCH {
        let mut batch = vec![0.0; means.len()];
        for _ in 0..BATCH {
            backfitter.sweep(stream, &Control::new()).unwrap();
            visits.note(tree_name(&backfitter.trees[0], setting.0));
            let sums = sums(&backfitter);
            batch.iter_mut().zip(sums).for_each(|(mean, f)| *mean += f / f64::from(BATCH));
        }
        means.iter_mut().zip(batch).for_each(|(mean, x)| mean.add(x));
    }
    (visits, means)
}

pub(crate) fn posterior<L: ConjugateLeaf>(target: &TargetPosterior<'_, L>) -> HashMap<String, f64> {
    let mut exact = Exact::new(target);
    let all = exact.all_rows();
    let z = exact.evidence(all, 0);
    exact.trees(all, 0).into_iter().map(|(name, weight)| (name, weight / z)).collect()
}

/// Rows with ties, in features with few and with many values.
pub(crate) fn some_rows(n: usize, stream: &mut Stream) -> (Vec<f64>, Vec<f64>) {
    let mut x = Vec::new();
    let mut y = Vec::new();
    for _ in 0..n {
        let row = [stream.unit(), stream.below(3) as f64, 0.5, stream.below(2) as f64];
        y.push((6.0 * row[0]).sin() + row[1] * row[3] + 0.1 * normal(stream));
        x.extend(row);
    }
    (x, y)
}
