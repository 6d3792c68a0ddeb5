//! The trait for leaves of any kind: targets need not be normal.

use crate::data::goes_right;
use std::fmt::Debug;
use std::ops::{Add, Sub};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::bart::leaves::statistics::LeafStatistics;
use crate::bart::state::tree::{NodeLabel, Transfer, TreeState};
use crate::bayes::leaf::model::{ConjugateLeaf, SubtractedCut};
use crate::error::Result;
use crate::random::keyed::Stream;
use crate::validate::check;

/// A model of targets given a sum of trees. Given all trees but one, the likelihood of a leaf's value must
/// depend on the leaf's rows through statistics that add up over rows. Given their sum it must be possible to
/// integrate the value out, and to draw it.
///
/// Normal targets have a specialised and faster implementation in [`BartRegressor`](crate::BartRegressor),
/// with the same sampler. [`PoissonLeaves`](crate::PoissonLeaves) is an example of another model.
pub trait LeafModel: Clone + Send + Sync {
    /// Sufficient statistics of some rows for the value of their leaf. They may have rounding errors, since
    /// statistics are also subtracted from those of a larger set of rows.
    type Stats: Copy + Default + Debug + Send + Sync + Add<Output = Self::Stats> + Sub<Output = Self::Stats>;

    /// Number of rows.
    fn n_rows(&self) -> usize;

    /// The statistics of a row at which the other trees sum to `others`.
    fn stats(&self, row: usize, others: f64) -> Self::Stats;

    /// Logarithm of the marginal likelihood of the rows of a leaf, with its value integrated out (`l` of
    /// eqs. 3.1 and 4.9). Factors of rows that do not depend on the tree may be omitted. The fit fails if the
    /// result is NaN or infinite.
    fn log_marginal(&self, stats: Self::Stats) -> f64;

    /// Draws a leaf's value given its rows; from the prior if there are none.
    fn draw(&self, stats: Self::Stats, stream: &mut Stream) -> f64;

    /// Draws all other unknowns, given the sum of trees at every row. It is called before every sweep.
    fn update(&mut self, sums: &[f64], stream: &mut Stream) {
        let _ = (sums, stream);
    }

    /// Logarithm of the likelihood of the targets, given the sum of trees at every row.
    fn log_likelihood(&self, sums: &[f64]) -> f64;
}

/// The statistics of all rows for one tree given the others, as a leaf model for the samplers of Bayesian
/// trees.
#[derive(Debug)]
pub(crate) struct RowStats<'a, M: LeafModel> {
    pub(crate) model: &'a M,
    pub(crate) stats: &'a [M::Stats],
    /// Whether some `log_marginal` was not finite.
    is_wrong: AtomicBool,
}

impl<'a, M: LeafModel> RowStats<'a, M> {
    pub(crate) fn new(model: &'a M, stats: &'a [M::Stats]) -> Self {
        Self { model, stats, is_wrong: AtomicBool::new(false) }
    }

    /// The model's `log_marginal`. If that is not finite, returns zero and records the fault for
    /// [`Self::check`].
    fn log_marginal(&self, stats: M::Stats) -> f64 {
        let log = self.model.log_marginal(stats);
        if log.is_finite() {
            return log;
        }
        self.is_wrong.store(true, Ordering::Relaxed);
        0.0
    }

    /// Checks that all marginal likelihoods so far were finite.
    ///
    /// # Errors
    /// [`Error::InvalidSetting`](crate::Error::InvalidSetting).
    pub(crate) fn check(&self) -> Result<()> {
        let is_right = !self.is_wrong.load(Ordering::Relaxed);
        check("log_marginal of the leaf model", is_right, "finite", &"an infinite number or NaN")
    }
}

