//! The predictive distribution of one tree (Algorithm 6.5): a mixture over where a test row branches off.

use crate::data::Scalar;
use crate::mondrian::prediction::shared_path::SharedPath;
use crate::mondrian::prediction::stop::Stop;
use crate::mondrian::regression::hierarchy::belief_propagation::{
    Above, CoarsePrior, Hyperparameters, Message, Messages, Told,
};
use crate::mondrian::regression::hierarchy::branch_clock::{
    ClockGain, clock_gain, coarse_rest, end_of_coarse, mean_clock_gain, unit,
};
use crate::mondrian::regression::hierarchy::branch_law::BranchLaw;
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
    pub(crate) hyper: Hyperparameters,
    /// The coarse part; `hyper` has it as well, or is without it where it is known at the nodes.
    coarse: CoarsePrior,
    /// The clocks of both at the lifetime.
    end: f64,
    coarse_end: f64,
    /// The time from which on the coarse part has no effect.
    coarse_until: f64,
    /// The unit of a clock's variance.
    unit: f64,
    /// The factor that the squares of the distances between components will get.
    apart: f64,
}

impl PredictivePrior {
    pub(crate) fn new(hyper: Hyperparameters, coarse: CoarsePrior, lifetime: f64, apart: f64) -> Self {
        let (end, coarse_end) = (hyper.clock(lifetime), coarse.clock(lifetime));
        let coarse_until = end_of_coarse(coarse, hyper.noise_variance);
        Self { hyper, coarse, end, coarse_end, coarse_until, unit: unit(&hyper), apart }
    }

    fn is_coarse_known(&self) -> bool {
        self.hyper.coarse.variance == 0.0
    }
}

/// What is to be known of a predictive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Detail {
    /// Its shape: where a branch's mean and variance depend on its time, a component for each piece of the time.
    Shape,
    /// Its mean and variance: one component for all times of a branch.
    Moments,
    /// Its mean: components have no variance.
    Mean,
}

/// A test row's stops in one tree, and the law of its branch above them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StopsAndLaws<'a> {
    pub(crate) stops: &'a [Stop],
    /// Number of the first stops above which it surely does not branch off.
    pub(crate) n_inside: usize,
    /// Those above the others; none where it does not branch off.
    pub(crate) laws: &'a [Option<BranchLaw>],
}

