//! Passes over rows, in which a sweep spends most of its time. Each reads the leaf and the residual of every
//! row once, in order.

use crate::bart::state::row_passes_simd;
use crate::bart::state::row_passes_simd::LANES;
use crate::bart::state::tree::{NodeLabel, TreeState};
use crate::data::goes_right;
use crate::data::sorted::column::{SortedColumn, Span};
use crate::math::vectors::with_vectors;

/// The sum of all lanes.
pub(crate) fn total(lanes: &[f64; LANES]) -> f64 {
    (lanes[0] + lanes[1]) + (lanes[2] + lanes[3])
}

/// Sums by node, reused from tree to tree.
#[derive(Debug, Clone, Default)]
pub(crate) struct Sums {
    lanes: Vec<[f64; LANES]>,
    /// The sum of every node's own rows.
    pub(crate) by_node: Vec<f64>,
}

impl Sums {
    fn clear(&mut self, n_nodes: usize) {
        self.lanes.clear();
        self.lanes.resize(n_nodes, [0.0; LANES]);
    }

    fn finish(&mut self) {
        self.by_node.clear();
        self.by_node.extend(self.lanes.iter().map(total));
    }

    /// Sums residuals by leaf.
    pub(crate) fn gather(&mut self, residuals: &[f64], labels: &[NodeLabel], n_nodes: usize) {
        self.clear(n_nodes);
        let lanes = self.lanes.as_mut_slice();
        let mut residuals = residuals.chunks_exact(LANES);
        let mut labels = labels.chunks_exact(LANES);
        for (r, at) in residuals.by_ref().zip(labels.by_ref()) {
            for lane in 0..LANES {
                lanes[at[lane] as usize][lane] += r[lane];
            }
        }
        for (r, &at) in residuals.remainder().iter().zip(labels.remainder()) {
            lanes[at as usize][0] += r;
        }
        self.finish();
    }

    /// Adds the change of the row's leaf in the previous tree to each residual, which with the tree's own value
    /// is eq. 4.7, and then sums residuals as [`Self::gather`] does.
    pub(crate) fn carry_and_gather(
        &mut self,
        residuals: &mut [f64],
        (before, changes): (&TreeState, &[f64]),
        tree: &TreeState,
    ) {
        self.clear(tree.nodes.len());
        let lanes = self.lanes.as_mut_slice();
        let done = row_passes_simd::carry_and_gather(residuals, (before, changes), tree, lanes);
        let (residuals, before, labels) =
            (&mut residuals[done..], &before.labels[done..], &tree.labels[done..]);
        let mut residuals = residuals.chunks_exact_mut(LANES);
        let mut before = before.chunks_exact(LANES);
        let mut labels = labels.chunks_exact(LANES);
        for ((r, was), at) in residuals.by_ref().zip(before.by_ref()).zip(labels.by_ref()) {
            for lane in 0..LANES {
                r[lane] += changes[was[lane] as usize];
                lanes[at[lane] as usize][lane] += r[lane];
            }
        }
        let rest = residuals.into_remainder().iter_mut().zip(before.remainder()).zip(labels.remainder());
        for ((r, &was), &at) in rest {
            *r += changes[was as usize];
            lanes[at as usize][0] += *r;
        }
        self.finish();
    }
}

/// Adds the change of the row's leaf to each residual.
pub(crate) fn carry(residuals: &mut [f64], labels: &[NodeLabel], changes: &[f64]) {
    for (r, &at) in residuals.iter_mut().zip(labels) {
        *r += changes[at as usize];
    }
}

/// The sum of squares.
pub(crate) fn squares(residuals: &[f64]) -> f64 {
    let mut lanes = [0.0; LANES];
    let chunks = residuals.chunks_exact(LANES);
    let rest: f64 = chunks.remainder().iter().map(|r| r * r).sum();
    for r in chunks {
        for lane in 0..LANES {
            lanes[lane] += r[lane] * r[lane];
        }
    }
    total(&lanes) + rest
}

