//! Numbers as whole multiples of a unit: their sums do not depend on order, and differences of sums are exact.

/// Numbers as multiples of a power of two.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FixedPoint {
    /// The unit is `2^-shift`.
    shift: i32,
}

impl FixedPoint {
    /// Bits of a sum of magnitudes: rounding cannot take it beyond 127.
    const BITS: i32 = 125;

    /// For finite numbers of any sign whose magnitudes have a finite sum: multiples of at most `2^-124` of it.
    pub(crate) fn of(numbers: impl Iterator<Item = f64>) -> Self {
        let (_, exponent) = libm::frexp(numbers.map(f64::abs).sum());
        Self { shift: Self::BITS - exponent }
    }

    /// For numbers that are not known yet: multiples of `2^-bits`, whose sums are below `2^(127 - bits)` by magnitude.
    pub(crate) const fn with_bits(bits: u32) -> Self {
        Self { shift: bits as i32 }
    }

    /// The nearest multiple.
    pub(crate) fn fixed(self, number: f64) -> i128 {
        libm::rint(libm::ldexp(number, self.shift)) as i128
    }

    pub(crate) fn float(self, multiple: i128) -> f64 {
        libm::ldexp(multiple as f64, -self.shift)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_are_exact_and_others_nearly() {
        let numbers = [3.0, -1e9, 0.0, 1.0, 7e4];
        let fixed = FixedPoint::of(numbers.iter().copied());
        for number in numbers {
            assert_eq!(fixed.float(fixed.fixed(number)), number);
        }
        let sum: i128 = numbers.iter().map(|&number| fixed.fixed(number)).sum();
        assert_eq!(fixed.float(sum), numbers.iter().sum::<f64>());
        assert_eq!(FixedPoint::of([0.0].into_iter()).fixed(0.0), 0);
    }

    #[test]
    fn what_is_light_keeps_its_digits_beside_what_is_heavy() {
        for scale in [1e-250, 1.0, 1e290] {
            let numbers = [0.3 * scale, 1e16 * scale, -1e16 * scale, 1e-9 * scale];
            let fixed = FixedPoint::of(numbers.iter().copied());
            let all: i128 = numbers.iter().map(|&number| fixed.fixed(number)).sum();
            let rest = fixed.float(all - fixed.fixed(numbers[0]));
            assert!((rest / numbers[3] - 1.0).abs() < 1e-12, "{scale}: {rest}");
        }
    }
}
