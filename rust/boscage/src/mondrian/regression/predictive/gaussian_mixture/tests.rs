//! Mixtures against closed forms, numbers of many digits, integration and themselves.

use super::*;
use crate::control::Run;
use crate::data::Rows;
use crate::error::Error;
use crate::mondrian::forest::Batch;
use crate::mondrian::forest::settings::MondrianSettings;
use crate::mondrian::process::domain::Domain;
use crate::mondrian::regression::regressor::MondrianRegressor;
use crate::mondrian::regression::settings::RegressionSettings;
use crate::random::Stream;

/// Weight, mean and variance.
type Numbers = (f64, f64, f64);
/// A mixture, and quantiles by their probabilities.
type Quantiles<'a> = (&'a [Numbers], &'a [(f64, f64)]);

const SPREAD: [Numbers; 3] = [(0.2, -3.0, 1e-6), (0.5, 0.1, 4.0), (0.3, 1e3, 1e6)];
const GAP: [Numbers; 2] = [(0.25, -1e6, 0.01), (0.75, 1e6, 100.0)];
const TAIL: [Numbers; 2] = [(0.999, 0.0, 1.0), (0.001, 5.0, 100.0)];
const SPIKE: [Numbers; 2] = [(0.5, 0.0, 1e-300), (0.5, 1.0, 1.0)];

fn mixture(numbers: &[Numbers]) -> Vec<Component> {
    numbers.iter().map(|&(weight, mean, variance)| Component { weight, mean, variance }).collect()
}

fn finest(components: &[Component]) -> f64 {
    components.iter().map(|component| component.variance.sqrt()).fold(f64::INFINITY, f64::min)
}

/// Quantiles, by bisection in arithmetic of 60 digits (mpmath).
#[test]
fn quantiles_are_those_of_many_digits() {
    let known: [Quantiles<'_>; 4] = [
        (
            &SPREAD,
            &[
                (1e-300, -36_014.607_261_954_47),
                (1e-12, -5_864.623_880_145_045),
                (0.05, -4.981_807_578_144_858),
                (0.2, -2.999_716_417_536_328_4),
                (0.45, -0.381_563_005_346_185_37),
                (0.95, 1_967.421_566_101_700_4),
                (1.0 - 1e-12, 7_864.627_038_311_13),
            ],
        ),
        (
            &GAP,
            &[
                (1e-9, -1_000_000.576_845_830_4),
                (0.125, -1e6),
                (0.249_99, -999_999.605_559_991_6),
                (0.250_01, 999_957.997_892_682_2),
                (0.625, 1e6),
                (1.0 - 1e-9, 1_000_059.509_032_707_9),
            ],
        ),
        (
            &TAIL,
            &[
                (1e-300, -363.603_028_815_196_24),
                (1e-12, -54.978_070_150_076_87),
                (0.025, -1.963_713_147_513_573_6),
                (0.5, 0.000_480_363_208_210_081_4),
                (0.999, 3.330_069_291_628_279),
                (1.0 - 1e-12, 64.978_106_083_684_27),
            ],
        ),
        (
            &SPIKE,
            &[
                (1e-3, -1.878_161_739_095_483_5),
                (0.1, -1.735_289_773_850_518_7e-150),
                (0.3, -1.475_606_749_175_631_5e-151),
                (0.9, 1.841_621_233_572_914_3),
                (1.0 - 1e-12, 7.937_184_554_424_046_5),
            ],
        ),
    ];
    for (numbers, quantiles) in known {
        let components = mixture(numbers);
        for &(p, expected) in quantiles {
            let found = GaussianMixture { components: &components }.quantile(p).unwrap();
            let size = f64::max(expected.abs(), finest(&components));
            assert!((found - expected).abs() <= 1e-12 * size, "{found:e} and {expected:e} for {p:e}");
        }
    }
}

