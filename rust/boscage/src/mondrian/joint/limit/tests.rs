use super::*;
use crate::data::{RowId, Rows, Table, goes_right};
use crate::mondrian::forest::Batch;
use crate::mondrian::forest::settings::MondrianSettings;
use crate::mondrian::process::domain::{CoordinateBuffer, Domain};
use crate::mondrian::regression::hierarchy::belief_propagation::{CoarsePrior, Hyperparameters};
use crate::mondrian::regression::regressor::MondrianRegressor;
use crate::mondrian::regression::settings::{Posterior, RegressionSettings};
use crate::random::keyed::Stream;

const N: usize = 12;
const RATES: [f64; 3] = [2.0, 0.0, 0.5];

fn rows(n: usize) -> Vec<f64> {
    let mut stream = Stream::new(8, 0);
    (0..3 * n).map(|_| stream.unit()).collect()
}

fn domain() -> Domain {
    Domain::new(vec![0.0; 3], vec![1.0; 3], Some(RATES.to_vec())).unwrap()
}

fn limit_rows(x: &[f64]) -> LimitRows {
    let (domain, mut buffer) = (domain(), CoordinateBuffer::default());
    let coordinates = domain.coordinates(Rows::from_f64(x, 3).unwrap(), &mut buffer).unwrap();
    let values: Vec<f64> = coordinates.to_exact().unwrap();
    let order: Vec<RowId> = (0..(x.len() / 3) as RowId).collect();
    LimitRows::new(Table::new(&values, domain.n_coordinates()), &order, domain.rates())
}

/// The covariances of a row with those before it.
fn covariances(rows: &LimitRows, covariance: &impl Covariance, row: usize) -> Vec<f64> {
    let mut before = vec![0.0; row];
    rows.covariances_before(row, covariance, &mut [&mut before]);
    before
}

/// The mean over trees of what two rows share goes to the limit: it differs from it as a mean of so many draws does.
#[test]
fn trees_go_to_the_limit() {
    const TREES: usize = 20000;
    let hyper = Hyperparameters {
        mu: 0.0,
        gamma1: 1.7,
        gamma2: 0.6,
        noise_variance: 1.0,
        delay: 0.0,
        coarse: CoarsePrior::NONE,
    };
    let (x, run) = (rows(N), Run::default());
    let y: Vec<f64> = (0..N).map(|i| i as f64).collect();
    for lifetime in [f64::INFINITY, 1.2] {
        let settings = RegressionSettings {
            posterior: Posterior::Exact,
            hyperparameters: Some(hyper),
            ..RegressionSettings::default()
        };
        let trees = MondrianSettings { n_estimators: TREES, lifetime, ..MondrianSettings::default() };
        let domain = domain();
        let batch = Batch { rows: Rows::from_f64(&x, 3).unwrap(), ids: None, weights: None };
        let forest = MondrianRegressor::fit(trees, settings, domain, batch, &y, &run).unwrap();
        let trees = forest.trees(&run).unwrap();
        let (limit, covariance) = (limit_rows(&x), LogisticCovariance::new(1.7, 0.6, lifetime));
        let mut square = 0.0;
        for i in 1..N {
            for (j, expected) in covariances(&limit, &covariance, i).into_iter().enumerate() {
                let shared = trees.iter().map(|tree| {
                    let mut node = 0;
                    while tree.children_left[node] >= 0 {
                        let right = |row: usize| {
                            goes_right(x[3 * row + tree.feature[node] as usize], tree.threshold[node])
                        };
                        if right(i) != right(j) {
                            break;
                        }
                        let child = if right(i) { &tree.children_right } else { &tree.children_left };
                        node = child[node] as usize;
                    }
                    hyper.clock(tree.time[node].min(lifetime))
                });
                let shared: Vec<f64> = shared.collect();
                let mean = shared.iter().sum::<f64>() / TREES as f64;
                let variance = shared.iter().map(|own| (own - mean).powi(2)).sum::<f64>() / TREES as f64;
                let z = (mean - expected) / (variance / TREES as f64).sqrt();
                assert!(z.abs() < 4.5, "rows {i} and {j}: {mean} and {expected}");
                square += z * z;
            }
        }
        let pairs = (N * (N - 1) / 2) as f64;
        // Pairs of rows are dependent.
        assert!((square / pairs - 1.0).abs() < 0.6, "{}", square / pairs);
        assert!((covariance.of_itself() - hyper.clock(lifetime)).abs() < 1e-12);
    }
}

