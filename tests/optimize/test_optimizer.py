"""The optimizer: exact online learning, resumed studies, and what it finds."""

import json
import math
import os
from unittest import mock

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from boscage import MondrianForestRegressor
from boscage.optimize import Categorical, Integer, MondrianOptimizer, Real, Trial
from boscage.optimize._blocks import block_size, block_start

SPACE = {
    "x": Real(1e-3, 1.0, log=True),
    "n": Integer(1, 8),
    "kind": Categorical(["p", "q", None]),
    "m": Real(0, 1, when={"kind": "p"}),
    "k": Integer(1, 100, log=True, when={"kind": ["q", None]}),
}


def objective(params):
    kind = {"p": params.get("m", 0.0), "q": 1.0, None: 2.0}[params["kind"]]
    away = (math.log10(params["x"]) + 1.5) ** 2 + abs(params["n"] - 4)
    return away + kind + 0.1 * math.log(params.get("k", 1))


def small(space=None, **options):
    options = {"n_initial": 5, "n_candidates": 60, "random_state": 0} | options
    forest = options.pop("forest", MondrianForestRegressor(5, hyperparameters="ml", noise="global"))
    return MondrianOptimizer(SPACE if space is None else space, forest=forest, **options)


def fitted_at_once(optimizer, sign=1.0):
    """The forest that `fit` grows from all complete trials, in an order of its own."""
    complete = [trial for trial in optimizer.trials if trial.state == "complete"][::-1]
    space = optimizer.space
    rows = space.rows(np.array([space.positions(trial.params) for trial in complete]))
    forest = MondrianForestRegressor(**optimizer.surrogate.get_params())
    return forest.fit(rows, [sign * trial.value for trial in complete])


@pytest.mark.parametrize("acquisition", ["ucb", "ei", "thompson"])
@pytest.mark.parametrize("posterior", ["joint", "exact", "fast"])
def test_any_sequence_of_tells_is_one_fit(acquisition, posterior):
    settings = {"hyperparameters": "loo" if posterior == "fast" else "ml"}
    optimizer = small(
        forest=MondrianForestRegressor(5, posterior=posterior, **settings), acquisition=acquisition
    )
    rng = np.random.default_rng(0)
    waiting = []
    for _ in range(12):
        # Several are pending at any time, and come back in another order; some fail.
        waiting += optimizer.ask(int(rng.integers(1, 4)))
        while len(waiting) > 2:
            trial = waiting.pop(int(rng.integers(len(waiting))))
            optimizer.tell(trial, None if rng.random() < 0.2 else objective(trial.params))
    optimizer.tell({"x": 0.5, "n": 3, "kind": "q", "k": 7}, 0.25)
    whole = fitted_at_once(optimizer)
    assert optimizer.surrogate.digest() == whole.digest()
    rows = optimizer.space.rows(
        np.array([optimizer.space.positions(trial.params) for trial in optimizer.trials])
    )
    for ours, theirs in zip(
        optimizer.surrogate.predict(rows, return_std=True),
        whole.predict(rows, return_std=True),
        strict=True,
    ):
        np.testing.assert_array_equal(ours, theirs)
    mean, std = optimizer.predict(optimizer.trials[0].params)
    assert (mean, std) == tuple(float(part[0]) for part in whole.predict(rows[:1], return_std=True))


def test_asking_leaves_no_trace():
    asked, plain = small(), small()
    for number in range(14):
        trial = asked.ask()
        plain.tell(trial.params, objective(trial.params))
        asked.tell(trial, objective(trial.params))
        if number == 9:
            asked.ask(3)  # remain pending
    assert asked.surrogate.digest() == fitted_at_once(asked).digest()
    assert plain.surrogate.digest() == asked.surrogate.digest()


