"""``boscage demo``: what the forests do, on real data, beside scikit-learn's.

Every figure is measured on rows that the model has not seen, by cross-validation over all rows;
all models see the same folds and use the same number of threads.
"""

from __future__ import annotations

import argparse
import time
from collections import defaultdict
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_digits
from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.metrics import accuracy_score, log_loss, root_mean_squared_error
from sklearn.model_selection import KFold, StratifiedKFold

from boscage import GaussianMixture, MondrianForestClassifier, MondrianForestRegressor
from boscage._cli.commands import demo_plot
from boscage._cli.outputs import require_writable
from boscage.metrics import interval_coverage, nlpd

Array: TypeAlias = NDArray[Any]
Normal: TypeAlias = tuple[Array, Array]
#: An unfitted model, and the function that fits it, by its name in the tables.
Contenders: TypeAlias = dict[str, tuple[Any, Callable[[Any, Array, Array], None]]]

BATCHES = 50
FOLDS = 5
SEED = 0
PIXEL = (0.0, 16.0)
BATCH, STREAM = "Mondrian forest, batch", f"Mondrian forest, {BATCHES} batches"
FOREST = "random forest, trees' spread"
SAME = "batch and stream, with what the batch learned, are the same forests, bit for bit"


def run(args: argparse.Namespace) -> None:
    """Carry out the command."""
    require_writable(args.output)
    forest = {"n_estimators": args.n_estimators, "n_jobs": args.n_jobs, "random_state": SEED}
    _classification(forest)
    observed, ours, theirs = _regression(forest)
    _forgetting(forest)
    demo_plot.draw(args.output, forest, observed, ours, theirs)
    print(f"\nThe picture of predictive uncertainty is in {args.output}")


def _classification(forest: dict[str, Any]) -> None:
    X, y = load_digits(return_X_y=True)
    X = X.astype(np.float32)
    _title("Handwritten digits", X, f"{len(np.unique(y))} classes")
    mondrian = MondrianForestClassifier(**forest, feature_range=PIXEL)
    contenders: Contenders = {
        BATCH: (mondrian, _learn),
        STREAM: (mondrian, _learn_stream),
        "  not calibrated": (clone(mondrian).set_params(calibration=None), _learn),
        "random forest": (RandomForestClassifier(**forest), _learn),
        "extremely randomised trees": (ExtraTreesClassifier(**forest), _learn),
    }
    table = _Table("accuracy", "log loss", "fit (s)", "predict (s)")
    digests: dict[str, list[str]] = {BATCH: [], STREAM: []}
    learned: dict[str, Any] = {}
    for train, test in StratifiedKFold(FOLDS, shuffle=True, random_state=SEED).split(X, y):
        for name, (settings, learn) in contenders.items():
            model = clone(settings)
            if name == STREAM:
                model.set_params(**learned)
            fit_time, _ = _timed(learn, model, X[train], y[train])
            if name == BATCH:
                learned["feature_weights"] = model.feature_weights_
                learned["feature_maps"] = model.feature_maps_
                learned["min_samples_split"] = model.min_samples_split_
            predict_time, p = _timed(model.predict_proba, X[test])
            hit = accuracy_score(y[test], model.classes_[p.argmax(axis=1)])
            loss = log_loss(y[test], p, labels=model.classes_)
            table.add(name, [hit, loss, fit_time, predict_time])
            if name in digests:
                digests[name].append(model.digest())
    table.show()
    _say(digests[BATCH] == digests[STREAM], SAME)


