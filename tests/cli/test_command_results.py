"""The command line, as a user meets it: files in, files out, errors that say where."""

from __future__ import annotations

import csv
import fcntl
import gzip
import io
import json
import os
import pty
import struct
import subprocess
import sys
import termios
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest
from sklearn.datasets import load_diabetes, load_iris
from sklearn.metrics import log_loss, root_mean_squared_error

import boscage
from boscage import MondrianForestClassifier, MondrianForestRegressor
from boscage._cli import tables
from boscage._cli.main import main
from boscage._cli.sources import Source

COMMAND = [sys.executable, "-m", "boscage"]
FEW = ["--n-estimators", "5", "--n-jobs", "1"]


def flowers() -> pa.Table:
    """Iris in a random order, with row numbers and the species' names."""
    data = load_iris()
    order = np.random.default_rng(0).permutation(len(data.target))
    columns = {"id": np.arange(100, 250)}
    columns |= {f"x{d}": data.data[order, d] for d in range(4)}
    columns["species"] = data.target_names[data.target[order]].astype(str)
    return pa.table(columns)


def patients() -> pa.Table:
    """The diabetes data, a number to predict."""
    data = load_diabetes()
    columns = {name: data.data[:, d] for d, name in enumerate(data.feature_names)}
    return pa.table(columns | {"progression": data.target})


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A current folder with tables of flowers and of patients."""
    monkeypatch.chdir(tmp_path)
    for name, table, n in (("iris", flowers(), 120), ("diabetes", patients(), 342)):
        for part, rows in (("", table), ("_train", table[:n]), ("_test", table[n:])):
            pacsv.write_csv(rows, f"{name}{part}.csv")
            pq.write_table(rows, f"{name}{part}.parquet")
    return tmp_path


@pytest.fixture
def iris_model(folder: Path) -> str:
    run("fit", "iris_train.csv", "-t", "species", "--id-column", "id", "-o", "iris.model", *FEW)
    return "iris.model"


@pytest.fixture
def diabetes_model(folder: Path) -> str:
    run("fit", "diabetes_train.csv", "-t", "progression", "-o", "diabetes.model", *FEW)
    return "diabetes.model"


def run(*args: str) -> None:
    """Run a command in this process, which must succeed."""
    assert main(list(args)) == 0


def fails(capsys: pytest.CaptureFixture[str], *args: str) -> str:
    """Run a command that must fail politely, and return what it says."""
    capsys.readouterr()
    assert main(list(args)) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith(f"boscage {args[0]}: error: ")
    assert said.err.count("\n") == 1
    return said.err.removeprefix(f"boscage {args[0]}: error: ").strip()


def read(path: str) -> list[dict[str, str]]:
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def digest(path: str) -> str:
    return boscage.load(path).digest()


# -- what the commands do -------------------------------------------------------------------------


def test_fit_is_the_estimators_fit(iris_model: str) -> None:
    train = flowers()[:120]
    X = np.column_stack([train[f"x{d}"] for d in range(4)])
    y = np.array(train["species"].to_pylist())
    expected = MondrianForestClassifier(5, random_state=0).fit(X, y, ids=train["id"].to_numpy())
    model = boscage.load(iris_model)
    assert model.digest() == expected.digest()
    assert isinstance(model, MondrianForestClassifier)
    np.testing.assert_array_equal(model.ids_, expected.ids_)
    assert list(model.feature_names_in_) == ["x0", "x1", "x2", "x3"]


@pytest.mark.parametrize("table", ["iris_train.csv", "iris_train.parquet", "iris_train.csv.gz"])
@pytest.mark.parametrize("chunk", ["7", "120", "1000"])
def test_chunks_and_formats_change_nothing(iris_model: str, table: str, chunk: str) -> None:
    if table.endswith(".gz"):
        Path(table).write_bytes(gzip.compress(Path("iris_train.csv").read_bytes()))
    how = ["-t", "species", "--id-column", "id", "--chunk-rows", chunk, *FEW]
    run("fit", table, *how, "-o", "other.model")
    assert digest("other.model") == digest(iris_model)


def test_standard_input_with_given_ranges_is_the_same_forest(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    how = ["-t", "species", "--feature-range", "0", "8", "--drop", "id", *FEW]
    run("fit", "iris_train.csv", *how, "-o", "file.model")
    for chunk in ("11", "1000"):
        with open("iris_train.csv", "rb") as file:
            monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(file))
            run("fit", "-", *how, "--chunk-rows", chunk, "-o", "stdin.model")
        assert digest("stdin.model") == digest("file.model")


@pytest.mark.parametrize(
    ("labels", "kind", "dtype"),
    [
        (["no", "yes", "no"], MondrianForestClassifier, "U"),
        (["1", "0", "2"], MondrianForestClassifier, "i"),
        (["1", "0", "two"], MondrianForestClassifier, "U"),
        (["1.5", "0", "2"], MondrianForestRegressor, ""),
    ],
)
@pytest.mark.parametrize("chunk", ["1", "100"])
def test_the_target_tells_the_task(
    folder: Path, labels: list[str], kind: type, dtype: str, chunk: str
) -> None:
    Path("t.csv").write_text("a,b\n" + "".join(f"{i},{y}\n" for i, y in enumerate(labels)))
    run("fit", "t.csv", "-t", "b", "-o", "t.model", "--chunk-rows", chunk, *FEW)
    model = boscage.load("t.model")
    assert type(model) is kind
    if dtype:
        assert np.asarray(model.classes_).dtype.kind == dtype


def test_many_whole_numbers_are_a_regression_unless_told(folder: Path) -> None:
    Path("t.csv").write_text("a,b\n" + "".join(f"{i},{i % 60}\n" for i in range(200)))
    for task, kind in (
        ("auto", MondrianForestRegressor),
        ("classification", MondrianForestClassifier),
    ):
        run("fit", "t.csv", "-t", "b", "-o", "t.model", "--task", task, *FEW)
        assert type(boscage.load("t.model")) is kind


def test_settings_reach_the_estimator(folder: Path) -> None:
    given = [
        *["--lifetime", "3", "--min-samples-split", "4", "--predictive", "realised"],
        *["--window-size", "50", "--random-state", "7", "--noise", "local"],
        *["--feature-range", "-0.2", "0.2", "--posterior", "fast", "--n-estimators", "3"],
    ]
    run("fit", "diabetes_train.csv", "-t", "progression", "-o", "m", *given, "--n-jobs", "1")
    settings = boscage.load("m").get_params()
    assert settings["lifetime"] == 3.0
    assert settings["min_samples_split"] == 4
    assert settings["predictive"] == "realised"
    assert settings["window_size"] == 50
    assert settings["random_state"] == 7
    assert settings["noise"] == "local"
    assert settings["posterior"] == "fast"
    assert settings["n_estimators"] == 3
    assert boscage.load("m").n_rows_ == 50


def test_classifier_predictions(iris_model: str, capsys: pytest.CaptureFixture[str]) -> None:
    run("predict", iris_model, "iris_test.csv", "--keep", "id", "-o", "out.csv")
    rows = read("out.csv")
    model = boscage.load(iris_model)
    test = flowers()[120:]
    expected = model.predict_proba(test.select(["x0", "x1", "x2", "x3"]))
    names = [f"probability_{label}" for label in model.classes_]
    assert list(rows[0]) == ["id", "prediction", *names]
    found = np.array([[float(row[name]) for name in names] for row in rows])
    np.testing.assert_array_equal(found, expected)
    assert [row["prediction"] for row in rows] == list(model.classes_[expected.argmax(axis=1)])
    assert [int(row["id"]) for row in rows] == test["id"].to_pylist()

    # To standard output, with other chunks: the same text.
    run("predict", iris_model, "iris_test.csv", "--keep", "id", "--chunk-rows", "7")
    assert capsys.readouterr().out == Path("out.csv").read_text()


def test_regressor_predictions(diabetes_model: str) -> None:
    how = ["--interval", "0.8", "--quantiles", "0.1,0.5,0.9"]
    run("predict", diabetes_model, "diabetes_test.parquet", *how, "-o", "out.parquet")
    out = pq.read_table("out.parquet")
    model = boscage.load(diabetes_model)
    assert isinstance(model, MondrianForestRegressor)
    dist = model.predict_dist(patients()[342:].drop_columns("progression"))
    np.testing.assert_allclose(out["prediction"], dist.mean, rtol=1e-12)
    np.testing.assert_allclose(out["std"], dist.std, rtol=1e-12)
    np.testing.assert_allclose(out["lower"], dist.quantile(0.1), rtol=1e-9)
    np.testing.assert_allclose(out["quantile_0.5"], dist.quantile(0.5), rtol=1e-9)
    assert out["upper"] == out["quantile_0.9"]


def test_columns_are_found_by_name(iris_model: str) -> None:
    run("predict", iris_model, "iris_test.csv", "-o", "a.csv")
    table = flowers()[120:].select(["species", "x3", "x0", "x2", "x1"])
    pacsv.write_csv(table, "shuffled.csv")
    run("predict", iris_model, "shuffled.csv", "-o", "b.csv")
    assert read("a.csv") == read("b.csv")


def test_a_model_without_names_takes_columns_in_order(folder: Path) -> None:
    data = load_iris()
    MondrianForestClassifier(3, random_state=0).fit(data.data, data.target).save("bare.model")
    pacsv.write_csv(flowers().drop_columns(["id", "species"]), "bare.csv")
    run("predict", "bare.model", "bare.csv", "-o", "a.csv")
    run("predict", "bare.model", "iris.csv", "--features", "x0,x1,x2,x3", "-o", "b.csv")
    assert read("a.csv") == read("b.csv")


def test_features_may_have_other_names(iris_model: str) -> None:
    run("predict", iris_model, "iris_test.csv", "-o", "a.csv")
    pacsv.write_csv(flowers()[120:].rename_columns(list("iabcdy")), "renamed.csv")
    run("predict", iris_model, "renamed.csv", "--features", "a,b,c,d", "-o", "b.csv")
    assert read("a.csv") == read("b.csv")


def test_evaluate_a_classifier(iris_model: str, capsys: pytest.CaptureFixture[str]) -> None:
    run("evaluate", iris_model, "iris_test.csv", "-t", "species", "--json", "--chunk-rows", "9")
    found = json.loads(capsys.readouterr().out)
    test = flowers()[120:]
    model = boscage.load(iris_model)
    assert isinstance(model, MondrianForestClassifier)
    p = model.predict_proba(test.select(["x0", "x1", "x2", "x3"]))
    y = np.array(test["species"].to_pylist())
    hot = y[:, None] == np.asarray(model.classes_)
    assert found["rows"] == 30
    assert found["accuracy"] == pytest.approx(np.mean(hot[np.arange(30), p.argmax(axis=1)]))
    assert found["log loss"] == pytest.approx(log_loss(y, p))
    assert found["Brier score"] == pytest.approx(np.mean(np.sum((p - hot) ** 2, axis=1)))
    assert found["calibration error"] == pytest.approx(
        boscage.metrics.expected_calibration_error(y, p, labels=model.classes_)
    )


def test_evaluate_a_regressor(diabetes_model: str, capsys: pytest.CaptureFixture[str]) -> None:
    how = ["-t", "progression", "--chunk-rows", "17"]
    run("evaluate", diabetes_model, "diabetes_test.csv", *how, "--json")
    found = json.loads(capsys.readouterr().out)
    test = patients()[342:]
    y = test["progression"].to_numpy()
    model = boscage.load(diabetes_model)
    assert isinstance(model, MondrianForestRegressor)
    dist = model.predict_dist(test.drop_columns("progression"))
    assert found["RMSE"] == pytest.approx(root_mean_squared_error(y, dist.mean))
    assert found["NLPD"] == pytest.approx(boscage.metrics.nlpd(y, dist))
    assert found["CRPS"] == pytest.approx(boscage.metrics.crps(y, dist))
    inside = boscage.metrics.interval_coverage(y, *dist.interval(0.9))
    assert found["coverage of 90% intervals"] == pytest.approx(inside)

    run("evaluate", diabetes_model, "diabetes_test.csv", *how)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["rows", "100"]
    assert len(lines) == 9


def test_evaluate_counts_classes_that_the_model_does_not_know(
    iris_model: str, capsys: pytest.CaptureFixture[str]
) -> None:
    text = Path("iris_test.csv").read_text().replace("versicolor", "unheard-of")
    Path("new.csv").write_text(text)
    run("evaluate", iris_model, "new.csv", "-t", "species")
    assert f"does not know  {text.count('unheard-of')}\n" in capsys.readouterr().out


def test_update_and_forget_return_to_the_same_forest(iris_model: str) -> None:
    before = digest(iris_model)
    how = ["-t", "species", "--id-column", "id"]
    run("update", iris_model, "iris_test.csv", *how, "-o", "more.model", "--chunk-rows", "7")
    more = boscage.load("more.model")
    assert more.n_rows_ == 150
    assert more.digest() != before
    assert digest(iris_model) == before

    Path("ids.csv").write_text("who\n" + "\n".join(str(i) for i in range(222, 250)) + "\n")
    run("forget", "more.model", "220", "221", "--ids-from", "ids.csv")
    assert digest("more.model") == before


def test_update_learns_new_classes(iris_model: str) -> None:
    text = Path("iris_test.csv").read_text().replace("virginica", "new")
    Path("new.csv").write_text(text)
    run("update", iris_model, "new.csv", "-t", "species", "--id-column", "id")
    model = boscage.load(iris_model)
    assert isinstance(model, MondrianForestClassifier)
    assert list(model.classes_) == ["new", "setosa", "versicolor", "virginica"]


def test_info(iris_model: str, capsys: pytest.CaptureFixture[str]) -> None:
    run("info", iris_model, "--json", "--trees")
    facts = json.loads(capsys.readouterr().out)
    assert facts["model"] == "MondrianForestClassifier"
    assert facts["rows"] == 120
    assert facts["feature_names"] == ["x0", "x1", "x2", "x3"]
    assert facts["classes"] == ["setosa", "versicolor", "virginica"]
    assert facts["lifetime"] == "inf"
    assert facts["digest"] == digest(iris_model)
    tree = boscage.load(iris_model).trees_[0]
    assert 1 < facts["mean_depth_of_a_row"] < len(tree.parent)
    run("info", iris_model)
    assert ["digest", facts["digest"]] in map(str.split, capsys.readouterr().out.splitlines())


def test_demo(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run("demo", "--n-estimators", "3", "-o", "picture.png", "--n-jobs", "1")
    said = capsys.readouterr().out
    assert said.count("bit for bit: yes") == 3
    assert "NO" not in said
    assert Path("picture.png").read_bytes().startswith(b"\x89PNG")


# -- tables larger than memory --------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_large_table_is_never_held_whole(tmp_path: Path, kind: str) -> None:
    path = str(tmp_path / f"large.{kind}")
    rng = np.random.default_rng(0)
    columns = {f"x{d}": rng.random(400_000) for d in range(10)}
    if kind == "csv":
        pacsv.write_csv(pa.table(columns), path)
    else:
        pq.write_table(pa.table(columns), path, row_group_size=50_000)
    del columns
    size = os.path.getsize(path)
    before, most, rows, total = pa.total_allocated_bytes(), 0, 0, 0.0
    for chunk in Source(path).chunks(["x0", "x5"], 10_000):
        assert chunk.first_row == rows + 1
        rows += len(chunk)
        total += chunk.numbers("x5").to_numpy().sum()
        most = max(most, pa.total_allocated_bytes() - before)
    assert rows == 400_000
    assert total == pytest.approx(200_000, rel=0.01)
    assert most < 0.6 * size  # about 35 MB, whatever the size


def test_chunks_have_the_size_that_was_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a\n" + "".join(f"{i}\n" for i in range(1000)))
    for size in (1, 7, 999, 1000, 1001):
        chunks = list(Source(str(path)).chunks(["a"], size))
        assert [len(c) for c in chunks[:-1]] == [size] * (len(chunks) - 1)
        values = np.concatenate([c.numbers("a").to_numpy() for c in chunks])
        np.testing.assert_array_equal(values, np.arange(1000))


def test_headers_and_cells_may_be_quoted_and_padded(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    text = '\ufeff"a, b","c\nd"\n" 1.5 ","x\ny"\n2, z\n'
    path.write_text(text, encoding="utf-8", newline="")
    source = Source(str(path))
    assert source.columns == ["a, b", "c\nd"]
    (chunk,) = source.chunks(source.columns, 10)
    assert chunk.numbers("a, b").to_pylist() == [1.5, 2.0]
    assert chunk.column("c\nd").to_pylist() == ["x\ny", "z"]


def test_parquet_types(tmp_path: Path) -> None:
    path = str(tmp_path / "t.parquet")
    table = pa.table(
        {
            "flag": [True, False],
            "small": pa.array([1, 2], pa.uint8()),
            "word": pa.array(["a", "b"]).dictionary_encode(),
            "text": pa.array(["1", "2.5"], pa.large_string()),
        }
    )
    pq.write_table(table, path)
    (chunk,) = Source(path).chunks(table.column_names, 10)
    assert chunk.numbers("flag").to_pylist() == [1.0, 0.0]
    assert chunk.numbers("small").to_pylist() == [1.0, 2.0]
    assert chunk.numbers("text").to_pylist() == [1.0, 2.5]
    assert chunk.column("word").to_pylist() == ["a", "b"]


# -- what is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cell", "found", "expected"),
    [
        ("abc", "'abc'", "a number"),
        ("1,5", None, "columns"),
        ("", "no value", "a number"),
        ("NA", "'NA'", "a number"),
        ("nan", "nan", "a finite number"),
        ("-inf", "-inf", "a finite number"),
        ("1e999", "inf", "a finite number"),
    ],
)
@pytest.mark.parametrize("command", ["fit", "predict", "evaluate", "update", "stdin"])
@pytest.mark.parametrize("chunk", ["5", "1000"])
def test_a_bad_cell_is_named(
    iris_model: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    command: str,
    cell: str,
    found: str | None,
    expected: str,
    chunk: str,
) -> None:
    rows = [line.split(",") for line in Path("iris_test.csv").read_text().splitlines()]
    rows[13][2] = cell  # row 13 after the header, column x1
    Path("bad.csv").write_text("".join(",".join(row) + "\n" for row in rows))
    before, files = Path(iris_model).read_bytes(), set(os.listdir())
    name = "bad.csv"
    args = {
        "fit": ["fit", name, "-t", "species", "-o", "new.model", *FEW],
        "predict": ["predict", iris_model, name, "-o", "new.csv"],
        "evaluate": ["evaluate", iris_model, name, "-t", "species"],
        "update": ["update", iris_model, name, "-t", "species", "--id-column", "id"],
        "stdin": ["predict", iris_model, "-", "-o", "new.csv"],
    }[command]
    if command == "stdin":
        name = "standard input"
        data = io.BytesIO(Path("bad.csv").read_bytes())
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(data))
    said = fails(capsys, *args, "--chunk-rows", chunk)
    if found is None:
        assert said == f"{name}: row 13: found 7 columns, expected 6, as in the header"
    else:
        assert said == f"{name}: row 13, column 'x1': found {found}, expected {expected}"
    assert Path(iris_model).read_bytes() == before
    assert set(os.listdir()) == files


def test_bad_labels_and_ids_are_named(iris_model: str, capsys: pytest.CaptureFixture[str]) -> None:
    header, *lines = Path("iris_test.csv").read_text().splitlines()
    no_label = [*lines[:3], lines[3].rsplit(",", 1)[0] + ",", *lines[4:]]
    Path("bad.csv").write_text("\n".join([header, *no_label]) + "\n")
    said = fails(capsys, "fit", "bad.csv", "-t", "species", "-o", "m")
    assert said == "bad.csv: row 4, column 'species': found no value, expected a label"

    no_id = [*lines[:5], "-1," + lines[5].split(",", 1)[1], *lines[6:]]
    Path("bad.csv").write_text("\n".join([header, *no_id]) + "\n")
    said = fails(capsys, "update", iris_model, "bad.csv", "-t", "species", "--id-column", "id")
    assert said.startswith("bad.csv: row 6, column 'id': found '-1', expected a whole number")

    said = fails(capsys, "fit", "iris.csv", "-t", "species", "--task", "regression", "-o", "m")
    assert said.startswith("iris.csv: row 1, column 'species': found 'v")


def test_truth_values_count_as_numbers_in_csv_too(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("flag\ntrue\nFALSE\nTrue\n")
    (chunk,) = Source(str(path)).chunks(["flag"], 10)
    assert chunk.numbers("flag").to_pylist() == [1.0, 0.0, 1.0]


def test_numbers_of_rows_that_are_there_already(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("a.csv").write_text("n,x,y\n5,1,0\n6,2,1\n7,3,0\n")
    Path("b.csv").write_text("n,x,y\n8,1,0\n6,2,1\n")
    Path("c.csv").write_text("n,x,y\n8,1,0\n9,2,1\n8,3,1\n")
    run("fit", "a.csv", "-t", "y", "-o", "m", "--id-column", "n", *FEW)
    before = Path("m").read_bytes()
    said = fails(capsys, "update", "m", "b.csv", "-t", "y", "--id-column", "n")
    assert said == (
        "b.csv: row 2, column 'n': found 6, expected a number that no row of the model has"
    )
    said = fails(capsys, "fit", "c.csv", "-t", "y", "-o", "m", "--id-column", "n", *FEW)
    assert said == "c.csv: row 3, column 'n': found 8 again, expected another number for each row"
    assert Path("m").read_bytes() == before


def test_wrong_kind_of_label_in_an_update(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("a.csv").write_text("x,y\n1,0\n2,1\n3,0\n")
    Path("b.csv").write_text("x,y\n1,0\n2,yes\n")
    run("fit", "a.csv", "-t", "y", "-o", "m", *FEW)
    said = fails(capsys, "update", "m", "b.csv", "-t", "y")
    assert said == (
        "b.csv: row 2, column 'y': found 'yes', expected a whole number, as the other labels"
    )


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["fit", "none.csv", "-t", "y", "-o", "m"], "none.csv: No such file or directory"),
        (["fit", "empty.csv", "-t", "y", "-o", "m"], "empty.csv: the file is empty, expected a"),
        (["fit", "header.csv", "-t", "y", "-o", "m"], "header.csv: the table has no rows"),
        (["fit", "twice.csv", "-t", "y", "-o", "m"], "twice.csv: two columns are named 'x'"),
        (["fit", "iris.csv", "-t", "kind", "-o", "m"], "iris.csv: there is no column 'kind'"),
        (["fit", "only.csv", "-t", "y", "-o", "m"], "only.csv: no column is left to learn from"),
        (["fit", "broken.parquet", "-t", "y", "-o", "m"], "broken.parquet: "),
        (
            ["fit", "latin.csv", "-t", "y", "-o", "m"],
            "latin.csv: row 1, column 'y': found b'caf\\xe9', expected UTF-8 text",
        ),
        (["fit", "iris.csv", "-t", "species", "-o", "no/m"], "no/m: there is no folder 'no'"),
        (
            ["fit", "iris.csv", "-t", "species", "-o", "m", "--noise", "local"],
            "--noise is for regression, this is classification",
        ),
        (
            ["fit", "iris.csv", "-t", "species", "-o", "m", "--lifetime", "-1"],
            "iris.csv: rows 1 to 150: ",
        ),
        (["predict", "none.model", "iris.csv"], "none.model: No such file or directory"),
        (["predict", "iris.csv", "iris.csv"], "iris.csv: "),
        (["predict", "iris.model", "diabetes.csv"], "diabetes.csv: there is no column 'x0'"),
        (["predict", "iris.model", "iris.csv", "--quantiles", "0.5"], "iris.model: a classifier"),
        (
            ["predict", "iris.model", "iris.csv", "-o", "no/out.csv"],
            "no/out.csv: there is no folder",
        ),
        (["forget", "iris.model", "7"], "iris.model: "),
        (["forget", "iris.model", "seven"], "found 'seven', expected a row's number"),
        (["forget", "iris.model"], "no row is named"),
        (["forget", "iris.model", "--ids-from", "iris.csv"], "iris.csv: found 6 columns"),
        (
            ["update", "iris.model", "iris.csv", "-t", "species", "--id-column", "id"],
            "iris.csv: row 1, column 'id': found 100, expected a number that no row",
        ),
        (["info", "short.model"], "short.model: "),
    ],
)
def test_mistakes_are_explained(
    iris_model: str, capsys: pytest.CaptureFixture[str], args: list[str], said: str
) -> None:
    Path("empty.csv").write_text("")
    Path("header.csv").write_text("x,y\n")
    Path("twice.csv").write_text("x,x,y\n1,2,3\n")
    Path("only.csv").write_text("y\n3\n")
    Path("latin.csv").write_bytes("x,y\n1,caf\xe9\n".encode("latin-1"))
    Path("broken.parquet").write_bytes(Path("iris.parquet").read_bytes()[:-40])
    Path("short.model").write_bytes(Path(iris_model).read_bytes()[:-40])
    before = Path(iris_model).read_bytes()
    assert fails(capsys, *args).startswith(said)
    assert Path(iris_model).read_bytes() == before
    assert not Path("m").exists()


@pytest.mark.parametrize(
    "args",
    [
        [],
        ["guess"],
        ["fit", "iris.csv"],
        ["fit", "iris.csv", "-t", "y", "-o", "m", "--n-estimators", "0"],
        ["predict", "m", "iris.csv", "--interval", "1.5"],
    ],
)
def test_wrong_usage(args: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_:
        main(args)
    assert exit_.value.code == 2
    assert "usage: boscage" in capsys.readouterr().err


def test_an_interrupt_leaves_the_model_file(
    iris_model: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = Path(iris_model).read_bytes()

    def interrupted(*_: Any, **__: Any) -> Iterator[Any]:
        raise KeyboardInterrupt

    monkeypatch.setattr(tables.Chunk, "features", interrupted)
    how = ["-t", "species", "--id-column", "id"]
    assert main(["update", iris_model, "iris_test.csv", *how]) == 130
    assert capsys.readouterr().err == "boscage update: interrupted, nothing was written\n"
    assert Path(iris_model).read_bytes() == before


# -- as a process ---------------------------------------------------------------------------------


def test_silence_in_a_pipe(folder: Path) -> None:
    fit = [*COMMAND, "fit", "iris.csv", "-t", "species", "-o", "m", *FEW, "--chunk-rows", "50"]
    done = subprocess.run(fit, capture_output=True, check=True)
    assert (done.stdout, done.stderr) == (b"", b"")


def test_progress_and_remarks_on_a_terminal(folder: Path) -> None:
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 25, 80, 0, 0))
    fit = [*COMMAND, "fit", "iris.csv", "-t", "species", "-o", "m", *FEW, "--chunk-rows", "50"]
    with subprocess.Popen(fit, stderr=theirs, stdout=subprocess.DEVNULL) as process:
        os.close(theirs)
        said = b""
        try:
            while piece := os.read(ours, 4096):
                said += piece
        except OSError:  # the way in which Linux says that the other end is closed
            pass
        finally:
            os.close(ours)
    assert process.returncode == 0
    assert b"training" in said
    assert b"150" in said
    assert b"task: classification" in said


def test_a_reader_that_has_seen_enough_is_no_error(iris_model: str) -> None:
    features = ["--features", "x0,x1,x2,x3"]
    predict = [*COMMAND, "predict", iris_model, "-", "--chunk-rows", "1", *features]
    with subprocess.Popen(
        predict, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdin
        assert process.stdout
        assert process.stderr
        header, *lines = Path("iris.csv").read_bytes().splitlines(keepends=True)
        process.stdin.write(header)
        for _ in range(30):
            process.stdin.writelines(lines)
        process.stdin.flush()
        process.stdin.close()
        assert process.stdout.readline().startswith(b"prediction,")
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 0


def test_without_pyarrow_the_rest_works() -> None:
    code = "import sys; sys.modules['pyarrow'] = None; from boscage.__main__ import main; "
    done = subprocess.run(
        [sys.executable, "-c", code + "sys.exit(main(['fit', 'a', '-t', 'b', '-o', 'c']))"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr == (
        "boscage fit: error: this command needs pyarrow: pip install 'boscage[cli]'\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code + "main(['--version'])"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == f"boscage {boscage.__version__}\n"


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="needs one processor")
def test_the_reader_has_ended_when_the_process_does(tmp_path: Path) -> None:
    """Its thread would abort the process: on one processor nearly always."""
    paths = {name: str(tmp_path / name) for name in ("train.csv", "header.csv", "model")}
    Path(paths["train.csv"]).write_text("a,b\n1,2\n2,3\n3,5\n4,4\n")
    Path(paths["header.csv"]).write_text("a\n")
    run("fit", paths["train.csv"], "--target", "b", "-o", paths["model"], *FEW)
    for _ in range(4):
        done = subprocess.run(
            [*COMMAND, "predict", paths["model"], paths["header.csv"]],
            capture_output=True,
            check=False,
            preexec_fn=lambda: os.sched_setaffinity(0, {min(os.sched_getaffinity(0))}),
        )
        assert (done.returncode, done.stderr) == (0, b"")
