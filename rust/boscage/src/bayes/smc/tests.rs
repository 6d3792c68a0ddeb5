mod choices;

use crate::bayes::leaf::dirichlet::Dirichlet;
use crate::bayes::leaf::normal::{Normal, NormalPrior};
use crate::bayes::prior::{ChipmanPrior, TreePrior};
use crate::bayes::smc::nodes::SharedNodes;
use crate::bayes::smc::proposals::Proposal;
use crate::bayes::smc::resampling::Resampling;
use crate::bayes::smc::settings::{CandidateOrder, Expansion};
use crate::bayes::smc::*;
use crate::bayes::testing::enumerate::{Exact, Flat, Mean, name_of};
use crate::bayes::testing::visit_frequencies::Visits;
use crate::bayes::testing::{categories, missing_values};
use crate::data::Rows;
use crate::data::sorted::columns::SortedColumns;
use crate::random::distributions::multinomial;
use crate::random::keyed::Stream;
use std::sync::Arc;

const PROPOSALS: [Proposal; 7] = [
    Proposal::Prior,
    Proposal::Empirical,
    Proposal::Optimal,
    Proposal::OptimalSubset(1),
    Proposal::OptimalSubset(2),
    Proposal::Exploring(1),
    Proposal::Exploring(2),
];
const SCHEMES: [Resampling; 4] =
    [Resampling::Multinomial, Resampling::Systematic, Resampling::Stratified, Resampling::Residual];

/// Ties, a duplicated row with two classes, a constant feature, an integer feature and a continuous one.
const X: [f64; 28] = [
    0.0, 1.0, 0.3, 5.0, //
    1.0, 1.0, 0.9, 5.0, //
    1.0, 2.0, -4.0, 5.0, //
    3.0, 1.0, 0.7, 5.0, //
    3.0, 2.0, 0.2, 5.0, //
    3.0, 2.0, 0.2, 5.0, //
    0.0, 4.0, 1.5, 5.0,
];
const CLASSES: [u32; 7] = [0, 1, 1, 0, 2, 1, 0];
const TARGETS: [f64; 7] = [0.1, 2.0, 1.8, -0.3, 0.9, 1.1, 0.2];

fn table() -> SortedColumns {
    SortedColumns::new(Rows::from_f64(&X, 4).unwrap(), &Threads::new(1), &Control::new()).unwrap()
}

fn prior() -> ChipmanPrior {
    ChipmanPrior::new(0.8, 0.7).unwrap()
}

fn run<L: ConjugateLeaf>(target: &TargetPosterior<'_, L>, settings: &SmcSettings) -> Vec<Island<L::Stats>> {
    sample(target, settings, &Threads::new(1), &Control::new()).unwrap()
}

fn n_leaves_of<S>(tree: &PreorderTree<S>) -> f64 {
    tree.leaves_and_depth().0.into()
}

/// The name of the root's cut; "*" for a leaf.
fn root_of<S>(tree: &PreorderTree<S>, table: &SortedColumns) -> String {
    match tree.nodes[0].split {
        None => "*".to_owned(),
        Some(split) => {
            let rank = table.column(split.rule.feature).last_rank_below(split.rule.threshold);
            format!("{}<{rank}", split.rule.feature)
        }
    }
}

fn check_unbiased<L: ConjugateLeaf>(target: &TargetPosterior<'_, L>, settings: &SmcSettings, what: &str) {
    let mut exact = Exact::new(target);
    let all = exact.all_rows();
    let z = exact.evidence(all, 0);
    let n_leaves = exact.n_leaves(all, 0);
    let stop = exact.root().0;
    let [mut evidence, mut leaves, mut stops] = [Mean::new(), Mean::new(), Mean::new()];
    for island in run(target, settings) {
        let own = island.log_evidence.exp() / z;
        let mean = |f: &dyn Fn(&PreorderTree<L::Stats>) -> f64| -> f64 {
            island.trees.iter().zip(&island.weights).map(|(tree, w)| w * f(tree)).sum()
        };
        evidence.add(own);
        leaves.add(own * mean(&|tree| n_leaves_of(tree)));
        stops.add(own * mean(&|tree| f64::from(u8::from(tree.nodes.len() == 1))));
    }
    evidence.check(1.0, 5.0, &format!("evidence, {what}"));
    leaves.check(n_leaves, 5.0, &format!("leaves, {what}"));
    stops.check(stop, 5.0, &format!("stop, {what}"));
}

