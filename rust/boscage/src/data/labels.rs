//! Labels: the names of classes, of the types that Python and tables use.

use std::cmp::Ordering;
use std::fmt;

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
    /// The number of its kind.
    pub(crate) fn kind(&self) -> u8 {
        match self {
            Self::Bool(_) => 0,
            Self::Int(_) => 1,
            Self::Float(_) => 2,
            Self::Text(_) => 3,
        }
    }

    /// The same label, of the kind of another one: `true`, 1 and 1.0 are the same. None if that kind has no such label.
    pub(crate) fn as_kind_of(&self, other: &Self) -> Option<Self> {
        const BEYOND: f64 = 9_223_372_036_854_775_808.0;
        let whole = |value: f64| {
            (value.trunc() == value && (-BEYOND..BEYOND).contains(&value)).then_some(value as i64)
        };
        let integer = match self {
            Self::Bool(value) => Some(i64::from(*value)),
            Self::Int(value) => Some(*value),
            Self::Float(value) => whole(*value),
            Self::Text(_) => None,
        };
        match other {
            _ if self.kind() == other.kind() => Some(self.clone()),
            Self::Bool(_) => {
                integer.filter(|value| [0, 1].contains(value)).map(|value| Self::Bool(value == 1))
            }
            Self::Int(_) => integer.map(Self::Int),
            Self::Float(_) => integer
                .filter(|&value| whole(value as f64) == Some(value))
                .map(|value| Self::Float(value as f64)),
            Self::Text(_) => None,
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

/// The name alone; strings in quotation marks, so that "1" is not 1.
impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bool(value) => write!(f, "{value}"),
            Self::Int(value) => write!(f, "{value}"),
            Self::Float(value) => write!(f, "{value:?}"),
            Self::Text(value) => write!(f, "{value:?}"),
        }
    }
}

impl From<bool> for Label {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<i64> for Label {
    fn from(value: i64) -> Self {
        Self::Int(value)
    }
}

impl From<f64> for Label {
    fn from(value: f64) -> Self {
        Self::Float(value)
    }
}

impl From<&str> for Label {
    fn from(value: &str) -> Self {
        Self::Text(value.to_owned())
    }
}

impl From<String> for Label {
    fn from(value: String) -> Self {
        Self::Text(value)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_are_equal_are_the_same_class() {
        let [no, yes] = [false, true].map(Label::Bool);
        let [zero, one, two, most] = [0, 1, 2, i64::MAX].map(Label::Int);
        let [nought, unit, half] = [-0.0, 1.0, 0.5].map(Label::Float);
        let text = Label::Text("1".into());
        for (label, other, expected) in [
            (&no, &two, Some(&zero)),
            (&yes, &half, Some(&unit)),
            (&one, &no, Some(&yes)),
            (&two, &no, None),
            (&nought, &two, Some(&zero)),
            (&unit, &no, Some(&yes)),
            (&half, &two, None),
            (&half, &unit, Some(&half)),
            (&most, &unit, None),
            (&most, &one, Some(&most)),
            (&text, &one, None),
            (&one, &text, None),
        ] {
            assert_eq!(label.as_kind_of(other).as_ref(), expected, "{label:?} like {other:?}");
        }
        let [beyond, lowest] = [9.3e18, -9_223_372_036_854_775_808.0].map(Label::Float);
        assert_eq!(beyond.as_kind_of(&one), None);
        assert_eq!(lowest.as_kind_of(&one), Some(Label::Int(i64::MIN)));
    }
}
