//! What stands in a model file, field by field: writing and reading side by side.

use crate::control::Run;
use crate::data::Scalar;
use crate::data::labels::Label;
use crate::error::{Error, Result};
use crate::mondrian::classification::classifier::MondrianClassifier;
use crate::mondrian::forest::Batch;
use crate::mondrian::forest::Forest;
use crate::mondrian::forest::row_values::Values;
use crate::mondrian::forest::settings::{MondrianSettings, Predictive};
use crate::mondrian::process::domain::Domain;
use crate::mondrian::process::feature_map::FeatureMap;
use crate::mondrian::regression::belief_propagation::Hyperparameters;
use crate::mondrian::regression::regressor::{
    HyperparameterRule, MondrianRegressor, Noise, Posterior, RegressionSettings,
};
use crate::mondrian::tree::statistics::Statistics;

/// The first version.
pub(crate) const PLAIN: u32 = 1;
/// Version 1, and the maps of the features after their weights.
const MAPS: u32 = 2;
/// The newest version.
pub(crate) const NEWEST: u32 = MAPS;

/// The version of a model's file: the oldest that can hold it.
pub(crate) fn version_of(domain: &Domain) -> u32 {
    if domain.maps().is_some() { MAPS } else { PLAIN }
}

/// Bytes in the making.
#[derive(Debug, Default)]
pub(crate) struct Writer {
    bytes: Vec<u8>,
}

impl Writer {
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    pub(crate) fn raw(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    pub(crate) fn u8(&mut self, value: u8) {
        self.bytes.push(value);
    }

    pub(crate) fn u32(&mut self, value: u32) {
        self.raw(&value.to_le_bytes());
    }

    pub(crate) fn u64(&mut self, value: u64) {
        self.raw(&value.to_le_bytes());
    }

    pub(crate) fn f64(&mut self, value: f64) {
        self.raw(&value.to_le_bytes());
    }

    pub(crate) fn text(&mut self, text: &str) {
        self.u64(text.len() as u64);
        self.raw(text.as_bytes());
    }

    pub(crate) fn list<T>(&mut self, items: &[T], mut write: impl FnMut(&mut Self, &T)) {
        self.u64(items.len() as u64);
        for item in items {
            write(self, item);
        }
    }
}

/// Bytes being read; whatever is missing or too much is an error.
#[derive(Debug)]
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
    /// Of the format.
    version: u32,
}

impl<'a> Reader<'a> {
    /// Reads the version, which comes first.
    pub(crate) fn new(bytes: &'a [u8]) -> Result<Self> {
        let mut reader = Self { rest: bytes, version: 0 };
        reader.version = u32::from_le_bytes(reader.array()?);
        Ok(reader)
    }

    pub(crate) fn version(&self) -> u32 {
        self.version
    }

    pub(crate) fn end(&self) -> Result<()> {
        if self.rest.is_empty() { Ok(()) } else { Err(wrong("bytes after the end of the model")) }
    }

    pub(crate) fn u8(&mut self) -> Result<u8> {
        Ok(self.take(1)?[0])
    }

    pub(crate) fn u32(&mut self) -> Result<u32> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    pub(crate) fn u64(&mut self) -> Result<u64> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    pub(crate) fn f64(&mut self) -> Result<f64> {
        Ok(f64::from_le_bytes(self.array()?))
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        Ok(self.take(N)?.try_into().expect("as many bytes as were taken"))
    }

    fn take(&mut self, n: usize) -> Result<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(n).ok_or_else(|| wrong("it ends too early"))?;
        self.rest = rest;
        Ok(taken)
    }

    /// A list whose items take at least `size` bytes each, so that no length asks for more memory than
    /// the file has.
    pub(crate) fn list<T>(
        &mut self,
        size: usize,
        mut read: impl FnMut(&mut Self) -> Result<T>,
    ) -> Result<Vec<T>> {
        let n = self.u64()?;
        if n > (self.rest.len() / size) as u64 {
            return Err(wrong("a list that is longer than the file"));
        }
        (0..n).map(|_| read(self)).collect()
    }

    pub(crate) fn text(&mut self) -> Result<String> {
        let n = usize::try_from(self.u64()?).map_err(|_| wrong("a text that is longer than the file"))?;
        let text = str::from_utf8(self.take(n)?).map_err(|_| wrong("a text that is not UTF-8"))?;
        Ok(text.to_owned())
    }

    pub(crate) fn choice<T: Copy>(&mut self, options: &[T]) -> Result<T> {
        let i = usize::from(self.u8()?);
        options.get(i).copied().ok_or_else(|| wrong("an option that does not exist"))
    }
}

