"""Copies, pickles and loaded files of a forest equal it, and are independent of it."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

import boscage
from boscage import MondrianForestClassifier, MondrianForestRegressor
from small_forests import KINDS, X, Y, both, copies, make, predict


@both
def test_copies_are_equal_and_go_on_by_themselves(kind: Any, tmp_path: Path) -> None:
    model = make(kind).fit(X[:50], Y[:50])
    model.forget([3, 4])
    before = model.digest()
    expected = make(kind).fit(X, Y).forget([3, 4])
    for name, twin in copies(model, tmp_path).items():
        assert type(twin) is kind, name
        assert twin.digest() == before, name
        assert twin.n_features_in_ == 3, name
        np.testing.assert_array_equal(twin.ids_, model.ids_, name)
        np.testing.assert_array_equal(predict(twin), predict(model), name)
        twin.partial_fit(X[50:], Y[50:])
        assert twin.digest() == expected.digest(), name
        np.testing.assert_array_equal(twin.ids_, expected.ids_, name)
        np.testing.assert_array_equal(predict(twin), predict(expected), name)
    assert model.digest() == before


CHANGES: list[tuple[Any, dict[str, Any], dict[str, Any]]] = [
    (MondrianForestClassifier, {}, {"calibration": None, "trend": None, "predictive": "realised"}),
    (MondrianForestClassifier, {"calibration": None, "trend": None}, {"calibration": "loo"}),
    (MondrianForestClassifier, {"joint_kernel": "trees"}, {"posterior": "joint"}),
    (MondrianForestClassifier, {}, {"discount": np.float32(3.0), "warm_up": 7}),
    (MondrianForestRegressor, {}, {"predictive": "realised", "window_size": 20}),
    (MondrianForestRegressor, {"random_state": 0}, {"random_state": None}),
]


@pytest.mark.parametrize(("kind", "given", "changed"), CHANGES)
def test_copies_keep_what_was_set_after_the_last_update(
    kind: Any, given: dict[str, Any], changed: dict[str, Any], tmp_path: Path
) -> None:
    model = make(kind, **given).fit(X[:50], Y[:50]).set_params(**changed)
    twins = copies(model, tmp_path)
    expected = model.get_params()
    model.partial_fit(X[50:], Y[50:])
    for name, twin in twins.items():
        found = twin.get_params()
        for key in {*given, *changed}:
            assert found[key] == expected[key], (name, key)
        twin.partial_fit(X[50:], Y[50:])
        np.testing.assert_array_equal(predict(twin), predict(model), name)


def test_a_parameter_that_needs_a_new_fit_is_refused_after_loading(tmp_path: Path) -> None:
    model = make(MondrianForestRegressor).fit(X[:50], Y[:50])
    model.set_params(lifetime=2.0, feature_range=(np.zeros(3), np.ones(3))).save(tmp_path / "m")
    loaded = boscage.load(tmp_path / "m")
    assert loaded.lifetime == 2.0
    assert loaded.feature_range == [[0.0] * 3, [1.0] * 3]
    with pytest.raises(ValueError, match="call fit to grow a new forest"):
        loaded.partial_fit(X[50:], Y[50:])


@both
def test_an_unfitted_forest_can_be_copied(kind: Any) -> None:
    model = make(kind, window_size=9)
    for twin in (model.copy(), copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert repr(twin.get_params()) == repr(model.get_params())
        assert twin.fit(X, Y).n_rows_ == 9


@both
def test_a_loaded_forest_refits_to_itself(kind: Any, tmp_path: Path) -> None:
    model = make(kind, lifetime=4.0, min_samples_split=3, predictive="realised").fit(X, Y)
    model.save(tmp_path / "m")
    loaded = boscage.load(tmp_path / "m")
    assert loaded.fit(X, Y).digest() == model.digest()
    assert clone(loaded).fit(X, Y).digest() == model.digest()


@both
def test_a_file_keeps_what_only_python_knows(kind: Any, tmp_path: Path) -> None:
    pd = pytest.importorskip("pandas")
    table = pd.DataFrame(X, columns=["a", "b", "ü"])
    model = make(
        kind, feature_range=None, feature_weights="learned", window_size=50, random_state=None
    ).fit(table, Y)
    model.save(tmp_path / "m")
    loaded = kind.load(tmp_path / "m")
    np.testing.assert_array_equal(loaded.feature_names_in_, ["a", "b", "ü"])
    assert loaded.feature_names_in_.dtype == object
    np.testing.assert_array_equal(loaded.feature_importances_, model.feature_importances_)
    assert repr(loaded.get_params()) == repr(model.get_params())
    assert loaded.partial_fit(table, Y).n_rows_ == 50
    with pytest.raises(ValueError, match="feature names should match"):
        loaded.predict(table[["b", "a", "ü"]])


@both
def test_a_file_of_the_other_kind_is_refused(kind: Any, tmp_path: Path) -> None:
    make(kind).fit(X, Y).save(tmp_path / "m")
    other = KINDS[1 - KINDS.index(kind)]
    with pytest.raises(ValueError, match=f"holds a {kind.__name__}, not a {other.__name__}"):
        other.load(tmp_path / "m")


def test_files_that_are_no_models_are_refused(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        boscage.load(tmp_path / "missing")
    (tmp_path / "m").write_bytes(b"BOSCAGE\0but no more")
    with pytest.raises(ValueError, match=r"\w"):
        boscage.load(tmp_path / "m")
    (tmp_path / "m").write_bytes(b"")
    with pytest.raises(ValueError, match=r"\w"):
        boscage.load(tmp_path / "m")


@both
def test_saving_where_one_cannot_is_an_os_error(kind: Any, tmp_path: Path) -> None:
    model = make(kind).fit(X, Y)
    with pytest.raises(OSError, match="missing"):
        model.save(tmp_path / "missing" / "m")
