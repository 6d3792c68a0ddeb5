//! Chains with other leaves, chains with sampled split probabilities, and continued chains, against exact
//! answers.

use std::collections::HashMap;
use std::ops::{Add, Sub};

use crate::bart::backfitting::general::GeneralBackfitter;
use crate::bart::backfitting::normal::NormalBackfitter;
use crate::bart::classifier::BartClassifier;
use crate::bart::kernels::context::Odds;
use crate::bart::leaves::model::{LeafModel, RowStats};
use crate::bart::leaves::normal::{LeafPosterior, ResidualLeaf};
use crate::bart::leaves::poisson::PoissonLeaves;
use crate::bart::prior::sparse::SplitWeights;
use crate::bart::regressor::BartRegressor;
use crate::bart::settings::{BartSettings, Sparsity};
use crate::bart::sum_of_trees::SumOfTrees;
use crate::bart::tests::joint_law::poisson_draw;
use crate::bart::tests::posterior::{
    GROWPRUNE, MIXED, PG, SIGMA, SIGMA_MU, TARGETS, posterior, prior, samplers, settings, some_rows, table,
    tree_name,
};
use crate::bayes::smc::proposals::Proposal;
use crate::bayes::target::TargetPosterior;
use crate::bayes::testing::enumerate::{Exact, Flat, Mean};
use crate::bayes::testing::missing_values;
use crate::bayes::testing::visit_frequencies::Visits;
use crate::control::{Control, Run, Threads};
use crate::data::Rows;
use crate::data::labels::Label;
use crate::data::sorted_columns::SortedColumns;
use crate::error::Error;
use crate::math::special_functions::normal_quantile;
use crate::model_file::AnyModel;
use crate::random::keyed::Stream;

const COUNTS: [f64; 5] = [0.0, 3.0, 7.0, 1.0, 4.0];
pub(crate) const EXPOSURE: [f64; 5] = [1.0, 0.5, 2.0, 1.5, 1.0];

pub(crate) fn poisson(counts: &[f64], exposure: &[f64], settings: &BartSettings) -> PoissonLeaves {
    PoissonLeaves::new(counts, exposure, settings).unwrap()
}

/// Frequencies of the trees of a chain with one tree, and means of functions of the sums.
fn visits<M: LeafModel>(
    settings: &BartSettings,
    model: &M,
    n_sweeps: u32,
    f: impl Fn(f64) -> f64,
) -> (Visits, Vec<Mean>) {
    const BATCH: u32 = 250;
    let (table, odds) = (table(), Odds::new(settings.prior));
    let mut stream = Stream::new(11, 0);
    let mut backfitter =
        GeneralBackfitter::from_prior((&table, settings, &odds), model, 0.0, &mut stream, &Control::new())
            .unwrap();
    let mut visits = Visits::new(n_sweeps);
    let mut means: Vec<Mean> = (0..5).map(|_| Mean::new()).collect();
    for _ in 0..n_sweeps / BATCH {
        let mut batch = [0.0; 5];
        for _ in 0..BATCH {
            backfitter.sweep(model, &mut stream, &Control::new()).unwrap();
            visits.note(tree_name(&backfitter.trees[0], &table));
            batch
                .iter_mut()
                .zip(&backfitter.sums)
                .for_each(|(mean, &sum)| *mean += f(sum) / f64::from(BATCH));
        }
        means.iter_mut().zip(batch).for_each(|(mean, x)| mean.add(x));
    }
    (visits, means)
}

fn log_evidence<M: LeafModel>(model: &M) -> f64 {
    let (table, prior) = (table(), prior());
    let stats: Vec<M::Stats> = (0..5).map(|row| model.stats(row, 0.0)).collect();
    let leaf = RowStats::new(model, &stats);
    let target = TargetPosterior { table: &table, prior: &prior, leaf: &leaf };
    let mut exact = Exact::new(&target);
    let all = exact.all_rows();
    exact.evidence(all, 0).ln()
}

/// One tree for counts. Trees are visited with the probabilities of the recursion over sets of rows, and
/// `E exp(f_i)` is the ratio of the evidence with one event more at row `i` to the evidence.
#[test]
fn trees_of_counts_are_visited_as_the_posterior_does() {
    let (table, prior) = (table(), prior());
    for (name, settings) in samplers(1) {
        let model = poisson(&COUNTS, &EXPOSURE, &settings);
        let stats: Vec<_> = (0..5).map(|row| model.stats(row, 0.0)).collect();
        let leaf = RowStats::new(&model, &stats);
        let expected = posterior(&TargetPosterior { table: &table, prior: &prior, leaf: &leaf });
        let n = 60_000;
        let (visits, rates) = visits(&settings, &model, n, f64::exp);
        visits.check(name, &expected);
        for (i, rate) in rates.iter().enumerate() {
            let mut more = COUNTS;
            more[i] += 1.0;
            let ratio = log_evidence(&poisson(&more, &EXPOSURE, &settings)) - log_evidence(&model);
            rate.check(ratio.exp(), 5.0, &format!("{name}: rate of row {i}"));
        }
    }
}

