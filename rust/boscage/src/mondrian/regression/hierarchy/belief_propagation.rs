//! The posterior of one tree's means (eq. 6.2) by Gaussian belief propagation (thesis section 6.3.1).
//!
//! The prior is a Brownian motion that branches with the tree. It starts from `mu_H` at time 0, and its time is the clock
//! `v(t) = gamma_1 (sigma(gamma_2 t) - sigma(0)) = gamma_1 / 2 tanh(gamma_2 t / 2)`:
//!
//! `mu_j | mu_parent ~ N(mu_parent, v(tau_j) - v(tau_parent))`.
//!
//! Rows are observed at leaves with noise `sigma_y^2` (eq. 6.1).
//!
//! What the clock spends inside the data, where the rules for hyperparameters choose it, says little about how far targets
//! range far away from all data. So the prior has two parameters more than the thesis'. Both act near the root, where many
//! rows determine the means. Where the thesis' clock spends too little, a second, coarse part `B tanh(delta t / 2)` adds what
//! is missing. Where it spends too much, its first part comes later: a delay `t_0` makes it
//! `gamma_1 (sigma(gamma_2 (t - t_0)) - sigma(-gamma_2 t_0))`, which leaves `gamma_1 / (1 + e^(gamma_2 (t - t_0)))` after `t`.

use std::collections::HashMap;

use crate::data::Scalar;
use crate::math::dual::Real;
use crate::mondrian::regression::moments::NodeMoments;
use crate::mondrian::tree::Tree;
use crate::mondrian::tree::arena::{NodeId, NodeKind};

/// Hyperparameters of the hierarchy, shared by all trees of a forest.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Hyperparameters<R = f64> {
    /// Prior mean `mu_H`.
    pub mu: f64,
    /// `gamma_1`: the prior variance at infinite depth is half of it.
    pub gamma1: R,
    /// `gamma_2`: how fast the prior variance is spent, per unit of split time.
    pub gamma2: R,
    /// Noise variance `sigma_y^2`.
    pub noise_variance: R,
    /// `t_0`: how much later than the thesis' the clock runs.
    pub delay: f64,
    /// The prior's second part.
    pub coarse: CoarsePrior,
}

/// Prior variance that is spent beside the thesis' clock: `B tanh(delta t / 2)` between time 0 and `t`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CoarsePrior {
    /// `B`: the variance at infinite depth.
    pub variance: f64,
    /// `delta`: how fast it is spent, per unit of split time.
    pub rate: f64,
}

impl CoarsePrior {
    /// The thesis' prior, which has one part.
    pub const NONE: Self = Self { variance: 0.0, rate: 1.0 };

    /// The variance between time 0 and `t`.
    pub(crate) fn clock(&self, time: f64) -> f64 {
        if self.variance > 0.0 { 2.0 * self.variance * unit_clock(self.rate, 0.0, time) } else { 0.0 }
    }
}

impl<R: Real> Hyperparameters<R> {
    /// The clock `v(t) = gamma_1 (sigma(gamma_2 t) - sigma(0))`: the prior variance between time 0 and `t` (section 6.3);
    /// with its delay and its coarse part.
    pub(crate) fn clock(&self, time: f64) -> R {
        self.gamma1 * unit_clock(self.gamma2, self.delay, time) + R::constant(self.coarse.clock(time))
    }
}

/// The clock in units of `gamma_1`, without the coarse part.
pub(super) fn unit_clock<R: Real>(gamma2: R, delay: f64, time: f64) -> R {
    let half = R::constant(0.5);
    // `sigma(gamma_2 t) - 1/2`.
    let beyond_half = |time: f64| {
        if time == f64::INFINITY { half } else { half * (half * gamma2 * R::constant(time)).tanh() }
    };
    if delay == 0.0 { beyond_half(time) } else { beyond_half(time - delay) + beyond_half(delay) }
}

/// The clocks of a tree's nodes in units of `gamma_1`, for one `gamma_2` and delay; without the coarse part.
#[derive(Debug)]
pub(crate) struct UnitClocks {
    splits: Vec<f64>,
    end: f64,
    lifetime: f64,
}

