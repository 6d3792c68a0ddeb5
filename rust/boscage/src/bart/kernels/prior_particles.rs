//! Particle Gibbs with proposals from the prior (Algorithm 4.2): conditional SMC with the old tree retained.
//!
//! `bayes/smc` does the same for any proposal. With the prior as proposal, a node that stops costs nothing,
//! and a node that is split reads its rows along a single feature. The same code draws trees from the prior.

use crate::data::goes_right;
use std::mem::swap;
use std::ops::Range;
use std::sync::Arc;

use crate::bart::kernels::context::Context;
use crate::bart::state::tree::{MAX_NODES, NodeKind, NodeLabel, TreeState};
use crate::bayes::cuts::{RankCut, Rule};
use crate::bayes::leaf::model::ConjugateLeaf;
use crate::bayes::prior::TreePrior;
use crate::bayes::tree::{PreorderSplit, PreorderTree};
use crate::error::Result;
use crate::math::logs::normalised;
use crate::random::distributions::multinomial;
use crate::random::keyed::Stream;

/// Runs conditional SMC (Algorithm 4.2), draws a particle by weight once all trees are finished, and returns
/// its tree; None if it is the old one.
///
/// # Errors
/// An interrupt.
pub(crate) fn draw<L: ConjugateLeaf>(
    tree: &TreeState,
    leaf: &L,
    context: &Context<'_>,
    n_particles: usize,
    stream: &mut Stream,
) -> Result<Option<PreorderTree<L::Stats>>> {
    let mut nodes = PriorNodes::new(leaf, context);
    let mut particles = vec![PriorParticle::new(); n_particles];
    let mut resampled = particles.clone();
    // The nodes of the old tree, by index in the first particle's tree.
    let mut retained = vec![TreeState::ROOT];
    loop {
        let mut is_done = true;
        for (k, particle) in particles.iter_mut().enumerate() {
            let Some(slot) = particle.next(&nodes) else { continue };
            context.control.check()?;
            is_done = false;
            let id = particle.nodes[slot];
            let rule =
                if k == 0 { retained_rule(tree, slot, &mut retained) } else { nodes.draw_rule(id, stream) };
            if let Some(rule) = rule {
                particle.split(id, rule, &mut nodes);
            }
        }
        if is_done {
            break;
        }
        resample(&mut particles, &mut resampled, stream);
    }
    let drawn = multinomial(&weights(&particles), 1, stream)[0];
    let drawn = &particles[drawn as usize];
    Ok((drawn.nodes != particles[0].nodes).then(|| nodes.tree(drawn)))
}

/// Replaces a tree without cuts by a draw of the prior (eq. 4.4); the caller sets its leaf values. If the
/// draw has too many nodes the tree stays without cuts. It is not drawn again, since under some priors all
/// draws are too large; and a chain may start from any tree.
///
/// # Errors
/// An interrupt.
pub(crate) fn start_from_prior<L: ConjugateLeaf>(
    tree: &mut TreeState,
    leaf: &L,
    context: &Context<'_>,
    stream: &mut Stream,
) -> Result<()> {
    context.control.check()?;
    if let Some(drawn) = from_prior(leaf, context, stream) {
        tree.replace(&drawn, context.table);
    }
    Ok(())
}

/// Draws a tree from the prior; None if it is too large.
fn from_prior<L: ConjugateLeaf>(
    leaf: &L,
    context: &Context<'_>,
    stream: &mut Stream,
) -> Option<PreorderTree<L::Stats>> {
    let mut nodes = PriorNodes::new(leaf, context);
    let mut tree = PriorParticle::new();
    while let Some(slot) = tree.next(&nodes) {
        let id = tree.nodes[slot];
        if let Some(rule) = nodes.draw_rule(id, stream) {
            tree.split(id, rule, &mut nodes);
        }
        if tree.nodes.len() > MAX_NODES {
            return None;
        }
    }
    Some(nodes.tree(&tree))
}

/// The rule of the old tree at a node; None at a leaf. Its children are numbered next.
fn retained_rule(tree: &TreeState, slot: usize, retained: &mut Vec<NodeLabel>) -> Option<Rule> {
    match tree.get(retained[slot]).kind {
        NodeKind::Inner(rule, children) => {
            retained.extend(children);
            Some(rule)
        }
        NodeKind::Free | NodeKind::Leaf => None,
    }
}

