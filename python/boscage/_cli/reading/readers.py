"""Converts arguments to values. Each error says what was found and what was expected."""

from __future__ import annotations

import argparse
import csv
import math
import operator
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")

_MAX_U64 = (1 << 64) - 1


def whole(minimum: int) -> Callable[[str], int]:
    """Read a whole number that is at least `minimum`."""

    def read(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            value = minimum - 1
        if value > _MAX_U64:
            raise _refusal(text, f"a whole number, at most {_MAX_U64}")
        if value < minimum:
            raise _refusal(text, f"a whole number, at least {minimum}")
        return value

    return read


def number(
    *, above: float = -math.inf, below: float = math.inf, or_equal: bool = False
) -> Callable[[str], float]:
    """Read a finite number above one and below another; `or_equal` admits the lower end."""
    bounds = {
        (True, True): f" between {above:g} and {below:g}",
        (True, False): f" of at least {above:g}" if or_equal else f" above {above:g}",
        (False, True): f" below {below:g}",
        (False, False): "",
    }[math.isfinite(above), math.isfinite(below)]

    def read(text: str) -> float:
        value = _float(text)
        reaches = operator.ge if or_equal else operator.gt
        if not (math.isfinite(value) and reaches(value, above) and value < below):
            raise _refusal(text, f"a number{bounds}")
        return value

    return read


def or_word(read: Callable[[str], T], *words: str) -> Callable[[str], T | str]:
    """Read one of some words, or what another reader takes."""

    def read_either(text: str) -> T | str:
        if text in words:
            return text
        try:
            return read(text)
        except argparse.ArgumentTypeError as error:
            listed = " or ".join(map(repr, words))
            raise argparse.ArgumentTypeError(f"{error}, or {listed}") from None

    return read_either


def number_or(*words: str, above: float = 0.0) -> Callable[[str], float | str]:
    """Read a number above `above`, or one of some words."""
    return or_word(number(above=above), *words)


def jobs(text: str) -> int:
    """Read a number of threads; -1 is one for every core, -2 leaves one core free, and so on."""
    try:
        value = int(text)
    except ValueError:
        value = 0
    if value == 0:
        raise _refusal(text, "a number of threads, or -1 for one on every core")
    return value


def lifetime(text: str) -> float:
    """Read a time above 0, which may be infinite."""
    value = _float(text)
    if not value > 0.0:
        raise _refusal(text, "a number above 0, or inf")
    return value


def concentration(text: str) -> float | bool:
    """Read a number above 0, or yes: the number is drawn along."""
    value = number_or("yes")(text)
    return True if value == "yes" else float(value)


def word(*choices: str) -> Callable[[str], str]:
    """Read one of some words."""

    def read(text: str) -> str:
        if text not in choices:
            raise _refusal(text, f"one of {', '.join(choices)}")
        return text

    return read


def fractions(text: str) -> list[float]:
    """Read numbers between 0 and 1, separated by commas."""
    return [number(above=0.0, below=1.0)(part) for part in text.split(",")]


def names(text: str) -> list[str]:
    """Read names of columns, separated by commas and quoted as in CSV."""
    try:
        (found,) = csv.reader([text], skipinitialspace=True, strict=True)
    except (csv.Error, ValueError) as error:
        expected = 'names of columns, those that hold a comma in double quotes, as in "b,c",d'
        raise _refusal(text, expected) from error
    names = [name.strip() for name in found]
    if not all(names) or not names:
        raise _refusal(text, "names of columns, separated by commas")
    return names


def delimiter(text: str) -> str:
    r"""Read what separates columns: a character, or ``\t`` for a tab."""
    if text == "\\t":
        return "\t"
    if len(text) != 1 or not text.isascii() or text in '"\r\n\0':
        raise _refusal(text, r"one character, such as ; or |, or \t for a tab")
    return text


def _float(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def _refusal(found: Any, expected: str) -> argparse.ArgumentTypeError:
    return argparse.ArgumentTypeError(f"found {found!r}, expected {expected}")
