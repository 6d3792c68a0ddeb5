//! Calibration: the average over trees, raised to a power and normalised, and mixed with a share of noise.
//!
//! Where rows are few, every tree is certain, but different trees are certain of different classes. Their average is then far
//! less certain than its accuracy warrants (or, with much noise, a little too certain). A power `a` repairs most of that. But
//! no power helps where the forest is certain and wrong: in the cell of a single row, or of rows with the same features, all
//! trees give their class the probability 1. So a second number is the share `e` of labels that are taken to be drawn at
//! random, whatever the features: `q_k = (1 - e) p_k^a / sum_l p_l^a + e / K` for `K` classes. Both minimise the log loss of
//! rows of the forest, each predicted by the forest without it. The thesis' predictive has `a = 1` and `e = 0`. With the joint
//! posterior, `p_k^a exp(b f_k)` stands for `p_k^a`: the function `f` of all trees together enters with a weight `b`, which is
//! fitted with `a` and `e`.
//!
//! *The shares of the classes.* Where features tell little of the classes, the best power is far below 1, and even
//! probabilities are worse than the shares `pi_k` of the classes. So a power `a < 1` draws to the shares in place of even
//! probabilities: `p_k^a pi_k^((1 - a) (1 - h))` stands for `p_k^a`, where `h` is the weight of the base measure `H` in the row's
//! average. The shares are those of all rows, each class counted [`UNSEEN`] more; while the power is fitted, a left-out row is
//! not counted either. With weights, a class weighs its number of rows times the mean weight of those of them that calibrate,
//! since an owner of some cells does not know the weights of others' rows.
//!
//! *What stays.* The prior stays: the base measure of the hierarchy gives all classes the same probability, and so do its
//! powers and the noise. Far from all rows `h` is 1, and the prediction is still the prior. A power of 1 or more keeps the order
//! of the classes; a lower one may put a frequent class before a rare one. The forest remains a function of its set of rows:
//! left-out rows are chosen by their contents, and summed in an order that these determine.
//!
//! *How many rows.* A number that is fitted to `n` rows raises the expected log loss by about `1 / (2 n)`: with
//! [`CALIBRATING_ROWS`] rows, by two thousandths. Where few rows are predicted badly, half as many rows would often miss the power by a third. Since the
//! number of rows is fixed, the work does not grow with the forest. But leaving out a row costs somewhat more than predicting
//! one: a stream that predicts 500 rows and then learns them takes about one and a half times as long.
//!
//! *Copies.* A row whose copies are in the forest is predicted by them. If features have few different values, new
//! rows are, too, and copies disagree in their classes sooner or later. If rows were duplicated on purpose, copies agree,
//! and say nothing about new rows. So where hardly any copies disagree, rows with copies are not used.
//!
//! *Weights.* A row is left out with its whole weight, however great, and its loss is weighted by its weight over the mean
//! weight of the rows that are used. So only ratios of weights matter, and the loss counts as that of as many rows as are used.
//! A row of weight 2 is not a pair of copies, and repeated rows would give other numbers.

use crate::control::Run;
use crate::data::RowId;
use crate::error::Result;
use crate::math::golden_section::{SHARE, golden_section};
use crate::mondrian::classification::class_counts::ClassCounts;
use crate::mondrian::classification::class_table::ClassTable;
use crate::mondrian::classification::left_out;
use crate::mondrian::classification::predictive::{Average, Averages, Gather};
use crate::mondrian::classification::settings::Calibration;
use crate::mondrian::forest::Forest;
use crate::mondrian::forest::rows_by_contents::Copies;

/// Rows that are left out to calibrate a forest (at most).
pub const CALIBRATING_ROWS: usize = 300;
/// The same with a joint posterior of infinitely many trees, whose values without a row are known at once.
pub(super) const ROWS_OF_LIMIT: usize = 1000;
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
/// What every class weighs more than its rows, of which a class that is declared may have none.
const UNSEEN: f64 = 0.5;
/// Copies are used where at least this share of them have a copy of another class.
const DISAGREE: f64 = 0.05;

