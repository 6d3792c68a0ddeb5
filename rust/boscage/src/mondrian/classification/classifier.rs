//! The Mondrian forest classifier (thesis chapter 5).

use crate::control::Run;
use crate::data::{Label, Rows};
use crate::error::{Error, Result};
use crate::mondrian::classification::class_counts::{Class, ClassCounts};
use crate::mondrian::classification::class_table::{ClassTable, check_codes};
use crate::mondrian::classification::left_out;
use crate::mondrian::classification::predictive::{Customers, Gather};
use crate::mondrian::forest::export::{ExportedTree, export};
use crate::mondrian::forest::settings::MondrianSettings;
use crate::mondrian::forest::{Batch, Forest};
use crate::mondrian::model::{MondrianForest, NodePosterior};
use crate::mondrian::prediction::walk;
use crate::mondrian::process::domain::Domain;

/// A Mondrian forest that predicts class probabilities.
///
/// ```
/// use boscage::{Batch, Domain, Label, MondrianClassifier, MondrianSettings, Rows, Run};
///
/// let rows = Rows::from_f64(&[0.1, 0.2, 0.8, 0.9], 1)?;
/// let labels = [Label::Text("low".into()), Label::Text("high".into())];
/// let forest = MondrianClassifier::fit(
///     MondrianSettings::default(),
///     10.0,
///     Domain::of_rows(rows, None)?,
///     Batch { rows, ids: None },
///     (&[0, 0, 1, 1], &labels),
///     &[],
///     &Run::default(),
/// )?;
/// let proba = forest.predict_proba(Rows::from_f64(&[0.15], 1)?, &Run::default())?;
/// assert_eq!(forest.classes()[1], Label::Text("low".into()));
/// assert!(proba[1] > 0.9);
/// # Ok::<(), boscage::Error>(())
/// ```
pub type MondrianClassifier = MondrianForest<Classification>;

/// The posterior of Mondrian forest classifiers: class counts at nodes, smoothed by interpolated Kneser-Ney.
#[derive(Debug, Clone)]
pub struct Classification {
    pub(crate) discount: f64,
    pub(crate) classes: ClassTable,
}

impl NodePosterior for Classification {
    type Statistics = ClassCounts;

    fn rows_came(&mut self, targets: &[Class]) {
        self.classes.count(targets, 1);
    }

    fn rows_left(&mut self, targets: &[Class]) {
        self.classes.count(targets, -1);
    }

    /// Forgets the labels that no row has any more, once no tree holds a row with one of them.
    fn before_rows_change(&mut self, forest: &mut Forest<ClassCounts>) {
        if forest.has_no_leaving_rows() {
            self.classes.drop_dead();
        }
    }

    fn check_mergeable(&self, other: &Self) -> Result<()> {
        if self.discount == other.discount { Ok(()) } else { Err(Error::NotMergeable { what: "discounts" }) }
    }

    fn recode(&mut self, other: &Self, targets: &mut [Class]) {
        let own = other.classes.renumbered(self.classes.insert(&other.classes.live_labels()));
        self.classes.declare(&other.classes.declared());
        for class in targets {
            *class = own[*class as usize];
        }
    }

    fn digest_bytes(&self) -> Vec<u8> {
        let mut bytes = b"classifier".to_vec();
        bytes.extend(self.discount.to_le_bytes());
        for label in self.classes.declared() {
            let label = label.to_bytes();
            bytes.extend((label.len() as u64).to_le_bytes());
            bytes.extend(label);
        }
        bytes
    }

    fn target_bytes(&self, class: Class) -> Vec<u8> {
        self.classes.labels[class as usize].to_bytes()
    }
}

