"""The report: sections of text, tables, figures and claims, as Markdown and as HTML."""

from __future__ import annotations

import base64
import io
import json
import os
import platform
import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import date
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import sklearn
from benches._common import Array

import boscage

ROOT = Path(__file__).resolve().parents[2]
STYLE = ROOT / "docs" / "_static" / "figures.mplstyle"

HEAD = """# The papers' experiments

The experiments of B. Lakshminarayanan, *Decision Trees and Forests: A Probabilistic Perspective*
(2016), run with this package, beside what the thesis says. `python -m benches.papers` runs them,
all or some, and writes this page; below each heading is when, and for newer runs at which commit,
it was run. (A sentence may be newer than the figures that it is about.) A figure of the thesis
shows no numbers, so there the claim is what the text says about the figure. [Where we differ from
the papers](../where-we-differ.md) says what is different on purpose.

Times are processor seconds of one thread, without predictions unless a section says so; those of
the thesis are from other machines and from Python. A spread (±) is the standard deviation over
seeds, and in Table 6.1 of the thesis the standard error.
"""


@dataclass(frozen=True)
class Effort:
    """How much to compute: sizes and numbers of seeds."""

    quick: bool = False
    seeds: int | None = None

    def of(self, full: Any, quick: Any) -> Any:
        """Return the full or the quick value."""
        return quick if self.quick else full

    def seed_list(self, full: int, quick: int = 1) -> range:
        """Return the seeds of an experiment that has `full` by default."""
        return range(self.seeds or self.of(full, quick))


