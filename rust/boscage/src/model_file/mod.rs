//! The versioned file that Rust and Python share.
//!
//! A Mondrian forest is a function of its seed, settings and rows, so its file holds only these; loading draws the
//! trees again, to the same bits. So no file, however it was made, can hold trees that are not a forest's. Bayesian
//! trees and BART keep no rows: their files hold the trees, which are checked on reading, and of BART also the state
//! in which each chain ended, which is checked against the rows when chains go on.
//!
//! | bytes | field | what |
//! | --- | --- | --- |
//! | 8 | `magic` | `BOSCAGE` and a zero |
//! | 4 | `format_version` | the oldest version that can hold the model |
//! | 1 | `kind` | the number of the kind of model |
//! | ... | | the model's fields, in the order in which its room here writes them |
//! | 32 | `checksum` | SHA-256 of all bytes before |
//!
//! Everything is little-endian. A file that is refused is refused with the first byte of the field at fault, the
//! field's name, what was expected there and what was found.

mod bart;
mod bayes;
mod format;
mod mondrian;
mod save;
#[cfg(test)]
mod tests;

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
use format::{NEWEST, PLAIN, Reader, STEP_COUNTS, Writer};

const MAGIC: &[u8; 8] = b"BOSCAGE\0";
const CHECKSUM: usize = 32;

/// Makes everything that lists the kinds of model from the one table below.
macro_rules! model_kinds {
    ($(
        $number:literal $model:ident $name:literal $description:literal
        ($read:path, $write:path, $version:expr);
    )*) => {
        /// The kinds of model that a file may hold.
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

        /// A model of any kind, as a file may hold it.
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

            /// The model that some bytes hold, of whichever kind.
            ///
            /// # Errors
            /// [`Error::ModelFile`] whenever the bytes are not exactly what a model was saved as: it names the byte,
            /// the field, what was expected and what was found. [`Error::Interrupted`].
            pub fn from_bytes(bytes: &[u8], run: &Run<'_>) -> Result<Self> {
                read_model(bytes, |kind, reader| match kind {
                    $(ModelKind::$model => $read(reader, run).map(|model| Self::$model(Box::new(model))),)*
                })
            }
        }

        $(
            impl $model {
                /// The model that some bytes hold.
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

                /// The model as bytes, from which [`from_bytes`](Self::from_bytes) makes it again.
                #[must_use]
                pub fn to_bytes(&self) -> Vec<u8> {
                    self.to_bytes_annotated(self.annotation())
                }

                /// As [`to_bytes`](Self::to_bytes), with another annotation; the model keeps its own.
                #[must_use]
                pub fn to_bytes_annotated(&self, annotation: &str) -> Vec<u8> {
                    let version: fn(&Self) -> u32 = $version;
                    sealed(ModelKind::$model, version(self), |writer| $write(writer, self, annotation))
                }

                /// Writes the model to a file, whole or not at all.
                ///
                /// # Errors
                /// [`Error::Io`] if the file cannot be written; then it is as it was before, and nothing else is
                /// left in its folder.
                pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
                    self.save_annotated(path, self.annotation())
                }

                /// As [`save`](Self::save), with another annotation; the model keeps its own.
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

// The one table of the kinds of model: number in files, type, name, words for messages; how its fields are read and
// written, and the version of a model's file. Numbers are never given to another kind.
model_kinds! {
    1 MondrianClassifier "mondrian_classifier" "Mondrian forest classifier"
        (mondrian::read_classifier, mondrian::write_classifier, |model| mondrian::version(model.domain()));
    2 MondrianRegressor "mondrian_regressor" "Mondrian forest regressor"
        (mondrian::read_regressor, mondrian::write_regressor, mondrian::regressor_version);
    3 BayesianTreeClassifier "bayesian_tree_classifier" "Bayesian tree classifier"
        (bayes::read_classifier, bayes::write_classifier, |_| PLAIN);
    4 BayesianTreeRegressor "bayesian_tree_regressor" "Bayesian tree regressor"
        (bayes::read_regressor, bayes::write_regressor, |_| PLAIN);
    5 BartClassifier "bart_classifier" "BART classifier"
        (bart::read_classifier, bart::write_classifier, |_| STEP_COUNTS);
    6 BartRegressor "bart_regressor" "BART regressor"
        (bart::read_regressor, bart::write_regressor, |_| STEP_COUNTS);
}

/// The kind of model that some bytes say they hold; the model itself may still turn out to be damaged.
///
/// # Errors
/// [`Error::ModelFile`] if the bytes do not begin as those of a model do.
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

/// The model that some bytes hold, whose fields after the kind `read` takes.
fn read_model<M>(bytes: &[u8], read: impl FnOnce(ModelKind, &mut Reader<'_>) -> Result<M>) -> Result<M> {
    // Files that are no models, or of a later version, are told from those that are damaged.
    model_kind(bytes)?;
    let mut reader = Reader::new(checked_content(bytes)?);
    let kind = read_header(&mut reader)?;
    let model = read(kind, &mut reader)?;
    reader.end()?;
    Ok(model)
}

/// The bytes before the checksum, if that is theirs.
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

/// Loads whichever model a file holds.
///
/// # Errors
/// [`Error::Io`] if the file cannot be read; as [`AnyModel::from_bytes`].
pub fn load(path: impl AsRef<Path>, run: &Run<'_>) -> Result<AnyModel> {
    let path = path.as_ref();
    let bytes = std::fs::read(path).map_err(|error| Error::io("read", path, &error))?;
    AnyModel::from_bytes(&bytes, run)
}

fn sealed(kind: ModelKind, version: u32, content: impl FnOnce(&mut Writer)) -> Vec<u8> {
    let mut writer = Writer::default();
    writer.raw(MAGIC);
    writer.u32(version);
    writer.u8(kind as u8);
    content(&mut writer);
    let sum = Sha256::digest(writer.bytes());
    writer.raw(&sum);
    writer.into_bytes()
}
