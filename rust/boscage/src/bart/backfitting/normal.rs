//! A sum of trees with normal leaves, and a sweep over it (Algorithm 4.1, lines 5 to 8).

use std::sync::Arc;

use crate::bart::kernel_table::{BartStep, Function, NewTree, StepCounts};
use crate::bart::kernels::context::{Context, Odds};
use crate::bart::kernels::grow_prune;
use crate::bart::kernels::grow_prune::Work;
use crate::bart::kernels::shift::shift;
use crate::bart::kernels::{new_tree, prior_particles};
use crate::bart::leaves::normal::{LeafLikelihoods, LeafPosterior, ResidualLeaf};
use crate::bart::leaves::statistics::NormalLeaves;
use crate::bart::prior::spread::LeafSpread;
use crate::bart::settings::BartSettings;
use crate::bart::state::row_passes::{Sums, carry};
use crate::bart::state::tree::TreeState;
use crate::control::Control;
use crate::data::sorted::columns::SortedColumns;
use crate::error::Result;
use crate::random::keyed::Stream;

/// A sum of trees with normal leaves, and the residuals of the targets.
#[derive(Debug)]
pub(crate) struct NormalBackfitter<'a> {
    table: &'a SortedColumns,
    settings: &'a BartSettings,
    pub(crate) odds: Arc<Odds>,
    /// The prior of leaf values.
    pub(crate) spread: LeafSpread,
    pub(crate) trees: Vec<TreeState>,
    /// Targets minus the sum of trees.
    pub(crate) residuals: Vec<f64>,
    pub(crate) sigma: f64,
    pub(crate) acceptance: StepCounts,
    likelihoods: LeafLikelihoods,
    sums: Sums,
    /// By node of the current tree: the value that is still subtracted from the residuals of its rows.
    counted: Vec<f64>,
    /// By node of the previous tree: the change that is still to be added to the residuals of its rows.
    changes: Vec<f64>,
}

impl<'a> NormalBackfitter<'a> {
    /// Trees with leaf values, drawn from the prior; so is `sigma_mu` if it is sampled.
    ///
    /// # Errors
    /// An interrupt.
    pub(crate) fn from_prior(
        (table, settings, odds): (&'a SortedColumns, &'a BartSettings, &Odds),
        targets: &[f64],
        (sigma, sigma_mu): (f64, f64),
        stream: &mut Stream,
        control: &Control,
    ) -> Result<Self> {
        let mut backfitter = Self::from_stumps((table, settings, odds), targets, (sigma, sigma_mu));
        backfitter.spread.draw(&[], stream);
        let leaf = LeafPosterior::new(sigma, backfitter.spread.sigma_mu);
        let no_residuals = ResidualLeaf { posterior: leaf, residuals: targets };
        let context = Context::new((table, odds), leaf, control);
        for tree in &mut backfitter.trees {
            prior_particles::start_from_prior(tree, &no_residuals, &context, stream)?;
            let leaves: Vec<_> = tree.leaves().collect();
            for id in leaves {
                tree.nodes[id as usize].mu = leaf.draw(0.0, 0.0, stream);
            }
            let values: Vec<f64> = tree.nodes.iter().map(|node| -node.mu).collect();
            carry(&mut backfitter.residuals, &tree.labels, &values);
        }
        Ok(backfitter)
    }

    /// Trees without cuts, with value zero.
    pub(crate) fn from_stumps(
        (table, settings, odds): (&'a SortedColumns, &'a BartSettings, &Odds),
        targets: &[f64],
        (sigma, sigma_mu): (f64, f64),
    ) -> Self {
        Self {
            table,
            settings,
            odds: Arc::new(odds.clone()),
            spread: LeafSpread::new(sigma_mu, settings.learn_k),
            trees: vec![TreeState::new(table); settings.n_trees],
            residuals: targets.to_vec(),
            sigma,
            acceptance: StepCounts::default(),
            likelihoods: LeafLikelihoods::default(),
            sums: Sums::default(),
            counted: Vec::new(),
            changes: Vec::new(),
        }
    }

