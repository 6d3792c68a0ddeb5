"""Make the model files that must always load, and their expected results, `expected.json`.

    PYTHONPATH=tests/helpers python tests/persistence/files/make.py

Run it after a new version of the format, and after an addition to what a file can hold, with a
recipe for it below.

EXISTING FILES AND THEIR EXPECTED RESULTS ARE NEVER CHANGED OR REMOVED. This script only adds files
that do not exist yet.

What is expected comes from the model that was saved, not from the one that is loaded: its
`settings`, what it `gives`, and what it gives `then`, after it has gone on: a forest after it has
forgotten rows and seen new ones, chains after they have been continued, other samplers after a new
fit with the parameters that the file has. Only if a release changes on purpose what a sampler
draws may `then` be recorded anew, and for that sampler alone. Probabilities of joint classifiers
are solutions of equations to a tolerance, and the numbers of a calibration are searched for to one:
probabilities may be recorded anew, within 1e-7, if these are found in another way. Files of
Mondrian regressors hold rows and settings alone: their predictions and hyperparameters may be
recorded anew if a rule that chooses hyperparameters or a part of the predictive variance changes on
purpose, or if equations are solved in another way, and nothing else of them.
"""

from __future__ import annotations

import hashlib
import io
import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

import boscage
from boscage import (
    BARTClassifier,
    BARTRegressor,
    BayesianTreeClassifier,
    BayesianTreeRegressor,
    MondrianForestClassifier,
    MondrianForestRegressor,
    _core,
)
from flat import nested
from golden import describe
from stored import N_FEATURES, Data, continued, settings_of

FOLDER = Path(__file__).parent
EXPECTED = FOLDER / "expected.json"
CHECKSUM = 32
BENT = [([0.0, 0.3, 1.0], [0.0, 0.8, 1.0]), ([], []), ([0.0, 0.5, 1.0], [0.0, 0.1, 1.0])]
GIVEN = {
    "mu": 0.5,
    "gamma1": 1.0,
    "gamma2": 2.0,
    "noise_variance": 0.05,
    "coarse_variance": 0.75,
    "coarse_rate": 3.0,
}
KEPT = GIVEN | {
    "trend_variance": 0.6,
    "trend_scale": 1.5,
    "joint_gamma1": 1.25,
    "joint_gamma2": 1.5,
    "joint_noise_variance": 0.02,
    "joint_share": 0.875,
    "tree_spread": 0.5,
    "noise_rows": 20.0,
    "tail_share": 0.2,
    "tail_offset": 1.0,
    "tail_variance": 2.0,
    "core_variance": 0.4375,
}
FILLED = [0.5, (0.25, [(0, 0.5, 0.125), (2, -0.5, 0.75)]), -0.5]
UNIT: dict[str, Any] = {"feature_range": (0.0, 1.0)}

# A recipe: what the data are, and the model that is fitted to them.
Recipe = tuple[Data, Callable[[Data], Any]]


def fitted(kind: Any, data: Data, **params: Any) -> Any:
    small = {"n_estimators": 3, "feature_weights": None}
    shared = {"random_state": 7} | (small if "Mondrian" in kind.__name__ else {})
    return kind(**nested(kind, shared | params)).fit(data.x, data.y)


def forest(kind: Any, **params: Any) -> Callable[[Data], Any]:
    return lambda data: fitted(kind, data, **params)


def with_history(kind: Any, **params: Any) -> Callable[[Data], Any]:
    """Return a forest that was fitted in parts, with ids for rows, and forgot some of them."""

    def make(data: Data) -> Any:
        shared = {"random_state": 7, "feature_weights": None, "warm_up": 0}
        model = kind(3, **(shared | params))
        names = np.arange(len(data.x), dtype=np.uint64)[::-1] * 1000 + 2**63
        model.partial_fit(data.x[:20], data.y[:20], ids=names[:20])
        model.partial_fit(20.0 * data.x[20:], data.y[20:], ids=names[20:])
        return model.forget(names[[3, 17, 25]])

    return make


def emptied(kind: Any) -> Callable[[Data], Any]:
    """Return a forest that has forgotten all its rows."""

    def make(data: Data) -> Any:
        model = fitted(kind, data, **UNIT)
        return model.forget(model.ids_)

    return make


def declared(data: Data) -> Any:
    """Return a classifier with a class that has no rows."""
    model = MondrianForestClassifier(3, random_state=7, feature_weights=None, warm_up=0)
    return model.partial_fit(data.x, data.y, classes=["amber", "green", "rosé", "unseen"])


