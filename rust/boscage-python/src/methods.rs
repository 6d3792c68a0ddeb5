//! Methods that several classes share. Python classes cannot be generic, so these macros add blocks of
//! methods to a class that has `model` and `of`; classes of forests also have `model_mut`, `settings` and
//! `size`. A class has the name of its model and of its kind of model.

/// `model` and `of` of a class that only wraps a model.
macro_rules! only_a_model {
    ($class:ident) => {
        #[allow(clippy::unnecessary_wraps)]
        impl $class {
            fn model(&self) -> pyo3::PyResult<&boscage::$class> {
                Ok(&self.0)
            }

            fn of(model: boscage::$class) -> Self {
                Self(model)
            }
        }
    };
}

/// Conversion to bytes and files, and the annotation stored in them.
macro_rules! file_methods {
    ($class:ident) => {
        #[pymethods]
        impl $class {
            /// The name of the kind of model, as in `model_kind`.
            #[classattr]
            fn kind() -> &'static str {
                boscage::ModelKind::$class.name()
            }

            #[pyo3(signature = (*, annotation=None))]
            fn to_bytes<'py>(
                &self,
                py: Python<'py>,
                annotation: Option<&str>,
            ) -> PyResult<Bound<'py, pyo3::types::PyBytes>> {
                let model = self.model()?;
                let annotation = annotation.unwrap_or(model.annotation());
                let bytes = py.detach(|| model.to_bytes_annotated(annotation));
                Ok(pyo3::types::PyBytes::new(py, &bytes))
            }

            #[classmethod]
            #[pyo3(signature = (data, *, n_threads=1))]
            fn from_bytes(
                class: &Bound<'_, pyo3::types::PyType>,
                data: &[u8],
                n_threads: usize,
            ) -> PyResult<Self> {
                let read = |run: &boscage::Run<'_>| boscage::$class::from_bytes(data, run);
                crate::gate::run(class.py(), n_threads, None, read).map(Self::of)
            }

            #[pyo3(signature = (path, *, annotation=None))]
            fn save(
                &self,
                py: Python<'_>,
                path: std::path::PathBuf,
                annotation: Option<&str>,
            ) -> PyResult<()> {
                let model = self.model()?;
                let annotation = annotation.unwrap_or(model.annotation());
                crate::gate::brief(py, || model.save_annotated(path, annotation))
            }

            /// Text stored with the model and in its file.
            #[getter]
            fn annotation(&self) -> PyResult<&str> {
                Ok(self.model()?.annotation())
            }
        }
    };
}

