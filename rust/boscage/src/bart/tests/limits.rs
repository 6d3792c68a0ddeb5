//! Extreme but valid settings give finite results; invalid likelihoods and stored trees are refused.

use crate::bart::chain::BartTrace;
use crate::bart::chain::fingerprint;
use crate::bart::kernel_table::{Kernel, Kernels};
use crate::bart::leaves::model::LeafModel;
use crate::bart::leaves::poisson::PoissonLeaves;
use crate::bart::posterior::classifier::BartClassifier;
use crate::bart::posterior::regressor::BartRegressor;
use crate::bart::posterior::sum_of_trees::SumOfTrees;
use crate::bart::settings::{BartSettings, Sparsity};
use crate::bart::state::tree::{NodeKind, TreeState};
use crate::bart::tests::setting::{MIXED, TARGETS, prior, samplers, settings, some_rows};
use crate::bayes::cuts::{RankCut, Rule};
use crate::bayes::prior::ChipmanPrior;
use crate::bayes::smc::proposals::Proposal;
use crate::control::Run;
use crate::data::Rows;
use crate::data::labels::Label;
use crate::random::keyed::Stream;

const N: usize = 24;

fn rows() -> (Vec<f64>, Vec<f64>) {
    some_rows(N, &mut Stream::new(8, 0))
}

/// Short chains with all kernels, with the least and the greatest `k`, with and without sparsity.
fn corners() -> Vec<(String, BartSettings)> {
    let mut all = Vec::new();
    for n_trees in [1, 4] {
        for (name, settings) in samplers(n_trees) {
            for k in [1e-4, 1e4] {
                for alpha in [None, Some(1e-100), Some(1e100)] {
                    let sparse = alpha.map(|alpha| Sparsity { alpha: Some(alpha) });
                    let sizes = BartSettings { n_chains: 2, n_burn: 4, n_draws: 6, ..settings.clone() };
                    let name = format!("{name}, {n_trees} trees, k={k}, {alpha:?}");
                    all.push((name, BartSettings { sparse, k, ..sizes }));
                }
            }
        }
    }
    all
}

fn check_finite(what: &str, draws: &[f64], traces: &[BartTrace]) {
    assert!(draws.iter().all(|x| x.is_finite()), "{what}: {draws:?}");
    for trace in traces {
        let numbers = [&trace.sigma, &trace.log_likelihood, &trace.alpha, &trace.split_probabilities];
        assert!(numbers.into_iter().flatten().all(|x| x.is_finite()), "{what}: {trace:?}");
        assert!(trace.sigma.iter().all(|&sigma| sigma > 0.0), "{what}: {trace:?}");
    }
}

#[test]
fn regression_stays_finite() {
    let (x, y) = rows();
    let rows = Rows::from_f64(&x, 4).unwrap();
    let range = y.iter().copied().fold(f64::MIN, f64::max) - y.iter().copied().fold(f64::MAX, f64::min);
    // Within rounding of the bounds.
    let [least, greatest] = [1.001e-9, 0.999e9];
    let scales = [1.0, 1e139, 1e-130];
    for (i, (name, settings)) in corners().into_iter().enumerate() {
        let scale = scales[i % 3];
        let targets: Vec<f64> = y.iter().map(|y| scale * y).collect();
        for share in [least, greatest] {
            let noise = Some(share * scale * range);
            for (nu, q) in [(1e-9, 0.01), (1e-9, 1.0 - 1e-16), (1e9, 1e-300), (3.0, 0.9)] {
                let settings = BartSettings { sigma_estimate: noise, nu, q, ..settings.clone() };
                let bart = BartRegressor::fit(&settings, rows, &targets, &Run::default()).unwrap();
                let what = format!("{name}, estimate {share}, nu={nu}, q={q}");
                check_finite(&what, &bart.predict_draws(rows, &Run::default()).unwrap(), bart.traces());
            }
            let settings = BartSettings { sigma: noise, ..settings.clone() };
            let bart = BartRegressor::fit(&settings, rows, &targets, &Run::default()).unwrap();
            let what = format!("{name}, sigma {share}");
            check_finite(&what, &bart.predict_draws(rows, &Run::default()).unwrap(), bart.traces());
        }
        let settings = BartSettings { nu: 1e-9, ..settings };
        let bart = BartRegressor::fit(&settings, rows, &[scale; N], &Run::default()).unwrap();
        check_finite(&name, &bart.predict_draws(rows, &Run::default()).unwrap(), bart.traces());
    }
}

