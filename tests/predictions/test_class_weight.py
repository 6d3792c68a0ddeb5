"""Class weights: Bayes' rule for a population with other shares of classes."""

import pickle
from io import BytesIO

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.base import clone
from sklearn.metrics import log_loss

import boscage
from boscage import (
    SMC,
    BARTClassifier,
    BayesianTreeClassifier,
    MondrianForestClassifier,
)
from boscage._input.class_weights import reweighted
from boscage.explain._through_link import through_weights

MODELS = [
    MondrianForestClassifier(10, random_state=0),
    MondrianForestClassifier(10, posterior="joint", feature_weights=None, random_state=0),
    BayesianTreeClassifier(SMC(n_particles=20, n_islands=1), random_state=0),
    BARTClassifier(5, n_chains=2, n_burn=20, n_draws=20, random_state=0),
]


def _name(model):
    return f"{type(model).__name__}-{getattr(model, 'posterior', '')}"


@pytest.fixture(params=MODELS, ids=_name)
def model(request):
    return clone(request.param)


def three_classes(n_rows=200, seed=0):
    """Rows, and labels of which "c" is rare."""
    rng = np.random.default_rng(seed)
    y = rng.choice(["a", "b", "c"], n_rows, p=[0.5, 0.4, 0.1])
    X = rng.normal(size=(n_rows, 2)) + 1.5 * (y == "c")[:, None] - (y == "a")[:, None]
    return X, y


def test_weights_multiply_probabilities(model):
    X, y = three_classes()
    plain = model.fit(X, y).predict_proba(X)
    model.set_params(class_weight={"a": 2.0, "c": 7.0})
    expected = plain * [2.0, 1.0, 7.0]
    expected /= expected.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.predict_proba(X), expected, rtol=1e-13)
    np.testing.assert_allclose(model.predict_log_proba(X), np.log(expected), rtol=1e-12)
    assert (model.predict(X) == model.classes_[expected.argmax(axis=1)]).all()


@pytest.mark.slow
def test_weights_change_nothing_that_is_learned(model):
    X, y = three_classes()
    plain = clone(model).fit(X, y)
    weighted = model.set_params(class_weight={"c": 5.0}).fit(X, y)
    assert not np.array_equal(weighted.predict_proba(X), plain.predict_proba(X))
    weighted.set_params(class_weight=None)
    np.testing.assert_array_equal(weighted.predict_proba(X), plain.predict_proba(X))


def test_weights_of_one_and_equal_weights_are_none(model):
    X, y = three_classes()
    plain = model.fit(X, y).predict_proba(X)
    for value in ({}, {"a": 1}, {"a": 3.0, "b": 3.0, "c": 3.0}):
        model.set_params(class_weight=value)
        np.testing.assert_allclose(model.predict_proba(X), plain, rtol=1e-13)


@pytest.mark.slow
def test_balanced_divides_by_the_number_of_rows(model):
    X, y = three_classes()
    counts = np.unique(y, return_counts=True)[1]
    by_hand = clone(model).set_params(class_weight=dict(zip("abc", 1.0 / counts, strict=True)))
    balanced = clone(model).set_params(class_weight="balanced")
    np.testing.assert_allclose(
        balanced.fit(X, y).predict_proba(X), by_hand.fit(X, y).predict_proba(X), rtol=1e-13
    )


