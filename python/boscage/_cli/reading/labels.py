"""Labels of a table: their kind, and their values as a model takes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from boscage._cli.notes import Kind
from boscage._cli.reading.tables import NUMBER, Chunk, holds_integers, is_text, shown
from boscage._input.columns import mostly_differ

#: Rows within which a column of text must show a label that is no number.
ENOUGH = 1 << 16


def kind_of(chunk: Chunk, name: str) -> Kind:
    """The narrowest kind of all values of a chunk's column, none of which is missing.

    Whole numbers are of the kind `INTEGER` however they are written: as ``1``, ``+1`` or ``1.0``.
    """
    values = chunk.column(name)
    if pa.types.is_boolean(values.type):
        return Kind.BOOLEAN
    if pa.types.is_integer(values.type):
        return Kind.INTEGER
    is_number = pa.types.is_floating(values.type) or pa.types.is_decimal(values.type)
    if not is_number and not is_text(values.type):
        chunk.refuse(0, name, shown(values[0]), "text or a number")
    try:
        return Kind.INTEGER if holds_integers(values) else Kind.NUMBER
    except pa.ArrowInvalid:
        return Kind.TEXT


def read(kind: Kind, chunk: Chunk, name: str, known: Sequence[Any] = ()) -> NDArray[Any]:
    """A chunk's labels, of the given kind, none of which may be missing.

    Classes that are `known` are labels though they stand for missing values elsewhere.
    """
    chunk.refuse_missing_target(name, known)
    if kind is Kind.NUMBER:
        return np.asarray(chunk.numbers(name).to_numpy())
    if kind is Kind.INTEGER:
        return np.asarray(chunk.integers(name, "a whole number, as the other labels").to_numpy())
    to, expected = {
        Kind.BOOLEAN: (pa.bool_(), "true or false, as the other labels"),
        Kind.TEXT: (pa.string(), "a label"),
    }[kind]
    values = chunk.convert(name, to, expected).to_numpy(zero_copy_only=False)
    return np.asarray(values, dtype=str) if kind is Kind.TEXT else np.asarray(values)


def require_whole(chunk: Chunk, name: str, y: NDArray[Any]) -> None:
    """Refuse a class that is a number, but not a whole one."""
    if (places := np.flatnonzero(np.isfinite(y) & (y != np.rint(y)))).size:
        expected = "a class: a word or a whole number (--task regression takes any number)"
        chunk.refuse(int(places[0]), name, str(y[places[0]]), expected)


class TargetSurvey:
    """What a column of targets has shown so far.

    Parameters
    ----------
    name : str
        The column.
    max_classes : int
        Whole numbers are few if there are at most so many different ones.

    Attributes
    ----------
    name : str
        The column.
    kind : Kind
        The narrowest kind of all labels.
    """

    def __init__(self, name: str, max_classes: int) -> None:
        self.kind = Kind.BOOLEAN
        self._max_classes = max_classes
        self._integers: set[int] = set()
        self.name, self._table = name, ""
        # Of text, in the first rows.
        self._n_rows = self._n_numbers = 0
        self._words: set[str] = set()
        self._no_number: str | None = None

    def add(self, chunk: Chunk) -> None:
        """Take account of a chunk, which must have all targets."""
        self._table = chunk.name
        chunk.refuse_missing_target(self.name)
        kind = kind_of(chunk, self.name)
        self.kind = max(self.kind, kind)
        if kind is Kind.INTEGER and self.are_few:
            self._integers.update(np.unique(read(kind, chunk, self.name)).tolist())
        if is_text((values := chunk.column(self.name)).type):
            self._look(chunk, values)

    @property
    def are_few(self) -> bool:
        """Whether few whole numbers differ."""
        return len(self._integers) <= self._max_classes

    def _look(self, chunk: Chunk, values: pa.Array) -> None:
        is_number = pc.match_substring_regex(values, NUMBER, ignore_case=True)
        if self._n_rows < ENOUGH:
            self._n_rows += len(chunk)
            self._n_numbers += pc.sum(is_number).as_py()
            self._words.update(pc.unique(values).to_pylist())
        index = pc.index(is_number, False).as_py()
        if self._no_number is None and index >= 0:
            self._no_number = f"row {chunk.first_row + index} holds {shown(values[index])}"

    def doubt(self) -> str | None:
        """Why text might not be meant as classes: most labels are numbers, or differ."""
        most = max(self._n_numbers, len(self._words))
        is_sure = not mostly_differ(self._n_rows, most)
        if self.kind is not Kind.TEXT or self._no_number is None or is_sure:
            return None
        count = f"{len(self._words)} different ones in the first {self._n_rows} rows"
        return (
            f"{self._table}: column {self.name!r} is taken for classes, {count}, since"
            f" {self._no_number}, which is no number (--task classification takes it so without"
            " this warning)"
        )


class KnownLabels:
    """Labels for a fitted model, which refuses a column of numbers where its labels are text.

    Text may hold numbers beside words. So a column is one of numbers if neither a word nor a label
    that the model knows is among its first rows.

    Parameters
    ----------
    model : estimator
        What it knows decides, if `kind` does not.
    kind : Kind or None
        The kind of the labels that the model was fitted to, if it is known.
    name : str
        The column.
    """

    def __init__(self, model: Any, kind: Kind | None, name: str) -> None:
        classes = getattr(model, "classes_", None)
        if kind is None:
            kind = Kind.NUMBER if classes is None else Kind.of_classes(classes)
        self.kind = kind
        self._name = name
        self._known = [] if classes is None else np.asarray(classes).tolist()
        self._n_rows = 0
        self._is_settled = kind is not Kind.TEXT
        self._first: tuple[Chunk, int, str] | None = None

    def read(self, chunk: Chunk) -> NDArray[Any]:
        """A chunk's labels."""
        labels = read(self.kind, chunk, self._name, self._known)
        if not self._is_settled:
            self._look(chunk, labels)
            if self._n_rows >= ENOUGH:
                self.finish()
        return labels

    def finish(self) -> None:
        """Refuse a column of numbers, now that its rows have been seen."""
        if not self._is_settled and self._first is not None:
            chunk, row, found = self._first
            shown = ", ".join(map(repr, self._known[:3])) + ", ..." * (len(self._known) > 3)
            chunk.refuse(row, self._name, found, f"text, as the model's labels {shown}".rstrip())
        self._is_settled = True

    def _look(self, chunk: Chunk, labels: NDArray[Any]) -> None:
        self._n_rows += len(chunk)
        new = ~np.isin(labels, np.asarray(self._known, dtype=str))
        if kind_of(chunk, self._name) is Kind.TEXT or not new.all():
            self._is_settled = True
        elif self._first is None and new.any():
            row = int(np.argmax(new))
            self._first = (chunk, row, str(labels[row]))
