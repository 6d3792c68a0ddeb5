//! Bayesian trees for classes as a Python class.

use boscage::{AnyModel, ChipmanPrior};
use numpy::{PyArray1, PyArray2, PyReadonlyArray1};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};

use crate::arrays::{self, Matrix, matrix, slice, vector};
use crate::bayes_settings::{self, AnySettings};
use crate::errors::to_python;
use crate::gate;

/// A fitted posterior over trees for classes.
#[pyclass(module = "boscage._boscage")]
#[derive(Clone)]
pub(crate) struct BayesianTreeClassifier(boscage::BayesianTreeClassifier);

#[pymethods]
#[allow(non_snake_case)]
impl BayesianTreeClassifier {
    #[staticmethod]
    #[pyo3(signature = (X, codes, labels, sampler, *, alpha=5.0, alpha_s=0.95, beta_s=0.5, n_threads=1, progress=None))]
    fn fit(
        py: Python<'_>,
        X: Matrix<'_>,
        codes: PyReadonlyArray1<'_, u32>,
        labels: Vec<Bound<'_, PyAny>>,
        sampler: AnySettings,
        alpha: f64,
        alpha_s: f64,
        beta_s: f64,
        n_threads: usize,
        progress: Option<Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let rows = X.rows()?;
        let codes = slice("y", &codes)?;
        let labels = arrays::labels(&labels)?;
        let prior = ChipmanPrior::new(alpha_s, beta_s).map_err(to_python)?;
        let sampler = sampler.into();
        gate::run(py, n_threads, progress.as_ref(), |run| {
            boscage::BayesianTreeClassifier::fit(prior, alpha, &sampler, rows, (codes, &labels), run)
        })
        .map(Self)
    }

    #[pyo3(signature = (X, *, n_threads=1))]
    fn predict_proba<'py>(
        &self,
        py: Python<'py>,
        X: Matrix<'py>,
        n_threads: usize,
    ) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let rows = X.rows()?;
        let proba = gate::run(py, n_threads, None, |run| self.0.predict_proba(rows, run))?;
        matrix(py, proba, rows.n_rows(), self.0.classes().len())
    }

    #[pyo3(signature = (X, *, n_threads=1))]
    fn apply<'py>(
        &self,
        py: Python<'py>,
        X: Matrix<'py>,
        n_threads: usize,
    ) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let rows = X.rows()?;
        let leaves = gate::run(py, n_threads, None, |run| self.0.apply(rows, run))?;
        matrix(py, leaves, rows.n_rows(), self.0.weights().len())
    }

    fn classes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let objects = self.0.classes().iter().map(|label| arrays::label_object(py, label));
        PyList::new(py, objects.collect::<PyResult<Vec<_>>>()?)
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
            AnyModel::BayesianTreeClassifier(model) => Ok(Self(*model)),
            other => Err(PyValueError::new_err(format!(
                "the model is a {}, not a Bayesian tree classifier",
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

    #[getter]
    fn alpha(&self) -> f64 {
        self.0.alpha()
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