    /// Draws `sigma_mu` given all leaf values, if it is sampled. Then changes every tree given the others,
    /// and draws its leaf values (Algorithm 4.1, lines 5 to 8).
    ///
    /// # Errors
    /// An interrupt.
    pub(crate) fn sweep(&mut self, stream: &mut Stream, control: &Control) -> Result<()> {
        self.spread.draw(&self.trees, stream);
        let odds = Arc::clone(&self.odds);
        let leaf = LeafPosterior::new(self.sigma, self.spread.sigma_mu);
        let context = Context::new((self.table, &odds), leaf, control);
        self.likelihoods.reset(leaf, self.table.n_rows());
        for m in 0..self.trees.len() {
            control.check()?;
            match self.settings.kernels.draw(stream).function() {
                Function::OnLeaves { n_shifts } => self.on_leaves(m, n_shifts, &context, stream),
                Function::OnRows(kernel) => self.on_rows(m, kernel, &context, stream)?,
            }
            self.draw_values(m, &context, stream);
        }
        carry(&mut self.residuals, &self.trees[self.trees.len() - 1].labels, &self.changes);
        self.changes.clear();
        Ok(())
    }

    /// The shrinkage, if it is sampled.
    pub(crate) fn learned_k(&self) -> Option<f64> {
        self.spread.learned_k(self.settings.k)
    }

    /// Applies the change of the previous tree to the residuals (eq. 4.7; Algorithm 4.1, line 6), and sums
    /// them over the leaves of the current tree.
    fn gather(&mut self, m: usize) {
        let tree = &self.trees[m];
        if m == 0 {
            self.sums.gather(&self.residuals, &tree.labels, tree.nodes.len());
        } else {
            let before = (&self.trees[m - 1], self.changes.as_slice());
            self.sums.carry_and_gather(&mut self.residuals, before, tree);
        }
        // The residuals of eq. 4.7 exclude the current tree, so its values are added back.
        self.counted.clear();
        self.counted.extend(tree.nodes.iter().map(|node| if node.is_leaf() { node.mu } else { 0.0 }));
        for ((sum, value), node) in self.sums.by_node.iter_mut().zip(&self.counted).zip(&tree.nodes) {
            *sum += f64::from(node.n_rows) * value;
        }
    }

    /// Grows or prunes, and shifts cuts.
    fn on_leaves(&mut self, m: usize, n_shifts: usize, context: &Context<'_>, stream: &mut Stream) {
        self.gather(m);
        let (grows, made) = grow_prune::step(&mut self.work(m), context, stream);
        self.acceptance.note(if grows { BartStep::Grow } else { BartStep::Prune }, made);
        for _ in 0..n_shifts {
            let Some(made) = shift(&mut self.work(m), context, stream) else { break };
            self.acceptance.note(BartStep::Shift, made);
        }
    }

    fn work(&mut self, m: usize) -> Work<'_, NormalLeaves<'_>> {
        let statistics = NormalLeaves {
            likelihoods: &self.likelihoods,
            residuals: &mut self.residuals,
            sums: &mut self.sums.by_node,
            counted: &mut self.counted,
        };
        Work { tree: &mut self.trees[m], statistics }
    }

    /// Adds a tree back to the residuals, and has a kernel replace it.
    fn on_rows(
        &mut self,
        m: usize,
        kernel: NewTree,
        context: &Context<'_>,
        stream: &mut Stream,
    ) -> Result<()> {
        if m > 0 {
            carry(&mut self.residuals, &self.trees[m - 1].labels, &self.changes);
        }
        let tree = &mut self.trees[m];
        self.counted.clear();
        self.counted.extend(tree.nodes.iter().map(|node| node.mu));
        carry(&mut self.residuals, &tree.labels, &self.counted);
        let leaf = ResidualLeaf { posterior: context.leaf, residuals: &self.residuals };
        let (step, made) = new_tree(kernel, tree, &leaf, (context, self.settings), stream)?;
        self.acceptance.note(step, made);
        self.counted.clear();
        self.counted.resize(tree.nodes.len(), 0.0);
        self.sums.gather(&self.residuals, &tree.labels, tree.nodes.len());
        Ok(())
    }

    /// Draws the values of the leaves (Algorithm 4.1, line 8).
    fn draw_values(&mut self, m: usize, context: &Context<'_>, stream: &mut Stream) {
        let tree = &mut self.trees[m];
        self.changes.clear();
        self.changes.resize(tree.nodes.len(), 0.0);
        for (id, node) in tree.nodes.iter_mut().enumerate() {
            if node.is_leaf() {
                node.mu = context.leaf.draw(f64::from(node.n_rows), self.sums.by_node[id], stream);
                self.changes[id] = self.counted[id] - node.mu;
            }
        }
    }
}
