"""Columns of text: Mondrian forests beside models that take categories, or one-hot codes of them.

Half of the features of complete tables are turned into text, in 12 or 100 parts with names in no
order; other tables are generated: 300 cities with effects and interactions, beside a column of
names that mean nothing, and two columns of which only the combination matters. "best" is the better
of the default forest and, for classes, the joint posterior. CatBoost takes part if it is installed.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.metrics import log_loss, root_mean_squared_error
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder

from _common import Table, arguments, geometric_mean, load
from boscage import MondrianForestClassifier, MondrianForestRegressor

try:
    from catboost import CatBoostClassifier, CatBoostRegressor
except ImportError:
    CatBoostClassifier = CatBoostRegressor = None

CLASSES = ["letter", "satimage", "magic04"]
NUMBERS = ["california_housing", "concrete", "puma32h"]
CLIP = 1e-4
"""The least probability that counts; random forests predict 0."""
Sample = tuple[pd.DataFrame, np.ndarray]


def in_words(name: str, seed: int, n_rows: int, n_parts: int) -> Sample:
    """A table half of whose features are the names of parts of their values."""
    data = load(name, seed=seed)
    rng = np.random.default_rng(seed)
    X, y = np.concatenate([data.X, data.X_test]), np.concatenate([data.y, data.y_test])
    X, y = X[:n_rows].astype(np.float64), y[:n_rows]
    table = pd.DataFrame(X, columns=[f"x{d}" for d in range(X.shape[1])])
    for d in rng.permutation(X.shape[1])[: X.shape[1] // 2]:
        part = pd.qcut(X[:, d], n_parts, labels=False, duplicates="drop")
        names = np.array([f"v{i}" for i in rng.permutation(n_parts)])
        table[f"x{d}"] = names[part]
    return table, y


def cities(seed: int, n_rows: int, classes: bool) -> Sample:
    """Effects of 300 cities, most of them rare, and an interaction with a number."""
    rng = np.random.default_rng(seed)
    city = rng.choice(300, n_rows, p=rng.dirichlet(np.full(300, 0.5)))
    kind, x = rng.integers(0, 5, n_rows), rng.normal(size=(n_rows, 4))
    level, slope, of_kind = rng.normal(size=300), 0.5 * rng.normal(size=300), rng.normal(size=5)
    y = level[city] + slope[city] * x[:, 1] + of_kind[kind] + np.sin(2.0 * x[:, 0])
    y += 0.5 * rng.normal(size=n_rows)
    table = pd.DataFrame(x, columns=list("pqrs"))
    for name, codes in (("city", city), ("kind", kind), ("none", rng.integers(0, 300, n_rows))):
        table[name] = [f"{name} {code}" for code in codes]
    return table, np.digitize(y, [-1.0, 1.0]) if classes else y


def combination(seed: int, n_rows: int, classes: bool) -> Sample:
    """Two columns, neither of which matters alone."""
    rng = np.random.default_rng(seed)
    codes, x = rng.integers(0, 6, (2, n_rows)), rng.normal(size=(n_rows, 3))
    effects = rng.normal(size=(6, 6))
    effects -= effects.mean(axis=0)
    effects -= effects.mean(axis=1, keepdims=True)
    y = 2.0 * effects[tuple(codes)] + x[:, 0] + 0.3 * rng.normal(size=n_rows)
    table = pd.DataFrame(x, columns=list("pqr"))
    for name, column in zip("ab", codes, strict=True):
        table[name] = [f"{name} {code}" for code in column]
    return table, np.digitize(y, [-1.0, 1.0]) if classes else y


def samples(seed: int, n_rows: int) -> dict[str, tuple[bool, Sample]]:
    found = {}
    for name in CLASSES + NUMBERS:
        found[name] = name in CLASSES, in_words(name, seed, n_rows, 12)
    for name in ("magic04", "california_housing"):
        found[f"{name}, 100 parts"] = name in CLASSES, in_words(name, seed, n_rows, 100)
    for classes, of in ((True, "classes"), (False, "numbers")):
        found[f"cities, {of}"] = classes, cities(seed, n_rows, classes)
        found[f"combination, {of}"] = classes, combination(seed, n_rows, classes)
    return found


def models(classes: bool, table: pd.DataFrame, trees: int, seed: int) -> dict[str, Any]:
    ours: Any = MondrianForestClassifier if classes else MondrianForestRegressor
    forest: Any = RandomForestClassifier if classes else RandomForestRegressor
    boosting: Any = HistGradientBoostingClassifier if classes else HistGradientBoostingRegressor
    catboost: Any = CatBoostClassifier if classes else CatBoostRegressor
    text = [name for name in table if table[name].dtype.kind not in "if"]
    one_hot = OneHotEncoder(handle_unknown="ignore", min_frequency=2)
    ordinal = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
    found = {"default": ours(trees, random_state=seed, n_jobs=-1)}
    if classes:
        found["joint"] = ours(trees, random_state=seed, n_jobs=-1, posterior="joint")
    for name, encoder in (("RF one-hot", one_hot), ("RF ordinal", ordinal)):
        encode = make_column_transformer((encoder, text), remainder="passthrough")
        found[name] = make_pipeline(encode, forest(trees, random_state=seed, n_jobs=-1))
    if max(table[name].nunique() for name in text) < 255:
        # Not all its categories are in each part of the rows, so these are numbered here.
        encode = make_column_transformer((ordinal, text), remainder="passthrough")
        own = boosting(random_state=seed, categorical_features=list(range(len(text))))
        found["HGB"] = make_pipeline(encode, own)
    if catboost is not None:
        options = {"verbose": 0, "allow_writing_files": False}
        found["CatBoost"] = catboost(random_seed=seed, cat_features=text, **options)
    return found


def error(model: Any, classes: bool, sample: Sample, n_rows: int) -> float:
    """Log loss or RMSE on the rows after the first ones."""
    X, y = sample
    model.fit(X[:n_rows], y[:n_rows])
    if not classes:
        return float(root_mean_squared_error(y[n_rows:], model.predict(X[n_rows:])))
    proba = np.maximum(model.predict_proba(X[n_rows:]), CLIP)
    proba /= proba.sum(axis=1, keepdims=True)
    return float(log_loss(y[n_rows:], proba, labels=np.unique(y[:n_rows])))


def main() -> None:
    args = arguments(__doc__, n_estimators=100, rows=2_000, test_rows=2_000, seeds=1)
    trees, n_rows = (20, 500) if args.quick else (args.n_estimators, args.rows)
    names = ["default", "joint", "RF one-hot", "RF ordinal", "HGB", "CatBoost"]
    title = f"{n_rows} rows; {trees} trees; log loss or RMSE"
    table = Table(title, ["", *names, "best/best peer"])
    ratios = []
    for seed in range(args.seeds):
        for name, (classes, sample) in samples(seed, n_rows + args.test_rows).items():
            # Small tables keep a third of their rows for the test.
            n_train = min(n_rows, 2 * len(sample[1]) // 3)
            found = {
                each: error(model, classes, sample, n_train)
                for each, model in models(classes, sample[0], trees, seed).items()
            }
            ours = [value for each, value in found.items() if each in names[:2]]
            peers = [value for each, value in found.items() if each in names[2:]]
            ratios.append(min(ours) / min(peers))
            table.add(name, *(found.get(each, "") for each in names), ratios[-1])
    table.add("geometric mean", *([""] * len(names)), geometric_mean(ratios))


if __name__ == "__main__":
    main()
