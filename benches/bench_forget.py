"""Time of forgetting rows, compared with inserting them, updates of trees included; one thread.

Also the time of a window that keeps a quarter of a stream and predicts at its end, compared with
a fit of these rows.
"""

from __future__ import annotations

import time

import numpy as np

from _common import SIX, Table, arguments, load, seconds, verdict
from boscage import MondrianForestClassifier

BATCHES = 100


def main() -> None:
    args = arguments(__doc__, n_estimators=100, rows=500, singles=200, repeats=3)
    trees, n, singles = (
        (10, 100, 20) if args.quick else (args.n_estimators, args.rows, args.singles)
    )
    table = Table(
        f"Microseconds a row: {n} rows in one call, {singles} rows in a call each; {trees} trees",
        ["data", "insert", "forget", "ratio", "insert 1", "forget 1", "ratio", "same bits"],
        width=11,
    )
    for name in SIX:
        data = load(name)
        rng = np.random.default_rng(0)
        rows = rng.choice(len(data.X), n, replace=False)
        model = MondrianForestClassifier(trees, feature_weights=None, random_state=0).fit(
            data.X, data.y
        )
        model.predict_proba(data.X_test[:1])
        before = model.digest()
        many = once(model, data.X, data.y, [rows])
        one = once(model, data.X, data.y, [rows[i : i + 1] for i in range(singles)])
        table.add(
            name,
            *(1e6 * t / n for t in many),
            many[1] / many[0],
            *(1e6 * t / singles for t in one),
            one[1] / one[0],
            "yes" if model.digest() == before else "NO",
        )
    print()
    windows = Table(
        f"Seconds of a window over {BATCHES} batches, {trees} trees",
        ["data", "window", "fit", "ratio"],
    )
    for name in SIX:
        data = load(name)
        size = len(data.X) // 4
        took = seconds(
            {
                "window": lambda data=data, size=size: window(trees, size, data.X, data.y),
                "fit": lambda data=data, size=size: window(
                    trees, size, data.X[-size:], data.y[-size:], 1
                ),
            },
            1 if args.quick else args.repeats,
        )
        windows.add(name, took["window"], took["fit"], took["window"] / took["fit"])
    print()
    verdict("worst ratio, one call", max(row[3] for row in table.rows), 1.0)
    verdict("worst ratio, a call each", max(row[6] for row in table.rows), 1.0)


def once(model, X, y, groups):  # type: ignore[no-untyped-def]
    """Forget groups of rows and insert them again; return the times of inserting and forgetting."""
    start = time.perf_counter()
    for ids in groups:
        model.forget(ids)
        model.flush()
    middle = time.perf_counter()
    for ids in groups:
        model.partial_fit(X[ids], y[ids], ids=ids)
        model.flush()
    return time.perf_counter() - middle, middle - start


def window(trees, size, X, y, n_batches=BATCHES):  # type: ignore[no-untyped-def]
    """Keep the newest rows of a stream, and predict at its end."""
    span = (X.min(axis=0), X.max(axis=0))
    model = MondrianForestClassifier(
        trees, feature_weights=None, window_size=size, feature_range=span, random_state=0
    )
    for rows in np.array_split(np.arange(len(X)), n_batches):
        model.partial_fit(X[rows], y[rows])
    model.flush()


if __name__ == "__main__":
    main()
