//! Calibration: the average over trees, raised to a power and normalised, and mixed with a share of noise.
//!
//! A tree that predicts well is sure of itself, but different trees put their mass on different classes where data are few,
//! so that their average is far less sure than its accuracy would allow (or, with much noise, a little too sure). One number
//! repairs most of that, a power `a`. Yet no power helps where the forest is certain and wrong: in the cell of a single
//! row, or of rows with the same features, all trees give their class the probability 1. So a second number says how many
//! labels are drawn at random, whatever the features: `q_k = (1 - e) p_k^a / sum_l p_l^a + e / K` for `K` classes. Both
//! minimise the log loss of rows of the forest, each predicted by the forest without it. The thesis' predictive has `a = 1`
//! and `e = 0`. With the joint posterior, what all trees explain together joins in, with a weight `b` that is fitted beside
//! them: `p_k^a exp(b f_k)` stands for `p_k^a`.
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
//!
//! *Weights.* A row is left out with its whole weight, however great, and its loss is weighted by its weight over the mean
//! weight of the rows that are used: the shares of the weights matter, and how much the rows tell is their number. So a row
//! of weight 2 is no pair of copies, and what is fitted is not what it would be with repeated rows.

use crate::control::Run;
use crate::data::RowId;
use crate::error::Result;
use crate::math::golden_section::{SHARE, golden_section};
use crate::mondrian::classification::class_counts::{Class, ClassCounts};
use crate::mondrian::classification::class_table::ClassTable;
use crate::mondrian::classification::left_out;
use crate::mondrian::classification::predictive::Gather;
use crate::mondrian::forest::Forest;
use crate::mondrian::forest::rows_by_contents::Copies;

/// Rows that are left out (at most).
pub(crate) const ROWS: usize = 300;
/// Bounds of the power.
const MIN_POWER: f64 = 1.0 / 16.0;
const MAX_POWER: f64 = 16.0;
/// A prior on the power, `(a exp(1 - a))^PRIOR`, which is greatest at 1: about as strong as this many rows. Without it, rows
/// that are all predicted well would ask for the greatest power.
const PRIOR: f64 = 1.0;
/// A prior on the share of noise, `e^NOISE`: rows that show no noise leave a share of about `NOISE` over their number, so that
/// no class is ever ruled out.
const NOISE: f64 = 0.1;
/// The bound of the joint function's weight, and the mean of its exponential prior, which counts as much as the power's.
const MAX_WEIGHT: f64 = 64.0;
const USUAL_WEIGHT: f64 = 10.0;
/// The largest share of noise, which leaves the order of classes.
const MAX_NOISE: f64 = 0.99;
/// Smaller probabilities of a row's own class count as this one, so that no row outweighs all others.
const SMALLEST: f64 = 1e-18;
/// Copies are used where at least this share of them have a copy of another class.
const DISAGREE: f64 = 0.05;

/// How the average over trees becomes a prediction.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CalibrationLink {
    /// The power to which probabilities are raised before they are normalised.
    pub power: f64,
    /// The share of all labels that is taken as drawn at random from all classes.
    pub noise: f64,
    /// The weight of what all trees explain together; 0 unless the posterior is joint.
    pub weight: f64,
}

impl CalibrationLink {
    /// Probabilities as they are.
    pub(super) const NONE: Self = Self { power: 1.0, noise: 0.0, weight: 0.0 };

