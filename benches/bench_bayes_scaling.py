"""Bayesian decision trees by SMC: time and memory over rows, particles and threads."""

from __future__ import annotations

import resource

import numpy as np

from _common import Split, Table, arguments, seconds, verdict
from boscage import BayesianTreeClassifier


def rows(n: int) -> Split:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 10)).astype(np.float32)
    y = (X[:, 0] + X[:, 1] * X[:, 2] + rng.normal(size=n) > 0.0).astype(int)
    return Split("made", X, y, X[:1], y[:1])


def peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024.0


def main() -> None:
    args = arguments(__doc__, repeats=3)
    small, large = (5_000, 20_000) if args.quick else (50_000, 1_000_000)
    data = rows(small)
    table = Table(f"{small} rows", ["particles x islands", "seconds", "per particle"])
    for n_islands in (1, 2, 4, 8):
        model = BayesianTreeClassifier(1, n_islands=n_islands, random_state=0)
        took = seconds({"": lambda m=model: m.fit(data.X, data.y)}, args.repeats)[""]
        table.add(f"1 x {n_islands}", took, took / n_islands)
    each = table.column("per particle")
    verdict("time per particle, many over one", each[-1] / each[0], 1.3)

    calls = {
        str(n): lambda n=n: BayesianTreeClassifier(4, n_islands=4, n_jobs=n, random_state=0).fit(
            data.X, data.y
        )
        for n in (1, 2)
    }
    took = seconds(calls, args.repeats)
    verdict("speed-up by two threads", took["1"] / took["2"], 1.7, most=False)

    data = rows(large)
    before = peak()
    table = Table(f"{large} rows, 100 particles, prior proposal", ["", "seconds", "memory/data"])
    model = BayesianTreeClassifier(100, n_islands=1, proposal="prior", random_state=0)
    took = seconds({"": lambda: model.fit(data.X, data.y)}, 1)
    table.add("fit", took[""], (peak() - before) / data.X.nbytes)
    verdict("memory over the data's", table.column("memory/data")[0], 6.0)


if __name__ == "__main__":
    main()