#[test]
fn predictions_of_equal_targets_follow_their_unit() {
    let (x, _) = rows();
    let rows = Rows::from_f64(&x, 4).unwrap();
    let settings = BartSettings { n_trees: 4, n_chains: 1, n_burn: 4, n_draws: 6, ..BartSettings::default() };
    let fit = |y: f64, sigma: Option<f64>| {
        let settings = BartSettings { sigma, ..settings.clone() };
        let bart = BartRegressor::fit(&settings, rows, &[y; N], &Run::default()).unwrap();
        (bart.predict_draws(rows, &Run::default()).unwrap(), bart.traces()[0].sigma.clone())
    };
    // The powers of 2 are exact.
    let small = 0.5_f64.powi(40);
    for sigma in [None, Some(0.5)] {
        let (one, other) = (fit(-1.0, sigma), fit(-small, sigma.map(|sigma| sigma * small)));
        let scaled = |numbers: &[f64]| numbers.iter().map(|x| x * small).collect::<Vec<_>>();
        assert_eq!((scaled(&one.0), scaled(&one.1)), other, "{sigma:?}");
    }
    // Noise may be small beside the targets.
    fit(1e12, Some(0.5));
    check_finite("zero", &fit(0.0, None).0, &[]);
}

#[test]
fn noise_beyond_the_targets_is_refused() {
    let (x, y) = rows();
    let rows = Rows::from_f64(&x, 4).unwrap();
    for bad in [1e200, 1e10, 1e-12, 1e-160] {
        let sigma = BartSettings { sigma: Some(bad), ..BartSettings::default() };
        let estimate = BartSettings { sigma_estimate: Some(bad), ..BartSettings::default() };
        for (name, settings) in [("sigma must be", sigma), ("sigma_estimate must be", estimate)] {
            let error = BartRegressor::fit(&settings, rows, &y, &Run::default()).unwrap_err().to_string();
            assert!(error.starts_with(name) && error.contains("the range of y"), "{error}");
        }
    }
}

#[test]
fn classification_stays_finite() {
    let (x, y) = rows();
    let rows = Rows::from_f64(&x, 4).unwrap();
    for (name, settings) in corners() {
        for n_classes in [2, 3] {
            let labels: Vec<Label> = y.iter().map(|y| Label::Int((3.0 * y) as i64 % n_classes)).collect();
            let bart = BartClassifier::fit(&settings, rows, &labels, &Run::default()).unwrap();
            let draws = bart.predict_draws(rows, &Run::default()).unwrap();
            assert!(draws.iter().all(|p| (0.0..=1.0).contains(p)), "{name}");
            check_finite(&format!("{name}, {n_classes} classes"), &draws, bart.traces());
        }
    }
}

#[test]
fn poisson_regression_stays_finite() {
    let (x, y) = rows();
    let rows = Rows::from_f64(&x, 4).unwrap();
    let counts: Vec<f64> = y.iter().map(|y| (3.0 * y.abs()).floor()).collect();
    for (name, settings) in corners() {
        for exposure in [1e-300, 1.0, 1e300] {
            let model = PoissonLeaves::new(&counts, &[exposure; N], &settings).unwrap();
            let sums = SumOfTrees::fit(&settings, rows, &model, None, &Run::default()).unwrap();
            let draws = sums.predict_draws(rows, &Run::default()).unwrap();
            check_finite(&format!("{name}, exposure {exposure}"), &draws, sums.traces());
        }
    }
}

/// A leaf model whose marginal likelihood of small leaves is the given number, for any rows.
#[derive(Debug, Clone)]
struct Wrong {
    of_few: f64,
}

impl LeafModel for Wrong {
    type Stats = f64;

    fn n_rows(&self) -> usize {
        N
    }

    fn stats(&self, _: usize, _: f64) -> f64 {
        1.0
    }

    fn log_marginal(&self, n: f64) -> f64 {
        if n < 0.5 * N as f64 { self.of_few } else { 0.0 }
    }

    fn draw(&self, _: f64, stream: &mut Stream) -> f64 {
        stream.normal()
    }

    fn log_likelihood(&self, _: &[f64]) -> f64 {
        0.0
    }
}

#[test]
fn a_likelihood_that_is_not_finite_is_an_error() {
    let (x, _) = rows();
    let rows = Rows::from_f64(&x, 4).unwrap();
    for (name, settings) in samplers(2) {
        let settings = BartSettings { n_chains: 1, n_burn: 50, n_draws: 1, ..settings };
        let fit = |of_few| SumOfTrees::fit(&settings, rows, &Wrong { of_few }, None, &Run::default());
        for of_few in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            let error = fit(of_few).unwrap_err().to_string();
            assert!(error.starts_with("log_marginal of the leaf model must be finite"), "{name}: {error}");
        }
        assert!(fit(0.0).is_ok(), "{name}");
    }
}