/// No events where none are expected give no information: trees and values follow the prior.
#[test]
fn counts_without_exposure_give_back_the_prior() {
    let (table, prior) = (table(), prior());
    let expected = posterior(&TargetPosterior { table: &table, prior: &prior, leaf: &Flat });
    for (name, settings) in samplers(1) {
        let model = poisson(&[0.0; 5], &[1e-300; 5], &settings);
        let n = 50_000;
        // The prior mean of the value is zero, and that of its square is `(2 / k)^2`.
        let (trees, squares) = visits(&settings, &model, n, |f| (f + 0.5).powi(2));
        trees.check(name, &expected);
        for mean in &squares {
            mean.check(1.25, 5.0, name);
        }
    }
}

/// Normal leaves, implemented as a user's model.
#[derive(Debug, Clone)]
struct UsersNormal(LeafPosterior);

#[derive(Debug, Clone, Copy, Default)]
struct Residuals {
    n: f64,
    sum: f64,
}

impl Add for Residuals {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self { n: self.n + other.n, sum: self.sum + other.sum }
    }
}

impl Sub for Residuals {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self { n: self.n - other.n, sum: self.sum - other.sum }
    }
}

impl LeafModel for UsersNormal {
    type Stats = Residuals;
    fn n_rows(&self) -> usize {
        5
    }
    fn stats(&self, row: usize, others: f64) -> Residuals {
        Residuals { n: 1.0, sum: TARGETS[row] - others }
    }
    fn log_marginal(&self, stats: Residuals) -> f64 {
        self.0.log_likelihood(stats.n as u32, stats.sum)
    }
    fn draw(&self, stats: Residuals, stream: &mut Stream) -> f64 {
        self.0.draw(stats.n as u32, stats.sum, stream)
    }
    fn log_likelihood(&self, _: &[f64]) -> f64 {
        0.0
    }
}

#[test]
fn normal_leaves_of_a_user_have_the_posterior_of_ours() {
    let (table, prior) = (table(), prior());
    let ours = LeafPosterior::new(SIGMA, SIGMA_MU);
    let leaf = ResidualLeaf { posterior: ours, residuals: &TARGETS };
    let expected = posterior(&TargetPosterior { table: &table, prior: &prior, leaf: &leaf });
    for kernels in [GROWPRUNE, MIXED] {
        let n = 60_000;
        let (visits, _) = visits(&settings(kernels, 1), &UsersNormal(ours), n, |f| f);
        visits.check("a user's", &expected);
    }
}

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
}

