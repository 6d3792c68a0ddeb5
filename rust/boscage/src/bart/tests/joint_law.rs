//! Tests of the joint distribution of parameters and data (Geweke 2004; Talts et al. 2018): for numbers,
//! signs, counts, several classes, and sampled split probabilities.

use crate::bart::backfitting::general::GeneralBackfitter;
use crate::bart::backfitting::normal::NormalBackfitter;
use crate::bart::kernels::context::Odds;
use crate::bart::kernels::table::Kernels;
use crate::bart::leaves::multinomial::{Multinomial, OneClass};
use crate::bart::leaves::poisson::LogGamma;
use crate::bart::prior::noise::VariancePrior;
use crate::bart::prior::sparse::SplitWeights;
use crate::bart::response::{NormalResponse, ProbitResponse, Response};
use crate::bart::sampler::{ChainState, NormalChainState};
use crate::bart::settings::{BartSettings, Sparsity};
use crate::bart::state::tree::TreeState;
use crate::bart::tests::leaves::{EXPOSURE, poisson};
use crate::bart::tests::posterior::{
    CGM, EDIT, GROWPRUNE, LOCAL, MIXED, PG, REGROW, SIGMA, SIGMA_MU, settings, sums, table,
};
use crate::bayes::testing::enumerate::Mean;
use crate::bayes::testing::missing_values;
use crate::control::Control;
use crate::data::sorted_columns::SortedColumns;
use crate::random::distributions::normal;
use crate::random::keyed::Stream;

/// Geweke (2004): alternately drawing the data given the state, and the state given the data, leaves their
/// joint distribution invariant, if both start from the prior.
pub(crate) fn check_joint_law<S, const K: usize>(
    start: impl Fn(&mut Stream) -> S,
    redraw: impl Fn(&mut S, &mut Stream),
    sweep: impl Fn(&mut S, &mut Stream),
    statistics: impl Fn(&S) -> [f64; K],
) {
    let mut stream = Stream::new(23, 0);
    let mut independent: [Mean; K] = std::array::from_fn(|_| Mean::new());
    for _ in 0..40_000 {
        let mut state = start(&mut stream);
        redraw(&mut state, &mut stream);
        independent.iter_mut().zip(statistics(&state)).for_each(|(mean, x)| mean.add(x));
    }
    let mut state = start(&mut stream);
    let mut batches: [Mean; K] = std::array::from_fn(|_| Mean::new());
    for _ in 0..300 {
        let mut sums = [0.0; K];
        for _ in 0..400 {
            redraw(&mut state, &mut stream);
            sums.iter_mut().zip(statistics(&state)).for_each(|(sum, x)| *sum += x / 400.0);
            sweep(&mut state, &mut stream);
        }
        batches.iter_mut().zip(sums).for_each(|(mean, x)| mean.add(x));
    }
    for (i, (alone, chained)) in independent.iter().zip(&batches).enumerate() {
        let [a, b] =
            [alone, chained].map(|m| (m.sum / m.n, (m.squares / m.n - (m.sum / m.n).powi(2)).max(0.0) / m.n));
        let error = (a.1 + b.1).sqrt();
        // Constant statistics differ only by rounding.
        assert!((a.0 - b.0).abs() <= 4.5 * error + 1e-12, "{i}: {} and {} +- {error}", a.0, b.0);
    }
}

/// Simulation-based calibration: if a true value and the data are drawn from their joint distribution, the
/// rank of the true value among posterior draws is uniform. `start` returns a chain for such data with the
/// true values, and `drawn` the same statistics of the chain's state.
fn ranks_are_uniform<S, const K: usize>(
    start: impl Fn(&mut Stream) -> (S, [f64; K]),
    sweep: impl Fn(&mut S, &mut Stream),
    drawn: impl Fn(&S, &mut Stream) -> [f64; K],
) {
    const N_DRAWS: usize = 19;
    const TRIALS: usize = 400;
    const THIN: usize = 15;
    let mut stream = Stream::new(41, 0);
    let mut counts = [[0.0; 5]; K];
    for _ in 0..TRIALS {
        let (mut chain, truths) = start(&mut stream);
        let mut ranks = [0; K];
        for _ in 0..200 {
            sweep(&mut chain, &mut stream);
        }
        for _ in 0..N_DRAWS {
            for _ in 0..THIN {
                sweep(&mut chain, &mut stream);
            }
            for (rank, (drawn, truth)) in ranks.iter_mut().zip(drawn(&chain, &mut stream).iter().zip(truths))
            {
                *rank += usize::from(*drawn < truth);
            }
        }
        for (counts, rank) in counts.iter_mut().zip(ranks) {
            counts[rank * 5 / (N_DRAWS + 1)] += 1.0;
        }
    }
    // Four degrees of freedom: the statistic exceeds 25 once in 20,000 cases.
    let expected = TRIALS as f64 / 5.0;
    for counts in counts {
        let chi_square: f64 = counts.iter().map(|n| (n - expected).powi(2) / expected).sum();
        assert!(chi_square < 25.0, "{counts:?}");
    }
}

