"""Shared by the benchmarks: data, interleaved timing, tables; sets BLAS to one thread."""

from __future__ import annotations

import argparse
import itertools
import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

Array: TypeAlias = NDArray[Any]

# The number of threads is n_jobs of the models only.
threadpool_limits(1)

SIX = ["letter", "usps", "satimage", "dna", "pendigits", "magic04"]
#: `beta_s` by the dimension of a hypercube, so that about 2^D leaves are expected (the thesis'
#: footnote 6 of chapter 4).
BETA_S = {2: 1.0, 3: 0.5, 4: 0.4, 5: 0.3, 7: 0.25}
NUMBERS = ["flights", "california_housing", "puma32h", "concrete", "blog_feedback"]


@dataclass(frozen=True)
class Split:
    """A data set, split into rows to learn and rows to predict; X is float32 and row-major."""

    name: str
    X: Array
    y: Array
    X_test: Array
    y_test: Array

    def head(self, n_train: int, n_test: int) -> Split:
        """Return at most the given numbers of rows of each part."""
        return Split(
            self.name,
            self.X[:n_train],
            self.y[:n_train],
            self.X_test[:n_test],
            self.y_test[:n_test],
        )


def data_folder() -> Path:
    """Return the folder of the data sets: $BOSCAGE_DATA, or shared/data beside the checkout."""
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    folder = Path(os.environ.get("BOSCAGE_DATA", beside))
    if not folder.is_dir():
        raise SystemExit(f"{folder}: no such folder; set BOSCAGE_DATA to that of the data sets")
    return folder


def load(name: str, *, seed: int = 0) -> Split:
    """Load a data set; a quarter of the rows is the test part where the source defines none."""
    with np.load(data_folder() / f"{name}.npz", allow_pickle=False) as file:
        parts = dict(file)
    if "X_train" in parts:
        X, y, X_test, y_test = (parts[k] for k in ("X_train", "y_train", "X_test", "y_test"))
    else:
        order = np.random.default_rng(seed).permutation(len(parts["X"]))
        test, train = np.split(order, [len(order) // 4])
        X, y = parts["X"][train], parts["y"][train]
        X_test, y_test = parts["X"][test], parts["y"][test]
    if y.dtype.kind == "f":
        y, y_test = y.astype(np.float64), y_test.astype(np.float64)
    X, X_test = (np.ascontiguousarray(part, dtype=np.float32) for part in (X, X_test))
    return Split(name, X, y, X_test, y_test)


def hypercube(d: int, seed: int, rows: int = 10) -> tuple[Array, Array, Array]:
    """Return rows about the vertices of a cube, targets, and each row's vertex (section 4.4.1)."""
    rng = np.random.default_rng(seed)
    vertices = np.array(list(itertools.product([-1.0, 1.0], repeat=d)))
    which = np.repeat(np.arange(len(vertices)), rows)
    x = vertices[which] + 0.1 * rng.normal(size=(len(which), d))
    f = 3.0 * rng.normal(size=len(vertices))
    return x, f[which] + 0.01 * rng.normal(size=len(which)), which


def seconds(calls: dict[str, Callable[[], object]], repeats: int = 3) -> dict[str, float]:
    """Time the calls in turn, `repeats` times over, and return the shortest time of each.

    Calls alternate, so that a change of the machine's speed affects all of them. The shortest
    time counts, since disturbances only make a run longer.
    """
    best = dict.fromkeys(calls, math.inf)
    for _ in range(repeats):
        for name, call in calls.items():
            start = time.perf_counter()
            call()
            best[name] = min(best[name], time.perf_counter() - start)
    return best


def status(field: str) -> float:
    """Return a figure of this process' memory, in MB (Linux)."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) / 1024
    raise RuntimeError(f"/proc/self/status does not say {field}")


def new_peak() -> float:
    """Reset the peak of this process' memory (VmHWM), and return its memory in MB (Linux)."""
    Path("/proc/self/clear_refs").write_text("5")
    return status("VmRSS")


def alone(script: str, *words: object) -> Any:
    """Run a script with arguments in another process, and return the JSON that it prints."""
    command = [sys.executable, script, *map(str, words)]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return json.loads(output)


def geometric_mean(values: Iterable[float]) -> float:
    """Return the geometric mean."""
    return math.exp(float(np.mean(np.log(list(values)))))


@dataclass
class Table:
    """Figures in columns; a row is printed as soon as it is known."""

    title: str
    columns: Sequence[str]
    width: int = 12
    rows: list[list[Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        first = max(self.width, 24)
        print(f"\n{self.title}\n")
        print(
            f"{self.columns[0]:<{first}}" + "".join(f"{c:>{self.width}}" for c in self.columns[1:])
        )
        print("-" * (first + self.width * (len(self.columns) - 1)), flush=True)

    def add(self, name: str, *figures: Any) -> None:
        """Print a row."""
        self.rows.append([name, *figures])
        text = "".join(f"{_shown(figure):>{self.width}}" for figure in figures)
        print(f"{name:<{max(self.width, 24)}}{text}", flush=True)

    def column(self, name: str) -> list[float]:
        """Return the figures of a column."""
        at = list(self.columns).index(name)
        return [row[at] for row in self.rows if len(row) > at and isinstance(row[at], float)]


def _shown(figure: Any) -> str:
    return f"{figure:.4g}" if isinstance(figure, float) else str(figure)


def arguments(doc: str | None, **options: Any) -> argparse.Namespace:
    """Read the command line of a benchmark: ``--quick``, and `options` with their defaults."""
    parser = argparse.ArgumentParser(description=(doc or "").partition("\n")[0])
    parser.add_argument(
        "--quick", action="store_true", help="a minute's worth, to see that it runs"
    )
    for name, default in options.items():
        parser.add_argument(
            f"--{name.replace('_', '-')}",
            type=type(default),
            default=default,
            help="(default: %(default)s)",
        )
    return parser.parse_args()


def verdict(what: str, figure: float, bound: float, *, most: bool = True) -> None:
    """Print a figure and the bound that it should not exceed."""
    kept = figure <= bound if most else figure >= bound
    wanted = f"{'at most' if most else 'at least'} {bound:g}"
    print(f"{what}: {figure:.3g} ({wanted}: {'yes' if kept else 'NO'})")
