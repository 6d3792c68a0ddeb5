//! Calibration: the average over trees, raised to a power and normalised, and mixed with a share of noise.
//!
//! A tree that predicts well is sure of itself, but different trees put their mass on different classes where data are few,
//! so that their average is far less sure than its accuracy would allow (or, with much noise, a little too sure). One number
//! repairs most of that, a power `a`. Yet no power helps where the forest is certain and wrong: in the cell of a single
//! row, or of rows with the same features, all trees give their class the probability 1. So a second number says how many
//! labels are drawn at random, whatever the features: `q_k = (1 - e) p_k^a / sum_l p_l^a + e / K` for `K` classes. Both
//! minimise the log loss of rows of the forest, each predicted by the forest without it. The thesis' predictive has `a = 1`
//! and `e = 0`.
//!
//! *What stays.* The order of classes. The prior: the base measure `H` of the hierarchy gives all classes the same
//! probability, and so does every power of it and noise, so that far from all rows the prediction is still the prior. And
//! that a forest is a function of its set of rows: the rows that are left out are chosen by their contents, and summed in an
//! order which these determine.
//!
//! *How many rows.* The expected log loss with numbers fitted to `n` rows exceeds the least one by about `1 / (2 n)` each:
//! for [`ROWS`] rows, by two thousandths. Where few rows are predicted badly, half as many rows would often miss the power by
//! a third. To leave out a row costs somewhat more than to predict one, so that the work does not grow with the forest, but a
//! stream which predicts 500 rows and then learns them works about half as much again.
//!
//! *Copies.* A row whose copies are in the forest is predicted by them. If features have few different values, so will new
//! rows, and copies disagree in their classes sooner or later. If rows were duplicated on purpose, copies agree, and say
//! nothing about new rows. So where hardly any copies disagree, rows with copies are not used.

use crate::control::Run;
use crate::data::RowId;
use crate::error::Result;
use crate::mondrian::classification::class_counts::{Class, ClassCounts};
use crate::mondrian::classification::class_table::ClassTable;
use crate::mondrian::classification::left_out;
use crate::mondrian::classification::predictive::Gather;
use crate::mondrian::forest::Forest;
use crate::mondrian::forest::rows_by_contents::Copies;

/// Rows that are left out (at most).
pub(crate) const ROWS: usize = 300;
/// Bounds of the power.
const LEAST: f64 = 1.0 / 16.0;
const MOST: f64 = 16.0;
/// A prior on the power, `(a exp(1 - a))^PRIOR`, which is greatest at 1: about as strong as this many rows. Without it, rows
/// that are all predicted well would ask for the greatest power.
const PRIOR: f64 = 1.0;
/// A prior on the share of noise, `e^NOISE`: rows that show no noise leave a share of about `NOISE` over their number, so that
/// no class is ever ruled out.
const NOISE: f64 = 0.1;
/// The largest share of noise, which leaves the order of classes.
const MOST_NOISE: f64 = 0.99;
/// Smaller probabilities of a row's own class count as this one, so that no row outweighs all others.
const SMALLEST: f64 = 1e-18;
/// Copies are used where at least this share of them have a copy of another class.
const DISAGREE: f64 = 0.05;

/// What calibration does to the probabilities of a row.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sharpening {
    /// The power to which they are raised before they are normalised.
    pub power: f64,
    /// The share of all labels that is taken as drawn at random from all classes.
    pub noise: f64,
}

impl Sharpening {
    /// Probabilities as they are.
    pub(super) const NONE: Self = Self { power: 1.0, noise: 0.0 };

    /// Calibrates a row's probabilities. A class that is not known without the row, if any, stays without.
    pub(super) fn apply(self, proba: &mut [f64], unknown: Option<usize>) {
        self.raise(proba);
        if self.noise == 0.0 {
            return;
        }
        let each = self.noise / (proba.len() - usize::from(unknown.is_some())) as f64;
        for (k, p) in proba.iter_mut().enumerate() {
            if Some(k) != unknown {
                *p = (1.0 - self.noise) * *p + each;
            }
        }
    }

    fn raise(self, proba: &mut [f64]) {
        let most = proba.iter().copied().fold(0.0, f64::max);
        if self.power == 1.0 || most <= 0.0 {
            return;
        }
        let mut sum = 0.0;
        for p in &mut *proba {
            *p = (self.power * (*p / most).ln()).exp();
            sum += *p;
        }
        for p in proba {
            *p /= sum;
        }
    }
}

