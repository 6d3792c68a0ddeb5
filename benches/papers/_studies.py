"""Studies that have ended, kept in a file while others run: an interrupted run goes on there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TypeAlias

import numpy as np
from benches._common import Array

import boscage

#: A task, an optimiser, a seed, and the number of trials.
Study: TypeAlias = tuple[str, str, int, int]


class Studies:
    """The best value and the processor seconds of each trial, by study: a line of the file each.

    Lines of another version, or made with generated sets where those are not in use, do not count.
    Delete the file where an optimiser has changed since.
    """

    def __init__(self, path: Path, generated: bool) -> None:
        self.path = path
        self.made_with = [boscage.__version__, generated]
        self.ended: dict[Study, tuple[Array, Array]] = {}
        for line in path.read_text().splitlines() if path.exists() else []:
            try:
                made_with, study, best, took = json.loads(line)
            except ValueError:
                # The run ended while it wrote.
                continue
            if made_with == self.made_with:
                self.ended[tuple(study)] = np.array(best), np.array(took)
        if self.ended:
            print(f"{len(self.ended)} studies are those of an earlier run, in {path}", flush=True)

    def keep(self, study: Study, best: Array, took: Array) -> None:
        """Keep what a study has found, to six digits, so that the file is short."""
        kept = [[float(f"{number:.6g}") for number in numbers] for numbers in (best, took)]
        self.ended[study] = np.array(kept[0]), np.array(kept[1])
        line = json.dumps([self.made_with, study, *kept], separators=(",", ":"))
        with self.path.open("a") as file:
            # The line before may have been cut short.
            file.write(f"\n{line}\n")

    def remove(self) -> None:
        """Remove the file: all studies have ended."""
        self.path.unlink(missing_ok=True)