/// Weights solve the dense system without the rows that are left out, for any number of threads to the same bits.
#[test]
fn weights_solve_the_system() {
    const N: usize = 33;
    let (x, noise) = (rows(N), 0.2);
    let (limit, covariance) = (limit_rows(&x), LogisticCovariance::new(1.0, 0.8, f64::INFINITY));
    let row_weights: Vec<f64> = (0..N).map(|i| 0.5 + (i % 5) as f64).collect();
    let targets: Vec<[f64; 3]> = (0..N).map(|i| [(i as f64).sin(), x[3 * i], 1.0]).collect();
    let left_out = |row: usize, lane: usize| row % 3 == lane;
    for weights in [None, Some(&row_weights[..])] {
        let found = [1, 4].map(|n_threads| {
            let run = Run { n_threads, ..Run::default() };
            let system = LimitSystem::new(&limit, &covariance, (noise, weights), &run).unwrap();
            system.weights(&targets, left_out, 1e-13).unwrap()
        });
        assert_eq!(found[0], found[1]);
        for lane in 0..3 {
            for i in (0..N).filter(|i| !left_out(*i, lane)) {
                let noise = noise / weights.map_or(1.0, |weights| weights[i]);
                let mut product = (covariance.of_itself() + noise) * found[0][i][lane];
                for j in (0..N).filter(|&j| j != i) {
                    let (first, second) = (i.min(j), i.max(j));
                    let shared = covariances(&limit, &covariance, second)[first];
                    product += shared * found[0][j][lane];
                }
                assert!((product - targets[i][lane]).abs() < 1e-10, "row {i}: {product}");
            }
            assert!((0..N).filter(|i| left_out(*i, lane)).all(|i| found[0][i][lane] == 0.0));
        }
    }
}

/// At a row, a function is the mean of the row.
#[test]
fn functions_are_means() {
    const N: usize = 20;
    let (x, run) = (rows(N), Run::default());
    let (limit, covariance) = (limit_rows(&x), LogisticCovariance::new(1.3, 0.4, 2.0));
    let system = LimitSystem::new(&limit, &covariance, (0.1, None), &run).unwrap();
    let weights: Vec<[f64; 3]> = (0..N).map(|i| [1.0, i as f64, -0.5]).collect();
    let means = system.means(&weights).unwrap();
    let function = LimitFunction::new(limit.clone(), covariance.clone(), 3, weights.concat());
    let domain = domain();
    let found = function.at_rows(&domain, Rows::from_f64(&x, 3).unwrap(), &run).unwrap();
    assert!(found.iter().zip(means.as_flattened()).all(|(a, b)| (a - b).abs() < 1e-11));
    let first = weights.iter().map(|own| own[0]).collect();
    let alone = LimitFunction::new(limit, covariance.clone(), 1, first);
    let alone = alone.at_rows(&domain, Rows::from_f64(&x, 3).unwrap(), &run).unwrap();
    assert!(alone.iter().zip(found.chunks(3)).all(|(a, b)| *a == b[0]));
    let of_none = LimitFunction::new(limit_rows(&[]), covariance, 2, Vec::new());
    let found = of_none.at_rows(&domain, Rows::from_f64(&x, 3).unwrap(), &run).unwrap();
    assert_eq!(found, [0.0; 2 * N]);
}

