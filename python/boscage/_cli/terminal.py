"""What commands say beside their results.

Progress and remarks come on a terminal only, so that a pipe or a log holds nothing but warnings and
notes: what a command has decided by looking at the table, and the user may want otherwise.
"""

from __future__ import annotations

import sys

from tqdm import tqdm


def progress(description: str, total: int | None = None) -> tqdm:
    """Count rows on the error stream if it is a terminal."""
    return tqdm(
        desc=description,
        total=total,
        unit=" rows",
        unit_scale=True,
        leave=False,
        file=sys.stderr,
        disable=not sys.stderr.isatty(),
    )


def remark(text: str) -> None:
    """Print a remark to the error stream if it is a terminal."""
    if sys.stderr.isatty():
        note(text)


def note(text: str) -> None:
    """Print a note to the error stream, whatever it is."""
    print(text, file=sys.stderr)


def warn(command: str, text: str) -> None:
    """Print a warning to the error stream, whatever it is."""
    print(f"boscage {command}: warning: {text}", file=sys.stderr)


def print_table(rows: list[tuple[str, str]]) -> None:
    """Print names and values in two columns."""
    width = max((len(name) for name, _ in rows), default=0)
    for name, value in rows:
        print(f"{name:<{width}}  {value}")