fn statistics(backfitter: &NormalBackfitter<'_>) -> [f64; 8] {
    let f = sums(backfitter);
    let leaves: usize = backfitter.trees.iter().map(TreeState::n_leaves).sum();
    let first = backfitter.trees[0].n_leaves() as f64;
    let squares: f64 = backfitter.residuals.iter().map(|r| r * r).sum();
    [
        leaves as f64,
        first * first,
        backfitter.sigma,
        squares,
        f[0],
        f[0] * f[0],
        f[0] * f[2],
        (f[0] + backfitter.residuals[0]).powi(2),
    ]
}

/// The joint distribution of numbers or signs, for a sum of two trees with normal leaves.
fn normal_leaves_get_it_right<R: Response + Clone>(
    table: &SortedColumns,
    settings: &BartSettings,
    response: &R,
    sigma: impl Fn(&mut Stream) -> f64,
    redraw: impl Fn(&mut NormalBackfitter<'_>, &mut R, &mut Stream),
) {
    let odds = Odds::new(settings.prior);
    check_joint_law(
        |stream| {
            let start = (sigma(stream), SIGMA_MU);
            (
                NormalBackfitter::from_prior(
                    (table, settings, &odds),
                    &[0.0; 5],
                    start,
                    stream,
                    &Control::new(),
                )
                .unwrap(),
                response.clone(),
            )
        },
        |(backfitter, response), stream| redraw(backfitter, response, stream),
        |(backfitter, response), stream| {
            backfitter.sigma = response.draw(&mut backfitter.residuals, backfitter.sigma, stream);
            backfitter.sweep(stream, &Control::new()).unwrap();
        },
        |(backfitter, _)| statistics(backfitter),
    );
}

#[test]
fn regression_sweeps_keep_the_joint_law() {
    numbers_get_it_right(&table(), &[LOCAL, GROWPRUNE, MIXED]);
}

#[test]
fn regression_sweeps_keep_the_joint_law_with_missing_values() {
    for table in missing_values::tables() {
        numbers_get_it_right(&table, &[MIXED]);
    }
}

#[test]
#[ignore = "slow"]
fn sweeps_that_rebuild_trees_keep_the_joint_law() {
    numbers_get_it_right(&table(), &[CGM, PG, REGROW, EDIT]);
    let [both, one] = missing_values::tables();
    numbers_get_it_right(&both, &[LOCAL, GROWPRUNE, CGM]);
    numbers_get_it_right(&one, &[PG, REGROW, EDIT]);
}

fn numbers_get_it_right(table: &SortedColumns, kernels: &[Kernels]) {
    let prior = VariancePrior { nu: 12.0, lambda: 0.2 };
    let no_data = |stream: &mut Stream| prior.draw(0, 0.0, stream);
    for &kernels in kernels {
        let response = NormalResponse { prior: Some(prior) };
        normal_leaves_get_it_right(
            table,
            &settings(kernels, 2),
            &response,
            no_data,
            |backfitter, _, stream| {
                let sigma = backfitter.sigma;
                backfitter.residuals.iter_mut().for_each(|r| *r = sigma * normal(stream));
            },
        );
    }
}

/// With sampled shrinkage. Its prior has heavy tails, so statistics are bounded functions or logarithms.
#[test]
fn sweeps_that_learn_the_scale_of_leaves_keep_the_joint_law() {
    let (table, prior) = (table(), VariancePrior { nu: 12.0, lambda: 0.2 });
    for kernels in [LOCAL, GROWPRUNE, MIXED] {
        let settings = BartSettings { learn_k: true, ..settings(kernels, 2) };
        let odds = Odds::new(settings.prior);
        check_joint_law(
            |stream| {
                let start = (prior.draw(0, 0.0, stream), SIGMA_MU);
                NormalBackfitter::from_prior(
                    (&table, &settings, &odds),
                    &[0.0; 5],
                    start,
                    stream,
                    &Control::new(),
                )
                .unwrap()
            },
            |backfitter, stream| {
                let sigma = backfitter.sigma;
                backfitter.residuals.iter_mut().for_each(|r| *r = sigma * normal(stream));
            },
            |backfitter, stream| {
                let response = &mut NormalResponse { prior: Some(prior) };
                backfitter.sigma = response.draw(&mut backfitter.residuals, backfitter.sigma, stream);
                backfitter.sweep(stream, &Control::new()).unwrap();
            },
            |backfitter| {
                let f: Vec<f64> = sums(backfitter).iter().map(|f| (f / SIGMA_MU).tanh()).collect();
                let leaves: usize = backfitter.trees.iter().map(TreeState::n_leaves).sum();
                let log_k = backfitter.learned_k().unwrap().ln();
                [leaves as f64, backfitter.sigma.ln(), log_k, log_k * log_k, f[0], f[0] * f[0], f[0] * f[2]]
            },
        );
    }
}

#[test]
fn probit_sweeps_keep_the_joint_law() {
    let response = ProbitResponse { positive: vec![true; 5], offset: 0.4, latent: vec![0.0; 5] };
    normal_leaves_get_it_right(
        &table(),
        &settings(GROWPRUNE, 2),
        &response,
        |_| 1.0,
        |backfitter, response, stream| {
            let f = sums(backfitter);
            for (i, f) in f.into_iter().enumerate() {
                let e = normal(stream);
                backfitter.residuals[i] = e;
                response.latent[i] = f + e;
                response.positive[i] = response.offset + f + e > 0.0;
            }
        },
    );
}

/// A Poisson draw with a small mean, as the number of arrivals in a unit of time.
pub(crate) fn poisson_draw(mean: f64, stream: &mut Stream) -> f64 {
    let (mut n, mut time) = (0.0, 0.0);
    loop {
        time -= (1.0 - stream.unit()).ln();
        if time > mean {
            return n;
        }
        n += 1.0;
    }
}

#[test]
fn poisson_sweeps_keep_the_joint_law() {
    let table = table();
    for kernels in [GROWPRUNE, MIXED] {
        // A narrow prior, so that rates stay small.
        let settings = BartSettings { k: 3.0, ..settings(kernels, 2) };
        let odds = Odds::new(settings.prior);
        check_joint_law(
            |stream| {
                let model = poisson(&[0.0; 5], &EXPOSURE, &settings);
                let backfitter = GeneralBackfitter::from_prior(
                    (&table, &settings, &odds),
                    &model,
                    0.0,
                    stream,
                    &Control::new(),
                )
                .unwrap();
                (backfitter, [0.0; 5])
            },
            |(backfitter, counts), stream| {
                for (i, count) in counts.iter_mut().enumerate() {
                    *count = poisson_draw(EXPOSURE[i] * backfitter.sums[i].exp(), stream);
                }
            },
            |(backfitter, counts), stream| {
                backfitter.sweep(&poisson(counts, &EXPOSURE, &settings), stream, &Control::new()).unwrap();
            },
            |(backfitter, counts)| {
                let leaves = |tree: usize| backfitter.trees[tree].n_leaves() as f64;
                let f = &backfitter.sums;
                [
                    leaves(0) + leaves(1),
                    leaves(0).powi(2),
                    f[0],
                    f[0] * f[0],
                    f[0] * f[2],
                    f[1] * counts[1],
                    counts[3],
                ]
            },
        );
    }
}

/// Draws sums of two trees for each of three classes from the prior.
fn three_classes<'a>(
    setting: (&'a SortedColumns, &'a BartSettings, &Odds),
    stream: &mut Stream,
) -> Multinomial<'a> {
    let class = OneClass { prior: LogGamma::new(0.6), is_in: vec![false; 5], log_phi: vec![0.0; 5] };
    let backfitters = [0.0, 0.5, -0.5].map(|centre| {
        GeneralBackfitter::from_prior(setting, &class, centre, stream, &Control::new()).unwrap()
    });
    Multinomial { backfitters: backfitters.into(), classes: vec![class; 3] }
}

