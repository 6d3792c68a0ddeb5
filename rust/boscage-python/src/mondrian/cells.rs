//! A forest whose rows are shared out by cell: which cells there are, and what one owner of cells holds.

use boscage::{
    Batch, Calibration, CellCount, ClassPosterior, ClassificationSettings, CoarsePrior, Domain,
    Hyperparameters, JointKernel, MondrianSettings, Noise, Posterior, RegressionSettings, RowExtent,
};
use numpy::{PyArray1, PyArray2, PyReadonlyArray1};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyTuple};

use crate::arrays::{self, Matrix, matrix, optional, slice, vector};
use crate::errors::to_python;
use crate::gate;
use crate::mondrian::feature_rates;
use crate::settings::{predictive, predictive_name};

/// Which cells of which trees there are, and who owns them.
#[pyclass(module = "boscage._core", frozen)]
pub(crate) struct CellPlan {
    plan: boscage::CellPlan,
}

impl CellPlan {
    pub(crate) fn of(plan: boscage::CellPlan) -> Self {
        Self { plan }
    }

    pub(crate) fn plan(&self) -> &boscage::CellPlan {
        &self.plan
    }
}

/// Numbers of rows, least targets and greatest targets, by cell.
type CountArrays<'py> = (Bound<'py, PyArray1<u64>>, Bound<'py, PyArray1<f64>>, Bound<'py, PyArray1<f64>>);

/// A plan, the numbers of rows of its cells, and whether each may be cut.
type Condensed<'py> = (CellPlan, Bound<'py, PyArray1<u64>>, Bound<'py, PyArray1<bool>>);

#[pymethods]
#[allow(non_snake_case)]
impl CellPlan {
    /// Without `steps` each tree has one cell, and without `owners` the first owner has all cells.
    #[new]
    #[pyo3(signature = (*, n_estimators, lifetime, min_samples_split, predictive, seed, low, high, weights=None, maps=None, extent=(0, true), steps=None, owners=None))]
    fn new(
        n_estimators: usize,
        lifetime: f64,
        min_samples_split: usize,
        predictive: &str,
        seed: u64,
        low: Vec<f64>,
        high: Vec<f64>,
        weights: Option<Vec<f64>>,
        maps: Option<Vec<(Vec<f64>, Vec<f64>)>>,
        extent: (u32, bool),
        steps: Option<Vec<Vec<u8>>>,
        owners: Option<Vec<u32>>,
    ) -> PyResult<Self> {
        let predictive = self::predictive(predictive)?;
        let settings =
            MondrianSettings { n_estimators, lifetime, min_samples_split, predictive, seed, share: None };
        let domain = feature_rates::mapped(Domain::new(low, high, weights).map_err(to_python)?, maps)?;
        let extent = RowExtent { level: extent.0, is_single: extent.1 };
        let plan = match (steps, owners) {
            (Some(steps), Some(owners)) => {
                boscage::CellPlan::of_steps(settings, domain, extent, &steps, owners)
            }
            _ => boscage::CellPlan::new(settings, domain, extent),
        };
        Ok(Self { plan: plan.map_err(to_python)? })
    }