impl UnitClocks {
    pub(crate) fn new<S: Scalar>(
        tree: &Tree<S, NodeMoments>,
        lifetime: f64,
        gamma2: f64,
        delay: f64,
    ) -> Self {
        let splits = tree.arena.times().map(|time| unit_clock(gamma2, delay, time)).collect();
        Self { splits, end: unit_clock(gamma2, delay, lifetime), lifetime }
    }

    /// A leaf's.
    pub(crate) fn end(&self) -> f64 {
        self.end
    }

    /// A split's, by rank.
    pub(crate) fn of_split(&self, rank: usize) -> f64 {
        self.splits[rank]
    }
}

/// The likelihood of the rows below a node given its mean: a Gaussian.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Message<R = f64> {
    pub(crate) precision: R,
    pub(crate) mean: R,
}

impl<R: Real> Message<R> {
    /// The likelihood given a value that differs from the node's mean by a Gaussian of this variance.
    fn through(self, variance: R) -> Self {
        let precision = self.precision / (R::constant(1.0) + self.precision * variance);
        Self { precision, mean: self.mean }
    }
}

/// A node's message and clock after the upward pass.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Told<R> {
    pub(crate) message: Message<R>,
    /// The node's clock; a leaf's is that of the lifetime.
    pub(crate) clock: R,
}

impl<R: Real> Told<R> {
    /// The message as it comes to a parent with this clock.
    pub(crate) fn at_parent(self, clock: R) -> Message<R> {
        self.message.through(self.clock - clock)
    }
}

/// Upward messages of one tree, from which the posterior of the means (eq. 6.2) is computed.
#[derive(Debug, Clone)]
pub(crate) struct Messages<R = f64> {
    /// By [`NodeId::rank`].
    splits: Vec<Told<R>>,
    /// The same; their clock is one for all.
    leaves: Vec<Message<R>>,
    end: R,
    /// Of leaves that stand for subtrees which are elsewhere, in place of those that their moments would give.
    stubs: HashMap<NodeId, Told<R>>,
}

impl<R: Real> Default for Messages<R> {
    fn default() -> Self {
        Self { splits: Vec::new(), leaves: Vec::new(), end: R::constant(0.0), stubs: HashMap::new() }
    }
}

/// Where a message comes from.
enum Source<R> {
    Leaf(NodeId),
    /// The messages from both sides, at the node.
    Sides(Message<R>, Message<R>),
}

impl<R: Real> Messages<R> {
    pub(crate) fn of(&self, node: NodeId) -> Message<R> {
        self.told(node).message
    }

    pub(crate) fn told(&self, node: NodeId) -> Told<R> {
        if !node.is_leaf() {
            return self.splits[node.rank()];
        }
        let own = || Told { message: self.leaves[node.rank()], clock: self.end };
        self.stubs.get(&node).copied().unwrap_or_else(own)
    }

    /// The upward pass over a tree given in preorder, and the log likelihood of the rows given the root's mean, less the
    /// log of the root's message: the marginal likelihood without the root's own term (see [`root_term`]).
    pub(crate) fn with_likelihood<S: Scalar>(
        tree: &Tree<S, NodeMoments>,
        moments: &NodeMoments,
        preorder: &[NodeId],
        lifetime: f64,
        hyper: &Hyperparameters<R>,
    ) -> (Self, R) {
        let (mut this, mut log_likelihood) = (Self::default(), R::constant(0.0));
        this.end = hyper.clock(lifetime);
        let noise = hyper.noise_variance;
        let clock = |split| hyper.clock(tree.arena.time(split));
        this.pass((tree, moments), preorder.iter().rev().copied(), clock, noise, |source| {
            let term = match source {
                Source::Leaf(leaf) => leaf_term(tree, moments, leaf, noise),
                Source::Sides(left, right) => join_term(left, right),
            };
            log_likelihood = log_likelihood + term;
        });
        (this, log_likelihood)
    }

    /// Computes the messages of some nodes, children before parents.
    pub(crate) fn update<S: Scalar>(
        &mut self,
        tree: &Tree<S, NodeMoments>,
        moments: &NodeMoments,
        nodes: impl Iterator<Item = NodeId>,
        lifetime: f64,
        hyper: &Hyperparameters<R>,
    ) {
        self.end = hyper.clock(lifetime);
        let clock = |split| hyper.clock(tree.arena.time(split));
        self.pass((tree, moments), nodes, clock, hyper.noise_variance, |_| {});
    }

