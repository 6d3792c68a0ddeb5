//! How a particle decides at a node, and what its decision is worth: one factor of eqs. 3.7 and 3.8.

use crate::bayes::cuts::RankCut;
use crate::bayes::leaf::model::ConjugateLeaf;
use crate::bayes::smc::nodes::{SharedNodes, Weighing};
use crate::bayes::smc::shared_node::{SharedNodeId, WeightedChoices};
use crate::bayes::target::Target;
use crate::math::logs::log_sum_exp;
use crate::random::keyed::Stream;
use crate::random::shuffle::draw_next;

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
    /// The optimal proposal on so many features, drawn anew at each node (section 3.5).
    OptimalSubset(usize),
    /// The same with probability 0.7, and else the prior on these features: a cut that is bad by itself may be best with
    /// the cuts below it.
    ///
    /// If features have weights, and not all are considered, they are drawn by weight, with replacement.
    Exploring(usize),
}

/// The probability that [`Proposal::Exploring`] draws from the prior.
const EXPLORES: f64 = 0.3;

/// A decision about a node.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Decision {
    /// It is a leaf.
    Stop,
    /// It is split.
    Split {
        /// The cut by ranks.
        cut: RankCut,
        /// The cut's threshold in the user's units.
        threshold: f64,
    },
}

/// A decision, or the extent that is to be cut.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Plan {
    /// The decision is made.
    Made(Decision),
    /// To cut one of the node's extents, in a gap that is drawn by weight.
    Cut(usize),
}

impl Plan {
    /// The plan of a choice between stopping and some extents.
    fn of_choice(choice: usize, extent: impl Fn(usize) -> usize) -> Self {
        choice.checked_sub(1).map_or(Self::Made(Decision::Stop), |i| Self::Cut(extent(i)))
    }
}

impl Proposal {
    /// How gaps are weighed.
    pub(crate) fn weighing(self) -> Option<Weighing> {
        match self {
            Self::Prior => None,
            Self::Empirical => Some(Weighing::Equal),
            Self::Optimal => Some(Weighing::LikelyOfAll),
            Self::OptimalSubset(_) | Self::Exploring(_) => Some(Weighing::Likely),
        }
    }

    /// Whether the extents that a particle considers are weighed before it chooses one.
    pub(crate) fn weighs_considered(self) -> bool {
        matches!(self, Self::OptimalSubset(_) | Self::Exploring(_))
    }

    /// The logarithm of a particle's new weight over its old one, from what [`Self::choose`] and [`Self::cut`] gave
    /// and the logarithm of the ratio of likelihoods.
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

    /// The extents that a particle considers at an open node; none for all. `retained` is a decision that was made
    /// before, for which they are drawn.
    pub(crate) fn consider<L: ConjugateLeaf>(
        self,
        (target, nodes): (&Target<'_, L>, &SharedNodes<'_, L>),
        id: SharedNodeId,
        retained: Option<Decision>,
        stream: &mut Stream,
    ) -> Vec<usize> {
        let extents = nodes.get(id).extents();
        let first = match retained {
            Some(Decision::Split { cut, .. }) => extents.iter().position(|e| e.feature == cut.feature),
            _ => None,
        };
        let all = || (0..extents.len()).collect();
        match self {
            Self::Optimal => Vec::new(),
            Self::Prior | Self::Empirical if extents.is_empty() => Vec::new(),
            Self::Prior | Self::Empirical => {
                vec![first.unwrap_or_else(|| target.draw_extent(extents, stream))]
            }
            Self::Exploring(n) if self.considers_by_weight(target, extents.len()) => {
                by_weight(&target.log_shares(extents), n, first, stream)
            }
            Self::OptimalSubset(n) | Self::Exploring(n) => subset(all(), n, first, stream),
        }
    }

    /// Whether the extents considered, of so many, are independent draws from the prior.
    fn considers_by_weight<L: ConjugateLeaf>(self, target: &Target<'_, L>, n_extents: usize) -> bool {
        matches!(self, Self::Exploring(n) if n < n_extents) && target.prior.log_weights().is_some()
    }

