//! Classifiers without rows: leaves keep numbers of rows by class.

use crate::control::Run;
use crate::data::{Label, Rows, Scalar};
use crate::error::{Error, Result};
use crate::mondrian::cells::plan::CellPlan;
use crate::mondrian::cells::share::CellShare;
use crate::mondrian::cells::summary::{Words, wrong};
use crate::mondrian::classification::class_counts::{Class, ClassCounts, Held};
use crate::mondrian::classification::class_table::ClassTable;
use crate::mondrian::classification::classifier::Classification;
use crate::mondrian::classification::settings::{Calibration, ClassPosterior, ClassificationSettings};
use crate::mondrian::forest::Batch;
use crate::mondrian::frozen::forest::FrozenForest;
use crate::mondrian::frozen::freezer::Freezer;
use crate::mondrian::frozen::posterior::FrozenPosterior;
use crate::mondrian::tree::Tree;
use crate::mondrian::tree::arena::NodeId;

/// In the first word of a leaf: it holds several classes, whose number is the other bits.
const SEVERAL: u64 = 1 << 63;

impl FrozenPosterior for Classification {
    fn write_leaf(&self, statistics: &ClassCounts, leaf: NodeId, words: &mut Vec<u64>) {
        match statistics.held(leaf) {
            Held::One(class) => words.push(u64::from(class)),
            Held::Several(counts) => {
                words.push(SEVERAL | counts.len() as u64);
                words.extend(counts.iter().map(|&(class, n)| u64::from(class) << 32 | u64::from(n)));
            }
            Held::OneWeighted(..) | Held::Weighted(_) => unreachable!("the rows have no weights"),
        }
    }

    fn read_leaf(
        &self,
        statistics: &mut ClassCounts,
        leaf: NodeId,
        n_rows: u32,
        words: &mut Words<'_>,
    ) -> Result<()> {
        let first = words.next()?;
        let counts = if first & SEVERAL == 0 {
            vec![(class_of(first)?, n_rows)]
        } else {
            let count = |_| {
                let word = words.next()?;
                Ok((class_of(word >> 32)?, word as u32))
            };
            (0..first & !SEVERAL).map(count).collect::<Result<Vec<(Class, u32)>>>()?
        };
        let n: u64 = counts.iter().map(|&(_, n)| u64::from(n)).sum();
        let is_sorted = counts.is_sorted_by(|a, b| a.0 < b.0);
        let is_known = counts.iter().all(|&(class, n)| (class as usize) < self.classes.labels.len() && n > 0);
        if n != u64::from(n_rows) || !is_sorted || !is_known {
            return Err(wrong("a leaf whose classes are not those of its rows, in order"));
        }
        statistics.set_leaf_counts(leaf, counts);
        Ok(())
    }

    /// Counts are statistics of the trees.
    fn complete<S: Scalar>(&mut self, _: &[Tree<S, ClassCounts>], _: f64, _: &Run<'_>) -> Result<()> {
        Ok(())
    }

    fn bytes_of(&self, _: usize) -> usize {
        0
    }
}

fn class_of(word: u64) -> Result<Class> {
    Class::try_from(word).map_err(|_| wrong("a class that there is not"))
}

/// A classifier without rows. It predicts what a [`MondrianClassifier`](crate::MondrianClassifier) without calibration does
/// whose predictions are realised, bit for bit.
pub type FrozenClassifier = FrozenForest<Classification>;

impl FrozenClassifier {
    /// Class probabilities, `n_rows x n_classes` in order of [`classes`](Self::classes).
    ///
    /// # Errors
    /// A number of features other than in the fit; an interrupt.
    pub fn predict_proba(&self, rows: Rows<'_>, run: &Run<'_>) -> Result<Vec<f64>> {
        self.model.predict_proba(rows, run)
    }

    /// The classes that have rows, sorted.
    #[must_use]
    pub fn classes(&self) -> Vec<Label> {
        self.model.classes()
    }

    /// The discount: `gamma` over the sum of the weights.
    #[must_use]
    pub fn discount(&self) -> f64 {
        self.model.discount()
    }

    /// The number of rows of each class.
    pub(crate) fn n_rows_of(&self) -> Vec<u64> {
        let classes = &self.model.posterior.classes;
        classes.live().into_iter().map(|class| classes.n_rows[class as usize] as u64).collect()
    }
}

