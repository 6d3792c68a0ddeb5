//! The proposal of `edit`: makes a new subtree from an old one, and computes the probability of this.
//!
//! The new subtree is made from the top down, and each of its nodes has a node of the old subtree as its
//! guide. Usually a node takes the cut of its guide, and its children have the guide's children as guides.
//! Cuts of a guide that do not split the node's rows are skipped. At the top always, and at other nodes with
//! a small probability, the node is edited instead, in one of three ways:
//!
//! - insert: the node has a new cut, and both children have the same guide as the node;
//! - change: the node has another cut instead of the guide's, and the children have the guide's children as
//!   guides;
//! - delete: the node continues with one of the guide's children as its guide.
//!
//! Several sequences of edits (paths) can lead from one subtree to another. The sum of their probabilities is
//! computed by a recursion over pairs of nodes, so that the Hastings ratio is exact.
//!
//! Cuts in the same gap between rows count as one, since the threshold is uniform in its gap both under the
//! posterior, given all else, and under the proposal.

use crate::bayes::cuts::{RankCut, Rule};
use crate::bayes::leaf::model::ConjugateLeaf;
use crate::bayes::mcmc::state::{NodeWithRows, TreeWithRows};
use crate::bayes::target::SubtreeRoot;
use crate::data::goes_right;
use crate::data::sorted::columns::SortedColumns;
use crate::math::logs::log_sum_exp;
use crate::random::keyed::Stream;

/// Largest number of nodes of a proposed subtree; it limits the number of pairs of nodes.
pub(crate) const LARGEST: usize = 512;

/// The old subtree, from which new ones are made.
pub(crate) struct Guide<'a, L: ConjugateLeaf> {
    state: &'a TreeWithRows<'a, L>,
    /// Parents come before their children.
    nodes: Vec<GuideNode<'a, L>>,
}

struct GuideNode<'a, L: ConjugateLeaf> {
    node: &'a NodeWithRows<L::Stats>,
    cut: Option<CutGap>,
}

/// The cut of an inner node, as the gap between the node's rows.
#[derive(Clone, Copy)]
struct CutGap {
    /// The neighbouring ranks of the cut.
    gap: (u32, u32),
    /// Logarithm of the distance between their values.
    log_width: f64,
    /// Logarithm of the prior probability of the gap, given that there is a cut.
    log_rule: f64,
    /// Logarithm of the prior probability of the gap, given its feature.
    log_place: f64,
}

impl<'a, L: ConjugateLeaf> Guide<'a, L> {
    pub(crate) fn new(state: &'a TreeWithRows<'a, L>) -> Self {
        let nodes = state.select(|_| true).into_iter().map(|id| {
            let node = state.get(id);
            let cut = node.split.map(|(rule, _)| CutGap::new(state, node, rule));
            GuideNode { node, cut }
        });
        Self { state, nodes: nodes.collect() }
    }

    pub(crate) fn n_nodes(&self) -> usize {
        self.nodes.len()
    }

    /// Whether some feature varies among the rows of the subtree.
    pub(crate) fn can_be_cut(&self) -> bool {
        self.state.can_be_split(self.nodes[0].node)
    }

    fn split(&self, at: usize) -> Option<(Rule, [usize; 2])> {
        self.nodes[at].node.split
    }

    /// Logarithm of the posterior probability of the subtree, up to a constant.
    pub(crate) fn log_posterior(&self) -> f64 {
        let factor = |own: &GuideNode<'_, L>| {
            self.state.log_factor(own.node) + own.cut.map_or(0.0, |cut| cut.log_width)
        };
        self.nodes.iter().map(factor).sum()
    }

    /// The child on whose side of the cut the first row of `node` is; None if the cut can split them. If it cannot, all
    /// are on this side, unless only missing values are on the other.
    fn skips_to(
        &self,
        at: usize,
        (new, node): (&TreeWithRows<'a, L>, &NodeWithRows<L::Stats>),
    ) -> Option<usize> {
        let (rule, [left, right]) = self.split(at)?;
        let extent = new.extent(node, rule.cut.feature);
        let column = self.state.target.table.column(rule.cut.feature);
        let parts = extent.is_some_and(|extent| column.can_cut(extent.span, rule.cut.rank));
        let rank = column.rank(node.rows[0]);
        (!parts).then_some(if goes_right(rank, rule.cut.rank) { right } else { left })
    }

    /// The probability of an edit at a node below the top. At the top an edit is certain.
    fn rate(&self) -> f64 {
        // Small enough that the size of the subtree does not grow without bound.
        1.0 / (self.nodes.len() as f64 + 3.0)
    }
}

impl CutGap {
    fn new<L: ConjugateLeaf>(state: &TreeWithRows<'_, L>, node: &NodeWithRows<L::Stats>, rule: Rule) -> Self {
        let column = state.target.table.column(rule.cut.feature);
        let extent = state.extent(node, rule.cut.feature).expect("a cut is along a feature that varies");
        let gap = gap(node, rule, state.target.table);
        let log_width = column.log_width(gap);
        let log_place = log_width + column.log_density(rule.cut.rank, extent.span);
        Self { gap, log_width, log_rule: log_width + state.log_rule(node, &rule), log_place }
    }
}

