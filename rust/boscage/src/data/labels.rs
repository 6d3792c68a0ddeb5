//! Labels: the names of classes, of the types that Python and tables use.

use std::cmp::Ordering;

/// The name of a class.
#[derive(Debug, Clone)]
pub enum Label {
    /// A Boolean.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// A floating-point number.
    Float(f64),
    /// A string.
    Text(String),
}

impl Label {
    fn kind(&self) -> u8 {
        match self {
            Self::Bool(_) => 0,
            Self::Int(_) => 1,
            Self::Float(_) => 2,
            Self::Text(_) => 3,
        }
    }

    /// The label's kind and value as bytes, for digests and model files.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = vec![self.kind()];
        match self {
            Self::Bool(value) => bytes.push(u8::from(*value)),
            Self::Int(value) => bytes.extend(value.to_le_bytes()),
            Self::Float(value) => bytes.extend((value + 0.0).to_le_bytes()),
            Self::Text(value) => bytes.extend(value.as_bytes()),
        }
        bytes
    }

    /// The inverse of [`Self::to_bytes`].
    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (kind, value) = bytes.split_first()?;
        Some(match kind {
            0 => match value {
                [0] => Self::Bool(false),
                [1] => Self::Bool(true),
                _ => return None,
            },
            1 => Self::Int(i64::from_le_bytes(value.try_into().ok()?)),
            2 => Self::Float(f64::from_le_bytes(value.try_into().ok()?)),
            3 => Self::Text(std::str::from_utf8(value).ok()?.to_owned()),
            _ => return None,
        })
    }
}

impl Ord for Label {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Bool(a), Self::Bool(b)) => a.cmp(b),
            (Self::Int(a), Self::Int(b)) => a.cmp(b),
            (Self::Float(a), Self::Float(b)) => (a + 0.0).total_cmp(&(b + 0.0)),
            (Self::Text(a), Self::Text(b)) => a.cmp(b),
            _ => self.kind().cmp(&other.kind()),
        }
    }
}

impl PartialOrd for Label {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Label {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Label {}
