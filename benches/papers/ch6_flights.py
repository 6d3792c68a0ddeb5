"""Tables 6.1 and 6.2: delays of flights."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from benches._common import Array
from benches.papers._data import flights_2008, in_order
from benches.papers._gaussian_process import ScaledProcess, description
from benches.papers._report import Effort, Section, show, spread
from scipy.stats import norm
from sklearn.ensemble import ExtraTreesRegressor, RandomForestRegressor

from boscage import MondrianForestRegressor
from boscage.metrics import nlpd

TITLE = "Tables 6.1 and 6.2: flight delays"
TREES = 10
COMMON: dict[str, Any] = {"n_estimators": TREES, "min_samples_split": 10, "feature_weights": None}
EXACT: dict[str, Any] = {"posterior": "exact", "noise": "global", "prior_scale": None}
MONDRIAN: dict[str, dict[str, Any]] = {
    "MF, heuristic (the thesis)": {**COMMON, **EXACT, "hyperparameters": "heuristic"},
    "MF, marginal likelihood": {**COMMON, **EXACT, "hyperparameters": "ml"},
    "MF, leave-one-out": {**COMMON, **EXACT, "hyperparameters": "loo"},
    "MF, fast (6.3.3)": {**COMMON, "posterior": "fast", "prior_scale": 1.0},
    "MF, joint, local noise": COMMON,
    "MF, our defaults but 10 trees": {"n_estimators": TREES, "min_samples_split": 10},
}
FORESTS: dict[str, Callable[[int], Any]] = {
    "RF": lambda seed: RandomForestRegressor(TREES, min_samples_leaf=5, random_state=seed),
    "ERT": lambda seed: ExtraTreesRegressor(TREES, min_samples_leaf=5, random_state=seed),
}
GP_ROWS = 1500
SETTINGS = {
    "protocol": "the first N rows in order of time train, the 100,000 that follow test (fewer "
    "with quick sizes)",
    "trees": f"{TREES}",
    "MF": "min_samples_split=10, equal rates unless it says so",
    "RF, ERT": "scikit-learn's, min_samples_leaf=5; normal, with mean and variance of the trees' "
    "predictions",
    "intervals": "normal, from each method's mean and standard deviation, as in the thesis",
}
#: Table 6.1 (700K/100K, 2M/100K, 5M/100K): RMSE and NLPD; ± is the standard error of 3 runs.
TABLE = [
    ["rBCM", "27.1 / 9.1", "34.4 / 8.4", "35.5 / 8.8"],
    ["RF", "24.07 ± 0.02 / 5.06 ± 0.02", "27.3 ± 0.01 / 5.19 ± 0.02", "39.47 ± 0.02 / 6.90 ± 0.05"],
    [
        "ERT",
        "24.32 ± 0.02 / 6.22 ± 0.03",
        "27.95 ± 0.02 / 6.16 ± 0.01",
        "38.38 ± 0.02 / 8.41 ± 0.09",
    ],
    [
        "MF",
        "26.57 ± 0.04 / 4.89 ± 0.02",
        "29.46 ± 0.02 / 4.97 ± 0.01",
        "40.13 ± 0.05 / 6.91 ± 0.06",
    ],
]
LEVELS = np.arange(0.1, 0.95, 0.1)
#: Table 6.2: observed less ideal share of the test rows in central intervals.
CALIBRATION = {
    ("700K", "RF"): [-0.02, -0.04, -0.05, -0.06, -0.06, -0.06, -0.05, -0.06, -0.07],
    ("700K", "ERT"): [-0.04, -0.07, -0.11, -0.14, -0.16, -0.18, -0.19, -0.19, -0.18],
    ("700K", "MF"): [-0.01, -0.02, -0.01, 0, 0.02, 0.03, 0.03, 0.02, 0],
    ("2M", "RF"): [-0.02, -0.04, -0.05, -0.06, -0.05, -0.04, -0.03, -0.03, -0.04],
    ("2M", "ERT"): [-0.04, -0.08, -0.12, -0.15, -0.17, -0.18, -0.19, -0.18, -0.16],
    ("2M", "MF"): [-0.02, -0.04, -0.05, -0.05, -0.03, 0, 0.02, 0.03, 0.01],
    ("5M", "RF"): [-0.03, -0.06, -0.08, -0.09, -0.1, -0.1, -0.11, -0.1, -0.1],
    ("5M", "ERT"): [-0.04, -0.07, -0.11, -0.14, -0.16, -0.18, -0.19, -0.19, -0.18],
    ("5M", "MF"): [-0.02, -0.04, -0.05, -0.06, -0.06, -0.05, -0.05, -0.05, -0.07],
}


class Result(NamedTuple):
    """Of a fit: error, negative log density, calibration, seconds of learning and of predicting."""

    rmse: float
    nlpd: float
    calibration: Array
    seconds: tuple[float, float]
    #: Of the intervals between the quantiles of the whole predictive distribution.
    own_calibration: Array = LEVELS


def judge(
    y: Array, mean: Array, std: Array, log_loss: float, seconds: tuple[float, float]
) -> Result:
    """Return what the tables show."""
    rmse = float(np.sqrt(np.mean((y - mean) ** 2)))
    return Result(rmse, log_loss, coverage(y, mean, std) - LEVELS, seconds)


def coverage(y: Array, mean: Array, std: Array) -> Array:
    """Share of targets in central normal intervals."""
    away = np.abs(y - mean) / std
    return np.array([np.mean(away <= norm.ppf(0.5 + level / 2.0)) for level in LEVELS])


def normal_nlpd(y: Array, mean: Array, std: Array) -> float:
    """Mean negative logarithm of normal densities."""
    return float(-norm.logpdf(y, mean, std).mean())


def mondrian(
    options: dict[str, Any], seed: int, X: Array, y: Array, X_test: Array, y_test: Array
) -> Result:
    """Fit and judge a Mondrian forest; NLPD is that of the whole mixture, as in (6.5)."""
    start = time.process_time()
    forest = MondrianForestRegressor(random_state=seed, **options).fit(X, y).flush()
    learned = time.process_time()
    parts = [
        forest.predict_dist(part) for part in np.array_split(X_test, -(-len(X_test) // 10_000))
    ]
    log_loss = [
        nlpd(of, part) * len(of)
        for of, part in zip(np.array_split(y_test, len(parts)), parts, strict=True)
    ]
    mean, std = (
        np.concatenate([getattr(part, name) for part in parts]) for name in ("mean", "std")
    )
    seconds = (learned - start, time.process_time() - learned)
    below = np.concatenate(
        [part.cdf(of) for of, part in zip(np.array_split(y_test, len(parts)), parts, strict=True)]
    )
    own = np.array([np.mean(np.abs(below - 0.5) <= level / 2.0) for level in LEVELS]) - LEVELS
    result = judge(y_test, mean, std, sum(log_loss) / len(y_test), seconds)
    return result._replace(own_calibration=own)


def forest(
    make: Callable[[int], Any], seed: int, X: Array, y: Array, X_test: Array, y_test: Array
) -> Result:
    """Fit and judge a forest of scikit-learn's."""
    start = time.process_time()
    model = make(seed).fit(X, y)
    learned = time.process_time()
    each = np.array([tree.predict(X_test) for tree in model.estimators_])
    # Where all ten trees agree to the bit the density would be infinite.
    mean, std = each.mean(axis=0), np.maximum(each.std(axis=0), 0.03)
    seconds = (learned - start, time.process_time() - learned)
    return judge(y_test, mean, std, normal_nlpd(y_test, mean, std), seconds)