/// Methods of both Mondrian forests.
macro_rules! forest_methods {
    ($class:ident) => {
        #[pymethods]
        #[allow(non_snake_case)]
        impl $class {
            /// Shapley values of predictions: bases, and contributions.
            #[pyo3(signature = (X, *, n_threads=1, progress=None))]
            fn shapley<'py>(
                &self,
                py: Python<'py>,
                X: crate::arrays::Matrix<'py>,
                n_threads: usize,
                progress: Option<Bound<'py, PyAny>>,
            ) -> PyResult<crate::explain::Found<'py>> {
                let (model, rows) = (self.model()?, X.rows_with_missing()?);
                let work = |run: &boscage::Run<'_>| model.shapley(rows, run);
                Ok(crate::explain::found(py, crate::gate::run(py, n_threads, progress.as_ref(), work)?))
            }

            /// Contributions of the splits on the paths of rows: bases by row, and contributions.
            #[pyo3(signature = (X, *, n_threads=1))]
            fn path_contributions<'py>(
                &self,
                py: Python<'py>,
                X: crate::arrays::Matrix<'py>,
                n_threads: usize,
            ) -> PyResult<crate::explain::Found<'py>> {
                let (model, rows) = (self.model()?, X.rows_with_missing()?);
                let work = |run: &boscage::Run<'_>| model.path_contributions(rows, run);
                Ok(crate::explain::found(py, crate::gate::run(py, n_threads, None, work)?))
            }

            /// The trees, whose leaves hold what they add to predictions.
            #[pyo3(signature = (*, n_threads=1))]
            fn leaf_trees<'py>(
                &self,
                py: Python<'py>,
                n_threads: usize,
            ) -> PyResult<Bound<'py, pyo3::types::PyList>> {
                let model = self.model()?;
                let work = |run: &boscage::Run<'_>| model.leaf_trees(run);
                crate::explain::leaf_trees(py, crate::gate::run(py, n_threads, None, work)?)
            }

            fn forget(&mut self, py: Python<'_>, ids: numpy::PyReadonlyArray1<'_, u64>) -> PyResult<()> {
                let ids = crate::arrays::slice("ids", &ids)?;
                let model = self.model_mut()?;
                crate::gate::brief(py, || model.forget(ids))
            }

            fn keep_newest(&mut self, py: Python<'_>, n: usize) -> PyResult<()> {
                let model = self.model_mut()?;
                py.detach(|| model.keep_newest(n));
                Ok(())
            }

            /// Applies pending insertions and removals.
            #[pyo3(signature = (*, n_threads=1, progress=None))]
            fn flush(
                &self,
                py: Python<'_>,
                n_threads: usize,
                progress: Option<Bound<'_, PyAny>>,
            ) -> PyResult<()> {
                let model = self.model()?;
                let work = |run: &boscage::Run<'_>| model.flush(run);
                crate::gate::run_sized(py, Self::size(model, 0), n_threads, progress.as_ref(), work)
            }

            /// How usual rows are.
            #[pyo3(signature = (X, *, n_threads=1))]
            #[allow(non_snake_case)]
            fn score_samples<'py>(
                &self,
                py: Python<'py>,
                X: crate::arrays::Matrix<'py>,
                n_threads: usize,
            ) -> PyResult<Bound<'py, numpy::PyArray1<f64>>> {
                let rows = X.rows_with_missing()?;
                let model = self.model()?;
                let work = |run: &boscage::Run<'_>| model.score_samples(rows, run);
                let size = Self::size(model, rows.n_rows());
                Ok(crate::arrays::vector(py, crate::gate::run_sized(py, size, n_threads, None, work)?))
            }

            /// The same for rows of the forest, each without itself.
            #[pyo3(signature = (ids=None, *, n_threads=1, progress=None))]
            fn loo_score_samples<'py>(
                &self,
                py: Python<'py>,
                ids: Option<numpy::PyReadonlyArray1<'py, u64>>,
                n_threads: usize,
                progress: Option<Bound<'py, PyAny>>,
            ) -> PyResult<Bound<'py, numpy::PyArray1<f64>>> {
                let model = self.model()?;
                let ids = crate::arrays::optional("ids", ids.as_ref())?
                    .map_or_else(|| model.ids(), <[u64]>::to_vec);
                let work = |run: &boscage::Run<'_>| model.loo_score_samples(&ids, run);
                Ok(crate::arrays::vector(py, crate::gate::run(py, n_threads, progress.as_ref(), work)?))
            }

            /// The uncertainty of predictions, and its aleatoric part.
            #[pyo3(signature = (X, *, n_threads=1))]
            #[allow(non_snake_case)]
            fn predict_uncertainty<'py>(
                &self,
                py: Python<'py>,
                X: crate::arrays::Matrix<'py>,
                n_threads: usize,
            ) -> PyResult<[Bound<'py, numpy::PyArray1<f64>>; 2]> {
                let rows = X.rows_with_missing()?;
                let model = self.model()?;
                let work = |run: &boscage::Run<'_>| model.predict_uncertainty(rows, run);
                let size = Self::size(model, rows.n_rows());
                let (total, aleatoric) = crate::gate::run_sized(py, size, n_threads, None, work)?;
                Ok([total, aleatoric].map(|part| crate::arrays::vector(py, part)))
            }

            #[getter]
            fn is_flushed(&self) -> PyResult<bool> {
                Ok(self.model()?.is_flushed())
            }

            fn merge(&mut self, py: Python<'_>, other: PyRef<'_, Self>) -> PyResult<()> {
                let other = other.model()?;
                let model = self.model_mut()?;
                crate::gate::brief(py, || model.merge(other))
            }

            fn set_predictive(&mut self, predictive: &str) -> PyResult<()> {
                let predictive = crate::settings::predictive(predictive)?;
                self.model_mut()?.set_predictive(predictive);
                self.settings.predictive = predictive;
                Ok(())
            }

            /// A share of the forest whose bytes these are.
            #[classmethod]
            #[pyo3(signature = (data, share, *, n_threads=1))]
            fn share_from_bytes(
                class: &Bound<'_, pyo3::types::PyType>,
                data: &[u8],
                share: (usize, usize),
                n_threads: usize,
            ) -> PyResult<Self> {
                let read =
                    |run: &boscage::Run<'_>| boscage::$class::share_from_bytes(data, share.0..share.1, run);
                crate::gate::run(class.py(), n_threads, None, read).map(Self::of)
            }

            /// The hashes of the trees that are drawn here, one after the other.
            fn tree_hashes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, pyo3::types::PyBytes>> {
                let model = self.model()?;
                let hashes = py.detach(|| model.tree_hashes());
                Ok(pyo3::types::PyBytes::new(py, hashes.as_flattened()))
            }

            /// The digest of the whole forest, given the hashes of all its trees.
            fn digest_of(&self, py: Python<'_>, trees: &[u8]) -> PyResult<String> {
                let model = self.model()?;
                Ok(py.detach(|| model.digest_of(trees.as_chunks().0)))
            }

            /// The trees that are drawn here: the first, and the one after the last.
            #[getter]
            fn share(&self) -> (usize, usize) {
                let whole = 0..self.settings.n_estimators;
                let share = self.settings.share.as_ref().unwrap_or(&whole);
                (share.start, share.end)
            }

            fn digest(&self, py: Python<'_>) -> PyResult<String> {
                let model = self.model()?;
                Ok(py.detach(|| model.digest()))
            }

            fn copy(&self, py: Python<'_>) -> Self {
                py.detach(|| self.clone())
            }

            /// Memory of trees and rows in bytes.
            #[getter]
            fn nbytes(&self, py: Python<'_>) -> PyResult<usize> {
                let model = self.model()?;
                Ok(py.detach(|| model.bytes()))
            }

            #[getter]
            fn n_rows(&self) -> PyResult<usize> {
                Ok(self.model()?.n_rows())
            }

            #[getter]
            fn n_features(&self) -> PyResult<usize> {
                Ok(self.model()?.domain().n_features())
            }

            #[getter]
            fn n_estimators(&self) -> usize {
                self.settings.n_estimators
            }

            #[getter]
            fn lifetime(&self) -> f64 {
                self.settings.lifetime
            }

            #[getter]
            fn min_samples_split(&self) -> usize {
                self.settings.min_samples_split
            }

            #[getter(predictive)]
            fn get_predictive(&self) -> &'static str {
                crate::settings::predictive_name(self.settings.predictive)
            }

            #[getter]
            fn seed(&self) -> u64 {
                self.settings.seed
            }

            #[getter]
            fn ids<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, numpy::PyArray1<u64>>> {
                Ok(crate::arrays::vector(py, self.model()?.ids()))
            }

            /// Says what stands for missing values; None: no value may be missing.
            fn set_substitutes(&mut self, substitutes: Option<crate::missing::Substitutes>) -> PyResult<()> {
                let substitutes = substitutes.map(crate::missing::substitutes);
                self.model_mut()?.set_substitutes(substitutes).map_err(crate::errors::to_python)
            }

            /// What stands for missing values, if values may be missing.
            #[getter]
            fn substitutes(&self) -> PyResult<Option<crate::missing::Substitutes>> {
                Ok(crate::missing::of_domain(self.model()?.domain()))
            }

            /// Sets the categories of features for rows to come.
            fn set_categories(
                &mut self,
                categories: crate::categories::FeatureCategories<'_>,
            ) -> PyResult<()> {
                let categories = crate::categories::read(categories)?;
                self.model_mut()?.set_categories(categories).map_err(crate::errors::to_python)
            }

            /// The features that are categories.
            #[getter]
            fn categories<'py>(
                &self,
                py: Python<'py>,
            ) -> PyResult<crate::categories::FeatureCategories<'py>> {
                crate::categories::of_domain(py, self.model()?.domain())
            }

            /// Sets the annotation that the model's files have.
            fn set_annotation(&mut self, text: &str) -> PyResult<()> {
                self.model_mut()?.set_annotation(text);
                Ok(())
            }

            /// The rows' features in order of arrival.
            fn rows<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, numpy::PyArray2<f64>>> {
                let model = self.model()?;
                let values = py.detach(|| model.rows());
                crate::arrays::matrix(py, values, model.n_rows(), model.domain().n_features())
            }

            #[getter]
            fn low<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, numpy::PyArray1<f64>>> {
                Ok(crate::arrays::vector(py, self.model()?.domain().low().to_vec()))
            }

            #[getter]
            fn high<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, numpy::PyArray1<f64>>> {
                Ok(crate::arrays::vector(py, self.model()?.domain().high().to_vec()))
            }

            #[getter]
            fn weights<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, numpy::PyArray1<f64>>> {
                Ok(crate::arrays::vector(py, self.model()?.domain().weights().to_vec()))
            }

            /// Knots and shares of every feature, if the features have maps.
            #[getter]
            fn maps<'py>(
                &self,
                py: Python<'py>,
            ) -> PyResult<Option<Vec<crate::feature_rates::MapArrays<'py>>>> {
                let maps = self.model()?.domain().maps();
                Ok(maps.map(|maps| crate::feature_rates::map_arrays(py, maps)))
            }
        }
    };
}

