"""A progress bar for long calls, shown on a terminal and only if ``verbose`` is set."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from boscage import _validation
from boscage._types import Progress


@contextmanager
def progress_bar(description: str, verbose: int | bool | None) -> Iterator[Progress | None]:
    """Yield a function that reports progress, or None if there is no bar to show."""
    _validation.check_verbose(verbose)
    if not (verbose or 0) > 0 or not sys.stderr.isatty():
        yield None
        return
    from tqdm import tqdm

    with tqdm(desc=description, file=sys.stderr, leave=False) as bar:

        def report(done: int, total: int) -> None:
            bar.total = total
            bar.update(done - bar.n)

        yield report
