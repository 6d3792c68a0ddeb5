"""A progress bar for long calls, shown on a terminal and only if ``verbose`` is set."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from boscage._types import Progress


@contextmanager
def progress_bar(description: str, verbose: int | bool) -> Iterator[Progress | None]:
    """Yield a function that reports progress, or None if there is no bar to show."""
    if not verbose > 0 or not sys.stderr.isatty():
        yield None
        return
    from tqdm import tqdm

    with tqdm(desc=description, file=sys.stderr, leave=False) as bar:

        def report(done: int, total: int) -> None:
            bar.total = total
            bar.update(done - bar.n)

        yield report
