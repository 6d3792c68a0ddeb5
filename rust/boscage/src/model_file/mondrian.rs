//! The fields of Mondrian forests: settings, domain and rows. The trees are drawn again on reading.

use super::domain::{read_domain, write_domain};
use super::format::{
    CATEGORIES, CLASS_KERNEL, CLASS_SHARES, CLASS_TREND, CUT_FEATURES, FITTED_PRIOR_RATE, ITEM,
    JOINT_CLASSES, JOINT_KERNEL, LEFT_OUT_FIT, LIMIT_FIT, MAPS, PLAIN, PRIOR, PRIOR_RATE, Place, ROW_WEIGHTS,
    Reader, SUBSTITUTES, TREND, Writer,
};
use crate::control::Run;
use crate::data::{Rows, Scalar, SparseRow};
use crate::error::{Error, Result};
use crate::mondrian::classification::classifier::MondrianClassifier;
use crate::mondrian::classification::settings::{Calibration, ClassPosterior, ClassificationSettings};
use crate::mondrian::forest::row_features::RowFeatures;
use crate::mondrian::forest::row_values::RowValues;
use crate::mondrian::forest::settings::{MondrianSettings, Predictive};
use crate::mondrian::forest::{Batch, Forest};
use crate::mondrian::joint::kernel::JointKernel;
use crate::mondrian::model::{MondrianForest, NodePosterior};
use crate::mondrian::process::domain::Domain;
use crate::mondrian::regression::hierarchy::belief_propagation::{CoarsePrior, Hyperparameters};
use crate::mondrian::regression::left_out_fit::{JointFit, LeftOutFit, TailFit};
use crate::mondrian::regression::regressor::MondrianRegressor;
use crate::mondrian::regression::settings::{
    HyperparameterRule, Noise, OLD_PRIOR_RATE, PRIOR_RATES, Posterior, RegressionSettings, Trend,
};
use crate::mondrian::tree::statistics::Statistics;
use crate::validate::{ROW_WEIGHT, check_row_weights, check_within};

/// The oldest version that can hold a forest.
fn version<P: NodePosterior>(model: &MondrianForest<P>) -> u32 {
    let domain = model.domain();
    if !domain.has_every_coordinate() {
        return CUT_FEATURES;
    }
    if model.row_weights().is_some() {
        return ROW_WEIGHTS;
    }
    if !domain.categories().is_empty() {
        return CATEGORIES;
    }
    match (domain.substitutes(), domain.maps()) {
        (Some(_), _) => SUBSTITUTES,
        (None, Some(_)) => MAPS,
        (None, None) => PLAIN,
    }
}

/// The oldest version that can hold a classifier.
pub(super) fn classifier_version(model: &MondrianClassifier) -> u32 {
    let settings = model.classification_settings();
    let of_settings = match (settings.joint_kernel, settings.posterior, settings.calibration) {
        _ if settings.trend => CLASS_TREND,
        (.., Calibration::LeaveOneOut) => CLASS_SHARES,
        (JointKernel::Limit | JointKernel::Auto, ..) => CLASS_KERNEL,
        (JointKernel::Trees, ClassPosterior::Joint, _) => JOINT_CLASSES,
        (JointKernel::Trees, ClassPosterior::KneserNey, Calibration::PowerAlone) => PRIOR,
        (JointKernel::Trees, ClassPosterior::KneserNey, Calibration::None) => PLAIN,
    };
    of_settings.max(version(model))
}

/// The oldest version that can hold a regressor.
pub(super) fn regressor_version(model: &MondrianRegressor) -> u32 {
    let settings = &model.posterior.settings;
    let has_scale = settings.trend.as_ref().is_some_and(|trend| trend.scale.is_some());
    let beyond = settings.prior_scale.is_some() || settings.beyond_thesis().is_some();
    let of_settings = match (settings.joint_kernel, &settings.trend, beyond) {
        _ if settings.left_out_fit.joint.is_some_and(|joint| joint.is_limit) => LIMIT_FIT,
        _ if has_scale || settings.left_out_fit != LeftOutFit::default() => LEFT_OUT_FIT,
        _ if settings.prior_rate.is_none() => FITTED_PRIOR_RATE,
        _ if settings.prior_rate != Some(OLD_PRIOR_RATE) => PRIOR_RATE,
        (JointKernel::Limit | JointKernel::Auto, ..) => JOINT_KERNEL,
        (JointKernel::Trees, Some(_), _) => TREND,
        (JointKernel::Trees, None, true) => PRIOR,
        (JointKernel::Trees, None, false) => PLAIN,
    };
    of_settings.max(version(model))
}

