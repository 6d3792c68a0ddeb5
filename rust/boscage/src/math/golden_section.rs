//! The search for the least value of a function that falls and then rises.

/// The golden ratio less one.
pub(crate) const SHARE: f64 = 0.618_033_988_749_894_9;
/// The same with another last bit. Hyperparameters of regression forests were found with it, and a file that was saved gives
/// them back to the last bit.
pub(crate) const SHARE_OF_FILES: f64 = 0.618_033_988_749_895;

/// An interval that holds the place of the least value, and two points inside it with their values.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Interval {
    low: f64,
    high: f64,
    inner: [(f64, f64); 2],
}

impl Interval {
    /// The middle.
    pub(crate) fn middle(&self) -> f64 {
        0.5 * (self.low + self.high)
    }

    /// The point inside with the smaller value, and the value.
    pub(crate) fn least(&self) -> (f64, f64) {
        let [a, b] = self.inner;
        if a.1 < b.1 { a } else { b }
    }
}

/// Narrows an interval by golden sections of ratio `share`, each of which needs one value, until it is no longer than `longest`.
pub(crate) fn golden_section(
    f: impl Fn(f64) -> f64,
    (mut low, mut high): (f64, f64),
    (share, longest): (f64, f64),
) -> Interval {
    let lower = |low: f64, high: f64| high - share * (high - low);
    let upper = |low: f64, high: f64| low + share * (high - low);
    let at = |x: f64| (x, f(x));
    let (mut a, mut b) = (at(lower(low, high)), at(upper(low, high)));
    while high - low > longest {
        if a.1 <= b.1 {
            (high, b) = (b.0, a);
            a = at(lower(low, high));
        } else {
            (low, a) = (a.0, b);
            b = at(upper(low, high));
        }
    }
    Interval { low, high, inner: [a, b] }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_finds_the_least_value() {
        for place in [-1.0, -0.3, 0.2, 1.9, 2.0] {
            let f = |x: f64| (x - place).abs().sqrt();
            let found = golden_section(f, (-1.0, 2.0), (SHARE, 1e-9));
            assert!((found.middle() - place).abs() < 1e-9, "{place}");
            let (x, value) = found.least();
            assert!((x - place).abs() < 1e-9 && value == f(x));
        }
    }
}
