use std::collections::HashMap;
use std::sync::Arc;

use crate::bayes::leaf::dirichlet::Dirichlet;
use crate::bayes::leaf::normal::{Normal, NormalPrior};
use crate::bayes::mcmc::*;
use crate::bayes::prior::ChipmanPrior;
use crate::bayes::smc;
use crate::bayes::smc::settings::SmcSettings;
use crate::bayes::testing::enumerate::{Exact, Flat, Mean, name_of};
use crate::bayes::testing::visit_frequencies::Visits;
use crate::bayes::testing::{categories, missing_values};
use crate::bayes::tree::{PreorderNode, PreorderSplit};
use crate::data::Rows;
use crate::data::sorted::columns::SortedColumns;
use crate::random::distributions::multinomial;

const X: [f64; 10] = [0.0, 1.0, 1.0, 2.0, 3.0, 0.5, 3.5, 0.1, 1.0, 1.0];
const CLASSES: [u32; 5] = [0, 1, 1, 0, 1];
const TARGETS: [f64; 5] = [0.3, 1.9, 2.2, 0.4, 1.2];
const ALL: [f64; 4] = [0.25; 4];

fn table() -> SortedColumns {
    SortedColumns::new(Rows::from_f64(&X, 2).unwrap(), &Threads::new(1), &Control::new()).unwrap()
}

fn prior() -> ChipmanPrior {
    ChipmanPrior::new(0.8, 0.7).unwrap()
}

/// Counts the trees that a chain visits.
fn visits<L: ConjugateLeaf>(
    state: &mut TreeWithRows<'_, L>,
    moves: &[f64; 4],
    n_steps: u32,
    seed: u64,
) -> Visits {
    let mut stream = Stream::new(seed, 0);
    let mut visits = Visits::new(n_steps);
    for _ in 0..n_steps {
        step(state, moves, &mut stream);
        visits.note(name_of(&state.tree(), state.target.table));
    }
    visits
}

fn posterior<L: ConjugateLeaf>(target: &TargetPosterior<'_, L>) -> HashMap<String, f64> {
    let mut exact = Exact::new(target);
    let all = exact.all_rows();
    let z = exact.evidence(all, 0);
    exact.trees(all, 0).into_iter().map(|(name, weight)| (name, weight / z)).collect()
}

/// Mixes of moves that reach all trees.
const MIXES: [[f64; 4]; 6] = [
    [0.5, 0.5, 0.0, 0.0],
    [0.7, 0.3, 0.0, 0.0],
    [0.3, 0.3, 0.4, 0.0],
    [0.3, 0.3, 0.0, 0.4],
    ALL,
    [0.1, 0.2, 0.3, 0.4],
];

#[test]
fn every_mix_of_moves_visits_trees_as_the_posterior_does() {
    mixes_visit_trees_as_the_posterior_does(&table(), &MIXES);
}

#[test]
fn mixes_visit_trees_with_missing_values_as_the_posterior_does() {
    for table in missing_values::tables().into_iter().chain(categories::tables()) {
        mixes_visit_trees_as_the_posterior_does(&table, &MIXES[4..]);
    }
}

fn mixes_visit_trees_as_the_posterior_does(table: &SortedColumns, mixes: &[[f64; 4]]) {
    let prior = prior();
    let leaf = Dirichlet::new(&CLASSES, 2, 0.9).unwrap();
    let target = TargetPosterior { table, prior: &prior, leaf: &leaf };
    let expected = posterior(&target);
    for (seed, moves) in mixes.iter().enumerate() {
        let n = 400_000;
        let found = visits(&mut TreeWithRows::new(&target), moves, n, seed as u64);
        found.check(&format!("{moves:?}"), &expected);
    }
}

#[test]
fn chains_of_numbers_visit_trees_as_the_posterior_does() {
    let (table, prior) = (table(), prior());
    let normal = NormalPrior { prior_mean: 1.0, kappa: 0.4, shape: 1.5, scale: 0.3 };
    let leaf = Normal::new(&TARGETS, normal).unwrap();
    let target = TargetPosterior { table: &table, prior: &prior, leaf: &leaf };
    let n = 400_000;
    let found = visits(&mut TreeWithRows::new(&target), &ALL, n, 5);
    found.check("numbers", &posterior(&target));
}

