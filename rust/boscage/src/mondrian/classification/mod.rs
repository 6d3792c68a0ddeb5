//! Classification (thesis chapter 5): class counts at nodes, smoothed by interpolated Kneser-Ney.
//!
//! The class distributions of the nodes form a hierarchy of normalised stable processes with discounts `d_j =
//! exp(-gamma (tau_j - tau_parent(j)))` (eq. 5.2). Their posterior means (eq. 5.3 and 5.4) are approximated
//! by interpolated Kneser-Ney. Every node is a restaurant whose customers are the tables of its children, one
//! table a class (Algorithms 5.3 and 5.7, `class_counts`), and a node's prediction mixes its counts with its
//! parent's prediction (eq. 5.5, Algorithm 5.4). The prediction of a tree averages over the places where the
//! test row may branch off (eq. 5.6 and 5.7, Algorithm 5.8, `kneser_ney`), and the forest's prediction
//! averages over trees (`predictive`).
//!
//! Beyond the thesis:
//!
//! - `joint` is a model of the labels by all trees together.
//! - `trend` is a linear function of the features beside the trees.
//! - `calibration` raises the average over trees to a power, multiplies it by what `joint` and `trend` say, and mixes
//!   it with noise. It is fitted to rows that are left out of the forest (`left_out`).
//! - `uncertainty` divides the entropy of a prediction by its source, and `contributions` divides the
//!   prediction by feature.
//! - `class_table` names the classes.
//! - `frozen` has classifiers without rows.
//! - `votes` has predictions by a forest whose trees are shared out over several workers.
//! - `cell_votes` has those by a forest whose cells are shared out: lists of what is added, tree after tree; `cell_votes::left_out`
//!   has the same for rows that are left out.

pub(crate) mod calibration;
pub(crate) mod cell_votes;
pub(crate) mod class_counts;
mod class_table;
pub(crate) mod classifier;
mod contributions;
pub(crate) mod frozen;
mod joint;
pub(crate) mod kneser_ney;
mod left_out;
mod predictive;
pub(crate) mod settings;
pub(crate) mod trend;
mod uncertainty;
mod votes;
