//! Rows with weights: exact posteriors, repeated rows, and the joint law of all unknowns.

use crate::bart::chain_state::ChainState;
use crate::bart::chain_state::weighted_normal::{WeightedChainState, WeightedProblem};
use crate::bart::kernels::context::Odds;
use crate::bart::leaves::model::{LeafModel, RowStats};
use crate::bart::leaves::normal::{LeafPosterior, ResidualLeaf};
use crate::bart::leaves::weighted_normal::{WeightedNormal, WeightedSum};
use crate::bart::posterior::regressor::BartRegressor;
use crate::bart::prior::noise::VariancePrior;
use crate::bart::settings::BartSettings;
use crate::bart::state::tree::TreeState;
use crate::bart::tests::joint_law::check_joint_law;
use crate::bart::tests::setting::{
    GROWPRUNE, LOCAL, MIXED, SIGMA, SIGMA_MU, TARGETS, posterior, prior, samplers, settings, some_rows,
    table, tree_name,
};
use crate::bayes::leaf::model::ConjugateLeaf;
use crate::bayes::target::TargetPosterior;
use crate::bayes::testing::enumerate::Exact;
use crate::bayes::testing::visit_frequencies::Visits;
use crate::control::{Control, Run, Threads};
use crate::data::Rows;
use crate::data::sorted::columns::SortedColumns;
use crate::random::distributions::normal;
use crate::random::keyed::Stream;

const WEIGHTS: [f64; 5] = [0.4, 2.5, 1.0, 0.1, 1.0];

fn model(targets: &[f64], weights: &[f64]) -> WeightedNormal {
    WeightedNormal::new(targets.to_vec(), weights.to_vec(), LeafPosterior::new(SIGMA, SIGMA_MU))
}

fn stats(model: &WeightedNormal) -> Vec<WeightedSum> {
    (0..model.n_rows()).map(|row| model.stats(row, 0.0)).collect()
}

fn problem(prior: Option<VariancePrior>) -> WeightedProblem {
    let (targets, weights) = (TARGETS.to_vec(), WEIGHTS.to_vec());
    WeightedProblem { targets, weights, scale: 1.0, sigma: SIGMA, prior, sigma_mu: SIGMA_MU, classes: None }
}

fn evidence<L: ConjugateLeaf>(target: &TargetPosterior<'_, L>) -> f64 {
    let mut exact = Exact::new(target);
    let all = exact.all_rows();
    exact.evidence(all, 0)
}

/// Rows of integer weights have the evidence of rows that are repeated, up to a factor that all trees share.
#[test]
fn integer_weights_are_repeated_rows() {
    let (x, y) = ([0.0, 1.0, 2.0, 3.0], [-0.5, 0.3, 0.5, -0.2]);
    let repeats = [1, 3, 2, 1];
    let many = |values: &[f64]| -> Vec<f64> {
        values.iter().zip(repeats).flat_map(|(&value, n)| std::iter::repeat_n(value, n)).collect()
    };
    let (prior, threads) = (prior(), Threads::new(1));
    let table_of =
        |x: &[f64]| SortedColumns::new(Rows::from_f64(x, 1).unwrap(), &threads, &Control::new()).unwrap();
    let (few, all) = (table_of(&x), table_of(&many(&x)));
    let model = model(&y, &repeats.map(|n| n as f64));
    let stats = stats(&model);
    let weighted = RowStats::new(&model, &stats);
    let residuals = many(&y);
    let repeated = ResidualLeaf { posterior: model.leaf, residuals: &residuals };
    let a = evidence(&TargetPosterior { table: &few, prior: &prior, leaf: &weighted });
    let b = evidence(&TargetPosterior { table: &all, prior: &prior, leaf: &repeated });
    assert!((a / b - 1.0).abs() < 1e-12, "{a} and {b}");
}

/// With known noise all kernels visit trees with the probabilities of the recursion over sets of rows.
#[test]
#[ignore = "slow"]
fn every_kernel_visits_trees_as_the_weighted_posterior_does() {
    let (table, prior, model) = (table(), prior(), model(&TARGETS, &WEIGHTS));
    let stats = stats(&model);
    let leaf = RowStats::new(&model, &stats);
    let expected = posterior(&TargetPosterior { table: &table, prior: &prior, leaf: &leaf });
    for (seed, (name, settings)) in samplers(1).into_iter().enumerate() {
        let (odds, mut stream) = (Odds::new(settings.prior), Stream::new(seed as u64, 0));
        let setting = (&table, &settings, &odds);
        let data = problem(None);
        let mut chain = WeightedChainState::start(1, setting, &data, &mut stream, &Control::new()).unwrap();
        let n = 60_000;
        let mut visits = Visits::new(n);
        for _ in 0..n {
            chain.sweep(&mut stream, &Control::new()).unwrap();
            visits.note(tree_name(&chain.backfitter.trees[0], &table));
        }
        visits.check(name, &expected);
    }
}

