//! The Mondrian forest classifier (thesis chapter 5).

use std::sync::OnceLock;

use crate::control::Run;
use crate::data::{Label, RowId, Rows};
use crate::error::{Error, Result};
use crate::mondrian::classification::calibration::{
    self, Calibrating, CalibrationLink, ChosenRows, Functions,
};
use crate::mondrian::classification::class_counts::{Class, ClassCounts};
use crate::mondrian::classification::class_table::{ClassTable, check_codes, check_labels};
use crate::mondrian::classification::joint::JointFunction;
use crate::mondrian::classification::left_out;
use crate::mondrian::classification::predictive::{Customers, Gather};
use crate::mondrian::classification::settings::{
    Calibration, ClassPosterior, ClassificationSettings, check_discount,
};
use crate::mondrian::classification::trend::{TREND_ROWS, TrendFit};
use crate::mondrian::forest::export::{ExportedTree, export};
use crate::mondrian::forest::settings::MondrianSettings;
use crate::mondrian::forest::{Batch, Forest};
use crate::mondrian::joint::kernel::{JointKernel, KernelRule};
use crate::mondrian::model::{MondrianForest, NodePosterior};
use crate::mondrian::prediction::completions::{self, Completions};
use crate::mondrian::prediction::walk;
use crate::mondrian::process::domain::Domain;

/// A Mondrian forest that predicts class probabilities. [`MondrianForest`] lists all it does: `forget`, `merge`, `digest` ...
///
/// ```
/// use boscage::{
///     Batch, ClassificationSettings, Domain, Label, MondrianClassifier, MondrianSettings, Rows, Run,
/// };
///
/// let rows = Rows::from_f64(&[0.1, 0.2, 0.8, 0.9], 1)?;
/// let labels = [Label::Text("low".into()), Label::Text("high".into())];
/// let forest = MondrianClassifier::fit(
///     MondrianSettings::default(),
///     ClassificationSettings::default(),
///     Domain::of_rows(rows, None)?,
///     Batch { rows, ids: None, weights: None },
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
    pub(crate) settings: ClassificationSettings,
    pub(crate) classes: ClassTable,
    /// Of the joint posterior, computed on the first read after rows came or left; none if there are no two classes.
    joint: OnceLock<Option<JointState>>,
    /// The linear function beside the trees, as the joint posterior; none without one.
    trend: OnceLock<Option<TrendFit>>,
    /// What calibration does, fitted on the first read after rows came or left.
    link: OnceLock<CalibrationLink>,
}

/// What all trees explain together.
#[derive(Debug, Clone)]
pub(super) struct JointState {
    pub(super) function: JointFunction,
    /// Its values for the rows that calibrate, each without the row.
    left_out: Vec<f64>,
}

impl Classification {
    pub(super) fn new(settings: ClassificationSettings, classes: ClassTable) -> Self {
        let settings = settings.effective();
        Self { settings, classes, joint: OnceLock::new(), trend: OnceLock::new(), link: OnceLock::new() }
    }

    /// What decides the covariance of the joint posterior.
    fn kernel_rule(&self, forest: &Forest<ClassCounts>) -> KernelRule {
        self.settings.kernel_rule(&forest.settings, forest.n_rows())
    }

    /// Whether the posterior is joint, and its covariance may be that of infinitely many trees.
    fn may_have_limit(&self, forest: &Forest<ClassCounts>) -> bool {
        self.settings.posterior == ClassPosterior::Joint && self.kernel_rule(forest) != KernelRule::Trees
    }

    /// How many rows calibrate at most.
    fn n_calibrating(&self, forest: &Forest<ClassCounts>) -> usize {
        let n = calibration::calibrating_rows(&self.classes.n_rows);
        if self.may_have_limit(forest) { n.max(calibration::ROWS_OF_LIMIT) } else { n }
    }

