//! Conjugate leaves: sufficient statistics of rows, their marginal likelihood `l(Y | X)` (eq. 3.1), and both sides of a cut
//! that moves over the sorted rows of a node.
//!
//! `dirichlet` has classes (eq. 3.2), `normal` numbers of unknown mean and variance, to which the thesis says the extension
//! is straightforward (section 3.2.1). A cut that moves by one row changes the statistics of two leaves by one row, so the
//! likelihood of all cuts along a feature takes one scan (section 3.3.1, footnote).

pub(crate) mod dirichlet;
pub(crate) mod model;
pub(crate) mod normal;
