"""The Python in the README and in docs/ runs as it stands."""

from __future__ import annotations

import doctest
import re
import runpy
from importlib import import_module
from pathlib import Path

import pytest

import boscage

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)#]+)[^)]*\)")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_examples_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    text = page.read_text(encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    if page.name == "rust.md":  # the file that its Rust program leaves
        forest = boscage.MondrianForestClassifier(3, random_state=7)
        forest.fit([[0.1], [0.9]], ["low", "high"]).save("service.boscage")
    names: dict[str, object] = {}
    for match in BLOCK.finditer(text):
        line = text.count("\n", 0, match.start()) + 1
        # Padding makes a traceback point at the page's own line.
        exec(compile("\n" * line + match[1], str(page), "exec"), names)


@pytest.mark.parametrize("page", [*PAGES, ROOT / "CONTRIBUTING.md"], ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    links = [link for link in LINK.findall(page.read_text(encoding="utf-8")) if "://" not in link]
    for link in links:
        assert (page.parent / link).exists(), link


def test_the_api_reference_is_that_of_the_code() -> None:
    made = runpy.run_path(str(ROOT / "docs" / "make_api.py"))["page"]()
    kept = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    assert kept == made, "run: python docs/make_api.py"


@pytest.mark.parametrize(
    "module",
    [
        "bart.classifier",
        "bart.regressor",
        "bayes.classifier",
        "bayes.evidence",
        "bayes.regressor",
        "distributions.gaussian",
        "distributions.student",
        "metrics",
        "mondrian.classifier",
        "mondrian.regressor",
        "persistence",
        "plots",
        "trees.mondrian",
        "trees.posterior",
    ],
)
def test_examples_in_docstrings_run(module: str) -> None:
    failed, _ = doctest.testmod(import_module(f"boscage.{module}"))
    assert failed == 0
