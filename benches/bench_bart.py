"""BART compared with its peers: time of a sweep, quality, mixing, cost of draws, threads.

Times are processor seconds on one core, so that other work on the machine has little effect;
only runs with two threads use the wall clock. The time of a sweep is the difference of a long and
a short run, which excludes one-time work (compiling, sorting). Times of whole fits include it;
bartz compiles for some 8 seconds. Effective sample sizes are those of ranks over all chains
("bulk"), which are small if chains disagree, and R-CODA's for each chain.
"""

from __future__ import annotations

import json
import os
import sys
import time
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from _bart_peers import ALIKE, DBARTS, PEERS, Draws, Fit, Run
from _common import (
    BETA_S,
    Array,
    Table,
    alone,
    arguments,
    hypercube,
    load,
    new_peak,
    status,
    verdict,
)
from boscage import BARTRegressor, GaussianMixture
from boscage.diagnostics import effective_size, r_hat, spectral_size
from boscage.metrics import interval_coverage, nlpd

KERNELS: dict[str, str | Mapping[str, float]] = {
    "auto": "auto",
    "growprune": "growprune",
    "cgm": "cgm",
    "pg": "pg",
}
#: Seconds of 1000 iterations of one tree by Particle Gibbs with the paper's authors' code, by D.
AUTHORS = {3: 6.7, 5: 13.0, 7: 44.0}
#: Trees for which goals are stated.
N_TREES = 200


