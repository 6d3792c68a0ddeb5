"""scikit-learn's estimator checks, without expected failures."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import (
    check_dataframe_column_names_consistency,
    parametrize_with_checks,
)

from boscage import (
    BARTClassifier,
    BARTRegressor,
    BayesianTreeClassifier,
    BayesianTreeRegressor,
    MondrianForestClassifier,
    MondrianForestRegressor,
    _core,
    disk,
)

KINDS = [MondrianForestClassifier, MondrianForestRegressor]
SAMPLERS = [BARTClassifier, BARTRegressor, BayesianTreeClassifier, BayesianTreeRegressor]
RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 3))
Y = (X[:, 0] > 0).astype(int)


def expected_failed_checks(estimator: Any) -> dict[str, str]:
    """What rows are left out for makes a difference: a row of weight 2 is left out as a whole."""
    params = estimator.get_params()
    leaves_out = "loo" in (params.get("calibration"), params.get("discount"))
    if params["posterior"] in ("exact", "joint"):
        leaves_out |= params["hyperparameters"] == "loo"
    kinds = ("dense", "sparse") if leaves_out else ()
    return {
        f"check_sample_weight_equivalence_on_{kind}_data": (
            "rows are left out with their whole weight, where a copy of a repeated row is left in"
        )
        for kind in kinds
    }


# The checks give whole numbers to estimators that take categories, and others to those without.
@parametrize_with_checks(
    [
        MondrianForestClassifier(),
        MondrianForestClassifier(10, predictive="realised"),
        MondrianForestClassifier(10, calibration=None, categorical_features=None),
        MondrianForestClassifier(10, discount="loo", feature_weights="learned", window_size=1000),
        MondrianForestRegressor(),
        MondrianForestRegressor(10, posterior="fast"),
        MondrianForestRegressor(
            10, hyperparameters="heuristic", prior_scale=None, categorical_features=None
        ),
        MondrianForestRegressor(10, noise="local", feature_weights="learned", window_size=1000),
    ],
    expected_failed_checks=expected_failed_checks,
)
# The checks pass invalid targets and others, and test the warnings themselves.
@pytest.mark.slow
@pytest.mark.filterwarnings("default")
def test_estimator_contract(estimator: Any, check: Any) -> None:
    check(estimator)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.filterwarnings("default")
def test_feature_names_are_handled_as_in_scikit_learn(kind: Any) -> None:
    pytest.importorskip("pandas")
    check_dataframe_column_names_consistency(kind.__name__, kind(5, feature_weights=None))


@pytest.mark.parametrize("kind", KINDS)
def test_scikit_learn_tags(kind: Any) -> None:
    assert is_classifier(kind()) == (kind is MondrianForestClassifier)
    assert is_regressor(kind()) == (kind is MondrianForestRegressor)
    tags = kind().__sklearn_tags__()
    assert tags.input_tags.allow_nan
    assert tags.input_tags.sparse
    assert tags.target_tags.required
    assert not tags.non_deterministic


@pytest.mark.parametrize("kind", [*KINDS, *SAMPLERS])
def test_tags_say_that_columns_of_tables_may_be_categories(kind: Any) -> None:
    tags = kind().__sklearn_tags__().input_tags
    assert tags.categorical
    # Arrays of text are refused, so the tag of these is not set.
    assert not tags.string
    with pytest.raises(ValueError, match="could not convert string"):
        kind().fit(np.full((4, 1), "a"), [0, 1, 0, 1])
    assert not kind(categorical_features=None).__sklearn_tags__().input_tags.categorical
    if kind in KINDS:
        by_tables = kind(categorical_features=None, categories=[{"a": 0.5}])
        assert by_tables.__sklearn_tags__().input_tags.categorical


def test_tags_of_forests_on_disk_say_that_they_take_no_categories() -> None:
    assert (
        not disk.MondrianForestClassifier(memory_limit="1GB")
        .__sklearn_tags__()
        .input_tags.categorical
    )


@pytest.mark.parametrize("kind", KINDS)
def test_defaults_are_those_of_the_compiled_model(kind: Any) -> None:
    """Defaults are defined in Rust; Python's signatures repeat them."""
    here = inspect.signature(kind).parameters
    there = inspect.signature(kind._kind.model).parameters
    # Which features have slopes, and the size of leaves, are chosen before the model is made.
    shared = set(here) & set(there) - {"trend", "min_samples_split"}
    assert shared >= {"n_estimators", "lifetime", "predictive"}
    model = kind._kind.model()
    # Signatures leave out what is no literal.
    defaults = {name: there[name].default for name in shared}
    defaults |= {name: getattr(model, name) for name in shared if defaults[name] is ...}
    assert {name: here[name].default for name in shared} == defaults


@pytest.mark.parametrize("kind", KINDS)
def test_parameters_but_the_first_are_keyword_only(kind: Any) -> None:
    parameters = list(inspect.signature(kind).parameters.values())
    assert parameters[0].kind is inspect.Parameter.POSITIONAL_OR_KEYWORD
    assert all(p.kind is inspect.Parameter.KEYWORD_ONLY for p in parameters[1:])


@pytest.mark.parametrize("kind", KINDS)
def test_use_before_fit_raises_not_fitted_error(kind: Any) -> None:
    model = kind()
    calls = [
        lambda: model.predict(X),
        lambda: model.forget([0]),
        lambda: model.merge(model),
        lambda: model + kind(),
        lambda: model.digest(),
        lambda: model.save("nowhere"),
        lambda: model.trees_,
        lambda: model.n_rows_,
        lambda: model.ids_,
    ]
    for call in calls:
        with pytest.raises(NotFittedError, match="not fitted yet"):
            call()
    assert not hasattr(model, "classes_")
    assert not hasattr(model, "feature_importances_")


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_works_inside_scikit_learn(kind: Any) -> None:
    pipeline = make_pipeline(StandardScaler(), kind(10, random_state=0))
    assert cross_val_score(pipeline, X, Y, cv=3).mean() > 0.3
    search = GridSearchCV(kind(10, random_state=0), {"min_samples_split": [2, 20]}, cv=2, n_jobs=2)
    assert search.fit(X, Y).best_score_ > 0.3
    twin = clone(kind(7, feature_range=(0.0, [1.0, 2.0, 3.0]), random_state=3))
    assert twin.n_estimators == 7


@pytest.mark.parametrize("kind", KINDS)
def test_an_interrupted_or_refused_fit_leaves_every_attribute(kind: Any) -> None:
    model = kind(5, random_state=0).fit(X, Y)
    before = dict(vars(model))
    for bad in (X[:, :0], np.full((3, 4), np.inf), [["a"]]):
        with pytest.raises(ValueError, match=r"X|feature"):
            model.fit(bad, [0] * len(bad))
        assert vars(model) == before
    model.set_params(min_samples_split=0)
    with pytest.raises(ValueError, match="min_samples_split"):
        model.fit(X, Y)
    assert model.n_features_in_ == 3
    assert model._model is before["_model"]
    assert isinstance(_core.__version__, str)
