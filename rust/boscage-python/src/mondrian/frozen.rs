//! Forests without rows as Python classes, and what grows them group by group.

use std::collections::HashMap;

use boscage::TargetMoments;
use numpy::{PyArray1, PyArray2, PyReadonlyArray1};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::arrays::{self, Matrix, matrix, slice, vector};
use crate::errors::to_python;
use crate::gate;
use crate::methods::{file_methods, only_a_model};
use crate::mondrian::cell_plan::CellPlan;
use crate::mondrian::feature_rates::map_arrays;
use crate::mondrian::hyperparameters::AllScales;
use crate::mondrian::regressor::{MixtureArrays, mixture_arrays};

/// A classifier without rows.
#[pyclass(module = "boscage._core", frozen)]
#[derive(Clone)]
pub(crate) struct FrozenClassifier(boscage::FrozenClassifier);

/// A regressor without rows.
#[pyclass(module = "boscage._core", frozen)]
#[derive(Clone)]
pub(crate) struct FrozenRegressor(boscage::FrozenRegressor);

/// The methods of a forest without rows.
macro_rules! frozen_methods {
    ($class:ident) => {
        only_a_model!($class);
        file_methods!($class);

        #[pymethods]
        impl $class {
            /// Number of features.
            #[getter]
            fn n_features(&self) -> usize {
                self.0.domain().n_features()
            }

            /// Number of rows from which it was grown.
            #[getter]
            fn n_rows(&self) -> usize {
                self.0.n_rows()
            }

            /// Memory of the trees in bytes.
            #[getter]
            fn nbytes(&self) -> usize {
                self.0.bytes()
            }

            /// The settings that the trees were drawn with, as keyword arguments.
            #[getter]
            fn settings<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
                let (settings, domain) = (self.0.settings(), self.0.domain());
                let found = PyDict::new(py);
                found.set_item("n_estimators", settings.n_estimators)?;
                found.set_item("lifetime", settings.lifetime)?;
                found.set_item("min_samples_split", settings.min_samples_split)?;
                found.set_item("seed", settings.seed)?;
                found.set_item("low", vector(py, domain.low().to_vec()))?;
                found.set_item("high", vector(py, domain.high().to_vec()))?;
                found.set_item("weights", vector(py, domain.weights().to_vec()))?;
                found.set_item("maps", domain.maps().map(|maps| map_arrays(py, maps)))?;
                Ok(found)
            }
        }
    };
}

frozen_methods!(FrozenClassifier);
frozen_methods!(FrozenRegressor);

#[pymethods]
#[allow(non_snake_case)]
impl FrozenClassifier {
    #[pyo3(signature = (X, *, n_threads=1))]
    fn predict_proba<'py>(
        &self,
        py: Python<'py>,
        X: Matrix<'_>,
        n_threads: usize,
    ) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let rows = X.rows()?;
        let size = gate::size(rows.n_rows(), self.0.settings(), self.0.domain());
        let proba = gate::run_sized(py, size, n_threads, None, |run| self.0.predict_proba(rows, run))?;
        matrix(py, proba, rows.n_rows(), self.0.classes().len())
    }

    /// The class labels, sorted.
    fn classes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let labels: PyResult<Vec<_>> =
            self.0.classes().iter().map(|label| arrays::label_object(py, label)).collect();
        PyList::new(py, labels?)
    }

    #[getter]
    fn discount(&self) -> f64 {
        self.0.discount()
    }
}

#[pymethods]
#[allow(non_snake_case)]
impl FrozenRegressor {
    /// Means and variances.
    #[pyo3(signature = (X, *, n_threads=1))]
    fn predict<'py>(
        &self,
        py: Python<'py>,
        X: Matrix<'_>,
        n_threads: usize,
    ) -> PyResult<[Bound<'py, PyArray1<f64>>; 2]> {
        let rows = X.rows()?;
        let size = gate::size(rows.n_rows(), self.0.settings(), self.0.domain());
        let (mean, variance) = gate::run_sized(py, size, n_threads, None, |run| self.0.predict(rows, run))?;
        Ok([mean, variance].map(|part| vector(py, part)))
    }

    #[pyo3(signature = (X, *, n_threads=1))]
    fn predict_dist<'py>(
        &self,
        py: Python<'py>,
        X: Matrix<'_>,
        n_threads: usize,
    ) -> PyResult<MixtureArrays<'py>> {
        let rows = X.rows()?;
        let size = gate::size(rows.n_rows(), self.0.settings(), self.0.domain());
        let mixtures = gate::run_sized(py, size, n_threads, None, |run| self.0.predict_dist(rows, run))?;
        Ok(mixture_arrays(py, &mixtures))
    }

    /// The hyperparameters by name.
    fn hyperparameters<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        AllScales { hyper: Some(self.0.hyperparameters()), ..AllScales::default() }.dictionary(py)
    }
}

/// Grows a classifier without rows; unusable after an error.
#[pyclass(module = "boscage._core")]
pub(crate) struct ClassifierFreezer {
    freezer: Option<boscage::ClassifierFreezer>,
}