@dataclass
class Section:
    """The result of an experiment, as blocks of the report."""

    name: str
    title: str
    folder: Path
    settings: dict[str, Any]
    facts: dict[str, Any] = field(default_factory=dict)
    blocks: list[dict[str, Any]] = field(default_factory=list)

    def text(self, words: str) -> None:
        """Add a paragraph."""
        self.blocks.append({"kind": "text", "text": words})

    def table(self, title: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        """Add a table; numbers are shown with four digits."""
        shown = [[show(cell) for cell in row] for row in rows]
        self.blocks.append(
            {"kind": "table", "title": title, "columns": list(columns), "rows": shown}
        )
        print(f"{self.name}: {title}")
        for row in [columns, *shown]:
            print("   ", " | ".join(map(str, row)), flush=True)

    def claim(self, paper: str, ours: str, holds: bool | None, why: str = "") -> None:
        """Add what the thesis says, what we found, whether they agree, and if not why.

        `holds` is None where our figures cannot tell.
        """
        self.blocks.append(
            {
                "kind": "claim",
                "paper": paper,
                "ours": ours,
                "holds": None if holds is None else bool(holds),
                "why": "" if holds else why,
            }
        )
        verdict = {None: "UNDECIDED", True: "agrees", False: "DIFFERS"}[self.blocks[-1]["holds"]]
        print(f"{self.name}: {verdict}: {paper} -- {ours}", flush=True)

    @contextmanager
    def figure(
        self, key: str, caption: str, rows: int = 1, columns: int = 2, **options: Any
    ) -> Iterator[Any]:
        """Yield axes to draw on, and add the picture."""
        import matplotlib

        matplotlib.use("agg")
        import matplotlib.pyplot as plt
        from PIL import Image

        with plt.style.context([STYLE, {"savefig.dpi": 75, "lines.linewidth": 1.3}]):
            size = options.pop("figsize", (4.2 * columns, 2.9 * rows))
            fig, axes = plt.subplots(rows, columns, figsize=size, squeeze=False, **options)
            yield axes
            name = f"{self.name}_{key}.png"
            picture = io.BytesIO()
            fig.savefig(picture)
            plt.close(fig)
            # With a palette a picture takes a third of the room.
            Image.open(picture).convert("RGB").quantize(48).save(self.folder / name, optimize=True)
        self.blocks.append({"kind": "figure", "file": name, "caption": caption})

    def save(self) -> None:
        """Write the section, so that reports can be put together of sections run at any time."""
        (self.folder / f"{self.name}.json").write_text(
            json.dumps({**asdict(self), "folder": "", "settings": _plain(self.settings)}, indent=1)
        )


def show(cell: Any) -> str:
    """Show a cell of a table."""
    if isinstance(cell, (float, np.floating)):
        return "-" if np.isnan(cell) else f"{cell:.4g}"
    return str(cell)


def spread(values: Sequence[float] | Array, digits: int = 3) -> str:
    """Mean and standard deviation."""
    known = np.asarray(values, dtype=np.float64)
    if len(known) == 1:
        return f"{known[0]:.{digits}f}"
    return f"{known.mean():.{digits}f} ± {known.std(ddof=1):.{digits}f}"


def averaged(seeds: Sequence[int], what: str = "seed") -> str:
    """Say over how many seeds figures are means."""
    return f"one {what}" if len(seeds) == 1 else f"means over {len(seeds)} {what}s"


def _plain(settings: Mapping[str, Any]) -> dict[str, str]:
    return {
        name: value if isinstance(value, str) else repr(value) for name, value in settings.items()
    }


def facts(seconds: float, effort: Effort, generated: bool, commit: str) -> dict[str, Any]:
    """What a reader has to know about a run."""
    return {
        "seconds": round(seconds, 1),
        # Processor seconds grow, too, where many processes share the caches.
        "load": round(os.getloadavg()[0]),
        "effort": "quick" if effort.quick else "full",
        "seeds": effort.seeds,
        "generated": generated,
        "date": date.today().isoformat(),
        "boscage": boscage.__version__,
        "commit": commit,
        "numpy": np.__version__,
        "scikit-learn": sklearn.__version__,
        "python": platform.python_version(),
        "machine": f"{_processor()}, {os.cpu_count()} cores, {platform.system()}",
    }


def commit() -> str:
    """Return the checkout's commit, marked if files differ from it; nothing outside a checkout."""
    command = ["git", "describe", "--always", "--dirty", "--exclude=*"]
    try:
        found = subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT)
    except (OSError, subprocess.CalledProcessError):
        return ""
    return found.stdout.strip()


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def write(folder: Path) -> Path:
    """Write report.md of all sections in a folder, and report.html, which holds the pictures."""
    sections = [json.loads(path.read_text()) for path in sorted(folder.glob("ch*.json"))]
    sections.sort(key=_place)
    markdown = "\n".join([HEAD, *_notes(sections), *map(_section, sections)])
    page = folder / "report.md"
    page.write_text(markdown)
    (folder / "report.html").write_text(_html(markdown, folder))
    return page


def _place(section: dict[str, Any]) -> tuple[int, int]:
    """Chapter and number of the first figure or table, for the order of the thesis."""
    found = re.search(r"\d\.(\d+)", section["title"])
    return int(section["name"][2]), int(found[1]) if found else 99


def _run_on(where: tuple[str, ...]) -> str:
    machine, *versions = where
    packages = ("boscage", "Python", "NumPy", "scikit-learn")
    named = [f"{name} {version}" for name, version in zip(packages, versions, strict=True)]
    return f"Run on {machine}; {', '.join(named)}."


