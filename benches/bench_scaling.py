"""How the time of a fit grows with rows, and with irrelevant features.

One thread. The data are random numbers, since only time is measured. Labels depend on the first
ten features; one in twenty is drawn at random.
"""

from __future__ import annotations

from math import log2

import numpy as np
from sklearn.ensemble import ExtraTreesClassifier

from _common import Array, Table, arguments, seconds
from boscage import MondrianForestClassifier

INFORMATIVE = 10


def made(n_rows: int, n_features: int) -> tuple[Array, Array]:
    rng = np.random.default_rng(0)
    X = rng.random((n_rows, n_features), dtype=np.float32)
    y = (X[:, :INFORMATIVE] @ np.arange(1, INFORMATIVE + 1) // 7).astype(np.int64)
    noisy = rng.random(n_rows) < 0.05
    y[noisy] = rng.choice(y, noisy.sum())
    return X, y


def main() -> None:
    args = arguments(__doc__, n_estimators=10)
    trees = 2 if args.quick else args.n_estimators

    table = Table(
        f"Rows: seconds to fit {trees} trees on {INFORMATIVE} columns",
        ["rows", "Mondrian", "ns/(N log N)", "scikit", "ns/(N log N)", "ratio"],
        width=14,
    )
    for n in (1_000, 10_000) if args.quick else (1_000, 10_000, 100_000, 300_000, 1_000_000):
        X, y = made(n, INFORMATIVE)
        took = times(X, y, trees, 3 if n <= 10_000 else 1)
        unit = 1e9 / (n * log2(n) * trees)
        ours, peer = took["averaged"], took["scikit"]
        table.add(str(n), ours, ours * unit, peer, peer * unit, ours / peer)

    n = 2_000 if args.quick else 10_000
    table = Table(
        f"Columns: seconds to fit {trees} trees on {n} rows, {INFORMATIVE} columns matter",
        ["columns", "averaged", "realised", "weights 0", "scikit", "avg / scikit"],
        width=14,
    )
    for d in (10, 100) if args.quick else (10, 30, 100, 300, 1_000, 2_000):
        took = times(*made(n, d), trees, 3, weigh=True)
        table.add(
            str(d), *(took[k] for k in ("averaged", "realised", "weights 0", "scikit")),
            took["averaged"] / took["scikit"],
        )  # fmt: skip
    print("\n(weights 0: feature_weights are 0 for the columns that do not matter)")


def times(X: Array, y: Array, trees: int, repeats: int, weigh: bool = False) -> dict[str, float]:
    weights = (np.arange(X.shape[1]) < INFORMATIVE).astype(float)
    models = {
        "averaged": MondrianForestClassifier(trees, feature_weights=None, random_state=0),
        "scikit": ExtraTreesClassifier(trees, max_features=1, random_state=0),
    }
    if weigh:
        models["realised"] = MondrianForestClassifier(
            trees, feature_weights=None, predictive="realised", random_state=0
        )
        models["weights 0"] = MondrianForestClassifier(
            trees, feature_weights=weights, random_state=0
        )
    return seconds(
        {name: lambda m=m: m.fit(X, y).predict_proba(X[:1]) for name, m in models.items()}, repeats
    )


if __name__ == "__main__":
    main()
