//! Methods of Bayesian trees and of BART.

/// What both kinds of posterior say of the features.
macro_rules! feature_methods {
    ($class:ident) => {
        #[pymethods]
        impl $class {
            #[getter]
            fn n_features(&self) -> usize {
                self.0.n_features()
            }

            /// By feature, how many categories it has, or 0; empty if no feature has any.
            #[getter]
            fn n_categories(&self) -> Vec<u32> {
                self.0.n_categories().to_vec()
            }

            /// Whether numbers were missing in training.
            #[getter]
            fn has_missing(&self) -> bool {
                self.0.has_missing()
            }

            /// Whether numbers may be missing in rows to predict.
            #[getter]
            fn takes_missing(&self) -> bool {
                self.0.takes_missing()
            }
        }
    };
}

/// The methods of a posterior over trees.
macro_rules! bayes_methods {
    ($class:ident) => {
        #[pymethods]
        #[allow(non_snake_case)]
        impl $class {
            /// The model of all islands or chains, given those of each.
            #[staticmethod]
            fn join(
                py: Python<'_>,
                parts: Vec<PyRef<'_, Self>>,
                sampler: crate::bayes::settings::AnySettings,
            ) -> PyResult<Self> {
                let parts = parts.iter().map(|part| part.0.clone()).collect();
                let sampler = sampler.into();
                crate::gate::brief(py, || boscage::$class::join(parts, &sampler)).map(Self)
            }

            /// Indices of leaves, `n_rows x n_trees`.
            #[pyo3(signature = (X, *, n_threads=1))]
            fn apply<'py>(
                &self,
                py: Python<'py>,
                X: crate::arrays::Matrix<'py>,
                n_threads: usize,
            ) -> PyResult<Bound<'py, numpy::PyArray2<u32>>> {
                let rows = X.rows_with_missing()?;
                let leaves = crate::gate::run(py, n_threads, None, |run| self.0.apply(rows, run))?;
                crate::arrays::matrix(py, leaves, rows.n_rows(), self.0.weights().len())
            }

            /// Shapley values of the posterior mean: bases, and contributions.
            #[pyo3(signature = (X, *, n_threads=1))]
            fn shapley<'py>(
                &self,
                py: Python<'py>,
                X: crate::arrays::Matrix<'py>,
                n_threads: usize,
            ) -> PyResult<crate::explain::ContributionArrays<'py>> {
                let rows = X.rows_with_missing()?;
                let found = crate::gate::run(py, n_threads, None, |run| self.0.shapley(rows, run))?;
                Ok(crate::explain::contribution_arrays(py, found))
            }

            /// The trees, whose leaves hold what they add to the mean of predictions.
            fn leaf_trees<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, pyo3::types::PyList>> {
                crate::explain::leaf_trees(py, py.detach(|| self.0.leaf_trees()))
            }

            fn trees<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, pyo3::types::PyList>> {
                let trees = self.0.trees().into_iter().map(|tree| crate::bayes::settings::tree(py, tree));
                pyo3::types::PyList::new(py, trees.collect::<PyResult<Vec<_>>>()?)
            }

            /// Number of cuts of each tree along each feature.
            fn cuts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, numpy::PyArray2<u32>>> {
                crate::arrays::matrix(py, self.0.cuts(), self.0.weights().len(), self.0.n_features())
            }

            fn best_tree<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, pyo3::types::PyDict>> {
                crate::bayes::settings::tree(py, self.0.best_tree())
            }

            /// Logarithm of each tree's posterior probability, up to the log evidence.
            #[getter]
            fn log_posteriors<'py>(&self, py: Python<'py>) -> Bound<'py, numpy::PyArray1<f64>> {
                crate::arrays::vector(py, self.0.log_posteriors().to_vec())
            }

            fn report<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, pyo3::types::PyList>> {
                crate::bayes::settings::report(py, self.0.report())
            }

            /// Logarithm of the marginal likelihood and its standard error; None for MCMC.
            fn log_evidence(&self) -> Option<(f64, f64)> {
                self.0.report().log_evidence()
            }

            #[getter]
            fn weights<'py>(&self, py: Python<'py>) -> Bound<'py, numpy::PyArray1<f64>> {
                crate::arrays::vector(py, self.0.weights().to_vec())
            }

            #[getter]
            fn alpha_s(&self) -> Option<f64> {
                self.0.prior().map(|prior| prior.alpha_s())
            }

            #[getter]
            fn beta_s(&self) -> Option<f64> {
                self.0.prior().map(|prior| prior.beta_s())
            }
        }
    };
}

