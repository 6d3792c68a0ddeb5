"""The sampler for Optuna: Optuna's own tests of samplers, and ours."""

import importlib
import math
import pickle
import sys

import pytest

optuna = pytest.importorskip("optuna")

from optuna.testing.pytest_samplers import (  # noqa: E402
    BasicSamplerTestCase,
    RelativeSamplerTestCase,
    SingleOnlySamplerTestCase,
)

from boscage import MondrianForestRegressor  # noqa: E402
from boscage.integration import MondrianSampler  # noqa: E402
from boscage.optimize import Categorical, Integer, MondrianOptimizer, Real  # noqa: E402
from boscage.optimize._blocks import block_size, block_start  # noqa: E402


@pytest.fixture(autouse=True)
def _quiet():
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    yield
    optuna.logging.set_verbosity(before)


def small(**options):
    forest = MondrianForestRegressor(3, hyperparameters="heuristic", noise="global")
    given = {"seed": 0, "n_startup_trials": 5, "n_candidates": 30, "forest": forest}
    return MondrianSampler(**(given | options))


def objective(trial):
    x = trial.suggest_float("x", 1e-3, 1.0, log=True)
    n = trial.suggest_int("n", 1, 9, step=2)
    kind = trial.suggest_categorical("kind", ["a", "b", None])
    return x + abs(n - 5) + (kind != "b")


def params_of(study):
    return [trial.params for trial in study.trials]


class TestOptunasOwnTests(BasicSamplerTestCase, RelativeSamplerTestCase, SingleOnlySamplerTestCase):
    @pytest.fixture
    def sampler(self):
        return lambda: small(n_startup_trials=1)


def test_a_new_sampler_continues_a_study():
    kept = optuna.create_study(sampler=small())
    kept.optimize(objective, 16)
    anew = optuna.create_study(sampler=small())
    anew.optimize(objective, 5)  # the independent sampler has a state of its own
    for _ in range(11):
        anew.sampler = small()
        anew.optimize(objective, 1)
    assert params_of(anew) == params_of(kept)
    other = optuna.create_study(sampler=small(seed=1))
    other.optimize(objective, 16)
    assert params_of(other) != params_of(kept)


def test_a_new_sampler_continues_within_a_block():
    def sampler():
        return small(n_candidates=100)

    kept, start = optuna.create_study(sampler=sampler()), block_start(185, 100)
    assert block_size(start, 100) == 5
    kept.optimize(objective, start - 1)
    objective(kept.ask())  # remains running
    kept.optimize(objective, 1)
    objective(kept.ask())  # in the block, too
    anew = optuna.create_study(sampler=sampler())
    anew.add_trials(kept.trials)
    for study in (kept, anew):
        study.optimize(objective, 4)
    assert params_of(anew) == params_of(kept)
    assert len({repr(params) for params in params_of(kept)[start:]}) == 6


def test_trials_asked_for_together_differ_within_a_block():
    study = optuna.create_study(sampler=small(n_candidates=100))
    study.optimize(objective, block_start(200, 100))
    together = [study.ask() for _ in range(block_size(len(study.trials), 100))]
    assert len(together) == 6
    # Optuna asks for suggestions when the first parameter is, and others still lack theirs.
    first = [trial.suggest_float("x", 1e-3, 1.0, log=True) for trial in together]
    rest = [
        (trial.suggest_int("n", 1, 9, step=2), trial.suggest_categorical("kind", ["a", "b", None]))
        for trial in together
    ]
    assert len(set(zip(first, rest, strict=True))) == len(together)


def test_suggestions_are_those_of_the_optimizer():
    study = optuna.create_study(direction="maximize", sampler=small())
    study.optimize(objective, 9)
    optimizer = MondrianOptimizer(
        # Optuna sorts the parameters that trials have in common by name.
        {
            "kind": Categorical([0, 1, 2]),
            "n": Integer(1, 9, step=2),
            "x": Real(1e-3, 1.0, log=True),
        },
        direction="maximize",
        n_initial=1,
        n_candidates=30,
        forest=small()._options["forest"],
        random_state=0,
    )
    choices = ["a", "b", None]
    for trial in study.trials:
        params = trial.params | {"kind": choices.index(trial.params["kind"])}
        optimizer.tell(params, trial.value)
    found = optimizer.suggest(number=9)
    study.optimize(objective, 1)
    assert study.trials[9].params == found | {"kind": choices[found["kind"]]}


