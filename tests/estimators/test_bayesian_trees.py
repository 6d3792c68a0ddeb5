"""Bayesian decision trees as scikit-learn estimators; results, files and plots."""

from __future__ import annotations

import hashlib
import inspect
import io
import pickle
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.special import gammaln
from scipy.stats import multivariate_normal
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import cross_val_score
from sklearn.utils.estimator_checks import parametrize_with_checks

import boscage
from boscage import MCMC, SMC, BayesianTreeClassifier, BayesianTreeRegressor, _core
from boscage.bayes.evidence import compare_features, compare_parameters

RNG = np.random.default_rng(0)
X = RNG.normal(size=(150, 3))
Y = np.array(["no", "yes"])[(X[:, 0] + 0.5 * X[:, 1] > 0.0).astype(int)]
N = X[:, 0] + 0.1 * RNG.normal(size=150)
KINDS = [(BayesianTreeClassifier, Y), (BayesianTreeRegressor, N)]


def brief(sampler: str) -> Any:
    """A sampler with little work."""
    return MCMC(n_draws=20, n_burn=500) if sampler == "mcmc" else sampler


@parametrize_with_checks(
    [
        BayesianTreeClassifier(),
        BayesianTreeClassifier(
            SMC(n_particles=20, max_features=1, expansion="layer", resampling="residual")
        ),
        BayesianTreeClassifier(MCMC(n_draws=50, n_burn=1000)),
        BayesianTreeRegressor(),
        BayesianTreeRegressor(MCMC(n_draws=50, n_burn=1000)),
    ]
)
@pytest.mark.filterwarnings("default")
def test_estimator_contract(estimator: Any, check: Any) -> None:
    check(estimator)


@pytest.mark.parametrize(("kind", "y"), KINDS)
def test_defaults_are_those_of_the_compiled_samplers(kind: Any, y: Any) -> None:
    # Names in the compiled module that differ from the public ones.
    surface = {"n_dimensions": "max_features", "n_burn_in": "n_burn", "noise": "noise_share"}
    compared = set()
    for ours, there in (
        (SMC, _core.SmcSettings),
        (MCMC, _core.McmcSettings),
        (kind, kind._kind.model.fit),
    ):
        here = inspect.signature(ours).parameters
        for border, parameter in inspect.signature(there).parameters.items():
            name = surface.get(border, border)
            if name in here and parameter.default not in (inspect.Parameter.empty, ...):
                compared.add(name)
                assert here[name].default == parameter.default, name
    assert MCMC().moves == _core.McmcSettings().moves
    assert compared >= {*SMC().get_params(), *MCMC().get_params(), "alpha_s"} - {"moves"}
    assert ("alpha" in compared) != ("noise_share" in compared)


@pytest.mark.parametrize("sampler", ["smc", "mcmc"])
@pytest.mark.parametrize(("kind", "y"), KINDS)
def test_the_same_trees_for_any_threads_and_after_files(
    kind: Any, y: Any, sampler: str, tmp_path: Path
) -> None:
    model = kind(brief(sampler), random_state=5).fit(X, y)
    expected = model.predict(X)
    twin = clone(model).set_params(n_jobs=2).fit(X, y)
    assert twin.predict(X).tobytes() == expected.tobytes()
    assert twin._model.to_bytes() == model._model.to_bytes()
    other = clone(model).set_params(random_state=6).fit(X, y)
    assert other._model.to_bytes() != model._model.to_bytes()
    model.save(tmp_path / "trees.boscage")
    for again in (
        boscage.load(tmp_path / "trees.boscage"),
        kind.load(tmp_path / "trees.boscage"),
        pickle.loads(pickle.dumps(model)),
    ):
        assert type(again) is kind
        assert again.predict(X).tobytes() == expected.tobytes()
        again_as_bytes, as_bytes = (m._model.to_bytes(annotation="") for m in (again, model))
        assert again_as_bytes == as_bytes
        assert again.get_params() == model.get_params()
        assert repr(again.trees_) == repr(model.trees_)


