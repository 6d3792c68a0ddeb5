//! Hyperparameters of regressors as Python dictionaries, and back.

use std::collections::HashMap;

use boscage::{CoarsePrior, Hyperparameters, LeftOutFit};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::errors::to_python;

/// Everything that a rule for hyperparameters chooses, or that is given in its place.
#[derive(Debug, Clone, Default)]
pub(crate) struct AllScales {
    pub(crate) hyper: Option<Hyperparameters>,
    pub(crate) left_out_fit: LeftOutFit,
    pub(crate) trend_variance: Option<f64>,
    pub(crate) trend_scale: Option<f64>,
}

impl AllScales {
    /// What is given by name; nothing if there is no dictionary.
    pub(crate) fn given(given: Option<&HashMap<String, f64>>) -> PyResult<Self> {
        let Some(given) = given else { return Ok(Self::default()) };
        let number = |name: &str| given.get(name).copied();
        let needed = |name: &str| {
            number(name).ok_or_else(|| PyValueError::new_err(format!("hyperparameters lack {name}")))
        };
        let hyper = Hyperparameters {
            mu: needed("mu")?,
            gamma1: needed("gamma1")?,
            gamma2: needed("gamma2")?,
            noise_variance: needed("noise_variance")?,
            delay: number("delay").unwrap_or(0.0),
            coarse: CoarsePrior {
                variance: number("coarse_variance").unwrap_or(CoarsePrior::NONE.variance),
                rate: number("coarse_rate").unwrap_or(CoarsePrior::NONE.rate),
            },
        };
        Ok(Self {
            hyper: Some(hyper),
            left_out_fit: LeftOutFit::of_numbers(number).map_err(to_python)?,
            trend_variance: number("trend_variance"),
            trend_scale: number("trend_scale"),
        })
    }

    /// By name; None if there are no hyperparameters.
    pub(crate) fn dictionary<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let Some(hyper) = self.hyper else { return Ok(None) };
        let dict = PyDict::new(py);
        dict.set_item("mu", hyper.mu)?;
        dict.set_item("gamma1", hyper.gamma1)?;
        dict.set_item("gamma2", hyper.gamma2)?;
        dict.set_item("noise_variance", hyper.noise_variance)?;
        dict.set_item("delay", hyper.delay)?;
        dict.set_item("coarse_variance", hyper.coarse.variance)?;
        dict.set_item("coarse_rate", hyper.coarse.rate)?;
        let of_trend = [("trend_variance", self.trend_variance), ("trend_scale", self.trend_scale)];
        for (name, value) in of_trend.into_iter().filter_map(|(name, value)| Some((name, value?))) {
            dict.set_item(name, value)?;
        }
        for (name, value) in self.left_out_fit.numbers() {
            dict.set_item(name, value)?;
        }
        Ok(Some(dict))
    }
}