@pytest.mark.parametrize("acquisition", ["ucb", "ei", "thompson"])
def test_a_resumed_study_goes_on_with_the_same_suggestions(acquisition, tmp_path):
    optimizer = small(acquisition=acquisition)
    for number in range(15):
        trial = optimizer.ask()
        value = None if number in (3, 11) else objective(trial.params)
        limits = None if value is None else [trial.params["n"] - 5, -1.0]
        optimizer.tell(trial, value, constraints=limits)
    pending = optimizer.ask(2)
    optimizer.save(tmp_path / "study.json")
    resumed = MondrianOptimizer.load(tmp_path / "study.json")
    assert resumed.trials == optimizer.trials
    assert resumed.to_dict() == optimizer.to_dict()
    for study in (optimizer, resumed):
        for _ in range(4):
            trial = study.ask()
            study.tell(trial, objective(trial.params), constraints=[trial.params["n"] - 5, -1.0])
        study.tell(pending[0].number, 1.5, constraints=[0.0, 0.0])
    assert resumed.trials == optimizer.trials
    assert resumed.surrogate.digest() == optimizer.surrogate.digest()


def test_blocks_part_the_numbers():
    starts = [block_start(number, 500) for number in range(2000)]
    for number, start in enumerate(starts):
        assert start <= number < start + block_size(start, 500)
        assert starts[start] == start
    assert starts[:128] == list(range(128))
    sizes = [block_size(start, 500) for start in starts]
    assert sizes == sorted(sizes)
    assert max(sizes) == 50
    for n_candidates in (1, 20, 100, 5000):
        start = 0
        for number in range(3000):
            if number == start + block_size(start, n_candidates):
                start = number
            assert block_start(number, n_candidates) == start
    assert block_start(10**12, 5) == 10**12


@pytest.mark.parametrize("acquisition", ["ucb", "ei", "thompson"])
def test_a_study_is_resumed_within_a_block(acquisition):
    def value(trial):
        return objective(trial.params), [trial.params["n"] - 6.0]

    study = small(acquisition=acquisition, n_candidates=100)
    for number in range(230):
        trial = study.ask()
        if number == 180:
            waiting = trial
        else:
            told, limits = value(trial)
            study.tell(trial, None if number % 50 == 7 else told, constraints=limits)
    start = block_start(230, 100)
    assert start < 230 < start + block_size(start, 100) - 2
    resumed = MondrianOptimizer.from_dict(json.loads(json.dumps(study.to_dict())))
    assert resumed.ask() == study.ask()
    # Also where the forests have learned what the block does not know, or have been read.
    assert resumed.surrogate.digest() == fitted_at_once(study).digest()
    assert resumed.ask(2) == study.ask(2)
    for each in (study, resumed):
        told, limits = value(waiting)
        each.tell(waiting.number, told, constraints=limits)
    assert resumed.surrogate.digest() == study.surrogate.digest()
    assert resumed.ask(8) == study.ask(8)
    assert block_start(len(study.trials) - 1, 100) > start


def test_a_block_does_not_wait_for_its_own_trials():
    def run(n_waiting):
        study = small(n_candidates=300)
        study.optimize(objective, block_start(320, 300))
        asked = []
        for _ in range(block_size(len(study.trials), 300)):
            asked.append(study.ask())
            if len(asked) > n_waiting:
                study.tell(asked[-n_waiting - 1], 0.0)
        return [dict(trial.params) for trial in asked]

    assert run(0) == run(5) == run(20)
    assert len({repr(params) for params in run(0)}) == 13


def test_a_number_says_which_trial_of_a_study_elsewhere():
    study = small()
    study.optimize(objective, 60)
    value = {number: objective(study.suggest(number=number)) for number in (0, 3, 60, 10**9)}
    design = [objective(trial.params) for trial in study.trials[:5]]
    assert max(value.values()) < np.median(design)  # all that was told counts
    start = block_start(200, 60)
    block = [study.suggest(number=start + place) for place in range(block_size(start, 60))]
    assert len({repr(params) for params in block}) == 6


