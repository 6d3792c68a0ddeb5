//! A sum of trees with leaves of any kind, and a sweep over it (Algorithm 4.1, lines 5 to 8).

use std::sync::Arc;

use crate::bart::kernel_table::{BartStep, Function, NewTree, StepCounts};
use crate::bart::kernels::context::{Context, Odds};
use crate::bart::kernels::grow_prune;
use crate::bart::kernels::grow_prune::Work;
use crate::bart::kernels::shift::shift;
use crate::bart::kernels::{new_tree, prior_particles};
use crate::bart::leaves::model::{LeafModel, NodeStats, RowStats};
use crate::bart::leaves::normal::LeafPosterior;
use crate::bart::settings::BartSettings;
use crate::bart::state::tree::TreeState;
use crate::control::Control;
use crate::data::sorted::columns::SortedColumns;
use crate::error::Result;
use crate::random::keyed::Stream;

/// The leaf in the context of kernels. Only kernels of normal leaves read it.
const NO_LEAF: LeafPosterior = LeafPosterior { noise: 1.0, spread: 1.0 };

/// The trees of a sum, and the value of the sum at every row.
#[derive(Debug)]
pub(crate) struct GeneralBackfitter<'a, M: LeafModel> {
    table: &'a SortedColumns,
    settings: &'a BartSettings,
    pub(crate) odds: Arc<Odds>,
    pub(crate) trees: Vec<TreeState>,
    /// By row, the centre plus the values of all trees.
    pub(crate) sums: Vec<f64>,
    pub(crate) acceptance: StepCounts,
    /// By row, the statistics for the tree that is being changed.
    stats: Vec<M::Stats>,
    by_node: Vec<M::Stats>,
}

impl<'a, M: LeafModel> GeneralBackfitter<'a, M> {
    /// Trees with leaf values, drawn from the prior, whose sum is added to `centre`.
    ///
    /// # Errors
    /// An interrupt.
    pub(crate) fn from_prior(
        (table, settings, odds): (&'a SortedColumns, &'a BartSettings, &Odds),
        model: &M,
        centre: f64,
        stream: &mut Stream,
        control: &Control,
    ) -> Result<Self> {
        let mut backfitter = Self::from_stumps((table, settings, odds), centre);
        let nothing = RowStats::new(model, &backfitter.stats);
        let context = Context::new((table, odds), NO_LEAF, control);
        for tree in &mut backfitter.trees {
            prior_particles::start_from_prior(tree, &nothing, &context, stream)?;
            for node in tree.nodes.iter_mut().filter(|node| node.is_leaf()) {
                node.mu = model.draw(M::Stats::default(), stream);
            }
            add_values(tree, &mut backfitter.sums);
        }
        Ok(backfitter)
    }

    /// The starting trees of a chain: without cuts for the first chain, draws of the prior for the others.
    pub(crate) fn start(
        number: usize,
        setting: (&'a SortedColumns, &'a BartSettings, &Odds),
        model: &M,
        centre: f64,
        stream: &mut Stream,
        control: &Control,
    ) -> Result<Self> {
        match number {
            0 => Ok(Self::from_stumps(setting, centre)),
            _ => Self::from_prior(setting, model, centre, stream, control),
        }
    }

    /// Trees without cuts, with value zero.
    pub(crate) fn from_stumps(
        (table, settings, odds): (&'a SortedColumns, &'a BartSettings, &Odds),
        centre: f64,
    ) -> Self {
        Self {
            table,
            settings,
            odds: Arc::new(odds.clone()),
            trees: vec![TreeState::new(table); settings.n_trees],
            sums: vec![centre; table.n_rows()],
            acceptance: StepCounts::default(),
            stats: vec![M::Stats::default(); table.n_rows()],
            by_node: Vec::new(),
        }
    }

    /// Changes every tree given the others, and draws its leaf values.
    ///
    /// # Errors
    /// An interrupt; marginal likelihoods of the model that are not finite.
    pub(crate) fn sweep(&mut self, model: &M, stream: &mut Stream, control: &Control) -> Result<()> {
        let odds = Arc::clone(&self.odds);
        let context = Context::new((self.table, &odds), NO_LEAF, control);
        for m in 0..self.trees.len() {
            control.check()?;
            self.take_out(m, model);
            match self.settings.kernels.draw(stream).function() {
                Function::OnLeaves { n_shifts } => self.on_leaves(m, model, n_shifts, &context, stream)?,
                Function::OnRows(kernel) => self.on_rows(m, model, kernel, &context, stream)?,
            }
            self.gather(m);
            let tree = &mut self.trees[m];
            for (node, &stats) in tree.nodes.iter_mut().zip(&self.by_node).filter(|(node, _)| node.is_leaf())
            {
                node.mu = model.draw(stats, stream);
            }
            add_values(tree, &mut self.sums);
        }
        Ok(())
    }

    /// Subtracts a tree from the sums, and computes every row's statistics for it.
    fn take_out(&mut self, m: usize, model: &M) {
        let tree = &self.trees[m];
        let rows = self.sums.iter_mut().zip(&tree.labels).zip(&mut self.stats).enumerate();
        for (row, ((sum, &at), stats)) in rows {
            *sum -= tree.get(at).mu;
            *stats = model.stats(row, *sum);
        }
    }

    /// Sums the statistics of rows by leaf.
    fn gather(&mut self, m: usize) {
        let tree = &self.trees[m];
        self.by_node.clear();
        self.by_node.resize(tree.nodes.len(), M::Stats::default());
        for (&at, &stats) in tree.labels.iter().zip(&self.stats) {
            self.by_node[at as usize] = self.by_node[at as usize] + stats;
        }
    }

    /// Grows or prunes, and shifts cuts.
    fn on_leaves(
        &mut self,
        m: usize,
        model: &M,
        n_shifts: usize,
        context: &Context<'_>,
        stream: &mut Stream,
    ) -> Result<()> {
        self.gather(m);
        let rows = RowStats::new(model, &self.stats);
        let statistics = NodeStats { rows: &rows, by_node: &mut self.by_node };
        let mut work = Work { tree: &mut self.trees[m], statistics };
        let (grows, made) = grow_prune::step(&mut work, context, stream);
        let shifts: Vec<bool> = (0..n_shifts).map_while(|_| shift(&mut work, context, stream)).collect();
        self.acceptance.note(if grows { BartStep::Grow } else { BartStep::Prune }, made);
        for made in shifts {
            self.acceptance.note(BartStep::Shift, made);
        }
        rows.check()
    }

    /// Has a kernel replace a tree.
    fn on_rows(
        &mut self,
        m: usize,
        model: &M,
        kernel: NewTree,
        context: &Context<'_>,
        stream: &mut Stream,
    ) -> Result<()> {
        let rows = RowStats::new(model, &self.stats);
        let tree = &mut self.trees[m];
        let (step, made) = new_tree(kernel, tree, &rows, (context, self.settings), stream)?;
        self.acceptance.note(step, made);
        rows.check()
    }
}

fn add_values(tree: &TreeState, sums: &mut [f64]) {
    for (sum, &at) in sums.iter_mut().zip(&tree.labels) {
        *sum += tree.get(at).mu;
    }
}
