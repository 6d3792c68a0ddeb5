"""The estimators' own words about their parameters, as they are said about options."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from boscage._cli.errors import UserError
from boscage._cli.estimators import OPTIONS


def in_flags(text: str) -> str:
    """The estimators' own words, with parameters and their values named as options."""
    flags = {name: options[0].flag for name, options in OPTIONS.items()}
    flags["memory_limit"] = "--memory-limit"
    name = rf"(?<![\w-])({'|'.join(flags)})"

    def given(found: re.Match[str]) -> str:
        value = "none" if found[2] == "None" else found[2].strip("'")
        return f"{flags[found[1]]} {value}"

    def alone(found: re.Match[str]) -> str:
        # Names of one word are words of the language, too.
        return flags[found[1]] if "_" in found[1] else found[1]

    return re.sub(rf"{name}\b", alone, re.sub(rf"{name}=('[^']*'|[^\s,;)]+)", given, text))


@contextmanager
def naming_options() -> Iterator[None]:
    """Turn the refusal of a parameter inside the block into a `UserError` that names its option."""
    try:
        yield
    except ValueError as error:
        text = str(error)
        name = re.split(r"\W", text, maxsplit=1)[0]
        if name not in OPTIONS:
            raise
        if not text.startswith(f"{name}="):
            text = OPTIONS[name][0].flag + text.removeprefix(name)
        raise UserError(in_flags(text)) from error