/// Draws the class of every row.
fn redraw_classes(state: &mut Multinomial<'_>, stream: &mut Stream) {
    for row in 0..5 {
        let weights: Vec<f64> =
            state.backfitters.iter().map(|backfitter| backfitter.sums[row].exp()).collect();
        let mut rest = stream.unit() * weights.iter().sum::<f64>();
        let drawn = weights.iter().position(|weight| {
            rest -= weight;
            rest < 0.0
        });
        for (class, own) in state.classes.iter_mut().enumerate() {
            own.is_in[row] = class == drawn.unwrap_or(2);
        }
    }
}

#[test]
#[ignore = "slow"]
fn multinomial_sweeps_keep_the_joint_law() {
    let table = table();
    for kernels in [GROWPRUNE, MIXED] {
        let settings = settings(kernels, 2);
        let odds = Odds::new(settings.prior);
        check_joint_law(
            |stream| three_classes((&table, &settings, &odds), stream),
            redraw_classes,
            |chain, stream| chain.sweep(stream, &Control::new()).unwrap(),
            |state| {
                let f = |class: usize, row: usize| state.backfitters[class].sums[row];
                let is_in = |class: usize, row: usize| f64::from(u8::from(state.classes[class].is_in[row]));
                let leaves: usize = state.trees().iter().map(|tree| tree.n_leaves()).sum();
                [
                    leaves as f64,
                    f(0, 0),
                    f(0, 0).powi(2),
                    f(1, 0) * f(1, 2),
                    f(2, 1).powi(2),
                    f(0, 0) * f(1, 0),
                    f(0, 0) * is_in(0, 0),
                    f(2, 3) * is_in(1, 3),
                    is_in(1, 2),
                ]
            },
        );
    }
}

