//! Whole chains against exact posteriors, the prior and each other; repeatability.

use crate::bart::backfitting::general::GeneralBackfitter;
use crate::bart::backfitting::normal::NormalBackfitter;
use crate::bart::chain::{Chains, SumsOfTrees};
use crate::bart::kernel_table::{BartStep, Kernel, Kernels};
use crate::bart::kernels::context::Odds;
use crate::bart::leaves::normal::{LeafPosterior, ResidualLeaf};
use crate::bart::leaves::poisson::PoissonLeaves;
use crate::bart::posterior::regressor;
use crate::bart::prior::noise::VariancePrior;
use crate::bart::response::{NormalResponse, ScaledProblem};
use crate::bart::settings::BartSettings;
use crate::bart::state::tree::{MAX_NODES, TreeState};
use crate::bart::tests::setting::{
    GROWPRUNE, LOCAL, MIXED, PG, SIGMA, SIGMA_MU, TARGETS, from_prior, posterior, prior, run, samplers,
    settings, some_rows, sums, table, tree_name,
};
use crate::bayes::prior::{ChipmanPrior, TreePrior};
use crate::bayes::target::TargetPosterior;
use crate::bayes::testing::enumerate::{Exact, Flat, Mean};
use crate::bayes::testing::visit_frequencies::Visits;
use crate::bayes::testing::{categories, missing_values};
use crate::control::{Control, Run, Threads};
use crate::data::Rows;
use crate::data::sorted::columns::SortedColumns;
use crate::error::Error;
use crate::random::keyed::Stream;

fn log_evidence(table: &SortedColumns, residuals: &[f64]) -> f64 {
    let prior = prior();
    let leaf = ResidualLeaf { posterior: LeafPosterior::new(SIGMA, SIGMA_MU), residuals };
    let target = TargetPosterior { table, prior: &prior, leaf: &leaf };
    let mut exact = Exact::new(&target);
    let all = exact.all_rows();
    exact.evidence(all, 0).ln()
}

/// A kernel counts its own kinds of step, each at least once, and no others.
#[test]
fn kernels_count_their_steps() {
    let table = table();
    for kernel in Kernel::ALL {
        let settings = settings(Kernels::only(kernel), 2);
        let odds = Odds::new(settings.prior);
        let mut stream = Stream::new(3, 0);
        let mut backfitter = from_prior((&table, &settings, &odds), (&TARGETS, SIGMA), &mut stream);
        (0..200).for_each(|_| backfitter.sweep(&mut stream, &Control::new()).unwrap());
        for (step, counts) in backfitter.acceptance.iter() {
            assert_eq!(counts.tried > 0, kernel.steps().contains(&step), "{kernel:?}: {step:?}");
            assert!(counts.made <= counts.tried && (counts.tried == 0 || counts.made > 0));
        }
    }
}

/// One tree with known noise. Trees are visited with the probabilities of the recursion over sets of rows,
/// and the mean of `f` follows Tweedie's formula, `E f_i = sigma^2 d log Z / d y_i` (`Z` without the product
/// that all trees share).
#[test]
#[ignore = "slow"]
fn every_kernel_visits_trees_as_the_posterior_does() {
    kernels_visit_trees_as_the_posterior_does(&table());
}

#[test]
#[ignore = "slow"]
fn every_kernel_visits_trees_with_missing_values_as_the_posterior_does() {
    missing_values::tables().iter().for_each(kernels_visit_trees_as_the_posterior_does);
    categories::tables().iter().for_each(kernels_visit_trees_as_the_posterior_does);
}

