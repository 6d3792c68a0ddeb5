//! Substitutes for missing values: conversion to and from Python.

use boscage::{Domain, Substitute, SubstituteTerm};
use numpy::{PyArray1, PyArray2};
use pyo3::prelude::*;

use crate::arrays::{Matrix, matrix, vector};
use crate::errors::to_python;

/// For every feature a number and the terms of a linear function: a feature, a slope, and where it begins.
pub(crate) type Substitutes = Vec<(f64, Vec<(u32, f64, f64)>)>;

pub(crate) fn substitutes(given: Substitutes) -> Vec<Substitute> {
    let term = |(feature, slope, from)| SubstituteTerm { feature, slope, from };
    let substitute = |(centre, terms): (f64, Vec<_>)| {
        let terms = terms.into_iter().map(term).collect();
        Substitute { centre, terms }
    };
    given.into_iter().map(substitute).collect()
}

/// The domain with the given substitutes.
pub(crate) fn with_substitutes(domain: Domain, given: Option<Substitutes>) -> PyResult<Domain> {
    domain.with_substitutes(given.map(substitutes)).map_err(to_python)
}

/// The substitutes of a domain.
pub(crate) fn of_domain(domain: &Domain) -> Option<Substitutes> {
    let term = |term: &SubstituteTerm| (term.feature, term.slope, term.from);
    let substitute = |of: &Substitute| (of.centre, of.terms.iter().map(term).collect());
    Some(domain.substitutes()?.iter().map(substitute).collect())
}

/// Complete rows, and where those of each row to predict begin and all end.
pub(crate) type CompletionArrays<'py> = (Bound<'py, PyArray2<f64>>, Bound<'py, PyArray1<i64>>);

pub(crate) fn completions(
    py: Python<'_>,
    (values, offsets): (Vec<f64>, Vec<usize>),
) -> PyResult<CompletionArrays<'_>> {
    let n_rows = offsets.last().copied().unwrap_or(0);
    let n_features = values.len() / n_rows.max(1);
    let offsets = offsets.into_iter().map(|offset| offset as i64).collect();
    Ok((matrix(py, values, n_rows, n_features)?, vector(py, offsets)))
}

/// Rows in which substitutes stand for missing values; None if no value is missing.
#[pyfunction]
#[pyo3(signature = (X, substitutes, low, high))]
#[allow(non_snake_case)]
pub(crate) fn fill_missing<'py>(
    py: Python<'py>,
    X: Matrix<'py>,
    substitutes: Substitutes,
    low: Vec<f64>,
    high: Vec<f64>,
) -> PyResult<Option<Bound<'py, PyArray2<f64>>>> {
    let rows = X.rows_with_missing()?;
    let domain = with_substitutes(Domain::new(low, high, None).map_err(to_python)?, Some(substitutes))?;
    let filled = py.detach(|| domain.filled(rows)).map_err(to_python)?;
    filled.map(|filled| matrix(py, filled, rows.n_rows(), rows.n_features())).transpose()
}