    /// One upward pass over nodes that come before their parents; `clock` is that of a split, and `watch` sees the source of
    /// every message.
    fn pass<S: Scalar>(
        &mut self,
        (tree, moments): (&Tree<S, NodeMoments>, &NodeMoments),
        nodes: impl Iterator<Item = NodeId>,
        clock: impl Fn(NodeId) -> R,
        noise_variance: R,
        mut watch: impl FnMut(Source<R>),
    ) {
        let (zero, n_each) = (R::constant(0.0), tree.arena.n_indices() / 2);
        let none = Message { precision: zero, mean: zero };
        if self.leaves.len() < n_each {
            self.splits.resize(n_each, Told { message: none, clock: zero });
            self.leaves.resize(n_each, none);
        }
        for node in nodes {
            match tree.arena.kind(node) {
                NodeKind::Split(left, right) => {
                    let clock = clock(node);
                    let [left, right] = [left, right].map(|child| self.told(child).at_parent(clock));
                    watch(Source::Sides(left, right));
                    self.splits[node.rank()] = Told { message: join(left, right), clock };
                }
                NodeKind::Leaf => {
                    watch(Source::Leaf(node));
                    self.leaves[node.rank()] = leaf_message(tree, moments, node, noise_variance);
                }
            }
        }
    }
}

impl Messages {
    /// The upward pass over a tree given in preorder, of targets with these moments.
    pub(crate) fn upward<S: Scalar>(
        tree: &Tree<S, NodeMoments>,
        moments: &NodeMoments,
        preorder: &[NodeId],
        hyper: &Hyperparameters,
        clocks: &UnitClocks,
    ) -> Self {
        Self::upward_with(tree, moments, preorder, (hyper, clocks), HashMap::new())
    }

    /// The same, where some leaves stand for subtrees that are elsewhere, and their roots' messages and clocks are known.
    pub(crate) fn upward_with<S: Scalar>(
        tree: &Tree<S, NodeMoments>,
        moments: &NodeMoments,
        preorder: &[NodeId],
        (hyper, clocks): (&Hyperparameters, &UnitClocks),
        stubs: HashMap<NodeId, Told<f64>>,
    ) -> Self {
        let end = hyper.gamma1 * clocks.end() + hyper.coarse.clock(clocks.lifetime);
        let mut this = Self { end, stubs, ..Self::default() };
        let clock = |split: NodeId| {
            hyper.gamma1 * clocks.of_split(split.rank()) + hyper.coarse.clock(tree.arena.time(split))
        };
        this.pass((tree, moments), preorder.iter().rev().copied(), clock, hyper.noise_variance, |_| {});
        this
    }
}

/// Two likelihoods of one mean together.
pub(crate) fn join<R: Real>(left: Message<R>, right: Message<R>) -> Message<R> {
    let precision = left.precision + right.precision;
    let share = right.precision / precision;
    Message { precision, mean: left.mean - share * (left.mean - right.mean) }
}

/// The log normaliser of the product of two likelihoods of one mean: `N(m_l; m_r, 1/q_l + 1/q_r)`.
fn join_term<R: Real>(left: Message<R>, right: Message<R>) -> R {
    let one = R::constant(1.0);
    log_normal(left.mean - right.mean, one / left.precision + one / right.precision)
}

/// The likelihood of a leaf's rows given its mean (eq. 6.1).
fn leaf_message<S: Scalar, R: Real>(
    tree: &Tree<S, NodeMoments>,
    moments: &NodeMoments,
    leaf: NodeId,
    noise_variance: R,
) -> Message<R> {
    let n = moments.weight(leaf, tree.arena.n_rows(leaf));
    let mean = R::constant(moments.moments(leaf).mean);
    Message { precision: R::constant(n) / noise_variance, mean }
}

