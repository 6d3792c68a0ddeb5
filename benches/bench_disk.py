"""Forests from rows on disk: peak memory against the limit, and time against a fit in memory.

Each fit runs in a process of its own with one thread (Linux), on a NumPy file of float32 rows or on
a folder of Parquet files, which are made once in a temporary folder. Peaks are above what the
process held before the fit. Seconds are of processor time, and "wall" is by the clock. Data are
as in bench_scale.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from _common import Table, alone, arguments, new_peak, status
from bench_scale import forest, rows

#: Model, rows, the number of rows below which a node is a leaf, and limits in MB.
POINTS: list[tuple[str, int, int, list[int]]] = [
    ("classes", 1_000_000, 1000, [64, 128, 256]),
    ("classes", 1_000_000, 2, [2000, 4000]),
    ("given", 1_000_000, 1000, [64, 128, 256]),
    ("classes", 10_000_000, 1000, [256, 1024]),
]
FEATURES, TREES = 10, 10
_FILES = 16


def made_files(folder: Path, kind: str, n: int) -> None:
    """Write rows and targets as NumPy files and as a folder of Parquet files."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    X, y = rows(kind, n, FEATURES)
    np.save(folder / "X.npy", X.astype(np.float32))
    np.save(folder / "y.npy", y)
    (folder / "parts").mkdir()
    for number, part in enumerate(np.array_split(np.arange(n), _FILES)):
        columns = {f"x{i}": X[part, i].astype(np.float32) for i in range(FEATURES)}
        table = pa.table(columns | {"y": y[part]})
        pq.write_table(table, folder / "parts" / f"{number}.parquet", row_group_size=1 << 16)


def measure(kind: str, least: int, megabytes: int, source: str, folder: str) -> None:
    """Fit in this process, and print the cost; without a limit all rows are in memory."""
    import boscage.disk

    one = forest(kind, TREES, least)
    own, given = Path(folder), (f"{folder}/X.npy", f"{folder}/y.npy")
    if source == "parts":
        import pyarrow.parquet  # noqa: F401

        given = (f"{folder}/parts", "y")
    params = {"n_estimators": TREES, "min_samples_split": least, "random_state": 0}
    if kind == "given":
        params["hyperparameters"] = one.hyperparameters
    model: Any = one
    if megabytes:
        model = getattr(boscage.disk, type(one).__name__)(megabytes * 10**6, **params)
    few = np.load(own / "X.npy", mmap_mode="r")[:50].copy(), np.load(own / "y.npy")[:50]
    one.fit(*few)
    before = new_peak()
    start, used = time.perf_counter(), time.process_time()
    if megabytes:
        model.fit(*given)
    else:
        model.fit(*(np.load(path) for path in given))
    wall, used = time.perf_counter() - start, time.process_time() - used
    print(json.dumps([status("VmHWM") - before, model._model.nbytes / 1e6, used, wall]))


def main() -> None:
    if len(sys.argv) == 6:
        kind, least, megabytes, source, folder = sys.argv[1:]
        return measure(kind, int(least), int(megabytes), source, folder)
    args = arguments(__doc__, largest=10_000_000)
    points = [point for point in POINTS if point[1] <= args.largest]
    if args.quick:
        points = [("classes", 100_000, 1000, [40])]
    table = Table(
        f"{FEATURES} features, {TREES} trees, one thread: MB of the limit, of the peak and of the\n"
        "trees (without a limit with their rows), and seconds",
        ["rows, least", "model", "file", "limit", "peak", "trees", "seconds", "wall"],
        width=10,
    )
    for kind, n, least, limits in points:
        with tempfile.TemporaryDirectory() as folder:
            made_files(Path(folder), kind, n)
            cases = [(0, "memory"), *((limit, "npy") for limit in limits), (limits[-1], "parts")]
            for megabytes, source in cases:
                peak, *others = alone(__file__, kind, least, megabytes, source, folder)
                table.add(f"{n:.0e}, {least}", kind, source, megabytes, peak * 1.048576, *others)


if __name__ == "__main__":
    main()
