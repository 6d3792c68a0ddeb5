"""Regression where test rows are unlike the training rows: beside them, and after them in time.

All cores. Beside: for each of the three most important features of a random forest, the rows in
the feature's upper 30 % are the test set and the others the training set. After: flights as in the
papers (Mondrian forests for large-scale regression, section 4): 10 trees, nodes below 10 rows are
not split, rows are learned in the order of their dates, and those that follow are predicted; three
stretches of the year. Peers as in quality_regression, and a Gaussian process on 1,000 rows.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from sklearn.datasets import load_diabetes, make_friedman1
from sklearn.ensemble import RandomForestRegressor
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from _common import Split, Table, arguments, data_folder, load
from boscage import GaussianMixture
from quality_regression import METRICS, PEERS, mondrian, scores

FAR = ["concrete", "california_housing", "puma32h", "diabetes", "friedman1"]
UPPER = 0.3
N_PROCESS = 1000

Score = Callable[[Split, int, int], list[float]]


def process(data: Split, trees: int, seed: int) -> list[float]:
    """Score a Gaussian process with a length scale for each feature."""
    d = data.X.shape[1]
    kernel = ConstantKernel() * RBF(np.ones(d)) + WhiteKernel()
    model = make_pipeline(
        StandardScaler(), GaussianProcessRegressor(kernel, normalize_y=True, random_state=seed)
    )
    chosen = np.random.default_rng(seed).permutation(len(data.X))[:N_PROCESS]
    model.fit(data.X[chosen], data.y[chosen])
    mean, std = model.predict(data.X_test, return_std=True)
    return scores(data.y_test, GaussianMixture.from_normal(mean, std))


def whole(name: str, n_rows: int) -> tuple[np.ndarray, np.ndarray]:
    if name == "diabetes":
        return load_diabetes(return_X_y=True)
    if name == "friedman1":
        return make_friedman1(2000, noise=1.0, random_state=0)
    data = load(name).head(n_rows, 0)
    return data.X, data.y


def beside(name: str, n_rows: int) -> list[Split]:
    x, y = whole(name, n_rows)
    forest = RandomForestRegressor(50, random_state=0, n_jobs=-1).fit(x, y)
    splits = []
    for feature in np.argsort(forest.feature_importances_)[::-1][:3]:
        order = np.argsort(x[:, feature], kind="stable")
        train, test = np.split(order, [int((1.0 - UPPER) * len(order))])
        splits.append(Split(f"{name}, feature {feature}", x[train], y[train], x[test], y[test]))
    return splits


def after(n_train: int, n_test: int) -> list[Split]:
    """Return three stretches of flights; the rows that `load` shuffles are in order of time."""
    with np.load(data_folder() / "flights.npz") as file:
        x, y = file["X"].astype(np.float32), file["y"].astype(np.float64)
    starts = np.linspace(0, len(y) - n_train - n_test, 3).astype(int)
    stretches = []
    for k, start in enumerate(starts):
        train, test = np.split(np.arange(start, start + n_train + n_test), [n_train])
        stretches.append(Split(f"flights {k + 1}", x[train], y[train], x[test], y[test]))
    return stretches


def main() -> None:
    args = arguments(__doc__, n_estimators=100, rows=4_000, flights=20_000)
    trees, n_rows = (20, 1_000) if args.quick else (args.n_estimators, args.rows)
    models: dict[str, Score] = {
        "default": mondrian(),
        "no trend": mondrian(trend=None),
        "every slope": mondrian(trend="linear"),
        "exact": mondrian(posterior="exact", noise="global"),
        **PEERS,
        "Gaussian process": process,
    }
    found: dict[str, list[list[float]]] = {}
    for data in [split for name in FAR for split in beside(name, n_rows)]:
        table = Table(f"{data.name}: {len(data.X)} rows; {trees} trees", ["", *METRICS])
        for key, score in models.items():
            found.setdefault(key, []).append(score(data, trees, 0))
            table.add(key, *found[key][-1])
    print()
    forest = np.array(found["RF, spread and leaves"])
    table = Table("beside: means over sets", ["", "RMSE/RF", "worst", "NLPD", "in 90 %", "least"])
    for key, rows in found.items():
        rmse, nlpd, _, inside = np.array(rows).T
        ratio = rmse / forest[:, 0]
        geometric = float(np.exp(np.log(ratio).mean()))
        table.add(key, geometric, ratio.max(), nlpd.mean(), inside.mean(), inside.min())
    n_train = 3_000 if args.quick else args.flights
    for data in after(n_train, n_train // 4):
        table = Table(f"{data.name}: {n_train} rows, then {n_train // 4}; 10 trees", ["", *METRICS])
        settings = {"min_samples_split": 10}
        times: dict[str, Score] = {
            "default": mondrian(**settings),
            "exact": mondrian(**settings, posterior="exact", noise="global", feature_weights=None),
            "exact, heuristic": mondrian(
                **settings,
                posterior="exact",
                noise="global",
                feature_weights=None,
                hyperparameters="heuristic",
            ),
            **PEERS,
        }
        for key, score in times.items():
            table.add(key, *score(data, 10, 0))


if __name__ == "__main__":
    main()
