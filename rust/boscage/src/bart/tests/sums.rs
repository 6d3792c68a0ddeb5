//! Sums of trees: the posterior of two trees, and the prior of sums.

use std::collections::HashMap;

use crate::bart::kernels::context::Odds;
use crate::bart::posterior::classifier::BartClassifier;
use crate::bart::posterior::regressor::BartRegressor;
use crate::bart::settings::BartSettings;
use crate::bart::tests::setting::{
    GROWPRUNE, SIGMA, SIGMA_MU, TARGETS, prior, run, samplers, settings, some_rows, table,
};
use crate::bayes::target::TargetPosterior;
use crate::bayes::testing::enumerate::{Exact, Flat, Mean};
use crate::control::Run;
use crate::data::Rows;
use crate::data::labels::Label;
use crate::math::special_functions::normal_quantile;
use crate::random::keyed::Stream;

/// The leaf of every row in a tree of [`Exact::trees`], by the name of the tree.
fn leaves_of(name: &str) -> [usize; 5] {
    fn walk(rest: &mut &str, rows: &[usize], leaves: &mut [usize; 5], n_leaves: &mut usize) {
        if let Some(after) = rest.strip_prefix('*') {
            *rest = after;
            for &row in rows {
                leaves[row] = *n_leaves;
            }
            *n_leaves += 1;
            return;
        }
        let (cut, after) = rest[1..].split_once(' ').expect("a cut comes before its sides");
        let (feature, rank) = cut.split_once('<').expect("a cut has a feature and a rank");
        let (feature, rank): (u32, u32) = (feature.parse().unwrap(), rank.parse().unwrap());
        let table = table();
        let below = |row: &usize| table.column(feature).rank(*row as u32) <= rank;
        let (left, right): (Vec<usize>, Vec<usize>) = rows.iter().partition(|row| below(row));
        *rest = after;
        walk(rest, &left, leaves, n_leaves);
        *rest = &rest[1..];
        walk(rest, &right, leaves, n_leaves);
        *rest = &rest[1..];
    }
    let mut leaves = [0; 5];
    walk(&mut { name }, &[0, 1, 2, 3, 4], &mut leaves, &mut 0);
    leaves
}

/// `N(TARGETS | 0, K + SIGMA^2)` up to a constant, and `K (K + SIGMA^2)^-1 TARGETS`, by Gaussian elimination.
fn normal_sum(covariance: &[[f64; 5]; 5]) -> (f64, [f64; 5]) {
    let mut a = *covariance;
    (0..5).for_each(|i| a[i][i] += SIGMA * SIGMA);
    let (mut b, mut log_det) = (TARGETS, 0.0);
    for k in 0..5 {
        log_det += a[k][k].ln();
        for i in k + 1..5 {
            let share = a[i][k] / a[k][k];
            let above = a[k];
            a[i].iter_mut().zip(above).for_each(|(own, above)| *own -= share * above);
            b[i] -= share * b[k];
        }
    }
    for k in (0..5).rev() {
        let sum: f64 = (k + 1..5).map(|j| a[k][j] * b[j]).sum();
        b[k] = (b[k] - sum) / a[k][k];
    }
    let squares: f64 = b.iter().zip(&TARGETS).map(|(a, b)| a * b).sum();
    let mean = std::array::from_fn(|i| (0..5).map(|j| covariance[i][j] * b[j]).sum());
    ((-0.5 * (log_det + squares)).exp(), mean)
}