/// Distribution functions and logarithms of densities, in arithmetic of 60 digits (mpmath).
#[test]
fn probabilities_and_densities_are_those_of_many_digits() {
    let known: [(&[Numbers], f64, f64, f64); 13] = [
        (&SPREAD, -50.0, 0.044_057_716_912_768_78, -9.581_916_616_512_746),
        (&SPREAD, -3.001, 0.109_365_495_975_220_77, 3.879_999_611_961_653_5),
        (&SPREAD, 0.0, 0.487_627_173_260_250_9, -2.305_754_412_575_333),
        (&SPREAD, 2500.0, 0.979_957_839_619_342_6, -10.155_666_616_512_745),
        (&GAP, -1e6, 0.125, -0.002_647_801_330_517_687),
        (&GAP, 0.0, 0.25, -5_000_000_003.509_206),
        (&GAP, 1e6, 0.625, -3.509_205_698_650_499_4),
        (&TAIL, -100.0, 4.319_006_317_809_230_6e-29, -65.254_278_905_180_85),
        (&TAIL, 3.0, 0.998_072_192_156_962_4, -5.411_145_510_571_842),
        (&TAIL, 60.0, 0.999_999_999_981_010_4, -25.254_278_905_180_854),
        (&SPIKE, -1e-150, 0.158_655_253_931_457_05, 343.275_678_235_342_24),
        (&SPIKE, 1e-151, 0.349_241_545_604_243_03, 343.770_678_235_342_25),
        (&SPIKE, 2.0, 0.920_672_373_034_271_5, -2.112_085_713_764_618),
    ];
    for (numbers, y, below, log_density) in known {
        let components = mixture(numbers);
        let mixture = GaussianMixture { components: &components };
        let (found, log) = (mixture.cdf(y), mixture.log_pdf(y));
        assert!((found - below).abs() <= 1e-12 * below, "{found} and {below} at {y}");
        assert!((log - log_density).abs() <= 1e-12 * log_density.abs().max(1.0), "{log} and {log_density}");
    }
}

#[test]
fn one_component_is_a_gaussian() {
    // Quantiles of the standard normal distribution, in arithmetic of 60 digits (mpmath).
    let known = [
        (f64::MIN_POSITIVE, -37.519_379_347_144_5),
        (1e-300, -37.047_096_299_361_2),
        (1e-12, -7.034_483_825_301_132),
        (0.025, -1.959_963_984_540_054_3),
        (0.5, 0.0),
        (0.9, 1.281_551_565_544_600_6),
        (1.0 - 1e-12, 7.034_486_910_047_835_6),
        (1.0 - 0.5 * f64::EPSILON, 8.209_536_151_601_387),
    ];
    for (mean, std) in [(0.0_f64, 1.0_f64), (-7.0, 1e-3), (3e9, 2e12), (1e100, 1.0)] {
        let components = mixture(&[(1.0, mean, std * std)]);
        let mixture = GaussianMixture { components: &components };
        for (p, z) in known {
            let (found, expected) = (mixture.quantile(p).unwrap(), mean + std * z);
            let rounding = 4.0 * f64::EPSILON * (mean.abs() + std * f64::max(z.abs(), 1.0));
            assert!((found - expected).abs() <= rounding, "{found} and {expected}");
        }
        assert_eq!((mixture.mean(), mixture.variance(), mixture.cdf(mean)), (mean, std * std, 0.5));
        let log_density = -0.5 - std.ln() - 0.5 * std::f64::consts::TAU.ln();
        let y = mean + std;
        assert!(y == mean || (mixture.log_pdf(y) - log_density).abs() < 1e-12 * (1.0 + mean.abs() / std));
    }
}

#[test]
fn two_components_far_apart_share_the_probability() {
    let components = mixture(&[(0.5, -1000.0, 1.0), (0.5, 1000.0, 1.0)]);
    let mixture = GaussianMixture { components: &components };
    // Half of a component lies below its mean, and nothing lies between them.
    let near = |found: f64, expected: f64| (found - expected).abs() < 1e-12 * expected.abs();
    let (low, high) = mixture.interval(0.5).unwrap();
    assert!(near(low, -1000.0) && near(high, 1000.0), "{low} and {high}");
    assert_eq!([-900.0, 0.0, 900.0].map(|y| mixture.cdf(y)), [0.5; 3]);
    let median = mixture.quantile(0.5).unwrap();
    assert!(median.abs() < 1000.0 && mixture.cdf(median) == 0.5, "{median}");
    assert_eq!(mixture.mean(), 0.0);
    assert!(near(mixture.variance(), 1_000_001.0));
    // The borders of the gap: all but a millionth of the left half, and a millionth of the right one. The difference
    // from one half keeps ten digits.
    for (p, centre, sign) in [(0.5 - 5e-7, -1000.0, 1.0), (0.5 + 5e-7, 1000.0, -1.0)] {
        let expected = centre - sign * normal_quantile(1e-6);
        let found = mixture.quantile(p).unwrap();
        assert!((found - expected).abs() < 1e-9, "{found} and {expected}");
    }
}

