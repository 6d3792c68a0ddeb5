"""Search spaces: values, positions and rows."""

import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from boscage.optimize import Categorical, Integer, Real, Space
from boscage.optimize._candidates import design_point, neighbours, random_points, without
from boscage.optimize.space import INACTIVE

PARAMETERS = [
    Real(-2.0, 3.5),
    Real(1e-6, 10.0, log=True),
    Real(-1.0, 1.0, step=0.1),
    Real(0.0, 1.0, step=0.3),
    Integer(-3, 12),
    Integer(0, 20, step=5),
    Integer(0, 21, step=5),
    Integer(1, 1000, log=True),
    Categorical(["a", "b", "c"]),
    Categorical([True, 1, 1.5, "1", None]),
]

CONDITIONAL = {
    "method": Categorical(["adam", "sgd", "none"]),
    "momentum": Real(0, 1, when={"method": "sgd"}),
    "nesterov": Categorical([False, True], when={"method": ["sgd"]}),
    "layers": Integer(1, 3),
    "width": Integer(4, 64, log=True, when={"layers": np.array([2, 3]), "nesterov": [True]}),
}


@pytest.mark.parametrize("parameter", PARAMETERS, ids=repr)
@settings(max_examples=50, deadline=None)
@given(raw=st.floats(0.0, 1.0))
def test_every_position_has_a_value_and_back(parameter, raw):
    snapped = float(parameter.snap(np.array([raw]))[0])
    value = parameter.value(snapped)
    assert parameter.position(value) == pytest.approx(snapped, abs=1e-12)
    assert abs(snapped - raw) <= 1 / parameter.n_values or isinstance(parameter, Integer)
    if not isinstance(parameter, Categorical):
        assert parameter.low <= value <= parameter.high


@pytest.mark.parametrize("parameter", PARAMETERS, ids=repr)
def test_values_have_the_types_of_python(parameter):
    values = [parameter.value(position) for position in np.linspace(0, 1, 50)]
    assert not any(isinstance(value, np.generic) for value in values)
    if parameter.n_values < 100:
        assert len(set(map(repr, values))) == parameter.n_values


def test_steps_count_from_the_lower_end():
    values = {Real(0.0, 1.0, step=0.3).value(p) for p in np.linspace(0, 1, 20)}
    assert sorted(values) == pytest.approx([0.0, 0.3, 0.6, 0.9])
    assert {Integer(0, 21, step=5).value(p) for p in np.linspace(0, 1, 50)} == {0, 5, 10, 15, 20}
    # 0.1 is no multiple of itself in binary: the last step must not be lost.
    assert Real(-10.0, 10.0, step=0.1).n_values == 201


def test_logarithms_are_what_is_even():
    parameter = Real(1e-4, 1.0, log=True)
    assert parameter.value(0.5) == pytest.approx(1e-2)
    whole = Integer(1, 1000, log=True)
    shares = np.bincount([whole.value(p) for p in np.linspace(0, 1, 20_001)]) / 20_001
    width = math.log(1000.5) - math.log(0.5)
    assert shares[1] == pytest.approx((math.log(1.5) - math.log(0.5)) / width, abs=1e-3)
    assert shares[10] == pytest.approx((math.log(10.5) - math.log(9.5)) / width, abs=1e-3)


def test_the_widest_ranges_have_values_everywhere():
    for parameter in (Real(-8e307, 8e307), Real(1e-300, 1.7e308, log=True), Integer(0, 10**300)):
        values = [parameter.value(position) for position in np.linspace(0.0, 1.0, 11)]
        assert values == sorted(set(values))
        assert parameter.low <= values[0] < values[-1] <= parameter.high


def test_choices_may_be_any_sequence():
    assert Categorical(np.array(["a", "b"])).choices == ("a", "b")
    assert Categorical(range(3)).choices == (0, 1, 2)
    choices = Categorical(np.array([1, 2])).choices
    assert choices == (1, 2)
    assert all(type(choice) is int for choice in choices)


def test_equal_looking_choices_differ():
    parameter = Categorical([True, 1, 1.0, "1"])
    assert [parameter.position(value) for value in parameter.choices] == [
        0.125,
        0.375,
        0.625,
        0.875,
    ]
    assert parameter.value(parameter.position(True)) is True


def test_inactive_parameters_have_a_place_of_their_own():
    space = Space(CONDITIONAL)
    plain = space.positions({"method": "adam", "layers": 2})
    assert np.isnan(plain).tolist() == [False, True, True, False, True]
    assert space.params(plain) == {"method": "adam", "layers": 2}
    row = space.rows(plain[None])[0]
    assert row.tolist() == [1.0, 0.0, 0.0, INACTIVE, 0.0, 0.0, 0.5, INACTIVE]
    full = {"method": "sgd", "momentum": 0.25, "nesterov": True, "layers": 3, "width": 16}
    assert space.params(space.positions(full)) == full
    # What hangs on an inactive parameter is inactive as well.
    assert space.params(space.positions(full | {"method": "none"})) == {
        "method": "none",
        "layers": 3,
    }


def test_rates_are_one_for_the_ends_of_a_parameter_and_for_two_choices():
    space = Space(CONDITIONAL)
    low, high = space.feature_range
    rates = space.feature_weights / (high - low)  # for a unit of distance

    def distance(**changes):
        base = {"method": "sgd", "momentum": 0.0, "nesterov": True, "layers": 3, "width": 16}
        pair = np.array([space.positions(base), space.positions(base | changes)])
        first, second = space.rows(pair)
        return float((rates * np.abs(first - second)).sum())

    assert distance(momentum=1.0) == pytest.approx(1.0)
    assert distance(momentum=0.5) == pytest.approx(0.5)
    assert distance(layers=2) == pytest.approx(1 / 3)
    assert space.feature_weights[:3].tolist() == [0.5, 0.5, 0.5]
    pair = space.rows(
        np.array([space.positions({"method": m, "layers": 1}) for m in ("adam", "none")])
    )
    assert (rates * np.abs(pair[0] - pair[1])).sum() == pytest.approx(1.0)