def test_a_damaged_or_wrong_file_is_refused(tmp_path: Path) -> None:
    model = BayesianTreeClassifier(SMC(n_particles=2, n_islands=1), random_state=0).fit(X, Y)
    file = io.BytesIO()
    model.save(file)
    data = file.getvalue()
    for bad in (data[:-1], data[:40], data[:60] + b"\xff" + data[61:], b"", data + b"x"):
        with pytest.raises(ValueError, match="boscage model"):
            boscage.load(io.BytesIO(bad))
    with pytest.raises(ValueError, match="BayesianTreeClassifier"):
        BayesianTreeRegressor.load(io.BytesIO(data))
    with pytest.raises(ValueError, match="not a Mondrian forest classifier"):
        _core.MondrianClassifier.from_bytes(data)


def test_default_particles_are_resampled() -> None:
    model = BayesianTreeClassifier(random_state=0).fit(X, Y)
    assert any((np.array(steps) != np.arange(10)).any() for steps in model.ancestry_)


@pytest.mark.parametrize("n_jobs", [pytest.param(2**31, marks=pytest.mark.slow), 2**64])
def test_thread_counts_may_be_huge(n_jobs: int) -> None:
    one, many = (BayesianTreeClassifier(random_state=0, n_jobs=n).fit(X, Y) for n in (1, n_jobs))
    np.testing.assert_array_equal(many.predict_proba(X), one.predict_proba(X))


def test_an_island_does_not_depend_on_the_others() -> None:
    alone, among = (
        BayesianTreeClassifier(
            SMC(n_particles=5, n_islands=n, ess_threshold=1.0, resampling="multinomial"),
            random_state=0,
        ).fit(X, Y)
        for n in (1, 6)
    )
    assert (alone.ess_[0] == among.ess_[0]).all()
    np.testing.assert_array_equal(alone.ancestry_[0], among.ancestry_[0])
    assert alone.island_log_marginal_likelihood_[0] == among.island_log_marginal_likelihood_[0]


def test_smc_attributes_agree_with_its_islands() -> None:
    sampler = SMC(n_particles=8, n_islands=3, ess_threshold=0.9)
    model = BayesianTreeClassifier(sampler, random_state=0).fit(X, Y)
    assert model.weights_.sum() == pytest.approx(1.0)
    assert len(model.trees_) == len(model.weights_) <= 24
    logs = model.island_log_marginal_likelihood_
    mean = np.log(np.exp(logs - logs.max()).mean()) + logs.max()
    assert model.log_marginal_likelihood_ == pytest.approx(mean)
    without = [np.logaddexp.reduce(np.delete(logs, i)) for i in range(3)]
    error = np.sqrt(2.0 / 3.0 * np.sum((without - np.mean(without)) ** 2))
    assert model.log_marginal_likelihood_error_ == pytest.approx(error)
    assert [len(ess) for ess in model.ess_] == [len(steps) for steps in model.ancestry_]
    for ess, ancestry in zip(model.ess_, model.ancestry_, strict=True):
        assert ((ess >= 1.0 - 1e-9) & (ess <= 8.0 + 1e-9)).all()
        assert {steps.shape for steps in ancestry} == {(8,)}
        resampled = (np.array(ancestry) != np.arange(8)).any(axis=1)
        assert not resampled[ess >= 7.2].any()
    assert model.feature_importances_.sum() == pytest.approx(1.0)
    assert model.feature_importances_.argmax() == 0
    assert (model.feature_importances_std_ >= 0.0).all()
    assert (model.inclusion_probabilities_ <= 1.0 + 1e-9).all()
    with pytest.raises(AttributeError, match="sampler='mcmc'"):
        _ = model.trace_


def test_mcmc_attributes_agree_with_its_trees() -> None:
    model = BayesianTreeRegressor(MCMC(n_chains=3, n_draws=40), random_state=0)
    model.fit(X, N)
    assert np.ptp(model.weights_) == 0.0
    trace = model.trace_
    assert {part.shape for part in trace.values()} == {(3, 40)}
    sizes = np.array([tree.n_leaves for tree in model.trees_]).reshape(3, 40)
    np.testing.assert_array_equal(sizes, trace["n_leaves"])
    assert set(model.acceptance_) == {"grow", "prune", "change", "swap"}
    likelihood = model.log_posterior_.reshape(3, 40) - trace["log_likelihood"]
    # The rest is the prior of partitions: probabilities instead of densities of thresholds.
    assert (likelihood < 0.0).all()
    with pytest.raises(AttributeError, match="sampler='smc'"):
        _ = model.log_marginal_likelihood_


