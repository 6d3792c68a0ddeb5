use super::chosen::ClassWeights;
use super::likelihood::{MAX_NOISE, MAX_POWER, NOISE, PRIOR, Side, USUAL_WEIGHT};
use super::link::Beside;
use super::*;
use crate::mondrian::classification::trend::ClassTrend;
use crate::mondrian::forest::rows_by_contents::Copies;
use crate::random::keyed::Stream;

/// Rows of several classes whose probabilities are a power of those that drew them.
fn rows(n: usize, n_classes: usize, power: f64) -> Vec<Vec<f64>> {
    let mut stream = Stream::new(5, n_classes);
    (0..n)
        .map(|_| {
            let logs: Vec<f64> = (0..n_classes).map(|_| 4.0 * stream.unit()).collect();
            let total: f64 = logs.iter().map(|log| log.exp()).sum();
            let mut rest = stream.unit() * total;
            let own = logs.iter().position(|log| {
                rest -= log.exp();
                rest < 0.0
            });
            let own = own.unwrap_or(n_classes - 1);
            let others = logs.iter().enumerate().filter(|(k, _)| *k != own);
            others.map(|(_, log)| (log - logs[own]) / power).collect()
        })
        .collect()
}

/// Of rows that have no functions' values, given the logarithms of odds of the other classes.
fn with_odds(rows: &[Vec<f64>]) -> LeftOutRows {
    let n_classes = rows.first().map_or(3, |row| row.len() + 1);
    let mut found = LeftOutRows::new(Terms::default(), n_classes);
    for row in rows {
        let odds: Vec<f64> = std::iter::once(1.0).chain(row.iter().map(|log| log.exp())).collect();
        let total: f64 = odds.iter().sum();
        let proba: Vec<f64> = odds.iter().map(|odds| odds / total).collect();
        found.push(Average { proba: &proba, of_all: 0.0 }, &beside(None, None), (0, 1.0));
    }
    found
}

fn beside<'a>(joint: Option<&'a [f64]>, trend: Option<&'a [f64]>) -> BesideRow<'a, impl Fn(usize) -> f64> {
    BesideRow { log_shares: |_| 0.0, joint, trend }
}

fn best(rows: &[Vec<f64>]) -> Numbers {
    with_odds(rows).best(rows.len())
}

/// The loss, by the terms of all odds: logarithms of odds and shares, and functions' values.
fn loss(rows: &LeftOutRows, (power, noise): (f64, f64), weights: &[f64]) -> f64 {
    let mut factors = vec![power];
    factors.extend(rows.terms.shares.then(|| (1.0 - power).max(0.0)));
    factors.extend(weights);
    let of_row = |row: &Vec<f64>| {
        let t = |terms: &[f64]| terms.iter().zip(&factors).map(|(term, factor)| term * factor).sum::<f64>();
        let own = 1.0 / (1.0 + row.chunks_exact(factors.len()).map(|terms| t(terms).exp()).sum::<f64>());
        -((1.0 - noise) * own + noise / rows.n_classes as f64).ln()
    };
    let of_weights = weights.iter().sum::<f64>() / USUAL_WEIGHT;
    let prior = PRIOR * (power - 1.0 - power.ln() + of_weights) - NOISE * noise.ln();
    rows.odds.iter().map(of_row).sum::<f64>() + prior
}

