"""Notes in a model file about the table that the model was fitted on, and checks that use them.

Files that were not written by the command line may have no notes. Checks are skipped where the note
that they need is missing.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boscage._cli.errors import UserError

#: The notes' name in a model file's annotation.
SECTION = "boscage-table"


class Kind(IntEnum):
    """Kinds of label, from the narrowest to text, which takes in all others."""

    BOOLEAN = 0
    INTEGER = 1
    NUMBER = 2
    TEXT = 3

    @classmethod
    def of_classes(cls, classes: NDArray[Any]) -> Kind:
        """The kind of a model's classes."""
        kinds = {"b": cls.BOOLEAN, "i": cls.INTEGER, "u": cls.INTEGER, "f": cls.NUMBER}
        return kinds.get(np.asarray(classes).dtype.kind, cls.TEXT)

    @property
    def words(self) -> str:
        """The kind as messages call it."""
        return {
            Kind.BOOLEAN: "true or false",
            Kind.INTEGER: "whole numbers",
            Kind.NUMBER: "numbers",
            Kind.TEXT: "text",
        }[self]


@dataclass(frozen=True)
class Notes:
    """What is known of the table.

    Attributes
    ----------
    target : str or None
        The target's column; None if nothing is known.
    labels : str or None
        The kind of its labels, a name of `Kind` in small letters.
    id_column : str or None
        The column of ids; None if there was none, or if nothing is known.
    weight : str or None
        The column of weights; None if there was none, or if nothing is known.
    """

    target: str | None = None
    labels: str | None = None
    id_column: str | None = None
    weight: str | None = None

    @classmethod
    def of(cls, model: Any) -> Notes:
        """The notes in a model's file; empty if it has none, or others."""
        found = model._annotations().get(SECTION)
        if not isinstance(found, dict) or not isinstance(found.get("target"), str):
            return cls()
        texts = {name: found.get(name) for name in cls.__dataclass_fields__}
        return cls(**{name: text for name, text in texts.items() if isinstance(text, str)})

    @property
    def as_annotation(self) -> dict[str, Any]:
        """The notes as a model file keeps them."""
        found = asdict(self)
        if self.weight is None:
            # As in files that were written when there were no weights.
            del found["weight"]
        return {SECTION: found}

    @property
    def kind(self) -> Kind | None:
        """The kind of labels, if it is known."""
        return Kind.__members__.get((self.labels or "").upper())

    def check_target(self, path: str, given: str | None) -> str:
        """The given column of the target, which must be that of the notes, or by default theirs."""
        if given is None:
            if self.target is None:
                raise UserError(f"{path} does not say what it predicts: give --target COLUMN")
            return self.target
        if self.target not in (None, given):
            raise UserError(f"--target: found {given!r}, but {path} predicts {self.target!r}")
        return given

    def check_ids(self, path: str, given: str | None) -> str | None:
        """The given column of ids, which must be that of the notes; None where these have none."""
        if self.target is None or given == self.id_column:
            return given
        if given is None:
            raise UserError(
                f"the rows in {path} have ids, from column {self.id_column!r}:"
                f" give --id-column {self.id_column}"
            )
        if self.id_column is None:
            raise UserError(
                f"--id-column: the rows in {path} have no ids but their order of arrival:"
                " leave the option out"
            )
        raise UserError(
            f"--id-column: found {given!r}, but the ids in {path} are from column"
            f" {self.id_column!r}"
        )
