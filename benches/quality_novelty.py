"""Telling unusual rows from test rows: area under the ROC, beside forests and an isolation forest.

All cores. Unusual are rows of classes that were left out of training (3 of 10, of sets with three
classes or more), rows whose features are permuted independently, and uniform noise in the box of
the training rows. Ours are the entropy of the predicted classes and the score of `score_samples`;
the peers' are the entropy of a random forest and of extremely randomised trees, and the score of an
isolation forest. Means over seeds.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.ensemble import ExtraTreesClassifier, IsolationForest, RandomForestClassifier
from sklearn.metrics import roc_auc_score

from _common import SIX, Array, Table, arguments, load, verdict
from boscage import MondrianForestClassifier

SETS = [*SIX, "madelon", "breast_cancer", "digits"]
PEERS = ["RF", "ERT", "isolation"]
#: The share of classes that are left out.
GONE = 0.3


def whole(name: str, seed: int) -> tuple[Array, Array]:
    """Return all rows of a set in a random order."""
    if name in ("breast_cancer", "digits"):
        X, y = (load_digits if name == "digits" else load_breast_cancer)(return_X_y=True)
    else:
        data = load(name)
        X, y = np.concatenate([data.X, data.X_test]), np.concatenate([data.y, data.y_test])
    order = np.random.default_rng(seed).permutation(len(y))
    return X[order].astype(np.float32), y[order]


def tasks(
    name: str, n_train: int, n_test: int, seed: int
) -> Iterator[tuple[str, tuple[Array, Array], Array, Array]]:
    """Return kinds of unusual rows: training rows, usual test rows and unusual ones."""
    X, y = whole(name, seed)
    n_train = min(n_train, int(0.6 * len(y)))
    train, test = np.split(np.arange(min(len(y), n_train + n_test)), [n_train])
    rng = np.random.default_rng(100 + seed)
    classes = np.unique(y)
    if len(classes) > 2:
        gone = np.isin(y, rng.permutation(classes)[: round(GONE * len(classes))])
        known = train[~gone[train]]
        yield "left-out classes", (X[known], y[known]), X[test[~gone[test]]], X[test[gone[test]]]
    permuted = np.column_stack([rng.permutation(column) for column in X[test].T])
    yield "permuted features", (X[train], y[train]), X[test], permuted
    low, high = X[train].min(axis=0), X[train].max(axis=0)
    noise = rng.uniform(low, high, size=X[test].shape).astype(np.float32)
    yield "uniform noise", (X[train], y[train]), X[test], noise


def entropy(proba: Array) -> Array:
    return np.asarray(-(proba * np.log(np.maximum(proba, 1e-300))).sum(axis=1))


def areas(fitted: list[object], usual: Array, unusual: Array) -> list[float]:
    """Return the areas under the ROC of all peers, of our entropy and of our score."""
    rows = np.concatenate([usual, unusual])
    truth = np.repeat([0, 1], [len(usual), len(unusual)])
    *forests, isolation, own = fitted
    scores = [entropy(forest.predict_proba(rows)) for forest in forests]
    scores.append(-isolation.score_samples(rows))
    scores += [entropy(own.predict_proba(rows)), -own.score_samples(rows)]
    return [float(roc_auc_score(truth, score)) for score in scores]


def main() -> None:
    args = arguments(__doc__, n_estimators=50, seeds=2, rows=1500, test=500)
    trees, seeds = (20, 1) if args.quick else (args.n_estimators, args.seeds)
    found: dict[tuple[str, str], list[list[float]]] = {}
    for name in ["digits", "satimage"] if args.quick else SETS:
        for seed in range(seeds):
            fitted: dict[int, list[object]] = {}
            for kind, (X, y), usual, unusual in tasks(name, args.rows, args.test, seed):
                if len(y) not in fitted:
                    options = {"random_state": seed, "n_jobs": -1}
                    fitted[len(y)] = [
                        RandomForestClassifier(trees, **options).fit(X, y),
                        ExtraTreesClassifier(trees, **options).fit(X, y),
                        IsolationForest(**options).fit(X),
                        MondrianForestClassifier(trees, **options).fit(X, y),
                    ]
                own = areas(fitted[len(y)], usual, unusual)
                found.setdefault((kind, name), []).append(own)
    columns = [*PEERS, "entropy", "score"]
    means = []
    for kind in dict.fromkeys(kind for kind, _ in found):
        title = f"{kind}: {args.rows} rows, {args.test} test rows, {trees} trees, {seeds} seeds"
        table = Table(title, ["data", *columns])
        for (of, name), areas_found in found.items():
            if of == kind:
                table.add(name, *np.mean(areas_found, axis=0).tolist())
        table.add("mean", *(float(np.mean(table.column(column))) for column in columns))
        means += [dict(zip(columns, row[1:], strict=True)) for row in table.rows[:-1]]
    print()
    verdict("score, mean", float(np.mean([row["score"] for row in means])), 0.9, most=False)
    for peer in PEERS:
        behind = sum(max(row["entropy"], row["score"]) < row[peer] for row in means)
        verdict(f"sets of {len(means)} where {peer} is better than both", behind, 0)


if __name__ == "__main__":
    main()
