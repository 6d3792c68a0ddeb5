//! Exact answers on small data, for tests.

pub(crate) mod enumerate;
pub(crate) mod visit_frequencies;
