//! How averages over trees become predictions.

use crate::control::Run;
use crate::data::Rows;
use crate::error::Result;
use crate::mondrian::classification::predictive::{Average, Averages};
use crate::mondrian::classification::trend::ClassTrend;
use crate::mondrian::process::domain::Domain;

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
    /// The linear function of the features by which probabilities near rows are multiplied; none if it has no weight.
    pub trend: Option<ClassTrend>,
}

/// The values for some rows of the functions that multiply the average, `n_rows x n_classes` each.
#[derive(Debug, Clone, Default)]
pub(in crate::mondrian::classification) struct Functions {
    /// Of what all trees explain together.
    pub(in crate::mondrian::classification) joint: Option<Vec<f64>>,
    /// Of the trend, whatever its weight.
    pub(in crate::mondrian::classification) trend: Option<Vec<f64>>,
}

impl CalibrationLink {
    /// Probabilities as they are.
    pub const NONE: Self =
        Self { power: 1.0, noise: 0.0, weight: 0.0, class_shares: Vec::new(), trend: None };

    /// Whether it counts what trees say of all their rows.
    pub(in crate::mondrian::classification) fn has_of_all(&self) -> bool {
        !self.class_shares.is_empty() || self.trend.is_some()
    }

    /// The trend's values for rows, if there is one.
    ///
    /// # Errors
    /// A trend of other features or classes; a number of features other than in `fit`; an interrupt.
    pub(in crate::mondrian::classification) fn trend_values(
        &self,
        domain: &Domain,
        rows: Rows<'_>,
        n_classes: usize,
        run: &Run<'_>,
    ) -> Result<Option<Vec<f64>>> {
        self.trend.as_ref().map(|trend| trend.predict(domain, rows, n_classes, run)).transpose()
    }

    /// Calibrated probabilities, given averages, the values of functions, and of each row the class that is not known
    /// without it, which stays without.
    pub(in crate::mondrian::classification) fn of_rows(
        &self,
        averages: &Averages,
        functions: &Functions,
        unknown: impl Fn(usize) -> Option<usize>,
    ) -> Vec<f64> {
        let mut out = Vec::with_capacity(averages.proba.len());
        let log_shares: Vec<f64> = self.class_shares.iter().map(|share| share.ln()).collect();
        for (row, Average { proba, of_all }) in averages.rows().enumerate() {
            let (start, own) = (out.len(), row * proba.len()..(row + 1) * proba.len());
            out.extend(proba);
            let [joint, trend] = [&functions.joint, &functions.trend]
                .map(|values| values.as_ref().map(|values| &values[own.clone()]));
            self.apply(
                &mut out[start..],
                &Beside { of_all, log_shares: &log_shares, joint, trend },
                unknown(row),
            );
        }
        out
    }

    /// Calibrates a row's probabilities.
    pub(super) fn apply(&self, proba: &mut [f64], beside: &Beside<'_>, unknown: Option<usize>) {
        let most = proba.iter().copied().fold(0.0, f64::max);
        let joint = beside.joint.filter(|_| self.weight > 0.0);
        if most > 0.0 && (self.power != 1.0 || joint.is_some() || self.trend.is_some()) {
            self.sharpen(proba, most, &Beside { joint, ..*beside });
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

    fn sharpen(&self, proba: &mut [f64], most: f64, beside: &Beside<'_>) {
        for p in &mut *proba {
            *p = self.power * (*p / most).ln();
        }
        let mut add = |values: &[f64], weight: f64| {
            proba.iter_mut().zip(values).for_each(|(log, value)| *log += weight * value);
        };
        let near = nearness(beside.of_all);
        if self.power < 1.0 {
            add(beside.log_shares, (1.0 - self.power) * near);
        }
        if let Some(values) = beside.joint {
            add(values, self.weight);
        }
        if let (Some(values), Some(trend)) = (beside.trend, &self.trend) {
            add(values, trend.weight * near);
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

/// How much what is known of rows counts, given the weight of what trees say of all their rows. That weight grows slowly away
/// from the rows; the fourth power lets their class be forgotten as fast as the trees' own predictions forget it.
pub(super) fn nearness(of_all: f64) -> f64 {
    let square = (1.0 - of_all) * (1.0 - of_all);
    square * square
}

/// What stands beside the probabilities of a row.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Beside<'a> {
    /// The weight in them of what trees say of all their rows.
    pub(super) of_all: f64,
    /// The logarithms of the shares of the classes, if there are any.
    pub(super) log_shares: &'a [f64],
    /// The values of [`Functions`].
    pub(super) joint: Option<&'a [f64]>,
    pub(super) trend: Option<&'a [f64]>,
}
