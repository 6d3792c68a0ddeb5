"""``boscage fit --memory-limit`` grows a forest without rows from a table, within the limit."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest

import boscage
from boscage import disk
from command_line import FEW, fails, read, run

FIT = ["-t", "species", "--drop", "id", *FEW, "--random-state", "3", "--memory-limit", "100MB"]


@pytest.mark.parametrize("table", ["iris_train.csv", "parts"])
def test_the_forest_is_that_of_the_estimator(folder: Path, table: str) -> None:
    train = pacsv.read_csv("iris_train.csv")
    Path("parts").mkdir()
    for number, start in enumerate(range(0, len(train), 40)):
        pq.write_table(train.slice(start, 40), f"parts/{number}.parquet")
    run("fit", table, *FIT, "--min-samples-split", "5", "-o", "m", "--chunk-rows", "17")
    forest = boscage.load("m")
    assert isinstance(forest, disk.MondrianForestClassifier)
    features = train.select(["x0", "x1", "x2", "x3"])
    X = np.column_stack([column.to_numpy() for column in features.columns])
    y = np.array(train["species"].to_pylist())
    own = disk.MondrianForestClassifier(
        "100MB", n_estimators=5, random_state=3, min_samples_split=5
    ).fit(X, y)
    np.testing.assert_array_equal(forest.predict_proba(features), own.predict_proba(X))
    run("predict", "m", "iris_train.csv", "-o", "p.csv")
    assert [row["prediction"] for row in read("p.csv")] == own.predict(X).tolist()
    run("evaluate", "m", "iris_train.csv")
    run("info", "m")


def test_numbers(folder: Path) -> None:
    train = pacsv.read_csv("iris_train.csv")
    pq.write_table(train, "train.parquet")
    own = ["-t", "x0", "--drop", "id,species", *FEW, "--random-state", "3"]
    run("fit", "train.parquet", *own, "--memory-limit", "100MB", "-o", "m")
    forest = boscage.load("m")
    assert isinstance(forest, disk.MondrianForestRegressor)
    X = np.column_stack([train[name].to_numpy() for name in ("x1", "x2", "x3")])
    one = boscage.MondrianForestRegressor(
        5, random_state=3, posterior="exact", noise="global", predictive="realised"
    ).fit(X, train["x0"].to_numpy())
    table = train.select(["x1", "x2", "x3"])
    np.testing.assert_array_equal(forest.predict(table), one.predict(X))
    run("predict", "m", "iris_train.csv", "-o", "p.csv")
    run("evaluate", "m", "iris_train.csv")
    run("info", "m")


def test_what_is_not_offered_is_refused(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def refused(*args: str) -> str:
        said = fails(capsys, "fit", "iris_train.csv", "-o", "none", *args)
        assert not Path("none").exists()
        return said

    assert "--calibration loo" in refused(*FIT, "--calibration", "loo")
    assert "--trend auto: with --memory-limit only --trend none is offered" in refused(
        *FIT, "--trend", "auto"
    )
    assert "--window-size" in refused(*FIT, "--window-size", "9")
    assert "--discount" in refused(*FIT, "--discount", "loo")
    assert "--model mondrian" in refused(
        *("-t", "species", "--drop", "id", "--memory-limit", "1GB", "--model", "bart")
    )
    assert "--id-column" in refused("-t", "species", "--id-column", "id", "--memory-limit", "1GB")
    assert "--memory-limit" in refused(*FIT[:-1], "1MB")
    numbers = ["-t", "x0", "--drop", "id,species", "--memory-limit", "1GB"]
    assert "for regression with --memory-limit only --posterior exact is" in refused(
        *numbers, "--posterior", "joint"
    )
    assert "--noise local" in refused(*numbers, "--noise", "local")
    assert "--trend linear" in refused(*numbers, "--trend", "linear")
    text = ["-t", "x0", "--drop", "id", "--task", "classification", "--memory-limit", "1GB"]
    assert "column 'species' holds categories" in refused(*text)
    run("fit", "iris_train.csv", *FIT, "--calibration", "none", "-o", "m")
    assert "cannot add rows" in fails(capsys, "update", "m", "iris_train.csv")
    table = pa.table({"x": [1.0, None, 2.0], "y": ["a", "b", "a"]})
    pq.write_table(table, "gaps.parquet")
    said = fails(capsys, "fit", "gaps.parquet", "-t", "y", "--memory-limit", "1GB", "-o", "none")
    assert "row 2, column 'x'" in said


def test_a_limit_that_is_too_small_says_what_to_do(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    x = np.random.default_rng(0).random(60_000)
    pq.write_table(pa.table({"x": x, "y": np.where(x > 0.5, "a", "b")}), "large.parquet")
    said = fails(capsys, "fit", "large.parquet", "-t", "y", "--memory-limit", "34MB", "-o", "m")
    assert "--memory-limit of 34 MB is too small" in said
    assert "take fewer trees or a greater --min-samples-split" in said
    assert not Path("m").exists()
