//! The messages of a forest whose cells are shared out.

use std::collections::HashMap;
use std::sync::OnceLock;

use crate::control::Run;
use crate::data::Scalar;
use crate::error::{Error, Result};
use crate::mondrian::cells::share::{CellShare, Stage};
use crate::mondrian::forest::storage::{Storage, with_storage};
use crate::mondrian::regression::hierarchy::belief_propagation::{
    Hyperparameters, Message, Messages, Told, UnitClocks,
};
use crate::mondrian::regression::hyperparameters::choice::TargetMoments;
use crate::mondrian::regression::hyperparameters::leave_one_out::Chosen;
use crate::mondrian::regression::moments::NodeMoments;
use crate::mondrian::regression::regressor::Regression;
use crate::mondrian::regression::state::ForestState;
use crate::mondrian::tree::arena::NodeId;

/// What a message is in words.
const N_WORDS: usize = 3;

impl CellShare<Regression> {
    /// The moments of the targets of all owners.
    ///
    /// # Errors
    /// Trees that are not joined.
    pub fn target_moments(&self) -> Result<TargetMoments> {
        self.check_stage(Stage::Joined)?;
        let moments = self.model.forest.storage.peek(|storage| {
            with_storage!(storage, storage => {
                let tree = &storage.trees[0];
                TargetMoments::at_root(tree, &tree.statistics)
            })
        });
        Ok(moments)
    }

    /// What [`MondrianRegressor::choose`](crate::MondrianRegressor::choose) chooses where hyperparameters are given.
    ///
    /// # Errors
    /// They are not.
    pub fn given(&self) -> Result<Vec<f64>> {
        let given = Chosen::given(&self.model.posterior.settings).ok_or_else(|| Error::InvalidSetting {
            name: "hyperparameters",
            expected: "given",
            found: "a rule".into(),
        })?;
        Ok(given.numbers())
    }

    /// What other owners need of this one's messages, given what [`MondrianRegressor::choose`] has chosen.
    ///
    /// [`MondrianRegressor::choose`]: crate::MondrianRegressor::choose
    ///
    /// # Errors
    /// Trees that are not joined; numbers that are not what was chosen; an interrupt.
    pub fn messages(&self, chosen: &[f64], run: &Run<'_>) -> Result<Vec<u64>> {
        self.check_stage(Stage::Joined)?;
        let Chosen { hyper, .. } = Chosen::of_numbers(chosen)?;
        let storage = &self.model.forest.storage;
        storage.peek(|storage| with_storage!(storage, storage => self.messages_in(storage, &hyper, run)))
    }

    fn messages_in<S: Scalar>(
        &self,
        storage: &Storage<S, NodeMoments>,
        hyper: &Hyperparameters,
        run: &Run<'_>,
    ) -> Result<Vec<u64>> {
        let words = run.map(storage.trees.len(), |i| {
            let (tree, roots) = (&storage.trees[i], &self.roots[i]);
            let order: Vec<NodeId> =
                roots.iter().flat_map(|&root| tree.arena.preorder_of(Some(root))).collect();
            let clocks = UnitClocks::new(tree, self.plan.settings.lifetime, hyper.gamma2, hyper.delay);
            let messages = Messages::upward(tree, &tree.statistics, &order, hyper, &clocks);
            let of_root = |&root: &NodeId| -> [u64; N_WORDS] {
                let Told { message: Message { precision, mean }, clock } = messages.told(root);
                [precision, mean, clock].map(f64::to_bits)
            };
            Ok(roots.iter().flat_map(of_root).collect::<Vec<u64>>())
        })?;
        Ok(words.concat())
    }

    /// Passes all messages, given what was chosen and the [`messages`](Self::messages) of all owners.
    ///
    /// # Errors
    /// Trees that are not joined; numbers or words that are not those; an interrupt. The share is then as it was.
    pub fn set_messages(&mut self, chosen: &[f64], messages: &[&[u64]], run: &Run<'_>) -> Result<()> {
        self.check_stage(Stage::Joined)?;
        let chosen = Chosen::of_numbers(chosen)?;
        let left_out_fit = chosen.left_out_fit();
        let Chosen { hyper, tails, .. } = chosen;
        let known = self.read_of_stubs(messages, |words| {
            let (precision, mean) = (words.number()?, words.number()?);
            Ok(Told { message: Message { precision, mean }, clock: words.number()? })
        })?;
        let storage = &self.model.forest.storage;
        let messages = storage.peek(
            |storage| with_storage!(storage, storage => self.all_messages(storage, &hyper, &known, run)),
        )?;
        let state = ForestState { hyper, messages, scales: None, tails, left_out_fit, joint: None };
        self.model.posterior.state = OnceLock::from(state);
        Ok(())
    }

    fn all_messages<S: Scalar>(
        &self,
        storage: &Storage<S, NodeMoments>,
        hyper: &Hyperparameters,
        known: &[HashMap<NodeId, Told<f64>>],
        run: &Run<'_>,
    ) -> Result<Vec<Messages>> {
        run.map(storage.trees.len(), |i| {
            let tree = &storage.trees[i];
            let clocks = UnitClocks::new(tree, self.plan.settings.lifetime, hyper.gamma2, hyper.delay);
            let (order, stubs) = (tree.arena.preorder(), known[i].clone());
            Ok(Messages::upward_with(tree, &tree.statistics, &order, (hyper, &clocks), stubs))
        })
    }

    /// What is known once messages are passed.
    ///
    /// # Errors
    /// They are not.
    pub(super) fn state(&self) -> Result<&ForestState> {
        self.check_stage(Stage::Joined)?;
        self.model.posterior.state.get().ok_or_else(|| Error::InvalidSetting {
            name: "the share of cells",
            expected: "one whose messages are passed",
            found: "one that lacks them".into(),
        })
    }
}
