"""Golden digests and draws: exact results of forests and samplers on small generated data.

A change of these digests changes every model that users fit, and must be intended.
With a new case in `CASES`, record it by

    PYTHONPATH=tests/helpers python tests/history/test_golden_digests.py

which does not change recorded cases.
"""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from boscage import (
    BARTClassifier,
    BARTRegressor,
    BayesianTreeClassifier,
    BayesianTreeRegressor,
    MondrianForestClassifier,
    MondrianForestRegressor,
)
from flat import nested
from forests import trees_of
from generated import as_labels, rows_and_numbers, uniform
from golden import describe, hash_of
from reference.arrays import Array

GOLDEN = Path(__file__).parent / "golden_digests.json"
N_FEATURES = 4
BENT = [([0.0, 0.3, 1.0], [0.0, 0.8, 1.0]), ([], []), ([0.0, 0.5, 1.0], [0.0, 0.1, 1.0]), ([], [])]


@dataclass(frozen=True)
class Case:
    """A kind of model, its parameters, and the data that it is fitted to."""

    kind: Any
    params: dict[str, Any]
    labels: str | None = None
    dtype: str = "float32"
    n: int = 150
    rows: str = "plain"
    # Rows come in parts, and some are forgotten.
    in_parts: bool = False

    def data(self) -> tuple[Array, Array]:
        x, y = rows_and_numbers(self.n, N_FEATURES, 5, self.dtype)
        if self.rows == "ties":
            x = np.floor(8.0 * x) / 8.0
        elif self.rows == "constant":
            x[:, 2] = 0.5
        elif self.rows == "far":
            # Up to 2 ** 20 reference ranges away, on both sides.
            x[::7] *= (2.0 ** np.arange(0, 22)[: len(x[::7])])[:, np.newaxis]
            x[3::14] *= -1.0
        else:
            assert self.rows == "plain"
        target = y if self.labels is None else as_labels(y, self.labels)
        return np.ascontiguousarray(x, self.dtype), target

    def at(self) -> Array:
        """Return rows to predict: of the data, elsewhere and far away."""
        elsewhere = 3.0 * uniform(900, 40, N_FEATURES) - 1.0
        far = np.where(uniform(901, 4, N_FEATURES) < 0.5, 1e4, -1e9)
        return np.concatenate([self.data()[0][:20], elsewhere, far]).astype(self.dtype)

    def fit(self, n_jobs: int) -> Any:
        x, y = self.data()
        model = self.kind(random_state=3, n_jobs=n_jobs, **nested(self.kind, self.params))
        if not self.in_parts:
            return model.fit(x, y)
        third = self.n // 3
        for start in range(0, self.n, third):
            model.partial_fit(x[start : start + third], y[start : start + third])
        return model.forget(range(0, self.n, 9))


