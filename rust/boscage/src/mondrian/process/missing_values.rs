//! Rows that lack values, completed by substitutes.

use crate::data::Rows;
use crate::error::{Error, Result};
use crate::mondrian::process::domain::Domain;
use crate::mondrian::process::substitute::{Substitute, rounded};

impl Domain {
    /// The same domain with a substitute for missing values of each feature, or without.
    ///
    /// # Errors
    /// A number of substitutes other than that of the features; numbers that are not finite or beyond `+-4e307`; a
    /// term of a feature that does not exist or is the one that is missing.
    ///
    /// ```
    /// # use boscage::{Domain, Substitute};
    /// let domain = Domain::new(vec![0.0], vec![1.0], None)?;
    /// assert!(domain.with_substitutes(Some(vec![Substitute { centre: 0.5, terms: vec![] }])).is_ok());
    /// # Ok::<(), boscage::Error>(())
    /// ```
    pub fn with_substitutes(self, substitutes: Option<Vec<Substitute>>) -> Result<Self> {
        if let Some(substitutes) = &substitutes {
            let (what, found, expected) = ("substitutes", substitutes.len(), self.n_features());
            if found != expected {
                return Err(Error::Length { what, found, expected, why: "one substitute a feature" });
            }
            for (feature, substitute) in substitutes.iter().enumerate() {
                substitute.check(feature, expected)?;
            }
        }
        Ok(self.and_substitutes(substitutes))
    }

    /// Whether a value of some rows is missing, for which there is a substitute.
    ///
    /// # Errors
    /// As [`filled`](Self::filled).
    pub(crate) fn lacks_values(&self, rows: Rows<'_>) -> Result<bool> {
        let (what, found, expected) = ("a row of X", rows.n_features(), self.n_features());
        if found != expected {
            return Err(Error::Length { what, found, expected, why: "as many features as in fit" });
        }
        match rows.first_missing() {
            None => Ok(false),
            Some((row, feature)) if self.substitutes().is_none() => Err(Error::Missing { row, feature }),
            Some(_) => Ok(true),
        }
    }

    /// Rows in which substitutes stand for missing values; `None` if no value is missing.
    ///
    /// # Errors
    /// A missing value without a substitute; another number of features.
    pub fn filled(&self, rows: Rows<'_>) -> Result<Option<Vec<f64>>> {
        if !self.lacks_values(rows)? {
            return Ok(None);
        }
        let substitutes = self.substitutes().unwrap_or_default();
        let mut values = Vec::with_capacity(rows.n_rows() * rows.n_features());
        let mut given = Vec::new();
        for i in 0..rows.n_rows() {
            given.clear();
            given.extend(rows.row(i));
            values.extend(given.iter().enumerate().map(|(d, &value)| {
                if !value.is_nan() {
                    return value;
                }
                let (low, high) = (self.low()[d], self.high()[d]);
                substitutes[d].value(&given, low, high)
            }));
        }
        Ok(Some(values))
    }

    /// The same rows, with substitutes for missing values, which `buffer` is to hold.
    ///
    /// # Errors
    /// As [`filled`](Self::filled).
    pub(crate) fn complete<'a>(&self, rows: Rows<'a>, buffer: &'a mut Vec<f64>) -> Result<Rows<'a>> {
        match self.filled(rows)? {
            None => Ok(rows),
            Some(filled) => {
                *buffer = filled;
                Rows::from_f64(buffer, rows.n_features())
            }
        }
    }

    /// A value of a feature, moved as far as one substitute is from another. It stays within the reference range, or where it
    /// was.
    pub(crate) fn moved(&self, feature: usize, value: f64, [from, to]: [f64; 2]) -> f64 {
        if from == to {
            return value;
        }
        let (low, high) = (self.low()[feature].min(value), self.high()[feature].max(value));
        rounded((value + (to - from)).clamp(low, high), low, high)
    }

