"""Threads that share a forest: reads run together, updates alone, and each read is of one state."""

from __future__ import annotations

import copy
import io
import pickle
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import boscage
from boscage import MondrianForestClassifier, MondrianForestRegressor
from boscage.optimize import MondrianOptimizer, Real
from small_forests import both, make, predict

AT_LAST = 60.0
RNG = np.random.default_rng(0)
N_FIRST, BATCH, N = 40, 10, 240
X = RNG.uniform(size=(N, 3))
Y = (X[:, 0] > 0.5).astype(int)
AT = RNG.uniform(size=(20, 3))
# A prediction after an update computes little anew.
FAST: dict[Any, dict[str, Any]] = {
    MondrianForestClassifier: {"calibration": None},
    MondrianForestRegressor: {"posterior": "fast"},
}


@pytest.fixture(autouse=True)
def _often_the_other_thread() -> Iterator[None]:
    """Python changes threads within calls, too, although these are short."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


def fast(kind: Any, **params: Any) -> Any:
    return make(kind, **(FAST[kind] | params))


def together(*calls: Callable[[], Any]) -> list[Any]:
    """What calls return that begin at the same time, each in a thread of its own."""
    start = threading.Barrier(len(calls))

    def answer(call: Callable[[], Any], asked: Future[Any]) -> None:
        try:
            start.wait(AT_LAST)
            asked.set_result(call())
        except BaseException as error:
            asked.set_exception(error)

    asked: list[Future[Any]] = [Future() for _ in calls]
    for each in zip(calls, asked, strict=True):
        # Threads that wait for ever do not keep the tests from ending.
        threading.Thread(target=answer, args=each, daemon=True).start()
    return [each.result(AT_LAST) for each in asked]


def learn(forest: Any, x: Any = X, y: Any = Y, first: int = N_FIRST) -> Iterator[None]:
    """Give a forest the rest of the rows, batch by batch."""
    for start in range(first, N, BATCH):
        forest.partial_fit(x[start : start + BATCH], y[start : start + BATCH])
        yield


def while_learning(forest: Any, read: Callable[[Any], Any], **rows: Any) -> list[Any]:
    """What one thread reads while another one gives the forest its rows."""
    learned = threading.Event()

    def write() -> None:
        try:
            for _ in learn(forest, **rows):
                time.sleep(0.002)
        finally:
            learned.set()

    def read_on() -> list[Any]:
        found = [read(forest)]
        while not learned.is_set():
            found.append(read(forest))
        return found

    found: list[Any] = together(write, read_on)[1]
    return found


def assert_states_in_order(found: list[Any], states: list[Any]) -> None:
    """Everything that was read is one of the states, and none comes before an earlier one."""
    places = [states.index(each) for each in found]
    assert places == sorted(places)
    assert len(set(places)) > 2, "the threads did not run at the same time"


# -- a thread that reads, and one that learns -----------------------------------------------------


@both
def test_predictions_are_of_one_state_while_another_thread_learns(kind: Any) -> None:
    def first() -> Any:
        return fast(kind).fit(X[:N_FIRST], Y[:N_FIRST])

    def read(forest: Any) -> bytes:
        return bytes(predict(forest, AT).tobytes())

    alone, forest = first(), first()
    states = [read(alone), *(read(alone) for _ in learn(alone))]
    assert_states_in_order(while_learning(forest, read), states)
    assert forest.n_rows_ == N
    assert forest.digest() == alone.digest() == fast(kind).fit(X, Y).digest()


def test_labels_are_those_of_the_probabilities_while_classes_come() -> None:
    """New labels sort before the others, so that each of them moves all columns."""
    labels = np.array([f"{N - i // 20 * 20:03}" for i in range(N)])
    x = np.linspace(0.0, 1.0, N)[:, None].repeat(3, axis=1)

    def first() -> Any:
        return fast(MondrianForestClassifier).fit(x[:N_FIRST], labels[:N_FIRST])

    def read(forest: Any) -> list[str]:
        return list(forest.predict(x[::7]))

    alone, forest = first(), first()
    states = [read(alone)]
    for _ in learn(alone, x, labels):
        if read(alone) != states[-1]:
            states.append(read(alone))
    assert len(states) > 5
    assert_states_in_order(while_learning(forest, read, x=x, y=labels), states)


def test_categories_are_those_of_the_trees_while_they_are_learned_anew() -> None:
    """The warm-up gives categories new places, and grows other trees with them."""
    x = X.astype(object)
    x[:, 1] = np.array(list("abcdefgh"))[(X[:, 1] * 8).astype(int)]
    y = np.isin(x[:, 1], list("bdfg")).astype(int)

    def first() -> Any:
        forest = fast(
            MondrianForestClassifier, feature_range=None, categorical_features=[1], warm_up=N
        )
        return forest.partial_fit(x[:15], y[:15])

    def read(forest: Any) -> tuple[Any, ...]:
        return tuple(forest.predict_proba(x[::5])[:, 0])

    alone, forest = first(), first()
    states = [read(alone), *(read(alone) for _ in learn(alone, x, y, 15))]
    found = while_learning(forest, read, x=x, y=y, first=15)
    assert_states_in_order(found, list(dict.fromkeys(states)))
    assert forest.digest() == alone.digest()


@both
@pytest.mark.parametrize("way", ["copy", "deepcopy", "pickle", "save"])
def test_a_copy_is_a_state_between_two_updates(kind: Any, way: str) -> None:
    def first() -> Any:
        return fast(kind, feature_range=None, warm_up=150).partial_fit(X[:N_FIRST], Y[:N_FIRST])

    def twin(forest: Any) -> Any:
        time.sleep(0.001)  # not too many copies
        if way == "copy":
            return forest.copy()
        if way == "deepcopy":
            return copy.deepcopy(forest)
        if way == "pickle":
            return pickle.loads(pickle.dumps(forest))
        stream = io.BytesIO()
        forest.save(stream)
        stream.seek(0)
        return boscage.load(stream)

    def state(forest: Any) -> tuple[Any, ...]:
        return forest.digest(), forest.n_rows_, forest.warm_up_left_

    alone, forest = first(), first()
    states = [state(alone), *(state(alone) for _ in learn(alone))]
    twins = while_learning(forest, twin)
    assert_states_in_order([state(each) for each in twins], states)
    assert state(forest) == states[-1]
    # Copies are independent, and go on.
    assert twins[0].partial_fit(AT, Y[:20], ids=range(N, N + 20)).n_rows_ > N_FIRST
    assert state(forest) == states[-1]


# -- threads that change --------------------------------------------------------------------------


@both
def test_updates_of_several_threads_are_all_made(kind: Any) -> None:
    forest = fast(kind).fit(X[:N_FIRST], Y[:N_FIRST])

    def insert(rows: Any) -> None:
        for row in rows:
            forest.partial_fit(X[[row]], Y[[row]], ids=[row])

    def remove() -> None:
        for row in range(20):
            forest.forget([row])

    def merge() -> None:
        for row in range(200, 220):
            forest.merge(fast(kind).fit(X[[row]], Y[[row]], ids=[row]))

    together(lambda: insert(range(N_FIRST, 120)), lambda: insert(range(120, 200)), remove, merge)
    assert sorted(forest.ids_) == [*range(20, 220)]
    assert forest.digest() == fast(kind).fit(X[20:220], Y[20:220]).digest()


@both
def test_rows_without_ids_are_numbered_once(kind: Any) -> None:
    forest = fast(kind, window_size=100).fit(X[:N_FIRST], Y[:N_FIRST])

    def insert() -> None:
        for start in range(N_FIRST, N, BATCH):
            forest.partial_fit(X[start : start + BATCH], Y[start : start + BATCH])
            assert forest.n_rows_ <= 100

    together(insert, insert)
    np.testing.assert_array_equal(forest.ids_, N_FIRST + 2 * (N - N_FIRST) - 100 + np.arange(100))


@both
def test_forests_that_are_merged_with_each_other_do_not_wait_for_ever(kind: Any) -> None:
    a = fast(kind).fit(X[:20], Y[:20])
    b = fast(kind).fit(X[20:40], Y[20:40], ids=range(20, 40))
    held = threading.Event()

    def hold() -> None:
        """Let each merge wait for its first lock, so that they take these at the same time."""
        with a._lock.reading, b._lock.reading:
            held.set()
            time.sleep(0.1)

    def error_of(ours: Any, theirs: Any) -> str:
        assert held.wait(AT_LAST)
        try:
            ours.merge(theirs)
        except ValueError as error:
            return str(error)
        return ""

    found = together(hold, lambda: error_of(a, b), lambda: error_of(b, a))[1:]
    # The second one finds the rows of both in the other forest.
    assert "" in found
    assert "already in the forest" in "".join(found)
    assert sorted([a.n_rows_, b.n_rows_]) == [20, 40]


# -- every call -----------------------------------------------------------------------------------

ARGUMENTS: dict[str, tuple[Any, ...]] = {
    **dict.fromkeys(("predict", "predict_proba", "predict_log_proba", "predict_dist"), (AT,)),
    **dict.fromkeys(("predict_uncertainty", "score_samples", "apply", "kernel"), (AT,)),
    **dict.fromkeys(("decision_path", "contributions"), (AT,)),
    **dict.fromkeys(("fit", "partial_fit", "score"), (X, Y)),
    **dict.fromkeys(("flush", "digest", "copy", "loo_score_samples"), ()),
    **dict.fromkeys(("loo_predict_proba", "loo_predict_dist", "log_marginal_likelihood"), ()),
    "forget": ([0],),
    "save": (io.BytesIO(),),
}
# They have to do with parameters or classes alone, or only call another one.
OTHERS = {"explain", "get_metadata_routing", "get_params", "load", "merge", "set_params"}


@both
def test_every_call_waits_until_an_update_has_ended(kind: Any) -> None:
    forest = make(kind).fit(X, Y)
    names = {name for name in dir(kind) if not name.startswith("_")} - OTHERS
    names = {name for name in names if not name.endswith("_request")}
    assert len(names) > 30

    def call(name: str) -> None:
        found = getattr(forest, name)
        if name in ARGUMENTS:
            found(*ARGUMENTS[name])

    def merge() -> None:
        forest.merge(make(kind).fit(X, Y, ids=range(N, 2 * N)))

    assert names >= {"n_rows_", "ids_", "trees_", "feature_importances_"}
    with ThreadPoolExecutor(len(names) + 3) as pool:
        with forest._lock.writing:
            asked = {name: pool.submit(call, name) for name in names}
            asked |= {
                "merge": pool.submit(merge),
                "merged": pool.submit(lambda: make(kind).fit(X[:1], Y[:1]).merge(forest)),
                "pickle": pool.submit(pickle.dumps, forest),
            }
            time.sleep(0.3)
            assert [name for name, each in asked.items() if each.done()] == []
            assert getattr(forest, "n_rows_", None) == N, "the thread that updates reads"
        ended, _ = wait(asked.values(), AT_LAST)
        assert len(ended) == len(asked)


@contextmanager
def reporting(forest: Any, report: Callable[..., None]) -> Iterator[None]:
    """Let a forest report progress to a function, as it does to a progress bar."""

    @contextmanager
    def progress(description: str) -> Iterator[Any]:
        yield report

    forest._progress = progress
    try:
        yield
    finally:
        del forest._progress


@both
def test_a_report_of_progress_may_read_the_forest_and_not_change_it(kind: Any) -> None:
    forest = make(kind, n_estimators=100).fit(X[:N_FIRST], Y[:N_FIRST])
    found = []

    def read(done: int, total: int) -> None:
        found.append(forest.n_rows_)

    def write(done: int, total: int) -> None:
        forest.partial_fit(AT, Y[:20])

    forest.partial_fit(X[N_FIRST:], Y[N_FIRST:])
    with reporting(forest, read):
        together(forest.flush)
    assert found
    assert set(found) == {N}
    forest.forget(range(100))
    with reporting(forest, write), pytest.raises(RuntimeError, match="cannot change it"):
        together(forest.flush)
    assert forest.n_rows_ == N - 100
    assert forest.digest() == make(kind, n_estimators=100).fit(X[100:], Y[100:]).digest()


# -- the lock -------------------------------------------------------------------------------------


def lock() -> Any:
    return make(MondrianForestClassifier)._lock


def test_readers_run_together_and_a_writer_alone() -> None:
    shared, inside = lock(), threading.Barrier(3)

    def read() -> None:
        with shared.reading:
            inside.wait(AT_LAST)

    together(read, read, read)
    n_inside, most = 0, []

    def write() -> None:
        nonlocal n_inside
        for _ in range(50):
            with shared.writing:
                n_inside += 1
                time.sleep(0.0002)
                most.append(n_inside)
                n_inside -= 1

    together(write, write, write)
    assert most == [1] * 150


@pytest.mark.parametrize("first", ["reading", "writing"])
def test_nobody_waits_for_ever(first: str) -> None:
    """Calls of two threads hardly leave a gap between them, and one of the other kind gets in."""
    shared, done = lock(), threading.Event()
    other = "writing" if first == "reading" else "reading"

    def go_on() -> None:
        end = time.perf_counter() + AT_LAST
        while not done.is_set():
            assert time.perf_counter() < end
            with getattr(shared, first):
                time.sleep(0.002)

    def come() -> None:
        for _ in range(10):
            time.sleep(0.003)
            with getattr(shared, other):
                pass
        done.set()

    together(go_on, go_on, come)


def test_a_thread_may_take_the_lock_again_although_another_one_waits() -> None:
    shared, has, waits = lock(), threading.Event(), threading.Event()

    def read() -> None:
        with shared.reading:
            has.set()
            assert waits.wait(AT_LAST)
            time.sleep(0.1)
            with shared.reading, pytest.raises(RuntimeError, match="cannot change it"):
                shared.writing.__enter__()

    def write() -> None:
        assert has.wait(AT_LAST)
        waits.set()
        with shared.writing, shared.reading, shared.writing:
            pass

    together(read, write)
    with pytest.raises(RuntimeError, match="does not have the lock"):
        shared.reading.__exit__(None, None, None)


def test_a_copy_of_a_lock_is_another_one() -> None:
    shared = lock()
    with shared.writing:
        for twin in (copy.deepcopy(shared), pickle.loads(pickle.dumps(shared))):
            together(twin.writing.__enter__)


# -- optimisation ---------------------------------------------------------------------------------


def test_threads_may_ask_and_tell_at_the_same_time() -> None:
    study = MondrianOptimizer(
        {"x": Real(0, 1), "y": Real(0, 1)}, n_initial=5, n_candidates=50, random_state=0
    )

    def work() -> None:
        for _ in range(8):
            trial = study.ask()
            study.tell(trial, (trial.params["x"] - 0.3) ** 2 + trial.params["y"])
            assert study.best_trial.value is not None
            assert study.predict(trial.params)[1] >= 0.0

    together(work, work, work)
    assert [trial.number for trial in study.trials] == [*range(24)]
    assert all(trial.state == "complete" for trial in study.trials)
    assert len({tuple(trial.params.values()) for trial in study.trials}) == 24
    twins = [MondrianOptimizer.from_dict(study.to_dict()), copy.deepcopy(study)]
    assert {tuple(each.suggest().values()) for each in [study, *twins]} == {
        tuple(study.suggest().values())
    }
