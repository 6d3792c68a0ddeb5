//! The Mondrian forest regressor as a Python class.

use std::collections::HashMap;

use boscage::{
    Batch, Component, GaussianMixtures, MondrianSettings, RegressionSettings, Run, TargetMoments, Trend,
};
use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::arrays::{Matrix, optional, slice, vector};
use crate::errors::to_python;
use crate::gate;
use crate::methods::{explanation_methods, file_methods, forest_methods, share_methods};
use crate::mondrian::categories::{FeatureCategories, with_categories};
use crate::mondrian::feature_rates;
use crate::mondrian::hyperparameters::AllScales;
use crate::mondrian::missing::{Substitutes, with_substitutes};
use crate::settings::{self, domain, predictive};
use crate::trees;

type Vector<'py, T> = Bound<'py, PyArray1<T>>;
/// Feature, middle and width of its range, slope, and the changes of the slope below and above.
type PartOfTrend = (usize, f64, f64, f64, f64, f64);

/// A Mondrian forest regressor: settings, and the forest after `fit`.
#[pyclass(module = "boscage._core")]
#[derive(Clone)]
pub(crate) struct MondrianRegressor {
    settings: MondrianSettings,
    regression: RegressionSettings,
    model: Option<boscage::MondrianRegressor>,
}

impl MondrianRegressor {
    fn model(&self) -> PyResult<&boscage::MondrianRegressor> {
        self.model.as_ref().ok_or_else(|| PyRuntimeError::new_err("call fit first"))
    }

    /// The settings of the posterior.
    pub(crate) fn regression(&self) -> &RegressionSettings {
        &self.regression
    }

    fn model_mut(&mut self) -> PyResult<&mut boscage::MondrianRegressor> {
        self.model.as_mut().ok_or_else(|| PyRuntimeError::new_err("call fit first"))
    }

    /// The work of predicting `n_rows` rows; a large number if hyperparameters must be fitted first.
    fn size(model: &boscage::MondrianRegressor, n_rows: usize) -> usize {
        if model.is_flushed() { gate::size(n_rows, model.settings(), model.domain()) } else { usize::MAX }
    }

    fn of(model: boscage::MondrianRegressor) -> Self {
        Self {
            settings: model.settings().clone(),
            regression: model.regression_settings().clone(),
            model: Some(model),
        }
    }
}

/// Mixtures with different numbers of components, as four arrays: offsets, weights, means, variances.
pub(crate) type MixtureArrays<'py> = (Vector<'py, i64>, Vector<'py, f64>, Vector<'py, f64>, Vector<'py, f64>);

pub(crate) fn mixture_arrays<'py>(py: Python<'py>, mixtures: &GaussianMixtures) -> MixtureArrays<'py> {
    let numbers =
        |number: fn(&Component) -> f64| vector(py, mixtures.components().iter().map(number).collect());
    (
        vector(py, mixtures.offsets().iter().map(|&offset| offset as i64).collect()),
        numbers(|component| component.weight),
        numbers(|component| component.mean),
        numbers(|component| component.variance),
    )
}

file_methods!(MondrianRegressor);
forest_methods!(MondrianRegressor);
explanation_methods!(MondrianRegressor);
share_methods!(MondrianRegressor);

#[pymethods]
#[allow(non_snake_case)]
impl MondrianRegressor {
    #[new]
    #[pyo3(signature = (*, n_estimators=100, lifetime=f64::INFINITY, min_samples_split=2, predictive="averaged", seed=0, posterior="joint", hyperparameters="loo", noise="local", given=None, noise_variance=None, prior_scale=Some(1.0), prior_rate=None, trend=None, trend_features=None, joint_kernel="auto", share=None))]
    fn new(
        n_estimators: usize,
        lifetime: f64,
        min_samples_split: usize,
        predictive: &str,
        seed: u64,
        posterior: &str,
        hyperparameters: &str,
        noise: &str,
        given: Option<HashMap<String, f64>>,
        noise_variance: Option<f64>,
        prior_scale: Option<f64>,
        prior_rate: Option<f64>,
        trend: Option<&str>,
        trend_features: Option<Vec<usize>>,
        joint_kernel: &str,
        share: Option<(usize, usize)>,
    ) -> PyResult<Self> {
        let predictive = self::predictive(predictive)?;
        let settings = MondrianSettings {
            n_estimators,
            lifetime,
            min_samples_split,
            predictive,
            seed,
            share: settings::share(share),
        };
        settings.check().map_err(to_python)?;
        let given = AllScales::given(given.as_ref())?;
        let regression = RegressionSettings {
            posterior: settings::posterior(posterior)?,
            rule: settings::rule(hyperparameters)?,
            noise: settings::noise(noise)?,
            hyperparameters: given.hyper,
            left_out_fit: given.left_out_fit,
            noise_variance,
            prior_scale,
            trend: settings::trend(trend)?.then_some(Trend {
                features: trend_features,
                variance: given.trend_variance,
                scale: given.trend_scale,
            }),
            joint_kernel: settings::joint_kernel(joint_kernel)?,
            prior_rate,
        };
        regression.check().map_err(to_python)?;
        Ok(Self { settings, regression, model: None })
    }