    /// What to do at a node (or what the retained decision says), and the logarithm of `P(decision) / Q(decision)` of
    /// eq. 3.7 but for the place of a cut, times the ratio of likelihoods if `Q` sees them ([`Self::log_weight`]).
    pub(crate) fn choose<L: ConjugateLeaf>(
        self,
        (target, nodes, id): (&Target<'_, L>, &SharedNodes<'_, L>, SharedNodeId),
        considered: &[usize],
        retained: Option<Decision>,
        stream: &mut Stream,
    ) -> (Plan, f64) {
        let node = nodes.get(id);
        if node.extents().is_empty() {
            return (Plan::Made(Decision::Stop), 0.0);
        }
        match self {
            Self::Prior => {
                let decision =
                    retained.unwrap_or_else(|| draw_prior(target, nodes, id, considered[0], stream));
                (Plan::Made(decision), 0.0)
            }
            Self::Empirical => {
                let is_split = match retained {
                    Some(decision) => decision != Decision::Stop,
                    None => stream.unit() < target.prior.split_probability(node.depth),
                };
                let plan = if is_split { Plan::Cut(considered[0]) } else { Plan::Made(Decision::Stop) };
                (plan, 0.0)
            }
            Self::Optimal => {
                let choices = node.choices();
                let plan = match retained {
                    Some(decision) => Plan::Made(decision),
                    None => Plan::of_choice(choices.at(stream.unit()), |i| i),
                };
                (plan, choices.log_total() - node.log_likelihood)
            }
            Self::OptimalSubset(_) | Self::Exploring(_) => {
                // The subset is an auxiliary variable: drawn uniformly here, and in the target uniformly among
                // those that have the feature of the cut, n / m times as often for m of n extents. With splits
                // weighed so, the ratio is the normaliser, whatever is decided.
                // Independent draws from the prior are one too, and the place of the cut's among them another: uniform
                // in the target, so that the prior's share of each is one in as many as they are.
                let by_weight = self.considers_by_weight(target, node.extents().len());
                let extents = considered.iter().copied();
                let choices = WeightedChoices::new(if by_weight {
                    let log_share = -libm::log(considered.len() as f64);
                    nodes.choice_logs_by_share(id, extents.map(|extent| (extent, log_share)))
                } else {
                    nodes.choice_logs(id, extents)
                });
                let plan = match retained {
                    Some(decision) => Plan::Made(decision),
                    None if matches!(self, Self::Exploring(_)) && stream.unit() < EXPLORES => {
                        let extent = if by_weight || target.prior.log_weights().is_none() {
                            considered[stream.below(considered.len())]
                        } else {
                            // All of them are there.
                            target.draw_extent(node.extents(), stream)
                        };
                        Plan::Made(draw_prior(target, nodes, id, extent, stream))
                    }
                    None => Plan::of_choice(choices.at(stream.unit()), |i| considered[i]),
                };
                (plan, choices.log_total() - node.log_likelihood)
            }
        }
    }

    /// A cut of an extent (or the retained one), and what its place adds to the logarithm of [`Self::choose`].
    pub(crate) fn cut<L: ConjugateLeaf>(
        self,
        (target, nodes, id): (&Target<'_, L>, &SharedNodes<'_, L>, SharedNodeId),
        extent: usize,
        retained: Option<Decision>,
        stream: &mut Stream,
    ) -> (Decision, f64) {
        let gaps = nodes.get(id).gaps(extent);
        let ends = nodes.get(id).extents()[extent];
        let column = target.table.column(ends.feature);
        let decision = retained.unwrap_or_else(|| {
            // A gap by its weight, and a threshold uniform in it.
            let gap = gaps.at(stream.unit());
            let threshold = column.threshold((gap.left, gap.right), stream.unit());
            Decision::Split { cut: RankCut { feature: ends.feature, rank: gap.left }, threshold }
        });
        match (self, decision) {
            (Self::Empirical, Decision::Split { cut, .. }) => {
                // (gap / extent) / (1 / number of gaps): the densities of the cut under prior and proposal.
                let gap = gaps.around(cut.rank);
                let share = column.share((gap.left, gap.right), (ends.low, ends.high));
                (decision, libm::log(share * gaps.len() as f64))
            }
            _ => (decision, 0.0),
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
    for at in drawn..n {
        draw_next(&mut all, at, stream);
    }
    all.truncate(n);
    all
}

/// `n` places drawn independently by the logarithms of their shares; with `first`, one of them is it.
fn by_weight(log_shares: &[f64], n: usize, first: Option<usize>, stream: &mut Stream) -> Vec<usize> {
    let mut sum = 0.0;
    let add = |log: &f64| {
        sum += libm::exp(*log);
        sum
    };
    let sums: Vec<f64> = log_shares.iter().map(add).collect();
    let draw = || {
        let at = stream.unit() * sum;
        sums.partition_point(|&below| below <= at).min(sums.len() - 1)
    };
    first.into_iter().chain(std::iter::repeat_with(draw)).take(n).collect()
}

fn draw_prior<L: ConjugateLeaf>(
    target: &Target<'_, L>,
    nodes: &SharedNodes<'_, L>,
    id: SharedNodeId,
    extent: usize,
    stream: &mut Stream,
) -> Decision {
    let node = nodes.get(id);
    if stream.unit() >= target.prior.split_probability(node.depth) {
        return Decision::Stop;
    }
    let extent = node.extents()[extent];
    let column = target.table.column(extent.feature);
    let (rank, threshold) = column.cut((extent.low, extent.high), stream.unit());
    Decision::Split { cut: RankCut { feature: extent.feature, rank }, threshold }
}
