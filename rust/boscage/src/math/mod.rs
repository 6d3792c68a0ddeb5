//! Mathematics shared by all models.
//!
//! `special_functions` has the distribution functions of the normal and chi-square distributions. `logs` adds
//! and normalises numbers that are given by their logarithms, since likelihoods of many rows underflow.
//! `dual` is automatic differentiation in forward mode, with which belief propagation over a tree also gives
//! the gradient of the likelihood in the hyperparameters. `golden_section` and `newton` find where a function is least. `order` maps
//! floats to integers of the same order, so that they can be sorted and compared as integers. `fixed_point` adds
//! numbers exactly. `matrices` has symmetric matrices and their factors. `vectors` has loops compiled for the processor.

pub(crate) mod dual;
pub(crate) mod fixed_point;
pub(crate) mod golden_section;
pub(crate) mod logs;
pub(crate) mod matrices;
pub(crate) mod newton;
pub(crate) mod order;
pub(crate) mod special_functions;
pub(crate) mod vectors;

/// The index of the greatest of some numbers; the first if several are equal.
pub(crate) fn greatest(numbers: &[f64]) -> usize {
    (1..numbers.len()).fold(0, |best, i| if numbers[i] > numbers[best] { i } else { best })
}
