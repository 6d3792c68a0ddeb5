"""What workers cost with tens of millions of rows, beside the cost model of docs/scale.md.

A forest of classes is grown on a Dask cluster of one, two and four workers of one thread each, with
trees apart and with cells apart. Workers make the rows, so that the client holds none. Seconds are
of wall clock and of the processors of all, and memory is the greatest peak of a worker above what
it held before the fit (Linux). Where trees are apart, the model says what both should be, given
the time of a fit of a million rows in one process.
"""

from __future__ import annotations

from math import log2
from pathlib import Path
from typing import Any

import dask.array as da
import distributed
import numpy as np

import boscage.dask
from _common import Table, alone, arguments, new_peak, status
from bench_scale import forest, timed

FEATURES = 10
CHUNK = 1_000_000
SCALE = str(Path(__file__).with_name("bench_scale.py"))

A_ROW, DASK_ROW = 0.25e-6, 0.8e-6
"""Seconds of a row on each worker, beside its trees: for the fit itself, and for Dask."""

#: Rows, trees, the number of rows below which a node is a leaf, and numbers of workers.
POINTS = [
    (1_000_000, 4, 2, (1, 2, 4)),
    (10_000_000, 1, 2, (1,)),
    (10_000_000, 2, 2, (2,)),
    (10_000_000, 4, 2, (4,)),
    (30_000_000, 2, 1000, (1, 2)),
]


def made(n_rows: int, seed: int) -> np.ndarray[Any, Any]:
    """Rows, and in the last column their labels, of which one in twenty is drawn at random."""
    rng = np.random.default_rng(seed)
    table = rng.random((n_rows, FEATURES + 1), dtype=np.float32)
    labels = table[:, :FEATURES] @ np.arange(1, FEATURES + 1, dtype=np.float32) // 7
    noisy = table[:, FEATURES] < 0.05
    table[:, FEATURES] = np.where(noisy, rng.permutation(labels), labels)
    return table


def rows_on(client: Any, n_rows: int) -> tuple[Any, Any]:
    """Rows and labels as Dask arrays, whose chunks are on the workers in turn."""
    chunk = min(CHUNK, n_rows // 8)
    futures = client.map(made, [chunk] * (n_rows // chunk), range(n_rows // chunk), pure=False)
    distributed.wait(futures)
    shape = (chunk, FEATURES + 1)
    parts = [da.from_delayed(part, shape=shape, dtype=np.float32) for part in futures]
    table = da.concatenate(parts).persist()
    distributed.wait(table)
    return table[:, :FEATURES], table[:, FEATURES].astype(np.int64)


def of_a_cut(least: int, n_rows: int, trees: int = 4) -> float:
    """Seconds of a row at each level of a tree, from a fit in one process."""
    took, *_ = alone(SCALE, "classes", n_rows, FEATURES, trees, least)
    return float(took - n_rows * A_ROW) / (n_rows * trees * log2(n_rows))


def model_of(
    n_rows: int, trees: int, least: int, workers: int, a_cut: float
) -> tuple[float, float]:
    """Seconds of processors, and MB of a worker, where trees are apart."""
    seconds = n_rows * ((A_ROW + DASK_ROW) * workers + trees * log2(n_rows) * a_cut)
    of_row = (180 if least == 2 else 100) + (76 if least == 2 else 8.4) * trees / workers
    # The table that came to the worker.
    of_row += 4 * FEATURES + 8
    return seconds, n_rows * of_row / 2**20


def fit(n_rows: int, trees: int, least: int, workers: int, partition: str) -> tuple[float, ...]:
    """Seconds of wall clock and of processors, and the greatest peak of a worker in MB."""
    options = {"threads_per_worker": 1, "processes": True, "dashboard_address": ":0"}
    with (
        distributed.LocalCluster(n_workers=workers, memory_limit=0, **options) as cluster,
        distributed.Client(cluster) as client,
    ):
        grown = boscage.dask.MondrianForestClassifier(
            **forest("classes", trees, least).get_params(), partition=partition, client=client
        )
        grown.fit(*rows_on(client, 8000))  # imports what a fit needs
        X, y = rows_on(client, n_rows)
        before = client.run(new_peak)
        wall, used = timed(client, lambda: grown.fit(X, y))
        peaks = client.run(status, "VmHWM")
        return wall, used, max(peaks[worker] - before[worker] for worker in peaks)


def main() -> None:
    args = arguments(__doc__, largest=30_000_000)
    table = Table(
        f"Workers of one thread, {FEATURES} features",
        ["rows x trees, least", "apart", "workers", "wall", "cpu", "model", "MB", "model MB"],
        width=9,
    )
    measured_at = 100_000 if args.quick else 1_000_000
    a_cut = {least: of_a_cut(least, measured_at) for least in (2, 1000)}
    points = [(100_000, 4, 2, (1, 2))] if args.quick else POINTS
    for n_rows, trees, least, numbers in points:
        if n_rows > args.largest and not args.quick:
            continue
        for workers in numbers:
            own = (n_rows, trees, least, workers)
            for partition in ("trees", "cells"):
                seconds, megabytes = ("", "")
                if partition == "trees":
                    seconds, megabytes = model_of(*own, a_cut[least])
                wall, used, peak = fit(*own, partition)
                case = f"{n_rows:.0e} x {trees}, {least}"
                table.add(case, partition, workers, wall, used, seconds, peak, megabytes)


if __name__ == "__main__":
    main()
