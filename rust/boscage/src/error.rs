//! The error type of the crate, and the check of memory.

use std::path::Path;
use std::sync::OnceLock;

/// All errors of this crate. Invalid input never panics.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A setting outside of its domain.
    #[error("{name} must be {expected}, found {found}")]
    InvalidSetting {
        /// The setting's name.
        name: &'static str,
        /// The values allowed.
        expected: &'static str,
        /// The value found.
        found: String,
    },
    /// Arrays whose lengths disagree.
    #[error("{what} has length {found}, expected {expected} ({why})")]
    Length {
        /// The array.
        what: &'static str,
        /// Its length.
        found: usize,
        /// The length it should have.
        expected: usize,
        /// The source of the expected length.
        why: &'static str,
    },
    /// NaN or infinity among the features.
    #[error("row {row}, feature {feature} of X is {value}; every value must be finite")]
    NonFinite {
        /// Row in the given array.
        row: usize,
        /// Feature, counted from 0.
        feature: usize,
        /// The value found.
        value: f64,
    },
    /// A missing value, and a model that has nothing that stands for it or that was fitted without any.
    #[error(
        "row {row}, feature {feature} of X is missing (NaN); expected a number, since the model has not learned from \
         missing values"
    )]
    Missing {
        /// Row in the given array.
        row: usize,
        /// Feature, counted from 0.
        feature: usize,
    },
    /// NaN or infinity among the targets.
    #[error("y[{row}] is {value}; every target must be finite")]
    NonFiniteTarget {
        /// Row in the given array.
        row: usize,
        /// The value found.
        value: f64,
    },
    /// A row so far outside the reference ranges that no shell of the domain contains it.
    #[error(
        "row {row}, feature {feature} of X is {value:?}: more than 2^{max_level} reference ranges away from \
         [{low:?}, {high:?}]; transform the feature or give a wider feature_range"
    )]
    TooFar {
        /// Row in the given array.
        row: usize,
        /// Feature, counted from 0.
        feature: usize,
        /// The value found.
        value: f64,
        /// Lower end of the reference range.
        low: f64,
        /// Upper end of the reference range.
        high: f64,
        /// The largest level of the domain.
        max_level: u32,
    },
    /// A fit needs at least one row and one feature.
    #[error("found an array of {n_rows} rows and {n_features} features; at least one of each is needed")]
    Empty {
        /// Number of rows.
        n_rows: usize,
        /// Number of features.
        n_features: usize,
    },
    /// More rows than there are row numbers.
    #[error("a forest holds at most {max} rows; {found} would be in it")]
    TooManyRows {
        /// The largest number of rows.
        max: usize,
        /// The number of rows requested.
        found: usize,
    },
    /// An id that the forest already holds, or that occurs twice in one call.
    #[error("id {id} is already in the forest or given twice; ids must be unique")]
    DuplicateId {
        /// The id.
        id: u64,
    },
    /// An id that the forest does not hold.
    #[error("id {id} is not in the forest, or given twice; nothing was changed")]
    UnknownId {
        /// The id.
        id: u64,
    },
    /// Forests that are not shards of one forest.
    #[error("forests can be merged only if their {what} are equal")]
    NotMergeable {
        /// The difference.
        what: &'static str,
    },
    /// Fits of single chains or islands that are not parts of one fit.
    #[error("chains or islands can be joined only if their {what} are equal")]
    NotJoinable {
        /// The difference.
        what: &'static str,
    },
    /// The caller requested a stop.
    #[error("stopped by the caller")]
    Interrupted,
    /// A file or byte string that is not a valid model. The message names the byte and the field at fault,
    /// what was expected there and what was found.
    #[error("not a valid boscage model: {0}")]
    ModelFile(String),
    /// A valid model of another kind than the one requested.
    #[error("the model is a {found}, not a {expected}")]
    OtherKind {
        /// The kind of the model, in words.
        found: &'static str,
        /// The kind requested, in words.
        expected: &'static str,
    },
    /// A result does not fit into memory.
    #[error("not enough memory for {what}: {n_bytes} bytes")]
    Memory {
        /// The contents of the result.
        what: &'static str,
        /// The size of the result.
        n_bytes: usize,
    },
    /// A file could not be read or written.
    #[error("cannot {action} {path}: {message}")]
    Io {
        /// The operation: "read" or "write".
        action: &'static str,
        /// The file.
        path: String,
        /// The operating system's message.
        message: String,
        /// The operating system's error number, if it has one.
        code: Option<i32>,
    },
}

impl Error {
    pub(crate) fn io(action: &'static str, path: &Path, error: &std::io::Error) -> Self {
        let path = path.display().to_string();
        Self::Io { action, path, message: error.to_string(), code: error.raw_os_error() }
    }
}

/// A result with the crate's error type.
pub type Result<T> = std::result::Result<T, Error>;

/// Checks that a machine may hold so much: it has the memory, and an allocation of this size does not fail, which would
/// abort the process where the memory is needed.
///
/// # Errors
/// [`Error::Memory`], if there is less.
pub(crate) fn check_room(what: &'static str, n_bytes: usize) -> Result<()> {
    let is_refused = n_bytes > machine_memory() || Vec::<u8>::new().try_reserve_exact(n_bytes).is_err();
    if is_refused { Err(Error::Memory { what, n_bytes }) } else { Ok(()) }
}

/// The bytes that the machine, or the control group that the process is in, has in all; the greatest number where nothing
/// tells. Some systems grant allocations of any size, and end the process once it uses them.
fn machine_memory() -> usize {
    static BYTES: OnceLock<usize> = OnceLock::new();
    *BYTES.get_or_init(|| {
        let of_machine =
            std::fs::read_to_string("/proc/meminfo").ok().and_then(|text| memory_and_swap(&text));
        let groups = ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"];
        let of_groups =
            groups.iter().filter_map(|path| std::fs::read_to_string(path).ok()?.trim().parse().ok());
        of_groups.chain(of_machine).min().unwrap_or(usize::MAX)
    })
}

/// Memory and swap in bytes, from Linux's list of numbers of kilobytes by name.
fn memory_and_swap(text: &str) -> Option<usize> {
    let of = |name| -> Option<usize> {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim().strip_suffix(" kB")?.parse::<usize>().ok()?.checked_mul(1024)
    };
    Some(of("MemTotal:")?.saturating_add(of("SwapTotal:").unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_room_is_refused() {
        assert_eq!(check_room("a little", 1 << 20), Ok(()));
        let (what, n_bytes) = ("all", usize::MAX);
        assert_eq!(check_room(what, n_bytes), Err(Error::Memory { what, n_bytes }));
        let n_bytes = machine_memory().saturating_add(1);
        assert_eq!(check_room(what, n_bytes), Err(Error::Memory { what, n_bytes }));
    }

    #[test]
    fn memory_is_read_off_numbers_by_name() {
        let text = "MemTotal:       24000 kB\nMemFree:         3 kB\nSwapTotal:          10 kB\n";
        assert_eq!(memory_and_swap(text), Some(24_010 * 1024));
        assert_eq!(memory_and_swap("MemTotal: 7 kB\n"), Some(7 * 1024));
        for wrong in ["", "MemTotal: x kB\n", "MemTotal: 5 MB\n"] {
            assert_eq!(memory_and_swap(wrong), None);
        }
    }
}