impl MondrianClassifier {
    /// Trains on rows; `targets` are an index into the labels for every row, and the labels. Labels in
    /// `declared` are classes also while no row has them. The discount parameter is `gamma = discount W`,
    /// `W` being the sum of the weights (the thesis: `gamma = 10 D`).
    ///
    /// # Errors
    /// Settings, lengths, ids or values that are not as they should be; an interrupt.
    pub fn fit(
        settings: MondrianSettings,
        discount: f64,
        domain: Domain,
        batch: Batch<'_>,
        targets: (&[u32], &[Label]),
        declared: &[Label],
        run: &Run<'_>,
    ) -> Result<Self> {
        check_discount(discount)?;
        let mut classes = ClassTable::default();
        classes.declare(declared);
        let (codes, labels) = check_codes(batch.rows.n_rows(), targets)?;
        let targets = classes.encode(codes, labels);
        Self::draw(settings, Classification { discount, classes }, domain, batch, &targets, run)
    }

    /// Adds rows. Any batching and order gives the same forest, bit for bit. Updates are lazy: trees insert the rows when
    /// they are next read, or by [`flush`](Self::flush).
    ///
    /// # Errors
    /// As for `fit`, but it is not interrupted. After an error nothing has changed.
    pub fn partial_fit(&mut self, batch: Batch<'_>, targets: (&[u32], &[Label])) -> Result<()> {
        let (codes, labels) = check_codes(batch.rows.n_rows(), targets)?;
        self.insert(batch, |posterior| posterior.classes.encode(codes, labels))
    }

    /// Class probabilities, `n_rows x n_classes` in order of [`MondrianClassifier::classes`].
    ///
    /// # Errors
    /// A number of features other than in `fit`; an interrupt.
    pub fn predict_proba(&self, rows: Rows<'_>, run: &Run<'_>) -> Result<Vec<f64>> {
        let gather = self.gather(&[self.posterior.discount]);
        let chunks = walk::predict(&self.forest, rows, run, &gather)?;
        let mut out = Vec::new();
        for chunk in chunks {
            gather.finish(&chunk, 0, None, &mut out);
        }
        Ok(out)
    }

    /// Class probabilities of rows of the forest, each predicted by the forest without it, for several
    /// discounts: `n_discounts x n_rows x n_classes`. The forest is as before.
    ///
    /// # Errors
    /// [`Error::UnknownId`]; an interrupt.
    pub fn loo_proba(&self, ids: &[u64], discounts: &[f64], run: &Run<'_>) -> Result<Vec<f64>> {
        discounts.iter().try_for_each(|&discount| check_discount(discount))?;
        let rows = self.forest.row_index.find(ids)?;
        let gather = self.gather(discounts);
        let chunks = left_out::predict(&self.forest, &rows, run, &gather)?;
        let mut out = Vec::new();
        for i in 0..discounts.len() {
            let mut first = 0;
            for chunk in &chunks {
                let own = &rows[first..first + chunk.n_rows];
                let targets: Vec<Class> = own.iter().map(|&row| self.forest.targets[row as usize]).collect();
                gather.finish(chunk, i, Some(&targets), &mut out);
                first += chunk.n_rows;
            }
        }
        Ok(out)
    }

    /// The classes that are declared or have rows, sorted.
    #[must_use]
    pub fn classes(&self) -> Vec<Label> {
        self.posterior.classes.live_labels()
    }

    /// The discount: `gamma` over the sum of the weights.
    #[must_use]
    pub fn discount(&self) -> f64 {
        self.posterior.discount
    }

    /// Sets the discount; trees do not depend on it.
    ///
    /// # Errors
    /// A discount that is not positive and finite.
    pub fn set_discount(&mut self, discount: f64) -> Result<()> {
        check_discount(discount)?;
        self.posterior.discount = discount;
        Ok(())
    }

    /// Every tree as arrays; its values are the customers `c_jk` by class.
    #[must_use]
    pub fn trees(&self) -> Vec<ExportedTree> {
        export(&self.forest, &Customers { live: self.posterior.classes.live() })
    }

    fn gather(&self, discounts: &[f64]) -> Gather<'_> {
        let Forest { settings, domain, .. } = &self.forest;
        Gather::new(&self.posterior.classes, settings.n_estimators, domain.total_weight(), discounts)
    }
}

fn check_discount(discount: f64) -> Result<()> {
    if discount > 0.0 && discount.is_finite() {
        return Ok(());
    }
    Err(Error::InvalidSetting {
        name: "discount",
        expected: "positive and finite",
        found: discount.to_string(),
    })
}
