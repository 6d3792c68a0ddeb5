//! Which cells there are of a forest whose rows are shared out by cell, and who owns them.

use boscage::{CellCount, Domain, MondrianSettings, RowExtent};
use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyTuple};

use crate::arrays::{Matrix, slice, vector};
use crate::errors::to_python;
use crate::gate;
use crate::mondrian::categories::{self, FeatureCategories, with_categories};
use crate::mondrian::feature_rates;
use crate::mondrian::missing::{self, Substitutes, with_substitutes};
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

/// By cell the number of rows, the least target and the number of rows that have it, and the same of the greatest target.
type CountArrays<'py> =
    (Bound<'py, PyArray1<u64>>, [Bound<'py, PyArray1<f64>>; 2], [Bound<'py, PyArray1<u64>>; 2]);

/// The same as arguments.
type Counts<'py> =
    (PyReadonlyArray1<'py, u64>, [PyReadonlyArray1<'py, f64>; 2], [PyReadonlyArray1<'py, u64>; 2]);

/// A plan, the numbers of rows of its cells, and whether each may be cut.
type Condensed<'py> = (CellPlan, Bound<'py, PyArray1<u64>>, Bound<'py, PyArray1<bool>>);

#[pymethods]
#[allow(non_snake_case)]
impl CellPlan {
    /// Without `steps` each tree has one cell, and without `owners` the first owner has all cells.
    #[new]
    #[pyo3(signature = (*, n_estimators, lifetime, min_samples_split, predictive, seed, low, high, weights=None, maps=None, substitutes=None, categories=None, extent=(0, true), steps=None, owners=None))]
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
        substitutes: Option<Substitutes>,
        categories: Option<FeatureCategories<'_>>,
        extent: (u32, bool),
        steps: Option<Vec<Vec<u8>>>,
        owners: Option<Vec<u32>>,
    ) -> PyResult<Self> {
        let predictive = self::predictive(predictive)?;
        let settings =
            MondrianSettings { n_estimators, lifetime, min_samples_split, predictive, seed, share: None };
        let domain = feature_rates::mapped(Domain::new(low, high, weights).map_err(to_python)?, maps)?;
        let domain = with_categories(with_substitutes(domain, substitutes)?, categories)?;
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
        given.set_item("substitutes", missing::of_domain(domain))?;
        given.set_item("categories", categories::of_domain(py, domain)?)?;
        given.set_item("extent", (extent.level, extent.is_single))?;
        let steps = self.plan.steps().into_iter().map(|steps| PyBytes::new(py, &steps));
        given.set_item("steps", PyList::new(py, steps)?)?;
        given.set_item("owners", self.plan.owners())?;
        Ok((PyTuple::empty(py), given))
    }

    /// What must be known of rows: their level, and whether float32 holds them.
    fn extent_of(&self, X: Matrix<'_>) -> PyResult<(u32, bool)> {
        let RowExtent { level, is_single } =
            RowExtent::of(self.plan.domain(), X.rows_with_missing()?).map_err(to_python)?;
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
        let (rows, targets) = (X.rows_with_missing()?, slice("targets", &targets)?);
        let counts = gate::run(py, n_threads, None, |run| self.plan.count(rows, targets, run))?;
        let targets: [fn(&CellCount) -> f64; 2] = [|count| count.least, |count| count.greatest];
        let numbers: [fn(&CellCount) -> u64; 2] = [|count| count.n_least, |count| count.n_greatest];
        Ok((
            vector(py, counts.iter().map(|count| count.n_rows).collect()),
            targets.map(|of| vector(py, counts.iter().map(of).collect())),
            numbers.map(|of| vector(py, counts.iter().map(of).collect())),
        ))
    }

    /// The plan whose cells are those of the trees themselves, given the counts of all rows; its cells' numbers of rows, and
    /// whether each may be cut further. With `one_less`, rows that have weights can be left out.
    #[pyo3(signature = (counts, least, *, one_less=false))]
    fn condensed<'py>(
        &self,
        py: Python<'py>,
        counts: Counts<'_>,
        least: u64,
        one_less: bool,
    ) -> PyResult<Condensed<'py>> {
        let (n_rows, ends, of_ends) = counts;
        let n_rows = slice("n_rows", &n_rows)?;
        let [low, high] = [slice("least", &ends[0])?, slice("greatest", &ends[1])?];
        let [of_low, of_high] = [slice("n_least", &of_ends[0])?, slice("n_greatest", &of_ends[1])?];
        let ends = low.iter().zip(of_low).zip(high.iter().zip(of_high));
        let counts: Vec<CellCount> = (n_rows.iter().zip(ends))
            .map(|(&n_rows, ((&least, &n_least), (&greatest, &n_greatest)))| CellCount {
                n_rows,
                least,
                greatest,
                n_least,
                n_greatest,
            })
            .collect();
        let (plan, counts, may_be_cut) = self.plan.condensed(&counts, least, one_less).map_err(to_python)?;
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
        let rows = X.rows_with_missing()?;
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
        let rows = X.rows_with_missing()?;
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
