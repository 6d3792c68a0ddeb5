"""The parts depend on each other as docs/architecture.md says: downwards, and without circles."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Callable, Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE, CRATE = ROOT / "python" / "boscage", ROOT / "rust" / "boscage" / "src"
#: The rooms of the crate, each above all that it may use. `bart` and `bayes` do not use `mondrian`.
ROOMS = [
    *("model_file", "mondrian", "bart", "bayes", "explain"),
    *("validate", "data", "random", "math", "control", "error"),
]
#: Files that are one thing.
PAIRS = {
    "mondrian::regression::hierarchy::branch_law": "mondrian::regression::hierarchy::branch_clock"
}
#: What stands above all rooms: the names that users import.
ROOTS = ("", "lib")
MAX_LINES = 500
MAX_FILES = 12

Graph = dict[str, set[str]]


def modules(folder: Path, suffix: str, index: str, between: str) -> dict[str, Path]:
    """The modules below a folder by their names; tests inside the crate are left out."""
    found = {}
    for file in folder.rglob(f"*{suffix}"):
        parts = file.relative_to(folder).with_suffix("").parts
        if not any(part.startswith("test") for part in parts):
            found[between.join(parts[:-1] if parts[-1] == index else parts)] = file
    return found


def graph(files: dict[str, Path], between: str, used: Callable[[str], Iterator[str]]) -> Graph:
    """Which modules each module uses. A name inside a module stands for the module.

    Names that begin with the separator are counted from the module itself.
    """
    found: Graph = {}
    for module, file in files.items():
        own = found.setdefault(PAIRS.get(module, module), set())
        for name in used(file.read_text(encoding="utf-8")):
            parts = (module + name if name.startswith(between) else name).split(between)
            while parts and between.join(parts) not in files:
                parts.pop()
            other = between.join(parts)
            own |= {PAIRS.get(other, other)} - {PAIRS.get(module, module), ""}
    return found


def of_python(text: str) -> Iterator[str]:
    """What a module of the package imports when it is imported itself."""

    def at_import(statements: list[ast.stmt]) -> Iterator[ast.ImportFrom]:
        for statement in statements:
            if isinstance(statement, ast.ImportFrom):
                yield statement
            elif isinstance(statement, ast.Try):
                yield from at_import(statement.body)

    for statement in at_import(ast.parse(text).body):
        package, _, module = (statement.module or "").partition("boscage")
        if not package and statement.module:
            yield from (f"{module}.{alias.name}".removeprefix(".") for alias in statement.names)


def of_rust(text: str) -> Iterator[str]:
    """What a file of the crate uses outside of its tests."""
    code = re.sub(r"//.*", "", re.split(r"#\[cfg\(test\)\]\n.*\bmod \w+ \{", text)[0])

    def paths(tree: str, prefix: str) -> Iterator[str]:
        head, brace, inside = tree.strip().partition("{")
        if not brace:
            yield prefix + head
            return
        depth, start = 0, 0
        inside = inside[: inside.rindex("}")] + ","
        for place, letter in enumerate(inside):
            depth += {"{": 1, "}": -1}.get(letter, 0)
            if letter == "," and depth == 0:
                yield from paths(inside[start:place], prefix + head)
                start = place + 1

    for use in re.findall(r"\buse crate::([^;]*);", code):
        yield from paths(use, "")
    rest = re.sub(r"\buse [^;]*;", "", code)
    yield from re.findall(r"\bcrate::([\w:]*\w)", rest)
    # What a room's own file takes from the others; what it passes on by `pub use`, it does not use.
    if others := "|".join(re.findall(r"\bmod (\w+);", code)):
        yield from (f"::{name}" for name in re.findall(rf"(?m)^use ({others})\b", code))
        yield from (f"::{name}" for name in re.findall(rf"(?<![\w:])({others})::", rest))


def crate() -> Graph:
    return graph(modules(CRATE, ".rs", "mod", "::"), "::", of_rust)


def package() -> Graph:
    return graph(modules(PACKAGE, ".py", "__init__", "."), ".", of_python)


@pytest.mark.parametrize("graph_of", [crate, package])
def test_there_is_no_circle_of_files(graph_of: Callable[[], Graph]) -> None:
    found = graph_of()
    assert sum(map(len, found.values())) > 300
    TopologicalSorter(found).prepare()  # refuses circles


def between_rooms(found: Graph, between: str) -> dict[str, Graph]:
    """For every room, which of its files and rooms use which others."""
    rooms: dict[str, Graph] = {}
    for module, used in found.items():
        for other in used:
            own, its = module.split(between), other.split(between)
            same = [a == b for a, b in zip(own, its, strict=False)]
            depth = [*same, False].index(False)
            if depth < len(same):
                room = rooms.setdefault(between.join(own[:depth]), {})
                room.setdefault(own[depth], set()).add(its[depth])
    return rooms


@pytest.mark.parametrize(("graph_of", "between"), [(crate, "::"), (package, ".")])
def test_there_is_no_circle_of_rooms(graph_of: Callable[[], Graph], between: str) -> None:
    rooms = between_rooms(graph_of(), between)
    assert len(rooms) > 5
    for found in rooms.values():
        TopologicalSorter(found).prepare()


def drawn() -> dict[str, dict[str, int]]:
    """For every room in the drawing of docs/architecture.md, the lines of what is in it."""
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    lines = re.search(r"```text\n(.*?)```", text, re.DOTALL)
    assert lines is not None
    found: dict[str, dict[str, int]] = {}
    above: list[tuple[int, str]] = []
    for number, line in enumerate(lines[1].splitlines()):
        indent = len(line) - len(line.lstrip())
        if indent > 6 or not line.strip(" |"):
            continue
        above = [room for room in above if room[0] < indent]
        for name in re.split(r"\s{2,}", line.strip())[0].split():
            room = above[-1][1] if above else ""
            found.setdefault(room, {})[name.strip("/")] = number
        above.append((indent, f"{above[-1][1]}/{name}".strip("/") if above else name.strip("/")))
    return found


@pytest.mark.parametrize(
    ("graph_of", "between", "top"),
    [(crate, "::", "rust/boscage/src"), (package, ".", "python/boscage")],
)
def test_the_drawing_has_no_arrow_upwards(
    graph_of: Callable[[], Graph], between: str, top: str
) -> None:
    drawing = {room: lines for room, lines in drawn().items() if room.startswith(top)}
    rooms = between_rooms(graph_of(), between)
    assert len(drawing) == {"package": 1, "crate": 4}[graph_of.__name__]
    for room, lines in drawing.items():
        found = rooms[room.removeprefix(top).strip("/").replace("/", between)]
        found = {own: used for own, used in found.items() if own not in ROOTS}
        names = {*found, *(name for used in found.values() for name in used)}
        assert names <= set(lines), f"{room}: the drawing lacks {names - set(lines)}"
        for own, used in found.items():
            for other in used:
                assert lines[own] <= lines[other], f"{room}: {own} uses {other}, drawn above it"


def test_rooms_of_the_crate_use_only_those_below_them() -> None:
    for module, used in crate().items():
        room = module.partition("::")[0]
        for other in {name.partition("::")[0] for name in used} - {room}:
            if room != "lib":
                assert ROOMS.index(room) < ROOMS.index(other), f"{module} uses {other}"


def test_rooms_have_few_files() -> None:
    files = [*(ROOT / "rust").rglob("src/**/*.rs"), *PACKAGE.rglob("*.py")]
    rooms = Counter(file.parent for file in files)
    assert len(rooms) > 50
    for room, n_files in rooms.items():
        assert n_files <= MAX_FILES, f"{room}: {n_files} files"


def test_files_are_short() -> None:
    folders = [ROOT / name for name in ("python", "rust", "tests", "benches")]
    files = [
        file for folder in folders for kind in ("py", "rs") for file in folder.rglob(f"*.{kind}")
    ]
    assert len(files) > 500
    for file in files:
        n_lines = len(file.read_text(encoding="utf-8").splitlines())
        assert n_lines <= MAX_LINES, f"{file}: {n_lines} lines"
