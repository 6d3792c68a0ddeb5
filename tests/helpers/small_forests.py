"""Small forests that tests of both Mondrian estimators share."""

from __future__ import annotations

import copy
import io
import pickle
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pytest

import boscage
from boscage import MondrianForestClassifier, MondrianForestRegressor

KINDS = [MondrianForestClassifier, MondrianForestRegressor]
RNG = np.random.default_rng(0)
X = RNG.uniform(size=(90, 3))
Y = (X[:, 0] + 0.3 * RNG.normal(size=90) > 0.5).astype(int)

both = pytest.mark.parametrize("kind", KINDS)


def make(kind: Any, **params: Any) -> Any:
    given = {"n_estimators": 5, "feature_range": (0.0, 1.0), "feature_weights": None}
    return kind(**(given | {"random_state": 1} | params))


def predict(model: Any, rows: Any = X) -> Any:
    if hasattr(model, "predict_proba"):
        return model.predict_proba(rows)
    return np.array(model.predict(rows, return_std=True))


def _dump(model: Any, folder: Path) -> Path:
    joblib.dump(model, folder / "model.joblib")
    return folder / "model.joblib"


def copies(model: Any, folder: Path) -> dict[str, Any]:
    model.save(folder / "model.boscage")
    stream = io.BytesIO()
    model.save(stream)
    assert stream.getvalue() == (folder / "model.boscage").read_bytes()
    stream.seek(0)
    return {
        "copy": model.copy(),
        "copy.copy": copy.copy(model),
        "deepcopy": copy.deepcopy(model),
        "pickle": pickle.loads(pickle.dumps(model)),
        "old pickle": pickle.loads(pickle.dumps(model, protocol=2)),
        "joblib": joblib.load(_dump(model, folder)),
        "stream": boscage.load(stream),
        "load": type(model).load(folder / "model.boscage"),
        "boscage.load": boscage.load(str(folder / "model.boscage"), n_jobs=2),
    }