    /// The rows that calibrate, each predicted without itself.
    pub(super) fn calibrating(&self, forest: &Forest<ClassCounts>) -> ChosenRows {
        calibration::choose(forest, &self.classes, self.n_calibrating(forest))
    }

    /// Forgets what follows from all rows together.
    fn reset(&mut self) {
        (self.joint, self.trend, self.link) = (OnceLock::new(), OnceLock::new(), OnceLock::new());
    }

    pub(super) fn trend(&self, forest: &Forest<ClassCounts>) -> Option<&TrendFit> {
        self.trend_of(forest, || calibration::choose(forest, &self.classes, TREND_ROWS))
    }

    /// The same, if the rows to which it is fitted have to be found in another way.
    pub(super) fn trend_of(
        &self,
        forest: &Forest<ClassCounts>,
        rows: impl Fn() -> ChosenRows,
    ) -> Option<&TrendFit> {
        let fit = || TrendFit::new(forest, &self.classes, &rows().rows);
        self.settings.trend.then(|| self.trend.get_or_init(fit).as_ref()).flatten()
    }

    /// The functions' values for test rows, as far as a link needs them.
    ///
    /// # Errors
    /// A number of features other than in `fit`; an interrupt.
    fn functions(
        &self,
        forest: &Forest<ClassCounts>,
        rows: Rows<'_>,
        link: &CalibrationLink,
        run: &Run<'_>,
    ) -> Result<Functions> {
        let joint = if link.weight > 0.0 { self.joint(forest, run)? } else { None };
        let joint = joint.map(|joint| joint.function.predict(forest, rows, run)).transpose()?;
        let trend = link.trend_values(&forest.domain, rows, self.classes.live().len(), run)?;
        Ok(Functions { joint, trend })
    }

    /// The same for rows of the forest, each of functions without it.
    fn functions_left_out(
        &self,
        forest: &Forest<ClassCounts>,
        rows: &[RowId],
        links: &[CalibrationLink],
        run: &Run<'_>,
    ) -> Result<Functions> {
        let has_weight = links.iter().any(|link| link.weight > 0.0);
        let joint = if has_weight { self.joint(forest, run)? } else { None };
        let left_out = |joint: &JointState| joint.function.left_out(forest, &self.classes, rows, run);
        Ok(Functions {
            joint: joint.map(left_out).transpose()?,
            trend: self.trend_left_out(forest, rows, links),
        })
    }

    /// The trend's alone, if a link has one.
    pub(super) fn trend_left_out(
        &self,
        forest: &Forest<ClassCounts>,
        rows: &[RowId],
        links: &[CalibrationLink],
    ) -> Option<Vec<f64>> {
        let trend = self.trend(forest).filter(|_| links.iter().any(|link| link.trend.is_some()));
        trend.map(|trend| trend.left_out(forest, rows))
    }

    pub(super) fn joint(&self, forest: &Forest<ClassCounts>, run: &Run<'_>) -> Result<Option<&JointState>> {
        if self.settings.posterior == ClassPosterior::KneserNey {
            return Ok(None);
        }
        if let Some(state) = self.joint.get() {
            return Ok(state.as_ref());
        }
        let (chosen, rule) = (&self.calibrating(forest), self.kernel_rule(forest));
        let candidates = JointFunction::candidates(forest, &self.classes, rule, &chosen.rows, run)?;
        let (calibration, trend) = (self.settings.calibration, self.trend(forest));
        let best = Calibrating { calibration, chosen, joint: None, trend }.best_joint(
            (forest, &self.classes, self.settings.discount),
            candidates,
            run,
        )?;
        let state = best.map(|(function, left_out)| JointState { function, left_out });
        Ok(self.joint.get_or_init(|| state).as_ref())
    }

    pub(super) fn link(&self, forest: &Forest<ClassCounts>, run: &Run<'_>) -> Result<&CalibrationLink> {
        if let Some(link) = self.link.get() {
            return Ok(link);
        }
        forest.settings.check_whole()?;
        let mut links = self.links(forest, &[self.settings.discount], self.settings.calibration, run)?;
        Ok(self.link.get_or_init(|| links.remove(0)))
    }

