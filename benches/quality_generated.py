"""Defaults on generated problems of many kinds, beside scikit-learn's forests and boosted trees.

All cores for regression, one for classification. Twenty problems of regression (root mean squared
error, density and coverage) and eighteen of classification (log loss and errors) with --rows
training rows and 2,000 test rows each: smooth and stepped functions, heavy tails, counts, zeros,
categories as numbers, indicators, many useless features, rare and many classes, wrong labels. None
was left out because of its result. One rule came from them: that tails have to confirm a slope of
the trend. No data files are needed.
"""

from __future__ import annotations

from _common import Table, arguments, geometric_mean
from _generated import CLASSES, NUMBERS, Problem, generated
from quality_classification import makers
from quality_classification import scores as class_scores
from quality_regression import PEERS, mondrian

#: Errors may be zero.
FLOOR = 1e-3
#: Peers by their names in classification, and their keys among those of regression.
PEER_KEYS = {
    "RF": "RF, spread",
    "ERT": "ERT, spread",
    "boosting": "boosting",
    "LightGBM": "LightGBM",
}


def regression(problems: dict[str, Problem], n_rows: int, trees: int, seed: int) -> None:
    """Print the default's figures, and its errors over those of others."""
    peers = {name: PEERS[key] for name, key in PEER_KEYS.items() if key in PEERS}
    over = [f"RMSE/{name}" for name in [*peers, "best"]]
    table = Table(
        f"Regression, {n_rows} rows, {trees} trees", ["", "RMSE", *over, "NLPD", "in 90 %"], 14
    )
    default = mondrian()
    for data in generated(problems, n_rows, seed):
        rmse, density, _, inside = default(data, trees, seed)
        errors = [score(data, trees, seed)[0] for score in peers.values()]
        ratios = [rmse / error for error in [*errors, min(errors)]]
        table.add(data.name, rmse, *ratios, density, inside)
    means = [geometric_mean(table.column(name)) for name in over]
    table.add("geometric mean", "", *means, "", "")


def classification(problems: dict[str, Problem], n_rows: int, trees: int, seed: int) -> None:
    """Print log loss and errors of the default and of the joint posterior, and over others'."""
    make = makers(trees)
    ours = ["default", "joint"]
    peers = [name for name in PEER_KEYS if name in make]
    found = {
        data.name: {name: class_scores(make[name](seed), data) for name in [*ours, *peers]}
        for data in generated(problems, n_rows, seed)
    }
    for metric, what in enumerate(["log loss", "errors"]):
        over = [f"{own}/{peer}" for own in ours for peer in ["RF", "best"]]
        table = Table(
            f"Classification, {what}, {n_rows} rows, {trees} trees", ["", *ours, *over], 14
        )
        for problem, scores in found.items():
            of = {name: max(figures[metric], FLOOR) for name, figures in scores.items()}
            best = min(of[name] for name in peers)
            ratios = [of[own] / peer for own in ours for peer in (of["RF"], best)]
            table.add(problem, *(of[own] for own in ours), *ratios)
        table.add("geometric mean", "", "", *(geometric_mean(table.column(name)) for name in over))


def main() -> None:
    args = arguments(__doc__, rows=1000, n_estimators=100, seed=0)
    n_rows, trees = (100, 20) if args.quick else (args.rows, args.n_estimators)
    every = 4 if args.quick else 1
    regression(dict(list(NUMBERS.items())[::every]), n_rows, trees, args.seed)
    classification(dict(list(CLASSES.items())[::every]), n_rows, trees, args.seed)


if __name__ == "__main__":
    main()
