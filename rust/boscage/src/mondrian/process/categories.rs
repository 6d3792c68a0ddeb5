//! Categories of a feature, and where each lies along it.
//!
//! A tree cuts features in two, so the categories of a feature lie in an order, each at a place of its own: any two can
//! be separated by one cut, and one from all others by two. Places are chosen once, as reference ranges are, and kept with
//! the forest. Rows hold places, so the process, its trees and predictions know nothing of categories.

use crate::data::labels::Label;
use crate::error::{Error, Result};
use crate::validate::MAX_VALUE;

/// The categories of one feature, their places, and the place of rows without a known category.
#[derive(Debug, Clone, PartialEq)]
pub struct Categories {
    labels: Vec<Label>,
    places: Vec<f64>,
    missing: f64,
}

impl Categories {
    /// Categories with a place each; `missing` is where missing values and unknown categories lie.
    ///
    /// # Errors
    /// Lengths that differ; labels that are not sorted or come twice; places, `missing` included, that are not within
    /// `+-4e307` or come twice.
    ///
    /// ```
    /// # use boscage::{Categories, Label};
    /// let labels = ["blue", "red"].map(|name| Label::Text(name.into()));
    /// let colours = Categories::new(labels.to_vec(), vec![1.0, 0.0], 0.5)?;
    /// assert_eq!(colours.place(&Label::Text("red".into())), 0.0);
    /// assert_eq!(colours.place(&Label::Text("mauve".into())), 0.5);
    /// # Ok::<(), boscage::Error>(())
    /// ```
    pub fn new(labels: Vec<Label>, places: Vec<f64>, missing: f64) -> Result<Self> {
        let (what, found, expected) = ("places of categories", places.len(), labels.len());
        if found != expected {
            return Err(Error::Length { what, found, expected, why: "one place a category" });
        }
        let wrong = |expected, found| Err(Error::InvalidSetting { name: "categories", expected, found });
        if let Some([first, second]) = labels.windows(2).find(|pair| pair[0] >= pair[1]) {
            return wrong("sorted labels, none of them twice", format!("{first:?} before {second:?}"));
        }
        let mut sorted: Vec<f64> = places.iter().copied().chain([missing]).map(|place| place + 0.0).collect();
        sorted.sort_unstable_by(f64::total_cmp);
        let is_possible = |place: &&f64| place.abs() <= MAX_VALUE;
        if let Some(place) = sorted.iter().find(|place| !is_possible(place)) {
            return wrong("places within +-4e307", format!("{place}"));
        }
        if let Some([place, ..]) = sorted.windows(2).find(|pair| pair[0] >= pair[1]) {
            return wrong("another place for each category and for missing values", format!("{place} twice"));
        }
        Ok(Self { labels, places, missing })
    }

    /// The categories, sorted.
    #[must_use]
    pub fn labels(&self) -> &[Label] {
        &self.labels
    }

    /// The place of each category.
    #[must_use]
    pub fn places(&self) -> &[f64] {
        &self.places
    }

    /// Where missing values and unknown categories lie.
    #[must_use]
    pub fn missing(&self) -> f64 {
        self.missing
    }

    /// The value that rows of a category have.
    #[must_use]
    pub fn place(&self, label: &Label) -> f64 {
        self.labels.binary_search(label).map_or(self.missing, |at| self.places[at])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(names: &[&str]) -> Vec<Label> {
        names.iter().map(|&name| Label::Text(name.into())).collect()
    }

    #[test]
    fn impossible_categories_are_refused() {
        let of =
            |names: &[&str], places: &[f64], missing| Categories::new(texts(names), places.to_vec(), missing);
        assert!(of(&["a", "b"], &[1.0, -1.0], 0.0).is_ok());
        assert!(of(&[], &[], 0.0).is_ok());
        assert!(of(&["b", "a"], &[1.0, -1.0], 0.0).is_err());
        assert!(of(&["a", "a"], &[1.0, -1.0], 0.0).is_err());
        assert!(of(&["a", "b"], &[1.0], 0.0).is_err());
        assert!(of(&["a", "b"], &[1.0, 1.0], 0.0).is_err());
        assert!(of(&["a", "b"], &[0.0, 1.0], -0.0).is_err());
        assert!(of(&["a", "b"], &[0.0, f64::NAN], 2.0).is_err());
        assert!(of(&["a", "b"], &[0.0, 1.0], f64::INFINITY).is_err());
    }
}
