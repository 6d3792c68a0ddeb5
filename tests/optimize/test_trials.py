"""Trials as their owners see them: values of their own, and the best one."""

import pytest

from boscage.optimize import Categorical, Integer, MondrianOptimizer, Real, Space

SPACE = {"x": Real(0, 1), "n": Integer(1, 9)}


def test_changed_values_change_no_study():
    study = MondrianOptimizer(SPACE, n_initial=2, random_state=0)
    other = MondrianOptimizer(SPACE, n_initial=2, random_state=0)
    for number in range(6):
        trial = study.ask()
        assert trial == other.ask()
        trial.params.pop("n")
        with pytest.raises(ValueError, match="its parameters differ"):
            study.tell(trial, 0.0)
        told = study.tell(trial.number, float(number))
        told.params["x"] = 0.123
        study.best_trial.params["x"] = 0.456
        other.tell(number, float(number))
    assert study.to_dict() == other.to_dict()
    assert MondrianOptimizer.from_dict(study.to_dict()).ask() == study.ask() == other.ask()


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
@pytest.mark.parametrize("scale", [1e-200, 1.0, 1e200])
def test_the_best_trial_has_the_best_value(direction, scale):
    study = MondrianOptimizer(SPACE, direction=direction, random_state=0)
    for number, value in enumerate([2.0, 1.0, 3.0, 1.5]):
        study.tell({"x": 0.1 * number, "n": 1}, scale * value)
    assert study.best_trial.number == (1 if direction == "minimize" else 2)


def test_a_result_that_is_no_number_fails_its_trial():
    study = MondrianOptimizer(SPACE, random_state=0)
    with pytest.raises(TypeError, match="value must be a number or None, found 'a'"):
        study.optimize(lambda params: "a", 3)
    assert [trial.state for trial in study.trials] == ["failed"]


def test_a_result_that_is_refused_is_no_failure():
    study = MondrianOptimizer(SPACE, random_state=0)
    study.tell({"x": 0.5, "n": 1}, 1.0, constraints=[0.0])
    with pytest.raises(ValueError, match="expected 1 constraints"):
        study.optimize(lambda params: 1.0, 2, catch=ValueError)
    assert [trial.state for trial in study.trials] == ["complete", "pending"]


def test_exceptions_to_catch_may_be_a_list():
    study = MondrianOptimizer(SPACE, random_state=0)
    study.optimize(lambda params: 1.0 / (params["n"] - 5), 12, catch=[ZeroDivisionError])
    assert {trial.state for trial in study.trials} == {"complete", "failed"}
    with pytest.raises(KeyError):
        study.optimize(lambda params: params["z"], 2, catch=[ZeroDivisionError])


def test_a_space_may_have_more_settings_than_a_float_can_count():
    bits = {f"b{i}": Categorical([0, 1]) for i in range(1100)}
    space = Space(bits | {"x": Real(0, 1)})
    assert space.n_values == float("inf")
    assert Space({f"n{i}": Integer(0, 10**9) for i in range(40)}).n_values == float("inf")


def test_conditions_tell_neighbours_of_a_wide_range_apart():
    space = Space({"n": Integer(0, 10**10), "x": Real(0, 1, when={"n": 5})})
    for n in (4, 5, 6):
        given = {"n": n, "x": 0.5} if n == 5 else {"n": n}
        assert space.params(space.positions(given)) == given