/// With sampled split probabilities and concentration.
#[test]
fn sweeps_that_learn_split_probabilities_keep_the_joint_law() {
    learned_split_probabilities_keep_the_joint_law(&table());
    missing_values::tables().iter().for_each(learned_split_probabilities_keep_the_joint_law);
}

fn learned_split_probabilities_keep_the_joint_law(table: &SortedColumns) {
    let settings = settings(MIXED, 2);
    let odds = Odds::new(settings.prior);
    check_joint_law(
        |stream| {
            let mut weights = SplitWeights::new(Sparsity { alpha: None }, 2);
            // Only the concentration is drawn from its prior; the step that follows leaves the joint prior
            // invariant.
            let weight = |i: u32| f64::from(i).powf(-0.5);
            let mut rest = stream.unit() * (1..1000).map(weight).sum::<f64>();
            let found = (1..1000).find(|&i| {
                rest -= weight(i);
                rest < 0.0
            });
            let share = f64::from(found.unwrap_or(999)) / 1000.0;
            weights.alpha = 2.0 * share / (1.0 - share);
            weights.draw(std::iter::empty(), table, stream);
            let mut own = odds.clone();
            own.log_weights = Some(weights.log_s.clone());
            let backfitter = NormalBackfitter::from_prior(
                (table, &settings, &own),
                &[0.0; 5],
                (SIGMA, SIGMA_MU),
                stream,
                &Control::new(),
            )
            .unwrap();
            (backfitter, weights)
        },
        |(backfitter, _), stream| backfitter.residuals.iter_mut().for_each(|r| *r = SIGMA * normal(stream)),
        |(backfitter, weights), stream| {
            backfitter.sweep(stream, &Control::new()).unwrap();
            weights.draw(backfitter.trees.iter(), table, stream);
            Odds::set_log_weights(&mut backfitter.odds, &weights.log_s);
        },
        |(backfitter, weights)| {
            let s = weights.log_s[0].exp();
            let share = weights.alpha / (weights.alpha + 2.0);
            let leaves: usize = backfitter.trees.iter().map(TreeState::n_leaves).sum();
            let root = backfitter.trees[0].to_tree(|_| std::sync::Arc::new(())).nodes[0].split;
            let first = f64::from(u8::from(root.is_some_and(|split| table.feature_of(split.feature) == 0)));
            [s, s * s, share, share * share, leaves as f64, first, first * s, s * share]
        },
    );
}

