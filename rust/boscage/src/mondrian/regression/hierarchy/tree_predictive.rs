//! The predictive distribution of one tree (Algorithm 6.5): a mixture over where a test row branches off.

use crate::data::Scalar;
use crate::mondrian::prediction::shared_path::SharedPath;
use crate::mondrian::prediction::stop::Stop;
use crate::mondrian::regression::hierarchy::belief_propagation::{
    Above, CoarsePrior, Hyperparameters, Message, Messages, Told,
};
use crate::mondrian::regression::hierarchy::branch_clock::{branch_clock, expected_coarse, unit};
use crate::mondrian::regression::hierarchy::branch_time::branch_probability;
use crate::mondrian::regression::moments::NodeMoments;
use crate::mondrian::tree::Tree;
use crate::mondrian::tree::arena::NodeId;

/// One Gaussian of a predictive mixture.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Component {
    /// Its weight.
    pub weight: f64,
    /// Its mean.
    pub mean: f64,
    /// Its variance.
    pub variance: f64,
}

/// Components of no more weight are lost in rounding.
pub(crate) const LOST: f64 = 1e-14;

/// The prior of a predictive.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PredictivePrior {
    /// As in the messages.
    hyper: Hyperparameters,
    /// The coarse part; `hyper` has it as well, or is without it where it is known at the nodes.
    coarse: CoarsePrior,
    /// The clocks of both at the lifetime.
    end: f64,
    coarse_end: f64,
    /// The unit of a clock's variance.
    unit: f64,
}

impl PredictivePrior {
    pub(crate) fn new(hyper: Hyperparameters, coarse: CoarsePrior, lifetime: f64) -> Self {
        let (end, coarse_end) = (hyper.clock(lifetime), coarse.clock(lifetime));
        Self { hyper, coarse, end, coarse_end, unit: unit(&hyper) }
    }
}

/// How a branch's components stand for all its times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Detail {
    /// With the shape of their distribution.
    Shape,
    /// With its mean and variance.
    Moments,
}

/// A tree that predicts, by its number.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PredictingTree<'a, S> {
    pub(crate) number: usize,
    pub(crate) tree: &'a Tree<S, NodeMoments>,
    pub(crate) messages: &'a Messages,
}

/// The belief about a stop's parent from everything but the rows below the stop, and the parent's clock.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AboveStop {
    node: NodeId,
    above: Above,
    clock: f64,
}

impl<S: Scalar> PredictingTree<'_, S> {
    /// Given what belongs to the stop before, if there is one.
    fn above(&self, node: NodeId, before: Option<AboveStop>, prior: &PredictivePrior) -> AboveStop {
        let Some(AboveStop { node: parent, mut above, clock }) = before else {
            return AboveStop { node, above: Above { mean: prior.hyper.mu, variance: 0.0 }, clock: 0.0 };
        };
        let here = self.messages.told(parent).clock;
        above.variance += (here - clock).max(0.0);
        let sibling = sibling(self.tree, parent, node);
        AboveStop { node, above: above.observe(self.messages.told(sibling).at_parent(here)), clock: here }
    }
}

/// The exact predictive of one tree (eq. 6.3, Algorithm 6.5; with the leaf's own component of footnote 4 of section 6.3.4,
/// and the branch's time integrated out): calls `emit` for every component. `scale` is a node's own factor on its variances,
/// but for the coarse part of what the prior spends below a branch: how well the rows around a node are predicted does not
/// say how far targets range elsewhere.
pub(crate) fn predict_exact<S: Scalar>(
    tree: PredictingTree<'_, S>,
    prior: &PredictivePrior,
    stops: &[Stop],
    scale: impl Fn(NodeId) -> f64,
    detail: Detail,
    path: &mut SharedPath<AboveStop>,
    mut emit: impl FnMut(Component),
) {
    let PredictivePrior { ref hyper, coarse, end, coarse_end, unit } = *prior;
    let is_known = hyper.coarse.variance == 0.0;
    // What of it `end` does not have.
    let beyond = if is_known { coarse_end } else { 0.0 };
    let mut not_separated = 1.0;
    for (i, stop) in stops.iter().enumerate() {
        let AboveStop { mut above, clock, .. } =
            path.at(i, (tree.number, stop.node), |before| tree.above(stop.node, before, prior));
        let probability = branch_probability(stop);
        let weight = not_separated * probability;
        if weight > LOST {
            let Told { message: below, clock: here } = tree.messages.told(stop.node);
            let bridge = Bridge { above, clock, here, below, end, unit };
            let (noise, scale) = (hyper.noise_variance, scale(stop.node));
            let is_whole = detail == Detail::Moments || weight <= NOTICED || !bridge.varies(noise);
            let pieces = if is_whole { 1 } else { PIECES };
            for piece in 0..pieces {
                let clock = branch_clock(stop, hyper, probability, piece, pieces);
                let weight = weight / f64::from(pieces);
                let (free, within) = if is_known {
                    (coarse_end - expected_coarse(stop, coarse, probability, piece, pieces), 0.0)
                } else {
                    let free = (coarse_end - clock.coarse).max(0.0);
                    (free, free)
                };
                let (mean, variance) = bridge.at(clock.mean, clock.spread, within);
                emit(Component { weight, mean, variance: (variance + noise) * scale + free });
            }
        }
        not_separated *= 1.0 - probability;
        if not_separated <= LOST {
            return;
        }
        if i + 1 == stops.len() {
            let Told { message, clock: here } = tree.messages.told(stop.node);
            above.variance += (here - clock).max(0.0);
            let Above { mean, variance } = above.observe(message);
            let variance = (variance + hyper.noise_variance) * scale(stop.node);
            emit(Component { weight: not_separated, mean, variance });
        }
    }
    if stops.is_empty() {
        let variance = end + beyond + hyper.noise_variance;
        emit(Component { weight: 1.0, mean: hyper.mu, variance });
    }
}