/// A draw from the posterior by the recursion; each threshold is uniform in its gap.
fn draw_exactly<L: ConjugateLeaf>(
    target: &TargetPosterior<'_, L>,
    exact: &mut Exact<'_, L>,
    stream: &mut Stream,
) -> PreorderTree<()> {
    let mut nodes: Vec<PreorderNode<()>> = Vec::new();
    let mut stack = vec![(exact.all_rows(), 0, None)];
    while let Some((set, depth, left_of)) = stack.pop() {
        let at = nodes.len();
        if let Some(parent) = left_of {
            let parent: &mut PreorderNode<()> = &mut nodes[parent];
            parent.split.as_mut().expect("only a split node has children").right = at as u32;
        }
        let (p, cuts) = exact.cuts(set, depth);
        let mut rest = stream.unit() * exact.evidence(set, depth) - (1.0 - p) * exact.likelihood(set);
        let stops = rest < 0.0;
        let drawn = cuts.iter().filter(|_| !stops).find(|cut| {
            let sides = cut.sides.map(|side| exact.evidence(side, depth + 1));
            rest -= p * cut.probability * sides[0] * sides[1];
            rest < 0.0
        });
        let split = drawn.map(|cut| {
            let column = target.table.column(cut.feature);
            let above = (0..target.table.n_rows() as u32).filter(|row| cut.sides[1] >> row & 1 == 1);
            let right = above.map(|row| column.rank(row)).min().expect("both sides have rows");
            let (_, threshold) = column.cut_in((cut.rank, right), stream.unit());
            stack.extend([(cut.sides[1], depth + 1, Some(at)), (cut.sides[0], depth + 1, None)]);
            PreorderSplit::new(cut.feature, threshold)
        });
        nodes.push(PreorderNode { split, stats: Arc::new(()) });
    }
    PreorderTree { nodes }
}

/// Detailed balance of each move alone. From trees drawn exactly, the move goes from one tree to another as
/// often as its reverse (for grow, prune) goes back. The test does not need the chain to mix, and an error of
/// one move cannot be hidden by another.
fn check_balance<L: ConjugateLeaf>(target: &TargetPosterior<'_, L>, moves: &[f64; 4], seed: u64) {
    let mut exact = Exact::new(target);
    let mut stream = Stream::new(seed, 7);
    let expected = posterior(target);
    let n = 150_000;
    let mut starts = Visits::new(n);
    let mut steps: HashMap<(String, String), [f64; 2]> = HashMap::new();
    for _ in 0..n {
        let tree = draw_exactly(target, &mut exact, &mut stream);
        let mut state = TreeWithRows::from_tree(target, &tree).unwrap();
        let before = name_of(&tree, target.table);
        starts.note(before.clone());
        if step(&mut state, moves, &mut stream).1 {
            let after = name_of(&state.tree(), target.table);
            let is_back = usize::from(after < before);
            let pair = if after < before { (after, before) } else { (before, after) };
            steps.entry(pair).or_default()[is_back] += 1.0;
        }
    }
    // The starting trees are independent draws; if their frequencies are wrong, the test itself is wrong.
    starts.check("starts", &expected);
    let mut n_pairs = 0;
    for ((a, b), [there, back]) in steps.iter().filter(|((a, b), _)| a != b) {
        n_pairs += u32::from(there + back > 50.0);
        let error = (there + back).sqrt();
        assert!((there - back).abs() < 5.0 * error, "{moves:?}: {a} to {b} {there} times, back {back}");
    }
    assert!(n_pairs > 10, "{moves:?}: {n_pairs} pairs");
}

#[test]
#[ignore = "slow"]
fn each_move_alone_is_in_balance() {
    moves_are_in_balance(&table());
}

#[test]
#[ignore = "slow"]
fn each_move_alone_is_in_balance_with_missing_values() {
    missing_values::tables().iter().for_each(moves_are_in_balance);
    categories::tables().iter().for_each(moves_are_in_balance);
}

fn moves_are_in_balance(table: &SortedColumns) {
    let prior = prior();
    let classes = Dirichlet::new(&CLASSES, 2, 0.9).unwrap();
    let normal = NormalPrior { prior_mean: 1.0, kappa: 0.4, shape: 1.5, scale: 0.3 };
    let numbers = Normal::new(&TARGETS, normal).unwrap();
    // Grow with prune, with equal and with unequal probabilities; change; swap.
    let kernels = [[0.5, 0.5, 0.0, 0.0], [0.8, 0.2, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0], [0.0, 0.0, 0.0, 1.0]];
    for (seed, moves) in (0..).zip(&kernels) {
        check_balance(&TargetPosterior { table, prior: &prior, leaf: &classes }, moves, seed);
        check_balance(&TargetPosterior { table, prior: &prior, leaf: &numbers }, moves, seed + 10);
    }
}

