//! Bayesian trees for numbers as a Python class.

use boscage::{AnyModel, ChipmanPrior, NormalPrior};
use numpy::{PyArray1, PyArray2, PyReadonlyArray1};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};

use crate::arrays::{Matrix, matrix, slice, vector};
use crate::bayes_settings::{self, AnySettings};
use crate::errors::to_python;
use crate::gate;

/// A fitted posterior over trees for numbers.
#[pyclass(module = "boscage._boscage")]
#[derive(Clone)]
pub(crate) struct BayesianTreeRegressor(boscage::BayesianTreeRegressor);

type Table<'py> = Bound<'py, PyArray2<f64>>;

#[pymethods]
#[allow(non_snake_case)]
impl BayesianTreeRegressor {
    #[staticmethod]
    #[pyo3(signature = (X, y, sampler, *, kappa=0.1, shape=1.5, noise=0.1, mean=None, scale=None, alpha_s=0.95, beta_s=0.5, n_threads=1, progress=None))]
    fn fit(
        py: Python<'_>,
        X: Matrix<'_>,
        y: PyReadonlyArray1<'_, f64>,
        sampler: AnySettings,
        kappa: f64,
        shape: f64,
        noise: f64,
        mean: Option<f64>,
        scale: Option<f64>,
        alpha_s: f64,
        beta_s: f64,
        n_threads: usize,
        progress: Option<Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let rows = X.rows()?;
        let targets = slice("y", &y)?;
        let prior = ChipmanPrior::new(alpha_s, beta_s).map_err(to_python)?;
        let leaf_prior = match (mean, scale) {
            (Some(mean), Some(scale)) => NormalPrior { mean, kappa, shape, scale },
            _ => {
                let of_targets = NormalPrior::of_targets(targets, kappa, shape, noise).map_err(to_python)?;
                NormalPrior {
                    mean: mean.unwrap_or(of_targets.mean),
                    scale: scale.unwrap_or(of_targets.scale),
                    ..of_targets
                }
            }
        };
        let sampler = sampler.into();
        gate::run(py, n_threads, progress.as_ref(), |run| {
            boscage::BayesianTreeRegressor::fit(prior, leaf_prior, &sampler, rows, targets, run)
        })
        .map(Self)
    }

    #[pyo3(signature = (X, *, n_threads=1))]
    fn predict<'py>(
        &self,
        py: Python<'py>,
        X: Matrix<'py>,
        n_threads: usize,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let rows = X.rows()?;
        let means = gate::run(py, n_threads, None, |run| self.0.predict(rows, run))?;
        Ok(vector(py, means))
    }

    /// Degrees of freedom, location and scale of each tree's leaf, one row of a table for each row of X.
    #[pyo3(signature = (X, *, n_threads=1))]
    fn predict_dist<'py>(
        &self,
        py: Python<'py>,
        X: Matrix<'py>,
        n_threads: usize,
    ) -> PyResult<(Table<'py>, Table<'py>, Table<'py>)> {
        let rows = X.rows()?;
        let students = gate::run(py, n_threads, None, |run| self.0.predict_dist(rows, run))?;
        let table = |values| matrix(py, values, rows.n_rows(), self.0.weights().len());
        Ok((table(students.df)?, table(students.location)?, table(students.scale)?))
    }

    #[pyo3(signature = (X, *, n_threads=1))]
    fn apply<'py>(&self, py: Python<'py>, X: Matrix<'py>, n_threads: usize) -> PyResult<Table<'py>> {
        let rows = X.rows()?;
        let leaves = gate::run(py, n_threads, None, |run| self.0.apply(rows, run))?;
        matrix(py, leaves, rows.n_rows(), self.0.weights().len())
    }

    fn trees<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        bayes_settings::trees(py, self.0.trees())
    }

    fn report<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        bayes_settings::report(py, self.0.report())
    }

    /// Logarithm of the marginal likelihood and its standard error; none from chains.
    fn log_evidence(&self) -> Option<(f64, f64)> {
        self.0.report().log_evidence()
    }

    fn to_bytes<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        let bytes = py.detach(|| self.0.to_bytes());
        PyBytes::new(py, &bytes)
    }

    #[staticmethod]
    fn from_bytes(py: Python<'_>, data: &[u8]) -> PyResult<Self> {
        match gate::run(py, 1, None, |run| AnyModel::from_bytes(data, run))? {
            AnyModel::BayesianTreeRegressor(model) => Ok(Self(*model)),
            other => Err(PyValueError::new_err(format!(
                "the model is a {}, not a Bayesian tree regressor",
                other.name()
            ))),
        }
    }

    fn save(&self, py: Python<'_>, path: std::path::PathBuf) -> PyResult<()> {
        gate::brief(py, || self.0.save(path))
    }

    /// Text kept with the model and in its file.
    #[getter]
    fn annotation(&self) -> &str {
        self.0.annotation()
    }

    #[setter]
    fn set_annotation(&mut self, annotation: String) {
        self.0.set_annotation(annotation);
    }

    #[getter]
    fn weights<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        vector(py, self.0.weights().to_vec())
    }

    #[getter]
    fn n_features(&self) -> usize {
        self.0.n_features()
    }

    /// Mean, kappa, shape and scale of the prior of a leaf.
    #[getter]
    fn leaf_prior(&self) -> (f64, f64, f64, f64) {
        let prior = self.0.leaf_prior();
        (prior.mean, prior.kappa, prior.shape, prior.scale)
    }

    #[getter]
    fn alpha_s(&self) -> f64 {
        self.0.prior().alpha_s()
    }

    #[getter]
    fn beta_s(&self) -> f64 {
        self.0.prior().beta_s()
    }
}
