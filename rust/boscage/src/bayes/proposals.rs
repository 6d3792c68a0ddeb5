//! How a particle decides at a node, and what its decision is worth (section 3.3).

use super::leaf::LeafModel;
use super::nodes::{Choices, Cut, NodeId, Nodes, Weighing};
use super::target::Target;
use super::weights::log_sum_exp;
use crate::mondrian::Stream;

/// The proposal kernel `Q` of Algorithm 3.1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Proposal {
    /// The prior itself.
    Prior,
    /// As the prior, but the cut falls into each gap between neighbouring rows equally often.
    Empirical,
    /// Proportional to prior times likelihood of the tree so far (eq. 3.5).
    #[default]
    Optimal,
    /// The optimal proposal on so many dimensions, drawn anew at each node (section 3.5).
    OptimalSubset(usize),
    /// The same seven times in ten, and else the prior on these dimensions: what the optimal proposal of a node does
    /// not think of may still be best for the nodes below.
    Exploring(usize),
}

/// How often [`Proposal::Exploring`] draws from the prior.
const EXPLORES: f64 = 0.3;

/// What becomes of a node.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Decision {
    /// It is a leaf.
    Stop,
    /// It is split.
    Split {
        /// Which way rows go.
        cut: Cut,
        /// The same in the user's units.
        threshold: f64,
    },
}

/// The extents of a node that a particle considers.
#[derive(Debug)]
pub(crate) enum Considered {
    All,
    These(Vec<usize>),
}

impl Proposal {
    /// How the gaps of single extents must be weighed before a decision.
    pub(crate) fn weighing(self) -> Option<Weighing> {
        match self {
            Self::Prior | Self::Optimal => None,
            Self::Empirical => Some(Weighing::Equal),
            Self::OptimalSubset(_) | Self::Exploring(_) => Some(Weighing::Likely),
        }
    }

    /// The logarithm of a particle's new weight over its old one, from what [`Self::decide`] gave and the logarithm of
    /// the ratio of likelihoods.
    pub(crate) fn log_weight(self, decided: f64, log_gain: f64) -> f64 {
        match self {
            Self::Prior | Self::Empirical => decided + log_gain,
            Self::Optimal | Self::OptimalSubset(_) => decided,
            // Prior times likelihood over the mixture of both densities.
            Self::Exploring(_) => {
                -log_sum_exp(&[libm::log(1.0 - EXPLORES) - decided, libm::log(EXPLORES) - log_gain])
            }
        }
    }

    /// The extents that a particle considers at an open node. `retained` is a decision that was made before, for
    /// which they are drawn.
    pub(crate) fn consider<L: LeafModel>(
        self,
        (target, nodes): (&Target<'_, L>, &Nodes<'_, L>),
        id: NodeId,
        retained: Option<Decision>,
        stream: &mut Stream,
    ) -> Considered {
        let extents = nodes.get(id).extents();
        let first = match retained {
            Some(Decision::Split { cut, .. }) => extents.iter().position(|e| e.dimension == cut.dimension),
            _ => None,
        };
        let mut one = || first.unwrap_or_else(|| target.draw_extent(extents, stream));
        match self {
            Self::Optimal => Considered::All,
            Self::Prior | Self::Empirical if extents.is_empty() => Considered::These(Vec::new()),
            Self::Prior | Self::Empirical => Considered::These(vec![one()]),
            Self::OptimalSubset(n) => {
                Considered::These(subset((0..extents.len()).collect(), n, first, stream))
            }
            Self::Exploring(n) => {
                // The prior is drawn from too: of unequal dimensions only where all are there.
                let n = if target.prior.log_weights().is_none() { n } else { extents.len() };
                Considered::These(subset((0..extents.len()).collect(), n, first, stream))
            }
        }
    }

