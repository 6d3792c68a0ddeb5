use super::*;
use crate::control::Run;
use crate::data::{Rows, goes_right};
use crate::math::matrices::solve;
use crate::mondrian::forest::Batch;
use crate::mondrian::forest::settings::MondrianSettings;
use crate::mondrian::joint::kernel::JointKernel;
use crate::mondrian::prediction::stop::Stop;
use crate::mondrian::process::domain::Domain;
use crate::mondrian::regression::hierarchy::branch_clock::clock_gain;
use crate::mondrian::regression::hierarchy::branch_time;
use crate::mondrian::regression::regressor::MondrianRegressor;
use crate::mondrian::regression::settings::{Posterior, RegressionSettings};
use crate::random::keyed::Stream;

pub(in crate::mondrian::regression) const N: usize = 40;
pub(in crate::mondrian::regression) const HYPER: Hyperparameters = Hyperparameters {
    mu: 0.4,
    gamma1: 1.5,
    gamma2: 0.3,
    noise_variance: 0.05,
    delay: 0.0,
    coarse: CoarsePrior::NONE,
};

/// Rows and targets, some of them twice, some with the same target, in an order by `seed`.
pub(in crate::mondrian::regression) fn data(seed: u64) -> (Vec<u64>, Vec<f64>, Vec<f64>) {
    let mut stream = Stream::new(5, 0);
    let mut x: Vec<f64> = (0..2 * N).map(|_| stream.unit() / 3.0).collect();
    x.copy_within(0..4, 8);
    let y: Vec<f64> = x.chunks(2).map(|x| ((9.0 * x[0]).sin() + x[1]).max(0.3)).collect();
    let mut order: Vec<usize> = (0..N).collect();
    let mut stream = Stream::new(seed, 1);
    for i in 1..N {
        order.swap(i, stream.below(i + 1));
    }
    let ids = order.iter().map(|&i| i as u64).collect();
    let rows = order.iter().flat_map(|&i| [x[2 * i], x[2 * i + 1]]).collect();
    (ids, rows, order.iter().map(|&i| y[i]).collect())
}

fn forest(seed: u64, settings: RegressionSettings) -> MondrianRegressor {
    let (ids, x, y) = data(seed);
    fitted((&ids, &x, &y), settings)
}

/// The forest of some rows, with ids and targets.
pub(in crate::mondrian::regression) fn fitted(
    (ids, x, y): (&[u64], &[f64], &[f64]),
    settings: RegressionSettings,
) -> MondrianRegressor {
    fitted_to((ids, x, y), settings, 2)
}

fn fitted_to(
    (ids, x, y): (&[u64], &[f64], &[f64]),
    settings: RegressionSettings,
    min_samples_split: usize,
) -> MondrianRegressor {
    let rows = Rows::from_f64(x, 2).unwrap();
    let domain = Domain::new(vec![0.0; 2], vec![0.3; 2], None).unwrap();
    let trees = MondrianSettings { n_estimators: 11, min_samples_split, ..MondrianSettings::default() };
    let batch = Batch { rows, ids: Some(ids), weights: None };
    MondrianRegressor::fit(trees, settings, domain, batch, y, &Run::default()).unwrap()
}

fn fixed() -> RegressionSettings {
    RegressionSettings {
        posterior: Posterior::Joint,
        joint_kernel: JointKernel::Trees,
        hyperparameters: Some(HYPER),
        ..RegressionSettings::default()
    }
}

/// The mean at the rows is that of a Gaussian process whose covariance is read off the exported trees.
#[test]
fn mean_is_that_of_the_gaussian_process() {
    let run = Run::default();
    let forest = forest(1, fixed());
    let (_, x, y) = data(1);
    let covariance = covariance(&forest, &x);
    let mut noisy = covariance.clone();
    (0..N).for_each(|i| noisy[i][i] += HYPER.noise_variance);
    let weights = solve(noisy, y.iter().map(|y| y - HYPER.mu).collect());
    let (mean, _) = forest.predict(Rows::from_f64(&x, 2).unwrap(), &run).unwrap();
    for i in 0..N {
        let expected: f64 = HYPER.mu + covariance[i].iter().zip(&weights).map(|(k, a)| k * a).sum::<f64>();
        assert!((mean[i] - expected).abs() < 1e-5, "row {i}: {} and {expected}", mean[i]);
    }
}

