"""Write docs/api.md from the docstrings: ``python docs/make_api.py``."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

import boscage
from boscage import metrics, plots
from boscage.bayes import evidence

PAGE = Path(__file__).with_name("api.md")
CLASSES = [
    "MondrianForestClassifier",
    "MondrianForestRegressor",
    "BayesianTreeClassifier",
    "BayesianTreeRegressor",
    "BARTClassifier",
    "BARTRegressor",
    "GaussianMixture",
    "StudentMixture",
    "MondrianTree",
    "PosteriorTree",
    "DrawnTree",
]
SECTION = re.compile(r"^(\w[\w ]*)\n-{3,}$", re.MULTILINE)


def page() -> str:
    """Return the whole page."""
    parts = [
        "# API reference",
        "Made from the docstrings by `python docs/make_api.py`; `help(...)` says the same.",
        "## boscage",
        *entry("boscage.load", boscage.load),
    ]
    for name in CLASSES:
        parts += ["## boscage." + name, *class_(name, getattr(boscage, name))]
    for module in (evidence, metrics, plots):
        parts += [f"## {module.__name__}"]
        for name in sorted(module.__all__):
            thing = getattr(module, name)
            parts += (
                entry(name, thing) if not inspect.isclass(thing) else class_(name, thing, "###")
            )
    return "\n\n".join(parts) + "\n"


def class_(name: str, kind: Any, level: str = "##") -> list[str]:
    """Return a class, then its public methods and properties in alphabetical order."""
    parts = [f"{level} {name}"] if level == "###" else []
    parts += [f"```text\n{name}{signature(kind)}\n```", text(kind)]
    for member, value in sorted(inspect.getmembers(kind)):
        own = any(member in base.__dict__ for base in kind.__mro__ if ours(base))
        # scikit-learn adds set_..._request, about the routing of metadata, to every estimator.
        if not own or member.startswith("_") or member.endswith("_request"):
            continue
        if isinstance(value, property):
            parts += [f"### {name}.{member}", text(value)]
        elif inspect.isfunction(value) or inspect.ismethod(value):
            parts += entry(f"{name}.{member}", value)
    return parts


def ours(kind: type) -> bool:
    """Whether a class is of this package and not scikit-learn's."""
    return kind.__module__.partition(".")[0] == "boscage"


def entry(name: str, function: Any) -> list[str]:
    """Return a function or method."""
    return [
        f"### {name}",
        f"```text\n{name.rpartition('.')[2]}{signature(function)}\n```",
        text(function),
    ]


def signature(thing: Any) -> str:
    """Return a signature without annotations, one line if it is short."""
    found = inspect.signature(thing)
    parameters = [
        each.replace(annotation=inspect.Parameter.empty)
        for each in found.parameters.values()
        if each.name != "self"
    ]
    bare = str(found.replace(parameters=parameters, return_annotation=inspect.Signature.empty))
    if len(bare) <= 80:
        return bare
    lines = "".join(f"    {part},\n" for part in bare[1:-1].split(", "))
    return f"(\n{lines})"


def text(thing: Any) -> str:
    """Return a docstring as Markdown: sections in bold, their items as lists, examples fenced."""
    doc = inspect.getdoc(thing) or ""
    pieces = SECTION.split(doc)
    parts = [plain(pieces[0])]
    for title, body in zip(pieces[1::2], pieces[2::2], strict=True):
        parts.append(f"**{title}**")
        if title == "Examples":
            parts.append(f"```pycon\n{body.strip()}\n```")
        else:
            parts.append(items(body.strip("\n")))
    return "\n\n".join(part for part in parts if part)


def items(body: str) -> str:
    """Return ``name : type`` lines and what is indented below them as a list."""
    lines = []
    for line in body.splitlines():
        if line and not line.startswith(" "):
            name, colon, rest = line.partition(" : ")
            lines.append(f"- `{name}`{': ' + rest if colon else ''}")
        else:
            lines.append("  " + line.strip() if line.strip() else "")
    return plain("\n".join(lines))


def plain(body: str) -> str:
    """Return text with reStructuredText's literals as Markdown's."""
    body = re.sub(r"``([^`]+)``", r"`\1`", body.strip())
    return re.sub(r"\.\. math::\s*(.*)", r"`\1`", body)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
