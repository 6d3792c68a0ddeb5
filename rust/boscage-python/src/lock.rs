//! A readers-writer lock for calls from Python: calls that read an object run together, and a call that changes it
//! runs alone.
//!
//! Python's standard library has none. In Rust a signal cannot come between two steps of taking it. Calls are
//! served in the order in which they come, so that neither readers nor writers wait for ever. Threads that wait
//! have released the interpreter, and notice Ctrl-C. A thread that has the lock may take it again, as methods that
//! call others do, but a thread that reads may not write.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyType;

use crate::gate::SLICE;

#[derive(Clone, Copy, PartialEq)]
enum Access {
    Read,
    Write,
}

/// A thread that has the lock.
struct Holder {
    thread: ThreadId,
    access: Access,
    /// How many times it has taken the lock, and not released it.
    depth: usize,
}

#[derive(Default)]
struct State {
    holders: Vec<Holder>,
    /// What those want that wait, in the order in which they came.
    waiting: BTreeMap<u64, Access>,
    /// The number of the next one that has to wait.
    next: u64,
}

impl State {
    /// Whether a thread that does not have the lock could have it now, if nobody waited.
    fn is_free_for(&self, access: Access) -> bool {
        match access {
            Access::Read => self.holders.iter().all(|holder| holder.access == Access::Read),
            Access::Write => self.holders.is_empty(),
        }
    }

    fn hand_to(&mut self, thread: ThreadId, access: Access) {
        self.holders.push(Holder { thread, access, depth: 1 });
    }

    /// Takes the lock, or a number to wait with.
    fn take_or_queue(&mut self, thread: ThreadId, access: Access) -> PyResult<Option<u64>> {
        if let Some(holder) = self.holders.iter_mut().find(|holder| holder.thread == thread) {
            if (holder.access, access) == (Access::Read, Access::Write) {
                return Err(PyRuntimeError::new_err(
                    "this thread is in a call that reads the object, and cannot change it before the call has ended",
                ));
            }
            holder.depth += 1;
            return Ok(None);
        }
        if self.waiting.is_empty() && self.is_free_for(access) {
            self.hand_to(thread, access);
            return Ok(None);
        }
        let number = self.next;
        self.next += 1;
        self.waiting.insert(number, access);
        Ok(Some(number))
    }

    /// Takes the lock if it is the turn of that number.
    fn take_in_turn(&mut self, number: u64, thread: ThreadId, access: Access) -> bool {
        let is_first = self.waiting.first_key_value().is_some_and(|(&first, _)| first == number);
        let takes = is_first && self.is_free_for(access);
        if takes {
            self.waiting.remove(&number);
            self.hand_to(thread, access);
        }
        takes
    }

    /// Releases the lock once.
    fn release(&mut self, thread: ThreadId) -> PyResult<()> {
        let of_thread = |holder: &Holder| holder.thread == thread;
        let place = self.holders.iter().position(of_thread);
        let place = place.ok_or_else(|| PyRuntimeError::new_err("this thread does not have the lock"))?;
        self.holders[place].depth -= 1;
        if self.holders[place].depth == 0 {
            self.holders.swap_remove(place);
        }
        Ok(())
    }
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

impl Shared {
    /// The state. Nothing that holds it panics or needs the interpreter.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn acquire(&self, py: Python<'_>, access: Access) -> PyResult<()> {
        let thread = thread::current().id();
        let Some(number) = self.state().take_or_queue(thread, access)? else { return Ok(()) };
        while !py.detach(|| self.wait(number, thread, access)) {
            // A handler of a signal may want the lock, too: it must not wait behind this call.
            self.change(|state| state.waiting.remove(&number));
            py.check_signals()?;
            self.change(|state| state.waiting.insert(number, access));
        }
        Ok(())
    }

    /// Waits for some time. Returns whether the lock was taken.
    fn wait(&self, number: u64, thread: ThreadId, access: Access) -> bool {
        let state = self.state();
        let mut takes = false;
        let waits = |state: &mut State| {
            takes = state.take_in_turn(number, thread, access);
            !takes
        };
        let guard = self.changed.wait_timeout_while(state, SLICE, waits);
        drop(guard.unwrap_or_else(PoisonError::into_inner));
        if takes {
            // The next one may read at the same time.
            self.changed.notify_all();
        }
        takes
    }

    fn release(&self) -> PyResult<()> {
        self.change(|state| state.release(thread::current().id()))
    }

    /// Changes the state, after which another thread may have its turn.
    fn change<R>(&self, change: impl FnOnce(&mut State) -> R) -> R {
        let mut state = self.state();
        let result = change(&mut state);
        let somebody_waits = !state.waiting.is_empty();
        drop(state);
        if somebody_waits {
            self.changed.notify_all();
        }
        result
    }
}

/// The lock; each of its copies is a new one.
#[pyclass(module = "boscage._core", frozen)]
pub(crate) struct ReadWriteLock {
    reading: Py<LockAccess>,
    writing: Py<LockAccess>,
}

#[pymethods]
impl ReadWriteLock {
    #[new]
    fn new(py: Python<'_>) -> PyResult<Self> {
        let lock = Arc::new(Shared::default());
        let access = |access| Py::new(py, LockAccess { lock: Arc::clone(&lock), access });
        Ok(Self { reading: access(Access::Read)?, writing: access(Access::Write)? })
    }

    /// For a `with` statement that other readers run beside.
    #[getter]
    fn reading(&self, py: Python<'_>) -> Py<LockAccess> {
        self.reading.clone_ref(py)
    }

    /// For a `with` statement that runs alone.
    #[getter]
    fn writing(&self, py: Python<'_>) -> Py<LockAccess> {
        self.writing.clone_ref(py)
    }

    fn __reduce__<'py>(this: &Bound<'py, Self>) -> (Bound<'py, PyType>, ()) {
        (this.get_type(), ())
    }
}

/// One of the two ways to have the lock, as a context manager.
#[pyclass(module = "boscage._core", frozen)]
pub(crate) struct LockAccess {
    lock: Arc<Shared>,
    access: Access,
}

#[pymethods]
impl LockAccess {
    fn __enter__(&self, py: Python<'_>) -> PyResult<()> {
        self.lock.acquire(py, self.access)
    }

    fn __exit__(
        &self,
        _kind: &Bound<'_, PyAny>,
        _value: &Bound<'_, PyAny>,
        _trace: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        self.lock.release()
    }
}
