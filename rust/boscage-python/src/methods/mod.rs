//! Methods that several classes share. Python classes cannot be generic, so these macros add blocks of
//! methods to a class that has `model` and `of`; classes of forests also have `model_mut`, `settings` and
//! `size`. A class has the name of its model and of its kind of model.

mod forests;
mod models;
mod posteriors;

pub(crate) use forests::{explanation_methods, forest_methods, share_methods};
pub(crate) use models::{file_methods, only_a_model};
pub(crate) use posteriors::{bart_methods, bayes_methods, feature_methods};