/// Change keeps the shape of a tree: alone, it visits the reachable trees in proportion to the posterior.
#[test]
fn change_alone_keeps_the_posterior_of_a_shape() {
    let (table, prior) = (table(), prior());
    let leaf = Dirichlet::new(&CLASSES, 2, 0.9).unwrap();
    let target = TargetPosterior { table: &table, prior: &prior, leaf: &leaf };
    let posterior = posterior(&target);
    let mut most = 0;
    for seed in 0..12 {
        let n = 60_000;
        let mut state =
            TreeWithRows::from_prior(&target, &mut Stream::new(seed, 1), &Control::new()).unwrap();
        let found = visits(&mut state, &[0.0, 0.0, 1.0, 0.0], n, seed);
        most = most.max(found.names().len());
        let total: f64 = found.names().map(|name| posterior[name]).sum();
        let expected = found.names().map(|name| (name.clone(), posterior[name] / total)).collect();
        found.check(&format!("seed {seed}"), &expected);
    }
    assert!(most > 5, "{most}");
}

/// Swap alternates between two trees; their frequencies are proportional to their densities.
#[test]
fn swap_alone_balances_densities() {
    swaps_balance_densities(&table());
    missing_values::tables().iter().for_each(swaps_balance_densities);
    categories::tables().iter().for_each(swaps_balance_densities);
}

fn swaps_balance_densities(table: &SortedColumns) {
    let prior = prior();
    let leaf = Dirichlet::new(&CLASSES, 2, 0.9).unwrap();
    let target = TargetPosterior { table, prior: &prior, leaf: &leaf };
    let mut compared = 0;
    for seed in 0..40 {
        let mut stream = Stream::new(seed, 2);
        let mut state = TreeWithRows::from_prior(&target, &mut stream, &Control::new()).unwrap();
        let mut seen: HashMap<String, (f64, f64)> = HashMap::new();
        let n = 20_000;
        for _ in 0..n {
            step(&mut state, &[0.0, 0.0, 0.0, 1.0], &mut stream);
            let draw = summary(&state);
            let name = format!("{:?}", state.tree().nodes.iter().map(|node| node.split).collect::<Vec<_>>());
            let entry = seen.entry(name).or_insert((0.0, (draw.log_prior + draw.log_likelihood).exp()));
            entry.0 += 1.0 / f64::from(n);
        }
        let total: f64 = seen.values().map(|(_, density)| density).sum();
        if seen.len() > 1 {
            compared += 1;
            for (visits, density) in seen.values() {
                let p = density / total;
                let error = (30.0 * p / f64::from(n)).sqrt();
                assert!((visits - p).abs() < 5.0 * error, "{visits} for {p}");
            }
        }
    }
    assert!(compared > 3, "{compared}");
}

#[test]
fn a_flat_likelihood_gives_back_the_prior() {
    let (table, prior) = (table(), prior());
    let target = TargetPosterior { table: &table, prior: &prior, leaf: &Flat };
    let n = 300_000;
    let mut state = TreeWithRows::new(&target);
    let found = visits(&mut state, &ALL, n, 8);
    found.check("flat", &posterior(&target));
    // The cuts of the root: each feature is equally frequent, and thresholds are uniform in its extent.
    let (mut places, mut first, mut cuts) = (Mean::new(), 0.0, 0.0);
    let mut stream = Stream::new(6, 0);
    for _ in 0..20_000 {
        for _ in 0..20 {
            step(&mut state, &ALL, &mut stream);
        }
        if let Some(split) = state.tree().nodes[0].split {
            let (low, high) = table.column(split.rule.feature).ends();
            places.add((split.rule.threshold - low) / (high - low));
            first += f64::from(u8::from(split.rule.feature == 0));
            cuts += 1.0;
        }
    }
    places.check(0.5, 8.0, "places of cuts");
    assert!((places.squares / places.n - 1.0 / 3.0).abs() < 0.015);
    assert!((first / cuts - 0.5_f64).abs() < 0.03 && (cuts / 20_000.0 - 0.8).abs() < 0.02);
    // The same test for the starting trees of chains.
    let mut leaves = Mean::new();
    for i in 0..20_000 {
        leaves.add(f64::from(
            summary(&TreeWithRows::from_prior(&target, &mut Stream::new(4, i), &Control::new()).unwrap())
                .n_leaves,
        ));
    }
    let mut exact = Exact::new(&target);
    leaves.check(exact.n_leaves(exact.all_rows(), 0), 5.0, "leaves of trees from the prior");
}

