//! The equations of the joint model, with the covariance of some trees or that of infinitely many.

use crate::control::Run;
use crate::data::{RowId, Scalar, Table};
use crate::error::Result;
use crate::mondrian::forest::Forest;
use crate::mondrian::forest::storage::Storage;
use crate::mondrian::joint::limit::{
    LimitFactor, LimitFunction, LimitRows, LimitSystem, LogisticCovariance, PairDistances,
};
use crate::mondrian::joint::{LeftOutPlace, System, Trees};
use crate::mondrian::prediction::stop::Stop;
use crate::mondrian::regression::hierarchy::belief_propagation::Hyperparameters;
use crate::mondrian::regression::hierarchy::branch_time;
use crate::mondrian::regression::moments::NodeMoments;
use crate::mondrian::regression::settings::RegressionSettings;
use crate::mondrian::tree::arena::NodeId;

/// The smallest noise as a share of `gamma_1`: with less, rows that coincide get weights that cancel to the
/// last bit.
const LEAST_NOISE: f64 = 1e-9;

/// The share of the targets' norm that may remain unexplained when weights of trees are found that predict.
const TOLERANCE: f64 = 1e-10;

/// The model of some trees with its hyperparameters, of targets whose mean is 0.
pub(crate) struct Joint<'a> {
    hyper: Hyperparameters,
    pub(crate) system: System<'a>,
}

impl<'a> Joint<'a> {
    /// # Errors
    /// An interrupt.
    pub(crate) fn new(
        trees: &'a Trees,
        weights: Option<&[f64]>,
        hyper: Hyperparameters,
        run: &'a Run<'a>,
    ) -> Result<Self> {
        let system = System::new(trees, |time| hyper.clock(time), (noise_of(&hyper), weights), run)?;
        Ok(Self { hyper, system })
    }

    /// The trees of the system.
    pub(super) fn trees(&self) -> &'a Trees {
        self.system.trees()
    }

    /// A tree's share of the mean of a row that it holds with weight 0, `path` leading to its leaf;
    /// `branch` is where the row branches off from the leaf's other rows.
    pub(crate) fn left_out(
        &self,
        tree: usize,
        sum: impl Fn(NodeId) -> f64,
        path: &[NodeId],
        branch: Option<&Stop>,
    ) -> f64 {
        let whole: f64 = path.iter().map(|&node| self.system.span(tree, node) * sum(node)).sum();
        match (branch, path.last()) {
            (Some(stop), Some(&leaf)) => {
                let span = self.system.span(tree, leaf);
                let Hyperparameters { gamma1, gamma2, delay, .. } = self.hyper;
                let probability = branch_time::branch_probability(stop);
                let gain = gamma1 * branch_time::expected_clock(stop, gamma2, delay, probability)
                    - self.hyper.clock(stop.after);
                whole - (span - branch_time::expected_span(probability, span, gain)) * sum(leaf)
            }
            _ => whole,
        }
    }
}

/// The noise variance of the equations.
fn noise_of(hyper: &Hyperparameters) -> f64 {
    hyper.noise_variance.max(LEAST_NOISE * hyper.gamma1)
}

/// The model of infinitely many trees, without its hyperparameters.
pub(crate) struct Limit {
    rows: LimitRows,
    lifetime: f64,
}

impl Limit {
    /// Of the rows in an order; none where the settings say that the trees' own covariance is used.
    pub(crate) fn of<S: Scalar>(
        settings: &RegressionSettings,
        forest: &Forest<NodeMoments>,
        storage: &Storage<S, NodeMoments>,
        order: &[RowId],
    ) -> Option<Self> {
        let of = || {
            let table = Table::new(&storage.values, forest.domain.n_coordinates());
            LimitRows::new(table, order, forest.domain.rates())
        };
        let lifetime = forest.settings.lifetime;
        settings.is_limit(&forest.settings, order.len()).then(|| Self { rows: of(), lifetime })
    }

    fn covariance(&self, hyper: &Hyperparameters) -> LogisticCovariance {
        covariance(hyper, self.lifetime)
    }

    /// The mean, given the rows' weights, and then the sums of columns of the same rows.
    pub(super) fn function(
        &self,
        hyper: &Hyperparameters,
        weights: &[[f64; 1]],
        columns: &[Vec<f64>],
    ) -> LimitFunction<LogisticCovariance> {
        let of_row =
            |row: usize| weights[row].into_iter().chain(columns.iter().map(move |column| column[row]));
        let weights = (0..weights.len()).flat_map(of_row).collect();
        LimitFunction::new(self.rows.clone(), self.covariance(hyper), 1 + columns.len(), weights)
    }

