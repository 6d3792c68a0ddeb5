"""Files of all earlier versions load, and their models give the same results.

Bit for bit, but for one: what Mondrian regressors predict is an integral over the times at which a
row may branch off, whose rule of integration may become faster and more exact. Their means and
standard deviations are compared to the digits to which this integral has always been tested.

The files and their expected results are in `files`. Files are never changed or removed; what they
give is recorded anew only where a rule that learns from rows, or a part of a variance, has changed
on purpose, or where a search or a solver finds the same numbers in another way, and digests never
are.
`files/make.py` describes how to add new ones.
"""

from __future__ import annotations

import io
import json
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import boscage
from boscage import MondrianForestRegressor, _core
from golden import describe
from reference.arrays import Array
from stored import Data, continued, settings_of

FOLDER = Path(__file__).parent / "files"
EXPECTED: dict[str, Any] = json.loads((FOLDER / "expected.json").read_text("utf-8"))


@pytest.fixture(params=sorted(EXPECTED))
def name(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    if EXPECTED[name]["data"]["named"]:
        pytest.importorskip("pandas")
    return name


def data_of(name: str) -> Data:
    return Data(**EXPECTED[name]["data"])


def load(name: str) -> Any:
    return boscage.load(FOLDER / f"{name}.boscage")


def as_json(found: Any) -> Any:
    return json.loads(json.dumps(found))


def assert_has(found: Any, expected: Any, where: str = "") -> None:
    """Whether results are equal, except for entries that later versions add."""
    if isinstance(expected, dict):
        assert found.keys() >= expected.keys(), where
        for key, value in expected.items():
            if key == "predict" and "hyperparameters" in expected:
                assert_predicts(found[key], value, f"{where}/{key}")
            else:
                assert_has(found[key], value, f"{where}/{key}")
    else:
        assert found == expected, where


def assert_predicts(found: Any, expected: Any, where: str) -> None:
    """Whether means are equal to 1e-5 standard deviations, and standard deviations to 1e-5."""
    (mean, std), (expected_mean, expected_std) = (
        [np.array([float.fromhex(number) for number in part]) for part in each]
        for each in (found, expected)
    )
    assert np.abs((mean - expected_mean) / expected_std).max() < 1e-5, where
    np.testing.assert_allclose(std, expected_std, rtol=1e-5, err_msg=where)


def check_found(model: Any, name: str) -> None:
    """Whether a loaded model equals the saved one."""
    expected = EXPECTED[name]
    assert type(model).__name__ == expected["class"]
    assert_has(as_json(settings_of(model)), expected["settings"], "settings")
    assert [*getattr(model, "feature_names_in_", [])] == expected["feature_names"]
    assert_has(as_json(describe(model, data_of(name).at())), expected["gives"], "gives")


def test_every_file_has_an_expectation_and_the_reverse() -> None:
    assert {path.stem for path in FOLDER.glob("*.boscage")} == EXPECTED.keys()


def test_files_say_their_version() -> None:
    for name, entry in EXPECTED.items():
        assert name.endswith(f"-v{entry['version']}")
        head = (FOLDER / f"{name}.boscage").read_bytes()[:12]
        assert int.from_bytes(head[8:], "little") == entry["version"]


#: The versions that files of each kind have had. `tests/disk/files` has those of forests without
#: rows.
VERSIONS = {
    "MondrianForestClassifier": {1, 2, 4, 5, 6, 8, 12, 14, 17, 18, 19},
    "MondrianForestRegressor": {1, 2, 4, 6, 7, 8, 12, 13, 16, 17, 20, 22, 23},
    "BayesianTreeClassifier": {1, 9, 10, 11, 21},
    "BayesianTreeRegressor": {1, 9, 10, 11, 21},
    "BARTClassifier": {1, 3, 9, 10, 21},
    "BARTRegressor": {1, 3, 9, 10, 21},
}


def test_every_kind_is_stored_in_every_version_so_far() -> None:
    found: dict[str, set[int]] = {kind: set() for kind in VERSIONS}
    for entry in EXPECTED.values():
        found[entry["class"]].add(entry["version"])
    assert found == VERSIONS


def test_the_version_that_is_written_today_is_stored() -> None:
    """If this fails, the format is new: `files/make.py` makes files of it."""
    found = {(entry["class"], entry["version"]) for entry in EXPECTED.values()}
    for name, entry in EXPECTED.items():
        again = io.BytesIO()
        load(name).save(again)
        version = int.from_bytes(again.getvalue()[8:12], "little")
        assert (entry["class"], version) in found, name


def test_a_stored_file_gives_what_it_gave(name: str) -> None:
    check_found(load(name), name)


def test_a_stored_model_goes_on_as_the_one_that_was_saved_did(name: str) -> None:
    assert_has(as_json(continued(load(name), data_of(name))), EXPECTED[name]["then"], "then")


@pytest.mark.slow
def test_a_stored_file_that_is_saved_again_loads_to_the_same(name: str) -> None:
    again = io.BytesIO()
    load(name).save(again)
    again.seek(0)
    model = boscage.load(again)
    check_found(model, name)
    assert_has(as_json(continued(model, data_of(name))), EXPECTED[name]["then"], "then")


def warming(x: Array, y: Array, ids: range) -> MondrianForestRegressor:
    forest = MondrianForestRegressor(
        3, trend=None, feature_range=(0.0, 1.0), feature_weights="learned", random_state=1
    )
    return forest.partial_fit(x, y, ids=list(ids))


def stored_version(forest: Any) -> int:
    file = io.BytesIO()
    forest.save(file)
    return int.from_bytes(file.getvalue()[8:12], "little")


def test_an_older_forest_keeps_its_prior_while_it_warms_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = np.random.default_rng(0)
    x = rng.uniform(size=(80, 2))
    y = x[:, 0] + 0.1 * rng.normal(size=80)
    with monkeypatch.context() as patch:
        patch.setattr(_core, "MondrianRegressor", partial(_core.MondrianRegressor, prior_rate=1.0))
        first, second = (warming(x[i : i + 20], y[i : i + 20], range(i, i + 20)) for i in (0, 20))
    assert [stored_version(forest) for forest in (first, second)] == [13, 13]
    new = warming(x[60:], y[60:], range(60, 80))
    assert stored_version(new) == 20
    for one, other in ((first, new), (new, first)):
        with pytest.raises(ValueError, match="only if their posterior settings are equal"):
            one.merge(other)
    first.partial_fit(x[40:60], y[40:60], ids=list(range(40, 60)))
    assert stored_version(first) == 13
    first.merge(second)
    assert (stored_version(first), first.n_rows_) == (13, 60)
    first.fit(x, y)
    assert stored_version(first) == 20


@pytest.mark.parametrize("task", ["classifier", "regressor"])
def test_an_older_forest_keeps_its_coordinates_of_features_of_weight_0(task: str) -> None:
    """Their rates are summed with those of others, so that cuts may have other last bits."""
    name = f"mondrian-{task}-given-weights"
    old, new = load(f"{name}-v{4 if task == 'classifier' else 16}"), load(f"{name}-v17")
    assert 0.0 in old.feature_weights_
    version = EXPECTED[f"{name}-v17"]["version"]
    assert stored_version(old) < stored_version(new) == version
    for one, other in ((old, new), (new, old)):
        with pytest.raises(ValueError, match="coordinates: one of them comes from a file"):
            one.copy().merge(other)
    data = data_of(f"{name}-v17")
    assert stored_version(old.partial_fit(*data.more())) < version
    newest = 18 if task == "classifier" else 20
    assert stored_version(old.fit(data.x, data.y)) == newest
