//! Cuts of cells, and the side to which a cut sends a value.

use crate::data::goes_right;

/// A cut of a cell. [`goes_right`] sends rows to its sides.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Cut {
    pub(crate) time: f64,
    /// See [`Domain::feature_of`](crate::mondrian::process::domain::Domain::feature_of).
    pub(crate) coordinate: u32,
    pub(crate) threshold: f64,
}

impl Cut {
    /// The side of a value of the cut's coordinate.
    #[inline]
    pub(crate) fn goes_right(self, value: f64) -> bool {
        goes_right(value, self.threshold)
    }
}

/// A cut of a cell that leaves all rows of a node on one side.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct SkippedCut {
    pub(crate) threshold: f64,
    pub(crate) time: f64,
    /// See [`Domain::feature_of`](crate::mondrian::process::domain::Domain::feature_of).
    pub(crate) coordinate: u32,
    /// The rows' side.
    pub(crate) right: bool,
}

impl SkippedCut {
    pub(crate) fn of(Cut { time, coordinate, threshold }: Cut, right: bool) -> Self {
        Self { threshold, time, coordinate, right }
    }

    /// Whether a value of the cut's coordinate is on the rows' side.
    #[inline]
    pub(crate) fn keeps(self, value: f64) -> bool {
        goes_right(value, self.threshold) == self.right
    }

    pub(crate) fn cut(self) -> Cut {
        Cut { time: self.time, coordinate: self.coordinate, threshold: self.threshold }
    }
}
