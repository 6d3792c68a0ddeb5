//! Posterior probabilities of finished trees, computed for all trees together.

use crate::data::goes_right;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use crate::bayes::cuts::{RankCut, Rule};
use crate::bayes::leaf::model::ConjugateLeaf;
use crate::bayes::target::TargetPosterior;
use crate::bayes::tree::PreorderTree;
use crate::control::Control;
use crate::error::Result;

/// Nodes of different trees that have the same rows, as pairs of a tree and its node.
type Same = Vec<(usize, usize)>;

/// All trees, traversed together, and the rows in an order in which those of a node are contiguous.
struct SharedWalk<'a, L: ConjugateLeaf> {
    target: &'a TargetPosterior<'a, L>,
    trees: &'a [PreorderTree<L::Stats>],
    rows: Vec<u32>,
    /// Log posterior so far, by tree.
    sums: Vec<f64>,
    waiting: Vec<RowSet>,
}

/// A set of rows, and the trees that split it by the same cut.
struct RowSet {
    rows: Range<usize>,
    depth: u32,
    /// Features that vary among the rows.
    varying: Arc<Vec<u32>>,
    cut: RankCut,
    same: Same,
}

/// Log posterior probabilities of trees, up to the log evidence: the log prior (eq. 3.4) plus the log
/// likelihoods of the leaves (eq. 3.1). Trees whose thresholds lie in the same gaps between rows count as one
/// tree, so a cut contributes the share of its gap in the extent of the node's rows.
///
/// # Errors
/// An interrupt.
pub(crate) fn log_posteriors<L: ConjugateLeaf>(
    target: &TargetPosterior<'_, L>,
    trees: &[PreorderTree<L::Stats>],
    control: &Control,
) -> Result<Vec<f64>> {
    let table = target.table;
    let rows: Vec<u32> = (0..table.n_rows() as u32).collect();
    let (all, sums) = (0..rows.len(), vec![0.0; trees.len()]);
    let mut walk = SharedWalk { target, trees, rows, sums, waiting: Vec::new() };
    let roots = (0..trees.len()).map(|tree| (tree, 0)).collect();
    walk.meet(all, 0, table.varying().iter().copied(), roots);
    // A part splits its own rows again, since earlier parts have changed their order.
    while let Some(part) = walk.waiting.pop() {
        control.check()?;
        walk.part(part);
    }
    Ok(walk.sums)
}

