//! Classes of rows with weights: exact posteriors, and repeated rows.

use std::ops::{Add, Sub};

use crate::bart::chain_state::ChainState;
use crate::bart::chain_state::weighted_classes::WeightedClasses;
use crate::bart::chain_state::weighted_normal::{WeightedChainState, WeightedProblem};
use crate::bart::kernels::context::Odds;
use crate::bart::leaves::model::{LeafModel, RowStats};
use crate::bart::posterior::classifier::BartClassifier;
use crate::bart::settings::BartSettings;
use crate::bart::tests::setting::{
    GROWPRUNE, LOCAL, MIXED, SIGMA_MU, posterior, prior, samplers, settings, some_rows, table, tree_name,
};
use crate::bayes::target::TargetPosterior;
use crate::bayes::testing::enumerate::{Exact, Mean};
use crate::bayes::testing::visit_frequencies::Visits;
use crate::control::{Control, Run};
use crate::data::Rows;
use crate::data::labels::Label;
use crate::math::special_functions::normal_cdf;
use crate::random::keyed::Stream;

const POSITIVE: [bool; 5] = [true, false, false, true, true];
const WEIGHTS: [f64; 5] = [4.0, 2.0, 1.0, 1.0, 3.0];
const OFFSET: f64 = 0.3;

/// The probability of a row's class.
fn probability(row: usize, sum: f64) -> f64 {
    normal_cdf(if POSITIVE[row] { OFFSET + sum } else { -OFFSET - sum })
}

/// Values of a leaf on a grid, far beyond its prior.
const N_VALUES: usize = 201;

fn value(i: usize) -> f64 {
    8.0 * SIGMA_MU * (i as f64 / (N_VALUES - 1) as f64 * 2.0 - 1.0)
}

/// Logarithm of the likelihood of some rows at each value of their leaf.
#[derive(Debug, Clone, Copy)]
struct LogLikelihoods([f64; N_VALUES]);

impl Default for LogLikelihoods {
    fn default() -> Self {
        Self([0.0; N_VALUES])
    }
}

impl Add for LogLikelihoods {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(std::array::from_fn(|i| self.0[i] + other.0[i]))
    }
}

impl Sub for LogLikelihoods {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(std::array::from_fn(|i| self.0[i] - other.0[i]))
    }
}

/// The same model with leaf values integrated on the grid, and no latent number.
#[derive(Debug, Clone)]
struct OnGrid {
    weights: [f64; 5],
}

impl LeafModel for OnGrid {
    type Stats = LogLikelihoods;

    fn n_rows(&self) -> usize {
        5
    }

    fn stats(&self, row: usize, others: f64) -> LogLikelihoods {
        let log = |f: f64| self.weights[row] * libm::log(probability(row, others + f));
        LogLikelihoods(std::array::from_fn(|i| log(value(i))))
    }

    fn log_marginal(&self, stats: LogLikelihoods) -> f64 {
        let density = |i: usize| libm::exp(-0.5 * (value(i) / SIGMA_MU).powi(2));
        let total: f64 = (0..N_VALUES).map(density).sum();
        let sum: f64 = (0..N_VALUES).map(|i| density(i) * libm::exp(stats.0[i])).sum();
        libm::log(sum / total)
    }

    fn draw(&self, _: LogLikelihoods, _: &mut Stream) -> f64 {
        unreachable!("only marginal likelihoods are needed")
    }

    fn log_likelihood(&self, _: &[f64]) -> f64 {
        unreachable!("only marginal likelihoods are needed")
    }
}

fn log_evidence(model: &OnGrid) -> f64 {
    let (table, prior) = (table(), prior());
    let stats: Vec<_> = (0..5).map(|row| model.stats(row, 0.0)).collect();
    let leaf = RowStats::new(model, &stats);
    let target = TargetPosterior { table: &table, prior: &prior, leaf: &leaf };
    let mut exact = Exact::new(&target);
    let all = exact.all_rows();
    exact.evidence(all, 0).ln()
}

/// Trees are visited with the probabilities of the recursion over sets of rows, and the mean probability of a row's class is
/// the ratio of the evidence with one row more like it to the evidence.
fn visits_are_those_of_the_posterior(samplers: Vec<(&str, BartSettings)>, n_batches: u32) {
    const BATCH: u32 = 200;
    let (table, prior, model) = (table(), prior(), OnGrid { weights: WEIGHTS });
    let stats: Vec<_> = (0..5).map(|row| model.stats(row, 0.0)).collect();
    let leaf = RowStats::new(&model, &stats);
    let expected = posterior(&TargetPosterior { table: &table, prior: &prior, leaf: &leaf });
    let problem = WeightedProblem {
        targets: vec![0.0; 5],
        weights: vec![1.0; 5],
        scale: 1.0,
        sigma: 1.0,
        prior: None,
        sigma_mu: SIGMA_MU,
        classes: Some(WeightedClasses::new(POSITIVE.to_vec(), &WEIGHTS, OFFSET).unwrap()),
    };
    for (seed, (name, settings)) in samplers.into_iter().enumerate() {
        let (odds, mut stream) = (Odds::new(settings.prior), Stream::new(seed as u64, 0));
        let setting = (&table, &settings, &odds);
        let mut chain =
            WeightedChainState::start(1, setting, &problem, &mut stream, &Control::new()).unwrap();
        let mut visits = Visits::new(n_batches * BATCH);
        let mut means: [Mean; 5] = std::array::from_fn(|_| Mean::new());
        for _ in 0..n_batches {
            let mut batch = [0.0; 5];
            for _ in 0..BATCH {
                chain.sweep(&mut stream, &Control::new()).unwrap();
                visits.note(tree_name(&chain.backfitter.trees[0], &table));
                for (row, sum) in chain.backfitter.sums.iter().enumerate() {
                    batch[row] += probability(row, *sum) / f64::from(BATCH);
                }
            }
            means.iter_mut().zip(batch).for_each(|(mean, x)| mean.add(x));
        }
        visits.check(name, &expected);
        for (row, mean) in means.iter().enumerate() {
            let mut more = WEIGHTS;
            more[row] += 1.0;
            let ratio = log_evidence(&OnGrid { weights: more }) - log_evidence(&model);
            mean.check(ratio.exp(), 5.0, &format!("{name}: the class of row {row}"));
        }
    }
}