    fn __getnewargs_ex__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyTuple>, Bound<'py, PyDict>)> {
        let (settings, domain, extent) = (self.plan.settings(), self.plan.domain(), self.plan.extent());
        let given = PyDict::new(py);
        given.set_item("n_estimators", settings.n_estimators)?;
        given.set_item("lifetime", settings.lifetime)?;
        given.set_item("min_samples_split", settings.min_samples_split)?;
        given.set_item("predictive", predictive_name(settings.predictive))?;
        given.set_item("seed", settings.seed)?;
        given.set_item("low", domain.low())?;
        given.set_item("high", domain.high())?;
        given.set_item("weights", domain.weights())?;
        if let Some(maps) = domain.maps() {
            let maps: Vec<_> = maps.iter().map(|map| (map.knots(), map.shares())).collect();
            given.set_item("maps", maps)?;
        }
        given.set_item("extent", (extent.level, extent.is_single))?;
        let steps = self.plan.steps().into_iter().map(|steps| PyBytes::new(py, &steps));
        given.set_item("steps", PyList::new(py, steps)?)?;
        given.set_item("owners", self.plan.owners())?;
        Ok((PyTuple::empty(py), given))
    }

    /// What must be known of rows: their level, and whether float32 holds them.
    fn extent_of(&self, X: Matrix<'_>) -> PyResult<(u32, bool)> {
        let RowExtent { level, is_single } =
            RowExtent::of(self.plan.domain(), X.rows()?).map_err(to_python)?;
        Ok((level, is_single))
    }

    /// The counts of every cell for some rows.
    #[pyo3(signature = (X, targets, *, n_threads=1))]
    fn count<'py>(
        &self,
        py: Python<'py>,
        X: Matrix<'_>,
        targets: PyReadonlyArray1<'_, f64>,
        n_threads: usize,
    ) -> PyResult<CountArrays<'py>> {
        let (rows, targets) = (X.rows()?, slice("targets", &targets)?);
        let counts = gate::run(py, n_threads, None, |run| self.plan.count(rows, targets, run))?;
        Ok((
            vector(py, counts.iter().map(|count| count.n_rows).collect()),
            vector(py, counts.iter().map(|count| count.least).collect()),
            vector(py, counts.iter().map(|count| count.greatest).collect()),
        ))
    }

    /// The plan whose cells are those of the trees themselves, given the counts of all rows; its cells' numbers of rows, and
    /// whether each may be cut further.
    fn condensed<'py>(
        &self,
        py: Python<'py>,
        counts: (PyReadonlyArray1<'_, u64>, PyReadonlyArray1<'_, f64>, PyReadonlyArray1<'_, f64>),
        least: u64,
    ) -> PyResult<Condensed<'py>> {
        let n_rows = slice("n_rows", &counts.0)?;
        let ends = slice("least", &counts.1)?.iter().zip(slice("greatest", &counts.2)?);
        let counts: Vec<CellCount> = (n_rows.iter().zip(ends))
            .map(|(&n_rows, (&least, &greatest))| CellCount { n_rows, least, greatest })
            .collect();
        let (plan, counts, may_be_cut) = self.plan.condensed(&counts, least).map_err(to_python)?;
        let n_rows = counts.iter().map(|count| count.n_rows).collect();
        Ok((Self { plan }, vector(py, n_rows), vector(py, may_be_cut)))
    }

    /// The plan with some cells cut, and their sides again, `depth` cuts deep.
    fn refined(&self, is_cut: PyReadonlyArray1<'_, bool>, depth: usize) -> PyResult<Self> {
        let plan = self.plan.refined(slice("is_cut", &is_cut)?, depth).map_err(to_python)?;
        Ok(Self { plan })
    }

    /// The plan with other owners of the cells.
    fn owned(&self, owners: Vec<u32>) -> PyResult<Self> {
        Ok(Self { plan: self.plan.owned(owners).map_err(to_python)? })
    }

    /// By owner, the rows that it holds in some tree.
    #[pyo3(signature = (X, n_owners, *, n_threads=1))]
    fn rows_by_owner<'py>(
        &self,
        py: Python<'py>,
        X: Matrix<'_>,
        n_owners: usize,
        n_threads: usize,
    ) -> PyResult<Vec<Bound<'py, PyArray1<u32>>>> {
        let rows = X.rows()?;
        let by_owner = gate::run(py, n_threads, None, |run| self.plan.rows_by_owner(rows, n_owners, run))?;
        Ok(by_owner.into_iter().map(|rows| vector(py, rows)).collect())
    }

    /// The rows that an owner holds in some tree.
    #[pyo3(signature = (X, owner, *, n_threads=1))]
    fn rows_of<'py>(
        &self,
        py: Python<'py>,
        X: Matrix<'_>,
        owner: u32,
        n_threads: usize,
    ) -> PyResult<Bound<'py, PyArray1<u32>>> {
        let rows = X.rows()?;
        Ok(vector(py, gate::run(py, n_threads, None, |run| self.plan.rows_of(rows, owner, run))?))
    }

    /// The hashes of all trees, given those of all cells, one after the other.
    fn tree_hashes<'py>(&self, py: Python<'py>, cells: &[u8]) -> PyResult<Bound<'py, PyBytes>> {
        let hashes = self.plan.tree_hashes(cells.as_chunks().0).map_err(to_python)?;
        Ok(PyBytes::new(py, hashes.as_flattened()))
    }

    /// The owner of every cell.
    #[getter]
    fn owners<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<u32>> {
        vector(py, self.plan.owners().to_vec())
    }

    /// Number of cells of all trees.
    #[getter]
    fn n_cells(&self) -> usize {
        self.plan.n_cells()
    }
}

