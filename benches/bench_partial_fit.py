"""Time of learning from a stream, in mini-batches and row by row, compared with river's forest.

One thread. The rows arrive in a random order. River's AMFClassifier, an online Mondrian forest that
aggregates, learns the same rows; its time is counted per row and tree. Updates of our trees are
lazy, and applied on the next read: at the end ("stream"), or after every batch ("asked"), as when
each batch is predicted before it is learned. The features' ranges are given, so that no row lies
outside; in "open" they are those of the first batch.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from river.forest import AMFClassifier

from _common import SIX, Split, Table, arguments, geometric_mean, load, seconds, verdict
from boscage import MondrianForestClassifier

BATCHES = 100


def shuffled(data: Split) -> Split:
    order = np.random.default_rng(0).permutation(len(data.X))
    return Split(data.name, data.X[order], data.y[order], data.X_test, data.y_test)


def stream(
    model: MondrianForestClassifier, data: Split, n_batches: int, *, asked: bool = False
) -> None:
    for rows in np.array_split(np.arange(len(data.X)), n_batches):
        model.partial_fit(data.X[rows], data.y[rows])
        if asked:
            model.flush()
    model.predict_proba(data.X_test[:1])


def river_seconds(data: Split, trees: int) -> float:
    rows = [dict(enumerate(map(float, row))) for row in data.X]
    labels = data.y.tolist()
    model = AMFClassifier(n_estimators=trees, seed=0)

    def learn() -> None:
        for row, label in zip(rows, labels, strict=True):
            model.learn_one(row, label)

    return seconds({"river": learn}, 1)["river"]


def main() -> None:
    args = arguments(__doc__, n_estimators=100, repeats=3, river_rows=15_000, single_rows=2_000)
    trees, repeats = (10, 1) if args.quick else (args.n_estimators, args.repeats)
    river_rows, single_rows = (300, 300) if args.quick else (args.river_rows, args.single_rows)

    table = Table(
        f"Seconds to learn all rows, {trees} trees, in {BATCHES} batches",
        ["data", "batch", "stream", "ratio", "asked", "ratio", "open", "ratio"],
        width=9,
    )
    for name in SIX:
        data = shuffled(load(name))
        span = (data.X.min(axis=0), data.X.max(axis=0))

        def make(span: object = None) -> MondrianForestClassifier:
            return MondrianForestClassifier(
                trees,
                feature_range=span,
                feature_weights=None,
                warm_up=0,
                calibration=None,
                random_state=0,
            )

        took = seconds(
            {
                "batch": lambda: make(span).fit(data.X, data.y).predict_proba(data.X_test[:1]),
                "stream": lambda: stream(make(span), data, BATCHES),
                "asked": lambda: stream(make(span), data, BATCHES, asked=True),
                "open": lambda: stream(make(), data, BATCHES),
            },
            repeats,
        )
        ratios = [(took[way], took[way] / took["batch"]) for way in ("stream", "asked", "open")]
        table.add(name, took["batch"], *(figure for both in ratios for figure in both))
    print()
    for column, when in ((3, "at the end"), (5, "after every batch")):
        worst = max(row[column] for row in table.rows)
        verdict(f"worst ratio to one fit, asked {when}", worst, 3.0)

    table = Table(
        "Microseconds a row and tree, on the same rows",
        ["data", "rows", "river", *(f"{way}{end}" for way in WAYS for end in ("", ", x"))],
        width=11,
    )
    for name in SIX[:1] if args.quick else ("letter", "pendigits", "satimage", "magic04"):
        data = shuffled(load(name)).head(river_rows, 1)
        span = (data.X.min(axis=0), data.X.max(axis=0))
        few = data.head(single_rows, 1)
        rows_of = {True: data, False: few}
        river = {
            many: 1e6 * river_seconds(rows, 10) / (len(rows.X) * 10)
            for many, rows in rows_of.items()
        }
        figures = []
        for many, asked, _ in WAYS.values():
            rows = rows_of[many]
            forest = MondrianForestClassifier(
                100, feature_range=span, feature_weights=None, calibration=None, random_state=0
            )
            learn = partial(stream, forest, rows, BATCHES if many else len(rows.X), asked=asked)
            own = 1e6 * seconds({"": learn}, 1)[""] / (len(rows.X) * 100)
            figures += [own, river[many] / own]
        table.add(name, len(data.X), river[True], *figures)
    print(f"(of {BATCHES} batches, and of calls for one row each: the first {single_rows} rows)\n")
    for i, (way, (_, _, goal)) in enumerate(WAYS.items()):
        times = geometric_mean([row[4 + 2 * i] for row in table.rows])
        verdict(f"{way}: faster than river, times", times, goal, most=False)


#: Whether in batches (else by row), whether trees are read after each, and the speed relative to
#: river's.
WAYS = {
    "batches": (True, False, 100),
    "b. asked": (True, True, 100),
    "rows": (False, False, 30),
    "r. asked": (False, True, 30),
}


if __name__ == "__main__":
    main()
