//! The Mondrian forest classifier as a Python class.

use boscage::{Batch, CalibrationLink, ClassTrend, ClassificationSettings, Label, MondrianSettings, Run};
use numpy::{PyArray1, PyArray2, PyArray3, PyArrayMethods, PyReadonlyArray1};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyList;

use crate::arrays::{self, Matrix, matrix, optional, slice, vector};
use crate::errors::to_python;
use crate::gate;
use crate::methods::{explanation_methods, file_methods, forest_methods, share_methods};
use crate::mondrian::categories::{FeatureCategories, with_categories};
use crate::mondrian::feature_rates;
use crate::mondrian::missing::{Substitutes, with_substitutes};
use crate::settings::{self, calibration, class_posterior, class_posterior_name, domain, predictive, share};
use crate::trees;

/// A Mondrian forest classifier: settings, and the forest after `fit`.
#[pyclass(module = "boscage._core")]
#[derive(Clone)]
pub(crate) struct MondrianClassifier {
    settings: MondrianSettings,
    classification: ClassificationSettings,
    model: Option<boscage::MondrianClassifier>,
}

impl MondrianClassifier {
    fn model(&self) -> PyResult<&boscage::MondrianClassifier> {
        self.model.as_ref().ok_or_else(|| PyRuntimeError::new_err("call fit first"))
    }

    fn model_mut(&mut self) -> PyResult<&mut boscage::MondrianClassifier> {
        self.model.as_mut().ok_or_else(|| PyRuntimeError::new_err("call fit first"))
    }

    /// The work of predicting `n_rows` rows, including pending updates and those that a calibration leaves out.
    fn size(model: &boscage::MondrianClassifier, n_rows: usize) -> usize {
        let n_all = n_rows + model.n_pending() + model.n_uncalibrated();
        gate::size(n_all, model.settings(), model.domain())
    }

    fn of(model: boscage::MondrianClassifier) -> Self {
        Self {
            settings: model.settings().clone(),
            classification: model.classification_settings().clone(),
            model: Some(model),
        }
    }
}

/// Weight, features, numbers of each feature, slopes, factor and variances of a `ClassTrend`.
type TrendNumbers = (f64, Vec<usize>, [Vec<f64>; 3], Vec<f64>, Vec<f64>, [f64; 2]);

/// Power, share of noise and weight of the joint function of a calibration, the shares of the classes, and the trend.
pub(super) type Link = (f64, f64, f64, Vec<f64>, Option<TrendNumbers>);

/// The link with some numbers.
pub(super) fn link((power, noise, weight, class_shares, trend): Link) -> CalibrationLink {
    let of_trend = |(weight, features, numbers, slopes, factor, variances): TrendNumbers| {
        let [low, width, means] = numbers;
        ClassTrend { weight, features, low, width, means, slopes, factor, variances }
    };
    let trend = trend.map(of_trend);
    CalibrationLink { power, noise, weight, class_shares, trend }
}

pub(super) fn link_numbers(link: CalibrationLink) -> Link {
    let of_trend = |trend: ClassTrend| {
        let ClassTrend { weight, features, low, width, means, slopes, factor, variances } = trend;
        (weight, features, [low, width, means], slopes, factor, variances)
    };
    (link.power, link.noise, link.weight, link.class_shares, link.trend.map(of_trend))
}

/// How many rows calibrate a forest (at most), given the numbers of rows of its classes.
#[pyfunction]
#[allow(clippy::needless_pass_by_value)]
pub(crate) fn calibrating_rows(n_rows_of: Vec<usize>) -> usize {
    boscage::calibrating_rows(&n_rows_of)
}

file_methods!(MondrianClassifier);
forest_methods!(MondrianClassifier);
explanation_methods!(MondrianClassifier);
share_methods!(MondrianClassifier);

