//! Categories of features: conversion to and from Python.

use boscage::{Categories, Domain};
use pyo3::prelude::*;

use crate::arrays::{label_object, labels};
use crate::errors::to_python;

/// Features that are categories: number, sorted labels, their places, and the place of missing values.
pub(crate) type FeatureCategories<'py> = Vec<(u32, Vec<Bound<'py, PyAny>>, Vec<f64>, f64)>;

pub(crate) fn read(given: FeatureCategories<'_>) -> PyResult<Vec<(u32, Categories)>> {
    let one = |(feature, names, places, missing): (u32, Vec<Bound<'_, PyAny>>, Vec<f64>, f64)| {
        let categories = Categories::new(labels(&names)?, places, missing).map_err(to_python)?;
        Ok((feature, categories))
    };
    given.into_iter().map(one).collect()
}

/// The domain with the given categories, if there are any.
pub(crate) fn with_categories(domain: Domain, given: Option<FeatureCategories<'_>>) -> PyResult<Domain> {
    domain.with_categories(read(given.unwrap_or_default())?).map_err(to_python)
}

/// The categories of a domain.
pub(crate) fn of_domain<'py>(py: Python<'py>, domain: &Domain) -> PyResult<FeatureCategories<'py>> {
    let one = |(feature, categories): &(u32, Categories)| {
        let names = categories.labels().iter().map(|label| label_object(py, label));
        Ok((*feature, names.collect::<PyResult<_>>()?, categories.places().to_vec(), categories.missing()))
    };
    domain.categories().iter().map(one).collect()
}
