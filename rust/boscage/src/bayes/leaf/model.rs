//! The trait of conjugate leaves: statistics, marginal likelihood, and both sides of a moving cut.

/// A conjugate model of a leaf's targets, `l(Y | X)` in eq. 3.1, with the targets of all rows.
///
/// Statistics are sums over rows; a node's are those of its rows, whatever tree it is in.
pub(crate) trait ConjugateLeaf: Sync {
    /// Sufficient statistics of a set of rows.
    type Stats: Clone + Send + Sync;

    /// Both sides of a cut that moves over a node's rows.
    type MovingCut<'a>: MovingCut
    where
        Self: 'a;

    /// Statistics of no rows.
    fn empty(&self) -> Self::Stats;

    /// Adds a row's target.
    fn add(&self, stats: &mut Self::Stats, row: u32);

    /// Statistics of the rows of `all` that are not among those of `part`.
    fn rest(&self, all: &Self::Stats, part: &Self::Stats) -> Self::Stats;

    /// Logarithm of the marginal likelihood of the rows' targets.
    fn log_likelihood(&self, stats: &Self::Stats) -> f64;

    /// A cut with all of a node's rows on its right.
    fn moving_cut<'a>(&'a self, all: &Self::Stats) -> Self::MovingCut<'a>;

    /// Statistics of some rows.
    fn of_rows(&self, rows: impl IntoIterator<Item = u32>) -> Self::Stats {
        let mut stats = self.empty();
        rows.into_iter().for_each(|row| self.add(&mut stats, row));
        stats
    }
}

/// Both sides of a cut, while rows go from the right to the left one by one.
pub(crate) trait MovingCut {
    /// Takes a row from the right to the left.
    fn shift(&mut self, row: u32);

    /// `log l(left) + log l(right)`; each side has a row.
    fn log_likelihood(&self) -> f64;
}