    /// The calibration of every one of some discounts.
    fn links(
        &self,
        forest: &Forest<ClassCounts>,
        discounts: &[f64],
        calibration: Calibration,
        run: &Run<'_>,
    ) -> Result<Vec<CalibrationLink>> {
        if calibration == Calibration::None {
            return Ok(vec![CalibrationLink::NONE; discounts.len()]);
        }
        let joint = self.joint(forest, run)?.map(|joint| &joint.left_out[..]);
        let (chosen, trend) = (&self.calibrating(forest), self.trend(forest));
        Calibrating { calibration, chosen, joint, trend }.fit(forest, &self.classes, discounts, run)
    }
}

impl NodePosterior for Classification {
    type Statistics = ClassCounts;

    fn rows_came(&mut self, targets: &[Class]) {
        self.reset();
        self.classes.count(targets, 1);
    }

    fn rows_left(&mut self, targets: &[Class]) {
        if !targets.is_empty() {
            self.reset();
        }
        self.classes.count(targets, -1);
    }

    /// Forgets the labels that no row has any more, once no tree holds a row with one of them.
    fn before_rows_change(&mut self, forest: &mut Forest<ClassCounts>) {
        if forest.has_no_leaving_rows() {
            self.classes.drop_dead();
        }
    }

    fn check_mergeable(&self, other: &Self) -> Result<()> {
        let (own, others) = (&self.settings, &other.settings);
        let older = "calibrations: one of them comes from a file of an older version";
        let is_none = [own.calibration, others.calibration].contains(&Calibration::None);
        let same = [
            (if is_none { "calibrations" } else { older }, own.calibration == others.calibration),
            ("discounts", own.discount == others.discount),
            ("posteriors", own.posterior == others.posterior),
            ("joint kernels", own.joint_kernel == others.joint_kernel),
            ("trends", own.trend == others.trend),
        ];
        match same.iter().find(|(_, same)| !same) {
            Some(&(what, _)) => Err(Error::NotMergeable { what }),
            None => self.classes.in_own_kind(&other.classes.live_labels()).map(drop),
        }
    }

    fn predictive_changed(&mut self, _: &Forest<ClassCounts>) {
        self.reset();
    }

    fn recode(&mut self, other: &Self, targets: &mut [Class]) {
        let [labels, declared] = [other.classes.live_labels(), other.classes.declared()]
            .map(|labels| self.classes.in_own_kind(&labels).expect("the forests are mergeable"));
        let own = other.classes.renumbered(self.classes.insert(&labels));
        self.classes.declare(&declared);
        for class in targets {
            *class = own[*class as usize];
        }
    }

    fn refresh(&self, forest: &Forest<ClassCounts>, run: &Run<'_>) -> Result<()> {
        self.link(forest, run).map(drop)
    }

    fn is_fresh(&self) -> bool {
        self.settings.calibration == Calibration::None || self.link.get().is_some()
    }

    fn digest_bytes(&self) -> Vec<u8> {
        let mut bytes = b"classifier".to_vec();
        bytes.extend(self.settings.discount.to_le_bytes());
        for label in self.classes.declared() {
            let label = label.to_bytes();
            bytes.extend((label.len() as u64).to_le_bytes());
            bytes.extend(label);
        }
        // Forests have the digests that they had when there were no newer calibrations.
        if self.settings.calibration != Calibration::None {
            bytes.extend(b"calibration");
        }
        if self.settings.calibration == Calibration::LeaveOneOut {
            bytes.extend(b"shares");
        }
        if self.settings.trend {
            bytes.extend(b"trend");
        }
        if self.settings.posterior == ClassPosterior::Joint {
            bytes.extend(b"joint");
        }
        if self.settings.joint_kernel != JointKernel::Trees {
            bytes.extend(b"joint_kernel");
            bytes.push(self.settings.joint_kernel as u8);
        }
        bytes
    }