/// Rows whose own class is drawn from `p^1.5` times what functions say.
#[test]
fn power_and_weights_are_found_together() {
    let mut stream = Stream::new(8, 0);
    for (weight, of_trend) in [(0.0, 0.0), (2.0, 5.0), (7.0, 0.0), (0.0, 3.0)] {
        let trend = ClassTrend { weight: of_trend, ..no_trend() };
        let link = CalibrationLink { power: 1.5, weight, trend: Some(trend), ..CalibrationLink::NONE };
        let terms = Terms { shares: false, joint: true, trend: true };
        let mut rows = LeftOutRows::new(terms, 3);
        for _ in 0..6000 {
            let logs: Vec<f64> = (0..3).map(|_| 3.0 * stream.unit()).collect();
            let [joint, trend] = [0, 1].map(|_| (0..3).map(|_| stream.unit() - 0.5).collect::<Vec<f64>>());
            let total: f64 = logs.iter().map(|log| log.exp()).sum();
            let plain: Vec<f64> = logs.iter().map(|log| log.exp() / total).collect();
            let (mut proba, of_all) = (plain.clone(), 0.5 * stream.unit());
            let all = Beside { of_all, log_shares: &[], joint: Some(&joint), trend: Some(&trend) };
            link.apply(&mut proba, &all, None);
            let mut rest = stream.unit();
            let own = proba.iter().position(|p| {
                rest -= p;
                rest < 0.0
            });
            let average = Average { proba: &plain, of_all };
            rows.push(average, &beside(Some(&joint), Some(&trend)), (own.unwrap_or(2), 1.0));
        }
        let found = rows.best(0);
        let trend = found.trend;
        let what = format!("{found:?} and {weight} {of_trend}");
        assert!((found.joint - weight).abs() < 0.4 && (trend - of_trend).abs() < 0.5, "{what}");
        assert!((found.power - 1.5).abs() < 0.2 && found.noise < 0.03, "{what}");
        let least = loss(&rows, (found.power, found.noise), &[found.joint, trend]);
        for (i, step) in (0..4).flat_map(|i| [(i, 1e-4), (i, -1e-4), (i, 0.02), (i, -0.02)]) {
            let mut x = [found.power, found.noise, found.joint, trend];
            x[i] *= 1.0 + step;
            // Some at the bound 0 stay there.
            x[2..].iter_mut().for_each(|weight| *weight = weight.max(0.0));
            assert!(loss(&rows, (x[0], x[1]), &x[2..]) >= least - 1e-9, "{what}: {x:?}");
        }
        for x in [0.01, 0.1] {
            assert!(loss(&rows, (found.power, found.noise), &[found.joint + x, trend]) > least, "{what}");
            assert!(loss(&rows, (found.power, found.noise), &[found.joint, trend + x]) > least, "{what}");
        }
    }
    // Rows that a function predicts well, and nothing else: the prior stops the weight.
    let terms = Terms { joint: true, ..Terms::default() };
    let mut rows = LeftOutRows::new(terms, 3);
    for _ in 0..50 {
        let average = Average { proba: &[1.0 / 3.0; 3], of_all: 0.0 };
        rows.push(average, &beside(Some(&[1.0, 0.0, 0.0]), None), (0, 1.0));
    }
    let found = rows.best(0);
    assert!((3.0..20.0).contains(&found.joint), "{found:?}");
}

fn no_trend() -> ClassTrend {
    let (features, nothing) = (vec![0], vec![0.0]);
    ClassTrend {
        weight: 1.0,
        features,
        low: nothing.clone(),
        width: vec![1.0],
        means: nothing.clone(),
        slopes: nothing,
        factor: vec![1.0],
        variances: [0.0, 1.0],
    }
}

#[test]
fn the_power_is_found() {
    for (n_classes, power) in [(2, 3.0), (5, 1.0), (26, 0.4)] {
        let rows = rows(4000, n_classes, power);
        let found = best(&rows);
        assert!((found.power / power - 1.0).abs() < 0.15 && found.noise < 0.05, "{found:?} and {power}");
    }
}

/// Of rows whose labels are drawn from powered probabilities, but for some that are drawn from all classes.
#[test]
fn no_other_pair_is_better_and_the_noise_is_found() {
    for (n_classes, noise) in [(2, 0.3), (4, 0.1)] {
        let mut rows = rows(3000, n_classes, 0.3);
        let mut stream = Stream::new(6, n_classes);
        for row in &mut rows {
            // Any class but the own is as if it were the own: its odds change places with the own's.
            if stream.unit() < noise && stream.below(n_classes) > 0 {
                let other = stream.below(row.len());
                let own = -row[other];
                for z in &mut *row {
                    *z += own;
                }
                row[other] = own;
            }
        }
        let found = best(&rows);
        let rows = with_odds(&rows);
        assert!((found.noise - noise).abs() < 0.07 && (found.power / 0.3 - 1.0).abs() < 0.3, "{found:?}");
        let least = loss(&rows, (found.power, found.noise), &[]);
        for power in (1..=24).map(|i| 0.05 * f64::from(i)) {
            for noise in (1..20).map(|i| 0.05 * f64::from(i)) {
                let other = loss(&rows, (power, noise), &[]);
                assert!(other >= least - 1e-9, "{found:?} {power} {noise}");
            }
        }
    }
}

#[test]
#[ignore = "slow"]
fn the_numbers_stay_within_bounds() {
    // With no other class that is likely.
    let sure = best(&vec![vec![-20.0; 3]; 500]);
    assert!((1.0..1.2).contains(&sure.power), "{sure:?}");
    assert!(sure.noise > 1e-5 && sure.noise < 1e-3, "{sure:?}");
    // Better with every power, and worse with every power.
    assert!((best(&vec![vec![-1e-3; 3]; 1_000_000]).power / MAX_POWER - 1.0).abs() < 1e-6);
    let wrong = best(&vec![vec![5.0; 3]; 500]);
    assert!((wrong.noise / MAX_NOISE - 1.0).abs() < 1e-9, "{wrong:?}");
}