def _regression(forest: dict[str, Any]) -> tuple[Array, GaussianMixture, Normal]:
    X, y = load_diabetes(return_X_y=True)
    X = X.astype(np.float32)
    _title("Progression of diabetes", X, f"targets from {y.min():.0f} to {y.max():.0f}")
    mondrian = MondrianForestRegressor(**forest, feature_range=(X.min(axis=0), X.max(axis=0)))
    papers = {"posterior": "exact", "noise": "global", "prior_scale": None}
    contenders: Contenders = {
        BATCH: (mondrian, _learn),
        STREAM: (mondrian, _learn_stream),
        "  posterior of the papers": (clone(mondrian).set_params(**papers), _learn),
        FOREST: (RandomForestRegressor(**forest), _learn),
        "extremely randomised, spread": (ExtraTreesRegressor(**forest), _learn),
    }
    table = _Table("RMSE", "NLPD", "in 90 %", "fit (s)", "predict (s)")
    digests: dict[str, list[str]] = {BATCH: [], STREAM: []}
    learned: dict[str, Any] = {}
    observed, ours, theirs = [], [], []
    for train, test in KFold(FOLDS, shuffle=True, random_state=SEED).split(X):
        observed.append(y[test])
        for name, (settings, learn) in contenders.items():
            model = clone(settings)
            if name == STREAM:
                model.set_params(**learned)
            fit_time, _ = _timed(learn, model, X[train], y[train])
            if name == BATCH:
                learned["feature_weights"] = model.feature_weights_
                learned["feature_maps"] = model.feature_maps_
                learned["trend"] = model.trend_
            if isinstance(model, MondrianForestRegressor):
                predict_time, dist = _timed(model.predict_dist, X[test])
            else:
                predict_time, normal = _timed(_spread, model, X[test])
                dist = GaussianMixture.from_normal(*normal)
            table.add(name, [*_scores(y[test], dist), fit_time, predict_time])
            if name in digests:
                digests[name].append(model.digest())
            if name == BATCH:
                ours.append(dist)
            elif name == FOREST:
                theirs.append(normal)
    table.show()
    _say(digests[BATCH] == digests[STREAM], SAME)
    mean, std = (np.concatenate(parts) for parts in zip(*theirs, strict=True))
    return np.concatenate(observed), _joined(ours), (mean, std)


def _forgetting(forest: dict[str, Any]) -> None:
    X, y = load_digits(return_X_y=True)
    X = X.astype(np.float32)
    _title("Forgetting every tenth digit", X)
    settings = MondrianForestClassifier(**forest, feature_range=PIXEL, feature_weights=None)
    gone = np.arange(len(X)) % 10 == 0
    model, never = clone(settings).fit(X, y), clone(settings)
    forget_time, _ = _timed(lambda: model.forget(np.flatnonzero(gone)).flush())
    fit_time, _ = _timed(never.fit, X[~gone], y[~gone])
    print(f"forgetting {gone.sum()} rows {forget_time:.3f} s, fitting the others {fit_time:.3f} s")
    _say(model.digest() == never.digest(), "the forest is one that never saw them, bit for bit")


def _learn(model: Any, X: Array, y: Array) -> None:
    model.fit(X, y)


def _learn_stream(model: Any, X: Array, y: Array) -> None:
    for rows in np.array_split(np.arange(len(X)), BATCHES):
        model.partial_fit(X[rows], y[rows])
    model.flush()


def _timed(call: Callable[..., Any], *args: Any) -> tuple[float, Any]:
    start = time.perf_counter()
    result = call(*args)
    return time.perf_counter() - start, result


def _scores(y: Array, dist: GaussianMixture) -> list[float]:
    coverage = interval_coverage(y, *dist.interval(0.9))
    return [root_mean_squared_error(y, dist.mean), nlpd(y, dist), coverage]


def _spread(model: Any, X: Array) -> Normal:
    """Return mean and standard deviation over trees, which pass for a forest's uncertainty."""
    each = np.stack([tree.predict(X) for tree in model.estimators_])
    return each.mean(axis=0), np.maximum(each.std(axis=0), 1e-6)


def _joined(parts: list[GaussianMixture]) -> GaussianMixture:
    counts = np.concatenate([np.diff(part.offsets) for part in parts])
    return GaussianMixture(
        np.concatenate([[0], np.cumsum(counts)]),
        np.concatenate([part.weights for part in parts]),
        np.concatenate([part.means for part in parts]),
        np.concatenate([part.variances for part in parts]),
    )


def _title(name: str, X: Array, *more: str) -> None:
    print("\n" + ", ".join([f"{name}: {X.shape[0]} rows, {X.shape[1]} features", *more]))


def _say(truth: bool, what: str) -> None:
    print(f"{what}: {'yes' if truth else 'NO'}")


class _Table:
    """Rows of figures, each the mean over its folds; times are those of one fold."""

    def __init__(self, *columns: str) -> None:
        self._columns = columns
        self._rows: defaultdict[str, list[list[float]]] = defaultdict(list)

    def add(self, name: str, row: list[float]) -> None:
        self._rows[name].append(row)

    def show(self) -> None:
        print(f"{'':28}" + "".join(f"{column:>13}" for column in self._columns))
        for name, rows in self._rows.items():
            means = np.mean(rows, axis=0)
            print(f"{name:28}" + "".join(f"{mean:13.3f}" for mean in means))
