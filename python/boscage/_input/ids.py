"""Rows' ids: whole numbers as they are, and other names of rows as numbers."""

from __future__ import annotations

import hashlib
from numbers import Integral
from typing import Any
from uuid import UUID

import numpy as np
from numpy.typing import ArrayLike

from boscage._types import AnyArray, Ids

_MAX = 2**64 - 1
# Names get numbers from here on, so that they share none with rows that are numbered from 0.
_FIRST_NAME = 2**63


def row_numbers(ids: ArrayLike) -> Ids:
    """The numbers under which a forest keeps rows with these ids.

    A whole number from 0 to 2^64 - 1 is its own number, also if it is written as text. Other text,
    UUIDs and negative integers have a number from 2^63 on, which is the same everywhere and for
    ever: 63 bits of a BLAKE2b hash of the text.

    Parameters
    ----------
    ids : array-like of shape (n_rows,)
        Integers, text or UUIDs. A UUID and its text are the same id.

    Returns
    -------
    ndarray of uint64 of shape (n_rows,)
        As in a forest's ``ids_``. Among a million rows two names share a number with a probability
        of one in 18 million; a forest refuses the second.

    Raises
    ------
    TypeError
        If an id is neither an integer, nor text, nor a UUID.
    ValueError
        If an integer is 2^64 or greater.

    Examples
    --------
    >>> from boscage import row_numbers
    >>> row_numbers(["anna", 17, -1])
    array([10109037774674085072,                   17, 16573399945805584159],
          dtype=uint64)
    """
    array = _as_array(ids)
    if array.dtype.kind == "u" or (array.dtype.kind == "i" and not (array < 0).any()):
        return np.ascontiguousarray(array, dtype=np.uint64)
    if array.dtype.kind not in "iUOT":
        raise TypeError(f"ids must be integers, text or UUIDs, found {array.dtype}")
    numbers = [_number(value, row) for row, value in enumerate(array.ravel().tolist())]
    return np.array(numbers, dtype=np.uint64).reshape(array.shape)


def _as_array(ids: Any) -> AnyArray:
    array = np.asarray(ids)
    if array.dtype.kind in "Uf" and not isinstance(ids, np.ndarray):
        # numpy makes text of numbers beside text, and floats of large integers.
        array = np.asarray(ids, dtype=object)
    return array


def _number(value: Any, row: int) -> int:
    if isinstance(value, Integral) and not isinstance(value, bool):
        if int(value) > _MAX:
            raise ValueError(f"ids must be below 2**64, found {value} in row {row}")
    elif not isinstance(value, (str, UUID)):
        raise TypeError(f"ids must be integers, text or UUIDs, found {value!r} in row {row}")
    text = str(value)
    if len(text) <= len(str(_MAX)) and text.isascii() and text.isdecimal():
        number = int(text)
        if number <= _MAX and str(number) == text:
            return number
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little") | _FIRST_NAME


def check_ids(ids: Any, n_rows: int | None = None) -> Ids:
    """Ids as numbers, checked to be distinct."""
    given = _as_array(ids)
    if n_rows is None:
        given = np.atleast_1d(given)
    if given.ndim != 1:
        raise ValueError(f"ids has shape {given.shape}; expected one id per row")
    if n_rows is not None and len(given) != n_rows:
        raise ValueError(f"ids has {len(given)} entries for {n_rows} rows; expected one per row")
    if not len(given):
        return np.empty(0, dtype=np.uint64)
    numbers = row_numbers(given)
    order = np.argsort(numbers, kind="stable")
    same = np.flatnonzero(numbers[order[1:]] == numbers[order[:-1]])
    if same.size:
        first, second = sorted(order[[same[0], same[0] + 1]])
        where = "" if n_rows is None else f" in rows {first} and {second}"
        raise ValueError(_clash(given[first], given[second], where))
    return numbers


def unknown(ids: Any, held: Ids) -> str:
    """Which of some ids is none of the numbers `held`, in words."""
    given = np.atleast_1d(_as_array(ids))
    first = given[np.argmin(np.isin(row_numbers(given), held))]
    return f"{_named(first)} is not in the forest"


def already(ids: Any, held: Ids) -> str:
    """Which of some ids is one of the numbers `held`, in words."""
    given = _as_array(ids)
    first = given[np.argmax(np.isin(row_numbers(given), held))]
    return f"id {_named(first)} is already in the forest; ids must be unique"


def _named(one: Any) -> str:
    """An id as messages show it, without NumPy's type."""
    return repr(one.item() if isinstance(one, np.generic) else one)


def _clash(one: Any, other: Any, where: str) -> str:
    if str(one) == str(other):
        return f"ids must differ from each other, found {one}{where or ' twice'}"
    return (
        f"the ids {one!r} and {other!r}{where} have the same number "
        "(see boscage.row_numbers); choose another for one of them"
    )
