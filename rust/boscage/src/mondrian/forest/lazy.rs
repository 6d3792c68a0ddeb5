//! A value that is updated when it is read.

use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError, TryLockError};
use std::time::Duration;

/// A value, up to date or not.
///
/// Readers get a plain reference: once the value is up to date, nothing is locked until it is borrowed
/// mutably. Work that ends early, by an error or a panic, must leave a value with which the next reader can
/// continue.
#[derive(Debug)]
pub(crate) struct Lazy<T> {
    done: OnceLock<T>,
    owed: Mutex<Option<T>>,
}

impl<T> Lazy<T> {
    /// A value that is not up to date.
    pub(crate) fn new(value: T) -> Self {
        Self { done: OnceLock::new(), owed: Mutex::new(Some(value)) }
    }

    /// The value as it is; from now on it counts as not up to date.
    pub(crate) fn get_mut(&mut self) -> &mut T {
        let owed = self.owed.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(value) = self.done.take() {
            *owed = Some(value);
        }
        owed.as_mut().expect(EITHER)
    }

    /// The value, after `work` has updated it. After an error it stays as far as `work` has come. Other
    /// readers wait meanwhile, as long as `waits` returns no error.
    ///
    /// # Errors
    /// Those of `work` and of `waits`.
    pub(crate) fn flushed<E>(
        &self,
        work: impl FnOnce(&mut T) -> Result<(), E>,
        waits: impl Fn() -> Result<(), E>,
    ) -> Result<&T, E> {
        if let Some(value) = self.done.get() {
            return Ok(value);
        }
        let mut owed = loop {
            if let Some(owed) = self.try_lock() {
                break owed;
            }
            waits()?;
            std::thread::sleep(PATIENCE);
        };
        // Another thread may have done it since.
        if let Some(value) = owed.as_mut() {
            work(value)?;
        }
        Ok(self.done.get_or_init(|| owed.take().expect(EITHER)))
    }

    /// Reads the value as it is; waits while another thread updates it.
    pub(crate) fn peek<R>(&self, read: impl FnOnce(&T) -> R) -> R {
        if let Some(value) = self.done.get() {
            return read(value);
        }
        let owed = self.owed.lock().unwrap_or_else(PoisonError::into_inner);
        self.read(owed.as_ref(), read)
    }

    /// The same; `None` while another thread updates it.
    pub(crate) fn try_peek<R>(&self, read: impl FnOnce(&T) -> R) -> Option<R> {
        match self.done.get() {
            Some(value) => Some(read(value)),
            None => self.try_lock().map(|owed| self.read(owed.as_ref(), read)),
        }
    }

    fn read<R>(&self, owed: Option<&T>, read: impl FnOnce(&T) -> R) -> R {
        read(owed.or_else(|| self.done.get()).expect(EITHER))
    }

    /// The lock, unless another thread holds it.
    fn try_lock(&self) -> Option<MutexGuard<'_, Option<T>>> {
        match self.owed.try_lock() {
            Ok(owed) => Some(owed),
            Err(TryLockError::Poisoned(owed)) => Some(owed.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }
}

/// The pause between two calls of `waits`.
const PATIENCE: Duration = Duration::from_millis(2);
const EITHER: &str = "the value is done or owed";

impl<T: Clone> Clone for Lazy<T> {
    fn clone(&self) -> Self {
        match self.done.get() {
            Some(value) => Self { done: OnceLock::from(value.clone()), owed: Mutex::new(None) },
            None => Self::new(self.peek(T::clone)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;

    /// A sum so far, and what is still to be added.
    type Sum = (u32, Vec<u32>);

    fn add((sum, rest): &mut Sum) -> Result<(), ()> {
        while let Some(next) = rest.pop() {
            if next == 0 {
                rest.push(1);
                return Err(());
            }
            *sum += next;
        }
        Ok(())
    }

    fn flushed(sum: &Lazy<Sum>) -> Result<u32, ()> {
        sum.flushed(add, || Ok(())).map(|sum| sum.0)
    }

    #[test]
    fn work_is_done_once_and_goes_on_after_an_error() {
        let mut sum = Lazy::new((1, vec![5, 0, 7]));
        let copy = sum.clone();
        assert_eq!(flushed(&sum), Err(()));
        assert_eq!(sum.peek(Sum::clone), (8, vec![5, 1]));
        assert_eq!(flushed(&sum), Ok(14));
        assert_eq!(sum.flushed(|_| Err(()), || Ok(())).map(|sum| sum.0), Ok(14));
        assert_eq!(copy.peek(|sum| sum.0), 1);
        let (value, rest) = sum.get_mut();
        assert_eq!((*value, rest.len()), (14, 0));
        rest.push(6);
        assert_eq!(flushed(&sum.clone()), Ok(20));
        assert_eq!(flushed(&sum), Ok(20));
        assert_eq!(flushed(&sum.clone()), Ok(20));
    }

    #[test]
    fn a_waiting_reader_can_be_interrupted() {
        let sum = Lazy::new((0, vec![1]));
        std::thread::scope(|scope| {
            let (begun, begins) = std::sync::mpsc::channel();
            let (ends, ended) = std::sync::mpsc::channel::<()>();
            let sum = &sum;
            scope.spawn(move || {
                let work = |sum: &mut Sum| {
                    begun.send(()).unwrap();
                    ended.recv().unwrap();
                    add(sum)
                };
                sum.flushed(work, || Ok(())).unwrap();
            });
            begins.recv().unwrap();
            assert_eq!(sum.flushed(add, || Err(())), Err(()));
            assert_eq!(sum.try_peek(|sum| sum.0), None);
            ends.send(()).unwrap();
        });
        assert_eq!(sum.peek(|sum| sum.0), 1);
    }

    #[test]
    fn the_next_reader_continues_after_a_panic() {
        let sum = Lazy::new((1, vec![5]));
        let breaks = |sum: &mut Sum| {
            sum.1.push(7);
            panic!("in the middle of it")
        };
        let broken = catch_unwind(AssertUnwindSafe(|| sum.flushed(breaks, || Ok::<(), ()>(())).map(drop)));
        assert!(broken.is_err());
        assert_eq!(sum.peek(Sum::clone), (1, vec![5, 7]));
        assert_eq!(flushed(&sum), Ok(13));
    }

    #[test]
    fn readers_at_the_same_time_see_it_done() {
        let sum = Lazy::new((0, (1..=1000).collect()));
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| assert_eq!(flushed(&sum), Ok(500_500)));
            }
        });
    }
}
