//! The versioned file format that Rust and Python share.
//!
//! A Mondrian forest is a function of its seed, settings and rows, so its file holds only these, and loading
//! draws the same trees again, bit for bit. A manipulated file therefore cannot hold trees that are
//! inconsistent with their rows. Bayesian trees and BART do not keep rows: their files hold the trees, which
//! are checked on reading. A file of BART also holds the final state of each chain, which is checked against the
//! rows when chains are continued. Forests without rows keep none either: their files hold the trees without their
//! cuts, which are drawn again.
//!
//! | bytes | field | what |
//! | --- | --- | --- |
//! | 8 | `magic` | `BOSCAGE` and a zero |
//! | 4 | `format_version` | the oldest version that can hold the model |
//! | 1 | `kind` | the number of the kind of model |
//! | ... | | the model's fields, in the order in which its room here writes them |
//! | 32 | `checksum` | SHA-256 of all bytes before |
//!
//! All numbers are little-endian. The error for an invalid file names the first byte of the field at fault,
//! the field, what was expected there and what was found.

mod bart;
mod bayes;
mod domain;
mod format;
mod frozen;
mod mondrian;
mod save;
mod splits;
#[cfg(test)]
mod tests;

use std::ops::Range;
use std::path::Path;

use sha2::{Digest, Sha256};

use crate::bart::posterior::classifier::BartClassifier;
use crate::bart::posterior::regressor::BartRegressor;
use crate::bayes::posterior::classifier::BayesianTreeClassifier;
use crate::bayes::posterior::regressor::BayesianTreeRegressor;
use crate::control::Run;
use crate::error::{Error, Result};
use crate::mondrian::classification::classifier::MondrianClassifier;
use crate::mondrian::classification::frozen::FrozenClassifier;
use crate::mondrian::regression::frozen::FrozenRegressor;
use crate::mondrian::regression::regressor::MondrianRegressor;
use format::{NEWEST, Reader, Writer};

const MAGIC: &[u8; 8] = b"BOSCAGE\0";
const CHECKSUM: usize = 32;

/// Makes everything that depends on the kinds of model from the one table below.
macro_rules! model_kinds {
    ($(
        $number:literal $model:ident $name:literal $description:literal
        ($read:path, $write:path, $version:expr);
    )*) => {
        /// The kinds of model that a file can hold.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum ModelKind {
            $(
                #[doc = concat!("A ", $description, ".")]
                $model = $number,
            )*
        }

        impl ModelKind {
            /// All kinds, in the order of their numbers in files.
            pub const ALL: &[Self] = &[$(Self::$model),*];

            /// The kind's name, such as `mondrian_classifier`.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$model => $name,)*
                }
            }

            /// The kind in words, such as "Mondrian forest classifier".
            #[must_use]
            pub fn description(self) -> &'static str {
                match self {
                    $(Self::$model => $description,)*
                }
            }
        }

        /// A model of any kind.
        #[derive(Debug, Clone)]
        pub enum AnyModel {
            $(
                #[doc = concat!("A ", $description, ".")]
                $model(Box<$model>),
            )*
        }

        impl AnyModel {
            /// The kind of the model.
            #[must_use]
            pub fn kind(&self) -> ModelKind {
                match self {
                    $(Self::$model(_) => ModelKind::$model,)*
                }
            }

            /// Reads a model of any kind from bytes.
            ///
            /// # Errors
            /// [`Error::ModelFile`] if the bytes are not a saved model: it names the byte, the field, what
            /// was expected and what was found. [`Error::Interrupted`].
            pub fn from_bytes(bytes: &[u8], run: &Run<'_>) -> Result<Self> {
                read_model(bytes, |kind, reader| match kind {
                    $(ModelKind::$model => $read(reader, run).map(|model| Self::$model(Box::new(model))),)*
                })
            }
        }

        $(
            impl $model {
                /// Reads a model from bytes.
                ///
                /// # Errors
                /// [`Error::OtherKind`] if they hold a model of another kind; as [`AnyModel::from_bytes`].
                pub fn from_bytes(bytes: &[u8], run: &Run<'_>) -> Result<Self> {
                    read_model(bytes, |found, reader| match found {
                        ModelKind::$model => $read(reader, run),
                        _ => Err(Error::OtherKind {
                            found: found.description(),
                            expected: ModelKind::$model.description(),
                        }),
                    })
                }

                /// The model as bytes, which [`from_bytes`](Self::from_bytes) reads.
                #[must_use]
                pub fn to_bytes(&self) -> Vec<u8> {
                    self.to_bytes_annotated(self.annotation())
                }

                /// As [`to_bytes`](Self::to_bytes), with another annotation. The model's own is not changed.
                #[must_use]
                pub fn to_bytes_annotated(&self, annotation: &str) -> Vec<u8> {
                    let version: fn(&Self) -> u32 = $version;
                    sealed(ModelKind::$model, version(self), |writer| $write(writer, self, annotation))
                }

                /// Writes the model to a file, completely or not at all.
                ///
                /// # Errors
                /// [`Error::Io`] if the file cannot be written. An existing file is then unchanged, and
                /// nothing else is left in its folder.
                pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
                    self.save_annotated(path, self.annotation())
                }

                /// As [`save`](Self::save), with another annotation. The model's own is not changed.
                ///
                /// # Errors
                /// As [`save`](Self::save).
                pub fn save_annotated(&self, path: impl AsRef<Path>, annotation: &str) -> Result<()> {
                    let path = path.as_ref();
                    save::save(path, &self.to_bytes_annotated(annotation))
                        .map_err(|error| Error::io("write", path, &error))
                }
            }
        )*
    };
}

