"""What rows, features, trees and workers cost: the figures of docs/scale.md.

Fits run one after the other, each in a process of its own and with one thread (Linux). Seconds are
of processor time, and memory is above that of the caller's table. Then a forest is grown on a Dask
cluster of two workers of one thread each, with trees apart and with cells apart, and in one process
with two threads, in turn. At last rows are shared out by cell over four workers, and in turn fitted
in one process. Data are random numbers; labels depend on ten features, and one in twenty is drawn
at random.
"""

from __future__ import annotations

import json
import sys
import time
from math import log2
from typing import Any

import numpy as np

from _common import Table, alone, arguments, new_peak, status, verdict
from bench_scaling import made

#: Model, rows, features, trees, and the number of rows below which a node is a leaf.
POINTS = [
    ("classes", 100_000, 10, 10, 2),
    ("classes", 1_000_000, 10, 10, 2),
    ("classes", 1_000_000, 40, 10, 2),
    ("classes", 1_000_000, 10, 10, 1000),
    ("numbers", 100_000, 10, 10, 2),
    ("numbers", 1_000_000, 10, 10, 2),
    ("numbers", 1_000_000, 10, 10, 1000),
    ("classes", 10_000_000, 10, 1, 2),
]

#: The same where cells are apart; "given" are numbers with given hyperparameters and global noise.
APART = [
    ("classes", 1_000_000, 10, 10, 2),
    ("given", 500_000, 10, 10, 2),
    ("classes", 1_000_000, 10, 10, 1000),
]


def forest(kind: str, trees: int, least: int, **more: Any) -> Any:
    """Return an unfitted forest that follows its own cuts and learns nothing before them."""
    import boscage

    settings = {"feature_weights": None, "predictive": "realised", "min_samples_split": least}
    if kind == "classes":
        settings |= {"calibration": None}
        return boscage.MondrianForestClassifier(trees, random_state=0, **settings, **more)
    settings |= {"posterior": "exact", "hyperparameters": "heuristic"}
    if kind == "given":
        hyper = {"mu": 0.5, "gamma1": 1.0, "gamma2": 0.3, "noise_variance": 1.0}
        settings |= {"noise": "global", "hyperparameters": hyper}
    return boscage.MondrianForestRegressor(trees, random_state=0, **settings, **more)


def rows(kind: str, n: int, d: int) -> tuple[Any, Any]:
    """Return rows and labels, or numbers."""
    X, y = made(n, d)
    return X, y if kind == "classes" else y + np.random.default_rng(1).normal(size=n)


def measure(kind: str, n: int, d: int, trees: int, least: int) -> None:
    """Fit a forest in this process, and print its cost."""
    X, y = rows(kind, n, d)
    forest(kind, 1, least).fit(X[:50], y[:50])
    before, start = new_peak(), time.process_time()
    model = forest(kind, trees, least).fit(X, y)
    took = time.process_time() - start
    of_trees = (model._model.nbytes - X.nbytes) / (n * trees)
    peak, kept = status("VmHWM") - before, status("VmRSS") - before
    print(json.dumps([took, of_trees, peak, kept, kept - model._model.nbytes / 2**20]))


def costs(points: list[tuple[str, int, int, int, int]]) -> None:
    table = Table(
        "One thread. ns: time over rows x trees x log2(rows); trees: bytes over rows x trees.\n"
        "Bytes a row: peak of the fit, kept after it, and of these neither features nor trees",
        ["rows x feat. x trees, least", "model", "seconds", "ns", "trees", "peak", "kept", "rest"],
        width=10,
    )
    for kind, n, d, trees, least in points:
        took, of_trees, *megabytes = alone(__file__, kind, n, d, trees, least)
        by_row = [figure * 2**20 / n for figure in megabytes]
        unit = 1e9 / (n * trees * log2(n))
        table.add(f"{n:.0e} x {d} x {trees}, {least}", kind, took, took * unit, of_trees, *by_row)