pub(super) fn write_classifier(writer: &mut Writer, model: &MondrianClassifier, annotation: &str) {
    let version = classifier_version(model);
    writer.f64(model.discount());
    if version >= PRIOR {
        writer.u8(model.calibration() as u8);
    }
    if version >= JOINT_CLASSES {
        writer.u8(model.posterior() as u8);
    }
    if version >= CLASS_KERNEL {
        writer.u8(model.classification_settings().joint_kernel as u8);
    }
    if version >= CLASS_TREND {
        writer.u8(model.classification_settings().trend.into());
    }
    // Labels that no remaining row has are not stored.
    writer.list(&model.classes(), Writer::label);
    writer.list(&model.declared(), Writer::label);
    write_forest(writer, &model.forest, version, annotation);
    for code in model.targets() {
        writer.u32(code);
    }
}

pub(super) fn read_classifier(reader: &mut Reader<'_>, run: &Run<'_>) -> Result<MondrianClassifier> {
    let discount = reader.f64("discount")?;
    let discount_at = reader.last();
    let calibration = if reader.version < PRIOR {
        Calibration::None
    } else {
        const ALL: [Calibration; 3] = [Calibration::None, Calibration::PowerAlone, Calibration::LeaveOneOut];
        reader.choice("calibration", if reader.version < CLASS_SHARES { &ALL[..2] } else { &ALL })?
    };
    let posterior = if reader.version < JOINT_CLASSES {
        ClassPosterior::KneserNey
    } else {
        reader.choice("posterior", &[ClassPosterior::KneserNey, ClassPosterior::Joint])?
    };
    let posterior_at = reader.last();
    let joint_kernel = if reader.version < CLASS_KERNEL {
        JointKernel::Trees
    } else {
        reader.choice("joint_kernel", &JointKernel::ALL)?
    };
    let trend = reader.version >= CLASS_TREND && reader.flag("trend")?;
    let classification = ClassificationSettings { discount, calibration, posterior, joint_kernel, trend };
    let labels = reader.list("classes", 8, |reader| reader.label(ITEM))?;
    let declared = reader.list("declared_classes", 8, |reader| reader.label(ITEM))?;
    let stored = StoredForest::read(reader)?;
    let codes = reader.list_of("targets", stored.ids.len(), |reader| {
        let code = reader.u32(ITEM)?;
        if (code as usize) < labels.len() {
            return Ok(code);
        }
        Err(reader.expected(format!("the number of a class, below {}", labels.len()), code))
    })?;
    let places = [("discount", discount_at), ("calibration", posterior_at)];
    let model = stored.make(reader, &places, |settings, domain, batch| {
        MondrianClassifier::fit(settings, classification, domain, batch, (&codes, &labels), &declared, run)
    })?;
    Ok(stored.restore(model))
}

pub(super) fn write_regressor(writer: &mut Writer, model: &MondrianRegressor, annotation: &str) {
    let settings = &model.posterior.settings;
    writer.u8(settings.posterior as u8);
    writer.u8(settings.rule as u8);
    writer.u8(settings.noise as u8);
    let fixed = settings.hyperparameters.map(|h| [h.mu, h.gamma1, h.gamma2, h.noise_variance]);
    let beyond = settings.beyond_thesis();
    let fixed: Vec<f64> = fixed.into_iter().flatten().chain(beyond.into_iter().flatten()).collect();
    writer.list(&fixed, |writer, value| writer.f64(*value));
    writer.list(settings.noise_variance.as_slice(), |writer, value| writer.f64(*value));
    let version = regressor_version(model);
    if version >= PRIOR {
        writer.list(settings.prior_scale.as_slice(), |writer, value| writer.f64(*value));
    }
    if version >= TREND {
        writer.u8(u8::from(settings.trend.is_some()));
    }
    if let Some(trend) = &settings.trend {
        writer.list(trend.features.as_deref().unwrap_or_default(), |writer, feature| {
            writer.u64(*feature as u64);
        });
        writer.list(trend.variance.as_slice(), |writer, value| writer.f64(*value));
    }
    if version >= JOINT_KERNEL {
        writer.u8(settings.joint_kernel as u8);
    }
    if version >= FITTED_PRIOR_RATE {
        writer.u8(settings.prior_rate.is_none().into());
    }
    if let Some(rate) = settings.prior_rate.filter(|_| version >= PRIOR_RATE) {
        writer.f64(rate);
    }
    if version >= LEFT_OUT_FIT {
        write_left_out_fit(writer, settings, version);
    }
    write_forest(writer, &model.forest, version, annotation);
    for y in model.targets() {
        writer.f64(y);
    }
}

