"""What is released names its repository: the script that writes the address, and the workflow."""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # pytest needs it there

yaml = pytest.importorskip("yaml")

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ".ci/name_repository.py"
FILES = ["pyproject.toml", "rust/boscage/Cargo.toml", "CITATION.cff", "conda/recipe.yaml"]
ADDRESS = "https://github.com/someone/a.forest"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """What the script reads, without an address if it has one."""
    source = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    named = re.search(r'^Source = "(.+)"$', source, re.MULTILINE)
    for name in [*FILES, "README.md", SCRIPT]:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        text = (ROOT / name).read_text(encoding="utf-8")
        if named and name == "README.md":
            text = re.sub(rf"{re.escape(named[1])}/(raw|blob)/main/", "", text)
        if named and name in FILES:
            others = rf"{re.escape(named[1])}(?![\w.-])|^\[project\.urls\]$|docs\.rs/boscage"
            text = "\n".join(row for row in text.splitlines() if not re.search(others, row)) + "\n"
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def run(tree: Path, *args: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(tree / SCRIPT), *args]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def texts(tree: Path) -> dict[str, str]:
    return {name: (tree / name).read_text(encoding="utf-8") for name in [*FILES, "README.md"]}


def parsed(tree: Path) -> list[Any]:
    pyproject, cargo, citation, recipe = (texts(tree)[name] for name in FILES)
    return [*map(tomllib.loads, (pyproject, cargo)), *map(yaml.safe_load, (citation, recipe))]


def test_the_address_is_written_into_every_file(tree: Path) -> None:
    before = parsed(tree)
    assert run(tree, ADDRESS).returncode == 0
    project, crate, citation, recipe = parsed(tree)
    assert project["project"].pop("urls") == {
        "Homepage": ADDRESS,
        "Source": ADDRESS,
        "Documentation": f"{ADDRESS}/tree/main/docs",
        "Issues": f"{ADDRESS}/issues",
        "Changelog": f"{ADDRESS}/blob/main/CHANGELOG.md",
    }
    assert crate["package"].pop("repository") == ADDRESS
    assert crate["package"].pop("documentation") == "https://docs.rs/boscage"
    assert citation.pop("url") == citation.pop("repository-code") == ADDRESS
    assert recipe["about"].pop("homepage") == recipe["about"].pop("repository") == ADDRESS
    assert recipe["about"].pop("documentation") == f"{ADDRESS}/tree/main/docs"
    assert [project, crate, citation, recipe] == before  # and nothing else has changed


def test_the_links_of_the_readme_lead_into_the_repository(tree: Path) -> None:
    before = re.findall(r"\]\(([^)]+)\)", texts(tree)["README.md"])
    assert run(tree, ADDRESS).returncode == 0
    after = re.findall(r"\]\(([^)]+)\)", texts(tree)["README.md"])
    for old, new in zip(before, after, strict=True):
        folder = "raw" if old.endswith(".png") else "blob"
        assert new == (old if "://" in old else f"{ADDRESS}/{folder}/main/{old}")


def test_a_second_run_changes_nothing(tree: Path) -> None:
    run(tree, ADDRESS)
    once = texts(tree)
    assert run(tree, ADDRESS).returncode == 0
    assert texts(tree) == once


def test_another_address_replaces_the_first(tree: Path, tmp_path: Path) -> None:
    run(tree, ADDRESS)
    run(tree, ADDRESS + "-2")  # begins as the first one does
    two = texts(tree)
    run(tree, "https://example.org/x/y")
    moved = texts(tree)
    for name, text in two.items():
        assert moved[name] == text.replace(ADDRESS + "-2", "https://example.org/x/y")


@pytest.mark.parametrize(
    "args", [[], ["boscage"], ["https://github.com/boscage"], [ADDRESS + "/"], [ADDRESS + ".git"]]
)
def test_a_bad_address_is_refused_in_one_line(tree: Path, args: list[str]) -> None:
    before = texts(tree)
    found = run(tree, *args)
    assert found.returncode == 1
    assert (
        found.stderr == f"expected an address https://HOST/OWNER/NAME, found {' '.join(args)!r}\n"
    )
    assert texts(tree) == before


def test_a_file_that_names_something_else_is_refused(tree: Path) -> None:
    with (tree / "CITATION.cff").open("a", encoding="utf-8") as file:
        file.write('url: "https://example.org"\n')
    before = texts(tree)
    found = run(tree, ADDRESS)
    assert found.returncode == 1
    assert found.stderr.startswith(
        "CITATION.cff has 'url: \"https://example.org\"': expected no such"
    )
    assert found.stderr.count("\n") == 1
    assert texts(tree) == before


def test_a_source_distribution_without_the_address_is_refused(tmp_path: Path) -> None:
    urls = {"Source": "", "Documentation": "/tree", "Issues": "/issues", "Changelog": "/blob"}
    lines = [f"Project-URL: {label}, {ADDRESS}{path}\n" for label, path in urls.items()]
    for metadata, error in [
        (lines, "pyproject.toml is missing"),  # the next check
        (lines[1:], "expected a Project-URL Source"),
        ([*lines, "[a](docs/a.md)"], "expected links with an address, found '](docs/a.md)'"),
    ]:
        (tmp_path / "PKG-INFO").write_text("".join(metadata), encoding="utf-8")
        with tarfile.open(tmp_path / "a.tar.gz", "w:gz") as file:
            file.add(tmp_path / "PKG-INFO", "a/PKG-INFO")
        command = [str(ROOT / ".ci" / "check_dist.py"), "--address", ADDRESS, "a.tar.gz"]
        found = subprocess.run(
            [sys.executable, *command], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert found.returncode == 1
        assert found.stderr.startswith(f"a.tar.gz: {error}")


def test_the_workflow_names_the_repository_before_it_builds() -> None:
    text = (ROOT / ".github" / "workflows" / "release.yml").read_text(encoding="utf-8")
    workflow = yaml.safe_load(text)
    assert workflow["env"]["ADDRESS"] == "${{ github.server_url }}/${{ github.repository }}"
    for name, job in workflow["jobs"].items():
        steps = [str(step) for step in job.get("steps", [])]
        builds = [
            i for i, step in enumerate(steps) if re.search("maturin-action|cargo publish", step)
        ]
        runs = [i for i, step in enumerate(steps) if f'{SCRIPT} "$ADDRESS"' in step]
        assert (name in ("source", "wheels", "crates-io")) == bool(builds)
        assert len(runs) == bool(builds)
        assert not builds or runs[0] < builds[0]
    for check in re.findall(r"check_dist\.py.*", text):
        assert '--address "$ADDRESS"' in check