def as_from_rust(model: Any) -> Any:
    """Return the model as it is loaded from a file without metadata of the Python package."""
    return boscage.load(io.BytesIO(model._model.to_bytes(annotation="")))


def without_notes(kind: Any, **params: Any) -> Callable[[Data], Any]:
    return lambda data: as_from_rust(fitted(kind, data, **params))


def fixed_hyperparameters(data: Data) -> Any:
    """Return a regressor whose hyperparameters are given from Rust."""
    given = {name: GIVEN[name] for name in ("mu", "gamma1", "gamma2", "noise_variance")}
    model = _core.MondrianRegressor(n_estimators=3, given=given, seed=7)
    model.fit(data.x, data.y, low=np.zeros(N_FEATURES), high=np.ones(N_FEATURES))
    return boscage.load(io.BytesIO(model.to_bytes()))


def mapped_classifier(data: Data) -> Any:
    """Return a classifier with feature maps, in a file as it was when Python did not offer them.

    Its bytes are those of a classifier without, with the maps after the weights.
    """
    model = fitted(MondrianForestClassifier, data, calibration=None, **UNIT)
    blob = model._model.to_bytes(annotation="")
    ones = b"".join(
        part.tobytes() for part in (np.array([N_FEATURES], "<u8"), np.ones(N_FEATURES, "<f8"))
    )
    # The reference range's upper ends are ones, too: the weights come after them.
    at = blob.index(ones + ones) + 2 * len(ones)
    maps = b""
    for pair in BENT:
        for values in pair:
            maps += len(values).to_bytes(8, "little") + np.array(values, "<f8").tobytes()
    return _reloaded(blob[:8] + (2).to_bytes(4, "little") + blob[12:at] + maps + blob[at:-CHECKSUM])


def weighted(kind: Any, **params: Any) -> Callable[[Data], Any]:
    """Return trees of rows with weights, some of which are 0."""

    def make(data: Data) -> Any:
        weights = np.resize([0.25, 1.0, 0.0, 3.5, 1e-3], len(data.x))
        return kind(**nested(kind, {"random_state": 7} | params)).fit(data.x, data.y, weights)

    return make


def weighted_forest(kind: Any, **params: Any) -> Callable[[Data], Any]:
    """Return a forest of rows with weights, of which some came later and some have left."""

    def make(data: Data) -> Any:
        weights = np.resize([0.25, 1.0, 0.0, 3.5, 1e-3], len(data.x))
        shared = {"random_state": 7, "feature_weights": None, "warm_up": 0}
        model = kind(3, **(shared | params))
        half = len(data.x) // 2
        model.partial_fit(data.x[:half], data.y[:half], sample_weight=weights[:half])
        model.partial_fit(data.x[half:], data.y[half:], sample_weight=weights[half:])
        return model.forget(model.ids_[5:9])

    return make


def unknown_prior(kind: Any, **params: Any) -> Callable[[Data], Any]:
    """Return trees under a prior of the user's own, which only Rust offers."""

    def make(data: Data) -> Any:
        blob = fitted(kind, data, alpha_s=0.9375, beta_s=0.5, **params)._model.to_bytes(
            annotation=""
        )
        prior = (2).to_bytes(8, "little") + np.array([0.9375, 0.5], "<f8").tobytes()
        at = blob.index(prior)
        return _reloaded(blob[:at] + bytes(8) + blob[at + len(prior) : -CHECKSUM])

    return make


def _reloaded(content: bytes) -> Any:
    """Return the model of some bytes that lack the checksum, which must save to the same bytes."""
    blob = content + hashlib.sha256(content).digest()
    model = boscage.load(io.BytesIO(blob))
    assert model._model.to_bytes(annotation="") == blob
    return model