// The table of the kinds of model: number in files, type, name, words for messages, functions that read and
// write the fields, and the version of a model's file. The number of a kind is never used for another one.
model_kinds! {
    1 MondrianClassifier "mondrian_classifier" "Mondrian forest classifier"
        (mondrian::read_classifier, mondrian::write_classifier, mondrian::classifier_version);
    2 MondrianRegressor "mondrian_regressor" "Mondrian forest regressor"
        (mondrian::read_regressor, mondrian::write_regressor, mondrian::regressor_version);
    3 BayesianTreeClassifier "bayesian_tree_classifier" "Bayesian tree classifier"
        (bayes::read_classifier, bayes::write_classifier, bayes::version);
    4 BayesianTreeRegressor "bayesian_tree_regressor" "Bayesian tree regressor"
        (bayes::read_regressor, bayes::write_regressor, bayes::version);
    5 BartClassifier "bart_classifier" "BART classifier"
        (bart::read_classifier, bart::write_classifier, |model| bart::version(&model.posterior));
    6 BartRegressor "bart_regressor" "BART regressor"
        (bart::read_regressor, bart::write_regressor, |model| bart::version(&model.posterior));
    7 FrozenClassifier "frozen_classifier" "Mondrian forest classifier without rows"
        (frozen::read_classifier, frozen::write_classifier, |model| frozen::version(model.domain()));
    8 FrozenRegressor "frozen_regressor" "Mondrian forest regressor without rows"
        (frozen::read_regressor, frozen::write_regressor, |model| frozen::version(model.domain()));
}

/// The kind of model according to the first bytes. The rest may still be invalid.
///
/// # Errors
/// [`Error::ModelFile`] if the bytes do not begin as a model file does.
pub fn model_kind(bytes: &[u8]) -> Result<ModelKind> {
    read_header(&mut Reader::new(bytes))
}

fn read_header(reader: &mut Reader<'_>) -> Result<ModelKind> {
    reader.begins_with("magic", MAGIC)?;
    reader.version = reader.u32("format_version")?;
    if !(1..=NEWEST).contains(&reader.version) {
        let expected = format!("1 to {NEWEST}, the versions that this release of boscage reads");
        return Err(reader.expected(expected, reader.version));
    }
    let number = reader.u8("kind")?;
    let kind = ModelKind::ALL.iter().find(|&&kind| kind as u8 == number);
    kind.copied().ok_or_else(|| {
        reader.expected(format!("the number of a kind of model, 1 to {}", ModelKind::ALL.len()), number)
    })
}