/// The fast approximation of section 6.3.3: each node's posterior is the empirical mean and variance of
/// its rows' targets, and a branch takes its parent's.
pub(crate) fn predict_fast<S: Scalar>(
    tree: &Tree<S, NodeMoments>,
    prior: Component,
    noise_variance: f64,
    stops: &[Stop],
    mut emit: impl FnMut(Component),
) {
    let own = |node: NodeId| {
        let moments = tree.statistics.moments(node);
        let variance = moments.squares / tree.arena.n_rows(node) as f64;
        Component { weight: 1.0, mean: moments.mean, variance: variance + noise_variance }
    };
    let mut parent = prior;
    let mut not_separated = 1.0;
    for (i, stop) in stops.iter().enumerate() {
        let probability = branch_probability(stop);
        if probability > 0.0 {
            emit(Component { weight: not_separated * probability, ..parent });
            not_separated *= 1.0 - probability;
        }
        parent = own(stop.node);
        if i + 1 == stops.len() && not_separated > 0.0 {
            emit(Component { weight: not_separated, ..parent });
        }
    }
    if stops.is_empty() {
        emit(prior);
    }
}

pub(crate) fn sibling<S: Scalar>(tree: &Tree<S, NodeMoments>, parent: NodeId, node: NodeId) -> NodeId {
    let left = tree.arena.child(parent, false);
    if left == node { tree.arena.child(parent, true) } else { left }
}

/// The number of pieces of equal probability into which the time of a branch is divided where its
/// prediction depends on it.
const PIECES: u32 = 5;
/// Branches of less weight are one piece.
const NOTICED: f64 = 1e-3;

/// The belief about a new node between a parent and a child, and about the leaf of a test row that branches
/// off there: a Brownian bridge from the belief above to the message below. With `V` the variance above
/// plus the clock elapsed, and `C` that of the whole way down to the message, the new node has mean `m + (V
/// / C)(M - m)` and variance `V (C - V) / C`.
#[derive(Debug, Clone, Copy)]
struct Bridge {
    above: Above,
    /// The clock at the parent.
    clock: f64,
    /// The clock at the child.
    here: f64,
    below: Message,
    /// The clock at the lifetime.
    end: f64,
    /// The unit of the clock's spread.
    unit: f64,
}

impl Bridge {
    /// Mean and variance of the test row's own leaf if the clock at the branch has mean `expected`, and
    /// variance `spread` in squares of the unit; without `free`, a part of what is spent below the branch.
    fn at(&self, expected: f64, spread: f64, free: f64) -> (f64, f64) {
        let whole = self.above.variance + (self.here - self.clock) + 1.0 / self.below.precision;
        let v = self.above.variance + (expected - self.clock);
        let apart = self.below.mean - self.above.mean;
        let spread = self.unit * (self.unit / whole) * spread;
        let bridge = v * (1.0 - v / whole) - spread;
        let moved = spread * (apart / whole * apart);
        let variance = bridge.max(0.0) + moved + (self.end - expected - free).max(0.0);
        (self.above.mean + v / whole * apart, variance)
    }

    /// Whether predictions at the child and at the parent, with this noise, differ noticeably.
    fn varies(&self, noise: f64) -> bool {
        let (first, last) = (self.at(self.clock, 0.0, 0.0), self.at(self.here, 0.0, 0.0));
        let (a, b) = (first.1 + noise, last.1 + noise);
        let apart = first.0 - last.0;
        a > 1.2 * b || b > 1.2 * a || apart * (apart / a.min(b)) > 0.02
    }
}
