use super::posterior::{Coefficients, Given, Products};
use super::start_line::StartLine;
use super::*;
use crate::control::Run;
use crate::data::Rows;
use crate::math::matrices::small_cholesky::Cholesky;
use crate::math::matrices::solve;
use crate::mondrian::forest::storage::AnyStorage;
use crate::mondrian::joint::kernel::JointKernel;
use crate::mondrian::regression::hierarchy::tree_predictive::Component;
use crate::mondrian::regression::joint::common_order;
use crate::mondrian::regression::joint::tests::{HYPER, N, covariance, data, fitted};
use crate::mondrian::regression::regressor::MondrianRegressor;
use crate::mondrian::regression::settings::{HyperparameterRule, Noise, RegressionSettings, Trend};
use crate::random::keyed::Stream;

const VARIANCE: f64 = 0.8;

fn fixed() -> RegressionSettings {
    RegressionSettings {
        hyperparameters: Some(HYPER),
        trend: Some(Trend { variance: Some(VARIANCE), ..Trend::default() }),
        noise: Noise::Global,
        joint_kernel: JointKernel::Trees,
        ..RegressionSettings::default()
    }
}

/// The number of entries of `z`.
const WIDTH: usize = 5;
const PRIOR: [f64; WIDTH] = [1.0, 1.0, 1.0, CHANGE, CHANGE];

/// Rows are above both ranges, and below none.
fn z(x: &[f64]) -> [f64; WIDTH] {
    let [a, b] = [(x[0] - 0.15) / 0.3, (x[1] - 0.15) / 0.3];
    [1.0, a, b, (a - 0.5).max(0.0), (b - 0.5).max(0.0)]
}

/// The variance of a change of slope below the ranges.
fn without_rows(x: &[f64]) -> f64 {
    x.iter().map(|x| CHANGE * VARIANCE * (-x / 0.3).max(0.0).powi(2)).sum()
}

/// `A^-1` times some columns, by elimination.
fn solved(covariance: &[Vec<f64>], columns: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let mut noisy = covariance.to_vec();
    (0..N).for_each(|i| noisy[i][i] += HYPER.noise_variance);
    columns.iter().map(|column| solve(noisy.clone(), column.clone())).collect()
}

fn predict(forest: &MondrianRegressor, x: &[f64]) -> Vec<Component> {
    forest.predict_dist(Rows::from_f64(x, 2).unwrap(), &Run::default()).unwrap().components().to_vec()
}

/// Coefficients are those of universal kriging with the covariance that is read off the exported trees. Every component is
/// that of a forest which explains what they leave of the targets, moved and widened as the equations have it.
#[test]
fn trend_is_that_of_universal_kriging() {
    let (ids, x, mut y) = data(1);
    // Rows with the same target are in one leaf, whatever a trend leaves of it. So there are none but copies.
    y.iter_mut().zip(x.chunks(2)).for_each(|(y, x)| *y += 0.7 * x[0] - 0.4 * x[1]);
    let forest = fitted((&ids, &x, &y), fixed());
    let covariance = covariance(&forest, &x);
    let columns: Vec<Vec<f64>> = (0..WIDTH).map(|j| x.chunks(2).map(|x| z(x)[j]).collect()).collect();
    let solved = solved(&covariance, &columns);
    let inverse: Vec<Vec<f64>> = (0..WIDTH)
        .map(|i| {
            let entry = |j: usize| {
                dot(&columns[i], &solved[j]) + if i == j { 1.0 / (PRIOR[i] * VARIANCE) } else { 0.0 }
            };
            (0..WIDTH).map(entry).collect()
        })
        .collect();
    let centred: Vec<f64> = y.iter().map(|y| y - HYPER.mu).collect();
    let right = (0..WIDTH).map(|i| dot(&solved[i], &centred)).collect();
    let coefficients = solve(inverse.clone(), right);
    let (constant, slopes) = forest.trend_coefficients(&Run::default()).unwrap().unwrap();
    let found = [constant, 0.3 * slopes[0], 0.3 * slopes[1]];
    for (found, expected) in found.iter().zip(&coefficients) {
        assert!((found - expected).abs() < 1e-7, "{found} and {expected}");
    }
    let rest: Vec<f64> = x.chunks(2).zip(&y).map(|(x, y)| y - dot(&z(x), &coefficients)).collect();
    let others = fitted((&ids, &x, &rest), RegressionSettings { trend: None, ..fixed() });
    // Rows of the forest, and one where nothing is known of the trees' functions.
    let mut at: Vec<(Vec<f64>, Vec<f64>)> =
        (0..N).map(|i| (x[2 * i..][..2].to_vec(), covariance[i].clone())).collect();
    at.push((vec![-3e5, 4e6], vec![0.0; N]));
    for (x, shared) in at {
        let extra = without_rows(&x);
        assert_eq!(extra > 0.0, x[0] < 0.0);
        let z = z(&x);
        let apart: Vec<f64> = (0..WIDTH).map(|j| z[j] - dot(&solved[j], &shared)).collect();
        let variance = dot(&apart, &solve(inverse.clone(), apart.clone())) + extra;
        let (found, expected) = (predict(&forest, &x), predict(&others, &x));
        assert_eq!(found.len(), expected.len());
        let trend = dot(&z, &coefficients);
        for (found, expected) in found.iter().zip(&expected) {
            let (mean, wide) = (expected.mean + trend, expected.variance + variance);
            assert!((found.mean - mean).abs() < 1e-5 * mean.abs().max(1.0), "{found:?} and {mean}");
            assert!((found.variance - wide).abs() < 1e-5 * wide.max(1.0), "{found:?} and {wide}");
        }
    }
}

