"""Error messages name file, row and column, and nothing is changed."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from boscage._cli.main import main
from boscage._cli.reading import tables
from boscage._cli.reading.sources import Source
from command_line import FEW, fails, run


@pytest.mark.parametrize(
    ("cell", "found", "expected"),
    [
        ("abc", "'abc'", "a number"),
        ("1,5", None, "columns"),
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


def test_a_damaged_model_is_named_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "damaged.boscage"
    path.write_bytes(b"BOSCAGE\0" + b"damaged " * 9)
    assert fails(capsys, "info", str(path)).startswith(f"{path}: not a valid boscage model: byte 8")


def test_models_from_old_files_refuse_missing_values(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Files of the first version do not say to which side missing values go."""
    stored = Path(__file__).parents[1] / "persistence" / "files" / "bart-regressor-named-v1.boscage"
    Path("holes.csv").write_text("a,größe,c\n1,2,0\n3,,1\n2,5,1\n", "utf-8")
    said = fails(capsys, "predict", str(stored), "holes.csv")
    assert "NaN in row 1, column 'größe'; expected finite numbers, since the file" in said


def test_bad_labels_and_ids_are_named(iris_model: str, capsys: pytest.CaptureFixture[str]) -> None:
    header, *lines = Path("iris_test.csv").read_text().splitlines()
    no_label = [*lines[:3], lines[3].rsplit(",", 1)[0] + ",", *lines[4:]]
    Path("bad.csv").write_text("\n".join([header, *no_label]) + "\n")
    said = fails(capsys, "fit", "bad.csv", "-t", "species", "-o", "m")
    assert said == "bad.csv: row 4, column 'species': found no value, expected a target"

    no_id = [*lines[:5], "," + lines[5].split(",", 1)[1], *lines[6:]]
    Path("bad.csv").write_text("\n".join([header, *no_id]) + "\n")
    said = fails(capsys, "update", iris_model, "bad.csv", "-t", "species", "--id-column", "id")
    assert said == "bad.csv: row 6, column 'id': found no value, expected a whole number or text"

    said = fails(capsys, "fit", "iris.csv", "-t", "species", "--task", "regression", "-o", "m")
    assert said.startswith("iris.csv: row 1, column 'species': found 'v")


def test_columns_of_other_types_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    monkeypatch.chdir(tmp_path)
    pairs, days = [{"a": 1}, {"a": 2}], pa.array([1, 2], pa.date32())
    table = pa.table({"x": [1.0, 2.0], "pair": pairs, "day": days, "y": [0.0, 1.0]})
    pq.write_table(table, "t.parquet")
    fit = ["fit", "t.parquet", "-o", "m", "--features"]
    for args, said in [
        ([*fit, "x,pair", "-t", "y"], "column 'pair': found {'a': 1}, expected a number"),
        (
            [*fit, "x,pair", "-t", "y", "--categorical", "pair"],
            "column 'pair': found {'a': 1}, expected a category",
        ),
        ([*fit, "x", "-t", "pair"], "column 'pair': found {'a': 1}, expected text or a number"),
        ([*fit, "x,day", "-t", "y"], "column 'day': found 1970-01-02, expected a number"),
        ([*fit, "x", "-t", "day"], "column 'day': found 1970-01-02, expected text or a number"),
    ]:
        assert fails(capsys, *args) == f"t.parquet: row 1, {said}"
    assert not Path("m").exists()


