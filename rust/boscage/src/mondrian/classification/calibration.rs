//! Calibration: the average over trees, raised to a power and normalised.
//!
//! A tree that predicts well is sure of itself, but different trees put their mass on different classes where data are few,
//! so that their average is far less sure than its accuracy would allow (or, with much noise, a little too sure). One number
//! repairs most of that: `p_k^a / sum_l p_l^a`. The power `a` minimises the log loss of rows of the forest, each predicted by
//! the forest without it. The thesis' predictive has `a = 1`.
//!
//! *What stays.* The order of classes. The prior: the base measure `H` of the hierarchy gives all classes the same
//! probability, and so does every power of it, so that far from all rows the prediction is still the prior. And that a
//! forest is a function of its set of rows: the rows that are left out are chosen by their contents, and summed in an order
//! which these determine.
//!
//! *How many rows.* The expected log loss with a power fitted to `n` rows exceeds the least one by about `1 / (2 n)`: for
//! [`ROWS`] rows, by two thousandths. Where few rows are predicted badly, half as many rows would often miss the power by a
//! third. To leave out a row costs somewhat more than to predict one, so that the work does not grow with the forest, but a
//! stream which predicts 500 rows and then learns them works about half as much again.
//!
//! *Copies.* A row with a copy in the forest is predicted by that copy, which says nothing about new rows if rows were
//! duplicated on purpose, and everything if all rows have few different values. So the power is fitted to all chosen rows
//! and to those without copies, and the one nearer to 1 is used; it is 1 if one is above 1 and the other below.

use crate::control::Run;
use crate::data::RowId;
use crate::error::Result;
use crate::mondrian::classification::class_counts::{Class, ClassCounts};
use crate::mondrian::classification::class_table::ClassTable;
use crate::mondrian::classification::left_out;
use crate::mondrian::classification::predictive::Gather;
use crate::mondrian::forest::Forest;

/// Rows that are left out (at most).
pub(crate) const ROWS: usize = 300;
/// Bounds of the power.
const LEAST: f64 = 1.0 / 16.0;
const MOST: f64 = 16.0;
/// A prior on the power, `(a exp(1 - a))^PRIOR`, which is greatest at 1: about as strong as this many rows. Without it, rows
/// that are all predicted well would ask for the greatest power.
const PRIOR: f64 = 1.0;
/// Smaller probabilities of a row's own class count as this one, so that no row outweighs all others.
const SMALLEST: f64 = 1e-18;

/// Raises a row's probabilities to a power, and normalises them.
pub(super) fn raise(proba: &mut [f64], power: f64) {
    let most = proba.iter().copied().fold(0.0, f64::max);
    if power == 1.0 || most <= 0.0 {
        return;
    }
    let mut sum = 0.0;
    for p in &mut *proba {
        *p = (power * (*p / most).ln()).exp();
        sum += *p;
    }
    for p in proba {
        *p /= sum;
    }
}

/// The power for every one of some discounts.
///
/// # Errors
/// An interrupt.
pub(super) fn fit(
    forest: &Forest<ClassCounts>,
    classes: &ClassTable,
    discounts: &[f64],
    run: &Run<'_>,
) -> Result<Vec<f64>> {
    let live = classes.live();
    let (rows, are_single) = choose(forest, classes, &live);
    if live.len() < 2 || rows.is_empty() {
        return Ok(vec![1.0; discounts.len()]);
    }
    let gather = Gather::new(classes, forest.settings.n_estimators, forest.domain.total_weight(), discounts);
    let chunks = left_out::predict(forest, &rows, run, &gather)?;
    let targets: Vec<Class> = rows.iter().map(|&row| forest.targets[row as usize]).collect();
    let columns: Vec<usize> = targets
        .iter()
        .map(|&class| live.iter().position(|&other| other == class).expect("classes with rows are live"))
        .collect();
    let power = |discount: usize| {
        let mut proba = Vec::with_capacity(rows.len() * live.len());
        for chunk in &chunks {
            // The class of a chosen row has other rows, or is declared.
            gather.finish(chunk, discount, None, &mut proba);
        }
        let each: Vec<Vec<f64>> = proba
            .chunks_exact(live.len())
            .zip(&columns)
            .map(|(proba, &column)| {
                let own = libm::log(proba[column].max(SMALLEST));
                let others = proba.iter().enumerate().filter(|&(k, &p)| k != column && p > 0.0);
                others.map(|(_, &p)| libm::log(p) - own).collect()
            })
            .collect();
        let single = each.iter().zip(&are_single).filter(|(_, is_single)| **is_single).map(|(row, _)| row);
        let (all, single) =
            (best_power(&each.iter().collect::<Vec<_>>()), best_power(&single.collect::<Vec<_>>()));
        1.0f64.clamp(all.min(single), all.max(single))
    };
    Ok((0..discounts.len()).map(power).collect())
}

