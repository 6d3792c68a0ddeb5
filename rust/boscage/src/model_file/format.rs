//! The bytes of a model file: fields one after the other, and the position of each when it is read.
//!
//! All numbers are little-endian. A text or a list is its length (8 bytes) followed by its contents. Names of
//! fields are not in the file; they are arguments on reading, and error messages name the byte and the field.

use std::fmt::{Debug, Display, Write as _};
use std::ops::Range;

use crate::data::labels::Label;
use crate::error::{Error, Result};

/// The first version.
pub(crate) const PLAIN: u32 = 1;
/// Version 1, and the maps of the features after their weights.
pub(crate) const MAPS: u32 = 2;
/// Version 1, with the counts of BART's steps by name.
pub(crate) const STEP_COUNTS: u32 = 3;
/// Version 2, with a flag before the maps, the scale of a regressor's prior, and a classifier's calibration.
pub(crate) const PRIOR: u32 = 4;
/// Version 4, with a classifier's posterior after its calibration.
pub(crate) const JOINT_CLASSES: u32 = 5;
/// Version 5, with a flag after the maps, and substitutes for missing values.
pub(crate) const SUBSTITUTES: u32 = 6;
/// Version 6, with a regressor's trend after the scale of its prior.
pub(crate) const TREND: u32 = 7;
/// Version 7, with the categories of features after the substitutes.
pub(crate) const CATEGORIES: u32 = 8;
/// Version 1 of Bayesian trees, and version 3 of BART, with a flag after each threshold: whether missing values go
/// right.
pub(crate) const MISSING_SIDES: u32 = 9;
/// Version 9, with the numbers of categories of features, and whether numbers are missing, before the trees.
pub(crate) const TREE_CATEGORIES: u32 = 10;
/// Version 10 of Bayesian trees, with the number of rows of each node and the sums of their weights.
pub(crate) const TREE_WEIGHTS: u32 = 11;
/// Version 8, with the weights of rows after their features.
pub(crate) const ROW_WEIGHTS: u32 = 12;
/// Version 12, with a flag before the weights of rows, and a regressor's joint kernel after its trend.
pub(crate) const JOINT_KERNEL: u32 = 13;
/// Version 13, with a classifier's joint kernel after its posterior.
pub(crate) const CLASS_KERNEL: u32 = 14;
/// Forests without rows.
pub(crate) const FROZEN: u32 = 15;
/// Version 13, with the rate of the prior's coarse part after a regressor's joint kernel.
pub(crate) const PRIOR_RATE: u32 = 16;
/// Version 16 or 15, with a flag after the weights of features: whether those of weight 0 have coordinates; sparse rows.
pub(crate) const CUT_FEATURES: u32 = 17;
/// Version 17, where a classifier's calibration may be 2.
pub(crate) const CLASS_SHARES: u32 = 18;
/// Version 18, with a flag after a classifier's joint kernel: whether there is a trend.
pub(crate) const CLASS_TREND: u32 = 19;
/// Version 19, with a flag before a regressor's rate of the prior's coarse part: whether left-out rows choose it.
pub(crate) const FITTED_PRIOR_RATE: u32 = 20;
/// Version 11 of Bayesian trees, and version 10 of BART, whose splits say the sides of missing values though none was missing.
pub(crate) const TREE_SIDES: u32 = 21;
/// Version 20, with what belongs to a regressor's hyperparameters that are given after the rate of the prior's coarse part.
pub(crate) const LEFT_OUT_FIT: u32 = 22;
/// With whether the joint posterior of that fit is the sum of infinitely many trees.
pub(crate) const LIMIT_FIT: u32 = 23;
/// The newest version.
pub(crate) const NEWEST: u32 = LIMIT_FIT;

/// A file that is being written.
#[derive(Debug, Default)]
pub(crate) struct Writer {
    bytes: Vec<u8>,
    /// Version of the file; fields of later versions are not written.
    pub(crate) version: u32,
}

impl Writer {
    pub(crate) fn of(version: u32) -> Self {
        Self { version, ..Self::default() }
    }

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

    pub(crate) fn label(&mut self, label: &Label) {
        self.list(&label.to_bytes(), |writer, byte| writer.u8(*byte));
    }
}

/// The name of list items that are single fields; the index of an item suffices.
pub(crate) const ITEM: &str = "";

/// The position of a field: its first byte, its name, and the number of groups and lists that contain it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    byte: usize,
    name: &'static str,
    depth: usize,
}

impl Place {
    /// The position some bytes later in the same field.
    pub(crate) fn plus(self, n_bytes: usize) -> Self {
        Self { byte: self.byte + n_bytes, ..self }
    }
}

/// A group or list that is being read, and the index of its current item.
#[derive(Debug)]
struct OpenGroup {
    name: &'static str,
    index: Option<u64>,
}