def test_an_interrupt_leaves_no_belief():
    study = small()
    study.optimize(objective, 20)
    pending = study.ask()
    with (
        mock.patch.object(MondrianForestRegressor, "forget", side_effect=KeyboardInterrupt),
        pytest.raises(KeyboardInterrupt),
    ):
        study.suggest()
    study.tell(pending, 100.0)
    resumed = MondrianOptimizer.from_dict(study.to_dict())
    assert study.predict(pending.params) == resumed.predict(pending.params)
    assert study.surrogate.digest() == fitted_at_once(study).digest()
    assert study.suggest() == resumed.suggest()


def test_suggestions_depend_on_the_seed_and_the_trials_alone():
    def run(**options):
        study = small(**options)
        study.optimize(objective, 14)
        return [trial.params for trial in study.trials]

    assert run() == run() == run(n_jobs=2)
    assert run() != run(random_state=1)
    # A batch is its trials asked for one by one.
    batch, single = small(), small()
    for study in (batch, single):
        study.optimize(objective, 10)
    assert batch.ask(3) == [single.ask() for _ in range(3)]


def test_maximising_is_minimising_the_negative():
    down, up = small(), small(direction="maximize")
    down.optimize(objective, 15)
    up.optimize(lambda params: -objective(params), 15)
    assert [trial.params for trial in up.trials] == [trial.params for trial in down.trials]
    assert up.best_trial.value == -down.best_trial.value
    params = up.best_trial.params
    assert up.predict(params)[0] == -down.predict(params)[0]


def test_no_setting_is_tried_twice_while_others_are_left():
    space = {"a": Integer(0, 3), "b": Categorical(["x", "y"]), "c": Integer(1, 2, when={"b": "x"})}
    study = small(space)
    for _ in range(6):
        for trial in study.ask(2):
            study.tell(trial, float(trial.params["a"]))
    assert len({repr(dict(trial.params)) for trial in study.trials}) == 12
    study.optimize(lambda params: 0.0, 2)  # and then some again
    assert len(study.trials) == 14


@pytest.mark.parametrize("n_candidates", [100, 400])
def test_no_setting_is_tried_twice_by_blocks(n_candidates):
    grid = {"a": Integer(0, 19), "b": Integer(0, 19)}
    study = small(grid, n_candidates=n_candidates)
    everything = [study.space.params(point) for point in study.space.all_positions()]
    for number in range(400):
        if number % 40 == 7:  # not asked for
            tried = [dict(trial.params) for trial in study.trials]
            params = next(params for params in everything if params not in tried)
            study.tell(params, float(params["a"]))
        else:
            trial = study.ask()
            study.tell(trial, float(trial.params["a"]))
    assert len({repr(dict(trial.params)) for trial in study.trials}) == 400


def test_batches_spread():
    study = small({"x": Real(0, 1), "y": Real(0, 1)}, n_candidates=300)
    study.optimize(lambda p: (p["x"] - 0.3) ** 2 + (p["y"] - 0.6) ** 2, 12)
    batch = study.ask(5)
    places = np.array([[trial.params["x"], trial.params["y"]] for trial in batch])
    assert len(np.unique(places.round(6), axis=0)) == 5


@pytest.mark.slow
@pytest.mark.parametrize("acquisition", ["ucb", "ei", "thompson"])
def test_it_finds_a_minimum_that_random_search_does_not(acquisition):
    def sphere(params):
        return sum((params[name] - 0.37) ** 2 for name in "abcd")

    space = {name: Real(0, 1) for name in "abcd"}
    given = {"acquisition": acquisition, "n_candidates": 200}
    found = [
        MondrianOptimizer(space, **given, random_state=seed).optimize(sphere, 50).value
        for seed in range(5)
    ]
    rng = np.random.default_rng(0)
    random = [min(((rng.random((50, 4)) - 0.37) ** 2).sum(axis=1)) for _ in range(200)]
    # The median of five random searches would be so low once in a hundred times.
    assert np.median(found) < np.quantile(random, 0.1)