#[test]
fn leaving_a_row_out_is_forgetting_it() {
    let run = Run::default();
    let (ids, x, y) = data(1);
    let forest = fitted((&ids, &x, &y), fixed());
    for (id, row) in ids.iter().zip(x.chunks(2)) {
        let left_out = forest.loo_dist(&[*id], &run).unwrap();
        let left_out = left_out.components();
        let mut without = forest.clone();
        without.forget(&[*id]).unwrap();
        let expected = predict(&without, row);
        assert_eq!(left_out.len(), expected.len());
        for (found, expected) in left_out.iter().zip(&expected) {
            assert!((found.weight - expected.weight).abs() < 1e-12);
            assert!((found.mean - expected.mean).abs() < 1e-5, "row {id}: {found:?} and {expected:?}");
            assert!(
                (found.variance - expected.variance).abs() < 1e-5,
                "row {id}: {found:?} and {expected:?}"
            );
        }
    }
}

#[test]
fn order_and_threads_do_not_change_a_bit() {
    let at: Vec<f64> = (0..20).map(|i| f64::from(i) / 40.0).collect();
    for rule in [HyperparameterRule::LeaveOneOut, HyperparameterRule::MarginalLikelihood] {
        let predict = |seed: u64, n_threads: usize| {
            let (ids, x, y) = data(seed);
            let trend = Some(Trend::default());
            let forest = fitted((&ids, &x, &y), RegressionSettings { rule, trend, ..Default::default() });
            forest.predict(Rows::from_f64(&at, 2).unwrap(), &Run { n_threads, ..Run::default() }).unwrap()
        };
        let first = predict(1, 1);
        for (seed, n_threads) in [(2, 1), (3, 1), (1, 2)] {
            assert_eq!(predict(seed, n_threads), first);
        }
    }
}

