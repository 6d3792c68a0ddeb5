"""Files are written completely or not at all; files left by killed writers are removed."""

from __future__ import annotations

import fcntl
import os
import resource
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from boscage._cli.outputs import replacing
from command_line import COMMAND, FEW, digest, fails, run

FIT = ["fit", "iris.csv", "-t", "species", *FEW]
PREDICT = ["predict", "diabetes.model", "diabetes.csv", "--quantiles", "0.1,0.2,0.3"]


def files() -> set[str]:
    return set(os.listdir())


@contextmanager
def small_files() -> Iterator[None]:
    """Limit the size of files to a block, as a full disk would."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.slow
@pytest.mark.parametrize(
    "args",
    [
        [*FIT, "-o", "new.model"],
        [*FIT, "-o", "iris.model"],
        [*FIT, "--model", "bart", "--n-burn", "0", "--n-draws", "50", "--drop", "id", "-o", "b"],
        ["update", "iris.model", "iris_test.csv", "--id-column", "id"],
        [*PREDICT, "-o", "out.csv"],
        [*PREDICT, "-o", "out.tsv"],
        [*PREDICT, "-o", "out.parquet"],
    ],
)
def test_a_full_disk_leaves_everything_as_it_was(
    folder: Path, capsys: pytest.CaptureFixture[str], args: list[str]
) -> None:
    if "bart" in args:
        args = [word for word in args if word not in FEW]
    before, model = files(), Path("iris.model").read_bytes()
    with small_files():
        said = fails(capsys, *args)
    name = args[-1] if "-o" in args else "iris.model"
    assert said == f"{name}: File too large"
    assert files() == before
    assert Path("iris.model").read_bytes() == model


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is always full")
@pytest.mark.parametrize("args", [FIT, PREDICT, ["forget", "iris.model", "100"]])
def test_a_device_that_is_full(
    folder: Path, capsys: pytest.CaptureFixture[str], args: list[str]
) -> None:
    said = fails(capsys, *args, "-o", "/dev/full")
    assert said == "/dev/full: No space left on device"
    assert stat.S_ISCHR(os.stat("/dev/full").st_mode), "the device was replaced"
    assert not list(Path("/dev").glob("full.*"))


@pytest.mark.slow
@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is always full")
@pytest.mark.parametrize(
    "args", [PREDICT, pytest.param(["info", "iris.model"], marks=pytest.mark.slow)]
)
def test_standard_output_that_is_full(folder: Path, args: list[str]) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [*COMMAND, *args], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert done.returncode == 2
    assert done.stderr == (f"boscage {args[0]}: error: standard output: No space left on device\n")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is always full")
@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize(
    "args",
    [
        ["--help"],
        pytest.param(["fit", "--help"], marks=pytest.mark.slow),
        pytest.param(["--version"], marks=pytest.mark.slow),
    ],
)
def test_help_that_cannot_be_written(args: list[str], unbuffered: str) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [*COMMAND, *args],
            stdout=full,
            stderr=subprocess.PIPE,
            env=os.environ | {"PYTHONUNBUFFERED": unbuffered},
            text=True,
            check=False,
        )
    assert done.returncode == 2
    assert done.stderr == "boscage: error: standard output: No space left on device\n"


@pytest.mark.parametrize("args", [FIT, PREDICT])
def test_a_folder_without_permission(
    folder: Path, capsys: pytest.CaptureFixture[str], args: list[str]
) -> None:
    Path("locked").mkdir(mode=0o555)
    # Even the superuser cannot write to this folder.
    place = Path("locked") if os.geteuid() else Path("/sys")
    if not place.is_dir():
        pytest.skip("the superuser may write to all folders")
    before, inside = files(), set(os.listdir(place))
    said = fails(capsys, *args, "-o", f"{place}/out")
    assert said.startswith(f"{place}/out: ")
    assert "ermission" in said or "Read-only" in said
    assert files() == before
    assert set(os.listdir(place)) == inside


def test_a_link_goes_on_leading_to_the_model(folder: Path) -> None:
    Path("newest").symlink_to("iris.model")
    before = digest("iris.model")
    run("update", "newest", "iris_test.csv", "--id-column", "id")
    assert Path("newest").is_symlink()
    assert digest("iris.model") != before


def test_a_model_without_a_name_is_called_as_the_table_was_typed(folder: Path) -> None:
    Path("link.csv").symlink_to("iris.csv")
    run("fit", "link.csv", "-t", "species", *FEW)
    assert Path("link.boscage").exists()
    assert not Path("iris.boscage").exists()


def test_an_empty_table_gives_a_header(folder: Path) -> None:
    Path("none.csv").write_text(Path("iris.csv").read_text().split("\n")[0] + "\n")
    run("predict", "iris.model", "none.csv", "--keep", "id", "-o", "out.csv")
    names = ["id", "prediction", "probability_setosa", "probability_versicolor"]
    assert Path("out.csv").read_text() == ",".join([*names, "probability_virginica"]) + "\n"


@pytest.mark.parametrize("output", ["out.csv", "out.parquet"])
def test_leftovers_of_killed_writers_are_swept_up(folder: Path, output: str) -> None:
    for name in (f"{output}.4000000.part", f"{output}.1.part"):
        Path(name).write_text("left")
    others = [f"my{output}.7.part", f"{output}.part", f"{output}.x.part", "iris.csv.7.part"]
    for name in others:
        Path(name).write_text("mine")
    with open(f"{output}.5.part", "w") as owned:
        fcntl.flock(owned, fcntl.LOCK_EX)
        run(*PREDICT, "-o", output)
    parts = {name for name in files() if name.endswith(".part")}
    assert parts == {f"{output}.5.part", *others}
    assert Path(output).stat().st_size > 0


@pytest.mark.slow
def test_a_killed_writer_leaves_the_old_file_and_a_part(folder: Path) -> None:
    Path("out.csv").write_text("old")
    code = """
import os, signal
from boscage._cli.outputs import replacing
with replacing("out.csv") as file:
    file.write(b"half")
    file.flush()
    os.kill(os.getpid(), signal.SIGKILL)
"""
    done = subprocess.run([sys.executable, "-c", code], check=False)
    assert done.returncode == -9
    assert Path("out.csv").read_text() == "old"
    assert len(list(Path.cwd().glob("out.csv.*.part"))) == 1
    with replacing("out.csv") as file:
        file.write(b"new")
    assert Path("out.csv").read_text() == "new"
    assert not list(Path.cwd().glob("*.part"))


def test_an_error_while_writing_leaves_the_old_file(folder: Path) -> None:
    Path("out.csv").write_text("old")
    before = files()

    def interrupted() -> None:
        with replacing("out.csv") as file:
            file.write(b"half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert Path("out.csv").read_text() == "old"
    assert files() == before
