//! Bayesian trees for classes as a Python class.

use boscage::ChipmanPrior;
use numpy::{PyArray2, PyReadonlyArray1};
use pyo3::prelude::*;
use pyo3::types::PyList;

use crate::arrays::{self, Matrix, matrix, optional, slice};
use crate::bayes::settings::AnySettings;
use crate::errors::to_python;
use crate::gate;
use crate::methods::{bayes_methods, feature_methods, file_methods, only_a_model};

/// A fitted posterior over trees for classes.
#[pyclass(module = "boscage._core")]
#[derive(Clone)]
pub(crate) struct BayesianTreeClassifier(boscage::BayesianTreeClassifier);

only_a_model!(BayesianTreeClassifier);
file_methods!(BayesianTreeClassifier);
bayes_methods!(BayesianTreeClassifier);
feature_methods!(BayesianTreeClassifier);

#[pymethods]
#[allow(non_snake_case)]
impl BayesianTreeClassifier {
    #[staticmethod]
    #[pyo3(signature = (X, codes, labels, sampler, *, alpha=5.0, alpha_s=0.95, beta_s=0.5, n_categories=Vec::new(), weights=None, n_threads=1, progress=None))]
    fn fit(
        py: Python<'_>,
        X: Matrix<'_>,
        codes: PyReadonlyArray1<'_, u32>,
        labels: Vec<Bound<'_, PyAny>>,
        sampler: AnySettings,
        alpha: f64,
        alpha_s: f64,
        beta_s: f64,
        n_categories: Vec<u32>,
        weights: Option<PyReadonlyArray1<'_, f64>>,
        n_threads: usize,
        progress: Option<Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let rows = X.rows_with_categories(&n_categories)?;
        let codes = slice("y", &codes)?;
        let labels = arrays::labels(&labels)?;
        let prior = ChipmanPrior::new(alpha_s, beta_s).map_err(to_python)?;
        let sampler = sampler.into();
        let weights = optional("sample_weight", weights.as_ref())?;
        gate::run(py, n_threads, progress.as_ref(), |run| match weights {
            None => {
                boscage::BayesianTreeClassifier::fit(&prior, alpha, &sampler, rows, (codes, &labels), run)
            }
            Some(weights) => {
                let told = (codes, &labels[..], weights);
                boscage::BayesianTreeClassifier::fit_weighted(&prior, alpha, &sampler, rows, told, run)
            }
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
        let rows = X.rows_with_missing()?;
        let proba = gate::run(py, n_threads, None, |run| self.0.predict_proba(rows, run))?;
        matrix(py, proba, rows.n_rows(), self.0.classes().len())
    }

    fn classes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let objects = self.0.classes().iter().map(|label| arrays::label_object(py, label));
        PyList::new(py, objects.collect::<PyResult<Vec<_>>>()?)
    }

    #[getter]
    fn alpha(&self) -> f64 {
        self.0.alpha()
    }
}
