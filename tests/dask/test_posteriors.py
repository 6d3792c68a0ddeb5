"""Chains and islands that are sampled on a cluster are those of one machine."""

import pickle
import warnings

import numpy as np
import pytest

pytest.importorskip("distributed")

import dask.array as da
import dask.dataframe as dd
import distributed
import pandas as pd
from scipy.sparse import csc_array, csr_array
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import boscage
from boscage.dask import fit_posterior
from boscage.dask._posteriors import sample_part
from generated import rows_and_numbers

pytestmark = pytest.mark.slow

N_ROWS, N_FEATURES = 90, 3
X, NUMBERS = rows_and_numbers(N_ROWS, N_FEATURES, 1, np.float64)
TWO = np.where(np.median(NUMBERS) < NUMBERS, "high", "low")
THREE = np.digitize(NUMBERS, np.quantile(NUMBERS, [0.3, 0.7]))
WEIGHTS = np.arange(N_ROWS) % 4 * 1.0

SHORT = {"n_burn": 10, "n_draws": 6, "random_state": 3}
POSTERIORS = {
    "numbers": (boscage.BARTRegressor(5, n_chains=3, sparse=True, **SHORT), NUMBERS),
    "two-classes": (boscage.BARTClassifier(5, n_chains=2, k="learned", **SHORT), TWO),
    "three-classes": (boscage.BARTClassifier(4, n_chains=3, **SHORT), THREE),
    "smc": (boscage.BayesianTreeRegressor(boscage.SMC(n_islands=3), random_state=4), NUMBERS),
    "smc-by-evidence": (
        boscage.BayesianTreeClassifier(
            boscage.SMC(n_islands=4, n_particles=20, proposal="prior", island_weights="evidence"),
            random_state=5,
        ),
        THREE,
    ),
    "smc-by-layers": (
        boscage.BayesianTreeRegressor(
            boscage.SMC(n_islands=3, expansion="layer", proposal="exploring"), random_state=7
        ),
        NUMBERS,
    ),
    "mcmc": (
        boscage.BayesianTreeClassifier(
            boscage.MCMC(n_chains=3, n_burn=50, n_draws=9), random_state=6
        ),
        TWO,
    ),
}


def in_file(model):
    """All that a model is, its parameters included."""
    return pickle.dumps(clone(model)), model._model.to_bytes()


def chunked(array, lengths):
    return da.from_array(array, chunks=(lengths, *array.shape[1:]))


@pytest.mark.parametrize("name", POSTERIORS)
def test_any_workers_and_partitions_give_the_fit_of_one_machine(client, name):
    model, y = POSTERIORS[name]
    expected = in_file(clone(model).fit(X, y))
    for lengths in [(N_ROWS,), (7, 50, 33)]:
        found = fit_posterior(clone(model), chunked(X, lengths), chunked(y, lengths), client=client)
        assert in_file(found) == expected
    # Arrays of this process, on one worker.
    one = distributed.LocalCluster(n_workers=1, processes=False, dashboard_address=":0")
    with one, distributed.Client(one, set_as_default=False) as alone:
        assert in_file(fit_posterior(clone(model), X, y, client=alone)) == expected


@pytest.mark.parametrize("name", ["numbers", "smc", "mcmc"])
def test_sparse_rows_of_this_process_are_the_dense_ones(client, name):
    model, y = POSTERIORS[name]
    rows = np.where(X > 0.3, X, 0.0)
    expected = in_file(clone(model).fit(rows, y))
    for form in (csr_array(rows), csc_array(rows)):
        assert in_file(fit_posterior(clone(model), form, y, client=client)) == expected


@pytest.mark.parametrize("name", ["numbers", "two-classes", "smc", "smc-by-evidence", "mcmc"])
def test_weights_of_rows_go_with_them(client, name):
    model, y = POSTERIORS[name]
    expected = in_file(clone(model).fit(X, y, sample_weight=WEIGHTS))
    lengths = (40, 30, 20)
    rows = [chunked(array, lengths) for array in (X, y, WEIGHTS)]
    assert in_file(fit_posterior(clone(model), *rows, client=client)) == expected
    assert in_file(fit_posterior(clone(model), X, y, WEIGHTS, client=client)) == expected


def test_frames_with_categories_and_missing_values(client):
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(kind=np.where(X[:, 0] > 0.3, "u", "v"))
    frame.loc[::7, "b"] = np.nan
    model = boscage.BARTRegressor(5, n_chains=2, **SHORT)
    one = clone(model).fit(frame, NUMBERS)
    rows, y = (
        dd.from_pandas(frame, npartitions=3),
        dd.from_pandas(pd.Series(NUMBERS), npartitions=3),
    )
    found = fit_posterior(model, rows, y, client=client)
    assert found is model
    assert in_file(found) == in_file(one)
    assert found.categories_ == one.categories_
    assert list(found.feature_names_in_) == ["a", "b", "c", "kind"]
    assert np.array_equal(found.predict_draws(frame), one.predict_draws(frame))