def gaussian_process(
    seed: int, X: Array, y: Array, X_test: Array, y_test: Array, n_rows: int
) -> Result:
    """Fit and judge a Gaussian process; an exact one is of some of the training rows."""
    process = ScaledProcess(seed, n_rows)
    start = time.process_time()
    model = process.fit(X, y)
    learned = time.process_time()
    mean, std = model.predict(X_test)
    seconds = (learned - start, time.process_time() - learned)
    return judge(y_test, mean, std, normal_nlpd(y_test, mean, std), seconds)


def run(section: Section, effort: Effort) -> None:
    """Compute both tables."""
    papers = flights_2008()
    X, y = papers or in_order("flights")
    n_test = effort.of(100_000, 10_000)
    sizes = (
        [700_000, 2_000_000, 5_000_000]
        if papers
        else effort.of([20_000, 60_000, 173_853], [5000, 20_000])
    )
    sizes = [size for size in sizes if size + n_test <= len(X)] or [len(X) // 2]
    section.text(
        "All flights of 2008 in the United States, the rows of the thesis."
        if papers
        else "The rows of the thesis (5.9 million flights of the United States in 2008) are not "
        "at hand (see "
        "`flights_2008` in `benches/papers/_data.py` for how to supply them). These are the "
        "273,853 flights from New York "
        "in 2013 with the same eight attributes: another place, another year, fewer rows, so the "
        "figures cannot be equal."
    )
    section.table(
        "Table 6.1 of the thesis (RMSE / NLPD)",
        ["method", "700K/100K", "2M/100K", "5M/100K"],
        TABLE,
    )
    gp_rows = effort.of(GP_ROWS, 300)
    section.settings["GP"] = description(gp_rows)
    found: dict[tuple[int, str], list[Result]] = {}
    for size in sizes:
        parts = (X[:size], y[:size], X[size : size + n_test], y[size : size + n_test])
        for seed in effort.seed_list(3):
            for name, options in MONDRIAN.items():
                found.setdefault((size, name), []).append(mondrian(options, seed, *parts))
            for name, make in FORESTS.items():
                found.setdefault((size, name), []).append(forest(make, seed, *parts))
            found.setdefault((size, "GP"), []).append(gaussian_process(seed, *parts, gp_rows))
        mean, std = np.full(len(parts[3]), y[:size].mean()), np.full(len(parts[3]), y[:size].std())
        found[size, "constant"] = [
            judge(parts[3], mean, std, normal_nlpd(parts[3], mean, std), (0.0, 0.0))
        ]
    names = [*MONDRIAN, *FORESTS, "GP", "constant"]
    for size in sizes:
        rows = [
            [
                name,
                spread([r.rmse for r in found[size, name]], 2),
                spread([r.nlpd for r in found[size, name]], 3),
                *(float(np.mean([r.seconds[i] for r in found[size, name]])) for i in (0, 1)),
            ]
            for name in names
        ]
        section.table(
            f"Here: {size:,} rows, the next {n_test:,} to test with",
            ["method", "RMSE", "NLPD", "s to learn", "s to predict"],
            rows,
        )
    columns = ["rows", "method", *(f"{level:.1f}" for level in LEVELS)]
    section.table(
        "Table 6.2 of the thesis: share of test rows in central intervals, less the ideal one",
        columns,
        [[*key, *(f"{value:g}" for value in values)] for key, values in CALIBRATION.items()],
    )
    calibration = {
        key: np.mean([r.calibration for r in results], axis=0) for key, results in found.items()
    }
    section.table(
        "The same here",
        columns,
        [
            [f"{size:,}", name, *(f"{value:.2f}" for value in calibration[size, name])]
            for size in sizes
            for name in names
        ],
    )
    section.table(
        "The same for intervals between the quantiles of the whole predictive distribution",
        columns,
        [
            [f"{size:,}", name, *(f"{value:.2f}" for value in own_calibration(found[size, name]))]
            for size in sizes
            for name in MONDRIAN
        ],
    )
    check(section, sizes, found, calibration)


def own_calibration(results: list[Result]) -> Array:
    """Return the mean over seeds."""
    each: Array = np.array([r.own_calibration for r in results])
    mean: Array = each.mean(axis=0)
    return mean


def check(
    section: Section,
    sizes: list[int],
    found: dict[tuple[int, str], list[Result]],
    calibration: dict[tuple[int, str], Array],
) -> None:
    """Check the claims of section 6.5.2."""
    own = "MF, heuristic (the thesis)"

    def mean(name: str, what: str) -> list[float]:
        return [float(np.mean([getattr(r, what) for r in found[size, name]])) for size in sizes]

    def listed(*names: str, what: str) -> str:
        return "; ".join(f"{name} " + ", ".join(map(show, mean(name, what))) for name in names)

    section.claim(
        "RF and ERT have a lower RMSE than MF by a few minutes (on 700K and 2M rows)",
        listed("RF", "ERT", own, what="rmse"),
        all(
            max(rf, ert) < mf
            for rf, ert, mf in zip(
                mean("RF", "rmse"), mean("ERT", "rmse"), mean(own, "rmse"), strict=True
            )
        ),
        "the test months differ from the months before, and forests that fit these more closely "
        "gain nothing on them",
    )
    section.claim(
        "MF has a better NLPD than RF and ERT (on 700K and 2M rows)",
        listed(own, "RF", "ERT", what="nlpd"),
        all(
            mf < min(rf, ert)
            for mf, rf, ert in zip(
                mean(own, "nlpd"), mean("RF", "nlpd"), mean("ERT", "nlpd"), strict=True
            )
        ),
        "the variance of ten trees happens to be large where delays are",
    )
    size = sizes[-1]
    worst = {
        name: float(np.abs(calibration[size, name]).max())
        for name in (own, "RF", "ERT", "MF, our defaults but 10 trees")
    }
    section.claim(
        "MF is clearly better calibrated than RF and ERT",
        f"greatest distance from the ideal at {size:,} rows: "
        + ", ".join(f"{n} {v:.2f}" for n, v in worst.items()),
        worst[own] < min(worst["RF"], worst["ERT"]),
        "delays have a long tail, so that a normal interval wide enough for it holds too many "
        "rows in its middle: MF with the "
        "heuristic has one noise variance for all flights and is under-confident, where RF and "
        "ERT are over-confident",
    )
    section.claim(
        "RF and ERT are over-confident, ERT more so",
        ", ".join(f"{n} {calibration[size, n].mean():.2f}" for n in ("RF", "ERT"))
        + " on average over the levels",
        calibration[size, "ERT"].mean() < calibration[size, "RF"].mean() < 0.0,
        "one of them holds more rows than it should, or their order is the other one",
    )
