//! Rows to predict that lack values, completed with the values of donors.
//!
//! A number in the place of a missing value (`process::substitute`) is one value that it may have. The prediction of such a row is
//! that of a row whose value is known, and far too certain. But the target of a row of which only `x_P` is known has the
//! distribution `p(y | x_P)`, the mean of `p(y | x_P, x_M)` over what the missing `x_M` may be. *Donors*, rows of the forest that
//! are near the row, say what that is (hot-deck multiple imputation; Rubin 1987). The prediction is the average over completions.
//!
//! *Distance.* A row to predict and a donor are compared as if both lacked what either lacks: substitutes complete both, and
//! the distance is that of the process, the sum over coordinates of rate times difference. So the nearest donors are
//! alike in the features that matter, and in what other features say of the missing ones (predictive mean matching).
//!
//! *Values.* A completion has the donor's values, moved by the difference between the row's substitutes and the
//! donor's (a local residual draw; Schenker & Taylor 1996). A donor gives all values that it has together, which keeps their dependence.
//!
//! *Which features.* Where many rows lack a value, the forest has learned from rows that lie at the substitute, whatever the reason,
//! and it predicts such rows well: there the substitute stays. On generated and real data with values missing at random,
//! donors gained much if no training row lacked a value, and something if 5 or 10 % did; at 20 % nothing was left to gain. A
//! substitute that the targets put somewhere stays too, since values are missing for a reason then: donors took such rows
//! for others.
//!
//! *How many.* Intervals were too narrow with 4 completions, and nearly right with 8. Probabilities need 16: if all of 8 are of one
//! class, those of the others are hardly above 0. The components of a mixture grow with their number. Donors are looked for among
//! some rows that their contents choose, so that the prediction is a function of the set of rows, and takes a bounded
//! time.

use crate::data::{RowId, Rows};
use crate::error::Result;
use crate::math::order::to_ordered;
use crate::mondrian::forest::Forest;
use crate::mondrian::process::domain::{CoordinateBuffer, Domain};
use crate::mondrian::process::substitute::Substitute;
use crate::mondrian::tree::statistics::Statistics;

/// Rows of the forest among which donors are looked for.
const MAX_ROWS: usize = 1000;
/// Numbers that these rows have at most.
const HELD: usize = 1 << 22;
/// The greatest share of rows without a value for which donors have it.
const FEW: f64 = 0.1;
/// Between these shares of the values lies a substitute that no target moved: the median.
const MIDDLE: [f64; 2] = [0.4, 0.6];

/// Rows of a forest that may give values to rows to predict.
pub(super) struct Donors<'a> {
    domain: &'a Domain,
    /// `n_rows x n_features`; NaN where a value is missing.
    values: Vec<f64>,
    /// Of each feature, whether donors have its missing values, and not the substitute.
    gives: Vec<bool>,
    /// The greatest number of completions of a row.
    n_completions: usize,
}

impl<'a> Donors<'a> {
    /// Those of a forest, so many for a row at most.
    ///
    /// # Errors
    /// None for rows of the forest.
    pub(super) fn of<P: Statistics>(forest: &'a Forest<P>, n_completions: usize) -> Result<Self> {
        let domain = forest.domain_to_predict();
        let d = domain.n_features();
        let n = MAX_ROWS.min((HELD / d).max(n_completions));
        // Copies may differ in features without a coordinate.
        let contents = |row: RowId| -> Vec<i64> {
            forest.row_values(row).into_iter().map(|value| to_ordered(value + 0.0)).collect()
        };
        let chosen = forest.rows_by_contents().first(n, contents, |_| 0);
        let features = forest.features_of(chosen.into_iter().map(|(row, _)| row));
        let rows = features.rows(d)?;
        let values: Vec<f64> = (0..rows.n_rows()).flat_map(|i| rows.row(i)).collect();
        let gives = (0..d).map(|feature| gives(domain, feature, rows)).collect();
        Ok(Self { domain, values, gives, n_completions })
    }

    /// What may be a row that lacks values and that substitutes make `completed`: that row alone, or some with donors' values.
    ///
    /// # Errors
    /// A row that is too far out.
    pub(super) fn completions(&self, row: &[f64], completed: &[f64]) -> Result<Vec<Vec<f64>>> {
        let d = row.len();
        // A feature that is never cut matters to nothing.
        let is_wanted = |&feature: &usize| {
            row[feature].is_nan() && self.gives[feature] && self.domain.weights()[feature] > 0.0
        };
        let wanted: Vec<usize> = (0..d).filter(is_wanted).collect();
        let donors: Vec<&[f64]> = self
            .values
            .chunks_exact(d)
            .filter(|donor| wanted.iter().any(|&feature| !donor[feature].is_nan()))
            .collect();
        if donors.is_empty() {
            return Ok(vec![completed.to_vec()]);
        }
        let lacking = donors
            .iter()
            .flat_map(|donor| donor.iter().zip(row).map(|(&x, own)| if own.is_nan() { f64::NAN } else { x }));
        let lacking: Vec<f64> = lacking.collect();
        let mut filled = Vec::new();
        let filled = self.domain.complete(Rows::from_f64_with_missing(&lacking, d)?, &mut filled)?;
        let mut nearest: Vec<(f64, usize)> =
            self.distances(completed, filled)?.into_iter().zip(0..).collect();
        nearest.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        nearest.truncate(self.n_completions);
        let completion = |(_, donor): (f64, usize)| {
            let mut values = completed.to_vec();
            // What a donor lacks too stays the substitute.
            for &feature in wanted.iter().filter(|&&feature| !donors[donor][feature].is_nan()) {
                let moves = [filled.at(donor, feature), completed[feature]];
                values[feature] = self.domain.moved(feature, donors[donor][feature], moves);
            }
            values
        };
        Ok(nearest.into_iter().map(completion).collect())
    }

    /// The distances of complete rows from one.
    fn distances(&self, row: &[f64], others: Rows<'_>) -> Result<Vec<f64>> {
        let (mut own, mut buffer) = (CoordinateBuffer::default(), CoordinateBuffer::default());
        let own = self.domain.coordinates(Rows::from_f64(row, row.len())?, &mut own)?;
        let others = self.domain.coordinates(others, &mut buffer)?;
        let rates = self.domain.rates();
        let distance = |i: usize| {
            let differences = own.row(0).zip(others.row(i)).map(|(a, b)| (a - b).abs());
            differences.zip(rates).map(|(difference, rate)| rate * difference).sum()
        };
        Ok((0..others.n_rows()).map(distance).collect())
    }
}

/// Whether donors have the missing values of a feature, given some rows of the forest.
fn gives(domain: &Domain, feature: usize, rows: Rows<'_>) -> bool {
    let column = || (0..rows.n_rows()).map(|row| rows.at(row, feature));
    let n_missing = column().filter(|value| value.is_nan()).count();
    let Some(substitutes) = domain.substitutes() else { return n_missing == 0 };
    let Substitute { centre, terms } = &substitutes[feature];
    let share = |n: usize| n as f64 / (rows.n_rows() - n_missing) as f64;
    let below = share(column().filter(|value| value < centre).count());
    let up_to = share(column().filter(|value| value <= centre).count());
    let is_in_middle = below <= MIDDLE[1] && up_to >= MIDDLE[0];
    n_missing as f64 <= FEW * rows.n_rows() as f64 && (!terms.is_empty() || is_in_middle)
}