/// The power and the noise for every one of some discounts.
///
/// # Errors
/// An interrupt.
pub(super) fn fit(
    forest: &Forest<ClassCounts>,
    classes: &ClassTable,
    discounts: &[f64],
    run: &Run<'_>,
) -> Result<Vec<Sharpening>> {
    let live = classes.live();
    let (rows, copies) = choose(forest, classes, &live);
    if live.len() < 2 || rows.is_empty() {
        return Ok(vec![Sharpening::NONE; discounts.len()]);
    }
    let gather = Gather::new(classes, forest.settings.n_estimators, forest.domain.total_weight(), discounts);
    let chunks = left_out::predict(forest, &rows, run, &gather)?;
    let targets: Vec<Class> = rows.iter().map(|&row| forest.targets[row as usize]).collect();
    let columns: Vec<usize> = targets
        .iter()
        .map(|&class| live.iter().position(|&other| other == class).expect("classes with rows are live"))
        .collect();
    let sharpening = |discount: usize| {
        let mut proba = Vec::with_capacity(rows.len() * live.len());
        for chunk in &chunks {
            // The class of a chosen row has other rows, or is declared.
            gather.finish(chunk, discount, None, &mut proba);
        }
        let odds =
            proba.chunks_exact(live.len()).zip(&columns).map(|(proba, &column)| log_odds(proba, column));
        let all: Vec<Vec<f64>> = odds.collect();
        Rows { odds: usable(&all, &copies), n_classes: live.len() }.best()
    };
    Ok((0..discounts.len()).map(sharpening).collect())
}

/// Rows to be left out, and their copies. The only row of a class that is not declared is not among them: without it nobody
/// knows of the class.
fn choose(forest: &Forest<ClassCounts>, classes: &ClassTable, live: &[Class]) -> (Vec<RowId>, Vec<Copies>) {
    let place = |row: RowId| {
        let class = forest.targets[row as usize];
        live.iter().position(|&other| other == class)
    };
    let is_known = |row: RowId| !classes.goes_with_its_row(forest.targets[row as usize]);
    let chosen = forest.rows_by_contents().first(ROWS, place);
    chosen.into_iter().filter(|&(row, _)| is_known(row)).unzip()
}

/// The logarithms of the probabilities of all other classes, each over that of the row's own.
fn log_odds(proba: &[f64], column: usize) -> Vec<f64> {
    let own = libm::log(proba[column].max(SMALLEST));
    let others = proba.iter().enumerate().filter(|&(k, &p)| k != column && p > 0.0);
    others.map(|(_, &p)| libm::log(p) - own).collect()
}

/// The rows that are used: all, or those without copies.
fn usable<'a>(rows: &'a [Vec<f64>], copies: &[Copies]) -> Vec<&'a [f64]> {
    let count = |kind: Copies| copies.iter().filter(|&&own| own == kind).count() as f64;
    let disagree = count(Copies::Disagree);
    let all = disagree > 0.0 && disagree >= DISAGREE * (disagree + count(Copies::Agree));
    let chosen = rows.iter().zip(copies).filter(|(_, own)| all || **own == Copies::None);
    chosen.map(|(row, _)| row.as_slice()).collect()
}

/// Rows of several classes, each with the log odds of the other classes.
struct Rows<'a> {
    odds: Vec<&'a [f64]>,
    n_classes: usize,
}

impl Rows<'_> {
    /// The power and the noise under which the rows are most likely: the power by a search, with the best noise for each.
    fn best(&self) -> Sharpening {
        /// Powers that are tried, evenly on a logarithmic scale; then the best one's neighbourhood is searched.
        const POWERS: usize = 33;
        const TOLERANCE: f64 = 1e-9;
        if self.odds.is_empty() {
            return Sharpening::NONE;
        }
        let power = |i: usize| LEAST * libm::pow(MOST / LEAST, i as f64 / (POWERS - 1) as f64);
        let losses = (0..POWERS).map(|i| self.with_power(power(i)).1);
        let best = losses.enumerate().min_by(|a, b| a.1.total_cmp(&b.1)).map_or(0, |(i, _)| i);
        let ends = [best.saturating_sub(1), (best + 1).min(POWERS - 1)].map(|i| libm::log(power(i)));
        let log = narrow(ends, TOLERANCE, |log| self.with_power(libm::exp(log)).1);
        self.with_power(libm::exp(log)).0
    }

    /// The best noise for a power, and the loss.
    fn with_power(&self, power: f64) -> (Sharpening, f64) {
        let uniform = 1.0 / self.n_classes as f64;
        let own: Vec<f64> = self.odds.iter().map(|odds| own_probability(odds, power)).collect();
        let noise = best_noise(&own, uniform);
        let fit: f64 = own.iter().map(|p| -libm::log((1.0 - noise) * p + noise * uniform)).sum();
        let prior = PRIOR * (power - 1.0 - libm::log(power)) - NOISE * libm::log(noise);
        (Sharpening { power, noise }, fit + prior)
    }
}

/// The powered probability of a row's own class.
fn own_probability(odds: &[f64], power: f64) -> f64 {
    1.0 / (1.0 + odds.iter().map(|z| libm::exp(power * z)).sum::<f64>())
}

