"""Time of a batch fit, compared with extremely randomised trees (max_features=1).

One thread. The time includes the prediction of one row, since some libraries leave part of the
work of a fit to the first prediction.
"""

from __future__ import annotations

from sklearn.ensemble import ExtraTreesClassifier, ExtraTreesRegressor

from _common import SIX, Table, arguments, geometric_mean, load, seconds, verdict
from boscage import MondrianForestClassifier, MondrianForestRegressor


def main() -> None:
    args = arguments(__doc__, n_estimators=100, repeats=5)
    trees, repeats = (10, 1) if args.quick else (args.n_estimators, args.repeats)

    table = Table(
        f"Classification: seconds to fit {trees} trees",
        ["data", "rows", "features", "Mondrian", "realised", "scikit", "ratio"],
    )
    for name in SIX:
        data = load(name)
        peer = ExtraTreesClassifier(trees, max_features=1, random_state=0)
        ours = MondrianForestClassifier(trees, feature_weights=None, random_state=0)
        lean = MondrianForestClassifier(
            trees, feature_weights=None, predictive="realised", random_state=0
        )
        took = seconds(
            {
                key: lambda m=model, d=data: m.fit(d.X, d.y).predict_proba(d.X_test[:1])
                for key, model in {"ours": ours, "lean": lean, "peer": peer}.items()
            },
            repeats,
        )
        table.add(
            name,
            *data.X.shape,
            took["ours"],
            took["lean"],
            took["peer"],
            took["ours"] / took["peer"],
        )
    ratios = table.column("ratio")
    print()
    verdict("geometric mean of ratios", geometric_mean(ratios), 0.5)
    verdict("worst ratio", max(ratios), 0.8)

    rows = 20_000 if args.quick else 200_000
    table = Table(
        "Regression: seconds to fit 10 trees, min_samples_split=10",
        ["posterior", "rows", "features", "Mondrian", "scikit", "ratio"],
    )
    data = load("flights").head(rows, 1)
    peer = ExtraTreesRegressor(10, max_features=1, min_samples_split=10, random_state=0)
    models = {"exact": {"noise": "global"}, "fast": {}, "joint": {}}
    for posterior, settings in models.items():
        ours = MondrianForestRegressor(
            10,
            min_samples_split=10,
            posterior=posterior,
            feature_weights=None,
            random_state=0,
            **settings,
        )
        took = seconds(
            {
                key: lambda m=model: m.fit(data.X, data.y).predict(data.X_test)
                for key, model in {"ours": ours, "peer": peer}.items()
            },
            min(repeats, 3),
        )
        table.add(posterior, *data.X.shape, took["ours"], took["peer"], took["ours"] / took["peer"])
    print()
    verdict("exact posterior", table.column("ratio")[0], 0.8)


if __name__ == "__main__":
    main()
