"""Files that commands write: whole, or not at all.

A file is written under another name in the same folder, ``NAME.PROCESS.part``, and renamed in the
end: so a full disk or a crash leaves the old file as it was. A process that is killed leaves its
part behind. The next one that writes to the same name removes it: a writer at work holds a lock on
its part, so a part that can be locked has no owner.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from boscage._cli.errors import UserError

try:
    import fcntl
except ImportError:  # Windows, where a file that is open cannot be removed
    fcntl = None  # type: ignore[assignment]

#: How messages call standard output.
STDOUT = "standard output"


def require_writable(path: str, **inputs: str | None) -> None:
    """Refuse an output file that could not be written in the end, before any work is done.

    `inputs` are the files that the command reads, by what they are: none of them may be the output.
    """
    if not path:
        raise UserError("--output: found an empty name, expected that of a file to write")
    out = Path(path)
    if out.is_dir():
        raise UserError(f"{path}: found a folder, expected the name of a file to write")
    folder = out.resolve().parent
    if not folder.is_dir():
        raise UserError(f"{path}: there is no folder {str(out.parent)!r}")
    if not os.access(out if is_special(path) else folder, os.W_OK):
        raise UserError(f"{path}: no permission to write files in the folder {str(folder)!r}")
    for what, name in inputs.items():
        if name is not None and os.path.exists(name) and out.exists() and out.samefile(name):
            raise UserError(f"{path}: this is the {what} to read, expected another file to write")


def is_special(path: str) -> bool:
    """Whether a file exists and is no regular one, such as a pipe: it is written to as it is."""
    return os.path.exists(path) and not os.path.isfile(path)


@contextmanager
def replacing(path: str) -> Iterator[IO[bytes]]:
    """Give a binary file to write; it replaces `path` when the block ends, unless by an error."""
    with naming(path):
        if is_special(path):
            with open(path, "wb") as special:
                yield special
            return
        goal = Path(path).resolve()  # of a link, what it leads to is replaced
        sweep(goal)
        part, file = _new_part(goal)
        try:
            with file:
                yield file
            part.replace(goal)
        except BaseException:
            with suppress(OSError):  # the first error is the one to tell
                part.unlink()
            raise


@contextmanager
def naming(path: str) -> Iterator[None]:
    """Make errors of reading and writing name the file, as errors of opening do."""
    try:
        yield
    except OSError as error:
        is_named = error.filename is not None and not str(error.filename).endswith(".part")
        if error.errno is not None and not is_named:
            raise type(error)(error.errno, error.strerror, path) from error
        raise


def sweep(goal: Path) -> None:
    """Remove what killed processes left of the same file."""
    left = re.compile(re.escape(goal.name) + r"\.[0-9]+\.part")
    for part in goal.parent.iterdir():
        if left.fullmatch(part.name):
            with suppress(OSError):  # it has an owner
                _remove(part)


def _remove(part: Path) -> None:
    if fcntl is None:
        part.unlink()
        return
    with open(part, "rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        part.unlink()


def _new_part(goal: Path) -> tuple[Path, IO[bytes]]:
    part = goal.with_name(f"{goal.name}.{os.getpid()}.part")
    while True:
        file = open(part, "wb")  # noqa: SIM115 (the caller closes it)
        if fcntl is None:
            return part, file
        with suppress(OSError):  # not all file systems have locks
            fcntl.flock(file, fcntl.LOCK_EX)
        if os.fstat(file.fileno()).st_nlink:
            return part, file
        # Another process swept the file up before it was locked.
        file.close()
