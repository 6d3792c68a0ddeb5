//! One table from the crate's errors to Python's.

use boscage::Error;
use pyo3::PyErr;
use pyo3::exceptions::{PyKeyError, PyKeyboardInterrupt, PyMemoryError, PyOSError, PyValueError};

/// Bad input is a `ValueError`, an unknown id a `KeyError`, a file that cannot be read or written an `OSError` of the
/// system's number (a `FileNotFoundError` or a `PermissionError`, say), an answer that is too large a `MemoryError`.
pub(crate) fn to_python(error: Error) -> PyErr {
    match error {
        Error::UnknownId { .. } => PyKeyError::new_err(error.to_string()),
        Error::Memory { .. } => PyMemoryError::new_err(error.to_string()),
        Error::Io { code: Some(code), message, path, .. } => {
            // The standard library adds the number to the system's message, as Python does.
            let message = message.split(" (os error").next().unwrap_or_default().to_owned();
            PyOSError::new_err((code, message, path))
        }
        Error::Io { .. } => PyOSError::new_err(error.to_string()),
        // The gate raises the exception of the signal; this one is for a stop without a signal.
        Error::Interrupted => PyKeyboardInterrupt::new_err(error.to_string()),
        _ => PyValueError::new_err(error.to_string()),
    }
}
