"""Classification on real data: log loss, errors, calibration error and processor time of a fit.

Beside other packages, on one thread. Means over seeds, which also choose the test rows (a quarter)
where the source does not. "default" calibrates the probabilities by rows left out; "joint" fits
all trees together as well; "limit" does so with infinitely many trees, however many rows there are,
and is the best setting; "papers" has equal feature weights and no calibration. Peers have their
defaults: scikit-learn's random forest, extremely randomised trees and boosted trees, and LightGBM
where it is installed. --train-rows limits the rows, --data the sets ("letter, usps").
"""

from __future__ import annotations

import time
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.ensemble import (
    ExtraTreesClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

from _common import SIX, Split, Table, arguments, geometric_mean, load, verdict
from boscage import MondrianForestClassifier
from boscage.metrics import expected_calibration_error

OURS = ["default", "joint", "limit", "papers"]
BEST = "limit"
METRICS = ["log loss", "errors", "calibration", "seconds"]
#: Test rows from which on calibration errors are compared with a bound.
ENOUGH = 3000


def makers(trees: int) -> dict[str, Callable[[int], Any]]:
    """Return what makes each model, given a seed."""

    def ours(**settings: Any) -> Callable[[int], Any]:
        return lambda seed: MondrianForestClassifier(trees, random_state=seed, n_jobs=1, **settings)

    found = {
        "default": ours(),
        "joint": ours(posterior="joint"),
        "limit": ours(posterior="joint", joint_kernel="limit"),
        "papers": ours(calibration=None, feature_weights=None),
        "RF": lambda seed: RandomForestClassifier(trees, random_state=seed),
        "ERT": lambda seed: ExtraTreesClassifier(trees, random_state=seed),
        "boosting": lambda seed: HistGradientBoostingClassifier(random_state=seed),
    }
    if find_spec("lightgbm"):
        kind = import_module("lightgbm").LGBMClassifier
        found["LightGBM"] = lambda seed: kind(random_state=seed, n_jobs=1, verbose=-1)
    return found


def table_of(name: str, seed: int) -> Split:
    """Return a set of the papers' or one of scikit-learn's."""
    own = {"breast cancer": load_breast_cancer, "digits": load_digits}
    if name not in own:
        return load(name, seed=seed)
    X, y = own[name](return_X_y=True)
    parts = train_test_split(X.astype(np.float32), y, random_state=seed)
    return Split(name, parts[0], parts[2], parts[1], parts[3])


def scores(model: Any, data: Split) -> list[float]:
    start = time.process_time()
    model.fit(data.X, data.y)
    spent = time.process_time() - start
    p = np.asarray(model.predict_proba(data.X_test), dtype=np.float64)
    errors = np.mean(model.classes_[p.argmax(axis=1)] != data.y_test)
    loss = log_loss(data.y_test, p / p.sum(axis=1, keepdims=True), labels=model.classes_)
    at = np.searchsorted(model.classes_, data.y_test)
    return [float(loss), float(errors), expected_calibration_error(at, p), spent]


def verdicts(found: dict[str, dict[str, list[float]]], n_test: dict[str, int]) -> None:
    """Print how ours compare, with what the library is to reach."""
    peers = [key for key in next(iter(found.values())) if key not in OURS]

    def over(key: str, metric: int, others: list[str]) -> list[float]:
        floor = 1e-4  # Errors may be zero.
        return [
            max(row[key][metric], floor) / max(min(row[k][metric] for k in others), floor)
            for row in found.values()
        ]

    print()
    ratios = over("default", 0, ["RF"])
    verdict("default, log loss over RF's, geometric mean", geometric_mean(ratios), 0.65)
    verdict("default, sets with log loss below RF's", sum(r < 1 for r in ratios), 8, most=False)
    ratios = over(BEST, 0, peers)
    verdict(f"{BEST}, log loss over the best peer's", geometric_mean(ratios), 0.85)
    verdict(f"{BEST}, sets below all peers", sum(r < 1 for r in ratios), 7, most=False)
    ratios = over(BEST, 1, peers)
    verdict(f"{BEST}, errors over the best peer's", geometric_mean(ratios), 0.95)
    large = [name for name in found if n_test[name] >= ENOUGH]
    for key in OURS[:3] if large else []:
        verdict(f"{key}, calibration error", max(found[name][key][2] for name in large), 0.02)


def main() -> None:
    args = arguments(__doc__, n_estimators=100, seeds=3, train_rows=100_000, data="")
    trees, seeds, limit = args.n_estimators, args.seeds, args.train_rows
    names = args.data.split(", ") if args.data else [*SIX, "madelon", "breast cancer", "digits"]
    if args.quick:
        trees, seeds, names = 20, 1, ["dna", "breast cancer"]
    make = makers(trees)
    found: dict[str, dict[str, list[float]]] = {}
    n_test = {}
    for name in names:
        columns = [name, *METRICS]
        table = Table(f"{name}, {trees} trees, means of {seeds} seeds", columns)
        found[name] = {}
        for key in make:
            each = []
            for seed in range(seeds):
                data = table_of(name, seed).head(limit, 100_000)
                each.append(scores(make[key](seed), data))
            n_test[name] = len(data.y_test)
            found[name][key] = list(map(float, np.mean(each, axis=0)))
            table.add(key, *found[name][key])
    verdicts(found, n_test)


if __name__ == "__main__":
    main()