    /// # Errors
    /// An interrupt.
    fn factor(&self, weights: Option<&[f64]>, hyper: &Hyperparameters, run: &Run<'_>) -> Result<LimitFactor> {
        let covariance = self.covariance(hyper);
        let covariances =
            |first: usize, entries: &mut [&mut [f64]]| self.rows.covariances(first, &covariance, entries);
        LimitFactor::new(self.rows.n_rows(), covariances, (noise_of(hyper), weights), run)
    }

    /// # Errors
    /// An interrupt.
    pub(crate) fn system<'a>(
        &self,
        weights: Option<&[f64]>,
        hyper: &Hyperparameters,
        run: &'a Run<'a>,
    ) -> Result<LimitSystem<'a>> {
        LimitSystem::new(&self.rows, &self.covariance(hyper), (noise_of(hyper), weights), run)
    }

    /// # Errors
    /// An interrupt.
    pub(crate) fn measured(&self, run: &Run<'_>) -> Result<MeasuredLimit> {
        Ok(MeasuredLimit { distances: PairDistances::new(&self.rows, run)?, lifetime: self.lifetime })
    }
}

fn covariance(hyper: &Hyperparameters, lifetime: f64) -> LogisticCovariance {
    LogisticCovariance::new(hyper.gamma1, hyper.gamma2, lifetime)
}

/// The same model of rows whose distances are known, to try several hyperparameters.
pub(crate) struct MeasuredLimit {
    distances: PairDistances,
    lifetime: f64,
}

impl MeasuredLimit {
    /// Predictions of left-out rows at hyperparameters that differ in the noise's share of `gamma_1` only, from the largest to
    /// the smallest; see [`LimitSystem::left_out_by_noise`]. `rows` are the targets of `L` problems, which rows are not in a
    /// problem, and which are predicted.
    ///
    /// # Errors
    /// An interrupt.
    pub(crate) fn left_out_by_noise<const L: usize>(
        &self,
        weights: Option<&[f64]>,
        points: &[Hyperparameters],
        (targets, is_left_out, places): (&[[f64; L]], impl Fn(usize, usize) -> bool, &[LeftOutPlace]),
        tolerance: f64,
        run: &Run<'_>,
        next: impl FnMut(usize, &[f64]) -> bool,
    ) -> Result<()> {
        let Some(last) = points.last() else { return Ok(()) };
        // A factor on both does not change the mean.
        let of = |hyper: &Hyperparameters| noise_of(hyper) * last.gamma1 / hyper.gamma1;
        let noises: Vec<f64> = points.iter().map(of).collect();
        let (covariance, noise) = (covariance(last, self.lifetime), (noise_of(last), weights));
        let system = LimitSystem::of_distances(&self.distances, &covariance, noise, run)?;
        system.left_out_by_noise(targets, (is_left_out, places), (&noises, tolerance), next)
    }
}

/// The covariance, but for its hyperparameters.
pub(crate) enum RowCovariance {
    Trees(Trees),
    Limit(Limit),
}

impl RowCovariance {
    /// # Errors
    /// An interrupt.
    pub(super) fn equations<'a>(
        &'a self,
        weights: Option<&[f64]>,
        hyper: &Hyperparameters,
        run: &'a Run<'a>,
    ) -> Result<Equations<'a>> {
        Ok(match self {
            Self::Trees(trees) => Equations::Trees(Joint::new(trees, weights, *hyper, run)?),
            Self::Limit(limit) => Equations::Limit(limit, limit.factor(weights, hyper, run)?),
        })
    }
}

/// The equations that are solved: those of trees by conjugate gradients, those of the limit by a factor. The factor takes less
/// time than the hundreds of products that weights as exact would, and then any row can be left out.
pub(in crate::mondrian::regression) enum Equations<'a> {
    Trees(Joint<'a>),
    Limit(&'a Limit, LimitFactor),
}

impl Equations<'_> {
    /// The number of trees of which each has a share of the weights.
    pub(super) fn n_shares(&self) -> usize {
        match self {
            Self::Trees(joint) => joint.system.n_trees(),
            Self::Limit(..) => 1,
        }
    }

    /// Each share of the rows' weights for `L` targets of each, without the row at a place if it is given.
    ///
    /// # Errors
    /// An interrupt.
    pub(super) fn weights<const L: usize>(
        &self,
        targets: &[[f64; L]],
        left_out: Option<usize>,
        run: &Run<'_>,
    ) -> Result<Vec<[f64; L]>> {
        match self {
            Self::Trees(joint) => {
                let solved = joint.system.weights(targets, |place, _| Some(place) == left_out, TOLERANCE)?;
                run.control.leave_unexplained(solved.unexplained);
                Ok(solved.weights)
            }
            Self::Limit(_, factor) => factor.weights_without(targets, left_out, run),
        }
    }
}
