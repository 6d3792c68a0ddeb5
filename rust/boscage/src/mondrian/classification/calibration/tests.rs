use super::*;
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

fn best(rows: &[Vec<f64>], n_classes: usize) -> CalibrationLink {
    let odds = with_values(rows);
    of_equal_weights(&odds, n_classes).best(false)
}

fn of_equal_weights(odds: &[Vec<Odds>], n_classes: usize) -> Rows {
    Rows { odds: odds.to_vec(), weights: vec![1.0; odds.len()], n_classes }
}

fn with_values(rows: &[Vec<f64>]) -> Vec<Vec<Odds>> {
    rows.iter().map(|row| row.iter().map(|&log| Odds { log, of_shares: 0.0, more: 0.0 }).collect()).collect()
}

fn loss(rows: &[Vec<Odds>], n_classes: usize, link: &CalibrationLink) -> f64 {
    let &CalibrationLink { power, noise, weight, .. } = link;
    let to_shares = if power < 1.0 { 1.0 - power } else { 0.0 };
    let of_row = |row: &Vec<Odds>| {
        let log = |odds: &Odds| power * odds.log + to_shares * odds.of_shares + weight * odds.more;
        let own = 1.0 / (1.0 + row.iter().map(|odds| log(odds).exp()).sum::<f64>());
        -((1.0 - noise) * own + noise / n_classes as f64).ln()
    };
    let prior = PRIOR * (power - 1.0 - power.ln() + weight / USUAL_WEIGHT) - NOISE * noise.ln();
    rows.iter().map(of_row).sum::<f64>() + prior
}

#[test]
fn power_and_weight_are_found_together() {
    let mut stream = Stream::new(8, 0);
    for weight in [0.0, 2.0, 7.0] {
        // Rows whose own class is drawn from `p^1.5 exp(weight f)`.
        let link = CalibrationLink { power: 1.5, weight, ..CalibrationLink::NONE };
        let odds: Vec<Vec<Odds>> = (0..4000)
            .map(|_| {
                let logs: Vec<f64> = (0..3).map(|_| 3.0 * stream.unit()).collect();
                let values: Vec<f64> = (0..3).map(|_| stream.unit() - 0.5).collect();
                let total: f64 = logs.iter().map(|log| log.exp()).sum();
                let mut proba: Vec<f64> = logs.iter().map(|log| log.exp() / total).collect();
                let plain = proba.clone();
                link.apply(&mut proba, (0.0, &link.log_shares()), Some(&values), None);
                let mut rest = stream.unit();
                let own = proba.iter().position(|p| {
                    rest -= p;
                    rest < 0.0
                });
                super::odds(Average { proba: &plain, base: 0.0 }, (|_| 0.0, Some(&values)), own.unwrap_or(2))
            })
            .collect();
        let found = of_equal_weights(&odds, 3).best(true);
        assert!((found.weight - weight).abs() < 0.4, "{found:?} {weight}");
        assert!((found.power - 1.5).abs() < 0.2 && found.noise < 0.03, "{found:?} {weight}");
        let least = loss(&odds, 3, &found);
        let steps =
            [(0.01, 0.0, 0.0), (-0.01, 0.0, 0.0), (0.0, 0.02, 0.0), (0.0, -0.02, 0.0), (0.01, -0.02, 1e-3)];
        for (da, db, de) in steps {
            let other = CalibrationLink {
                power: found.power + da,
                weight: found.weight + db,
                noise: found.noise + de,
                class_shares: Vec::new(),
            };
            assert!(other.weight < 0.0 || loss(&odds, 3, &other) > least, "{found:?} {other:?}");
        }
    }
    // Rows that the function predicts well, and nothing else: the prior stops the weight.
    let odds = vec![vec![Odds { log: 0.0, of_shares: 0.0, more: -1.0 }; 2]; 50];
    let found = of_equal_weights(&odds, 3).best(true);
    assert!((3.0..20.0).contains(&found.weight), "{found:?}");
}

#[test]
fn the_power_is_found() {
    for (n_classes, power) in [(2, 3.0), (5, 1.0), (26, 0.4)] {
        let rows = rows(4000, n_classes, power);
        let found = best(&rows, n_classes);
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
        let odds = with_values(&rows);
        let found = best(&rows, n_classes);
        assert!((found.noise - noise).abs() < 0.07 && (found.power / 0.3 - 1.0).abs() < 0.3, "{found:?}");
        let least = loss(&odds, n_classes, &found);
        for power in (1..=24).map(|i| 0.05 * f64::from(i)) {
            for noise in (1..20).map(|i| 0.05 * f64::from(i)) {
                let other =
                    loss(&odds, n_classes, &CalibrationLink { power, noise, ..CalibrationLink::NONE });
                assert!(other >= least - 1e-9, "{found:?} {power} {noise}");
            }
        }
    }
}

