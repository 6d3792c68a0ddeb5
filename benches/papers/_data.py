"""Data of the experiments: real sets, small stand-ins for them, and sets that are defined."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from benches._common import Array, Split, data_folder
from benches._common import load as load_file

_GENERATED = False
#: Rows to learn and to predict, features, and classes (0: numbers) of the stand-ins.
_SHAPES = {
    "usps": (300, 100, 24, 4),
    "satimage": (300, 100, 12, 4),
    "letter": (300, 100, 8, 6),
    "dna": (300, 100, 180, 3),
    "pendigits": (300, 100, 8, 5),
    "magic04": (400, 0, 6, 2),
    "madelon": (200, 100, 40, 2),
    "flights": (3000, 0, 8, 0),
    "california_housing": (900, 0, 8, 0),
    "blog_feedback": (900, 0, 30, 0),
}


def use_generated(yes: bool) -> None:
    """Say whether `load` gives generated stand-ins in place of the real sets."""
    global _GENERATED
    _GENERATED = yes


def is_generated() -> bool:
    """Whether stand-ins are in use."""
    return _GENERATED


def load(name: str, *, test: float = 0.25) -> Split:
    """Load a data set; a random part of the rows is the test part where the source defines none."""
    if not _GENERATED and _has_split(name):
        return load_file(name)
    data = _stand_in(name) if _GENERATED else _whole(name)
    if len(data.X_test):
        return data
    order = np.random.default_rng(0).permutation(len(data.X))
    test_rows, rows = np.split(order, [round(test * len(order))])
    return Split(name, data.X[rows], data.y[rows], data.X[test_rows], data.y[test_rows])


def in_order(name: str) -> tuple[Array, Array]:
    """Return all rows of a set without a split, in the order of the source."""
    data = _stand_in(name) if _GENERATED else _whole(name)
    return data.X, data.y


def _has_split(name: str) -> bool:
    with np.load(data_folder() / f"{name}.npz", allow_pickle=False) as file:
        return "X_train" in file


def _whole(name: str) -> Split:
    with np.load(data_folder() / f"{name}.npz", allow_pickle=False) as file:
        X, y = np.ascontiguousarray(file["X"], dtype=np.float32), file["y"]
    y = y.astype(np.float64) if y.dtype.kind == "f" else y
    return Split(name, X, y, X[:0], y[:0])


def _stand_in(name: str) -> Split:
    n, n_test, d, k = _SHAPES[name]
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(n + n_test, d)).astype(np.float32)
    value = X[:, 0] + X[:, 1] * X[:, 2]
    if k:
        y: Array = np.searchsorted(np.quantile(value, np.arange(1, k) / k), value).astype(np.uint8)
        y = np.where(rng.uniform(size=len(y)) < 0.1, rng.integers(k, size=len(y)), y)
    else:
        y = 40.0 * value + rng.gamma(2.0, 5.0, size=len(value))
    return Split(name, X[:n], y[:n], X[n:], y[n:])


def grid(name: str) -> tuple[Array, Array, Array]:
    """Return a grid of measured values: places on its axes, values of parameters, and losses."""
    if _GENERATED:
        index = np.stack(np.meshgrid(range(6), range(5), range(4), indexing="ij"), axis=-1)
        index = index.reshape(-1, 3)
        return index, 10.0**index, 0.25 + 0.01 * ((index - 2) ** 2).sum(axis=1)
    with np.load(data_folder() / f"{name}.npz", allow_pickle=False) as file:
        return file["X_index"].astype(int), file["X"], file["y"].astype(float)


def flights_2008() -> tuple[Array, Array] | None:
    """Return the papers' own rows, all flights of the United States in 2008, if they are there.

    They are `2008.csv` (or `2008.csv.bz2`) and `plane-data.csv` of the American Statistical
    Association's data exposition of 2009, in the folder of the data sets. Attributes as in section
    6.5.2; rows by date and departure time, without cancelled and diverted flights and aircraft of
    unknown age.
    """
    if _GENERATED:
        return None
    folder = data_folder()
    files = [path for path in (folder / "2008.csv", folder / "2008.csv.bz2") if path.exists()]
    planes = folder / "plane-data.csv"
    return read_flights(files[0], planes) if files and planes.exists() else None


def read_flights(flights: Path, planes: Path) -> tuple[Array, Array]:
    """Read the files that `flights_2008` describes."""
    import pandas as pd

    columns = ["Month", "DayofMonth", "DayOfWeek", "DepTime", "ArrTime", "AirTime", "ArrDelay"]
    table = pd.read_csv(flights, usecols=[*columns, "Distance", "TailNum"])
    made = pd.read_csv(planes, usecols=["tailnum", "year"])
    made["year"] = pd.to_numeric(made["year"], errors="coerce")
    table = table.merge(made, left_on="TailNum", right_on="tailnum", how="left")
    table["age"] = 2008 - table["year"].where(table["year"] > 0)
    used = ["age", "Distance", "AirTime", "DepTime", "ArrTime", "DayOfWeek", "DayofMonth", "Month"]
    table = table.dropna(subset=[*used, "ArrDelay"])
    for name in ("DepTime", "ArrTime"):
        table[name] = 60 * (table[name] // 100) + table[name] % 100
    table = table.sort_values(["Month", "DayofMonth", "DepTime"], kind="stable")
    X = np.ascontiguousarray(table[used].to_numpy(), dtype=np.float32)
    return X, table["ArrDelay"].to_numpy(dtype=np.float64)


def friedman(n: int, d: int, seed: int, noise: float = 1.0) -> tuple[Array, Array, Array]:
    """Return rows, targets and true values of Friedman's function: five of `d` features matter."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(size=(n, d))
    f = (
        10 * np.sin(np.pi * x[:, 0] * x[:, 1])
        + 20 * (x[:, 2] - 0.5) ** 2
        + 10 * x[:, 3]
        + 5 * x[:, 4]
    )
    return x, f + noise * rng.normal(size=n), f


def cpu_seconds(call: Callable[[], object]) -> float:
    """Return the processor seconds of a call."""
    start = time.process_time()
    call()
    return time.process_time() - start


def scores(proba: Array, y: Array, classes: Any = None) -> tuple[float, float]:
    """Return accuracy and mean log probability; labels are 0, 1, ... unless `classes` are given."""
    codes = y if classes is None else np.searchsorted(classes, y)
    log_p = np.log(np.maximum(proba[np.arange(len(codes)), codes], 1e-300))
    return float((proba.argmax(axis=1) == codes).mean()), float(log_p.mean())
