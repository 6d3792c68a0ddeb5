"""The Python code in the README and in docs/ runs unchanged."""

from __future__ import annotations

import doctest
import inspect
import pkgutil
import re
from importlib import import_module
from operator import attrgetter
from pathlib import Path
from types import ModuleType

import pytest

import boscage

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
# Pages whose examples take longest. Most of what they show is in the other pages in short.
LONG = (
    "README.md",
    "cluster.md",
    "disk.md",
    "getting-started.md",
    "optimization.md",
    "statistics.md",
    "stream.md",
    "tables.md",
    "trust.md",
    "uncertainty.md",
)
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)#]+)[^)]*\)")


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, marks=[pytest.mark.slow] * (page.name in LONG), id=page.name)
        for page in PAGES
    ],
)
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


def test_the_api_reference_lists_every_public_name_and_no_other() -> None:
    text = (ROOT / "docs" / "api" / "index.rst").read_text(encoding="utf-8")
    tables = re.findall(r":toctree: generated/\n\n((?:   .+\n)+)", text)
    listed = [line.strip() for table in tables for line in table.splitlines()]
    assert len(listed) == len(set(listed))

    public = {}
    modules = [one.name for one in pkgutil.walk_packages(boscage.__path__, "boscage.")]
    for module in ["boscage", *(name for name in modules if "._" not in name)]:
        for name, thing in public_names(import_module(module)).items():
            public[id(thing)] = f"{module}.{name}"
    # The same class may be public in several modules: one entry is enough.
    pages = {id(attrgetter(name)(boscage)): name for name in listed}
    assert [name for thing, name in public.items() if thing not in pages] == []
    assert [name for thing, name in pages.items() if thing not in public] == []


def public_names(module: ModuleType) -> dict[str, object]:
    """The public classes and functions of a module: those of ``__all__``, or else its own."""
    things = {
        name: thing
        for name, thing in vars(module).items()
        if not name.startswith("_") and (inspect.isclass(thing) or inspect.isfunction(thing))
    }
    chosen = getattr(module, "__all__", None)
    if chosen is None:
        chosen = [name for name in things if things[name].__module__ == module.__name__]
    return {name: thing for name, thing in things.items() if name in chosen}


@pytest.mark.parametrize(
    "module",
    [
        "bart.classifier",
        "bart.kernels",
        "bart.regressor",
        "bayes.classifier",
        "bayes.evidence",
        "bayes.regressor",
        "bayes.samplers",
        "diagnostics",
        "distributions._base",
        "distributions.gaussian",
        "distributions.student",
        "integration.optuna",
        "metrics._classification",
        "metrics._regression",
        "metrics._scorers",
        "mondrian.classifier",
        "mondrian.regressor",
        "optimize._parameters",
        "optimize.optimizer",
        "optimize.space",
        "persistence",
        "plots",
        "trees.mondrian",
        "trees.posterior",
    ],
)
def test_examples_in_docstrings_run(module: str) -> None:
    failed, _ = doctest.testmod(import_module(f"boscage.{module}"))
    assert failed == 0