    #[pyo3(signature = (X, y, *, ids=None, sample_weight=None, low=None, high=None, weights=None, maps=None, substitutes=None, categories=None, n_threads=1, progress=None))]
    fn fit(
        &mut self,
        py: Python<'_>,
        X: Matrix<'_>,
        y: PyReadonlyArray1<'_, f64>,
        ids: Option<PyReadonlyArray1<'_, u64>>,
        sample_weight: Option<PyReadonlyArray1<'_, f64>>,
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
        let y = slice("y", &y)?;
        let ids = optional("ids", ids.as_ref())?;
        let row_weights = optional("sample_weight", sample_weight.as_ref())?;
        let domain = feature_rates::mapped(domain(rows, low, high, weights)?, maps)?;
        let domain = with_substitutes(domain, substitutes)?;
        let domain = with_categories(domain, categories)?;
        let (settings, regression) = (self.settings.clone(), self.regression.clone());
        let model = gate::run(py, n_threads, progress.as_ref(), |run| {
            boscage::MondrianRegressor::fit(
                settings,
                regression,
                domain,
                Batch { rows, ids, weights: row_weights },
                y,
                run,
            )
        })?;
        self.model = Some(model);
        Ok(())
    }

    #[pyo3(signature = (X, y, *, ids=None, sample_weight=None))]
    fn partial_fit(
        &mut self,
        py: Python<'_>,
        X: Matrix<'_>,
        y: PyReadonlyArray1<'_, f64>,
        ids: Option<PyReadonlyArray1<'_, u64>>,
        sample_weight: Option<PyReadonlyArray1<'_, f64>>,
    ) -> PyResult<()> {
        let rows = X.rows_with_missing()?;
        let y = slice("y", &y)?;
        let ids = optional("ids", ids.as_ref())?;
        let weights = optional("sample_weight", sample_weight.as_ref())?;
        let model = self.model_mut()?;
        gate::brief(py, || model.partial_fit(Batch { rows, ids, weights }, y))
    }

    /// Takes the settings of another one's posterior, which trees do not depend on.
    fn set_regression(&mut self, other: &Self) -> PyResult<()> {
        self.model_mut()?.set_regression(other.regression.clone()).map_err(to_python)?;
        self.regression = other.regression.clone();
        Ok(())
    }