/// The neighbouring ranks of a cut among the rows of a node that it splits.
fn gap<S>(node: &NodeWithRows<S>, rule: Rule, table: &SortedColumns) -> (u32, u32) {
    let column = table.column(rule.cut.feature);
    node.rows.iter().fold((0, u32::MAX), |(left, right), &row| match column.rank(row) {
        rank if goes_right(rank, rule.cut.rank) => (left, right.min(rank)),
        rank => (left.max(rank), right),
    })
}

/// The step of the proposal at a node.
#[derive(Clone, Copy, PartialEq)]
enum EditStep {
    /// Takes the cut of the guide.
    Follow,
    Insert,
    Change,
    /// Changes the threshold and keeps the feature.
    Shift,
    Delete,
}

const EDITS: [EditStep; 4] = [EditStep::Insert, EditStep::Change, EditStep::Shift, EditStep::Delete];

impl EditStep {
    /// Draws an edit with probability `rate`, uniformly from all kinds; at a leaf of the guide the only edit
    /// is an insertion. Also returns the logarithm of the step's probability.
    fn draw(rate: f64, is_leaf: bool, stream: &mut Stream) -> (Self, f64) {
        if stream.unit() >= rate {
            (Self::Follow, libm::log1p(-rate))
        } else if is_leaf {
            (Self::Insert, libm::log(rate))
        } else {
            (EDITS[stream.below(EDITS.len())], libm::log(rate / EDITS.len() as f64))
        }
    }
}

/// Draws a new subtree. Also returns the logarithm of the probability of the path that led to it. None if the
/// subtree is too large.
pub(crate) fn draw<'a, L: ConjugateLeaf>(
    guide: &Guide<'a, L>,
    root: SubtreeRoot,
    stream: &mut Stream,
) -> Option<(TreeWithRows<'a, L>, f64)> {
    let table = guide.state.target.table;
    let mut state = TreeWithRows::at(guide.state.target, root);
    let mut stack = vec![(TreeWithRows::<L>::ROOT, 0)];
    let (mut rate, mut n_nodes, mut log_way) = (1.0, 1, 0.0);
    while let Some((id, mut at)) = stack.pop() {
        let node = state.get(id);
        if !state.can_be_split(node) {
            continue;
        }
        while let Some(child) = guide.skips_to(at, (&state, node)) {
            at = child;
        }
        let split = guide.split(at);
        let (step, log_step) = EditStep::draw(rate, split.is_none(), stream);
        (log_way, rate) = (log_way + log_step, guide.rate());
        let (rule, below) = match (step, split) {
            (EditStep::Insert, _) => (state.draw_rule(id, stream), [at; 2]),
            (EditStep::Follow, None) => continue,
            (EditStep::Follow, Some((rule, below))) => {
                let column = table.column(rule.cut.feature);
                (with_cut(rule, column.cut_between(gap(node, rule, table), stream.unit())), below)
            }
            (EditStep::Change, Some((_, below))) => (state.draw_rule(id, stream), below),
            (EditStep::Shift, Some((rule, below))) => {
                let extent = state.extent(node, rule.cut.feature).expect("the guide's cut splits the rows");
                (with_cut(rule, table.column(rule.cut.feature).cut(extent.span, stream.unit())), below)
            }
            (EditStep::Delete, Some((_, below))) => {
                log_way -= std::f64::consts::LN_2;
                stack.push((id, below[stream.below(2)]));
                continue;
            }
            (_, None) => unreachable!("a leaf has no cut to edit"),
        };
        log_way += match step {
            EditStep::Shift => CutGap::new(&state, node, rule).log_place,
            EditStep::Insert | EditStep::Change => CutGap::new(&state, node, rule).log_rule,
            EditStep::Follow | EditStep::Delete => 0.0,
        };
        n_nodes += 2;
        if n_nodes > LARGEST {
            return None;
        }
        let children = state.children(id, rule);
        stack.extend(state.grow(id, rule, children).into_iter().zip(below));
    }
    Some((state, log_way))
}

/// A rule with the same feature and another cut.
fn with_cut(Rule { cut, .. }: Rule, (rank, threshold): (u32, f64)) -> Rule {
    Rule { cut: RankCut { rank, ..cut }, threshold }
}

/// Logarithm of the probability that [`draw`] makes subtree `new` from subtree `old`. For each pair of a new
/// node and a guide, the recursion computes the probability of all that is below the new node.
pub(crate) fn log_chance<L: ConjugateLeaf>(old: &Guide<'_, L>, new: &Guide<'_, L>) -> f64 {
    let mut below = Below { old, new, logs: vec![0.0; old.nodes.len() * new.nodes.len()] };
    let (log_edit, log_follow) = (libm::log(old.rate()), libm::log1p(-old.rate()));
    for id in (0..new.nodes.len()).rev() {
        let node = new.nodes[id].node;
        if !new.state.can_be_split(node) {
            continue;
        }
        for at in (0..old.nodes.len()).rev() {
            let log = match old.skips_to(at, (new.state, node)) {
                Some(child) => below.get(id, child),
                None => log_sum_exp(&[log_follow + below.follows(id, at), log_edit + below.edits(id, at)]),
            };
            below.logs[id * old.nodes.len() + at] = log;
        }
    }
    below.edits(0, 0)
}

