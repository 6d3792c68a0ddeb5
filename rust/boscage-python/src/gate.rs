//! The one gate to long work: releases the interpreter, listens for signals, reports progress.

use std::sync::{Mutex, mpsc};
use std::time::{Duration, Instant};

use boscage::{Control, Domain, Error, MondrianSettings, Run};
use pyo3::prelude::*;

use crate::errors::to_python;

/// How long work goes on before anybody asks Python for signals, and how often afterwards.
const SLICE: Duration = Duration::from_millis(50);
/// How often progress is reported.
const REPORT: Duration = Duration::from_millis(100);

/// Runs `work` without the interpreter. Ctrl-C stops it, and is raised when it has stopped.
pub(crate) fn run<R: Send>(
    py: Python<'_>,
    n_threads: usize,
    progress: Option<&Bound<'_, PyAny>>,
    work: impl FnOnce(&Run<'_>) -> boscage::Result<R> + Send,
) -> PyResult<R> {
    let control = Control::new();
    let (done, ended) = mpsc::channel();
    // Only this thread listens; the lock is what lets the receiver leave the interpreter.
    let ended = Mutex::new(ended);
    let wait = || ended.lock().expect("no listener panics").recv_timeout(SLICE);
    std::thread::scope(|scope| {
        let control = &control;
        scope.spawn(move || {
            let result =
                std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| work(&Run { n_threads, control })));
            // The receiver waits until it has heard.
            let _ = done.send(result);
        });
        let mut raised = None;
        let mut reported = Instant::now();
        let result = loop {
            match py.detach(wait) {
                Ok(result) => break result,
                Err(_) if raised.is_some() => {}
                Err(_) => {
                    let report = |progress: &Bound<'_, PyAny>| progress.call1(control.progress()).map(drop);
                    let mut heard = py.check_signals();
                    if heard.is_ok() && reported.elapsed() >= REPORT {
                        reported = Instant::now();
                        heard = progress.map_or(Ok(()), report);
                    }
                    if let Err(error) = heard {
                        control.stop();
                        raised = Some(error);
                    }
                }
            }
        };
        if let Some(progress) = progress
            && raised.is_none()
        {
            progress.call1(control.progress())?;
        }
        match (result, raised) {
            (Err(panic), _) => std::panic::resume_unwind(panic),
            // Work that ended before it heard of the stop is done; the signal is still to be raised.
            (Ok(Ok(_) | Err(Error::Interrupted)), Some(error)) => Err(error),
            (Ok(result), _) => result.map_err(to_python),
        }
    })
}

/// Work that is short, unless another thread is settling the same model: without the interpreter, but also without a
/// thread of its own.
pub(crate) fn brief<R: Send>(
    py: Python<'_>,
    work: impl FnOnce() -> boscage::Result<R> + Send,
) -> PyResult<R> {
    py.detach(work).map_err(to_python)
}

/// How much there is to do where rows go through trees.
pub(crate) fn size(n_rows: usize, settings: &MondrianSettings, domain: &Domain) -> usize {
    /// So many features do not make a way through a tree longer.
    const FEW: usize = 16;
    n_rows.saturating_mul(settings.n_estimators).saturating_mul(domain.n_features().max(FEW))
}

/// [`run`], but what is small goes without a thread of its own: starting one would take longer.
pub(crate) fn run_sized<R: Send>(
    py: Python<'_>,
    size: usize,
    n_threads: usize,
    progress: Option<&Bound<'_, PyAny>>,
    work: impl FnOnce(&Run<'_>) -> boscage::Result<R> + Send,
) -> PyResult<R> {
    /// Some milliseconds' work: 64 rows of 16 features and 100 trees.
    const SMALL: usize = 64 * 16 * 100;
    if size > SMALL {
        return run(py, n_threads, progress, work);
    }
    brief(py, || work(&Run { n_threads, control: &Control::new() }))
}