    fn target_bytes(&self, class: Class) -> Vec<u8> {
        self.classes.labels[class as usize].to_bytes()
    }
}

impl MondrianClassifier {
    /// Trains on rows; `targets` are an index into the labels for every row, and the labels. Labels in
    /// `declared` are classes also while no row has them.
    ///
    /// # Errors
    /// Settings, lengths, ids or values that are not as they should be; an interrupt.
    pub fn fit(
        settings: MondrianSettings,
        classification: ClassificationSettings,
        domain: Domain,
        batch: Batch<'_>,
        targets: (&[u32], &[Label]),
        declared: &[Label],
        run: &Run<'_>,
    ) -> Result<Self> {
        classification.check()?;
        let mut classes = ClassTable::default();
        check_labels(&[], declared)?;
        let (codes, labels) = check_codes(batch.rows.n_rows(), targets, declared)?;
        classes.declare(declared);
        let targets = classes.encode(codes, labels);
        let posterior = Classification::new(classification, classes);
        Self::draw(settings, posterior, domain, batch, &targets, run)
    }

    /// Adds rows. Any batching and order gives the same forest, bit for bit. Updates are lazy: trees insert the rows when
    /// they are next read, or by [`flush`](Self::flush).
    ///
    /// # Errors
    /// As for `fit`, but it is not interrupted. After an error nothing has changed.
    pub fn partial_fit(&mut self, batch: Batch<'_>, targets: (&[u32], &[Label])) -> Result<()> {
        let (codes, labels) = check_codes(batch.rows.n_rows(), targets, &self.classes())?;
        self.insert(batch, |posterior| posterior.classes.encode(codes, labels))
    }

