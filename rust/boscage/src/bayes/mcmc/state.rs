//! A whole tree with the rows of its nodes, as a chain changes it step by step.

use crate::data::goes_right;
use std::cell::{OnceCell, RefCell};
use std::iter::once;
use std::sync::Arc;

use crate::bayes::cuts::{Extent, RankCut, Rule, extents};
use crate::bayes::leaf::model::ConjugateLeaf;
use crate::bayes::target::{SubtreeRoot, TargetPosterior};
use crate::bayes::tree::{PreorderSplit, PreorderTree};
use crate::control::Control;
use crate::error::Result;
use crate::random::keyed::Stream;

/// A node of a [`TreeWithRows`].
#[derive(Debug, Clone)]
pub(crate) struct NodeWithRows<S> {
    pub(crate) parent: Option<usize>,
    pub(crate) depth: u32,
    pub(crate) rows: Vec<u32>,
    /// Features that vary among the rows; computed on first use, since most nodes are never split.
    varying: OnceCell<Vec<u32>>,
    /// Extents by feature, computed on first use; None if the feature does not vary.
    extents: RefCell<Vec<(u32, Option<Extent>)>>,
    pub(crate) stats: Arc<S>,
    /// Log likelihood of the rows as a leaf.
    pub(crate) log_likelihood: f64,
    /// The rule and the children, of an inner node.
    pub(crate) split: Option<(Rule, [usize; 2])>,
}

/// A tree over the rows of a target.
#[derive(Debug)]
pub(crate) struct TreeWithRows<'a, L: ConjugateLeaf> {
    pub(crate) target: &'a TargetPosterior<'a, L>,
    /// Nodes by number; None at numbers of pruned nodes.
    nodes: Vec<Option<NodeWithRows<L::Stats>>>,
    free: Vec<usize>,
}

/// A subtree with other rules: the nodes by number.
pub(crate) type Rebuilt<S> = Vec<(usize, NodeWithRows<S>)>;

impl<'a, L: ConjugateLeaf> TreeWithRows<'a, L> {
    /// The number of the root.
    pub(crate) const ROOT: usize = 0;

    /// The root alone, with all rows.
    pub(crate) fn new(target: &'a TargetPosterior<'a, L>) -> Self {
        Self::at(target, SubtreeRoot::of_all(target.table))
    }

    /// The root alone; it may be an inner node of a larger tree.
    pub(crate) fn at(target: &'a TargetPosterior<'a, L>, root: SubtreeRoot) -> Self {
        let mut state = Self { target, nodes: Vec::new(), free: Vec::new() };
        let root = state.node(None, root.depth, root.rows);
        state.nodes.push(Some(root));
        state
    }

    /// A tree drawn from the prior (eq. 3.4).
    ///
    /// # Errors
    /// An interrupt.
    pub(crate) fn from_prior(
        target: &'a TargetPosterior<'a, L>,
        stream: &mut Stream,
        control: &Control,
    ) -> Result<Self> {
        let mut state = Self::new(target);
        let mut stack = vec![Self::ROOT];
        while let Some(id) = stack.pop() {
            control.check()?;
            let node = state.get(id);
            if state.can_be_split(node) && stream.unit() < target.prior.split_probability(node.depth) {
                let rule = state.draw_rule(id, stream);
                let children = state.children(id, rule);
                stack.extend(state.grow(id, rule, children));
            }
        }
        Ok(state)
    }

    /// A given tree on the rows of this target, which may differ from the rows that the tree was fitted to;
    /// None if a cut leaves a side without rows.
    pub(crate) fn from_tree<S>(target: &'a TargetPosterior<'a, L>, tree: &PreorderTree<S>) -> Option<Self> {
        Self::new(target).with_cuts(tree)
    }

    /// Applies the cuts of a tree to the root alone, as [`TreeWithRows::from_tree`] does; parents have
    /// smaller numbers than their children.
    pub(crate) fn with_cuts<S>(self, tree: &PreorderTree<S>) -> Option<Self> {
        let mut state = self;
        let mut stack = vec![(Self::ROOT, 0)];
        while let Some((id, at)) = stack.pop() {
            if let Some(split) = tree.nodes[at].split {
                let rule = state.rule(id, split.rule.feature, split.rule.threshold)?;
                let children = state.children(id, rule);
                let [left, right] = state.grow(id, rule, children);
                stack.extend([(left, at + 1), (right, split.right as usize)]);
            }
        }
        Some(state)
    }

