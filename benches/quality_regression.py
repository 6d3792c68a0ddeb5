"""Regression on real data: error, density, CRPS and coverage, compared with other forests.

All cores. A quarter of the rows is the test set; --test-rows and --train-rows limit both sets.
Peers: scikit-learn's forests with a Gaussian that has the mean and variance over
trees; a random forest (leaves of five) whose Gaussian adds its leaves' variance; quantile-forest;
scikit-learn's boosted trees, and LightGBM, CatBoost and NGBoost where they are installed.
"default" has rates and maps learned from the labels, slopes where they help beyond rows, and fits
the sum of all trees, which "exact" does not. --split chooses the rows, --ours which of our models
are scored, as in --ours "exact, local noise".
"""

from __future__ import annotations

import time
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
from quantile_forest import RandomForestQuantileRegressor
from sklearn.ensemble import (
    ExtraTreesRegressor,
    HistGradientBoostingRegressor,
    RandomForestRegressor,
)

from _common import NUMBERS, Array, Split, Table, arguments, geometric_mean, load, verdict
from boscage import GaussianMixture, MondrianForestRegressor

LEVELS = (np.arange(199) + 0.5) / 199
METRICS = ["RMSE", "NLPD", "CRPS", "in 90 %"]


def scores(y: Array, dist: GaussianMixture) -> list[float]:
    inside = np.abs(2.0 * dist.cdf(y) - 1.0) <= 0.9
    rmse = np.sqrt(np.mean((dist.mean - y) ** 2))
    return [float(rmse), float(-dist.logpdf(y).mean()), float(dist.crps(y).mean()), inside.mean()]


