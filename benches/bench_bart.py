"""BART's samplers on Friedman's function: time of a sweep, how chains mix, time to predict.

Effective sample sizes are of ranks over all chains ("bulk"), which chains that disagree do not
have, and R-CODA's, chain by chain. One thread. A sweep is timed between a long and a short run, so
that what is done once is left out.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from _common import Array, Table, arguments
from boscage import BARTRegressor
from boscage._mixing import spectral_size

SAMPLERS: dict[str, str | Mapping[str, float]] = {
    "auto": "auto",
    "local": "local",
    "growprune": "growprune",
    "cgm": "cgm",
    "pg": "pg",
}


def friedman(n: int, p: int, seed: int) -> tuple[Array, Array, Array]:
    """Return rows, targets with unit noise, and targets without."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(size=(n, p))
    f = 10.0 * np.sin(np.pi * x[:, 0] * x[:, 1]) + 20.0 * (x[:, 2] - 0.5) ** 2
    f += 10.0 * x[:, 3] + 5.0 * x[:, 4]
    return x, f + rng.normal(size=n), f


def sweep_seconds(x: Array, y: Array, sweeps: int, **options: Any) -> float:
    """Return the seconds of 1000 sweeps."""

    def took(n: int) -> float:
        model = BARTRegressor(n_chains=1, n_burn=0, n_draws=1, thin=n, random_state=0, **options)
        start = time.perf_counter()
        model.fit(x, y)
        return time.perf_counter() - start

    return 1000.0 * (took(sweeps + 1) - took(1)) / sweeps


def speed(n_trees: int, work: int) -> None:
    """Print seconds of 1000 sweeps."""
    table = Table(f"Seconds of 1000 sweeps, {n_trees} trees", ["rows x features", *SAMPLERS], 18)
    for n, p in [(1000, 10), (10_000, 10), (100_000, 10), (1000, 1000), (10_000, 1000)]:
        if n > work:
            continue
        x, y, _ = friedman(n, p, 0)
        figures: list[Any] = []
        for name, sampler in SAMPLERS.items():
            fast = name not in ("cgm", "pg")
            sweeps = max(20 if fast else 3, work // n // (1 if fast else 20))
            slow = not fast and (n > 1000 or p > 10)
            figures.append(
                "-" if slow else sweep_seconds(x, y, sweeps, n_trees=n_trees, sampler=sampler)
            )
        table.add(f"{n} x {p}", *figures)


def mixing(n_trees: int, sweeps: int) -> None:
    """Print where chains are, and how many effective draws a second they give."""
    columns = [
        "sampler",
        "seconds",
        "log lik.",
        "R-hat",
        "bulk/s",
        "CODA/s",
        "sigma CODA/s",
        "RMSE",
        "cover 90",
    ]
    table = Table(
        f"1000 rows, 4 chains of {sweeps} + {4 * sweeps} sweeps, {n_trees} trees", columns
    )
    x, y, _ = friedman(1000, 10, 0)
    x_test, y_test, f_test = friedman(1000, 10, 1)
    for name, sampler in SAMPLERS.items():
        if name in ("cgm", "pg"):
            continue
        thin = max(1, 4 * sweeps // 1000)
        model = BARTRegressor(
            n_trees,
            sampler=sampler,
            n_burn=sweeps,
            n_draws=4 * sweeps // thin,
            thin=thin,
            random_state=0,
        )
        start = time.perf_counter()
        model.fit(x, y)
        took = time.perf_counter() - start
        rows = model.summary()
        likelihood = rows["log_likelihood"]
        low, high = model.predict_dist(x_test).interval(0.9)
        table.add(
            name,
            took,
            likelihood.mean,
            likelihood.r_hat,
            likelihood.ess / took,
            *(spectral_size(model.trace_[name]) / took for name in ("log_likelihood", "sigma")),
            float(np.sqrt(np.mean((model.predict(x_test) - f_test) ** 2))),
            float(np.mean((low < y_test) & (y_test < high))),
        )


def prediction(n_trees: int, draws: int) -> None:
    """Print the seconds of predicting 1000 rows."""
    x, y, _ = friedman(1000, 10, 0)
    model = BARTRegressor(n_trees, n_chains=1, n_burn=100, n_draws=draws, random_state=0).fit(x, y)
    start = time.perf_counter()
    model.predict(x)
    took = time.perf_counter() - start
    print(f"\n1000 rows, {draws} draws of {n_trees} trees: predicted in {took:.3g} s")


def main() -> None:
    args = arguments(__doc__, n_trees=200)
    warnings.simplefilter("ignore", ConvergenceWarning)
    speed(args.n_trees, 20_000 if args.quick else 1_000_000)
    mixing(args.n_trees, 50 if args.quick else 1000)
    prediction(args.n_trees, 100 if args.quick else 1000)


if __name__ == "__main__":
    main()
