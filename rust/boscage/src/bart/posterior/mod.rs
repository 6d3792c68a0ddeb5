//! The posterior as drawn sums of trees: predictions, exports and explanations; the public models.
//!
//! A prediction is the sum over the trees of a draw (eqs. 4.1 and 4.2), for each draw that was kept.
//!
//! - `export` returns drawn trees as arrays; `explain` divides their predictions among features.
//! - `regressor`, `classifier` and `sum_of_trees` are the public models: each runs chains with its response and
//!   leaves, and predicts from their draws.

/// What public models that have a `posterior` and an `annotation` say of them.
macro_rules! facts_of_draws {
    ($model:ident) => {
        impl $model {
            /// The seed of the settings.
            #[must_use]
            pub fn seed(&self) -> u64 {
                self.posterior.seed
            }

            /// Number of draws of all chains.
            #[must_use]
            pub fn n_draws(&self) -> usize {
                self.posterior.n_draws()
            }

            /// By feature, how many categories it has, or 0; empty if no feature has any.
            #[must_use]
            pub fn n_categories(&self) -> &[u32] {
                &self.posterior.kinds.n_categories
            }

            /// Whether numbers were missing in training.
            #[must_use]
            pub fn has_missing(&self) -> bool {
                self.posterior.kinds.has_missing
            }

            /// Whether numbers may be missing in rows to predict: always, but in models from older files without sides.
            #[must_use]
            pub fn takes_missing(&self) -> bool {
                self.posterior.kinds.has_sides
            }

            /// Number of features.
            #[must_use]
            pub fn n_features(&self) -> usize {
                self.posterior.n_features
            }

            /// Number of trees in a sum.
            #[must_use]
            pub fn n_trees(&self) -> usize {
                self.posterior.n_trees
            }

            /// Text stored with the model and in its file.
            #[must_use]
            pub fn annotation(&self) -> &str {
                &self.annotation
            }

            /// Sets the text of [`annotation`](Self::annotation).
            pub fn set_annotation(&mut self, text: impl Into<String>) {
                self.annotation = text.into();
            }
        }
    };
}

pub(crate) mod classifier;
mod explain;
pub(crate) mod export;
pub(crate) mod regressor;
pub(crate) mod sum_of_trees;