def test_chains_continue_on_a_cluster_and_from_it(client):
    model = boscage.BARTRegressor(5, n_chains=2, warm_start=True, **SHORT)
    once = clone(model).set_params(n_draws=20).fit(X, NUMBERS)
    one = clone(model).fit(X, NUMBERS)
    for first in [one, fit_posterior(model, X, NUMBERS, client=client)]:
        longer = fit_posterior(first.set_params(n_draws=13), X, NUMBERS, client=client)
        assert in_file(longer.set_params(n_draws=20).fit(X, NUMBERS)) == in_file(once)


@pytest.mark.slow
@pytest.mark.parametrize("lengths", [None, (40, 50)])
def test_chains_of_a_lost_worker_are_sampled_again(losing_client, lengths):
    model, y = POSTERIORS["numbers"]
    rows = (X, y) if lengths is None else (chunked(X, lengths), chunked(y, lengths))
    before = set(losing_client.scheduler_info()["workers"])
    found = fit_posterior(clone(model), *rows, client=losing_client)
    assert in_file(found) == in_file(clone(model).fit(X, y))
    losing_client.wait_for_workers(2)
    assert set(losing_client.scheduler_info()["workers"]) != before


def test_old_draws_travel_only_where_chains_continue(client, monkeypatch):
    sent, submit = [], client.submit

    def noted(task, *args, **options):
        if task is sample_part:
            sent.append(hasattr(args[0], "_model"))
        return submit(task, *args, **options)

    monkeypatch.setattr(client, "submit", noted)
    bart = boscage.BARTRegressor(5, n_chains=2, **SHORT).fit(X, NUMBERS)
    fit_posterior(bart, X, NUMBERS, client=client)
    tree = boscage.BayesianTreeRegressor(boscage.SMC(n_islands=2), random_state=4).fit(X, NUMBERS)
    fit_posterior(tree, chunked(X, (N_ROWS,)), chunked(NUMBERS, (N_ROWS,)), client=client)
    assert sent == [False] * 4
    fit_posterior(bart.set_params(warm_start=True, n_draws=8), X, NUMBERS, client=client)
    assert sent[4:] == [True] * 2


def test_a_generator_gives_all_parts_one_seed(client):
    seeds = [np.random.RandomState(2), np.random.RandomState(2)]
    model = boscage.BayesianTreeRegressor(boscage.SMC(n_islands=2))
    one = clone(model).set_params(random_state=seeds[0]).fit(X, NUMBERS)
    found = fit_posterior(model.set_params(random_state=seeds[1]), X, NUMBERS, client=client)
    assert found._model.to_bytes() == one._model.to_bytes()
    assert found.random_state is seeds[1]
    assert np.isfinite(found.log_marginal_likelihood_error_)


def test_the_sampler_warns_here(client):
    model = boscage.BayesianTreeRegressor(boscage.SMC(n_islands=2, max_stages=2), random_state=0)
    with pytest.warns(ConvergenceWarning, match="max_stages") as caught:
        fit_posterior(model, X, NUMBERS, client=client)
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fit_posterior(POSTERIORS["smc"][0], X, NUMBERS, client=client)


def test_what_is_refused_changes_nothing(client):
    model = clone(POSTERIORS["numbers"][0])
    rows, y = chunked(X, (40, 50)), chunked(NUMBERS, (40, 50))
    holed, short = NUMBERS.copy(), dd.from_pandas(pd.Series(WEIGHTS[:80]), npartitions=2)
    holed[45] = np.nan
    with pytest.raises(ValueError, match=r"partition 1: y\[5\]|partition 1: .*y"):
        fit_posterior(model, rows, chunked(holed, (40, 50)), client=client)
    shape = r"partition 1: sample_weight has the shape \({}\); expected one weight for each of 50"
    with pytest.raises(ValueError, match=shape.format("40,")):
        fit_posterior(model, rows, y, short, client=client)
    column = chunked(WEIGHTS[:, np.newaxis], (40, 50))
    with pytest.raises(ValueError, match=r"partition \d: sample_weight has the shape \(.0, 1\)"):
        fit_posterior(model, rows, y, column, client=client)
    for wrong, message in [(-1.0, r"holds -1\.0 for row 3"), (np.nan, "holds nan for row 3")]:
        weights = WEIGHTS.copy()
        weights[43] = wrong
        with pytest.raises(ValueError, match=f"partition 1: .*sample_weight {message}"):
            fit_posterior(model, rows, y, chunked(weights, (40, 50)), client=client)
    with pytest.raises(ValueError, match="n_draws"):
        fit_posterior(clone(model).set_params(n_draws=0), rows, y, client=client)
    with pytest.raises(TypeError, match="y must be a Dask array or a Dask data frame"):
        fit_posterior(model, rows, NUMBERS, client=client)
    with pytest.raises(TypeError, match="X is of type ndarray, while y or sample_weight is a Dask"):
        fit_posterior(model, X, y, client=client)
    with pytest.raises(ValueError, match="y"):
        fit_posterior(model, X, holed, client=client)
    with pytest.raises(TypeError, match=r"found MondrianForestRegressor; .* boscage\.dask"):
        fit_posterior(boscage.MondrianForestRegressor(), X, NUMBERS, client=client)
    assert not hasattr(model, "_model")
    assert not hasattr(model, "n_features_in_")
