"""Names of features and classes, as rules and drawings show them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from boscage._types import AnyArray

Names: TypeAlias = Sequence[object] | AnyArray


def feature_name(names: Names | None, feature: int) -> str:
    """The name of a feature; ``x3`` if features have no names."""
    return f"x{feature}" if names is None else _name("feature_names", names, feature)


def class_name(names: Names | None, number: int) -> str:
    """The name of a class; its number if classes have no names."""
    return str(number) if names is None else _name("class_names", names, number)


def _name(parameter: str, names: Names, number: int) -> str:
    if number >= len(names):
        raise ValueError(f"{parameter} has {len(names)} names, and none for number {number}")
    return str(names[number])
