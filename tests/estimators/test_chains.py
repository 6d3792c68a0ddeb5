"""Summaries of chains, and what ArviZ gets of them."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest
from scipy.stats import beta, invgamma, kstest, norm, t

from boscage import (
    MCMC,
    BARTClassifier,
    BARTRegressor,
    BayesianTreeClassifier,
    BayesianTreeRegressor,
)
from boscage.diagnostics import effective_size, r_hat, spectral_size

RNG = np.random.default_rng(0)
X = RNG.normal(size=(150, 3))
Y = np.array(["no", "yes"])[(X[:, 0] + 0.5 * X[:, 1] > 0.0).astype(int)]
THREE = np.array(["no", "yes", "so"])[(X[:, 0] > 0.0).astype(int) + (X[:, 1] > 0.5)]
N = X[:, 0] + 0.1 * RNG.normal(size=150)
SHORT: dict[str, Any] = {
    "n_trees": 10,
    "n_chains": 2,
    "n_burn": 20,
    "n_draws": 30,
    "random_state": 0,
}
CHAINS = MCMC(n_chains=2, n_burn=100, n_draws=30, thin=5)


def draws_of(data: Any, group: str, name: str) -> np.ndarray[Any, Any]:
    return np.asarray(data[group][name])


def test_draws_go_to_arviz() -> None:
    pytest.importorskip("arviz_base")
    model = BARTRegressor(**SHORT, sparse=True).fit(X, N)
    tree = model.to_arviz()
    assert set(tree.children) == {"posterior", "sample_stats"}
    assert tree["posterior"]["sigma"].shape == (2, 30)
    assert tree["posterior"]["alpha"].shape == (2, 30)
    assert tree["posterior"]["inclusion"].shape == (2, 30, 3)
    assert tree["posterior"]["split_probabilities"].shape == (2, 30, 3)
    assert tree["sample_stats"]["log_likelihood"].shape == (2, 30)
    tree = model.to_arviz(X, N, random_state=0)
    by_row = tree["log_likelihood"]["y"].to_numpy()
    assert by_row.shape == tree["posterior_predictive"]["y"].shape == (2, 30, 150)
    np.testing.assert_allclose(by_row.sum(axis=2), model.trace_["log_likelihood"], rtol=1e-9)
    np.testing.assert_array_equal(tree["observed_data"]["y"], N)
    f = tree["posterior"]["f"].to_numpy()
    np.testing.assert_array_equal(f.reshape(60, 150), model.predict_draws(X))
    with pytest.raises(ValueError, match="y was given without X"):
        model.to_arviz(y=N)


@pytest.mark.parametrize("y", [Y, THREE])
def test_draws_of_classes_go_to_arviz(y: Any) -> None:
    pytest.importorskip("arviz_base")
    model = BARTClassifier(**SHORT).fit(X, y)
    tree = model.to_arviz(X, y, random_state=0)
    by_row = tree["log_likelihood"]["y"].to_numpy()
    np.testing.assert_allclose(by_row.sum(axis=2), model.trace_["log_likelihood"], rtol=1e-9)
    proba = tree["posterior"]["proba"].to_numpy()
    np.testing.assert_array_equal(proba, model.predict_draws(X).reshape(proba.shape))
    assert "sigma" not in tree["posterior"]
    drawn = tree["posterior_predictive"]["y"].to_numpy()
    shares = np.stack([(drawn == code).mean() for code in range(len(model.classes_))])
    np.testing.assert_allclose(shares, model.predict_proba(X).mean(axis=0), atol=0.03)
    with pytest.raises(ValueError, match="not in classes_"):
        model.to_arviz(X, np.full(150, "other"))


def test_traces_of_trees_go_to_arviz() -> None:
    pytest.importorskip("arviz_base")
    model = BayesianTreeRegressor(CHAINS, random_state=0).fit(X, N)
    data = model.to_arviz()
    assert set(data.children) == {"posterior", "sample_stats"}
    assert data["posterior"]["n_leaves"].shape == (2, 30)
    assert data["posterior"]["cut_share"].dims == ("chain", "draw", "feature")
    np.testing.assert_array_equal(data["sample_stats"]["lp"], model.trace_["log_posterior"])


def test_rows_of_regression_trees_go_to_arviz() -> None:
    pytest.importorskip("arviz_base")
    model = BayesianTreeRegressor(CHAINS, random_state=0).fit(X, N)
    data = model.to_arviz(X, N, random_state=0)
    f, sigma = (draws_of(data, "posterior", name) for name in ("f", "sigma"))
    assert f.shape == sigma.shape == (2, 30, 150)
    by_row = draws_of(data, "log_likelihood", "y")
    np.testing.assert_allclose(by_row, norm.logpdf(N, f, sigma))
    np.testing.assert_array_equal(data["observed_data"]["y"], N)
    # Rows in one leaf share its parameters, and rows in different leaves do not.
    leaves = model.apply(X).T.reshape(2, 30, 150)
    for chain, draw in ((0, 3), (1, 29)):
        own, at = leaves[chain, draw], f[chain, draw]
        assert len(np.unique(at)) == len(np.unique(own)) > 1
        np.testing.assert_array_equal(at[:, None] == at, own[:, None] == own)
    new = draws_of(data, "posterior_predictive", "y")
    assert abs(((new - f) / sigma).std() - 1.0) < 0.05
    again = model.to_arviz(X, random_state=0)
    np.testing.assert_array_equal(again["posterior"]["f"], f)
    assert set(again.children) == {"posterior", "posterior_predictive", "sample_stats"}
    with pytest.raises(ValueError, match="y was given without X"):
        model.to_arviz(y=N)


def test_parameters_of_a_leaf_are_draws_from_its_posterior() -> None:
    pytest.importorskip("arviz_base")
    one_leaf = {"alpha_s": 1e-12, "kappa": 0.5, "shape": 2.0, "scale": 0.3, "prior_mean": 1.0}
    chains = MCMC(n_chains=1, n_burn=0, n_draws=4000, thin=1)
    y = N[:6]
    model = BayesianTreeRegressor(chains, **one_leaf, random_state=0).fit(X[:6], y)
    posterior = model.to_arviz(X[:1], random_state=0)["posterior"]
    kappa, shape = 0.5 + 6, 2.0 + 3
    location = (0.5 * 1.0 + y.sum()) / kappa
    rest = ((y - y.mean()) ** 2).sum() + 0.5 * 6 / kappa * (y.mean() - 1.0) ** 2
    scale = 0.3 + 0.5 * rest
    f, sigma = (np.asarray(posterior[name]).ravel() for name in ("f", "sigma"))
    assert kstest(sigma**2, invgamma(shape, scale=scale).cdf).pvalue > 0.01
    student = t(2.0 * shape, location, np.sqrt(scale / shape / kappa))
    assert kstest(f, student.cdf).pvalue > 0.01
    z = (f - location) * np.sqrt(kappa) / sigma
    assert kstest(z, "norm").pvalue > 0.01
    assert abs(np.corrcoef(z, sigma)[0, 1]) < 0.05


@pytest.mark.parametrize("y", [Y, THREE])
def test_rows_of_classification_trees_go_to_arviz(y: Any) -> None:
    pytest.importorskip("arviz_base")
    model = BayesianTreeClassifier(CHAINS, random_state=0).fit(X, y)
    data = model.to_arviz(X, y, random_state=0)
    proba = draws_of(data, "posterior", "proba")
    if len(model.classes_) == 2:
        proba = np.stack([1.0 - proba, proba], axis=3)
    else:
        assert data["posterior"]["proba"].dims == ("chain", "draw", "row", "class")
        assert data["posterior"].coords["class"].to_numpy().tolist() == model.classes_.tolist()
    np.testing.assert_allclose(proba.sum(axis=3), 1.0)
    np.testing.assert_allclose(proba.mean(axis=(0, 1)), model.predict_proba(X), atol=0.12)
    codes = draws_of(data, "observed_data", "y")
    np.testing.assert_array_equal(model.classes_[codes], y)
    own = np.take_along_axis(proba, codes[None, None, :, None], axis=3)[..., 0]
    np.testing.assert_allclose(draws_of(data, "log_likelihood", "y"), np.log(own))
    with pytest.raises(ValueError, match="not in classes_"):
        model.to_arviz(X, np.full(150, "other"))


def test_probabilities_of_a_leaf_are_draws_from_its_posterior() -> None:
    pytest.importorskip("arviz_base")
    chains = MCMC(n_chains=1, n_burn=0, n_draws=4000, thin=1)
    model = BayesianTreeClassifier(chains, alpha=3.0, alpha_s=1e-12, random_state=0)
    y = np.array([0, 0, 1, 2, 2, 2])
    proba = draws_of(model.fit(X[:6], y).to_arviz(X[:1], random_state=0), "posterior", "proba")
    for code, count in enumerate((2, 1, 3)):
        law = beta(count + 1.0, 9.0 - count - 1.0)
        assert kstest(proba[0, :, 0, code], law.cdf).pvalue > 0.01


@pytest.mark.parametrize(
    "model",
    [
        BARTRegressor(**SHORT, sparse=True),
        BARTClassifier(**SHORT),
        BayesianTreeRegressor(CHAINS, random_state=0),
        BayesianTreeClassifier(CHAINS, random_state=0),
    ],
)
@pytest.mark.filterwarnings("ignore")  # classic ArviZ warns when it is imported
def test_classic_arviz_gets_the_same(model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    classic = pytest.importorskip("arviz", "0.17")
    if not classic.__version__.startswith("0."):
        pytest.skip("this is not classic ArviZ")
    y = N if "Regressor" in type(model).__name__ else THREE
    model.fit(X, y)
    monkeypatch.setitem(sys.modules, "arviz_base", None)
    old = model.to_arviz(X, y, random_state=0)
    assert isinstance(old, classic.InferenceData)
    assert np.isfinite(classic.loo(old).elpd_loo)
    monkeypatch.undo()
    pytest.importorskip("arviz_base")
    new = model.to_arviz(X, y, random_state=0)
    assert set(old.groups()) == set(new.children)
    for group in old.groups():
        assert set(old[group].data_vars) == set(new[group].data_vars)
        for name, draws in old[group].data_vars.items():
            assert draws.dims == new[group][name].dims
            np.testing.assert_array_equal(draws, new[group][name])


def test_without_arviz_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("arviz", "arviz_base"):
        monkeypatch.setitem(sys.modules, name, None)
    model = BARTRegressor(**SHORT).fit(X, N)
    with pytest.raises(ImportError, match=r"arviz-base 0\.6 or later .*boscage\[arviz\]"):
        model.to_arviz()


def test_trees_from_chains_have_a_summary() -> None:
    model = BayesianTreeRegressor(CHAINS, random_state=0).fit(X, N)
    summary = model.summary()
    assert list(summary) == [name for name, draws in model.trace_.items() if np.ptp(draws) > 0.0]
    assert {"n_leaves", "log_posterior"} <= set(summary)
    leaves = model.trace_["n_leaves"]
    row = summary["n_leaves"]
    assert (row.mean, row.std) == (leaves.mean(), leaves.std())
    assert (row.r_hat, row.ess) == (r_hat(leaves), effective_size(leaves))
    assert str(summary).splitlines()[1].startswith(next(iter(summary)))
    with pytest.raises(AttributeError, match="fit it with sampler='mcmc'"):
        BayesianTreeRegressor(random_state=0).fit(X, N).summary()


@pytest.mark.parametrize("statistic", [r_hat, effective_size, spectral_size])
def test_diagnostics_take_lists_and_refuse_what_has_no_chains(statistic: Any) -> None:
    draws = [[1, 2, 4, 3, 6, 5], [2, 1, 3, 5, 4, 7]]
    assert statistic(draws) == statistic(np.array(draws, dtype=float)) > 0.0
    for wrong in ([1.0, 2.0, 3.0, 4.0], np.zeros((0, 5)), np.zeros((2, 0)), np.zeros((1, 2, 3)), 1):
        with pytest.raises(ValueError, match=r"expected \(n_chains, n_draws\) with at least one"):
            statistic(wrong)
