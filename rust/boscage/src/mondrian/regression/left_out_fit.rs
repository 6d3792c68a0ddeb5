//! What the leave-one-out rule fits beside the hyperparameters of the hierarchy, as plain numbers.
//!
//! Together with the hyperparameters they determine predictions. So a forest that is given what another one has chosen
//! predicts the same, and one that keeps its own does not choose again after each update.

use crate::error::{Error, Result};
use crate::validate::{Interval, SUMS_OF_SQUARES, check_positive, check_within};

/// Rows for which a parent's factor of local noise counts unless a rule chooses.
pub(crate) const NOISE_ROWS: f64 = 10.0;

const SHARES: Interval = (0.0, 1.0, "from 0 to 1");
/// A tail that has all rows leaves none for the rest, and one without rows is no tail.
const TAIL_SHARES: Interval = (1e-12, 0.5, "from 1e-12 to 0.5");
/// In units of the standard deviation of all rows; farther ones would have more than their variance.
const OFFSETS: Interval = (-1e6, 1e6, "from -1e6 to 1e6");
/// By how much tails may change the variance.
const ROUNDING: f64 = 1e-6;

/// What is fitted to rows that are left out, beside the hyperparameters.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LeftOutFit {
    /// Of the joint posterior; None: it has the hierarchy's hyperparameters, and the trees keep their spread.
    pub joint: Option<JointFit>,
    /// Of local noise: for how many rows a parent's factor counts.
    pub noise_rows: f64,
    /// Of local noise; None: it is Gaussian.
    pub tails: Option<TailFit>,
}

/// The joint posterior's own hyperparameters, and its part in the predictions.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct JointFit {
    /// `gamma_1` of the sum of all trees.
    pub gamma1: f64,
    /// `gamma_2` of the sum of all trees.
    pub gamma2: f64,
    /// The noise variance beside the sum of all trees.
    pub noise_variance: f64,
    /// The joint mean's share in the mean, beside that of the trees' own means.
    pub share: f64,
    /// Factor on the distances of the trees' own means from the mean.
    pub spread: f64,
    /// Whether it was chosen as the sum of infinitely many trees. With so many rows that left-out ones decide this, forests that are
    /// given it have the covariance of infinitely many trees then.
    pub is_limit: bool,
}

/// The tails of the noise: a share of the rows lies to one side, with a variance of its own.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TailFit {
    /// Of the rows, at most a half.
    pub share: f64,
    /// Of the mean of these rows, in standard deviations of all.
    pub offset: f64,
    /// Of these rows, in units of that of all.
    pub variance: f64,
    /// Of the other rows, in the same units; together all have the variance 1.
    pub core_variance: f64,
}

impl JointFit {
    const NAMES: [&str; 5] =
        ["joint_gamma1", "joint_gamma2", "joint_noise_variance", "joint_share", "tree_spread"];

    /// 1 if it is the sum of infinitely many trees, and else left out.
    const LIMIT: &str = "joint_limit";

    /// In the order of [`NAMES`](Self::NAMES).
    pub(crate) fn of([gamma1, gamma2, noise_variance, share, spread]: [f64; 5], is_limit: bool) -> Self {
        Self { gamma1, gamma2, noise_variance, share, spread, is_limit }
    }

    /// In the same order.
    pub(crate) fn numbers(&self) -> [f64; 5] {
        [self.gamma1, self.gamma2, self.noise_variance, self.share, self.spread]
    }
}

impl TailFit {
    pub(crate) const NAMES: [&str; 4] = ["tail_share", "tail_offset", "tail_variance", "core_variance"];

    /// In the order of [`NAMES`](Self::NAMES).
    pub(crate) fn of([share, offset, variance, core_variance]: [f64; 4]) -> Self {
        Self { share, offset, variance, core_variance }
    }

    pub(crate) fn numbers(&self) -> [f64; 4] {
        [self.share, self.offset, self.variance, self.core_variance]
    }

    /// The mean of the other rows, so that all have the mean 0.
    pub(crate) fn core_offset(&self) -> f64 {
        -self.share * self.offset / (1.0 - self.share)
    }

    fn variance_of_all(&self) -> f64 {
        let square = |variance: f64, offset: f64| variance + offset * offset;
        self.share * square(self.variance, self.offset)
            + (1.0 - self.share) * square(self.core_variance, self.core_offset())
    }
}

impl Default for LeftOutFit {
    fn default() -> Self {
        Self { joint: None, noise_rows: NOISE_ROWS, tails: None }
    }
}

impl LeftOutFit {
    /// All numbers, with names, but those that say what is so without a fit.
    #[must_use]
    pub fn numbers(&self) -> Vec<(&'static str, f64)> {
        let has_own_rows = self.noise_rows.to_bits() != NOISE_ROWS.to_bits() || self.tails.is_some();
        let joint = self.joint.map(|joint| {
            let is_limit = joint.is_limit.then_some((JointFit::LIMIT, 1.0));
            JointFit::NAMES.into_iter().zip(joint.numbers()).chain(is_limit)
        });
        let noise_rows = has_own_rows.then_some(("noise_rows", self.noise_rows));
        let tails = self.tails.map(|tails| TailFit::NAMES.into_iter().zip(tails.numbers()));
        joint.into_iter().flatten().chain(noise_rows).chain(tails.into_iter().flatten()).collect()
    }

