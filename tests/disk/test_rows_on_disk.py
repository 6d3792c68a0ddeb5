"""A forest from rows on disk predicts as the one in memory, to the bit, for any limit and blocks.

What it cannot take is refused, and leaves the estimator as it was.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

import boscage
from boscage import _core, disk
from boscage.disk import _growth
from boscage.disk._memory import Costs, check_limit
from boscage.disk._rows import ArrayRows, Block

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

pytestmark = pytest.mark.slow

SCALES = {"mu": 0.5, "gamma1": 2.0, "gamma2": 0.7, "noise_variance": 0.2}


def rows(n: int, seed: int, dtype: Any = np.float64) -> tuple[Any, Any]:
    """Rows of which some coincide, with noisy classes."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, 4))
    X[: n // 3] = np.round(X[: n // 3], 1)
    y = (X[:, 0] * 2).astype(int) % 3
    y[::5] = random.integers(0, 3, len(y[::5]))
    return X.astype(dtype), y


class SmallCosts(Costs):
    """Costs of which little is there, so that few rows make many cells and groups."""

    rows_at_once = 300
    rows_of_block = 100

    @property
    def of_forest(self) -> int:
        return 1 << 40

    def block_rows(self, n_trees: int) -> int:
        return self.rows_of_block


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> type[SmallCosts]:
    """Rows, cells and groups in small pieces, whatever the limit."""

    def n_that_fit(self: Any, freezer: Any, sizes: Any, leaves: float) -> int:
        return max(1, int(np.searchsorted(np.cumsum(sizes), SmallCosts.rows_at_once)))

    monkeypatch.setattr(_growth.Growth, "_n_that_fit", n_that_fit)
    monkeypatch.setattr(_growth.Growth, "_most_rows", lambda self: SmallCosts.rows_at_once // 4)
    monkeypatch.setattr(Costs, "block_rows", SmallCosts.block_rows)
    monkeypatch.setattr(Costs, "rows_of_block", 100, raising=False)
    return SmallCosts


def one_machine(forest: Any, X: Any, y: Any) -> Any:
    return forest._template().fit(X, y)


@pytest.mark.parametrize("seed", range(6))
def test_a_classifier_predicts_as_one_with_rows(
    small: type[SmallCosts], seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    random = np.random.default_rng(seed)
    monkeypatch.setattr(small, "rows_at_once", int(random.integers(100, 2000)))
    monkeypatch.setattr(Costs, "rows_of_block", int(random.integers(7, 900)))
    X, y = rows(3000, seed, [np.float64, np.float32][seed % 2])
    settings: dict[str, Any] = {
        "n_estimators": 3,
        "min_samples_split": int(random.choice([2, 10, 100])),
        "lifetime": float(random.choice([np.inf, 4.0])),
        "random_state": seed,
    }
    if seed % 3 == 0:
        settings["feature_range"] = (-1.0, 1.0)  # many rows are outside
        settings["feature_weights"] = [1.0, 2.0, 0.0, 1.0]
    labels = np.array(["no", "perhaps", "yes"])[y] if seed % 2 else y
    forest = disk.MondrianForestClassifier("64MB", **settings).fit(X, labels)
    one = one_machine(forest, X, labels)
    test, _ = rows(500, seed + 100)
    np.testing.assert_array_equal(forest.predict_proba(test), one.predict_proba(test))
    np.testing.assert_array_equal(forest.classes_, one.classes_)
    assert forest.n_rows_ == 3000
    again = disk.MondrianForestClassifier("64MB", **settings).set_params(n_jobs=2).fit(X, labels)
    np.testing.assert_array_equal(again.predict_proba(test), forest.predict_proba(test))


@pytest.mark.parametrize("seed", range(4))
def test_a_regressor_predicts_as_one_with_rows(small: type[SmallCosts], seed: int) -> None:
    X, y = rows(2000, seed)
    target = y + X[:, 1]
    scales = SCALES | ({"coarse_variance": 1.0} if seed % 2 else {"delay": 0.3})
    forest = disk.MondrianForestRegressor(
        "64MB",
        hyperparameters=scales,
        n_estimators=3,
        random_state=seed,
        min_samples_split=2 + 9 * seed,
    ).fit(X, target)
    one = one_machine(forest, X, target)
    test, _ = rows(300, seed + 100)
    for found, expected in zip(
        forest.predict(test, return_std=True), one.predict(test, return_std=True), strict=True
    ):
        np.testing.assert_array_equal(found, expected)
    dist, expected_dist = forest.predict_dist(test[:5]), one.predict_dist(test[:5])
    np.testing.assert_array_equal(dist.quantile(0.1), expected_dist.quantile(0.1))
    assert forest.hyperparameters_ == one.hyperparameters_


@pytest.mark.parametrize(
    "own",
    [
        {"hyperparameters": "loo", "n_estimators": 34},
        {"hyperparameters": "ml"},
        {"hyperparameters": "heuristic", "prior_scale": 1.3},
        {"noise_variance": 0.2},
    ],
    ids=["loo", "ml", "heuristic", "given noise"],
)
def test_rules_choose_the_hyperparameters_of_one_machine(
    own: dict[str, Any], small: type[SmallCosts]
) -> None:
    X, y = rows(1500, 8)
    X[:100] = X[100:200]
    target = y + X[:, 0]
    common: dict[str, Any] = {"n_estimators": 3, "random_state": 2, "min_samples_split": 4}
    forest = disk.MondrianForestRegressor("64MB", **common | own).fit(X, target)
    one = one_machine(forest, X, target)
    assert forest.hyperparameters_ == one.hyperparameters_
    np.testing.assert_array_equal(forest.predict(X[:50]), one.predict(X[:50]))


@pytest.mark.parametrize(
    "own", [{"hyperparameters": "ml", "prior_scale": None, "noise_variance": 0.5}, {}]
)
def test_a_loaded_forest_has_its_rule(own: dict[str, Any], tmp_path: Path) -> None:
    X, y = rows(300, 3)
    common: dict[str, Any] = {"n_estimators": 2, "random_state": 2, "feature_weights": None}
    forest = disk.MondrianForestRegressor("64MB", **common | own).fit(X, y)
    forest.save(tmp_path / "m")
    again = boscage.load(tmp_path / "m")
    for name in ("hyperparameters", "noise_variance", "prior_scale"):
        assert getattr(again, name) == getattr(forest, name)
    again.fit(X, 3.0 * y + X[:, 0])
    forest.fit(X, 3.0 * y + X[:, 0])
    assert again.hyperparameters_ == forest.hyperparameters_
    forest.set_params(noise_variance=None, hyperparameters="best").save(tmp_path / "other")
    assert boscage.load(tmp_path / "other").hyperparameters == forest.hyperparameters_


def test_a_rule_looks_at_some_of_many_rows() -> None:
    n = _core.RULE_ROWS + 2000
    X, y = rows(n, 9, np.float32)
    X = np.round(X, 2)  # many rows coincide
    common: dict[str, Any] = {"n_estimators": 2, "random_state": 2, "min_samples_split": 200}
    forest = disk.MondrianForestRegressor("64MB", **common).fit(X, y + X[:, 0])
    assert forest.hyperparameters_ == one_machine(forest, X, y + X[:, 0]).hyperparameters_


def test_a_rule_that_takes_too_much_memory_is_refused() -> None:
    X, y = rows(20_000, 1, np.float32)
    forest = disk.MondrianForestRegressor("64MB", n_estimators=40, min_samples_split=2)
    message = "memory_limit of 64 MB is too small: .* the forest that chooses hyperparameters takes"
    with pytest.raises(MemoryError, match=message):
        forest.fit(X, y + X[:, 0])
    forest.set_params(hyperparameters="ml", n_estimators=6).fit(X, y + X[:, 0])


def test_a_rule_has_the_memory_that_all_trees_take_later(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = rows(4000, 1, np.float32)
    of_rule = Costs(64 << 20, 4, 4, 0).rule(4000, 30, 2)
    monkeypatch.setattr(Costs, "of_forest", property(lambda self: 1.2 * of_rule))
    common: dict[str, Any] = {"n_estimators": 30, "random_state": 2, "feature_weights": None}
    forest = disk.MondrianForestRegressor("64MB", **common).fit(X, y + X[:, 0])
    one = one_machine(forest, X, y + X[:, 0])
    np.testing.assert_array_equal(forest.predict(X[:50]), one.predict(X[:50]))


def test_targets_whose_squares_vanish_are_refused() -> None:
    X, y = rows(300, 1)
    forest = disk.MondrianForestRegressor("64MB", n_estimators=2)
    with pytest.raises(ValueError, match="so that squares do not vanish; found a largest"):
        forest.fit(X, 1e-200 * (y + 1.0))


@pytest.mark.parametrize("task", ["classes", "numbers"])
def test_learned_rates_are_those_of_all_rows(
    task: str, small: type[SmallCosts], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(small, "rows_at_once", 2000)
    monkeypatch.setattr(Costs, "rows_of_block", 700)
    # Keys are counted in several passes.
    monkeypatch.setattr(Costs, "key", Costs(64_000_000, 4, 8, 0).of_forest / 2500)
    X, codes = rows(7000, 3)
    X[:, 3] = np.exp(10.0 * X[:, 3])
    X[:2000] = X[0]
    common: dict[str, Any] = {"n_estimators": 3, "min_samples_split": 20, "random_state": 1}
    common["feature_weights"] = "learned"
    forest: Any = disk.MondrianForestClassifier("64MB", **common)
    y: Any = np.array(["no", "perhaps", "yes"])[codes]
    if task == "numbers":
        forest, y = disk.MondrianForestRegressor("64MB", hyperparameters=SCALES, **common), X[:, 1]
    forest.fit(X, y)
    one = one_machine(forest, X, y)
    assert np.ptp(one.feature_weights_) > 0.0
    np.testing.assert_array_equal(forest.feature_weights_, one.feature_weights_)
    test, _ = rows(300, 4)
    predict = "predict_proba" if task == "classes" else "predict"
    np.testing.assert_array_equal(getattr(forest, predict)(test), getattr(one, predict)(test))


def test_limits_do_not_change_the_forest() -> None:
    X, y = rows(20_000, 1, np.float32)
    test, _ = rows(200, 2)
    found = [
        disk.MondrianForestClassifier(limit, n_estimators=2, min_samples_split=50, random_state=3)
        .fit(X, y)
        .predict_proba(test)
        for limit in ("33554432", 40_000_000, "1GiB")
    ]
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])


def write_folder(folder: Path, X: Any, y: Any, n_files: int = 3) -> Path:
    folder.mkdir()
    for number, part in enumerate(np.array_split(np.arange(len(X)), n_files)):
        columns = {f"x{i}": X[part, i] for i in range(X.shape[1])} | {"y": y[part]}
        pq.write_table(pa.table(columns), folder / f"part.{number}.parquet", row_group_size=500)
    return folder


def test_files_are_read_as_arrays_are(tmp_path: Path) -> None:
    X, y = rows(2000, 5, np.float32)
    folder = write_folder(tmp_path / "rows", X, y)
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", y)
    new = disk.MondrianForestClassifier("64MB", n_estimators=3, random_state=1)
    expected = clone(new).fit(X, y).predict_proba(X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    given: list[tuple[Any, Any]] = [
        (tmp_path / "X.npy", tmp_path / "y.npy"),
        (str(tmp_path / "X.npy"), y),
        (mapped, y),
    ]
    for own in given:
        np.testing.assert_array_equal(clone(new).fit(*own).predict_proba(X), expected)
    forest = clone(new).fit(folder, "y")
    assert forest.feature_names_in_.tolist() == ["x0", "x1", "x2", "x3"]
    table = pa.table({f"x{i}": X[:, i] for i in range(4)})
    np.testing.assert_array_equal(forest.predict_proba(table), expected)
    one_file = clone(new).fit(write_folder(tmp_path / "one", X, y, 1) / "part.0.parquet", "y")
    np.testing.assert_array_equal(one_file.predict_proba(table), expected)


def test_a_saved_forest_predicts_the_same(tmp_path: Path) -> None:
    X, y = rows(1000, 6)
    classifier = disk.MondrianForestClassifier("64MB", n_estimators=3, discount=4.0).fit(X, y)
    regressor = disk.MondrianForestRegressor("64MB", hyperparameters=SCALES, n_estimators=3)
    regressor.fit(write_folder(tmp_path / "rows", X, y.astype(float)), "y")
    table = pa.table({f"x{i}": X[:, i] for i in range(4)})
    for forest, test in ((classifier, X), (regressor, table)):
        forest.save(tmp_path / "model")
        for again in (boscage.load(tmp_path / "model"), pickle.loads(pickle.dumps(forest))):
            assert type(again) is type(forest)
            np.testing.assert_array_equal(again.predict(test), forest.predict(test))
        loaded: Any = boscage.load(tmp_path / "model")
        assert (loaded.n_estimators, loaded.memory_limit) == (3, "64MB")
        refit = clone(loaded).fit(X, y if forest is classifier else y.astype(float))
        np.testing.assert_array_equal(refit.predict(X), forest.predict(test))
    assert classifier.score(X, y) > 0.5
    stream = io.BytesIO()
    classifier.save(stream)
    assert (
        stream.getvalue()
        == (classifier.save(tmp_path / "model"), (tmp_path / "model").read_bytes())[1]
    )


def refused(forest: Any, X: Any, y: Any, kind: type[BaseException], *words: str) -> None:
    """Whether a fit is refused in these words, and leaves the estimator as it was."""
    before = dict(forest.__dict__)
    with pytest.raises(kind) as error:
        forest.fit(X, y)
    for word in words:
        assert word in str(error.value), str(error.value)
    assert forest.__dict__.keys() == before.keys()
    assert all(forest.__dict__[name] is value for name, value in before.items())


def test_bad_rows_are_refused_by_name(tmp_path: Path) -> None:
    X, y = rows(900, 7)
    forest = disk.MondrianForestClassifier("64MB", n_estimators=2).fit(X, y)
    bad = X.copy()
    bad[700, 2] = np.nan
    folder = write_folder(tmp_path / "nan", bad, y)
    refused(
        forest, folder, "y", ValueError, "part.2.parquet", "NaN in row 100, column 'x2'", "finite"
    )
    refused(forest, bad, y, ValueError, "NaN in row 700, column 2")
    bad[700, 2] = np.inf
    refused(forest, bad, y, ValueError, "infinity in row 700")
    folder = write_folder(tmp_path / "rows", X, y)
    named = clone(forest).fit(folder, "y")
    bad[700, 2] = np.nan
    with pytest.raises(ValueError, match="NaN in row 50, column 'x2'; expected finite numbers"):
        named.predict(pa.table({f"x{i}": bad[650:, i] for i in range(4)}))
    refused(forest, folder, "z", ValueError, "no column 'z'", "x0, x1")
    refused(forest, folder, y, TypeError, "name of the column")
    refused(forest, tmp_path / "nothing", "y", OSError, "nothing")
    (tmp_path / "empty").mkdir()
    refused(forest, tmp_path / "empty", "y", ValueError, "without Parquet files")
    pq.write_table(pa.table({"x0": [1.0], "y": [0]}), folder / "part.9.parquet")
    refused(forest, folder, "y", ValueError, "part.9.parquet", "found the columns x0, y")
    pq.write_table(pa.table({"x": ["a"], "y": [0]}), tmp_path / "text.parquet")
    refused(forest, tmp_path / "text.parquet", "y", ValueError, "column 'x'", "expected numbers")
    null = pa.table({"x": [1.0, 2.0], "y": pa.array([1, None])})
    pq.write_table(null, tmp_path / "null.parquet")
    refused(forest, tmp_path / "null.parquet", "y", ValueError, "null.parquet", "NaN")
    refused(forest, X[:0], y[:0], ValueError, "no rows")
    refused(forest, X[0], y, ValueError, "two-dimensional")
    refused(forest, X, y[1:], ValueError, "as many")
    refused(forest, X.astype(object), y, ValueError, "numbers")
    refused(forest, X.tolist(), y, TypeError, "list")
    far = X.copy()
    far[3] = 1e300
    refused(clone(forest).set_params(feature_range=(0, 1)), far, y, ValueError, "reference ranges")


@pytest.mark.parametrize("kind", ["Classifier", "Regressor"])
def test_a_sample_that_does_not_fit_is_refused(kind: str) -> None:
    """The sample from which feature weights are learned, and what learning makes of it."""
    X = np.random.default_rng(9).normal(size=(500, 2000))
    y = (X[:, 0] > 0.0).astype(int)
    make = getattr(disk, f"MondrianForest{kind}")
    forest = make("64MB", n_estimators=2, random_state=0)
    words = "64 MB is too small: to learn feature_weights from 500 rows of 2000 features"
    refused(forest, X, y, MemoryError, words)
    weights = np.zeros(2000)
    weights[:2] = 1.0
    assert clone(forest).set_params(feature_weights=weights).fit(X, y).n_rows_ == 500


def test_bad_parameters_are_refused() -> None:
    X, y = rows(100, 8)
    for limit in ("much", "2XB", -1, 1000, "1MB"):
        refused(disk.MondrianForestClassifier(limit), X, y, ValueError, "memory_limit")
    for wrong in (True, 1.5e9, None):
        refused(disk.MondrianForestClassifier(wrong), X, y, TypeError, "memory_limit")  # type: ignore[arg-type]
    refused(disk.MondrianForestClassifier("1GB", discount=-1), X, y, ValueError, "discount")
    forest = disk.MondrianForestClassifier("1GB", feature_weights="equal")  # type: ignore[arg-type]
    refused(forest, X, y, ValueError, "feature_weights")
    refused(
        disk.MondrianForestRegressor("1GB", hyperparameters="best"),  # type: ignore[arg-type]
        X,
        y,
        ValueError,
        "hyperparameters",
    )
    assert [check_limit(text) for text in ("2GB", "1.5 GiB")] == [2_000_000_000, 3 << 29]
    assert check_limit(1 << 30) == check_limit("1gib") == 1 << 30


def test_trees_that_do_not_fit_are_refused() -> None:
    X, y = rows(60_000, 9)
    forest = disk.MondrianForestClassifier("32MiB", n_estimators=50, random_state=0)
    refused(forest, X, y, MemoryError, "memory_limit of 33.6 MB is too small", "50 trees")
    # All rows of a label are one leaf, whose rows must fit.
    whole = disk.MondrianForestClassifier("32MiB", n_estimators=1)
    refused(whole, np.tile(X, (6, 1)), np.zeros(360_000, int), MemoryError, "a cell of 360000 rows")


class Changing(ArrayRows):
    """Rows that change before a pass."""

    def __init__(self, X: Any, y: Any, at: int, change: Any) -> None:
        super().__init__(X, y)
        self._left, self._change = at, change

    def blocks(self, n_rows: int) -> Iterator[Block]:
        self._left -= 1
        if self._left < 0:
            self._X, self._y = self._change(self._X, self._y)
        return super().blocks(n_rows)


def test_rows_that_change_between_passes_are_refused(
    tmp_path: Path, small: type[SmallCosts], monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = rows(900, 10)
    folder = write_folder(tmp_path / "rows", X, y)
    forest = disk.MondrianForestClassifier("64MB", n_estimators=2, random_state=1)
    counts = _growth.Growth._counts

    def touching(self: Any, plan: Any) -> Any:
        pq.write_table(pa.table({"x": [1.0]}), folder / "part.1.parquet")
        return counts(self, plan)

    with monkeypatch.context() as patch:
        patch.setattr(_growth.Growth, "_counts", touching)
        refused(forest, folder, "y", ValueError, "changed during the fit", "part.1.parquet")
    changes = [
        lambda X, y: (X[1:], y[1:]),
        lambda X, y: (X, y + 1),
        lambda X, y: (np.concatenate([X, X]), np.concatenate([y, y])),
    ]
    for change in changes:
        for at in (1, 2, 3, 4):
            fresh = clone(forest)
            with pytest.raises(ValueError, match=r"changed|rows"):
                fresh._fit_source(Changing(X, y, at, change))
            assert not fresh.__sklearn_is_fitted__()
