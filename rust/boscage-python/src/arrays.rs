//! Conversion between `NumPy` arrays and the crate's views.

use boscage::{Label, Rows, SparseRow};
use numpy::{Element, IntoPyArray, PyArray1, PyArray2, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyFloat, PyInt, PyString};

use crate::errors::to_python;

/// A matrix of either type, borrowed from Python for the length of a call.
pub(crate) enum Matrix<'py> {
    F32(PyReadonlyArray2<'py, f32>),
    F64(PyReadonlyArray2<'py, f64>),
    /// A copy of a sparse matrix, and its number of features.
    Sparse(Vec<SparseRow>, usize),
}

impl<'py> FromPyObject<'_, 'py> for Matrix<'py> {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(array) = object.extract::<PyReadonlyArray2<'py, f32>>() {
            return Ok(Self::F32(array));
        }
        if object.hasattr("indptr")? {
            return sparse(object);
        }
        match object.extract::<PyReadonlyArray2<'py, f64>>() {
            Ok(array) => Ok(Self::F64(array)),
            Err(_) => Err(PyTypeError::new_err("X must be a 2-D array of float32 or float64")),
        }
    }
}

impl Matrix<'_> {
    /// The rows as a checked view; no value is missing.
    pub(crate) fn rows(&self) -> PyResult<Rows<'_>> {
        let rows = self.view(Rows::from_f32, Rows::from_f64)?;
        if rows.has_missing() {
            return Err(PyValueError::new_err("X must have no missing values"));
        }
        Ok(rows)
    }

    /// The rows as a checked view, in which values may be missing; `n_categories` of each feature, none if all are numbers.
    pub(crate) fn rows_with_categories<'a>(&'a self, n_categories: &'a [u32]) -> PyResult<Rows<'a>> {
        self.rows_with_missing()?.with_categories(n_categories).map_err(to_python)
    }

    /// The rows as a checked view, in which values may be missing.
    pub(crate) fn rows_with_missing(&self) -> PyResult<Rows<'_>> {
        self.view(Rows::from_f32_with_missing, Rows::from_f64_with_missing)
    }

    fn view<'a>(
        &'a self,
        of_f32: fn(&'a [f32], usize) -> boscage::Result<Rows<'a>>,
        of_f64: fn(&'a [f64], usize) -> boscage::Result<Rows<'a>>,
    ) -> PyResult<Rows<'a>> {
        match self {
            Self::F32(array) => of_f32(contiguous(array)?, array.as_array().ncols()),
            Self::F64(array) => of_f64(contiguous(array)?, array.as_array().ncols()),
            Self::Sparse(rows, n_features) => Rows::from_sparse(rows, *n_features),
        }
        .map_err(to_python)
    }
}

/// Values, their features, and where each row begins.
pub(crate) type SparseArrays<'py> =
    (Bound<'py, PyArray1<f64>>, Bound<'py, PyArray1<i64>>, Bound<'py, PyArray1<i64>>);

/// Sparse rows as the arrays of a matrix in compressed rows.
pub(crate) fn sparse_arrays<'py>(py: Python<'py>, rows: &[SparseRow]) -> SparseArrays<'py> {
    let values = || rows.iter().flat_map(SparseRow::values);
    let mut starts = vec![0];
    starts.extend(rows.iter().scan(0, |end, row| {
        *end += row.values().len() as i64;
        Some(*end)
    }));
    let features = values().map(|&(feature, _)| i64::from(feature)).collect();
    (vector(py, values().map(|&(_, value)| value).collect()), vector(py, features), vector(py, starts))
}

/// Indices of 32 or 64 bits, as `SciPy` has them.
fn indices(object: Borrowed<'_, '_, PyAny>, name: &str) -> PyResult<Vec<i64>> {
    let array = object.getattr(name)?;
    if let Ok(short) = array.extract::<PyReadonlyArray1<'_, i32>>() {
        return Ok(slice(name, &short)?.iter().map(|&index| i64::from(index)).collect());
    }
    let long: PyReadonlyArray1<'_, i64> = array.extract()?;
    Ok(slice(name, &long)?.to_vec())
}

