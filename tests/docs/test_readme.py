"""The README begins with two commands; CI runs them word for word, and the files agree."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import boscage
from boscage._cli.arguments import parser

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
MAIN_JOB, TESTS, USAGE = re.findall(r"^```sh\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)[:3]


def test_readme_begins_with_the_two_commands() -> None:
    start = README.index(TESTS) + len(TESTS)
    assert len(README[:start].splitlines()) <= 15
    for command in (MAIN_JOB, TESTS):
        assert command.count("\n") == 1
        assert command.startswith("python3 -m venv .venv && .venv/bin/pip install '.[")
    assert MAIN_JOB.endswith("boscage demo\n")


def test_ci_runs_these_very_commands() -> None:
    lines = (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines(keepends=True)
    assert MAIN_JOB in lines
    assert TESTS in lines


@pytest.mark.parametrize("line", USAGE.splitlines())
def test_the_commands_shown_can_be_typed(line: str) -> None:
    command, *args = line.split()
    assert command == "boscage"
    parser().parse_args(args)


def test_extras_that_are_named_exist() -> None:
    declared = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]
    pages += (ROOT / "python").rglob("*.py")
    named = set()
    for page in pages:
        text = page.read_text(encoding="utf-8")
        named |= set(re.findall(r"(?:boscage|'\.)\[([a-z,]+)\]", text))
    for extra in {name for names in named for name in names.split(",")}:
        assert re.search(rf"^{extra} = \[", declared, re.MULTILINE), extra


def test_the_version_is_that_of_the_workspace() -> None:
    cargo = (ROOT / "Cargo.toml").read_text(encoding="utf-8")
    found = re.search(r'^version = "(.+)"$', cargo, re.MULTILINE)
    assert found
    assert boscage.__version__ == found[1]
    assert f"## {found[1]}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_the_conda_recipe_has_the_version_and_the_dependencies() -> None:
    recipe = (ROOT / "conda" / "recipe.yaml").read_text(encoding="utf-8")
    assert f'  version: "{boscage.__version__}"\n' in recipe
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    found = re.search(r"^dependencies = \[(.+)\]$", project, re.MULTILINE)
    assert found
    for name, least in re.findall(r'"([\w-]+)(>=[\d.]+)"', found[1]):
        assert f"    - {name} {least}\n" in recipe
