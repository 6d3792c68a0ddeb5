//! Dirichlet-multinomial leaves: classes (eq. 3.2).

use crate::bayes::leaf::model::{ConjugateLeaf, MovingCut};
use crate::error::Result;
use crate::validate::{PSEUDO_COUNTS, check_within};

/// Leaves whose rows share a distribution over `K` classes, with prior `Dirichlet(alpha / K)` (eq. 3.2): `l =
/// Gamma(alpha) / Gamma(alpha / K)^K * prod_k Gamma(c_k + alpha / K) / Gamma(n + alpha)`, where `c_k` of the
/// `n` rows are of class `k`.
#[derive(Debug)]
pub(crate) struct Dirichlet<'a> {
    classes: ClassOfRow<'a>,
    n_classes: usize,
    /// `log(c + alpha / K)` by `c`.
    log_class: Vec<f64>,
    /// `log Gamma(c + alpha / K) - log Gamma(alpha / K)` by `c`.
    gamma_class: Vec<f64>,
    /// `log Gamma(n + alpha) - log Gamma(alpha)` by `n`.
    gamma_all: Vec<f64>,
}

/// The class of each row, in one byte if possible, since rows are read in scattered order.
#[derive(Debug)]
pub(crate) enum ClassOfRow<'a> {
    Few(Box<[u8]>),
    Many(&'a [u32]),
}

impl<'a> ClassOfRow<'a> {
    pub(crate) fn new(classes: &'a [u32]) -> Self {
        let few: Option<_> = classes.iter().map(|&class| u8::try_from(class).ok()).collect();
        few.map_or(Self::Many(classes), Self::Few)
    }

    pub(crate) fn of(&self, row: u32) -> usize {
        match self {
            Self::Few(classes) => classes[row as usize].into(),
            Self::Many(classes) => classes[row as usize] as usize,
        }
    }
}

/// Number of rows of each class.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Counts {
    by_class: Box<[u32]>,
}

impl Counts {
    fn n_rows(&self) -> u32 {
        self.by_class.iter().sum()
    }

    /// The same, as a fitted tree holds them.
    pub(crate) fn totals(&self) -> ClassTotals {
        ClassTotals { n_rows: self.n_rows(), by_class: self.by_class.iter().map(|&c| f64::from(c)).collect() }
    }
}

/// Sum of the weights of the rows of each class in a node; rows without weights weigh 1.
#[derive(Debug, Clone, PartialEq)]
pub struct ClassTotals {
    pub(crate) n_rows: u32,
    pub(crate) by_class: Box<[f64]>,
}

impl ClassTotals {
    /// The weight of all rows.
    pub(crate) fn weight(&self) -> f64 {
        self.by_class.iter().sum()
    }

    /// Predictive probability of each class: `(c_k + alpha / K) / (n + alpha)`.
    pub(crate) fn predictive(&self, alpha: f64) -> impl Iterator<Item = f64> + '_ {
        let share = alpha / self.by_class.len() as f64;
        let total = self.weight() + alpha;
        self.by_class.iter().map(move |c| (c + share) / total)
    }
}

impl<'a> Dirichlet<'a> {
    /// The model of rows with these classes, each below `n_classes`.
    ///
    /// # Errors
    /// An `alpha` outside of [`PSEUDO_COUNTS`].
    pub(crate) fn new(classes: &'a [u32], n_classes: usize, alpha: f64) -> Result<Self> {
        check_alpha(alpha)?;
        let share = alpha / n_classes as f64;
        let logs = |start: f64| (0..=classes.len()).map(move |c| libm::log(c as f64 + start));
        Ok(Self {
            classes: ClassOfRow::new(classes),
            n_classes,
            log_class: logs(share).collect(),
            gamma_class: running_sums(logs(share)),
            gamma_all: running_sums(logs(alpha)),
        })
    }
}

pub(crate) fn check_alpha(alpha: f64) -> Result<()> {
    check_within("alpha", alpha, PSEUDO_COUNTS)
}

/// The partial sums of the terms, starting from 0, with Kahan's compensation.
fn running_sums(terms: impl Iterator<Item = f64>) -> Vec<f64> {
    let (mut sum, mut lost) = (0.0, 0.0);
    let mut sums = vec![0.0];
    for term in terms {
        let term = term - lost;
        let next = sum + term;
        lost = (next - sum) - term;
        sum = next;
        sums.push(sum);
    }
    sums
}