/// How the average over trees becomes a prediction.
#[derive(Debug, Clone, PartialEq)]
pub struct CalibrationLink {
    /// The power to which probabilities are raised before they are normalised.
    pub power: f64,
    /// The share of all labels that is taken as drawn at random from all classes.
    pub noise: f64,
    /// The weight of what all trees explain together; 0 unless the posterior is joint.
    pub weight: f64,
    /// The shares of the classes, to which a power below 1 draws probabilities near rows; none where it does not.
    pub class_shares: Vec<f64>,
}

impl CalibrationLink {
    /// Probabilities as they are.
    pub const NONE: Self = Self { power: 1.0, noise: 0.0, weight: 0.0, class_shares: Vec::new() };

    /// Calibrated probabilities, given averages, the joint function's values, and of each row the class that is not known
    /// without it, which stays without.
    pub(super) fn of_rows(
        &self,
        averages: &Averages,
        values: Option<&[f64]>,
        unknown: impl Fn(usize) -> Option<usize>,
    ) -> Vec<f64> {
        let mut out = Vec::with_capacity(averages.proba.len());
        let log_shares = self.log_shares();
        for (row, average) in averages.rows().enumerate() {
            let (start, n_classes) = (out.len(), average.proba.len());
            out.extend(average.proba);
            let values = values.map(|values| &values[row * n_classes..(row + 1) * n_classes]);
            self.apply(&mut out[start..], (average.base, &log_shares), values, unknown(row));
        }
        out
    }

    fn log_shares(&self) -> Vec<f64> {
        self.class_shares.iter().map(|share| share.ln()).collect()
    }

