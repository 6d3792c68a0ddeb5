//! Changes of a box's bounds: they move outwards when rows arrive or boxes are united, and inwards when rows that lay on
//! them leave.

use crate::data::{RowId, Scalar, Table};
use crate::mondrian::tree::arena::{Arena, NodeId};

/// A bound that moved, or may move.
#[derive(Debug, Clone, Copy)]
pub(super) struct BoundMove<S> {
    pub(super) coordinate: u32,
    pub(super) high: bool,
    pub(super) before: S,
    pub(super) now: S,
}

/// The bounds of a node's box that moved; its parent's box has no others to look at.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) enum Moved {
    #[default]
    Nothing,
    /// A part of the list of moves.
    Bounds { start: u32, end: u32 },
    /// Any bound may have moved.
    Anything,
}

impl Moved {
    /// The bounds that moved of either of two children. Siblings are updated one after the other, so that
    /// their moves are adjacent.
    pub(crate) fn or(self, other: Self) -> Self {
        match (self, other) {
            (Self::Nothing, moved) | (moved, Self::Nothing) => moved,
            (Self::Bounds { start, end: middle }, Self::Bounds { start: next, end }) if middle == next => {
                Self::Bounds { start, end }
            }
            _ => Self::Anything,
        }
    }
}

/// Drops from `loose` the bounds on which some of a node's rows lie as well.
pub(super) fn hold_by_rows<S: Scalar>(
    arena: &Arena,
    node: NodeId,
    table: Table<'_, S>,
    loose: &mut Vec<BoundMove<S>>,
) {
    if node.is_leaf() {
        return hold_by_each(arena.leaf_rows(node), table, loose);
    }
    let mut rows = Vec::with_capacity(arena.n_rows(node));
    arena.collect_rows(node, &mut rows);
    hold_by_each(rows.into_iter(), table, loose);
}

/// Drops from `loose` the bounds on which some rows lie as well: four rows at a time, so that they are
/// fetched from memory together.
pub(super) fn hold_by_each<S: Scalar>(
    mut rows: impl Iterator<Item = RowId>,
    table: Table<'_, S>,
    loose: &mut Vec<BoundMove<S>>,
) {
    while let (Some(first), false) = (rows.next(), loose.is_empty()) {
        let some = [(); 3].map(|()| rows.next().unwrap_or(first));
        let some = [first, some[0], some[1], some[2]].map(|row| table.row(row));
        let all = |d: usize| some.map(|row| row[d]);
        let lowest = |d| all(d).into_iter().fold(S::MAX, |low, x| if x < low { x } else { low });
        let highest = |d| all(d).into_iter().fold(S::MIN, |high, x| if x > high { x } else { high });
        retain(loose, lowest, highest);
    }
}

/// Drops from `loose` the bounds on which a box lies as well, and notes how far it reaches in the others.
pub(super) fn retain<S: Scalar>(
    loose: &mut Vec<BoundMove<S>>,
    low: impl Fn(usize) -> S,
    high: impl Fn(usize) -> S,
) {
    let mut n = 0;
    for i in 0..loose.len() {
        let BoundMove { coordinate, high: is_high, before, now } = loose[i];
        let value = if is_high { high(coordinate as usize) } else { low(coordinate as usize) };
        let farther = if is_high { value > now } else { value < now };
        // Written always and counted conditionally, so that there is no branch.
        loose[n] = BoundMove { now: if farther { value } else { now }, ..loose[i] };
        n += usize::from(value != before);
    }
    loose.truncate(n);
}

/// Extends a box to hold another one.
pub(crate) fn widen<S: Scalar>(low: &mut [S], high: &mut [S], other_low: &[S], other_high: &[S]) {
    for (l, &o) in low.iter_mut().zip(other_low) {
        *l = if o < *l { o } else { *l };
    }
    for (h, &o) in high.iter_mut().zip(other_high) {
        *h = if o > *h { o } else { *h };
    }
}
