"""`MondrianForestClassifier`: labels, discounts and probabilities."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.metrics import log_loss

from boscage import MondrianForestClassifier

RNG = np.random.default_rng(0)
X = RNG.uniform(size=(120, 3))
Y = np.digitize(X[:, 0] + 0.1 * RNG.normal(size=120), [0.3, 0.7])


# Nothing is learned from the first rows, unless a test is about that.
EQUAL: dict[str, Any] = {"feature_weights": None, "warm_up": 0}


def make(**params: Any) -> MondrianForestClassifier:
    return MondrianForestClassifier(
        **({"n_estimators": 8, "feature_range": (0.0, 1.0), "random_state": 1} | EQUAL | params)
    )


# -- labels ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("names", "kind"),
    [
        (np.array([0, 1, 2]), "i"),
        (np.array([-5, 2**40, 2**62]), "i"),
        (np.array([3, 5, 250], dtype=np.uint8), "i"),
        (np.array([0.0, 1.0, 7.0], dtype=np.float32), "f"),
        (np.array(["b", "long name", "ü"]), "U"),
        (np.array(["b", "long name", "ü"], dtype=object), "U"),
        (np.array([10, 2, 33], dtype=object), "i"),
    ],
)
def test_labels_of_every_type_come_back(names: Any, kind: str) -> None:
    model = make().fit(X, names[Y])
    assert model.classes_.dtype.kind == kind
    np.testing.assert_array_equal(model.classes_, sorted(names))
    predicted = model.predict(X)
    assert predicted.dtype == model.classes_.dtype
    assert np.mean(predicted == names[Y]) > 0.9
    reference = make().fit(X, Y)
    order = np.argsort(np.argsort(names))
    np.testing.assert_array_equal(model.predict_proba(X)[:, order], reference.predict_proba(X))


def test_truth_values_are_labels() -> None:
    model = make().fit(X, Y > 0)
    np.testing.assert_array_equal(model.classes_, [False, True])
    assert model.predict(X).dtype == bool
    assert model.partial_fit(X[:2], [0, 1]).classes_.dtype == bool
    with pytest.raises(ValueError, match="label 2, but the classes so far are of type bool"):
        model.partial_fit(X[:2], [0, 2])


def test_equal_labels_of_other_types_are_the_same_classes() -> None:
    model = make().fit(X, Y)
    before = model.copy().partial_fit(X[:3], [0, 1, 2]).digest()
    for labels in ([0.0, 1.0, 2.0], np.array([0, 1, 2], dtype=np.int8)):
        twin = model.copy().partial_fit(X[:3], labels)
        assert twin.digest() == before
        assert twin.classes_.dtype.kind == "i"
    floats = make().fit(X, Y.astype(float)).partial_fit(X[:2], [1, 5])
    np.testing.assert_array_equal(floats.classes_, [0.0, 1.0, 2.0, 5.0])
    assert floats.classes_.dtype == float


@pytest.mark.parametrize(
    ("labels", "error", "message"),
    [
        (["a", "b", "c"], ValueError, "label 'a', but the classes so far are of type int"),
        ([0, 1, None], ValueError, "NaN in row 2"),
        ([0.0, np.nan, 1.0], ValueError, "Input y contains NaN in row 1"),
        ([0.0, 1.0, np.inf], ValueError, "Input y contains infinity in row 2"),
        ([0.5, 1.5, 2.0], ValueError, "continuous"),
        ([[0], [1]], ValueError, "X has 3 rows, y has 2"),
        ([[0, 1], [1, 0], [1, 1]], ValueError, "shape"),
        ([0, 1], ValueError, "X has 3 rows, y has 2"),
        (None, ValueError, "requires y to be passed"),
        (np.array([0, "a", 1], dtype=object), TypeError, "labels of types int, str"),
        (np.array([b"a", b"b", b"a"]), TypeError, "bytes"),
        (np.array([1, 2**63, 1], dtype=np.uint64), ValueError, "9223372036854775808"),
        ([1.0, 2.0, 1e17], ValueError, r"1e\+17 in row 2; .* whole number"),
    ],
)
@pytest.mark.filterwarnings("ignore:A column-vector y was passed")
def test_bad_labels_are_refused_and_change_nothing(labels: Any, error: Any, message: str) -> None:
    model = make().fit(X, Y)
    before = model.digest()
    with pytest.raises(error, match=message):
        model.partial_fit(X[:3], labels)
    assert model.digest() == before
    assert model.classes_.tolist() == [0, 1, 2]


@pytest.mark.parametrize("seed", range(3))
def test_probabilities_are_at_most_one(seed: int) -> None:
    """Averages over trees do not exceed one by rounding, which `log_loss` would refuse."""
    x, y = load_breast_cancer(return_X_y=True)
    proba = MondrianForestClassifier(random_state=seed).fit(x[::2], y[::2]).predict_proba(x)
    assert proba.max() <= 1.0
    np.testing.assert_allclose(proba.sum(axis=1), 1.0, rtol=1e-14)
    log_loss(y, proba)


def test_a_refit_may_have_other_labels() -> None:
    model = make().fit(X, Y).fit(X, np.array(["a", "b", "c"])[Y])
    np.testing.assert_array_equal(model.classes_, ["a", "b", "c"])
    with pytest.raises(TypeError, match="types"):
        make().fit(X[:2], np.array([1, "a"], dtype=object))


def test_a_single_class_has_probability_one() -> None:
    model = make().fit(X, np.full(120, 7))
    np.testing.assert_array_equal(model.predict_proba(X), np.ones((120, 1)))
    np.testing.assert_array_equal(model.predict(X), np.full(120, 7))


# -- classes that come and go ---------------------------------------------------------------------


def test_classes_may_appear_at_any_call_and_go_with_their_rows() -> None:
    model = make().partial_fit(X[:10], np.zeros(10, dtype=int))
    assert model.classes_.tolist() == [0]
    model.partial_fit(X, Y + 5)
    assert model.classes_.tolist() == [0, 5, 6, 7]
    assert model.n_classes_ == 4
    assert model.predict_proba(X).shape == (120, 4)
    model.forget(np.arange(10))
    assert model.classes_.tolist() == [5, 6, 7]
    assert model.digest() == make().fit(X, Y + 5).digest()


def test_declared_classes_have_columns_from_the_start() -> None:
    model = make().partial_fit(X[:5], np.zeros(5, dtype=int), classes=[2, 0, 1])
    assert model.classes_.tolist() == [0, 1, 2]
    proba = model.predict_proba([[9.0, 9.0, 9.0]])
    assert (proba > 0.0).all()
    model.partial_fit(X, Y, classes=[0, 1, 2])
    model.partial_fit(X[:1], [3])
    assert model.classes_.tolist() == [0, 1, 2, 3]
    with pytest.raises(ValueError, match=r"classes holds \[9\], which were not declared"):
        model.partial_fit(X, Y, classes=[0, 9])
    model.forget(model.ids_[:-1])
    assert model.classes_.tolist() == [0, 1, 2, 3]
    assert model.fit(X, Y).classes_.tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("classes", "error", "message"),
    [
        ([], ValueError, "expected a list of labels"),
        (3, ValueError, "expected a list of labels"),
        ([[1, 2]], ValueError, r"shape \(1, 2\)"),
        (["a", "b"], ValueError, "y holds the label 0, but the classes so far are of type str"),
    ],
)
def test_bad_classes_are_refused(classes: Any, error: Any, message: str) -> None:
    model = make()
    with pytest.raises(error, match=message):
        model.partial_fit(X, Y, classes=classes)
    assert not model.__sklearn_is_fitted__()


# -- probabilities --------------------------------------------------------------------------------


@pytest.mark.parametrize("predictive", ["averaged", "realised"])
def test_probabilities_sum_to_one_and_agree_with_predict(predictive: Any) -> None:
    model = make(predictive=predictive).fit(X[::2], Y[::2])
    proba = model.predict_proba(X)
    np.testing.assert_allclose(proba.sum(axis=1), 1.0, rtol=1e-12)
    assert ((proba >= 0.0) & (proba <= 1.0)).all()
    with np.errstate(divide="ignore"):
        np.testing.assert_array_equal(model.predict_log_proba(X), np.log(proba))
    np.testing.assert_array_equal(model.predict(X), model.classes_[proba.argmax(axis=1)])
    assert model.score(X[1::2], Y[1::2]) > 0.7


# -- leaving out ----------------------------------------------------------------------------------


def test_leave_one_out_is_a_forest_without_the_row() -> None:
    model = make(calibration=None).partial_fit(X, Y, classes=[0, 1, 2, 3])
    before = model.digest()
    left_out = model.loo_predict_proba()
    assert left_out.shape == (120, 4)
    for row in (0, 17, 119):
        without = model.copy().forget(row)
        np.testing.assert_allclose(
            left_out[row], without.predict_proba(X[row : row + 1])[0], rtol=1e-9, atol=1e-12
        )
    assert model.digest() == before
    some = model.loo_predict_proba([17, 0])
    np.testing.assert_array_equal(some, left_out[[17, 0]])
    assert model.loo_predict_proba([]).shape == (0, 4)
    with pytest.raises(KeyError, match="500"):
        model.loo_predict_proba([500])


def test_leave_one_out_for_several_discounts() -> None:
    model = make().fit(X, Y)
    several = model.loo_predict_proba(discounts=[1.0, 10.0])
    assert several.shape == (2, 120, 3)
    np.testing.assert_array_equal(several[1], model.loo_predict_proba())
    other = make(discount=1.0).fit(X, Y)
    np.testing.assert_array_equal(several[0], other.loo_predict_proba())
    assert model.loo_predict_proba([3], discounts=2.0).shape == (1, 1, 3)
    with pytest.raises(ValueError, match="discounts must be"):
        model.loo_predict_proba(discounts=[-1.0])


def test_the_discount_is_chosen_by_leave_one_out() -> None:
    rng = np.random.default_rng(1)
    noisy = np.where(rng.uniform(size=120) < 0.4, rng.integers(3, size=120), Y)
    model = make(discount="loo").fit(X, noisy)
    grid = [0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0]
    losses = [log_loss(noisy, proba) for proba in model.loo_predict_proba(discounts=grid)]
    assert model.discount_ == grid[int(np.argmin(losses))]
    assert model.discount == "loo"
    same = make(discount=model.discount_).fit(X, noisy)
    assert model.digest() == same.digest()
    # The chosen discount does not change when rows are added.
    model.partial_fit(X, Y)
    assert model.discount_ == same.discount_
    assert make(discount="loo").fit(X[:1], Y[:1]).discount_ == 10.0


def test_the_discount_is_chosen_from_the_first_call_of_partial_fit() -> None:
    model = make(discount="loo").partial_fit(X[:60], Y[:60]).partial_fit(X[60:], Y[60:])
    assert model.discount_ == make(discount="loo").fit(X[:60], Y[:60]).discount_


def test_the_discount_can_change_between_updates() -> None:
    model = make().fit(X[:60], Y[:60]).set_params(discount=2.0).partial_fit(X[60:], Y[60:])
    assert model.discount_ == 2.0
    assert model.digest() == make(discount=2.0).fit(X, Y).digest()
    model.set_params(discount="loo")
    with pytest.raises(ValueError, match="call fit, or give a number"):
        model.partial_fit(X, Y)
    assert model.n_rows_ == 120


@pytest.mark.parametrize("discount", [-1.0, np.nan, np.inf, "best", None, True])
def test_bad_discounts_are_refused(discount: Any) -> None:
    with pytest.raises((ValueError, TypeError), match="discount"):
        make(discount=discount).fit(X, Y)


@pytest.mark.parametrize("warm_up", [0, 500])
@pytest.mark.parametrize("kinds", [(int, float), (float, int), (int, bool), (bool, np.float32)])
def test_merged_labels_are_of_the_type_of_the_first_forest(
    kinds: tuple[Any, Any], warm_up: int
) -> None:
    """A shard whose labels are 0.0 and 1.0 has the classes of one with 0 and 1."""
    x = np.random.default_rng(0).uniform(size=(60, 2))
    y = (x[:, 0] > 0.5).astype(int)

    def shard(rows: slice, kind: Any, classes: Any = None) -> MondrianForestClassifier:
        model = make(n_estimators=5, warm_up=warm_up)
        labels = y[rows].astype(kind)
        return model.partial_fit(x[rows], labels, classes=classes, ids=np.arange(60)[rows])

    first, other = kinds
    whole = shard(slice(60), first, classes=np.array([0, 1], first))
    merged = shard(slice(30), first) + shard(slice(30, 60), other, np.array([0, 1], other))
    assert merged.classes_.dtype == whole.classes_.dtype
    np.testing.assert_array_equal(merged.classes_, whole.classes_)
    assert merged.digest() == whole.digest()
    np.testing.assert_array_equal(merged.predict_proba(x), whole.predict_proba(x))


def test_labels_that_are_no_classes_of_the_same_type_are_not_merged() -> None:
    x = np.random.default_rng(0).uniform(size=(60, 2))
    y = x[:, 0] > 0.5
    one = make().fit(x[:30], y[:30], ids=range(30))
    before = one.digest()
    for labels in (y[30:].astype(str), 2 * y[30:].astype(int)):
        other = make().fit(x[30:], labels, ids=range(30, 60))
        with pytest.raises(ValueError, match="the other forest holds the label"):
            one.merge(other)
        assert one.digest() == before
        np.testing.assert_array_equal(one.classes_, [False, True])