    /// Calibrates a row's probabilities, given the weight of the base measure, and the logarithms of the classes' shares.
    fn apply(
        &self,
        proba: &mut [f64],
        (base, log_shares): (f64, &[f64]),
        values: Option<&[f64]>,
        unknown: Option<usize>,
    ) {
        let most = proba.iter().copied().fold(0.0, f64::max);
        let values = values.filter(|_| self.weight > 0.0);
        if most > 0.0 && (self.power != 1.0 || values.is_some()) {
            self.sharpen(proba, most, (base, log_shares), values);
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

    fn sharpen(
        &self,
        proba: &mut [f64],
        most: f64,
        (base, log_shares): (f64, &[f64]),
        values: Option<&[f64]>,
    ) {
        for p in &mut *proba {
            *p = self.power * (*p / most).ln();
        }
        let of_shares = of_shares(self.power, base);
        if of_shares > 0.0 {
            proba.iter_mut().zip(log_shares).for_each(|(log, share)| *log += of_shares * share);
        }
        if let Some(values) = values {
            proba.iter_mut().zip(values).for_each(|(log, value)| *log += self.weight * value);
        }
        let most = proba.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let mut sum = 0.0;
        for p in &mut *proba {
            *p = (*p - most).exp();
            sum += *p;
        }
        for p in proba {
            *p /= sum;
        }
    }
}

/// The power of the classes' shares, given that of probabilities and the weight of the base measure in these.
fn of_shares(power: f64, base: f64) -> f64 {
    (1.0 - power).max(0.0) * (1.0 - base)
}

/// The link for every one of some discounts, given the rows of [`choose`]; `joint` are the joint function's values for them,
/// each without the row, if there is one.
///
/// # Errors
/// An interrupt.
pub(super) fn fit(
    forest: &Forest<ClassCounts>,
    classes: &ClassTable,
    discounts: &[f64],
    calibration: Calibration,
    (chosen, joint): (&ChosenRows, Option<&[f64]>),
    run: &Run<'_>,
) -> Result<Vec<CalibrationLink>> {
    if classes.live().len() < 2 {
        return Ok(vec![CalibrationLink::NONE; discounts.len()]);
    }
    let gather = Gather::new(classes, forest.settings.n_estimators, forest.domain.total_weight(), discounts);
    let chunks = left_out::predict(forest, &chosen.rows, run, &gather)?;
    let of_discount = |discount: usize| {
        let mut averages = Averages::default();
        for chunk in &chunks {
            // The class of a chosen row has other rows, or is declared.
            gather.finish(chunk, discount, None, &mut averages);
        }
        averages
    };
    let averages: Vec<Averages> = (0..discounts.len()).map(of_discount).collect();
    Ok(links(forest, classes, calibration, (chosen, joint), &averages))
}

/// The links, given the rows of [`choose`] and their averages without themselves by discount.
pub(super) fn links(
    forest: &Forest<ClassCounts>,
    classes: &ClassTable,
    calibration: Calibration,
    (chosen, joint): (&ChosenRows, Option<&[f64]>),
    averages: &[Averages],
) -> Vec<CalibrationLink> {
    let (live, rows) = (classes.live(), &chosen.rows);
    if live.len() < 2 || rows.is_empty() {
        return vec![CalibrationLink::NONE; averages.len()];
    }
    let columns: Vec<usize> = rows
        .iter()
        .map(|&row| forest.targets[row as usize])
        .map(|class| live.iter().position(|&other| other == class).expect("classes with rows are live"))
        .collect();
    let usable: Vec<usize> = chosen.usable().collect();
    let weights = over_their_mean(usable.iter().map(|&i| forest.row_targets().weight(rows[i])).collect());
    let with_shares = calibration == Calibration::LeaveOneOut;
    let n_rows: Vec<usize> = live.iter().map(|&class| classes.n_rows[class as usize]).collect();
    let used = || usable.iter().map(|&i| columns[i]).zip(weights.iter().copied());
    let of_classes = with_shares.then(|| ClassWeights::new(&n_rows, used()));
    let link = |averages: &Averages| {
        let values = |row: usize| joint.map(|joint| &joint[row * live.len()..(row + 1) * live.len()]);
        let all: Vec<Average<'_>> = averages.rows().collect();
        let odds = usable.iter().zip(&weights).map(|(&i, &weight)| {
            let own = columns[i];
            let shares =
                |k: usize| of_classes.as_ref().map_or(0.0, |classes| classes.log_odds(k, own, weight));
            odds(all[i], (shares, values(i)), own)
        });
        let rows = Rows { odds: odds.collect(), weights: weights.clone(), n_classes: live.len() };
        let link = rows.best(joint.is_some());
        let class_shares = of_classes.as_ref().filter(|_| link.power < 1.0).map(ClassWeights::shares);
        CalibrationLink { class_shares: class_shares.unwrap_or_default(), ..link }
    };
    averages.iter().map(link).collect()
}

/// Rows to be left out, and the copies of each.
pub(super) struct ChosenRows {
    pub(super) rows: Vec<RowId>,
    copies: Vec<Copies>,
}

impl ChosenRows {
    /// Those of some rows that may be left out: without the only row of a class that is not declared, nobody knows of the class.
    pub(super) fn of(
        chosen: impl IntoIterator<Item = (RowId, Copies)>,
        forest: &Forest<ClassCounts>,
        classes: &ClassTable,
    ) -> Self {
        let is_known = |row: RowId| !classes.goes_with_its_row(forest.targets[row as usize]);
        let (rows, copies) = chosen.into_iter().filter(|&(row, _)| is_known(row)).unzip();
        Self { rows, copies }
    }

    /// The numbers of the rows that are used: all, or those without copies.
    fn usable(&self) -> impl Iterator<Item = usize> {
        let count = |kind: Copies| self.copies.iter().filter(|&&own| own == kind).count() as f64;
        let disagree = count(Copies::Disagree);
        let all = disagree > 0.0 && disagree >= DISAGREE * (disagree + count(Copies::Agree));
        (0..self.rows.len()).filter(move |&i| all || self.copies[i] == Copies::None)
    }

    pub(super) fn into_usable(self) -> Vec<RowId> {
        self.usable().map(|i| self.rows[i]).collect()
    }
}

/// So many rows at most.
pub(super) fn choose(forest: &Forest<ClassCounts>, classes: &ClassTable, n_rows: usize) -> ChosenRows {
    let live = classes.live();
    let place = |row: RowId| {
        let class = forest.targets[row as usize];
        live.iter().position(|&other| other == class)
    };
    let weight = |row: RowId| forest.row_targets().weight(row).to_bits();
    ChosenRows::of(forest.rows_by_contents().first(n_rows, place, weight), forest, classes)
}

fn over_their_mean(mut weights: Vec<f64>) -> Vec<f64> {
    let mean = weights.iter().sum::<f64>() / weights.len() as f64;
    for weight in &mut weights {
        *weight /= mean;
    }
    weights
}

/// The weights of the classes, of all rows.
struct ClassWeights(Vec<f64>);

impl ClassWeights {
    /// Given the number of rows of each class, and some rows' classes and weights.
    fn new(n_rows: &[usize], some: impl Iterator<Item = (usize, f64)>) -> Self {
        let mut of_some = vec![(0.0, 0.0); n_rows.len()];
        for (class, weight) in some {
            of_some[class].0 += weight;
            of_some[class].1 += 1.0;
        }
        let weight = |(&n, (sum, of)): (&usize, (f64, f64))| {
            let mean = if of > 0.0 { sum / of } else { 1.0 };
            UNSEEN + n as f64 * mean
        };
        Self(n_rows.iter().zip(of_some).map(weight).collect())
    }

    fn shares(&self) -> Vec<f64> {
        let all: f64 = self.0.iter().sum();
        self.0.iter().map(|weight| weight / all).collect()
    }

    /// The logarithm of a class's share over that of a row's own class, without the row.
    fn log_odds(&self, class: usize, own: usize, weight: f64) -> f64 {
        libm::log(self.0[class] / (self.0[own] - weight).max(UNSEEN))
    }
}

/// Of another class of a row, beside the row's own.
#[derive(Debug, Clone, Copy)]
struct Odds {
    /// The logarithm of its probability over that of the own.
    log: f64,
    /// The same of their shares, as far as the row's prediction is not the base measure.
    of_shares: f64,
    /// What the joint function has more.
    more: f64,
}

/// The odds of all other classes that are not impossible. `shares` are the logarithms of classes' shares over that of the own.
fn odds(
    Average { proba, base }: Average<'_>,
    (shares, values): (impl Fn(usize) -> f64, Option<&[f64]>),
    own: usize,
) -> Vec<Odds> {
    let log_own = libm::log(proba[own].max(SMALLEST));
    let more = |k: usize| values.map_or(0.0, |values| values[k] - values[own]);
    let others = proba.iter().enumerate().filter(|&(k, &p)| k != own && p > 0.0);
    others
        .map(|(k, &p)| Odds {
            log: libm::log(p) - log_own,
            of_shares: (1.0 - base) * shares(k),
            more: more(k),
        })
        .collect()
}

/// Rows of several classes, each with the odds of the other classes.
struct Rows {
    odds: Vec<Vec<Odds>>,
    /// Their mean is 1.
    weights: Vec<f64>,
    n_classes: usize,
}

impl Rows {
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
        (CalibrationLink { power, noise, weight, ..CalibrationLink::NONE }, fit + prior)
    }
}

/// The powered probability of a row's own class.
fn own_probability(odds: &[Odds], power: f64, weight: f64) -> f64 {
    let to_shares = of_shares(power, 0.0);
    let odds =
        odds.iter().map(|odds| libm::exp(power * odds.log + to_shares * odds.of_shares + weight * odds.more));
    1.0 / (1.0 + odds.sum::<f64>())
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
mod tests;