    /// Decides at a node (or takes the retained decision), and gives the logarithm of
    /// `P(decision) / Q(decision)` of eq. 3.7, times the ratio of likelihoods if `Q` sees them ([`Self::log_weight`]).
    pub(crate) fn decide<L: LeafModel>(
        self,
        (target, nodes, id): (&Target<'_, L>, &Nodes<'_, L>, NodeId),
        considered: &Considered,
        retained: Option<Decision>,
        stream: &mut Stream,
    ) -> (Decision, f64) {
        if nodes.get(id).extents().is_empty() {
            return (Decision::Stop, 0.0);
        }
        match (self, considered) {
            (Self::Prior, Considered::These(these)) => {
                (retained.unwrap_or_else(|| draw_prior(target, nodes, id, these[0], stream)), 0.0)
            }
            (Self::Empirical, Considered::These(these)) => {
                let decision =
                    retained.unwrap_or_else(|| draw_empirical(target, nodes, id, these[0], stream));
                (decision, empirical_weight(target, nodes, id, these[0], decision))
            }
            (_, Considered::All) => {
                let choices = nodes.get(id).choices();
                let decision =
                    retained.unwrap_or_else(|| draw_likely((target, nodes, id), choices, |i| i, stream));
                (decision, choices.log_total() - nodes.get(id).log_likelihood)
            }
            (_, Considered::These(these)) => {
                // The subset is an auxiliary variable: drawn uniformly here, and in the target uniformly among
                // those that have the dimension of the cut, n / m times as often for m of n extents. With splits
                // weighed so, the ratio is the normaliser, whatever is decided.
                let choices = Choices::new(nodes.choice_logs(id, these.iter().copied()));
                let decision = retained.unwrap_or_else(|| {
                    if matches!(self, Self::Exploring(_)) && stream.unit() < EXPLORES {
                        draw_prior(target, nodes, id, explored(target, nodes, id, these, stream), stream)
                    } else {
                        draw_likely((target, nodes, id), &choices, |i| these[i], stream)
                    }
                });
                (decision, choices.log_total() - nodes.get(id).log_likelihood)
            }
        }
    }
}

/// `n` of some things, uniformly; with `first`, uniformly among the sets that have it.
fn subset(mut all: Vec<usize>, n: usize, first: Option<usize>, stream: &mut Stream) -> Vec<usize> {
    let n = n.min(all.len());
    let mut drawn = 0;
    if let Some(first) = first {
        all.swap(0, first);
        drawn = 1;
    }
    for i in drawn..n {
        let other = i + stream.below(all.len() - i);
        all.swap(i, other);
    }
    all.truncate(n);
    all
}

/// The extent for a draw from the prior, of those considered: all if they are unequal.
fn explored<L: LeafModel>(
    target: &Target<'_, L>,
    nodes: &Nodes<'_, L>,
    id: NodeId,
    these: &[usize],
    stream: &mut Stream,
) -> usize {
    if target.prior.log_weights().is_none() {
        return these[stream.below(these.len())];
    }
    target.draw_extent(nodes.get(id).extents(), stream)
}

fn draw_prior<L: LeafModel>(
    target: &Target<'_, L>,
    nodes: &Nodes<'_, L>,
    id: NodeId,
    extent: usize,
    stream: &mut Stream,
) -> Decision {
    let node = nodes.get(id);
    if stream.unit() >= target.prior.split_probability(node.depth) {
        return Decision::Stop;
    }
    let extent = node.extents()[extent];
    let column = target.table.column(extent.dimension);
    let threshold = column.threshold((extent.low, extent.high), stream.unit());
    let cut = Cut { dimension: extent.dimension, rank: column.last_rank_below(threshold) };
    Decision::Split { cut, threshold }
}

fn draw_empirical<L: LeafModel>(
    target: &Target<'_, L>,
    nodes: &Nodes<'_, L>,
    id: NodeId,
    extent: usize,
    stream: &mut Stream,
) -> Decision {
    if stream.unit() >= target.prior.split_probability(nodes.get(id).depth) {
        return Decision::Stop;
    }
    split_in_gap(target, nodes, id, extent, stream)
}

/// `(gap / extent) / (1 / number of gaps)`: the densities of the cut under prior and proposal.
fn empirical_weight<L: LeafModel>(
    target: &Target<'_, L>,
    nodes: &Nodes<'_, L>,
    id: NodeId,
    extent: usize,
    decision: Decision,
) -> f64 {
    let Decision::Split { cut, .. } = decision else {
        return 0.0;
    };
    let (ends, gaps) = (nodes.get(id).extents()[extent], nodes.get(id).gaps(extent));
    let gap = gaps.around(cut.rank);
    let share = target.table.column(cut.dimension).share((gap.left, gap.right), (ends.low, ends.high));
    libm::log(share * gaps.len() as f64)
}

fn draw_likely<L: LeafModel>(
    (target, nodes, id): (&Target<'_, L>, &Nodes<'_, L>, NodeId),
    choices: &Choices,
    extent: impl Fn(usize) -> usize,
    stream: &mut Stream,
) -> Decision {
    match choices.at(stream.unit()) {
        0 => Decision::Stop,
        i => split_in_gap(target, nodes, id, extent(i - 1), stream),
    }
}

/// A gap by its weight, and a threshold uniform in it.
fn split_in_gap<L: LeafModel>(
    target: &Target<'_, L>,
    nodes: &Nodes<'_, L>,
    id: NodeId,
    extent: usize,
    stream: &mut Stream,
) -> Decision {
    let dimension = nodes.get(id).extents()[extent].dimension;
    let gap = nodes.get(id).gaps(extent).at(stream.unit());
    let threshold = target.table.column(dimension).threshold((gap.left, gap.right), stream.unit());
    Decision::Split { cut: Cut { dimension, rank: gap.left }, threshold }
}
