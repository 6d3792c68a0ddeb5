"""A failed save raises and leaves no files; files left by killed saves are removed later."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import boscage
from boscage import MondrianForestRegressor, _core

SAVE_ON_A_FULL_DISK = """
import resource, sys
import boscage
model = boscage.load(sys.argv[1])
resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
try:
    model.save(sys.argv[1])
except OSError as error:
    print(type(error).__name__, error.errno, error.filename)
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    x = np.arange(50.0)[:, None]
    MondrianForestRegressor(2, random_state=0).fit(x, x[:, 0]).save(tmp_path / "model")
    return tmp_path / "model"


@pytest.mark.slow
def test_a_file_that_cannot_grow_is_left_as_it_was(path: Path) -> None:
    pytest.importorskip("resource")
    before = path.read_bytes()
    run = subprocess.run(
        [sys.executable, "-c", SAVE_ON_A_FULL_DISK, path],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert run.stdout.split() == ["OSError", "27", str(path)]
    assert path.read_bytes() == before
    assert os.listdir(path.parent) == ["model"]


def test_folders_that_are_not_there_have_the_system_s_error(path: Path) -> None:
    model = boscage.load(path)
    with pytest.raises(FileNotFoundError, match="No such file or directory") as raised:
        model.save(path.parent / "missing" / "model")
    assert raised.value.filename == str(path.parent / "missing" / "model")
    with pytest.raises(NotADirectoryError):
        model.save(path / "model")
    assert os.listdir(path.parent) == ["model"]


def test_part_files_of_killed_saves_are_swept_up(path: Path) -> None:
    left, young, other = (
        path.with_name(name) for name in ("model.4194301.part", "model.7.part", "model2.7.part")
    )
    for part in (left, young, other):
        part.write_bytes(b"half of")
    an_hour_ago = time.time() - 3600
    os.utime(left, (an_hour_ago, an_hour_ago))
    os.utime(other, (an_hour_ago, an_hour_ago))
    boscage.load(path).save(path)
    assert sorted(os.listdir(path.parent)) == ["model", "model.7.part", "model2.7.part"]


def test_links_and_permissions_are_kept(path: Path) -> None:
    model = boscage.load(path)
    path.chmod(0o640)
    before = path.read_bytes()
    link = path.with_name("link")
    link.symlink_to("model")
    model.forget(model.ids_[:1]).save(link)
    assert link.is_symlink()
    assert path.read_bytes() != before
    assert path.stat().st_mode & 0o777 == 0o640
    assert sorted(os.listdir(path.parent)) == ["link", "model"]


def test_pipes_are_written_to(path: Path) -> None:
    pipe = path.with_name("pipe")
    os.mkfifo(pipe)
    reader = subprocess.Popen(["cat", str(pipe)], stdout=subprocess.PIPE)
    boscage.load(path).save(pipe)
    assert reader.communicate()[0] == path.read_bytes()
    assert pipe.is_fifo()


def test_every_kind_of_model_has_one_class() -> None:
    kinds = _core.model_kinds()
    assert {name: kind.kind for name, (_, kind) in kinds.items()} == {name: name for name in kinds}
    assert len({words for words, _ in kinds.values()}) == len(kinds) == 8
