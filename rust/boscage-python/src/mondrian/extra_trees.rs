//! Importances and rates of features from extremely randomised trees.

use boscage::TargetKind;
use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;

use crate::arrays::{Matrix, slice, vector};
use crate::gate;

type Vector<'py> = Bound<'py, PyArray1<f64>>;

/// Whether targets are classes or numbers.
pub(crate) fn target_kind(classification: bool) -> TargetKind {
    if classification { TargetKind::Classification } else { TargetKind::Regression }
}

/// Importances of the features for a target, and rates for a Mondrian process.
#[pyfunction]
#[pyo3(signature = (X, y, *, classification, n_estimators=50, seed=0, n_threads=1))]
#[allow(non_snake_case)]
pub(crate) fn extra_trees_rates<'py>(
    py: Python<'py>,
    X: Matrix<'py>,
    y: PyReadonlyArray1<'py, f64>,
    classification: bool,
    n_estimators: usize,
    seed: u64,
    n_threads: usize,
) -> PyResult<(Vector<'py>, Vector<'py>)> {
    let rows = X.rows()?;
    let y = slice("y", &y)?;
    let kind = target_kind(classification);
    let found = gate::run(py, n_threads, None, |run| {
        boscage::extra_trees_rates(rows, y, kind, n_estimators, seed, run)
    })?;
    Ok((vector(py, found.importances), vector(py, found.rates)))
}