fn kernels_visit_trees_as_the_posterior_does(table: &SortedColumns) {
    let prior = prior();
    let leaf = ResidualLeaf { posterior: LeafPosterior::new(SIGMA, SIGMA_MU), residuals: &TARGETS };
    let expected = posterior(&TargetPosterior { table, prior: &prior, leaf: &leaf });
    for (seed, (name, settings)) in samplers(1).into_iter().enumerate() {
        let n = 200_000;
        let odds = Odds::new(settings.prior);
        let mut stream = Stream::new(seed as u64, 0);
        let (visits, means) = run((table, &settings, &odds), (&TARGETS, SIGMA), n, &mut stream);
        visits.check(name, &expected);
        for (i, mean) in means.iter().enumerate() {
            let step = 1e-4;
            let [up, down] = [step, -step].map(|step| {
                let mut targets = TARGETS;
                targets[i] += step;
                log_evidence(table, &targets)
            });
            mean.check(SIGMA * SIGMA * (up - down) / (2.0 * step), 5.0, &format!("{name}: f of row {i}"));
        }
    }
}

/// With very large noise the targets give no information: trees and values follow the prior.
#[test]
#[ignore = "slow"]
fn a_flat_likelihood_gives_back_the_prior() {
    kernels_give_back_the_prior(&table());
}

#[test]
#[ignore = "slow"]
fn a_flat_likelihood_gives_back_the_prior_with_missing_values() {
    missing_values::tables().iter().for_each(kernels_give_back_the_prior);
    categories::tables().iter().for_each(kernels_give_back_the_prior);
}

fn kernels_give_back_the_prior(table: &SortedColumns) {
    let prior = prior();
    let expected = posterior(&TargetPosterior { table, prior: &prior, leaf: &Flat });
    for (seed, (name, settings)) in samplers(1).into_iter().enumerate() {
        let odds = Odds::new(settings.prior);
        let mut stream = Stream::new(seed as u64, 1);
        let mut backfitter = from_prior((table, &settings, &odds), (&TARGETS, 1e6), &mut stream);
        let n = 100_000;
        let mut visits = Visits::new(n);
        let [mut values, mut squares] = [Mean::new(), Mean::new()];
        for _ in 0..n {
            backfitter.sweep(&mut stream, &Control::new()).unwrap();
            visits.note(tree_name(&backfitter.trees[0], table));
            // Leaf values are redrawn in every sweep.
            let f = sums(&backfitter)[0] / SIGMA_MU;
            values.add(f);
            squares.add(f * f);
        }
        visits.check(name, &expected);
        values.check(0.0, 5.0, name);
        squares.check(1.0, 5.0, name);
    }
}

/// With two trees, all kernels agree about the mean of the sum.
#[test]
#[ignore = "slow"]
fn kernels_agree_about_two_trees() {
    let table = table();
    let mut first: Option<Vec<(f64, f64)>> = None;
    for (seed, (name, settings)) in samplers(2).into_iter().enumerate() {
        let odds = Odds::new(settings.prior);
        let mut stream = Stream::new(seed as u64 + 50, 0);
        let (_, means) = run((&table, &settings, &odds), (&TARGETS, SIGMA), 80_000, &mut stream);
        let found: Vec<(f64, f64)> =
            means.iter().map(|m| (m.sum / m.n, (m.squares / m.n - (m.sum / m.n).powi(2)) / m.n)).collect();
        let reference = first.get_or_insert_with(|| found.clone());
        for (a, b) in found.iter().zip(reference.iter()) {
            assert!((a.0 - b.0).abs() <= 4.5 * (a.1 + b.1).sqrt(), "{name}: {a:?} and {b:?}");
        }
    }
}

/// After any changes, rows are in the leaves to which the trees send them, and residuals are the targets
/// minus the sum of trees.
#[test]
fn states_stay_consistent() {
    let mut stream = Stream::new(3, 0);
    let (mut x, y) = some_rows(203, &mut stream);
    states_are_consistent(&x, &y, &mut stream);
    x.iter_mut().filter(|_| stream.unit() < 0.3).for_each(|x| *x = f64::NAN);
    states_are_consistent(&x, &y, &mut stream);
}

