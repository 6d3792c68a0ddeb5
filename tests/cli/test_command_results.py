"""Results of commands equal those of the estimators."""

from __future__ import annotations

import gzip
import io
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest
from sklearn.datasets import load_iris
from sklearn.metrics import log_loss, root_mean_squared_error

import boscage
from boscage import MondrianForestClassifier, MondrianForestRegressor
from boscage._cli.arguments import parser
from command_line import EQUAL, FEW, digest, flowers, patients, read, run

# Nothing is learned from the first chunk alone.


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


@pytest.mark.parametrize(("word", "calibration"), [("loo", "loo"), ("none", None)])
def test_calibration_is_chosen_by_a_word(folder: Path, word: str, calibration: str | None) -> None:
    run(
        *("fit", "iris_train.csv", "-t", "species", "--drop", "id"),
        *("--calibration", word, *FEW, "-o", "new.model"),
    )
    model = boscage.load("new.model")
    assert isinstance(model, MondrianForestClassifier)
    assert model.calibration == calibration
    assert (model.calibration_power_ == 1.0) == (calibration is None)


@pytest.mark.parametrize("table", ["iris_train.csv", "iris_train.parquet", "iris_train.csv.gz"])
@pytest.mark.parametrize("chunk", ["7", "120", "1000"])
def test_chunks_and_formats_change_nothing(folder: Path, table: str, chunk: str) -> None:
    if table.endswith(".gz"):
        Path(table).write_bytes(gzip.compress(Path("iris_train.csv").read_bytes()))
    how = ["-t", "species", "--id-column", "id", *EQUAL, *FEW]
    run("fit", "iris_train.csv", *how, "-o", "whole.model")
    run("fit", table, *how, "--chunk-rows", chunk, "-o", "other.model")
    assert digest("other.model") == digest("whole.model")


def test_a_table_of_few_rows_in_chunks_is_in_its_warm_up(iris_model: str) -> None:
    how = ["-t", "species", "--id-column", "id", "--chunk-rows", "7", *FEW]
    run("fit", "iris_train.csv", *how, "-o", "chunks.model")
    model = boscage.load("chunks.model")
    assert isinstance(model, MondrianForestClassifier)
    assert model.warm_up_left_ == 1000 - model.n_rows_
    assert boscage.load(iris_model).warm_up_left_ == 0


