//! Calibration: the average over trees, raised to a power and normalised, and mixed with a share of noise.
//!
//! Where rows are few, every tree is certain, but different trees are certain of different classes. Their average is then far
//! less certain than its accuracy warrants (or, with much noise, a little too certain). A power `a` repairs most of that. But
//! no power helps where the forest is certain and wrong: in the cell of a single row, or of rows with the same features, all
//! trees give their class the probability 1. So a second number is the share `e` of labels that are taken to be drawn at
//! random, whatever the features: `q_k = (1 - e) p_k^a / sum_l p_l^a + e / K` for `K` classes. Both minimise the log loss of
//! rows of the forest, each predicted by the forest without it. The thesis' predictive has `a = 1` and `e = 0`.
//!
//! *Functions beside the average.* With the joint posterior, `p_k^a exp(b f_k)` stands for `p_k^a`: the function `f` of all trees
//! together enters with a weight `b`. With a trend, `exp(c v g_k)` multiplies it, too: a linear function `g` of the
//! features (`trend`) enters with a weight `c` near rows, where `v` (below) is 1. All numbers are fitted together (`likelihood`).
//!
//! *The shares of the classes.* Where features tell little of the classes, the best power is far below 1, and even
//! probabilities are worse than the shares `pi_k` of the classes. So a power `a < 1` draws to the shares in place of even
//! probabilities: `p_k^a pi_k^((1 - a) v)` stands for `p_k^a`, where `v = (1 - r)^4` and `r` is the weight in the row's average of
//! what the trees say of all their rows, wherever the row lies (`kneser_ney::OfAllRows`). The shares are those of all rows, each class counted half a row more; while the power is fitted, a left-out row is
//! not counted either. With weights, a class weighs its number of rows times the mean weight of those of them that calibrate,
//! since an owner of some cells does not know the weights of others' rows.
//!
//! *What stays.* The prior stays: the base measure of the hierarchy gives all classes the same probability, and so do its
//! powers and the noise. Far from all rows `v` is 0, and the prediction is still the prior. A power of 1 or more keeps the order
//! of the classes; a lower one may put a frequent class before a rare one. The forest remains a function of its set of rows:
//! left-out rows are chosen by their contents, and summed in an order that these determine.
//!
//! *How many rows.* A number that is fitted to `n` rows raises the expected log loss by about `1 / (2 n)`: with
//! [`CALIBRATING_ROWS`] rows, by two thousandths. Where few rows are predicted badly, half as many rows would often miss the power
//! by a third. If few rows are of other classes than the most frequent one, as many are left out as hold [`OF_OTHER_CLASSES`] of
//! these on average, but not more than [`MOST_ROWS`] ([`calibrating_rows`]). So the work does not grow with the forest. But leaving
//! out a row costs somewhat more than predicting one: a stream that predicts 500 rows and then learns them takes about one and
//! a half times as long.
//!
//! *Copies.* A row whose copies are in the forest is predicted by them. If features have few different values, new
//! rows are, too, whether or not copies disagree in their classes. If rows were duplicated on purpose, copies agree,
//! and say nothing about new rows. So rows with copies are not used if hardly any of them disagree, and if most of them would
//! have none by chance (`data::copies`).
//!
//! *No rows.* Where none is used, since all are repetitions, or the only ones of their classes, the power is 1, and there is as
//! much noise as if every row of the forest had been left out and none had shown any: no class is ever ruled out.
//!
//! *Weights.* A row is left out with its whole weight, however great, and its loss is weighted by its weight over the mean
//! weight of the rows that are used. So only ratios of weights matter, and the loss counts as that of as many rows as are used.
//! A row of weight 2 is not a pair of copies, and repeated rows would give other numbers.

mod chosen;
mod likelihood;
mod link;

use crate::control::Run;
use crate::error::Result;
use crate::mondrian::classification::class_counts::ClassCounts;
use crate::mondrian::classification::class_table::ClassTable;
use crate::mondrian::classification::left_out;
use crate::mondrian::classification::predictive::{Average, Averages, Gather};
use crate::mondrian::classification::settings::Calibration;
use crate::mondrian::classification::trend::{TREND_ROWS, TrendFit};
use crate::mondrian::forest::Forest;
use chosen::{ClassWeights, over_their_mean};
use likelihood::{BesideRow, LeftOutRows, Numbers, Terms};

pub(super) use chosen::{ChosenRows, choose};
pub use link::CalibrationLink;
pub(super) use link::Functions;

/// Rows that are left out to calibrate a forest, unless classes are rare (at most).
const CALIBRATING_ROWS: usize = 300;
/// Rows of other classes than the most frequent one that are expected among them. Their number deviates by less than a quarter
/// then, and so do rare classes' probabilities. Where 3 are expected, as in 300 rows of a class of 1 %, one sample in twenty
/// has none.
const OF_OTHER_CLASSES: usize = 20;
/// Rows that calibrate at most, however rare classes are.
const MOST_ROWS: usize = 3000;
/// The same with a joint posterior that may be that of infinitely many trees, whose values without a row are known at once; with many rows
/// they also choose the covariance, and are left out of the trees together.
pub(super) const ROWS_OF_LIMIT: usize = 1000;

/// How many rows calibrate a forest (at most), given the numbers of rows of its classes.
#[must_use]
pub fn calibrating_rows(n_rows_of: &[usize]) -> usize {
    let (all, most) = (n_rows_of.iter().sum::<usize>(), n_rows_of.iter().max().copied().unwrap_or(0));
    if all == most {
        return CALIBRATING_ROWS;
    }
    OF_OTHER_CLASSES.saturating_mul(all).div_ceil(all - most).clamp(CALIBRATING_ROWS, MOST_ROWS)
}