def forests() -> Iterator[tuple[str, Case]]:
    both: dict[str, dict[str, Any]] = {
        "default": {},
        "range": {"feature_range": (0.0, 1.0)},
        "lifetime": {"lifetime": 1.5},
        "min-samples-split": {"min_samples_split": 6},
        "realised": {"predictive": "realised"},
        "weights": {"feature_weights": [1.0, 0.5, 0.0, 3.0]},
        "learned": {"feature_weights": "learned"},
        "maps": {"feature_maps": BENT, "feature_range": (0.0, 1.0)},
        "many-trees": {"n_estimators": 30, "lifetime": 4.0, "min_samples_split": 3},
        "window": {"window_size": 60},
    }
    regressors: dict[str, dict[str, Any]] = {
        "noise-variance": {"noise_variance": 0.02},
        "realised-local": {"predictive": "realised", "noise": "local"},
        "joint-min-samples": {"posterior": "joint", "min_samples_split": 6, "lifetime": 3.0},
        "joint-trees": {"joint_kernel": "trees"},
        "joint-maps": {"posterior": "joint", "feature_maps": BENT, "feature_range": (0.0, 1.0)},
    }
    regressors["learned"] = {"feature_weights": "learned", "trend": None}
    regressors["learned-trend"] = {"feature_weights": "learned"}
    regressors["fast-loo-global"] = {"posterior": "fast"}
    regressors["trend"] = {"trend": "linear"}
    regressors["trend-maps"] = {
        "trend": "linear",
        "feature_maps": BENT,
        "feature_range": (0.0, 1.0),
        "hyperparameters": "ml",
    }
    for posterior in ("exact", "joint"):
        for rule in ("loo", "ml", "heuristic"):
            for noise in ("global", "local"):
                regressors[f"{posterior}-{rule}-{noise}"] = {
                    "posterior": posterior,
                    "hyperparameters": rule,
                    "noise": noise,
                }
    shapes: dict[str, dict[str, Any]] = {
        "float64": {"dtype": "float64"},
        "ties": {"rows": "ties"},
        "constant": {"rows": "constant"},
        "far": {"rows": "far"},
        "far-float64": {"rows": "far", "dtype": "float64"},
        "parts": {"in_parts": True},
        "parts-far": {"in_parts": True, "rows": "far"},
        "two-rows": {"n": 2},
        "one-row": {"n": 1},
        "many-rows": {"n": 1500},
    }
    for kind, labels, task, more in (
        (
            MondrianForestClassifier,
            "str",
            "classifier",
            {"discount": {"discount": 0.5}, "discount-loo": {"discount": "loo"}},
        ),
        (MondrianForestRegressor, None, "regressor", regressors),
    ):
        small: dict[str, Any] = {"n_estimators": 5, "feature_weights": None, "warm_up": 0}
        thesis = small | ({} if labels is None else {"calibration": None})
        for name, params in (both | more).items():
            yield f"{task}-{name}", Case(kind, thesis | params, labels)
        for name, shape in shapes.items():
            yield f"{task}-{name}", Case(kind, thesis, labels, **shape)
        if labels is not None:
            for name, params in (both | more).items():
                yield f"{task}-calibrated-{name}", Case(kind, small | params, labels)
            for name, shape in shapes.items():
                yield f"{task}-calibrated-{name}", Case(kind, small, labels, **shape)
    joint: dict[str, Any] = {"n_estimators": 5, "posterior": "joint", "noise": "local"}
    joint |= {"feature_weights": None, "warm_up": 0}
    for name, shape in {"parts-far": shapes["parts-far"], "more-rows": {"n": 300}}.items():
        yield f"regressor-joint-{name}", Case(MondrianForestRegressor, joint, **shape)
    together = {"n_estimators": 5, "posterior": "joint"}
    for name, shape in {"parts-far": shapes["parts-far"], "more-rows": {"n": 300}}.items():
        for kernel, params in {"joint": {"joint_kernel": "trees"}, "joint-limit": {}}.items():
            case = Case(MondrianForestClassifier, together | params, "str", **shape)
            yield f"classifier-{kernel}-{name}", case


def bayesian_trees() -> Iterator[tuple[str, Case]]:
    smc: dict[str, dict[str, Any]] = {
        "default": {},
        "exploring": {"proposal": "exploring", "max_features": 2},
        "prior": {"proposal": "prior", "expansion": "layer"},
        "empirical": {"proposal": "empirical", "candidate_order": "marginal_likelihood"},
        "multinomial": {"resampling": "multinomial", "ess_threshold": 1.0},
        "stratified": {"resampling": "stratified", "island_weights": "evidence"},
        "residual": {"resampling": "residual", "alpha_s": 0.6, "beta_s": 2.0},
        "cut-short": {"max_stages": 4},
    }
    mcmc: dict[str, dict[str, Any]] = {
        "default": {},
        "moves": {"moves": (0.4, 0.3, 0.1, 0.2), "thin": 1},
        "priors": {"alpha_s": 0.6, "beta_s": 2.0},
    }
    short = {"sampler": "mcmc", "n_chains": 3, "n_burn": 300, "n_draws": 20, "thin": 5}
    shapes: dict[str, dict[str, Any]] = {
        "float64": {"dtype": "float64"},
        "ties": {"rows": "ties"},
        "far": {"rows": "far"},
    }
    for kind, labels, task in (
        (BayesianTreeClassifier, "str", "classifier"),
        (BayesianTreeRegressor, None, "regressor"),
    ):
        for sampler, shared, variants in (
            ("smc", {"n_particles": 20, "n_islands": 3}, smc),
            ("mcmc", short, mcmc),
        ):
            start = f"bayesian-{task}-{sampler}"
            for name, params in variants.items():
                yield f"{start}-{name}", Case(kind, shared | params, labels)
            for name, shape in shapes.items():
                yield f"{start}-{name}", Case(kind, shared, labels, **shape)


