//! Features in which all rows of a node are equal. They stay so in all nodes below: in tables of zeros and ones, most
//! features are constant in most nodes.

/// A set of features.
#[derive(Debug, Clone)]
pub(crate) struct ConstantFeatures(Vec<u64>);

impl ConstantFeatures {
    /// None of so many features.
    pub(crate) fn none(n_features: usize) -> Self {
        Self(vec![0; n_features.div_ceil(64)])
    }

    pub(crate) fn insert(&mut self, feature: usize) {
        self.0[feature / 64] |= 1 << (feature % 64);
    }

    pub(crate) fn contains(&self, feature: usize) -> bool {
        self.0[feature / 64] >> (feature % 64) & 1 == 1
    }
}
