"""A short tour through an installed package, with nothing but its own dependencies."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
from sklearn.datasets import load_diabetes, load_iris

import boscage
from boscage import MondrianForestClassifier, MondrianForestRegressor


def main() -> None:
    assert "site-packages" in boscage.__file__, boscage.__file__

    X, y = load_iris(return_X_y=True)
    span = (X.min(axis=0), X.max(axis=0))
    given = {"feature_range": span, "feature_weights": None, "random_state": 0}
    whole = MondrianForestClassifier(10, **given).fit(X, y)
    assert whole.score(X, y) > 0.9
    stream = MondrianForestClassifier(10, **given)
    for rows in np.array_split(np.random.default_rng(0).permutation(len(X)), 7):
        stream.partial_fit(X[rows], y[rows])
    assert stream.digest() == whole.digest()

    X, y = load_diabetes(return_X_y=True)
    model = MondrianForestRegressor(10, random_state=0).fit(X, y)
    mean, std = model.predict(X[:5], return_std=True)
    assert np.all(std > 0)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.boscage"
        model.save(path)
        np.testing.assert_array_equal(boscage.load(path).predict(X[:5]), mean)
    print(f"boscage {boscage.__version__}: fits, streams, saves and loads")


if __name__ == "__main__":
    main()
