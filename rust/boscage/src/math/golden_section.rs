//! The search for the least value of a function that falls and then rises.

/// The golden ratio less one, but for its last bit. Hyperparameters of regression forests were found with it, and a file that was
/// saved gives them back to the last bit.
const SHARE: f64 = 0.618_033_988_749_895;

/// Narrows an interval by golden sections, each of which needs one value, until it is no longer than `longest`. The least value
/// that was found inside, and its place before it.
pub(crate) fn golden_section(
    f: impl Fn(f64) -> f64,
    (mut low, mut high): (f64, f64),
    longest: f64,
) -> (f64, f64) {
    let lower = |low: f64, high: f64| high - SHARE * (high - low);
    let upper = |low: f64, high: f64| low + SHARE * (high - low);
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
    if a.1 < b.1 { a } else { b }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_finds_the_least_value() {
        for place in [-1.0, -0.3, 0.2, 1.9, 2.0] {
            let f = |x: f64| (x - place).abs().sqrt();
            let (x, value) = golden_section(f, (-1.0, 2.0), 1e-9);
            assert!((x - place).abs() < 1e-9 && value == f(x), "{place}");
        }
    }
}
