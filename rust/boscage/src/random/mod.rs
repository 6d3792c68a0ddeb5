//! Random numbers that are the same on every platform and for any number of threads.

pub(crate) mod distributions;
pub(crate) mod keyed;
pub(crate) mod shuffle;

pub use keyed::Stream;
