//! The total order of finite floats, as an order of integers.

/// An integer with the order of the number: a smaller number has a smaller integer. Negative zero is below
/// zero.
pub(crate) fn to_ordered(x: f64) -> i64 {
    mirror(x.to_bits() as i64)
}

/// The inverse of [`to_ordered`].
pub(crate) fn from_ordered(order: i64) -> f64 {
    f64::from_bits(mirror(order) as u64)
}

/// Maps bits with a sign and a magnitude to two's complement, and back: for negative numbers, bits grow with
/// the magnitude.
fn mirror(bits: i64) -> i64 {
    bits ^ ((bits >> 63) & i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_order_as_numbers_do() {
        let numbers =
            [f64::MIN, -1.5, -f64::MIN_POSITIVE, -5e-324, 0.0, 5e-324, 1.0, 1.0f64.next_up(), f64::MAX];
        for pair in numbers.windows(2) {
            assert!(to_ordered(pair[0]) < to_ordered(pair[1]), "{pair:?}");
        }
        for x in numbers {
            assert_eq!(from_ordered(to_ordered(x)).to_bits(), x.to_bits());
        }
        assert_eq!(to_ordered(-0.0) + 1, to_ordered(0.0));
    }
}