fn write_left_out_fit(writer: &mut Writer, settings: &RegressionSettings, version: u32) {
    let LeftOutFit { joint, noise_rows, tails } = &settings.left_out_fit;
    let is_limit = joint.is_some_and(|joint| joint.is_limit);
    let (joint, tails) = (joint.as_ref().map(JointFit::numbers), tails.as_ref().map(TailFit::numbers));
    writer.list(joint.as_slice().as_flattened(), |writer, value| writer.f64(*value));
    if version >= LIMIT_FIT {
        writer.u8(is_limit.into());
    }
    writer.f64(*noise_rows);
    writer.list(tails.as_slice().as_flattened(), |writer, value| writer.f64(*value));
    let scale = settings.trend.as_ref().and_then(|trend| trend.scale);
    writer.list(scale.as_slice(), |writer, value| writer.f64(*value));
}

fn read_left_out_fit(reader: &mut Reader<'_>) -> Result<LeftOutFit> {
    let joint = read_numbers(reader, "joint", "no number or five")?;
    let is_limit = reader.version >= LIMIT_FIT && reader.flag("is_limit")?;
    let joint = joint.map(|numbers| JointFit::of(numbers, is_limit));
    let noise_rows = reader.f64("noise_rows")?;
    let tails = read_numbers(reader, "tails", "no number or four")?.map(TailFit::of);
    Ok(LeftOutFit { joint, noise_rows, tails })
}

pub(super) fn read_regressor(reader: &mut Reader<'_>, run: &Run<'_>) -> Result<MondrianRegressor> {
    let regression = reader.group("regression", read_regression)?;
    reader.checked(regression.check())?;
    let stored = StoredForest::read(reader)?;
    let targets = reader.list_of("targets", stored.ids.len(), |reader| reader.finite(ITEM))?;
    let targets_at = reader.last();
    let model = stored.make(reader, &[("y", targets_at)], |settings, domain, batch| {
        MondrianRegressor::fit(settings, regression, domain, batch, &targets, run)
    })?;
    Ok(stored.restore(model))
}

fn read_regression(reader: &mut Reader<'_>) -> Result<RegressionSettings> {
    let posterior = reader.choice("posterior", &[Posterior::Exact, Posterior::Fast, Posterior::Joint])?;
    let rule = reader.choice(
        "hyperparameter_rule",
        &[
            HyperparameterRule::MarginalLikelihood,
            HyperparameterRule::Heuristic,
            HyperparameterRule::LeaveOneOut,
        ],
    )?;
    let noise = reader.choice("noise", &[Noise::Global, Noise::Local])?;
    let hyperparameters = match reader.f64s("hyperparameters")?[..] {
        [] => None,
        [mu, gamma1, gamma2, noise_variance] => Some(Hyperparameters {
            mu,
            gamma1,
            gamma2,
            noise_variance,
            delay: 0.0,
            coarse: CoarsePrior::NONE,
        }),
        [mu, gamma1, gamma2, noise_variance, delay, variance, rate] if reader.version >= PRIOR => {
            let coarse = CoarsePrior { variance, rate };
            Some(Hyperparameters { mu, gamma1, gamma2, noise_variance, delay, coarse })
        }
        ref other => {
            let expected = if reader.version < PRIOR {
                "no number or four (mu, gamma1, gamma2 and the noise variance)"
            } else {
                "no number, four (mu, gamma1, gamma2 and the noise variance) or seven (and the delay and the coarse variance and rate)"
            };
            return Err(reader.expected(expected, other.len()));
        }
    };
    let noise_variance = read_optional(reader, "noise_variance")?;
    let prior_scale = if reader.version < PRIOR { None } else { read_optional(reader, "prior_scale")? };
    let mut trend = if reader.version < TREND || !reader.flag("has_trend")? {
        None
    } else {
        let features = reader.list("trend_features", 8, |reader| reader.size(ITEM))?;
        let variance = read_optional(reader, "trend_variance")?;
        Some(Trend { features: (!features.is_empty()).then_some(features), variance, scale: None })
    };
    let joint_kernel = if reader.version < JOINT_KERNEL {
        JointKernel::Trees
    } else {
        reader.choice("joint_kernel", &JointKernel::ALL)?
    };
    let is_fitted = reader.version >= FITTED_PRIOR_RATE && reader.flag("is_prior_rate_fitted")?;
    let prior_rate = match reader.version {
        _ if is_fitted => None,
        PRIOR_RATE.. => {
            let rate = reader.f64("prior_rate")?;
            reader.checked(check_within("prior_rate", rate, PRIOR_RATES))?;
            Some(rate)
        }
        _ => Some(OLD_PRIOR_RATE),
    };
    let mut left_out_fit = LeftOutFit::default();
    if reader.version >= LEFT_OUT_FIT {
        left_out_fit = read_left_out_fit(reader)?;
        let scale = read_optional(reader, "trend_scale")?;
        if let Some(trend) = &mut trend {
            trend.scale = scale;
        }
    }
    Ok(RegressionSettings {
        posterior,
        rule,
        noise,
        hyperparameters,
        left_out_fit,
        noise_variance,
        prior_scale,
        prior_rate,
        trend,
        joint_kernel,
    })
}

