//! The parts of a predictive variance: noise, which more rows would not lessen, and what is not known of the function.
//!
//! By the law of total variance, `Var(y) = E[Var(y | z)] + Var(E[y | z])`. Let `z` be the tree, where the row branches off, and
//! the value of the function there. Then `Var(y | z)` is the variance of the noise at the stop, `sigma_y^2` (eq. 6.1) times the
//! stop's factor where noise is local, and the aleatoric part is its mean over stops and trees. All else is epistemic: how far
//! trees differ, and the posterior variance of the function in each, which returns to the prior's far from all rows.
//!
//! The variance of a row that lacks values is that of the mixture of its completions. How far their means differ is
//! aleatoric: more rows would not tell the missing values. So the epistemic part is the mean of theirs.

use crate::control::Run;
use crate::data::{Rows, Scalar};
use crate::error::Result;
use crate::mondrian::model::NodePosterior;
use crate::mondrian::prediction::stop::Stop;
use crate::mondrian::prediction::visitor::Visitor;
use crate::mondrian::prediction::{completions, walk};
use crate::mondrian::regression::hierarchy::branch_time::branch_probability;
use crate::mondrian::regression::moments::NodeMoments;
use crate::mondrian::regression::predictive::completed::mixed_moments;
use crate::mondrian::regression::regressor::{MondrianRegressor, Regression};
use crate::mondrian::regression::state::ForestState;
use crate::mondrian::tree::Tree;
use crate::mondrian::tree::arena::NodeId;

impl MondrianRegressor {
    /// The variance of the predictive distribution of every row, and its aleatoric part; the difference is the epistemic part.
    ///
    /// # Errors
    /// A number of features other than in `fit`; an interrupt.
    pub fn predict_uncertainty(&self, rows: Rows<'_>, run: &Run<'_>) -> Result<(Vec<f64>, Vec<f64>)> {
        let of_complete = |rows: Rows<'_>| self.complete_uncertainty(rows, run);
        let found = completions::predict(
            &self.forest,
            (rows, Regression::COMPLETIONS),
            run,
            of_complete,
            |completions, found| completions.by_row(&found, Parts::mixed),
        )?;
        Ok(found.into_iter().map(|parts| (parts.moments.1, parts.aleatoric)).unzip())
    }

    fn complete_uncertainty(&self, rows: Rows<'_>, run: &Run<'_>) -> Result<Vec<Parts>> {
        let (mean, variance) = self.predict(rows, run)?;
        let state = self.posterior.state(&self.forest, run)?;
        let factors = walk::predict(&self.forest, rows, run, &NoiseFactors { state })?;
        let each = state.hyper.noise_variance / self.settings().n_estimators as f64;
        let moments = mean.into_iter().zip(variance);
        let parts = moments.zip(factors.into_iter().flatten()).map(|(moments, sum)| {
            let aleatoric = (each * sum).min(moments.1);
            Parts { moments, aleatoric }
        });
        Ok(parts.collect())
    }
}

/// Mean and variance of a row's distribution, and the aleatoric part of the variance.
#[derive(Debug, Clone, Copy)]
struct Parts {
    moments: (f64, f64),
    aleatoric: f64,
}

impl Parts {
    /// Those of a mixture of distributions of equal weights.
    fn mixed(each: &[Self]) -> Self {
        if let [one] = each {
            return *one;
        }
        let moments = mixed_moments(&each.iter().map(|parts| parts.moments).collect::<Vec<_>>());
        let epistemic = each.iter().map(|parts| parts.moments.1 - parts.aleatoric).sum::<f64>();
        let aleatoric = (moments.1 - epistemic / each.len() as f64).clamp(0.0, moments.1);
        Self { moments, aleatoric }
    }
}

/// Sums over trees the expected factor on the noise's variance.
struct NoiseFactors<'a> {
    state: &'a ForestState,
}

impl Visitor<NodeMoments> for NoiseFactors<'_> {
    type Chunk = Vec<f64>;

    fn start(&self, n_rows: usize) -> Vec<f64> {
        vec![0.0; n_rows]
    }

    fn visit<S: Scalar>(
        &self,
        tree_index: usize,
        _: &Tree<S, NodeMoments>,
        row: usize,
        stops: &[Stop],
        sums: &mut Vec<f64>,
    ) {
        let factor = |node: NodeId| match &self.state.scales {
            Some(scales) => scales[tree_index][node.index()],
            None => 1.0,
        };
        let mut stays = 1.0;
        for stop in stops {
            let branches = stays * branch_probability(stop);
            sums[row] += branches * factor(stop.node);
            stays -= branches;
        }
        sums[row] += stays * stops.last().map_or(1.0, |stop| factor(stop.node));
    }
}
