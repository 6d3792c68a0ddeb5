"""Accuracy and log loss on real data, with scikit-learn's forests; depths of trees (Table 5.1).

All cores. Means over seeds. The test set is that of the source, or a fixed quarter of the rows.
"""

from __future__ import annotations

import numpy as np
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
from sklearn.metrics import log_loss

from _common import SIX, Array, Table, arguments, load, verdict
from boscage import MondrianForestClassifier

#: Table 5.1 of the thesis: average depth and its standard deviation.
DEPTHS = {"usps": (19.1, 1.3), "satimage": (17.4, 1.6), "letter": (23.2, 1.8), "dna": (12.0, 0.3)}
#: Largest difference by which learned rates may be less accurate than a random forest.
WITHIN = 0.015


def depth(model: MondrianForestClassifier) -> Array:
    """Return each tree's average depth of a row."""
    depths = []
    for tree in model.trees_:
        of_node = np.zeros(len(tree.parent))
        above = np.asarray(tree.parent)
        while np.any(above >= 0):
            of_node += above >= 0
            above = np.where(above >= 0, tree.parent[above], -1)
        leaf = tree.children_left < 0
        depths.append(np.average(of_node[leaf], weights=tree.n_rows[leaf]))
    return np.array(depths)


def main() -> None:
    args = arguments(__doc__, n_estimators=100, seeds=3)
    trees, seeds = (20, 1) if args.quick else (args.n_estimators, args.seeds)
    names = ["satimage", "dna"] if args.quick else [*SIX, "madelon"]
    makers = {
        "papers": lambda s: MondrianForestClassifier(
            trees, calibration=None, feature_weights=None, random_state=s, n_jobs=-1
        ),
        "Mondrian": lambda s: MondrianForestClassifier(
            trees, feature_weights=None, random_state=s, n_jobs=-1
        ),
        "learned": lambda s: MondrianForestClassifier(trees, random_state=s, n_jobs=-1),
        "loo": lambda s: MondrianForestClassifier(trees, discount="loo", random_state=s, n_jobs=-1),
        "RF": lambda s: RandomForestClassifier(trees, random_state=s, n_jobs=-1),
        "ERT": lambda s: ExtraTreesClassifier(trees, random_state=s, n_jobs=-1),
        "ERT-1": lambda s: ExtraTreesClassifier(trees, max_features=1, random_state=s, n_jobs=-1),
    }
    accuracy: dict[str, dict[str, float]] = {}
    loss: dict[str, dict[str, float]] = {}
    depths: dict[str, Array] = {}
    for name in names:
        data = load(name)
        accuracy[name], loss[name] = {}, {}
        for key, make in makers.items():
            found = []
            for seed in range(seeds):
                model = make(seed).fit(data.X, data.y)
                p = model.predict_proba(data.X_test)
                hit = np.mean(model.classes_[p.argmax(axis=1)] == data.y_test)
                found.append((hit, log_loss(data.y_test, p, labels=model.classes_)))
                if key == "Mondrian" and seed == 0:
                    depths[name] = depth(model)
            accuracy[name][key], loss[name][key] = map(float, np.mean(found, axis=0))

    for title, figures in (("Accuracy", accuracy), ("Log loss", loss)):
        table = Table(f"{title}, {trees} trees, mean of {seeds} seeds", ["data", *makers])
        for name, row in figures.items():
            table.add(name, *row.values())
        table.add("mean", *(float(np.mean([row[k] for row in figures.values()])) for k in makers))

    print()
    means = {k: float(np.mean([row[k] for row in accuracy.values()])) for k in makers}
    verdict("learned rates, mean accuracy less RF's", means["learned"] - means["RF"], 0, most=False)
    for name in {"dna", "madelon"} & accuracy.keys():
        less = accuracy[name]["RF"] - accuracy[name]["learned"]
        verdict(f"{name}: below RF by", less, WITHIN)

    table = Table("Average depth of a row", ["data", "depth", "+-", "thesis", "+-"])
    for name, each in depths.items():
        table.add(name, float(each.mean()), float(each.std()), *DEPTHS.get(name, ("", "")))


if __name__ == "__main__":
    main()
