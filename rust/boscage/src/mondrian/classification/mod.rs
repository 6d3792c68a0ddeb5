//! Classification (thesis chapter 5): class counts at nodes, smoothed by interpolated Kneser-Ney.

pub(crate) mod class_counts;
mod class_table;
pub(crate) mod classifier;
pub(crate) mod kneser_ney;
mod predictive;