@pytest.mark.parametrize("kind", [MondrianForestClassifier, BayesianTreeClassifier, BARTClassifier])
def test_weights_are_right_for_a_population_with_other_shares(kind):
    """Where one class is ten times as frequent as in training, weights of 1 and 10 predict it.

    The truth is known: two normal distributions, and Bayes' rule for either population.
    """
    rng = np.random.default_rng(1)
    n_rows = 2000
    rare = rng.random(n_rows) < 1.0 / 11.0
    X = rng.normal(size=(n_rows, 1)) + 2.0 * rare[:, None]
    options = {BARTClassifier: {"n_trees": 20, "n_chains": 1, "n_burn": 100, "n_draws": 100}}
    model = kind(random_state=0, **options.get(kind, {})).fit(X, rare)
    new_y = rng.random(4000) < 0.5
    new = rng.normal(size=(4000, 1)) + 2.0 * new_y[:, None]
    truth = norm.pdf(new[:, 0], 2.0) / (norm.pdf(new[:, 0], 2.0) + norm.pdf(new[:, 0]))
    best = log_loss(new_y, truth)
    unweighted = log_loss(new_y, model.predict_proba(new))
    for value in ({True: 10.0}, "balanced"):
        model.set_params(class_weight=value)
        proba = model.predict_proba(new)
        assert log_loss(new_y, proba) < best + 0.4 * (unweighted - best)
        assert abs(proba[:, 1].mean() - 0.5) < 0.06


def test_balanced_follows_the_rows_of_a_forest():
    X, y = three_classes()
    forest = MondrianForestClassifier(10, class_weight="balanced", random_state=0)
    forest.partial_fit(X[:150], y[:150]).partial_fit(X[150:], y[150:])
    forest.forget(np.flatnonzero(y == "a")[:40])
    weighted = forest.predict_proba(X)
    counts = [(y == label).sum() - 40 * (label == "a") for label in "abc"]
    plain = forest.set_params(class_weight=None).predict_proba(X) / counts
    np.testing.assert_allclose(weighted, plain / plain.sum(axis=1, keepdims=True), rtol=1e-13)


def test_declared_classes_without_rows_weigh_as_the_most_frequent_one():
    X, y = three_classes()
    forest = MondrianForestClassifier(10, class_weight="balanced", random_state=0)
    forest.partial_fit(X[y != "c"], y[y != "c"], classes=["a", "b", "c"])
    weighted = forest.predict_proba(X)
    plain = forest.set_params(class_weight=None).predict_proba(X)
    counts = [(y == "a").sum(), (y == "b").sum()]
    plain = plain / [*counts, max(counts)]
    np.testing.assert_allclose(weighted, plain / plain.sum(axis=1, keepdims=True), rtol=1e-13)


@pytest.mark.parametrize("posterior", ["kneser-ney", "joint"])
def test_balancing_does_not_make_classes_without_rows_probable(posterior):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 2))
    is_noise = rng.random(500) < 0.05
    y = np.where(is_noise, rng.integers(0, 2, 500), X[:, 0] > 0.0).astype(int)
    settings = {"posterior": posterior, "feature_weights": None, "random_state": 0}
    forest = MondrianForestClassifier(10, class_weight="balanced", **settings)
    proba = forest.partial_fit(X, y, classes=[0, 1, 2]).predict_proba(X)
    plain = forest.set_params(class_weight=None).predict_proba(X)
    assert (plain[:, 2] > 0.0).all()  # the noise of the calibration
    assert (proba[:, 2] <= plain[:, 2] * (1.0 + 1e-12)).all()
    assert (proba.argmax(axis=1) == y).mean() > 0.8


def test_left_out_rows_are_weighted_as_new_ones():
    X, y = three_classes()
    forest = MondrianForestClassifier(10, random_state=0).fit(X, y)
    plain = forest.loo_predict_proba()
    average = forest.loo_predict_proba(calibrated=False)
    by_discount = forest.loo_predict_proba(discounts=[1.0, 5.0])
    forest.set_params(class_weight={"c": 4.0})

    def by_hand(proba):
        proba = proba * [1.0, 1.0, 4.0]
        return proba / proba.sum(axis=-1, keepdims=True)

    np.testing.assert_allclose(forest.loo_predict_proba(), by_hand(plain), rtol=1e-13)
    np.testing.assert_allclose(
        forest.loo_predict_proba(discounts=[1.0, 5.0]), by_hand(by_discount), rtol=1e-13
    )
    np.testing.assert_array_equal(forest.loo_predict_proba(calibrated=False), average)


