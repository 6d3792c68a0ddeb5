"""BART as scikit-learn estimators: draws, chains that continue, effects and diagnostics."""

from __future__ import annotations

import inspect
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.special import ndtr, softmax
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.inspection import partial_dependence
from sklearn.utils.estimator_checks import parametrize_with_checks

import boscage
from boscage import BARTClassifier, BARTRegressor, Kernels, _core, _validation
from boscage.diagnostics import effective_size, r_hat, spectral_size
from signals import THREE, N, X, Y

KINDS = [(BARTClassifier, Y), (BARTClassifier, THREE), (BARTRegressor, N)]
SHORT = {"n_trees": 20, "n_chains": 2, "n_burn": 50, "n_draws": 30, "random_state": 5}


@parametrize_with_checks(
    [
        BARTClassifier(30, n_chains=2, n_burn=100, n_draws=99),
        BARTRegressor(30, n_chains=2, n_burn=100, n_draws=99, categorical_features=None),
        BARTRegressor(
            10, kernels={"growprune": 0.8, "cgm": 0.1, "pg": 0.1}, n_burn=100, n_draws=99
        ),
    ],
    expected_failed_checks=lambda _: {
        f"check_sample_weight_equivalence_on_{kind}_data": (
            "weights of numbers are precisions; those of classes give the law of repeated rows, "
            "but not the same draws"
        )
        for kind in ("dense", "sparse")
    },
)
@pytest.mark.slow
@pytest.mark.filterwarnings("default")
def test_estimator_contract(estimator: Any, check: Any) -> None:
    check(estimator)


@pytest.mark.parametrize(("kind", "y"), KINDS)
def test_defaults_are_those_of_the_compiled_settings(kind: Any, y: Any) -> None:
    here = inspect.signature(Kernels).parameters | inspect.signature(kind).parameters
    there = inspect.signature(_core.BartSettings).parameters
    shared = set(here) & set(there) - {"kernels"}
    assert shared >= {"n_trees", "n_chains", "n_burn", "n_draws", "alpha_s", "beta_s", "k"}
    assert shared >= {"n_particles", "proposal"}
    assert {name: here[name].default for name in shared} == {
        name: there[name].default for name in shared
    }


@pytest.mark.slow
@pytest.mark.parametrize(
    "kernels",
    [
        "auto",
        "local",
        "growprune",
        "cgm",
        "pg",
        "regrow",
        "edit",
        {"growprune": 0.5, "cgm": 0.5},
        Kernels({"pg": 1}, n_particles=3),
    ],
)
@pytest.mark.parametrize(("kind", "y"), KINDS)
def test_the_same_draws_for_any_threads_and_after_files(
    kind: Any, y: Any, kernels: Any, tmp_path: Path
) -> None:
    few = SHORT | {"n_trees": 6, "n_burn": 3, "n_draws": 5}
    model = kind(kernels=kernels, **few).fit(X, y)
    expected = model.predict_draws(X)
    assert expected.shape[:2] == (10, 150)
    assert not np.array_equal(expected[:5], expected[5:])
    twin = clone(model).set_params(n_jobs=2).fit(X, y)
    assert twin.predict_draws(X).tobytes() == expected.tobytes()
    assert twin._model.to_bytes() == model._model.to_bytes()
    other = clone(model).set_params(random_state=6).fit(X, y)
    assert other._model.to_bytes() != model._model.to_bytes()
    model.save(tmp_path / "sums.boscage")
    for again in (
        boscage.load(tmp_path / "sums.boscage"),
        kind.load(tmp_path / "sums.boscage"),
        pickle.loads(pickle.dumps(model)),
    ):
        assert type(again) is kind
        assert again.predict_draws(X).tobytes() == expected.tobytes()
        again_as_bytes, as_bytes = (m._model.to_bytes(annotation="") for m in (again, model))
        assert again_as_bytes == as_bytes
        assert again.get_params() == model.get_params()
        assert again.summary() == model.summary()


