"""Equation 5.1: forests that learn online are those that learn in batch."""

from __future__ import annotations

from typing import Any

import numpy as np
from benches.papers._data import load
from benches.papers._report import Effort, Section

from boscage import MondrianForestClassifier

TITLE = "Section 5.5: online and batch Mondrian forests"
PAPERS: dict[str, Any] = {"discount": 10.0, "calibration": None, "feature_weights": None}
SETTINGS = {
    "MF": "as in Figure 5.3, 10 trees",
    "online": "100 mini-batches, trees updated after each",
}


def run(section: Section, effort: Effort) -> None:
    """Compare the digests of forests that learned the same rows in one go and bit by bit."""
    rows = []
    for name in effort.of(["usps", "satimage", "letter", "dna"], ["satimage", "dna"]):
        data = load(name)
        span = (data.X.min(axis=0), data.X.max(axis=0))
        for seed in effort.seed_list(3):
            batch, online, another = (
                MondrianForestClassifier(10, feature_range=span, random_state=key, **PAPERS)
                for key in (seed, seed, seed + 1000)
            )
            batch.fit(data.X, data.y)
            order = np.random.default_rng(seed).permutation(len(data.X))
            for part in np.array_split(order, 100):
                online.partial_fit(data.X[part], data.y[part], ids=part).flush()
            another.fit(data.X, data.y)
            same = [forest.digest() == batch.digest() for forest in (online, another)]
            rows.append([name, seed, *("equal" if is_so else "differ" for is_so in same)])
    section.table(
        "Digests: batch against online in a random order, and against another seed",
        ["data", "seed", "online", "another seed"],
        rows,
    )
    section.claim(
        "the distribution of online MFs is the same as that of batch MFs",
        f"for the same seed {sum(row[2] == 'equal' for row in rows)} of {len(rows)} forests are "
        "the same bits, each grown in another random order",
        all(row[2] == "equal" and row[3] == "differ" for row in rows),
        "the digests say otherwise, which is a fault of ours",
    )