def bart() -> Iterator[tuple[str, Case]]:
    small: dict[str, Any] = {"n_trees": 15, "n_chains": 3, "n_burn": 10, "n_draws": 6}
    mixed = {"local": 0.2, "cgm": 0.2, "pg": 0.2, "regrow": 0.2, "edit": 0.2}
    kernels = ("auto", "local", "growprune", "cgm", "pg", "regrow", "edit")
    variants: dict[str, dict[str, Any]] = {name: {"kernels": name} for name in kernels}
    variants["regrow"] = {"kernels": "regrow", "n_trees": 5}
    variants |= {
        "mixed": {"kernels": mixed, "n_particles": 5},
        "pg-empirical": {"kernels": "pg", "proposal": "empirical"},
        "pg-optimal": {"kernels": "pg", "proposal": "optimal", "n_particles": 4},
        "regrow-optimal": {"kernels": "regrow", "proposal": "optimal", "n_trees": 5},
        "sparse": {"sparse": True},
        "sparse-mixed": {"sparse": 0.5, "kernels": mixed},
        "one-tree": {"n_trees": 1, "thin": 3},
        "many-trees": {"n_trees": 100, "n_draws": 4},
        "deep": {"alpha_s": 0.99, "beta_s": 0.5, "k": 1.0},
    }
    shapes: dict[str, dict[str, Any]] = {
        "float64": {"dtype": "float64"},
        "ties": {"rows": "ties"},
        "constant": {"rows": "constant"},
        "far": {"rows": "far"},
        "many-rows": {"n": 1500},
    }
    for kind, labels, task, more in (
        (
            BARTRegressor,
            None,
            "regressor",
            {
                "k-learned": {"k": "learned"},
                "sigma": {"sigma": 0.2},
                "noise": {"nu": 5.0, "q": 0.75, "sigma_estimate": 0.5},
            },
        ),
        (BARTClassifier, "bool", "probit", {"k-learned": {"k": "learned"}}),
        (BARTClassifier, "str", "multinomial", {}),
    ):
        for name, params in (variants | more).items():
            yield f"bart-{task}-{name}", Case(kind, small | params, labels)
        for name, shape in shapes.items():
            yield f"bart-{task}-{name}", Case(kind, small, labels, **shape)


CASES = dict([*forests(), *bayesian_trees(), *bart()])


def found(case: Case, n_jobs: int) -> dict[str, str]:
    """Return the results of a model of the case; long ones as a hash."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # trees cut short are meant
        model = case.fit(n_jobs)
    given = describe(model, case.at())
    if hasattr(model, "partial_fit"):
        given["trees"] = hash_of(*(array for tree in trees_of(model) for array in tree.values()))
        if not hasattr(model, "predict_proba"):
            given["loo"] = hash_of(*model._model.loo_dist())
        elif model.n_rows_ > 1:
            given["loo"] = hash_of(model.loo_predict_proba())
    texts = {name: json.dumps(value, sort_keys=True) for name, value in given.items()}
    return {
        name: text.strip('"') if len(text) < 70 else hashlib.sha256(text.encode()).hexdigest()
        for name, text in texts.items()
    }


# What takes half a second or more, and has a cheaper case of the same code: fewer rows, fewer
# classes, the same settings on rows that are not far.
SLOW = {
    "regressor-many-rows",
    "classifier-joint-limit-more-rows",
    "classifier-joint-limit-parts-far",
    "classifier-joint-more-rows",
    "classifier-joint-parts-far",
    "regressor-learned-trend",
    "regressor-many-trees",
    *(f"bart-multinomial-{name}" for name in ("edit", "mixed", "pg-optimal")),
    *(f"bart-multinomial-{name}" for name in ("regrow", "regrow-optimal", "sparse-mixed")),
}


@pytest.mark.parametrize("n_jobs", [pytest.param(1, marks=pytest.mark.slow), 2])
@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.slow) if name in SLOW else name for name in CASES],
)
def test_bits_are_those_recorded(name: str, n_jobs: int) -> None:
    golden = json.loads(GOLDEN.read_text("utf-8"))
    assert found(CASES[name], n_jobs) == golden[name]


def test_every_recorded_case_is_tested() -> None:
    assert json.loads(GOLDEN.read_text("utf-8")).keys() == CASES.keys()


def test_generated_data_are_those_recorded() -> None:
    """If this test fails, the data have changed, and the other tests fail for this reason."""
    x, y = rows_and_numbers(50, 3, 1, np.float64)
    assert hash_of(x, y) == "586e02ee7366f46b5a43517a8bffbb8387ce1e8f4d7db6b9411b89f510df2bf2"
    assert as_labels(y[:6], "str").tolist() == [
        "amber",
        "amber",
        "green",
        "amber",
        "amber",
        "amber",
    ]


def main() -> None:
    golden = json.loads(GOLDEN.read_text("utf-8")) if GOLDEN.exists() else {}
    for name in CASES.keys() - golden.keys():
        golden[name] = found(CASES[name], 1)
    lines = (
        f"{json.dumps(name)}: {json.dumps(each, sort_keys=True)}"
        for name, each in sorted(golden.items())
    )
    GOLDEN.write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")


if __name__ == "__main__":
    main()
