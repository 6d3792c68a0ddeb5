//! The versioned file that Rust and Python share.
//!
//! A forest is a function of its seed, settings and rows, so the file holds just these; loading draws the
//! trees again, to the same bits. So no file, however it was made, can hold trees that are not a
//! forest's. Everything is little-endian:
//!
//! | bytes | what |
//! | --- | --- |
//! | 8 | `BOSCAGE` and a zero |
//! | 4 | format version: 2 if features have maps, else 1 |
//! | 1 | model: 1 classifier, 2 regressor, 3 Bayesian tree classifier, 4 Bayesian tree regressor,
//! 5 BART classifier, 6 BART regressor |
//! | ... | settings, domain, rows in order of arrival with their ids, as written below |
//! | 32 | SHA-256 of all bytes before |
//!
//! Bayesian trees and BART keep no rows: their files hold the trees, which are checked on reading, and of BART where
//! its chains stand, which is checked against the rows when they go on.

mod bart;
mod bayes;
mod format;

use std::path::Path;

use sha2::{Digest, Sha256};

use crate::bart::classifier::BartClassifier;
use crate::bart::regressor::BartRegressor;
use crate::bayes::classifier::BayesianTreeClassifier;
use crate::bayes::regressor::BayesianTreeRegressor;
use crate::control::Run;
use crate::error::{Error, Result};
use crate::mondrian::classification::classifier::MondrianClassifier;
use crate::mondrian::regression::regressor::MondrianRegressor;
use format::{NEWEST, Reader, Writer};

const MAGIC: &[u8; 8] = b"BOSCAGE\0";
const HASH: usize = 32;

/// A model of any kind, as a file may hold.
#[derive(Debug, Clone)]
pub enum AnyModel {
    /// A Mondrian forest classifier.
    Classifier(Box<MondrianClassifier>),
    /// A Mondrian forest regressor.
    Regressor(Box<MondrianRegressor>),
    /// Bayesian decision trees for classes.
    BayesianTreeClassifier(Box<BayesianTreeClassifier>),
    /// Bayesian decision trees for numbers.
    BayesianTreeRegressor(Box<BayesianTreeRegressor>),
    /// BART for classes.
    BartClassifier(Box<BartClassifier>),
    /// BART for numbers.
    BartRegressor(Box<BartRegressor>),
}

/// The kinds of model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ModelKind {
    /// A Mondrian forest classifier.
    Classifier = 1,
    /// A Mondrian forest regressor.
    Regressor = 2,
    /// Bayesian decision trees for classes.
    BayesianTreeClassifier = 3,
    /// Bayesian decision trees for numbers.
    BayesianTreeRegressor = 4,
    /// BART for classes.
    BartClassifier = 5,
    /// BART for numbers.
    BartRegressor = 6,
}

impl ModelKind {
    /// The kind in a word.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Classifier => "classifier",
            Self::Regressor => "regressor",
            Self::BayesianTreeClassifier => "Bayesian tree classifier",
            Self::BayesianTreeRegressor => "Bayesian tree regressor",
            Self::BartClassifier => "BART classifier",
            Self::BartRegressor => "BART regressor",
        }
    }
}

/// The kind of model that some bytes say they hold; the model itself may still turn out to be broken.
///
/// # Errors
/// [`Error::ModelFile`].
pub fn model_kind(bytes: &[u8]) -> Result<ModelKind> {
    match bytes.strip_prefix(MAGIC).and_then(|rest| rest.get(4)) {
        Some(1) => Ok(ModelKind::Classifier),
        Some(2) => Ok(ModelKind::Regressor),
        Some(3) => Ok(ModelKind::BayesianTreeClassifier),
        Some(4) => Ok(ModelKind::BayesianTreeRegressor),
        Some(5) => Ok(ModelKind::BartClassifier),
        Some(6) => Ok(ModelKind::BartRegressor),
        Some(kind) => Err(Error::ModelFile(format!("unknown kind of model {kind}"))),
        None => Err(Error::ModelFile("it does not begin with BOSCAGE".into())),
    }
}