def test_constraints_of_trials_are_learned():
    def constrained(trial):
        x, y = trial.suggest_float("x", 0, 1), trial.suggest_float("y", 0, 1)
        trial.set_constraint("sum", 1.2 - x - y)
        return x + 2 * y

    study = optuna.create_study(sampler=small(n_candidates=100))
    study.optimize(constrained, 30)
    met = [trial.constraints["sum"] <= 0 for trial in study.trials]
    assert any(met[:8])
    assert not all(met[:8])
    best = min(trial.value for trial, feasible in zip(study.trials, met, strict=True) if feasible)
    assert best < 1.75  # the least feasible value is 1.4


def test_running_trials_are_taken_into_account():
    study = optuna.create_study(sampler=small())
    study.optimize(objective, 8)
    first = study.ask()
    objective(first)
    second = study.ask()
    objective(second)
    assert second.params != first.params
    beside = study.sampler._optimizer.surrogate.n_rows_
    assert beside == 8  # what was believed is forgotten


def test_failed_and_pruned_trials():
    def sometimes(trial):
        x = trial.suggest_float("x", 0, 1)
        if x < 0.4:
            raise RuntimeError
        trial.report(x + 1, 0)
        if x > 0.8:
            raise optuna.TrialPruned
        return x

    study = optuna.create_study(sampler=small(n_candidates=100))
    study.optimize(sometimes, 40, catch=(RuntimeError,))
    optimizer = study.sampler._optimizer
    states = [trial.state for trial in optimizer.trials]
    assert "failed" in states
    pruned = optuna.trial.TrialState.PRUNED
    reported = [t.intermediate_values[0] for t in study.get_trials(states=(pruned,))]
    assert reported
    told = [trial.value for trial in optimizer.trials]
    assert all(value in told for value in reported)
    assert study.best_value < 0.45


def test_threads_and_pickles():
    study = optuna.create_study(sampler=small())
    study.optimize(objective, 12, n_jobs=2)
    assert len(study.trials) == 12
    again = pickle.loads(pickle.dumps(study.sampler))
    resumed = optuna.create_study(sampler=again)
    resumed.add_trials(study.trials)
    resumed.optimize(objective, 1)
    study.optimize(objective, 1)
    assert resumed.trials[-1].params == study.trials[-1].params


@pytest.mark.parametrize(
    "options",
    [{"n_startup_trials": 0}, {"acquisition": "no"}, {"kappa": -1.0}, {"n_candidates": 0}],
)
def test_parameters_are_checked(options):
    with pytest.raises(ValueError, match=next(iter(options))):
        MondrianSampler(**options)


def test_without_optuna_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "optuna", None)
    for name in ("boscage.integration", "boscage.integration.optuna"):
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(ImportError, match=r'pip install "boscage\[optuna\]"'):
        importlib.import_module("boscage.integration")


def test_a_range_may_change_after_a_failed_trial():
    study = optuna.create_study(sampler=small())
    study.enqueue_trial({"x": 9.0})

    def failing(trial):
        trial.suggest_float("x", 0.0, 10.0)
        raise ValueError("too far")

    study.optimize(failing, 1, catch=ValueError)
    study.optimize(lambda trial: trial.suggest_float("x", 0.0, 5.0), 8)
    assert all(trial.params["x"] <= 5.0 for trial in study.trials[1:])


def one(trial):
    return trial.suggest_float("x", 0.0, 1.0)


