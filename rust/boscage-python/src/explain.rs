//! Contributions of features to predictions, and the trees that they come from, as arrays.

use boscage::{Contributions, LeafTree};
use numpy::PyArray1;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::arrays::{matrix, vector};
use crate::trees::{add_sides, structure};

/// Bases, and contributions row by row, feature by feature and output by output.
pub(crate) type ContributionArrays<'py> = (Bound<'py, PyArray1<f64>>, Bound<'py, PyArray1<f64>>);

pub(crate) fn contribution_arrays(
    py: Python<'_>,
    Contributions { base, values }: Contributions,
) -> ContributionArrays<'_> {
    (vector(py, base), vector(py, values))
}

/// One dictionary for each tree.
pub(crate) fn leaf_trees(py: Python<'_>, trees: Vec<LeafTree>) -> PyResult<Bound<'_, PyList>> {
    let of_tree = |tree: LeafTree| -> PyResult<Bound<'_, PyDict>> {
        let n = tree.feature.len();
        let dict = structure(
            py,
            [tree.children_left, tree.children_right, tree.parent, tree.feature],
            tree.threshold,
        )?;
        add_sides(&dict, tree.missing_go_to_left)?;
        dict.set_item("cover", vector(py, tree.cover))?;
        dict.set_item("value", matrix(py, tree.values, n, tree.n_values)?)?;
        Ok(dict)
    };
    PyList::new(py, trees.into_iter().map(of_tree).collect::<PyResult<Vec<_>>>()?)
}