impl<L: ConjugateLeaf> SharedWalk<'_, L> {
    /// Adds the terms of the leaves among nodes with these rows, and queues the other nodes by their cut.
    fn meet(&mut self, rows: Range<usize>, depth: u32, features: impl Iterator<Item = u32>, same: Same) {
        let varying = Arc::new(self.varying(rows.clone(), features));
        let log_stop = if varying.is_empty() { 0.0 } else { self.target.log_split_stop(depth).1 };
        let mut place = BTreeMap::new();
        for (tree, at) in same {
            let nodes = &self.trees[tree].nodes;
            let Some(split) = nodes[at].split else {
                self.sums[tree] += log_stop + self.target.leaf.log_likelihood(&nodes[at].stats);
                continue;
            };
            // Trees that share a child share its statistics, so the pointer identifies the cut.
            let key = (split.rule.feature, Arc::as_ptr(&nodes[at + 1].stats));
            let next = self.waiting.len();
            let place = *place.entry(key).or_insert(next);
            if place == next {
                let Rule { cut, .. } = Rule::of_split(split.rule, self.target.table);
                let (rows, varying) = (rows.clone(), Arc::clone(&varying));
                self.waiting.push(RowSet { rows, depth, varying, cut, same: Vec::new() });
            }
            self.waiting[place].same.push((tree, at));
        }
    }

    /// Splits rows in place, adds the term of the cut, and continues with both sides.
    fn part(&mut self, RowSet { rows, depth, varying, cut, same }: RowSet) {
        let column = self.target.table.column(cut.feature);
        let span = column.span(self.rows[rows.clone()].iter().map(|&row| column.rank(row)));
        let (mut below, mut above) = (0, u32::MAX);
        let mut middle = rows.start;
        for i in rows.clone() {
            let rank = column.rank(self.rows[i]);
            if goes_right(rank, cut.rank) {
                above = above.min(rank);
            } else {
                below = below.max(rank);
                self.rows.swap(middle, i);
                middle += 1;
            }
        }
        let at = varying.iter().position(|&feature| feature == cut.feature);
        let log_share = self.target.log_shares_of(varying.iter().copied())
            [at.expect("a cut splits the rows of its node")];
        let log_cut =
            self.target.log_split_stop(depth).0 + log_share + column.log_share((below, above), span);
        for &(tree, _) in &same {
            self.sums[tree] += log_cut;
        }
        let left = same.iter().map(|&(tree, at)| (tree, at + 1)).collect();
        self.meet(rows.start..middle, depth + 1, varying.iter().copied(), left);
        let right_of = |&(tree, at): &(usize, usize)| {
            let split = self.trees[tree].nodes[at].split.expect("only split nodes are queued");
            (tree, split.right as usize)
        };
        let right = same.iter().map(right_of).collect();
        self.meet(middle..rows.end, depth + 1, varying.iter().copied(), right);
    }

    /// Those of the given features that vary among the rows.
    fn varying(&self, rows: Range<usize>, features: impl Iterator<Item = u32>) -> Vec<u32> {
        let mut rows = self.rows[rows].to_vec();
        rows.sort_unstable();
        features.filter(|&feature| self.target.table.column(feature).varies_among(&rows)).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::bayes::leaf::dirichlet::Dirichlet;
    use crate::bayes::leaf::normal::{Normal, NormalPrior};
    use crate::bayes::leaf::weighted_dirichlet::WeightedDirichlet;
    use crate::bayes::leaf::weighted_normal::WeightedNormal;
    use crate::bayes::mcmc;
    use crate::bayes::mcmc::McmcSettings;
    use crate::bayes::prior::{ChipmanPrior, TreePrior};
    use crate::bayes::smc;
    use crate::bayes::smc::proposals::Proposal;
    use crate::bayes::smc::settings::SmcSettings;
    use crate::bayes::testing::enumerate::{Exact, name_of};
    use crate::control::Threads;
    use crate::data::Rows;
    use crate::data::sorted::columns::SortedColumns;

    /// Ties, equal rows, a constant feature, and features of very different ranges.
    const X: [f64; 20] = [
        0.0, 1e-9, 7.0, 0.3, //
        1.0, 2e-9, 7.0, 0.9, //
        1.0, 2e-9, 7.0, 0.9, //
        3.0, 9e-9, 7.0, -4e6, //
        3.5, 1e-9, 7.0, 0.7,
    ];
    const CLASSES: [u32; 5] = [0, 1, 1, 0, 1];
    const TARGETS: [f64; 5] = [0.3, 1.9, 2.2, 0.4, 1.2];

    /// Features with unequal weights.
    #[derive(Debug)]
    struct Uneven([f64; 4]);

    impl TreePrior for Uneven {
        fn split_probability(&self, depth: u32) -> f64 {
            0.7 / f64::from(depth + 1)
        }

        fn log_weights(&self) -> Option<&[f64]> {
            Some(&self.0)
        }
    }

    fn check<L: ConjugateLeaf>(leaf: &L, x: &[f64]) {
        let (threads, control) = (Threads::new(1), Control::new());
        let rows = Rows::from_f64_with_missing(x, 4).unwrap();
        let table = SortedColumns::new(rows, &threads, &control).unwrap();
        let even = ChipmanPrior::new(0.8, 0.7).unwrap();
        let uneven = Uneven([-1.0, 0.5, 3.0, 0.0]);
        for prior in [&even as &dyn TreePrior, &uneven] {
            let target = TargetPosterior { table: &table, prior, leaf };
            let mut trees = Vec::new();
            for proposal in [Proposal::Prior, Proposal::Empirical, Proposal::Optimal] {
                let settings = SmcSettings { n_particles: 300, proposal, ..SmcSettings::default() };
                let islands = smc::sample(&target, &settings, &threads, &control).unwrap();
                trees.extend(islands.into_iter().flat_map(|island| island.trees));
            }
            let settings = McmcSettings::default();
            let chains = mcmc::sample(&target, &settings, &threads, &control).unwrap();
            trees.extend(chains.into_iter().flat_map(|chain| chain.trees));
            let exact = Exact::new(&target);
            let expected: BTreeMap<String, f64> = exact.trees(exact.all_rows(), 0).into_iter().collect();
            let mut met = BTreeSet::new();
            for (tree, found) in trees.iter().zip(log_posteriors(&target, &trees, &control).unwrap()) {
                let name = name_of(tree, &table);
                assert!((found - expected[&name].ln()).abs() < 1e-9, "{name}: {found}");
                met.insert(name);
            }
            assert!(met.len() > 30, "{}", met.len());
        }
    }

    /// Compares every tree that the samplers visit with the enumeration of all trees.
    #[test]
    fn every_tree_has_its_probability() {
        let mut with_missing = X;
        for k in [1, 4, 14] {
            with_missing[k] = f64::NAN;
        }
        check(&Dirichlet::new(&CLASSES, 2, 0.9).unwrap(), &X);
        check(&Dirichlet::new(&CLASSES, 2, 0.9).unwrap(), &with_missing);
        let normal = NormalPrior { prior_mean: 1.0, kappa: 0.4, shape: 1.5, scale: 0.3 };
        check(&Normal::new(&TARGETS, normal).unwrap(), &X);
        let weights = [0.3, 2.5, 1.0, 1e-3, 7.0];
        check(&WeightedDirichlet::new((&CLASSES, &weights), 2, 0.9).unwrap(), &with_missing);
        check(&WeightedNormal::new((&TARGETS, &weights), normal).unwrap(), &X);
    }
}
