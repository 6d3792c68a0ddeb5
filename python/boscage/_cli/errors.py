"""Errors that the command line reports in one line, without a traceback."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class UserError(Exception):
    """Something the user can mend; its text is the whole message."""


class WrongUsage(UserError):
    """Arguments of a command that cannot be understood."""

    def __init__(self, command: str, text: str) -> None:
        super().__init__(text)
        self.command = command


@contextmanager
def refusing() -> Iterator[None]:
    """Turn refusals inside the block, which say what is at fault, into a `UserError`."""
    try:
        yield
    except (ValueError, MemoryError) as error:
        raise UserError(str(error)) from error


@contextmanager
def blaming(what: str) -> Iterator[None]:
    """Turn the library's refusals inside the block into a `UserError` that names `what`."""
    try:
        yield
    except (ValueError, TypeError, KeyError) as error:
        # str(KeyError("text")) is the text in quotes; its argument is the text.
        text = error.args[0] if isinstance(error, KeyError) and error.args else error
        raise UserError(f"{what}: {text}") from error
