//! The covariance without a row.
//!
//! Between the other rows it is nearly always that of the trees with the row. But a node is paused that holds too few rows
//! without it, or rows of one target, and rows are then together that only the left-out row kept apart. Without a landmark there
//! is another one.

use crate::control::Run;
use crate::data::{RowId, Scalar};
use crate::error::Result;
use crate::mondrian::forest::Forest;
use crate::mondrian::joint::Passes;
use crate::mondrian::joint::row_order::places_in;
use crate::mondrian::prediction::stop::Stop;
use crate::mondrian::prediction::visitor::Visitor;
use crate::mondrian::prediction::walk;
use crate::mondrian::regression::joint::equations::RowCovariance;
use crate::mondrian::regression::moments::NodeMoments;
use crate::mondrian::tree::Tree;

/// The covariance without one row or another.
pub(in crate::mondrian::regression) struct WithoutRows<'a> {
    kernel: &'a RowCovariance,
    forest: &'a Forest<NodeMoments>,
    places: Vec<u32>,
    /// By tree, the number of nodes, and by place whether a row has a leaf alone; none if the covariance is not that of trees.
    sizes: Vec<(usize, Vec<bool>)>,
}

impl<'a> WithoutRows<'a> {
    pub(super) fn new(kernel: &'a RowCovariance, forest: &'a Forest<NodeMoments>, order: &[RowId]) -> Self {
        let sizes = if let RowCovariance::Trees(trees) = kernel { trees.sizes() } else { Vec::new() };
        Self { kernel, forest, places: places_in(order), sizes }
    }

    /// The covariance of the other rows, if it is another one without the row.
    ///
    /// # Errors
    /// An interrupt.
    pub(in crate::mondrian::regression) fn covariance(
        &self,
        row: RowId,
        run: &Run<'_>,
    ) -> Result<Option<RowCovariance>> {
        let place = self.places[row as usize] as usize;
        let trees = match self.kernel {
            RowCovariance::Trees(trees) => trees,
            RowCovariance::Limit(_) => return Ok(None),
            RowCovariance::Landmarks(model) => return Ok(model.without(place).map(RowCovariance::Landmarks)),
        };
        let chunks = walk::predict_left_out(self.forest, &[row], run, &Coarser { of: self, place })?;
        let others: Vec<(usize, Passes)> = chunks.into_iter().flatten().collect();
        Ok((!others.is_empty()).then(|| RowCovariance::Trees(trees.with(others))))
    }
}

/// Collects the trees in which more rows are together without the row at a place.
struct Coarser<'a> {
    of: &'a WithoutRows<'a>,
    place: usize,
}

impl Visitor<NodeMoments> for Coarser<'_> {
    type Chunk = Vec<(usize, Passes)>;

    fn start(&self, _n_rows: usize) -> Self::Chunk {
        Vec::new()
    }

    fn visit<S: Scalar>(
        &self,
        tree_index: usize,
        tree: &Tree<S, NodeMoments>,
        _row: usize,
        _stops: &[Stop],
        chunk: &mut Self::Chunk,
    ) {
        let WithoutRows { forest, places, sizes, .. } = self.of;
        let (n_nodes, are_alone) = &sizes[tree_index];
        // A leaf goes with the split above it.
        let own = if are_alone[self.place] { 2 } else { 0 };
        if n_nodes - tree.arena.n_nodes() > own {
            chunk.push((tree_index, Passes::new(tree, places, forest.settings.lifetime)));
        }
    }
}
