//! Options by name, and the domain from its Python arguments.

use boscage::{
    Calibration, ClassPosterior, Domain, HyperparameterRule, JointKernel, Noise, Posterior, Predictive, Rows,
};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::errors::to_python;

pub(crate) fn option<T: Copy>(name: &str, value: &str, options: &[(&str, T)]) -> PyResult<T> {
    match options.iter().find(|(option, _)| *option == value) {
        Some((_, option)) => Ok(*option),
        None => {
            // The message is that of the package's `check_choice`.
            let names: Vec<String> = options.iter().map(|(option, _)| format!("'{option}'")).collect();
            Err(PyValueError::new_err(format!("{name} must be one of {}, found '{value}'", names.join(", "))))
        }
    }
}

const PREDICTIVE: [(&str, Predictive); 2] =
    [("averaged", Predictive::Averaged), ("realised", Predictive::Realised)];

pub(crate) fn predictive(value: &str) -> PyResult<Predictive> {
    option("predictive", value, &PREDICTIVE)
}

pub(crate) fn predictive_name(value: Predictive) -> &'static str {
    PREDICTIVE[value as usize].0
}

/// The second is that of forests in older files.
const CALIBRATION: [(&str, Calibration); 2] =
    [("loo", Calibration::LeaveOneOut), ("loo-power", Calibration::PowerAlone)];

pub(crate) fn calibration(value: Option<&str>) -> PyResult<Calibration> {
    value.map_or(Ok(Calibration::None), |value| option("calibration, unless None,", value, &CALIBRATION))
}

pub(crate) fn calibration_name(value: Calibration) -> Option<&'static str> {
    CALIBRATION.iter().find(|(_, own)| *own == value).map(|(name, _)| *name)
}

const CLASS_POSTERIOR: [(&str, ClassPosterior); 2] =
    [("kneser-ney", ClassPosterior::KneserNey), ("joint", ClassPosterior::Joint)];

pub(crate) fn class_posterior(value: &str) -> PyResult<ClassPosterior> {
    option("posterior", value, &CLASS_POSTERIOR)
}

pub(crate) fn class_posterior_name(value: ClassPosterior) -> &'static str {
    CLASS_POSTERIOR[value as usize].0
}

const POSTERIOR: [(&str, Posterior); 3] =
    [("exact", Posterior::Exact), ("fast", Posterior::Fast), ("joint", Posterior::Joint)];

pub(crate) fn posterior(value: &str) -> PyResult<Posterior> {
    option("posterior", value, &POSTERIOR)
}

pub(crate) fn posterior_name(value: Posterior) -> &'static str {
    POSTERIOR[value as usize].0
}

const RULE: [(&str, HyperparameterRule); 3] = [
    ("ml", HyperparameterRule::MarginalLikelihood),
    ("heuristic", HyperparameterRule::Heuristic),
    ("loo", HyperparameterRule::LeaveOneOut),
];

pub(crate) fn rule(value: &str) -> PyResult<HyperparameterRule> {
    option("hyperparameters", value, &RULE)
}

pub(crate) fn rule_name(value: HyperparameterRule) -> &'static str {
    RULE[value as usize].0
}

const NOISE: [(&str, Noise); 2] = [("global", Noise::Global), ("local", Noise::Local)];

pub(crate) fn noise(value: &str) -> PyResult<Noise> {
    option("noise", value, &NOISE)
}

pub(crate) fn noise_name(value: Noise) -> &'static str {
    NOISE[value as usize].0
}

const JOINT_KERNEL: [(&str, JointKernel); 3] =
    [("trees", JointKernel::Trees), ("limit", JointKernel::Limit), ("auto", JointKernel::Auto)];

pub(crate) fn joint_kernel(value: &str) -> PyResult<JointKernel> {
    option("joint_kernel", value, &JOINT_KERNEL)
}

pub(crate) fn joint_kernel_name(value: JointKernel) -> &'static str {
    JOINT_KERNEL[value as usize].0
}

/// The trees of a share: the first, and the one after the last.
pub(crate) fn share(ends: Option<(usize, usize)>) -> Option<std::ops::Range<usize>> {
    ends.map(|(first, end)| first..end)
}

pub(crate) const LINEAR: &str = "linear";

/// Whether there is a trend.
pub(crate) fn trend(value: Option<&str>) -> PyResult<bool> {
    match value {
        None => Ok(false),
        Some(LINEAR) => Ok(true),
        Some(other) => {
            Err(PyValueError::new_err(format!("trend must be {LINEAR:?} or None, found {other:?}")))
        }
    }
}

/// The domain with the given reference ranges, or with those of the rows.
pub(crate) fn domain(
    rows: Rows<'_>,
    low: Option<Vec<f64>>,
    high: Option<Vec<f64>>,
    weights: Option<Vec<f64>>,
) -> PyResult<Domain> {
    match (low, high) {
        (None, None) => Domain::of_rows(rows, weights),
        (Some(low), Some(high)) => Domain::new(low, high, weights),
        _ => return Err(PyValueError::new_err("low and high go together")),
    }
    .map_err(to_python)
}
