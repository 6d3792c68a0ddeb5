"""A fit from rows on disk takes at most as much memory as its limit says."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads Linux' counters"),
]

PROGRAM = """
import json, sys
from pathlib import Path
import numpy as np
import boscage.disk

def status(name):
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(name))

folder, kind, limit, least, X, y = sys.argv[1:]
settings = {"n_estimators": 4, "min_samples_split": int(least), "random_state": 0}
if kind == "Regressor":
    settings["hyperparameters"] = {"mu": 0.5, "gamma1": 2.0, "gamma2": 0.7, "noise_variance": 0.2}
forest = getattr(boscage.disk, "MondrianForest" + kind)(int(limit), **settings)
if X == "rows":
    import pyarrow.parquet
small = np.random.default_rng(0).normal(size=(50, 10)), np.arange(50) % 2
forest.fit(*small)
Path("/proc/self/clear_refs").write_text("5")
before = status("VmRSS")
forest.fit(f"{folder}/{X}", y if X == "rows" else f"{folder}/{y}")
print(json.dumps([status("VmHWM") - before, forest.nbytes_]))
"""

N_ROWS = 1_500_000


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Rows of 60 MB, as NumPy files and as a Parquet folder."""
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    folder: Path = tmp_path_factory.mktemp("disk")
    random = np.random.default_rng(1)
    X = random.normal(size=(N_ROWS, 10)).astype(np.float32)
    y = (X[:, 0] + random.normal(size=N_ROWS) > 0).astype(np.int64)
    np.save(folder / "X.npy", X)
    np.save(folder / "y.npy", y)
    (folder / "rows").mkdir()
    for number, part in enumerate(np.array_split(np.arange(N_ROWS), 3)):
        table = pa.table({f"x{i}": X[part, i] for i in range(10)} | {"y": y[part]})
        pq.write_table(table, folder / "rows" / f"{number}.parquet", row_group_size=1 << 16)
    for n_rows, n_features in ((20_000, 200), (12_000, 1200)):
        X = random.normal(size=(n_rows, n_features)).astype(np.float32)
        np.save(folder / f"X.{n_features}.npy", X)
        y = (X[:, 0] + random.normal(size=n_rows) > 0).astype(np.int64)
        np.save(folder / f"y.{n_features}.npy", y)
    return folder


CASES: list[tuple[str, int, int, str, str]] = [
    ("Classifier", 64_000_000, 500, "X.npy", "y.npy"),
    ("Classifier", 150_000_000, 100, "X.npy", "y.npy"),
    ("Classifier", 100_000_000, 500, "rows", "y"),
    ("Regressor", 64_000_000, 500, "X.npy", "y.npy"),
    # Most is taken where feature weights are learned.
    ("Classifier", 100_000_000, 500, "X.200.npy", "y.200.npy"),
    ("Regressor", 110_000_000, 500, "X.200.npy", "y.200.npy"),
    ("Classifier", 420_000_000, 500, "X.1200.npy", "y.1200.npy"),
]


@pytest.mark.parametrize(("kind", "limit", "least", "X", "y"), CASES)
def test_the_limit_is_kept(folder: Path, kind: str, limit: int, least: int, X: str, y: str) -> None:
    command: list[Any] = [sys.executable, "-c", PROGRAM, folder, kind, limit, least, X, y]
    run = subprocess.run([*map(str, command)], check=True, capture_output=True, text=True)
    peak, of_trees = json.loads(run.stdout)
    assert of_trees < peak <= limit, (peak, of_trees)
