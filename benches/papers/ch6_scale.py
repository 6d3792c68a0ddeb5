"""Section 6.5.2's sizes: time and memory of learning generated flights, to five million rows."""

from __future__ import annotations

import subprocess
import sys
import time
from typing import Any

import numpy as np
from benches._common import Array, new_peak, status
from benches.papers._report import ROOT, Effort, Section

from boscage import MondrianForestRegressor

TITLE = "Time and memory for as many rows as in Table 6.1"
OPTIONS: dict[str, Any] = {
    "n_estimators": 10,
    "min_samples_split": 10,
    "posterior": "exact",
    "hyperparameters": "heuristic",
    "noise": "global",
    "prior_scale": None,
    "feature_weights": None,
    "random_state": 0,
}
SIZES = [100_000, 700_000, 2_000_000, 5_000_000]
SETTINGS = {
    "MF": "10 trees, min_samples_split=10, section 6.3's model and heuristic, one thread",
    "data": "generated: eight attributes with the values of the flights' (ages, minutes, days, "
    "months), in order of time",
    "memory": "the process' peak less what it held with the rows, which are shared and counted "
    "apart",
}


def generated(n: int) -> tuple[Array, Array]:
    """Return rows with the attributes of the flights, and delays with a long tail."""
    rng = np.random.default_rng(0)
    X = np.empty((n, 8), dtype=np.float32)
    X[:, 0] = rng.integers(40, size=n)
    X[:, 1] = rng.integers(80, 2800, size=n)
    X[:, 2] = X[:, 1] / 8.0 + rng.integers(10, 40, size=n)
    X[:, 3] = rng.integers(300, 1440, size=n)
    X[:, 4] = (X[:, 3] + X[:, 2]) % 1440
    day = np.arange(n) * 365 // n
    X[:, 5], X[:, 6], X[:, 7] = day % 7 + 1, day % 30 + 1, day // 31 + 1
    late = 0.02 * (X[:, 3] - 300) + 10.0 * np.sin(X[:, 7]) + 3.0 * (X[:, 5] == 5)
    return X, late + rng.gamma(0.5, 30.0, size=n) - 10.0


def measure(n: int) -> tuple[float, float, float, float]:
    """Return seconds of learning and of predicting, and MB of the model and of the rows."""
    X, y = generated(n)
    before = new_peak()
    start = time.process_time()
    forest = MondrianForestRegressor(**OPTIONS).fit(X, y).flush()
    learned = time.process_time()
    peak = status("VmHWM")
    forest.predict(X[:100_000])
    took = time.process_time() - learned
    return learned - start, took, peak - before, (X.nbytes + y.nbytes) / 2**20


def run(section: Section, effort: Effort) -> None:
    """Measure each size in a process of its own, since a process keeps what it once held."""
    rows = []
    for n in effort.of(SIZES, [20_000, 60_000]):
        command = [sys.executable, "-m", "benches.papers.ch6_scale", str(n)]
        output = subprocess.run(
            command, check=True, capture_output=True, text=True, cwd=ROOT
        ).stdout
        rows.append([n, *map(float, output.split())])
    section.table(
        "Ten trees, one thread",
        ["rows", "s to learn", "s to predict 100,000 rows", "MB at the peak", "MB of the rows"],
        [[f"{row[0]:,}", *row[1:]] for row in rows],
    )
    (n, first, *_), (most, last, *_) = rows[0], rows[-1]
    expected = most * np.log(most) / (n * np.log(n))
    exponent = np.log(last / first) / np.log(most / n)
    section.claim(
        "the cost of learning grows as N log N (section 5.7.1)",
        f"{last / first:.0f} times as long for {most / n:.0f} times as many rows: as the power "
        f"{exponent:.2f} of N; N log N grows {expected:.0f} times",
        last / first < 1.25 * expected,
        "it grows faster, most of all between the two smallest sizes; we did not measure why",
    )


if __name__ == "__main__":
    print(*measure(int(sys.argv[1])))