/// Reads a model; `read` reads the fields after the kind.
fn read_model<M>(bytes: &[u8], read: impl FnOnce(ModelKind, &mut Reader<'_>) -> Result<M>) -> Result<M> {
    // Other files, and files of a later version, have their own messages; other errors mean that a file is
    // damaged.
    model_kind(bytes)?;
    let mut reader = Reader::new(checked_content(bytes)?);
    let kind = read_header(&mut reader)?;
    let model = read(kind, &mut reader)?;
    reader.end()?;
    Ok(model)
}

impl MondrianClassifier {
    /// Reads a share of a forest from the bytes of the forest: see [`MondrianSettings::share`](crate::MondrianSettings).
    ///
    /// # Errors
    /// As [`from_bytes`](Self::from_bytes), and a share that is no range of the forest's trees.
    pub fn share_from_bytes(bytes: &[u8], share: Range<usize>, run: &Run<'_>) -> Result<Self> {
        read_share(bytes, ModelKind::MondrianClassifier, share, |reader| {
            mondrian::read_classifier(reader, run)
        })
    }
}

impl MondrianRegressor {
    /// Reads a share of a forest from the bytes of the forest: see [`MondrianSettings::share`](crate::MondrianSettings).
    ///
    /// # Errors
    /// As [`from_bytes`](Self::from_bytes), and a share that is no range of the forest's trees.
    pub fn share_from_bytes(bytes: &[u8], share: Range<usize>, run: &Run<'_>) -> Result<Self> {
        read_share(bytes, ModelKind::MondrianRegressor, share, |reader| mondrian::read_regressor(reader, run))
    }
}

fn read_share<M>(
    bytes: &[u8],
    kind: ModelKind,
    share: Range<usize>,
    read: impl FnOnce(&mut Reader<'_>) -> Result<M>,
) -> Result<M> {
    read_model(bytes, |found, reader| {
        if found != kind {
            return Err(Error::OtherKind { found: found.description(), expected: kind.description() });
        }
        reader.share = Some(share);
        read(reader)
    })
}

/// The bytes before the checksum, if the checksum is right.
fn checked_content(bytes: &[u8]) -> Result<&[u8]> {
    let (content, found) = bytes.split_at(bytes.len().saturating_sub(CHECKSUM));
    let sum = Sha256::digest(content);
    if sum.as_slice() == found {
        return Ok(content);
    }
    let hexadecimal = |bytes: &[u8]| {
        let first: Vec<String> = bytes.iter().take(4).map(|byte| format!("{byte:02x}")).collect();
        first.concat()
    };
    let (expected, found) = (hexadecimal(&sum), hexadecimal(found));
    let mut reader = Reader::new(bytes);
    reader.take("content", content.len())?;
    reader.take("checksum", bytes.len() - content.len())?;
    Err(reader.wrong(format!(
        "expected {expected}..., found {found}...: bytes were changed, or the file was cut off"
    )))
}

/// Loads a model of any kind from a file.
///
/// # Errors
/// [`Error::Io`] if the file cannot be read; as [`AnyModel::from_bytes`].
pub fn load(path: impl AsRef<Path>, run: &Run<'_>) -> Result<AnyModel> {
    let path = path.as_ref();
    let bytes = std::fs::read(path).map_err(|error| Error::io("read", path, &error))?;
    AnyModel::from_bytes(&bytes, run)
}

fn sealed(kind: ModelKind, version: u32, content: impl FnOnce(&mut Writer)) -> Vec<u8> {
    let mut writer = Writer::of(version);
    writer.raw(MAGIC);
    writer.u32(version);
    writer.u8(kind as u8);
    content(&mut writer);
    let sum = Sha256::digest(writer.bytes());
    writer.raw(&sum);
    writer.into_bytes()
}