@pytest.mark.parametrize("method", ["shapley", "path"])
@pytest.mark.parametrize("params", [{}, {"calibration": None}, {"posterior": "joint"}], ids=str)
def test_contributions_add_up_to_weighted_probabilities(params, method):
    X, y = three_classes()
    forest = MondrianForestClassifier(10, feature_weights=None, random_state=0, **params)
    plain = forest.fit(X, y).contributions(X[:50], method=method)
    for weights in ({"a": 2.0, "c": 7.0}, "balanced", {"a": 0.0}, {"b": 1e-9}):
        found = forest.set_params(class_weight=weights).contributions(X[:50], method=method)
        np.testing.assert_allclose(found.predictions(), forest.predict_proba(X[:50]), atol=1e-12)
        np.testing.assert_allclose(found.values.sum(axis=2), 0.0, atol=1e-12)
        assert found.output_names == ["a", "b", "c"]
    forest.set_params(class_weight={"a": 3.0, "b": 3.0, "c": 3.0})
    found = forest.contributions(X[:50], method=method)
    np.testing.assert_allclose(found.base_values, plain.base_values, atol=1e-14)
    np.testing.assert_allclose(found.values, plain.values, atol=1e-13)


@pytest.mark.parametrize("model", [MODELS[0], MODELS[2]], ids=_name)
def test_each_feature_keeps_its_share_of_the_change_between_two_classes(model):
    X, y = three_classes()
    model = clone(model).fit(X, y == "c")
    plain = model.contributions(X)
    weighted = model.set_params(class_weight={True: 9.0}).contributions(X)
    np.testing.assert_allclose(weighted.predictions(), model.predict_proba(X), atol=1e-13)
    changes = [(each.predictions() - each.base_values)[:, 1:] for each in (plain, weighted)]
    expected = plain.values[:, :, 1] * changes[1] / changes[0]
    assert np.abs(expected - plain.values[:, :, 1]).max() > 0.1
    np.testing.assert_allclose(weighted.values[:, :, 1], expected, atol=1e-10)


def test_small_contributions_change_as_the_weighted_probabilities_do():
    rng = np.random.default_rng(0)
    weights = np.array([1.0, 0.2, 5.0])
    before = rng.dirichlet(np.ones(3), size=20)
    values = 1e-7 * rng.normal(size=(20, 4, 3))
    values -= values.mean(axis=2, keepdims=True)
    ends = before, before + values.sum(axis=1)
    weighted = reweighted(np.stack(ends), weights)
    found = through_weights(values, *ends, (weighted[0], weighted[1]))
    np.testing.assert_allclose(weighted[0] + found.sum(axis=1), weighted[1], atol=1e-15)
    # The derivative of p_k w_k / sum_j p_j w_j.
    total = (before * weights).sum(axis=1)[:, None, None]
    slopes = values * weights - weighted[0][:, None] * (values @ weights)[:, :, None]
    np.testing.assert_allclose(found, slopes / total, atol=1e-5 * np.abs(found).max())


def test_parts_of_the_uncertainty_are_of_the_weighted_probabilities():
    X, y = three_classes()
    forest = MondrianForestClassifier(10, feature_weights=None, random_state=0).fit(X, y)
    plain = forest.predict_uncertainty(X)
    for weight in ("balanced", {"c": 50.0}, {"a": 0.0, "b": 0.0}):
        proba = forest.set_params(class_weight=weight).predict_proba(X)
        found = forest.predict_uncertainty(X)
        expected = -(proba * np.log(np.where(proba > 0.0, proba, 1.0))).sum(axis=1)
        np.testing.assert_allclose(found.total, expected, atol=1e-12)
        assert min(found.aleatoric.min(), found.epistemic.min()) >= 0.0
        assert not np.allclose(found.aleatoric, plain.aleatoric)
    equal = forest.set_params(class_weight={"a": 7.0, "b": 7.0, "c": 7.0})
    for parts in zip(plain, equal.predict_uncertainty(X), strict=True):
        np.testing.assert_allclose(*parts, atol=1e-12)