pub(crate) fn wrong(what: &str) -> Error {
    Error::ModelFile(what.into())
}

/// Values that are read back as a model would be made from them are refused as such.
pub(crate) fn as_file<T>(result: Result<T>) -> Result<T> {
    result.map_err(|error| match error {
        Error::Interrupted => error,
        error => Error::ModelFile(error.to_string()),
    })
}

pub(crate) fn write_label(writer: &mut Writer, label: &Label) {
    writer.list(&label.to_bytes(), |writer, byte| writer.u8(*byte));
}

pub(crate) fn read_label(reader: &mut Reader<'_>) -> Result<Label> {
    let bytes = reader.list(1, Reader::u8)?;
    Label::from_bytes(&bytes).ok_or_else(|| wrong("a label that is none"))
}

pub(crate) fn write_classifier(writer: &mut Writer, model: &MondrianClassifier, annotation: &str) {
    writer.f64(model.discount);
    // Labels of rows that left are forgotten, too.
    let codes = model.classes.renumbered(0..);
    writer.list(&model.classes(), write_label);
    writer.list(&model.classes.declared(), write_label);
    write_forest(writer, &model.forest, annotation);
    for class in targets(&model.forest) {
        writer.u32(codes[class as usize]);
    }
}

pub(crate) fn read_classifier(reader: &mut Reader<'_>, run: &Run<'_>) -> Result<MondrianClassifier> {
    let discount = reader.f64()?;
    let labels = reader.list(8, read_label)?;
    let declared = reader.list(8, read_label)?;
    let stored = read_forest(reader)?;
    let codes = (0..stored.ids.len()).map(|_| reader.u32()).collect::<Result<Vec<u32>>>()?;
    as_file(stored.with_rows(|settings, domain, batch| {
        MondrianClassifier::fit(settings, discount, domain, batch, (&codes, &labels), &declared, run)
    }))
}

pub(crate) fn write_regressor(writer: &mut Writer, model: &MondrianRegressor, annotation: &str) {
    let settings = &model.settings;
    writer.u8(settings.posterior as u8);
    writer.u8(settings.rule as u8);
    writer.u8(settings.noise as u8);
    let fixed = settings.hyperparameters.map(|h| [h.mu, h.gamma1, h.gamma2, h.noise_variance]);
    writer.list(fixed.as_ref().map_or(&[], <[f64; 4]>::as_slice), |writer, value| writer.f64(*value));
    writer.list(settings.noise_variance.as_slice(), |writer, value| writer.f64(*value));
    write_forest(writer, &model.forest, annotation);
    let targets: Vec<f64> = targets(&model.forest);
    for y in targets {
        writer.f64(y);
    }
}

pub(crate) fn read_regressor(reader: &mut Reader<'_>, run: &Run<'_>) -> Result<MondrianRegressor> {
    let posterior = reader.choice(&[Posterior::Exact, Posterior::Fast, Posterior::Joint])?;
    let rule = reader.choice(&[
        HyperparameterRule::MarginalLikelihood,
        HyperparameterRule::Heuristic,
        HyperparameterRule::LeaveOneOut,
    ])?;
    let noise = reader.choice(&[Noise::Global, Noise::Local])?;
    let hyperparameters = match reader.list(8, Reader::f64)?[..] {
        [] => None,
        [mu, gamma1, gamma2, noise_variance] => Some(Hyperparameters { mu, gamma1, gamma2, noise_variance }),
        _ => return Err(wrong("hyperparameters that are not four")),
    };
    let noise_variance = match reader.list(8, Reader::f64)?[..] {
        [] => None,
        [variance] => Some(variance),
        _ => return Err(wrong("more than one noise variance")),
    };
    let regression = RegressionSettings { posterior, rule, noise, hyperparameters, noise_variance };
    let stored = read_forest(reader)?;
    let targets = (0..stored.ids.len()).map(|_| reader.f64()).collect::<Result<Vec<f64>>>()?;
    as_file(stored.with_rows(|settings, domain, batch| {
        MondrianRegressor::fit(settings, regression, domain, batch, &targets, run)
    }))
}

/// Targets in order of arrival.
fn targets<P: Statistics>(forest: &Forest<P>) -> Vec<P::Target> {
    forest.roster.rows().map(|row| forest.targets[row as usize]).collect()
}

