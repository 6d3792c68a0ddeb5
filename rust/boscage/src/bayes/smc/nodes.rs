//! The nodes of growing trees, shared between particles.
//!
//! Particles that came to a node by the same cuts share it, so that its rows, its features, the weights of
//! its cuts and its children are computed once. The rows of a cut are divided only when a particle is about
//! to expand one of the children, since most proposed cuts do not survive that long.

use crate::data::goes_right;

use crate::bayes::cuts::{Extent, Gaps, RankCut, Sorter, extents};
use crate::bayes::leaf::model::ConjugateLeaf;
use crate::bayes::smc::row_set::RowSet;
use crate::bayes::smc::shared_node::{SharedNode, SharedNodeId, WeightedChoices};
use crate::bayes::target::{SubtreeRoot, TargetPosterior};
use crate::control::{Control, Threads};
use crate::error::Result;

/// The weights of gaps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Weighing {
    /// Equal weights.
    Equal,
    /// Weights by length and likelihood.
    Likely,
    /// As `Likely`, for a cut that is drawn from all extents of a node together: gaps that are negligible
    /// beside another extent are left out.
    LikelyOfAll,
}

/// What is kept of the weighed gaps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keep {
    /// All gaps, to draw a cut.
    Gaps,
    /// Only the sums if the node is large, to choose an extent.
    Sums,
}

/// Nodes with more rows do not keep their gaps, which take more memory than the rows.
const LARGE: u32 = 1 << 14;

/// Logarithms of the weights beside which gaps of a node may be negligible.
#[derive(Debug)]
struct Floors {
    /// That of stopping, divided by the probability of a split, which the weights of gaps do not contain.
    stop: f64,
    /// The largest of the extents that are weighed already, and the shares of all, which weights of gaps do not contain;
    /// only for gaps that are negligible beside other extents.
    heaviest: f64,
    log_shares: Vec<f64>,
}

/// The nodes that particles may still expand.
#[derive(Debug)]
pub(crate) struct SharedNodes<'a, L: ConjugateLeaf> {
    target: &'a TargetPosterior<'a, L>,
    threads: &'a Threads,
    control: &'a Control,
    all: Vec<SharedNode<L::Stats>>,
    /// Left nodes of pairs that no particle uses any more.
    free: Vec<SharedNodeId>,
    /// Bytes added since nodes were last dropped, and the number at which they are dropped again.
    grown: usize,
    limit: usize,
}

impl<'a, L: ConjugateLeaf> SharedNodes<'a, L> {
    /// The number of the root.
    pub(crate) const ROOT: SharedNodeId = 0;

    /// The root alone.
    pub(crate) fn new(
        target: &'a TargetPosterior<'a, L>,
        threads: &'a Threads,
        control: &'a Control,
        SubtreeRoot { rows, depth }: SubtreeRoot,
    ) -> Self {
        let stats = target.leaf.of_rows(rows.iter().copied());
        let log_likelihood = target.leaf.log_likelihood(&stats);
        let nowhere = (Self::ROOT, RankCut { feature: 0, rank: 0 });
        let mut root = SharedNode::new(depth, rows.len() as u32, stats, log_likelihood, nowhere);
        root.rows = Some(RowSet::new(rows.into_iter()));
        // Nodes come in pairs; the root's neighbour is not used.
        let neighbour = SharedNode::new(0, 0, target.leaf.empty(), 0.0, nowhere);
        let all = vec![root, neighbour];
        let mut nodes = Self { target, threads, control, all, free: Vec::new(), grown: 0, limit: 0 };
        nodes.limit = nodes.room();
        nodes
    }

    pub(crate) fn get(&self, id: SharedNodeId) -> &SharedNode<L::Stats> {
        &self.all[id as usize]
    }

