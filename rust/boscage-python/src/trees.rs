//! Exported trees as dictionaries of arrays.

use boscage::ExportedTree;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::arrays::{matrix, vector};

/// A dictionary of what the trees of all models have: children, parents, features and thresholds of nodes.
pub(crate) fn structure(
    py: Python<'_>,
    [children_left, children_right, parent, feature]: [Vec<i32>; 4],
    threshold: Vec<f64>,
) -> PyResult<Bound<'_, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("children_left", vector(py, children_left))?;
    dict.set_item("children_right", vector(py, children_right))?;
    dict.set_item("parent", vector(py, parent))?;
    dict.set_item("feature", vector(py, feature))?;
    dict.set_item("threshold", vector(py, threshold))?;
    Ok(dict)
}

/// Adds the sides of missing values, if the model knows them.
pub(crate) fn add_sides(dict: &Bound<'_, PyDict>, missing_go_to_left: Vec<bool>) -> PyResult<()> {
    if missing_go_to_left.is_empty() {
        return Ok(());
    }
    dict.set_item("missing_go_to_left", vector(dict.py(), missing_go_to_left))
}

/// Adds the codes of the categories that go right, if features have categories.
pub(crate) fn add_categories(dict: &Bound<'_, PyDict>, right_categories: Vec<Vec<u32>>) -> PyResult<()> {
    if right_categories.is_empty() {
        return Ok(());
    }
    dict.set_item("right_categories", right_categories)
}

/// One dictionary for each tree; `values` converts a node's numbers into further entries.
pub(crate) fn dictionaries<'py>(
    py: Python<'py>,
    trees: Vec<ExportedTree>,
    n_features: usize,
    values: impl Fn(&Bound<'py, PyDict>, Vec<f64>, usize) -> PyResult<()>,
) -> PyResult<Bound<'py, PyList>> {
    let list = PyList::empty(py);
    for tree in trees {
        let n = tree.feature.len();
        let dict = structure(
            py,
            [tree.children_left, tree.children_right, tree.parent, tree.feature],
            tree.threshold,
        )?;
        dict.set_item("time", vector(py, tree.time))?;
        dict.set_item("lower", matrix(py, tree.lower, n, n_features)?)?;
        dict.set_item("upper", matrix(py, tree.upper, n, n_features)?)?;
        dict.set_item("n_rows", vector(py, tree.n_rows.iter().map(|&n| n as i64).collect()))?;
        values(&dict, tree.values, n)?;
        list.append(dict)?;
    }
    Ok(list)
}
