//! BART for numbers as a Python class.

use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;

use crate::arrays::{Matrix, optional, slice, vector};
use crate::bart::settings::{BartSettings, watched};
use crate::gate;
use crate::methods::{bart_methods, feature_methods, file_methods, only_a_model};

/// A fitted posterior over sums of trees for numbers.
#[pyclass(module = "boscage._core")]
#[derive(Clone)]
pub(crate) struct BartRegressor(boscage::BartRegressor);

only_a_model!(BartRegressor);
file_methods!(BartRegressor);
bart_methods!(BartRegressor);
feature_methods!(BartRegressor);

#[pymethods]
#[allow(non_snake_case)]
impl BartRegressor {
    /// `start` is a model whose chains are continued. `callback` is called after every sweep.
    #[staticmethod]
    #[pyo3(signature = (
        X, y, settings, *, weights=None, start=None, callback=None, n_categories=Vec::new(), n_threads=1, progress=None
    ))]
    #[allow(clippy::too_many_arguments)]
    fn fit(
        py: Python<'_>,
        X: Matrix<'_>,
        y: PyReadonlyArray1<'_, f64>,
        settings: BartSettings,
        weights: Option<PyReadonlyArray1<'_, f64>>,
        start: Option<PyRef<'_, Self>>,
        callback: Option<Py<PyAny>>,
        n_categories: Vec<u32>,
        n_threads: usize,
        progress: Option<Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let rows = X.rows_with_categories(&n_categories)?;
        let targets = slice("y", &y)?;
        let start = start.as_ref().map(|start| &start.0);
        let weights = optional("sample_weight", weights.as_ref())?;
        let told = (&settings.0, rows, targets, weights);
        watched(callback, |watch| {
            gate::run(py, n_threads, progress.as_ref(), |run| {
                boscage::BartRegressor::fit_from(start, watch, told, run)
            })
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
        let rows = X.rows_with_missing()?;
        let means = gate::run(py, n_threads, None, |run| self.0.predict(rows, run))?;
        Ok(vector(py, means))
    }
}