fn weights_are_those_of_the_posterior(table: &SortedColumns) {
    let mut odds = Odds::new(prior());
    odds.log_weights = Some(vec![0.15f64.ln(), 0.85f64.ln()]);
    let leaf = ResidualLeaf { posterior: LeafPosterior::new(SIGMA, SIGMA_MU), residuals: &TARGETS };
    let expected = posterior(&TargetPosterior { table, prior: &odds, leaf: &leaf });
    for (seed, (name, settings)) in weighted_samplers().into_iter().enumerate() {
        let mut stream = Stream::new(seed as u64, 7);
        let start = (SIGMA, SIGMA_MU);
        let mut backfitter = NormalBackfitter::from_prior(
            (table, &settings, &odds),
            &TARGETS,
            start,
            &mut stream,
            &Control::new(),
        )
        .unwrap();
        let n = 60_000;
        let mut visits = Visits::new(n);
        for _ in 0..n {
            backfitter.sweep(&mut stream, &Control::new()).unwrap();
            visits.note(tree_name(&backfitter.trees[0], table));
        }
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
        let start = (1e6, SIGMA_MU);
        let mut backfitter = NormalBackfitter::from_prior(
            (&table, &settings, &odds),
            &[0.0; 8],
            start,
            &mut stream,
            &Control::new(),
        )
        .unwrap();
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
        let start = (SIGMA, SIGMA_MU);
        let mut backfitter = NormalBackfitter::from_prior(
            (&table, &settings, &odds),
            &TARGETS,
            start,
            &mut stream,
            &Control::new(),
        )
        .unwrap();
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

/// The leaf of every row in a tree of [`Exact::trees`], by the name of the tree.
fn leaves_of(name: &str) -> [usize; 5] {
    fn walk(rest: &mut &str, rows: &[usize], leaves: &mut [usize; 5], n_leaves: &mut usize) {
        if let Some(after) = rest.strip_prefix('*') {
            *rest = after;
            for &row in rows {
                leaves[row] = *n_leaves;
            }
            *n_leaves += 1;
            return;
        }
        let (cut, after) = rest[1..].split_once(' ').expect("a cut comes before its sides");
        let (feature, rank) = cut.split_once('<').expect("a cut has a feature and a rank");
        let (feature, rank): (u32, u32) = (feature.parse().unwrap(), rank.parse().unwrap());
        let table = table();
        let below = |row: &usize| table.column(feature).rank(*row as u32) <= rank;
        let (left, right): (Vec<usize>, Vec<usize>) = rows.iter().partition(|row| below(row));
        *rest = after;
        walk(rest, &left, leaves, n_leaves);
        *rest = &rest[1..];
        walk(rest, &right, leaves, n_leaves);
        *rest = &rest[1..];
    }
    let mut leaves = [0; 5];
    walk(&mut { name }, &[0, 1, 2, 3, 4], &mut leaves, &mut 0);
    leaves
}

/// `N(TARGETS | 0, K + SIGMA^2)` up to a constant, and `K (K + SIGMA^2)^-1 TARGETS`, by Gaussian elimination.
fn normal_sum(covariance: &[[f64; 5]; 5]) -> (f64, [f64; 5]) {
    let mut a = *covariance;
    (0..5).for_each(|i| a[i][i] += SIGMA * SIGMA);
    let (mut b, mut log_det) = (TARGETS, 0.0);
    for k in 0..5 {
        log_det += a[k][k].ln();
        for i in k + 1..5 {
            let share = a[i][k] / a[k][k];
            let above = a[k];
            a[i].iter_mut().zip(above).for_each(|(own, above)| *own -= share * above);
            b[i] -= share * b[k];
        }
    }
    for k in (0..5).rev() {
        let sum: f64 = (k + 1..5).map(|j| a[k][j] * b[j]).sum();
        b[k] = (b[k] - sum) / a[k][k];
    }
    let squares: f64 = b.iter().zip(&TARGETS).map(|(a, b)| a * b).sum();
    let mean = std::array::from_fn(|i| (0..5).map(|j| covariance[i][j] * b[j]).sum());
    ((-0.5 * (log_det + squares)).exp(), mean)
}

/// Two trees: given both, `f` is normal, so a sum over all pairs of trees is exact.
#[test]
#[ignore = "slow"]
fn two_trees_have_their_posterior() {
    let (table, prior) = (table(), prior());
    let target = TargetPosterior { table: &table, prior: &prior, leaf: &Flat };
    let exact = Exact::new(&target);
    let exact = exact.trees(exact.all_rows(), 0);
    let trees: Vec<(String, f64, [usize; 5])> =
        exact.into_iter().map(|(name, p)| (name.clone(), p, leaves_of(&name))).collect();
    let (mut expected, mut mean, mut total) = (HashMap::<String, f64>::new(), [0.0; 5], 0.0);
    for (name, p, first) in &trees {
        for (_, q, second) in &trees {
            let together =
                |leaves: &[usize; 5], i: usize, j: usize| f64::from(u8::from(leaves[i] == leaves[j]));
            let entry = |i, j| SIGMA_MU * SIGMA_MU * (together(first, i, j) + together(second, i, j));
            let covariance = std::array::from_fn(|i| std::array::from_fn(|j| entry(i, j)));
            let (likelihood, f) = normal_sum(&covariance);
            let weight = p * q * likelihood;
            *expected.entry(name.clone()).or_default() += weight;
            mean.iter_mut().zip(f).for_each(|(mean, f)| *mean += weight * f);
            total += weight;
        }
    }
    for weight in expected.values_mut() {
        *weight /= total;
    }
    for (seed, (name, settings)) in samplers(2).into_iter().enumerate() {
        let (mut stream, odds) = (Stream::new(seed as u64, 3), Odds::new(settings.prior));
        let start = (SIGMA, SIGMA_MU);
        let mut backfitter = NormalBackfitter::from_prior(
            (&table, &settings, &odds),
            &TARGETS,
            start,
            &mut stream,
            &Control::new(),
        )
        .unwrap();
        let n = 60_000;
        let mut visits = Visits::new(n);
        let mut means: [Mean; 5] = std::array::from_fn(|_| Mean::new());
        for _ in 0..n / 300 {
            let mut batch = [0.0; 5];
            for _ in 0..300 {
                backfitter.sweep(&mut stream, &Control::new()).unwrap();
                visits.note(tree_name(&backfitter.trees[0], &table));
                for (i, f) in batch.iter_mut().enumerate() {
                    *f += (TARGETS[i] - backfitter.residuals[i]) / 300.0;
                }
            }
            means.iter_mut().zip(batch).for_each(|(mean, f)| mean.add(f));
        }
        visits.check(name, &expected);
        for (mean_of_row, exact) in means.iter().zip(mean) {
            let m = mean_of_row.sum / mean_of_row.n;
            let error = ((mean_of_row.squares / mean_of_row.n - m * m) / mean_of_row.n).sqrt();
            assert!((m - exact / total).abs() < 4.5 * error, "{name}: {m} +- {error} for {}", exact / total);
        }
    }
}

fn all_settings() -> Vec<BartSettings> {
    let short = |kernels| BartSettings {
        n_chains: 2,
        n_burn: 10,
        n_draws: 4,
        thin: 3,
        seed: 4,
        ..settings(kernels, 5)
    };
    vec![short(GROWPRUNE), short(MIXED), BartSettings { sparse: Some(Sparsity::default()), ..short(MIXED) }]
}

/// A continued chain, also from a file, equals an uninterrupted one bit for bit.
#[test]
fn continued_chains_equal_longer_ones() {
    let (x, y) = some_rows(60, &mut Stream::new(5, 0));
    let rows = Rows::from_f64(&x, 4).unwrap();
    let run = Run::default();
    for settings in all_settings() {
        let more = BartSettings { n_draws: 9, ..settings.clone() };
        let short = BartRegressor::fit(&settings, rows, &y, &run).unwrap();
        let once = BartRegressor::fit(&more, rows, &y, &run).unwrap();
        let AnyModel::BartRegressor(read) = AnyModel::from_bytes(&short.to_bytes(), &run).unwrap() else {
            panic!("a regressor was written");
        };
        let twice = BartRegressor::fit_from(Some(&read), None, (&more, rows, &y), &run).unwrap();
        assert_eq!(twice.to_bytes(), once.to_bytes());
        let other = BartSettings { k: 1.0, ..more.clone() };
        assert!(BartRegressor::fit_from(Some(&short), None, (&other, rows, &y), &run).is_err());
        let fewer = BartSettings { n_draws: 3, ..more.clone() };
        assert!(BartRegressor::fit_from(Some(&short), None, (&fewer, rows, &y), &run).is_err());
        for n_classes in [2, 3] {
            let label = |y: &f64| Label::Int(((y + 2.0) * 1.5) as i64 % n_classes);
            let labels: Vec<Label> = y.iter().map(label).collect();
            let short = BartClassifier::fit(&settings, rows, &labels, &run).unwrap();
            let once = BartClassifier::fit(&more, rows, &labels, &run).unwrap();
            let twice = BartClassifier::fit_from(Some(&short), None, (&more, rows, &labels), &run).unwrap();
            assert_eq!(twice.to_bytes(), once.to_bytes());
            let AnyModel::BartClassifier(read) = AnyModel::from_bytes(&once.to_bytes(), &run).unwrap() else {
                panic!("a classifier was written");
            };
            assert_eq!(read.predict_draws(rows, &run).unwrap(), once.predict_draws(rows, &run).unwrap());
        }
    }
}

/// The callback is called once for every sweep, and an error of it ends all chains.
#[test]
fn every_sweep_is_reported() {
    let (x, y) = some_rows(30, &mut Stream::new(6, 0));
    let rows = Rows::from_f64(&x, 4).unwrap();
    let settings = &all_settings()[0];
    let seen = std::sync::Mutex::new(Vec::new());
    let watch = |sweep: &crate::bart::chain::Sweep| {
        seen.lock().unwrap().push(*sweep);
        Ok(())
    };
    let run = Run { n_threads: 2, ..Run::default() };
    let model = BartRegressor::fit_from(None, Some(&watch), (settings, rows, &y), &run).unwrap();
    let seen = seen.into_inner().unwrap();
    for (chain, trace) in model.traces().iter().enumerate() {
        let own: Vec<_> = seen.iter().filter(|sweep| sweep.chain == chain).collect();
        assert!(own.iter().map(|sweep| sweep.iteration).eq(1..=22));
        let kept = (0..4).map(|draw| own[10 + 3 * draw + 2]);
        assert!(
            kept.map(|sweep| (sweep.sigma, sweep.log_likelihood)).eq(trace
                .sigma
                .iter()
                .copied()
                .zip(trace.log_likelihood.iter().copied()))
        );
    }
    let stop = |sweep: &crate::bart::chain::Sweep| {
        if sweep.iteration < 5 { Ok(()) } else { Err(Error::Interrupted) }
    };
    let control = Control::new();
    let run = Run { control: &control, ..run };
    let ended = BartRegressor::fit_from(None, Some(&stop), (settings, rows, &y), &run);
    assert_eq!(ended.unwrap_err(), Error::Interrupted);
}

/// Rates that depend on one feature are recovered, for any number of threads.
#[test]
fn counts_are_learnt_and_repeat() {
    let mut stream = Stream::new(8, 0);
    let x: Vec<f64> = (0..400).map(|_| stream.unit()).collect();
    let counts: Vec<f64> =
        x.chunks(2).map(|x| poisson_draw(if x[0] < 0.5 { 1.0 } else { 6.0 }, &mut stream)).collect();
    let settings =
        BartSettings { n_trees: 20, n_chains: 2, n_burn: 200, n_draws: 100, ..BartSettings::default() };
    let model = poisson(&counts, &[1.0; 200], &settings);
    let rows = Rows::from_f64(&x, 2).unwrap();
    let fits = [1, 2].map(|n_threads| {
        let run = Run { n_threads, ..Run::default() };
        SumOfTrees::fit(&settings, rows, &model, None, &run).unwrap().predict_draws(rows, &run).unwrap()
    });
    assert_eq!(fits[0], fits[1]);
    let at = Rows::from_f64(&[0.2, 0.5, 0.8, 0.5], 2).unwrap();
    let rates = SumOfTrees::fit(&settings, rows, &model, None, &Run::default()).unwrap();
    let f = rates.predict(at, &Run::default()).unwrap();
    assert!((f[0].exp() - 1.0).abs() < 0.35 && (f[1].exp() - 6.0).abs() < 1.2, "{f:?}");
}

/// If data are not informative, sums have the documented prior standard deviations: half the range over `k`
/// for numbers, `3 / k` for two classes, and `5 / k` for the log odds of more. The tests make data
/// uninformative by large noise, or by priors that are much narrower than the likelihood of a few rows.
#[test]
fn priors_of_sums_are_as_promised() {
    let mut stream = Stream::new(1, 0);
    let (x, y) = some_rows(12, &mut stream);
    let rows = Rows::from_f64(&x, 4).unwrap();
    let at = Rows::from_f64(&x[..4], 4).unwrap();
    let settings = |k| BartSettings { n_chains: 1, n_burn: 10, n_draws: 6000, k, ..settings(GROWPRUNE, 6) };
    let check = |sums: Vec<f64>, std: f64, what: &str| {
        let [mut values, mut squares] = [Mean::new(), Mean::new()];
        for sum in sums {
            values.add(sum / std);
            squares.add((sum / std).powi(2));
        }
        values.check(0.0, 5.0, what);
        squares.check(1.0, 5.0, what);
    };
    let range = y.iter().copied().fold(f64::MIN, f64::max) - y.iter().copied().fold(f64::MAX, f64::min);
    let known = BartSettings { sigma: Some(1e6), ..settings(3.0) };
    let bart = BartRegressor::fit(&known, rows, &y, &Run::default()).unwrap();
    let draws = bart.predict_draws(at, &Run::default()).unwrap();
    check(draws.iter().map(|f| f - bart.centres()[0]).collect(), range / 6.0, "numbers");

    let classify = |n_classes: i64| {
        let labels: Vec<Label> = (0..12).map(|i| Label::Int(i % n_classes)).collect();
        let bart = BartClassifier::fit(&settings(1000.0), rows, &labels, &Run::default()).unwrap();
        (bart.predict_draws(at, &Run::default()).unwrap(), bart.centres().to_vec())
    };
    let (p, centres) = classify(2);
    check(p.iter().map(|&p| normal_quantile(p) - centres[0]).collect(), 3.0 / 1000.0, "two classes");
    let (p, centres) = classify(3);
    let log_odds = p.chunks(3).map(|p| (p[1] / p[0]).ln() - (centres[1] - centres[0]));
    check(log_odds.collect(), 5.0 / 1000.0, "three classes");
}
