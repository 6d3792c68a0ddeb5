"""The contents of the plots, as Matplotlib's artists return them."""

from __future__ import annotations

import builtins
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from boscage import (
    BARTClassifier,
    BARTRegressor,
    BayesianTreeClassifier,
    MondrianForestClassifier,
    MondrianForestRegressor,
)
from boscage.metrics import calibration_table, reliability_bins
from boscage.plots import (
    plot_calibration,
    plot_disagreement,
    plot_effect,
    plot_partition,
    plot_posterior_tree,
    plot_reliability,
    plot_tree,
    plot_uncertainty,
)

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

RNG = np.random.default_rng(0)
X = RNG.uniform(size=(60, 2))
Y = (X[:, 0] > 0.5).astype(int)
LABELS = MondrianForestClassifier(4, random_state=0).fit(X, np.array(["no", "yes"])[Y])
NUMBERS = MondrianForestRegressor(4, random_state=0).fit(X, X[:, 0])


@pytest.fixture(autouse=True)
def _close() -> Iterator[None]:
    yield
    plt.close("all")


def drawn(ax: Any) -> Any:
    """Render the figure, since Matplotlib raises some errors only then."""
    ax.figure.canvas.draw()
    return ax


def texts(ax: Any) -> list[str]:
    return [text.get_text() for text in ax.texts]


def segments(ax: Any) -> list[Any]:
    from matplotlib.collections import LineCollection

    lines = [c for c in ax.collections if isinstance(c, LineCollection)]
    return list(lines[0].get_segments()) if lines else []


def test_plot_reliability() -> None:
    proba = LABELS.predict_proba(X)
    truth = np.array(["no", "yes"])[Y]
    ax = drawn(plot_reliability(truth, proba, labels=LABELS.classes_, n_bins=5, name="forest"))
    bins = reliability_bins(truth, proba, n_bins=5)
    np.testing.assert_allclose(
        ax.lines[1].get_xydata(), np.column_stack((bins.predicted, bins.observed))
    )
    assert ax.get_legend().get_texts()[0].get_text().startswith("forest: expected calibration")
    again = plot_reliability(Y, proba[:, 1], strategy="quantile", ax=ax)
    assert again is ax


def test_plot_calibration() -> None:
    dist = NUMBERS.predict_dist(X)
    ax = drawn(plot_calibration(X[:, 0], dist, name="forest"))
    table = calibration_table(X[:, 0], dist, quantiles="exact")
    np.testing.assert_allclose(ax.lines[1].get_ydata(), table.observed)
    assert plot_calibration(X[:, 0], (dist.mean, dist.std), quantiles="gaussian", ax=ax) is ax


@pytest.mark.parametrize("forest", [LABELS, NUMBERS])
def test_plot_tree(forest: Any) -> None:
    tree = forest.trees_[0]
    ax = drawn(plot_tree(tree))
    inner = np.count_nonzero(~tree.is_leaf)
    assert len(segments(ax)) == 2 * inner + 1
    # Every inner node stands at its time, between its children.
    ys = {float(point[1]) for line in segments(ax) for point in line}
    assert set(tree.time[~tree.is_leaf]) <= ys
    assert ax.yaxis_inverted()


def test_plot_tree_names_what_it_shows() -> None:
    tree = LABELS.trees_[0]
    ax = drawn(
        tree.plot(max_depth=1, feature_names=["width", "height"], class_names=LABELS.classes_)
    )
    first = ["width", "height"][tree.feature[0]]
    assert f"{first} ≤ {tree.threshold[0]:.4g}" in texts(ax)
    below = [tree.children_left[0], tree.children_right[0]]
    for node in below:
        assert any(text.startswith(f"n = {tree.n_rows[node]}\n") for text in texts(ax))
    assert any(text.endswith(("no", "yes")) for text in texts(ax))
    numbers = drawn(plot_tree(NUMBERS.trees_[0], max_depth=0))
    assert texts(numbers) == [f"n = 60\n{NUMBERS.trees_[0].mean[0]:.3g}"]
    with pytest.raises(ValueError, match="max_depth"):
        plot_tree(tree, max_depth=-1)


def test_plot_tree_of_a_single_leaf() -> None:
    forest = MondrianForestClassifier(1).fit(X, np.zeros(60, dtype=int))
    ax = drawn(plot_tree(forest.trees_[0], ax=plt.subplots()[1]))
    assert texts(ax) == ["n = 60\n0"]