@pytest.mark.slow
def test_constraints_are_learned():
    space = {"x": Real(0, 1), "y": Real(0, 1)}
    study = MondrianOptimizer(space, n_candidates=200, random_state=0)
    for _ in range(40):
        trial = study.ask()
        x, y = trial.params["x"], trial.params["y"]
        study.tell(trial, x + y, constraints=[0.8 - x, 0.5 - y])
    assert study.best_trial.is_feasible
    assert study.best_trial.value < 1.45  # the least feasible value is 1.3
    assert min(trial.value for trial in study.trials) < 1.0  # not feasible
    feasible = [trial.is_feasible for trial in study.trials]
    assert sum(feasible[20:]) > sum(feasible[:20])


def test_it_looks_for_a_feasible_trial_first():
    study = small({"x": Real(0, 1), "y": Real(0, 1)}, n_candidates=200)
    for _ in range(30):
        trial = study.ask()
        x, y = trial.params["x"], trial.params["y"]
        study.tell(trial, -x, constraints=[(x - 0.9) ** 2 + (y - 0.1) ** 2 - 0.005])
    assert any(trial.is_feasible for trial in study.trials)


def test_places_where_trials_fail_are_avoided():
    study = small({"x": Real(0, 1), "y": Real(0, 1)}, n_candidates=200)

    def fails(params):
        if params["x"] < 0.5:
            raise ZeroDivisionError
        return params["x"] + params["y"]

    study.optimize(fails, 40, catch=ZeroDivisionError)
    failed = [trial.state == "failed" for trial in study.trials]
    assert sum(failed[:10]) >= 3
    assert sum(failed[20:]) <= 6
    assert study.best_trial.value < 0.65


def test_nothing_is_predicted_while_no_trial_is_complete():
    study = small()
    for _ in range(3):
        study.tell(study.ask(), None)
    with pytest.raises(NotFittedError, match="no trial is complete"):
        study.predict(study.ask().params)
    study.tell(study.ask(), 1.0)
    assert np.isfinite(study.predict(study.ask().params)).all()


def test_an_exception_fails_the_trial_and_ends_the_study():
    study = small()

    def broken(params):
        raise KeyError("no")

    with pytest.raises(KeyError):
        study.optimize(broken, 3, catch=ValueError)
    assert [trial.state for trial in study.trials] == ["failed"]
    with pytest.raises(ValueError, match="no trial is complete"):
        _ = study.best_trial


@pytest.mark.parametrize("value", [None, math.nan, math.inf, -math.inf])
def test_what_is_not_finite_is_a_failure(value):
    study = small()
    assert study.tell(study.ask(), value).state == "failed"
    assert study.ask().number == 1


@pytest.mark.parametrize("values", [[0.0], [1e300, -1e300], [1e-300, 0.0]])
@pytest.mark.parametrize("acquisition", ["ucb", "ei", "thompson"])
def test_odd_values_are_borne(values, acquisition):
    study = small(acquisition=acquisition)
    for number in range(12):
        study.tell(study.ask(), values[number % len(values)])
    assert len(study.trials) == 12


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda s: s.tell(99, 1.0), "there is no trial 99"),
        (lambda s: s.tell(0, 1.0), "told already: complete"),
        (lambda s: s.tell(Trial(1, {"x": 1.0}), 1.0), "not from this optimizer"),
        (lambda s: s.tell({"x": 0.5}, 1.0), "no value for n"),
        (lambda s: s.tell({"x": 5.0, "n": 1, "kind": "p", "m": 0.5}, 1.0), "x: expected a value"),
        (lambda s: s.tell(1, 1.0, constraints=[1.0, 2.0]), "expected 1 constraints"),
        (lambda s: s.tell(1, 1.0), "expected 1 constraints"),
        (lambda s: s.tell(1, 1.0, constraints=[math.nan]), "a constraint must be finite"),
        (lambda s: s.tell(1, 10**400, constraints=[1.0]), "value must be a number below 1.8e308"),
        (lambda s: s.tell(1, 1.0, constraints=[10**400]), "a number that is too large for a float"),
        (lambda s: s.ask(0), "n must be >= 1"),
        (lambda s: s.optimize(objective, 0), "n_trials must be >= 1"),
    ],
)
def test_what_is_wrong_is_refused_and_changes_nothing(call, message):
    study = small()
    study.tell(study.ask(), 1.0, constraints=[-1.0])
    study.ask()
    before = study.to_dict()
    with pytest.raises(ValueError, match=message):
        call(study)
    assert study.to_dict() == before
    assert study.surrogate.n_rows_ == 1