def on_cluster(n: int, d: int, trees: int, repeats: int) -> None:
    """Compare two workers of one thread each with two threads in one process."""
    import distributed

    from boscage.dask import MondrianForestClassifier as ClusterForest

    table = Table(
        f"{n:.0e} rows of {d} features, {trees} trees: seconds of wall clock and of processors",
        ["forest", "wall", "processors"],
        width=14,
    )
    X, y = made(n, d)
    params = forest("classes", trees, 2).get_params()
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        parts = [_spread(client, array) for array in (X, y)]
        few = [part[:1000].rechunk({0: 1000}) for part in parts]
        digests, ratios = set(), {}
        for repeat in range(repeats):
            one = forest("classes", trees, 2, n_jobs=2)
            alone = timed(client, lambda one=one: one.fit(X, y))
            table.add("two threads", *alone)
            digests.add(one.digest())
            del one
            for partition in ("trees", "cells"):
                grown = ClusterForest(**params, partition=partition, client=client)
                if repeat == 0:
                    grown.fit(*few)  # imports what a fit needs
                took = timed(client, lambda grown=grown: grown.fit(*parts))
                table.add(f"{partition} apart", *took)
                digests.add(grown.digest())
                ratios.setdefault(partition, []).append(np.divide(took, alone))
                del grown
        assert len(digests) == 1
    for partition, bound in (("trees", 1.3), ("cells", 2.0)):
        for name, of_runs in zip(
            ("wall", "processors"), np.transpose(ratios[partition]), strict=True
        ):
            what = f"{partition} apart on two workers over two threads, {name}, median"
            verdict(what, float(np.median(of_runs)), bound)


def apart(points: list[tuple[str, int, int, int, int]], n_workers: int) -> None:
    """Compare workers who share out rows by cell with one process."""
    table = Table(
        f"Cells apart on {n_workers} workers of one thread, and one process: peaks of a fit, in\n"
        "MB, and seconds of processor time",
        [
            "rows x feat. x trees, least",
            "model",
            "one",
            "worker",
            "ratio",
            "one s",
            "all s",
            "ratio",
        ],
        width=10,
    )
    for kind, n, d, trees, least in points:
        took, _, peak, *_ = alone(__file__, kind, n, d, trees, least)
        of_worker, used = _fit_apart(kind, n, d, trees, least, n_workers)
        case = f"{n:.0e} x {d} x {trees}, {least}"
        table.add(case, kind, peak, of_worker, of_worker / peak, took, used, used / took)


def _fit_apart(
    kind: str, n: int, d: int, trees: int, least: int, n_workers: int
) -> tuple[float, float]:
    """The largest of the workers' peaks, and the processor time of a fit."""
    import distributed

    import boscage.dask

    one = forest(kind, trees, least)
    with (
        distributed.LocalCluster(
            n_workers=n_workers, threads_per_worker=1, processes=True, dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        parts = [_spread(client, array) for array in rows(kind, n, d)]
        grown = getattr(boscage.dask, type(one).__name__)(
            **one.get_params(), partition="cells", client=client
        )
        few = [part[:1000].rechunk({0: 1000}) for part in parts]
        grown.fit(*few)  # imports what a fit needs
        before = client.run(new_peak)
        _, used = timed(client, lambda: grown.fit(*parts))
        peaks = client.run(status, "VmHWM")
        return max(peaks[worker] - before[worker] for worker in peaks), used


def _spread(client: Any, array: Any) -> Any:
    """A Dask array whose eight chunks are on the workers in turn."""
    import dask.array as da

    chunks = client.scatter(np.array_split(array, 8), hash=False)
    return da.concatenate(
        [
            da.from_delayed(chunk, shape=part.shape, dtype=array.dtype)
            for chunk, part in zip(chunks, np.array_split(array, 8), strict=True)
        ]
    )


def timed(client: Any, fit: Any) -> tuple[float, float]:
    """Seconds of wall clock, and of processors in this process and on all workers."""
    used, start = _processors(client), time.perf_counter()
    fit()
    return time.perf_counter() - start, _processors(client) - used


def _processors(client: Any) -> float:
    """Processor time of this process and of all workers, in seconds."""
    return time.process_time() + sum(client.run(time.process_time).values())


def main() -> None:
    if len(sys.argv) == 6:
        kind, *numbers = sys.argv[1:]
        return measure(kind, *map(int, numbers))
    args = arguments(__doc__, largest=10_000_000)
    most = 100_000 if args.quick else args.largest
    costs([point for point in POINTS if point[1] <= most])
    if args.quick:
        on_cluster(100_000, 10, 4, 1)
        return apart([("classes", 100_000, 10, 10, 2)], 2)
    on_cluster(1_000_000, 10, 10, 3)
    on_cluster(1_000_000, 10, 100, 1)
    return apart(APART, 4)


if __name__ == "__main__":
    main()