@pytest.mark.parametrize("forest", [LABELS, NUMBERS])
def test_plot_partition(forest: Any) -> None:
    target = np.array(["no", "yes"])[Y] if forest is LABELS else X[:, 0]
    ax = drawn(plot_partition(forest, X, target, tree=1, resolution=20))
    tree = forest.trees_[1]
    assert len(segments(ax)) == np.count_nonzero(~tree.is_leaf)
    for line, node in zip(segments(ax), np.flatnonzero(~tree.is_leaf), strict=True):
        axis = tree.feature[node]
        np.testing.assert_allclose(line[:, axis], tree.threshold[node])
        other = 1 - axis
        np.testing.assert_allclose(
            line[:, other], [tree.lower[node, other], tree.upper[node, other]]
        )
    shade = np.asarray(ax.collections[0].get_array()).ravel()
    assert shade.shape == (400,)
    across = np.linspace(*ax.get_xlim(), 20)
    up = np.linspace(*ax.get_ylim(), 20)
    corner = [[across[0], up[0]]]
    if forest is LABELS:
        proba = forest.predict_proba(corner)[0]
        np.testing.assert_allclose(shade[0], -(proba * np.log(proba)).sum() / np.log(2))
    else:
        np.testing.assert_allclose(shade[0], forest.predict(corner, return_std=True)[1][0])


def test_plot_partition_shades_the_weighted_probabilities() -> None:
    rng = np.random.default_rng(0)
    rows = rng.uniform(size=(60, 2))
    model = MondrianForestClassifier(5, random_state=0).fit(rows, rows[:, 0] > 0.5)
    model.set_params(class_weight={True: 30.0})
    ax = drawn(plot_partition(model, resolution=7))
    across, up = np.linspace(*ax.get_xlim(), 7), np.linspace(*ax.get_ylim(), 7)
    proba = model.predict_proba([[x, y] for y in up for x in across])
    expected = -(proba * np.log(proba)).sum(axis=1) / np.log(2.0)
    np.testing.assert_allclose(np.ravel(ax.collections[0].get_array()), expected, atol=1e-12)


def test_plot_partition_of_more_features_is_a_section() -> None:
    rng = np.random.default_rng(1)
    pd = pytest.importorskip("pandas")
    rows = pd.DataFrame(rng.uniform(size=(50, 3)), columns=["a", "b", "c"])
    forest = MondrianForestRegressor(3, random_state=0).fit(rows, rows["a"])
    ax = drawn(plot_partition(forest, rows, features=(2, 0), at=[0.1, 0.2, 0.3], resolution=5))
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("c", "a")
    assert segments(ax) == []
    shade = np.asarray(ax.collections[0].get_array()).ravel()
    corner = pd.DataFrame([[ax.get_ylim()[0], 0.2, ax.get_xlim()[0]]], columns=["a", "b", "c"])
    np.testing.assert_allclose(shade[0], forest.predict(corner, return_std=True)[1][0])
    for features in ((0, 0), (0, 3)):
        with pytest.raises(ValueError, match="two different numbers below 3"):
            plot_partition(forest, features=features)
    with pytest.raises(ValueError, match="at has shape"):
        plot_partition(forest, at=[0.0])


def test_plots_without_matplotlib_say_how_to_install_it(monkeypatch: Any) -> None:
    real = builtins.__import__

    def without(name: str, *args: Any, **kwargs: Any) -> Any:
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ImportError, match=r'pip install "boscage\[plot\]"'):
        plot_tree(LABELS.trees_[0])


def test_effects_show_means_and_bands() -> None:
    rng = np.random.default_rng(1)
    x = rng.uniform(size=(80, 2))
    short: dict[str, Any] = {"n_trees": 10, "n_chains": 2, "n_burn": 20, "n_draws": 20}
    model = BARTRegressor(**short, random_state=0).fit(x, 3.0 * x[:, 0])
    ax = plot_effect(model, x[:30], 0, n_curves=4, level=0.8)
    grid, draws = model.effect(x[:30], 0)
    assert len(ax.lines) == 5
    np.testing.assert_allclose(ax.lines[-1].get_xdata(), grid)
    np.testing.assert_allclose(ax.lines[-1].get_ydata(), draws.mean(axis=(0, 2)))
    np.testing.assert_allclose(ax.lines[2].get_ydata(), draws[:, :, 2].mean(axis=0))
    band = ax.collections[-1].get_paths()[0].vertices[:, 1]
    low, high = np.quantile(draws.mean(axis=2), [0.1, 0.9], axis=0)
    np.testing.assert_allclose([band.min(), band.max()], [low.min(), high.max()])
    classes = np.array(["a", "b", "c"])[np.digitize(x[:, 0], [0.3, 0.6])]
    for labels in (classes, np.where(classes == "c", "a", classes)):
        other = BARTClassifier(**short, random_state=0).fit(x, labels)
        ax = plot_effect(other, x[:30], 0, target="a")
        rows = x[:30].copy()
        rows[:, 0] = ax.lines[-1].get_xdata()[3]
        expected = other.predict_proba(rows)[:, 0].mean()
        np.testing.assert_allclose(ax.lines[-1].get_ydata()[3], expected)
        assert ax.get_ylabel() == "probability of a"
    with pytest.raises(ValueError, match="level must be"):
        plot_effect(model, x, 0, level=1.0)