/// The recursion agrees with the enumeration of all trees, and posterior probabilities sum to one.
#[test]
fn the_recursion_agrees_with_enumeration() {
    for n in 1..=5 {
        let table =
            SortedColumns::new(Rows::from_f64(&X[..4 * n], 4).unwrap(), &Threads::new(1), &Control::new())
                .unwrap();
        let leaf = Dirichlet::new(&CLASSES[..n], 3, 1.3).unwrap();
        let prior = prior();
        let target = TargetPosterior { table: &table, prior: &prior, leaf: &leaf };
        let mut exact = Exact::new(&target);
        let all = exact.all_rows();
        let trees = exact.trees(all, 0);
        let sum: f64 = trees.iter().map(|(_, p)| p).sum();
        let leaves: f64 = trees.iter().map(|(name, p)| p * name.matches('*').count() as f64).sum();
        let z = exact.evidence(all, 0);
        assert!((sum / z - 1.0).abs() < 1e-12);
        assert!((leaves / sum - exact.n_leaves(all, 0)).abs() < 1e-10);
        let (stop, cuts) = exact.root();
        assert!((stop + cuts.iter().map(|(_, p)| p).sum::<f64>() - 1.0).abs() < 1e-12);
    }
}

#[test]
fn evidence_is_unbiased_for_every_combination() {
    let (table, prior) = (table(), prior());
    let leaf = Dirichlet::new(&CLASSES, 3, 1.3).unwrap();
    let target = TargetPosterior { table: &table, prior: &prior, leaf: &leaf };
    let mut seed = 0;
    for proposal in PROPOSALS {
        for expansion in [Expansion::Node, Expansion::Layer] {
            for candidate_order in [CandidateOrder::BreadthFirst, CandidateOrder::MarginalLikelihood] {
                for resampling in SCHEMES {
                    for ess_threshold in [0.5, 1.0] {
                        seed += 1;
                        let settings = SmcSettings {
                            n_particles: 5,
                            n_islands: 1500,
                            proposal,
                            expansion,
                            candidate_order,
                            resampling,
                            ess_threshold,
                            seed,
                            ..Default::default()
                        };
                        check_unbiased(&target, &settings, &format!("{settings:?}"));
                    }
                }
            }
        }
    }
}

/// Features with unequal weights.
#[derive(Debug)]
struct Weighted([f64; 4]);

impl TreePrior for Weighted {
    fn split_probability(&self, depth: u32) -> f64 {
        prior().split_probability(depth)
    }

    fn log_weights(&self) -> Option<&[f64]> {
        Some(&self.0)
    }
}

#[test]
fn evidence_is_unbiased_for_weighted_features() {
    evidence_is_unbiased_with_weights(&table());
}

#[test]
#[ignore = "slow"]
fn evidence_is_unbiased_for_weighted_features_with_missing_values() {
    evidence_is_unbiased_with_weights(&missing_values::wide_table());
    evidence_is_unbiased_with_weights(&categories::wide_table());
}

fn evidence_is_unbiased_with_weights(table: &SortedColumns) {
    let prior = Weighted([0.2, -1.5, 1.0, 3.0]);
    let leaf = Dirichlet::new(&CLASSES, 3, 1.3).unwrap();
    let target = TargetPosterior { table, prior: &prior, leaf: &leaf };
    for (seed, proposal) in (0..).zip(PROPOSALS) {
        for expansion in [Expansion::Node, Expansion::Layer] {
            let (n_particles, n_islands) = (5, 4000);
            let settings =
                SmcSettings { n_particles, n_islands, proposal, expansion, seed, ..Default::default() };
            check_unbiased(&target, &settings, &format!("{settings:?}"));
        }
    }
}

