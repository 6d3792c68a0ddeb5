//! Samplers of Bayesian trees as Python classes, and their reports.

use boscage::{
    CandidateOrder, Expansion, IslandWeights, PosteriorTree, Proposal, Report, Resampling, Sampler,
};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::arrays::{matrix, vector};
use crate::errors::to_python;
use crate::settings::option;
use crate::trees::{add_categories, add_sides, structure};

/// Settings of Sequential Monte Carlo.
#[pyclass(module = "boscage._core", frozen, from_py_object)]
#[derive(Clone)]
pub(crate) struct SmcSettings(boscage::SmcSettings);

#[pymethods]
impl SmcSettings {
    #[new]
    #[pyo3(signature = (*, n_particles=10, n_islands=5, proposal="optimal", max_features=None, expansion="node", candidate_order="breadth_first", resampling="systematic", ess_threshold=0.5, max_stages=5000, island_weights="uniform", seed=0))]
    fn new(
        n_particles: usize,
        n_islands: usize,
        proposal: &str,
        max_features: Option<usize>,
        expansion: &str,
        candidate_order: &str,
        resampling: &str,
        ess_threshold: f64,
        max_stages: usize,
        island_weights: &str,
        seed: u64,
    ) -> PyResult<Self> {
        let settings = boscage::SmcSettings {
            n_particles,
            n_islands,
            island: None,
            proposal: self::proposal(proposal, max_features)?,
            expansion: option("expansion", expansion, &EXPANSION)?,
            candidate_order: option("candidate_order", candidate_order, &ORDER)?,
            resampling: option("resampling", resampling, &RESAMPLING)?,
            ess_threshold,
            max_stages,
            island_weights: option("island_weights", island_weights, &ISLANDS)?,
            seed,
        };
        settings.check().map_err(to_python)?;
        Ok(Self(settings))
    }

    /// The same for one island alone.
    fn only(&self, number: usize) -> PyResult<Self> {
        let settings = boscage::SmcSettings { island: Some(number), ..self.0.clone() };
        settings.check().map_err(to_python)?;
        Ok(Self(settings))
    }
}

const EXPANSION: [(&str, Expansion); 2] = [("node", Expansion::Node), ("layer", Expansion::Layer)];
const ORDER: [(&str, CandidateOrder); 2] = [
    ("breadth_first", CandidateOrder::BreadthFirst),
    ("marginal_likelihood", CandidateOrder::MarginalLikelihood),
];
const RESAMPLING: [(&str, Resampling); 4] = [
    ("multinomial", Resampling::Multinomial),
    ("systematic", Resampling::Systematic),
    ("stratified", Resampling::Stratified),
    ("residual", Resampling::Residual),
];
const ISLANDS: [(&str, IslandWeights); 2] =
    [("uniform", IslandWeights::Uniform), ("evidence", IslandWeights::Evidence)];

fn proposal(name: &str, max_features: Option<usize>) -> PyResult<Proposal> {
    const NAMES: [(&str, Proposal); 4] = [
        ("prior", Proposal::Prior),
        ("empirical", Proposal::Empirical),
        ("optimal", Proposal::Optimal),
        ("exploring", Proposal::Exploring(usize::MAX)),
    ];
    match (option("proposal", name, &NAMES)?, max_features) {
        (proposal, None) => Ok(proposal),
        (Proposal::Optimal, Some(n)) => Ok(Proposal::OptimalSubset(n)),
        (Proposal::Exploring(_), Some(n)) => Ok(Proposal::Exploring(n)),
        _ => Err(PyValueError::new_err("max_features is for the optimal and the exploring proposal")),
    }
}

/// Settings of Markov chain Monte Carlo.
#[pyclass(module = "boscage._core", frozen, from_py_object)]
#[derive(Clone)]
pub(crate) struct McmcSettings(boscage::McmcSettings);