#[test]
fn weighted_classes_have_their_posterior() {
    visits_are_those_of_the_posterior(vec![("mixed", settings(MIXED, 1))], 300);
}

#[test]
#[ignore = "slow"]
fn every_kernel_visits_trees_as_the_posterior_of_weighted_classes_does() {
    visits_are_those_of_the_posterior(samplers(1), 400);
}

fn mean_of(model: &BartClassifier, rows: Rows<'_>) -> Vec<Mean> {
    let draws = model.predict_draws(rows, &Run::default()).unwrap();
    let n = draws.len() / model.n_draws();
    let mut means: Vec<Mean> = (0..n).map(|_| Mean::new()).collect();
    for batch in draws.chunks(n * 100) {
        for (i, mean) in means.iter_mut().enumerate() {
            mean.add(batch[i..].iter().step_by(n).sum::<f64>() / 100.0);
        }
    }
    means
}

/// Rows of whole weights have the posterior of rows that are repeated, with two classes and with more.
#[test]
fn whole_weights_are_repeated_rows() {
    let x = [0.0, 0.3, 1.1, 2.0, 2.2, 3.0];
    let repeats = [1, 3, 2, 1, 4, 2];
    let probes = Rows::from_f64(&x, 1).unwrap();
    for codes in [[0, 0, 1, 0, 1, 1], [0, 2, 1, 0, 1, 2]] {
        let labels = codes.map(Label::Int);
        let (mut many, mut of_many) = (Vec::new(), Vec::new());
        for ((&x, label), n) in x.iter().zip(&labels).zip(repeats) {
            many.extend(std::iter::repeat_n(x, n));
            of_many.extend(std::iter::repeat_n(label.clone(), n));
        }
        let settings = BartSettings { n_chains: 1, n_burn: 200, n_draws: 30_000, ..settings(GROWPRUNE, 2) };
        let run = Run::default();
        let weights = repeats.map(|n| n as f64);
        let once = BartClassifier::fit_weighted(&settings, probes, &labels, &weights, &run).unwrap();
        let rows = Rows::from_f64(&many, 1).unwrap();
        let often = BartClassifier::fit(&settings, rows, &of_many, &run).unwrap();
        assert_eq!(once.centres(), often.centres());
        for (i, (a, b)) in mean_of(&once, probes).iter().zip(mean_of(&often, probes)).enumerate() {
            let [(a, da), (b, db)] =
                [a, &b].map(|m| (m.sum / m.n, (m.squares / m.n - (m.sum / m.n).powi(2)) / m.n));
            assert!((a - b).abs() < 5.0 * (da + db).sqrt(), "{i}: {a} and {b}, {codes:?}");
        }
    }
}

/// Chains that are continued equal those of one fit, and weights are part of the data.
#[test]
fn chains_of_weighted_classes_go_on() {
    let mut stream = Stream::new(8, 0);
    let (x, y) = some_rows(50, &mut stream);
    let rows = Rows::from_f64(&x, 4).unwrap();
    let whole: Vec<f64> = (0..50).map(|_| 1.0 + stream.below(3) as f64).collect();
    let fractions: Vec<f64> = (0..50).map(|_| 0.1 + 2.0 * stream.unit()).collect();
    for (n_classes, weights) in [(2, whole), (3, fractions)] {
        let labels: Vec<Label> =
            y.iter().map(|y| Label::Int((3.0 * y).rem_euclid(f64::from(n_classes)) as i64)).collect();
        let short = BartSettings { n_chains: 2, n_burn: 5, n_draws: 5, ..settings(LOCAL, 5) };
        let long = BartSettings { n_draws: 9, ..short.clone() };
        let run = Run::default();
        let half = BartClassifier::fit_weighted(&short, rows, &labels, &weights, &run).unwrap();
        let again =
            |weights| BartClassifier::fit_from(Some(&half), None, (&long, rows, &labels, weights), &run);
        let once = BartClassifier::fit_weighted(&long, rows, &labels, &weights, &run).unwrap();
        let rest = again(Some(&weights[..])).unwrap();
        assert_eq!(rest.posterior.draws, once.posterior.draws);
        assert_eq!(rest.traces(), once.traces());
        assert!(again(None).is_err());
        let refused = |wrong| {
            let mut bad = weights.clone();
            bad[1] = wrong;
            BartClassifier::fit_weighted(&short, rows, &labels, &bad, &run).unwrap_err().to_string()
        };
        for wrong in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e10] {
            assert!(refused(wrong).contains("for row 1"), "{wrong}");
        }
        if n_classes == 2 {
            for wrong in [0.5, 1.5, 65_537.0] {
                assert!(refused(wrong).contains("a whole number"), "{wrong}");
            }
        }
    }
}