def mondrian() -> dict[str, Recipe]:
    classes, numbers = MondrianForestClassifier, MondrianForestRegressor
    wide = Data(dtype="float64")
    found: dict[str, Recipe] = {}
    for label in ("int", "str", "bool", "float"):
        found[f"classifier-{label}-labels"] = Data(label), forest(classes, **UNIT)
    ints, bools = Data("int"), Data("bool")
    found |= {
        "classifier-float64": (Data("str", "float64"), forest(classes)),
        "classifier-history": (Data("str"), with_history(classes, **UNIT)),
        "classifier-history-float64": (Data("int", "float64"), with_history(classes)),
        "classifier-window": (bools, forest(classes, window_size=20)),
        "classifier-emptied": (ints, emptied(classes)),
        "classifier-declared": (Data("str"), declared),
        "classifier-realised": (ints, forest(classes, predictive="realised")),
        "classifier-settings": (
            ints,
            forest(classes, lifetime=2.5, min_samples_split=4, discount=0.5, **UNIT),
        ),
        "classifier-discount-loo": (ints, forest(classes, discount="loo")),
        "classifier-given-weights": (ints, forest(classes, feature_weights=[1.0, 0.5, 0.0])),
        "classifier-learned-weights": (ints, forest(classes, feature_weights="learned")),
        "classifier-named": (Data("str", named=True), forest(classes)),
        "classifier-from-rust": (ints, without_notes(classes)),
        "classifier-mapped": (ints, mapped_classifier),
        "classifier-not-calibrated": (ints, forest(classes, calibration=None, **UNIT)),
        "classifier-joint": (
            Data("str", n=90),
            forest(classes, posterior="joint", joint_kernel="trees", **UNIT),
        ),
        "classifier-joint-history": (
            Data(n=60, labels="int"),
            with_history(classes, posterior="joint", joint_kernel="trees"),
        ),
        "classifier-missing": (Data("str", missing=True), forest(classes, **UNIT)),
        "regressor-missing": (Data(missing=True), forest(numbers)),
        "regressor-missing-history": (
            Data(dtype="float64", missing=True),
            with_history(numbers, feature_maps=BENT, substitutes=FILLED, **UNIT),
        ),
        "classifier-row-weights": (ints, weighted_forest(classes, **UNIT)),
        "classifier-joint-row-weights": (
            Data("str", n=90, missing=True, categories=True),
            weighted_forest(classes, posterior="joint", joint_kernel="trees", **UNIT),
        ),
        "classifier-limit-of-trees": (
            Data("str", n=90, missing=True),
            weighted_forest(classes, posterior="joint", **UNIT),
        ),
        "regressor-row-weights": (Data(), weighted_forest(numbers, **UNIT)),
        "regressor-limit-of-trees": (
            Data(missing=True),
            weighted_forest(numbers, trend="linear", joint_kernel="limit", **UNIT),
        ),
        "regressor-trend-row-weights": (
            Data(dtype="float64"),
            weighted_forest(numbers, trend="linear", **UNIT),
        ),
        "classifier-categories": (
            Data("str", missing=True, categories=True),
            forest(classes, **UNIT),
        ),
        "regressor-categories": (Data(categories=True), forest(numbers)),
        "regressor-categories-trend": (
            Data(dtype="float64", categories=True),
            forest(numbers, trend="linear", warm_up=0, categorical_features=["c", "größe"]),
        ),
        "classifier-weight-0-maps": (
            ints,
            forest(classes, feature_weights=[1.0, 0.0, 0.5], feature_maps=BENT, **UNIT),
        ),
        "classifier-weight-0-history": (
            Data("str", "float64"),
            with_history(classes, feature_weights=[0.0, 2.0, 0.5], calibration=None),
        ),
        "classifier-weight-0-row-weights": (
            Data("str", n=90, missing=True, categories=True),
            weighted_forest(classes, feature_weights=[1.0, 0.0, 0.5], posterior="joint", **UNIT),
        ),
        "regressor-weight-0-maps": (
            wide,
            forest(numbers, feature_weights=[0.0, 2.0, 0.5], feature_maps=BENT, **UNIT),
        ),
        "regressor-weight-0-history": (
            Data(missing=True),
            with_history(numbers, feature_weights=[0.0, 2.0, 0.5], substitutes=FILLED, **UNIT),
        ),
        "regressor-float32": (Data(), forest(numbers, **UNIT)),
        "regressor-float64": (wide, forest(numbers)),
        "regressor-history": (Data(), with_history(numbers, **UNIT)),
        "regressor-history-float64": (wide, with_history(numbers)),
        "regressor-window": (Data(), forest(numbers, window_size=20)),
        "regressor-emptied": (Data(), emptied(numbers)),
        "regressor-realised": (Data(), forest(numbers, predictive="realised")),
        "regressor-settings": (
            wide,
            forest(numbers, lifetime=2.5, min_samples_split=4, noise_variance=0.03),
        ),
        "regressor-given-weights": (Data(), forest(numbers, feature_weights=[1.0, 0.5, 0.0])),
        "regressor-learned-weights": (Data(n=60), forest(numbers, feature_weights="learned")),
        "regressor-maps": (Data(), forest(numbers, feature_maps=BENT, **UNIT)),
        "regressor-maps-history": (wide, with_history(numbers, feature_maps=BENT, **UNIT)),
        "regressor-maps-joint-local": (
            Data(),
            forest(numbers, feature_maps=BENT, posterior="joint", noise="local", **UNIT),
        ),
        "regressor-named": (Data(named=True), forest(numbers)),
        "regressor-from-rust": (Data(), without_notes(numbers)),
        "regressor-fixed-hyperparameters": (wide, fixed_hyperparameters),
        "regressor-given-hyperparameters": (wide, forest(numbers, hyperparameters=GIVEN)),
        "regressor-prior-scale": (Data(), forest(numbers, prior_scale=2.5)),
        "regressor-trend": (wide, forest(numbers, trend="linear", **UNIT)),
        "regressor-trend-given": (
            wide,
            forest(numbers, trend="linear", hyperparameters=GIVEN | {"trend_variance": 0.6}),
        ),
        "regressor-kept-hyperparameters": (
            wide,
            forest(numbers, trend="linear", hyperparameters=KEPT),
        ),
        "regressor-kept-limit": (
            wide,
            forest(numbers, trend="linear", hyperparameters=KEPT | {"joint_limit": 1.0}),
        ),
        "regressor-fast-loo-global": (Data(n=24), forest(numbers, posterior="fast", **UNIT)),
    }
    for posterior in ("exact", "joint"):
        for rule in ("loo", "ml", "heuristic"):
            for noise in ("global", "local"):
                found[f"regressor-{posterior}-{rule}-{noise}"] = (
                    Data(n=24),
                    forest(numbers, posterior=posterior, hyperparameters=rule, noise=noise, **UNIT),
                )
    return {f"mondrian-{name}": recipe for name, recipe in found.items()}