#[test]
fn equal_components_are_one_and_those_without_weight_none() {
    let one = mixture(&[(1.0, 2.5, 3.0)]);
    let equal = mixture(&[(0.25, 2.5, 3.0); 4]);
    let without = mixture(&[(0.0, -1e9, 1e-9), (1.0, 2.5, 3.0), (0.0, 1e9, 1e9)]);
    for y in [-3.0, 2.5, 4.0] {
        let of = |components| GaussianMixture { components };
        let (p, log) = (of(&one).cdf(y), of(&one).log_pdf(y));
        let x = of(&one).quantile(p).unwrap();
        assert!((x - y).abs() < 1e-14 * y.abs(), "{x} and {y}");
        for other in [&equal, &without].map(|components| of(components)) {
            assert_eq!((other.cdf(y), other.quantile(p).unwrap()), (p, x));
            assert!((other.log_pdf(y) - log).abs() < 1e-14 * (1.0 + log.abs()));
        }
        assert_eq!((of(&without).mean(), of(&without).variance()), (2.5, 3.0));
    }
}

/// Simpson's rule, whose error is far below the tolerance.
#[test]
fn moments_and_probabilities_are_integrals_of_the_density() {
    let components = mixture(&[(0.1, -2.0, 0.3), (0.6, 0.5, 1.5), (0.3, 4.0, 0.05)]);
    let mixture = GaussianMixture { components: &components };
    let (start, n, step) = (-16.0, 8000, 0.004);
    let mut sums = [0.0; 3];
    for i in 0..=n {
        let y = start + f64::from(i) * step;
        let share = step / 3.0 * if i == 0 || i == n { 1.0 } else { 2.0 + 2.0 * f64::from(i % 2) };
        let density = share * mixture.log_pdf(y).exp();
        let away = y - mixture.mean();
        sums.iter_mut().zip([1.0, y, away * away]).for_each(|(sum, value)| *sum += density * value);
        if i > 0 && i < n && i % 500 == 0 {
            // Up to here the last point counts once.
            let below = sums[0] - density / 2.0;
            assert!((below - mixture.cdf(y)).abs() < 1e-12, "{below} at {y}");
        }
    }
    for (sum, expected) in sums.into_iter().zip([1.0, mixture.mean(), mixture.variance()]) {
        assert!((sum - expected).abs() < 1e-12, "{sum} and {expected}");
    }
}

/// The distribution function passes a quantile's probability within two units in its last place, or as near as its rounding
/// tells.
#[test]
fn quantiles_invert_the_distribution_function() {
    let mut stream = Stream::new(1, 1);
    let mut uniform = || stream.unit();
    for _ in 0..300 {
        let n = 1 + (30.0 * uniform()) as usize;
        // How many powers of e means and variances span.
        let (far, wide) = (24.0 * uniform(), 32.0 * uniform());
        let weights: Vec<f64> = (0..n).map(|_| uniform().powi(4)).collect();
        let total: f64 = weights.iter().sum();
        let component = |weight: f64| Component {
            weight: weight / total,
            mean: (uniform() - 0.5) * libm::exp(far * (uniform() - 0.5)),
            variance: libm::exp(wide * (uniform() - 0.5)),
        };
        let components: Vec<Component> = weights.into_iter().map(component).collect();
        let mixture = GaussianMixture { components: &components };
        for p in [1e-290, 1e-20, 1e-5, uniform(), 0.5, uniform(), 1.0 - 1e-5, 1.0 - 1e-12] {
            let x = mixture.quantile(p).unwrap();
            let (sign, tail) = if p <= 0.5 { (1.0, p) } else { (-1.0, 1.0 - p) };
            let parts = mixture.scaled(sign);
            let (below, density) = below_and_density(&parts, sign * x);
            let rounding = 40.0 * f64::EPSILON * tail;
            let size = 2.0 * f64::EPSILON * x.abs().max(finest(&components));
            // A step as long as the tolerance may change the density, too.
            let near = [-size, size].map(|away| below_and_density(&parts, sign * x + away).1);
            let steepest = near.into_iter().fold(density, f64::max);
            let apart = (below - tail).abs();
            assert!(apart <= rounding + steepest * size, "{apart:e} at {x:e} for {p:e}: {components:?}");
        }
        // There and back, where the density tells places apart.
        for component in &components {
            let y = component.mean;
            let p = mixture.cdf(y);
            let x = mixture.quantile(p).unwrap();
            let slope = mixture.log_pdf(y).exp();
            let far = 1e-11 * y.abs().max(finest(&components)) + 1e-14 / slope;
            assert!((x - y).abs() <= far || mixture.cdf(x) == p, "{x:e} and {y:e}: {components:?}");
        }
    }
}