/// The share of noise under which labels with some probabilities are most likely, where noise gives each the probability
/// `uniform`. The negative log likelihood is convex, so that its slope has one zero.
fn best_noise(own: &[f64], uniform: f64) -> f64 {
    /// Halvings, which find the smallest shares that there are to many digits.
    const STEPS: usize = 60;
    let slope = |noise: f64| {
        let of_row = |p: &f64| (p - uniform) / ((1.0 - noise) * p + noise * uniform);
        own.iter().map(of_row).sum::<f64>() - NOISE / noise
    };
    let (mut low, mut high) = (0.0, MOST_NOISE);
    for _ in 0..STEPS {
        let middle = 0.5 * (low + high);
        if slope(middle) > 0.0 {
            high = middle;
        } else {
            low = middle;
        }
    }
    0.5 * (low + high)
}

/// The place of a function's minimum between two numbers, by golden sections.
fn narrow([mut low, mut high]: [f64; 2], tolerance: f64, f: impl Fn(f64) -> f64) -> f64 {
    const GOLDEN: f64 = 0.618_033_988_749_894_9;
    let inner = |low: f64, high: f64| (high - GOLDEN * (high - low), low + GOLDEN * (high - low));
    let (mut a, mut b) = inner(low, high);
    let (mut at_a, mut at_b) = (f(a), f(b));
    while high - low > tolerance {
        if at_a <= at_b {
            (high, b, at_b) = (b, a, at_a);
            a = inner(low, high).0;
            at_a = f(a);
        } else {
            (low, a, at_a) = (a, b, at_b);
            b = inner(low, high).1;
            at_b = f(b);
        }
    }
    0.5 * (low + high)
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

    fn best(rows: &[Vec<f64>], n_classes: usize) -> Sharpening {
        Rows { odds: rows.iter().map(Vec::as_slice).collect(), n_classes }.best()
    }

    fn loss(rows: &[Vec<f64>], n_classes: usize, Sharpening { power, noise }: Sharpening) -> f64 {
        let of_row = |row: &Vec<f64>| {
            let own = 1.0 / (1.0 + row.iter().map(|z| (power * z).exp()).sum::<f64>());
            -((1.0 - noise) * own + noise / n_classes as f64).ln()
        };
        rows.iter().map(of_row).sum::<f64>() + PRIOR * (power - 1.0 - power.ln()) - NOISE * noise.ln()
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
                    row.iter_mut().for_each(|z| *z += own);
                    row[other] = own;
                }
            }
            let found = best(&rows, n_classes);
            assert!((found.noise - noise).abs() < 0.07 && (found.power / 0.3 - 1.0).abs() < 0.3, "{found:?}");
            let least = loss(&rows, n_classes, found);
            for power in (1..=24).map(|i| 0.05 * f64::from(i)) {
                for noise in (1..20).map(|i| 0.05 * f64::from(i)) {
                    let other = loss(&rows, n_classes, Sharpening { power, noise });
                    assert!(other >= least - 1e-9, "{found:?} {power} {noise}");
                }
            }
        }
    }

    #[test]
    fn the_numbers_stay_within_bounds() {
        assert_eq!(best(&[], 3), Sharpening::NONE);
        // With no other class that is likely.
        let sure = best(&vec![vec![-20.0; 3]; 500], 4);
        assert!((1.0..1.2).contains(&sure.power), "{sure:?}");
        assert!(sure.noise > 1e-5 && sure.noise < 1e-3, "{sure:?}");
        // Better with every power, and worse with every power.
        assert!((best(&vec![vec![-1e-3; 3]; 1_000_000], 4).power / MOST - 1.0).abs() < 1e-6);
        let wrong = best(&vec![vec![5.0; 3]; 500], 4);
        assert!((wrong.noise / MOST_NOISE - 1.0).abs() < 1e-9, "{wrong:?}");
    }

    #[test]
    fn copies_count_where_they_disagree() {
        let rows = vec![vec![-1.0]; 100];
        let mut copies = vec![Copies::None; 100];
        assert_eq!(usable(&rows, &copies).len(), 100);
        copies[..60].fill(Copies::Agree);
        assert_eq!(usable(&rows, &copies).len(), 40);
        copies[..2].fill(Copies::Disagree);
        assert_eq!(usable(&rows, &copies).len(), 40);
        copies[..3].fill(Copies::Disagree);
        assert_eq!(usable(&rows, &copies).len(), 100);
    }

    #[test]
    fn noise_is_spread_over_the_classes_that_are_known() {
        let mut proba = [0.0, 1.0, 0.0];
        Sharpening { power: 2.0, noise: 0.3 }.apply(&mut proba, None);
        assert!(proba.iter().zip([0.1, 0.8, 0.1]).all(|(a, b)| (a - b).abs() < 1e-15));
        let mut proba = [0.0, 1.0, 0.0];
        Sharpening { power: 2.0, noise: 0.3 }.apply(&mut proba, Some(0));
        assert!(proba.iter().zip([0.0, 0.85, 0.15]).all(|(a, b)| (a - b).abs() < 1e-15));
    }

    #[test]
    fn powers_keep_equal_and_vanishing_probabilities() {
        let raise = |proba: &mut [f64], power: f64| Sharpening { power, noise: 0.0 }.apply(proba, None);
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