/// The sum of trees at a row, `sigma`, and a new target.
#[test]
fn calibration_ranks_of_regression_are_uniform() {
    let table = table();
    let prior = VariancePrior { nu: 8.0, lambda: 0.1 };
    for kernels in [GROWPRUNE, MIXED] {
        let settings = settings(kernels, 2);
        let odds = Odds::new(settings.prior);
        let backfitter = |sigma, targets: &[f64], stream: &mut Stream| {
            NormalBackfitter::from_prior(
                (&table, &settings, &odds),
                targets,
                (sigma, SIGMA_MU),
                stream,
                &Control::new(),
            )
            .unwrap()
        };
        let summaries = |f: f64, sigma: f64, stream: &mut Stream| [f, sigma, f + sigma * normal(stream)];
        ranks_are_uniform(
            |stream| {
                let sigma = prior.draw(0, 0.0, stream);
                let truth = sums(&backfitter(sigma, &[0.0; 5], stream));
                let targets: Vec<f64> = truth.iter().map(|f| f + sigma * normal(stream)).collect();
                let chain = NormalChainState {
                    backfitter: backfitter(0.4, &targets, stream),
                    response: NormalResponse { prior: Some(prior) },
                    scale: 1.0,
                };
                (chain, summaries(truth[4], sigma, stream))
            },
            |chain, stream| chain.sweep(stream, &Control::new()).unwrap(),
            |chain, stream| summaries(sums(&chain.backfitter)[4], chain.backfitter.sigma, stream),
        );
    }
}

/// The sums of trees at two rows, and their difference.
#[test]
fn calibration_ranks_of_probit_are_uniform() {
    const OFFSET: f64 = 0.4;
    let table = table();
    for kernels in [GROWPRUNE, MIXED] {
        let settings = settings(kernels, 2);
        let odds = Odds::new(settings.prior);
        let backfitter = |stream: &mut Stream| {
            NormalBackfitter::from_prior(
                (&table, &settings, &odds),
                &[0.0; 5],
                (1.0, 2.0 * SIGMA_MU),
                stream,
                &Control::new(),
            )
            .unwrap()
        };
        let summaries = |f: &[f64]| [f[0], f[4], f[0] - f[2]];
        ranks_are_uniform(
            |stream| {
                let truth = sums(&backfitter(stream));
                let positive = truth.iter().map(|f| OFFSET + f + normal(stream) > 0.0).collect();
                let response = ProbitResponse { positive, offset: OFFSET, latent: vec![0.0; 5] };
                (NormalChainState { backfitter: backfitter(stream), response, scale: 1.0 }, summaries(&truth))
            },
            |chain, stream| chain.sweep(stream, &Control::new()).unwrap(),
            |chain, _| summaries(&sums(&chain.backfitter)),
        );
    }
}

/// The logarithms of two odds, and the probability of a class.
#[test]
#[ignore = "slow"]
fn calibration_ranks_of_multinomial_are_uniform() {
    let table = table();
    for kernels in [GROWPRUNE, MIXED] {
        let settings = settings(kernels, 2);
        let odds = Odds::new(settings.prior);
        let summaries = |state: &Multinomial<'_>| {
            let f = |class: usize, row: usize| state.backfitters[class].sums[row];
            let total: f64 = (0..3).map(|class| f(class, 1).exp()).sum();
            [f(0, 0) - f(1, 0), f(1, 4) - f(2, 4), f(2, 1).exp() / total]
        };
        ranks_are_uniform(
            |stream| {
                let mut truth = three_classes((&table, &settings, &odds), stream);
                redraw_classes(&mut truth, stream);
                let mut chain = three_classes((&table, &settings, &odds), stream);
                for (own, class) in chain.classes.iter_mut().zip(&truth.classes) {
                    own.is_in.clone_from(&class.is_in);
                }
                (chain, summaries(&truth))
            },
            |chain, stream| chain.sweep(stream, &Control::new()).unwrap(),
            |chain, _| summaries(chain),
        );
    }
}
