use super::*;
use crate::control::Run;
use crate::data::Label;
use crate::mondrian::classification::classifier::MondrianClassifier;
use crate::mondrian::classification::settings::ClassificationSettings;
use crate::mondrian::forest::Batch;
use crate::mondrian::forest::settings::MondrianSettings;
use crate::mondrian::process::categories::Categories;
use crate::random::keyed::Stream;

const N: usize = 60;
const D: usize = 4;

/// Rows of three classes that two features tell along a line. The third feature is a category, and the first lies beyond its
/// range in some rows.
fn fitted(weighted: bool) -> (MondrianClassifier, Vec<f64>, Vec<usize>) {
    let mut stream = Stream::new(4, 0);
    let mut x = Vec::new();
    let mut codes = Vec::new();
    for _ in 0..N {
        let own: Vec<f64> = (0..D).map(|_| 1.2 * stream.unit() - 0.1).collect();
        let score = 1.5 * (own[0] + 0.6 * own[1]) + 0.6 * stream.unit();
        codes.push((score as usize).min(2));
        x.extend(own);
    }
    x.chunks_exact_mut(D).for_each(|row| row[2] = row[2].round().clamp(0.0, 1.0));
    let domain = Domain::new(vec![0.0; D], vec![1.0, 1.0, 1.0, 2.0], None).unwrap();
    let labels = [Label::Text("a".into()), Label::Text("b".into())];
    let category = Categories::new(labels.to_vec(), vec![0.0, 1.0], 0.5).unwrap();
    let domain = domain.with_categories(vec![(2, category)]).unwrap();
    let weights: Vec<f64> = (0..N).map(|_| if weighted { 0.1 + 3.0 * stream.unit() } else { 1.0 }).collect();
    let batch = Batch { rows: Rows::from_f64(&x, D).unwrap(), ids: None, weights: Some(&weights) };
    let names = [Label::Int(0), Label::Int(1), Label::Int(2)];
    let of_rows: Vec<u32> = codes.iter().map(|&code| code as u32).collect();
    let model = MondrianClassifier::fit(
        MondrianSettings { n_estimators: 3, ..MondrianSettings::default() },
        ClassificationSettings::default(),
        domain,
        batch,
        (&of_rows, &names),
        &[],
        &Run::default(),
    );
    (model.unwrap(), x, codes)
}

/// One, and the places of a row in units of the ranges of the features that are numbers.
fn z(row: &[f64]) -> [f64; D] {
    [1.0, row[0], row[1], row[3] / 2.0]
}

/// The solution of a small system, by elimination.
fn solve(mut a: [[f64; D]; D], mut b: [f64; D]) -> [f64; D] {
    for i in 0..D {
        for k in i + 1..D {
            let factor = a[k][i] / a[i][i];
            (i..D).for_each(|j| a[k][j] -= factor * a[i][j]);
            b[k] -= factor * b[i];
        }
    }
    for i in (0..D).rev() {
        let known: f64 = (i + 1..D).map(|j| a[i][j] * b[j]).sum();
        b[i] = (b[i] - known) / a[i][i];
    }
    b
}

/// The matrix of ridge regression with an intercept that is not penalised.
fn matrix(z: &[[f64; D]], weights: &[f64], penalty: f64) -> [[f64; D]; D] {
    let mut a = [[0.0; D]; D];
    for (z, weight) in z.iter().zip(weights) {
        (0..D).for_each(|i| (0..D).for_each(|j| a[i][j] += weight * z[i] * z[j]));
    }
    (1..D).for_each(|i| a[i][i] += penalty);
    a
}

/// The coefficients for some numbers.
fn ridge(z: &[[f64; D]], weights: &[f64], y: &[f64], penalty: f64) -> [f64; D] {
    let mut b = [0.0; D];
    for ((z, weight), y) in z.iter().zip(weights).zip(y) {
        (0..D).for_each(|i| b[i] += weight * z[i] * y);
    }
    solve(matrix(z, weights, penalty), b)
}

/// The variance at a place.
fn variance(place: &[f64; D], z: &[[f64; D]], weights: &[f64], penalty: f64) -> f64 {
    at(place, &solve(matrix(z, weights, penalty), *place))
}

fn at(z: &[f64; D], coefficients: &[f64; D]) -> f64 {
    z.iter().zip(coefficients).map(|(z, b)| z * b).sum()
}