    /// Calibrates a row's probabilities, given the joint function's values. A class that is not known without the row, if
    /// any, stays without.
    pub(super) fn apply(self, proba: &mut [f64], values: Option<&[f64]>, unknown: Option<usize>) {
        let most = proba.iter().copied().fold(0.0, f64::max);
        let values = values.filter(|_| self.weight > 0.0);
        if most > 0.0 && (self.power != 1.0 || values.is_some()) {
            self.sharpen(proba, most, values);
        }
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

    fn sharpen(self, proba: &mut [f64], most: f64, values: Option<&[f64]>) {
        for p in &mut *proba {
            *p = self.power * (*p / most).ln();
        }
        if let Some(values) = values {
            for (log, value) in proba.iter_mut().zip(values) {
                *log += self.weight * value;
            }
            let most = proba.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            for log in &mut *proba {
                *log -= most;
            }
        }
        let mut sum = 0.0;
        for p in &mut *proba {
            *p = p.exp();
            sum += *p;
        }
        for p in proba {
            *p /= sum;
        }
    }
}

/// The link for every one of some discounts; `joint` are the joint function's values for the rows of [`choose`], each
/// without the row, if there is one.
///
/// # Errors
/// An interrupt.
pub(super) fn fit(
    forest: &Forest<ClassCounts>,
    classes: &ClassTable,
    discounts: &[f64],
    joint: Option<&[f64]>,
    run: &Run<'_>,
) -> Result<Vec<CalibrationLink>> {
    if classes.live().len() < 2 {
        return Ok(vec![CalibrationLink::NONE; discounts.len()]);
    }
    let chosen = choose(forest, classes);
    let gather = Gather::new(classes, forest.settings.n_estimators, forest.domain.total_weight(), discounts);
    let chunks = left_out::predict(forest, &chosen.0, run, &gather)?;
    let of_discount = |discount: usize| {
        let mut proba = Vec::new();
        for chunk in &chunks {
            // The class of a chosen row has other rows, or is declared.
            gather.finish(chunk, discount, None, &mut proba);
        }
        proba
    };
    Ok(links(forest, classes, &chosen, (0..discounts.len()).map(of_discount).collect(), joint))
}

/// The links, given the rows of [`choose`] and their average probabilities without themselves by discount.
pub(super) fn links(
    forest: &Forest<ClassCounts>,
    classes: &ClassTable,
    (rows, copies): &(Vec<RowId>, Vec<Copies>),
    proba: Vec<Vec<f64>>,
    joint: Option<&[f64]>,
) -> Vec<CalibrationLink> {
    let live = classes.live();
    if live.len() < 2 || rows.is_empty() {
        return vec![CalibrationLink::NONE; proba.len()];
    }
    let targets: Vec<Class> = rows.iter().map(|&row| forest.targets[row as usize]).collect();
    let columns: Vec<usize> = targets
        .iter()
        .map(|&class| live.iter().position(|&other| other == class).expect("classes with rows are live"))
        .collect();
    let link = |proba: Vec<f64>| {
        let values = |row: usize| joint.map(|joint| &joint[row * live.len()..(row + 1) * live.len()]);
        let all: Vec<Vec<Odds>> = proba
            .chunks_exact(live.len())
            .enumerate()
            .map(|(row, proba)| odds(proba, values(row), columns[row]))
            .collect();
        let (odds, weights) = usable(&all, copies, |i| forest.row_targets().weight(rows[i]));
        Rows { odds, weights, n_classes: live.len() }.best(joint.is_some())
    };
    proba.into_iter().map(link).collect()
}

/// Rows to be left out, and their copies. The only row of a class that is not declared is not among them: without it nobody
/// knows of the class.
pub(super) fn choose(forest: &Forest<ClassCounts>, classes: &ClassTable) -> (Vec<RowId>, Vec<Copies>) {
    let live = classes.live();
    let place = |row: RowId| {
        let class = forest.targets[row as usize];
        live.iter().position(|&other| other == class)
    };
    let is_known = |row: RowId| !classes.goes_with_its_row(forest.targets[row as usize]);
    let weight = |row: RowId| forest.row_targets().weight(row).to_bits();
    let chosen = forest.rows_by_contents().first(ROWS, place, weight);
    chosen.into_iter().filter(|&(row, _)| is_known(row)).unzip()
}

/// Of another class of a row: the logarithm of its probability over that of the row's own, and what the joint function has
/// more.
type Odds = (f64, f64);

/// The odds of all other classes that are not impossible.
fn odds(proba: &[f64], values: Option<&[f64]>, own: usize) -> Vec<Odds> {
    let log_own = libm::log(proba[own].max(SMALLEST));
    let more = |k: usize| values.map_or(0.0, |values| values[k] - values[own]);
    let others = proba.iter().enumerate().filter(|&(k, &p)| k != own && p > 0.0);
    others.map(|(k, &p)| (libm::log(p) - log_own, more(k))).collect()
}

/// The rows that are used: all, or those without copies; and their weights over the mean of these.
fn usable<'a>(
    rows: &'a [Vec<Odds>],
    copies: &[Copies],
    weight: impl Fn(usize) -> f64,
) -> (Vec<&'a [Odds]>, Vec<f64>) {
    let count = |kind: Copies| copies.iter().filter(|&&own| own == kind).count() as f64;
    let disagree = count(Copies::Disagree);
    let all = disagree > 0.0 && disagree >= DISAGREE * (disagree + count(Copies::Agree));
    let chosen: Vec<usize> = (0..rows.len()).filter(|&i| all || copies[i] == Copies::None).collect();
    let mean = chosen.iter().map(|&i| weight(i)).sum::<f64>() / chosen.len() as f64;
    chosen.into_iter().map(|i| (rows[i].as_slice(), weight(i) / mean)).unzip()
}