def test_standard_input_with_given_ranges_is_the_same_forest(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    how = ["-t", "species", "--feature-range", "0", "8", "--drop", "id", *EQUAL, *FEW]
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
    run(
        "fit",
        *["t.csv", "-t", "b", "-o", "t.model", "--task", "classification", "--trend", "none"],
        *FEW,
    )
    assert boscage.load("t.model").trend is None


def test_settings_reach_the_estimator(folder: Path) -> None:
    given = [
        *["--lifetime", "3", "--min-samples-split", "4", "--predictive", "realised"],
        *["--window-size", "50", "--random-state", "7", "--noise", "local"],
        *["--feature-range", "-0.2", "0.2", "--posterior", "joint", "--n-estimators", "3"],
        *["--prior-scale", "2", "--trend", "linear"],
    ]
    run("fit", "diabetes_train.csv", "-t", "progression", "-o", "m", *given, "--n-jobs", "1")
    settings = boscage.load("m").get_params()
    assert settings["lifetime"] == 3.0
    assert settings["min_samples_split"] == 4
    assert settings["predictive"] == "realised"
    assert settings["window_size"] == 50
    assert settings["random_state"] == 7
    assert settings["noise"] == "local"
    assert settings["posterior"] == "joint"
    assert settings["prior_scale"] == 2.0
    assert settings["trend"] == "linear"
    assert settings["n_estimators"] == 3
    assert boscage.load("m").n_rows_ == 50


@pytest.mark.parametrize("low", ["-1e3", "-1E3", "-1.e+3", "-1000", "-.1e4"])
def test_a_range_may_begin_with_any_negative_number(low: str) -> None:
    how = ["fit", "t.csv", "-t", "y", "-o", "m", "--feature-range", low, "-1e-2"]
    assert parser().parse_args(how).feature_range == [-1000.0, -0.01]


def test_a_range_that_is_given_is_used(folder: Path) -> None:
    how = ["-t", "progression", "--feature-range", "-1e3", "5", *EQUAL, *FEW]
    run("fit", "diabetes_train.csv", "-o", "m", *how)
    assert [set(ends) for ends in boscage.load("m").feature_range] == [{-1000.0}, {5.0}]


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


@pytest.mark.slow
def test_demo(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run("demo", "--n-estimators", "3", "-o", "picture.png", "--n-jobs", "1")
    said = capsys.readouterr().out
    assert said.count("bit for bit: yes") == 3
    assert "NO" not in said
    assert Path("picture.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("chunk", ["2", "1000"])
def test_rows_can_be_named_by_text(folder: Path, chunk: str) -> None:
    """Whole numbers among the names are numbers, whatever the rest of their chunk is."""
    Path("a.csv").write_text("who,x,y\n7,1,0\nanna,2,1\n8,3,0\n9,4,1\nborn 9,5,1\n")
    Path("gone.csv").write_text("who\nborn 9\n7\n")
    how = ["-t", "y", "--id-column", "who", "--feature-range", "0", "5", *EQUAL, *FEW]
    run("fit", "a.csv", *how, "--chunk-rows", chunk, "-o", "m")
    run("forget", "m", "anna", "--ids-from", "gone.csv")
    model = boscage.load("m")
    assert isinstance(model, MondrianForestClassifier)
    np.testing.assert_array_equal(model.ids_, [8, 9])


@pytest.mark.parametrize("chunk", ["9", "1000"])
def test_missing_cells_are_missing_values(folder: Path, chunk: str) -> None:
    """However they are written; a column without any number has no range."""
    words = ["", " ", "NA", "n/a", "nan", "NULL", "None", "?"]
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(60, 3))
    y = np.where(X[:, 0] > 0.5, "high", "low")
    lacks = rng.random(X.shape) < 0.3
    lacks[:, 2] = True
    lines = ["a,b,c,y"]
    for row, holes, label in zip(X, lacks, y, strict=True):
        cells = [rng.choice(words) if hole else str(x) for x, hole in zip(row, holes, strict=True)]
        lines.append(",".join([*cells, label]))
    Path("holes.csv").write_text("\n".join(lines) + "\n")
    X[lacks] = np.nan
    run("fit", "holes.csv", "-t", "y", *EQUAL, *FEW, "--chunk-rows", chunk, "-o", "m")
    model = boscage.load("m")
    assert isinstance(model, MondrianForestClassifier)
    low, high = np.r_[np.nanmin(X[:, :2], axis=0), 0.0], np.r_[np.nanmax(X[:, :2], axis=0), 0.0]
    np.testing.assert_array_equal(model.feature_range_, [low, high])
    expected = MondrianForestClassifier(
        5,
        feature_range=(low, high),
        feature_weights=None,
        substitutes=model.substitutes_,
        random_state=0,
    ).fit(X, y)
    assert model.digest() == expected.digest()
    run("predict", "m", "holes.csv", "-o", "p.csv")
    predicted = np.array([float(row["probability_low"]) for row in read("p.csv")])
    np.testing.assert_allclose(predicted, expected.predict_proba(X)[:, 1], rtol=1e-12)


@pytest.mark.parametrize("is_complete", [False, True])
@pytest.mark.parametrize("name", ["bart", "bayes-tree"])
def test_samplers_take_missing_cells(folder: Path, name: str, is_complete: bool) -> None:
    """Whether cells are missing in training or only later."""
    pa = pytest.importorskip("pyarrow")
    rng = np.random.default_rng(0)
    X = np.round(rng.uniform(size=(60, 2)), 3)
    y = np.where(X[:, 0] > 0.5, "high", "low")
    X[(y == "high") & (rng.random(60) < 0.5), 0] = np.nan
    cells = [["" if np.isnan(x) else str(x) for x in row] for row in X]
    lines = ["a,b,y", *(f"{a},{b},{label}" for (a, b), label in zip(cells, y, strict=True))]
    Path("holes.csv").write_text("\n".join(lines) + "\n")
    Path("whole.csv").write_text("\n".join(line for line in lines if line[0] != ",") + "\n")
    few = ["--n-trees", "20"] if name == "bart" else []
    learned = "whole.csv" if is_complete else "holes.csv"
    run("fit", learned, "-t", "y", "--model", name, *few, "-o", "m")
    model = boscage.load("m")
    run("predict", "m", "holes.csv", "-o", "p.csv")
    predicted = np.array([float(row["probability_low"]) for row in read("p.csv")])
    named = pa.table({"a": X[:, 0], "b": X[:, 1]})
    np.testing.assert_allclose(predicted, model.predict_proba(named)[:, 1], rtol=1e-12)


@pytest.mark.parametrize("chunk", ["40", "1000"])
def test_columns_of_text_are_categories(
    folder: Path, capsys: pytest.CaptureFixture[str], chunk: str
) -> None:
    """A table as it comes: a quoted header, text, cells without a value, codes of a category."""
    rng = np.random.default_rng(0)
    jobs = rng.choice(["state, gov", "self", "private", "?"], 200)
    codes, age = rng.integers(1, 4, 200), rng.integers(18, 80, 200)
    income = np.where((jobs == "private") ^ (codes == 2), ">50K", "<=50K")
    lines = ['"age","work class",code,income']
    for i in range(200):
        lines.append(f'{age[i] if i % 9 else ""},"{jobs[i]}",{codes[i]},{income[i]}')
    Path("people.csv").write_text("\n".join(lines) + "\n")
    how = ["--target", "income", "--categorical", "code", *EQUAL, *FEW]
    run("fit", "people.csv", *how, "--chunk-rows", chunk)
    model: Any = boscage.load("people.boscage")
    assert [table and {*table} for table in model.categories_] == [
        None,
        {"state, gov", "self", "private", None},
        {"1", "2", "3", None},
    ]
    # Whatever the chunks, places are learned from all rows.
    whole: Any = MondrianForestClassifier(5, feature_weights=None, random_state=0)
    pd = pytest.importorskip("pandas")
    words = [None if job == "?" else job for job in jobs]
    ages = np.where(np.arange(200) % 9 == 0, np.nan, age)
    frame = pd.DataFrame({"age": ages, "work class": words, "code": codes.astype(str)})
    whole.fit(frame, income)
    assert model.categories_ == whole.categories_
    capsys.readouterr()
    run("info", "people.boscage")
    printed = capsys.readouterr().out
    # Names that could be taken for numbers, or for several, are in quotes.
    assert 'work class: private, self, "state, gov"; code: "1", "2", "3"\n' in printed
    assert "categorical features  the columns of text or of a categorical type\n" in printed
    run("info", "people.boscage", "--json")
    facts = json.loads(capsys.readouterr().out)
    assert facts["categories"] == {
        "work class": ["private", "self", "state, gov"],
        "code": ["1", "2", "3"],
    }
    # Unknown categories are missing values.
    for name, job in (("unknown", "prince"), ("missing", "NA")):
        Path(f"{name}.csv").write_text(f"age,work class,code\n30,{job},2\n")
        run("predict", "people.boscage", f"{name}.csv", "-o", f"{name}.out")
    assert read("unknown.out") == read("missing.out")
    short = ["--n-trees", "20", "--n-burn", "20", "--n-draws", "5"]
    for kind, few in (("bart", short), ("bayes-tree", ["--sampler", "smc"])):
        how = ["--target", "income", "--categorical", "code", "--model", kind, *few]
        run("fit", "people.csv", *how, "-o", "trees.boscage")
        trees: Any = boscage.load("trees.boscage")
        expected = [None, ["private", "self", "state, gov"], ["1", "2", "3"]]
        assert trees.categories_ == expected
        for name in ("unknown", "missing"):
            run("predict", "trees.boscage", f"{name}.csv", "-o", f"{name}.out")
        assert read("unknown.out") == read("missing.out")
