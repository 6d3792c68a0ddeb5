//! Python bindings of boscage: arrays in, the gate, arrays out. No algorithm.

mod arrays;
mod axes;
mod bart_classifier;
mod bart_regressor;
mod bart_settings;
mod bayes_classifier;
mod bayes_regressor;
mod bayes_settings;
mod classifier;
mod errors;
mod gate;
mod methods;
mod pilot;
mod regressor;
mod settings;
mod trees;

use pyo3::prelude::*;

/// The compiled core of boscage.
#[pymodule]
fn _boscage(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<classifier::MondrianClassifier>()?;
    module.add_class::<regressor::MondrianRegressor>()?;
    module.add_class::<bayes_classifier::BayesianTreeClassifier>()?;
    module.add_class::<bayes_regressor::BayesianTreeRegressor>()?;
    module.add_class::<bart_classifier::BartClassifier>()?;
    module.add_class::<bart_regressor::BartRegressor>()?;
    module.add_class::<bart_settings::BartSettings>()?;
    module.add_class::<bayes_settings::SmcSettings>()?;
    module.add_class::<bayes_settings::McmcSettings>()?;
    module.add_function(wrap_pyfunction!(pilot::pilot_rates, module)?)?;
    module.add_function(wrap_pyfunction!(axes::learn_axes, module)?)?;
    module.add_function(wrap_pyfunction!(bart_settings::bart_kernels, module)?)?;
    module.add_function(wrap_pyfunction!(model_kind, module)?)?;
    Ok(())
}

/// What kind of model some bytes claim to hold: "classifier", "regressor", "Bayesian tree classifier",
/// "Bayesian tree regressor", "BART classifier" or "BART regressor".
#[pyfunction]
fn model_kind(data: &[u8]) -> PyResult<&'static str> {
    Ok(boscage::model_kind(data).map_err(errors::to_python)?.name())
}
