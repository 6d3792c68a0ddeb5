//! Predictions by a forest whose cells are shared out.
//!
//! Once messages are passed, the owner of a test row's cell in a tree has the row's components. Owners give
//! lists of these, and whoever has the lists of all owners adds them in the order of the trees: the mixture of one machine, to
//! the last bit.
//!
//! Lists are words: for each row, and for each of its trees that is the owner's, the number of components, and of each its
//! weight, mean and variance, and the variance of its mean over the branch's time.

use crate::control::Run;
use crate::data::{Rows, Scalar};
use crate::error::{Error, Result};
use crate::mondrian::cells::share::{CellShare, each_list};
use crate::mondrian::prediction::stop::Stop;
use crate::mondrian::prediction::visitor::Visitor;
use crate::mondrian::regression::hierarchy::tree_predictive::{Component, Detail};
use crate::mondrian::regression::moments::NodeMoments;
use crate::mondrian::regression::predictive::{ForestPosterior, Paths, Running};
use crate::mondrian::regression::regressor::Regression;
use crate::mondrian::regression::settings::Noise;
use crate::mondrian::tree::Tree;

impl CellShare<Regression> {
    /// This owner's components for test rows, which are those that
    /// [`CellPlan::rows_by_owner`](crate::CellPlan::rows_by_owner) sends to it.
    ///
    /// # Errors
    /// Messages that are not passed, or local noise that is not estimated; rows that are not of the domain; an interrupt.
    pub fn components(&self, rows: Rows<'_>, run: &Run<'_>) -> Result<Vec<u64>> {
        let is_local = self.model.posterior.settings.noise == Noise::Local;
        if self.state()?.scales.is_none() && is_local {
            let (expected, found) = ("one whose local noise is estimated", "one that lacks it".into());
            return Err(Error::InvalidSetting { name: "the share of cells", expected, found });
        }
        let posterior = self.model.forest_posterior(run)?;
        let gather = |owners| GatherLists { posterior, owners, owner: self.owner };
        self.lists(rows, run, gather, |(of_rows, _)| of_rows)
    }

    /// Means and variances, given the components of all owners for the rows of theirs.
    ///
    /// # Errors
    /// Messages that are not passed; components for other rows; rows that are not of the domain; an interrupt.
    pub fn moments_of_components(
        &self,
        rows: Rows<'_>,
        components: &[&[u64]],
        run: &Run<'_>,
    ) -> Result<(Vec<f64>, Vec<f64>)> {
        let state = self.state()?;
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