#[test]
fn numbers_that_are_no_probabilities_are_refused() {
    let components = mixture(&TAIL);
    let mixture = GaussianMixture { components: &components };
    for wrong in [f64::NAN, -1e-9, 1.0 + 1e-9, f64::INFINITY, f64::NEG_INFINITY] {
        let refused =
            |name| Some(Error::InvalidSetting { name, expected: "from 0 to 1", found: format!("{wrong:?}") });
        assert_eq!(mixture.quantile(wrong).err(), refused("p"));
        assert_eq!(mixture.interval(wrong).err(), refused("level"));
    }
    let (low, high) = (f64::NEG_INFINITY, f64::INFINITY);
    assert_eq!([0.0, -0.0, 1.0].map(|p| mixture.quantile(p).unwrap()), [low, low, high]);
    assert_eq!(mixture.interval(1.0).unwrap(), (low, high));
    assert_eq!([low, high].map(|y| (mixture.cdf(y), mixture.log_pdf(y))), [(0.0, low), (1.0, low)]);
    assert!(mixture.cdf(f64::NAN).is_nan() && mixture.log_pdf(f64::NAN).is_nan());
    let (low, high) = mixture.interval(0.0).unwrap();
    assert!(low <= high && high - low < 1e-15, "{low} and {high}");
}

#[test]
fn mixtures_of_a_forest_have_its_moments() {
    let run = Run::default();
    let x: Vec<f64> = (0..60).map(|i| f64::from(i * 37 % 60) / 60.0).collect();
    let y: Vec<f64> = x.iter().map(|x| libm::sin(6.0 * x) + 0.2 * (7.0 * x).fract()).collect();
    let rows = Rows::from_f64(&x, 1).unwrap();
    let settings = MondrianSettings { n_estimators: 10, ..MondrianSettings::default() };
    let (domain, batch) = (Domain::of_rows(rows, None).unwrap(), Batch { rows, ids: None, weights: None });
    let forest =
        MondrianRegressor::fit(settings, RegressionSettings::default(), domain, batch, &y, &run).unwrap();
    let at = Rows::from_f64(&[0.1, 0.52, 2.0], 1).unwrap();
    let (means, variances) = forest.predict(at, &run).unwrap();
    let mixtures = forest.predict_dist(at, &run).unwrap();
    assert_eq!((mixtures.n_rows(), mixtures.rows().len(), mixtures.get(3)), (3, 3, None));
    let mut n_components = 0;
    for (row, mixture) in mixtures.rows().enumerate() {
        assert_eq!(mixtures.get(row), Some(mixture));
        assert_eq!(
            mixture.components(),
            &mixtures.components()[n_components..][..mixture.components().len()]
        );
        n_components += mixture.components().len();
        assert_eq!(mixtures.offsets()[row + 1], n_components);
        let near = |found: f64, expected: f64| (found - expected).abs() < 1e-8 * expected.abs().max(1.0);
        assert!(near(mixture.mean(), means[row]), "{} and {}", mixture.mean(), means[row]);
        assert!(near(mixture.variance(), variances[row]), "{} and {}", mixture.variance(), variances[row]);
    }
    assert_eq!(mixtures.components().len(), n_components);
    assert_eq!(forest.loo_dist(&[], &run).unwrap().n_rows(), 0);
}