impl<'a> StopsAndLaws<'a> {
    /// The stops above which the row may branch off: each with its depth and the law.
    pub(crate) fn outside(self) -> impl Iterator<Item = (usize, &'a Stop, &'a Option<BranchLaw>)> {
        let outside = self.stops.iter().enumerate().skip(self.n_inside).zip(self.laws);
        outside.map(|((depth, stop), law)| (depth, stop, law))
    }
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
/// and the branch's time integrated out). Calls `emit` for every component, with the variance of its mean over the branch's
/// time. For [`Detail::Shape`] this variance, times the factor on distances between components, is already a part of the
/// component's, and 0 is passed.
///
/// `scale` is a node's own factor on its variances, but for two: how well the rows around a node are predicted says neither
/// how far targets range elsewhere (the coarse part of what the prior spends below a branch) nor where a row branches off (the
/// variance of a component's mean).
pub(crate) fn predict_exact<S: Scalar>(
    tree: PredictingTree<'_, S>,
    prior: &PredictivePrior,
    row: StopsAndLaws<'_>,
    scale: impl Fn(NodeId) -> f64,
    detail: Detail,
    path: &mut SharedPath<AboveStop>,
    mut emit: impl FnMut(Component, f64),
) {
    let hyper = &prior.hyper;
    let StopsAndLaws { stops, n_inside, .. } = row;
    let make = |depth: usize, before| tree.above(stops[depth].node, before, prior);
    let mut last = path.follow(tree.number, &stops[..n_inside], make);
    let mut not_separated = 1.0;
    for (depth, stop, law) in row.outside() {
        let here = path.at(depth, (tree.number, stop.node), |before| make(depth, before));
        last = Some(here);
        if let Some(law) = law {
            let AboveStop { above, clock, .. } = here;
            let weight = not_separated * law.probability;
            if weight > LOST {
                let Told { message: below, clock: here } = tree.messages.told(stop.node);
                let bridge =
                    Bridge { above, below, length: here - clock, rest: prior.end - clock, unit: prior.unit };
                let branch = BranchPrior { prior, stop, law, scale: scale(stop.node) };
                bridge.emit(&branch, weight, detail, &mut emit);
            }
            not_separated *= 1.0 - law.probability;
            if not_separated <= LOST {
                return;
            }
        }
    }
    let Some(AboveStop { node, mut above, clock }) = last else {
        // What of the coarse part `end` does not have.
        let beyond = if prior.is_coarse_known() { prior.coarse_end } else { 0.0 };
        let variance = prior.end + beyond + hyper.noise_variance;
        return emit(Component { weight: 1.0, mean: hyper.mu, variance }, 0.0);
    };
    let Told { message, clock: here } = tree.messages.told(node);
    above.variance += (here - clock).max(0.0);
    let Above { mean, variance } = above.observe(message);
    let variance = (variance + hyper.noise_variance) * scale(node);
    emit(Component { weight: not_separated, mean, variance }, 0.0);
}

/// The fast approximation of section 6.3.3: each node's posterior is the empirical mean and variance of
/// its rows' targets, and a branch takes its parent's.
pub(crate) fn predict_fast<S: Scalar>(
    tree: &Tree<S, NodeMoments>,
    prior: Component,
    noise_variance: f64,
    stops: &[Stop],
    mut emit: impl FnMut(Component, f64),
) {
    let own = |node: NodeId| {
        let moments = tree.statistics.moments(node);
        let variance = moments.squares / tree.statistics.weight(node, tree.arena.n_rows(node));
        Component { weight: 1.0, mean: moments.mean, variance: variance + noise_variance }
    };
    let mut parent = prior;
    let mut not_separated = 1.0;
    for (i, stop) in stops.iter().enumerate() {
        let probability = branch_probability(stop);
        if probability > 0.0 {
            emit(Component { weight: not_separated * probability, ..parent }, 0.0);
            not_separated *= 1.0 - probability;
        }
        parent = own(stop.node);
        if i + 1 == stops.len() && not_separated > 0.0 {
            emit(Component { weight: not_separated, ..parent }, 0.0);
        }
    }
    if stops.is_empty() {
        emit(prior, 0.0);
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

/// What is known of a branch before the targets.
#[derive(Clone, Copy)]
struct BranchPrior<'a> {
    prior: &'a PredictivePrior,
    stop: &'a Stop,
    law: &'a BranchLaw,
    /// The factor on the variances.
    scale: f64,
}

impl BranchPrior<'_> {
    /// What the clock gains in a piece of the time.
    fn piece(&self, piece: u32) -> (BranchLaw, ClockGain) {
        let hyper = &self.prior.hyper;
        let law = self.law.piece(self.stop, (piece, PIECES));
        (law, clock_gain(&law, self.stop, hyper))
    }

    /// The coarse part that is spent below the branch, and what of it the clock has too.
    fn free(&self, law: &BranchLaw, gain: &ClockGain) -> (f64, f64) {
        let PredictivePrior { ref hyper, coarse, coarse_end, coarse_until, .. } = *self.prior;
        if self.prior.is_coarse_known() {
            return (coarse_rest(law, self.stop, hyper, (coarse, coarse_end, coarse_until)), 0.0);
        }
        let free = (coarse_end - coarse.clock(self.stop.after) - gain.coarse).max(0.0);
        (free, free)
    }
}

/// The belief about a new node between a parent and a child, and about the leaf of a test row that branches
/// off there: a Brownian bridge from the belief above to the message below. With `V` the variance above
/// plus the clock elapsed, and `C` that of the whole way down to the message, the new node has mean `m + (V
/// / C)(M - m)` and variance `V (C - V) / C`.
#[derive(Debug, Clone, Copy)]
struct Bridge {
    above: Above,
    below: Message,
    /// The clock between the parent and the child.
    length: f64,
    /// The clock between the parent and the lifetime.
    rest: f64,
    /// The unit of the clock's spread.
    unit: f64,
}

/// The mean of a test row's own leaf, its expected variance given the branch's time, and the variance of its mean over that
/// time.
struct OwnLeaf {
    mean: f64,
    variance: f64,
    moved: f64,
}

impl Bridge {
    fn emit(
        &self,
        branch: &BranchPrior<'_>,
        weight: f64,
        detail: Detail,
        emit: &mut impl FnMut(Component, f64),
    ) {
        let BranchPrior { prior, stop, law, scale } = *branch;
        let noise = prior.hyper.noise_variance;
        if detail == Detail::Mean {
            let mean = self.mean(mean_clock_gain(law, stop, &prior.hyper));
            return emit(Component { weight, mean, variance: 0.0 }, 0.0);
        }
        let component = |law: &BranchLaw, gain: &ClockGain, weight: f64| {
            let (free, within) = branch.free(law, gain);
            let leaf = self.at(gain.mean, gain.spread, within);
            let own = (leaf.variance + noise) * scale;
            // By rounding, what is free may be less than nothing, which matters where all else is smaller still.
            let variance = if own + free > 0.0 { own + free } else { own };
            (Component { weight, mean: leaf.mean, variance }, leaf.moved)
        };
        if detail == Detail::Moments {
            let (component, moved) = component(law, &clock_gain(law, stop, &prior.hyper), weight);
            return emit(component, moved);
        }
        let mut shape = |law: &BranchLaw, gain: &ClockGain, weight: f64| {
            let (component, moved) = component(law, gain, weight);
            emit(Component { variance: component.variance + prior.apart * moved, ..component }, 0.0);
        };
        if weight <= NOTICED || !self.varies(noise) {
            return shape(law, &clock_gain(law, stop, &prior.hyper), weight);
        }
        for piece in 0..PIECES {
            let (law, gain) = branch.piece(piece);
            shape(&law, &gain, weight / f64::from(PIECES));
        }
    }