#[test]
fn copies_agree_unless_enough_of_them_do_not() {
    let mut chosen = ChosenRows { rows: (0..100).collect(), copies: vec![Copies::None; 100] };
    assert!(!chosen.copies_agree());
    chosen.copies[..60].fill(Copies::Agree);
    assert!(chosen.copies_agree());
    chosen.copies[..2].fill(Copies::Disagree);
    assert!(chosen.copies_agree());
    chosen.copies[..3].fill(Copies::Disagree);
    assert!(!chosen.copies_agree());
}

#[test]
fn more_rows_calibrate_where_classes_are_rare() {
    for (counts, n) in [
        (vec![], 300),
        (vec![0, 70_000], 300),
        (vec![5000, 5000], 300),
        (vec![9333, 667], 300),
        (vec![9900, 100], 2000),
        (vec![98_000, 1000, 0, 1000], 1000),
        (vec![99_999, 1], 3000),
    ] {
        assert_eq!(calibrating_rows(&counts), n, "{counts:?}");
    }
}

/// As if every row had been left out, and had been certain of its class.
#[test]
fn no_rows_leave_noise_as_rows_that_show_none() {
    for (n_rows, n_classes) in [(500, 2), (40, 5)] {
        let sure = best(&vec![vec![-60.0; n_classes - 1]; n_rows]);
        let none = LeftOutRows::new(Terms::default(), n_classes).best(n_rows);
        assert_eq!([none.power, none.joint, none.trend], [1.0, 0.0, 0.0]);
        assert!((none.noise / sure.noise - 1.0).abs() < 1e-6, "{none:?} {sure:?}");
    }
    let few = LeftOutRows::new(Terms::default(), 2).best(0);
    assert_eq!(few.noise, MAX_NOISE);
}

#[test]
fn noise_is_spread_over_the_classes_that_are_known() {
    let link = CalibrationLink { power: 2.0, noise: 0.3, ..CalibrationLink::NONE };
    let mut proba = [0.0, 1.0, 0.0];
    link.apply(&mut proba, &Beside::default(), None);
    assert!(proba.iter().zip([0.1, 0.8, 0.1]).all(|(a, b)| (a - b).abs() < 1e-15));
    let mut proba = [0.0, 1.0, 0.0];
    link.apply(&mut proba, &Beside::default(), Some(0));
    assert!(proba.iter().zip([0.0, 0.85, 0.15]).all(|(a, b)| (a - b).abs() < 1e-15));
}

#[test]
fn powers_keep_equal_and_vanishing_probabilities() {
    let raise = |proba: &mut [f64], power: f64| {
        CalibrationLink { power, ..CalibrationLink::NONE }.apply(proba, &Beside::default(), None);
    };
    let mut proba = [0.25; 4];
    raise(&mut proba, 7.3);
    assert_eq!(proba, [0.25; 4]);
    let mut proba = [0.0, 0.4, 0.6];
    raise(&mut proba, 2.0);
    assert!(proba[0] == 0.0 && (proba[1] - 0.16 / 0.52).abs() < 1e-15);
    let mut proba = [0.0, 0.0];
    raise(&mut proba, 2.0);
    assert_eq!(proba, [0.0; 2]);
    let mut proba = [1e-300, 1.0];
    raise(&mut proba, 16.0);
    assert_eq!(proba, [0.0, 1.0]);
}

