"""Speed-up by threads, with a check that results are equal bit for bit."""

from __future__ import annotations

import os

from _common import Table, arguments, geometric_mean, load, seconds, verdict
from boscage import MondrianForestClassifier


def main() -> None:
    args = arguments(__doc__, n_estimators=100, repeats=5, n_jobs=2)
    trees, repeats = (20, 2) if args.quick else (args.n_estimators, args.repeats)
    n = args.n_jobs
    if (os.cpu_count() or 1) < n:
        raise SystemExit(f"this machine has {os.cpu_count()} cores, --n-jobs asks for {n}")
    table = Table(
        f"Seconds on 1 and on {n} threads, {trees} trees",
        [
            "data",
            "fit 1",
            f"fit {n}",
            "speed-up",
            "predict 1",
            f"predict {n}",
            "speed-up",
            "same bits",
        ],
        width=11,
    )
    for name in ("letter", "usps", "satimage", "pendigits", "magic04"):
        data = load(name)
        one = MondrianForestClassifier(trees, feature_weights=None, n_jobs=1, random_state=0)
        many = MondrianForestClassifier(trees, feature_weights=None, n_jobs=n, random_state=0)
        fit = seconds(
            {k: lambda m=m, d=data: m.fit(d.X, d.y) for k, m in (("1", one), ("n", many))}, repeats
        )
        predict = seconds(
            {
                k: lambda m=m, d=data: m.predict_proba(d.X_test)
                for k, m in (("1", one), ("n", many))
            },
            repeats,
        )
        table.add(
            name,
            *fit.values(),
            fit["1"] / fit["n"],
            *predict.values(),
            predict["1"] / predict["n"],
            "yes" if one.digest() == many.digest() else "NO",
        )
    print()
    verdict("fit, geometric mean", geometric_mean(r[3] for r in table.rows), 0.9 * n, most=False)
    verdict(
        "predict, geometric mean", geometric_mean(r[6] for r in table.rows), 0.9 * n, most=False
    )


if __name__ == "__main__":
    main()
