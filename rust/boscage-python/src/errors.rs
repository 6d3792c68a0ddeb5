//! One table from the crate's errors to Python's.

use boscage::Error;
use pyo3::PyErr;
use pyo3::exceptions::{PyKeyError, PyKeyboardInterrupt, PyMemoryError, PyOSError, PyValueError};

/// Bad input is a `ValueError`, an id that is not there a `KeyError`, a file that cannot be read an
/// `OSError`, an answer that is too large a `MemoryError`.
pub(crate) fn to_python(error: Error) -> PyErr {
    match error {
        Error::UnknownId { .. } => PyKeyError::new_err(error.to_string()),
        Error::Memory { .. } => PyMemoryError::new_err(error.to_string()),
        Error::Io { .. } => PyOSError::new_err(error.to_string()),
        // The gate raises the signal's own exception; this one is for a stop that came without a signal.
        Error::Interrupted => PyKeyboardInterrupt::new_err(error.to_string()),
        _ => PyValueError::new_err(error.to_string()),
    }
}