    /// Class probabilities, `n_rows x n_classes` in order of [`MondrianClassifier::classes`].
    ///
    /// # Errors
    /// A number of features other than in `fit`; an interrupt.
    pub fn predict_proba(&self, rows: Rows<'_>, run: &Run<'_>) -> Result<Vec<f64>> {
        let link = self.posterior.link(&self.forest, run)?;
        let gather = self.gather(&[self.posterior.settings.discount]);
        let of_complete = |rows: Rows<'_>| {
            let averages = gather.averages(&walk::predict(&self.forest, rows, run, &gather)?, 0, None);
            let functions = self.posterior.functions(&self.forest, rows, link, run)?;
            Ok(link.of_rows(&averages, &functions, |_| None))
        };
        let means = |completions: &Completions, found: Vec<f64>| completions.means(&found);
        completions::predict(&self.forest, (rows, Classification::COMPLETIONS), run, of_complete, means)
    }

    /// Class probabilities of rows of the forest, each predicted by the forest without it, for several
    /// discounts: `n_discounts x n_rows x n_classes`. The forest is as before. What calibrates them is fitted
    /// for every discount by the forest with the row.
    ///
    /// # Errors
    /// [`Error::UnknownId`]; an interrupt.
    pub fn loo_proba(
        &self,
        ids: &[u64],
        discounts: &[f64],
        calibration: Calibration,
        run: &Run<'_>,
    ) -> Result<Vec<f64>> {
        discounts.iter().try_for_each(|&discount| check_discount(discount))?;
        self.forest.settings.check_whole()?;
        let rows = self.forest.row_index.find(ids)?;
        let gather = self.gather(discounts);
        let chunks = left_out::predict(&self.forest, &rows, run, &gather)?;
        let own = &self.posterior.settings;
        let links = if discounts == [own.discount] && calibration == own.calibration {
            vec![self.posterior.link(&self.forest, run)?.clone()]
        } else {
            self.posterior.links(&self.forest, discounts, calibration, run)?
        };
        let functions = self.posterior.functions_left_out(&self.forest, &rows, &links, run)?;
        Ok(self.proba_left_out((&gather, &chunks), &rows, &links, &functions))
    }

    /// The classes that are declared or have rows, sorted.
    #[must_use]
    pub fn classes(&self) -> Vec<Label> {
        self.posterior.classes.live_labels()
    }

    /// The declared ones among the classes, sorted.
    #[must_use]
    pub fn declared(&self) -> Vec<Label> {
        self.posterior.classes.declared()
    }

    /// The rows' classes in order of arrival, as indices into [`classes`](Self::classes).
    #[must_use]
    pub fn targets(&self) -> Vec<u32> {
        let codes = self.posterior.classes.renumbered(0..);
        self.forest.targets_by_arrival().into_iter().map(|class| codes[class as usize]).collect()
    }

    /// The discount: `gamma` over the sum of the weights.
    #[must_use]
    pub fn discount(&self) -> f64 {
        self.posterior.settings.discount
    }

    /// Settings of the posterior.
    #[must_use]
    pub fn classification_settings(&self) -> &ClassificationSettings {
        &self.posterior.settings
    }

    /// The number of rows (at most) that are passed through the trees to calibrate the next prediction, and to explain the
    /// labels by all trees together; 0 if there is nothing to do.
    #[must_use]
    pub fn n_uncalibrated(&self) -> usize {
        if self.posterior.is_fresh() {
            return 0;
        }
        let n_left_out = self.n_rows().min(self.posterior.n_calibrating(&self.forest));
        match self.posterior() {
            ClassPosterior::KneserNey => n_left_out,
            ClassPosterior::Joint => n_left_out.saturating_mul(self.n_rows()),
        }
    }

    /// What the trees say of a row's class.
    #[must_use]
    pub fn posterior(&self) -> ClassPosterior {
        self.posterior.settings.posterior
    }

    /// How probabilities are calibrated.
    #[must_use]
    pub fn calibration(&self) -> Calibration {
        self.posterior.settings.calibration
    }

    /// Whether the posterior is joint, and its covariance may be that of infinitely many trees: left-out rows decide with many rows.
    #[must_use]
    pub fn may_have_limit(&self) -> bool {
        self.posterior.may_have_limit(&self.forest)
    }

    /// Sets how probabilities are calibrated, what the trees say of a row's class, the covariance of the joint posterior, and
    /// whether there is a trend; trees do not depend on it.
    ///
    /// # Errors
    /// A joint posterior that is not calibrated.
    pub fn set_posterior(
        &mut self,
        posterior: ClassPosterior,
        calibration: Calibration,
        joint_kernel: JointKernel,
        trend: bool,
    ) -> Result<()> {
        let discount = self.posterior.settings.discount;
        let settings = ClassificationSettings { discount, calibration, posterior, joint_kernel, trend };
        settings.check()?;
        self.posterior.settings = settings.effective();
        self.posterior.reset();
        Ok(())
    }

    /// What calibration does to probabilities: nothing without it.
    ///
    /// # Errors
    /// An interrupt, while it is fitted.
    pub fn calibration_link(&self, run: &Run<'_>) -> Result<CalibrationLink> {
        self.posterior.link(&self.forest, run).cloned()
    }

    /// Sets the discount; trees do not depend on it.
    ///
    /// # Errors
    /// A discount that is not positive and finite.
    pub fn set_discount(&mut self, discount: f64) -> Result<()> {
        check_discount(discount)?;
        self.posterior.settings.discount = discount;
        self.posterior.link = OnceLock::new();
        Ok(())
    }

    /// Every tree as arrays; its values are the customers `c_jk` by class.
    ///
    /// # Errors
    /// [`Error::Memory`](crate::Error::Memory).
    pub fn trees(&self) -> Result<Vec<ExportedTree>> {
        export(&self.forest, &Customers { live: self.posterior.classes.live() })
    }

    pub(super) fn gather(&self, discounts: &[f64]) -> Gather<'_> {
        let Forest { settings, domain, .. } = &self.forest;
        Gather::new(&self.posterior.classes, settings.n_estimators, domain.total_weight(), discounts)
    }
}
