//! The distinct values of a column.

use std::ops::Range;

use crate::data::{Scalar, goes_right};

/// Distinct values, ascending; in single precision if that is exact.
#[derive(Debug, Clone)]
pub(super) enum DistinctValues {
    Single(Box<[f32]>),
    Double(Box<[f64]>),
}

impl DistinctValues {
    pub(super) fn new(values: impl Iterator<Item = f64> + Clone) -> Self {
        let narrow: Option<Box<[f32]>> = values.clone().map(f32::exact).collect();
        narrow.map_or_else(|| Self::Double(values.collect()), Self::Single)
    }

    pub(super) fn len(&self) -> usize {
        match self {
            Self::Single(values) => values.len(),
            Self::Double(values) => values.len(),
        }
    }

    pub(super) fn at(&self, i: usize) -> f64 {
        match self {
            Self::Single(values) => values[i].into(),
            Self::Double(values) => values[i],
        }
    }

    /// Number of values of a range that are not above a threshold.
    pub(super) fn n_up_to(&self, threshold: f64, among: Range<usize>) -> usize {
        match self {
            Self::Single(values) => {
                values[among].partition_point(|&value| !goes_right(f64::from(value), threshold))
            }
            Self::Double(values) => values[among].partition_point(|&value| !goes_right(value, threshold)),
        }
    }
}