/// Two trees: given both, `f` is normal, so a sum over all pairs of trees is exact.
#[test]
#[ignore = "slow"]
fn two_trees_have_their_posterior() {
    let (table, prior) = (table(), prior());
    let target = TargetPosterior { table: &table, prior: &prior, leaf: &Flat };
    let exact = Exact::new(&target);
    let exact = exact.trees(exact.all_rows(), 0);
    let trees: Vec<(String, f64, [usize; 5])> =
        exact.into_iter().map(|(name, p)| (name.clone(), p, leaves_of(&name))).collect();
    let (mut expected, mut mean, mut total) = (HashMap::<String, f64>::new(), [0.0; 5], 0.0);
    for (name, p, first) in &trees {
        for (_, q, second) in &trees {
            let together =
                |leaves: &[usize; 5], i: usize, j: usize| f64::from(u8::from(leaves[i] == leaves[j]));
            let entry = |i, j| SIGMA_MU * SIGMA_MU * (together(first, i, j) + together(second, i, j));
            let covariance = std::array::from_fn(|i| std::array::from_fn(|j| entry(i, j)));
            let (likelihood, f) = normal_sum(&covariance);
            let weight = p * q * likelihood;
            *expected.entry(name.clone()).or_default() += weight;
            mean.iter_mut().zip(f).for_each(|(mean, f)| *mean += weight * f);
            total += weight;
        }
    }
    for weight in expected.values_mut() {
        *weight /= total;
    }
    for (seed, (name, settings)) in samplers(2).into_iter().enumerate() {
        let (mut stream, odds) = (Stream::new(seed as u64, 3), Odds::new(settings.prior));
        let setting = (&table, &settings, &odds);
        let (visits, means) = run(setting, (&TARGETS, SIGMA), 60_000, &mut stream);
        visits.check(name, &expected);
        for (mean_of_row, exact) in means.iter().zip(mean) {
            let m = mean_of_row.sum / mean_of_row.n;
            let error = ((mean_of_row.squares / mean_of_row.n - m * m) / mean_of_row.n).sqrt();
            assert!((m - exact / total).abs() < 4.5 * error, "{name}: {m} +- {error} for {}", exact / total);
        }
    }
}

/// If data are not informative, sums have the documented prior standard deviations: half the range over `k`
/// for numbers, `3 / k` for two classes, and `5 / k` for the log odds of more. The tests make data
/// uninformative by large noise, or by priors that are much narrower than the likelihood of a few rows.
#[test]
fn priors_of_sums_are_as_promised() {
    let mut stream = Stream::new(1, 0);
    let (x, y) = some_rows(12, &mut stream);
    let rows = Rows::from_f64(&x, 4).unwrap();
    let at = Rows::from_f64(&x[..4], 4).unwrap();
    let settings = |k| BartSettings { n_chains: 1, n_burn: 10, n_draws: 6000, k, ..settings(GROWPRUNE, 6) };
    let check = |sums: Vec<f64>, std: f64, what: &str| {
        let [mut values, mut squares] = [Mean::new(), Mean::new()];
        for sum in sums {
            values.add(sum / std);
            squares.add((sum / std).powi(2));
        }
        values.check(0.0, 5.0, what);
        squares.check(1.0, 5.0, what);
    };
    let range = y.iter().copied().fold(f64::MIN, f64::max) - y.iter().copied().fold(f64::MAX, f64::min);
    let known = BartSettings { sigma: Some(1e6), ..settings(3.0) };
    let bart = BartRegressor::fit(&known, rows, &y, &Run::default()).unwrap();
    let draws = bart.predict_draws(at, &Run::default()).unwrap();
    check(draws.iter().map(|f| f - bart.centres()[0]).collect(), range / 6.0, "numbers");

    let classify = |n_classes: i64| {
        let labels: Vec<Label> = (0..12).map(|i| Label::Int(i % n_classes)).collect();
        let bart = BartClassifier::fit(&settings(1000.0), rows, &labels, &Run::default()).unwrap();
        (bart.predict_draws(at, &Run::default()).unwrap(), bart.centres().to_vec())
    };
    let (p, centres) = classify(2);
    check(p.iter().map(|&p| normal_quantile(p) - centres[0]).collect(), 3.0 / 1000.0, "two classes");
    let (p, centres) = classify(3);
    let log_odds = p.chunks(3).map(|p| (p[1] / p[0]).ln() - (centres[1] - centres[0]));
    check(log_odds.collect(), 5.0 / 1000.0, "three classes");
}