#[pymethods]
impl McmcSettings {
    #[new]
    #[pyo3(signature = (*, n_chains=4, n_draws=250, thin=20, n_burn=5000, moves=[0.25, 0.25, 0.25, 0.25], seed=0))]
    fn new(
        n_chains: usize,
        n_draws: usize,
        thin: usize,
        n_burn: usize,
        moves: [f64; 4],
        seed: u64,
    ) -> PyResult<Self> {
        let settings = boscage::McmcSettings { n_chains, chain: None, n_draws, thin, n_burn, moves, seed };
        settings.check().map_err(to_python)?;
        Ok(Self(settings))
    }

    /// The same for one chain alone.
    fn only(&self, number: usize) -> PyResult<Self> {
        let settings = boscage::McmcSettings { chain: Some(number), ..self.0.clone() };
        settings.check().map_err(to_python)?;
        Ok(Self(settings))
    }

    /// Probabilities of the moves.
    #[getter]
    fn moves(&self) -> (f64, f64, f64, f64) {
        self.0.moves.into()
    }
}

/// Either sampler.
#[derive(FromPyObject)]
pub(crate) enum AnySettings {
    Smc(SmcSettings),
    Mcmc(McmcSettings),
}

impl From<AnySettings> for Sampler {
    fn from(settings: AnySettings) -> Self {
        match settings {
            AnySettings::Smc(settings) => Self::Smc(settings.0),
            AnySettings::Mcmc(settings) => Self::Mcmc(settings.0),
        }
    }
}

/// The report of a sampler, as a dictionary of arrays for each island or chain.
pub(crate) fn report<'py>(py: Python<'py>, report: &Report) -> PyResult<Bound<'py, PyList>> {
    let list = PyList::empty(py);
    match report {
        Report::Smc(islands) => {
            for island in islands {
                let dict = PyDict::new(py);
                dict.set_item("n_particles", island.n_particles)?;
                dict.set_item("log_evidence", island.log_evidence)?;
                dict.set_item("n_unfinished", island.n_unfinished)?;
                let stages = &island.stages;
                dict.set_item("ess", vector(py, stages.iter().map(|stage| stage.ess).collect()))?;
                let ancestors = PyList::empty(py);
                for stage in stages {
                    ancestors.append(stage.ancestors.clone().map(|ancestors| vector(py, ancestors)))?;
                }
                dict.set_item("ancestors", ancestors)?;
                list.append(dict)?;
            }
        }
        Report::Mcmc(chains) => {
            for chain in chains {
                let dict = PyDict::new(py);
                let draws = &chain.draws;
                let numbers =
                    |number: fn(&boscage::Draw) -> f64| vector(py, draws.iter().map(number).collect());
                dict.set_item("log_prior", numbers(|draw| draw.log_prior))?;
                dict.set_item("log_likelihood", numbers(|draw| draw.log_likelihood))?;
                dict.set_item("n_leaves", numbers(|draw| f64::from(draw.n_leaves)))?;
                dict.set_item("depth", numbers(|draw| f64::from(draw.depth)))?;
                let counts = chain.acceptance.iter();
                dict.set_item("tried", vector(py, counts.clone().map(|of_move| of_move.tried).collect()))?;
                dict.set_item("made", vector(py, counts.map(|of_move| of_move.made).collect()))?;
                list.append(dict)?;
            }
        }
    }
    Ok(list)
}

/// A tree as a dictionary of arrays, `values` a matrix with a row for each node.
pub(crate) fn tree(py: Python<'_>, tree: PosteriorTree) -> PyResult<Bound<'_, PyDict>> {
    let n = tree.feature.len();
    let width = tree.values.len() / n;
    let dict =
        structure(py, [tree.children_left, tree.children_right, tree.parent, tree.feature], tree.threshold)?;
    add_sides(&dict, tree.missing_go_to_left)?;
    add_categories(&dict, tree.right_categories)?;
    dict.set_item("n_rows", vector(py, tree.n_rows.iter().map(|&n| n as i64).collect()))?;
    dict.set_item("values", matrix(py, tree.values, n, width)?)?;
    Ok(dict)
}