/// Grows a regressor without rows; unusable after an error.
#[pyclass(module = "boscage._core")]
pub(crate) struct RegressorFreezer {
    freezer: Option<boscage::RegressorFreezer>,
}

/// The methods of what grows a forest without rows; `T` is the type of targets.
macro_rules! freezer_methods {
    ($class:ident, $forest:ident, $target:ty) => {
        impl $class {
            fn freezer(&self) -> PyResult<&boscage::$class> {
                self.freezer.as_ref().ok_or_else(|| PyRuntimeError::new_err("it is finished, or has failed"))
            }
        }

        #[pymethods]
        #[allow(non_snake_case)]
        impl $class {
            /// The plan in which the first owner has the next cells.
            fn next_cells(&self, n_cells: usize) -> PyResult<CellPlan> {
                Ok(CellPlan::of(self.freezer()?.next_cells(n_cells).map_err(to_python)?))
            }

            /// Grows the next cells from all of their rows.
            #[pyo3(signature = (plan, X, targets, *, n_threads=1))]
            fn grow(
                &mut self,
                py: Python<'_>,
                plan: &CellPlan,
                X: Matrix<'_>,
                targets: PyReadonlyArray1<'_, $target>,
                n_threads: usize,
            ) -> PyResult<()> {
                self.freezer()?;
                let (rows, targets) = (X.rows()?, slice("targets", &targets)?);
                let mut freezer = self.freezer.take().expect("it was looked at");
                let next = plan.plan().clone();
                let grow = |run: &boscage::Run<'_>| {
                    freezer.grow(next, rows, targets, run)?;
                    Ok(freezer)
                };
                self.freezer = Some(gate::run(py, n_threads, None, grow)?);
                Ok(())
            }

            /// The forest, once all cells have come.
            #[pyo3(signature = (*, n_threads=1))]
            fn finish(&mut self, py: Python<'_>, n_threads: usize) -> PyResult<$forest> {
                self.freezer()?;
                let freezer = self.freezer.take().expect("it was looked at");
                gate::run(py, n_threads, None, |run| freezer.finish(run)).map($forest)
            }

            /// Number of trees that are complete.
            #[getter]
            fn n_trees(&self) -> PyResult<usize> {
                Ok(self.freezer()?.n_trees())
            }

            /// Number of leaves that have come.
            #[getter]
            fn n_leaves(&self) -> PyResult<usize> {
                Ok(self.freezer()?.n_leaves())
            }

            /// Number of leaves of the tree that is not complete.
            #[getter]
            fn n_open_leaves(&self) -> PyResult<usize> {
                Ok(self.freezer()?.n_open_leaves())
            }

            /// Memory of the complete trees in bytes.
            #[getter]
            fn nbytes_of_trees(&self) -> PyResult<usize> {
                Ok(self.freezer()?.bytes_of_trees())
            }

            /// The same, with what is written down of the next tree.
            #[getter]
            fn nbytes(&self) -> PyResult<usize> {
                Ok(self.freezer()?.bytes())
            }
        }
    };
}

freezer_methods!(ClassifierFreezer, FrozenClassifier, u32);
freezer_methods!(RegressorFreezer, FrozenRegressor, f64);

#[pymethods]
impl ClassifierFreezer {
    /// For rows of some sorted labels, each of which has so many rows.
    #[new]
    #[pyo3(signature = (plan, labels, n_rows_of, *, discount=10.0))]
    fn new(
        plan: &CellPlan,
        labels: Vec<Bound<'_, PyAny>>,
        n_rows_of: Vec<u64>,
        discount: f64,
    ) -> PyResult<Self> {
        let labels = arrays::labels(&labels)?;
        let freezer = boscage::ClassifierFreezer::new(plan.plan().clone(), discount, &labels, &n_rows_of);
        Ok(Self { freezer: Some(freezer.map_err(to_python)?) })
    }
}

#[pymethods]
impl RegressorFreezer {
    #[new]
    fn new(plan: &CellPlan) -> PyResult<Self> {
        let freezer = boscage::RegressorFreezer::new(plan.plan().clone()).map_err(to_python)?;
        Ok(Self { freezer: Some(freezer) })
    }

    /// Of all targets, once the first tree is complete: as how many rows they count, mean, and sum of squared deviations.
    fn target_moments(&self) -> PyResult<(f64, f64, f64)> {
        let TargetMoments { weight, mean, squares } = self.freezer()?.target_moments().map_err(to_python)?;
        Ok((weight, mean, squares))
    }

    /// Sets the hyperparameters, which `finish` needs.
    fn set_hyperparameters(&mut self, given: HashMap<String, f64>) -> PyResult<()> {
        let AllScales { hyper, .. } = AllScales::given(Some(&given))?;
        self.freezer()?;
        let freezer = self.freezer.as_mut().expect("it was looked at");
        freezer.set_hyperparameters(hyper.expect("they are given")).map_err(to_python)
    }
}