#[test]
fn evidence_is_unbiased_for_numbers() {
    evidence_of_numbers_is_unbiased(&table());
}

#[test]
fn evidence_is_unbiased_for_numbers_with_missing_values() {
    evidence_of_numbers_is_unbiased(&missing_values::wide_table());
    evidence_of_numbers_is_unbiased(&categories::wide_table());
}

fn evidence_of_numbers_is_unbiased(table: &SortedColumns) {
    let prior = prior();
    let normal = NormalPrior { prior_mean: 0.5, kappa: 0.4, shape: 1.5, scale: 0.3 };
    let leaf = Normal::new(&TARGETS, normal).unwrap();
    let target = TargetPosterior { table, prior: &prior, leaf: &leaf };
    for proposal in PROPOSALS {
        let settings =
            SmcSettings { n_particles: 6, n_islands: 4000, proposal, seed: 9, ..Default::default() };
        check_unbiased(&target, &settings, &format!("{proposal:?}"));
    }
}

/// Decisions at the root with their exact probabilities.
#[test]
fn many_particles_find_the_posterior_of_the_root() {
    particles_find_the_posterior_of_the_root(&table());
    particles_find_the_posterior_of_the_root(&missing_values::wide_table());
    particles_find_the_posterior_of_the_root(&categories::wide_table());
}

fn particles_find_the_posterior_of_the_root(table: &SortedColumns) {
    let prior = prior();
    let leaf = Dirichlet::new(&CLASSES, 3, 1.3).unwrap();
    let target = TargetPosterior { table, prior: &prior, leaf: &leaf };
    let (stop, cuts) = Exact::new(&target).root();
    for proposal in PROPOSALS {
        let settings =
            SmcSettings { n_particles: 20_000, n_islands: 1, proposal, seed: 1, ..Default::default() };
        let island = run(&target, &settings).remove(0);
        let share = |name: &str| -> f64 {
            let trees = island.trees.iter().zip(&island.weights);
            trees.filter(|(tree, _)| root_of(tree, table) == name).map(|(_, w)| w).sum()
        };
        assert!((share("*") - stop).abs() < 0.03, "{proposal:?}: {} for {stop}", share("*"));
        for (cut, p) in &cuts {
            let found = share(&format!("{}<{}", cut.feature, cut.rank));
            assert!((found - p).abs() < 0.03, "{proposal:?}: {found} for {p}");
        }
    }
}

/// Without a likelihood the trees follow the prior: features, thresholds and sizes have its law, and all
/// weights are one.
#[test]
fn a_flat_likelihood_gives_back_the_prior() {
    let (table, prior) = (table(), prior());
    let target = TargetPosterior { table: &table, prior: &prior, leaf: &Flat };
    let mut exact = Exact::new(&target);
    let all = exact.all_rows();
    assert!((exact.evidence(all, 0) - 1.0).abs() < 1e-12);
    let n_leaves = exact.n_leaves(all, 0);
    for proposal in [Proposal::Prior, Proposal::Optimal, Proposal::OptimalSubset(2)] {
        let settings =
            SmcSettings { n_particles: 20_000, n_islands: 1, proposal, seed: 3, ..Default::default() };
        let island = run(&target, &settings).remove(0);
        assert!(island.log_evidence.abs() < 1e-9);
        assert!(island.stages.iter().all(|stage| (stage.ess / 20_000.0 - 1.0).abs() < 1e-9));
        let mut leaves = Mean::new();
        let mut at_most = [0.0; 4];
        // Along the third feature, the share of the extent below a cut is uniform.
        let (mut below, mut cuts) = (Mean::new(), 0.0);
        for (tree, w) in island.trees.iter().zip(&island.weights) {
            // Particles that stopped at once share one tree.
            for _ in 0..(w * 20_000.0).round() as u32 {
                leaves.add(n_leaves_of(tree));
            }
            for (n_layers, share) in at_most.iter_mut().enumerate() {
                *share += if tree.leaves_and_depth().1 as usize <= n_layers { *w } else { 0.0 };
            }
            if let Some(split) = tree.nodes[0].split {
                cuts += 1.0;
                if split.rule.feature == 2 {
                    below.add((split.rule.threshold + 4.0) / 5.5);
                }
            }
        }
        leaves.check(n_leaves, 5.0, "leaves");
        for (n_layers, share) in at_most.into_iter().enumerate() {
            let expected = exact.shallow(all, 0, n_layers as u32);
            let error = (expected * (1.0 - expected) / 20_000.0).sqrt();
            assert!((share - expected).abs() < 5.0 * error, "depth {n_layers}: {share} for {expected}");
        }
        below.check(0.5, 5.0, "location");
        assert!((below.squares / below.n - 1.0 / 3.0).abs() < 0.02);
        let cuts: f64 = cuts;
        assert!((cuts / 20_000.0 - 0.8).abs() < 0.015);
        assert!((below.n / cuts - 1.0 / 3.0).abs() < 0.02, "one of three features that vary");
    }
}

