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
    /// Number of rows with the least target.
    pub n_least: u64,
    /// Number of rows with the greatest target.
    pub n_greatest: u64,
}

impl CellCount {
    /// That of no rows.
    pub const NONE: Self =
        Self { n_rows: 0, least: f64::INFINITY, greatest: f64::NEG_INFINITY, n_least: 0, n_greatest: 0 };

    /// That of one row with a target, or with a class by number.
    #[must_use]
    pub fn one(target: f64) -> Self {
        Self { n_rows: 1, least: target, greatest: target, n_least: 1, n_greatest: 1 }
    }

    /// That of the rows of both.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        let (least, n_least) = first((self.least, self.n_least), (other.least, other.n_least), |a, b| a < b);
        let (greatest, n_greatest) =
            first((self.greatest, self.n_greatest), (other.greatest, other.n_greatest), |a, b| a > b);
        Self { n_rows: self.n_rows + other.n_rows, least, greatest, n_least, n_greatest }
    }

    /// Whether all targets are the same, perhaps without one of the rows if `one_less` says so.
    pub(super) fn is_uniform(&self, one_less: bool) -> bool {
        self.n_rows <= self.n_least.max(self.n_greatest) + u64::from(one_less)
    }
}

/// Of two targets that so many rows have each, the one that comes first; if they are equal, that of the rows of both.
fn first(a: (f64, u64), b: (f64, u64), is_before: impl Fn(f64, f64) -> bool) -> (f64, u64) {
    if is_before(a.0, b.0) {
        a
    } else if is_before(b.0, a.0) {
        b
    } else {
        (a.0, a.1 + b.1)
    }
}
