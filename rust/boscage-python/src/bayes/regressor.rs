//! Bayesian trees for numbers as a Python class.

use boscage::{ChipmanPrior, NormalPrior};
use numpy::{PyArray1, PyArray2, PyReadonlyArray1};
use pyo3::prelude::*;

use crate::arrays::{Matrix, matrix, optional, slice, vector};
use crate::bayes::settings::AnySettings;
use crate::errors::to_python;
use crate::gate;
use crate::methods::{bayes_methods, feature_methods, file_methods, only_a_model};

/// A fitted posterior over trees for numbers.
#[pyclass(module = "boscage._core")]
#[derive(Clone)]
pub(crate) struct BayesianTreeRegressor(boscage::BayesianTreeRegressor);

type Table<'py> = Bound<'py, PyArray2<f64>>;
type Vector<'py> = Bound<'py, PyArray1<f64>>;

only_a_model!(BayesianTreeRegressor);
file_methods!(BayesianTreeRegressor);
bayes_methods!(BayesianTreeRegressor);
feature_methods!(BayesianTreeRegressor);

#[pymethods]
#[allow(non_snake_case)]
impl BayesianTreeRegressor {
    #[staticmethod]
    #[pyo3(signature = (X, y, sampler, *, kappa=0.1, shape=1.5, noise_share=0.1, prior_mean=None, scale=None, alpha_s=0.95, beta_s=0.5, n_categories=Vec::new(), weights=None, n_threads=1, progress=None))]
    fn fit(
        py: Python<'_>,
        X: Matrix<'_>,
        y: PyReadonlyArray1<'_, f64>,
        sampler: AnySettings,
        kappa: f64,
        shape: f64,
        noise_share: f64,
        prior_mean: Option<f64>,
        scale: Option<f64>,
        alpha_s: f64,
        beta_s: f64,
        n_categories: Vec<u32>,
        weights: Option<PyReadonlyArray1<'_, f64>>,
        n_threads: usize,
        progress: Option<Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let rows = X.rows_with_categories(&n_categories)?;
        let targets = slice("y", &y)?;
        let weights = optional("sample_weight", weights.as_ref())?;
        let prior = ChipmanPrior::new(alpha_s, beta_s).map_err(to_python)?;
        let leaf_prior = match (prior_mean, scale) {
            (Some(prior_mean), Some(scale)) => NormalPrior { prior_mean, kappa, shape, scale },
            _ => {
                let of_targets = match weights {
                    None => NormalPrior::of_targets(targets, kappa, shape, noise_share),
                    Some(weights) => {
                        NormalPrior::of_weighted_targets((targets, weights), kappa, shape, noise_share)
                    }
                };
                let of_targets = of_targets.map_err(to_python)?;
                NormalPrior {
                    prior_mean: prior_mean.unwrap_or(of_targets.prior_mean),
                    scale: scale.unwrap_or(of_targets.scale),
                    ..of_targets
                }
            }
        };
        let sampler = sampler.into();
        gate::run(py, n_threads, progress.as_ref(), |run| match weights {
            None => boscage::BayesianTreeRegressor::fit(&prior, leaf_prior, &sampler, rows, targets, run),
            Some(weights) => {
                let told = (targets, weights);
                boscage::BayesianTreeRegressor::fit_weighted(&prior, leaf_prior, &sampler, rows, told, run)
            }
        })
        .map(Self)
    }

    #[pyo3(signature = (X, *, n_threads=1))]
    fn predict<'py>(&self, py: Python<'py>, X: Matrix<'py>, n_threads: usize) -> PyResult<Vector<'py>> {
        let rows = X.rows_with_missing()?;
        let means = gate::run(py, n_threads, None, |run| self.0.predict(rows, run))?;
        Ok(vector(py, means))
    }

    /// Means and standard deviations.
    #[pyo3(signature = (X, *, n_threads=1))]
    fn predict_with_std<'py>(
        &self,
        py: Python<'py>,
        X: Matrix<'py>,
        n_threads: usize,
    ) -> PyResult<(Vector<'py>, Vector<'py>)> {
        let rows = X.rows_with_missing()?;
        let (means, stds) = gate::run(py, n_threads, None, |run| self.0.predict_with_std(rows, run))?;
        Ok((vector(py, means), vector(py, stds)))
    }

    /// Degrees of freedom, location and scale of each tree's leaf, one row of a table for each row of X.
    #[pyo3(signature = (X, *, n_threads=1))]
    fn predict_dist<'py>(
        &self,
        py: Python<'py>,
        X: Matrix<'py>,
        n_threads: usize,
    ) -> PyResult<(Table<'py>, Table<'py>, Table<'py>)> {
        let rows = X.rows_with_missing()?;
        let students = gate::run(py, n_threads, None, |run| self.0.predict_dist(rows, run))?;
        let table = |values| matrix(py, values, rows.n_rows(), self.0.weights().len());
        Ok((table(students.df)?, table(students.location)?, table(students.scale)?))
    }

    /// Mean, kappa, shape and scale of the prior of a leaf.
    #[getter]
    fn leaf_prior(&self) -> (f64, f64, f64, f64) {
        let prior = self.0.leaf_prior();
        (prior.prior_mean, prior.kappa, prior.shape, prior.scale)
    }
}