@pytest.mark.parametrize(
    "options",
    [
        {"direction": "down"},
        {"acquisition": "pi"},
        {"kappa": -1.0},
        {"n_initial": 0},
        {"n_candidates": 0},
        {"random_state": -1},
    ],
)
def test_parameters_are_checked(options):
    with pytest.raises(ValueError, match=next(iter(options))):
        MondrianOptimizer(SPACE, **options)


@pytest.mark.parametrize(
    "change",
    [
        {"format": "other"},
        {"version": 99},
        {"settings": {}},
        {"space": {"x": 3}},
        {"trials": [{"number": 4}]},
        {"trials": 7},
        {"forest": None},
    ],
)
def test_files_that_are_no_study_are_refused(change, tmp_path):
    study = small()
    study.optimize(objective, 3)
    path = tmp_path / "study.json"
    path.write_text(json.dumps(study.to_dict() | change))
    with pytest.raises(ValueError, match=r"stud|version|format"):
        MondrianOptimizer.load(path)
    for damaged in (b"{", b"\xff\xfe\x00"):
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match=r"study\.json is not a study"):
            MondrianOptimizer.load(path)


@pytest.mark.parametrize("given", [1.0, "abc", [[1.0]], [object()], np.array(0.5)])
def test_constraints_that_are_no_sequence_of_numbers_are_refused(given):
    study = small()
    with pytest.raises(
        TypeError, match=r"constraints must be a sequence .* such as \[0\.5\], found"
    ):
        study.tell(study.ask(), 1.0, constraints=given)
    assert study.trials[0].state == "pending"


def test_a_refused_number_of_constraints_changes_nothing():
    optimizer = small()
    failed, complete, other = optimizer.ask(3)
    optimizer.tell(failed, None, constraints=[0.5])
    for constraints in (None, [0.1, 0.2]):
        with pytest.raises(ValueError, match="expected 1 constraints"):
            optimizer.tell(complete, 1.0, constraints=constraints)
        assert complete.state == optimizer.trials[1].state == "pending"
    # Numbers whose squares would overflow are as good as the greatest that do not.
    optimizer.tell(complete, 1.0, constraints=[1e200])
    optimizer.tell(other, None)
    assert [trial.state for trial in optimizer.trials] == ["failed", "complete", "failed"]
    optimizer.ask()


def test_an_interrupted_trial_stays_pending():
    optimizer = small()

    def interrupted(params):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        optimizer.optimize(interrupted, 1)
    assert optimizer.trials[0].state == "pending"


def test_a_study_that_cannot_be_written_leaves_the_old_file(tmp_path, monkeypatch):
    optimizer = MondrianOptimizer({"x": Real(0, 1)}, random_state=0)
    optimizer.save(tmp_path / "study.json")
    before = (tmp_path / "study.json").read_bytes()
    optimizer.ask()

    def full(*_):
        raise OSError("no space left")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="no space left"):
        optimizer.save(tmp_path / "study.json")
    assert [path.name for path in tmp_path.iterdir()] == ["study.json"]
    assert (tmp_path / "study.json").read_bytes() == before