/// Trees, leaf values, their spread and the noise have the right joint distribution with the data.
#[test]
#[ignore = "slow"]
fn weighted_chains_get_the_joint_law_right() {
    let table = table();
    let noise = VariancePrior { nu: 12.0, lambda: SIGMA * SIGMA };
    for kernels in [GROWPRUNE, MIXED] {
        let settings = BartSettings { learn_k: true, ..settings(kernels, 2) };
        let odds = Odds::new(settings.prior);
        let control = Control::new();
        check_joint_law(
            |stream| {
                let (data, setting) = (problem(Some(noise)), (&table, &settings, &odds));
                let mut chain = WeightedChainState::start(1, setting, &data, stream, &control).unwrap();
                chain.sigma = noise.draw(0, 0.0, stream);
                chain
            },
            |chain, stream| {
                let (model, sigma) = (&mut chain.model, chain.sigma);
                for ((y, w), f) in model.targets.iter_mut().zip(&model.weights).zip(&chain.backfitter.sums) {
                    *y = f + sigma / w.sqrt() * normal(stream);
                }
            },
            |chain, stream| chain.sweep(stream, &control).unwrap(),
            |chain| {
                let f = &chain.backfitter.sums;
                let leaves: usize = chain.backfitter.trees.iter().map(TreeState::n_leaves).sum();
                let y = &chain.model.targets;
                [
                    leaves as f64,
                    chain.sigma,
                    chain.k().unwrap().ln(),
                    f[0],
                    f[0] * f[0],
                    f[0] * f[2],
                    (y[3] - f[3]).powi(2),
                    y[1] * y[1],
                    y[1] * f[1],
                ]
            },
        );
    }
}

/// Chains that are continued equal those of one fit; weights in other units change nothing.
#[test]
fn weights_are_relative_and_chains_go_on() {
    let mut stream = Stream::new(8, 0);
    let (x, y) = some_rows(50, &mut stream);
    let rows = Rows::from_f64(&x, 4).unwrap();
    let weights: Vec<f64> = (0..50).map(|_| 0.1 + stream.unit()).collect();
    let doubled: Vec<f64> = weights.iter().map(|w| 2.0 * w).collect();
    let short = BartSettings { n_chains: 2, n_burn: 5, n_draws: 5, ..settings(LOCAL, 5) };
    let long = BartSettings { n_draws: 9, ..short.clone() };
    let run = Run::default();
    let half = BartRegressor::fit_weighted(&short, rows, &y, &weights, &run).unwrap();
    let rest = BartRegressor::fit_from(Some(&half), None, (&long, rows, &y, Some(&doubled)), &run).unwrap();
    let once = BartRegressor::fit_weighted(&long, rows, &y, &weights, &run).unwrap();
    assert_eq!(rest.posterior.draws, once.posterior.draws);
    assert_eq!(rest.traces(), once.traces());
    let other = BartRegressor::fit_from(Some(&half), None, (&long, rows, &y, None), &run);
    assert!(other.is_err(), "weights are part of the data");
}

#[test]
fn impossible_weights_are_refused() {
    let rows = Rows::from_f64(&[0.0, 1.0, 2.0], 1).unwrap();
    let fit = |weights: &[f64]| {
        let settings = BartSettings { n_draws: 1, n_burn: 0, ..settings(LOCAL, 1) };
        BartRegressor::fit_weighted(&settings, rows, &[0.0, 1.0, 0.5], weights, &Run::default())
            .map_err(|error| error.to_string())
    };
    assert!(fit(&[1.0, 1e300, 1e-90]).unwrap_err().contains("above 1e-100 times their mean"));
    assert!(fit(&[f64::MAX, f64::MAX, 1e300]).is_ok());
    for wrong in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert!(fit(&[1.0, wrong, 1.0]).unwrap_err().contains("for row 1"), "{wrong}");
    }
    assert!(fit(&[1.0; 2]).unwrap_err().contains("sample_weight"));
}