    /// A row in which substitutes stand for missing values.
    pub(crate) fn filled_row(&self, row: Vec<f64>) -> Vec<f64> {
        let rows = Rows::from_f64_with_missing(&row, row.len()).and_then(|rows| self.filled(rows));
        rows.expect("a row of the forest").unwrap_or(row)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mondrian::process::substitute::SubstituteTerm;

    const NAN: f64 = f64::NAN;

    fn domain() -> Domain {
        let term = |feature, slope, from| SubstituteTerm { feature, slope, from };
        let terms = vec![term(1, 2.0, 10.0), term(2, -2.0, 3.0)];
        let number = |centre| Substitute { centre, terms: vec![] };
        Domain::new(vec![0.0, 0.0, 0.0], vec![8.0, 20.0, 6.0], None)
            .unwrap()
            .with_substitutes(Some(vec![Substitute { centre: 4.0, terms }, number(-5.0), number(3.5)]))
            .unwrap()
    }

    fn filled(row: [f64; 3]) -> Vec<f64> {
        domain().filled_row(row.to_vec())
    }

    #[test]
    fn a_missing_value_is_a_number_or_a_linear_function_of_the_others() {
        assert_eq!(filled([1.0, 2.0, 3.0]), [1.0, 2.0, 3.0]);
        // 4 + 2 (11 - 10) - 2 (5 - 3)
        assert_eq!(filled([NAN, 11.0, 5.0]), [2.0, 11.0, 5.0]);
        // Missing features have no part in it, and the range limits it. A plain number is not limited.
        assert_eq!(filled([NAN, NAN, 1.0]), [8.0, -5.0, 1.0]);
        assert_eq!(filled([NAN, 20.0, NAN]), [8.0, 20.0, 3.5]);
        assert_eq!(filled([NAN, NAN, NAN]), [4.0, -5.0, 3.5]);
        // The difference of two terms that overflow is no number.
        assert_eq!(filled([NAN, f64::MAX, f64::MAX])[0], 4.0);
    }

    #[test]
    fn a_value_moves_within_its_range() {
        for (value, moves, expected) in [
            (3.0, [1.0, 1.0], 3.0),
            (3.0, [1.0, 2.5], 4.5),
            (3.0, [1.0, 7.0], 8.0),
            (3.0, [4.0, 0.0], 0.0),
            // Beyond the range it may stay.
            (9.0, [1.0, 2.0], 9.0),
            (9.0, [2.0, 1.0], 8.0),
            (f64::MAX / 4.0, [f64::MAX / 4.0, -f64::MAX / 4.0], 0.0),
        ] {
            assert_eq!(domain().moved(0, value, moves), expected, "{value} {moves:?}");
        }
    }

    #[test]
    fn without_substitutes_a_missing_value_is_an_error() {
        let values = [0.0, 1.0, 2.0, NAN];
        let rows = Rows::from_f64_with_missing(&values, 2).unwrap();
        let domain = Domain::of_rows(rows, None).unwrap();
        assert_eq!((domain.low(), domain.high()), (&[0.0, 1.0][..], &[2.0, 1.0][..]));
        assert_eq!(domain.filled(rows), Err(Error::Missing { row: 1, feature: 1 }));
        assert_eq!(
            Rows::from_f64(&values, 2).unwrap_err().to_string(),
            "row 1, feature 1 of X is NaN; every value must be finite"
        );
    }

    #[test]
    fn impossible_substitutes_are_refused() {
        let domain = Domain::new(vec![0.0; 2], vec![1.0; 2], None).unwrap();
        let number = |centre| Substitute { centre, terms: vec![] };
        let of = |feature, slope| {
            let terms = vec![SubstituteTerm { feature, slope, from: 0.0 }];
            Substitute { centre: 0.0, terms }
        };
        for first in [number(NAN), number(f64::INFINITY), of(0, 1.0), of(2, 1.0), of(1, NAN)] {
            assert!(domain.clone().with_substitutes(Some(vec![first, number(0.0)])).is_err());
        }
        assert!(domain.clone().with_substitutes(Some(vec![number(0.0)])).is_err());
        assert!(domain.with_substitutes(Some(vec![of(1, 1.0), number(0.0)])).is_ok());
    }
}
