//! A row of features of which most are 0.

use crate::error::{Error, Result};

/// The values of a row that are not 0, by feature in ascending order.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SparseRow(Box<[(u32, f64)]>);

impl SparseRow {
    /// A row with some values, each given with its feature; all others are 0.
    ///
    /// # Errors
    /// Features that are not in ascending order.
    ///
    /// ```
    /// let row = boscage::SparseRow::new(vec![(3, 1.5), (70_000, 1.0)])?;
    /// assert_eq!((row.at(3), row.at(4)), (1.5, 0.0));
    /// # Ok::<(), boscage::Error>(())
    /// ```
    pub fn new(mut values: Vec<(u32, f64)>) -> Result<Self> {
        if let Some(pair) = values.windows(2).find(|pair| pair[0].0 >= pair[1].0) {
            return Err(Error::InvalidSetting {
                name: "the features of a sparse row",
                expected: "in ascending order, each once",
                found: format!("{} before {}", pair[0].0, pair[1].0),
            });
        }
        values.retain(|&(_, value)| value != 0.0);
        // One NaN for all, since digests read its bits.
        values.iter_mut().filter(|(_, value)| value.is_nan()).for_each(|(_, value)| *value = f64::NAN);
        Ok(Self(values.into()))
    }

    /// The row with the values of a dense one.
    pub(crate) fn of(values: impl Iterator<Item = f64>) -> Self {
        Self((0..).zip(values).filter(|&(_, value)| value != 0.0).collect())
    }

    /// The value of a feature.
    #[must_use]
    pub fn at(&self, feature: u32) -> f64 {
        self.0.binary_search_by_key(&feature, |&(of, _)| of).map_or(0.0, |i| self.0[i].1)
    }

    /// Whether a value is missing.
    pub(crate) fn has_missing(&self) -> bool {
        self.0.iter().any(|(_, value)| value.is_nan())
    }

    /// The values that are not 0, and their features.
    #[must_use]
    pub fn values(&self) -> &[(u32, f64)] {
        &self.0
    }
}