fn write_forest<P: Statistics>(writer: &mut Writer, forest: &Forest<P>, annotation: &str) {
    let settings = &forest.settings;
    writer.u64(settings.n_estimators as u64);
    writer.f64(settings.lifetime);
    writer.u64(settings.min_samples_split as u64);
    writer.u8(settings.predictive as u8);
    writer.u64(settings.seed);
    writer.text(annotation);
    let domain = &forest.domain;
    for values in [domain.low(), domain.high(), domain.weights()] {
        writer.list(values, |writer, value| writer.f64(*value));
    }
    for map in domain.maps().unwrap_or_default() {
        for values in [map.knots(), map.shares()] {
            writer.list(values, |writer, value| writer.f64(*value));
        }
    }
    writer.u64(forest.roster.next_id());
    let rows: Vec<u32> = forest.roster.rows().collect();
    writer.list(&rows, |writer, row| writer.u64(forest.roster.id(*row)));
    let values = || rows.iter().flat_map(|&row| forest.row_values(row));
    // Not the width that the forest has: rows that left may have needed it.
    let narrow = values().all(|value| f32::exact(value).is_some());
    writer.u8(if narrow { 4 } else { 8 });
    for value in values() {
        if narrow { writer.raw(&(value as f32).to_le_bytes()) } else { writer.f64(value) }
    }
}

/// What a file says of a forest, targets apart.
struct StoredForest {
    settings: MondrianSettings,
    annotation: String,
    domain: Domain,
    next_id: u64,
    ids: Vec<u64>,
    values: Values,
}

fn read_forest(reader: &mut Reader<'_>) -> Result<StoredForest> {
    let to_usize = |value: u64| usize::try_from(value).map_err(|_| wrong("a number that is too large"));
    let settings = MondrianSettings {
        n_estimators: to_usize(reader.u64()?)?,
        lifetime: reader.f64()?,
        min_samples_split: to_usize(reader.u64()?)?,
        predictive: reader.choice(&[Predictive::Averaged, Predictive::Realised])?,
        seed: reader.u64()?,
    };
    let annotation = reader.text()?;
    let low = reader.list(8, Reader::f64)?;
    let high = reader.list(8, Reader::f64)?;
    let weights = reader.list(8, Reader::f64)?;
    let mut domain = as_file(Domain::new(low, high, Some(weights)))?;
    if reader.version >= MAPS {
        let maps = read_maps(reader, domain.n_features())?;
        domain = as_file(domain.with_maps(maps))?;
    }
    let next_id = reader.u64()?;
    let ids = reader.list(8, Reader::u64)?;
    let width = usize::from(reader.u8()?);
    let size = (ids.len() as u64)
        .checked_mul(domain.n_features() as u64)
        .and_then(|n| n.checked_mul(width as u64))
        .ok_or_else(|| wrong("a table that is too large"))?;
    let bytes = reader.take(to_usize(size)?)?;
    let values = match width {
        4 => Values::F32(bytes.as_chunks().0.iter().map(|&bytes| f32::from_le_bytes(bytes)).collect()),
        8 => Values::F64(bytes.as_chunks().0.iter().map(|&bytes| f64::from_le_bytes(bytes)).collect()),
        _ => return Err(wrong("values that have neither 4 nor 8 bytes")),
    };
    Ok(StoredForest { settings, annotation, domain, next_id, ids, values })
}

fn read_maps(reader: &mut Reader<'_>, n_features: usize) -> Result<Vec<FeatureMap>> {
    (0..n_features)
        .map(|_| {
            let knots = reader.list(8, Reader::f64)?;
            let shares = reader.list(8, Reader::f64)?;
            as_file(FeatureMap::new(knots, shares))
        })
        .collect()
}

impl StoredForest {
    /// Makes a model again from its rows.
    fn with_rows<M: Restored>(
        self,
        fit: impl FnOnce(MondrianSettings, Domain, Batch<'_>) -> Result<M>,
    ) -> Result<M> {
        let d = self.domain.n_features();
        let rows = self.values.rows(d)?;
        let mut model = fit(self.settings, self.domain, Batch { rows, ids: Some(&self.ids) })?;
        model.restore(self.next_id, self.annotation);
        Ok(model)
    }
}

/// A model that is to go on as if it had never been saved.
trait Restored {
    fn restore(&mut self, next_id: u64, annotation: String);
}

impl Restored for MondrianClassifier {
    fn restore(&mut self, next_id: u64, annotation: String) {
        self.forest.roster.set_next_id(next_id);
        self.forest.annotation = annotation;
    }
}

impl Restored for MondrianRegressor {
    fn restore(&mut self, next_id: u64, annotation: String) {
        self.forest.roster.set_next_id(next_id);
        self.forest.annotation = annotation;
    }
}
