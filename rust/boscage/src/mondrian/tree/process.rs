//! What determines a tree besides its rows: the process, the stopping rule, and where rows' values are.

use crate::data::{RowId, RowTargets, Scalar, Table, Weight, goes_right};
use crate::mondrian::process::cut::Cut;
use crate::mondrian::process::domain::Domain;
use crate::random::keyed::Key;

/// Everything that determines a tree besides its set of rows, and where those rows are.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Process<'a, S, T> {
    pub(crate) domain: &'a Domain,
    pub(crate) key: Key,
    pub(crate) lifetime: f64,
    pub(crate) min_samples_split: usize,
    pub(crate) table: Table<'a, S>,
    pub(crate) targets: RowTargets<'a, T>,
}

impl<S: Scalar, T: Copy + PartialEq> Process<'_, S, T> {
    /// Whether the stopping rule pauses a node of these rows (Algorithm 5.9, line 3; Algorithm 6.2, line 2): their targets
    /// are the same, or they are few.
    pub(crate) fn pauses(&self, rows: &[RowId]) -> bool {
        self.are_few(rows.len(), || rows.iter().copied())
            || rows.iter().all(|&row| self.targets.of(row) == self.targets.of(rows[0]))
    }

    /// Whether so many rows are fewer than `min_samples_split`, where a row of weight `w` counts as `max(1, w)` rows: whole
    /// weights are repeated rows, and small ones, of which only the shares matter, do not stop all splits. `rows` is asked
    /// for them if their weights matter.
    pub(crate) fn are_few<I: Iterator<Item = RowId>>(&self, n_rows: usize, rows: impl FnOnce() -> I) -> bool {
        if n_rows >= self.min_samples_split {
            return false;
        }
        let Some(weights) = self.targets.weights else { return true };
        let counted: Weight = rows().map(|row| Weight::of(weights[row as usize]).max(Weight::ONE)).sum();
        counted < Weight::of_rows(self.min_samples_split)
    }

    /// Whether all rows go to one side of a cut.
    pub(crate) fn all_go(&self, rows: &[RowId], cut: Cut, right: bool) -> bool {
        let column = self.table.column(cut.coordinate, rows.len());
        rows.iter().all(|&row| cut.goes_right(column.at(row)) == right)
    }

    /// Whether all rows are equal in every feature that has a rate: then no cut separates them.
    pub(crate) fn coincide(&self, rows: &[RowId]) -> bool {
        let first = self.table.row(rows[0]);
        rows[1..].iter().all(|&other| {
            first
                .iter()
                .zip(self.table.row(other))
                .zip(self.domain.rates())
                .all(|((a, b), &rate)| a == b || rate == 0.0)
        })
    }
}

/// Puts the rows that go left of a cut first, keeping their order; returns how many they are.
pub(crate) fn partition<S: Scalar>(
    rows: &mut [RowId],
    scratch: &mut [RowId],
    table: &Table<'_, S>,
    cut: Cut,
) -> usize {
    let column = table.column(cut.coordinate, rows.len());
    let threshold = S::not_above(cut.threshold);
    let goes_right = |row: RowId| goes_right(column.value(row), threshold);
    let Some(&first) = rows.first() else { return 0 };
    // Many cuts leave all rows on one side: nothing moves.
    let right = goes_right(first);
    let Some(same) = rows[1..].iter().position(|&row| goes_right(row) != right) else {
        return if right { 0 } else { rows.len() };
    };
    let same = same + 1;
    let scratch = &mut scratch[..rows.len()];
    let (mut n_left, mut n_right) = if right { (0, same) } else { (same, 0) };
    scratch[..n_right].copy_from_slice(&rows[..n_right]);
    // Both places are written and one of them counted, so that there is no branch.
    for i in same..rows.len() {
        let row = rows[i];
        let right = goes_right(row);
        rows[n_left] = row;
        scratch[n_right] = row;
        n_left += usize::from(!right);
        n_right += usize::from(right);
    }
    rows[n_left..].copy_from_slice(&scratch[..n_right]);
    n_left
}
