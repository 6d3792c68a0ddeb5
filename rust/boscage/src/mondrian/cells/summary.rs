//! Summaries of subtrees, and lists about test rows, as words, which owners of cells exchange.

use crate::data::Scalar;
use crate::error::{Error, Result};

/// Words that are read one after the other.
#[derive(Debug, Clone)]
pub(crate) struct Words<'a> {
    rest: std::slice::Iter<'a, u64>,
}

impl<'a> Words<'a> {
    pub(crate) fn new(words: &'a [u64]) -> Self {
        Self { rest: words.iter() }
    }

    /// # Errors
    /// There are no more.
    pub(crate) fn next(&mut self) -> Result<u64> {
        self.rest.next().copied().ok_or_else(|| wrong("words that end early"))
    }

    pub(crate) fn number(&mut self) -> Result<f64> {
        self.next().map(f64::from_bits)
    }

    /// So many numbers, each of which `S` holds exactly.
    pub(super) fn values<S: Scalar>(&mut self, n: usize) -> Result<Vec<S>> {
        (0..n).map(|_| S::exact(self.number()?).ok_or_else(|| wrong("bounds that are not exact"))).collect()
    }

    /// # Errors
    /// There are more.
    pub(crate) fn end(&self) -> Result<()> {
        if self.rest.len() == 0 { Ok(()) } else { Err(wrong("more words than cells need")) }
    }
}

/// An error of words.
pub(crate) fn wrong(found: &str) -> Error {
    let expected = "those of all owners of cells, in order";
    Error::InvalidSetting { name: "words", expected, found: found.into() }
}
