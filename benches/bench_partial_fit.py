"""Time of learning from a stream: in mini-batches, and one row at a time, beside river's forest.

One thread. The rows arrive in a random order. River's AMFClassifier, an online Mondrian forest that
aggregates, learns the same rows; its time is counted per row and tree. The features' ranges are
given, so that no row lies outside; --open leaves them to the first batch.
"""

from __future__ import annotations

import numpy as np
from river.forest import AMFClassifier

from _common import SIX, Split, Table, arguments, geometric_mean, load, seconds, verdict
from boscage import MondrianForestClassifier

BATCHES = 100


def shuffled(data: Split) -> Split:
    order = np.random.default_rng(0).permutation(len(data.X))
    return Split(data.name, data.X[order], data.y[order], data.X_test, data.y_test)


def stream(model: MondrianForestClassifier, data: Split, n_batches: int) -> None:
    for rows in np.array_split(np.arange(len(data.X)), n_batches):
        model.partial_fit(data.X[rows], data.y[rows])
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
        f"Seconds to learn all rows, {trees} trees",
        ["data", "batch", f"{BATCHES} batches", "ratio", "open range", "ratio open"],
    )
    for name in SIX:
        data = shuffled(load(name))
        span = (data.X.min(axis=0), data.X.max(axis=0))

        def make(span: object = None) -> MondrianForestClassifier:
            return MondrianForestClassifier(trees, feature_range=span, random_state=0)

        took = seconds(
            {
                "batch": lambda: make(span).fit(data.X, data.y).predict_proba(data.X_test[:1]),
                "stream": lambda: stream(make(span), data, BATCHES),
                "open": lambda: stream(make(), data, BATCHES),
            },
            repeats,
        )
        table.add(
            name,
            took["batch"],
            took["stream"],
            took["stream"] / took["batch"],
            took["open"],
            took["open"] / took["batch"],
        )
    print()
    verdict("worst ratio of the stream to the batch", max(table.column("ratio")), 3.0)

    table = Table(
        "Microseconds a row and tree, on the same rows",
        ["data", "rows", "river", "batches", "times", "1 row, 100", "times", "1 row, 10", "times"],
        width=11,
    )
    for name in SIX[:1] if args.quick else ("letter", "pendigits", "satimage", "magic04"):
        data = shuffled(load(name)).head(river_rows, 1)
        span = (data.X.min(axis=0), data.X.max(axis=0))
        few = data.head(single_rows, 1)
        river = 1e6 * river_seconds(data, 10) / (len(data.X) * 10)
        river_few = 1e6 * river_seconds(few, 10) / (len(few.X) * 10)

        def each(rows: Split, m: int, n_batches: int, span: object = span) -> float:
            forest = MondrianForestClassifier(m, feature_range=span, random_state=0)
            took = seconds({"": lambda: stream(forest, rows, n_batches)}, 1)[""]
            return 1e6 * took / (len(rows.X) * m)

        batches = each(data, 100, BATCHES)
        single, single_ten = each(few, 100, len(few.X)), each(few, 10, len(few.X))
        table.add(
            name,
            len(data.X),
            river,
            batches,
            river / batches,
            single,
            river_few / single,
            single_ten,
            river_few / single_ten,
        )
    print(
        f"(1 row: one row a call of partial_fit, for the first {single_rows} rows of river, too)\n"
    )
    at = [row[4] for row in table.rows], [row[6] for row in table.rows]
    verdict("mini-batches faster than river, times", geometric_mean(at[0]), 100, most=False)
    verdict("single rows faster than river, times", geometric_mean(at[1]), 30, most=False)


if __name__ == "__main__":
    main()
