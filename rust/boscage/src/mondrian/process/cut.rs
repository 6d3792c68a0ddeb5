//! A cut of a cell, and the one rule that sends a value to a side.

/// A cut of a cell: rows with `x[feature] <= threshold` go left.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Cut {
    pub(crate) time: f64,
    pub(crate) feature: u32,
    pub(crate) threshold: f64,
}

/// A cut that all rows below it pass on one side.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct SkippedCut {
    pub(crate) threshold: f64,
    pub(crate) time: f64,
    pub(crate) feature: u32,
    /// The rows' side.
    pub(crate) right: bool,
}

impl SkippedCut {
    pub(crate) fn of(Cut { time, feature, threshold }: Cut, right: bool) -> Self {
        Self { threshold, time, feature, right }
    }

    pub(crate) fn cut(self) -> Cut {
        Cut { time: self.time, feature: self.feature, threshold: self.threshold }
    }
}