/// Conditional SMC, with a tree drawn by weight each time, visits trees in proportion to their posterior.
#[test]
fn conditional_smc_leaves_the_posterior_invariant() {
    conditional_smc_is_invariant([0.0, 1.0, 1.0, 2.0, 3.0, 0.5, 3.5, 0.1]);
}

#[test]
fn conditional_smc_leaves_the_posterior_with_missing_values_invariant() {
    conditional_smc_is_invariant([0.0, 1.0, f64::NAN, 2.0, 3.0, 0.5, 3.5, 0.1]);
}

fn conditional_smc_is_invariant(x: [f64; 8]) {
    let rows = Rows::from_f64_with_missing(&x, 2).unwrap();
    let table = SortedColumns::new(rows, &Threads::new(1), &Control::new()).unwrap();
    let prior = prior();
    let leaf = Dirichlet::new(&[0, 1, 1, 0], 2, 0.7).unwrap();
    let target = TargetPosterior { table: &table, prior: &prior, leaf: &leaf };
    let mut exact = Exact::new(&target);
    let all = exact.all_rows();
    let z = exact.evidence(all, 0);
    let expected = exact.trees(all, 0).into_iter().map(|(name, weight)| (name, weight / z)).collect();
    let n_draws: u32 = 20_000;
    for proposal in PROPOSALS {
        for (expansion, ess_threshold) in [(Expansion::Node, 1.0), (Expansion::Layer, 0.6)] {
            let mut tree = PreorderTree {
                nodes: vec![crate::bayes::tree::PreorderNode {
                    split: None,
                    stats: Arc::new(leaf.of_rows(0..4)),
                }],
            };
            let mut picks = Stream::new(17, 0);
            let mut visits = Visits::new(n_draws);
            for draw in 0..n_draws {
                let settings = SmcSettings {
                    n_particles: 4,
                    n_islands: 1,
                    proposal,
                    expansion,
                    ess_threshold,
                    seed: u64::from(draw),
                    ..Default::default()
                };
                let retained = (SubtreeRoot::of_all(&table), &tree);
                let islands =
                    sample_conditionally(&target, &settings, retained, &Threads::new(1), &Control::new());
                let island = islands.unwrap().remove(0);
                let pick = multinomial(&island.weights, 1, &mut picks)[0];
                tree = island.trees[pick as usize].clone();
                visits.note(name_of(&tree, &table));
            }
            visits.check(&format!("{proposal:?}"), &expected);
        }
    }
}

