//! Dual numbers: forward-mode derivatives, so that belief propagation is written once for values and for
//! gradients.

use std::ops::{Add, Div, Mul, Neg, Sub};

/// A real number, with derivatives or without.
pub trait Real:
    Copy + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self> + Div<Output = Self> + Neg<Output = Self>
{
    /// A constant.
    fn constant(value: f64) -> Self;
    /// The natural logarithm.
    fn ln(self) -> Self;
    /// The hyperbolic tangent.
    fn tanh(self) -> Self;
}

impl Real for f64 {
    fn constant(value: f64) -> Self {
        value
    }
    fn ln(self) -> Self {
        Self::ln(self)
    }
    fn tanh(self) -> Self {
        Self::tanh(self)
    }
}

/// A value and its derivatives in `N` variables (forward mode).
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Dual<const N: usize> {
    pub(crate) value: f64,
    pub(crate) slope: [f64; N],
}

impl<const N: usize> Dual<N> {
    /// Variable number `i`.
    pub(crate) fn variable(value: f64, i: usize) -> Self {
        let mut slope = [0.0; N];
        slope[i] = 1.0;
        Self { value, slope }
    }

    /// A function of this number, given its value and its derivative here (chain rule).
    pub(crate) fn chain(self, value: f64, derivative: f64) -> Self {
        Self { value, slope: self.slope.map(|s| s * derivative) }
    }

    /// The quotient. The derivative is computed without the product of two large or two small numbers, which
    /// could overflow or underflow.
    fn over(self, other: Self) -> Self {
        let value = self.value / other.value;
        let slope = std::array::from_fn(|i| (self.slope[i] - value * other.slope[i]) / other.value);
        Self { value, slope }
    }

    /// A function of two numbers, given its value and its partial derivatives.
    fn combine(self, other: Self, value: f64, by_self: f64, by_other: f64) -> Self {
        let slope = std::array::from_fn(|i| by_self * self.slope[i] + by_other * other.slope[i]);
        Self { value, slope }
    }
}

impl<const N: usize> Add for Dual<N> {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        self.combine(other, self.value + other.value, 1.0, 1.0)
    }
}

impl<const N: usize> Sub for Dual<N> {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        self.combine(other, self.value - other.value, 1.0, -1.0)
    }
}

impl<const N: usize> Mul for Dual<N> {
    type Output = Self;
    fn mul(self, other: Self) -> Self {
        self.combine(other, self.value * other.value, other.value, self.value)
    }
}

impl<const N: usize> Div for Dual<N> {
    type Output = Self;
    fn div(self, other: Self) -> Self {
        self.over(other)
    }
}

impl<const N: usize> Neg for Dual<N> {
    type Output = Self;
    fn neg(self) -> Self {
        self.chain(-self.value, -1.0)
    }
}

impl<const N: usize> Real for Dual<N> {
    fn constant(value: f64) -> Self {
        Self { value, slope: [0.0; N] }
    }
    fn ln(self) -> Self {
        self.chain(self.value.ln(), 1.0 / self.value)
    }
    fn tanh(self) -> Self {
        let value = self.value.tanh();
        self.chain(value, 1.0 - value * value)
    }
}