/// What distinguishes fits: all settings except the number of draws, and the data. Files store the hash.
#[test]
fn fingerprints_are_of_everything_but_the_draws() {
    let (x, _) = rows();
    let rows = Rows::from_f64(&x, 4).unwrap();
    let print = |settings: &BartSettings| fingerprint(settings, rows, [7].into_iter());
    let old = BartSettings::default();
    let with = BartSettings::default;
    let kernels = |changed: Kernel| {
        let shares = Kernel::ALL.map(|kernel| (kernel, old.kernels.share(kernel)));
        let kernels = Kernels::new(&[&shares[..], &[(changed, 3.0)]].concat());
        BartSettings { kernels, ..with() }
    };
    let others = [
        BartSettings { n_trees: 3, ..with() },
        BartSettings { n_chains: 3, ..with() },
        BartSettings { n_burn: 3, ..with() },
        BartSettings { thin: 3, ..with() },
        BartSettings { n_particles: 3, ..with() },
        kernels(Kernel::Local),
        kernels(Kernel::GrowPrune),
        kernels(Kernel::Cgm),
        kernels(Kernel::ParticleGibbs),
        kernels(Kernel::Regrow),
        kernels(Kernel::Edit),
        BartSettings { proposal: Proposal::Empirical, ..with() },
        BartSettings { proposal: Proposal::Optimal, ..with() },
        BartSettings { proposal: Proposal::OptimalSubset(3), ..with() },
        BartSettings { proposal: Proposal::OptimalSubset(2), ..with() },
        BartSettings { proposal: Proposal::Exploring(3), ..with() },
        BartSettings { prior: prior(), ..with() },
        BartSettings { prior: ChipmanPrior::new(0.95, 1.0).unwrap(), ..with() },
        BartSettings { sparse: Some(Sparsity { alpha: None }), ..with() },
        BartSettings { sparse: Some(Sparsity { alpha: Some(3.0) }), ..with() },
        BartSettings { k: 3.0, ..with() },
        BartSettings { nu: 4.0, ..with() },
        BartSettings { q: 0.3, ..with() },
        BartSettings { sigma: Some(3.0), ..with() },
        BartSettings { sigma_estimate: Some(3.0), ..with() },
        BartSettings { seed: 3, ..with() },
    ];
    let mut prints: Vec<_> = others.iter().chain([&old]).map(print).collect();
    prints.push(fingerprint(&old, rows, [8].into_iter()));
    prints.push(fingerprint(&old, Rows::from_f64(&x[4..], 4).unwrap(), [7].into_iter()));
    let n = prints.len();
    prints.sort_unstable();
    prints.dedup();
    assert_eq!(prints.len(), n);
    assert_eq!(print(&BartSettings { n_draws: 3, ..with() }), print(&old));
    // The hash of an earlier version, so that fits in its files can be continued.
    let one = Rows::from_f64(&[0.5, 2.0], 1).unwrap();
    assert_eq!(fingerprint(&old, one, [7, 9].into_iter())[..4], [118, 249, 198, 133]);
}

/// A stored tree is refused if a cut has only missing values on one side, since the prior has no such cut.
#[test]
fn ends_with_cuts_that_the_prior_lacks_are_refused() {
    let x = [0.0, 0.0, 1.0, 0.0, f64::NAN, 5.0, 3.0, 5.0, 4.0, 5.0];
    let rows = Rows::from_f64_with_missing(&x, 2).unwrap();
    let short = BartSettings { n_chains: 1, n_burn: 2, n_draws: 2, ..settings(MIXED, 1) };
    let more = BartSettings { n_draws: 3, ..short.clone() };
    let run = Run::default();
    let goes_on = |threshold: f64, rank: u32| {
        let mut model = BartRegressor::fit(&short, rows, &TARGETS, &run).unwrap();
        let inner = |feature, rank, threshold, children| {
            let cut = RankCut { feature, rank };
            (NodeKind::Inner(Rule { cut, threshold }, children), 0.0)
        };
        let leaf = (NodeKind::Leaf, 0.0);
        // On the right of the first cut are a missing value, 3 and 4; missing values go left of the second.
        let nodes = vec![inner(1, 0, 0.0, [1, 2]), leaf, inner(0, rank, threshold, [3, 4]), leaf, leaf];
        model.posterior.ends[0].trees = vec![TreeState::from_parts(nodes, Vec::new()).unwrap()];
        BartRegressor::fit_from(Some(&model), None, (&more, rows, &TARGETS, None), &run).is_ok()
    };
    assert!(goes_on(3.5, 3));
    assert!(goes_on(f64::NEG_INFINITY, 0));
    assert!(!goes_on(0.5, 1));
}