#[test]
fn threads_change_nothing() {
    let mut stream = Stream::new(1, 0);
    let x: Vec<f64> = (0..6000).map(|_| stream.unit()).collect();
    let classes: Vec<u32> = x.chunks(3).map(|row| u32::from(row[0] + row[1] * row[2] > 0.8)).collect();
    let prior = ChipmanPrior::default();
    let leaf = Dirichlet::new(&classes, 2, 1.0).unwrap();
    for proposal in PROPOSALS {
        let settings = SmcSettings { proposal, seed: 4, ..Default::default() };
        let results = [1, 2, 5].map(|n_threads| {
            let threads = Threads::new(n_threads);
            let table =
                SortedColumns::new(Rows::from_f64(&x, 3).unwrap(), &threads, &Control::new()).unwrap();
            let target = TargetPosterior { table: &table, prior: &prior, leaf: &leaf };
            let islands = sample(&target, &settings, &threads, &Control::new()).unwrap();
            let bits = islands.iter().flat_map(|island| {
                island
                    .trees
                    .iter()
                    .flat_map(|tree| &tree.nodes)
                    .filter_map(|node| node.split)
                    .map(|split| split.rule.threshold.to_bits())
            });
            let evidence: Vec<u64> = islands.iter().map(|island| island.log_evidence.to_bits()).collect();
            (bits.collect::<Vec<u64>>(), evidence)
        });
        assert_eq!(results[0], results[1]);
        assert_eq!(results[0], results[2]);
        assert!(results[0].0.len() > 50);
    }
}

/// Truncated trees follow a prior that does not split deeper nodes, so the recursion gives their evidence.
#[test]
fn max_stages_gives_the_evidence_of_trees_cut_short() {
    /// A prior without splits below the first two layers.
    #[derive(Debug)]
    struct Shallow;
    impl TreePrior for Shallow {
        fn split_probability(&self, depth: u32) -> f64 {
            if depth < 2 { prior().split_probability(depth) } else { 0.0 }
        }
    }
    let (table, prior) = (table(), prior());
    let leaf = Dirichlet::new(&CLASSES, 3, 1.3).unwrap();
    let target = TargetPosterior { table: &table, prior: &prior, leaf: &leaf };
    let shallow = TargetPosterior { table: &table, prior: &Shallow, leaf: &leaf };
    let mut exact = Exact::new(&shallow);
    let all = exact.all_rows();
    let z = exact.evidence(all, 0);
    for proposal in PROPOSALS {
        let settings = SmcSettings {
            n_particles: 5,
            n_islands: 4000,
            proposal,
            expansion: Expansion::Layer,
            max_stages: 2,
            ess_threshold: 0.5,
            seed: 12,
            ..Default::default()
        };
        let mut evidence = Mean::new();
        let islands = run(&target, &settings);
        for island in &islands {
            evidence.add(island.log_evidence.exp() / z);
        }
        evidence.check(1.0, 5.0, &format!("{proposal:?}"));
        assert!(islands.iter().any(|island| island.n_unfinished > 0));
        let whole = run(&target, &SmcSettings { max_stages: 100, n_islands: 9, ..settings });
        assert!(whole.iter().all(|island| island.n_unfinished == 0));
    }
}

#[test]
fn a_flat_likelihood_leaves_the_empirical_proposal_unbiased() {
    let (table, prior) = (table(), prior());
    let target = TargetPosterior { table: &table, prior: &prior, leaf: &Flat };
    let proposal = Proposal::Empirical;
    let settings = SmcSettings { n_particles: 5, n_islands: 6000, proposal, seed: 8, ..Default::default() };
    check_unbiased(&target, &settings, "flat");
}

#[test]
fn work_that_is_stopped_ends() {
    let mut stream = Stream::new(1, 0);
    let x: Vec<f64> = (0..9000).map(|_| stream.unit()).collect();
    let (threads, control) = (Threads::new(2), Control::new());
    let table = SortedColumns::new(Rows::from_f64(&x, 3).unwrap(), &threads, &control).unwrap();
    let prior = prior();
    let target = TargetPosterior { table: &table, prior: &prior, leaf: &Flat };
    let mut nodes = SharedNodes::new(&target, &threads, &control, SubtreeRoot::of_all(&table));
    control.stop();
    assert!(SortedColumns::new(Rows::from_f64(&x, 3).unwrap(), &threads, &control).is_err());
    assert!(nodes.open(&[0]).is_err());
    assert!(sample(&target, &SmcSettings::default(), &threads, &control).is_err());
}
