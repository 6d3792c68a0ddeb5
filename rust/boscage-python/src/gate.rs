//! The gate to long work: it releases the interpreter, checks for signals, reports progress, and warns.

use std::ffi::CString;
use std::sync::{Mutex, mpsc};
use std::time::{Duration, Instant};

use boscage::{Control, Domain, Error, MondrianSettings, Run};
use pyo3::prelude::*;

use crate::errors::to_python;

/// Time between two checks for signals.
pub(crate) const SLICE: Duration = Duration::from_millis(50);
/// Time between two reports of progress.
const REPORT: Duration = Duration::from_millis(100);

/// Percents of the targets' norm that may be left unexplained without a warning.
const TOLD: f64 = 1.0;

/// Runs `work` without holding the interpreter. Ctrl-C stops it, and is raised after it has stopped.
pub(crate) fn run<R: Send>(
    py: Python<'_>,
    n_threads: usize,
    progress: Option<&Bound<'_, PyAny>>,
    work: impl FnOnce(&Run<'_>) -> boscage::Result<R> + Send,
) -> PyResult<R> {
    let (mut work, mut result) = (Some(work), None);
    let control = Control::new();
    let raised = wait_for(py, &Run { n_threads, control: &control }, progress, &mut |run| {
        result = work.take().map(|work| work(run));
    })?;
    match (result.expect("work that does not panic has a result"), raised) {
        // Work may end before it notices the stop; the signal is still raised.
        (Ok(_) | Err(Error::Interrupted), Some(error)) => Err(error),
        (result, _) => finish(py, result, &control),
    }
}

/// The result or the error, and a warning if much could not be solved.
fn finish<R>(py: Python<'_>, result: boscage::Result<R>, control: &Control) -> PyResult<R> {
    let result = result.map_err(to_python)?;
    let percent = 100.0 * control.unexplained();
    if percent >= TOLD {
        let category = py.import("sklearn.exceptions")?.getattr("ConvergenceWarning")?;
        let message = format!(
            "the equations of the joint posterior could not be solved: predictions at training rows are off by about \
             {percent:.0} % of the targets' standard deviation; give more noise, sample weights that differ less, or \
             joint_kernel='limit'"
        );
        PyErr::warn(py, &category, &CString::new(message)?, 2)?;
    }
    Ok(result)
}

/// Runs work on another thread and waits for it. Returns the exception that a signal or a report of progress
/// raised.
///
/// Not generic, so that it is compiled once, and not for every kind of work.
fn wait_for(
    py: Python<'_>,
    run: &Run<'_>,
    progress: Option<&Bound<'_, PyAny>>,
    work: &mut (dyn FnMut(&Run<'_>) + Send),
) -> PyResult<Option<PyErr>> {
    let (done, ended) = mpsc::channel();
    // Only this thread receives. The lock makes the receiver `Sync`, as is needed to release the interpreter.
    let ended = Mutex::new(ended);
    let wait = || ended.lock().expect("no listener panics").recv_timeout(SLICE);
    std::thread::scope(|scope| {
        let control = run.control;
        scope.spawn(move || {
            let work = std::panic::AssertUnwindSafe(|| work(run));
            // Sending cannot fail, since the receiver exists until it has received.
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

/// Runs short work on the calling thread without holding the interpreter, since it may wait for another
/// thread that updates the same model.
pub(crate) fn brief<R: Send>(
    py: Python<'_>,
    work: impl FnOnce() -> boscage::Result<R> + Send,
) -> PyResult<R> {
    py.detach(work).map_err(to_python)
}

/// An estimate of the work of passing rows through trees.
pub(crate) fn size(n_rows: usize, settings: &MondrianSettings, domain: &Domain) -> usize {
    /// Up to this many features the time does not depend on their number.
    const FEW: usize = 16;
    n_rows.saturating_mul(settings.n_estimators).saturating_mul(domain.n_features().max(FEW))
}

/// As [`run`], but on the calling thread if the work is small, since starting a thread would take longer.
pub(crate) fn run_sized<R: Send>(
    py: Python<'_>,
    size: usize,
    n_threads: usize,
    progress: Option<&Bound<'_, PyAny>>,
    work: impl FnOnce(&Run<'_>) -> boscage::Result<R> + Send,
) -> PyResult<R> {
    /// A few milliseconds of work: 64 rows of 16 features and 100 trees.
    const SMALL: usize = 64 * 16 * 100;
    if size > SMALL {
        return run(py, n_threads, progress, work);
    }
    let control = Control::new();
    let result = py.detach(|| work(&Run { n_threads, control: &control }));
    finish(py, result, &control)
}