/// The span of a leaf's rows.
pub(crate) fn span(column: &SortedColumn, labels: &[NodeLabel], leaf: NodeLabel) -> Span {
    let ranks = column.ranks();
    let rows = ranks.iter().zip(labels);
    if column.has_missing() {
        return column.span(rows.filter(|(_, at)| **at == leaf).map(|(&rank, _)| rank));
    }
    let (low, high) = rows.fold((u32::MAX, 0), |(low, high), (&rank, &at)| {
        let own = at == leaf;
        (low.min(if own { rank } else { u32::MAX }), high.max(if own { rank } else { 0 }))
    });
    Span { low, high, has_missing: false }
}

/// Number, and sum of residuals, of a leaf's rows whose rank is not above `rank`.
pub(crate) fn part(
    residuals: &[f64],
    ranks: &[u32],
    labels: &[NodeLabel],
    leaf: NodeLabel,
    rank: u32,
) -> (u32, f64) {
    let (mut sums, mut counts) = ([0.0; LANES], [0; LANES]);
    let chunks = residuals.chunks_exact(LANES).zip(ranks.chunks_exact(LANES)).zip(labels.chunks_exact(LANES));
    for ((r, own), at) in chunks {
        for lane in 0..LANES {
            let inside = u64::from(at[lane] == leaf) & u64::from(!goes_right(own[lane], rank));
            sums[lane] += only_if(inside, r[lane]);
            counts[lane] += inside;
        }
    }
    for i in residuals.len() / LANES * LANES..residuals.len() {
        if labels[i] == leaf && !goes_right(ranks[i], rank) {
            sums[0] += residuals[i];
            counts[0] += 1;
        }
    }
    (counts.iter().sum::<u64>() as u32, total(&sums))
}

/// Number, and sum of residuals, of those of some rows that are in a leaf.
pub(crate) fn among(residuals: &[f64], rows: &[u32], labels: &[NodeLabel], leaf: NodeLabel) -> (u32, f64) {
    let (mut sums, mut count) = ([0.0; LANES], 0);
    let (chunks, rest) = rows.as_chunks::<LANES>();
    let mut add = |lane: usize, row: u32| {
        let inside = u64::from(labels[row as usize] == leaf);
        sums[lane] += only_if(inside, residuals[row as usize]);
        count += inside;
    };
    for rows in chunks {
        (0..LANES).for_each(|lane| add(lane, rows[lane]));
    }
    for &row in rest {
        add(0, row);
    }
    (count as u32, total(&sums))
}

/// The number if `one` is 1, and zero if it is 0. Written without a branch, which would be unpredictable.
pub(crate) fn only_if(one: u64, number: f64) -> f64 {
    f64::from_bits(number.to_bits() & one.wrapping_neg())
}

/// Labels the rows of a split leaf with its children.
pub(crate) fn split_labels(
    labels: &mut [NodeLabel],
    ranks: &[u32],
    leaf: NodeLabel,
    rank: u32,
    [left, right]: [NodeLabel; 2],
) {
    with_vectors!(move || {
        for (at, &own) in labels.iter_mut().zip(ranks) {
            let side = if goes_right(own, rank) { right } else { left };
            *at = if *at == leaf { side } else { *at };
        }
    });
}

/// Labels the rows of two leaves with their parent, and adds the leaves' values back to the residuals.
pub(crate) fn join_labels(
    labels: &mut [NodeLabel],
    residuals: &mut [f64],
    children: [(NodeLabel, f64); 2],
    parent: NodeLabel,
) {
    let [(left, left_value), (right, right_value)] = children;
    with_vectors!(move || {
        for (at, r) in labels.iter_mut().zip(residuals) {
            *r += if *at == left {
                left_value
            } else if *at == right {
                right_value
            } else {
                0.0
            };
            *at = if *at == left || *at == right { parent } else { *at };
        }
    });
}
