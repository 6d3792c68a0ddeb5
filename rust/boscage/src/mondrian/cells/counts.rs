//! How many rows a cell holds, and whether their targets are the same.

/// What decides whether a cell is cut: its number of rows, and whether their targets are the same. A sum over rows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CellCount {
    /// Number of rows.
    pub n_rows: u64,
    /// The least target.
    pub least: f64,
    /// The greatest target.
    pub greatest: f64,
}

impl CellCount {
    /// That of no rows.
    pub const NONE: Self = Self { n_rows: 0, least: f64::INFINITY, greatest: f64::NEG_INFINITY };

    /// That of one row with a target, or with a class by number.
    #[must_use]
    pub fn one(target: f64) -> Self {
        Self { n_rows: 1, least: target, greatest: target }
    }

    /// That of the rows of both.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            n_rows: self.n_rows + other.n_rows,
            least: self.least.min(other.least),
            greatest: self.greatest.max(other.greatest),
        }
    }

    /// Whether all targets are the same: then the stopping rule pauses the cell (Algorithm 5.9, line 3).
    pub(super) fn is_uniform(&self) -> bool {
        self.least >= self.greatest
    }
}
