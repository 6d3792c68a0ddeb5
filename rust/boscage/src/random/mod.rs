//! Random numbers that are the same on every platform and for any number of threads.
//!
//! `keyed` is a counter-based generator: a draw is a hash of a key and of a number, so that a generator has
//! no state but its counter. The cut of a cell of a Mondrian process is a function of the cell's key, and
//! therefore does not depend on the order in which cells are visited. A `Stream` numbers its draws one after
//! the other; it can be stored and continued. Each tree, chain and island has its own stream, so that results
//! do not depend on threads. `distributions` and `shuffle` turn uniform draws into draws from the
//! distributions, and into the permutations, that the models need. Logarithms and exponentials are those of
//! `libm`, whose bits do not depend on the platform.

pub(crate) mod distributions;
pub(crate) mod keyed;
pub(crate) mod shuffle;

pub use keyed::Stream;