/// A number, or none.
fn read_optional(reader: &mut Reader<'_>, name: &'static str) -> Result<Option<f64>> {
    Ok(read_numbers(reader, name, "no number or one")?.map(|[number]| number))
}

/// A list of so many numbers, or of none.
fn read_numbers<const N: usize>(
    reader: &mut Reader<'_>,
    name: &'static str,
    expected: &str,
) -> Result<Option<[f64; N]>> {
    let found = reader.f64s(name)?;
    if found.is_empty() {
        return Ok(None);
    }
    let all = found.try_into().map_err(|other: Vec<f64>| reader.expected(expected, other.len()))?;
    Ok(Some(all))
}

fn write_forest<P: Statistics>(writer: &mut Writer, forest: &Forest<P>, version: u32, annotation: &str) {
    write_settings(writer, &forest.settings);
    writer.text(annotation);
    write_domain(writer, &forest.domain, version);
    writer.u64(forest.row_index.next_id());
    let rows: Vec<u32> = forest.row_index.rows().collect();
    writer.list(&rows, |writer, row| writer.u64(forest.row_index.id(*row)));
    write_features(writer, forest, &rows);
    let weights = forest.weights_by_arrival();
    if version >= JOINT_KERNEL {
        writer.u8(u8::from(weights.is_some()));
    }
    for weight in weights.into_iter().flatten() {
        writer.f64(weight);
    }
}

fn write_features<P: Statistics>(writer: &mut Writer, forest: &Forest<P>, rows: &[u32]) {
    if let Some(sparse) = forest.sparse_rows() {
        writer.u8(SPARSE_WIDTH as u8);
        for row in sparse {
            writer.list(row.values(), |writer, &(feature, value)| {
                writer.u32(feature);
                writer.f64(value);
            });
        }
        return;
    }
    let values = || rows.iter().flat_map(|&row| forest.row_values(row));
    // The forest may store wider values than it needs, if rows with such values have been removed.
    let narrow = values().all(|value| f32::exact(value).is_some());
    writer.u8(if narrow { 4 } else { 8 });
    for value in values() {
        if narrow { writer.raw(&(value as f32).to_le_bytes()) } else { writer.f64(value) }
    }
}

pub(super) fn write_settings(writer: &mut Writer, settings: &MondrianSettings) {
    writer.u64(settings.n_estimators as u64);
    writer.f64(settings.lifetime);
    writer.u64(settings.min_samples_split as u64);
    writer.u8(settings.predictive as u8);
    writer.u64(settings.seed);
}

/// The stored fields of a forest without its targets.
struct StoredForest {
    settings: MondrianSettings,
    annotation: String,
    domain: Domain,
    next_id: u64,
    ids: Vec<u64>,
    ids_at: Place,
    features: RowFeatures,
    features_at: Place,
    /// Bytes of a stored value.
    width: usize,
    /// The weights of rows, if some are not 1.
    weights: Option<Vec<f64>>,
}

impl StoredForest {
    fn read(reader: &mut Reader<'_>) -> Result<Self> {
        let settings = reader.group("settings", read_settings)?;
        reader.checked(settings.check())?;
        let annotation = reader.text("annotation")?;
        let domain = reader.group("domain", read_domain)?;
        let next_id = reader.u64("next_id")?;
        let ids = reader.list("ids", 8, |reader| reader.u64(ITEM))?;
        let ids_at = reader.last();
        let width = usize::from(reader.u8("value_width")?);
        let (features, features_at) = read_features(reader, width, (ids.len(), &domain))?;
        let weights = read_row_weights(reader, ids.len())?;
        Ok(Self { settings, annotation, domain, next_id, ids, ids_at, features, features_at, width, weights })
    }