/// The methods of what an owner of cells holds, whatever the posterior; `lists` is the crate's method that gives an
/// owner's lists about rows.
macro_rules! cell_methods {
    ($class:ident, $lists:ident) => {
        #[pymethods]
        #[allow(non_snake_case)]
        impl $class {
            /// What other owners need of this one's subtrees.
            fn summaries<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<u64>> {
                vector(py, py.detach(|| self.share.summaries()))
            }

            /// Draws the subtrees of the owner's cells.
            #[pyo3(signature = (*, n_threads=1))]
            fn grow(&mut self, py: Python<'_>, n_threads: usize) -> PyResult<()> {
                gate::run(py, n_threads, None, |run| self.share.grow(run))
            }

            /// Whether the subtrees are drawn.
            #[getter]
            fn is_grown(&self) -> bool {
                self.share.is_grown()
            }

            /// Whether the tops of the trees are made.
            #[getter]
            fn is_joined(&self) -> bool {
                self.share.is_joined()
            }

            /// Makes the tops of all trees, given the summaries of all owners.
            #[pyo3(signature = (summaries, *, n_threads=1))]
            fn join(
                &mut self,
                py: Python<'_>,
                summaries: Vec<PyReadonlyArray1<'_, u64>>,
                n_threads: usize,
            ) -> PyResult<()> {
                let words = words("summaries", &summaries)?;
                gate::run(py, n_threads, None, |run| self.share.join(&words, run))
            }

            /// The hashes of this owner's subtrees, one after the other, and those of the rows of its cells of the
            /// first tree.
            fn hashes<'py>(&self, py: Python<'py>) -> (Bound<'py, PyBytes>, Bound<'py, PyBytes>) {
                let (cells, rows) = py.detach(|| self.share.hashes());
                (PyBytes::new(py, cells.as_flattened()), PyBytes::new(py, rows.as_flattened()))
            }

            /// The digest of the whole forest, given the hashes of all rows and of all trees.
            fn digest(&self, py: Python<'_>, rows: &[u8], trees: &[u8]) -> String {
                py.detach(|| self.share.digest(rows.as_chunks().0.to_vec(), trees.as_chunks().0))
            }

            /// What this owner's trees say of the rows that the plan sends to it.
            #[pyo3(signature = (X, *, n_threads=1))]
            fn lists<'py>(
                &self,
                py: Python<'py>,
                X: Matrix<'_>,
                n_threads: usize,
            ) -> PyResult<Bound<'py, PyArray1<u64>>> {
                let rows = X.rows()?;
                Ok(vector(py, gate::run(py, n_threads, None, |run| self.share.$lists(rows, run))?))
            }

            /// The rows of this owner's cells of the first tree.
            fn first_rows<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<u32>> {
                vector(py, self.share.first_rows())
            }

            /// The features of the rows that are here.
            fn rows<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<f64>>> {
                let values = py.detach(|| self.share.rows());
                matrix(py, values, self.share.n_rows(), self.share.plan().domain().n_features())
            }

            /// The weights of the rows that are here; None if all are 1.
            fn sample_weight<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyArray1<f64>>> {
                self.share.row_weights().map(|weights| vector(py, weights))
            }

            /// Number of rows that are here.
            #[getter]
            fn n_rows(&self) -> usize {
                self.share.n_rows()
            }

            /// Number of rows below this owner's cells, summed over trees.
            #[getter]
            fn n_pairs(&self) -> usize {
                self.share.n_pairs()
            }

            /// Memory of trees and rows in bytes.
            #[getter]
            fn nbytes(&self) -> usize {
                self.share.bytes()
            }
        }
    };
}

cell_methods!(ClassifierCells, votes);
cell_methods!(RegressorCells, components);

/// What one owner of cells holds of a classifier.
#[pyclass(module = "boscage._core")]
pub(crate) struct ClassifierCells {
    share: boscage::ClassifierCells,
}

