//! Methods of all models.

/// `model` and `of` of a class that only wraps a model.
macro_rules! only_a_model {
    ($class:ident) => {
        #[allow(clippy::unnecessary_wraps)]
        impl $class {
            fn model(&self) -> pyo3::PyResult<&boscage::$class> {
                Ok(&self.0)
            }

            fn of(model: boscage::$class) -> Self {
                Self(model)
            }
        }
    };
}

/// Conversion to bytes and files, and the annotation stored in them.
macro_rules! file_methods {
    ($class:ident) => {
        #[pymethods]
        impl $class {
            /// The name of the kind of model, as in `model_kind`.
            #[classattr]
            fn kind() -> &'static str {
                boscage::ModelKind::$class.name()
            }

            #[pyo3(signature = (*, annotation=None))]
            fn to_bytes<'py>(
                &self,
                py: Python<'py>,
                annotation: Option<&str>,
            ) -> PyResult<Bound<'py, pyo3::types::PyBytes>> {
                let model = self.model()?;
                let annotation = annotation.unwrap_or(model.annotation());
                let bytes = py.detach(|| model.to_bytes_annotated(annotation));
                Ok(pyo3::types::PyBytes::new(py, &bytes))
            }

            #[classmethod]
            #[pyo3(signature = (data, *, n_threads=1))]
            fn from_bytes(
                class: &Bound<'_, pyo3::types::PyType>,
                data: &[u8],
                n_threads: usize,
            ) -> PyResult<Self> {
                let read = |run: &boscage::Run<'_>| boscage::$class::from_bytes(data, run);
                crate::gate::run(class.py(), n_threads, None, read).map(Self::of)
            }

            #[pyo3(signature = (path, *, annotation=None))]
            fn save(
                &self,
                py: Python<'_>,
                path: std::path::PathBuf,
                annotation: Option<&str>,
            ) -> PyResult<()> {
                let model = self.model()?;
                let annotation = annotation.unwrap_or(model.annotation());
                crate::gate::brief(py, || model.save_annotated(path, annotation))
            }

            /// Text stored with the model and in its file.
            #[getter]
            fn annotation(&self) -> PyResult<&str> {
                Ok(self.model()?.annotation())
            }
        }
    };
}

pub(crate) use {file_methods, only_a_model};