    /// Fits the forest again. An error of `fit` is converted into one about the field at fault; `settings_at`
    /// are the positions of the model's own settings.
    fn make<M>(
        &self,
        reader: &Reader<'_>,
        settings_at: &[(&str, Place)],
        fit: impl FnOnce(MondrianSettings, Domain, Batch<'_>) -> Result<M>,
    ) -> Result<M> {
        let n_features = self.domain.n_features();
        let made = self.features.rows(n_features).and_then(|rows| {
            fit(
                self.settings.clone(),
                self.domain.clone(),
                Batch { rows, ids: Some(&self.ids), weights: self.weights.as_deref() },
            )
        });
        made.map_err(|error| {
            let place = match error {
                Error::NonFinite { row, feature, .. }
                | Error::Missing { row, feature }
                | Error::TooFar { row, feature, .. } => match self.features {
                    RowFeatures::Dense(_) => self.features_at.plus((row * n_features + feature) * self.width),
                    RowFeatures::Sparse(_) => self.features_at,
                },
                Error::InvalidSetting { name, .. } => {
                    settings_at.iter().find(|(of, _)| *of == name).map_or(self.ids_at, |&(_, place)| place)
                }
                _ => self.ids_at,
            };
            reader.refused_at(place, error)
        })
    }

    /// Restores the state that does not follow from the rows, so that later updates are the same as without
    /// saving.
    fn restore<P: NodePosterior>(self, mut model: MondrianForest<P>) -> MondrianForest<P> {
        model.forest.row_index.set_next_id(self.next_id);
        model.annotation = self.annotation;
        model
    }
}

/// The features of rows, and where they begin.
fn read_features(
    reader: &mut Reader<'_>,
    width: usize,
    (n_rows, domain): (usize, &Domain),
) -> Result<(RowFeatures, Place)> {
    let n_features = domain.n_features();
    if width == SPARSE_WIDTH && !domain.has_every_coordinate() {
        let rows = reader.list_of("sparse_rows", n_rows, |reader| {
            let values = reader
                .list("values", SPARSE_WIDTH, |reader| Ok((reader.u32("feature")?, reader.f64("value")?)))?;
            reader.checked(SparseRow::new(values))
        })?;
        reader.checked(Rows::from_sparse(&rows, n_features).map(drop))?;
        return Ok((RowFeatures::Sparse(rows), reader.last()));
    }
    if width != 4 && width != 8 {
        return Err(reader.expected("4 or 8 bytes", width));
    }
    let n_values = n_rows.saturating_mul(n_features);
    let bytes = reader.take("values", n_values.saturating_mul(width))?;
    let values = match width {
        4 => RowValues::F32(bytes.as_chunks().0.iter().map(|&bytes| f32::from_le_bytes(bytes)).collect()),
        _ => RowValues::F64(bytes.as_chunks().0.iter().map(|&bytes| f64::from_le_bytes(bytes)).collect()),
    };
    Ok((RowFeatures::Dense(values), reader.last()))
}

fn read_row_weights(reader: &mut Reader<'_>, n_rows: usize) -> Result<Option<Vec<f64>>> {
    if reader.version < ROW_WEIGHTS || (reader.version >= JOINT_KERNEL && !reader.flag("has_weights")?) {
        return Ok(None);
    }
    let weights = reader.list_of("sample_weight", n_rows, |reader| {
        let weight = reader.f64(ITEM)?;
        match check_row_weights(&[weight], 1) {
            Ok(()) => Ok(weight),
            Err(_) => Err(reader.expected(ROW_WEIGHT, format!("{weight:?}"))),
        }
    })?;
    Ok(Some(weights))
}

pub(super) fn read_settings(reader: &mut Reader<'_>) -> Result<MondrianSettings> {
    Ok(MondrianSettings {
        n_estimators: reader.size("n_estimators")?,
        lifetime: reader.f64("lifetime")?,
        min_samples_split: reader.size("min_samples_split")?,
        predictive: reader.choice("predictive", &[Predictive::Averaged, Predictive::Realised])?,
        seed: reader.u64("seed")?,
        share: reader.share.clone(),
    })
}

/// A value of a sparse row: its feature and the value.
const SPARSE_WIDTH: usize = 12;
