//! The fields of a forest's domain: ranges, weights, maps, substitutes for missing values, and categories.

use super::format::{CATEGORIES, CUT_FEATURES, ITEM, MAPS, PRIOR, Reader, SUBSTITUTES, Writer};
use crate::error::Result;
use crate::mondrian::process::categories::Categories;
use crate::mondrian::process::domain::Domain;
use crate::mondrian::process::feature_map::FeatureMap;
use crate::mondrian::process::substitute::{Substitute, SubstituteTerm};

pub(super) fn write_domain(writer: &mut Writer, domain: &Domain, version: u32) {
    for values in [domain.low(), domain.high(), domain.weights()] {
        writer.list(values, |writer, value| writer.f64(*value));
    }
    if version >= CUT_FEATURES {
        writer.u8(u8::from(domain.has_every_coordinate()));
    }
    if version >= PRIOR {
        writer.u8(u8::from(domain.maps().is_some()));
    }
    for map in domain.maps().unwrap_or_default() {
        for values in [map.knots(), map.shares()] {
            writer.list(values, |writer, value| writer.f64(*value));
        }
    }
    if version >= SUBSTITUTES {
        writer.u8(u8::from(domain.substitutes().is_some()));
    }
    for Substitute { centre, terms } in domain.substitutes().unwrap_or_default() {
        writer.f64(*centre);
        writer.list(terms, |writer, term| {
            writer.u32(term.feature);
            writer.f64(term.slope);
            writer.f64(term.from);
        });
    }
    if version >= CATEGORIES {
        writer.list(domain.categories(), |writer, (feature, categories)| {
            writer.u32(*feature);
            writer.list(categories.labels(), Writer::label);
            writer.list(categories.places(), |writer, place| writer.f64(*place));
            writer.f64(categories.missing());
        });
    }
}

pub(super) fn read_domain(reader: &mut Reader<'_>) -> Result<Domain> {
    let low = reader.f64s("low")?;
    let low_at = reader.last();
    let high = reader.f64s("high")?;
    let weights = reader.f64s("weights")?;
    let domain = Domain::new(low, high, Some(weights)).map_err(|error| reader.refused_at(low_at, error))?;
    let domain = if reader.version < CUT_FEATURES || reader.flag("has_every_coordinate")? {
        domain.with_every_coordinate()
    } else {
        domain
    };
    let has_maps = if reader.version < PRIOR { reader.version >= MAPS } else { reader.flag("has_maps")? };
    let n_features = domain.n_features();
    let domain = if has_maps {
        let maps = reader.list_of("maps", n_features, |reader| {
            let knots = reader.f64s("knots")?;
            let shares = reader.f64s("shares")?;
            reader.checked(FeatureMap::new(knots, shares))
        })?;
        reader.checked(domain.with_maps(maps))?
    } else {
        domain
    };
    let domain = read_substitutes(reader, domain)?;
    if reader.version < CATEGORIES {
        return Ok(domain);
    }
    let categories = reader.list("categories", CATEGORIES_BYTES, |reader| {
        let feature = reader.u32("feature")?;
        let labels = reader.list("labels", 8, |reader| reader.label(ITEM))?;
        let places = reader.f64s("places")?;
        let missing = reader.f64("missing")?;
        Ok((feature, reader.checked(Categories::new(labels, places, missing))?))
    })?;
    reader.checked(domain.with_categories(categories))
}

fn read_substitutes(reader: &mut Reader<'_>, domain: Domain) -> Result<Domain> {
    if reader.version < SUBSTITUTES || !reader.flag("has_substitutes")? {
        return Ok(domain);
    }
    let n_features = domain.n_features();
    let substitutes = reader.list_of("substitutes", n_features, |reader| {
        let centre = reader.f64("centre")?;
        let terms = reader.list("terms", TERM_BYTES, |reader| {
            Ok(SubstituteTerm {
                feature: reader.u32("feature")?,
                slope: reader.f64("slope")?,
                from: reader.f64("from")?,
            })
        })?;
        Ok(Substitute { centre, terms })
    })?;
    reader.checked(domain.with_substitutes(Some(substitutes)))
}

/// A term of a substitute: a feature and two numbers.
const TERM_BYTES: usize = 20;

/// The least bytes of a feature's categories: its number, the lengths of two lists and a number.
const CATEGORIES_BYTES: usize = 28;
