//! The one way to long work: it releases the interpreter, checks for signals and reports progress.

use std::sync::{Mutex, mpsc};
use std::time::{Duration, Instant};

use boscage::{Control, Domain, Error, MondrianSettings, Run};
use pyo3::prelude::*;

use crate::errors::to_python;

/// How often Python is asked for signals.
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
    let (mut work, mut result) = (Some(work), None);
    let raised = wait_for(py, n_threads, progress, &mut |run| {
        result = work.take().map(|work| work(run));
    })?;
    match (result.expect("work that does not panic has a result"), raised) {
        // Work that ended before it was stopped is done; the signal is still to be raised.
        (Ok(_) | Err(Error::Interrupted), Some(error)) => Err(error),
        (result, _) => result.map_err(to_python),
    }
}

/// Does work on a thread of its own and waits for it; returns what a signal or the report of progress raised.
///
/// Not generic, so that it is compiled once, not for every kind of work.
fn wait_for(
    py: Python<'_>,
    n_threads: usize,
    progress: Option<&Bound<'_, PyAny>>,
    work: &mut (dyn FnMut(&Run<'_>) + Send),
) -> PyResult<Option<PyErr>> {
    let control = Control::new();
    let (done, ended) = mpsc::channel();
    // Only this thread listens; the lock is what lets the receiver leave the interpreter.
    let ended = Mutex::new(ended);
    let wait = || ended.lock().expect("no listener panics").recv_timeout(SLICE);
    std::thread::scope(|scope| {
        let control = &control;
        scope.spawn(move || {
            let work = std::panic::AssertUnwindSafe(|| work(&Run { n_threads, control }));
            // The receiver waits until it has received.
            let _ = done.send(std::panic::catch_unwind(work));
        });
        let mut raised = None;
        let mut reported = Instant::now();
        let panicked = loop {
            match py.detach(wait) {
                Ok(panicked) => break panicked,
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
        match panicked {
            Err(panic) => std::panic::resume_unwind(panic),
            Ok(()) => Ok(raised),
        }
    })
}

/// Runs short work without the interpreter, but on the calling thread. It may wait for another thread that is updating
/// the same model.
pub(crate) fn brief<R: Send>(
    py: Python<'_>,
    work: impl FnOnce() -> boscage::Result<R> + Send,
) -> PyResult<R> {
    py.detach(work).map_err(to_python)
}

/// A measure of the work of passing rows through trees.
pub(crate) fn size(n_rows: usize, settings: &MondrianSettings, domain: &Domain) -> usize {
    /// Up to as many features the time is the same.
    const FEW: usize = 16;
    n_rows.saturating_mul(settings.n_estimators).saturating_mul(domain.n_features().max(FEW))
}

/// [`run`], but on the calling thread if the work is small: starting another would take longer.
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
