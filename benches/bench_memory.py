"""Memory above the data: the peak while a process fits and predicts, and what it keeps then.

Each model runs in a separate process (Linux), with one thread.
"""

from __future__ import annotations

import json
import sys

from _common import Table, alone, arguments, load, new_peak, status

MODELS = ["averaged", "realised", "scikit ERT", "scikit RF"]
#: Largest memory of the averaged and the realised forest, in MB.
BOUNDS = {("letter", "averaged"): 150, ("usps", "averaged"): 350, ("usps", "realised"): 100}


def measure(name: str, which: str, trees: int) -> None:
    """Fit a model in this process and print its memory."""
    from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier

    from boscage import MondrianForestClassifier

    models = {
        "averaged": lambda: MondrianForestClassifier(trees, feature_weights=None, random_state=0),
        "realised": lambda: MondrianForestClassifier(
            trees, feature_weights=None, predictive="realised", random_state=0
        ),
        "scikit ERT": lambda: ExtraTreesClassifier(trees, max_features=1, random_state=0),
        "scikit RF": lambda: RandomForestClassifier(trees, random_state=0),
    }
    data = load(name)
    # Modules that are loaded on first use do not count as the model's memory.
    models[which]().set_params(n_estimators=1).fit(data.X[:50], data.y[:50]).predict(data.X[:1])
    before = new_peak()
    model = models[which]().fit(data.X, data.y)
    model.predict_proba(data.X_test[:1])
    fitted = status("VmHWM") - before, status("VmRSS") - before
    model.predict_proba(data.X_test)
    print(json.dumps([*fitted, status("VmHWM") - before]))


def main() -> None:
    if len(sys.argv) == 4:
        return measure(sys.argv[1], sys.argv[2], int(sys.argv[3]))
    args = arguments(__doc__, n_estimators=100)
    trees = 10 if args.quick else args.n_estimators
    table = Table(
        f"Megabytes above the data, {trees} trees",
        ["model", "data", "peak of fit", "kept", "peak", "bound"],
        width=14,
    )
    for name in ("letter", "usps"):
        for which in MODELS:
            figures = [round(figure, 1) for figure in alone(__file__, name, which, trees)]
            table.add(which, name, *figures, BOUNDS.get((name, which), "") if trees == 100 else "")
    return None


if __name__ == "__main__":
    main()