/// Draws the classes of all rows given a tree, by Polya's urn in each leaf.
fn draw_classes<L: ConjugateLeaf>(
    state: &TreeWithRows<'_, L>,
    alpha: f64,
    k: usize,
    stream: &mut Stream,
) -> Vec<u32> {
    let mut classes = vec![0; state.target.table.n_rows()];
    for id in state.select(|node| node.split.is_none()) {
        let mut counts = vec![alpha / k as f64; k];
        for &row in &state.get(id).rows {
            let mut rest = stream.unit() * counts.iter().sum::<f64>();
            let class = counts.iter().position(|c| {
                rest -= c;
                rest < 0.0
            });
            let class = class.unwrap_or(k - 1);
            counts[class] += 1.0;
            classes[row as usize] = class as u32;
        }
    }
    classes
}

/// Statistics for the joint distribution test: of the tree, of the classes, and of both, so that their
/// dependence counts.
fn statistics<L: ConjugateLeaf>(state: &TreeWithRows<'_, L>, classes: &[u32]) -> [f64; 4] {
    let draw = summary(state);
    let leaf = Dirichlet::new(classes, 2, 0.9).unwrap();
    let likelihood: f64 = state
        .select(|node| node.split.is_none())
        .into_iter()
        .map(|id| leaf.log_likelihood(&leaf.of_rows(state.get(id).rows.iter().copied())))
        .sum();
    let ones = f64::from(classes.iter().sum::<u32>());
    [f64::from(draw.n_leaves), f64::from(draw.n_leaves * draw.depth), likelihood, ones * ones]
}

/// Geweke (2004): alternately drawing the classes given the tree and moving the tree given the classes leaves
/// their joint distribution invariant, if trees start from the prior.
#[test]
fn chains_keep_the_joint_law_of_trees_and_targets() {
    keeps_the_joint_law(&table());
}

#[test]
fn chains_keep_the_joint_law_with_missing_values() {
    missing_values::tables().iter().for_each(keeps_the_joint_law);
    categories::tables().iter().for_each(keeps_the_joint_law);
}

fn keeps_the_joint_law(table: &SortedColumns) {
    let prior = prior();
    let flat = TargetPosterior { table, prior: &prior, leaf: &Flat };
    let mut stream = Stream::new(21, 0);
    let mut independent: [Mean; 4] = std::array::from_fn(|_| Mean::new());
    for _ in 0..40_000 {
        let state = TreeWithRows::from_prior(&flat, &mut stream, &Control::new()).unwrap();
        let classes = draw_classes(&state, 0.9, 2, &mut stream);
        independent.iter_mut().zip(statistics(&state, &classes)).for_each(|(mean, x)| mean.add(x));
    }
    let mut tree = TreeWithRows::from_prior(&flat, &mut stream, &Control::new()).unwrap().tree();
    let mut batches: [Mean; 4] = std::array::from_fn(|_| Mean::new());
    // Means of batches that are much longer than the autocorrelation time are nearly independent.
    for _ in 0..300 {
        let mut sums = [0.0; 4];
        for _ in 0..400 {
            let state = TreeWithRows::from_tree(&flat, &tree).unwrap();
            let classes = draw_classes(&state, 0.9, 2, &mut stream);
            let leaf = Dirichlet::new(&classes, 2, 0.9).unwrap();
            let target = TargetPosterior { table, prior: &prior, leaf: &leaf };
            let mut state = TreeWithRows::from_tree(&target, &tree).unwrap();
            for _ in 0..3 {
                step(&mut state, &ALL, &mut stream);
            }
            sums.iter_mut().zip(statistics(&state, &classes)).for_each(|(sum, x)| *sum += x / 400.0);
            let nodes = state.tree().nodes.into_iter();
            tree = PreorderTree {
                nodes: nodes.map(|node| PreorderNode { split: node.split, stats: Arc::new(()) }).collect(),
            };
        }
        batches.iter_mut().zip(sums).for_each(|(mean, x)| mean.add(x));
    }
    for (alone, chained) in independent.iter().zip(&batches) {
        let [a, b] = [alone, chained].map(|m| (m.sum / m.n, (m.squares / m.n - (m.sum / m.n).powi(2)) / m.n));
        let error = (a.1 + b.1).sqrt();
        assert!((a.0 - b.0).abs() < 4.5 * error, "{} and {} +- {error}", a.0, b.0);
    }
}