    /// Computes the rows and the extents of nodes that lack them.
    ///
    /// # Errors
    /// An interrupt, here and in the methods below.
    pub(crate) fn open(&mut self, ids: &[SharedNodeId]) -> Result<()> {
        let waiting = ids.iter().filter(|&&id| self.get(id).rows.is_none());
        let mut pairs: Vec<SharedNodeId> = waiting.map(|id| id & !1).collect();
        distinct(&mut pairs);
        let parted = self.map(pairs.len(), self.n_rows(&pairs), |i| self.part(pairs[i]))?;
        for (&left, (low, high)) in pairs.iter().zip(parted) {
            self.grown += low.bytes() + high.bytes();
            self.all[left as usize].rows = Some(low);
            self.all[left as usize + 1].rows = Some(high);
        }
        let mut new: Vec<SharedNodeId> = ids.to_vec();
        new.retain(|&id| self.get(id).extents.is_none());
        distinct(&mut new);
        let varying = self.target.table.varying();
        let pieces_of = |&id: &SharedNodeId| varying.chunks(self.piece(id)).map(move |some| (id, some));
        let pieces: Vec<(SharedNodeId, &[u32])> = new.iter().flat_map(pieces_of).collect();
        let work = self.n_rows(&new) * varying.len();
        let found = self.map(pieces.len(), work, |i| {
            let rows = self.get(pieces[i].0).listed_rows();
            extents(self.target.table, &rows, pieces[i].1.iter().copied())
        })?;
        for (&(id, _), found) in pieces.iter().zip(found) {
            self.all[id as usize].extents.get_or_insert_default().extend(found);
        }
        for &id in &new {
            let node = &mut self.all[id as usize];
            node.extents.get_or_insert_default();
            node.gaps.resize_with(node.extents().len(), || None);
        }
        Ok(())
    }

    /// Weighs the gaps of some extents, given as pairs of a node and the index of an extent.
    pub(crate) fn weigh(
        &mut self,
        mut wanted: Vec<(SharedNodeId, usize)>,
        weighing: Weighing,
        keep: Keep,
    ) -> Result<()> {
        wanted.retain(|&(id, extent)| match &self.get(id).gaps[extent] {
            None => true,
            Some(gaps) => gaps.is_forgotten() && keep == Keep::Gaps,
        });
        distinct(&mut wanted);
        let of_nodes: Vec<&[(SharedNodeId, usize)]> = wanted.chunk_by(|a, b| a.0 == b.0).collect();
        let floors: Vec<Floors> =
            of_nodes.iter().map(|extents| self.floors(extents[0].0, weighing)).collect();
        let pieces: Vec<_> = of_nodes
            .iter()
            .zip(&floors)
            .flat_map(|(extents, floors)| {
                extents.chunks(self.piece(extents[0].0)).map(move |piece| (piece, floors))
            })
            .collect();
        let work = wanted.iter().map(|(id, _)| self.get(*id).n_rows as usize).sum();
        let weigh = |i: usize| self.weigh_piece(pieces[i].0, weighing, pieces[i].1, keep);
        let found = self.map(pieces.len(), work, weigh)?;
        for (&(id, extent), gaps) in wanted.iter().zip(found.into_iter().flatten()) {
            self.grown += gaps.bytes();
            self.all[id as usize].gaps[extent] = Some(gaps);
        }
        Ok(())
    }

    /// Weighs all extents of nodes, in several waves: the first extents show which gaps of the later ones are
    /// negligible, and these take no memory.
    pub(crate) fn weigh_all(&mut self, ids: &[SharedNodeId]) -> Result<()> {
        /// Pieces of a node in a wave, enough for several threads.
        const PIECES: usize = 4;
        for wave in 0.. {
            let mut wanted = Vec::new();
            for &id in ids {
                let n = PIECES * self.piece(id);
                let end = self.get(id).extents().len().min((wave + 1) * n);
                wanted.extend((wave * n..end).map(|extent| (id, extent)));
            }
            if wanted.is_empty() {
                break;
            }
            self.weigh(wanted, Weighing::LikelyOfAll, Keep::Sums)?;
        }
        Ok(())
    }

    /// Computes the weights of the choices at nodes whose gaps are all weighed.
    pub(crate) fn weigh_choices(&mut self, ids: impl Iterator<Item = SharedNodeId>) {
        for id in ids {
            let node = self.get(id);
            if node.choices.is_none() {
                let choices = WeightedChoices::new(self.choice_logs(id, 0..node.extents().len()));
                self.all[id as usize].choices = Some(choices);
            }
        }
    }

    /// Drops gaps, which are weighed again on demand: those of large nodes, and all if memory is scarce.
    pub(crate) fn forget_gaps(&mut self, ids: impl Iterator<Item = SharedNodeId>) {
        let is_full = self.is_full();
        for id in ids {
            let node = &mut self.all[id as usize];
            if node.n_rows > LARGE || is_full {
                for gaps in node.gaps.iter_mut().flatten() {
                    self.grown = self.grown.saturating_sub(gaps.bytes());
                    gaps.forget();
                }
            }
        }
    }

