"""Time of predict_proba, compared with extremely randomised trees; one thread."""

from __future__ import annotations

from sklearn.ensemble import ExtraTreesClassifier

from _common import SIX, Table, arguments, geometric_mean, load, seconds, verdict
from boscage import MondrianForestClassifier


def main() -> None:
    args = arguments(__doc__, n_estimators=100, repeats=5)
    trees, repeats = (10, 1) if args.quick else (args.n_estimators, args.repeats)
    table = Table(
        f"Microseconds a row, {trees} trees",
        ["data", "rows", "averaged", "realised", "scikit", "ratio avg", "ratio real"],
    )
    for name in SIX:
        data = load(name)
        models = {
            "averaged": MondrianForestClassifier(trees, feature_weights=None, random_state=0),
            "realised": MondrianForestClassifier(
                trees, feature_weights=None, predictive="realised", random_state=0
            ),
            "scikit": ExtraTreesClassifier(trees, max_features=1, random_state=0),
        }
        for model in models.values():
            model.fit(data.X, data.y).predict_proba(data.X_test[:1])
        took = seconds(
            {key: lambda m=m, X=data.X_test: m.predict_proba(X) for key, m in models.items()},
            repeats,
        )
        each = {key: 1e6 * t / len(data.X_test) for key, t in took.items()}
        table.add(
            name,
            len(data.X_test),
            *each.values(),
            each["averaged"] / each["scikit"],
            each["realised"] / each["scikit"],
        )
    print()
    verdict("averaged, geometric mean of ratios", geometric_mean(table.column("ratio avg")), 2.0)
    verdict("realised, geometric mean of ratios", geometric_mean(table.column("ratio real")), 1.0)


if __name__ == "__main__":
    main()
