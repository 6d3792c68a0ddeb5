"""Make the model files of forests without rows, and their expected predictions, `expected.json`.

    PYTHONPATH=tests/helpers python tests/disk/files/make.py

EXISTING FILES AND THEIR EXPECTED RESULTS ARE NEVER CHANGED OR REMOVED. This script only adds files
that do not exist yet.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from boscage import disk
from generated import as_labels, rows_and_numbers
from golden import exact

FOLDER = Path(__file__).parent
EXPECTED = FOLDER / "expected.json"
SCALES = {"mu": 0.5, "gamma1": 1.0, "gamma2": 2.0, "noise_variance": 0.05}


def rows(dtype: str) -> tuple[Any, Any]:
    """Return rows and numbers."""
    X, y = rows_and_numbers(64, 3, 11, dtype)
    return np.asarray(X), np.asarray(y)


def queries() -> Any:
    """Return rows of the data, elsewhere and far away."""
    far = np.array([[1.5, 0.25, -0.5], [-40.0, 100.0, 0.5]])
    return np.concatenate([rows("float64")[0][:4], far])


def predictions(forest: Any) -> list[Any]:
    """Return what a forest predicts."""
    if hasattr(forest, "predict_proba"):
        return list(exact(forest.predict_proba(queries())))
    return list(exact(forest.predict(queries(), return_std=True)))


def main() -> None:
    X, y = rows("float64")
    single, numbers = rows("float32")
    small: dict[str, Any] = {"n_estimators": 3, "random_state": 7}
    made = {
        "classifier-v15": disk.MondrianForestClassifier("64MB", **small).fit(
            X, as_labels(y, "str")
        ),
        "classifier-large-leaves-v15": disk.MondrianForestClassifier(
            "64MB", min_samples_split=20, lifetime=3.0, feature_range=(0.2, 0.7), **small
        ).fit(single, as_labels(numbers, "int")),
        "classifier-weight-0-v17": disk.MondrianForestClassifier(
            "64MB", feature_weights=[0.0, 1.0, 2.0], **small
        ).fit(X, as_labels(y, "str")),
        "regressor-weight-0-v17": disk.MondrianForestRegressor(
            "64MB", feature_weights=[1.0, 0.0, 2.0], hyperparameters=SCALES, **small
        ).fit(single, numbers),
        "regressor-v15": disk.MondrianForestRegressor("64MB", hyperparameters=SCALES, **small).fit(
            single, numbers
        ),
    }
    expected = json.loads(EXPECTED.read_text("utf-8")) if EXPECTED.exists() else {}
    for name, forest in made.items():
        if name not in expected:
            forest.save(FOLDER / f"{name}.boscage")
            expected[name] = predictions(forest)
    EXPECTED.write_text(json.dumps(expected, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
