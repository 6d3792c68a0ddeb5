//! The pass over rows for trees with few leaves: four rows at a time are compared with each leaf, instead of
//! looking up the leaf of each row.

use pulp::{Arch, Simd, WithSimd};

use crate::bart::state::tree::{NodeLabel, TreeState};

/// Number of partial sums (lanes) of a leaf, so that additions do not depend on each other.
pub(crate) const LANES: usize = 4;

/// Largest number of leaves for which comparison is faster.
const FEW: usize = 3;

/// A label that no leaf has.
const NONE: NodeLabel = NodeLabel::MAX;

/// Adds the change of the row's leaf in the previous tree to each residual, and sums residuals by leaf into
/// `lanes`, with the same bits as the plain pass. Returns the number of rows processed: all except an
/// incomplete last chunk; none if a tree has more leaves, or if the processor has no vectors of four numbers.
pub(crate) fn carry_and_gather(
    residuals: &mut [f64],
    (before, changes): (&TreeState, &[f64]),
    tree: &TreeState,
    lanes: &mut [[f64; LANES]],
) -> usize {
    match before.n_leaves().max(tree.n_leaves()) {
        ..=2 => pass::<2>(residuals, (before, changes), tree, lanes),
        FEW => pass::<FEW>(residuals, (before, changes), tree, lanes),
        _ => 0,
    }
}

fn pass<const K: usize>(
    residuals: &mut [f64],
    (before, changes): (&TreeState, &[f64]),
    tree: &TreeState,
    lanes: &mut [[f64; LANES]],
) -> usize {
    let mut changed = [(NONE, 0.0); K];
    changed.iter_mut().zip(before.leaves()).for_each(|(at, id)| *at = (id, changes[id as usize]));
    let mut leaves = [NONE; K];
    leaves.iter_mut().zip(tree.leaves()).for_each(|(at, id)| *at = id);
    let done = residuals.len() / LANES * LANES;
    let pass = Pass { residuals, before: &before.labels, changed, labels: &tree.labels, leaves };
    let Some(sums) = Arch::new().dispatch(pass) else { return 0 };
    for (id, sums) in leaves.into_iter().zip(sums).filter(|(id, _)| *id != NONE) {
        lanes[id as usize] = sums;
    }
    done
}

struct Pass<'a, const K: usize> {
    residuals: &'a mut [f64],
    /// Labels of rows in the previous tree, and the change of each of its leaves.
    before: &'a [NodeLabel],
    changed: [(NodeLabel, f64); K],
    /// Labels of rows in the current tree, and the leaves to sum over.
    labels: &'a [NodeLabel],
    leaves: [NodeLabel; K],
}

impl<const K: usize> WithSimd for Pass<'_, K> {
    type Output = Option<[[f64; LANES]; K]>;

    #[expect(clippy::inline_always, reason = "only what is inlined is compiled for the processor's vectors")]
    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> Self::Output {
        (S::F64_LANES >= LANES).then(|| self.run())
    }
}

impl<const K: usize> Pass<'_, K> {
    #[expect(clippy::inline_always, reason = "as above")]
    #[inline(always)]
    fn run(self) -> [[f64; LANES]; K] {
        let Self { residuals, before, changed, labels, leaves } = self;
        let (residuals, _) = residuals.as_chunks_mut::<LANES>();
        let (before, _) = before.as_chunks::<LANES>();
        let (labels, _) = labels.as_chunks::<LANES>();
        let mut sums = [[0.0; LANES]; K];
        for ((r, was), at) in residuals.iter_mut().zip(before).zip(labels) {
            // Converted to the width of the values that they select.
            let (was, at) = (was.map(u64::from), at.map(u64::from));
            let mut change = [0; LANES];
            for (id, value) in changed {
                for lane in 0..LANES {
                    change[lane] |= if was[lane] == u64::from(id) { value.to_bits() } else { 0 };
                }
            }
            for lane in 0..LANES {
                r[lane] += f64::from_bits(change[lane]);
            }
            for (sum, id) in sums.iter_mut().zip(leaves) {
                for lane in 0..LANES {
                    sum[lane] += if at[lane] == u64::from(id) { r[lane] } else { 0.0 };
                }
            }
        }
        sums
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bart::state::row_passes::{Sums, carry};
    use crate::bart::state::tree::NodeKind;
    use crate::bayes::cuts::{RankCut, Rule};
    use crate::control::{Control, Threads};
    use crate::data::Rows;
    use crate::data::sorted::columns::SortedColumns;
    use crate::random::keyed::Stream;

    /// A tree with this many leaves, whose rows are in any of them.
    fn tree(n_leaves: usize, table: &SortedColumns, stream: &mut Stream) -> TreeState {
        let mut tree = TreeState::new(table);
        let rule = Rule { cut: RankCut { feature: 0, rank: 0 }, threshold: 0.0 };
        for _ in 1..n_leaves {
            let leaves: Vec<_> = tree.leaves().collect();
            let id = leaves[stream.below(leaves.len())];
            let child = *tree.get(id);
            assert_eq!(child.kind, NodeKind::Leaf);
            tree.grow(id, rule, [child; 2]);
        }
        let leaves: Vec<_> = tree.leaves().collect();
        assert_eq!(leaves.len(), tree.n_leaves());
        tree.labels.iter_mut().for_each(|at| *at = leaves[stream.below(leaves.len())]);
        tree
    }

    #[test]
    fn vectors_give_the_bits_of_single_numbers() {
        let mut stream = Stream::new(8, 0);
        for n in [1, 3, 4, 37, 1000] {
            let x: Vec<f64> = (0..n).map(f64::from).collect();
            let table = SortedColumns::new(Rows::from_f64(&x, 1).unwrap(), &Threads::new(1), &Control::new())
                .unwrap();
            for n_leaves in [(1, 1), (1, 2), (2, 2), (3, 1), (2, 3), (3, 4), (5, 2)] {
                let before = tree(n_leaves.0, &table, &mut stream);
                let now = tree(n_leaves.1, &table, &mut stream);
                let changes: Vec<f64> = before.nodes.iter().map(|_| stream.normal()).collect();
                let mut residuals: Vec<f64> = (0..n).map(|_| stream.normal()).collect();
                let (mut expected, mut sums) = (residuals.clone(), Sums::default());
                carry(&mut expected, &before.labels, &changes);
                sums.gather(&expected, &now.labels, now.nodes.len());
                let mut found = Sums::default();
                found.carry_and_gather(&mut residuals, (&before, &changes), &now);
                assert_eq!(residuals, expected);
                assert_eq!(found.by_node, sums.by_node);
            }
        }
    }
}