/// The variance is that under which the targets are most likely, whatever the pivot is.
#[test]
fn variance_is_the_likeliest() {
    const M: usize = 12;
    let mut stream = Stream::new(4, 0);
    let mut draw = || 2.0 * stream.unit() - 1.0;
    let z: Vec<[f64; 2]> = (0..M).map(|_| [1.0, draw()]).collect();
    let y: Vec<f64> = z.iter().map(|z| 3.0 * z[1] + 0.4 * draw()).collect();
    let a = |i: usize, j: usize| 0.3 * (-(i.abs_diff(j) as f64)).exp() + if i == j { 0.1 } else { 0.0 };
    let all = Cholesky::new(M, a).unwrap();
    let columns: Vec<Vec<f64>> = (0..2).map(|j| z.iter().map(|z| z[j]).collect()).collect();
    // Minus twice the log likelihood, with the best scale.
    let deviance = |variance: f64| {
        let whole = Cholesky::new(M, |i, j| a(i, j) + variance * (1.0 + CHANGE * z[i][1] * z[j][1])).unwrap();
        let square = dot(&y, &whole.solve(&y));
        (M as f64 * square.ln() + whole.log_determinant(), square / M as f64)
    };
    let squares: Vec<f64> = (0..4).map(|k| dot(&columns[k / 2], &all.solve(&columns[k % 2]))).collect();
    let found = [[0.0, 0.0], [0.2, 2.5]].map(|pivot| {
        let r: Vec<f64> = z.iter().zip(&y).map(|(z, y)| y - dot(z, &pivot)).collect();
        let with_targets: Vec<f64> = columns.iter().map(|column| dot(column, &all.solve(&r))).collect();
        let products = Products {
            pivot: &pivot,
            prior: &[1.0, CHANGE],
            squares: &squares,
            with_targets: &with_targets,
            of_targets: dot(&r, &all.solve(&r)),
            n_rows: M,
            weight: (M) as f64,
        };
        let found = Coefficients::new(&products, Given { variance: None, scale: None });
        let coefficients = [0, 1].map(|j| pivot[j] + found.beyond_pivot[j]);
        (coefficients, found.variance, found.scale)
    });
    let (coefficients, variance, scale) = found[0];
    let (best, expected) = deviance(variance);
    assert!((scale - expected).abs() < 1e-9 * expected);
    // With more, the whole matrix is singular in double precision.
    for power in -10..=15 {
        assert!(deviance(4f64.powi(power)).0 > best - 1e-9, "{power}");
    }
    assert_eq!(found[1].1, variance);
    for (a, b) in coefficients.iter().zip(found[1].0) {
        assert!((a - b).abs() < 1e-9, "{a} and {b}");
    }
}

/// The penalty is that of generalised cross-validation, by the whole matrix of influences.
#[test]
fn line_is_that_of_ridge_regression() {
    let (ids, x, y) = data(1);
    let forest = fitted((&ids, &x, &y), fixed());
    let AnyStorage::F64(storage) = forest.forest.flushed_alone() else { panic!("thirds are kept as f64") };
    let design = Design::new(&forest.forest, &Trend::default(), &common_order(&forest.forest, storage));
    let line = StartLine::new(&design);
    let places: Vec<usize> = (0..N).collect();
    let fit = |places: &[usize], penalty: f64| {
        let n = places.len() as f64;
        let mean = |j: usize| places.iter().map(|&i| design.row(i)[j] / n).sum::<f64>();
        let centre = [mean(1), mean(2)];
        let rows: Vec<[f64; 2]> =
            places.iter().map(|&i| [design.row(i)[1] - centre[0], design.row(i)[2] - centre[1]]).collect();
        let matrix: Vec<Vec<f64>> = (0..2)
            .map(|a| {
                let entry = |b: usize| {
                    rows.iter().map(|row| row[a] * row[b]).sum::<f64>() + if a == b { penalty } else { 0.0 }
                };
                (0..2).map(entry).collect()
            })
            .collect();
        let y_mean = places.iter().map(|&i| design.targets[i] / n).sum::<f64>();
        let right = |a: usize| rows.iter().zip(places).map(|(row, &i)| row[a] * design.targets[i]).sum();
        let slopes = solve(matrix.clone(), vec![right(0), right(1)]);
        let influence: f64 = rows.iter().map(|row| dot(row, &solve(matrix.clone(), row.to_vec()))).sum();
        let line = vec![y_mean - dot(&centre, &slopes), slopes[0], slopes[1], 0.0, 0.0];
        let squares: f64 = places.iter().map(|&i| design.residual(i, &line).powi(2)).sum();
        (squares / (n - 1.0 - influence).powi(2), line)
    };
    let penalties = [1e-4, 1e-3, 1e-2, 0.1, 1.0, 10.0, 100.0, 1000.0];
    let each = penalties.map(|penalty| fit(&places, penalty));
    let best = (0..8).min_by(|&a, &b| each[a].0.total_cmp(&each[b].0)).unwrap();
    let some: Vec<usize> = (0..N).filter(|place| place % 3 > 0).collect();
    let of_some = line.of_some(&design, |place| place % 3 > 0);
    for (found, expected) in [(&line.coefficients, &each[best].1), (&of_some, &fit(&some, penalties[best]).1)]
    {
        for (found, expected) in found.iter().zip(expected) {
            assert!((found - expected).abs() < 1e-9, "{found} and {expected}");
        }
    }
}