/// A matrix of `SciPy` in compressed rows, in double precision and with sorted indices.
fn sparse<'py>(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Matrix<'py>> {
    let (starts, features) = (indices(object, "indptr")?, indices(object, "indices")?);
    let values: PyReadonlyArray1<'_, f64> = object.getattr("data")?.extract()?;
    let (n_rows, n_features): (usize, usize) = object.getattr("shape")?.extract()?;
    let format: String = object.getattr("format")?.extract()?;
    let values = slice("data", &values)?;
    let row = |ends: &[i64]| {
        let own = usize::try_from(ends[0]).ok()?..usize::try_from(ends[1]).ok()?;
        let features = features.get(own.clone())?.iter().map(|&feature| u32::try_from(feature).ok());
        let features: Option<Vec<u32>> = features.collect();
        SparseRow::new(features?.into_iter().zip(values.get(own)?.iter().copied()).collect()).ok()
    };
    let is_whole = format == "csr" && starts.len() == n_rows + 1;
    let rows: Option<Vec<SparseRow>> = starts.windows(2).map(row).take_while(|_| is_whole).collect();
    let rows = rows.filter(|rows| rows.len() == n_rows);
    let rows = rows
        .ok_or_else(|| PyValueError::new_err("X must be a matrix in compressed rows with sorted indices"))?;
    Ok(Matrix::Sparse(rows, n_features))
}

fn contiguous<'a, T: Element>(array: &'a PyReadonlyArray2<'_, T>) -> PyResult<&'a [T]> {
    let whole = array.as_array().is_standard_layout();
    match array.as_slice() {
        Ok(slice) if whole => Ok(slice),
        _ => Err(PyValueError::new_err("X must be C-contiguous")),
    }
}

/// The values of a vector.
pub(crate) fn slice<'a, T: Element>(name: &str, array: &'a PyReadonlyArray1<'_, T>) -> PyResult<&'a [T]> {
    array.as_slice().map_err(|_| PyValueError::new_err(format!("{name} must be contiguous")))
}

/// The values of an optional vector.
pub(crate) fn optional<'a, T: Element>(
    name: &str,
    array: Option<&'a PyReadonlyArray1<'_, T>>,
) -> PyResult<Option<&'a [T]>> {
    array.map(|array| slice(name, array)).transpose()
}

/// A vector as a new array.
pub(crate) fn vector<T: Element>(py: Python<'_>, values: Vec<T>) -> Bound<'_, PyArray1<T>> {
    values.into_pyarray(py)
}

/// Values in row-major order as a new matrix.
pub(crate) fn matrix<T: Element>(
    py: Python<'_>,
    values: Vec<T>,
    n_rows: usize,
    n_columns: usize,
) -> PyResult<Bound<'_, PyArray2<T>>> {
    use numpy::PyArrayMethods;
    values.into_pyarray(py).reshape([n_rows, n_columns])
}

/// A class label from a Python bool, int, float or str.
pub(crate) fn label(object: &Bound<'_, PyAny>) -> PyResult<Label> {
    if object.is_instance_of::<PyBool>() {
        Ok(Label::Bool(object.extract()?))
    } else if object.is_instance_of::<PyInt>() {
        Ok(Label::Int(object.extract()?))
    } else if object.is_instance_of::<PyFloat>() {
        Ok(Label::Float(object.extract()?))
    } else if object.is_instance_of::<PyString>() {
        Ok(Label::Text(object.extract()?))
    } else {
        let name = object.get_type().name()?;
        Err(PyTypeError::new_err(format!("a class label must be bool, int, float or str, found {name}")))
    }
}

/// Class labels from a Python sequence.
pub(crate) fn labels(objects: &[Bound<'_, PyAny>]) -> PyResult<Vec<Label>> {
    objects.iter().map(label).collect()
}

/// A label as a Python object.
pub(crate) fn label_object<'py>(py: Python<'py>, label: &Label) -> PyResult<Bound<'py, PyAny>> {
    Ok(match label {
        Label::Bool(value) => PyBool::new(py, *value).to_owned().into_any(),
        Label::Int(value) => value.into_pyobject(py)?.into_any(),
        Label::Float(value) => value.into_pyobject(py)?.into_any(),
        Label::Text(value) => value.into_pyobject(py)?.into_any(),
    })
}