/// For each pair of a new node and a guide, the logarithm of the probability of the subtree below the new
/// node.
struct Below<'a, L: ConjugateLeaf> {
    old: &'a Guide<'a, L>,
    new: &'a Guide<'a, L>,
    logs: Vec<f64>,
}

impl<L: ConjugateLeaf> Below<'_, L> {
    fn get(&self, id: usize, at: usize) -> f64 {
        self.logs[id * self.old.nodes.len() + at]
    }

    fn both(&self, ids: [usize; 2], at: [usize; 2]) -> f64 {
        self.get(ids[0], at[0]) + self.get(ids[1], at[1])
    }

    /// The log probability of the new node's subtree if the node takes the guide's cut, or is a leaf as the
    /// guide is.
    fn follows(&self, id: usize, at: usize) -> f64 {
        match (self.new.split(id), self.old.split(at)) {
            (None, None) => 0.0,
            (Some((rule, ids)), Some((old, children))) if self.is_same(id, rule, old) => {
                self.both(ids, children)
            }
            _ => f64::NEG_INFINITY,
        }
    }

    /// Whether the guide's rule splits the rows of the new node as the node's own rule does.
    fn is_same(&self, id: usize, rule: Rule, old: Rule) -> bool {
        let gap = self.new.nodes[id].cut.map(|cut| cut.gap);
        let is_inside = gap.is_some_and(|(left, right)| left <= old.cut.rank && old.cut.rank < right);
        rule.cut.feature == old.cut.feature && is_inside
    }

    fn edits(&self, id: usize, at: usize) -> f64 {
        const NEVER: f64 = f64::NEG_INFINITY;
        let made = self.new.split(id).zip(self.new.nodes[id].cut);
        let inserts = made.map_or(NEVER, |((_, ids), cut)| cut.log_rule + self.both(ids, [at; 2]));
        let Some((old, children)) = self.old.split(at) else { return inserts };
        let [changes, shifts] = made.map_or([NEVER; 2], |((rule, ids), cut)| {
            let is_along = rule.cut.feature == old.cut.feature;
            let below = self.both(ids, children);
            [cut.log_rule + below, if is_along { cut.log_place + below } else { NEVER }]
        });
        let [left, right] = children.map(|child| self.get(id, child) - std::f64::consts::LN_2);
        log_sum_exp(&[inserts, changes, shifts, left, right]) - libm::log(EDITS.len() as f64)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use crate::bart::leaves::normal::{LeafPosterior, ResidualLeaf};
    use crate::bart::tests::setting::{SIGMA, SIGMA_MU, TARGETS, prior, table};
    use crate::bayes::target::TargetPosterior;
    use crate::bayes::testing::enumerate::name_of;
    use crate::bayes::testing::missing_values;
    use crate::control::Control;

    /// The relative frequency of every proposed subtree equals the sum over all paths, which is at least the
    /// probability of each path. Tested for guides of many shapes, on rows of which some are equal.
    #[test]
    fn proposals_are_as_probable_as_all_ways_together() {
        proposals_are_as_probable_as_all_ways(&table(), 1.0);
        // There are far more trees, so that some of them occur several times by chance.
        for table in missing_values::tables() {
            proposals_are_as_probable_as_all_ways(&table, 3.0);
        }
    }

    /// A rarely proposed tree may occur `by_chance` times.
    fn proposals_are_as_probable_as_all_ways(table: &SortedColumns, by_chance: f64) {
        let prior = prior();
        let leaf = ResidualLeaf { posterior: LeafPosterior::new(SIGMA, SIGMA_MU), residuals: &TARGETS };
        let target = TargetPosterior { table, prior: &prior, leaf: &leaf };
        for seed in 0..12 {
            let mut stream = Stream::new(seed, 0);
            let old = TreeWithRows::from_prior(&target, &mut stream, &Control::new()).unwrap();
            let old = Guide::new(&old);
            let n = 20_000;
            let mut found: HashMap<String, (f64, f64)> = HashMap::new();
            for _ in 0..n {
                let (new, log_way) =
                    draw(&old, SubtreeRoot::of_all(table), &mut stream).expect("trees are small");
                let name = name_of(&new.tree(), table);
                let (times, log_chance) =
                    found.entry(name).or_insert_with(|| (0.0, log_chance(&old, &Guide::new(&new))));
                *times += 1.0;
                assert!(log_way < *log_chance + 1e-9, "{log_way} of {log_chance}");
            }
            let chances = || found.values().map(|(_, log_chance)| log_chance.exp());
            assert!(chances().sum::<f64>() < 1.0 + 1e-9);
            for ((times, _), chance) in found.values().zip(chances()) {
                let error = (chance / f64::from(n)).sqrt();
                let share = times / f64::from(n);
                let by_chance = by_chance / f64::from(n);
                assert!((share - chance).abs() < 5.0 * error + by_chance, "{share} for {chance}");
            }
        }
    }
}