fn states_are_consistent(x: &[f64], y: &[f64], stream: &mut Stream) {
    let rows = Rows::from_f64_with_missing(x, 4).unwrap();
    let table = SortedColumns::new(rows, &Threads::new(1), &Control::new()).unwrap();
    for (name, settings) in samplers(7) {
        let odds = Odds::new(settings.prior);
        let mut backfitter =
            NormalBackfitter::from_prior((&table, &settings, &odds), y, (0.2, 0.3), stream, &Control::new())
                .unwrap();
        for _ in 0..40 {
            backfitter.sweep(stream, &Control::new()).unwrap();
            backfitter.trees.iter().for_each(|tree| tree.check(&table));
            for ((f, r), y) in sums(&backfitter).iter().zip(&backfitter.residuals).zip(y) {
                assert!((f + r - y).abs() < 1e-10, "{name}: {f} + {r} for {y}");
            }
        }
    }
}

/// A tree has at most as many nodes as there are numbers for nodes.
#[test]
fn trees_grow_until_node_numbers_run_out() {
    let state = TreeState::new(&table());
    assert!(state.has_room(0));
    assert!(state.has_room(MAX_NODES - 3));
    assert!(!state.has_room(MAX_NODES - 2));
}

/// With the retained particle alone, Particle Gibbs returns the old tree.
#[test]
fn a_single_particle_keeps_the_tree() {
    let table = table();
    let settings = BartSettings { n_particles: 1, ..settings(PG, 1) };
    let odds = Odds::new(settings.prior);
    for seed in 0..20 {
        let mut stream = Stream::new(seed, 0);
        let mut backfitter = from_prior((&table, &settings, &odds), (&TARGETS, SIGMA), &mut stream);
        let before = tree_name(&backfitter.trees[0], &table);
        (0..5).for_each(|_| backfitter.sweep(&mut stream, &Control::new()).unwrap());
        assert_eq!(tree_name(&backfitter.trees[0], &table), before);
        assert_eq!(backfitter.acceptance.of(BartStep::ParticleGibbs).made, 0);
    }
}

fn sample(settings: &BartSettings, x: &[f64], targets: Vec<f64>, n_threads: usize) -> SumsOfTrees {
    let response = NormalResponse { prior: Some(VariancePrior::new(3.0, 0.9, 0.5)) };
    let problem = ScaledProblem { targets, centre: 0.0, scale: 1.0, sigma: 0.5, sigma_mu: 0.2, response };
    let run = Run { n_threads, ..Run::default() };
    let chains = Chains::alone(settings, None);
    regressor::sample(&problem, &chains, Rows::from_f64(x, 4).unwrap(), &run).unwrap()
}

#[test]
fn chains_repeat_whatever_the_threads() {
    let (x, y) = some_rows(60, &mut Stream::new(5, 0));
    let settings =
        BartSettings { n_chains: 3, n_burn: 5, n_draws: 10, thin: 2, seed: 9, ..settings(MIXED, 5) };
    let [a, b] = [1, 3].map(|n_threads| sample(&settings, &x, y.clone(), n_threads));
    assert_eq!(a.draws, b.draws);
    assert_eq!(a.traces, b.traces);
    assert_ne!(a.traces[0].sigma, a.traces[1].sigma, "chains differ from each other");
    let c = sample(&BartSettings { seed: 10, ..settings }, &x, y, 1);
    assert_ne!(a.draws, c.draws, "seeds differ");
}