/// A growing tree. Its nodes are in breadth-first order, the order in which they are made and decided about.
#[derive(Debug)]
struct PriorParticle {
    nodes: Vec<u32>,
    /// Number of nodes that have been decided about.
    next: usize,
    /// Logarithm of the weight, up to a constant shared by all particles.
    log_weight: f64,
}

impl Clone for PriorParticle {
    fn clone(&self) -> Self {
        Self { nodes: self.nodes.clone(), ..*self }
    }

    fn clone_from(&mut self, other: &Self) {
        self.nodes.clone_from(&other.nodes);
        (self.next, self.log_weight) = (other.next, other.log_weight);
    }
}

impl PriorParticle {
    /// A tree with only the root.
    fn new() -> Self {
        Self { nodes: vec![0], next: 0, log_weight: 0.0 }
    }

    /// Splits a node, and updates the weight (eq. 4.10).
    fn split<L: ConjugateLeaf>(&mut self, id: u32, rule: Rule, nodes: &mut PriorNodes<'_, L>) {
        let (left, gain) = nodes.split(id, rule);
        self.nodes.extend([left, left + 1]);
        self.log_weight += gain;
    }

    /// The index of the next node to decide about. Nodes with a single row are leaves.
    fn next<L: ConjugateLeaf>(&mut self, nodes: &PriorNodes<'_, L>) -> Option<usize> {
        let found = (self.next..self.nodes.len()).find(|&i| nodes.all[self.nodes[i] as usize].n_rows > 1);
        self.next = found.map_or(self.nodes.len(), |i| i + 1);
        found
    }
}

fn weights(particles: &[PriorParticle]) -> Vec<f64> {
    normalised(&particles.iter().map(|particle| particle.log_weight).collect::<Vec<_>>())
}

/// Draws all particles but the first by weight (Algorithm 4.2, lines 14 to 17), unless all weights are equal.
fn resample(particles: &mut Vec<PriorParticle>, others: &mut Vec<PriorParticle>, stream: &mut Stream) {
    let first = particles[0].log_weight;
    if particles.iter().all(|particle| particle.log_weight == first) {
        return;
    }
    let ancestors = multinomial(&weights(particles), particles.len() - 1, stream);
    others[0].clone_from(&particles[0]);
    for (other, ancestor) in others[1..].iter_mut().zip(ancestors) {
        other.clone_from(&particles[ancestor as usize]);
    }
    swap(particles, others);
    for particle in particles {
        particle.log_weight = 0.0;
    }
}

/// A set of rows at which some particle has a node.
#[derive(Debug)]
struct PriorNode<S> {
    /// The parent and the rule of its cut.
    parent: u32,
    rule: Rule,
    depth: u32,
    n_rows: u32,
    stats: S,
    log_likelihood: f64,
    /// The range of its rows, once they have been computed.
    rows: Option<Range<usize>>,
}

/// The nodes of all particles. Both children of a cut are neighbours.
struct PriorNodes<'a, L: ConjugateLeaf> {
    leaf: &'a L,
    context: &'a Context<'a>,
    all: Vec<PriorNode<L::Stats>>,
    /// The rows of all nodes whose rows have been computed.
    rows: Vec<u32>,
    /// Buffer for the rows on the left of a cut.
    left: Vec<u32>,
}

impl<'a, L: ConjugateLeaf> PriorNodes<'a, L> {
    fn new(leaf: &'a L, context: &'a Context<'a>) -> Self {
        let n_rows = context.table.n_rows();
        let stats = leaf.of_rows(0..n_rows as u32);
        let root = PriorNode {
            parent: 0,
            rule: Rule { cut: RankCut { feature: 0, rank: 0 }, threshold: 0.0 },
            depth: 0,
            n_rows: n_rows as u32,
            log_likelihood: leaf.log_likelihood(&stats),
            stats,
            rows: Some(0..n_rows),
        };
        Self { leaf, context, all: vec![root], rows: (0..n_rows as u32).collect(), left: vec![0; n_rows] }
    }

    /// Draws a cut of a node from the prior (eq. 4.4); None if the node stops.
    fn draw_rule(&mut self, id: u32, stream: &mut Stream) -> Option<Rule> {
        let context = self.context;
        if stream.unit() >= context.odds.split_probability(self.all[id as usize].depth) {
            return None;
        }
        let rows = self.rows_of(id);
        let mut order = context.feature_order();
        while let Some(feature) = order.next(stream) {
            let column = context.table.column(feature);
            let span = if id == 0 { column.whole() } else { column.span_of_rows(&self.rows[rows.clone()]) };
            if span.varies() {
                let (rank, threshold) = column.cut(span, stream.unit());
                return Some(Rule { cut: RankCut { feature, rank }, threshold });
            }
        }
        None
    }