@pytest.mark.parametrize("sampler", ["smc", "mcmc"])
@pytest.mark.parametrize(("kind", "y"), KINDS)
def test_the_best_tree_is_the_most_probable_in_any_units(kind: Any, y: Any, sampler: str) -> None:
    params = {"sampler": MCMC(n_draws=30) if sampler == "mcmc" else sampler, "random_state": 0}
    model = kind(**params).fit(X, y)
    logs = model.log_posterior_
    best = int(logs.argmax())
    assert model.best_tree_.rules() == model.trees_[best].rules()
    # Powers of two, so that the same trees are drawn.
    units = np.array([2.0**-40, 1.0, 2.0**60])
    other = kind(**params).fit(X * units, y)
    np.testing.assert_allclose(other.log_posterior_, logs, rtol=1e-12)
    assert other.best_tree_.n_rows.tolist() == model.best_tree_.n_rows.tolist()


@pytest.mark.parametrize(("kind", "y"), KINDS)
def test_bad_parameters_are_named(kind: Any, y: Any) -> None:
    bad: dict[str, Any] = {
        "sampler": "nuts",
        "sampler__n_particles": 0,
        "sampler__proposal": "best",
        "sampler__max_features": 0,
        "sampler__expansion": "all",
        "sampler__resampling": "none",
        "sampler__ess_threshold": 1.5,
        "alpha_s": 1.0,
        "beta_s": -1.0,
        "sampler__island_weights": "none",
    }
    for name, value in bad.items():
        model = kind().set_params(**{name: value})
        with pytest.raises(ValueError, match=name.removeprefix("sampler__")):
            model.fit(X, y)
        assert not hasattr(model, "n_features_in_")
    with pytest.raises(ValueError, match="max_features needs proposal='optimal'"):
        kind(SMC(proposal="prior", max_features=2)).fit(X, y)
    # Without grow and prune, a chain does not reach trees of all sizes.
    for moves in ((0.5, 0.5, 0.5, 0.5), (0.0, 0.0, 0.5, 0.5), (0.5, 0.0, 0.5, 0.0)):
        with pytest.raises(ValueError, match="moves"):
            kind(MCMC(moves=moves)).fit(X, y)
    with pytest.raises(NotFittedError):
        _ = kind().weights_


@pytest.mark.parametrize(
    "params",
    [
        {"sampler": None},
        {"sampler": SMC},
        {"sampler__proposal": None},
        {"sampler__expansion": 1},
        {"sampler__candidate_order": b"breadth_first"},
        {"sampler__resampling": ["residual"]},
        {"sampler__island_weights": True},
        {"n_jobs": "a"},
        {"n_jobs": 1.0},
        {"sampler": "mcmc", "sampler__moves": None},
        {"sampler": "mcmc", "sampler__n_burn": 1.0},
    ],
)
@pytest.mark.parametrize(("kind", "y"), KINDS)
def test_parameters_of_a_wrong_type_are_named_and_shown(
    kind: Any, y: Any, params: dict[str, Any]
) -> None:
    name, value = list(params.items())[-1]
    name = name.removeprefix("sampler__")
    with pytest.raises(
        (TypeError, ValueError), match=f"{name} must be .*found {re.escape(repr(value))}"
    ):
        kind().set_params(**params).fit(X, y)


def test_files_keep_moves_given_as_list_or_array(tmp_path: Path) -> None:
    for moves in (np.array([0.5, 0.5, 0.0, 0.0]), [0.5, 0.5, 0.0, 0.0]):
        sampler = MCMC(n_draws=3, n_burn=10, moves=moves)
        model = BayesianTreeRegressor(sampler, kappa=np.float64(0.3))
        model.fit(X, N).save(tmp_path / "trees")
        again = boscage.load(tmp_path / "trees")
        assert isinstance(again, BayesianTreeRegressor)
        assert isinstance(again.sampler, MCMC)
        assert again.sampler.moves == (0.5, 0.5, 0.0, 0.0)
        mine, theirs = again.get_params(), model.get_params()
        assert mine.pop("sampler__moves") == (0.5, 0.5, 0.0, 0.0)
        assert list(theirs.pop("sampler__moves")) == [0.5, 0.5, 0.0, 0.0]
        assert mine == theirs
        again.fit(X, N)


