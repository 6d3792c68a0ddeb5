"""What growing takes of memory, and how much of it there is."""

from __future__ import annotations

import ctypes
import math
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from boscage import _validation
from boscage.mondrian.feature_rates import kernel_rates
from boscage.mondrian.feature_rates._shared import LEARNING_ROWS, MOST_FEATURES

_UNITS = {"": 1, "b": 1} | {
    f"{letter}{ending}": base**power
    for power, letter in enumerate("kmgtp", start=1)
    for ending, base in (("b", 1000), ("", 1000), ("ib", 1024))
}
_LEAST = 32 << 20
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
"""The options' numbers in glibc's malloc.h."""


def check_limit(value: Any) -> int:
    """``memory_limit`` in bytes."""
    expected = "memory_limit must be a number of bytes, or a text such as '2GB' or '500MiB'"
    if isinstance(value, str):
        found = re.fullmatch(r"\s*(\d+(?:\.\d*)?)\s*([a-z]*)\s*", value.lower())
        if found is None or found[2] not in _UNITS:
            raise ValueError(f"{expected}; found {value!r}")
        value = int(float(found[1]) * _UNITS[found[2]])
    elif not _validation.is_integer(value):
        raise TypeError(f"{expected}; found {value!r}")
    if value < _LEAST:
        raise ValueError(f"memory_limit must be at least {in_words(_LEAST)}, found {value} bytes")
    return int(value)


def _of_libc(name: str) -> Any:
    """A function of the C library on Linux, if it has it."""
    return getattr(ctypes.CDLL(None), name, None) if sys.platform == "linux" else None


@contextmanager
def giving_back() -> Iterator[None]:
    """Let threads give freed memory back to the system at once.

    glibc gives back what lies last in a thread's memory only beyond a threshold, and maps only
    larger blocks of their own; both thresholds grow with what is freed. They are the whole
    process's, and as great as they can grow afterwards.
    """
    set_option = _of_libc("mallopt")
    if set_option is None:
        yield
        return
    options = (_TRIM_THRESHOLD, _MMAP_THRESHOLD)
    for option in options:
        set_option(option, 1 << 20)
    try:
        yield
    finally:
        # Else NumPy's large arrays would be mapped anew each time, which takes much longer.
        for option, greatest in zip(options, (64 << 20, 32 << 20), strict=True):
            set_option(option, greatest)


def give_back() -> None:
    """Give freed memory back to the system; glibc keeps it, and more for each thread that was."""
    trim = _of_libc("malloc_trim")
    if trim is not None:
        trim(0)


def in_words(n_bytes: float) -> str:
    """Bytes as a person reads them."""
    units = ["bytes", "kB", "MB", "GB", "TB"]
    power = min(int(math.log(max(n_bytes, 1), 1000)), len(units) - 1)
    return f"{n_bytes / 1000**power:.3g} {units[power]}"


@dataclass(frozen=True)
class Costs:
    """Bytes that growing takes, each somewhat more than measured."""

    limit: int
    n_features: int
    width: int
    """Bytes of a value."""
    to_read: int
    """What reading takes beside blocks of rows."""

    @property
    def of_forest(self) -> int:
        """What is left for a forest and the rows of a group: blocks of rows need the rest."""
        return self.limit - self.limit // 8 - (8 << 20) - self.to_read

    def block_rows(self, n_trees: int) -> int:
        """The rows of a block, of which some copies are made, and whose cells are found."""
        of_row = 32 * self.n_features + 4 * n_trees + 64
        return max(256, min(1 << 16, self.limit // 16 // of_row))

    @property
    def of_learning(self) -> int:
        """What is left for a sample from which rates are learned: there are no blocks then."""
        return self.limit - self.to_read

    def learning(self, n_rows: int, n_classes: int, n_threads: int) -> float:
        """To learn rates from a sample of so many rows; numbers have no classes."""
        if self.n_features == 1:
            return 0.0  # nothing is learned
        n, d = min(n_rows, LEARNING_ROWS), min(self.n_features, MOST_FEATURES)
        m = min(n, kernel_rates.MAX_ROWS)
        kernel = 14 * m**2 * (min(d, kernel_rates.MAX_FEATURES) + min(n_classes, m))
        if n_classes:
            needed = (10 << 20) + (n_threads << 19) + kernel + 48 * n * d
        else:
            trees = 35_000 * d + 120 * n * d
            needed = (16 << 20) + (min(n_threads, 4) << 22) + max(kernel, trees)
        values = n_rows * self.n_features
        # Of more features, the most important ones are found first.
        to_find = 34 * values if self.n_features > d else 0
        return max(to_find, 8 * values + needed)

    @property
    def key(self) -> int:
        """A key of rows, and their number, as they are counted, and then put in order."""
        return 96

    @property
    def row(self) -> int:
        """A row of a group: as it is collected, in the forest's table, and in its transpose."""
        return 3 * self.width * self.n_features + 64

    def pair(self, leaves: float) -> float:
        """A pair of a row of a group and a tree, where a row has so many leaves."""
        return 64 + leaves * (self._grown_leaf + self._written_leaf + self.leaf)

    @property
    def leaf(self) -> float:
        """A leaf of a tree that is made from what was written down, with its share of splits."""
        return 300 + 2.5 * self.width * self.n_features

    def rule(self, n_rows: int, n_trees: int, least: int) -> float:
        """The forest that chooses hyperparameters, whose leaves have a third of `least` rows."""
        of_pair = 40 + min(1.0, 4 / least) * (260 + 2.5 * self.width)
        return n_rows * (n_trees * of_pair + 4 * self.width * self.n_features)

    @property
    def _written_leaf(self) -> float:
        return 48 + 4 * self.width * self.n_features

    @property
    def _grown_leaf(self) -> float:
        """Rows keep the bounds of few leaves; most are read off the rows."""
        return 450
