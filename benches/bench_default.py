"""Time of default regression forests, compared with random forests.

One thread, processor seconds, Friedman's function of 10 features. A fit includes the prediction of
one row, since part of the work of a fit may be left to the first prediction. Predictions are means,
or means with standard deviations, of 5,000 rows.

--largest 100000 adds fits of so many rows.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable

from sklearn.datasets import make_friedman1
from sklearn.ensemble import RandomForestRegressor

from _common import Table, arguments, verdict
from boscage import MondrianForestRegressor

AT = 5_000


def processor_seconds(calls: dict[str, Callable[[], object]], repeats: int) -> dict[str, float]:
    """Return the shortest processor time of each call; calls alternate."""
    best = dict.fromkeys(calls, math.inf)
    for _ in range(repeats):
        for name, call in calls.items():
            start = time.process_time()
            call()
            best[name] = min(best[name], time.process_time() - start)
    return best


def main() -> None:
    args = arguments(__doc__, largest=10_000, repeats=3)
    rows = [n for n in (300, 1_000, 3_000, 10_000, 30_000, 100_000) if n <= args.largest]
    if args.quick:
        rows = rows[:2]
    table = Table(
        "Processor seconds, 100 trees, 10 features",
        ["rows", "fit", "forest", "ratio fit", "mean", "and std", "forest", "ratio", "ratio std"],
        width=10,
    )
    X, y = make_friedman1(max(rows) + AT, n_features=10, noise=1.0, random_state=0)
    at = X[-AT:]
    for n in rows:
        ours = MondrianForestRegressor(random_state=0, n_jobs=1)
        theirs = RandomForestRegressor(random_state=0, n_jobs=1)
        repeats = args.repeats if n <= 1_000 else 1
        fit = processor_seconds(
            {
                "ours": lambda n=n, model=ours: model.fit(X[:n], y[:n]).predict(at[:1]),
                "theirs": lambda n=n, model=theirs: model.fit(X[:n], y[:n]).predict(at[:1]),
            },
            repeats,
        )
        predict = processor_seconds(
            {
                "mean": lambda model=ours: model.predict(at),
                "std": lambda model=ours: model.predict(at, return_std=True),
                "theirs": lambda model=theirs: model.predict(at),
            },
            args.repeats,
        )
        table.add(
            f"{n:,}",
            fit["ours"],
            fit["theirs"],
            fit["ours"] / fit["theirs"],
            *predict.values(),
            predict["mean"] / predict["theirs"],
            predict["std"] / predict["theirs"],
        )
    print()
    ratios = dict(zip(rows, table.column("ratio fit"), strict=True))
    for n, bound in ((10_000, 2.0), (100_000, 4.0)):
        if n in ratios:
            verdict(f"fit of {n:,} rows", ratios[n], bound)
    verdict("mean and standard deviation", max(table.column("ratio std")), 5.0)


if __name__ == "__main__":
    main()