/// Rows of several classes, each with the odds of the other classes.
struct Rows<'a> {
    odds: Vec<&'a [Odds]>,
    /// Their mean is 1.
    weights: Vec<f64>,
    n_classes: usize,
}

impl Rows<'_> {
    /// The link under which the rows are most likely.
    fn best(&self, is_joint: bool) -> CalibrationLink {
        /// Weights that are tried: 0, and powers of 2 up to the bound.
        const WEIGHTS: i32 = 10;
        if self.odds.is_empty() {
            return CalibrationLink::NONE;
        }
        if !is_joint {
            return self.with_weight(0.0).0;
        }
        let weight = |i: i32| if i == 0 { 0.0 } else { MAX_WEIGHT * f64::powi(2.0, i - WEIGHTS + 1) };
        let weight = search(WEIGHTS as usize, |i| weight(i as i32), |weight| self.with_weight(weight).1);
        self.with_weight(weight).0
    }

    /// The best power and noise for a weight of the joint function, and the loss.
    fn with_weight(&self, weight: f64) -> (CalibrationLink, f64) {
        /// Powers that are tried, evenly on a logarithmic scale.
        const POWERS: usize = 33;
        let step = libm::log(MAX_POWER / MIN_POWER) / (POWERS - 1) as f64;
        let log_power = |i: usize| libm::log(MIN_POWER) + step * i as f64;
        let log = search(POWERS, log_power, |log| self.with_power(libm::exp(log), weight).1);
        self.with_power(libm::exp(log), weight)
    }

    /// The best noise for a power and a weight, and the loss.
    fn with_power(&self, power: f64, weight: f64) -> (CalibrationLink, f64) {
        let uniform = 1.0 / self.n_classes as f64;
        let own: Vec<f64> = self.odds.iter().map(|odds| own_probability(odds, power, weight)).collect();
        let noise = best_noise(&own, &self.weights, uniform);
        let loss = |p: f64| -libm::log((1.0 - noise) * p + noise * uniform);
        let fit: f64 = own.iter().zip(&self.weights).map(|(&p, weight)| weight * loss(p)).sum();
        let of_power = power - 1.0 - libm::log(power);
        let prior = PRIOR * (of_power + weight / USUAL_WEIGHT) - NOISE * libm::log(noise);
        (CalibrationLink { power, noise, weight }, fit + prior)
    }
}

/// The powered probability of a row's own class.
fn own_probability(odds: &[Odds], power: f64, weight: f64) -> f64 {
    1.0 / (1.0 + odds.iter().map(|(z, f)| libm::exp(power * z + weight * f)).sum::<f64>())
}