def _notes(sections: list[dict[str, Any]]) -> list[str]:
    made: dict[tuple[str, ...], list[str]] = {}
    for section in sections:
        facts = section["facts"]
        keys = ("machine", "boscage", "python", "numpy", "scikit-learn")
        made.setdefault(tuple(facts[key] for key in keys), []).append(section["name"])
    most = max(made, key=lambda where: len(made[where]))
    seconds = sum(section["facts"]["seconds"] for section in sections)
    lines = [
        f"{_run_on(most)} All sections together took {seconds:.0f} processor seconds.\n",
        *(
            f"{', '.join(f'`{name}`' for name in names)}: {_run_on(where)}\n"
            for where, names in sorted(made.items())
            if where != most
        ),
    ]
    if any(s["facts"]["effort"] == "quick" for s in sections):
        lines.append(
            '"Quick sizes" are those of `--quick`: fewer seeds, particles, rows and data sets, and '
            "shorter chains, as each section shows. A verdict from them is provisional, above all "
            "one about chains.\n"
        )
    if any(s["facts"]["generated"] for s in sections):
        lines.append(
            "**Made of generated stand-ins for the data sets: this shows that the experiments "
            "run, and no more.**\n"
        )
    claims = {
        s["title"]: [b["holds"] for b in s["blocks"] if b["kind"] == "claim"] for s in sections
    }
    lines += [
        f"Of {sum(map(len, claims.values()))} claims of the thesis that are checked below, "
        f"{sum(own.count(True) for own in claims.values())} hold here, "
        f"{sum(own.count(False) for own in claims.values())} do not, and "
        f"{sum(own.count(None) for own in claims.values())} cannot be judged.\n",
        _row(["experiment", "name", "sizes", "claims", "hold"]),
        _row(["---"] * 5),
    ]
    for section in sections:
        holds = claims[section["title"]]
        sizes = section["facts"]["effort"]
        lines.append(
            _row([section["title"], f"`{section['name']}`", sizes, len(holds), holds.count(True)])
        )
    lines.append("")
    return lines


def _section(section: dict[str, Any]) -> str:
    about = section["facts"]
    n_seeds = about["seeds"]
    seeds = "" if n_seeds is None else f", {n_seeds} seed{'s' if n_seeds > 1 else ''}"
    commit = f", commit {about['commit']}" if about.get("commit") else ""
    load = f", beside other work (load {about['load']})" if about.get("load", 0) > 2 else ""
    lines = [
        f"## {section['title']}\n",
        f"(`{section['name']}`, {about['effort']} sizes{seeds}, {about['date']}{commit}, "
        f"{about['seconds']:.0f} s{load}.)\n",
    ]
    if section["settings"]:
        lines.append(
            "Settings: " + "; ".join(f"{k}: {v}" for k, v in section["settings"].items()) + ".\n"
        )
    kind = ""
    for block in section["blocks"]:
        if block["kind"] == "claim":
            if kind != "claim":
                lines.append("| the thesis | here | agree? |\n| --- | --- | --- |")
            said = {None: "**cannot be judged**: ", True: "yes", False: "**no**: "}
            verdict = said[block["holds"]] + block["why"]
            lines.append(_row([block["paper"], block["ours"], verdict]))
        elif kind == "claim":
            lines.append("")
        kind = block["kind"]
        if kind == "text":
            lines.append(block["text"] + "\n")
        elif kind == "table":
            lines += [
                f"**{block['title']}**\n",
                _row(block["columns"]),
                _row(["---"] * len(block["columns"])),
            ]
            lines += [_row(row) for row in block["rows"]] + [""]
        elif kind == "figure":
            lines.append(f"![{block['caption']}]({block['file']})\n\n*{block['caption']}*\n")
    return "\n".join([*lines, ""])


def _row(cells: Sequence[Any]) -> str:
    return "| " + " | ".join(str(cell).replace("|", "\\|") for cell in cells) + " |"


def _html(markdown: str, folder: Path) -> str:
    from markdown_it import MarkdownIt

    def embedded(found: re.Match[str]) -> str:
        data = base64.b64encode((folder / found[1]).read_bytes()).decode()
        return f'src="data:image/png;base64,{data}"'

    body = MarkdownIt("commonmark").enable("table").render(markdown)
    body = re.sub(r'src="([\w.]+\.png)"', embedded, body)
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{escape("The papers' experiments")}</title>
<style>
body {{ font: 16px/1.5 sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem }}
table {{ border-collapse: collapse; font-size: 14px }} img {{ max-width: 100% }}
td, th {{ border: 1px solid #ccc; padding: .2rem .5rem; text-align: left; vertical-align: top }}
</style></head><body>
{body}</body></html>
"""
