//! Local noise of a forest whose cells are shared out.
//!
//! A node's factor follows from sums over its rows of sizes of errors, and from the factors above it (`noise::local_noise`). Sums go
//! up each tree as messages do: the owners of cells tell those at the roots of their subtrees. So each owner has the factors of the
//! tops of all trees, and of its own subtrees.

use std::collections::HashMap;

use crate::control::Run;
use crate::data::Scalar;
use crate::error::Result;
use crate::mondrian::cells::share::{CellShare, Stage};
use crate::mondrian::cells::summary::{Words, wrong};
use crate::mondrian::forest::storage::{Storage, with_storage};
use crate::mondrian::regression::moments::NodeMoments;
use crate::mondrian::regression::noise::local_noise::{PRIOR, sizes_of};
use crate::mondrian::regression::regressor::Regression;
use crate::mondrian::regression::trend::Observed;
use crate::mondrian::tree::arena::NodeId;

impl CellShare<Regression> {
    /// What other owners need of this one's errors for local noise.
    ///
    /// # Errors
    /// Trees that are not joined; an interrupt.
    pub fn sizes(&self, run: &Run<'_>) -> Result<Vec<u64>> {
        self.check_stage(Stage::Joined)?;
        self.model
            .forest
            .storage
            .peek(|storage| with_storage!(storage, storage => self.sizes_in(storage, run)))
    }

    fn sizes_in<S: Scalar>(&self, storage: &Storage<S, NodeMoments>, run: &Run<'_>) -> Result<Vec<u64>> {
        let (forest, state) = (&self.model.forest, self.model.posterior.state(&self.model.forest, run)?);
        let observed = Observed::targets_of(forest);
        let words = run.map(storage.trees.len(), |i| {
            let (tree, roots) = (&storage.trees[i], &self.roots[i]);
            let own: Vec<NodeId> =
                roots.iter().flat_map(|&root| tree.arena.preorder_of(Some(root))).collect();
            let told = (&state.messages[i], &state.hyper);
            let sizes = sizes_of((i, tree), observed, told, (&own, &tree.arena.preorder()), |_| None);
            let of_root = |&root: &NodeId| <[f64; 2]>::from(sizes.at(root)).map(f64::to_bits);
            Ok(roots.iter().flat_map(of_root).collect::<Vec<u64>>())
        })?;
        Ok(words.concat())
    }

    /// Estimates local noise, given the [`sizes`](Self::sizes) of all owners.
    ///
    /// # Errors
    /// Trees that are not joined; words that are not those of the plan's cells; an interrupt.
    pub fn set_sizes(&mut self, sizes: &[&[u64]], run: &Run<'_>) -> Result<()> {
        self.check_stage(Stage::Joined)?;
        let known = self.read_sizes(sizes)?;
        let scales = self
            .model
            .forest
            .storage
            .peek(|storage| with_storage!(storage, storage => self.scales_in(storage, &known, run)))?;
        // Trees that are joined have a state.
        if let Some(state) = self.model.posterior.state.get_mut() {
            state.scales = Some(scales);
        }
        Ok(())
    }

    /// The sums at the stubs of each tree.
    fn read_sizes(&self, sizes: &[&[u64]]) -> Result<Vec<HashMap<NodeId, (f64, f64)>>> {
        let mut words: Vec<Words<'_>> = sizes.iter().map(|&words| Words::new(words)).collect();
        let mut owners = self.plan.owners().iter();
        let mut by_tree = Vec::new();
        for cells in &self.cells {
            let mut known = HashMap::new();
            for (&cell, &owner) in cells.iter().zip(owners.by_ref()) {
                let words = words.get_mut(owner as usize).ok_or_else(|| wrong("too few owners"))?;
                let sums = (words.number()?, words.number()?);
                if owner != self.owner {
                    known.insert(cell, sums);
                }
            }
            by_tree.push(known);
        }
        words.iter().try_for_each(Words::end)?;
        Ok(by_tree)
    }

    fn scales_in<S: Scalar>(
        &self,
        storage: &Storage<S, NodeMoments>,
        known: &[HashMap<NodeId, (f64, f64)>],
        run: &Run<'_>,
    ) -> Result<Vec<Vec<f64>>> {
        let (forest, state) = (&self.model.forest, self.model.posterior.state(&self.model.forest, run)?);
        let observed = Observed::targets_of(forest);
        run.map(storage.trees.len(), |i| {
            let (tree, told) = (&storage.trees[i], (&state.messages[i], &state.hyper));
            let order = tree.arena.preorder();
            let at_stub = |node| known[i].get(&node).copied();
            Ok(sizes_of((i, tree), observed, told, (&order, &order), at_stub).smooth(tree, &order, PRIOR))
        })
    }
}
