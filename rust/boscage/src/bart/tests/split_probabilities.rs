//! Chains whose features have unequal probabilities of being split on, given or sampled, against
//! enumeration and numerical integration.

use std::collections::HashMap;

use crate::bart::kernels::context::Odds;
use crate::bart::leaves::normal::{LeafPosterior, ResidualLeaf};
use crate::bart::prior::sparse::SplitWeights;
use crate::bart::settings::{BartSettings, Sparsity};
use crate::bart::tests::setting::{
    GROWPRUNE, MIXED, PG, SIGMA, SIGMA_MU, TARGETS, from_prior, posterior, prior, run, samplers, settings,
    table, tree_name,
};
use crate::bayes::smc::proposals::Proposal;
use crate::bayes::target::TargetPosterior;
use crate::bayes::testing::enumerate::{Exact, Mean};
use crate::bayes::testing::visit_frequencies::Visits;
use crate::bayes::testing::{categories, missing_values};
use crate::control::{Control, Threads};
use crate::data::Rows;
use crate::data::sorted::columns::SortedColumns;
use crate::random::keyed::Stream;

/// The kernels of [`samplers`], and proposals on a subset of the features.
fn weighted_samplers() -> Vec<(&'static str, BartSettings)> {
    let mut all = samplers(1);
    let pg = |proposal| BartSettings { proposal, ..settings(PG, 1) };
    all.push(("pg, subset", pg(Proposal::OptimalSubset(1))));
    all.push(("pg, by weight", pg(Proposal::Exploring(1))));
    all
}

/// With unequal weights of features, trees are visited with the probabilities of the recursion.
#[test]
#[ignore = "slow"]
fn weights_of_features_are_those_of_the_posterior() {
    weights_are_those_of_the_posterior(&table());
}

#[test]
#[ignore = "slow"]
fn weights_of_features_with_missing_values_are_those_of_the_posterior() {
    weights_are_those_of_the_posterior(&missing_values::tables()[1]);
    categories::tables().iter().for_each(weights_are_those_of_the_posterior);
}

fn weights_are_those_of_the_posterior(table: &SortedColumns) {
    let mut odds = Odds::new(prior());
    odds.log_weights = Some(vec![0.15f64.ln(), 0.85f64.ln()]);
    let leaf = ResidualLeaf { posterior: LeafPosterior::new(SIGMA, SIGMA_MU), residuals: &TARGETS };
    let expected = posterior(&TargetPosterior { table, prior: &odds, leaf: &leaf });
    for (seed, (name, settings)) in weighted_samplers().into_iter().enumerate() {
        let mut stream = Stream::new(seed as u64, 7);
        let setting = (table, &settings, &odds);
        let (visits, _) = run(setting, (&TARGETS, SIGMA), 60_000, &mut stream);
        visits.check(name, &expected);
    }
}

