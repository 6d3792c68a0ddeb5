"""The papers' data sets, if they are available."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from reference.arrays import Array

ROOT = Path(__file__).resolve().parents[2]
DATA = Path(os.environ.get("BOSCAGE_DATA", ROOT / ".." / "shared" / "data"))


def load(name: str) -> tuple[Array, Array, Array, Array]:
    """Return training rows, their labels, test rows and their labels; skip if they are absent."""
    path = DATA / f"{name}.npz"
    if not path.exists():
        pytest.skip(f"{path} is not there; set BOSCAGE_DATA to the folder of the papers' data")
    with np.load(path, allow_pickle=False) as arrays:
        x, x_test = (arrays[k].astype(np.float32) for k in ("X_train", "X_test"))
        return x, arrays["y_train"], x_test, arrays["y_test"]