/// Predictions at the training rows are the chain's own fitted values.
#[test]
fn draws_predict_the_sums_of_the_chain() {
    let (x, y) = some_rows(300, &mut Stream::new(6, 0));
    let rows = Rows::from_f64(&x, 4).unwrap();
    let settings = BartSettings { n_chains: 1, n_burn: 30, n_draws: 3, ..settings(GROWPRUNE, 10) };
    let posterior = sample(&settings, &x, y.clone(), 1);
    let at = posterior.at(rows, &Run::default(), |_, _| {}).unwrap();
    for (draw, sums) in at.chunks_exact(300).enumerate() {
        let trace = &posterior.traces[0];
        let squares: f64 = sums.iter().zip(&y).map(|(f, y)| (y - f).powi(2)).sum();
        let expected = crate::bart::prior::noise::log_likelihood(300, squares, trace.sigma[draw]);
        assert!((trace.log_likelihood[draw] - expected).abs() < 1e-8);
        let cuts: u32 = posterior.cuts().unwrap()[draw * 4..(draw + 1) * 4].iter().sum();
        assert_eq!(f64::from(cuts) + 10.0, trace.n_leaves[draw]);
    }
    let mean = posterior.mean(rows, &Run::default(), |_, _| {}).unwrap();
    for (i, mean) in mean.iter().enumerate() {
        let expected = (0..3).map(|draw| at[draw * 300 + i]).sum::<f64>() / 3.0;
        assert!((mean - expected).abs() < 1e-12);
    }
}

/// With two rows there are two partitions, and the transition probabilities of Particle Gibbs with one free
/// particle are known. From a tree with a cut that fits `R` times as well as none, the chain keeps this cut
/// with probability `p/2 + (1 - p) (1/2 + a/2)`, `a = R / (1 + R)`: the free particle cuts elsewhere in the
/// gap, or it does not cut, and may be replaced by the retained one. From a tree without a cut, the chain
/// stays without one with probability `(1 - p) + p (1/2 + b/2)`, `b = 1 / (1 + R)`.
#[test]
fn a_free_particle_wins_as_often_as_it_should() {
    let table =
        SortedColumns::new(Rows::from_f64(&[0.0, 1.0], 1).unwrap(), &Threads::new(1), &Control::new())
            .unwrap();
    let settings = BartSettings { n_particles: 2, ..settings(PG, 1) };
    let odds = Odds::new(settings.prior);
    let p = settings.prior.split_probability(0);
    for (seed, (sigma, targets)) in
        [(0.1, [-0.3, 0.4]), (0.3, [-0.3, 0.4]), (0.1, [0.35, 0.4])].into_iter().enumerate()
    {
        let leaf = LeafPosterior::new(sigma, SIGMA_MU);
        let ratio: f64 = targets.iter().map(|&y| leaf.log_likelihood(1.0, y)).sum::<f64>()
            - leaf.log_likelihood(2.0, targets.iter().sum());
        let a = 1.0 / (1.0 + libm::exp(-ratio));
        let expected = [(1.0 - p) + p * (0.5 + 0.5 * (1.0 - a)), 0.5 * p + (1.0 - p) * (0.5 + 0.5 * a)];
        let mut stream = Stream::new(seed as u64, 0);
        let mut backfitter = from_prior((&table, &settings, &odds), (&targets, sigma), &mut stream);
        let mut stays: [Mean; 2] = std::array::from_fn(|_| Mean::new());
        for _ in 0..100_000 {
            let has_cut = usize::from(backfitter.trees[0].n_leaves() == 2);
            let made = backfitter.acceptance.of(BartStep::ParticleGibbs).made;
            backfitter.sweep(&mut stream, &Control::new()).unwrap();
            stays[has_cut]
                .add(f64::from(u8::from(backfitter.acceptance.of(BartStep::ParticleGibbs).made == made)));
        }
        // A peaked likelihood leaves too few trees of the other kind to count.
        for (stays, expected) in stays.iter().zip(expected).filter(|(stays, _)| stays.n > 1000.0) {
            stays.check(expected, 4.5, &format!("noise of {sigma}"));
        }
    }
}

/// Chains after the first start from draws of the prior, with equal and unequal weights of features.
#[test]
fn starting_trees_are_draws_of_the_prior() {
    starts_are_draws_of_the_prior(&table());
    missing_values::tables().iter().for_each(starts_are_draws_of_the_prior);
    categories::tables().iter().for_each(starts_are_draws_of_the_prior);
}