/// Methods of both posteriors over trees.
macro_rules! bayes_methods {
    ($class:ident) => {
        #[pymethods]
        #[allow(non_snake_case)]
        impl $class {
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
            ) -> PyResult<crate::explain::Found<'py>> {
                let rows = X.rows_with_missing()?;
                let found = crate::gate::run(py, n_threads, None, |run| self.0.shapley(rows, run))?;
                Ok(crate::explain::found(py, found))
            }

            fn trees<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, pyo3::types::PyList>> {
                let trees = self.0.trees().into_iter().map(|tree| crate::bayes_settings::tree(py, tree));
                pyo3::types::PyList::new(py, trees.collect::<PyResult<Vec<_>>>()?)
            }

            /// Number of cuts of each tree along each feature.
            fn cuts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, numpy::PyArray2<u32>>> {
                crate::arrays::matrix(py, self.0.cuts(), self.0.weights().len(), self.0.n_features())
            }

            fn best_tree<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, pyo3::types::PyDict>> {
                crate::bayes_settings::tree(py, self.0.best_tree())
            }

            /// Logarithm of each tree's posterior probability, up to the log evidence.
            #[getter]
            fn log_posteriors<'py>(&self, py: Python<'py>) -> Bound<'py, numpy::PyArray1<f64>> {
                crate::arrays::vector(py, self.0.log_posteriors().to_vec())
            }

            fn report<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, pyo3::types::PyList>> {
                crate::bayes_settings::report(py, self.0.report())
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
            fn n_features(&self) -> usize {
                self.0.n_features()
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

/// Methods of both posteriors over sums of trees.
macro_rules! bart_methods {
    ($class:ident) => {
        #[pymethods]
        #[allow(non_snake_case)]
        impl $class {
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
            ) -> PyResult<Vec<crate::explain::Found<'py>>> {
                let (rows, background) = (X.rows_with_missing()?, background.rows_with_missing()?);
                let work = |run: &boscage::Run<'_>| self.0.shapley_draws(rows, background, run);
                let draws = crate::gate::run(py, n_threads, progress.as_ref(), work)?;
                Ok(draws.into_iter().map(|draw| crate::explain::found(py, draw)).collect())
            }

            /// Number of cuts of each draw along each feature.
            fn cuts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, numpy::PyArray2<u32>>> {
                let cuts = py.detach(|| self.0.cuts()).map_err(crate::errors::to_python)?;
                crate::arrays::matrix(py, cuts, self.0.n_draws(), self.0.n_features())
            }

            fn trees<'py>(&self, py: Python<'py>, draw: usize) -> PyResult<Bound<'py, pyo3::types::PyList>> {
                if draw >= self.0.n_draws() {
                    return Err(pyo3::exceptions::PyIndexError::new_err("draw is beyond the last"));
                }
                crate::bart_settings::trees(py, self.0.trees(draw))
            }

            fn traces<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, pyo3::types::PyList>> {
                crate::bart_settings::traces(py, self.0.traces())
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

pub(crate) use {bart_methods, bayes_methods, file_methods, forest_methods, only_a_model};
