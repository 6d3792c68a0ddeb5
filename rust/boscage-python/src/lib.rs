//! Python bindings of boscage. They convert arrays, run the crate behind the gate, and convert results; they
//! contain no algorithm.

mod arrays;
mod bart;
mod bayes;
mod errors;
mod explain;
mod gate;
mod lock;
mod methods;
mod mondrian;
mod settings;
mod trees;

use boscage::ModelKind;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyType};

/// The classes of models, one for each kind of model in the crate.
macro_rules! model_classes {
    ($($kind:ident: $class:ty;)*) => {
        fn add_model_classes(module: &Bound<'_, PyModule>) -> PyResult<()> {
            $(module.add_class::<$class>()?;)*
            Ok(())
        }

        fn model_class(py: Python<'_>, kind: ModelKind) -> Bound<'_, PyType> {
            match kind {
                $(ModelKind::$kind => py.get_type::<$class>(),)*
            }
        }
    };
}

model_classes! {
    MondrianClassifier: mondrian::classifier::MondrianClassifier;
    MondrianRegressor: mondrian::regressor::MondrianRegressor;
    BayesianTreeClassifier: bayes::classifier::BayesianTreeClassifier;
    BayesianTreeRegressor: bayes::regressor::BayesianTreeRegressor;
    BartClassifier: bart::classifier::BartClassifier;
    BartRegressor: bart::regressor::BartRegressor;
    FrozenClassifier: mondrian::frozen::FrozenClassifier;
    FrozenRegressor: mondrian::frozen::FrozenRegressor;
}

/// The compiled core of boscage.
#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("TREND_ROWS", boscage::TREND_ROWS)?;
    module.add("RULE_ROWS", boscage::RULE_ROWS)?;
    add_model_classes(module)?;
    module.add_class::<lock::ReadWriteLock>()?;
    module.add_class::<lock::LockAccess>()?;
    module.add_class::<mondrian::cell_plan::CellPlan>()?;
    module.add_class::<mondrian::cells::ClassifierCells>()?;
    module.add_class::<mondrian::cells::RegressorCells>()?;
    module.add_class::<mondrian::frozen::ClassifierFreezer>()?;
    module.add_class::<mondrian::frozen::RegressorFreezer>()?;
    module.add_class::<bart::settings::BartSettings>()?;
    module.add_class::<bayes::settings::SmcSettings>()?;
    module.add_class::<bayes::settings::McmcSettings>()?;
    module.add_function(wrap_pyfunction!(mondrian::classifier::calibrating_rows, module)?)?;
    module.add_function(wrap_pyfunction!(mondrian::extra_trees::extra_trees_rates, module)?)?;
    module.add_function(wrap_pyfunction!(mondrian::feature_rates::candidate_rates, module)?)?;
    module.add_function(wrap_pyfunction!(mondrian::feature_rates::distinct_rows, module)?)?;
    module.add_function(wrap_pyfunction!(mondrian::feature_rates::first_by_contents, module)?)?;
    module.add_function(wrap_pyfunction!(mondrian::feature_rates::first_of_keys, module)?)?;
    module.add_function(wrap_pyfunction!(mondrian::feature_rates::keys_of_contents, module)?)?;
    module.add_function(wrap_pyfunction!(mondrian::feature_rates::most_important_features, module)?)?;
    module.add_function(wrap_pyfunction!(mondrian::missing::fill_missing, module)?)?;
    module.add_function(wrap_pyfunction!(bart::settings::bart_kernels, module)?)?;
    module.add_function(wrap_pyfunction!(model_kind, module)?)?;
    module.add_function(wrap_pyfunction!(model_kinds, module)?)?;
    Ok(())
}

/// The name of the kind of model according to the first bytes, such as `"mondrian_classifier"`.
#[pyfunction]
fn model_kind(data: &[u8]) -> PyResult<&'static str> {
    Ok(boscage::model_kind(data).map_err(errors::to_python)?.name())
}

/// All kinds of model by name, with the kind in words and its class in this module.
#[pyfunction]
fn model_kinds(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let kinds = PyDict::new(py);
    for &kind in ModelKind::ALL {
        kinds.set_item(kind.name(), (kind.description(), model_class(py, kind)))?;
    }
    Ok(kinds)
}