/// A file that is being read. Each method that reads a field takes its name. [`Reader::expected`] makes an
/// error about the field that was read last, which may be a number, a list or a group.
#[derive(Debug)]
pub(crate) struct Reader<'a> {
    bytes: &'a [u8],
    position: usize,
    levels: Vec<OpenGroup>,
    last: Place,
    /// Version of the file; fields of later versions are not read.
    pub(crate) version: u32,
    /// The trees of a forest that are drawn; `None` for all.
    pub(crate) share: Option<Range<usize>>,
    /// Every field read so far, with its path and its first byte.
    #[cfg(test)]
    pub(crate) fields: Vec<(String, usize)>,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        let last = Place { byte: 0, name: ITEM, depth: 0 };
        Self {
            bytes,
            position: 0,
            levels: Vec::new(),
            last,
            version: NEWEST,
            share: None,
            #[cfg(test)]
            fields: Vec::new(),
        }
    }

    pub(crate) fn u8(&mut self, name: &'static str) -> Result<u8> {
        Ok(self.take(name, 1)?[0])
    }

    pub(crate) fn u32(&mut self, name: &'static str) -> Result<u32> {
        Ok(u32::from_le_bytes(self.array(name)?))
    }

    pub(crate) fn u64(&mut self, name: &'static str) -> Result<u64> {
        Ok(u64::from_le_bytes(self.array(name)?))
    }

    pub(crate) fn f64(&mut self, name: &'static str) -> Result<f64> {
        Ok(f64::from_le_bytes(self.array(name)?))
    }

    /// A number that is neither NaN nor infinite.
    pub(crate) fn finite(&mut self, name: &'static str) -> Result<f64> {
        let value = self.f64(name)?;
        if value.is_finite() { Ok(value) } else { Err(self.expected("a finite number", value)) }
    }

    /// A count, or another number that must fit into `usize`.
    pub(crate) fn size(&mut self, name: &'static str) -> Result<usize> {
        let value = self.u64(name)?;
        usize::try_from(value).map_err(|_| self.expected(format!("at most {}", usize::MAX), value))
    }

    pub(crate) fn flag(&mut self, name: &'static str) -> Result<bool> {
        match self.u8(name)? {
            0 => Ok(false),
            1 => Ok(true),
            other => Err(self.expected("a flag (0 or 1)", other)),
        }
    }

    /// One of some options, stored as its index.
    pub(crate) fn choice<T: Copy + Debug>(&mut self, name: &'static str, options: &[T]) -> Result<T> {
        let found = self.u8(name)?;
        options.get(usize::from(found)).copied().ok_or_else(|| {
            let options: Vec<String> =
                options.iter().enumerate().map(|(i, option)| format!("{i} ({option:?})")).collect();
            self.expected(options.join(" or "), found)
        })
    }

    pub(crate) fn array<const N: usize>(&mut self, name: &'static str) -> Result<[u8; N]> {
        Ok(self.take(name, N)?.try_into().expect("as many bytes as were taken"))
    }

    /// Bytes with the same value in every file.
    pub(crate) fn begins_with(&mut self, name: &'static str, expected: &[u8]) -> Result<()> {
        self.last = self.place(name);
        let rest = &self.bytes[self.position..];
        let found = &rest[..rest.len().min(expected.len())];
        self.position += found.len();
        if found == expected {
            return Ok(());
        }
        let quoted = |bytes: &[u8]| format!("\"{}\"", bytes.escape_ascii());
        Err(self.expected(quoted(expected), quoted(found)))
    }

    /// The next `n` bytes.
    pub(crate) fn take(&mut self, name: &'static str, n: usize) -> Result<&'a [u8]> {
        self.last = self.place(name);
        let rest = &self.bytes[self.position..];
        let taken = rest.get(..n).ok_or_else(|| {
            self.expected(
                format!("{} bytes", grouped(n)),
                format!("the end of the file after {}", rest.len()),
            )
        })?;
        #[cfg(test)]
        self.fields.push((self.path(self.last), self.position));
        self.position += n;
        Ok(taken)
    }

    /// Reads a list whose items take at least `size` bytes each, so that a wrong length cannot request more
    /// memory than the file has.
    pub(crate) fn list<T>(
        &mut self,
        name: &'static str,
        size: usize,
        read: impl FnMut(&mut Self) -> Result<T>,
    ) -> Result<Vec<T>> {
        let n = self.length(name, size)?;
        let place = self.last;
        self.items(place, n as u64, read)
    }

    /// Reads the length of a list whose items take at least `size` bytes each.
    fn length(&mut self, name: &'static str, size: usize) -> Result<usize> {
        let n = self.u64(name)?;
        let most = (self.bytes.len() - self.position) / size;
        if n <= most as u64 {
            return Ok(n as usize);
        }
        let expected = format!("a length of at most {}, for which there are bytes left", grouped(most));
        Err(self.expected(expected, n))
    }

    /// Reads a list of `n` items whose length is not stored, since other fields determine it.
    pub(crate) fn list_of<T>(
        &mut self,
        name: &'static str,
        n: usize,
        read: impl FnMut(&mut Self) -> Result<T>,
    ) -> Result<Vec<T>> {
        self.items(self.place(name), n as u64, read)
    }

    fn items<T>(
        &mut self,
        place: Place,
        n: u64,
        mut read: impl FnMut(&mut Self) -> Result<T>,
    ) -> Result<Vec<T>> {
        let mut items = Vec::new();
        self.levels.push(OpenGroup { name: place.name, index: None });
        for i in 0..n {
            self.levels[place.depth].index = Some(i);
            items.push(read(self)?);
        }
        self.levels.pop();
        self.last = place;
        Ok(items)
    }

    /// Reads fields that form a group with a name.
    pub(crate) fn group<T>(
        &mut self,
        name: &'static str,
        read: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<T> {
        let place = self.place(name);
        self.levels.push(OpenGroup { name, index: None });
        let value = read(self)?;
        self.levels.pop();
        self.last = place;
        Ok(value)
    }

    pub(crate) fn f64s(&mut self, name: &'static str) -> Result<Vec<f64>> {
        self.list(name, 8, |reader| reader.f64(ITEM))
    }

    pub(crate) fn text(&mut self, name: &'static str) -> Result<String> {
        let n = self.length(name, 1)?;
        let place = self.last;
        let bytes = self.take(name, n)?;
        let text = str::from_utf8(bytes).map(str::to_owned).map_err(|error| {
            let valid = error.valid_up_to();
            self.expected_at(self.last.plus(valid), "UTF-8", format!("a byte {}", bytes[valid]))
        });
        self.last = place;
        text
    }

    pub(crate) fn label(&mut self, name: &'static str) -> Result<Label> {
        let bytes = self.list(name, 1, |reader| reader.u8(ITEM))?;
        let expected =
            "a label: 0 and a flag, 1 and an integer of 8 bytes, 2 and a float of 8 bytes, or 3 and a text";
        Label::from_bytes(&bytes)
            .ok_or_else(|| self.expected(expected, format!("the bytes {:?}", &bytes[..bytes.len().min(12)])))
    }

    /// Checks that no bytes are left.
    pub(crate) fn end(&mut self) -> Result<()> {
        let rest = self.bytes.len() - self.position;
        self.last = self.place("end");
        if rest == 0 {
            Ok(())
        } else {
            Err(self.expected("the end of the model", format!("{rest} more bytes")))
        }
    }

    /// The position of the field that was read last.
    pub(crate) fn last(&self) -> Place {
        self.last
    }

    fn place(&self, name: &'static str) -> Place {
        Place { byte: self.position, name, depth: self.levels.len() }
    }

    /// An error about the field that was read last.
    pub(crate) fn expected(&self, expected: impl Display, found: impl Display) -> Error {
        self.expected_at(self.last, expected, found)
    }

    /// An error about a field of the current group or list item, or of one that contains it.
    pub(crate) fn expected_at(&self, place: Place, expected: impl Display, found: impl Display) -> Error {
        self.wrong_at(place, format!("expected {expected}, found {found}"))
    }

    /// An error about the field that was read last, with a message other than expected and found.
    pub(crate) fn wrong(&self, what: impl Display) -> Error {
        self.wrong_at(self.last, what)
    }

    pub(crate) fn wrong_at(&self, place: Place, what: impl Display) -> Error {
        Error::ModelFile(format!("byte {}, {}: {what}", grouped(place.byte), self.path(place)))
    }

    /// The path of a field: the names of the groups and lists that contain it, and its own.
    fn path(&self, place: Place) -> String {
        let mut path = String::new();
        let mut add = |name: &str, index: Option<u64>| {
            let point = if path.is_empty() || name.is_empty() { "" } else { "." };
            let index = index.map(|index| format!("[{index}]")).unwrap_or_default();
            write!(path, "{point}{name}{index}").expect("a text takes any text");
        };
        self.levels[..place.depth].iter().for_each(|level| add(level.name, level.index));
        add(place.name, None);
        path
    }

    /// The result of a check of the field that was read last; an error names this field.
    pub(crate) fn checked<T>(&self, result: Result<T>) -> Result<T> {
        result.map_err(|error| self.refused_at(self.last, error))
    }

    /// Converts an error of the model into one about a field. An interrupt is kept.
    pub(crate) fn refused_at(&self, place: Place, error: Error) -> Error {
        match error {
            Error::Interrupted | Error::Memory { .. } => error,
            Error::InvalidSetting { name, expected, found } if name == place.name => {
                self.expected_at(place, expected, found)
            }
            error => self.wrong_at(place, error),
        }
    }
}

/// A number with separated thousands, such as 1,204.
fn grouped(n: usize) -> String {
    let digits = n.to_string();
    let mut grouped = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}