def test_trees_know_the_names_of_columns_and_classes(tmp_path: Any) -> None:
    pd = pytest.importorskip("pandas")
    rows = pd.DataFrame(X, columns=["width", "height"])
    labels = np.array(["no", "yes"])[Y]
    model = BayesianTreeClassifier(random_state=0).fit(rows, labels)
    model.save(tmp_path / "model")
    for fitted in (model, BayesianTreeClassifier.load(tmp_path / "model")):
        tree = fitted.best_tree_
        assert tree.rules().startswith("width <= ")
        assert "|   yes (" in tree.rules()
        assert tree.rules(feature_names=["a", "b"], class_names=["n", "y"]).startswith("a <= ")
        assert any(text.startswith("width ≤") for text in texts(drawn(tree.plot())))
        assert any(text.startswith("yes\n(") for text in texts(drawn(tree.plot())))
    forest = MondrianForestClassifier(2, random_state=0).fit(rows, labels)
    shown = texts(drawn(forest.trees_[0].plot(max_depth=1)))
    assert any(text.startswith(("width ≤", "height ≤")) for text in shown)
    assert any(text.endswith(("\nno", "\nyes")) for text in shown)
    sums = BARTRegressor(2, n_chains=1, n_burn=1, n_draws=1).fit(rows, X[:, 0])
    assert list(sums.trees_[0][0].feature_names) == ["width", "height"]
    plain = BayesianTreeClassifier(random_state=0).fit(X, labels).best_tree_
    assert plain.feature_names is None
    assert plain.rules().startswith("x0 <= ")


def test_plots_say_which_models_they_are_for() -> None:
    bart = BARTRegressor(2, n_chains=1, n_burn=1, n_draws=1).fit(X, X[:, 0])
    trees = BayesianTreeClassifier(random_state=0).fit(X, Y)
    forests = "MondrianForestClassifier and MondrianForestRegressor"
    with pytest.raises(TypeError, match=f"plot_partition draws {forests}, found BARTRegressor"):
        plot_partition(bart)
    with pytest.raises(TypeError, match=r"plot_effect draws BART.*, found MondrianForestRegressor"):
        plot_effect(NUMBERS, X, 0)
    with pytest.raises(TypeError, match=r"plot_disagreement draws Bayesian.*, found BARTRegressor"):
        plot_disagreement(bart, X)
    with pytest.raises(TypeError, match="found PosteriorTree; see plot_posterior_tree"):
        plot_tree(trees.best_tree_)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="plot_posterior_tree draws PosteriorTree, found Mondrian"):
        plot_posterior_tree(LABELS.trees_[0])  # type: ignore[arg-type]
    with pytest.raises(NotFittedError):
        plot_partition(MondrianForestClassifier())
    classes = BARTClassifier(2, n_chains=1, n_burn=1, n_draws=2).fit(X, Y)
    with pytest.raises(ValueError, match=r"target must be one of \[.*\], found 'other'"):
        plot_effect(classes, X, 0, target="other")


@pytest.mark.parametrize("model", [LABELS, NUMBERS])
def test_uncertainty_has_both_parts_and_the_score(model: Any) -> None:
    ax = drawn(plot_uncertainty(model, feature=1, at=[0.2, 0.5], margin=2.0, resolution=41))
    assert ax.get_xlim() == pytest.approx(
        [0.5 - 2.5 * np.ptp(X[:, 1]), 0.5 + 2.5 * np.ptp(X[:, 1])], abs=0.1
    )
    rows = np.column_stack([np.full(41, 0.2), np.linspace(*ax.get_xlim(), 41)])
    total, aleatoric, _ = model.predict_uncertainty(rows)
    lower, upper = (area.get_paths()[0].vertices[:, 1] for area in ax.collections)
    assert lower.max() == pytest.approx(aleatoric.max())
    assert upper.max() == pytest.approx(total.max())
    (beside,) = (other for other in ax.figure.axes if other is not ax)
    (line,) = beside.lines
    np.testing.assert_allclose(line.get_ydata(), model.score_samples(rows))
    names = [text.get_text() for text in ax.get_legend().get_texts()]
    assert names == ["aleatoric", "epistemic", "score"]
    alone = plot_uncertainty(model, novelty=False)
    assert [other for other in alone.figure.axes if other is not alone] == []
    with pytest.raises(ValueError, match="feature must be a number below 2, found 2"):
        plot_uncertainty(model, feature=2)
    with pytest.raises(ValueError, match="at has shape"):
        plot_uncertainty(model, at=[0.0])
    with pytest.raises(TypeError, match="plot_uncertainty draws"):
        plot_uncertainty(BARTRegressor())