impl AnyModel {
    /// The kind of the model in a word.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Classifier(_) => ModelKind::Classifier.name(),
            Self::Regressor(_) => ModelKind::Regressor.name(),
            Self::BayesianTreeClassifier(_) => ModelKind::BayesianTreeClassifier.name(),
            Self::BayesianTreeRegressor(_) => ModelKind::BayesianTreeRegressor.name(),
            Self::BartClassifier(_) => ModelKind::BartClassifier.name(),
            Self::BartRegressor(_) => ModelKind::BartRegressor.name(),
        }
    }

    /// The model that some bytes hold.
    ///
    /// # Errors
    /// [`Error::ModelFile`] whenever the bytes are not exactly what a model was saved as; an interrupt.
    pub fn from_bytes(bytes: &[u8], run: &Run<'_>) -> Result<Self> {
        let wrong = |what: &str| Error::ModelFile(what.into());
        if !bytes.starts_with(MAGIC) {
            return Err(wrong("it does not begin with BOSCAGE"));
        }
        let split = bytes.len().checked_sub(HASH).filter(|&n| n >= MAGIC.len() + 5);
        let (content, hash) = bytes.split_at(split.ok_or_else(|| wrong("it ends too early"))?);
        let mut reader = Reader::new(&content[MAGIC.len()..])?;
        let version = reader.version();
        if !(1..=NEWEST).contains(&version) {
            let found = format!("format version {version}; this library reads those up to {NEWEST}");
            return Err(Error::ModelFile(found));
        }
        if Sha256::digest(content).as_slice() != hash {
            return Err(wrong("its checksum does not match: it was changed or cut off"));
        }
        let kind = model_kind(bytes)?;
        reader.u8()?;
        let model = match kind {
            ModelKind::Classifier => Self::Classifier(Box::new(format::read_classifier(&mut reader, run)?)),
            ModelKind::Regressor => Self::Regressor(Box::new(format::read_regressor(&mut reader, run)?)),
            ModelKind::BayesianTreeClassifier => {
                Self::BayesianTreeClassifier(Box::new(bayes::read_classifier(&mut reader)?))
            }
            ModelKind::BayesianTreeRegressor => {
                Self::BayesianTreeRegressor(Box::new(bayes::read_regressor(&mut reader)?))
            }
            ModelKind::BartClassifier => Self::BartClassifier(Box::new(bart::read_classifier(&mut reader)?)),
            ModelKind::BartRegressor => Self::BartRegressor(Box::new(bart::read_regressor(&mut reader)?)),
        };
        reader.end()?;
        Ok(model)
    }
}

/// Loads whatever model a file holds.
///
/// # Errors
/// [`Error::Io`], or as [`AnyModel::from_bytes`].
pub fn load(path: impl AsRef<Path>, run: &Run<'_>) -> Result<AnyModel> {
    let path = path.as_ref();
    let bytes = std::fs::read(path).map_err(|error| io(path, &error))?;
    AnyModel::from_bytes(&bytes, run)
}

/// `to_bytes` and `save`; `$version` is the format that a model needs.
macro_rules! in_files {
    ($model:ty, $kind:ident, $write:path, $version:expr) => {
        impl $model {
            /// The model as bytes, from which [`AnyModel::from_bytes`] makes it again.
            #[must_use]
            pub fn to_bytes(&self) -> Vec<u8> {
                self.to_bytes_annotated(self.annotation())
            }

            /// The same with another annotation; the model keeps its own.
            #[must_use]
            pub fn to_bytes_annotated(&self, annotation: &str) -> Vec<u8> {
                let version: fn(&Self) -> u32 = $version;
                sealed(ModelKind::$kind, version(self), |writer| $write(writer, self, annotation))
            }

            /// Writes the model to a file, whole or not at all.
            ///
            /// # Errors
            /// [`Error::Io`].
            pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
                self.save_annotated(path, self.annotation())
            }

            /// The same with another annotation; the model keeps its own.
            ///
            /// # Errors
            /// [`Error::Io`].
            pub fn save_annotated(&self, path: impl AsRef<Path>, annotation: &str) -> Result<()> {
                write(path.as_ref(), &self.to_bytes_annotated(annotation))
            }
        }
    };
}

in_files!(MondrianClassifier, Classifier, format::write_classifier, |model| format::version_of(
    model.domain()
));
in_files!(MondrianRegressor, Regressor, format::write_regressor, |model| format::version_of(model.domain()));
in_files!(BayesianTreeClassifier, BayesianTreeClassifier, bayes::write_classifier, |_| format::PLAIN);
in_files!(BayesianTreeRegressor, BayesianTreeRegressor, bayes::write_regressor, |_| format::PLAIN);
in_files!(BartClassifier, BartClassifier, bart::write_classifier, |_| format::PLAIN);
in_files!(BartRegressor, BartRegressor, bart::write_regressor, |_| format::PLAIN);

fn sealed(kind: ModelKind, version: u32, content: impl FnOnce(&mut Writer)) -> Vec<u8> {
    let mut writer = Writer::default();
    writer.raw(MAGIC);
    writer.u32(version);
    writer.u8(kind as u8);
    content(&mut writer);
    let hash = Sha256::digest(writer.bytes());
    writer.raw(&hash);
    writer.into_bytes()
}

/// Through a second file in the same folder, so that a full disk or a crash leaves the old one.
fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.part", std::process::id()));
    let part = path.with_file_name(name);
    std::fs::write(&part, bytes).and_then(|()| std::fs::rename(&part, path)).map_err(|error| {
        // Nothing to save of it; the first error is the one to tell.
        let _ = std::fs::remove_file(&part);
        io(path, &error)
    })
}

fn io(path: &Path, error: &std::io::Error) -> Error {
    Error::Io { path: path.display().to_string(), message: error.to_string() }
}
