//! Predictions by a forest whose cells are shared out.
//!
//! Belief propagation goes once up and once down each tree. The messages of subtrees' roots are all that the top of a tree, and
//! so other subtrees, need to know. The owner of a test row's cell in a tree then has the row's components. Owners give lists
//! of these, and whoever has the lists of all owners adds them in the order of the trees: the mixture of one machine, to the
//! last bit.
//!
//! Lists are words: for each row, and for each of its trees that is the owner's, the number of components, and of each its
//! weight, mean and variance, and the variance of the means that it stands for.

use std::collections::HashMap;
use std::sync::OnceLock;

use crate::control::Run;
use crate::data::{Rows, Scalar};
use crate::error::{Error, Result};
use crate::mondrian::cells::plan::CellPlan;
use crate::mondrian::cells::share::{CellShare, Stage, each_list};
use crate::mondrian::cells::statistics::{CellPosterior, N_TOLD};
use crate::mondrian::forest::Batch;
use crate::mondrian::prediction::stop::Stop;
use crate::mondrian::prediction::visitor::Visitor;
use crate::mondrian::regression::hierarchy::belief_propagation::{
    Hyperparameters, Message, Messages, Told, UnitClocks,
};
use crate::mondrian::regression::hierarchy::tree_predictive::{Component, Detail};
use crate::mondrian::regression::moments::NodeMoments;
use crate::mondrian::regression::predictive::{ForestPosterior, Paths, Running};
use crate::mondrian::regression::regressor::{Regression, check_targets};
use crate::mondrian::regression::settings::{Noise, Posterior, RegressionSettings};
use crate::mondrian::regression::state::ForestState;
use crate::mondrian::tree::Tree;
use crate::mondrian::tree::arena::NodeId;

/// The messages of subtrees' roots.
impl CellPosterior for Regression {
    fn tell<S: Scalar>(
        &self,
        tree: &Tree<S, NodeMoments>,
        roots: &[NodeId],
        lifetime: f64,
    ) -> Vec<[f64; N_TOLD]> {
        let hyper = self.given();
        let clocks = UnitClocks::new(tree, lifetime, hyper.gamma2, hyper.delay);
        let order: Vec<NodeId> = roots.iter().flat_map(|&root| tree.arena.preorder_of(Some(root))).collect();
        let messages = Messages::upward(tree, &tree.statistics, &order, &hyper, &clocks);
        let of_root = |&root: &NodeId| {
            let Told { message: Message { precision, mean }, clock } = messages.told(root);
            [precision, mean, clock]
        };
        roots.iter().map(of_root).collect()
    }

    fn hear<S: Scalar>(
        &mut self,
        trees: &[Tree<S, NodeMoments>],
        lifetime: f64,
        told: &[Vec<(NodeId, [f64; N_TOLD])>],
        run: &Run<'_>,
    ) -> Result<()> {
        let hyper = self.given();
        let messages = run.map(trees.len(), |i| {
            let of_stub = |&(stub, [precision, mean, clock]): &(NodeId, [f64; N_TOLD])| {
                (stub, Told { message: Message { precision, mean }, clock })
            };
            let known: HashMap<NodeId, Told<f64>> = told[i].iter().map(of_stub).collect();
            let tree = &trees[i];
            let clocks = UnitClocks::new(tree, lifetime, hyper.gamma2, hyper.delay);
            let order = tree.arena.preorder();
            let known = |node| known.get(&node).copied();
            Ok(Messages::upward_with(tree, &tree.statistics, &order, (&hyper, &clocks), known))
        })?;
        self.state = OnceLock::from(ForestState { hyper, messages, scales: None, tails: None, joint: None });
        Ok(())
    }
}

impl Regression {
    /// The hyperparameters, which must be given.
    pub(crate) fn given(&self) -> Hyperparameters {
        self.settings.hyperparameters.expect("it was checked that hyperparameters are given")
    }
}

/// The cells of one owner of a regressor's cells.
pub type RegressorCells = CellShare<Regression>;