impl<M: LeafModel> ConjugateLeaf for RowStats<'_, M> {
    type Stats = M::Stats;
    type MovingCut<'a>
        = SubtractedCut<'a, Self>
    where
        Self: 'a;

    fn empty(&self) -> M::Stats {
        M::Stats::default()
    }

    fn add(&self, stats: &mut M::Stats, row: u32) {
        *stats = *stats + self.stats[row as usize];
    }

    fn rest(&self, all: &M::Stats, part: &M::Stats) -> M::Stats {
        *all - *part
    }

    fn log_likelihood(&self, stats: &M::Stats) -> f64 {
        self.log_marginal(*stats)
    }

    fn moving_cut<'a>(&'a self, all: &M::Stats) -> SubtractedCut<'a, Self> {
        SubtractedCut::new(self, all)
    }
}

/// The leaf statistics that grow, prune and shift need, by node.
#[derive(Debug)]
pub(crate) struct NodeStats<'a, M: LeafModel> {
    pub(crate) rows: &'a RowStats<'a, M>,
    pub(crate) by_node: &'a mut Vec<M::Stats>,
}

impl<M: LeafModel> LeafStatistics for NodeStats<'_, M> {
    type Sum = M::Stats;

    fn sum(&self, id: NodeLabel) -> M::Stats {
        self.by_node[id as usize]
    }

    fn join(a: M::Stats, b: M::Stats) -> M::Stats {
        a + b
    }

    fn log_likelihood(&self, _: u32, sum: M::Stats) -> f64 {
        self.rows.log_marginal(sum)
    }

    fn part(&self, tree: &TreeState, id: NodeLabel, ranks: &[u32], rank: u32) -> (u32, [M::Stats; 2]) {
        let (mut n_left, mut sides) = (0, [M::Stats::default(); 2]);
        for ((&at, &own), &stats) in tree.labels.iter().zip(ranks).zip(self.rows.stats) {
            if at == id {
                let side = usize::from(goes_right(own, rank));
                sides[side] = sides[side] + stats;
                n_left += u32::from(side == 0);
            }
        }
        (n_left, sides)
    }

    fn among(&self, labels: &[NodeLabel], id: NodeLabel, rows: &[u32]) -> (u32, [M::Stats; 2]) {
        let (mut n, mut inside) = (0, M::Stats::default());
        for &row in rows {
            if labels[row as usize] == id {
                n += 1;
                inside = inside + self.rows.stats[row as usize];
            }
        }
        (n, [inside, self.sum(id) - inside])
    }

    fn moved(
        &mut self,
        labels: &mut [NodeLabel],
        rows: &[u32],
        from: (NodeLabel, M::Stats),
        to: (NodeLabel, M::Stats),
    ) {
        for &row in rows {
            let at = &mut labels[row as usize];
            *at = if *at == from.0 { to.0 } else { *at };
        }
        (self.by_node[from.0 as usize], self.by_node[to.0 as usize]) = (from.1, to.1);
    }

    fn after(&self, transfers: &[Transfer]) -> Vec<M::Stats> {
        let [mut left, mut came] = [0, 1].map(|_| vec![M::Stats::default(); self.by_node.len()]);
        for &Transfer { row, from, to } in transfers {
            let own = self.rows.stats[row as usize];
            left[from as usize] = left[from as usize] + own;
            came[to as usize] = came[to as usize] + own;
        }
        // Statistics of the other rows are differences of a leaf and a part of it, computed once.
        self.by_node.iter().zip(left).zip(came).map(|((&sum, left), came)| sum - left + came).collect()
    }

    fn rerouted(&mut self, _: &[Transfer], sums: Vec<M::Stats>) {
        *self.by_node = sums;
    }

    fn grown(&mut self, n_nodes: usize, _: NodeLabel, children: [(NodeLabel, M::Stats); 2]) {
        self.by_node.resize(n_nodes, M::Stats::default());
        for (child, sum) in children {
            self.by_node[child as usize] = sum;
        }
    }

    fn pruned(
        &mut self,
        labels: &mut [NodeLabel],
        children: [NodeLabel; 2],
        (parent, sum): (NodeLabel, M::Stats),
    ) {
        for at in labels {
            *at = if children.contains(at) { parent } else { *at };
        }
        self.by_node[parent as usize] = sum;
    }
}