/// The methods of a posterior over sums of trees.
macro_rules! bart_methods {
    ($class:ident) => {
        #[pymethods]
        #[allow(non_snake_case)]
        impl $class {
            /// The model of all chains, given those of each.
            #[staticmethod]
            fn join(py: Python<'_>, parts: Vec<PyRef<'_, Self>>) -> PyResult<Self> {
                let parts = parts.iter().map(|part| part.0.clone()).collect();
                crate::gate::brief(py, || boscage::$class::join(parts)).map(Self)
            }

            /// Predictions at every row in every draw; draws of the first chain come first. A prediction is
            /// the target without noise, the probability of the second class, or the probabilities of all
            /// classes if there are more than two.
            #[pyo3(signature = (X, *, n_threads=1))]
            fn predict_draws<'py>(
                &self,
                py: Python<'py>,
                X: crate::arrays::Matrix<'py>,
                n_threads: usize,
            ) -> PyResult<Bound<'py, numpy::PyArray2<f64>>> {
                let rows = X.rows_with_missing()?;
                let draws = crate::gate::run(py, n_threads, None, |run| self.0.predict_draws(rows, run))?;
                let n_numbers = draws.len() / self.0.n_draws();
                crate::arrays::matrix(py, draws, self.0.n_draws(), n_numbers)
            }

            /// Shapley values of the sums of trees in every draw: bases, and contributions.
            #[pyo3(signature = (X, background, *, n_threads=1, progress=None))]
            fn shapley_draws<'py>(
                &self,
                py: Python<'py>,
                X: crate::arrays::Matrix<'py>,
                background: crate::arrays::Matrix<'py>,
                n_threads: usize,
                progress: Option<Bound<'py, PyAny>>,
            ) -> PyResult<Vec<crate::explain::ContributionArrays<'py>>> {
                let (rows, background) = (X.rows_with_missing()?, background.rows_with_missing()?);
                let work = |run: &boscage::Run<'_>| self.0.shapley_draws(rows, background, run);
                let draws = crate::gate::run(py, n_threads, progress.as_ref(), work)?;
                Ok(draws.into_iter().map(|draw| crate::explain::contribution_arrays(py, draw)).collect())
            }

            /// Number of cuts of each draw along each feature.
            fn cuts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, numpy::PyArray2<u32>>> {
                let cuts = py.detach(|| self.0.cuts()).map_err(crate::errors::to_python)?;
                crate::arrays::matrix(py, cuts, self.0.n_draws(), self.0.n_features())
            }

            fn trees<'py>(&self, py: Python<'py>, draw: usize) -> PyResult<Bound<'py, pyo3::types::PyList>> {
                crate::bart::settings::trees(py, self.0.trees(draw).map_err(crate::errors::to_python)?)
            }

            /// The trees of all draws, those with the same splits together.
            fn shared_trees<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, pyo3::types::PyList>> {
                crate::bart::settings::shared_trees(py, py.detach(|| self.0.shared_trees()))
            }

            fn traces<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, pyo3::types::PyList>> {
                crate::bart::settings::traces(py, self.0.traces())
            }

            #[getter]
            fn n_trees(&self) -> usize {
                self.0.n_trees()
            }

            #[getter]
            fn n_draws(&self) -> usize {
                self.0.n_draws()
            }

            /// The constant that is added to each sum of trees.
            #[getter]
            fn centres<'py>(&self, py: Python<'py>) -> Bound<'py, numpy::PyArray1<f64>> {
                crate::arrays::vector(py, self.0.centres().to_vec())
            }

            #[getter]
            fn seed(&self) -> u64 {
                self.0.seed()
            }
        }
    };
}

pub(crate) use {bart_methods, bayes_methods, feature_methods};
