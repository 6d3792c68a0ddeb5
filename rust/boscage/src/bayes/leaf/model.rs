//! The trait of conjugate leaves: statistics, marginal likelihood, and both sides of a moving cut.

/// A conjugate model of a leaf's targets: `l(Y | X)` of eq. 3.1. It holds the targets of all rows.
///
/// Statistics are sums over a set of rows, and do not depend on the tree.
pub(crate) trait ConjugateLeaf: Sync {
    /// Sufficient statistics of a set of rows.
    type Stats: Clone + Send + Sync;

    /// The statistics on both sides of a cut that moves over a node's rows.
    type MovingCut<'a>: MovingCut
    where
        Self: 'a;

    /// The statistics of an empty set of rows.
    fn empty(&self) -> Self::Stats;

    /// Adds a row's target.
    fn add(&self, stats: &mut Self::Stats, row: u32);

    /// The statistics of the rows in `all` that are not in `part`.
    fn rest(&self, all: &Self::Stats, part: &Self::Stats) -> Self::Stats;

    /// Logarithm of the marginal likelihood of the rows' targets.
    fn log_likelihood(&self, stats: &Self::Stats) -> f64;

    /// A cut that has all of a node's rows on its right.
    fn moving_cut<'a>(&'a self, all: &Self::Stats) -> Self::MovingCut<'a>;

    /// Whether a single row stands for several equal ones. Its node takes a stage, as theirs would, so that the same
    /// trees are drawn.
    fn stands_for_several(&self, _stats: &Self::Stats) -> bool {
        false
    }

    /// The statistics of some rows.
    fn of_rows(&self, rows: impl IntoIterator<Item = u32>) -> Self::Stats {
        let mut stats = self.empty();
        rows.into_iter().for_each(|row| self.add(&mut stats, row));
        stats
    }
}

/// Both sides of a cut that moves from left to right, one row at a time.
pub(crate) trait MovingCut {
    /// Moves a row from the right side to the left.
    fn shift(&mut self, row: u32);

    /// Moves all rows from the right side to the left, except for some that stay.
    fn shift_all_but(&mut self, rows: impl Iterator<Item = u32>);

    /// `log l(left) + log l(right)`; neither side is empty.
    fn log_likelihood(&self) -> f64;
}

/// A cut whose right side is what the left one lacks of all rows.
#[derive(Debug)]
pub(crate) struct SubtractedCut<'a, L: ConjugateLeaf> {
    model: &'a L,
    all: L::Stats,
    left: L::Stats,
}

impl<'a, L: ConjugateLeaf> SubtractedCut<'a, L> {
    pub(crate) fn new(model: &'a L, all: &L::Stats) -> Self {
        Self { model, all: all.clone(), left: model.empty() }
    }
}

impl<L: ConjugateLeaf> MovingCut for SubtractedCut<'_, L> {
    fn shift(&mut self, row: u32) {
        self.model.add(&mut self.left, row);
    }

    fn shift_all_but(&mut self, rows: impl Iterator<Item = u32>) {
        self.left = self.model.rest(&self.all, &self.model.of_rows(rows));
    }

    fn log_likelihood(&self) -> f64 {
        let right = self.model.rest(&self.all, &self.left);
        self.model.log_likelihood(&self.left) + self.model.log_likelihood(&right)
    }
}
