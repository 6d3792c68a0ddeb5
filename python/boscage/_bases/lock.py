"""Calls of one object by several threads: calls that read it run together, those that write alone.

A whole method takes the lock, and not each access to the compiled model in it: a prediction puts
together probabilities and labels, numbers for categories and the trees that were grown with them,
and all of these have to be of one state of the forest.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import wraps
from typing import Any, Protocol, TypeVar, cast

from boscage import _core

Method = TypeVar("Method", bound=Callable[..., Any])

_NAME = "_lock"


class Lock(Protocol):
    """What methods take."""

    @property
    def reading(self) -> AbstractContextManager[None]: ...
    @property
    def writing(self) -> AbstractContextManager[None]: ...


class _NoLock:
    reading = writing = nullcontext()


NO_LOCK: Lock = _NoLock()
"""For objects that only `fit` changes."""


class OwnLock:
    """A lock for each object of a class, made when it is first needed.

    It becomes the attribute ``_lock`` of the object, which hides this one. It is no part of the
    object's state, and copies get others.
    """

    def __get__(self, owner: Any, _: Any = None) -> Lock:
        # If two threads are first, both get the one that is set first.
        lock: Lock = owner.__dict__.setdefault(_NAME, _core.ReadWriteLock())
        return lock


def without_lock(state: dict[str, Any]) -> dict[str, Any]:
    """The attributes of an object but its lock."""
    rest = state.copy()
    rest.pop(_NAME, None)
    return rest


def reading(method: Method) -> Method:
    """Let a method run beside others that read the same object, but not beside one that writes."""

    @wraps(method)
    def locked(self: Any, *args: Any, **kwargs: Any) -> Any:
        with self._lock.reading:
            return method(self, *args, **kwargs)

    return cast(Method, locked)


def writing(method: Method) -> Method:
    """Let a method run while no other thread reads or writes the same object."""

    @wraps(method)
    def locked(self: Any, *args: Any, **kwargs: Any) -> Any:
        with self._lock.writing:
            return method(self, *args, **kwargs)

    return cast(Method, locked)
