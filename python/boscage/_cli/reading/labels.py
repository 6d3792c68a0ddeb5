"""Labels of a table: their kind, and their values as a model takes them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from boscage._cli.notes import Kind
from boscage._cli.reading.tables import Chunk, is_text, shown

#: Rows within which a column of text must show a label that is no number.
ENOUGH = 1 << 16


def kind_of(chunk: Chunk, name: str) -> Kind:
    """The narrowest kind of all values of a chunk's column."""
    values = chunk.column(name)
    chunk.refuse_missing(name, values, "a target")
    if pa.types.is_boolean(values.type):
        return Kind.BOOLEAN
    if pa.types.is_integer(values.type):
        return Kind.INTEGER
    if pa.types.is_floating(values.type) or pa.types.is_decimal(values.type):
        return Kind.NUMBER
    if not is_text(values.type):
        chunk.refuse(0, name, shown(values[0]), "text or a number")
    for kind, to in ((Kind.INTEGER, pa.int64()), (Kind.NUMBER, pa.float64())):
        try:
            pc.cast(values, to)
        except pa.ArrowInvalid:
            continue
        return kind
    return Kind.TEXT


def read(kind: Kind, chunk: Chunk, name: str) -> NDArray[Any]:
    """A chunk's labels, of the given kind."""
    if kind is Kind.NUMBER:
        return np.asarray(chunk.numbers(name).to_numpy())
    to, expected = {
        Kind.BOOLEAN: (pa.bool_(), "true or false, as the other labels"),
        Kind.INTEGER: (pa.int64(), "a whole number, as the other labels"),
        Kind.TEXT: (pa.string(), "a label"),
    }[kind]
    values = chunk.convert(name, to, expected).to_numpy(zero_copy_only=False)
    return np.asarray(values, dtype=str) if kind is Kind.TEXT else np.asarray(values)


def require_whole(chunk: Chunk, name: str, y: NDArray[Any]) -> None:
    """Refuse a class that is a number, but not a whole one."""
    if (places := np.flatnonzero(np.isfinite(y) & (y != np.rint(y)))).size:
        expected = "a class: a word or a whole number (--task regression takes any number)"
        chunk.refuse(int(places[0]), name, str(y[places[0]]), expected)


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
        labels = read(self.kind, chunk, self._name)
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