/// The posterior of a classifier without rows, whose labels have so many rows each.
///
/// # Errors
/// A discount out of range; labels that are not sorted, or without rows.
pub(crate) fn posterior(discount: f64, labels: &[Label], n_rows_of: &[u64]) -> Result<Classification> {
    let settings = settings(discount);
    settings.check()?;
    if labels.is_empty() || !labels.is_sorted_by(|a, b| a < b) || n_rows_of.contains(&0) {
        let (expected, found) = ("sorted, each with rows", format!("{} labels", labels.len()));
        return Err(Error::InvalidSetting { name: "classes", expected, found });
    }
    let mut classes = ClassTable::default();
    classes.set_counts(labels, n_rows_of)?;
    Ok(Classification::new(settings, classes))
}

fn settings(discount: f64) -> ClassificationSettings {
    ClassificationSettings {
        discount,
        posterior: ClassPosterior::KneserNey,
        calibration: Calibration::None,
        ..ClassificationSettings::default()
    }
}

/// Grows a [`FrozenClassifier`] from rows that come a group of cells at a time.
///
/// ```
/// use boscage::{CellPlan, ClassifierFreezer, Domain, Label, MondrianSettings, Predictive, RowExtent, Rows, Run};
///
/// let x: Vec<f64> = (0..100).map(|i| f64::from(i) / 99.0).collect();
/// let codes: Vec<u32> = (0..100).map(|i| u32::from(i % 7 < 3)).collect();
/// let (rows, run) = (Rows::from_f64(&x, 1)?, Run::default());
/// let targets: Vec<f64> = codes.iter().map(|&code| f64::from(code)).collect();
/// let domain = Domain::new(vec![0.0], vec![1.0], None)?;
/// let settings = MondrianSettings { n_estimators: 5, predictive: Predictive::Realised, ..Default::default() };
/// let plan = CellPlan::new(settings, domain.clone(), RowExtent::of(&domain, rows)?)?;
/// // Cells of more than 30 rows are cut. Counts are sums over blocks of a file.
/// let plan = plan.refined(&vec![true; plan.n_cells()], 4)?;
/// let (plan, counts, _) = plan.condensed(&plan.count(rows, &targets, &run)?, 30, false)?;
/// let mut freezer = ClassifierFreezer::new(plan, 10.0, &[Label::Int(0), Label::Int(1)], &[56, 44])?;
/// for _ in counts {
///     // One pass over the file finds the rows of the next cells, here of one.
///     let next = freezer.next_cells(1)?;
///     let own = next.rows_of(rows, 0, &run)?;
///     let x: Vec<f64> = own.iter().map(|&row| x[row as usize]).collect();
///     let codes: Vec<u32> = own.iter().map(|&row| codes[row as usize]).collect();
///     freezer.grow(next, Rows::from_f64(&x, 1)?, &codes, &run)?;
/// }
/// let forest = freezer.finish(&run)?;
/// assert_eq!(forest.predict_proba(rows, &run)?.len(), 200);
/// # Ok::<(), boscage::Error>(())
/// ```
pub type ClassifierFreezer = Freezer<Classification>;

impl ClassifierFreezer {
    /// One without cells, for rows of some labels, sorted, each of which has so many rows.
    ///
    /// # Errors
    /// Settings out of range; settings of averaged predictions; labels that are not sorted, or without rows.
    pub fn new(plan: CellPlan, discount: f64, labels: &[Label], n_rows_of: &[u64]) -> Result<Self> {
        Self::of(plan, posterior(discount, labels, n_rows_of)?)
    }

    /// Grows the cells of [`next_cells`](Self::next_cells) from all rows that the plan sends to their owner, and their
    /// classes, by number of label.
    ///
    /// # Errors
    /// Another number of classes than of rows; rows that are not of the plan; an interrupt.
    pub fn grow(&mut self, next: CellPlan, rows: Rows<'_>, codes: &[u32], run: &Run<'_>) -> Result<()> {
        let labels = self.labels();
        let n_rows_of = vec![1; labels.len()];
        let batch = Batch { rows, ids: None, weights: None };
        let targets = ((codes, &labels[..]), &n_rows_of[..]);
        let share = CellShare::<Classification>::new(next, 0, self.settings(), batch, targets, &[])?;
        self.add(share, run)
    }

    fn labels(&self) -> Vec<Label> {
        self.posterior().classes.live_labels()
    }

    fn settings(&self) -> ClassificationSettings {
        settings(self.posterior().settings.discount)
    }
}