/// Of rows whose features tell nothing of their classes, which are rare and frequent.
#[test]
fn a_low_power_draws_to_the_shares_of_the_classes_near_rows() {
    let mut stream = Stream::new(9, 0);
    let shares = [0.9_f64, 0.07, 0.03];
    let draw = |stream: &mut Stream| {
        let mut rest = stream.unit();
        let class = shares.iter().position(|share| {
            rest -= share;
            rest < 0.0
        });
        class.unwrap_or(2)
    };
    let columns: Vec<usize> = (0..3000).map(|_| draw(&mut stream)).collect();
    let n_rows: Vec<usize> =
        (0..3).map(|class| columns.iter().filter(|&&own| own == class).count()).collect();
    let classes = ClassWeights::new(&n_rows, columns.iter().map(|&class| (class, 1.0)));
    let own = classes.shares();
    assert!(own.iter().zip(shares).all(|(a, b)| (a - b).abs() < 0.02), "{own:?}");
    // Another row's class stands where the forest is certain.
    let mut rows = LeftOutRows::new(Terms { shares: true, ..Terms::default() }, 3);
    for &class in &columns {
        let mut proba = [0.02; 3];
        proba[columns[stream.below(columns.len())]] += 0.94;
        let log_shares = |k| classes.log_odds(k, class, 1.0);
        let beside = BesideRow { log_shares, joint: None, trend: None };
        rows.push(Average { proba: &proba, of_all: 0.0 }, &beside, (class, 1.0));
    }
    let found = rows.best(0);
    let least = loss(&rows, (found.power, found.noise), &[]);
    let entropy: f64 = shares.iter().map(|share| -share * share.ln()).sum();
    assert!(found.power < 0.2 && least / 3000.0 < entropy + 0.02, "{found:?} {least}");
    for power in (1..=24).map(|i| 0.0625 * f64::from(i)) {
        assert!(loss(&rows, (power, found.noise), &[]) >= least - 1e-9, "{found:?} {power}");
    }
    // So a certain row is predicted by the shares, and one that is far from all rows by the prior.
    let link = CalibrationLink { power: 0.1, class_shares: shares.to_vec(), ..CalibrationLink::NONE };
    let log_shares = shares.map(f64::ln);
    let at = |of_all: f64| Beside { of_all, log_shares: &log_shares, ..Beside::default() };
    let mut proba = [0.02, 0.02, 0.96];
    link.apply(&mut proba, &at(0.0), None);
    let expected = [0.02_f64, 0.02, 0.96].iter().zip(shares).map(|(p, share)| p.powf(0.1) * share.powf(0.9));
    let expected: Vec<f64> = expected.collect();
    let sum: f64 = expected.iter().sum();
    assert!(proba.iter().zip(&expected).all(|(a, b)| (a - b / sum).abs() < 1e-15), "{proba:?}");
    let mut proba = [1.0 / 3.0; 3];
    link.apply(&mut proba, &at(1.0), None);
    assert!(proba.iter().all(|p| (p - 1.0 / 3.0).abs() < 1e-15), "{proba:?}");
}

/// The shares of others: with its own weight a row would speak for its own class.
#[test]
fn a_row_is_not_counted_in_its_shares() {
    // Of the last class no row calibrates, and the one before it has none.
    let classes = ClassWeights::new(&[4, 2, 0, 3], [(0, 1.5), (0, 0.5), (1, 0.25)].into_iter());
    assert_eq!(classes.log_odds(1, 0, 1.5), libm::log(1.0 / 3.0));
    assert_eq!(classes.log_odds(0, 1, 0.25), libm::log(4.5 / 0.75));
    assert_eq!(classes.log_odds(2, 1, 1.0), libm::log(0.5 / 0.5));
    let expected = [4.5, 1.0, 0.5, 3.5].map(|weight| weight / 9.5);
    assert!(classes.shares().iter().zip(expected).all(|(share, own)| (share - own).abs() < 1e-15));
}

/// By differences, on either side of the power 1.
#[test]
fn derivatives_are_those_of_the_loss() {
    let mut stream = Stream::new(10, 0);
    let terms = Terms { shares: true, joint: true, trend: true };
    let mut rows = LeftOutRows::new(terms, 4);
    for _ in 0..30 {
        let mut proba: Vec<f64> = (0..4).map(|_| stream.unit()).collect();
        let total: f64 = proba.iter().sum();
        for p in &mut proba {
            *p /= total;
        }
        let [joint, trend, shares] =
            [0, 1, 2].map(|_| (0..4).map(|_| 2.0 * stream.unit() - 1.0).collect::<Vec<f64>>());
        let log_shares = |k: usize| shares[k];
        let beside = BesideRow { log_shares, joint: Some(&joint), trend: Some(&trend) };
        let own = (stream.below(4), 0.3 + stream.unit());
        rows.push(Average { proba: &proba, of_all: 0.2 * stream.unit() }, &beside, own);
    }
    for (draws, power) in [(true, 0.6), (false, 1.7)] {
        let side = Side { rows: &rows, draws };
        let x = [power, 1.3, 0.8, -2.5];
        let at = side.local(&x);
        for i in 0..4 {
            let moved = |by: f64| {
                let mut x = x;
                x[i] += by;
                side.local(&x)
            };
            let (above, below) = (moved(1e-5), moved(-1e-5));
            let slope = (above.value - below.value) / 2e-5;
            assert!((slope - at.gradient[i]).abs() < 1e-6, "{power} {i}: {slope} {:?}", at.gradient);
            for j in 0..=i {
                let curvature = (above.gradient[j] - below.gradient[j]) / 2e-5;
                assert!((curvature - at.curvature[i * 4 + j]).abs() < 1e-6, "{power} {i} {j}");
            }
        }
    }
}