/// Rows to be left out, and whether each is without a copy. The only row of a class that is not declared is not among them:
/// without it nobody knows of the class.
fn choose(forest: &Forest<ClassCounts>, classes: &ClassTable, live: &[Class]) -> (Vec<RowId>, Vec<bool>) {
    let place = |row: RowId| {
        let class = forest.targets[row as usize];
        live.iter().position(|&other| other == class)
    };
    let is_known = |row: RowId| {
        let class = forest.targets[row as usize] as usize;
        classes.n_rows[class] > 1 || classes.declared[class]
    };
    let chosen = forest.rows_by_contents().first(ROWS, place);
    chosen.into_iter().filter(|&(row, _)| is_known(row)).unzip()
}

/// The power under which rows are most likely, given the logarithms of the probabilities of all other classes, each over
/// that of the row's own.
///
/// The negative log likelihood `sum_i log(1 + sum_k exp(a z_ik))` is convex in `a`, and so is that of the prior: Newton's
/// method, kept between bounds that close in, finds the only minimum.
fn best_power(rows: &[&Vec<f64>]) -> f64 {
    /// Steps; far fewer are needed.
    const STEPS: usize = 60;
    const TOLERANCE: f64 = 1e-10;
    let (mut low, mut high) = (LEAST, MOST);
    let mut power = 1.0;
    for _ in 0..STEPS {
        let (mut slope, mut curvature) = (PRIOR * (1.0 - 1.0 / power), PRIOR / (power * power));
        for row in rows {
            let (first, second) = slopes(row, power);
            slope += first;
            curvature += second;
        }
        if slope == 0.0 {
            break;
        }
        if slope > 0.0 {
            high = power;
        } else {
            low = power;
        }
        let newton = power - slope / curvature;
        // On a logarithmic scale, if the parabola leads beyond the bounds.
        let next = if newton > low && newton < high { newton } else { (low * high).sqrt() };
        let step = (next - power).abs();
        power = next;
        if step <= TOLERANCE * power {
            break;
        }
    }
    power
}

/// The first two derivatives of a row's negative log likelihood: mean and variance of its `z` under the powered
/// probabilities, its own class having `z = 0`.
fn slopes(row: &[f64], power: f64) -> (f64, f64) {
    let most = row.iter().copied().fold(0.0, f64::max);
    let (mut sum, mut first, mut second) = (libm::exp(-power * most), 0.0, 0.0);
    for &z in row {
        let weight = libm::exp(power * (z - most));
        sum += weight;
        first += weight * z;
        second += weight * z * z;
    }
    let mean = first / sum;
    (mean, (second / sum - mean * mean).max(0.0))
}

#[cfg(test)]
mod tests {
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

    fn loss(rows: &[Vec<f64>], power: f64) -> f64 {
        let of_row = |row: &Vec<f64>| (1.0 + row.iter().map(|z| (power * z).exp()).sum::<f64>()).ln();
        rows.iter().map(of_row).sum::<f64>() + PRIOR * (power - 1.0 - power.ln())
    }

    fn best(rows: &[Vec<f64>]) -> f64 {
        best_power(&rows.iter().collect::<Vec<_>>())
    }

    #[test]
    fn the_power_is_found() {
        for (n_classes, power) in [(2, 3.0), (5, 1.0), (26, 0.4)] {
            let rows = rows(4000, n_classes, power);
            let found = best(&rows);
            assert!((found / power - 1.0).abs() < 0.1, "{found} and {power}");
            for other in (1..=160).map(|i| f64::from(i) / 10.0) {
                assert!(loss(&rows, other) >= loss(&rows, found) - 1e-9, "{other} and {found}");
            }
        }
    }

    #[test]
    fn the_power_stays_within_bounds() {
        assert_eq!(best(&[]), 1.0);
        // Without other classes, and with none that is likely.
        assert_eq!(best(&vec![Vec::new(); 9]), 1.0);
        let sure = best(&vec![vec![-20.0; 3]; 500]);
        assert!((1.0..1.2).contains(&sure), "{sure}");
        // Better with every power, and worse with every power.
        assert!((best(&vec![vec![-1e-3; 3]; 1_000_000]) / MOST - 1.0).abs() < 1e-6);
        assert!((best(&vec![vec![5.0; 3]; 500]) / LEAST - 1.0).abs() < 1e-6);
    }

    #[test]
    fn powers_keep_equal_and_vanishing_probabilities() {
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
}
