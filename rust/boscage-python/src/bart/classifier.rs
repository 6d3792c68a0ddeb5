//! BART for classes as a Python class.

use boscage::Label;
use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::arrays::{self, Matrix, label_object, optional, slice, vector};
use crate::bart::settings::{BartSettings, watched};
use crate::gate;
use crate::methods::{bart_methods, feature_methods, file_methods, only_a_model};

/// A fitted posterior over sums of trees for classes.
#[pyclass(module = "boscage._core")]
#[derive(Clone)]
pub(crate) struct BartClassifier(boscage::BartClassifier);

only_a_model!(BartClassifier);
file_methods!(BartClassifier);
bart_methods!(BartClassifier);
feature_methods!(BartClassifier);

#[pymethods]
#[allow(non_snake_case)]
impl BartClassifier {
    /// `codes` are indices into `labels`. `start` is a model whose chains are continued. `callback` is called
    /// after every sweep.
    #[staticmethod]
    #[pyo3(signature = (
        X, codes, labels, settings, *, weights=None, start=None, callback=None, n_categories=Vec::new(), n_threads=1, progress=None
    ))]
    #[allow(clippy::too_many_arguments)]
    fn fit(
        py: Python<'_>,
        X: Matrix<'_>,
        codes: PyReadonlyArray1<'_, u32>,
        labels: Vec<Bound<'_, PyAny>>,
        settings: BartSettings,
        weights: Option<PyReadonlyArray1<'_, f64>>,
        start: Option<PyRef<'_, Self>>,
        callback: Option<Py<PyAny>>,
        n_categories: Vec<u32>,
        n_threads: usize,
        progress: Option<Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let rows = X.rows_with_categories(&n_categories)?;
        let labels = arrays::labels(&labels)?;
        let of_rows = slice("y", &codes)?.iter().map(|&code| labels.get(code as usize).cloned());
        let of_rows: Option<Vec<Label>> = of_rows.collect();
        let of_rows = of_rows.ok_or_else(|| PyValueError::new_err("a code has no label"))?;
        let start = start.as_ref().map(|start| &start.0);
        let weights = optional("sample_weight", weights.as_ref())?;
        let told = (&settings.0, rows, of_rows.as_slice(), weights);
        watched(callback, |watch| {
            gate::run(py, n_threads, progress.as_ref(), |run| {
                boscage::BartClassifier::fit_from(start, watch, told, run)
            })
        })
        .map(Self)
    }

    /// The probability of the second class if there are two, else those of all classes, row by row.
    #[pyo3(signature = (X, *, n_threads=1))]
    fn predict_proba<'py>(
        &self,
        py: Python<'py>,
        X: Matrix<'py>,
        n_threads: usize,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let rows = X.rows_with_missing()?;
        let proba = gate::run(py, n_threads, None, |run| self.0.predict_proba(rows, run))?;
        Ok(vector(py, proba))
    }

    fn classes<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        self.0.classes().iter().map(|label| label_object(py, label)).collect()
    }
}