impl CellShare<Regression> {
    /// The rows of an owner's cells; `batch` has those that [`CellPlan::rows_by_owner`] sends to it.
    ///
    /// # Errors
    /// Settings that need all rows or all trees in one place: all but the exact posterior with given hyperparameters; lengths or
    /// values that are not as they should be.
    pub fn new(
        plan: CellPlan,
        owner: u32,
        regression: RegressionSettings,
        batch: Batch<'_>,
        targets: &[f64],
    ) -> Result<Self> {
        regression.check()?;
        check_apart(&regression)?;
        let targets = check_targets(batch.rows.n_rows(), targets)?;
        let posterior = Regression::new(regression);
        Self::of_rows(plan, owner, posterior, batch, &targets)
    }

    /// This owner's components for test rows, which are those that [`CellPlan::rows_by_owner`] sends to it.
    ///
    /// # Errors
    /// Trees that are not joined, or local noise that is not estimated; rows that are not of the domain; an interrupt.
    pub fn components(&self, rows: Rows<'_>, run: &Run<'_>) -> Result<Vec<u64>> {
        self.check_stage(Stage::Joined)?;
        let posterior = self.model.forest_posterior(run)?;
        if self.model.posterior.settings.noise == Noise::Local && posterior.state.scales.is_none() {
            let (expected, found) = ("one whose local noise is estimated", "one that lacks it".into());
            return Err(Error::InvalidSetting { name: "the share of cells", expected, found });
        }
        let gather = |owners| GatherLists { posterior, owners, owner: self.owner };
        self.lists(rows, run, gather, |(of_rows, _)| of_rows)
    }

    /// Means and variances, given the components of all owners for the rows of theirs.
    ///
    /// # Errors
    /// Trees that are not joined; components for other rows; rows that are not of the domain; an interrupt.
    pub fn moments_of_components(
        &self,
        rows: Rows<'_>,
        components: &[&[u64]],
        run: &Run<'_>,
    ) -> Result<(Vec<f64>, Vec<f64>)> {
        self.check_stage(Stage::Joined)?;
        let state = self.model.posterior.state(&self.model.forest, run)?;
        let mut mixtures = vec![Running::default(); rows.n_rows()];
        let owners = self.plan.owners_of(rows, run)?;
        each_list(&owners, components, |row, words| {
            for _ in 0..words.next()? {
                let (weight, mean, variance) = (words.number()?, words.number()?, words.number()?);
                mixtures[row].add(Component { weight, mean, variance }, words.number()?);
            }
            Ok(())
        })?;
        Ok(mixtures.into_iter().map(|mixture| mixture.moments(state, |_| 0.0)).unzip())
    }

    /// The targets of the rows that are here.
    #[must_use]
    pub fn targets(&self) -> Vec<f64> {
        self.model.targets()
    }
}

/// # Errors
/// Settings that need all rows or all trees in one place.
fn check_apart(settings: &RegressionSettings) -> Result<()> {
    let (expected, found) = match settings {
        _ if settings.posterior != Posterior::Exact => ("'exact' where cells are shared out", "another"),
        RegressionSettings { hyperparameters: None, .. } => ("one with given hyperparameters", "a rule"),
        _ => return Ok(()),
    };
    Err(Error::InvalidSetting { name: "posterior", expected, found: found.into() })
}

/// Gathers lists of components for the rows that are the owner's, by tree.
struct GatherLists<'a> {
    posterior: ForestPosterior<'a>,
    owners: Vec<Vec<u32>>,
    owner: u32,
}

impl Visitor<NodeMoments> for GatherLists<'_> {
    type Chunk = (Vec<Vec<u64>>, Paths);

    fn start(&self, n_rows: usize) -> Self::Chunk {
        (vec![Vec::new(); n_rows], Paths::default())
    }

    fn visit<S: Scalar>(
        &self,
        number: usize,
        tree: &Tree<S, NodeMoments>,
        row: usize,
        stops: &[Stop],
        (of_rows, paths): &mut Self::Chunk,
    ) {
        if self.owners[number][row] != self.owner {
            return;
        }
        let words = &mut of_rows[row];
        let start = words.len();
        words.push(0);
        let add = |Component { weight, mean, variance }, between: f64| {
            words.extend([weight, mean, variance, between].map(f64::to_bits));
        };
        self.posterior.components((number, tree), stops, Detail::Moments, paths, add);
        words[start] = ((words.len() - start - 1) / 4) as u64;
    }
}