def test_nothing_is_known_of_a_row_of_impossible_classes():
    X = np.array([[0.0], [1.0], [10.0], [11.0]] * 5)
    y = np.array([0, 0, 1, 2] * 5)
    settings = {"calibration": None, "feature_weights": None, "random_state": 0}
    model = MondrianForestClassifier(1, class_weight={0: 0.0}, **settings).fit(X, y)
    found = model.predict_uncertainty(X)
    possible = model.set_params(class_weight=None).predict_proba(X)[:, 1:].any(axis=1)
    assert not possible.all()
    np.testing.assert_allclose(found.total[~possible], np.log(2.0))
    np.testing.assert_array_equal(found.aleatoric[~possible], 0.0)


def test_where_only_classes_of_weight_zero_are_possible_the_others_share():
    X = np.array([[0.0], [1.0], [10.0], [11.0]] * 5)
    y = np.array([0, 0, 1, 2] * 5)
    model = MondrianForestClassifier(1, calibration=None, class_weight={0: 0.0}, random_state=0)
    proba = model.fit(X, y).predict_proba(X)
    assert (proba[:, 0] == 0.0).all()
    np.testing.assert_allclose(proba.sum(axis=1), 1.0)
    found = reweighted(np.array([[1.0, 0.0, 0.0]]), np.array([0.0, 3.0, 1.0]))
    np.testing.assert_allclose(found, [[0.0, 0.75, 0.25]])


@pytest.mark.slow
@pytest.mark.parametrize("labels", [["a", "b"], [3, -1], [True, False], [0.0, 2.0]], ids=str)
def test_files_and_pickles_keep_weights(model, labels):
    X, y = three_classes()
    y = np.where(y == "a", labels[0], labels[1]).astype(np.asarray(labels).dtype)
    model.set_params(class_weight={np.asarray(labels)[0]: 3.0, labels[1]: 0.5})
    expected = model.fit(X, y).predict_proba(X)
    file = BytesIO()
    model.save(file)
    file.seek(0)
    loaded = boscage.load(file)
    np.testing.assert_array_equal(loaded.predict_proba(X), expected)
    assert loaded.class_weight == {labels[0]: 3.0, labels[1]: 0.5}
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict_proba(X), expected)
    balanced = model.set_params(class_weight="balanced").predict_proba(X)
    loaded.set_params(class_weight="balanced")
    np.testing.assert_array_equal(loaded.predict_proba(X), balanced)


def test_a_bart_file_without_counts_says_what_is_missing(monkeypatch):
    X, y = three_classes()
    model = BARTClassifier(5, n_chains=1, n_burn=5, n_draws=5, random_state=0).fit(X, y)
    monkeypatch.setattr(model, "_counts", None)  # as of a file from Rust
    file = BytesIO()
    model.save(file)
    file.seek(0)
    loaded = boscage.load(file).set_params(class_weight="balanced")
    with pytest.raises(ValueError, match="number of training rows of each class"):
        loaded.predict_proba(X)


@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        ("even", ValueError, 'class_weight must be None, "balanced" or a dictionary'),
        (3.0, ValueError, 'class_weight must be None, "balanced" or a dictionary'),
        ({"a": "2"}, TypeError, "class_weight of 'a' must be a number, found str"),
        ({"a": True}, TypeError, "class_weight of 'a' must be a number, found bool"),
        ({"a": -1.0}, ValueError, "class_weight of 'a' must be finite and not negative"),
        ({"a": np.inf}, ValueError, "class_weight of 'a' must be finite and not negative"),
    ],
)
def test_wrong_weights_are_refused_before_the_fit(model, value, error, message):
    X, y = three_classes(50)
    model.set_params(class_weight=value)
    with pytest.raises(error, match=message):
        model.fit(X, y)
    assert not hasattr(model, "_model")