/// Simulation-based calibration (Talts et al. 2018): the rank of the true tree's statistic among those of
/// posterior draws is uniform. With 9 degrees of freedom, 5 standard deviations above the mean is
/// `9 + 5 sqrt(18) < 30.3`.
fn check_calibration(
    trees: impl Fn(
        &TargetPosterior<'_, Dirichlet<'_>>,
        u64,
    ) -> Vec<PreorderTree<crate::bayes::leaf::dirichlet::Counts>>,
) {
    let (table, prior) = (table(), prior());
    let flat = TargetPosterior { table: &table, prior: &prior, leaf: &Flat };
    let mut stream = Stream::new(33, 0);
    let mut ranks = [[0.0; 10]; 2];
    let n = 2000;
    for i in 0..n {
        let truth = TreeWithRows::from_prior(&flat, &mut stream, &Control::new()).unwrap();
        let classes = draw_classes(&truth, 0.9, 2, &mut stream);
        let leaf = Dirichlet::new(&classes, 2, 0.9).unwrap();
        let target = TargetPosterior { table: &table, prior: &prior, leaf: &leaf };
        let own = statistics(&truth, &classes);
        let drawn: Vec<[f64; 4]> = trees(&target, i)
            .iter()
            .map(|tree| statistics(&TreeWithRows::from_tree(&target, tree).unwrap(), &classes))
            .collect();
        assert_eq!(drawn.len(), 9);
        for (which, ranks) in [0, 2].into_iter().zip(&mut ranks) {
            let below = drawn.iter().filter(|x| x[which] < own[which]).count();
            let equal = drawn.iter().filter(|x| x[which] == own[which]).count();
            ranks[below + stream.below(equal + 1)] += 1.0;
        }
    }
    for ranks in ranks {
        let expected = n as f64 / 10.0;
        let statistic: f64 = ranks.iter().map(|r: &f64| (r - expected).powi(2) / expected).sum();
        assert!(statistic < 30.3, "{statistic}: {ranks:?}");
    }
}

#[test]
fn mcmc_is_calibrated() {
    check_calibration(|target, seed| {
        let settings =
            McmcSettings { n_chains: 1, n_draws: 9, thin: 60, n_burn: 100, seed, ..Default::default() };
        sample(target, &settings, &Threads::new(1), &Control::new()).unwrap().remove(0).trees
    });
}

#[test]
fn smc_is_calibrated() {
    check_calibration(|target, seed| {
        let settings = SmcSettings { n_particles: 400, n_islands: 1, seed, ..Default::default() };
        let island = smc::sample(target, &settings, &Threads::new(1), &Control::new()).unwrap().remove(0);
        let picks = multinomial(&island.weights, 9, &mut Stream::new(seed, 5));
        picks.iter().map(|&pick| island.trees[pick as usize].clone()).collect()
    });
}

#[test]
fn chains_repeat_whatever_the_threads() {
    let (table, prior) = (table(), prior());
    let leaf = Dirichlet::new(&CLASSES, 2, 0.9).unwrap();
    let target = TargetPosterior { table: &table, prior: &prior, leaf: &leaf };
    let settings = McmcSettings { n_draws: 50, thin: 3, n_burn: 10, seed: 2, ..Default::default() };
    let draws = [1, 3].map(|n_threads| {
        let chains = sample(&target, &settings, &Threads::new(n_threads), &Control::new()).unwrap();
        chains.into_iter().map(|chain| chain.draws).collect::<Vec<_>>()
    });
    assert_eq!(draws[0], draws[1]);
    assert_ne!(draws[0][0], draws[0][1], "chains differ from each other");
}

#[test]
fn a_tree_that_does_not_split_the_rows_is_refused() {
    let (table, prior) = (table(), prior());
    let target = TargetPosterior { table: &table, prior: &prior, leaf: &Flat };
    let tree = |threshold: f64| {
        let split = Some(PreorderSplit { right: 2, ..PreorderSplit::new(0, threshold) });
        let node = |split| PreorderNode { split, stats: Arc::new(()) };
        PreorderTree { nodes: vec![node(split), node(None), node(None)] }
    };
    assert!(TreeWithRows::from_tree(&target, &tree(2.0)).is_some());
    assert!(TreeWithRows::from_tree(&target, &tree(-1.0)).is_none());
    assert!(TreeWithRows::from_tree(&target, &tree(3.5)).is_none());
}