/// The share of noise under which labels with some probabilities are most likely, where noise gives each the probability
/// `uniform`. The negative log likelihood is convex, so that its slope has one zero.
fn best_noise(own: &[f64], weights: &[f64], uniform: f64) -> f64 {
    /// Halvings, which find the smallest shares that there are to many digits.
    const STEPS: usize = 60;
    let slope = |noise: f64| {
        let of_row = |p: &f64| (p - uniform) / ((1.0 - noise) * p + noise * uniform);
        own.iter().zip(weights).map(|(p, weight)| weight * of_row(p)).sum::<f64>() - NOISE / noise
    };
    let (mut low, mut high) = (0.0, MAX_NOISE);
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

/// Where a function is least: near the best of some points in order, between its neighbours.
fn search(n_points: usize, point: impl Fn(usize) -> f64, f: impl Fn(f64) -> f64) -> f64 {
    const TOLERANCE: f64 = 1e-9;
    let values = (0..n_points).map(|i| f(point(i)));
    let best = values.enumerate().min_by(|a, b| a.1.total_cmp(&b.1)).map_or(0, |(i, _)| i);
    let around = (point(best.saturating_sub(1)), point((best + 1).min(n_points - 1)));
    let (start, at_start) = (point(best), f(point(best)));
    let found = golden_section(&f, around, (SHARE, TOLERANCE)).middle();
    // At an end of all points the sections only come near it. A loss that is no number is never less.
    if f(found) < at_start { found } else { start }
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

    fn best(rows: &[Vec<f64>], n_classes: usize) -> CalibrationLink {
        let odds = with_values(rows);
        of_equal_weights(&odds, n_classes).best(false)
    }

    fn of_equal_weights(odds: &[Vec<Odds>], n_classes: usize) -> Rows<'_> {
        let weights = vec![1.0; odds.len()];
        Rows { odds: odds.iter().map(Vec::as_slice).collect(), weights, n_classes }
    }

    fn with_values(rows: &[Vec<f64>]) -> Vec<Vec<Odds>> {
        rows.iter().map(|row| row.iter().map(|&z| (z, 0.0)).collect()).collect()
    }

    fn loss(rows: &[Vec<Odds>], n_classes: usize, link: CalibrationLink) -> f64 {
        let CalibrationLink { power, noise, weight } = link;
        let of_row = |row: &Vec<Odds>| {
            let own = 1.0 / (1.0 + row.iter().map(|(z, f)| (power * z + weight * f).exp()).sum::<f64>());
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
            let link = CalibrationLink { power: 1.5, noise: 0.0, weight };
            let odds: Vec<Vec<Odds>> = (0..4000)
                .map(|_| {
                    let logs: Vec<f64> = (0..3).map(|_| 3.0 * stream.unit()).collect();
                    let values: Vec<f64> = (0..3).map(|_| stream.unit() - 0.5).collect();
                    let total: f64 = logs.iter().map(|log| log.exp()).sum();
                    let mut proba: Vec<f64> = logs.iter().map(|log| log.exp() / total).collect();
                    let plain = proba.clone();
                    link.apply(&mut proba, Some(&values), None);
                    let mut rest = stream.unit();
                    let own = proba.iter().position(|p| {
                        rest -= p;
                        rest < 0.0
                    });
                    super::odds(&plain, Some(&values), own.unwrap_or(2))
                })
                .collect();
            let found = of_equal_weights(&odds, 3).best(true);
            assert!((found.weight - weight).abs() < 0.4, "{found:?} {weight}");
            assert!((found.power - 1.5).abs() < 0.2 && found.noise < 0.03, "{found:?} {weight}");
            let least = loss(&odds, 3, found);
            let steps = [
                (0.01, 0.0, 0.0),
                (-0.01, 0.0, 0.0),
                (0.0, 0.02, 0.0),
                (0.0, -0.02, 0.0),
                (0.01, -0.02, 1e-3),
            ];
            for (da, db, de) in steps {
                let other = CalibrationLink {
                    power: found.power + da,
                    weight: found.weight + db,
                    noise: found.noise + de,
                };
                assert!(other.weight < 0.0 || loss(&odds, 3, other) > least, "{found:?} {other:?}");
            }
        }
        // Rows that the function predicts well, and nothing else: the prior stops the weight.
        let odds = vec![vec![(0.0, -1.0); 2]; 50];
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
            let least = loss(&odds, n_classes, found);
            for power in (1..=24).map(|i| 0.05 * f64::from(i)) {
                for noise in (1..20).map(|i| 0.05 * f64::from(i)) {
                    let other = loss(&odds, n_classes, CalibrationLink { power, noise, weight: 0.0 });
                    assert!(other >= least - 1e-9, "{found:?} {power} {noise}");
                }
            }
        }
    }

    #[test]
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
        let rows = vec![vec![(-1.0, 0.0)]; 100];
        let mut copies = vec![Copies::None; 100];
        assert_eq!(usable(&rows, &copies, |_| 1.0).0.len(), 100);
        copies[..60].fill(Copies::Agree);
        assert_eq!(usable(&rows, &copies, |_| 1.0).0.len(), 40);
        copies[..2].fill(Copies::Disagree);
        assert_eq!(usable(&rows, &copies, |_| 1.0).0.len(), 40);
        copies[..3].fill(Copies::Disagree);
        assert_eq!(usable(&rows, &copies, |_| 1.0).0.len(), 100);
    }

    #[test]
    fn noise_is_spread_over_the_classes_that_are_known() {
        let mut proba = [0.0, 1.0, 0.0];
        CalibrationLink { power: 2.0, noise: 0.3, weight: 0.0 }.apply(&mut proba, None, None);
        assert!(proba.iter().zip([0.1, 0.8, 0.1]).all(|(a, b)| (a - b).abs() < 1e-15));
        let mut proba = [0.0, 1.0, 0.0];
        CalibrationLink { power: 2.0, noise: 0.3, weight: 0.0 }.apply(&mut proba, None, Some(0));
        assert!(proba.iter().zip([0.0, 0.85, 0.15]).all(|(a, b)| (a - b).abs() < 1e-15));
    }

    #[test]
    fn powers_keep_equal_and_vanishing_probabilities() {
        let raise = |proba: &mut [f64], power: f64| {
            CalibrationLink { power, ..CalibrationLink::NONE }.apply(proba, None, None);
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
}