/// Targets without information, on rows among which features cease to vary: the concentration follows its
/// prior, `alpha / (alpha + p) ~ Beta(1/2, 1)` on a grid. This includes concentrations so small that the
/// probabilities of the features that vary in a node underflow.
#[test]
fn a_flat_likelihood_gives_back_the_prior_of_split_probabilities() {
    const P: usize = 3;
    let corners: Vec<f64> = (0..8u32).flat_map(|i| [i & 1, i >> 1 & 1, i >> 2].map(f64::from)).collect();
    let rows = Rows::from_f64(&corners, P).unwrap();
    let table = SortedColumns::new(rows, &Threads::new(1), &Control::new()).unwrap();
    let grid = || (1..1000).map(|i| f64::from(i) / 1000.0);
    let alpha = |share: f64| P as f64 * share / (1.0 - share);
    let total: f64 = grid().map(|share| share.powf(-0.5)).sum();
    let prior_mean = |f: &dyn Fn(f64) -> f64| -> f64 {
        grid().map(|share| share.powf(-0.5) / total * f(alpha(share))).sum()
    };
    let functions: [&dyn Fn(f64) -> f64; 3] =
        [&f64::ln, &|alpha| f64::from(alpha < 0.01), &|alpha| f64::from(alpha < 0.1)];
    for kernels in [GROWPRUNE, MIXED] {
        let settings = settings(kernels, 2);
        let (mut stream, odds) = (Stream::new(5, 0), Odds::new(settings.prior));
        let mut backfitter = from_prior((&table, &settings, &odds), (&[0.0; 8], 1e6), &mut stream);
        let mut weights = SplitWeights::new(Sparsity { alpha: None }, P);
        let mut found: [Mean; 3] = std::array::from_fn(|_| Mean::new());
        for _ in 0..200 {
            let mut batch = [0.0; 3];
            for _ in 0..600 {
                backfitter.sweep(&mut stream, &Control::new()).unwrap();
                weights.draw(backfitter.trees.iter(), &table, &mut stream);
                Odds::set_log_weights(&mut backfitter.odds, &weights.log_s);
                batch.iter_mut().zip(functions).for_each(|(sum, f)| *sum += f(weights.alpha) / 600.0);
            }
            found.iter_mut().zip(batch).for_each(|(mean, x)| mean.add(x));
        }
        for (i, (mean, f)) in found.iter().zip(functions).enumerate() {
            mean.check(prior_mean(f), 5.0, &format!("{kernels:?}: function {i} of alpha"));
        }
    }
}

/// Sampled split probabilities, compared with integration on a grid: `s_0 ~ Beta(alpha / 2, alpha / 2)`.
#[test]
#[ignore = "slow"]
fn learned_split_probabilities_have_their_posterior() {
    const ALPHA: f64 = 1.5;
    let table = table();
    let leaf = ResidualLeaf { posterior: LeafPosterior::new(SIGMA, SIGMA_MU), residuals: &TARGETS };
    let (mut expected, mut mean, mut total) = (HashMap::<String, f64>::new(), 0.0, 0.0);
    for i in 0..2000 {
        // With `s = sin^2` the density has no poles.
        let angle = (f64::from(i) + 0.5) / 2000.0 * std::f64::consts::FRAC_PI_2;
        let s = angle.sin().powi(2);
        let density = (s * (1.0 - s)).powf(0.5 * ALPHA - 0.5);
        let mut odds = Odds::new(prior());
        odds.log_weights = Some(vec![s.ln(), (1.0 - s).ln()]);
        let target = TargetPosterior { table: &table, prior: &odds, leaf: &leaf };
        let exact = Exact::new(&target);
        let all = exact.all_rows();
        for (name, weight) in exact.trees(all, 0) {
            *expected.entry(name).or_default() += density * weight;
            mean += s * density * weight;
            total += density * weight;
        }
    }
    for weight in expected.values_mut() {
        *weight /= total;
    }
    for (name, settings) in samplers(1).into_iter().filter(|(name, _)| !name.starts_with("pg")) {
        let mut stream = Stream::new(31, 0);
        let odds = Odds::new(settings.prior);
        let mut backfitter = from_prior((&table, &settings, &odds), (&TARGETS, SIGMA), &mut stream);
        let mut weights = SplitWeights::new(Sparsity { alpha: Some(ALPHA) }, 2);
        let n = 100_000;
        let mut visits = Visits::new(n);
        let mut found = Mean::new();
        for _ in 0..n / 400 {
            let mut batch = 0.0;
            for _ in 0..400 {
                backfitter.sweep(&mut stream, &Control::new()).unwrap();
                weights.draw(backfitter.trees.iter(), &table, &mut stream);
                Odds::set_log_weights(&mut backfitter.odds, &weights.log_s);
                visits.note(tree_name(&backfitter.trees[0], &table));
                batch += weights.log_s[0].exp() / 400.0;
            }
            found.add(batch);
        }
        visits.check(name, &expected);
        found.check(mean / total, 5.0, name);
    }
}