#[test]
fn slopes_are_those_of_ridge_regression_and_values_without_a_row_those_of_another_fit() {
    for weighted in [false, true] {
        let (model, x, codes) = fitted(weighted);
        let fit = model.posterior.trend(&model.forest).expect("a line tells the classes");
        assert_eq!(fit.design.trend.features, [0, 1, 3]);
        let z: Vec<[f64; D]> = x.chunks_exact(D).map(z).collect();
        let rows: Vec<RowId> = (0..N as RowId).collect();
        let weights: Vec<f64> =
            rows.iter().map(|&row| fit.design.class_and_weight(&model.forest, row).1).collect();
        let mean = weights.iter().sum::<f64>() / N as f64;
        assert!((mean - 1.0).abs() < 1e-12 && (weights[0] != 1.0) == weighted);
        let code =
            |k: usize| -> Vec<f64> { codes.iter().map(|&own| f64::from(u8::from(own == k))).collect() };
        let counts_as = (N as f64).powi(2) / weights.iter().map(|weight| weight * weight).sum::<f64>();
        // The penalty is the best by generalised cross-validation, of the whole matrices.
        let score = |penalty: f64| {
            let unit = |i: usize| -> Vec<f64> { (0..N).map(|j| f64::from(u8::from(i == j))).collect() };
            let trace: f64 = (0..N).map(|i| at(&z[i], &ridge(&z, &weights, &unit(i), penalty))).sum();
            let of_class = |k: usize| -> f64 {
                let (y, b) = (code(k), ridge(&z, &weights, &code(k), penalty));
                (0..N).map(|i| weights[i] * (y[i] - at(&z[i], &b)).powi(2)).sum()
            };
            (0..3).map(of_class).sum::<f64>() / (counts_as - trace).powi(2)
        };
        let penalty = PENALTIES.into_iter().min_by(|&a, &b| score(a).total_cmp(&score(b))).unwrap();
        assert!(penalty > PENALTIES[0] && penalty < 100.0, "{penalty}");
        for k in 0..3 {
            let b = ridge(&z, &weights, &code(k), penalty);
            for d in 0..D - 1 {
                assert!((fit.design.trend.slopes[d * 3 + k] - b[d + 1]).abs() < 1e-10, "{weighted} {k} {d}");
            }
        }
        let without =
            |all: &[f64], i: usize| -> Vec<f64> { (0..N).filter(|&j| j != i).map(|j| all[j]).collect() };
        let others = |i: usize| -> Vec<[f64; D]> { (0..N).filter(|&j| j != i).map(|j| z[j]).collect() };
        let variance_without = |i: usize| variance(&z[i], &others(i), &without(&weights, i), penalty);
        // The function counts in full at 95 % of the rows.
        let mut variances: Vec<f64> = (0..N).map(variance_without).collect();
        variances.sort_unstable_by(f64::total_cmp);
        let known = variances[56];
        let left = |variance: f64| (known / variance).min(1.0).powi(2);
        let found = fit.left_out(&model.forest, &rows);
        for i in 0..N {
            let (others, own) = (others(i), without(&weights, i));
            for k in 0..3 {
                let y = without(&code(k), i);
                let b = ridge(&others, &own, &y, penalty);
                let share = own.iter().zip(&y).map(|(w, y)| w * y).sum::<f64>() / own.iter().sum::<f64>();
                let expected = left(variance_without(i)) * (at(&z[i], &b) - share);
                assert!((found[i * 3 + k] - expected).abs() < 1e-10, "{weighted} {i} {k}");
            }
        }
        // At test rows, within the ranges and beyond them, the values are the regression's less the shares.
        let test = [0.3, 0.6, 1.0, 0.8, -3.0, 0.2, 1.25, 1.0];
        let test_rows = Rows::from_f64(&test, D).unwrap();
        let predicted = fit.with_weight(2.0).predict(model.domain(), test_rows, 3, &Run::default()).unwrap();
        for (i, row) in test.chunks_exact(D).enumerate() {
            for k in 0..3 {
                let y = code(k);
                let share = weights.iter().zip(&y).map(|(w, y)| w * y).sum::<f64>() / N as f64;
                let place = super::tests::z(row);
                let left = left(variance(&place, &z, &weights, penalty));
                let expected = left * (at(&place, &ridge(&z, &weights, &y, penalty)) - share);
                assert!((left < 0.5) == (i == 1), "{left}");
                assert!((predicted[i * 3 + k] - expected).abs() < 1e-10, "{weighted} {i} {k}");
            }
        }
    }
}