/// The rows' covariances, read off the exported trees.
pub(in crate::mondrian::regression) fn covariance(forest: &MondrianRegressor, x: &[f64]) -> Vec<Vec<f64>> {
    let trees = forest.trees(&Run::default()).unwrap();
    let mut covariance = vec![vec![0.0; N]; N];
    for tree in &trees {
        for (i, row) in covariance.iter_mut().enumerate() {
            for (j, entry) in row.iter_mut().enumerate() {
                let mut node = 0;
                while tree.children_left[node] >= 0 {
                    let left = |row: usize| {
                        !goes_right(x[2 * row + tree.feature[node] as usize], tree.threshold[node])
                    };
                    if left(i) != left(j) {
                        break;
                    }
                    let child = if left(i) { &tree.children_left } else { &tree.children_right };
                    node = child[node] as usize;
                }
                *entry += HYPER.clock(tree.time[node]) / trees.len() as f64;
            }
        }
    }
    covariance
}

#[test]
fn expected_span_is_an_integral() {
    use crate::mondrian::prediction::stop::Branch;
    use crate::mondrian::regression::hierarchy::branch_law::BranchLaw;
    let (after, time, rate) = (0.7, 3.0, 0.9);
    let node = forest(1, fixed());
    let node = match node.forest.flushed_alone() {
        crate::mondrian::forest::storage::AnyStorage::F64(storage) => storage.trees[0].arena.root().unwrap(),
        crate::mondrian::forest::storage::AnyStorage::F32(_) => panic!("thirds are kept as f64"),
    };
    let stop = Stop { node, after, time, branch: Branch::Rate(rate) };
    let span = HYPER.clock(time) - HYPER.clock(after);
    let steps = 200_000;
    let width = (time - after) / f64::from(steps);
    let integral: f64 = (0..steps)
        .map(|i| {
            let elapsed = (f64::from(i) + 0.5) * width;
            let clock = HYPER.clock(after + elapsed) - HYPER.clock(after);
            rate * (-rate * elapsed).exp() * clock * width
        })
        .sum();
    let expected = integral + (-rate * (time - after)).exp() * span;
    let before = HYPER.clock(after);
    let law = BranchLaw::new(&stop).unwrap();
    let exact = clock_gain(&law, &stop, &HYPER).mean;
    let found = branch_time::expected_span(law.probability, span, exact);
    assert!((found - expected).abs() < 1e-9, "{found} and {expected}");
    let by_one_rule = HYPER.gamma1
        * branch_time::expected_clock(&stop, HYPER.gamma2, HYPER.delay, law.probability)
        - before;
    let found = branch_time::expected_span(law.probability, span, by_one_rule);
    assert!((found - expected).abs() < 1e-6, "{found} and {expected}");
}

/// Also where nodes are paused without the row, because they hold few others, or others of one target.
#[test]
fn leaving_a_row_out_is_forgetting_it() {
    let run = Run::default();
    let (ids, x, y) = data(1);
    let steps: Vec<f64> = y.iter().map(|y| (2.0 * y).round()).collect();
    for (y, min_samples_split) in [(&y, 2), (&y, 5), (&steps, 2), (&steps, 5)] {
        let forest = fitted_to((&ids, &x, y), fixed(), min_samples_split);
        for (id, row) in ids.iter().zip(x.chunks(2)) {
            let left_out = forest.loo_dist(&[*id], &run).unwrap().get(0).unwrap().mean();
            let mut without = forest.clone();
            without.forget(&[*id]).unwrap();
            let (mean, _) = without.predict(Rows::from_f64(row, 2).unwrap(), &run).unwrap();
            assert!((left_out - mean[0]).abs() < 1e-8, "row {id}: {left_out} and {}", mean[0]);
        }
    }
}

#[test]
fn order_and_threads_do_not_change_a_bit() {
    let settings = RegressionSettings { posterior: Posterior::Joint, ..RegressionSettings::default() };
    let at: Vec<f64> = (0..20).map(|i| f64::from(i) / 40.0).collect();
    let rows = Rows::from_f64(&at, 2).unwrap();
    let predict = |seed: u64, n_threads: usize| {
        forest(seed, settings.clone()).predict(rows, &Run { n_threads, ..Run::default() }).unwrap()
    };
    let first = predict(1, 1);
    for (seed, n_threads) in [(2, 1), (3, 1), (1, 2)] {
        assert_eq!(predict(seed, n_threads), first);
    }
}
