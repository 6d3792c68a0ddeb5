//! Rows' coordinates and the trees over them, of one width or the other.

use crate::data::{RowId, Rows};
use crate::mondrian::forest::row_index::Arrival;
use crate::mondrian::forest::row_values::place;
use crate::mondrian::tree::Tree;
use crate::mondrian::tree::statistics::Statistics;

/// Rows' values and the trees over them, in the narrowest type that holds every value exactly.
#[derive(Debug, Clone)]
pub(crate) struct Storage<S, P> {
    pub(crate) values: Vec<S>,
    /// Of the box on which the trees are drawn.
    pub(crate) level: u32,
    /// Rows that left while trees had them. Their places in the table stay theirs until every tree has let them go.
    pub(crate) leaving: Vec<RowId>,
    pub(crate) trees: Vec<Tree<S, P>>,
}

#[derive(Debug, Clone)]
pub(crate) enum AnyStorage<P> {
    F32(Storage<f32, P>),
    F64(Storage<f64, P>),
}

/// Does the same with a body of either type.
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
    pub(crate) fn place(&mut self, new: &[RowId], coordinates: Rows<'_>, n_features: usize, capacity: usize) {
        if let Self::F32(storage) = self {
            match coordinates.to_exact() {
                Some(values) => return place(&mut storage.values, new, values, n_features, capacity),
                None => *self = Self::F64(storage.widen()),
            }
        }
        if let Self::F64(storage) = self {
            let values = coordinates.to_exact().expect("f64 holds every value");
            place(&mut storage.values, new, values, n_features, capacity);
        }
    }

    /// From now on trees lack all rows.
    pub(crate) fn drop_trees(&mut self) {
        with_storage!(self, storage => storage.trees = Vec::new());
    }
}

impl<P> Default for AnyStorage<P> {
    fn default() -> Self {
        Self::F32(Storage::default())
    }
}

impl<S, P> Default for Storage<S, P> {
    fn default() -> Self {
        Self { level: 0, values: Vec::new(), leaving: Vec::new(), trees: Vec::new() }
    }
}

impl<S, P> Storage<S, P> {
    /// Some tree lacks rows that arrived from here on.
    pub(crate) fn lacks_from(&self) -> Arrival {
        self.trees.iter().map(|tree| tree.lacks_from).min().unwrap_or(0)
    }
}

impl<P: Statistics> Storage<f32, P> {
    /// The same with every value as `f64`.
    pub(crate) fn widen(&self) -> Storage<f64, P> {
        Storage {
            level: self.level,
            leaving: self.leaving.clone(),
            values: self.values.iter().map(|&v| f64::from(v)).collect(),
            trees: self.trees.iter().map(Tree::widen).collect(),
        }
    }
}
