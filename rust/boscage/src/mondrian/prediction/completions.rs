//! Predictions of rows that lack values: averages over completed rows (`donors`).
//!
//! Everything that predicts calls [`predict`] first, and so sees complete rows alone. What a row's completions are depends on the
//! row and the forest, not on the rows beside it.

use std::ops::Range;

use crate::control::Run;
use crate::data::Rows;
use crate::error::Result;
use crate::mondrian::forest::Forest;
use crate::mondrian::prediction::donors::Donors;
use crate::mondrian::tree::statistics::Statistics;

/// Numbers that completions have at a time, about.
const HELD: usize = 1 << 22;
/// Rows that a thread completes at a time.
const CHUNK: usize = 16;

/// Complete rows, one or more for each row to predict.
#[derive(Debug, Default)]
pub(crate) struct Completions {
    values: Vec<f64>,
    n_features: usize,
    /// Where the completions of each row begin, and where all end.
    offsets: Vec<usize>,
}

impl Completions {
    /// Those of some rows, `n` for a row at most; none if no value is missing.
    ///
    /// # Errors
    /// As [`Domain::filled`](crate::Domain::filled); a row that is too far out; an interrupt.
    pub(crate) fn of<P: Statistics>(
        forest: &Forest<P>,
        rows: Rows<'_>,
        n: usize,
        run: &Run<'_>,
    ) -> Result<Option<Self>> {
        if !forest.domain_to_predict().lacks_values(rows)? {
            return Ok(None);
        }
        let donors = Donors::of(forest, n)?;
        Self::by(&donors, forest, rows, run).map(Some)
    }

    fn by<P: Statistics>(
        donors: &Donors<'_>,
        forest: &Forest<P>,
        rows: Rows<'_>,
        run: &Run<'_>,
    ) -> Result<Self> {
        let n_features = rows.n_features();
        let mut buffer = Vec::new();
        let completed = forest.complete(rows, &mut buffer)?;
        let parts = run.map_ranges(rows.n_rows(), CHUNK, |range| {
            let of_row = |i: usize| {
                let (row, completed): (Vec<f64>, Vec<f64>) =
                    (rows.row(i).collect(), completed.row(i).collect());
                if row.iter().any(|value| value.is_nan()) {
                    donors.completions(&row, &completed)
                } else {
                    Ok(vec![completed])
                }
            };
            range.map(of_row).collect::<Result<Vec<_>>>()
        })?;
        let mut all = Self { n_features, offsets: vec![0], ..Self::default() };
        for completions in parts.into_iter().flatten() {
            all.offsets.push(all.offsets[all.offsets.len() - 1] + completions.len());
            all.values.extend(completions.into_iter().flatten());
        }
        Ok(all)
    }

    /// The values of all completions, and where those of each row begin and all end.
    pub(crate) fn into_parts(self) -> (Vec<f64>, Vec<usize>) {
        (self.values, self.offsets)
    }

    /// The completions of all rows.
    fn rows(&self) -> Result<Rows<'_>> {
        Rows::from_f64(&self.values, self.n_features)
    }

    /// One for each row, of what was found for its completions.
    pub(crate) fn by_row<T>(&self, found: &[T], average: impl Fn(&[T]) -> T) -> Vec<T> {
        self.ranges().map(|own| average(&found[own])).collect()
    }

    /// The means over each row's completions of the numbers that were found for them, as many for each.
    pub(crate) fn means(&self, found: &[f64]) -> Vec<f64> {
        let n_completions = self.offsets[self.offsets.len() - 1];
        let width = found.len() / n_completions.max(1);
        let mean = |own: Range<usize>| {
            let n = own.len() as f64;
            let of_row = &found[own.start * width..own.end * width];
            (0..width).map(move |k| of_row.iter().skip(k).step_by(width).sum::<f64>() / n)
        };
        self.ranges().flat_map(mean).collect()
    }

    fn ranges(&self) -> impl Iterator<Item = Range<usize>> {
        self.offsets.windows(2).map(|ends| ends[0]..ends[1])
    }
}