    /// The clock of the whole way.
    fn whole(&self) -> f64 {
        self.above.variance + self.length + 1.0 / self.below.precision
    }

    /// The mean of the test row's own leaf if the clock is expected to gain so much until the branch.
    fn mean(&self, gain: f64) -> f64 {
        self.above.mean + (self.above.variance + gain) / self.whole() * (self.below.mean - self.above.mean)
    }

    /// The test row's own leaf (Algorithm 6.5) if the clock is expected to gain so much until the branch, with a variance of `spread` in squares
    /// of the unit; without `free`, a part of what is spent below the branch.
    fn at(&self, gain: f64, spread: f64, free: f64) -> OwnLeaf {
        let whole = self.whole();
        let v = self.above.variance + gain;
        let apart = self.below.mean - self.above.mean;
        let spread = self.unit * (self.unit / whole) * spread;
        let bridge = v * (1.0 - v / whole) - spread;
        let moved = spread * (apart / whole * apart);
        let variance = bridge.max(0.0) + (self.rest - gain - free).max(0.0);
        OwnLeaf { mean: self.mean(gain), variance, moved }
    }

    /// Whether predictions at the child and at the parent, with this noise, differ noticeably.
    fn varies(&self, noise: f64) -> bool {
        let (first, last) = (self.at(0.0, 0.0, 0.0), self.at(self.length, 0.0, 0.0));
        let (a, b) = (first.variance + noise, last.variance + noise);
        let apart = first.mean - last.mean;
        a > 1.2 * b || b > 1.2 * a || apart * (apart / a.min(b)) > 0.02
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mondrian::prediction::stop::Branch;
    use crate::mondrian::regression::hierarchy::branch_clock::tests::{PRIORS, averaged, hyper, stops};

    const SCALE: f64 = 3.0;
    const APART: f64 = 0.0625;

    fn bridge(prior: &PredictivePrior, stop: &Stop) -> Bridge {
        let after = prior.hyper.clock(stop.after);
        Bridge {
            above: Above { mean: 0.3, variance: 0.2 },
            below: Message { mean: 1.7, precision: 4.0 },
            length: prior.hyper.clock(stop.time) - after,
            rest: prior.end - after,
            unit: prior.unit,
        }
    }

    /// Mean and variance of all components, whose distances get their factor.
    fn moments(bridge: &Bridge, branch: &BranchPrior<'_>, detail: Detail) -> [f64; 2] {
        let mut parts = Vec::new();
        bridge.emit(branch, 1.0, detail, &mut |component, between| parts.push((component, between)));
        let mean: f64 = parts.iter().map(|(part, _)| part.weight * part.mean).sum();
        let variance = |(part, between): &(Component, f64)| {
            let apart = part.mean - mean;
            part.weight * (part.variance + APART * (between + apart * apart))
        };
        [mean, parts.iter().map(variance).sum()]
    }

    /// The same by its definition: a Brownian bridge at a branch of any time, averaged over very many times.
    fn integrated(bridge: &Bridge, prior: &PredictivePrior, stop: &Stop) -> [f64; 2] {
        let at = |time: f64| {
            let gain = prior.hyper.clock(time) - prior.hyper.clock(stop.after);
            let free = prior.coarse_end - prior.coarse.clock(time);
            let within = if prior.is_coarse_known() { 0.0 } else { free };
            let (v, whole) = (bridge.above.variance + gain, bridge.whole());
            let own = v * (1.0 - v / whole) + (bridge.rest - gain - within) + prior.hyper.noise_variance;
            let mean = bridge.above.mean + v / whole * (bridge.below.mean - bridge.above.mean);
            [mean, mean * mean, SCALE * own + free]
        };
        let [mean, square, given_time] = match stop.branch {
            Branch::Rate(rate) => averaged(rate, stop.time - stop.after, |time| at(stop.after + time)),
            Branch::At(time) => at(time),
            Branch::Never => panic!("it branches off"),
        };
        [mean, given_time + APART * (square - mean * mean)]
    }

    /// One component for all times, and one for each piece of the time, both have the moments of the integral over the time:
    /// the node's factor is on the variance given the time alone, and the distances' factor on how far the mean moves.
    #[test]
    fn moments_are_those_of_the_shape_and_of_the_integral() {
        let known = CoarsePrior { variance: 0.8, rate: 11.0 };
        let in_messages = PRIORS.map(|prior| (hyper(prior), hyper(prior).coarse));
        let beside = PRIORS[..4].iter().map(|&prior| (hyper(prior), known));
        for (hyper, coarse) in in_messages.into_iter().chain(beside) {
            let prior = PredictivePrior::new(hyper, coarse, f64::INFINITY, APART);
            let last = stops().into_iter().take(4).filter(|stop| stop.time < f64::INFINITY);
            let cuts = last.map(|stop| Stop { branch: Branch::At(0.5 * (stop.after + stop.time)), ..stop });
            for stop in stops().into_iter().chain(cuts) {
                let bridge = bridge(&prior, &stop);
                let law = BranchLaw::new(&stop).unwrap();
                let branch = BranchPrior { prior: &prior, stop: &stop, law: &law, scale: SCALE };
                let expected = integrated(&bridge, &prior, &stop);
                for detail in [Detail::Moments, Detail::Shape] {
                    for (found, expected) in moments(&bridge, &branch, detail).into_iter().zip(expected) {
                        // Where little of the coarse part is left, it is not followed.
                        let apart = (found - expected).abs();
                        assert!(apart < 1e-6 * expected.abs(), "{detail:?} {found} {expected} {stop:?}");
                    }
                }
            }
        }
    }
}