def test_a_forest_without_rows_does_not_predict(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("two.csv").write_text("x,y\n1,2\n3,4\n")
    run("fit", "two.csv", "-t", "y", *FEW)
    run("forget", "two.boscage", "0", "1")
    for command in ("predict", "evaluate"):
        said = fails(capsys, command, "two.boscage", "two.csv")
        assert said.startswith(
            "two.boscage: the forest has no rows left; add some by boscage update"
        )
    run("info", "two.boscage")
    assert "fitted" not in capsys.readouterr().out
    run("update", "two.boscage", "two.csv")
    run("predict", "two.boscage", "two.csv", "-o", "p.csv")


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
        "b.csv: row 2, column 'n': found 6, expected an id that no row of the model has"
    )
    said = fails(capsys, "fit", "c.csv", "-t", "y", "-o", "m", "--id-column", "n", *FEW)
    assert said == "c.csv: row 3, column 'n': found 8 again, expected another id for each row"
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
            ["fit", "diabetes.csv", "-t", "sex", "-o", "m", "--model", "bart", "--k", "1e9"],
            "--k must be from 0.0001 to 10000, found 1000000000.0",
        ),
        (
            ["fit", "iris.csv", "-t", "species", "--id-column", "species", "-o", "m"],
            "--id-column: 'species' is the target",
        ),
        (
            ["fit", "iris.csv", "-t", "species", "--features", "x0,species", "-o", "m"],
            "--features: 'species' is the target",
        ),
        (
            [
                "fit",
                "iris.csv",
                "-t",
                "species",
                "--features",
                "x0,id",
                "--id-column=id",
                "-o",
                "m",
            ],
            "--features: 'id' is the column of ids",
        ),
        (
            ["fit", "iris.csv", "-t", "species", "--features", "x0,x1,x0", "-o", "m"],
            "--features: column 'x0' is named twice",
        ),
        (
            ["predict", "iris.model", "iris.csv", "--features", "x0,x1,x2,x0"],
            "--features: column 'x0' is named twice",
        ),
        (
            ["fit", "iris.csv", "-t", "species", "-o", "m", "--feature-range", "5", "1"],
            "--feature-range: found 5 1, expected LOW and HIGH",
        ),
        (["fit", "iris.csv", "-t", "species", "-o", "."], ".: found a folder, expected the name"),
        (["fit", "iris.csv", "-t", "species", "-o", "iris.csv"], "iris.csv: this is the table"),
        (["fit", "none", "-t", "species", "-o", "m"], "none: found a folder without Parquet files"),
        (["info", "."], ".: found a folder, expected a model file"),
        (
            ["predict", "prediction.model", "kept.csv", "--keep", "prediction"],
            "--keep: 'prediction' is the name of a column of predictions",
        ),
        (["forget", "iris.model", "100", "--id-column", "id"], "--id-column names a column of a"),
        (["predict", "none.model", "iris.csv"], "none.model: No such file or directory"),
        (["predict", "iris.csv", "iris.csv"], "iris.csv: "),
        (["predict", "iris.model", "diabetes.csv"], "diabetes.csv: there is no column 'x0'"),
        (["predict", "iris.model", "iris.csv", "--quantiles", "0.5"], "iris.model: a classifier"),
        (
            ["predict", "iris.model", "iris.csv", "-o", "no/out.csv"],
            "no/out.csv: there is no folder",
        ),
        (["forget", "iris.model", "7"], "iris.model: "),
        (["forget", "iris.model", "seven"], "iris.model: 'seven' is not in the forest"),
        (
            ["forget", "iris.model", "100", "100"],
            "iris.model: ids must differ from each other, found 100 twice",
        ),
        (["forget", "iris.model"], "no row is named"),
        (["forget", "iris.model", "--ids-from", "iris.csv"], "iris.csv: found 6 columns"),
        (
            ["update", "iris.model", "iris.csv", "-t", "species", "--id-column", "id"],
            "iris.csv: row 1, column 'id': found 100, expected an id that no row",
        ),
        (["info", "short.model"], "short.model: "),
    ],
)
def test_mistakes_are_explained(
    iris_model: str, capsys: pytest.CaptureFixture[str], args: list[str], said: str
) -> None:
    Path("none").mkdir()
    Path("empty.csv").write_text("")
    Path("header.csv").write_text("x,y\n")
    Path("twice.csv").write_text("x,x,y\n1,2,3\n")
    Path("only.csv").write_text("y\n3\n")
    Path("latin.csv").write_bytes("x,y\n1,caf\xe9\n".encode("latin-1"))
    Path("broken.parquet").write_bytes(Path("iris.parquet").read_bytes()[:-40])
    Path("kept.csv").write_text("x0,x1,x2,x3,prediction\n1,2,3,4,5\n")
    Path("prediction.model").write_bytes(Path(iris_model).read_bytes())
    Path("short.model").write_bytes(Path(iris_model).read_bytes()[:-40])
    before = Path(iris_model).read_bytes()
    assert fails(capsys, *args).startswith(said)
    assert Path(iris_model).read_bytes() == before
    assert not Path("m").exists()