def friedman(n: int, p: int, seed: int) -> tuple[Array, Array, Array]:
    """Return rows, targets with unit noise, and targets without."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(size=(n, p))
    f = 10.0 * np.sin(np.pi * x[:, 0] * x[:, 1]) + 20.0 * (x[:, 2] - 0.5) ** 2
    f += 10.0 * x[:, 3] + 5.0 * x[:, 4]
    return x, f + rng.normal(size=n), f


def processor_seconds(call: Callable[[], object]) -> float:
    """Return the processor seconds of a call, over all its threads."""
    start = time.process_time()
    call()
    return time.process_time() - start


def ours(kernels: str | Mapping[str, float], run: Run, **prior: Any) -> Draws:
    """Fit as a peer does."""
    model = BARTRegressor(
        run.n_trees,
        kernels=kernels,
        n_chains=1,
        n_burn=run.n_burn,
        n_draws=run.n_draws,
        random_state=run.seed,
        **prior,
    ).fit(run.X, run.y)
    return Draws(model.sigma_.ravel(), model.predict_draws)


def fits(kernels: list[str]) -> dict[str, Fit]:
    """Return our models and those of the peers by name."""
    own = {name: (lambda run, k=KERNELS[name]: ours(k, run)) for name in kernels}
    return own | PEERS


#: Our model with a sampled scale of leaf values.
LEARNED: dict[str, Fit] = {
    f"{name}, k learned": (lambda run, s=name: ours(s, run, k="learned"))
    for name in ("auto", "growprune")
}


def sweep_seconds(fit: Fit, x: Array, y: Array, n_trees: int, n: int) -> float:
    """Return the seconds of 1000 sweeps."""

    def took(sweeps: int) -> float:
        return processor_seconds(lambda: fit(Run(x, y, n_trees, sweeps, 1)))

    took(1)
    short, long = (min(took(sweeps) for _ in range(2)) for sweeps in (1, n + 1))
    return 1000.0 * (long - short) / n


def speed(n_trees: int, work: int) -> None:
    """Print seconds of 1000 sweeps, for our model and its peers."""
    all_fits = fits(list(KERNELS))
    names = [*all_fits, "dbarts (once)"]
    table = Table(f"Seconds of 1000 sweeps, {n_trees} trees", ["rows x features", *names], 15)
    for n, p in [(1000, 10), (10_000, 10), (100_000, 10), (1000, 1000), (10_000, 1000)]:
        if n > work:
            continue
        x, y, _ = friedman(n, p, 0)
        figures: dict[str, float] = {}
        for name, fit in all_fits.items():
            slow = name in ("cgm", "pg", "stochtree")
            if name in ("cgm", "pg") and (n > 1000 or p > 10):
                continue
            # Enough sweeps that the one-time work, which varies, is negligible.
            sweeps = max(4 if slow else 20, 5 * work // n // (20 if slow else 1))
            figures[name] = sweep_seconds(fit, x, y, n_trees, sweeps)
        if n_trees == N_TREES and (n, p) in DBARTS:
            figures["dbarts (once)"] = DBARTS[n, p]
        table.add(f"{n} x {p}", *(figures.get(name, "-") for name in names))
        peers = [seconds for name, seconds in figures.items() if name not in KERNELS]
        if peers:
            for name in ("auto", "growprune"):
                verdict(f"{name} over the fastest peer", figures[name] / min(peers), 0.6)
        if "pg" in figures and n_trees == N_TREES:
            verdict("pg, seconds of 1000 sweeps", figures["pg"], 12.0)


def one_tree(sweeps: int, seeds: int) -> None:
    """Print seconds of Particle Gibbs on one tree, and those of the authors' code.

    Chains stay in modes with different numbers of leaves, so the mean of several is printed.
    """
    for d, seconds in AUTHORS.items():
        x, y, _ = hypercube(d, 0)
        model = BARTRegressor(1, kernels="pg", beta_s=BETA_S[d], n_chains=1, n_burn=0)
        model.set_params(n_draws=sweeps)
        rows = []
        for seed in range(seeds):
            model.set_params(random_state=seed)
            least = min(processor_seconds(lambda: model.fit(x, y)) for _ in range(3))
            rows.append((1000.0 / sweeps * least, model.trace_["n_leaves"].mean()))
        took, leaves = map(float, np.mean(rows, axis=0))
        verdict(
            f"hypercube-{d}, pg, {took:.3g} s for 1000 sweeps of a tree of {leaves:.0f} leaves: "
            "times as fast as the authors",
            seconds / took,
            200.0,
            most=False,
        )


def mixture(draws: Draws, x: Array) -> GaussianMixture:
    """Return what draws predict for each row."""
    sums = draws.sums(x)
    n_draws, n_rows = sums.shape
    return GaussianMixture(
        np.arange(n_rows + 1) * n_draws,
        np.full(n_rows * n_draws, 1.0 / n_draws),
        sums.T.ravel().astype(float),
        np.tile(draws.sigma.astype(float) ** 2, n_rows),
    )


def quality(n_trees: int, sweeps: int, seeds: int) -> None:
    """Print errors on test rows beside peers, all with the same numbers of trees and draws."""
    housing = load("california_housing")
    data = {"california_housing": (housing.X, housing.y, housing.X_test, housing.y_test)}
    for n in (1000, 10_000):
        x_test, y_test, _ = friedman(2000, 10, 1)
        data[f"Friedman, {n} rows"] = (*friedman(n, 10, 0)[:2], x_test, y_test)
    columns = ["kernels", "seconds", "RMSE", "cover 90", "log density"]
    for title, (x, y, x_test, y_test) in data.items():
        table = Table(f"{title}: {sweeps} + {sweeps} sweeps, means of {seeds} seeds", columns)
        found = {}
        for name, fit in (fits(["auto", "growprune"]) | LEARNED | ALIKE).items():
            rows = []
            for seed in range(seeds):
                start = time.process_time()
                draws = fit(Run(x, y, n_trees, sweeps, sweeps, seed))
                took = time.process_time() - start
                dist = mixture(draws, x_test)
                error = float(np.sqrt(np.mean((dist.mean - y_test) ** 2)))
                covered = interval_coverage(y_test, *dist.interval(0.9))
                rows.append((took, error, covered, -nlpd(y_test, dist)))
            found[name] = np.mean(rows, axis=0)
            table.add(name, *map(float, found[name]))
        beside = {"auto": ALIKE, "growprune": ALIKE} | dict.fromkeys(LEARNED, PEERS)
        for own, peers in beside.items():
            if not peers:
                continue
            least = min(found[name][1] for name in peers)
            most = max(found[name][3] for name in peers)
            what = f"of {own} beside the best of {', '.join(peers)}"
            verdict(f"RMSE {what}", found[own][1] / least, 1.01)
            verdict(f"log density {what}", found[own][3] - most, -0.01, most=False)


def log_likelihoods(draws: Draws, x: Array, y: Array) -> Array:
    """Return the log-likelihood of every draw, up to a constant."""
    squares = np.sum((draws.sums(x) - y) ** 2, axis=1)
    return -len(y) * np.log(draws.sigma) - 0.5 * squares / draws.sigma**2


def mixing(n_trees: int, sweeps: int, chains: int) -> None:
    """Print the number of effective draws per second."""
    columns = ["kernels", "seconds", "R-hat", "bulk/s", "CODA/s", "sigma CODA/s"]
    title = f"1000 rows, {chains} chains of {sweeps} + {4 * sweeps} sweeps, {n_trees} trees"
    table = Table(f"Log-likelihood and sigma: {title}", columns)
    x, y, _ = friedman(1000, 10, 0)
    for name, fit in fits(["auto", "growprune"]).items():
        took, sigma, likelihood = 0.0, [], []
        for seed in range(chains):
            start = time.process_time()
            draws = fit(Run(x, y, n_trees, sweeps, 4 * sweeps, seed))
            took += time.process_time() - start
            sigma.append(draws.sigma)
            likelihood.append(log_likelihoods(draws, x, y))
        both = [np.stack(traces) for traces in (likelihood, sigma)]
        rates = [spectral_size(traces) / took for traces in both]
        size = effective_size(both[0])
        table.add(name, took, float(r_hat(both[0])), size / took, *map(float, rates))
        if name == "auto" and n_trees == N_TREES:
            verdict("effective draws of the log-likelihood a second", rates[0], 30.0, most=False)
            verdict("effective draws of sigma a second", rates[1], 75.0, most=False)


def prediction(n_trees: int, draws: int) -> dict[str, float]:
    """Return seconds of predicting 1000 rows, and the peak of memory with the fit, in MB."""
    x, y, _ = friedman(1000, 10, 0)
    BARTRegressor(1, n_chains=1, n_burn=0, n_draws=1).fit(x[:50], y[:50]).predict(x[:1])
    before = new_peak()
    model = BARTRegressor(n_trees, n_chains=1, n_burn=100, n_draws=draws, random_state=0).fit(x, y)
    took = min(processor_seconds(lambda: model.predict(x)) for _ in range(3))
    return {"seconds": took, "peak": status("VmHWM") - before}


def many_rows(n_trees: int, draws: int) -> dict[str, float]:
    """Return the memory of draws on 100,000 rows, in MB."""
    x, y, _ = friedman(100_000, 10, 0)
    BARTRegressor(1, n_chains=1, n_burn=0, n_draws=1).fit(x[:50], y[:50])
    before = new_peak()
    model = BARTRegressor(n_trees, n_chains=1, n_burn=0, n_draws=draws, random_state=0).fit(x, y)
    del x, y
    return {
        "peak": status("VmHWM") - before,
        "kept": status("VmRSS") - before,
        "draws": float(model.n_draws),
    }


def threads(n_trees: int, draws: int) -> dict[str, float]:
    """Return the speed-up of two chains on two threads, in wall-clock time."""
    x, y, _ = friedman(1000, 10, 0)
    best = {1: np.inf, 2: np.inf}
    for _ in range(3):
        for n_jobs in best:
            model = BARTRegressor(
                n_trees, n_chains=2, n_burn=draws, n_draws=1, random_state=0, n_jobs=n_jobs
            )
            start = time.perf_counter()
            model.fit(x, y)
            best[n_jobs] = min(best[n_jobs], time.perf_counter() - start)
    return {"ratio": best[1] / best[2]}


ALONE = {"prediction": prediction, "many_rows": many_rows, "threads": threads}


def memory(n_trees: int, draws: int) -> None:
    """Print time and memory of predictions and of draws."""
    found = alone(__file__, "prediction", n_trees, draws)
    print(f"\n1000 rows, {draws} draws of {n_trees} trees")
    verdict("seconds of a prediction", found["seconds"], 0.3)
    verdict("peak of fit and prediction above Python, MB", found["peak"], 100.0)
    found = alone(__file__, "many_rows", n_trees, draws)
    print(f"\n100,000 rows, {draws} draws of {n_trees} trees")
    verdict("peak of the fit above the data, MB", found["peak"], 1000.0)
    print(f"kept: {found['kept']:.0f} MB")


def two_threads(n_trees: int, sweeps: int, cores: set[int]) -> None:
    """Print the speed-up of two chains on two threads."""
    if len(cores) < 2:
        return print("\ntwo chains on two threads: no second core")
    os.sched_setaffinity(0, cores)
    ratio = alone(__file__, "threads", n_trees, sweeps)["ratio"]
    print()
    return verdict("two chains, times as fast on two threads", ratio, 1.8, most=False)


def main() -> None:
    if len(sys.argv) == 4 and sys.argv[1] in ALONE:
        return print(json.dumps(ALONE[sys.argv[1]](int(sys.argv[2]), int(sys.argv[3]))))
    args = arguments(__doc__, n_trees=N_TREES, parts="speed,one,quality,mixing,memory,threads")
    warnings.simplefilter("ignore", ConvergenceWarning)
    for name in sorted({"bartz", "stochtree"} - set(PEERS)):
        print(f"{name} is not installed")
    quick, cores = args.quick, os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cores)})
    parts: dict[str, Callable[[], None]] = {
        "speed": lambda: speed(args.n_trees, 10_000 if quick else 1_000_000),
        "one": lambda: one_tree(200 if quick else 1000, 1 if quick else 8),
        "quality": lambda: quality(args.n_trees, 20 if quick else 500, 1 if quick else 3),
        "mixing": lambda: mixing(args.n_trees, 50 if quick else 1000, 2 if quick else 4),
        "memory": lambda: memory(args.n_trees, 100 if quick else 1000),
        "threads": lambda: two_threads(args.n_trees, 200 if quick else 2000, cores),
    }
    for name in args.parts.split(","):
        parts[name]()
    return None


if __name__ == "__main__":
    main()