@pytest.mark.parametrize("odd", [9.0, -0.1])
@pytest.mark.filterwarnings("ignore:Fixed parameter x with value")
def test_trials_with_values_outside_the_range_are_left_out(odd):
    inside = [0.1, 0.9, 0.5, 0.3, 0.7]
    study = optuna.create_study(sampler=small(n_startup_trials=6))
    for value in [inside[0], odd, *inside[1:], odd, odd]:
        study.enqueue_trial({"x": value})
    # A complete trial, a failed one and one that runs on.
    study.optimize(one, 6)
    study.optimize(lambda trial: [one(trial), 1 / 0], 1, catch=ZeroDivisionError)
    one(study.ask())
    study.optimize(one, 1)
    assert study.sampler._optimizer is None  # five trials do not suffice
    study.optimize(one, 3)
    told = [trial.params["x"] for trial in study.sampler._optimizer.trials]
    assert told == [*inside, *(trial.params["x"] for trial in study.trials[8:11])]
    assert all(0.0 <= trial.params["x"] <= 1.0 for trial in study.trials[8:])


def test_trials_with_infinite_values_are_none_to_start_with(monkeypatch):
    said = []
    monkeypatch.setattr("boscage.integration.optuna._logger.warning", said.append)
    study = optuna.create_study(sampler=small(n_startup_trials=4))
    study.optimize(lambda trial: one(trial) + math.inf, 6)
    study.optimize(one, 4)
    assert study.sampler._optimizer is None
    study.optimize(one, 1)
    states = [trial.state for trial in study.sampler._optimizer.trials]
    assert states == ["failed"] * 6 + ["complete"] * 4
    assert said == []
    study.optimize(lambda trial: one(trial) + trial.suggest_float("y", 0.0, 2.0), 1)
    assert len(said) == 1


def test_a_constraint_that_is_not_set_is_met():
    def limited(trial):
        value = objective(trial)
        if trial.params["x"] < 0.3:
            trial.set_constraint("c", 1.0)
        return value

    sampler = small()
    study = optuna.create_study(sampler=sampler)
    study.optimize(limited, 30)
    known = sampler._optimizer.trials
    # The last trial's result is told with the next one.
    assert len(known) == 29
    assert [trial.constraints for trial in known] == [
        (trial.constraints.get("c", 0.0),) for trial in study.trials[:29]
    ]
    assert {trial.is_feasible for trial in known} == {True, False}


def test_an_infinite_constraint_fails_its_trial_only():
    def limited(trial):
        value = objective(trial)
        trial.set_constraint("c", {3: math.inf, 4: -math.inf}.get(trial.number, -1.0))
        return value

    sampler = small()
    study = optuna.create_study(sampler=sampler)
    study.optimize(limited, 15)
    states = [trial.state for trial in sampler._optimizer.trials]
    assert states == ["failed" if number == 3 else "complete" for number in range(14)]
    assert sampler._optimizer.trials[4].constraints == (-1e100,)


def test_new_seeds_leave_what_was_learned():
    sampler = small()
    study = optuna.create_study(sampler=sampler)
    study.optimize(objective, 12)
    learned = sampler._optimizer
    sampler.reseed_rng()
    study.optimize(objective, 1)
    assert sampler._optimizer is learned


def test_seeds_have_64_bits():
    study = optuna.create_study(sampler=small(seed=2**40))
    study.optimize(objective, 7)
    assert len(study.trials) == 7


def test_the_order_of_results_does_not_matter():
    def step(trial):  # two values for all
        return float(trial.suggest_float("x", 0, 1) > 0.2)

    late = optuna.create_study(sampler=small(n_startup_trials=3))
    late.optimize(step, 3)
    for _ in range(6):
        waiting = [late.ask() for _ in range(4)]
        results = [step(trial) for trial in waiting]
        late.optimize(step, 3)
        for trial, result in reversed([*zip(waiting, results, strict=True)]):
            late.tell(trial, result)
        anew = optuna.create_study(sampler=small(n_startup_trials=3))
        anew.add_trials(late.trials)
        for study in (late, anew):
            study.optimize(step, 1)
        assert anew.trials[-1].params == late.trials[-1].params