def bayesian() -> dict[str, Recipe]:
    smc: dict[str, Any] = {"n_particles": 3, "n_islands": 2}
    mcmc: dict[str, Any] = {"sampler": "mcmc", "n_chains": 2, "n_draws": 4, "thin": 3}
    mcmc["n_burn"] = 20
    found: dict[str, Recipe] = {}
    for kind, data in (
        (BayesianTreeClassifier, Data("str")),
        (BayesianTreeRegressor, Data()),
    ):
        is_classifier = kind is BayesianTreeClassifier
        task = "classifier" if is_classifier else "regressor"
        leaf: dict[str, Any] = {"kappa": 0.5, "shape": 2.0, "prior_mean": 0.25, "scale": 0.125}
        leaf = {"alpha": 0.75} if is_classifier else leaf
        wide = Data(data.labels, "float64")
        recipes = {
            "smc": (data, forest(kind, **smc)),
            "smc-float64": (wide, forest(kind, **smc)),
            "smc-priors": (data, forest(kind, alpha_s=0.7, beta_s=1.5, **leaf, **smc)),
            "smc-one-island": (data, forest(kind, n_particles=4, n_islands=1)),
            "smc-cut-short": (data, forest(kind, max_stages=2, **smc)),
            "smc-layers": (
                data,
                forest(
                    kind,
                    proposal="prior",
                    expansion="layer",
                    candidate_order="marginal_likelihood",
                    resampling="stratified",
                    island_weights="evidence",
                    ess_threshold=0.9,
                    **smc,
                ),
            ),
            "smc-empirical": (
                data,
                forest(kind, proposal="empirical", resampling="multinomial", **smc),
            ),
            "smc-exploring": (
                data,
                forest(kind, proposal="exploring", max_features=2, resampling="residual", **smc),
            ),
            "smc-named": (Data(data.labels, named=True), forest(kind, **smc)),
            "smc-from-rust": (data, without_notes(kind, **smc)),
            "smc-unknown-prior": (data, unknown_prior(kind, **smc)),
            "mcmc": (data, forest(kind, **mcmc)),
            "mcmc-priors": (wide, forest(kind, alpha_s=0.7, beta_s=1.5, **leaf, **mcmc)),
            "mcmc-moves": (data, forest(kind, moves=(0.5, 0.3, 0.2, 0.0), **mcmc)),
            "mcmc-one-chain": (data, forest(kind, **(mcmc | {"n_chains": 1}))),
            "mcmc-from-rust": (data, without_notes(kind, **mcmc)),
            "mcmc-unknown-prior": (data, unknown_prior(kind, **mcmc)),
            "smc-missing": (Data(data.labels, missing=True), forest(kind, **smc)),
            "mcmc-missing": (Data(data.labels, "float64", missing=True), forest(kind, **mcmc)),
            "smc-weights": (data, weighted(kind, **smc)),
            "mcmc-weights": (
                Data(data.labels, missing=True, categories=True),
                weighted(kind, **mcmc),
            ),
            "smc-categories": (Data(data.labels, categories=True), forest(kind, **smc)),
            "mcmc-categories": (
                Data(data.labels, missing=True, categories=True),
                forest(kind, **mcmc),
            ),
        }
        if is_classifier:
            for label in ("int", "bool", "float"):
                recipes[f"smc-{label}-labels"] = (Data(label), forest(kind, **smc))
        found |= {f"bayesian-{task}-{name}": recipe for name, recipe in recipes.items()}
    return found