#[pymethods]
#[allow(non_snake_case)]
impl ClassifierCells {
    /// The rows that the plan sends to an owner.
    #[new]
    #[pyo3(signature = (plan, owner, X, codes, labels, n_rows_of, *, discount=10.0, declared=None, sample_weight=None))]
    fn new(
        py: Python<'_>,
        plan: &CellPlan,
        owner: u32,
        X: Matrix<'_>,
        codes: PyReadonlyArray1<'_, u32>,
        labels: Vec<Bound<'_, PyAny>>,
        n_rows_of: Vec<u64>,
        discount: f64,
        declared: Option<Vec<Bound<'_, PyAny>>>,
        sample_weight: Option<PyReadonlyArray1<'_, f64>>,
    ) -> PyResult<Self> {
        let (rows, codes) = (X.rows()?, slice("y", &codes)?);
        let labels = arrays::labels(&labels)?;
        let declared = arrays::labels(&declared.unwrap_or_default())?;
        let weights = optional("sample_weight", sample_weight.as_ref())?;
        let classification = ClassificationSettings {
            discount,
            posterior: ClassPosterior::KneserNey,
            calibration: Calibration::None,
            joint_kernel: JointKernel::Trees,
        };
        let share = gate::brief(py, || {
            let batch = Batch { rows, ids: None, weights };
            let targets = ((codes, &labels[..]), &n_rows_of[..]);
            boscage::ClassifierCells::new(plan.plan.clone(), owner, classification, batch, targets, &declared)
        })?;
        Ok(Self { share })
    }

    /// The probabilities of the classes, given the votes of all owners.
    #[pyo3(signature = (X, votes, *, n_threads=1))]
    fn proba_of_votes<'py>(
        &self,
        py: Python<'py>,
        X: Matrix<'_>,
        votes: Vec<PyReadonlyArray1<'_, u64>>,
        n_threads: usize,
    ) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let (rows, words) = (X.rows()?, words("votes", &votes)?);
        let proba = gate::run(py, n_threads, None, |run| self.share.proba_of_votes(rows, &words, run))?;
        matrix(py, proba, rows.n_rows(), self.share.classes().len())
    }

    /// The classes of the rows that are here, as indices into the sorted labels.
    fn targets<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<u32>> {
        vector(py, self.share.targets())
    }
}

/// What one owner of cells holds of a regressor.
#[pyclass(module = "boscage._core")]
pub(crate) struct RegressorCells {
    share: boscage::RegressorCells,
}

#[pymethods]
#[allow(non_snake_case)]
impl RegressorCells {
    /// The rows that the plan sends to an owner.
    #[new]
    #[pyo3(signature = (plan, owner, X, y, *, mu, gamma1, gamma2, noise_variance, delay=0.0, coarse_variance=0.0, coarse_rate=1.0, sample_weight=None))]
    fn new(
        py: Python<'_>,
        plan: &CellPlan,
        owner: u32,
        X: Matrix<'_>,
        y: PyReadonlyArray1<'_, f64>,
        mu: f64,
        gamma1: f64,
        gamma2: f64,
        noise_variance: f64,
        delay: f64,
        coarse_variance: f64,
        coarse_rate: f64,
        sample_weight: Option<PyReadonlyArray1<'_, f64>>,
    ) -> PyResult<Self> {
        let (rows, targets) = (X.rows()?, slice("y", &y)?);
        let weights = optional("sample_weight", sample_weight.as_ref())?;
        let coarse = CoarsePrior { variance: coarse_variance, rate: coarse_rate };
        let regression = RegressionSettings {
            posterior: Posterior::Exact,
            noise: Noise::Global,
            hyperparameters: Some(Hyperparameters { mu, gamma1, gamma2, noise_variance, delay, coarse }),
            ..RegressionSettings::default()
        };
        let share = gate::brief(py, || {
            let batch = Batch { rows, ids: None, weights };
            boscage::RegressorCells::new(plan.plan.clone(), owner, regression, batch, targets)
        })?;
        Ok(Self { share })
    }

    /// Means and variances, given the components of all owners.
    #[pyo3(signature = (X, components, *, n_threads=1))]
    fn moments_of_components<'py>(
        &self,
        py: Python<'py>,
        X: Matrix<'_>,
        components: Vec<PyReadonlyArray1<'_, u64>>,
        n_threads: usize,
    ) -> PyResult<[Bound<'py, PyArray1<f64>>; 2]> {
        let (rows, words) = (X.rows()?, words("components", &components)?);
        let work = |run: &boscage::Run<'_>| self.share.moments_of_components(rows, &words, run);
        let (mean, variance) = gate::run(py, n_threads, None, work)?;
        Ok([mean, variance].map(|part| vector(py, part)))
    }

    /// The targets of the rows that are here.
    fn targets<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        vector(py, self.share.targets())
    }
}

fn words<'a>(name: &str, lists: &'a [PyReadonlyArray1<'_, u64>]) -> PyResult<Vec<&'a [u64]>> {
    lists.iter().map(|list| slice(name, list)).collect()
}
