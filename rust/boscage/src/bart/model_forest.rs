//! A sum of trees with leaves of any kind, and a sweep over it (Algorithm 4.1, lines 5 to 8).

use std::sync::Arc;

use super::context::{Context, Odds};
use super::growprune::{self, Work};
use super::leaf::LeafPosterior;
use super::leaf_model::{LeafModel, NodeStats, RowStats};
use super::settings::BartSettings;
use super::sweep::{GROW, OTHER, PARTICLES, PRUNE};
use super::tree_state::TreeState;
use super::whole_tree;
use crate::bayes::{Acceptance, State, Table, Target};
use crate::mondrian::Stream;

/// The trees of a sum, and the sum at every row.
#[derive(Debug)]
pub(super) struct ModelForest<'a, M: LeafModel> {
    table: &'a Table,
    settings: &'a BartSettings,
    pub(super) odds: Arc<Odds>,
    pub(super) trees: Vec<TreeState>,
    /// What the trees add up to, and what they are added to.
    pub(super) sums: Vec<f64>,
    pub(super) acceptance: [Acceptance; 4],
    /// By row, of the tree that is being changed.
    stats: Vec<M::Stats>,
    by_node: Vec<M::Stats>,
}

impl<'a, M: LeafModel> ModelForest<'a, M> {
    /// Trees with their values, drawn from the prior, to be added to `centre`.
    pub(super) fn from_prior(
        (table, settings, odds): (&'a Table, &'a BartSettings, &Odds),
        model: &M,
        centre: f64,
        stream: &mut Stream,
    ) -> Self {
        let stats = vec![M::Stats::default(); table.n_rows()];
        let nothing = RowStats { model, stats: &stats };
        let target = Target { table, prior: odds, leaf: &nothing };
        let mut sums = vec![centre; table.n_rows()];
        let trees = (0..settings.n_trees).map(|_| {
            let mut tree = TreeState::new(table);
            tree.replace(&State::from_prior(&target, stream).tree(), table);
            for node in tree.nodes.iter_mut().filter(|node| node.is_leaf()) {
                node.mu = model.draw(M::Stats::default(), stream);
            }
            add_values(&tree, &mut sums);
            tree
        });
        let trees = trees.collect();
        let (odds, acceptance) = (Arc::new(odds.clone()), Default::default());
        Self { table, settings, odds, trees, sums, acceptance, stats, by_node: Vec::new() }
    }

    /// Changes every tree and draws its values, given the others.
    pub(super) fn sweep(&mut self, model: &M, stream: &mut Stream) {
        let odds = Arc::clone(&self.odds);
        // Only kernels of normal leaves look at the context's.
        let context = Context { table: self.table, odds: &odds, leaf: LeafPosterior::new(1.0, 1.0) };
        let kernels = self.settings.kernels;
        for m in 0..self.trees.len() {
            self.take_out(m, model);
            let u = if kernels.growprune < 1.0 { stream.unit() } else { 0.0 };
            let (which, made) = if u < kernels.growprune {
                self.grow_or_prune(m, model, &context, stream)
            } else {
                self.whole_tree(m, model, &context, u >= kernels.growprune + kernels.cgm, stream)
            };
            self.acceptance[which].tried += 1;
            self.acceptance[which].made += u64::from(made);
            self.gather(m);
            let tree = &mut self.trees[m];
            for (node, &stats) in tree.nodes.iter_mut().zip(&self.by_node).filter(|(node, _)| node.is_leaf())
            {
                node.mu = model.draw(stats, stream);
            }
            add_values(tree, &mut self.sums);
        }
    }

    /// Takes a tree out of the sums, and finds what rows say about it.
    fn take_out(&mut self, m: usize, model: &M) {
        let tree = &self.trees[m];
        let rows = self.sums.iter_mut().zip(&tree.labels).zip(&mut self.stats).enumerate();
        for (row, ((sum, &at), stats)) in rows {
            *sum -= tree.get(at).mu;
            *stats = model.stats(row, *sum);
        }
    }

    /// Sums what rows say by leaf.
    fn gather(&mut self, m: usize) {
        let tree = &self.trees[m];
        self.by_node.clear();
        self.by_node.resize(tree.nodes.len(), M::Stats::default());
        for (&at, &stats) in tree.labels.iter().zip(&self.stats) {
            self.by_node[at as usize] = self.by_node[at as usize] + stats;
        }
    }

    fn grow_or_prune(
        &mut self,
        m: usize,
        model: &M,
        context: &Context<'_>,
        stream: &mut Stream,
    ) -> (usize, bool) {
        self.gather(m);
        let rows = RowStats { model, stats: &self.stats };
        let evidence = NodeStats { rows, by_node: &mut self.by_node };
        let (grows, made) =
            growprune::step(&mut Work { tree: &mut self.trees[m], evidence }, context, stream);
        (if grows { GROW } else { PRUNE }, made)
    }

    fn whole_tree(
        &mut self,
        m: usize,
        model: &M,
        context: &Context<'_>,
        particles: bool,
        stream: &mut Stream,
    ) -> (usize, bool) {
        let rows = RowStats { model, stats: &self.stats };
        let tree = &mut self.trees[m];
        let (which, new) = if particles {
            (PARTICLES, whole_tree::particle_gibbs(tree, &rows, context, self.settings, stream))
        } else {
            let (which, new) = whole_tree::cgm(tree, &rows, context, stream);
            ((which as usize).min(OTHER), new)
        };
        let made = new.is_some();
        if let Some(new) = new {
            tree.replace(&new, self.table);
        }
        (which, made)
    }
}

fn add_values(tree: &TreeState, sums: &mut [f64]) {
    for (sum, &at) in sums.iter_mut().zip(&tree.labels) {
        *sum += tree.get(at).mu;
    }
}