impl ConjugateLeaf for Dirichlet<'_> {
    type Stats = Counts;
    type MovingCut<'a>
        = MovingClassCut<'a>
    where
        Self: 'a;

    fn empty(&self) -> Counts {
        Counts { by_class: vec![0; self.n_classes].into() }
    }

    fn add(&self, counts: &mut Counts, row: u32) {
        counts.by_class[self.classes.of(row)] += 1;
    }

    fn rest(&self, all: &Counts, part: &Counts) -> Counts {
        Counts { by_class: all.by_class.iter().zip(&part.by_class).map(|(all, part)| all - part).collect() }
    }

    /// The logarithm of eq. 3.2.
    fn log_likelihood(&self, counts: &Counts) -> f64 {
        let classes: f64 = counts.by_class.iter().map(|&c| self.gamma_class[c as usize]).sum();
        classes - self.gamma_all[counts.n_rows() as usize]
    }

    fn moving_cut<'a>(&'a self, all: &Counts) -> MovingClassCut<'a> {
        MovingClassCut::of_sides(self, all.by_class.iter().map(|&c| (0, c)).collect())
    }
}

/// Class counts on both sides of a cut.
#[derive(Debug)]
pub(crate) struct MovingClassCut<'a> {
    model: &'a Dirichlet<'a>,
    /// Number of rows on the left and on the right, by class.
    sides: Box<[(u32, u32)]>,
    n_left: usize,
    n_right: usize,
    /// The part of both log likelihoods that depends on the class counts. Moving a row changes it by
    /// `log((c_left + a) / (c_right - 1 + a))`.
    classes: f64,
}

impl<'a> MovingClassCut<'a> {
    fn of_sides(model: &'a Dirichlet<'a>, sides: Box<[(u32, u32)]>) -> Self {
        let log = |count: u32| model.gamma_class[count as usize];
        Self {
            model,
            n_left: sides.iter().map(|(left, _)| *left as usize).sum(),
            n_right: sides.iter().map(|(_, right)| *right as usize).sum(),
            classes: sides.iter().map(|&(left, right)| log(left) + log(right)).sum(),
            sides,
        }
    }
}

impl MovingCut for MovingClassCut<'_> {
    fn shift_all_but(&mut self, rows: impl Iterator<Item = u32>) {
        let mut sides = std::mem::take(&mut self.sides);
        for (left, right) in &mut sides {
            (*left, *right) = (*left + *right, 0);
        }
        for row in rows {
            let (left, right) = &mut sides[self.model.classes.of(row)];
            (*left, *right) = (*left - 1, *right + 1);
        }
        *self = Self::of_sides(self.model, sides);
    }

    fn shift(&mut self, row: u32) {
        let (left, right) = &mut self.sides[self.model.classes.of(row)];
        *right -= 1;
        self.classes += self.model.log_class[*left as usize] - self.model.log_class[*right as usize];
        *left += 1;
        self.n_left += 1;
        self.n_right -= 1;
    }

    fn log_likelihood(&self) -> f64 {
        self.classes - self.model.gamma_all[self.n_left] - self.model.gamma_all[self.n_right]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn likelihood_is_the_product_of_predictives() {
        let classes = [0, 2, 2, 1, 2, 0, 2];
        let alpha = 1.7;
        let model = Dirichlet::new(&classes, 3, alpha).unwrap();
        let mut counts = model.empty();
        let mut expected = 0.0;
        for (row, &class) in classes.iter().enumerate() {
            expected += counts.totals().predictive(alpha).nth(class as usize).unwrap().ln();
            model.add(&mut counts, row as u32);
        }
        assert!((model.log_likelihood(&counts) - expected).abs() < 1e-12);
    }

    #[test]
    fn a_sweep_agrees_with_both_sides_counted() {
        let classes = [0, 2, 2, 1, 2, 0, 2, 1];
        let model = Dirichlet::new(&classes, 3, 0.6).unwrap();
        let all = model.of_rows(0..8);
        let mut sweep = model.moving_cut(&all);
        for n in [1, 2, 5, 6, 7] {
            if n == 5 {
                sweep.shift_all_but(5..8);
            } else {
                sweep.shift(n - 1);
            }
            let left = model.of_rows(0..n);
            let expected = model.log_likelihood(&left) + model.log_likelihood(&model.rest(&all, &left));
            assert!((sweep.log_likelihood() - expected).abs() < 1e-12);
        }
    }
}
