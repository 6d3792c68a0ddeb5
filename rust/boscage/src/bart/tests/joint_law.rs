//! Tests of the joint distribution of parameters and data (Geweke 2004): for numbers, signs, counts, several classes, and
//! sampled split probabilities.

use crate::bart::backfitting::general::GeneralBackfitter;
use crate::bart::backfitting::normal::NormalBackfitter;
use crate::bart::chain_state::ChainState;
use crate::bart::chain_state::multinomial::Multinomial;
use crate::bart::kernel_table::Kernels;
use crate::bart::kernels::context::Odds;
use crate::bart::leaves::multinomial::OneClass;
use crate::bart::leaves::poisson::LogGamma;
use crate::bart::prior::noise::VariancePrior;
use crate::bart::prior::sparse::SplitWeights;
use crate::bart::response::{NormalResponse, ProbitResponse, Response};
use crate::bart::settings::{BartSettings, Sparsity};
use crate::bart::state::tree::TreeState;
use crate::bart::tests::leaves::{EXPOSURE, poisson};
use crate::bart::tests::setting::{
    CGM, EDIT, GROWPRUNE, LOCAL, MIXED, PG, REGROW, SIGMA, SIGMA_MU, from_prior, settings, sums, table,
};
use crate::bayes::testing::enumerate::Mean;
use crate::bayes::testing::{categories, missing_values};
use crate::control::Control;
use crate::data::sorted::columns::SortedColumns;
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
            let sigma = sigma(stream);
            (from_prior((table, settings, &odds), (&[0.0; 5], sigma), stream), response.clone())
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
#[ignore = "slow"]
fn regression_sweeps_keep_the_joint_law_with_missing_values() {
    for table in missing_values::tables().into_iter().chain(categories::tables()) {
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
pub(super) fn three_classes<'a>(
    setting: (&'a SortedColumns, &'a BartSettings, &Odds),
    stream: &mut Stream,
) -> Multinomial<'a> {
    let class = OneClass { prior: LogGamma::new(0.6), counts: vec![0.0; 5], log_phi: vec![0.0; 5] };
    let backfitters = [0.0, 0.5, -0.5].map(|centre| {
        GeneralBackfitter::from_prior(setting, &class, centre, stream, &Control::new()).unwrap()
    });
    Multinomial { backfitters: backfitters.into(), classes: vec![class; 3] }
}

/// Draws the class of every row.
pub(super) fn redraw_classes(state: &mut Multinomial<'_>, stream: &mut Stream) {
    for row in 0..5 {
        let weights: Vec<f64> =
            state.backfitters.iter().map(|backfitter| backfitter.sums[row].exp()).collect();
        let mut rest = stream.unit() * weights.iter().sum::<f64>();
        let drawn = weights.iter().position(|weight| {
            rest -= weight;
            rest < 0.0
        });
        for (class, own) in state.classes.iter_mut().enumerate() {
            own.counts[row] = f64::from(u8::from(class == drawn.unwrap_or(2)));
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
                let is_in = |class: usize, row: usize| state.classes[class].counts[row];
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
#[ignore = "slow"]
fn sweeps_that_learn_split_probabilities_keep_the_joint_law() {
    learned_split_probabilities_keep_the_joint_law(&table());
}

#[test]
#[ignore = "slow"]
fn sweeps_that_learn_split_probabilities_keep_the_joint_law_with_missing_values() {
    missing_values::tables().iter().for_each(learned_split_probabilities_keep_the_joint_law);
    categories::tables().iter().for_each(learned_split_probabilities_keep_the_joint_law);
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
            (from_prior((table, &settings, &own), (&[0.0; 5], SIGMA), stream), weights)
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
            let first =
                f64::from(u8::from(root.is_some_and(|split| table.feature_of(split.rule.feature) == 0)));
            [s, s * s, share, share * share, leaves as f64, first, first * s, s * share]
        },
    );
}