    #[pyo3(signature = (X, *, n_threads=1))]
    fn predict<'py>(
        &self,
        py: Python<'py>,
        X: Matrix<'py>,
        n_threads: usize,
    ) -> PyResult<(Vector<'py, f64>, Vector<'py, f64>)> {
        let rows = X.rows_with_missing()?;
        let model = self.model()?;
        let work = |run: &Run<'_>| model.predict(rows, run);
        let (mean, variance) = gate::run_sized(py, Self::size(model, rows.n_rows()), n_threads, None, work)?;
        Ok((vector(py, mean), vector(py, variance)))
    }

    #[pyo3(signature = (X, *, n_threads=1))]
    fn predict_mean<'py>(
        &self,
        py: Python<'py>,
        X: Matrix<'py>,
        n_threads: usize,
    ) -> PyResult<Vector<'py, f64>> {
        let rows = X.rows_with_missing()?;
        let model = self.model()?;
        let work = |run: &Run<'_>| model.predict_mean(rows, run);
        Ok(vector(py, gate::run_sized(py, Self::size(model, rows.n_rows()), n_threads, None, work)?))
    }

    #[pyo3(signature = (X, *, n_threads=1))]
    fn predict_dist<'py>(
        &self,
        py: Python<'py>,
        X: Matrix<'py>,
        n_threads: usize,
    ) -> PyResult<MixtureArrays<'py>> {
        let rows = X.rows_with_missing()?;
        let model = self.model()?;
        let work = |run: &Run<'_>| model.predict_dist(rows, run);
        let mixtures = gate::run_sized(py, Self::size(model, rows.n_rows()), n_threads, None, work)?;
        Ok(mixture_arrays(py, &mixtures))
    }

    /// The variance of predictions, and its aleatoric part.
    #[pyo3(signature = (X, *, n_threads=1))]
    fn predict_uncertainty<'py>(
        &self,
        py: Python<'py>,
        X: Matrix<'py>,
        n_threads: usize,
    ) -> PyResult<[Vector<'py, f64>; 2]> {
        let (rows, model) = (X.rows_with_missing()?, self.model()?);
        let work = |run: &Run<'_>| model.predict_uncertainty(rows, run);
        let parts = gate::run_sized(py, Self::size(model, rows.n_rows()), n_threads, None, work)?;
        Ok(<[_; 2]>::from(parts).map(|part| vector(py, part)))
    }

    #[pyo3(signature = (ids=None, *, n_threads=1, progress=None))]
    fn loo_dist<'py>(
        &self,
        py: Python<'py>,
        ids: Option<PyReadonlyArray1<'py, u64>>,
        n_threads: usize,
        progress: Option<Bound<'py, PyAny>>,
    ) -> PyResult<MixtureArrays<'py>> {
        let model = self.model()?;
        let ids = match optional("ids", ids.as_ref())? {
            Some(ids) => ids.to_vec(),
            None => model.ids(),
        };
        let mixtures = gate::run(py, n_threads, progress.as_ref(), |run| model.loo_dist(&ids, run))?;
        Ok(mixture_arrays(py, &mixtures))
    }

    #[pyo3(signature = (*, n_threads=1))]
    fn hyperparameters<'py>(
        &self,
        py: Python<'py>,
        n_threads: usize,
    ) -> PyResult<Option<Bound<'py, PyDict>>> {
        let model = self.model()?;
        let work = |run: &Run<'_>| {
            Ok(AllScales {
                hyper: Some(model.hyperparameters(run)?),
                left_out_fit: model.left_out_fit(run)?,
                trend_variance: model.trend_variance(run)?,
                trend_scale: model.trend_scale(run)?,
            })
        };
        gate::run(py, n_threads, None, work)?.dictionary(py)
    }

    /// The number of trees, the first ones, that must be together.
    #[getter]
    fn n_trees_to_choose(&self) -> usize {
        self.regression.n_trees_to_choose(self.settings.n_estimators)
    }

    /// What all trees are to know, as numbers, of which the first seven are the hyperparameters. Where this is a forest of the
    /// first rows of a larger one, `moments` is what [`RegressorCells::target_moments`] says of all targets.
    #[pyo3(signature = (moments=None, *, n_threads=1))]
    fn choose(
        &self,
        py: Python<'_>,
        moments: Option<(f64, f64, f64)>,
        n_threads: usize,
    ) -> PyResult<Vec<f64>> {
        let model = self.model()?;
        let all = moments.map(|(weight, mean, squares)| TargetMoments { weight, mean, squares });
        gate::run(py, n_threads, None, |run| match all {
            Some(all) => model.choose_for(all, run),
            None => model.choose(run),
        })
    }

    /// Tells a share what was chosen.
    #[pyo3(signature = (chosen, *, n_threads=1))]
    fn complete(&self, py: Python<'_>, chosen: Vec<f64>, n_threads: usize) -> PyResult<()> {
        let model = self.model()?;
        gate::run(py, n_threads, None, |run| model.complete(&chosen, run))
    }

    /// The mixtures of a share's trees, after those of the trees before: four numbers a row.
    #[pyo3(signature = (X, before=None, *, n_threads=1))]
    fn add_components<'py>(
        &self,
        py: Python<'py>,
        X: Matrix<'py>,
        before: Option<PyReadonlyArray1<'py, f64>>,
        n_threads: usize,
    ) -> PyResult<Vector<'py, f64>> {
        let (rows, before) = (X.rows_with_missing()?, optional("before", before.as_ref())?);
        let model = self.model()?;
        let work = |run: &Run<'_>| model.add_components(rows, before, run);
        Ok(vector(py, gate::run(py, n_threads, None, work)?))
    }

    /// Means and variances, given the mixtures of all trees.
    fn moments_of_components<'py>(
        &self,
        py: Python<'py>,
        components: PyReadonlyArray1<'py, f64>,
    ) -> PyResult<(Vector<'py, f64>, Vector<'py, f64>)> {
        let (model, components) = (self.model()?, slice("components", &components)?);
        let work = || model.moments_of_components(components, &Run::default());
        let (mean, variance) = gate::brief(py, work)?;
        Ok((vector(py, mean), vector(py, variance)))
    }

    /// "linear", or none.
    #[getter]
    fn trend(&self) -> Option<&'static str> {
        self.regression.trend.as_ref().map(|_| settings::LINEAR)
    }

    /// The covariance of the joint posterior.
    #[getter]
    fn joint_kernel(&self) -> &'static str {
        settings::joint_kernel_name(self.regression.joint_kernel)
    }

    /// Whether the posterior would be joint, with the covariance of infinitely many trees, if the forest had so many rows.
    fn takes_limit(&self, n_rows: usize) -> bool {
        self.regression.is_limit(&self.settings, n_rows)
    }

    /// The features that the trend has; none stands for all.
    #[getter]
    fn trend_features(&self) -> Option<Vec<usize>> {
        self.regression.trend.as_ref()?.features.clone()
    }

    /// The trend at the middle of all reference ranges, less mu, and its slopes; none if there is no trend.
    #[pyo3(signature = (*, n_threads=1))]
    fn trend_coefficients<'py>(
        &self,
        py: Python<'py>,
        n_threads: usize,
    ) -> PyResult<Option<(f64, Vector<'py, f64>)>> {
        let model = self.model()?;
        let found = gate::run(py, n_threads, None, |run| model.trend_coefficients(run))?;
        Ok(found.map(|(constant, slopes)| (constant, vector(py, slopes))))
    }

    /// The trend as a constant and a function of each of its features, in units of the widths of their ranges; none if there
    /// is no trend.
    #[pyo3(signature = (*, n_threads=1))]
    fn trend_parts(&self, py: Python<'_>, n_threads: usize) -> PyResult<Option<(f64, Vec<PartOfTrend>)>> {
        let model = self.model()?;
        let found = gate::run(py, n_threads, None, |run| model.trend_parts(run))?;
        let of_part = |part: boscage::TrendPart| {
            (part.feature, part.middle, part.range, part.slope, part.below, part.above)
        };
        Ok(found.map(|(constant, parts)| (constant, parts.into_iter().map(of_part).collect())))
    }

    /// The hyperparameters, if they were given.
    #[getter]
    fn given_hyperparameters<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let trend = self.regression.trend.as_ref();
        AllScales {
            hyper: self.regression.hyperparameters,
            left_out_fit: self.regression.left_out_fit,
            trend_variance: trend.and_then(|trend| trend.variance),
            trend_scale: trend.and_then(|trend| trend.scale),
        }
        .dictionary(py)
    }

    /// As given; none if it has no effect.
    #[getter]
    fn prior_scale(&self) -> Option<f64> {
        self.model
            .as_ref()
            .map_or(self.regression.prior_scale, |model| model.regression_settings().prior_scale)
    }

    /// As given, or that of the file; 1 if it has no effect.
    #[getter]
    fn prior_rate(&self) -> Option<f64> {
        self.model.as_ref().map_or(self.regression.prior_rate, |model| model.regression_settings().prior_rate)
    }

    #[pyo3(signature = (*, n_threads=1))]
    fn log_marginal_likelihood(&self, py: Python<'_>, n_threads: usize) -> PyResult<f64> {
        let model = self.model()?;
        gate::run(py, n_threads, None, |run| model.log_marginal_likelihood(run))
    }

    #[pyo3(signature = (*, n_threads=1))]
    fn trees<'py>(&self, py: Python<'py>, n_threads: usize) -> PyResult<Bound<'py, PyList>> {
        let model = self.model()?;
        let exported = gate::run(py, n_threads, None, |run| model.trees(run))?;
        let n_features = model.domain().n_features();
        trees::dictionaries(py, exported, n_features, |dict, values, _| {
            let (mean, variance): (Vec<f64>, Vec<f64>) =
                values.as_chunks().0.iter().map(|&[mean, variance]| (mean, variance)).unzip();
            dict.set_item("mean", vector(py, mean))?;
            dict.set_item("variance", vector(py, variance))
        })
    }

    /// The rows' targets in order of arrival.
    fn targets<'py>(&self, py: Python<'py>) -> PyResult<Vector<'py, f64>> {
        Ok(vector(py, self.model()?.targets()))
    }

    #[getter]
    fn posterior(&self) -> &'static str {
        settings::posterior_name(self.regression.posterior)
    }

    /// The rule that chooses the hyperparameters; `hyperparameters()` returns their values.
    #[getter]
    fn rule(&self) -> &'static str {
        settings::rule_name(self.regression.rule)
    }

    #[getter]
    fn noise(&self) -> &'static str {
        settings::noise_name(self.regression.noise)
    }

    /// The given value; `hyperparameters()` returns the one in use.
    #[getter]
    fn noise_variance(&self) -> Option<f64> {
        self.regression.noise_variance
    }
}
