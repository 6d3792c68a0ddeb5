use super::*;
use crate::data::{RowId, Table};
use crate::math::matrices::solve;
use crate::mondrian::joint::limit::LogisticCovariance;
use crate::random::keyed::Stream;

const N: usize = 90;
const LANDMARKS: usize = 70;
const NOISE: f64 = 0.03;

fn rows() -> LimitRows {
    let mut stream = Stream::new(4, 0);
    let x: Vec<f64> = (0..2 * N).map(|_| stream.unit()).collect();
    let order: Vec<RowId> = (0..N as RowId).collect();
    LimitRows::new(Table::new(&x, 2), &order, &[2.0, 0.7])
}

fn covariance() -> LogisticCovariance {
    LogisticCovariance::new(1.3, 0.6, f64::INFINITY)
}

/// The covariance by way of the first rows, entry by entry: `K_.U K_UU^-1 K_U.`.
fn dense(all: &LimitRows) -> Vec<Vec<f64>> {
    let covariances = |i: usize| {
        let mut own = vec![0.0; N];
        all.covariances_with((all, &[i]), &covariance(), &mut [&mut own]);
        own
    };
    let full: Vec<Vec<f64>> = (0..N).map(covariances).collect();
    let among = full[..LANDMARKS].iter().map(|own| own[..LANDMARKS].to_vec()).collect::<Vec<_>>();
    let through = |own: &Vec<f64>| solve(among.clone(), own[..LANDMARKS].to_vec());
    let solved: Vec<Vec<f64>> = full.iter().map(through).collect();
    let entry =
        |i: usize, j: usize| -> f64 { solved[i].iter().zip(&full[j]).map(|(own, other)| own * other).sum() };
    (0..N).map(|i| (0..N).map(|j| entry(i, j)).collect()).collect()
}

/// Means, products and left-out rows are those of the dense process, for any number of threads to the same bits.
#[test]
fn equations_are_those_of_the_dense_process() {
    let all = rows();
    let q = dense(&all);
    let row_weights: Vec<f64> = (0..N).map(|i| 0.5 + (i % 5) as f64).collect();
    let values: Vec<Vec<f64>> =
        vec![(0..N).map(|i| (i as f64).sin()).collect(), (0..N).map(|i| i as f64 / 50.0).collect()];
    let places: Vec<usize> = (0..N).collect();
    for weights in [None, Some(&row_weights[..])] {
        let of = WeightedRows { rows: &all, weights };
        // The weights of rows in the dense system, without a row if it is given.
        let dense_weights = |values: &[f64], left_out: Option<usize>| {
            let rest: Vec<usize> = (0..N).filter(|&i| Some(i) != left_out).collect();
            let noise = |i: usize, j: usize| if i == j { NOISE / of.weight(i) } else { 0.0 };
            let a = rest.iter().map(|&i| rest.iter().map(|&j| q[i][j] + noise(i, j)).collect()).collect();
            let solved = solve(a, rest.iter().map(|&i| values[i]).collect());
            let mut own = vec![0.0; N];
            rest.into_iter().zip(solved).for_each(|(i, weight)| own[i] = weight);
            own
        };
        let dense_mean =
            |i: usize, weights: &[f64]| -> f64 { q[i].iter().zip(weights).map(|(q, own)| q * own).sum() };
        let found = [1, 3].map(|n_threads| {
            let run = Run { n_threads, ..Run::default() };
            let landmarks = Landmarks::new(all.at(&places[..LANDMARKS]), covariance(), &run).unwrap();
            let factor = LandmarkFactor::new(&landmarks, of, NOISE, &run).unwrap();
            let columns = landmarks.with_values(of, &places, &values, &run).unwrap();
            let solved = factor.solve(&columns, 2, &run).unwrap();
            (landmarks, factor, columns, solved)
        });
        assert_eq!((&found[0].2, &found[0].3), (&found[1].2, &found[1].3));
        let [(landmarks, factor, columns, solved), _] = found;
        let run = Run::default();
        let by_landmark = landmarks.weights_of(&solved, 2, &run).unwrap();
        let covariances = landmarks.covariances(&all, &places, &run).unwrap();
        let mean_of = |i: usize, side: usize, by_landmark: &[f64]| -> f64 {
            let own = covariances[i * LANDMARKS..][..LANDMARKS].iter();
            own.zip(by_landmark.chunks_exact(2)).map(|(own, weights)| own * weights[side]).sum()
        };
        let of_pair =
            |a: usize, b: usize| -> f64 { (0..N).map(|i| of.weight(i) * values[a][i] * values[b][i]).sum() };
        let of_values: Vec<f64> = (0..4).map(|k| of_pair(k / 2, k % 2)).collect();
        let products = factor.products(&of_values, &columns, &solved);
        for (side, own) in values.iter().enumerate() {
            let expected = dense_weights(own, None);
            for i in 0..N {
                let (found, expected) = (mean_of(i, side, &by_landmark), dense_mean(i, &expected));
                assert!((found - expected).abs() < 1e-6, "{found} and {expected}");
            }
            for (other, values) in values.iter().enumerate() {
                let expected: f64 = values.iter().zip(&expected).map(|(y, own)| y * own).sum();
                let found = products[2 * other + side];
                assert!((found - expected).abs() < 1e-5 * expected.abs(), "{found} and {expected}");
            }
            for left_out in [0, 33, N - 1] {
                let weights = dense_weights(own, Some(left_out));
                let expected = dense_mean(left_out, &weights);
                let others: Vec<usize> = places.iter().copied().filter(|&i| i != left_out).collect();
                let columns = landmarks.with_values(of, &others, &values, &run).unwrap();
                let features = landmarks.features(&all, &[left_out], &run).unwrap();
                let weight = of.weight(left_out);
                let by_row = factor.solve_without((&features, weight), &columns, 2, &run).unwrap();
                let others = factor.without(&features, &[weight], &run).unwrap();
                for solved in [by_row, others.solve(&columns, 2, &run).unwrap()] {
                    let by_landmark = landmarks.weights_of(&solved, 2, &run).unwrap();
                    let found = mean_of(left_out, side, &by_landmark);
                    assert!((found - expected).abs() < 1e-6, "{found} and {expected}");
                }
            }
        }
    }
}
