"""Metadata of the table in a model file, and what update and evaluate refuse because of it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_iris

import boscage
from boscage import MondrianForestClassifier
from boscage._cli.notes import SECTION
from command_line import FEW, digest, fails, flowers, run

UPDATE = ["update", "iris.model", "iris_test.csv", "--id-column", "id"]


def info(capsys: pytest.CaptureFixture[str], model: str) -> dict[str, object]:
    capsys.readouterr()
    run("info", model, "--json")
    facts: dict[str, object] = json.loads(capsys.readouterr().out)
    return facts


def test_info_shows_what_is_kept(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    facts = info(capsys, "iris.model")
    assert (facts["target"], facts["labels"], facts["id_column"]) == ("species", "text", "id")
    facts = info(capsys, "diabetes.model")
    assert (facts["target"], facts["labels"]) == ("progression", "numbers")
    assert "id_column" not in facts


def test_info_names_categorical_features(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pd = pytest.importorskip("pandas")
    rows = pd.DataFrame({"x": [0.0, 1.0, 2.0], "code": [7, 8, 7]})
    model = MondrianForestClassifier(2, categorical_features=["code"], random_state=0)
    model.fit(rows, [0, 1, 0]).save("codes.model")
    assert info(capsys, "codes.model")["categorical_features"] == ["code"]
    model.set_params(categorical_features=[1]).fit(rows.to_numpy(), [0, 1, 0]).save("codes.model")
    assert info(capsys, "codes.model")["categorical_features"] == [1]


def test_it_outlives_updates_and_python(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(*UPDATE)
    run("forget", "iris.model", "100")
    model = boscage.load("iris.model")
    assert isinstance(model, MondrianForestClassifier)
    model.partial_fit(flowers()[:1].select(["x0", "x1", "x2", "x3"]), ["setosa"], ids=[9])
    model.save("again.model")
    assert info(capsys, "again.model")["target"] == "species"
    # A new fit may use another table.
    data = load_iris()
    model.fit(data.data, data.target).save("other.model")
    assert "target" not in info(capsys, "other.model")


def test_the_target_need_not_be_given_again(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run("evaluate", "iris.model", "iris_test.csv", "--json")
    short = capsys.readouterr().out
    run("evaluate", "iris.model", "iris_test.csv", "-t", "species", "--json")
    assert capsys.readouterr().out == short
    run(*UPDATE, "-o", "short.model")
    run(*UPDATE, "-t", "species", "-o", "long.model")
    assert digest("short.model") == digest("long.model")


@pytest.mark.parametrize("command", ["update", "evaluate"])
def test_another_target_is_refused(
    folder: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    before = Path("iris.model").read_bytes()
    said = fails(capsys, command, "iris.model", "iris_test.csv", "-t", "x0")
    assert said == "--target: found 'x0', but iris.model predicts 'species'"
    assert Path("iris.model").read_bytes() == before


def test_ids_are_given_always_or_never(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = fails(capsys, "update", "iris.model", "iris_test.csv")
    assert said == "the rows in iris.model have ids, from column 'id': give --id-column id"
    said = fails(capsys, "update", "iris.model", "iris_test.csv", "--id-column", "x0")
    assert said == "--id-column: found 'x0', but the ids in iris.model are from column 'id'"
    run("fit", "iris_train.csv", "-t", "species", "--drop", "id", "-o", "bare.model", *FEW)
    said = fails(capsys, "update", "bare.model", "iris_test.csv", "--id-column", "id")
    assert said.startswith("--id-column: the rows in bare.model have no ids but their order of")
    run("update", "bare.model", "iris_test.csv")
    assert boscage.load("bare.model").ids_.tolist() == list(range(150))


@pytest.mark.parametrize("command", [["update", "--id-column", "id"], ["evaluate"]])
@pytest.mark.parametrize("kind", ["csv", "parquet"])
@pytest.mark.parametrize("chunk", ["1", "1000"])
def test_numbers_are_no_labels_for_a_model_of_words(
    folder: Path, capsys: pytest.CaptureFixture[str], command: list[str], kind: str, chunk: str
) -> None:
    import pyarrow.csv as pacsv
    import pyarrow.parquet as pq

    table = flowers()[120:]
    table = table.set_column(5, "species", table["x0"])
    pacsv.write_csv(table, "numbers.csv")
    pq.write_table(table, "numbers.parquet")
    before = Path("iris.model").read_bytes()
    name, *how = command
    said = fails(
        capsys, name, "iris.model", f"numbers.{kind}", *how, "--chunk-rows", chunk, *FEW[2:]
    )
    assert said == (
        f"numbers.{kind}: row 1, column 'species': found {table['x0'][0]}, expected text, as the"
        " model's labels 'setosa', 'versicolor', 'virginica'"
    )
    assert Path("iris.model").read_bytes() == before


def test_old_files_are_asked_about_numbers_too(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    X, y = np.arange(20.0)[:, None], np.repeat(["no", "yes"], 10)
    MondrianForestClassifier(3, random_state=0).fit(X, y).save("old.model")
    Path("t.csv").write_text("x,y\n" + "".join(f"{i},{i / 7}\n" for i in range(300)))
    said = fails(capsys, "update", "old.model", "t.csv", "-t", "y")
    assert said.startswith("t.csv: row 1, column 'y': found 0.0, expected text, as the model's")


@pytest.mark.parametrize("chunk", ["1", "1000"])
def test_text_that_holds_numbers_beside_words_is_text(folder: Path, chunk: str) -> None:
    Path("a.csv").write_text("x,y\n1,1\n2,two\n3,1\n4,two\n")
    Path("b.csv").write_text("x,y\n5,3\n6,4\n7,two\n")
    Path("c.csv").write_text("x,y\n8,1\n9,1\n")
    run("fit", "a.csv", "-t", "y", "-o", "m", *FEW)
    for table in ("b.csv", "c.csv"):
        run("update", "m", table, "--chunk-rows", chunk)
    model = boscage.load("m")
    assert isinstance(model, MondrianForestClassifier)
    assert list(model.classes_) == ["1", "3", "4", "two"]


def test_a_model_that_has_forgotten_all_still_knows_its_labels(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("a.csv").write_text("x,y\n1,no\n2,yes\n")
    Path("b.csv").write_text("x,y\n1,7\n")
    run("fit", "a.csv", "-t", "y", "-o", "m", *FEW)
    run("forget", "m", "0", "1")
    said = fails(capsys, "update", "m", "b.csv")
    assert said.startswith("b.csv: row 1, column 'y': found 7, expected text, as the model's")
    run("update", "m", "a.csv")
    assert boscage.load("m").n_rows_ == 2


def test_a_file_without_notes_is_asked_nothing(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = boscage.load("iris.model")
    # A file of a version without metadata.
    old = {name: each for name, each in model._annotations().items() if name != SECTION}
    assert set(old) == {"boscage-python"}
    Path("old.model").write_bytes(model._model.to_bytes(annotation=json.dumps(old)))
    names = ["--features", "x0,x1,x2,x3"]
    said = fails(capsys, "update", "old.model", "iris_test.csv", "--id-column", "id", *names)
    assert said == "old.model does not say what it predicts: give --target COLUMN"
    how = ["-t", "species", *names]
    run("update", "old.model", "iris_test.csv", *how, "--id-column", "id", "-o", "new.model")
    run("evaluate", "old.model", "iris_test.csv", *how)
    assert "target" not in info(capsys, "old.model")


@pytest.mark.slow
@pytest.mark.parametrize("annotation", ["no JSON", "[1]", '{"boscage-table": 3}'])
@pytest.mark.parametrize("target", ["", ', "target": 7', ', "target": null'])
def test_notes_of_others_say_nothing(
    folder: Path, capsys: pytest.CaptureFixture[str], annotation: str, target: str
) -> None:
    if annotation.startswith("{") and target:
        annotation = '{"boscage-table": {"labels": []' + target + "}}"
    model = boscage.load("diabetes.model")
    Path("odd.model").write_bytes(model._model.to_bytes(annotation=annotation))
    assert "target" not in info(capsys, "odd.model")