#[pymethods]
#[allow(non_snake_case)]
impl MondrianClassifier {
    #[new]
    #[pyo3(signature = (*, n_estimators=100, lifetime=f64::INFINITY, min_samples_split=2, discount=10.0, posterior="kneser-ney", calibration=Some("loo"), joint_kernel="auto", trend=true, predictive="averaged", seed=0, share=None))]
    fn new(
        n_estimators: usize,
        lifetime: f64,
        min_samples_split: usize,
        discount: f64,
        posterior: &str,
        calibration: Option<&str>,
        joint_kernel: &str,
        trend: bool,
        predictive: &str,
        seed: u64,
        share: Option<(usize, usize)>,
    ) -> PyResult<Self> {
        let predictive = self::predictive(predictive)?;
        let settings = MondrianSettings {
            n_estimators,
            lifetime,
            min_samples_split,
            predictive,
            seed,
            share: self::share(share),
        };
        settings.check().map_err(to_python)?;
        let (posterior, calibration) = (class_posterior(posterior)?, self::calibration(calibration)?);
        let joint_kernel = settings::joint_kernel(joint_kernel)?;
        let classification = ClassificationSettings { discount, calibration, posterior, joint_kernel, trend };
        classification.check().map_err(to_python)?;
        Ok(Self { settings, classification, model: None })
    }

    #[pyo3(signature = (X, codes, labels, *, ids=None, sample_weight=None, declared=None, low=None, high=None, weights=None, maps=None, substitutes=None, categories=None, n_threads=1, progress=None))]
    fn fit(
        &mut self,
        py: Python<'_>,
        X: Matrix<'_>,
        codes: PyReadonlyArray1<'_, u32>,
        labels: Vec<Bound<'_, PyAny>>,
        ids: Option<PyReadonlyArray1<'_, u64>>,
        sample_weight: Option<PyReadonlyArray1<'_, f64>>,
        declared: Option<Vec<Bound<'_, PyAny>>>,
        low: Option<Vec<f64>>,
        high: Option<Vec<f64>>,
        weights: Option<Vec<f64>>,
        maps: Option<Vec<(Vec<f64>, Vec<f64>)>>,
        substitutes: Option<Substitutes>,
        categories: Option<FeatureCategories<'_>>,
        n_threads: usize,
        progress: Option<Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let rows = X.rows_with_missing()?;
        let codes = slice("y", &codes)?;
        let labels = arrays::labels(&labels)?;
        let declared = arrays::labels(&declared.unwrap_or_default())?;
        let ids = optional("ids", ids.as_ref())?;
        let row_weights = optional("sample_weight", sample_weight.as_ref())?;
        let domain = feature_rates::mapped(domain(rows, low, high, weights)?, maps)?;
        let domain = with_substitutes(domain, substitutes)?;
        let domain = with_categories(domain, categories)?;
        let (settings, classification) = (self.settings.clone(), self.classification.clone());
        let model = gate::run(py, n_threads, progress.as_ref(), |run| {
            let batch = Batch { rows, ids, weights: row_weights };
            boscage::MondrianClassifier::fit(
                settings,
                classification,
                domain,
                batch,
                (codes, &labels),
                &declared,
                run,
            )
        })?;
        self.model = Some(model);
        Ok(())
    }

    #[pyo3(signature = (X, codes, labels, *, ids=None, sample_weight=None))]
    fn partial_fit(
        &mut self,
        py: Python<'_>,
        X: Matrix<'_>,
        codes: PyReadonlyArray1<'_, u32>,
        labels: Vec<Bound<'_, PyAny>>,
        ids: Option<PyReadonlyArray1<'_, u64>>,
        sample_weight: Option<PyReadonlyArray1<'_, f64>>,
    ) -> PyResult<()> {
        let rows = X.rows_with_missing()?;
        let codes = slice("y", &codes)?;
        let labels = arrays::labels(&labels)?;
        let ids = optional("ids", ids.as_ref())?;
        let weights = optional("sample_weight", sample_weight.as_ref())?;
        let model = self.model_mut()?;
        gate::brief(py, || model.partial_fit(Batch { rows, ids, weights }, (codes, &labels)))
    }

