//! Methods of Mondrian forests.

/// The methods of a Mondrian forest with any posterior.
macro_rules! forest_methods {
    ($class:ident) => {
        #[pymethods]
        #[allow(non_snake_case)]
        impl $class {
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
            fn set_substitutes(
                &mut self,
                substitutes: Option<crate::mondrian::missing::Substitutes>,
            ) -> PyResult<()> {
                let substitutes = substitutes.map(crate::mondrian::missing::substitutes);
                self.model_mut()?.set_substitutes(substitutes).map_err(crate::errors::to_python)
            }

            /// What stands for missing values, if values may be missing.
            #[getter]
            fn substitutes(&self) -> PyResult<Option<crate::mondrian::missing::Substitutes>> {
                Ok(crate::mondrian::missing::of_domain(self.model()?.domain()))
            }

            /// Says what stands for missing values of rows to predict while no row of the forest lacks one.
            fn guess_substitutes(&self, substitutes: crate::mondrian::missing::Substitutes) -> PyResult<()> {
                let substitutes = crate::mondrian::missing::substitutes(substitutes);
                self.model()?.guess_substitutes(substitutes).map_err(crate::errors::to_python)
            }

            /// Whether it is known what stands for missing values of rows to predict.
            #[getter]
            fn takes_missing(&self) -> PyResult<bool> {
                Ok(self.model()?.takes_missing())
            }

            /// Rows in which substitutes stand for missing values; None if no value is missing.
            fn filled<'py>(
                &self,
                py: Python<'py>,
                X: crate::arrays::Matrix<'py>,
            ) -> PyResult<Option<Bound<'py, numpy::PyArray2<f64>>>> {
                let (rows, model) = (X.rows_with_missing()?, self.model()?);
                let filled = crate::gate::brief(py, || model.filled(rows))?;
                filled
                    .map(|values| crate::arrays::matrix(py, values, rows.n_rows(), rows.n_features()))
                    .transpose()
            }

            /// Completed rows, whose predictions the rows have on average, and where those of each row begin and all end; None
            /// if no value is missing.
            #[pyo3(signature = (X, *, n_threads=1))]
            fn completions<'py>(
                &self,
                py: Python<'py>,
                X: crate::arrays::Matrix<'py>,
                n_threads: usize,
            ) -> PyResult<Option<crate::mondrian::missing::CompletionArrays<'py>>> {
                let (rows, model) = (X.rows_with_missing()?, self.model()?);
                let found = crate::gate::run(py, n_threads, None, |run| model.completions(rows, run))?;
                found.map(|found| crate::mondrian::missing::completions(py, found)).transpose()
            }

            /// Sets the categories of features for rows to come.
            fn set_categories(
                &mut self,
                categories: crate::mondrian::categories::FeatureCategories<'_>,
            ) -> PyResult<()> {
                let categories = crate::mondrian::categories::read(categories)?;
                self.model_mut()?.set_categories(categories).map_err(crate::errors::to_python)
            }

            /// The features that are categories.
            #[getter]
            fn categories<'py>(
                &self,
                py: Python<'py>,
            ) -> PyResult<crate::mondrian::categories::FeatureCategories<'py>> {
                crate::mondrian::categories::of_domain(py, self.model()?.domain())
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

            /// The rows' features in order of arrival, if they are held as sparse rows: values, their features, and where
            /// each row begins.
            fn sparse_rows<'py>(
                &self,
                py: Python<'py>,
            ) -> PyResult<Option<crate::arrays::SparseArrays<'py>>> {
                let model = self.model()?;
                Ok(py.detach(|| model.sparse_rows()).map(|rows| crate::arrays::sparse_arrays(py, &rows)))
            }

            /// The rows' weights in order of arrival; None if all are 1.
            fn sample_weight<'py>(
                &self,
                py: Python<'py>,
            ) -> PyResult<Option<Bound<'py, numpy::PyArray1<f64>>>> {
                Ok(self.model()?.row_weights().map(|weights| crate::arrays::vector(py, weights)))
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
            ) -> PyResult<Option<Vec<crate::mondrian::feature_rates::MapArrays<'py>>>> {
                let maps = self.model()?.domain().maps();
                Ok(maps.map(|maps| crate::mondrian::feature_rates::map_arrays(py, maps)))
            }
        }
    };
}

/// What a posterior says of its predictions: contributions of features.
macro_rules! explanation_methods {
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
            ) -> PyResult<crate::explain::ContributionArrays<'py>> {
                let (model, rows) = (self.model()?, X.rows_with_missing()?);
                let work = |run: &boscage::Run<'_>| model.shapley(rows, run);
                Ok(crate::explain::contribution_arrays(
                    py,
                    crate::gate::run(py, n_threads, progress.as_ref(), work)?,
                ))
            }

            /// Contributions of the splits on the paths of rows: bases by row, and contributions.
            #[pyo3(signature = (X, *, n_threads=1))]
            fn path_contributions<'py>(
                &self,
                py: Python<'py>,
                X: crate::arrays::Matrix<'py>,
                n_threads: usize,
            ) -> PyResult<crate::explain::ContributionArrays<'py>> {
                let (model, rows) = (self.model()?, X.rows_with_missing()?);
                let work = |run: &boscage::Run<'_>| model.path_contributions(rows, run);
                Ok(crate::explain::contribution_arrays(py, crate::gate::run(py, n_threads, None, work)?))
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

            /// What the splits of each feature explain of the targets.
            #[pyo3(signature = (*, n_threads=1))]
            fn split_gains<'py>(
                &self,
                py: Python<'py>,
                n_threads: usize,
            ) -> PyResult<Bound<'py, numpy::PyArray1<f64>>> {
                let model = self.model()?;
                let work = |run: &boscage::Run<'_>| model.split_gains(run);
                Ok(crate::arrays::vector(py, crate::gate::run(py, n_threads, None, work)?))
            }
        }
    };
}

/// Shares of a forest, whose trees are drawn in several places.
macro_rules! share_methods {
    ($class:ident) => {
        #[pymethods]
        impl $class {
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

            /// Every tree as a dictionary of arrays, without boxes and numbers of the posterior.
            fn tree_structures<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, pyo3::types::PyList>> {
                let model = self.model()?;
                let trees = crate::gate::brief(py, || Ok(model.tree_structures()))?;
                crate::trees::dictionaries(py, trees, 0, |_, _, _| Ok(()))
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
        }
    };
}

pub(crate) use {explanation_methods, forest_methods, share_methods};