fn starts_are_draws_of_the_prior(table: &SortedColumns) {
    let settings = settings(LOCAL, 1);
    for log_weights in [None, Some(vec![0.15f64.ln(), 0.85f64.ln()])] {
        let mut odds = Odds::new(settings.prior);
        odds.log_weights = log_weights;
        let expected = posterior(&TargetPosterior { table, prior: &odds, leaf: &Flat });
        let mut stream = Stream::new(2, 0);
        let n = 50_000;
        let mut visits = Visits::new(n);
        for _ in 0..n {
            let backfitter = from_prior((table, &settings, &odds), (&TARGETS, SIGMA), &mut stream);
            visits.note(tree_name(&backfitter.trees[0], table));
        }
        visits.check("starts", &expected);
    }
}

/// A draw of the prior with too many nodes is not used as a starting tree.
#[test]
fn starts_have_room() {
    let n = 40_000;
    let x: Vec<f64> = (0..n).map(f64::from).collect();
    let table =
        SortedColumns::new(Rows::from_f64(&x, 1).unwrap(), &Threads::new(1), &Control::new()).unwrap();
    let prior = ChipmanPrior::new(0.999, 0.0).unwrap();
    let settings = BartSettings { prior, ..settings(LOCAL, 3) };
    let setting = (&table, &settings, &Odds::new(prior));
    let mut stream = Stream::new(1, 0);
    let backfitter =
        NormalBackfitter::from_prior(setting, &vec![0.0; x.len()], (1.0, 0.1), &mut stream, &Control::new())
            .unwrap();
    assert!(backfitter.trees.iter().all(|tree| tree.nodes.len() == 1));
    let model = PoissonLeaves::new(&vec![1.0; x.len()], &vec![1.0; x.len()], &settings).unwrap();
    let backfitter =
        GeneralBackfitter::from_prior(setting, &model, 0.0, &mut stream, &Control::new()).unwrap();
    assert!(backfitter.trees.iter().all(|tree| tree.nodes.len() == 1));
}

/// Chains stop within a sweep, too, since a sweep may take long.
#[test]
fn starting_and_sweeping_can_be_interrupted() {
    let table = table();
    let (running, stopped) = (Control::new(), Control::new());
    stopped.stop();
    for (name, settings) in samplers(2) {
        let setting = (&table, &settings, &Odds::new(settings.prior));
        let mut stream = Stream::new(1, 0);
        let mut start = |control| {
            NormalBackfitter::from_prior(setting, &TARGETS, (SIGMA, SIGMA_MU), &mut stream, control)
        };
        assert_eq!(start(&stopped).unwrap_err(), Error::Interrupted, "{name}");
        let mut backfitter = start(&running).unwrap();
        assert_eq!(backfitter.sweep(&mut stream, &stopped).unwrap_err(), Error::Interrupted, "{name}");
        let model = PoissonLeaves::new(&[1.0; 5], &[1.0; 5], &settings).unwrap();
        let mut start = |control| GeneralBackfitter::from_prior(setting, &model, 0.0, &mut stream, control);
        assert_eq!(start(&stopped).unwrap_err(), Error::Interrupted, "{name}");
        let mut backfitter = start(&running).unwrap();
        assert_eq!(
            backfitter.sweep(&model, &mut stream, &stopped).unwrap_err(),
            Error::Interrupted,
            "{name}"
        );
    }
}

/// The first chain starts from trees without cuts.
#[test]
fn the_first_chain_starts_from_stumps() {
    let (table, settings) = (table(), settings(LOCAL, 3));
    let odds = Odds::new(settings.prior);
    let backfitter = NormalBackfitter::from_stumps((&table, &settings, &odds), &TARGETS, (SIGMA, SIGMA_MU));
    assert_eq!(backfitter.residuals, TARGETS);
    assert!(backfitter.trees.iter().all(|tree| tree.nodes.len() == 1));
}