/// What `of_complete` predicts for rows. Of rows that lack values it is called with the completions, `n` for a row at most, and
/// `average` makes of these what belongs to the rows.
///
/// # Errors
/// Those of [`Completions::of`] and of `of_complete`.
pub(crate) fn predict<P: Statistics, T>(
    forest: &Forest<P>,
    (rows, n): (Rows<'_>, usize),
    run: &Run<'_>,
    of_complete: impl Fn(Rows<'_>) -> Result<Vec<T>>,
    average: impl Fn(&Completions, Vec<T>) -> Vec<T>,
) -> Result<Vec<T>> {
    if !forest.domain_to_predict().lacks_values(rows)? {
        return of_complete(rows);
    }
    let donors = Donors::of(forest, n)?;
    let n_rows = rows.n_rows();
    let at_once = (HELD / (n * rows.n_features())).max(1);
    let mut all = Vec::new();
    for first in (0..n_rows).step_by(at_once) {
        let some = rows.slice(first, n_rows.min(first + at_once));
        let some = Completions::by(&donors, forest, some, run)?;
        all.extend(average(&some, of_complete(some.rows()?)?));
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mondrian::forest::Batch;
    use crate::mondrian::forest::settings::MondrianSettings;
    use crate::mondrian::process::domain::Domain;
    use crate::mondrian::process::substitute::Substitute;
    use crate::mondrian::regression::regressor::MondrianRegressor;
    use crate::mondrian::regression::settings::RegressionSettings;

    const NAN: f64 = f64::NAN;

    /// A forest of rows `(i, 2 i)`.
    fn forest(n: u32) -> MondrianRegressor {
        let x: Vec<f64> = (0..n).flat_map(|i| [f64::from(i), 2.0 * f64::from(i)]).collect();
        let y: Vec<f64> = (0..n).map(f64::from).collect();
        MondrianRegressor::fit(
            MondrianSettings { n_estimators: 5, ..MondrianSettings::default() },
            RegressionSettings::default(),
            Domain::new(vec![0.0; 2], vec![100.0; 2], None).unwrap(),
            Batch { rows: Rows::from_f64(&x, 2).unwrap(), ids: None, weights: None },
            &y,
            &Run::default(),
        )
        .unwrap()
    }

    fn guess(centres: [f64; 2]) -> Vec<Substitute> {
        centres.map(|centre| Substitute { centre, terms: vec![] }).to_vec()
    }

    #[test]
    fn a_guess_lasts_until_rows_come_or_leave() {
        let mut model = forest(20);
        let rows = Rows::from_f64_with_missing(&[10.0, NAN], 2).unwrap();
        assert!(model.predict_mean(rows, &Run::default()).is_err());
        let digest = model.digest();
        for change in 0..3 {
            model.guess_substitutes(guess([0.0; 2])).unwrap();
            assert!(model.takes_missing() && model.domain().substitutes().is_none());
            assert!(model.predict_mean(rows, &Run::default()).is_ok());
            assert_eq!(model.filled(rows).unwrap(), Some(vec![10.0, 0.0]));
            if change == 0 {
                assert_eq!(model.digest(), digest);
                model.forget(&[3]).unwrap();
            } else {
                let batch = Batch { rows: Rows::from_f64(&[3.0, 6.0], 2).unwrap(), ids: None, weights: None };
                model.partial_fit(batch, &[3.0]).unwrap();
            }
            assert!(!model.takes_missing());
        }
        assert!(model.guess_substitutes(guess([0.0; 2])[..1].to_vec()).is_err());
    }

    #[test]
    fn completions_have_the_values_of_the_nearest_rows() {
        let model = forest(30);
        // The medians: other numbers say that values are missing for a reason.
        model.guess_substitutes(guess([15.0, 30.0])).unwrap();
        let values = [10.2, NAN, 4.0, 5.0, NAN, 21.0];
        let rows = Rows::from_f64_with_missing(&values, 2).unwrap();
        let run = Run::default();
        let (found, offsets) = model.completions(rows, &run).unwrap().unwrap();
        assert_eq!(offsets, [0, 8, 9, 17]);
        let pairs = found.as_chunks::<2>().0;
        let second: Vec<f64> = pairs[..8].iter().map(|pair| pair[1]).collect();
        assert_eq!(second, [20.0, 22.0, 18.0, 24.0, 16.0, 26.0, 14.0, 28.0]);
        assert_eq!(pairs[8], [4.0, 5.0]);
        let mut first: Vec<f64> = pairs[9..].iter().map(|pair| pair[0]).collect();
        first.sort_by(f64::total_cmp);
        assert_eq!(first, [7.0, 8.0, 9.0, 10.0, 11.0, 12.0, 13.0, 14.0]);
        let each = model.predict(Rows::from_f64(&found, 2).unwrap(), &run).unwrap();
        let (mean, variance) = model.predict(rows, &run).unwrap();
        for (row, ends) in offsets.windows(2).enumerate() {
            let n = (ends[1] - ends[0]) as f64;
            let means = &each.0[ends[0]..ends[1]];
            let expected = means.iter().sum::<f64>() / n;
            assert!((mean[row] - expected).abs() < 1e-12 * expected);
            let within = each.1[ends[0]..ends[1]].iter().sum::<f64>() / n;
            let between = means.iter().map(|m| (m - expected).powi(2)).sum::<f64>() / n;
            assert!((variance[row] - within - between).abs() < 1e-12 * variance[row]);
        }
        let complete = Rows::from_f64(&[1.0, 2.0], 2).unwrap();
        assert!(model.completions(complete, &run).unwrap().is_none());
        let model = forest(30);
        model.guess_substitutes(guess([-1.0, -1.0])).unwrap();
        let (found, _) = model.completions(rows, &run).unwrap().unwrap();
        assert_eq!(found, [10.2, -1.0, 4.0, 5.0, -1.0, 21.0]);
    }
}