@pytest.mark.parametrize(("kind", "y"), KINDS)
def test_a_damaged_file_is_an_error(kind: Any, y: Any) -> None:
    data = kind(**(SHORT | {"n_trees": 2, "n_draws": 2})).fit(X, y)._model.to_bytes()
    load = kind._kind.model.from_bytes
    assert load(data).to_bytes() == data
    for cut in range(0, len(data), max(1, len(data) // 50)):
        with pytest.raises(ValueError, match="not a valid boscage model"):
            load(data[:cut])
        changed = bytearray(data)
        changed[cut] ^= 1
        with pytest.raises(ValueError, match="not a valid boscage model"):
            load(bytes(changed))


@pytest.mark.parametrize(("kind", "y"), KINDS)
def test_trees_add_up_to_the_draws(kind: Any, y: Any) -> None:
    model = kind(**SHORT).fit(X, y)
    draws = model.predict_draws(X)
    assert len(model.trees_) == 60
    for draw in (0, 31, -1):
        trees = model.trees_[draw]
        centres = np.atleast_1d(model.centre_)
        assert len(trees) == 20 * len(centres)
        values = np.stack([tree.predict(X) for tree in trees]).reshape(len(centres), 20, -1)
        total = np.squeeze(centres + values.sum(axis=1).T)
        expected = total if kind is BARTRegressor else ndtr(total)
        if total.ndim == 2:
            expected = softmax(total, axis=1)
        np.testing.assert_allclose(draws[draw], expected, rtol=1e-9, atol=1e-9)
        n_leaves = sum(tree.n_leaves for tree in trees)
        assert model.trace_["n_leaves"].ravel()[draw] == n_leaves
        cuts = np.concatenate([tree.feature[tree.feature >= 0] for tree in trees])
        assert np.bincount(cuts, minlength=3).tolist() == model.cut_counts_[draw].tolist()
    with pytest.raises(IndexError):
        model.trees_[60]


def test_predictions_are_those_of_the_draws() -> None:
    model = BARTRegressor(**SHORT).fit(X, N)
    draws = model.predict_draws(X)
    mean, std = model.predict(X, return_std=True)
    dist = model.predict_dist(X)
    np.testing.assert_allclose(model.predict(X), draws.mean(axis=0))
    np.testing.assert_allclose(mean, dist.mean)
    np.testing.assert_allclose(std, dist.std)
    low, high = dist.interval(0.9)
    assert 0.8 < np.mean((low < N) & (high > N)) <= 1.0


def test_numbers_are_learnt() -> None:
    rng = np.random.default_rng(1)
    x = rng.uniform(size=(600, 10))
    f = 10 * np.sin(np.pi * x[:, 0] * x[:, 1]) + 20 * (x[:, 2] - 0.5) ** 2
    f += 10 * x[:, 3] + 5 * x[:, 4]
    y = f + rng.normal(size=600)
    model = BARTRegressor(100, n_burn=300, n_draws=99, random_state=0).fit(x[:400], y[:400])
    error = np.sqrt(np.mean((model.predict(x[400:]) - f[400:]) ** 2))
    assert error < 1.2
    assert 0.7 < model.sigma_.mean() < 1.3
    assert model.feature_importances_[:5].min() > model.feature_importances_[5:].max()
    dist = model.predict_dist(x[400:])
    low, high = dist.interval(0.9)
    assert 0.8 < np.mean((low < y[400:]) & (y[400:] < high)) < 0.98


def test_classes_are_learnt() -> None:
    rng = np.random.default_rng(2)
    x = rng.normal(size=(800, 4))
    p = ndtr(1.5 * x[:, 0] * np.sign(x[:, 1]))
    y = rng.uniform(size=800) < p
    model = BARTClassifier(50, n_burn=300, n_draws=99, random_state=0).fit(x[:500], y[:500])
    found = model.predict_proba(x[500:])
    np.testing.assert_allclose(found.sum(axis=1), 1.0)
    assert np.sqrt(np.mean((found[:, 1] - p[500:]) ** 2)) < 0.17
    np.testing.assert_allclose(model.predict_draws(x[500:]).mean(axis=0), found[:, 1])


def test_shifting_and_scaling_targets_shifts_and_scales_the_answer() -> None:
    # Powers of two and small whole numbers, so that nothing is rounded differently.
    y = np.round(N * 256) / 256
    one = BARTRegressor(**SHORT, sigma_estimate=0.5).fit(X, y)
    two = BARTRegressor(**SHORT, sigma_estimate=2.0).fit(X, 4.0 * y + 8.0)
    np.testing.assert_allclose(two.predict_draws(X), 4.0 * one.predict_draws(X) + 8.0, rtol=1e-9)
    np.testing.assert_allclose(two.sigma_, 4.0 * one.sigma_, rtol=1e-9)
    gain = two.trace_["log_likelihood"] - one.trace_["log_likelihood"]
    np.testing.assert_allclose(gain, -150 * np.log(4.0), rtol=1e-9)


@pytest.mark.slow
def test_permuting_columns_permutes_importances() -> None:
    options: dict[str, Any] = SHORT | {"n_burn": 1000, "n_draws": 99, "thin": 20, "n_chains": 4}
    order = [2, 0, 1]
    plain = BARTRegressor(**options).fit(X, N).feature_importances_
    moved = BARTRegressor(**options).fit(X[:, order], N).feature_importances_
    np.testing.assert_allclose(moved, plain[order], atol=0.05)


def test_given_noise_is_not_sampled() -> None:
    model = BARTRegressor(**SHORT, sigma=0.25).fit(X, N)
    np.testing.assert_allclose(model.sigma_, 0.25)
    assert "sigma" not in model.summary()


def test_chains_that_disagree_are_reported() -> None:
    rng = np.random.default_rng(3)
    x = rng.uniform(-1.0, 1.0, size=(200, 3))
    y = 5.0 * np.sign(x[:, 0] * x[:, 1] * x[:, 2]) + 0.01 * rng.normal(size=200)
    model = BARTRegressor(1, n_burn=0, n_draws=100, random_state=0)
    with pytest.warns(ConvergenceWarning, match="chains disagree"):
        model.fit(x, y)
    assert "r_hat" in str(model.summary())


@pytest.mark.parametrize(("kind", "y"), KINDS)
def test_use_before_fit_raises_not_fitted_error(kind: Any, y: Any) -> None:
    model = kind()
    for call in (
        lambda: model.predict(X),
        lambda: model.trees_,
        lambda: model.trace_,
        lambda: model.summary(),
        lambda: model.save("nowhere"),
    ):
        with pytest.raises(NotFittedError, match="not fitted yet"):
            call()
    assert not hasattr(model, "feature_importances_")


def test_partial_dependence_equals_that_of_scikit_learn() -> None:
    model = BARTRegressor(**SHORT).fit(X, N)
    average = partial_dependence(model, X, [0], grid_resolution=5)["average"][0]
    assert (np.diff(average) > 0).all()


def test_equal_targets_give_a_warning_about_the_noise() -> None:
    constant = np.full(150, 2.5)
    with pytest.warns(UserWarning, match=r"no other value than 2\.5.*sigma_estimate") as found:
        BARTRegressor(**SHORT).fit(X, constant)
    assert found[0].filename == __file__
    low, high = BARTRegressor(**SHORT, sigma=0.5).fit(X, constant).predict_dist(X).interval(0.9)
    assert (high - low > 1.0).all()


@pytest.mark.filterwarnings("ignore:y has no other value")
def test_predictions_of_equal_targets_follow_their_unit() -> None:
    # With 100 draws there would be a warning of chains that disagree.
    model = BARTRegressor(10, n_chains=2, n_burn=50, n_draws=100, random_state=0)
    for y in (-1e-9, 1e6):
        dist = model.fit(X[:50], np.full(50, y)).predict_dist(X[:5])
        low, high = dist.interval(0.9)
        assert (high - low < 0.01 * abs(y)).all()
        np.testing.assert_allclose(dist.mean, y, rtol=1e-3)


@pytest.mark.parametrize("is_weighted", [False, True])
@pytest.mark.parametrize("n", [1, 2, 5, 20])
@pytest.mark.parametrize("y", [0.0, 1000.0, -3e-5])
@pytest.mark.filterwarnings("ignore:y has no other value")
def test_all_chains_predict_equal_targets_everywhere(y: float, n: int, is_weighted: bool) -> None:
    """Chains that start from cuts would keep them: leaves cancel at the training rows alone."""
    for seed, n_chains in ((0, 1), (1, 2), (2, 4)):
        rng = np.random.default_rng(seed)
        X, weights = rng.normal(size=(n, 2)), rng.uniform(0.1, 1.0, n)
        few = {"n_trees": 20, "n_burn": 20, "n_draws": 30, "n_chains": n_chains}
        model = BARTRegressor(**few, random_state=seed)
        model.fit(X, np.full(n, y), sample_weight=weights if is_weighted else None)
        elsewhere = np.vstack([X, 2.0 * rng.normal(size=(100, 2))])
        unit = abs(y) if y else 1.0
        assert np.abs(model.predict_draws(elsewhere) - y).max() < 1e-4 * unit


def test_r_hat_and_effective_size_equal_those_of_arviz() -> None:
    array = pytest.importorskip("arviz_stats.base").array_stats
    rng = np.random.default_rng(4)
    walk = np.cumsum(rng.normal(size=(4, 501)), axis=1) * 0.05 + rng.normal(size=(4, 501))
    other = rng.standard_t(2, size=(3, 200))
    for draws in (walk, other, rng.normal(size=(1, 100))):
        expected = array.ess(draws, method="bulk", chain_axis=0, draw_axis=1)
        np.testing.assert_allclose(effective_size(draws), expected, rtol=1e-6)
        if len(draws) == 1:  # ArviZ gives none
            continue
        expected = array.rhat(draws, method="rank", chain_axis=0, draw_axis=1)
        np.testing.assert_allclose(r_hat(draws), expected, rtol=1e-6)


def test_warm_start_refuses_other_features_and_classes() -> None:
    named = pd.DataFrame(X, columns=["a", "b", "c"])
    model = BARTClassifier(**SHORT, warm_start=True).fit(named, Y)
    before = model.predict_proba(named[:5])
    model.set_params(n_draws=40)
    with pytest.raises(ValueError, match="feature names should match"):
        model.fit(named.rename(columns={"a": "x"}), Y)
    with pytest.raises(
        ValueError, match=r"with the same classes, \['no', 'yes'\], found \['n', 'y'\]"
    ):
        model.fit(named, np.array(["n", "y"])[(Y == "yes").astype(int)])
    assert list(model.classes_) == ["no", "yes"]
    np.testing.assert_array_equal(model.predict_proba(named[:5]), before)
    assert model.fit(named, Y).trace_["n_leaves"].shape == (2, 40)


def test_spectral_size_is_that_of_the_fitted_autoregression() -> None:
    """Compares with R-CODA's definition, with Yule-Walker equations solved order by order."""
    rng = np.random.default_rng(4)
    for phi, n in [((0.9,), 4000), ((0.5, 0.3), 2000), ((-0.6,), 1000)]:
        noise = rng.normal(size=n + 100)
        x = np.zeros(n + 100)
        for i in range(len(phi), n + 100):
            x[i] = noise[i] + sum(p * x[i - k - 1] for k, p in enumerate(phi))
        x = x[100:]
        away = x - x.mean()
        r = np.array([away[: n - k] @ away[k:] / n for k in range(int(10 * np.log10(n)) + 1)])
        best = (np.inf, np.nan)
        for order in range(len(r)):
            matrix = r[np.abs(np.subtract.outer(np.arange(order), np.arange(order)))]
            a = np.linalg.solve(matrix, r[1 : order + 1])
            left = r[0] - a @ r[1 : order + 1]
            density = left * n / (n - order - 1) / (1.0 - a.sum()) ** 2
            best = min(best, (n * np.log(left) + 2 * order, n * x.var(ddof=1) / density))
        np.testing.assert_allclose(spectral_size(x[None]), best[1], rtol=1e-8)
        # The effective number of n draws of an autoregression, in the limit.
        gamma = {1: 1.0 / (1.0 - phi[0] ** 2)}.get(len(phi))
        if gamma is not None:
            exact = n * gamma * (1.0 - phi[0]) ** 2
            np.testing.assert_allclose(spectral_size(x[None]), exact, rtol=0.25)
    chains = rng.normal(size=(2, 500))
    both = spectral_size(chains[:1]) + spectral_size(chains[1:])
    assert spectral_size(chains) == both
    assert spectral_size(np.ones((1, 100))) == 0.0
    assert spectral_size(np.arange(100.0)[None]) == 0.0


def test_spectral_size_equals_that_of_r() -> None:
    """Uses R's data set ``lh``; the manual of R's ``ar`` prints its autoregression."""
    tenths = (
        "24 24 24 22 21 15 23 23 25 20 19 17 22 18 32 32 27 22 22 19 19 18 27 30 "
        "23 20 20 29 29 27 27 23 26 24 18 17 15 14 21 33 35 35 31 26 21 34 30 29"
    )
    lh = np.array(tenths.split(), dtype=float) / 10.0
    density = 0.1959 / (1.0 - (0.6534 - 0.0636 - 0.2269)) ** 2
    np.testing.assert_allclose(
        spectral_size(lh[None]), len(lh) * lh.var(ddof=1) / density, rtol=5e-4
    )


def test_r_hat_of_constant_chains() -> None:
    apart = np.repeat([[0.1], [0.3], [0.3]], 101, axis=1)
    assert r_hat(apart) == np.inf
    assert np.isnan(r_hat(apart[1:]))
    one_moves = apart + np.array([[1.0], [0.0], [0.0]]) * np.arange(101) * 1e-3
    assert 1.1 < r_hat(one_moves) < np.inf


@pytest.mark.slow
def test_several_classes_are_learnt() -> None:
    rng = np.random.default_rng(2)
    x = rng.normal(size=(900, 3))
    proba = softmax(np.column_stack([2.0 * x[:, 0], 2.0 * np.abs(x[:, 1]), 0 * x[:, 0]]), axis=1)
    y = (proba.cumsum(axis=1)[:, :-1] < rng.uniform(size=(900, 1))).sum(axis=1)
    model = BARTClassifier(30, n_chains=2, n_burn=200, n_draws=99, random_state=0)
    found = model.fit(x[:600], y[:600]).predict_proba(x[600:])
    np.testing.assert_allclose(found.sum(axis=1), 1.0)
    loss = -np.log(found[np.arange(300), y[600:]]).mean()
    least = -np.log(proba[600:][np.arange(300), y[600:]]).mean()
    assert loss < least + 0.08
    np.testing.assert_allclose(model.predict_draws(x[600:]).mean(axis=0), found)


def test_few_features_of_many_are_found() -> None:
    rng = np.random.default_rng(1)
    x = rng.uniform(size=(500, 100))
    f = 10 * np.sin(np.pi * x[:, 0] * x[:, 1]) + 20 * (x[:, 2] - 0.5) ** 2
    f += 10 * x[:, 3] + 5 * x[:, 4]
    y = f + rng.normal(size=500)
    errors, shares = [], []
    for sparse in (False, True):
        model = BARTRegressor(50, n_chains=2, n_burn=400, n_draws=99, sparse=sparse, random_state=0)
        model.fit(x[:300], y[:300])
        errors.append(np.sqrt(np.mean((model.predict(x[300:]) - f[300:]) ** 2)))
        shares.append(model.feature_importances_[:5].sum())
    assert errors[1] < 0.8 * errors[0]
    assert shares[1] > 0.8 > 0.5 > shares[0]
    drawn = model.split_probabilities_
    np.testing.assert_allclose(drawn.sum(axis=1), 1.0)
    assert drawn[:, :5].sum(axis=1).mean() > 0.7
    assert set(np.argsort(drawn.mean(axis=0))[-5:]) == set(range(5))
    with pytest.raises(AttributeError, match="sparse=True"):
        _ = BARTRegressor(**SHORT).fit(X, N).split_probabilities_


@pytest.mark.parametrize(("kind", "y"), KINDS)
@pytest.mark.parametrize("more", [{}, {"sparse": 0.5, "thin": 2}])
def test_warm_start_equals_one_longer_fit(
    kind: Any, y: Any, more: dict[str, Any], tmp_path: Path
) -> None:
    params = SHORT | more | {"random_state": None}
    model = kind(**params, warm_start=True).fit(X, y)
    seed = model._model.seed
    model.save(tmp_path / "half.boscage")
    once = kind(**params | {"n_draws": 50})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_validation, "draw_seed", lambda _: seed)
        once.fit(X, y)
    for half in (model, boscage.load(tmp_path / "half.boscage"), pickle.loads(pickle.dumps(model))):
        half.set_params(n_draws=50, n_jobs=2).fit(X, y)
        assert half._model.to_bytes() == once._model.to_bytes()
    before = model._model
    for params, rows in (({"n_draws": 20}, X), ({"k": 3.0}, X), ({"n_draws": 60}, X + 1.0)):
        with pytest.raises(ValueError, match=r"n_draws|continued fit"):
            model.set_params(**{"n_draws": 50, "k": 2.0} | params).fit(rows, y)
        assert model._model is before


@pytest.mark.parametrize(("kind", "y"), [(BARTRegressor, N), (BARTClassifier, Y)])
def test_shrinkage_is_learned(kind: Any, y: Any, tmp_path: Path) -> None:
    model = kind(**SHORT, k="learned", warm_start=True).fit(X, y)
    assert model.trace_["k"].shape == (2, 30)
    assert (model.trace_["k"] > 0.0).all()
    assert "k" in model.summary()
    model.save(tmp_path / "m")
    once = kind(**SHORT | {"n_draws": 50}, k="learned").fit(X, y)
    for half in (boscage.load(tmp_path / "m").set_params(n_draws=50), model.set_params(n_draws=50)):
        half.set_params(k="learned", warm_start=True).fit(X, y)
        assert half._model.to_bytes() == once._model.to_bytes()
        np.testing.assert_array_equal(half.trace_["k"], once.trace_["k"])
    with pytest.raises(ValueError, match="a continued fit must be one of the same"):
        model.set_params(k=2.0).fit(X, y)


def test_learnt_shrinkage_does_not_depend_on_units() -> None:
    y = np.round(N * 256) / 256
    one = BARTRegressor(**SHORT, k="learned", sigma_estimate=0.5).fit(X, y)
    two = BARTRegressor(**SHORT, k="learned", sigma_estimate=2.0).fit(X, 4.0 * y + 8.0)
    np.testing.assert_allclose(two.trace_["k"], one.trace_["k"], rtol=1e-9)


@pytest.mark.parametrize(("kind", "y"), KINDS)
def test_callback_is_called_after_every_sweep(kind: Any, y: Any) -> None:
    told: list[dict[str, Any]] = []
    model = kind(**SHORT, n_jobs=2).fit(X, y, callback=lambda **sweep: told.append(sweep))
    for chain in range(2):
        own = [sweep for sweep in told if sweep["chain"] == chain]
        assert [sweep["iteration"] for sweep in own] == list(range(1, 81))
        for name in ("sigma", "log_likelihood"):
            kept = [sweep[name] for sweep in own[50:]]
            np.testing.assert_array_equal(kept, model.trace_[name][chain])
    before = model._model

    def stop(**sweep: Any) -> None:
        if sweep["iteration"] == 7:
            raise LookupError("enough")

    with pytest.raises(LookupError, match="enough"):
        model.fit(X, y, callback=stop)
    assert model._model is before


@pytest.mark.parametrize(("kind", "y"), KINDS)
def test_effects_are_predictions_of_changed_rows(kind: Any, y: Any) -> None:
    model = kind(**SHORT).fit(X, y)
    grid, draws = model.effect(X[:20], 1, n_points=4)
    assert draws.shape[:3] == (60, 4, 20)
    rows = X[:20].copy()
    rows[:, 1] = grid[2]
    np.testing.assert_array_equal(draws[:, 2], model.predict_draws(rows))
    if kind is BARTRegressor:
        theirs = partial_dependence(model, X[:20], [1], custom_values={1: grid})["average"][0]
        np.testing.assert_allclose(draws.mean(axis=(0, 2)), theirs)
    for bad in (3, -1, "age"):
        with pytest.raises(ValueError, match="feature must be"):
            model.effect(X, bad)


def test_shares_of_kernels_are_relative() -> None:
    small, large = (
        BARTRegressor(**SHORT, kernels={"local": share, "cgm": share}).fit(X, N).sigma_
        for share in (0.5, 1e308)
    )
    np.testing.assert_array_equal(small, large)
