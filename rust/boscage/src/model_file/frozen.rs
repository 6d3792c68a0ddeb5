//! The fields of forests without rows: settings, domain, and what trees are made of, but for their cuts.

use super::domain::{read_domain, write_domain};
use super::format::{CUT_FEATURES, FROZEN, ITEM, Reader, Writer};
use super::mondrian::{read_settings, write_settings};
use crate::control::Run;
use crate::error::Result;
use crate::mondrian::cells::plan::RowExtent;
use crate::mondrian::classification::frozen::{self as classes, FrozenClassifier};
use crate::mondrian::classification::settings::check_discount;
use crate::mondrian::forest::row_values::RowValues;
use crate::mondrian::frozen::forest::{FrozenForest, check_realised};
use crate::mondrian::frozen::posterior::FrozenPosterior;
use crate::mondrian::frozen::record::{Step, TreeRecord};
use crate::mondrian::process::domain::{Domain, MAX_LEVEL};
use crate::mondrian::regression::frozen::{self as numbers, FrozenRegressor};
use crate::mondrian::regression::hierarchy::belief_propagation::{CoarsePrior, Hyperparameters};

/// The oldest version that can hold a forest of a domain.
pub(super) fn version(domain: &Domain) -> u32 {
    if domain.has_every_coordinate() { FROZEN } else { CUT_FEATURES }
}

pub(super) fn write_classifier(writer: &mut Writer, model: &FrozenClassifier, annotation: &str) {
    writer.f64(model.discount());
    writer.list(&model.classes(), Writer::label);
    for n_rows in model.n_rows_of() {
        writer.u64(n_rows);
    }
    write_forest(writer, model, annotation);
}

pub(super) fn read_classifier(reader: &mut Reader<'_>, run: &Run<'_>) -> Result<FrozenClassifier> {
    let discount = reader.f64("discount")?;
    let discount_at = reader.last();
    let labels = reader.list("classes", 8, |reader| reader.label(ITEM))?;
    let labels_at = reader.last();
    let n_rows_of = reader.list_of("n_rows_of", labels.len(), |reader| match reader.u64(ITEM)? {
        0 => Err(reader.expected("at least one row of each class", 0)),
        n => Ok(n),
    })?;
    check_discount(discount).map_err(|error| reader.refused_at(discount_at, error))?;
    let posterior = classes::posterior(discount, &labels, &n_rows_of);
    let posterior = posterior.map_err(|error| reader.refused_at(labels_at, error))?;
    read_forest(reader, posterior, run)
}

pub(super) fn write_regressor(writer: &mut Writer, model: &FrozenRegressor, annotation: &str) {
    let Hyperparameters { mu, gamma1, gamma2, noise_variance, delay, coarse } = model.hyperparameters();
    for value in [mu, gamma1, gamma2, noise_variance, delay, coarse.variance, coarse.rate] {
        writer.f64(value);
    }
    write_forest(writer, model, annotation);
}

pub(super) fn read_regressor(reader: &mut Reader<'_>, run: &Run<'_>) -> Result<FrozenRegressor> {
    let hyperparameters = reader.group("hyperparameters", |reader| {
        Ok(Hyperparameters {
            mu: reader.finite("mu")?,
            gamma1: reader.finite("gamma1")?,
            gamma2: reader.finite("gamma2")?,
            noise_variance: reader.finite("noise_variance")?,
            delay: reader.finite("delay")?,
            coarse: CoarsePrior {
                variance: reader.finite("coarse_variance")?,
                rate: reader.finite("coarse_rate")?,
            },
        })
    })?;
    let posterior = reader.checked(numbers::posterior(hyperparameters))?;
    read_forest(reader, posterior, run)
}

fn write_forest<P: FrozenPosterior>(writer: &mut Writer, model: &FrozenForest<P>, annotation: &str) {
    write_settings(writer, model.settings());
    writer.text(annotation);
    write_domain(writer, model.domain(), version(model.domain()));
    writer.u32(model.extent.level);
    writer.u8(if model.extent.is_single { 4 } else { 8 });
    for tree in 0..model.settings().n_estimators {
        let record = model.record(tree);
        writer.list(&record.steps, |writer, &step| writer.u8(step as u8));
        writer.list(&record.n_rows, |writer, &n| writer.u32(n));
        writer.list(&record.words, |writer, &word| writer.u64(word));
        match &record.bounds {
            RowValues::F32(bounds) => writer.list(bounds, |writer, bound| writer.raw(&bound.to_le_bytes())),
            RowValues::F64(bounds) => writer.list(bounds, |writer, &bound| writer.f64(bound)),
        }
    }
}

fn read_forest<P: FrozenPosterior>(
    reader: &mut Reader<'_>,
    posterior: P,
    run: &Run<'_>,
) -> Result<FrozenForest<P>> {
    let settings = reader.group("settings", read_settings)?;
    reader.checked(settings.check())?;
    reader.checked(check_realised(&settings))?;
    let annotation = reader.text("annotation")?;
    let domain = reader.group("domain", read_domain)?;
    let level = reader.u32("level")?;
    if level > MAX_LEVEL {
        return Err(reader.expected(format!("at most {MAX_LEVEL}"), level));
    }
    let width = reader.u8("value_width")?;
    if width != 4 && width != 8 {
        return Err(reader.expected("4 or 8 bytes", width));
    }
    let extent = RowExtent { level, is_single: width == 4 };
    let records =
        reader.list_of("trees", settings.n_estimators, |reader| read_record(reader, extent.is_single))?;
    let made = FrozenForest::of_records(settings, domain, extent, posterior, &records, run);
    let mut model = reader.checked(made)?;
    model.set_annotation(annotation);
    Ok(model)
}

fn read_record(reader: &mut Reader<'_>, is_single: bool) -> Result<TreeRecord> {
    let steps = reader.list("steps", 1, |reader| {
        let byte = reader.u8(ITEM)?;
        reader.checked(Step::of_byte(byte))
    })?;
    let n_rows = reader.list("leaf_rows", 4, |reader| reader.u32(ITEM))?;
    let words = reader.list("words", 8, |reader| reader.u64(ITEM))?;
    let bounds = if is_single {
        RowValues::F32(reader.list("bounds", 4, |reader| Ok(f32::from_le_bytes(reader.array(ITEM)?)))?)
    } else {
        RowValues::F64(reader.f64s("bounds")?)
    };
    Ok(TreeRecord { steps, n_rows, words, bounds })
}
