//! Rates and maps of the features: conversion to and from Python.

use boscage::{Domain, FeatureMap, Rates};
use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::arrays::{Matrix, optional, slice, vector};
use crate::errors::to_python;
use crate::gate;
use crate::mondrian::extra_trees::target_kind;

/// Knots and shares of a feature map, as arrays.
pub(crate) type MapArrays<'py> = (Bound<'py, PyArray1<f64>>, Bound<'py, PyArray1<f64>>);

/// Feature maps as arrays.
pub(crate) fn map_arrays<'py>(py: Python<'py>, maps: &[FeatureMap]) -> Vec<MapArrays<'py>> {
    maps.iter().map(|map| (vector(py, map.knots().to_vec()), vector(py, map.shares().to_vec()))).collect()
}

/// The domain with the given maps, if there are any.
pub(crate) fn mapped(domain: Domain, maps: Option<Vec<(Vec<f64>, Vec<f64>)>>) -> PyResult<Domain> {
    let Some(maps) = maps else { return Ok(domain) };
    let maps: boscage::Result<_> =
        maps.into_iter().map(|(knots, shares)| FeatureMap::new(knots, shares)).collect();
    maps.and_then(|maps| domain.with_maps(maps)).map_err(to_python)
}

/// Rates and maps learned from numeric targets: a dictionary by the name of the method.
#[pyfunction]
#[pyo3(signature = (X, y, low, high, *, n_estimators=50, seed=0, n_threads=1))]
#[allow(non_snake_case)]
pub(crate) fn candidate_rates<'py>(
    py: Python<'py>,
    X: Matrix<'py>,
    y: PyReadonlyArray1<'py, f64>,
    low: Vec<f64>,
    high: Vec<f64>,
    n_estimators: usize,
    seed: u64,
    n_threads: usize,
) -> PyResult<Bound<'py, PyDict>> {
    let rows = X.rows()?;
    let y = slice("y", &y)?;
    let domain = Domain::new(low, high, None).map_err(to_python)?;
    let found = gate::run(py, n_threads, None, |run| {
        boscage::candidate_rates(rows, y, &domain, n_estimators, seed, run)
    })?;
    let dict = PyDict::new(py);
    for (name, Rates { weights, maps }) in [
        ("importances", found.importances),
        ("extra_tree_cuts", found.extra_tree_cuts),
        ("best_split_cuts", found.best_split_cuts),
        ("metric", found.metric),
    ] {
        dict.set_item(name, (vector(py, weights), map_arrays(py, &maps)))?;
    }
    Ok(dict)
}

/// The numbers of the `n` features that matter most for a target, ascending.
#[pyfunction]
#[pyo3(signature = (X, y, n, *, classification, seed=0, n_threads=1))]
#[allow(non_snake_case)]
pub(crate) fn most_important_features<'py>(
    py: Python<'py>,
    X: Matrix<'py>,
    y: PyReadonlyArray1<'py, f64>,
    n: usize,
    classification: bool,
    seed: u64,
    n_threads: usize,
) -> PyResult<Bound<'py, PyArray1<u32>>> {
    let rows = X.rows()?;
    let y = slice("y", &y)?;
    let kind = target_kind(classification);
    let found =
        gate::run(py, n_threads, None, |run| boscage::most_important_features(rows, y, kind, n, seed, run))?;
    Ok(vector(py, found))
}

/// The numbers of the first rows in a random order that only the rows' contents and the seed determine.
#[pyfunction]
#[pyo3(signature = (X, y, n, seed, sample_weight=None))]
#[allow(non_snake_case)]
pub(crate) fn first_by_contents<'py>(
    py: Python<'py>,
    X: Matrix<'py>,
    y: PyReadonlyArray1<'py, f64>,
    n: usize,
    seed: u64,
    sample_weight: Option<PyReadonlyArray1<'py, f64>>,
) -> PyResult<Bound<'py, PyArray1<u32>>> {
    let rows = X.rows_with_missing()?;
    let y = slice("y", &y)?;
    let weights = optional("sample_weight", sample_weight.as_ref())?;
    let first = gate::brief(py, || boscage::first_by_contents(rows, (y, weights), n, seed))?;
    Ok(vector(py, first))
}

/// The numbers of rows without their copies; None if there are no copies.
#[pyfunction]
#[pyo3(signature = (X, y, sample_weight=None))]
#[allow(non_snake_case)]
pub(crate) fn distinct_rows<'py>(
    py: Python<'py>,
    X: Matrix<'py>,
    y: PyReadonlyArray1<'py, f64>,
    sample_weight: Option<PyReadonlyArray1<'py, f64>>,
) -> PyResult<Option<Bound<'py, PyArray1<u32>>>> {
    let rows = X.rows_with_missing()?;
    let y = slice("y", &y)?;
    let weights = optional("sample_weight", sample_weight.as_ref())?;
    let distinct = gate::brief(py, || boscage::distinct_rows(rows, (y, weights)))?;
    Ok(distinct.map(|rows| vector(py, rows)))
}

/// The keys of rows' features, from which `first_of_keys` finds the order of a seed.
#[pyfunction]
#[allow(non_snake_case)]
pub(crate) fn keys_of_contents<'py>(
    py: Python<'py>,
    X: Matrix<'py>,
    seed: u64,
) -> PyResult<Bound<'py, PyArray1<u64>>> {
    let rows = X.rows_with_missing()?;
    let keys = gate::brief(py, || Ok(boscage::keys_of_contents(rows, seed)))?;
    Ok(vector(py, keys))
}

/// Ranks, keys and numbers of the first places in the order of rows of which so many have each key.
#[pyfunction]
pub(crate) fn first_of_keys<'py>(
    py: Python<'py>,
    keys: PyReadonlyArray1<'py, u64>,
    n_rows_of: PyReadonlyArray1<'py, u64>,
    n: usize,
) -> PyResult<[Bound<'py, PyArray1<u64>>; 3]> {
    let (keys, n_rows_of) = (slice("keys", &keys)?, slice("n_rows_of", &n_rows_of)?);
    let places = gate::brief(py, || boscage::first_of_keys(keys, n_rows_of, n))?;
    let column = |of: fn(&(u64, u64, u64)) -> u64| vector(py, places.iter().map(of).collect());
    Ok([column(|place| place.0), column(|place| place.1), column(|place| place.2)])
}