def mondrian(**settings: Any) -> Callable[[Split, int, int], list[float]]:
    def score(data: Split, trees: int, seed: int) -> list[float]:
        model = MondrianForestRegressor(trees, random_state=seed, n_jobs=-1, **settings)
        model.fit(data.X, data.y)
        parts = np.array_split(np.arange(len(data.y_test)), 1 + len(data.y_test) // 2000)
        each = [scores(data.y_test[r], model.predict_dist(data.X_test[r])) for r in parts]
        sizes = [len(r) for r in parts]
        squared = np.array(each) ** [2, 1, 1, 1]
        rmse, *rest = np.average(squared, axis=0, weights=sizes)
        return [float(np.sqrt(rmse)), *map(float, rest)]

    return score


def gaussian(kind: Any, leaves: bool = False, **settings: Any) -> Any:
    """Score a forest's Gaussian: variance over trees, with or without the variance in leaves."""

    def score(data: Split, trees: int, seed: int) -> list[float]:
        model = kind(trees, random_state=seed, n_jobs=-1, **settings).fit(data.X, data.y)
        at = model.apply(data.X_test)
        each = [tree.tree_ for tree in model.estimators_]
        mean = np.stack([t.value[at[:, m], 0, 0] for m, t in enumerate(each)])
        variance = mean.var(axis=0)
        if leaves:
            variance += np.mean([t.impurity[at[:, m]] for m, t in enumerate(each)], axis=0)
        # A spread of zero has no density; it becomes a thousandth of the spread of the labels.
        floor = 1e-3 * data.y.std()
        dist = GaussianMixture.from_normal(
            mean.mean(axis=0), np.sqrt(np.maximum(variance, floor**2))
        )
        return scores(data.y_test, dist)

    return score


def quantiles(data: Split, trees: int, seed: int) -> list[float]:
    model = RandomForestQuantileRegressor(trees, random_state=seed, n_jobs=-1)
    model.fit(data.X, data.y)
    q = np.asarray(model.predict(data.X_test, quantiles=LEVELS.tolist()))
    away = data.y_test[:, None] - q
    crps = 2.0 * np.mean(np.maximum(LEVELS * away, (LEVELS - 1.0) * away))
    rmse = np.sqrt(np.mean((q.mean(axis=1) - data.y_test) ** 2))
    low, high = np.asarray(model.predict(data.X_test, quantiles=[0.05, 0.95])).T
    inside = np.mean((low <= data.y_test) & (data.y_test <= high))
    return [float(rmse), float("nan"), float(crps), float(inside)]


def point(kind: Any, **settings: Any) -> Any:
    """Score boosted trees that predict numbers alone."""

    def score(data: Split, trees: int, seed: int) -> list[float]:
        model = kind(random_state=seed, **settings).fit(data.X, data.y)
        rmse = np.sqrt(np.mean((model.predict(data.X_test) - data.y_test) ** 2))
        return [float(rmse), float("nan"), float("nan"), float("nan")]

    return score


def with_variance(data: Split, trees: int, seed: int) -> list[float]:
    """Score CatBoost's Gaussian: the variance in the data and that over virtual ensembles."""
    kind = import_module("catboost").CatBoostRegressor
    model = kind(
        loss_function="RMSEWithUncertainty",
        posterior_sampling=True,
        random_seed=seed,
        verbose=False,
        allow_writing_files=False,
    ).fit(data.X, data.y)
    mean, knowledge, noise = np.asarray(
        model.virtual_ensembles_predict(data.X_test, prediction_type="TotalUncertainty")
    ).T
    return scores(data.y_test, GaussianMixture.from_normal(mean, np.sqrt(knowledge + noise)))


def natural(data: Split, trees: int, seed: int) -> list[float]:
    """Score NGBoost's Gaussian."""
    model = import_module("ngboost").NGBRegressor(random_state=seed, verbose=False)
    found = model.fit(data.X, data.y).pred_dist(data.X_test)
    return scores(data.y_test, GaussianMixture.from_normal(found.loc, found.scale))


OURS = {
    "default": mondrian(),
    "trees' kernel": mondrian(joint_kernel="trees"),
    "no trend": mondrian(trend=None),
    "equal weights": mondrian(feature_weights=None),
    "exact, equal weights": mondrian(posterior="exact", noise="global", feature_weights=None),
    "exact": mondrian(posterior="exact", noise="global"),
    "exact, local noise": mondrian(posterior="exact"),
}
PEERS = {
    "RF, spread": gaussian(RandomForestRegressor),
    "ERT, spread": gaussian(ExtraTreesRegressor),
    "RF, spread and leaves": gaussian(RandomForestRegressor, leaves=True, min_samples_leaf=5),
    "quantile-forest": quantiles,
    "boosting": point(HistGradientBoostingRegressor),
}
if find_spec("lightgbm"):
    PEERS["LightGBM"] = point(import_module("lightgbm").LGBMRegressor, verbose=-1)
if find_spec("catboost"):
    PEERS["CatBoost"] = with_variance
if find_spec("ngboost"):
    PEERS["NGBoost"] = natural


def main() -> None:
    args = arguments(
        __doc__, n_estimators=100, train_rows=20_000, test_rows=10_000, seeds=1, split=0, ours=""
    )
    trees, seeds = (20, 1) if args.quick else (args.n_estimators, args.seeds)
    limits = (2_000, 500) if args.quick else (args.train_rows, args.test_rows)
    ours = {args.ours: OURS[args.ours]} if args.ours else OURS
    found: dict[str, dict[str, list[float]]] = {}
    atoms = {}
    for name in ["puma32h", "concrete"] if args.quick else NUMBERS:
        data = load(name, seed=args.split).head(*limits)
        table = Table(
            f"{name}: {len(data.X)} rows, {data.X.shape[1]} features; {trees} trees",
            ["", *METRICS, "seconds"],
        )
        found[name] = {}
        atoms[name] = float(np.unique(data.y, return_counts=True)[1].max() / len(data.y))
        for key, score in {**ours, **PEERS}.items():
            start = time.perf_counter()
            each = [score(data, trees, seed) for seed in range(seeds)]
            found[name][key] = [float(figure) for figure in np.mean(each, axis=0)]
            table.add(key, *found[name][key], (time.perf_counter() - start) / seeds)
    for key in ours:
        compare(key, found, atoms)


def compare(ours: str, found: dict[str, dict[str, list[float]]], atoms: dict[str, float]) -> None:
    """Print the figures of a model and its peers, and whether it reaches the goals.

    `atoms` is the share of the most frequent target. If it is 5 % or more and at one end of the
    range, the best intervals of 90 % cover 95 %, so coverage is not a goal.
    """
    columns = ["atom", "RMSE/RF", "CRPS/QF", "in 90 %", "NLPD-spread", "NLPD-leaves"]
    table = Table(f"{ours}, beside its peers", ["data", *columns])
    for name, f in found.items():
        spread = min(f["RF, spread"][1], f["ERT, spread"][1])
        table.add(
            name,
            atoms[name],
            f[ours][0] / f["RF, spread"][0],
            f[ours][2] / f["quantile-forest"][2],
            f[ours][3],
            f[ours][1] - spread,
            f[ours][1] - f["RF, spread and leaves"][1],
        )
    print()
    verdict("RMSE, geometric mean", geometric_mean(table.column("RMSE/RF")), 1.03)
    verdict("CRPS, geometric mean", geometric_mean(table.column("CRPS/QF")), 1.0)
    away = [abs(f[ours][3] - 0.9) for name, f in found.items() if atoms[name] < 0.05]
    verdict("coverage, farthest from 0.9 without atoms", max(away), 0.03)
    verdict("NLPD less the trees' spread, worst", max(table.column("NLPD-spread")), 0.0)
    verdict("NLPD less spread and leaves, worst", max(table.column("NLPD-leaves")), 0.0)
    if "flights" in found:
        f = found["flights"]
        verdict("NLPD on flights", f[ours][1], f["RF, spread and leaves"][1])


if __name__ == "__main__":
    main()
