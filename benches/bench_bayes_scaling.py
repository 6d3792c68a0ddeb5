"""Bayesian decision trees by SMC: time and memory over rows, particles, proposals and threads."""

from __future__ import annotations

import multiprocessing
import time
from typing import Any

import numpy as np
from sklearn.tree import DecisionTreeClassifier

from _common import Split, Table, arguments, new_peak, seconds, status, verdict
from boscage import SMC, BayesianTreeClassifier

PROPOSALS: dict[str, dict[str, Any]] = {
    "prior": {"proposal": "prior"},
    "empirical": {"proposal": "empirical"},
    "optimal": {},
    "subset of 4": {"max_features": 4},
}


def rows(n: int) -> Split:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 10)).astype(np.float32)
    y = (X[:, 0] + X[:, 1] * X[:, 2] + rng.normal(size=n) > 0.0).astype(int)
    return Split("made", X, y, X[:1], y[:1])


def smc(n_particles: int, n_islands: int = 1, **options: Any) -> BayesianTreeClassifier:
    sampler = SMC(n_particles=n_particles, n_islands=n_islands, **options)
    return BayesianTreeClassifier(sampler, random_state=0)


def fit(model: BayesianTreeClassifier, n: int) -> tuple[float, float]:
    """Seconds, and peak memory above the data, relative to the data's; in another process."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(_fit, (model, n))


def _fit(model: BayesianTreeClassifier, n: int) -> tuple[float, float]:
    data = rows(n)
    # Modules that are loaded on first use do not count as the model's memory.
    model.fit(data.X[:50], data.y[:50])
    before = new_peak()
    start = time.perf_counter()
    model.fit(data.X, data.y)
    took = time.perf_counter() - start
    return took, (status("VmHWM") - before) * 2**20 / data.X.nbytes


def over_rows(largest: int, repeats: int) -> None:
    """Time over rows: each level of a tree is one pass over all rows; the depth depends on data."""
    columns = ["rows", "depth", "seconds", "us/n/depth", "us/n/log n", "CART's"]
    table = Table("Rows, one particle", columns)
    for n in (largest // 16, largest // 4, largest):
        data = rows(n)
        # The tree of a single particle varies, so five are fitted one after the other.
        models = [smc(1).set_params(random_state=seed) for seed in range(5)]
        cart = DecisionTreeClassifier(random_state=0)
        calls = {
            "ours": lambda m=models, d=data: [model.fit(d.X, d.y) for model in m],
            "CART": lambda m=cart, d=data: m.fit(d.X, d.y),
        }
        took = seconds(calls, repeats)
        each, log_n = took["ours"] / len(models), float(np.log2(n))
        depth = float(np.mean([model.trees_[0].n_rows.sum() / n for model in models]))
        us = 1e6 * each / n
        table.add(str(n), depth, each, us / depth, us / log_n, 1e6 * took["CART"] / n / log_n)
    growth = {name: table.column(name)[-1] / table.column(name)[0] for name in columns[3:]}
    verdict("us/n/depth, most rows over fewest", growth["us/n/depth"], 1.5)
    verdict("us/n/log n, the same over CART's", growth["us/n/log n"] / growth["CART's"], 1.5)


def over_particles(n: int, repeats: int) -> None:
    data = rows(n)
    table = Table(f"Particles, {n} rows", ["particles x islands", "seconds", "per particle"])
    for n_particles, n_islands in ((1, 1), (1, 4), (1, 16), (4, 16), (16, 16)):
        model = smc(n_particles, n_islands)
        took = seconds({"": lambda m=model: m.fit(data.X, data.y)}, repeats)[""]
        table.add(f"{n_particles} x {n_islands}", took, took / (n_particles * n_islands))
    each = table.column("per particle")
    verdict("time per particle, many over one", max(each[1:]) / each[0], 1.3)


def over_threads(n: int, repeats: int) -> None:
    data = rows(n)
    calls = {n: lambda n=n: smc(4, 4).set_params(n_jobs=n).fit(data.X, data.y) for n in (1, 2)}
    took = seconds({str(n): call for n, call in calls.items()}, repeats)
    verdict("speed-up by two threads", took["1"] / took["2"], 1.7, most=False)


def memory(n: int, n_particles: int, bound: float | None) -> None:
    """Memory as a multiple of float32 data; the sorted table alone takes three times as much."""
    table = Table(f"{n} rows, {n_particles} particles", ["proposal", "seconds", "memory/data"])
    for name, options in PROPOSALS.items():
        table.add(name, *fit(smc(n_particles, **options), n))
    if bound is not None:
        verdict("most memory over the data's", max(table.column("memory/data")), bound)


def main() -> None:
    args = arguments(__doc__, repeats=3)
    medium, large = (4_000, 20_000) if args.quick else (50_000, 1_000_000)
    over_rows(4 * medium, args.repeats)
    over_particles(medium // 4, args.repeats)
    over_threads(medium, args.repeats)
    # With few rows, memory that does not depend on them dominates.
    memory(large, 100, None if args.quick else 6.0)


if __name__ == "__main__":
    main()