    pub(crate) fn get(&self, id: usize) -> &NodeWithRows<L::Stats> {
        self.nodes[id].as_ref().expect("the number is that of a node")
    }

    /// Numbers of the nodes with a property, ascending.
    pub(crate) fn select(&self, f: impl Fn(&NodeWithRows<L::Stats>) -> bool) -> Vec<usize> {
        let holds = |node: &Option<NodeWithRows<L::Stats>>| node.as_ref().is_some_and(&f);
        (0..self.nodes.len()).filter(|&id| holds(&self.nodes[id])).collect()
    }

    /// Whether a node's children are both leaves.
    pub(crate) fn is_prunable(&self, node: &NodeWithRows<L::Stats>) -> bool {
        node.split.is_some_and(|(_, children)| children.iter().all(|&id| self.get(id).split.is_none()))
    }

    /// Draws a rule from the prior at a node that can be split: a feature, and a threshold in its extent.
    pub(crate) fn draw_rule(&self, id: usize, stream: &mut Stream) -> Rule {
        let node = self.get(id);
        let varying = self.varying(node);
        let feature = varying[self.target.draw_feature(varying.iter().copied(), stream)];
        let extent = self.extent(node, feature).expect("a feature that varies has an extent");
        let column = self.target.table.column(extent.feature);
        let (rank, threshold) = column.cut(extent.span, stream.unit());
        Rule { cut: RankCut { feature: extent.feature, rank }, threshold }
    }

    /// The two leaves into which a rule splits the rows of a node.
    pub(crate) fn children(&self, id: usize, rule: Rule) -> [NodeWithRows<L::Stats>; 2] {
        let node = self.get(id);
        let column = self.target.table.column(rule.cut.feature);
        let (left, right) = node.rows.iter().partition(|&&row| !goes_right(column.rank(row), rule.cut.rank));
        [left, right].map(|rows| self.node(Some(id), node.depth + 1, rows))
    }

    /// Turns a leaf into an inner node.
    pub(crate) fn grow(
        &mut self,
        id: usize,
        rule: Rule,
        children: [NodeWithRows<L::Stats>; 2],
    ) -> [usize; 2] {
        let ids = children.map(|child| match self.free.pop() {
            Some(free) => {
                self.nodes[free] = Some(child);
                free
            }
            None => {
                self.nodes.push(Some(child));
                self.nodes.len() - 1
            }
        });
        self.nodes[id].as_mut().expect("a leaf is a node").split = Some((rule, ids));
        ids
    }

    /// Turns a node whose children are leaves into a leaf.
    pub(crate) fn prune(&mut self, id: usize) {
        let (_, children) =
            self.nodes[id].as_mut().and_then(|node| node.split.take()).expect("an inner node");
        for child in children {
            self.nodes[child] = None;
            self.free.push(child);
        }
    }

    /// Computes the subtree of a node with other rules for some of its nodes; None if a cut leaves a side
    /// without rows.
    pub(crate) fn rebuild(&self, top: usize, changed: &[(usize, Rule)]) -> Option<Rebuilt<L::Stats>> {
        let mut rebuilt = vec![(top, self.get(top).clone())];
        let mut next = 0;
        while next < rebuilt.len() {
            let (id, node) = &mut rebuilt[next];
            next += 1;
            let Some((rule, children)) = &mut node.split else {
                continue;
            };
            if let Some((_, new)) = changed.iter().find(|(other, _)| other == id) {
                *rule = *new;
            }
            let (rule, children) = (*rule, *children);
            let column = self.target.table.column(rule.cut.feature);
            let (left, right): (Vec<u32>, Vec<u32>) =
                node.rows.iter().partition(|&&row| !goes_right(column.rank(row), rule.cut.rank));
            if left.is_empty() || right.is_empty() {
                return None;
            }
            let below = [left, right].map(|rows| self.node(Some(*id), node.depth + 1, rows));
            for (child, mut new) in children.into_iter().zip(below) {
                new.split = self.get(child).split;
                rebuilt.push((child, new));
            }
        }
        Some(rebuilt)
    }

    /// Replaces the old subtree by the rebuilt one.
    pub(crate) fn replace(&mut self, rebuilt: Rebuilt<L::Stats>) {
        for (id, node) in rebuilt {
            self.nodes[id] = Some(node);
        }
    }

