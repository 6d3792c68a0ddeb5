//! Rows' coordinates and the trees over them, of one width or the other.

use crate::data::RowId;
use crate::mondrian::forest::row_index::Arrival;
use crate::mondrian::tree::Tree;
use crate::mondrian::tree::statistics::Statistics;

/// Rows' values and the trees over them, in the narrowest type that holds every value exactly.
#[derive(Debug, Clone)]
pub(crate) struct Kept<S, P> {
    pub(crate) values: Vec<S>,
    /// Of the box on which the trees are drawn.
    pub(crate) level: u32,
    /// Rows that left while trees had them. Their places in the table stay theirs until every tree has let them go.
    pub(crate) leaving: Vec<RowId>,
    pub(crate) trees: Vec<Tree<S, P>>,
}

#[derive(Debug, Clone)]
pub(crate) enum Body<P> {
    F32(Kept<f32, P>),
    F64(Kept<f64, P>),
}

/// Does the same with a body of either type.
macro_rules! with_body {
    ($body:expr, $kept:ident => $work:expr) => {
        match $body {
            $crate::mondrian::forest::storage::Body::F32($kept) => $work,
            $crate::mondrian::forest::storage::Body::F64($kept) => $work,
        }
    };
}
pub(crate) use with_body;

impl<P: Statistics> Body<P> {
    /// From now on trees lack all rows.
    pub(crate) fn drop_trees(&mut self) {
        with_body!(self, kept => kept.trees = Vec::new());
    }
}

impl<P> Default for Body<P> {
    fn default() -> Self {
        Self::F32(Kept::default())
    }
}

impl<S, P> Default for Kept<S, P> {
    fn default() -> Self {
        Self { level: 0, values: Vec::new(), leaving: Vec::new(), trees: Vec::new() }
    }
}

impl<S, P> Kept<S, P> {
    /// Some tree lacks rows that arrived from here on.
    pub(crate) fn lacks_from(&self) -> Arrival {
        self.trees.iter().map(|tree| tree.lacks_from).min().unwrap_or(0)
    }
}

impl<P: Statistics> Kept<f32, P> {
    /// The same with every value as `f64`.
    pub(crate) fn widen(&self) -> Kept<f64, P> {
        Kept {
            level: self.level,
            leaving: self.leaving.clone(),
            values: self.values.iter().map(|&v| f64::from(v)).collect(),
            trees: self.trees.iter().map(Tree::widen).collect(),
        }
    }
}
