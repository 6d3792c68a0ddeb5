//! Settings of BART as a Python class, and the traces of its chains.

use std::collections::HashMap;
use std::sync::Mutex;

use boscage::{
    BartTrace, ChipmanPrior, DrawnTree, Error, Kernel, Kernels, Proposal, SharedTree, Sparsity, Sweep, Watch,
};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::arrays::{matrix, vector};
use crate::errors::to_python;
use crate::settings::option;
use crate::trees::{add_categories, add_sides, structure};

/// Priors and sampler of BART.
#[pyclass(module = "boscage._core", frozen, from_py_object)]
#[derive(Clone)]
pub(crate) struct BartSettings(pub(crate) boscage::BartSettings);

const PROPOSAL: [(&str, Proposal); 3] =
    [("prior", Proposal::Prior), ("empirical", Proposal::Empirical), ("optimal", Proposal::Optimal)];

#[pymethods]
impl BartSettings {
    /// `kernels` are probabilities by the names of [`bart_kernels`], zero for a missing name; None for the
    /// defaults of the number of trees. `concentration` is that of sparse split probabilities; None if it is
    /// sampled.
    #[new]
    #[pyo3(signature = (*, n_trees=200, n_chains=4, n_burn=500, n_draws=500, thin=1, kernels=None, n_particles=10, proposal="prior", alpha_s=0.95, beta_s=2.0, sparse=false, concentration=None, k=2.0, learn_k=false, nu=3.0, q=0.9, sigma=None, sigma_estimate=None, seed=0))]
    fn new(
        n_trees: usize,
        n_chains: usize,
        n_burn: usize,
        n_draws: usize,
        thin: usize,
        kernels: Option<HashMap<String, f64>>,
        n_particles: usize,
        proposal: &str,
        alpha_s: f64,
        beta_s: f64,
        sparse: bool,
        concentration: Option<f64>,
        k: f64,
        learn_k: bool,
        nu: f64,
        q: f64,
        sigma: Option<f64>,
        sigma_estimate: Option<f64>,
        seed: u64,
    ) -> PyResult<Self> {
        let kernels = kernels.map_or_else(|| Ok(Kernels::for_trees(n_trees)), |shares| by_name(&shares))?;
        let settings = boscage::BartSettings {
            n_trees,
            n_chains,
            chain: None,
            n_burn,
            n_draws,
            thin,
            kernels,
            n_particles,
            proposal: option("proposal", proposal, &PROPOSAL)?,
            prior: ChipmanPrior::new(alpha_s, beta_s).map_err(to_python)?,
            sparse: sparse.then_some(Sparsity { alpha: concentration }),
            k,
            learn_k,
            nu,
            q,
            sigma,
            sigma_estimate,
            seed,
        };
        settings.check().map_err(to_python)?;
        Ok(Self(settings))
    }

    /// The same for one chain alone.
    fn only(&self, number: usize) -> PyResult<Self> {
        let settings = boscage::BartSettings { chain: Some(number), ..self.0.clone() };
        settings.check().map_err(to_python)?;
        Ok(Self(settings))
    }
}

fn by_name(shares: &HashMap<String, f64>) -> PyResult<Kernels> {
    let pair = |(name, &share): (&String, &f64)| {
        let kernel = Kernel::from_name(name);
        let kernel = kernel.ok_or_else(|| PyValueError::new_err(format!("unknown kernel {name:?}")))?;
        Ok((kernel, share))
    };
    Ok(Kernels::new(&shares.iter().map(pair).collect::<PyResult<Vec<_>>>()?))
}