// The trend is fitted to the same rows and those after them.
const _: () = assert!(MOST_ROWS <= TREND_ROWS);

/// What a calibration is fitted to: rows of the forest, and functions' values for these.
pub(super) struct Calibrating<'a> {
    pub(super) calibration: Calibration,
    /// The rows of [`choose`].
    pub(super) chosen: &'a ChosenRows,
    /// The joint function's values for them, each without the row.
    pub(super) joint: Option<&'a [f64]>,
    pub(super) trend: Option<&'a TrendFit>,
}

impl Calibrating<'_> {
    /// The link for every one of some discounts.
    ///
    /// # Errors
    /// An interrupt.
    pub(super) fn fit(
        &self,
        forest: &Forest<ClassCounts>,
        classes: &ClassTable,
        discounts: &[f64],
        run: &Run<'_>,
    ) -> Result<Vec<CalibrationLink>> {
        if classes.live().len() < 2 {
            return Ok(vec![CalibrationLink::NONE; discounts.len()]);
        }
        Ok(self.links(forest, classes, &self.averages(forest, classes, discounts, run)?))
    }

    /// The one of some joint functions, each with its values for the chosen rows without themselves, with which after calibration
    /// these rows are most likely; the first one of those that are as good.
    ///
    /// # Errors
    /// An interrupt.
    pub(super) fn best_joint<F>(
        &self,
        (forest, classes, discount): (&Forest<ClassCounts>, &ClassTable, f64),
        mut joint: Vec<(F, Vec<f64>)>,
        run: &Run<'_>,
    ) -> Result<Option<(F, Vec<f64>)>> {
        if joint.len() < 2 {
            return Ok(joint.pop());
        }
        let averages = self.averages(forest, classes, &[discount], run)?;
        let loss = |values: &[f64]| {
            Calibrating { joint: Some(values), ..*self }.fitted(forest, classes, &averages)[0].1
        };
        let losses = joint.iter().map(|(_, values)| loss(values)).enumerate();
        let best = losses.min_by(|a, b| a.1.total_cmp(&b.1)).map(|(number, _)| number);
        Ok(best.map(|number| joint.swap_remove(number)))
    }

    /// The chosen rows' averages without themselves, by discount.
    fn averages(
        &self,
        forest: &Forest<ClassCounts>,
        classes: &ClassTable,
        discounts: &[f64],
        run: &Run<'_>,
    ) -> Result<Vec<Averages>> {
        let (n_trees, total_weight) = (forest.settings.n_estimators, forest.domain.total_weight());
        let gather = Gather::new(classes, n_trees, total_weight, discounts);
        let chunks = left_out::predict(forest, &self.chosen.rows, run, &gather)?;
        // The class of a chosen row has other rows, or is declared.
        Ok((0..discounts.len()).map(|discount| gather.averages(&chunks, discount, None)).collect())
    }

    /// The links, given the chosen rows' averages without themselves by discount.
    pub(super) fn links(
        &self,
        forest: &Forest<ClassCounts>,
        classes: &ClassTable,
        averages: &[Averages],
    ) -> Vec<CalibrationLink> {
        self.fitted(forest, classes, averages).into_iter().map(|(link, _)| link).collect()
    }

    /// The links and their losses.
    fn fitted(
        &self,
        forest: &Forest<ClassCounts>,
        classes: &ClassTable,
        averages: &[Averages],
    ) -> Vec<(CalibrationLink, f64)> {
        let (live, rows) = (classes.live(), &self.chosen.rows);
        if live.len() < 2 {
            return vec![(CalibrationLink::NONE, 0.0); averages.len()];
        }
        let places = classes.columns();
        let columns: Vec<usize> =
            rows.iter().map(|&row| places[forest.targets[row as usize] as usize]).collect();
        let usable: Vec<usize> = self.chosen.usable(forest, classes);
        let weights = over_their_mean(usable.iter().map(|&i| forest.row_targets().weight(rows[i])).collect());
        let n_rows: Vec<usize> = live.iter().map(|&class| classes.n_rows[class as usize]).collect();
        let used = usable.iter().map(|&i| columns[i]).zip(weights.iter().copied());
        let of_classes = ClassWeights::new(&n_rows, used);
        let of_trend = self.trend.map(|trend| trend.left_out(forest, rows));
        let terms = Terms {
            shares: self.calibration == Calibration::LeaveOneOut,
            joint: self.joint.is_some(),
            trend: of_trend.is_some(),
        };
        let link = |averages: &Averages| {
            let all: Vec<Average<'_>> = averages.rows().collect();
            let mut left_out = LeftOutRows::new(terms, live.len());
            for (&i, &weight) in usable.iter().zip(&weights) {
                let own = i * live.len()..(i + 1) * live.len();
                let beside = BesideRow {
                    log_shares: |k: usize| of_classes.log_odds(k, columns[i], weight),
                    joint: self.joint.map(|values| &values[own.clone()]),
                    trend: of_trend.as_ref().map(|values| &values[own.clone()]),
                };
                left_out.push(all[i], &beside, (columns[i], weight));
            }
            let Numbers { power, noise, joint: weight, trend, loss } = left_out.best(n_rows.iter().sum());
            let has_shares = terms.shares && power < 1.0;
            let class_shares = if has_shares { of_classes.shares() } else { Vec::new() };
            let trend = self.trend.filter(|_| trend > 0.0).map(|fit| fit.with_weight(trend));
            (CalibrationLink { power, noise, weight, class_shares, trend }, loss)
        };
        averages.iter().map(link).collect()
    }
}

#[cfg(test)]
mod tests;