def test_labels_that_are_no_classes_do_not_count(model):
    X, y = three_classes()
    expected = model.fit(X, y).set_params(class_weight={"a": 2.0}).predict_proba(X)
    for value in ({"a": 2.0, "z": 3.0}, {"a": 2.0, "z": 0.0, 7: 5.0}):
        found = model.set_params(class_weight=value).predict_proba(X)
        np.testing.assert_array_equal(found, expected)
    model.set_params(class_weight={"a": 0.0, "b": 0, "c": 0.0})
    with pytest.raises(ValueError, match="class_weight is zero for all classes"):
        model.predict_proba(X)


def test_a_fit_refuses_weights_of_other_labels_alone(model):
    X, y = three_classes(50)
    model.set_params(class_weight={"A": 2.0, 1: 3.0})
    message = r"has weights for 'A', 1, but y has the labels 'a', 'b', 'c' in rows whose"
    with pytest.raises(ValueError, match=message):
        model.fit(X, y)
    assert not hasattr(model, "_model")
    model.set_params(class_weight={"a": 0.0, "b": 0, "c": 0.0})
    with pytest.raises(ValueError, match="class_weight is zero for all classes"):
        model.fit(X, y)
    for value in ({}, {"A": 2.0, "a": 1.0}):
        model.set_params(class_weight=value).fit(X, y)


@pytest.mark.parametrize("weight", [{"c": 5.0}, {"c": 0.0}, {"c": 5.0, "z": 2.0}], ids=str)
def test_weights_may_be_of_classes_that_come_and_go_in_a_stream(weight):
    X, y = three_classes()
    order = np.argsort(y, kind="stable")  # the rows of "c" come last
    X, y = X[order], y[order]
    n_others = int((y != "c").sum())
    settings = {"feature_weights": None, "random_state": 0}
    forest = MondrianForestClassifier(10, class_weight=weight, **settings)
    plain = MondrianForestClassifier(10, **settings)

    def assert_weighted():
        expected = plain.predict_proba(X) * [weight.get(k, 1.0) for k in plain.classes_]
        expected /= expected.sum(axis=1, keepdims=True)
        np.testing.assert_allclose(forest.predict_proba(X), expected, rtol=1e-12)
        assert forest.predict_uncertainty(X).total.shape == (len(X),)

    for each in (forest, plain):
        each.partial_fit(X[:n_others], y[:n_others])
    assert_weighted()
    for each in (forest, plain):
        each.partial_fit(X[n_others:], y[n_others:])
    assert_weighted()
    for each in (forest, plain):
        each.forget(np.arange(n_others, len(y)))
    assert "c" not in forest.classes_
    assert_weighted()


@pytest.mark.parametrize("weight", [0.0, 5.0])
def test_the_only_class_left_is_certain_whatever_its_weight(weight):
    X, y = three_classes()
    last = y == "c"
    X, y = np.vstack([X, X[last]]), np.append(y, y[last])
    settings = {"window_size": int(last.sum()), "feature_weights": None, "random_state": 0}
    forest = MondrianForestClassifier(10, class_weight={"c": weight}, **settings)
    forest.partial_fit(X[:190], y[:190]).partial_fit(X[190:], y[190:])
    assert list(forest.classes_) == ["c"]
    assert (forest.predict_proba(X) == 1.0).all()
    assert (forest.predict(X) == "c").all()
    assert (forest.predict_uncertainty(X).total == 0.0).all()


def test_weights_of_zero_are_refused_once_no_other_class_is_left():
    X, y = three_classes()
    forest = MondrianForestClassifier(10, class_weight={"a": 0.0, "b": 0.0}, random_state=0)
    assert (forest.fit(X, y).predict(X) == "c").all()
    forest.forget(np.flatnonzero(y == "c"))
    with pytest.raises(ValueError, match=r"zero for all classes, \['a', 'b'\]"):
        forest.predict(X)