    /// Logarithm of the node's factor of the prior (eq. 3.4).
    pub(crate) fn log_prior(&self, node: &NodeWithRows<L::Stats>) -> f64 {
        let (log_split, log_stop) = self.target.log_split_stop(node.depth);
        match &node.split {
            None if !self.can_be_split(node) => 0.0,
            None => log_stop,
            Some((rule, _)) => log_split + self.log_rule(node, rule),
        }
    }

    /// Logarithm of the node's factor of the posterior density, up to the evidence.
    pub(crate) fn log_factor(&self, node: &NodeWithRows<L::Stats>) -> f64 {
        let likelihood = if node.split.is_none() { node.log_likelihood } else { 0.0 };
        self.log_prior(node) + likelihood
    }

    /// The nodes of a subtree, parents before children.
    pub(crate) fn subtree(&self, top: usize) -> Vec<usize> {
        let mut ids = vec![top];
        let mut next = 0;
        while next < ids.len() {
            if let Some((_, children)) = self.get(ids[next]).split {
                ids.extend(children);
            }
            next += 1;
        }
        ids
    }

    /// A copy of the tree in preorder.
    pub(crate) fn tree(&self) -> PreorderTree<L::Stats> {
        PreorderTree::from_root(Self::ROOT, |id| {
            let node = self.get(id);
            let split = node
                .split
                .map(|(rule, children)| (PreorderSplit::new(rule.cut.feature, rule.threshold), children));
            (Arc::clone(&node.stats), split)
        })
    }

    /// A leaf with these rows.
    fn node(&self, parent: Option<usize>, depth: u32, rows: Vec<u32>) -> NodeWithRows<L::Stats> {
        let stats = self.target.leaf.of_rows(rows.iter().copied());
        let log_likelihood = self.target.leaf.log_likelihood(&stats);
        let (varying, extents) = Default::default();
        let stats = Arc::new(stats);
        NodeWithRows { parent, depth, rows, varying, extents, stats, log_likelihood, split: None }
    }

    /// The features that vary among the rows of a node: `V_j` of eq. 3.4.
    fn varying<'n>(&self, node: &'n NodeWithRows<L::Stats>) -> &'n [u32] {
        let table = self.target.table;
        let features = || {
            table.varying().iter().copied().filter(|&d| table.column(d).varies_among(&node.rows)).collect()
        };
        node.varying.get_or_init(features)
    }

    /// Whether some feature varies among the rows of a node.
    pub(crate) fn can_be_split(&self, node: &NodeWithRows<L::Stats>) -> bool {
        let table = self.target.table;
        let some_varies = || table.varying().iter().any(|&d| table.column(d).varies_among(&node.rows));
        node.varying.get().map_or_else(some_varies, |varying| !varying.is_empty())
    }

    /// The extent of a feature among the rows of a node, if it varies.
    pub(crate) fn extent(&self, node: &NodeWithRows<L::Stats>, feature: u32) -> Option<Extent> {
        let known =
            node.extents.borrow().iter().find(|(other, _)| *other == feature).map(|(_, extent)| *extent);
        known.unwrap_or_else(|| {
            let found = extents(self.target.table, &node.rows, once(feature)).pop();
            node.extents.borrow_mut().push((feature, found));
            found
        })
    }

    /// The threshold as a rule of a node; None if it does not split the node's rows.
    fn rule(&self, id: usize, feature: u32, threshold: f64) -> Option<Rule> {
        let extent = self.extent(self.get(id), feature)?;
        let rank = self.target.table.column(feature).rank_at(threshold)?;
        let splits = self.target.table.column(feature).can_cut(extent.span, rank);
        splits.then_some(Rule { cut: RankCut { feature, rank }, threshold })
    }

    /// Logarithm of the prior density of a node's rule; minus infinity if the rule does not divide the rows whose values
    /// are present, nor these from the others.
    pub(crate) fn log_rule(&self, node: &NodeWithRows<L::Stats>, rule: &Rule) -> f64 {
        let (feature, varying) = (rule.cut.feature, self.varying(node));
        let at = varying.iter().position(|&other| other == feature);
        let at = at.expect("a node is cut along a feature that varies");
        let extent = self.extent(node, feature).expect("a feature that varies has an extent");
        let log_density = self.target.table.column(feature).log_density(rule.cut.rank, extent.span);
        self.target.log_shares_of(varying.iter().copied())[at] + log_density
    }
}