@pytest.mark.parametrize(
    ("args", "command", "said"),
    [
        ([], "boscage", "the following arguments are required: COMMAND"),
        (["guess"], "boscage", "argument COMMAND: invalid choice: 'guess' (choose from "),
        (["fit", "t.csv"], "boscage fit", "the following arguments are required: -t/--target"),
        (["fit", "t.csv", "-t", "y", "--tree", "3"], "boscage fit", "unknown arguments: --tree 3"),
        (["fit", "t.csv", "-t"], "boscage fit", "argument -t/--target: expected one argument"),
        (["info", "m", "--x\ny"], "boscage info", "unknown arguments: --x y"),
        (["predict", "m"], "boscage predict", "the following arguments are required: TABLE"),
        (
            ["predict", "m", "t.csv", "--interval", "1.5"],
            "boscage predict",
            "argument --interval: found '1.5', expected a number between 0 and 1",
        ),
    ],
)
def test_wrong_usage_is_one_line_that_says_where_to_read_more(
    args: list[str], command: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(args) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    (line,) = printed.err.splitlines()
    assert line.startswith(f"{command}: error: {said}")
    assert line.endswith(f"; see {command} --help")


@pytest.mark.parametrize(
    ("option", "expected"),
    [
        (["--n-estimators", "abc"], "a whole number, at least 1"),
        (["--n-estimators", "0"], "a whole number, at least 1"),
        (["--n-estimators", "2.5"], "a whole number, at least 1"),
        (["--n-estimators", str(2**64)], f"a whole number, at most {2**64 - 1}"),
        (["--min-samples-split", "1"], "a whole number, at least 2, or 'auto'"),
        (["--lifetime", "-1"], "a number above 0, or inf"),
        (["--lifetime", "nan"], "a number above 0, or inf"),
        (["--noise-variance", "inf"], "a number above 0"),
        (["--discount", "0"], "a number above 0, or 'loo'"),
        (["--alpha-s", "1"], "a number between 0 and 1"),
        (["--beta-s", "-0.5"], "a number of at least 0"),
        (["--sparse", "no"], "a number above 0, or 'yes'"),
        (["--posterior", "slow"], "one of exact, fast, joint, kneser-ney"),
        (["--random-state", "-1"], "a whole number, at least 0"),
        (["--n-jobs", "0"], "a number of threads, or -1 for one on every core"),
        (["--delimiter", "::"], "one character, such as ; or |, or \\t for a tab"),
        (["--delimiter", ""], "one character, such as ; or |, or \\t for a tab"),
        (["--features", ","], "names of columns, separated by commas"),
        (["--features", "a,,b"], "names of columns, separated by commas"),
        (["--features", ""], "names of columns, separated by commas"),
        (
            ["--drop", 'a,"b,c'],
            'names of columns, those that hold a comma in double quotes, as in "b,c",d',
        ),
    ],
)
def test_a_value_that_cannot_be_read_is_named(
    option: list[str], expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    said = fails(capsys, "fit", "t.csv", "-t", "y", "-o", "m", *option)
    name, value = option
    assert said == (
        f"argument {name}: found {value!r}, expected {expected}; see boscage fit --help"
    )


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--drop", "y"], "--drop: 'y' is the target, it cannot be left out too"),
        (["--drop", "id,id"], "--drop: column 'id' is named twice"),
        (
            ["--drop", "id", "--id-column", "id"],
            "--drop: 'id' is the column of ids, it cannot be left out too",
        ),
        (["-o", ""], "--output: found an empty name, expected that of a file to write"),
        (["--n-estimators", "100001"], "--n-estimators must be between 1 and 100000, found 100001"),
        (["--memory-limit", "5"], "--memory-limit must be at least 33.6 MB, found 5 bytes"),
        (["--memory-limit", "2XB"], "--memory-limit must be a number of bytes, or a text"),
        (
            ["--feature-range", "5", "1"],
            "--feature-range: found 5 1, expected LOW and HIGH, with LOW at most HIGH",
        ),
        (
            ["--task", "regression", "--posterior", "exact", "--joint-kernel", "limit"],
            "--joint-kernel limit needs --posterior joint (found 'exact'); leave it at 'auto'",
        ),
        (
            ["--task", "regression", "--posterior", "exact", "--trend", "linear"],
            "--trend linear needs --posterior joint, which fits the trees and a linear part",
        ),
        (
            ["--task", "classification", "--trend", "linear"],
            "--trend must be 'auto' or None for classes, found 'linear'",
        ),
        (
            ["--task", "regression", "--posterior", "fast", "--hyperparameters", "ml"],
            "--posterior fast takes each node's own mean and variance, and does not use "
            "--hyperparameters ml: leave it at 'loo', or choose --posterior exact",
        ),
        (
            ["--model", "bart", "--sparse", "1e300"],
            "--sparse, the concentration of split probabilities, must be from 1e-100 to 1e100",
        ),
        (
            ["--memory-limit", "1GB", "--calibration", "loo"],
            "--calibration loo: with --memory-limit only --calibration none is offered",
        ),
    ],
)
def test_an_option_is_to_blame_and_not_the_rows(
    folder: Path, options: list[str], expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("t.csv").write_text("id,a,y\n" + "".join(f"{i},{i},{i % 2}\n" for i in range(9)))
    files = set(os.listdir())
    assert fails(capsys, "fit", "t.csv", "-t", "y", "-o", "m", *options).startswith(expected)
    assert set(os.listdir()) == files


@pytest.mark.parametrize("how", [[], ["--memory-limit", "1GB"], ["--model", "bayes-tree"]])
def test_numbers_that_are_not_whole_are_no_classes(
    folder: Path, how: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    Path("t.csv").write_text("a,y\n" + "".join(f"{i},{i / 2}\n" for i in range(9)))
    said = fails(capsys, "fit", "t.csv", "-t", "y", "--task", "classification", "-o", "m", *how)
    assert said == (
        "t.csv: row 2, column 'y': found 0.5, expected a class: a word or a whole number "
        "(--task regression takes any number)"
    )


@pytest.mark.skipif(not os.path.exists("/proc/self/mem"), reason="needs a file that cannot be read")
def test_a_table_that_cannot_be_read_is_named(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = fails(capsys, "fit", "/proc/self/mem", "-t", "y", "-o", "m")
    assert said == "/proc/self/mem: Input/output error"


def test_a_forest_without_rows_is_called_so(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("t.csv").write_text("a,y\n" + "".join(f"{i},{i % 2}\n" for i in range(9)))
    run("fit", "t.csv", "-t", "y", "-o", "m", "--memory-limit", "1GB")
    said = fails(capsys, "update", "m", "t.csv", "-t", "y")
    assert said.startswith("m: a MondrianForestClassifier without rows cannot add rows")
    run("info", "m")
    assert "MondrianForestClassifier without rows" in capsys.readouterr().out


def test_an_empty_name_of_an_output_is_refused(
    iris_model: str, capsys: pytest.CaptureFixture[str]
) -> None:
    before = Path(iris_model).read_bytes()
    how = ["-t", "species", "--id-column", "id"]
    for command in (["update", iris_model, "iris_test.csv", *how], ["forget", iris_model, "1"]):
        said = fails(capsys, *command, "-o", "")
        assert said.startswith("--output: found an empty name")
    assert Path(iris_model).read_bytes() == before


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
