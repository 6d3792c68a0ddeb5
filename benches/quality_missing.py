"""Missing values: Mondrian forests beside models that take them as they are.

All cores. Values are removed from complete tables, in the training and the test rows: a quarter of
them at random; most of each feature's upper 30 %; or half where the target is of one kind, and a
tenth elsewhere. "filled" is the default forest on rows in which medians stand for missing values;
"best" is the better of the default and, for classes, the joint posterior. CatBoost takes part if it
is installed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.impute import SimpleImputer
from sklearn.metrics import log_loss, root_mean_squared_error
from sklearn.pipeline import make_pipeline

from _common import Split, Table, arguments, geometric_mean, load
from boscage import MondrianForestClassifier, MondrianForestRegressor

try:
    from catboost import CatBoostClassifier, CatBoostRegressor
except ImportError:
    CatBoostClassifier = CatBoostRegressor = None

CLASSES = ["letter", "satimage", "pendigits", "magic04"]
NUMBERS = ["california_housing", "concrete", "puma32h"]
CLIP = 1e-4
"""The least probability that counts; random forests predict 0."""


def at_random(X: np.ndarray, y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return rng.random(X.shape) < 0.25


def where_high(X: np.ndarray, y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return (np.quantile(X, 0.7, axis=0) <= X) & (rng.random(X.shape) < 0.7)


def by_target(X: np.ndarray, y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    kinds = np.unique(y)
    first = y < np.median(y) if len(kinds) > 100 else np.isin(y, kinds[: len(kinds) // 2])
    return rng.random(X.shape) < np.where(first, 0.5, 0.1)[:, None]


def classified(model: Any, data: Split) -> float:
    proba = np.maximum(model.fit(data.X, data.y).predict_proba(data.X_test), CLIP)
    proba /= proba.sum(axis=1, keepdims=True)
    return float(log_loss(data.y_test, proba, labels=np.unique(data.y)))


def regressed(model: Any, data: Split) -> float:
    return float(
        root_mean_squared_error(data.y_test, model.fit(data.X, data.y).predict(data.X_test))
    )


def models(classes: bool, trees: int, seed: int) -> dict[str, Any]:
    kind: Any = MondrianForestClassifier if classes else MondrianForestRegressor
    peers: tuple[Any, Any] = (
        (RandomForestClassifier, HistGradientBoostingClassifier)
        if classes
        else (RandomForestRegressor, HistGradientBoostingRegressor)
    )
    ours = kind(trees, random_state=seed, n_jobs=-1)
    found = {"default": ours, "filled": make_pipeline(SimpleImputer(strategy="median"), ours)}
    if classes:
        found["joint"] = kind(trees, random_state=seed, n_jobs=-1, posterior="joint")
    found["RF"] = peers[0](trees, random_state=seed, n_jobs=-1)
    found["HGB"] = peers[1](random_state=seed)
    if CatBoostClassifier is not None:
        catboost = CatBoostClassifier if classes else CatBoostRegressor
        found["CatBoost"] = catboost(random_seed=seed, verbose=0, allow_writing_files=False)
    return found


def main() -> None:
    args = arguments(__doc__, n_estimators=100, rows=3_000, test_rows=2_000, seeds=1)
    trees, n_rows = (20, 600) if args.quick else (args.n_estimators, args.rows)
    ways: list[Callable[..., np.ndarray]] = [at_random, where_high, by_target]
    names = ["default", "filled", "joint", "RF", "HGB", "CatBoost"]
    for remove in ways:
        title = f"removed {remove.__name__.replace('_', ' ')}: {n_rows} rows; {trees} trees"
        table = Table(f"{title}; log loss or RMSE", ["", *names, "best/best peer"])
        ratios = []
        for name in CLASSES + NUMBERS:
            for seed in range(args.seeds):
                data = load(name, seed=seed).head(n_rows, args.test_rows)
                X, X_test = (part.astype(np.float64) for part in (data.X, data.X_test))
                rng = np.random.default_rng(seed)
                both, targets = np.concatenate([X, X_test]), np.concatenate([data.y, data.y_test])
                both[remove(both, targets, rng)] = np.nan
                holes = Split(name, both[: len(X)], data.y, both[len(X) :], data.y_test)
                score = classified if name in CLASSES else regressed
                all_models = models(name in CLASSES, trees, seed)
                found = {each: score(model, holes) for each, model in all_models.items()}
                ours = [found[each] for each in ("default", "joint") if each in found]
                peers = [found[each] for each in names[3:] if each in found]
                ratios.append(min(ours) / min(peers))
                table.add(name, *(found.get(each, "") for each in names), ratios[-1])
        table.add("geometric mean", *([""] * len(names)), geometric_mean(ratios))


if __name__ == "__main__":
    main()
