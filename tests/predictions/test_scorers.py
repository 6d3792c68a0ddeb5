"""Scorers of distributions in scikit-learn's tools of model selection."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
import sklearn
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import (
    GridSearchCV,
    KFold,
    RandomizedSearchCV,
    cross_val_score,
    cross_validate,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from boscage import (
    SMC,
    BARTRegressor,
    BayesianTreeRegressor,
    MondrianForestClassifier,
    MondrianForestRegressor,
)
from boscage.metrics import crps, neg_crps_scorer, neg_nlpd_scorer, nlpd

SCORERS = [(neg_crps_scorer, crps), (neg_nlpd_scorer, nlpd)]
RNG = np.random.default_rng(0)
X = RNG.uniform(size=(60, 2))
Y = np.sin(6.0 * X[:, 0]) + 0.1 * RNG.normal(size=60)
W = RNG.integers(0, 3, size=60).astype(float)


def forest(**params: Any) -> MondrianForestRegressor:
    return MondrianForestRegressor(4, feature_weights=None, random_state=0, **params)


@pytest.mark.parametrize(
    "model",
    [
        forest(),
        BARTRegressor(3, n_chains=1, n_burn=5, n_draws=5, random_state=0),
        BayesianTreeRegressor(SMC(n_islands=2), random_state=0),
    ],
    ids=lambda model: type(model).__name__,
)
@pytest.mark.parametrize(("scorer", "score"), SCORERS)
def test_scorers_turn_the_sign_of_scores(scorer: Any, score: Any, model: Any) -> None:
    dist = model.fit(X[:40], Y[:40]).predict_dist(X[40:])
    assert scorer(model, X[40:], Y[40:]) == -score(Y[40:], dist)
    found = cross_val_score(model, X, Y, cv=KFold(3), scoring=scorer, error_score="raise")
    assert found[-1] == -score(Y[40:], dist)


@pytest.mark.parametrize(("scorer", "score"), SCORERS)
def test_weights_count_as_repeated_rows(scorer: Any, score: Any) -> None:
    model = forest().fit(X, Y)
    again = np.repeat(np.arange(60), W.astype(int))
    expected = score(Y[again], model.predict_dist(X[again]))
    np.testing.assert_allclose(score(Y, model.predict_dist(X), sample_weight=W), expected)
    np.testing.assert_allclose(scorer(model, X, Y, sample_weight=W), -expected)
    with pytest.raises(ValueError, match="one weight for each of 60 rows"):
        scorer(model, X, Y, W[:5])
    with pytest.raises(ValueError, match="sample_weight is zero for all rows"):
        score(Y, model.predict_dist(X), sample_weight=np.zeros(60))


def test_a_row_of_weight_0_does_not_count_even_if_it_was_impossible() -> None:
    observed = [0.0, 1e200]
    assert nlpd(observed, ([0.0, 0.0], [1.0, 1e-3])) == np.inf
    found = nlpd(observed, ([0.0, 0.0], [1.0, 1e-3]), sample_weight=[2.0, 0.0])
    assert found == nlpd([0.0], ([0.0], [1.0]))


@pytest.mark.parametrize(("scorer", "score"), SCORERS)
def test_pipelines_and_searches_are_scored_by_what_is_in_them(scorer: Any, score: Any) -> None:
    scaler = StandardScaler().fit(X)
    expected = -score(Y, forest().fit(scaler.transform(X), Y).predict_dist(scaler.transform(X)))
    assert scorer(make_pipeline(StandardScaler(), forest()).fit(X, Y), X, Y) == expected
    assert scorer(make_pipeline(make_pipeline(scaler), forest()).fit(X, Y), X, Y) == expected
    alone = scorer(forest().fit(X, Y), X, Y)
    assert scorer(make_pipeline(forest()).fit(X, Y), X, Y) == alone
    search = GridSearchCV(forest(), {"prior_scale": [1.0, 2.0]}, cv=2, scoring=scorer).fit(X, Y)
    assert search.score(X, Y) == scorer(search, X, Y) == scorer(search.best_estimator_, X, Y)


def test_a_search_finds_what_predicts_best() -> None:
    grid = {"mondrianforestregressor__noise_variance": [0.01, 100.0]}
    pipeline = make_pipeline(StandardScaler(), forest())
    for kind, scoring in (
        (GridSearchCV, neg_nlpd_scorer),
        (RandomizedSearchCV, {"crps": neg_crps_scorer, "r2": "r2"}),
    ):
        more = {"n_iter": 2, "refit": "crps"} if kind is RandomizedSearchCV else {}
        search = kind(pipeline, grid, cv=2, scoring=scoring, error_score="raise", **more)
        assert search.fit(X, Y).best_params_ == {"mondrianforestregressor__noise_variance": 0.01}
        assert "neg_" in repr(search)


def test_weights_may_be_routed_to_fits() -> None:
    expected = neg_crps_scorer(forest().fit(X[:40], Y[:40], W[:40]), X[40:], Y[40:])
    with sklearn.config_context(enable_metadata_routing=True):
        model = forest().set_fit_request(sample_weight=True)
        for scoring in (neg_crps_scorer, {"score": neg_crps_scorer}):
            found = cross_validate(
                model,
                X,
                Y,
                cv=KFold(3),
                scoring=scoring,
                params={"sample_weight": W},
                error_score="raise",
            )
            assert found["test_score"][-1] == expected


def test_scorers_are_pickled_by_name() -> None:
    for scorer, _ in SCORERS:
        assert pickle.loads(pickle.dumps(scorer)) is scorer
    found = cross_val_score(forest(), X, Y, cv=2, scoring=neg_crps_scorer, n_jobs=2)
    np.testing.assert_array_equal(
        found, cross_val_score(forest(), X, Y, cv=2, scoring=SCORERS[0][0])
    )


@pytest.mark.parametrize(("scorer", "score"), SCORERS)
def test_other_estimators_are_refused(scorer: Any, score: Any) -> None:
    name = f"neg_{score.__name__}_scorer"
    linear = LinearRegression().fit(X, Y)
    for model in (linear, make_pipeline(StandardScaler(), linear).fit(X, Y)):
        with pytest.raises(TypeError, match=f"{name} needs a regressor.*; found LinearRegression"):
            scorer(model, X, Y)
    with pytest.raises(TypeError, match=r"found MondrianForestClassifier .*neg_log_loss"):
        scorer(MondrianForestClassifier(2).fit(X, Y > 0), X, Y > 0)
    with pytest.raises(NotFittedError):
        scorer(forest(), X, Y)
