//! The table from the crate's errors to Python's.

use boscage::Error;
use pyo3::PyErr;
use pyo3::exceptions::{PyKeyError, PyKeyboardInterrupt, PyMemoryError, PyOSError, PyValueError};

/// Invalid input is a `ValueError`, and an unknown id a `KeyError`. A file that cannot be read or written is
/// an `OSError` with the system's error number (which Python turns into a `FileNotFoundError` or
/// `PermissionError`), and a result that does not fit into memory is a `MemoryError`.
pub(crate) fn to_python(error: Error) -> PyErr {
    match error {
        Error::UnknownId { .. } => PyKeyError::new_err(error.to_string()),
        Error::Memory { .. } => PyMemoryError::new_err(error.to_string()),
        Error::Io { code: Some(code), message, path, .. } => {
            // The standard library appends the number to the system's message, and so does Python.
            let message = message.split(" (os error").next().unwrap_or_default().to_owned();
            PyOSError::new_err((code, message, path))
        }
        Error::Io { .. } => PyOSError::new_err(error.to_string()),
        // The gate raises the exception of the signal; this one is for a stop without a signal.
        Error::Interrupted => PyKeyboardInterrupt::new_err(error.to_string()),
        _ => PyValueError::new_err(error.to_string()),
    }
}