#[test]
#[ignore = "slow"]
fn the_numbers_stay_within_bounds() {
    assert_eq!(best(&[], 3), CalibrationLink::NONE);
    // With no other class that is likely.
    let sure = best(&vec![vec![-20.0; 3]; 500], 4);
    assert!((1.0..1.2).contains(&sure.power), "{sure:?}");
    assert!(sure.noise > 1e-5 && sure.noise < 1e-3, "{sure:?}");
    // Better with every power, and worse with every power.
    assert!((best(&vec![vec![-1e-3; 3]; 1_000_000], 4).power / MAX_POWER - 1.0).abs() < 1e-6);
    let wrong = best(&vec![vec![5.0; 3]; 500], 4);
    assert!((wrong.noise / MAX_NOISE - 1.0).abs() < 1e-9, "{wrong:?}");
}

#[test]
fn copies_count_where_they_disagree() {
    let mut chosen = ChosenRows { rows: (0..100).collect(), copies: vec![Copies::None; 100] };
    assert_eq!(chosen.usable().count(), 100);
    chosen.copies[..60].fill(Copies::Agree);
    assert_eq!(chosen.usable().count(), 40);
    chosen.copies[..2].fill(Copies::Disagree);
    assert_eq!(chosen.usable().count(), 40);
    chosen.copies[..3].fill(Copies::Disagree);
    assert_eq!(chosen.usable().count(), 100);
}

#[test]
fn noise_is_spread_over_the_classes_that_are_known() {
    let link = CalibrationLink { power: 2.0, noise: 0.3, ..CalibrationLink::NONE };
    let mut proba = [0.0, 1.0, 0.0];
    link.apply(&mut proba, (0.0, &link.log_shares()), None, None);
    assert!(proba.iter().zip([0.1, 0.8, 0.1]).all(|(a, b)| (a - b).abs() < 1e-15));
    let mut proba = [0.0, 1.0, 0.0];
    link.apply(&mut proba, (0.0, &link.log_shares()), None, Some(0));
    assert!(proba.iter().zip([0.0, 0.85, 0.15]).all(|(a, b)| (a - b).abs() < 1e-15));
}

#[test]
fn powers_keep_equal_and_vanishing_probabilities() {
    let raise = |proba: &mut [f64], power: f64| {
        CalibrationLink { power, ..CalibrationLink::NONE }.apply(proba, (0.0, &[]), None, None);
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
    let odds: Vec<Vec<Odds>> = columns
        .iter()
        .map(|&class| {
            let mut proba = [0.02; 3];
            proba[columns[stream.below(columns.len())]] += 0.94;
            super::odds(
                Average { proba: &proba, base: 0.0 },
                (|k| classes.log_odds(k, class, 1.0), None),
                class,
            )
        })
        .collect();
    let found = of_equal_weights(&odds, 3).best(false);
    let least = loss(&odds, 3, &found);
    let entropy: f64 = shares.iter().map(|share| -share * share.ln()).sum();
    assert!(found.power < 0.2 && least / 3000.0 < entropy + 0.02, "{found:?} {least}");
    for power in (1..=24).map(|i| 0.0625 * f64::from(i)) {
        let other = CalibrationLink { power, ..found.clone() };
        assert!(loss(&odds, 3, &other) >= least - 1e-9, "{found:?} {power}");
    }
    // So a certain row is predicted by the shares, and one that is far from all rows by the prior.
    let link = CalibrationLink { power: 0.1, class_shares: shares.to_vec(), ..CalibrationLink::NONE };
    let mut proba = [0.02, 0.02, 0.96];
    link.apply(&mut proba, (0.0, &link.log_shares()), None, None);
    let expected = [0.02_f64, 0.02, 0.96].iter().zip(shares).map(|(p, share)| p.powf(0.1) * share.powf(0.9));
    let expected: Vec<f64> = expected.collect();
    let sum: f64 = expected.iter().sum();
    assert!(proba.iter().zip(&expected).all(|(a, b)| (a - b / sum).abs() < 1e-15), "{proba:?}");
    let mut proba = [1.0 / 3.0; 3];
    link.apply(&mut proba, (1.0, &link.log_shares()), None, None);
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
