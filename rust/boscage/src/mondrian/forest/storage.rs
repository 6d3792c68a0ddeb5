//! Rows' coordinates and the trees over them, in single or in double precision.

use crate::data::{RowId, Rows};
use crate::mondrian::forest::row_index::{Arrival, RowIndex};
use crate::mondrian::forest::row_values::{RowValues, place, rows_of};
use crate::mondrian::tree::Tree;
use crate::mondrian::tree::statistics::Statistics;

/// Rows' coordinates and the trees over them.
#[derive(Debug, Clone)]
pub(crate) struct Storage<S, P> {
    /// The table of coordinates, row after row.
    pub(crate) values: Vec<S>,
    /// The level of the box on which the trees are drawn.
    pub(crate) level: u32,
    /// Rows that left the forest while trees held them, in the order in which they left. They keep their places in
    /// the table until every tree has removed them.
    pub(crate) leaving: Vec<RowId>,
    pub(crate) trees: Vec<Tree<S, P>>,
    /// By tree, the updates that it has applied.
    pub(crate) applied: Vec<Applied>,
}

/// The updates of the forest's rows that a tree has applied.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Applied {
    /// The tree holds the rows that arrived before this one.
    pub(crate) arrived: Arrival,
    /// The tree has removed the first rows of [`Storage::leaving`], so many of them.
    pub(crate) n_removed: usize,
}

impl Applied {
    /// Rows that the tree holds, among those of `leaving` that it has not looked at.
    pub(crate) fn to_remove<'a>(
        self,
        leaving: &'a [RowId],
        row_index: &'a RowIndex,
    ) -> impl Iterator<Item = RowId> + 'a {
        let is_held = move |row: &RowId| row_index.arrival(*row) < self.arrived;
        leaving[self.n_removed..].iter().copied().filter(is_held)
    }
}

/// Storage in the narrowest type that holds every coordinate exactly.
#[derive(Debug, Clone)]
pub(crate) enum AnyStorage<P> {
    F32(Storage<f32, P>),
    F64(Storage<f64, P>),
}

/// Does the same with storage of either type.
macro_rules! with_storage {
    ($either:expr, $storage:ident => $work:expr) => {
        match $either {
            $crate::mondrian::forest::storage::AnyStorage::F32($storage) => $work,
            $crate::mondrian::forest::storage::AnyStorage::F64($storage) => $work,
        }
    };
}
pub(crate) use with_storage;

impl<P: Statistics> AnyStorage<P> {
    /// Writes rows' coordinates to their places in the table, which becomes one of `f64` if they need it.
    pub(crate) fn place(&mut self, new: &[RowId], coordinates: Rows<'_>, capacity: usize) {
        let n_features = coordinates.n_features();
        if let Self::F32(storage) = self {
            match coordinates.to_exact() {
                Some(values) => return place(&mut storage.values, new, values, n_features, capacity),
                None => self.make_wide(),
            }
        }
        if let Self::F64(storage) = self {
            let values = coordinates.to_exact().expect("f64 holds every value");
            place(&mut storage.values, new, values, n_features, capacity);
        }
    }

    /// Makes the table one of `f64`, as if some row needed it.
    pub(crate) fn make_wide(&mut self) {
        if let Self::F32(storage) = self {
            *self = Self::F64(storage.widen());
        }
    }

    /// A copy of the table of coordinates.
    pub(crate) fn values(&self) -> RowValues {
        match self {
            Self::F32(storage) => RowValues::F32(storage.values.clone()),
            Self::F64(storage) => RowValues::F64(storage.values.clone()),
        }
    }

    /// The coordinates of some rows.
    pub(crate) fn values_of(&self, rows: impl Iterator<Item = RowId>, n_coordinates: usize) -> RowValues {
        match self {
            Self::F32(storage) => RowValues::F32(rows_of(&storage.values, rows, n_coordinates)),
            Self::F64(storage) => RowValues::F64(rows_of(&storage.values, rows, n_coordinates)),
        }
    }

    /// Drops all trees; the next flush draws them again.
    pub(crate) fn drop_trees(&mut self) {
        with_storage!(self, storage => (storage.trees, storage.applied) = (Vec::new(), Vec::new()));
    }
}

impl<P> Default for AnyStorage<P> {
    fn default() -> Self {
        Self::F32(Storage::default())
    }
}

impl<S, P> Default for Storage<S, P> {
    fn default() -> Self {
        Self { level: 0, values: Vec::new(), leaving: Vec::new(), trees: Vec::new(), applied: Vec::new() }
    }
}

impl<S, P> Storage<S, P> {
    /// The updates that every tree has applied.
    pub(crate) fn applied_by_all(&self) -> Applied {
        let of = |this: fn(&Applied) -> u64| self.applied.iter().map(this).min().unwrap_or(0);
        Applied {
            arrived: of(|applied| applied.arrived),
            n_removed: of(|applied| applied.n_removed as u64) as usize,
        }
    }
}

impl<P: Statistics> Storage<f32, P> {
    /// The same with every value as `f64`.
    fn widen(&self) -> Storage<f64, P> {
        Storage {
            level: self.level,
            leaving: self.leaving.clone(),
            values: self.values.iter().map(|&v| f64::from(v)).collect(),
            trees: self.trees.iter().map(Tree::widen).collect(),
            applied: self.applied.clone(),
        }
    }
}