@pytest.mark.parametrize(
    ("sampler", "message"),
    [
        (SMC(n_particles=10**14), "n_particles must be from 1 to 1000000"),
        (SMC(n_islands=2**62), "n_islands must be"),
        (SMC(max_stages=2**64), r"max_stages must be below 2\*\*64"),
        (SMC(n_particles=10**6, n_islands=1000), r"n_particles \* n_islands must be"),
        (MCMC(n_chains=2**62), "n_chains must be"),
        (MCMC(n_draws=2**62), "n_draws must be"),
        (MCMC(n_chains=10**4, n_draws=10**4), r"n_chains \* n_draws must be"),
        (MCMC(thin=2**63), "thin must be"),
        (MCMC(n_burn=2**64 - 1), "n_burn.* must be at most"),
    ],
)
@pytest.mark.parametrize(("kind", "y"), KINDS)
def test_settings_too_large_are_refused_by_name(
    kind: Any, y: Any, sampler: Any, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        kind(sampler).fit(X, y)


@pytest.mark.parametrize("params", [{}, {"prior_mean": 0.0, "scale": 1.0}])
def test_targets_whose_squares_overflow_are_refused(params: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="at most 1e140"):
        BayesianTreeRegressor(random_state=0, **params).fit(X, 1e154 * N)
    model = BayesianTreeRegressor(random_state=0).fit(X, 1e139 * np.sign(N))
    assert np.isfinite(model.log_marginal_likelihood_)
    assert np.isfinite(pickle.loads(pickle.dumps(model)).predict(X)).all()


@pytest.mark.parametrize(
    ("kind", "y", "name", "ends"),
    [
        (BayesianTreeClassifier, Y, "alpha", ("1e-100", "1e100")),
        (BayesianTreeRegressor, N, "kappa", ("1e-100", "1e100")),
        (BayesianTreeRegressor, N, "shape", ("1e-9", "1e9")),
        (BayesianTreeRegressor, N, "noise_share", ("1e-9", "1e9")),
        (BayesianTreeRegressor, N, "scale", ("1e-290", "1e290")),
    ],
)
@pytest.mark.parametrize("sampler", ["smc", "mcmc"])
def test_priors_too_extreme_for_arithmetic_are_refused_by_name(
    kind: Any, y: Any, name: str, ends: tuple[str, str], sampler: str
) -> None:
    own = MCMC(n_draws=5, n_burn=100) if sampler == "mcmc" else sampler
    params = {"sampler": own, "random_state": 0}
    # The compiled module's name is noise.
    said = name.removesuffix("_share")
    low, high = (float(end) for end in ends)
    for end in (low, high):
        model = kind(**params, **{name: end}).fit(X, y)
        assert np.isfinite(model.log_posterior_).all()
        again = pickle.loads(pickle.dumps(model))
        if kind is BayesianTreeRegressor:
            mean, std = again.predict(X, return_std=True)
            assert np.isfinite(mean).all()
            assert (std > 0.0).all()
        else:
            np.testing.assert_allclose(again.predict_proba(X).sum(axis=1), 1.0)
    for value in (5e-324, 0.5 * low, 2.0 * high, 1.7e308):
        with pytest.raises(
            ValueError, match=f"{said}.* must be from {ends[0]} to {ends[1]}, found"
        ):
            kind(**params, **{name: value}).fit(X, y)


def test_evidence_under_extreme_priors_has_its_limit() -> None:
    """With a single leaf and an extreme prior, the evidence has a simple limit."""
    same, n = np.ones_like(X), len(X)
    ones = np.ones((n, n))

    def evidence(model: Any, y: Any) -> float:
        return float(model.fit(same, y).log_marginal_likelihood_)

    # Large alpha: each class has probability 1/2. Small alpha: a leaf has one class, and a first
    # row of the other class is very improbable.
    assert evidence(BayesianTreeClassifier(alpha=1e100), Y) == pytest.approx(-n * np.log(2.0))
    surprise = evidence(BayesianTreeClassifier(alpha=1e-100), ["no"] * 10 + ["yes"] * 140)
    assert surprise == pytest.approx(np.log(0.25e-100) + gammaln([10, 140, 150]) @ [1, 1, -1])
    # A known variance.
    for kappa in (1e-4, 0.3):
        known = BayesianTreeRegressor(prior_mean=0.2, kappa=kappa, shape=1e9, scale=0.7e9)
        cov = 0.7 * (np.eye(n) + ones / kappa)
        expected = multivariate_normal(np.full(n, 0.2), cov).logpdf(N)
        assert evidence(known, N) == pytest.approx(expected, abs=1e-3)
    # A known mean.
    sure = BayesianTreeRegressor(prior_mean=0.2, kappa=1e100, shape=1.5, scale=0.7)
    z2 = ((N - 0.2) ** 2).sum()
    expected = gammaln(1.5 + n / 2) - gammaln(1.5) - n / 2 * np.log(2.0 * np.pi) + 1.5 * np.log(0.7)
    expected -= (1.5 + n / 2) * np.log(0.7 + z2 / 2)
    assert evidence(sure, N) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("beta_s", [1e3, 1e6, 1e300])
@pytest.mark.parametrize("alpha_s", [5e-324, 1.0 - 2.0**-53])
def test_split_probabilities_may_underflow(alpha_s: float, beta_s: float) -> None:
    """A probability that underflows still counts through its logarithm."""
    x = np.arange(20_000.0)[:, None]
    # Three steps need more than one layer of cuts.
    y = (x[:, 0] // 5000) % 2
    for sampler in ("smc", "mcmc"):
        own = SMC(n_particles=1) if sampler == "smc" else MCMC(n_draws=5, n_burn=500)
        model = BayesianTreeClassifier(own, alpha_s=alpha_s, beta_s=beta_s, random_state=0)
        model.fit(x, y)
        assert np.isfinite(model.log_posterior_).all()
        if sampler == "smc":
            # At the second layer the prior has a factor exp(-0.69 beta_s), the data exp(2600).
            assert model.best_tree_.depth.max() >= (1 if beta_s > 1000.0 else 2)
            assert np.isfinite(model.log_marginal_likelihood_)


def test_targets_whose_squares_underflow_are_refused() -> None:
    for params in ({}, {"prior_mean": 0.0, "scale": 1.0}):
        with pytest.raises(
            ValueError, match=r"y must be at least 1e-140 .*found .*e-160 at the most"
        ):
            BayesianTreeRegressor(random_state=0, **params).fit(X, 1e-160 * N)
    BayesianTreeRegressor(random_state=0).fit(X, 0.0 * N)


@pytest.mark.parametrize("unit", [1e-130, 1e-9, 1e9, 1e130])
def test_results_scale_with_the_unit_of_the_targets(unit: float) -> None:
    one = BayesianTreeRegressor(random_state=0).fit(X, N)
    other = BayesianTreeRegressor(random_state=0).fit(X, unit * N)
    expected = one.log_marginal_likelihood_ - len(N) * np.log(unit)
    assert other.log_marginal_likelihood_ == pytest.approx(expected, rel=1e-9, abs=1e-6)
    np.testing.assert_allclose(other.predict(X), unit * one.predict(X), rtol=1e-9)
    mean, std = one.predict(X[:9], return_std=True)
    dist = other.predict_dist(X[:9])
    np.testing.assert_allclose(dist.std, unit * std, rtol=1e-9)
    logpdf = one.predict_dist(X[:9]).logpdf(mean) - np.log(unit)
    np.testing.assert_allclose(dist.logpdf(unit * mean), logpdf, rtol=1e-9)
    np.testing.assert_allclose(
        dist.quantile(0.1), unit * one.predict_dist(X[:9]).quantile(0.1), rtol=1e-6
    )


@pytest.mark.parametrize("sampler", ["smc", "mcmc"])
@pytest.mark.parametrize(("kind", "y"), KINDS)
def test_mutated_files_are_refused_or_hold_whole_trees(kind: Any, y: Any, sampler: str) -> None:
    """The checksum is corrected, so that every field is read."""
    samplers = {"smc": SMC(n_particles=3, n_islands=2), "mcmc": MCMC(n_chains=2, n_draws=3)}
    model = kind(samplers[sampler], random_state=0).fit(X, y)
    content = model._model.to_bytes()[:-32]
    rng = np.random.default_rng(0)
    refused = 0
    for _ in range(600):
        bad = bytearray(content)
        for at in rng.integers(12, len(bad), rng.integers(1, 4)):
            bad[at] = rng.choice([0, 1, 127, 128, 255, rng.integers(256)])
        bad = bad[: rng.integers(len(bad))] if rng.random() < 0.1 else bad
        try:
            again = boscage.load(io.BytesIO(bytes(bad) + hashlib.sha256(bad).digest()))
        except ValueError:
            refused += 1
            continue
        for tree in again.trees_:
            inner = np.flatnonzero(~tree.is_leaf)
            assert (tree.parent[tree.children_left[inner]] == inner).all()
            assert (tree.parent[tree.children_right[inner]] == inner).all()
            assert (tree.feature < again.n_features_in_).all()
        assert again.predict(np.zeros((2, again.n_features_in_))).shape == (2,)
        assert len(again.feature_importances_std_) == again.n_features_in_
    assert refused > 50


@pytest.mark.parametrize(("kind", "y"), KINDS)
def test_files_do_not_claim_more_features_than_they_hold(kind: Any, y: Any) -> None:
    content = kind(SMC(n_particles=3), random_state=0).fit(X, y)._model.to_bytes()[:-32]
    low = np.float64(X[:, 0].min()).tobytes()
    count = (3).to_bytes(8, "little") + low
    assert content.count(count) == 1
    for claimed in (4, 1000, 2**32 - 1, 2**63):
        bad = content.replace(count, claimed.to_bytes(8, "little") + low)
        with pytest.raises(ValueError, match="not a valid boscage model"):
            boscage.load(io.BytesIO(bad + hashlib.sha256(bad).digest()))


@pytest.mark.parametrize(("kind", "y"), KINDS)
def test_files_with_a_prior_defined_in_rust_load(kind: Any, y: Any) -> None:
    content = kind(SMC(n_particles=3), random_state=0).fit(X, y)._model.to_bytes()[:-32]
    numbers = (2).to_bytes(8, "little") + np.array([0.95, 0.5]).tobytes()
    assert content.count(numbers) == 1
    own = content.replace(numbers, bytes(8))
    again = boscage.load(io.BytesIO(own + hashlib.sha256(own).digest()))
    assert again.predict(X).shape == (150,)
    assert again._model.alpha_s is None


def test_ancestry_is_that_of_the_fitted_model() -> None:
    model = BayesianTreeClassifier(SMC(n_particles=8, ess_threshold=0.0), random_state=0).fit(X, Y)
    model.set_params(sampler__n_particles=3)
    again = pickle.loads(pickle.dumps(model))
    for ancestry in [*model.ancestry_, *again.ancestry_]:
        assert {steps.shape for steps in ancestry} == {(8,)}
        # Stages without changes take no memory.
        assert len({id(steps) for steps in ancestry}) == 1


def test_compared_models_have_different_seeds() -> None:
    model = BayesianTreeClassifier(SMC(n_particles=5), random_state=7)
    table = compare_features(model, X, Y, {"one": [0, 1], "same": [0, 1]})
    assert table.log_evidence[0] != table.log_evidence[1]
    again = compare_features(model, X, Y, {"one": [0, 1], "same": [0, 1]})
    np.testing.assert_array_equal(table.log_evidence, again.log_evidence)


def test_features_are_compared_by_number_or_by_name() -> None:
    pd = pytest.importorskip("pandas")
    model = BayesianTreeClassifier(SMC(n_particles=5), random_state=7)
    table = pd.DataFrame(X, columns=["a", "b", "c"])
    by_name = compare_features(model, table, Y, {"two": ["c", "a"], "mixed": [1, "a"]})
    by_number = compare_features(model, X, Y, {"two": [2, 0], "mixed": [1, 0]})
    assert by_name.models == by_number.models
    np.testing.assert_array_equal(by_name.log_evidence, by_number.log_evidence)
    for columns in ([0, 3], ["a", "d"], 1):
        with pytest.raises(ValueError, match="'bad': X has no columns"):
            compare_features(model, table, Y, {"good": [0], "bad": columns})  # type: ignore[dict-item]


def test_equal_rows_and_constant_targets_give_a_single_leaf() -> None:
    same = np.ones((6, 2))
    model = BayesianTreeClassifier(random_state=0).fit(same, [0, 1, 0, 1, 1, 1])
    assert [tree.n_nodes for tree in model.trees_] == [1] * 5
    np.testing.assert_allclose(model.predict_proba([[5.0, 5.0]])[0, 1], 6.5 / 11.0)
    constant = BayesianTreeRegressor(random_state=0).fit(X, np.full(150, 3.25))
    np.testing.assert_allclose(constant.predict(X), 3.25)
    one = BayesianTreeRegressor(random_state=0).fit(X[:1], [2.0])
    np.testing.assert_allclose(one.predict(X[:2]), 2.0)


def test_max_stages_cuts_trees_short_and_says_so() -> None:
    model = BayesianTreeClassifier(SMC(max_stages=1), random_state=0)
    with pytest.warns(
        ConvergenceWarning, match=r"max_stages cut the trees of \d+ .*\(of 10 .*each of 5 islands"
    ) as found:
        model.fit(X, Y)
    assert found[0].filename == __file__
    assert {tree.n_leaves for tree in model.trees_} <= {1, 2}
    again = pickle.loads(pickle.dumps(model))
    for one in (model, again):
        assert one.n_unfinished_.shape == (5,)
        assert 0 < one.n_unfinished_.sum() <= 50
    assert not BayesianTreeClassifier(random_state=0).fit(X, Y).n_unfinished_.any()


def test_works_inside_scikit_learn() -> None:
    assert cross_val_score(BayesianTreeClassifier(random_state=0), X, Y, cv=3).mean() > 0.75
    assert cross_val_score(BayesianTreeRegressor(random_state=0), X, N, cv=3).mean() > 0.75


def test_evidence_prefers_what_made_the_data() -> None:
    model = BayesianTreeClassifier(SMC(n_particles=50), alpha=1.0, random_state=0)
    table = compare_parameters(model, X, Y, {"alpha_s": [0.01, 0.95], "alpha": [1.0]})
    assert table.models[0] == {"alpha": 1.0, "alpha_s": 0.95}
    assert table.log_bayes_factor[0] == 0.0
    assert table.log_bayes_factor[1] < -3.0 * table.bayes_factor_error[1] < 0.0
    assert len(str(table).splitlines()) == 3
    named = compare_features(model, X, Y, {"all": [0, 1, 2], "noise": [2], "useful": [0, 1]})
    assert named.models[-1] == "noise"
    with pytest.raises(ValueError, match="smc"):
        compare_parameters(BayesianTreeClassifier(sampler="mcmc"), X, Y, {"alpha": [1.0]})
    # Refused before anything is fitted: alpha must not be -1.
    with pytest.raises(ValueError, match="smc"):
        compare_parameters(model, X, Y, [{"alpha": [-1.0]}, {"sampler": ["mcmc"]}])


def routed(rules: str, row: Any) -> int:
    """The index of the leaf of a row, according to the text of a rule list."""
    leaf, path = 0, [True]
    for line in rules.splitlines():
        depth = line.count("|   ")
        rule = line[4 * depth :].split()
        if rule[-1].startswith("row"):
            if all(path[: depth + 1]):
                return leaf
            leaf += 1
        else:
            value, threshold = row[int(rule[0][1:])], float(rule[2])
            holds = bool(value <= threshold if rule[1] == "<=" else value > threshold)
            path[depth + 1 :] = [holds]
    raise AssertionError("no rule holds")


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rules_send_rows_where_the_tree_does(dtype: Any) -> None:
    # Values that differ only in the tenth digit.
    x = (1.0 + 1e-10 * X).astype(np.float64) if dtype is np.float64 else (1e6 + X).astype(dtype)
    model = BayesianTreeClassifier(SMC(n_particles=1, n_islands=3), alpha=0.1, random_state=0).fit(
        x, Y
    )
    for tree in model.trees_:
        assert tree.n_leaves > 2
        number = np.cumsum(tree.is_leaf) - 1
        rules = tree.rules().replace(")", "").replace("(", "")
        found = [routed(rules, row.astype(float)) for row in x]
        np.testing.assert_array_equal(found, number[tree.apply(x)])
    rounded = model.best_tree_.rules(decimals=2)
    name = f"{model.best_tree_.threshold[0]:.2f}"
    assert rounded.splitlines()[0].endswith(f"<= {name}")
    with pytest.raises(ValueError, match="decimals"):
        model.best_tree_.rules(decimals=-1)
    with pytest.raises(ValueError, match="feature_names has 0 names, and none for number"):
        model.best_tree_.rules(feature_names=[])


def test_nodes_hold_number_mean_and_variance_of_their_targets() -> None:
    model = BayesianTreeRegressor(SMC(n_particles=2, n_islands=2), random_state=0).fit(X, N)
    for tree in model.trees_:
        leaf = tree.apply(X)
        for node in range(tree.n_nodes):
            inside = leaf == node
            if not tree.is_leaf[node]:
                below = {node}
                for child in range(node + 1, tree.n_nodes):
                    if tree.parent[child] in below:
                        below.add(child)
                inside = np.isin(leaf, list(below))
            assert inside.sum() == tree.n_rows[node]
            assert tree.target_mean[node] == pytest.approx(N[inside].mean())
            assert tree.target_variance[node] == pytest.approx(N[inside].var(), abs=1e-12)
    assert BayesianTreeClassifier(SMC(n_particles=1)).fit(X, Y).best_tree_.target_mean is None


@pytest.mark.parametrize("shape", [0.01, 1.5])
def test_means_and_deviations_are_those_of_the_distributions(shape: float) -> None:
    rng = np.random.default_rng(1)
    model = BayesianTreeRegressor(shape=shape, random_state=0).fit(X, N)
    new = rng.normal(size=(700, 3))
    mean, std = model.predict(new, return_std=True)
    dist = model.predict_dist(new)
    np.testing.assert_array_equal(mean, model.predict(new))
    np.testing.assert_allclose(mean, dist.mean, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(std, dist.std, rtol=1e-12)
    model.set_params(n_jobs=2)
    for one, two in zip((mean, std), model.predict(new, return_std=True), strict=True):
        assert one.tobytes() == two.tobytes()
    # A leaf of a single row has 1 + 2 shape degrees of freedom.
    assert np.isinf(std).any() == (shape < 0.5)


def test_rules_and_plots() -> None:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    from boscage.plots import plot_disagreement

    model = BayesianTreeClassifier(random_state=0).fit(X, Y)
    tree = model.best_tree_
    rules = tree.rules(class_names=model.classes_)
    assert rules.count("rows)") + rules.count("row)") == tree.n_leaves
    tree.plot(class_names=model.classes_).figure.canvas.draw()
    tree.plot(max_depth=1).figure.canvas.draw()
    shade = plot_disagreement(model, X, resolution=20)
    shade.figure.canvas.draw()
    numbers = BayesianTreeRegressor(random_state=0).fit(X, N)
    plot_disagreement(numbers, X, features=(2, 0), resolution=20).figure.canvas.draw()
    assert "±" in numbers.best_tree_.rules()
    for features in ((0, 3), (1, 1), (0,), ("x0", "x1")):
        with pytest.raises(ValueError, match="features must be two different numbers below 3"):
            plot_disagreement(model, X, features=features)  # type: ignore[arg-type]
    plt.close("all")


@pytest.mark.slow
def test_root_cuts_of_many_trees_are_drawn_transparent() -> None:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    from boscage.plots import plot_disagreement

    model = BayesianTreeClassifier(MCMC(n_draws=100), random_state=0).fit(X, Y)
    lines = plot_disagreement(model, X, resolution=10).lines
    assert len(lines) > 300
    np.testing.assert_allclose([line.get_alpha() for line in lines], 25.0 / 400.0)
    plt.close("all")


def test_probabilities_of_a_distribution_are_checked() -> None:
    sampler = SMC(n_particles=2, n_islands=2)
    dist = BayesianTreeRegressor(sampler, random_state=0).fit(X, N).predict_dist(X[:3])
    for bad in (np.nan, 1.5, -0.1):
        with pytest.raises(ValueError, match=r"q must lie in \[0, 1\]"):
            dist.quantile(bad)
        with pytest.raises(ValueError, match=r"coverage must lie in \[0, 1\]"):
            dist.interval(bad)
    with pytest.raises(TypeError, match="q must be a number"):
        dist.quantile("half")  # type: ignore[arg-type]