def bart() -> dict[str, Recipe]:
    small: dict[str, Any] = {"n_trees": 4, "n_chains": 2, "n_burn": 10, "n_draws": 3}
    kernels: dict[str, Any] = {
        name: {"kernels": name} for name in ("local", "growprune", "cgm", "pg", "regrow", "edit")
    }
    mixed = {"growprune": 0.25, "cgm": 0.25, "pg": 0.25, "edit": 0.25}
    found: dict[str, Recipe] = {}
    for task, kind, data in (
        ("regressor", BARTRegressor, Data()),
        ("probit", BARTClassifier, Data("bool")),
        ("multinomial", BARTClassifier, Data("str")),
    ):
        variants: dict[str, dict[str, Any]] = {
            "auto": {},
            **kernels,
            "mixed": {"kernels": mixed, "proposal": "optimal", "n_particles": 4},
            "empirical": {"kernels": "pg", "proposal": "empirical", "n_particles": 3},
            "sparse": {"sparse": True},
            "sparse-given": {"sparse": 0.5},
            "thin": {"thin": 3, "n_burn": 0, "alpha_s": 0.8, "beta_s": 1.0, "k": 3.0},
        }
        if task != "multinomial":
            variants["k-learned"] = {"k": "learned"}
            variants["sparse-k-learned"] = {"k": "learned", "sparse": True, "kernels": mixed}
        if task == "regressor":
            variants["sigma"] = {"sigma": 0.25}
            variants["noise-prior"] = {"nu": 5.0, "q": 0.75, "sigma_estimate": 0.5}
        recipes: dict[str, Recipe] = {
            name: (data, forest(kind, **(small | params))) for name, params in variants.items()
        }
        recipes["float64"] = Data(data.labels, "float64"), forest(kind, **small)
        recipes["named"] = Data(data.labels, named=True), forest(kind, **small)
        recipes["from-rust"] = data, without_notes(kind, **small)
        recipes["one-chain"] = data, forest(kind, **(small | {"n_chains": 1}))
        holes = Data(data.labels, missing=True)
        recipes["missing"] = holes, forest(kind, **small)
        named = Data(data.labels, missing=True, categories=True)
        recipes["categories"] = named, forest(kind, **small)
        recipes["missing-mixed"] = (
            holes,
            forest(kind, **(small | {"kernels": mixed, "sparse": True})),
        )
        if task != "regressor":
            for label in ("int", "float"):
                y = Data(label, n_classes=2 if task == "probit" else 3)
                recipes[f"{label}-labels"] = y, forest(kind, **small)
        found |= {f"bart-{task}-{name}": recipe for name, recipe in recipes.items()}
    return found


def main() -> None:
    warnings.simplefilter("ignore", ConvergenceWarning)  # trees cut short are meant
    expected = json.loads(EXPECTED.read_text("utf-8")) if EXPECTED.exists() else {}
    for recipe, (data, make) in (mondrian() | bayesian() | bart()).items():
        model = make(data)
        file = io.BytesIO()
        model.save(file)
        content = file.getvalue()
        version = int.from_bytes(content[8:12], "little")
        name = f"{recipe}-v{version}"
        path = FOLDER / f"{name}.boscage"
        if path.exists():
            continue
        assert name not in expected, f"{name} is expected, but has no file"
        entry = {
            "class": type(model).__name__,
            "version": version,
            "data": data.as_dict(),
            "settings": settings_of(boscage.load(io.BytesIO(content))),
            "feature_names": [*getattr(model, "feature_names_in_", [])],
            "gives": describe(model, data.at()),
            "then": continued(model, data),
        }
        path.write_bytes(content)
        expected[name] = json.loads(json.dumps(entry))
        print(f"{name}: {len(content)} bytes")
    # One line for each file, so that a new one is an added line.
    lines = (
        f"{json.dumps(name)}: {json.dumps(entry, ensure_ascii=False, sort_keys=True)}"
        for name, entry in sorted(expected.items())
    )
    EXPECTED.write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")


if __name__ == "__main__":
    main()