def test_all_settings_of_a_finite_space():
    space = Space(
        {
            "a": Categorical(["x", "y"]),
            "b": Integer(0, 2, when={"a": "y"}),
            "c": Integer(1, 4, log=True),
        }
    )
    found = [space.params(positions) for positions in space.all_positions()]
    assert len(found) == (1 + 3) * 4
    assert len({tuple(sorted(params.items())) for params in found}) == len(found)
    assert space.n_values == 24


def test_candidates_are_settings_of_the_space():
    space = Space(CONDITIONAL)
    rng = np.random.default_rng(0)
    points = random_points(space, 200, rng)
    near = neighbours(space, points[:5], 200, rng)
    for position in np.concatenate([points, near, design_point(space, 3, 10, 0)]):
        again = space.positions(space.params(position))
        np.testing.assert_allclose(again, position, atol=1e-12)
    assert len({repr(space.params(position)) for position in near}) > 30


def test_a_design_has_a_point_in_each_part_of_every_range():
    space = Space({name: Real(0, 1) for name in "abc"})
    for first in (0, 8):
        points = np.concatenate([design_point(space, first + i, 8, 5) for i in range(8)])
        for column in points.T:
            assert sorted(np.floor(8 * column)) == list(range(8))
    assert not np.array_equal(design_point(space, 0, 8, 5), design_point(space, 8, 8, 5))
    assert not np.array_equal(design_point(space, 0, 8, 5), design_point(space, 0, 8, 6))


def test_neighbours_change_one_parameter_or_more():
    space = Space({name: Integer(0, 9) for name in "abcd"})
    rng = np.random.default_rng(0)
    centre = space.positions(dict.fromkeys("abcd", 5))[None]
    changed = (neighbours(space, centre, 1000, rng) != centre).sum(axis=1)
    assert (np.bincount(changed, minlength=5)[1:] > 50).all()


def test_known_settings_are_left_out():
    space = Space(CONDITIONAL)
    points = random_points(space, 400, np.random.default_rng(0))
    _, first = np.unique(np.nan_to_num(points, nan=-1), axis=0, return_index=True)
    points = points[np.sort(first)][:50]
    assert len(points) == 50
    left = without(np.concatenate([points, points[:10]]), points[20:])
    np.testing.assert_array_equal(left, points[:20])


def test_a_space_is_a_dict_and_back():
    space = Space(CONDITIONAL | {"rate": Real(1e-5, 1, log=True), "drop": Real(0, 1, step=0.25)})
    again = Space.from_dict(json.loads(json.dumps(space.to_dict())))
    assert again == space
    assert again.to_dict() == space.to_dict()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Real(1, 1), "low must be less than high"),
        (lambda: Real(0, 1, log=True), "low must be positive"),
        (lambda: Real(0, math.inf), "high must be finite"),
        (lambda: Real(-1e308, 1e308), r"high - low must be at most 1\.8e\+308, found -1e\+308 and"),
        (lambda: Integer(-(10**400), 10**400), r"high - low must be at most .* found -1000+\.\.\."),
        (lambda: Real(0, 1e308, step=1e-5), "step is too small for the range, found 1e-05"),
        (lambda: Real(0, 1, step=2.0), "step must be at most"),
        (lambda: Real(1, 2, log=True, step=0.1), "step cannot be given"),
        (lambda: Integer(1, 8, log=True, step=2), "step cannot be given"),
        (lambda: Categorical(["a"]), "at least two choices"),
        (lambda: Categorical(["a", "a"]), "differ from each other"),
        (lambda: Space({}), "at least one parameter"),
        (lambda: Space({"a": Real(0, 1, when={"b": 1})}), "no parameter of the space"),
        (
            lambda: Space({"b": Integer(0, 3), "a": Real(0, 1, when={"b": 7})}),
            "a depends on b: expected a value",
        ),
        (lambda: Space({"b": Real(0, 3), "a": Real(0, 1, when={"b": 1})}), "is continuous"),
        (
            lambda: Space({"a": Integer(0, 3, when={"b": 1}), "b": Integer(0, 3, when={"a": 1})}),
            "depend on each other",
        ),
        (lambda: Space(CONDITIONAL).positions({"layers": 1}), "no value for method"),
        (lambda: Space(CONDITIONAL).positions({"x": 1}), "unknown parameters: 'x'"),
        (
            lambda: Space(CONDITIONAL).positions({"method": "adam", "layers": 4}),
            "layers: expected a value",
        ),
        (lambda: Real(0, 1, step=0.25).position(0.3), "expected a value"),
        (lambda: Space.from_dict({"a": {"kind": "Realm"}}), "one of the kinds"),
    ],
)
def test_what_is_wrong_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize(
    "make",
    [
        lambda: Real("0", 1),
        lambda: Integer(0.5, 3),
        lambda: Categorical("abc"),
        lambda: Categorical(b"abc"),
        lambda: Categorical({"a", "b"}),
        lambda: Categorical({"a": 1, "b": 2}),
        lambda: Categorical(letter for letter in "abc"),
        lambda: Categorical([object(), 1]),
        lambda: Space([Real(0, 1)]),
        lambda: Space({1: Real(0, 1)}),
        lambda: Space({"a": (0, 1)}),
        lambda: Real(0, 1, when=3),
    ],
)
def test_what_is_of_a_wrong_type_is_refused(make):
    with pytest.raises(TypeError):
        make()