def colours() -> tuple[Any, Any, Any]:
    """A forest of a number and a colour, its rows and targets."""
    pd = pytest.importorskip("pandas")
    rows = pd.DataFrame({"x": X[:, 0], "colour": np.resize(["red", "blue", "green"], 60)})
    y = X[:, 0] + (rows["colour"] == "red")
    return MondrianForestRegressor(4, random_state=0).fit(rows, y), rows, y


def test_uncertainty_along_categories_has_a_bar_for_each() -> None:
    forest, rows, _ = colours()
    ax = drawn(plot_uncertainty(forest, feature=1, at=[0.3, None]))
    names = [text.get_text() for text in ax.get_xticklabels()]
    assert sorted(names) == ["blue", "green", "missing", "red"]
    shown = rows.iloc[:4].assign(x=0.3, colour=[None if n == "missing" else n for n in names])
    total, aleatoric, _ = forest.predict_uncertainty(shown)
    lower, upper = ax.containers
    np.testing.assert_allclose([bar.get_height() for bar in lower], aleatoric)
    np.testing.assert_allclose([bar.get_y() + bar.get_height() for bar in upper], total)
    (beside,) = (other for other in ax.figure.axes if other is not ax)
    np.testing.assert_allclose(beside.lines[0].get_ydata(), forest.score_samples(shown))


def test_other_features_of_plots_may_be_categories() -> None:
    forest, rows, y = colours()
    for at, colour in ((None, None), ([0.0, "red"], "red")):
        ax = plot_uncertainty(forest, at=at, resolution=3, novelty=False)
        shown = rows.iloc[:3].assign(x=np.linspace(*ax.get_xlim(), 3), colour=colour)
        top = ax.collections[1].get_paths()[0].vertices[:, 1].max()
        assert top == pytest.approx(forest.predict_uncertainty(shown)[0].max())
    with pytest.raises(ValueError, match="feature colour is categorical; expected two numeric"):
        plot_partition(forest, rows, y)


def test_plots_take_missing_values_of_other_features() -> None:
    rng = np.random.default_rng(1)
    rows = rng.uniform(size=(60, 3))
    rows[:, 1] = rows[:, 0]
    for forest in (
        MondrianForestRegressor(4, random_state=0).fit(rows, rows[:, 0]),
        MondrianForestClassifier(4, random_state=0).fit(rows, rows[:, 0] > 0.5),
    ):
        ax = drawn(plot_uncertainty(forest, at=[0.2, np.nan, 0.5], resolution=5))
        shown = np.tile([0.2, np.nan, 0.5], (5, 1))
        shown[:, 0] = np.linspace(*ax.get_xlim(), 5)
        top = ax.collections[1].get_paths()[0].vertices[:, 1].max()
        assert top == pytest.approx(forest.predict_uncertainty(shown).total.max())
        (beside,) = (other for other in ax.figure.axes if other is not ax)
        np.testing.assert_allclose(beside.lines[0].get_ydata(), forest.score_samples(shown))
        assert forest.substitutes_ is None
    forest = MondrianForestRegressor(4, random_state=0).fit(rows, rows[:, 0])
    ax = drawn(plot_partition(forest, features=(0, 2), at=[0.0, None, 0.0], resolution=5))
    corner = [[ax.get_xlim()[0], np.nan, ax.get_ylim()[0]]]
    shade = np.asarray(ax.collections[0].get_array()).ravel()
    np.testing.assert_allclose(shade[0], forest.predict(corner, return_std=True)[1][0])


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"margin": np.nan}, ValueError, "margin must be finite and >= 0, found nan"),
        ({"margin": -0.1}, ValueError, "margin must be finite and >= 0, found -0.1"),
        ({"margin": "a"}, TypeError, "margin must be a number, found 'a'"),
        ({"resolution": 0}, ValueError, "resolution must be >= 2, found 0"),
        ({"resolution": 2.5}, TypeError, "resolution must be an integer, found 2.5"),
        ({"at": ["a", "a"]}, ValueError, "at holds 'a' for feature 0; expected a finite number"),
        ({"at": [0.0, np.inf]}, ValueError, "at holds inf for feature 1; expected a finite"),
        ({"at": [0.0]}, ValueError, r"at has shape \(1,\), expected \(2,\)"),
    ],
    ids=str,
)
def test_plots_of_forests_name_the_argument_that_is_wrong(
    options: Any, error: type[Exception], message: str
) -> None:
    for plot in (plot_uncertainty, plot_partition):
        with pytest.raises(error, match=message):
            plot(LABELS, **options)
    if "at" not in options:
        trees = BayesianTreeClassifier(random_state=0).fit(X, Y)
        with pytest.raises(error, match=message):
            plot_disagreement(trees, X, **options)


