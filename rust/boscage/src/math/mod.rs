//! Mathematics that every room needs.

pub(crate) mod dual;
pub(crate) mod logs;
pub(crate) mod order;
pub(crate) mod special_functions;

/// Where the greatest of some numbers is, the first of equals.
pub(crate) fn greatest(numbers: &[f64]) -> usize {
    (1..numbers.len()).fold(0, |best, i| if numbers[i] > numbers[best] { i } else { best })
}
