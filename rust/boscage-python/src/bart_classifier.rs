//! BART for two classes as a Python class.

use boscage::{AnyModel, Label};
use numpy::{PyArray1, PyArray2, PyReadonlyArray1};
use pyo3::exceptions::{PyIndexError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};

use crate::arrays::{self, Matrix, label_object, matrix, slice, vector};
use crate::bart_settings::{self, BartSettings};
use crate::gate;

/// A fitted posterior over sums of trees for two classes.
#[pyclass(module = "boscage._boscage")]
#[derive(Clone)]
pub(crate) struct BartClassifier(boscage::BartClassifier);

type Table<'py> = Bound<'py, PyArray2<f64>>;

#[pymethods]
#[allow(non_snake_case)]
impl BartClassifier {
    /// `codes` are places in `labels`.
    #[staticmethod]
    #[pyo3(signature = (X, codes, labels, settings, *, n_threads=1, progress=None))]
    fn fit(
        py: Python<'_>,
        X: Matrix<'_>,
        codes: PyReadonlyArray1<'_, u32>,
        labels: Vec<Bound<'_, PyAny>>,
        settings: BartSettings,
        n_threads: usize,
        progress: Option<Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let rows = X.rows()?;
        let labels = arrays::labels(&labels)?;
        let of_rows = slice("y", &codes)?.iter().map(|&code| labels.get(code as usize).cloned());
        let of_rows: Option<Vec<Label>> = of_rows.collect();
        let of_rows = of_rows.ok_or_else(|| PyValueError::new_err("a code has no label"))?;
        gate::run(py, n_threads, progress.as_ref(), |run| {
            boscage::BartClassifier::fit(&settings.0, rows, &of_rows, run)
        })
        .map(Self)
    }

    /// The probability of the second class.
    #[pyo3(signature = (X, *, n_threads=1))]
    fn predict_proba<'py>(
        &self,
        py: Python<'py>,
        X: Matrix<'py>,
        n_threads: usize,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let rows = X.rows()?;
        let proba = gate::run(py, n_threads, None, |run| self.0.predict_proba(rows, run))?;
        Ok(vector(py, proba))
    }

    fn classes<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        self.0.classes().iter().map(|label| label_object(py, label)).collect()
    }

    /// The probability of the second class at every row in every draw: `n_draws x n_rows`, those of the first chain first.
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
            AnyModel::BartClassifier(model) => Ok(Self(*model)),
            other => {
                Err(PyValueError::new_err(format!("the model is a {}, not a BART classifier", other.name())))
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