def test_plots_take_features_by_name() -> None:
    pd = pytest.importorskip("pandas")
    rows = pd.DataFrame(X, columns=["width", "height"])
    forest = MondrianForestRegressor(4, random_state=0).fit(rows, X[:, 0])
    tree = BayesianTreeClassifier(random_state=0).fit(rows, Y)
    bart = BARTRegressor(2, n_chains=1, n_burn=1, n_draws=2).fit(rows, X[:, 0])
    for plot, names, numbers in (
        (lambda which: plot_uncertainty(forest, feature=which), "height", 1),
        (lambda which: plot_partition(forest, features=which), ("height", "width"), (1, 0)),
        (lambda which: plot_partition(forest, features=which), (1, "width"), (1, 0)),
        (lambda which: plot_disagreement(tree, rows, features=which), ("height", 0), (1, 0)),
        (lambda which: plot_effect(bart, rows, which), "height", 1),
    ):
        by_name, by_number = drawn(plot(names)), drawn(plot(numbers))
        assert by_name.get_xlabel() == by_number.get_xlabel() == "height"
        for one, other in zip(by_name.collections, by_number.collections, strict=True):
            np.testing.assert_array_equal(one.get_array(), other.get_array())
            for a, b in zip(one.get_paths(), other.get_paths(), strict=True):
                np.testing.assert_array_equal(a.vertices, b.vertices)
    known = r"below 2 or one of the names \['width', 'height'\], found"
    for call in (
        lambda: plot_uncertainty(forest, feature="depth"),
        lambda: plot_partition(forest, features=("width", "depth")),
        lambda: plot_partition(forest, features=("width", 0)),
        lambda: plot_disagreement(tree, rows, features=("depth", 0)),
        lambda: plot_effect(bart, rows, "depth"),
    ):
        with pytest.raises(ValueError, match=known):
            call()


def test_plots_name_other_arguments_that_are_wrong() -> None:
    feature: Any
    for feature in ("a", 1.0, True, -1, None):
        with pytest.raises(ValueError, match="feature must be a number below 2, found"):
            plot_uncertainty(LABELS, feature=feature)
    features: Any
    for features in ((0, True), (0, 1.0), ("a", "b"), 0, (0, 1, 2)):
        with pytest.raises(ValueError, match="features must be two different numbers below 2"):
            plot_partition(LABELS, features=features)
    with pytest.raises(ValueError, match="tree must be a number below 4, found 9"):
        plot_partition(LABELS, tree=9)
    with pytest.raises(TypeError, match="tree must be an integer, found 'a'"):
        plot_partition(LABELS, tree="a")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"X has shape \(60,\), expected 2 features"):
        plot_partition(LABELS, X[:, 0])
    with pytest.raises(ValueError, match=r"y has shape \(3,\), expected \(60,\)"):
        plot_partition(LABELS, X, Y[:3])
    with pytest.raises(TypeError, match=r"max_depth must be an integer, found 1.5"):
        plot_tree(LABELS.trees_[0], max_depth=1.5)  # type: ignore[arg-type]
    bart = BARTRegressor(2, n_chains=1, n_burn=1, n_draws=1).fit(X, X[:, 0])
    with pytest.raises(TypeError, match="level must be a number, found 'a'"):
        plot_effect(bart, X, 0, level="a")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="n_curves must be >= 0, found -1"):
        plot_effect(bart, X, 0, n_curves=-1)
    trees = BayesianTreeClassifier(random_state=0).fit(X, Y)
    with pytest.raises(ValueError, match="X has 1 features, but BayesianTreeClassifier"):
        plot_disagreement(trees, X[:, :1])
