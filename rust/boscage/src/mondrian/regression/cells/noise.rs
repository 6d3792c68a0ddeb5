//! Local noise of a forest whose cells are shared out.
//!
//! A node's factor follows from sums over its rows of sizes of errors, and from the factors above it (`noise::local_noise`). Sums go
//! up each tree as messages do: the owners of cells tell those at the roots of their subtrees. So each owner has the factors of the
//! tops of all trees, and of its own subtrees.

use std::collections::HashMap;

use crate::control::Run;
use crate::data::Scalar;
use crate::error::Result;
use crate::mondrian::cells::share::CellShare;
use crate::mondrian::forest::storage::{Storage, with_storage};
use crate::mondrian::regression::hyperparameters::leave_one_out::Chosen;
use crate::mondrian::regression::moments::NodeMoments;
use crate::mondrian::regression::noise::local_noise::sizes_of;
use crate::mondrian::regression::regressor::Regression;
use crate::mondrian::regression::state::ForestState;
use crate::mondrian::tree::arena::NodeId;

/// The sums of sizes of errors at the stubs of a tree.
type SumsOfStubs = HashMap<NodeId, (f64, f64)>;

impl CellShare<Regression> {
    /// What other owners need of this one's errors for local noise.
    ///
    /// # Errors
    /// Messages that are not passed; an interrupt.
    pub fn sizes(&self, run: &Run<'_>) -> Result<Vec<u64>> {
        let (storage, state) = (&self.model.forest.storage, self.state()?);
        storage.peek(|storage| with_storage!(storage, storage => self.sizes_in(storage, state, run)))
    }

    fn sizes_in<S: Scalar>(
        &self,
        storage: &Storage<S, NodeMoments>,
        state: &ForestState,
        run: &Run<'_>,
    ) -> Result<Vec<u64>> {
        let targets = self.model.forest.row_targets();
        let words = run.map(storage.trees.len(), |i| {
            let (tree, roots) = (&storage.trees[i], &self.roots[i]);
            let own: Vec<NodeId> =
                roots.iter().flat_map(|&root| tree.arena.preorder_of(Some(root))).collect();
            let told = (&state.messages[i], &state.hyper);
            let observed = (targets, &tree.statistics);
            let sizes = sizes_of(tree, observed, told, (&own, &tree.arena.preorder()), |_| None);
            let of_root = |&root: &NodeId| <[f64; 2]>::from(sizes.at(root)).map(f64::to_bits);
            Ok(roots.iter().flat_map(of_root).collect::<Vec<u64>>())
        })?;
        Ok(words.concat())
    }

    /// Estimates local noise, given what was chosen and the [`sizes`](Self::sizes) of all owners.
    ///
    /// # Errors
    /// Messages that are not passed; numbers or words that are not those; an interrupt.
    pub fn set_sizes(&mut self, chosen: &[f64], sizes: &[&[u64]], run: &Run<'_>) -> Result<()> {
        let (storage, state) = (&self.model.forest.storage, self.state()?);
        let Chosen { prior, .. } = Chosen::of_numbers(chosen)?;
        let known = self.read_of_stubs(sizes, |words| Ok((words.number()?, words.number()?)))?;
        let told = (state, &known[..], prior);
        let scales =
            storage.peek(|storage| with_storage!(storage, storage => self.scales_in(storage, told, run)))?;
        if let Some(state) = self.model.posterior.state.get_mut() {
            state.scales = Some(scales);
        }
        Ok(())
    }

    fn scales_in<S: Scalar>(
        &self,
        storage: &Storage<S, NodeMoments>,
        (state, known, prior): (&ForestState, &[SumsOfStubs], f64),
        run: &Run<'_>,
    ) -> Result<Vec<Vec<f64>>> {
        let targets = self.model.forest.row_targets();
        run.map(storage.trees.len(), |i| {
            let (tree, told) = (&storage.trees[i], (&state.messages[i], &state.hyper));
            let order = tree.arena.preorder();
            let at_stub = |node| known[i].get(&node).copied();
            let observed = (targets, &tree.statistics);
            Ok(sizes_of(tree, observed, told, (&order, &order), at_stub).smooth(tree, &order, prior))
        })
    }
}