/// Names of all kernels in the order of the table, with their default probabilities for a number of trees.
#[pyfunction]
pub(crate) fn bart_kernels(py: Python<'_>, n_trees: usize) -> PyResult<Bound<'_, PyDict>> {
    let (dict, defaults) = (PyDict::new(py), Kernels::for_trees(n_trees));
    for kernel in Kernel::ALL {
        dict.set_item(kernel.name(), defaults.share(kernel))?;
    }
    Ok(dict)
}

/// Runs work that calls a Python callable after every sweep, with keywords. An exception of the callable ends
/// the work and is raised.
pub(crate) fn watched<R>(
    callback: Option<Py<PyAny>>,
    work: impl FnOnce(Option<&Watch<'_>>) -> PyResult<R>,
) -> PyResult<R> {
    let Some(callback) = callback else { return work(None) };
    let raised = Mutex::new(None);
    let tell = |sweep: &Sweep| {
        Python::attach(|py| {
            let keywords = PyDict::new(py);
            keywords.set_item("chain", sweep.chain)?;
            keywords.set_item("iteration", sweep.iteration)?;
            keywords.set_item("sigma", sweep.sigma)?;
            keywords.set_item("log_likelihood", sweep.log_likelihood)?;
            callback.call(py, (), Some(&keywords)).map(drop)
        })
        .map_err(|error: PyErr| {
            raised.lock().expect("no panic while the lock is held").get_or_insert(error);
            Error::Interrupted
        })
    };
    let result = work(Some(&tell));
    match raised.into_inner().expect("no panic while the lock is held") {
        Some(error) => Err(error),
        None => result,
    }
}

/// Traces as a dictionary of arrays for each chain, with counts of steps by name.
pub(crate) fn traces<'py>(py: Python<'py>, traces: &[BartTrace]) -> PyResult<Bound<'py, PyList>> {
    let list = PyList::empty(py);
    for trace in traces {
        let dict = PyDict::new(py);
        dict.set_item("sigma", vector(py, trace.sigma.clone()))?;
        dict.set_item("log_likelihood", vector(py, trace.log_likelihood.clone()))?;
        dict.set_item("n_leaves", vector(py, trace.n_leaves.clone()))?;
        dict.set_item("k", vector(py, trace.k.clone()))?;
        dict.set_item("alpha", vector(py, trace.alpha.clone()))?;
        dict.set_item("split_probabilities", vector(py, trace.split_probabilities.clone()))?;
        let acceptance = PyDict::new(py);
        for (step, counts) in trace.acceptance.iter() {
            acceptance.set_item(step.name(), (counts.tried, counts.made))?;
        }
        dict.set_item("acceptance", acceptance)?;
        list.append(dict)?;
    }
    Ok(list)
}

/// Trees as dictionaries of arrays.
pub(crate) fn trees(py: Python<'_>, trees: Vec<DrawnTree>) -> PyResult<Bound<'_, PyList>> {
    let list = PyList::empty(py);
    for tree in trees {
        let dict = structure(
            py,
            [tree.children_left, tree.children_right, tree.parent, tree.feature],
            tree.threshold,
        )?;
        add_sides(&dict, tree.missing_go_to_left)?;
        add_categories(&dict, tree.right_categories)?;
        dict.set_item("value", vector(py, tree.value))?;
        list.append(dict)?;
    }
    Ok(list)
}

/// One dictionary for each of the trees that draws share; values by sum and node.
pub(crate) fn shared_trees(py: Python<'_>, trees: Vec<SharedTree>) -> PyResult<Bound<'_, PyList>> {
    let of_tree = |tree: SharedTree| -> PyResult<Bound<'_, PyDict>> {
        let (n, n_sums) = (tree.feature.len(), tree.sums.len());
        let dict = structure(
            py,
            [tree.children_left, tree.children_right, tree.parent, tree.feature],
            tree.threshold,
        )?;
        add_sides(&dict, tree.missing_go_to_left)?;
        dict.set_item("sums", vector(py, tree.sums))?;
        dict.set_item("value", matrix(py, tree.values, n_sums, n)?)?;
        Ok(dict)
    };
    PyList::new(py, trees.into_iter().map(of_tree).collect::<PyResult<Vec<_>>>()?)
}
