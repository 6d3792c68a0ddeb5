"""What a target column holds: whole numbers, numbers, truth values or text."""

from __future__ import annotations

from enum import IntEnum
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from boscage._cli.tables import Chunk, is_text


class Kind(IntEnum):
    """Kinds of label; text takes in whole numbers, and they take in nothing."""

    BOOLEAN = 0
    INTEGER = 1
    NUMBER = 2
    TEXT = 3

    @classmethod
    def of_column(cls, chunk: Chunk, name: str) -> Kind:
        """The narrowest kind of all values of a chunk's column."""
        values = chunk.column(name)
        chunk.refuse_missing(name, values, "a label")
        if pa.types.is_boolean(values.type):
            return cls.BOOLEAN
        if pa.types.is_integer(values.type):
            return cls.INTEGER
        if not is_text(values.type):
            return cls.NUMBER
        for kind, to in ((cls.INTEGER, pa.int64()), (cls.NUMBER, pa.float64())):
            try:
                pc.cast(values, to)
            except pa.ArrowInvalid:
                continue
            return kind
        return cls.TEXT

    @classmethod
    def of_classes(cls, classes: NDArray[Any]) -> Kind:
        """The kind of a model's classes."""
        kinds = {"b": cls.BOOLEAN, "i": cls.INTEGER, "u": cls.INTEGER, "f": cls.NUMBER}
        return kinds.get(np.asarray(classes).dtype.kind, cls.TEXT)

    def labels(self, chunk: Chunk, name: str) -> NDArray[Any]:
        """A chunk's labels, of this kind."""
        if self is Kind.NUMBER:
            return np.asarray(chunk.numbers(name).to_numpy())
        to, expected = {
            Kind.BOOLEAN: (pa.bool_(), "true or false, as the other labels"),
            Kind.INTEGER: (pa.int64(), "a whole number, as the other labels"),
            Kind.TEXT: (pa.string(), "a label"),
        }[self]
        values = chunk.convert(name, to, expected).to_numpy(zero_copy_only=False)
        return np.asarray(values, dtype=str) if self is Kind.TEXT else np.asarray(values)