    /// Those that [`numbers`](Self::numbers) says, by name.
    ///
    /// # Errors
    /// Some numbers of the joint posterior, or of the tails, without the others of it; a `joint_limit` that is not 1.
    pub fn of_numbers(number: impl Fn(&str) -> Option<f64>) -> Result<Self> {
        let is_limit = match number(JointFit::LIMIT) {
            None => false,
            Some(1.0) if number(JointFit::NAMES[0]).is_some() => true,
            Some(found) => {
                let (name, expected) =
                    (JointFit::LIMIT, "1 beside the joint posterior's numbers, or left out");
                return Err(Error::InvalidSetting { name, expected, found: found.to_string() });
            }
        };
        Ok(Self {
            joint: all_of(JointFit::NAMES, &number)?.map(|numbers| JointFit::of(numbers, is_limit)),
            noise_rows: number("noise_rows").unwrap_or(NOISE_ROWS),
            tails: all_of(TailFit::NAMES, &number)?.map(TailFit::of),
        })
    }

    /// # Errors
    /// A number that is out of range; tails that change the variance.
    pub(crate) fn check(&self) -> Result<()> {
        for (name, value) in self.numbers() {
            match name {
                "joint_share" | "tree_spread" => check_within(name, value, SHARES)?,
                "joint_gamma1" | "joint_noise_variance" => check_within(name, value, SUMS_OF_SQUARES)?,
                "tail_share" => check_within(name, value, TAIL_SHARES)?,
                "tail_offset" => check_within(name, value, OFFSETS)?,
                _ => check_positive(name, value)?,
            }
        }
        let of_all = self.tails.map_or(1.0, |tails| tails.variance_of_all());
        if (of_all - 1.0).abs() <= ROUNDING {
            return Ok(());
        }
        let (name, expected) = ("tails", "a core and a tail with the variance 1 together");
        Err(Error::InvalidSetting { name, expected, found: of_all.to_string() })
    }
}

/// The numbers of these names; none if there are none.
fn all_of<const N: usize>(
    names: [&'static str; N],
    number: impl Fn(&str) -> Option<f64>,
) -> Result<Option<[f64; N]>> {
    let found = names.map(&number);
    if found.iter().all(Option::is_none) {
        return Ok(None);
    }
    if let Some(lacking) = found.iter().position(Option::is_none) {
        let expected = "given, as other numbers that belong to it are";
        return Err(Error::InvalidSetting { name: names[lacking], expected, found: "none".into() });
    }
    Ok(Some(found.map(Option::unwrap_or_default)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIT: LeftOutFit = LeftOutFit {
        joint: Some(JointFit {
            gamma1: 2.0,
            gamma2: 0.5,
            noise_variance: 0.1,
            share: 0.9,
            spread: 0.25,
            is_limit: true,
        }),
        noise_rows: 40.0,
        tails: Some(TailFit { share: 0.2, offset: 1.0, variance: 2.0, core_variance: 0.4375 }),
    };

    fn of(numbers: &[(&'static str, f64)]) -> Result<LeftOutFit> {
        LeftOutFit::of_numbers(|name| numbers.iter().find(|(own, _)| *own == name).map(|(_, value)| *value))
    }

    #[test]
    fn numbers_say_it_all() {
        assert_eq!(of(&FIT.numbers()).unwrap(), FIT);
        assert_eq!(of(&LeftOutFit::default().numbers()).unwrap(), LeftOutFit::default());
        assert!(LeftOutFit::default().numbers().is_empty());
        let tails = LeftOutFit { noise_rows: NOISE_ROWS, joint: None, ..FIT };
        assert_eq!(of(&tails.numbers()).unwrap(), tails);
    }

    #[test]
    fn numbers_that_belong_together_come_together() {
        for left_out in ["tree_spread", "tail_share"] {
            let rest: Vec<_> = FIT.numbers().into_iter().filter(|(name, _)| *name != left_out).collect();
            assert!(of(&rest).unwrap_err().to_string().contains(left_out));
        }
    }

    #[test]
    fn numbers_out_of_range_are_refused() {
        FIT.check().unwrap();
        for (name, value) in FIT.numbers() {
            for wrong in [f64::NAN, f64::INFINITY, -1e9] {
                let numbers: Vec<_> = FIT
                    .numbers()
                    .into_iter()
                    .map(|(own, value)| (own, if own == name { wrong } else { value }))
                    .collect();
                let refused = of(&numbers).and_then(|fit| fit.check());
                assert!(refused.is_err(), "{name} of {wrong} in place of {value}");
            }
        }
        let wider = TailFit { core_variance: 0.5, ..FIT.tails.unwrap() };
        assert!(LeftOutFit { tails: Some(wider), ..FIT }.check().is_err());
    }
}
