"""Files of forests without rows load, and their forests predict what they predicted."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import boscage
from golden import exact

FOLDER = Path(__file__).parent / "files"
EXPECTED: dict[str, Any] = json.loads((FOLDER / "expected.json").read_text("utf-8"))
FAR = [[1.5, 0.25, -0.5], [-40.0, 100.0, 0.5]]


@pytest.mark.parametrize("name", EXPECTED)
def test_a_stored_forest_predicts_what_it_predicted(name: str) -> None:
    from generated import rows_and_numbers

    forest: Any = boscage.load(FOLDER / f"{name}.boscage")
    queries = np.concatenate([np.asarray(rows_and_numbers(64, 3, 11, "float64")[0])[:4], FAR])
    if hasattr(forest, "predict_proba"):
        found = exact(forest.predict_proba(queries))
    else:
        found = exact(forest.predict(queries, return_std=True))
    assert json.loads(json.dumps(list(found))) == EXPECTED[name]
    again = io.BytesIO()
    forest.save(again)
    assert again.getvalue() == (FOLDER / f"{name}.boscage").read_bytes()
