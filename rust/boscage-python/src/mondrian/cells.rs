//! What one owner of cells holds of a forest whose rows are shared out by cell.

use boscage::{
    Batch, CalibrationLink, ClassPosterior, ClassificationSettings, Copies, JointKernel, TargetMoments,
};
use numpy::{PyArray1, PyArray2, PyArray3, PyArrayMethods, PyReadonlyArray1};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::arrays::{self, Matrix, matrix, optional, slice, vector};
use crate::errors::to_python;
use crate::gate;
use crate::mondrian::cell_plan::CellPlan;
use crate::mondrian::classifier::{Link, link, link_numbers};
use crate::mondrian::regressor::MondrianRegressor;
use crate::settings::calibration;

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
            fn join(&mut self, py: Python<'_>, summaries: Vec<PyReadonlyArray1<'_, u64>>) -> PyResult<()> {
                let words = words("summaries", &summaries)?;
                gate::brief(py, || self.share.join(&words))
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
                let rows = X.rows_with_missing()?;
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
    #[pyo3(signature = (plan, owner, X, codes, labels, n_rows_of, *, discount=10.0, calibration=None, trend=false, declared=None, sample_weight=None))]
    fn new(
        py: Python<'_>,
        plan: &CellPlan,
        owner: u32,
        X: Matrix<'_>,
        codes: PyReadonlyArray1<'_, u32>,
        labels: Vec<Bound<'_, PyAny>>,
        n_rows_of: Vec<u64>,
        discount: f64,
        calibration: Option<&str>,
        trend: bool,
        declared: Option<Vec<Bound<'_, PyAny>>>,
        sample_weight: Option<PyReadonlyArray1<'_, f64>>,
    ) -> PyResult<Self> {
        let (rows, codes) = (X.rows_with_missing()?, slice("y", &codes)?);
        let labels = arrays::labels(&labels)?;
        let declared = arrays::labels(&declared.unwrap_or_default())?;
        let weights = optional("sample_weight", sample_weight.as_ref())?;
        let classification = ClassificationSettings {
            discount,
            posterior: ClassPosterior::KneserNey,
            calibration: self::calibration(calibration)?,
            joint_kernel: JointKernel::Trees,
            trend,
        };
        let share = gate::brief(py, || {
            let batch = Batch { rows, ids: None, weights };
            let targets = ((codes, &labels[..]), &n_rows_of[..]);
            boscage::ClassifierCells::new(
                plan.plan().clone(),
                owner,
                classification,
                batch,
                targets,
                &declared,
            )
        })?;
        Ok(Self { share })
    }

    /// The probabilities of the classes, given the votes of all owners, and what calibrates them, if anything does.
    #[pyo3(signature = (X, votes, link=None, *, n_threads=1))]
    fn proba_of_votes<'py>(
        &self,
        py: Python<'py>,
        X: Matrix<'_>,
        votes: Vec<PyReadonlyArray1<'_, u64>>,
        link: Option<Link>,
        n_threads: usize,
    ) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let (rows, words) = (X.rows_with_missing()?, words("votes", &votes)?);
        let link = link.map_or(CalibrationLink::NONE, self::link);
        let proba =
            gate::run(py, n_threads, None, |run| self.share.proba_of_votes(rows, &words, &link, run))?;
        matrix(py, proba, rows.n_rows(), self.share.classes().len())
    }

    /// What this owner's trees add to the votes for some of its rows that are left out, for every one of some discounts.
    #[pyo3(signature = (rows, discounts, *, n_threads=1))]
    fn left_out_votes<'py>(
        &self,
        py: Python<'py>,
        rows: PyReadonlyArray1<'_, u32>,
        discounts: Vec<f64>,
        n_threads: usize,
    ) -> PyResult<Bound<'py, PyArray1<u64>>> {
        let rows = slice("rows", &rows)?;
        let work = |run: &boscage::Run<'_>| self.share.left_out_votes(rows, &discounts, run);
        Ok(vector(py, gate::run(py, n_threads, None, work)?))
    }

    /// What calibrates by discount, given the rows that calibrate, whether each has copies (0: none, 1: of its
    /// own class, 2: also of others), the rows that a trend is fitted to, and all votes for the rows that calibrate.
    fn links_of_votes(
        &self,
        py: Python<'_>,
        rows: PyReadonlyArray1<'_, u32>,
        copies: PyReadonlyArray1<'_, u8>,
        of_trend: PyReadonlyArray1<'_, u32>,
        discounts: Vec<f64>,
        votes: Vec<PyReadonlyArray1<'_, u64>>,
    ) -> PyResult<Vec<Link>> {
        let (rows, copies) = (slice("rows", &rows)?, slice("copies", &copies)?);
        if rows.len() != copies.len() {
            return Err(PyValueError::new_err("copies must hold one number for each row"));
        }
        let kinds = [Copies::None, Copies::Agree, Copies::Disagree];
        let kind = |(&row, &number): (&u32, &u8)| {
            let kind = kinds.get(usize::from(number)).copied();
            kind.map(|kind| (row, kind)).ok_or_else(|| PyValueError::new_err("copies must be 0, 1 or 2"))
        };
        let chosen: Vec<_> = rows.iter().zip(copies).map(kind).collect::<PyResult<_>>()?;
        let (words, of_trend) = (words("votes", &votes)?, slice("of_trend", &of_trend)?);
        let links = gate::brief(py, || self.share.links_of_votes((&chosen, of_trend), &discounts, &words))?;
        Ok(links.into_iter().map(link_numbers).collect())
    }

    /// The probabilities of the classes of left-out rows by discount, given the rows that a trend is fitted to, all votes for
    /// those that are left out, and what calibrates each discount.
    fn proba_of_left_out_votes<'py>(
        &self,
        py: Python<'py>,
        rows: PyReadonlyArray1<'_, u32>,
        of_trend: PyReadonlyArray1<'_, u32>,
        discounts: Vec<f64>,
        votes: Vec<PyReadonlyArray1<'_, u64>>,
        links: Vec<Link>,
    ) -> PyResult<Bound<'py, PyArray3<f64>>> {
        let (rows, of_trend) = (slice("rows", &rows)?, slice("of_trend", &of_trend)?);
        let words = words("votes", &votes)?;
        let shape = [links.len(), rows.len(), self.share.classes().len()];
        let links: Vec<CalibrationLink> = links.into_iter().map(link).collect();
        let work = || self.share.proba_of_left_out_votes((rows, of_trend), &discounts, &words, &links);
        vector(py, gate::brief(py, work)?).reshape(shape)
    }

    fn set_discount(&mut self, discount: f64) -> PyResult<()> {
        self.share.set_discount(discount).map_err(to_python)
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
    #[pyo3(signature = (plan, owner, model, X, y, *, sample_weight=None))]
    fn new(
        py: Python<'_>,
        plan: &CellPlan,
        owner: u32,
        model: &MondrianRegressor,
        X: Matrix<'_>,
        y: PyReadonlyArray1<'_, f64>,
        sample_weight: Option<PyReadonlyArray1<'_, f64>>,
    ) -> PyResult<Self> {
        let (rows, targets) = (X.rows_with_missing()?, slice("y", &y)?);
        let weights = optional("sample_weight", sample_weight.as_ref())?;
        let regression = model.regression().clone();
        let share = gate::brief(py, || {
            let batch = Batch { rows, ids: None, weights };
            boscage::RegressorCells::new(plan.plan().clone(), owner, regression, batch, targets)
        })?;
        Ok(Self { share })
    }

    /// Of the targets of all owners: as how many rows they count, mean, and sum of squared deviations.
    fn target_moments(&self) -> PyResult<(f64, f64, f64)> {
        let TargetMoments { weight, mean, squares } = self.share.target_moments().map_err(to_python)?;
        Ok((weight, mean, squares))
    }

    /// What a rule would have chosen where hyperparameters are given.
    fn given(&self) -> PyResult<Vec<f64>> {
        self.share.given().map_err(to_python)
    }

    /// What other owners need of this one's messages, given what was chosen.
    #[pyo3(signature = (chosen, *, n_threads=1))]
    fn messages<'py>(
        &self,
        py: Python<'py>,
        chosen: Vec<f64>,
        n_threads: usize,
    ) -> PyResult<Bound<'py, PyArray1<u64>>> {
        let work = |run: &boscage::Run<'_>| self.share.messages(&chosen, run);
        Ok(vector(py, gate::run(py, n_threads, None, work)?))
    }

    /// Passes all messages, given what was chosen and the messages of all owners.
    #[pyo3(signature = (chosen, messages, *, n_threads=1))]
    fn set_messages(
        &mut self,
        py: Python<'_>,
        chosen: Vec<f64>,
        messages: Vec<PyReadonlyArray1<'_, u64>>,
        n_threads: usize,
    ) -> PyResult<()> {
        let words = words("messages", &messages)?;
        gate::run(py, n_threads, None, |run| self.share.set_messages(&chosen, &words, run))
    }

    /// What other owners need of this one's errors for local noise.
    #[pyo3(signature = (*, n_threads=1))]
    fn sizes<'py>(&self, py: Python<'py>, n_threads: usize) -> PyResult<Bound<'py, PyArray1<u64>>> {
        Ok(vector(py, gate::run(py, n_threads, None, |run| self.share.sizes(run))?))
    }

    /// Estimates local noise, given what was chosen and the sizes of all owners.
    #[pyo3(signature = (chosen, sizes, *, n_threads=1))]
    fn set_sizes(
        &mut self,
        py: Python<'_>,
        chosen: Vec<f64>,
        sizes: Vec<PyReadonlyArray1<'_, u64>>,
        n_threads: usize,
    ) -> PyResult<()> {
        let words = words("sizes", &sizes)?;
        gate::run(py, n_threads, None, |run| self.share.set_sizes(&chosen, &words, run))
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
        let (rows, words) = (X.rows_with_missing()?, words("components", &components)?);
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
