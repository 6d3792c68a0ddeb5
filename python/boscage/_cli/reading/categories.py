"""Columns of categories: which they are, and their places before the rows are learned.

A column of text is one of categories if most of its first values are neither numbers nor truth
values. So a column of numbers in which few cells hold something else is still refused by cell.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from boscage._cli.errors import UserError
from boscage._cli.reading.sources import Source
from boscage._cli.reading.tables import NUMBER, Chunk, is_text
from boscage._input.columns import mostly_differ, take
from boscage.mondrian._categories import learn_table

_NUMBER = rf"{NUMBER}|^true$|^false$"


def text_columns(chunk: Chunk, names: Sequence[str]) -> list[str]:
    """The columns most of whose values are words."""
    return [name for name in names if _is_of_words(chunk, name)]


def _is_of_words(chunk: Chunk, name: str) -> bool:
    if not is_text(chunk.column(name).type):
        return False
    words = chunk.words(name)
    is_number = pc.match_substring_regex(words, _NUMBER, ignore_case=True)
    share = pc.mean(pc.cast(is_number, pa.int8())).as_py()  # None without any value
    return share is not None and share < 0.5


def check_named(source: Source, named: Sequence[str], features: Sequence[str]) -> None:
    """Refuse columns of ``--categorical`` that are no features."""
    source.require(*named, why="categories")
    for name in named:
        if name not in features:
            raise UserError(f"--categorical: column {name!r} is not a feature")


@dataclass
class Categories:
    """The columns of categories, and what their rows have shown so far.

    Attributes
    ----------
    columns : list of str
        Their names.
    held : list of Table
        These columns of each chunk.
    """

    columns: list[str]
    held: list[pa.Table] = field(default_factory=list)

    def add(self, chunk: Chunk) -> None:
        """Take account of a chunk."""
        found = [chunk.words(name).dictionary_encode() for name in self.columns]
        self.held.append(pa.table(found, names=self.columns))

    def sizes(self) -> dict[str, int]:
        """How many categories each column has."""
        columns = self._columns()
        return {name: len(columns[i].labels) for i, name in enumerate(self.columns)}

    def doubts(self, named: Collection[str]) -> Iterator[str]:
        """Why columns, unless they are named, might not be meant as such: most values differ."""
        columns = self._columns()
        for i, name in enumerate(self.columns):
            n_rows, size = int(np.count_nonzero(columns[i].codes >= 0)), len(columns[i].labels)
            if name not in named and mostly_differ(n_rows, size):
                yield (
                    f"column {name!r} is taken for categories, {size} different ones in {n_rows}"
                    " rows, since it is text; numbers must have neither thousands separators nor"
                    f" per cent signs (--categorical {name} takes it so without this warning)"
                )

    def tables(self, y: NDArray[Any], features: Sequence[str]) -> list[Any]:
        """The estimators' parameter ``categories``, learned from all rows."""
        if y.dtype.kind != "f":
            y = np.unique(y, return_inverse=True)[1]
        columns = self._columns()
        found = {name: learn_table(columns[i], y) for i, name in enumerate(self.columns)}
        return [found.get(name) for name in features]

    def _columns(self) -> Any:
        if not self.columns:
            return {}
        table = pa.concat_tables(self.held)
        return take(table, range(len(self.columns)))[0]
