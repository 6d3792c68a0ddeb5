"""Class labels: as codes, declared before rows have them, and of one type in a stream."""

from __future__ import annotations

from collections.abc import Collection
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boscage._input.columns import checked_text
from boscage._types import AnyArray, Label


def encode(y: AnyArray, known: Collection[Label]) -> tuple[NDArray[np.uint32], list[Label]]:
    """Labels as codes and the sorted list of labels, of the type of the known ones."""
    unique, codes = np.unique(y, return_inverse=True)
    labels = conform(unique, known, "y")
    return codes.astype(np.uint32), labels


def as_labels(labels: Any) -> Any:
    """A list of text and other labels as objects, since NumPy would make text of all of them.

    Everything else is returned as it is.
    """
    if not isinstance(labels, (list, tuple)):
        return labels
    kinds = set(map(type, labels))
    is_text = [issubclass(kind, str) for kind in kinds]
    return np.array(labels, dtype=object) if any(is_text) and not all(is_text) else labels


def as_numbers(labels: AnyArray) -> AnyArray:
    """Numbers that are in an array of objects, for example from a nullable column of pandas.

    Everything else is returned as it is.
    """
    if labels.dtype.kind != "O":
        return labels
    are_numbers = all(isinstance(label, (bool, np.bool_, Real)) for label in labels.flat)
    return np.array(labels.tolist()) if are_numbers else labels


def check_classes(classes: Any, known: Collection[Label]) -> list[Label]:
    """Declared labels, sorted and without repetitions: such as may be in y."""
    declared = np.asarray(as_labels(classes))
    if declared.ndim != 1 or not declared.size:
        raise ValueError(f"classes has shape {declared.shape}; expected a list of labels")
    try:
        unique = np.unique(declared)
    except TypeError as error:
        raise TypeError("classes mixes labels of several types; expected one type") from error
    for value in unique.tolist():
        if isinstance(value, float) and not (value.is_integer() and abs(value) <= 2.0**53):
            raise ValueError(
                f"classes holds {value}; a label of type float must be a whole number up to 2**53"
            )
    return conform(unique, known, "classes")


def conform(unique: AnyArray, known: Collection[Label], what: str) -> list[Label]:
    """Labels as Python values of one type: that of the known classes, if there are any.

    A stream may hold 0 and 1 as integers at first and as floats later; they are the same classes.
    """
    labels: list[Label] = [_plain(value, what) for value in unique.tolist()]
    kinds = {type(label) for label in labels}
    if len(kinds) > 1:
        named = ", ".join(sorted(kind.__name__ for kind in kinds))
        raise TypeError(f"{what} mixes labels of types {named}; expected labels of one type")
    if not known:
        return labels
    kind = type(next(iter(known)))
    out: list[Label] = []
    for label in labels:
        if type(label) is not kind:
            if str in (kind, type(label)) or kind(label) != label:
                raise ValueError(
                    f"{what} holds the label {label!r}, but the classes so far are of type "
                    f"{kind.__name__} ({listed(known)})"
                )
            label = kind(label)
        out.append(label)
    return out


def _plain(value: Any, what: str) -> Label:
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise ValueError(f"{what} holds the label {value}; integers must fit 64 bits")
    if isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, str):
        return checked_text(value, f"{what} holds the label")
    raise TypeError(
        f"{what} holds the label {value!r} of type {type(value).__name__}; "
        "expected booleans, integers, floats or strings"
    )


def listed(values: Collection[Label]) -> str:
    """The first of some labels, as messages show them."""
    shown = [repr(value) for value in list(values)[:8]]
    return ", ".join(shown + ["..."] * (len(values) > 8))