    /// Logarithms of the weights of stopping, and of splitting along each of some extents. If these are `m`
    /// of the node's `n` extents, each counts `n / m` times (section 3.3.1).
    pub(crate) fn choice_logs(
        &self,
        id: SharedNodeId,
        extents: impl ExactSizeIterator<Item = usize>,
    ) -> Vec<f64> {
        let log_shares = self.target.log_shares(self.get(id).extents());
        let log_each = libm::log(log_shares.len() as f64 / extents.len() as f64);
        self.choice_logs_by_share(id, extents.map(|extent| (extent, log_each + log_shares[extent])))
    }

    /// [`Self::choice_logs`] with the logarithm of the prior share that each extent stands for.
    pub(crate) fn choice_logs_by_share(
        &self,
        id: SharedNodeId,
        extents: impl Iterator<Item = (usize, f64)>,
    ) -> Vec<f64> {
        let node = self.get(id);
        let (log_split, log_stop) = self.target.log_split_stop(node.depth);
        let splits = extents.map(|(extent, share)| log_split + share + node.gaps(extent).log_total());
        std::iter::once(log_stop + node.log_likelihood).chain(splits).collect()
    }

    /// Makes the children of cuts, given as pairs of a node and a cut.
    pub(crate) fn split(&mut self, mut cuts: Vec<(SharedNodeId, RankCut)>) -> Result<()> {
        cuts.retain(|(id, cut)| !self.get(*id).children.contains_key(cut));
        distinct(&mut cuts);
        let work = cuts.iter().map(|(id, _)| self.get(*id).n_rows as usize).sum();
        let made = self.map(cuts.len(), work, |i| self.children_of(cuts[i].0, cuts[i].1))?;
        self.grown += made.len() * self.bytes_of_children();
        for (&(id, cut), [left, right]) in cuts.iter().zip(made) {
            let child = match self.free.pop() {
                Some(free) => {
                    self.all[free as usize] = left;
                    self.all[free as usize + 1] = right;
                    free
                }
                None => {
                    self.all.extend([left, right]);
                    self.all.len() as SharedNodeId - 2
                }
            };
            self.all[id as usize].children.insert(cut, child);
        }
        Ok(())
    }

    /// Whether enough memory was added to drop unused nodes.
    pub(crate) fn is_full(&self) -> bool {
        self.grown > self.limit
    }

    /// Drops all nodes except those that particles have to expand, and the parents whose rows these still
    /// need.
    pub(crate) fn keep(&mut self, open: impl Iterator<Item = SharedNodeId>) {
        let mut is_open = vec![false; self.all.len()];
        let mut has_parts = vec![false; self.all.len()];
        for id in open {
            is_open[id as usize] = true;
            if self.get(id).rows.is_none() {
                has_parts[self.get(id).parent as usize] = true;
            }
        }
        self.free.clear();
        for left in (0..self.all.len()).step_by(2).rev() {
            let pair = [left, left + 1];
            if !pair.iter().any(|&id| is_open[id] || has_parts[id]) {
                self.free.push(left as SharedNodeId);
            }
            for id in pair {
                let node = &mut self.all[id];
                if is_open[id] {
                    node.children.retain(|_, left| is_open[*left as usize] || is_open[*left as usize + 1]);
                } else {
                    node.drop_findings();
                    if !has_parts[id] {
                        node.rows = None;
                    }
                }
            }
        }
        let held: usize = self.all.iter().map(SharedNode::bytes).sum();
        self.grown = 0;
        self.limit = self.room().max(held / 4);
    }

    /// Bytes that may be added before nodes are dropped: half the size of the stored values in single precision, and
    /// a few megabytes.
    fn room(&self) -> usize {
        const SOME: usize = 1 << 22;
        SOME + size_of::<f32>() / 2 * self.target.table.n_stored()
    }

    /// The approximate memory of two nodes without rows and gaps.
    fn bytes_of_children(&self) -> usize {
        2 * (size_of::<SharedNode<L::Stats>>() + size_of::<Extent>() * self.target.table.varying().len())
    }