    /// Splits a node. Returns its left child, and the increase of the log likelihood.
    fn split(&mut self, id: u32, rule: Rule) -> (u32, f64) {
        let (n_left, left) = self.left_of(id, rule.cut);
        let node = &self.all[id as usize];
        let right = self.leaf.rest(&node.stats, &left);
        let (depth, n_right) = (node.depth + 1, node.n_rows - n_left);
        let mut gain = -node.log_likelihood;
        for (n_rows, stats) in [(n_left, left), (n_right, right)] {
            let log_likelihood = self.leaf.log_likelihood(&stats);
            gain += log_likelihood;
            self.all.push(PriorNode { parent: id, rule, depth, n_rows, stats, log_likelihood, rows: None });
        }
        (self.all.len() as u32 - 2, gain)
    }

    /// The number and the statistics of the rows on the left of a cut.
    fn left_of(&mut self, id: u32, cut: RankCut) -> (u32, L::Stats) {
        let column = self.context.table.column(cut.feature);
        if id == 0 {
            let (left, n_rows) = (column.places(0, cut.rank), self.context.table.n_rows());
            let of_rows = |places| self.leaf.of_rows(column.rows_at(places).iter().copied());
            let n_left = left.len();
            let stats = if 2 * n_left < n_rows {
                of_rows(left)
            } else {
                self.leaf.rest(&self.all[0].stats, &of_rows(n_left..n_rows))
            };
            return (n_left as u32, stats);
        }
        let rows = self.rows_of(id);
        let ranks = column.ranks();
        let mut n_left = 0;
        for &row in &self.rows[rows] {
            // Written without a branch, which would be unpredictable.
            self.left[n_left] = row;
            n_left += usize::from(!goes_right(ranks[row as usize], cut.rank));
        }
        (n_left as u32, self.leaf.of_rows(self.left[..n_left].iter().copied()))
    }

    /// The range of a node's rows. The rows of the node or of its parent must have been computed.
    fn rows_of(&mut self, id: u32) -> Range<usize> {
        let node = &self.all[id as usize];
        if let Some(rows) = &node.rows {
            return rows.clone();
        }
        let parent = self.all[node.parent as usize].rows.clone().expect("a node that was cut has its rows");
        let ranks = self.context.table.column(node.rule.cut.feature).ranks();
        // The root has no neighbour, so left children have odd numbers.
        let left = ((id - 1) & !1) as usize + 1;
        let start = self.rows.len();
        let middle = start + self.all[left].n_rows as usize;
        self.rows.resize(start + parent.len(), 0);
        let (known, new) = self.rows.split_at_mut(start);
        let (mut at_left, mut at_right) = (0, middle - start);
        for &row in &known[parent] {
            let is_left = !goes_right(ranks[row as usize], node.rule.cut.rank);
            new[if is_left { at_left } else { at_right }] = row;
            at_left += usize::from(is_left);
            at_right += usize::from(!is_left);
        }
        let end = self.rows.len();
        self.all[left].rows = Some(start..middle);
        self.all[left + 1].rows = Some(middle..end);
        self.all[id as usize].rows.clone().expect("the node is one of the pair")
    }

    /// The tree of a particle.
    fn tree(&self, particle: &PriorParticle) -> PreorderTree<L::Stats> {
        let none = Arc::new(self.leaf.empty());
        // Pairs of children are in the order of their parents.
        let mut children = vec![None; particle.nodes.len()];
        let mut parent = 0;
        for left in (1..particle.nodes.len()).step_by(2) {
            while particle.nodes[parent] != self.all[particle.nodes[left] as usize].parent {
                parent += 1;
            }
            children[parent] = Some(left);
        }
        PreorderTree::from_root(0, |slot: usize| {
            let split = children[slot].map(|left| {
                let Rule { cut, threshold } = self.all[particle.nodes[left] as usize].rule;
                (PreorderSplit::new(cut.feature, threshold), [left, left + 1])
            });
            (Arc::clone(&none), split)
        })
    }
}
