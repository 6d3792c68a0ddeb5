//! BART for numbers as a Python class.

use boscage::AnyModel;
use numpy::{PyArray1, PyArray2, PyReadonlyArray1};
use pyo3::exceptions::{PyIndexError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};

use crate::arrays::{Matrix, matrix, slice, vector};
use crate::bart_settings::{self, BartSettings};
use crate::gate;

/// A fitted posterior over sums of trees for numbers.
#[pyclass(module = "boscage._boscage")]
#[derive(Clone)]
pub(crate) struct BartRegressor(boscage::BartRegressor);

type Table<'py> = Bound<'py, PyArray2<f64>>;

#[pymethods]
#[allow(non_snake_case)]
impl BartRegressor {
    #[staticmethod]
    #[pyo3(signature = (X, y, settings, *, n_threads=1, progress=None))]
    fn fit(
        py: Python<'_>,
        X: Matrix<'_>,
        y: PyReadonlyArray1<'_, f64>,
        settings: BartSettings,
        n_threads: usize,
        progress: Option<Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let rows = X.rows()?;
        let targets = slice("y", &y)?;
        gate::run(py, n_threads, progress.as_ref(), |run| {
            boscage::BartRegressor::fit(&settings.0, rows, targets, run)
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

    /// The sum of trees at every row in every draw: `n_draws x n_rows`, those of the first chain first.
    #[pyo3(signature = (X, *, n_threads=1))]
    fn predict_draws<'py>(&self, py: Python<'py>, X: Matrix<'py>, n_threads: usize) -> PyResult<Table<'py>> {
        let rows = X.rows()?;
        let draws = gate::run(py, n_threads, None, |run| self.0.predict_draws(rows, run))?;
        matrix(py, draws, self.0.n_draws(), rows.n_rows())
    }

    /// How many cuts of each draw are along each feature.
    fn cuts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<u32>>> {
        matrix(py, py.detach(|| self.0.cuts()), self.0.n_draws(), self.0.n_features())
    }

    fn trees<'py>(&self, py: Python<'py>, draw: usize) -> PyResult<Bound<'py, PyList>> {
        if draw >= self.0.n_draws() {
            return Err(PyIndexError::new_err("there are not so many draws"));
        }
        bart_settings::trees(py, self.0.trees(draw))
    }

    fn traces<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        bart_settings::traces(py, self.0.traces())
    }

    fn to_bytes<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        let bytes = py.detach(|| self.0.to_bytes());
        PyBytes::new(py, &bytes)
    }

    #[staticmethod]
    fn from_bytes(py: Python<'_>, data: &[u8]) -> PyResult<Self> {
        match gate::run(py, 1, None, |run| AnyModel::from_bytes(data, run))? {
            AnyModel::BartRegressor(model) => Ok(Self(*model)),
            other => {
                Err(PyValueError::new_err(format!("the model is a {}, not a BART regressor", other.name())))
            }
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
    fn n_features(&self) -> usize {
        self.0.n_features()
    }

    #[getter]
    fn n_trees(&self) -> usize {
        self.0.n_trees()
    }

    #[getter]
    fn n_draws(&self) -> usize {
        self.0.n_draws()
    }

    /// What the sum of trees is added to.
    #[getter]
    fn centre(&self) -> f64 {
        self.0.centre()
    }
}
