//! Chains with leaves other than normal ones of targets: counts, and a user's model.

use std::ops::{Add, Sub};

use crate::bart::backfitting::general::GeneralBackfitter;
use crate::bart::kernels::context::Odds;
use crate::bart::leaves::model::{LeafModel, RowStats};
use crate::bart::leaves::normal::{LeafPosterior, ResidualLeaf};
use crate::bart::leaves::poisson::PoissonLeaves;
use crate::bart::posterior::sum_of_trees::SumOfTrees;
use crate::bart::settings::BartSettings;
use crate::bart::tests::joint_law::poisson_draw;
use crate::bart::tests::setting::{
    GROWPRUNE, MIXED, SIGMA, SIGMA_MU, TARGETS, posterior, prior, samplers, settings, table, tree_name,
};
use crate::bayes::target::TargetPosterior;
use crate::bayes::testing::enumerate::{Exact, Flat, Mean};
use crate::bayes::testing::visit_frequencies::Visits;
use crate::control::{Control, Run};
use crate::data::Rows;
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
#[ignore = "slow"]
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
        self.0.log_likelihood(stats.n, stats.sum)
    }
    fn draw(&self, stats: Residuals, stream: &mut Stream) -> f64 {
        self.0.draw(stats.n, stats.sum, stream)
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