/// Predictions for many noises in one run are those of every noise alone; the run ends when no more are asked for.
#[test]
fn left_out_rows_by_noise() {
    const N: usize = 41;
    let (x, run) = (rows(N), Run::default());
    let (limit, covariance) = (limit_rows(&x), LogisticCovariance::new(1.0, 0.8, f64::INFINITY));
    let row_weights: Vec<f64> = (0..N).map(|i| 0.5 + (i % 5) as f64).collect();
    // The second problem is solved from the start.
    let targets: Vec<[f64; 4]> = (0..N).map(|i| [(i as f64).sin(), 0.0, x[3 * i], 1.0]).collect();
    let left_out = |row: usize, lane: usize| row % 5 == lane;
    let places: Vec<LeftOutPlace> =
        (0..N).filter(|row| row % 5 < 4).map(|row| LeftOutPlace { row, problem: row % 5 }).collect();
    let noises = [300.0, 4.0, 1.0, 0.2, 0.01];
    for weights in [None, Some(&row_weights[..])] {
        let system = |noise: f64| LimitSystem::new(&limit, &covariance, (noise, weights), &run).unwrap();
        let mut found: Vec<Vec<f64>> = Vec::new();
        let smallest = system(noises[4]);
        let next = |number: usize, means: &[f64]| {
            assert_eq!(number, found.len());
            found.push(means.to_vec());
            true
        };
        smallest.left_out_by_noise(&targets, (left_out, &places), (&noises, 1e-12), next).unwrap();
        assert_eq!(found.len(), noises.len());
        for (noise, found) in noises.into_iter().zip(&found) {
            let system = system(noise);
            let means = system.means(&system.weights(&targets, left_out, 1e-13).unwrap()).unwrap();
            for (place, found) in places.iter().zip(found) {
                let expected = means[place.row][place.problem];
                assert!((found - expected).abs() < 1e-10, "noise {noise}: {found} and {expected}");
            }
        }
        let mut n_calls = 0;
        let next = |_: usize, _: &[f64]| {
            n_calls += 1;
            n_calls < 2
        };
        smallest.left_out_by_noise(&targets, (left_out, &places), (&noises, 1e-12), next).unwrap();
        assert_eq!(n_calls, 2);
    }
}

/// Distances are sums over features in order, to the last bit, wherever tiles and groups of points end.
#[test]
fn distances_in_tiles_are_sums_over_features() {
    const ROWS: usize = 1030;
    let rates = [2.0, 0.0, 0.5, 1.5, 0.1, 3.0, 0.7];
    let mut stream = Stream::new(9, 0);
    let x: Vec<f64> = (0..ROWS * rates.len()).map(|_| stream.unit()).collect();
    let order: Vec<RowId> = (0..ROWS as RowId).collect();
    let limit = LimitRows::new(Table::new(&x, rates.len()), &order, &rates);
    let distance = |a: usize, b: usize| {
        let place = |row: usize, d: usize| rates[d] * (x[row * rates.len() + d] - x[d]);
        (0..rates.len()).fold(0.0, |sum, d| sum + (place(b, d) - place(a, d)).abs())
    };
    for (first, n) in [(0, 3), (1, 1), (510, 5), (1000, 30)] {
        let mut before: Vec<Vec<f64>> = (first..first + n).map(|row| vec![0.0; row]).collect();
        limit.add_distances_before(first, &mut before.iter_mut().map(Vec::as_mut_slice).collect::<Vec<_>>());
        for (row, found) in (first..).zip(before) {
            assert_eq!(found, (0..row).map(|other| distance(row, other)).collect::<Vec<_>>());
        }
    }
    let mut all = vec![vec![0.0; ROWS]; 3];
    let coordinate = |point: usize, d: usize| x[(7 * point) * rates.len() + d];
    limit.add_distances_of(coordinate, &mut all.iter_mut().map(Vec::as_mut_slice).collect::<Vec<_>>());
    for (point, found) in all.into_iter().enumerate() {
        assert_eq!(found, (0..ROWS).map(|row| distance(7 * point, row)).collect::<Vec<_>>());
    }
}

/// A system is the same for distances that are known before.
#[test]
fn systems_of_known_distances_are_the_same() {
    const N: usize = 75;
    let (x, run) = (rows(N), Run::default());
    let limit = limit_rows(&x);
    let distances = PairDistances::new(&limit, &run).unwrap();
    let weights: Vec<[f64; 2]> = (0..N).map(|i| [1.0, i as f64]).collect();
    for gamma2 in [0.3, 4.0] {
        let covariance = LogisticCovariance::new(1.3, gamma2, f64::INFINITY);
        let at_once = LimitSystem::new(&limit, &covariance, (0.1, None), &run).unwrap();
        let known = LimitSystem::of_distances(&distances, &covariance, (0.1, None), &run).unwrap();
        assert_eq!(at_once.means(&weights).unwrap(), known.means(&weights).unwrap());
    }
}