/// The log of the factor that does not depend on the mean.
fn leaf_term<S: Scalar, R: Real>(
    tree: &Tree<S, NodeMoments>,
    moments: &NodeMoments,
    leaf: NodeId,
    noise_variance: R,
) -> R {
    let n = moments.weight(leaf, tree.arena.n_rows(leaf));
    let each = (R::constant(std::f64::consts::TAU) * noise_variance).ln();
    let squares = R::constant(moments.moments(leaf).squares) / noise_variance;
    R::constant(-0.5) * (R::constant(n - 1.0) * each + squares + R::constant(n.ln()))
}

/// Variance of the root's message about `mu_H`, and its mean.
pub(crate) fn root_term<R: Real>(messages: &Messages<R>, root: NodeId) -> (R, R) {
    let message = messages.of(root);
    (messages.told(root).clock + R::constant(1.0) / message.precision, message.mean)
}

/// Log density at `x` of a centred Gaussian.
pub(crate) fn log_normal<R: Real>(x: R, variance: R) -> R {
    R::constant(-0.5) * ((R::constant(std::f64::consts::TAU) * variance).ln() + x * x / variance)
}

/// A belief about a node's mean from everything but the rows below it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Above {
    pub(crate) mean: f64,
    pub(crate) variance: f64,
}

impl Above {
    /// The belief after some rows are observed.
    pub(crate) fn observe(self, message: Message) -> Self {
        let gain = self.variance * message.precision;
        let sum = self.mean + gain * message.mean;
        // Where noise is smaller by hundreds of orders of magnitude than targets, the product overflows.
        let mean = if sum.is_finite() {
            sum / (1.0 + gain)
        } else {
            message.mean - (message.mean - self.mean) / (1.0 + gain)
        };
        Self { mean, variance: self.variance / (1.0 + gain) }
    }

    /// The belief about a child, given this one about its parent, the clocks of both, and the child's sibling.
    pub(crate) fn of_child(self, parent: f64, child: f64, sibling: Told<f64>) -> Self {
        self.below(sibling.at_parent(parent), child - parent)
    }

    /// The same, given the sibling's message as it comes to the parent, and the clock between parent and child.
    pub(crate) fn below(self, sibling: Message, span: f64) -> Self {
        let belief = self.observe(sibling);
        Self { variance: belief.variance + span.max(0.0), ..belief }
    }

    /// The belief about a row that comes to a leaf, this being the belief about the leaf and `others` the
    /// message of its other rows: the row joins them, or branches off above them where the clock is
    /// `branch`; it is `end` at the leaf.
    pub(crate) fn without(self, others: Message, branch: Option<f64>, end: f64) -> Self {
        let Some(branch) = branch else { return self.observe(others) };
        // The clock between the branch and the leaf.
        let rest = (end - branch).max(0.0);
        let v = (self.variance - rest).max(0.0);
        let whole = self.variance + 1.0 / others.precision;
        let mean = self.mean + v / whole * (others.mean - self.mean);
        Self { mean, variance: v - v * (v / whole) + rest }
    }
}

/// Posterior mean and variance of every node's mean (eq. 6.2), by position in the preorder.
pub(crate) fn posterior<S: Scalar>(
    tree: &Tree<S, NodeMoments>,
    messages: &Messages,
    hyper: &Hyperparameters,
    preorder: &[NodeId],
) -> Vec<(f64, f64)> {
    let above = beliefs(tree, messages, hyper, preorder);
    preorder
        .iter()
        .map(|&node| {
            let Above { mean, variance } = above[node.index()].observe(messages.of(node));
            (mean, variance)
        })
        .collect()
}

/// The belief about every node's mean from everything but the rows below it.
pub(crate) fn beliefs<S: Scalar>(
    tree: &Tree<S, NodeMoments>,
    messages: &Messages,
    hyper: &Hyperparameters,
    preorder: &[NodeId],
) -> Vec<Above> {
    let mut above = vec![Above { mean: hyper.mu, variance: 0.0 }; tree.arena.n_indices()];
    if let Some(root) = tree.arena.root() {
        above[root.index()].variance = messages.told(root).clock;
    }
    for &node in preorder {
        let NodeKind::Split(left, right) = tree.arena.kind(node) else {
            continue;
        };
        let (here, clock) = (above[node.index()], messages.told(node).clock);
        for (child, other) in [(left, right), (right, left)] {
            above[child.index()] = here.of_child(clock, messages.told(child).clock, messages.told(other));
        }
    }
    above
}
