//! The classes that a forest has seen: their labels, their numbers of rows, and those that are declared.

use std::collections::BTreeMap;

use crate::data::Label;
use crate::error::{Error, Result};
use crate::mondrian::classification::class_counts::Class;
use crate::validate;

/// The classes that a forest has seen.
#[derive(Debug, Clone, Default)]
pub(crate) struct ClassTable {
    pub(super) labels: Vec<Label>,
    by_label: BTreeMap<Label, Class>,
    pub(super) n_rows: Vec<usize>,
    pub(super) declared: Vec<bool>,
    /// Classes whose label is forgotten, to be given to new labels.
    free: Vec<Class>,
    /// Whether some class may have lost its last row.
    has_lost: bool,
}

impl ClassTable {
    /// The class of every label; adds new labels.
    pub(super) fn insert(&mut self, labels: &[Label]) -> Vec<Class> {
        labels
            .iter()
            .map(|label| {
                *self.by_label.entry(label.clone()).or_insert_with(|| match self.free.pop() {
                    Some(class) => {
                        self.labels[class as usize] = label.clone();
                        class
                    }
                    None => {
                        self.labels.push(label.clone());
                        self.n_rows.push(0);
                        self.declared.push(false);
                        self.labels.len() as Class - 1
                    }
                })
            })
            .collect()
    }

    /// Some labels, of the kind that all live classes have; as they are, if these have none or several.
    ///
    /// # Errors
    /// [`Error::NotMergeable`] for a label that has no equal of that kind.
    pub(super) fn in_own_kind(&self, labels: &[Label]) -> Result<Vec<Label>> {
        let own = self.live_labels();
        match own.first().filter(|first| own.iter().all(|label| label.kind() == first.kind())) {
            None => Ok(labels.to_vec()),
            Some(first) => {
                let what = "types of labels";
                labels
                    .iter()
                    .map(|label| label.as_kind_of(first).ok_or(Error::NotMergeable { what }))
                    .collect()
            }
        }
    }

    pub(super) fn is_live(&self, class: Class) -> bool {
        self.declared[class as usize] || self.n_rows[class as usize] > 0
    }

    /// Whether nobody knows of a row's class without the row.
    pub(super) fn goes_with_its_row(&self, class: Class) -> bool {
        self.n_rows[class as usize] == 1 && !self.declared[class as usize]
    }

    /// The place among the live classes of one that nobody knows of without one of its rows.
    pub(super) fn unknown_without(&self, class: Class) -> Option<usize> {
        let place = || self.live().iter().position(|&other| other == class);
        self.goes_with_its_row(class).then(place).flatten()
    }

    /// Classes that are declared or have rows, in order of label.
    pub(super) fn live(&self) -> Vec<Class> {
        self.by_label.values().copied().filter(|&class| self.is_live(class)).collect()
    }

    /// Labels of the live classes, in order.
    pub(super) fn live_labels(&self) -> Vec<Label> {
        self.live().into_iter().map(|class| self.labels[class as usize].clone()).collect()
    }

    /// The places of classes among those that are live, by class; others have any.
    pub(super) fn columns(&self) -> Vec<usize> {
        let mut columns = vec![0; self.labels.len()];
        self.live().iter().enumerate().for_each(|(i, &class)| columns[class as usize] = i);
        columns
    }

    /// Numbers by class, given the numbers of the live classes in order of label.
    pub(crate) fn renumbered(&self, numbers: impl IntoIterator<Item = Class>) -> Vec<Class> {
        let mut by_class = vec![0; self.labels.len()];
        for (class, number) in self.live().into_iter().zip(numbers) {
            by_class[class as usize] = number;
        }
        by_class
    }

    pub(crate) fn declared(&self) -> Vec<Label> {
        let declared = |(_, class): &(&Label, &Class)| self.declared[**class as usize];
        self.by_label.iter().filter(declared).map(|(label, _)| label.clone()).collect()
    }

    /// The classes of rows from indices into labels.
    pub(super) fn encode(&mut self, codes: &[u32], labels: &[Label]) -> Vec<Class> {
        let of_code = self.insert(labels);
        codes.iter().map(|&code| of_code[code as usize]).collect()
    }

    /// Forgets the labels of classes without rows; no tree may hold rows of them either.
    pub(super) fn drop_dead(&mut self) {
        if std::mem::take(&mut self.has_lost) {
            let dead: Vec<Class> =
                self.by_label.values().copied().filter(|&class| !self.is_live(class)).collect();
            for &class in &dead {
                self.by_label.remove(&self.labels[class as usize]);
            }
            self.free.extend(dead);
        }
    }

    pub(super) fn declare(&mut self, labels: &[Label]) {
        for class in self.insert(labels) {
            self.declared[class as usize] = true;
        }
    }

    /// Sets the numbers of rows that have some labels.
    ///
    /// # Errors
    /// [`Error::Length`] unless there is a number for each label.
    pub(super) fn set_counts(&mut self, labels: &[Label], n_rows_of: &[u64]) -> Result<()> {
        if n_rows_of.len() != labels.len() {
            let (found, expected, why) = (n_rows_of.len(), labels.len(), "one for each label");
            return Err(Error::Length { what: "n_rows_of", found, expected, why });
        }
        for (class, &n) in self.insert(labels).into_iter().zip(n_rows_of) {
            self.n_rows[class as usize] = n as usize;
        }
        Ok(())
    }

    /// Counts rows that came (`by` = 1) or left (`by` = -1).
    pub(super) fn count(&mut self, targets: &[Class], by: isize) {
        for &class in targets {
            let n = &mut self.n_rows[class as usize];
            *n = n.checked_add_signed(by).expect("no more rows go than came");
            self.has_lost |= *n == 0;
        }
    }
}

/// Checks that no label is NaN, and that labels are of the kind that all those before them have, if these have one.
///
/// # Errors
/// [`Error::InvalidSetting`].
pub(super) fn check_labels(before: &[Label], labels: &[Label]) -> Result<()> {
    let name = "labels of classes";
    let is_nan = |label: &Label| matches!(label, Label::Float(value) if value.is_nan());
    validate::check(name, !labels.iter().any(is_nan), "numbers", &"NaN")?;
    let Some(first) = before.first() else { return Ok(()) };
    let is_other = |label: &&Label| label.kind() != first.kind();
    match labels.iter().find(is_other).filter(|_| !before.iter().any(|label| is_other(&label))) {
        Some(label) => validate::check(name, false, "of one kind", &format!("{first} and {label}")),
        None => Ok(()),
    }
}

/// Checks that there is an index into the labels for every row, and the labels, which join others.
pub(super) fn check_codes<'a>(
    n_rows: usize,
    (codes, labels): (&'a [u32], &'a [Label]),
    before: &[Label],
) -> Result<(&'a [u32], &'a [Label])> {
    validate::check_n_targets(n_rows, codes.len())?;
    validate::check_codes(codes, labels.len())?;
    check_labels(before, labels)?;
    Ok((codes, labels))
}
