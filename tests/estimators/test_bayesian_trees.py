"""Bayesian decision trees as scikit-learn estimators: results, evidence, rules and plots."""

from __future__ import annotations

import inspect
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.special import gammaln
from scipy.stats import multivariate_normal
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import cross_val_score
from sklearn.utils.estimator_checks import parametrize_with_checks

import boscage
from boscage import MCMC, SMC, BayesianTreeClassifier, BayesianTreeRegressor, _core
from boscage.bayes.evidence import compare_features, compare_parameters
from signals import N, X, Y

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
        BayesianTreeRegressor(categorical_features=None),
        BayesianTreeRegressor(MCMC(n_draws=50, n_burn=1000)),
    ]
)
@pytest.mark.filterwarnings("default")
def test_estimator_contract(estimator: Any, check: Any) -> None:
    check(estimator)


@pytest.mark.parametrize(("kind", "y"), KINDS)
def test_defaults_are_those_of_the_compiled_samplers(kind: Any, y: Any) -> None:
    compared = set()
    for ours, there in (
        (SMC, _core.SmcSettings),
        (MCMC, _core.McmcSettings),
        (kind, kind._kind.model.fit),
    ):
        here = inspect.signature(ours).parameters
        for name, parameter in inspect.signature(there).parameters.items():
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


def test_equal_targets_give_a_warning_about_the_noise() -> None:
    for n in (1, 150):
        with pytest.warns(UserWarning, match=r"no other value than 2\.5.*give scale=") as found:
            BayesianTreeRegressor(random_state=0).fit(X[:n], np.full(n, 2.5))
        assert [warning.filename for warning in found] == [__file__]
        for known in ({"scale": 0.5}, {"prior_mean": 0.0}):
            model = BayesianTreeRegressor(random_state=0, **known).fit(X[:n], np.full(n, 2.5))
            assert (model.predict(X, return_std=True)[1] > 0.05).all()


@pytest.mark.filterwarnings("ignore:y has no other value")
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
