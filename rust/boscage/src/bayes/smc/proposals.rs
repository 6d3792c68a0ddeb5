//! The proposals: how a particle decides about a node, and the factor of its weight (eqs. 3.7 and 3.8).

use crate::bayes::cuts::RankCut;
use crate::bayes::leaf::model::ConjugateLeaf;
use crate::bayes::smc::nodes::{SharedNodes, Weighing};
use crate::bayes::smc::shared_node::{SharedNodeId, WeightedChoices};
use crate::bayes::target::TargetPosterior;
use crate::math::logs::log_sum_exp;
use crate::random::keyed::Stream;
use crate::random::shuffle::draw_next;

/// The proposal kernel `Q` of Algorithm 3.1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Proposal {
    /// The prior.
    Prior,
    /// The prior, except that each gap between neighbouring rows has the same probability.
    Empirical,
    /// Proportional to prior times likelihood of the partial tree (eq. 3.5).
    #[default]
    Optimal,
    /// The optimal proposal on a random subset of this many features, drawn at each node (section 3.5). A feature with
    /// missing values is drawn as two, one for each side to which these may go.
    OptimalSubset(usize),
    /// As `OptimalSubset` with probability 0.7, and else the prior on the same features. A cut that explains
    /// little by itself may be the best one together with the cuts below it.
    ///
    /// If features have weights, and there are more features than are considered, they are drawn by weight
    /// with replacement.
    Exploring(usize),
}

/// The probability that [`Proposal::Exploring`] draws from the prior.
const EXPLORES: f64 = 0.3;

/// A decision about a node.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Decision {
    /// The node is a leaf.
    Stop,
    /// The node is split.
    Split {
        /// The cut by ranks.
        cut: RankCut,
        /// The cut's threshold in the user's units.
        threshold: f64,
    },
}

/// A decision, or the extent in which a cut is still to be drawn.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Plan {
    /// The decision.
    Made(Decision),
    /// Cuts this extent of the node, in a gap drawn by weight.
    Cut(usize),
}

impl Plan {
    /// The plan of a choice: 0 is to stop, `i + 1` is to cut extent `i`.
    fn of_choice(choice: usize, extent: impl Fn(usize) -> usize) -> Self {
        choice.checked_sub(1).map_or(Self::Made(Decision::Stop), |i| Self::Cut(extent(i)))
    }
}

impl Proposal {
    /// The weights of gaps; None if the proposal needs none.
    pub(crate) fn weighing(self) -> Option<Weighing> {
        match self {
            Self::Prior => None,
            Self::Empirical => Some(Weighing::Equal),
            Self::Optimal => Some(Weighing::LikelyOfAll),
            Self::OptimalSubset(_) | Self::Exploring(_) => Some(Weighing::Likely),
        }
    }

    /// Whether the considered extents are weighed before one is chosen.
    pub(crate) fn weighs_considered(self) -> bool {
        matches!(self, Self::OptimalSubset(_) | Self::Exploring(_))
    }

    /// The logarithm of a particle's new weight over its old one (eq. 3.7). `decided` is the sum of what
    /// [`Self::choose`] and [`Self::cut`] returned, and `log_gain` the logarithm of the likelihood ratio.
    pub(crate) fn log_weight(self, decided: f64, log_gain: f64) -> f64 {
        match self {
            Self::Prior | Self::Empirical => decided + log_gain,
            Self::Optimal | Self::OptimalSubset(_) => decided,
            // Prior times likelihood, divided by the density of the mixture.
            Self::Exploring(_) => {
                -log_sum_exp(&[libm::log(1.0 - EXPLORES) - decided, libm::log(EXPLORES) - log_gain])
            }
        }
    }

    /// The extents that a particle considers at an open node; an empty list stands for all. The feature of a
    /// `retained` cut is always among them.
    pub(crate) fn consider<L: ConjugateLeaf>(
        self,
        (target, nodes): (&TargetPosterior<'_, L>, &SharedNodes<'_, L>),
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

    /// Whether the considered extents are independent draws from the prior; the node has `n_extents`.
    fn considers_by_weight<L: ConjugateLeaf>(
        self,
        target: &TargetPosterior<'_, L>,
        n_extents: usize,
    ) -> bool {
        matches!(self, Self::Exploring(n) if n < n_extents) && target.is_weighted()
    }

    /// Chooses for one node between stopping and the considered extents (by eq. 3.5 if optimal), or follows the
    /// retained decision. Also returns the logarithm of `P(decision) / Q(decision)` of eq. 3.7 without the place
    /// of the cut, which is a term of eq. 3.8; it includes the likelihood ratio if `Q` depends on the likelihood
    /// ([`Self::log_weight`]).
    pub(crate) fn choose<L: ConjugateLeaf>(
        self,
        (target, nodes, id): (&TargetPosterior<'_, L>, &SharedNodes<'_, L>, SharedNodeId),
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
                // The subset of `m` of the node's `n` extents is an auxiliary variable. The proposal draws it
                // uniformly; under the target it is uniform, given the cut, among the subsets that contain
                // the cut's feature, which are fewer by the factor `m / n`. With each extent counted `n / m`
                // times, the ratio of target to proposal is the sum of weights, for every decision.
                //
                // Draws from the prior with replacement are an auxiliary variable, too, and so is the
                // position of the cut's extent among the `m` draws. Under the target this position is
                // uniform, so each draw stands for the share `1 / m` of the prior.
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
                        let extent = if by_weight || !target.is_weighted() {
                            considered[stream.below(considered.len())]
                        } else {
                            // All extents are considered here.
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

    /// Draws a cut of an extent (by eq. 3.5 if optimal), or takes the retained one. Also returns what its place
    /// adds to the logarithm of [`Self::choose`] (eq. 3.7).
    pub(crate) fn cut<L: ConjugateLeaf>(
        self,
        (target, nodes, id): (&TargetPosterior<'_, L>, &SharedNodes<'_, L>, SharedNodeId),
        extent: usize,
        retained: Option<Decision>,
        stream: &mut Stream,
    ) -> (Decision, f64) {
        let gaps = nodes.get(id).gaps(extent);
        let ends = nodes.get(id).extents()[extent];
        let column = target.table.column(ends.feature);
        let decision = retained.unwrap_or_else(|| {
            // The gap is drawn by weight, and the threshold uniformly in it.
            let gap = gaps.at(stream.unit());
            let (rank, threshold) = column.cut_in((gap.left, gap.right), stream.unit());
            Decision::Split { cut: RankCut { feature: ends.feature, rank }, threshold }
        });
        match (self, decision) {
            (Self::Empirical, Decision::Split { cut, .. }) => {
                // The density of the cut under the prior over that under the proposal:
                // `(gap / extent) / (1 / number of gaps)`.
                let gap = gaps.around(cut.rank);
                let share = column.share((gap.left, gap.right), ends.span);
                (decision, libm::log(share * gaps.len() as f64))
            }
            _ => (decision, 0.0),
        }
    }
}

/// A uniform subset of `n` of some items. If `first` is given, a uniform one among the subsets that contain
/// it.
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

/// `n` indices drawn independently by the logarithms of their shares. If `first` is given, one of them is
/// `first`.
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
    target: &TargetPosterior<'_, L>,
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
    let (rank, threshold) = column.cut(extent.span, stream.unit());
    Decision::Split { cut: RankCut { feature: extent.feature, rank }, threshold }
}