    #[pyo3(signature = (X, *, n_threads=1))]
    fn predict_proba<'py>(
        &self,
        py: Python<'py>,
        X: Matrix<'py>,
        n_threads: usize,
    ) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let rows = X.rows_with_missing()?;
        let model = self.model()?;
        let work = |run: &Run<'_>| model.predict_proba(rows, run);
        let proba = gate::run_sized(py, Self::size(model, rows.n_rows()), n_threads, None, work)?;
        matrix(py, proba, rows.n_rows(), model.classes().len())
    }

    /// The uncertainty of predictions, and its aleatoric part.
    #[pyo3(signature = (X, class_weights=None, *, n_threads=1))]
    fn predict_uncertainty<'py>(
        &self,
        py: Python<'py>,
        X: Matrix<'py>,
        class_weights: Option<PyReadonlyArray1<'py, f64>>,
        n_threads: usize,
    ) -> PyResult<[Bound<'py, PyArray1<f64>>; 2]> {
        let (rows, model) = (X.rows_with_missing()?, self.model()?);
        let weights = optional("class_weights", class_weights.as_ref())?;
        let work = |run: &Run<'_>| model.predict_uncertainty(rows, weights, run);
        let parts = gate::run_sized(py, Self::size(model, rows.n_rows()), n_threads, None, work)?;
        Ok(<[_; 2]>::from(parts).map(|part| vector(py, part)))
    }

    #[pyo3(signature = (ids=None, discounts=None, *, calibration=None, n_threads=1, progress=None))]
    fn loo_proba<'py>(
        &self,
        py: Python<'py>,
        ids: Option<PyReadonlyArray1<'py, u64>>,
        discounts: Option<Vec<f64>>,
        calibration: Option<&str>,
        n_threads: usize,
        progress: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyArray3<f64>>> {
        let model = self.model()?;
        let ids = match optional("ids", ids.as_ref())? {
            Some(ids) => ids.to_vec(),
            None => model.ids(),
        };
        let discounts = discounts.unwrap_or_else(|| vec![model.discount()]);
        let shape = [discounts.len(), ids.len(), model.classes().len()];
        let calibration = self::calibration(calibration)?;
        let work = |run: &Run<'_>| model.loo_proba(&ids, &discounts, calibration, run);
        let proba = gate::run(py, n_threads, progress.as_ref(), work)?;
        vector(py, proba).reshape(shape)
    }

    fn classes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let labels: Vec<Label> = self.model()?.classes();
        let objects = labels.iter().map(|label| arrays::label_object(py, label));
        PyList::new(py, objects.collect::<PyResult<Vec<_>>>()?)
    }

    /// The rows' classes in order of arrival, as indices into `classes()`.
    fn targets<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<u32>>> {
        Ok(vector(py, self.model()?.targets()))
    }

    /// The declared ones among `classes()`.
    fn declared<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let labels = self.model()?.declared();
        let objects = labels.iter().map(|label| arrays::label_object(py, label));
        PyList::new(py, objects.collect::<PyResult<Vec<_>>>()?)
    }

    fn set_discount(&mut self, discount: f64) -> PyResult<()> {
        self.model_mut()?.set_discount(discount).map_err(to_python)?;
        self.classification.discount = discount;
        Ok(())
    }

    fn set_posterior(
        &mut self,
        posterior: &str,
        calibration: Option<&str>,
        joint_kernel: &str,
        trend: bool,
    ) -> PyResult<()> {
        let (posterior, calibration) = (class_posterior(posterior)?, self::calibration(calibration)?);
        let joint_kernel = settings::joint_kernel(joint_kernel)?;
        self.model_mut()?.set_posterior(posterior, calibration, joint_kernel, trend).map_err(to_python)?;
        let discount = self.classification.discount;
        self.classification =
            ClassificationSettings { discount, calibration, posterior, joint_kernel, trend };
        Ok(())
    }

    /// Power, share of noise and weight of the joint function in the calibration: 1, 0 and 0 without it. With them the shares of
    /// the classes, if it draws to them, and the trend, if there is one.
    #[pyo3(signature = (*, n_threads=1))]
    fn calibration_link(&self, py: Python<'_>, n_threads: usize) -> PyResult<Link> {
        let model = self.model()?;
        let link =
            gate::run_sized(py, Self::size(model, 0), n_threads, None, |run| model.calibration_link(run))?;
        Ok(link_numbers(link))
    }

    /// The number of trees, the first ones, that must be together.
    #[getter]
    fn n_trees_to_choose(&self) -> usize {
        self.classification.n_trees_to_choose(self.settings.n_estimators)
    }

    /// The votes of a share's trees, after those of the trees before: one number for each class and one more, for each row.
    #[pyo3(signature = (X, before=None, *, n_threads=1))]
    fn add_votes<'py>(
        &self,
        py: Python<'py>,
        X: Matrix<'py>,
        before: Option<PyReadonlyArray1<'py, f64>>,
        n_threads: usize,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let (rows, before) = (X.rows_with_missing()?, optional("before", before.as_ref())?);
        let model = self.model()?;
        let work = |run: &Run<'_>| model.add_votes(rows, before, run);
        Ok(vector(py, gate::run(py, n_threads, None, work)?))
    }

    /// Probabilities of rows, given all votes and what calibrates them.
    #[pyo3(signature = (X, votes, link, *, n_threads=1))]
    fn proba_of_votes<'py>(
        &self,
        py: Python<'py>,
        X: Matrix<'py>,
        votes: PyReadonlyArray1<'py, f64>,
        link: Link,
        n_threads: usize,
    ) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let (model, rows) = (self.model()?, X.rows_with_missing()?);
        let (votes, link) = (slice("votes", &votes)?, self::link(link));
        let work = |run: &Run<'_>| model.proba_of_votes(rows, votes, &link, run);
        let proba = gate::run(py, n_threads, None, work)?;
        matrix(py, proba, rows.n_rows(), model.classes().len())
    }

    /// The ids of the rows that calibrate.
    fn calibrating_ids<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<u64>>> {
        let model = self.model()?;
        Ok(vector(py, py.detach(|| model.calibrating_ids())))
    }

    /// As `add_votes`, for rows of the forest that are left out, and for every one of some discounts.
    #[pyo3(signature = (ids, discounts, before=None, *, n_threads=1))]
    fn add_left_out_votes<'py>(
        &self,
        py: Python<'py>,
        ids: PyReadonlyArray1<'py, u64>,
        discounts: Vec<f64>,
        before: Option<PyReadonlyArray1<'py, f64>>,
        n_threads: usize,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let (ids, before) = (slice("ids", &ids)?, optional("before", before.as_ref())?);
        let model = self.model()?;
        let work = |run: &Run<'_>| model.add_left_out_votes(ids, &discounts, before, run);
        Ok(vector(py, gate::run(py, n_threads, None, work)?))
    }

    /// What calibrates by discount, given all votes for the rows that calibrate.
    fn links_of_votes(
        &self,
        py: Python<'_>,
        discounts: Vec<f64>,
        votes: PyReadonlyArray1<'_, f64>,
    ) -> PyResult<Vec<Link>> {
        let (model, votes) = (self.model()?, slice("votes", &votes)?);
        let links = gate::brief(py, || model.links_of_votes(&discounts, votes))?;
        Ok(links.into_iter().map(link_numbers).collect())
    }

    /// As `loo_proba`, given all votes and calibrations.
    fn proba_of_left_out_votes<'py>(
        &self,
        py: Python<'py>,
        ids: PyReadonlyArray1<'py, u64>,
        votes: PyReadonlyArray1<'py, f64>,
        links: Vec<Link>,
    ) -> PyResult<Bound<'py, PyArray3<f64>>> {
        let (model, ids, votes) = (self.model()?, slice("ids", &ids)?, slice("votes", &votes)?);
        let shape = [links.len(), ids.len(), model.classes().len()];
        let links: Vec<CalibrationLink> = links.into_iter().map(self::link).collect();
        let proba = gate::brief(py, || model.proba_of_left_out_votes(ids, votes, &links))?;
        vector(py, proba).reshape(shape)
    }

    fn trees<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let model = self.model()?;
        let exported = gate::brief(py, || model.trees())?;
        let n_features = model.domain().n_features();
        let n_classes = model.classes().len();
        let is_weighted = model.row_weights().is_some();
        trees::dictionaries(py, exported, n_features, |dict, values, n| {
            if is_weighted {
                return dict.set_item("counts", matrix(py, values, n, n_classes)?);
            }
            let counts = values.iter().map(|&count| count as i64).collect();
            dict.set_item("counts", matrix(py, counts, n, n_classes)?)
        })
    }

    #[getter]
    fn discount(&self) -> f64 {
        self.classification.discount
    }

    #[getter]
    fn posterior(&self) -> &'static str {
        class_posterior_name(self.classification.posterior)
    }

    #[getter(calibration)]
    fn get_calibration(&self) -> Option<&'static str> {
        settings::calibration_name(self.classification.calibration)
    }

    #[getter]
    fn joint_kernel(&self) -> &'static str {
        settings::joint_kernel_name(self.classification.joint_kernel)
    }

    #[getter]
    fn trend(&self) -> bool {
        self.classification.trend
    }

    /// Whether the posterior would be joint, with the covariance of infinitely many trees, if the forest had so many rows.
    fn takes_limit(&self, n_rows: usize) -> bool {
        self.classification.is_limit(&self.settings, n_rows)
    }

    /// Whether it may be.
    #[getter]
    fn may_have_limit(&self) -> PyResult<bool> {
        Ok(self.model()?.may_have_limit())
    }
}