    /// The results of `f(i)` for `i < n`; all calls together read `work` rows.
    fn map<R: Send>(&self, n: usize, work: usize, f: impl Fn(usize) -> R + Sync + Send) -> Result<Vec<R>> {
        /// Rows below which threads cost more than they save.
        const FEW: usize = 4000;
        if work < FEW { Ok((0..n).map(f).collect()) } else { self.threads.try_map(n, self.control, f) }
    }

    /// Number of features of a node that a thread handles as one task; small enough that threads share a
    /// large node.
    fn piece(&self, id: SharedNodeId) -> usize {
        /// Each task reads all rows of the node once.
        const MOST_TASKS: usize = 256;
        let large = (LARGE / self.get(id).n_rows.max(1)) as usize;
        large.max(self.target.table.varying().len().div_ceil(MOST_TASKS)).max(1)
    }

    fn n_rows(&self, ids: &[SharedNodeId]) -> usize {
        ids.iter().map(|&id| self.get(id).n_rows as usize).sum()
    }

    /// The rows of a left child and of its right neighbour.
    fn part(&self, left: SharedNodeId) -> (RowSet, RowSet) {
        let node = self.get(left);
        let column = self.target.table.column(node.cut.feature);
        let of = |id: SharedNodeId| RowSet::with_capacity(self.get(id).n_rows as usize);
        let (mut low, mut high) = (of(left), of(left + 1));
        for row in self.get(node.parent).rows() {
            let side = if goes_right(column.rank(row), node.cut.rank) { &mut high } else { &mut low };
            side.push(row);
        }
        low.shrink();
        high.shrink();
        (low, high)
    }

    /// The weights beside which gaps of a node may be negligible.
    fn floors(&self, id: SharedNodeId, weighing: Weighing) -> Floors {
        let node = self.get(id);
        let (log_split, log_stop) = self.target.log_split_stop(node.depth);
        let stop = log_stop + node.log_likelihood - log_split;
        if weighing != Weighing::LikelyOfAll {
            return Floors { stop, heaviest: f64::NEG_INFINITY, log_shares: Vec::new() };
        }
        let log_shares = self.target.log_shares(node.extents());
        let known = node.gaps.iter().zip(&log_shares);
        let totals = known.filter_map(|(gaps, log_share)| Some(gaps.as_ref()?.log_total() + log_share));
        Floors { stop, heaviest: totals.fold(f64::NEG_INFINITY, f64::max), log_shares }
    }

    fn weigh_piece(
        &self,
        piece: &[(SharedNodeId, usize)],
        weighing: Weighing,
        floors: &Floors,
        keep: Keep,
    ) -> Vec<Gaps> {
        let node = self.get(piece[0].0);
        let rows = node.listed_rows();
        let mut sorter = Sorter::new(self.target.table, &rows);
        let gaps = piece.iter().map(|&(_, index)| {
            let extent = node.extents()[index];
            let floor = match weighing {
                Weighing::Equal => return sorter.equal_gaps(extent),
                Weighing::Likely => floors.stop,
                Weighing::LikelyOfAll => floors.stop.max(floors.heaviest - floors.log_shares[index]),
            };
            let mut gaps = sorter.likely_gaps(extent, self.target.leaf, &node.stats, floor);
            if keep == Keep::Sums && node.n_rows > LARGE {
                gaps.forget();
            }
            gaps
        });
        gaps.collect()
    }

    fn children_of(&self, id: SharedNodeId, cut: RankCut) -> [SharedNode<L::Stats>; 2] {
        let (node, leaf) = (self.get(id), self.target.leaf);
        let column = self.target.table.column(cut.feature);
        let mut n_left = 0;
        let low = node.rows().filter(|&row| !goes_right(column.rank(row), cut.rank));
        let left = leaf.of_rows(low.inspect(|_| n_left += 1));
        let right = leaf.rest(&node.stats, &left);
        [(n_left, left), (node.n_rows - n_left, right)].map(|(n_rows, stats)| {
            let log_likelihood = leaf.log_likelihood(&stats);
            SharedNode::new(node.depth + 1, n_rows, stats, log_likelihood, (id, cut))
        })
    }
}

fn distinct<T: Ord>(items: &mut Vec<T>) {
    items.sort_unstable();
    items.dedup();
}
