//! Simulation-based calibration (Talts et al. 2018): ranks of true values among posterior draws, for numbers, signs and
//! several classes.

use crate::bart::backfitting::normal::NormalBackfitter;
use crate::bart::chain_state::ChainState;
use crate::bart::chain_state::multinomial::Multinomial;
use crate::bart::chain_state::normal::NormalChainState;
use crate::bart::kernels::context::Odds;
use crate::bart::prior::noise::VariancePrior;
use crate::bart::response::{NormalResponse, ProbitResponse};
use crate::bart::tests::joint_law::{redraw_classes, three_classes};
use crate::bart::tests::setting::{GROWPRUNE, MIXED, SIGMA_MU, from_prior, settings, sums, table};
use crate::control::Control;
use crate::random::distributions::normal;
use crate::random::keyed::Stream;

/// If a true value and the data are drawn from their joint distribution, the
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

/// The sum of trees at a row, `sigma`, and a new target.
#[test]
fn calibration_ranks_of_regression_are_uniform() {
    let table = table();
    let prior = VariancePrior { nu: 8.0, lambda: 0.1 };
    for kernels in [GROWPRUNE, MIXED] {
        let settings = settings(kernels, 2);
        let odds = Odds::new(settings.prior);
        let backfitter = |sigma, targets: &[f64], stream: &mut Stream| {
            from_prior((&table, &settings, &odds), (targets, sigma), stream)
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
                    own.counts.clone_from(&class.counts);
                }
                (chain, summaries(&truth))
            },
            |chain, stream| chain.sweep(stream, &Control::new()).unwrap(),
            |chain, _| summaries(chain),
        );
    }
}
