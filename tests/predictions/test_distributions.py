"""Predictive distributions with one interface, compared with SciPy, integration and draws."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats
from scipy.special import beta, stdtr

from boscage import (
    MCMC,
    BARTRegressor,
    BayesianTreeRegressor,
    GaussianMixture,
    MondrianForestRegressor,
    PredictiveDistribution,
    StudentMixture,
    metrics,
)

RNG = np.random.default_rng(0)
X = RNG.uniform(size=(120, 2))
Y = np.sin(6.0 * X[:, 0]) + 0.2 * RNG.normal(size=120)
N = 4


class Own(PredictiveDistribution):
    """A user's distribution: logistic by SciPy, with only the required methods."""

    def __init__(self, location: Any, scale: Any) -> None:
        self.location, self.scale = np.asarray(location), np.asarray(scale)
        self.dist = stats.logistic(self.location, self.scale)

    def __len__(self) -> int:
        return len(self.location)

    def __getitem__(self, rows: Any) -> Own:
        return Own(np.atleast_1d(self.location[rows]), np.atleast_1d(self.scale[rows]))

    @property
    def mean(self) -> Any:
        return self.dist.mean()

    @property
    def var(self) -> Any:
        return self.dist.var()

    def logpdf(self, y: Any) -> Any:
        return self.dist.logpdf(y)

    def cdf(self, y: Any) -> Any:
        return self.dist.cdf(y)

    def quantile(self, q: Any) -> Any:
        return self.dist.ppf(np.asarray(q)[..., None])

    def sample(self, n: int = 1, random_state: Any = None) -> Any:
        return self.dist.rvs((n, len(self)), random_state=random_state)


def gaussian() -> GaussianMixture:
    weights = [1.0, 0.5, 0.5, 0.2, 0.3, 0.5, 0.9, 0.1]
    means = [0.0, -3.0, 3.0, 0.0, 5.0, 5.5, 1e3, 1e3 + 1.0]
    variances = [1.0, 0.01, 1.0, 1e-4, 1.0, 4.0, 0.01, 0.02]
    return GaussianMixture([0, 1, 3, 6, 8], weights, means, variances)


def student() -> StudentMixture:
    df = [[3.0, 5.0, 30.0], [2.5, 4.0, 400.0], [9.0, 9.0, 9.0], [6.0, 3.5, 8.0]]
    location = [[0.0, 0.0, 0.0], [-3.0, 0.0, 3.0], [5.0, 5.1, 5.2], [1e3, 1e3, 1e3 + 1.0]]
    scale = [[1.0, 1.0, 1.0], [0.1, 1.0, 0.5], [1e-3, 1.0, 2.0], [0.1, 0.2, 0.1]]
    return StudentMixture([0.5, 0.2, 0.3], df, location, scale)


DISTRIBUTIONS: dict[str, PredictiveDistribution] = {
    "GaussianMixture": gaussian(),
    "StudentMixture": student(),
    "Own": Own([0.0, 1.0, -5.0, 1e3], [1.0, 0.1, 10.0, 0.5]),
    "MondrianForestRegressor": MondrianForestRegressor(3, random_state=0)
    .fit(X, Y)
    .predict_dist(X[:N] + 0.1),
    "BayesianTreeRegressor": BayesianTreeRegressor(random_state=0).fit(X, Y).predict_dist(X[:N]),
    "BayesianTreeRegressor MCMC": BayesianTreeRegressor(
        MCMC(n_chains=2, n_draws=10, n_burn=100), random_state=0
    )
    .fit(X, Y)
    .predict_dist(X[:N]),
    "BARTRegressor": BARTRegressor(5, n_chains=1, n_burn=20, n_draws=20, random_state=0)
    .fit(X, Y)
    .predict_dist(X[:N]),
}
each = pytest.mark.parametrize("dist", DISTRIBUTIONS.values(), ids=DISTRIBUTIONS)


def breaks(dist: PredictiveDistribution) -> Any:
    """Points between which densities are smooth enough for quadrature, of shape (..., N)."""
    q = np.concatenate((np.logspace(-12.0, -2.1, 31), np.linspace(0.01, 0.5, 30)))
    points = [list(row) for row in dist.quantile(np.concatenate((q, 1.0 - q))).T]
    for row, found in enumerate(points):
        if isinstance(dist, GaussianMixture):
            _, centre, variance = dist.components(row)
            scale = np.sqrt(variance)
        elif isinstance(dist, StudentMixture):
            centre, scale = dist.location[row], dist.scale[row]
        else:
            continue
        if len(centre) <= 3:
            found += list((centre + np.sinh(np.linspace(-4.0, 4.0, 41))[:, None] * scale).ravel())
    # Rows with fewer points repeat their last: intervals of no width.
    most = max(map(len, points))
    return np.array([sorted(row) + [max(row)] * (most - len(row)) for row in points]).T


def integrals(function: Any, points: Any) -> Any:
    """Gauss-Legendre between neighbouring points, for each row; of shape (len(points) - 1, N)."""
    nodes, weights = np.polynomial.legendre.leggauss(16)
    half = 0.5 * np.diff(points, axis=0)[:, None]
    at = points[:-1, None] + half * (nodes[:, None] + 1.0)
    return (half * weights[:, None] * function(at)).sum(axis=1)


@each
def test_all_have_the_same_interface(dist: PredictiveDistribution) -> None:
    assert isinstance(dist, PredictiveDistribution)
    assert len(dist) == N
    assert dist.mean.shape == dist.var.shape == dist.std.shape == (N,)
    np.testing.assert_allclose(dist.std, np.sqrt(dist.var))
    for function in (dist.pdf, dist.logpdf, dist.cdf):
        assert function(0.3).shape == (N,)
        assert function(np.zeros(N)).shape == (N,)
        assert function(np.zeros((5, 2, N))).shape == (5, 2, N)
        grid = np.linspace(-1.0, 1.0, 3)[:, None]
        np.testing.assert_array_equal(function(grid)[1], function(0.0))
        np.testing.assert_array_equal(function([0.3]), function(np.full(N, 0.3)))
    np.testing.assert_allclose(dist.pdf(dist.mean), np.exp(dist.logpdf(dist.mean)))
    assert dist.quantile(0.5).shape == (N,)
    assert dist.quantile([[0.1, 0.2, 0.3]]).shape == (1, 3, N)
    np.testing.assert_array_equal(dist.quantile([0.1, 0.7])[1], dist.quantile(0.7))
    assert (dist.quantile([0.0, 1.0]) == [[-np.inf], [np.inf]]).all()
    for ends in (dist.interval(0.9), dist.interval([[0.5], [0.9]])):
        assert ends[0].shape == ends[1].shape in {(N,), (2, 1, N)}
        assert (ends[0] < ends[1]).all()
    assert dist.sample().shape == (1, N)
    assert dist.sample(7).shape == (7, N)
    assert dist.sample(0).shape == (0, N)
    for seed in (3, np.random.RandomState(3), np.random.default_rng(3)):
        assert np.isfinite(dist.sample(2, seed)).all()
    np.testing.assert_array_equal(dist.sample(2, 3), dist.sample(2, random_state=3))
    assert dist.crps(np.zeros(N)).shape == (N,)
    assert [len(dist[rows]) for rows in (0, slice(1, 3), [3, 0, 0], dist.mean > -1e9)] == [
        1,
        2,
        3,
        N,
    ]
    np.testing.assert_allclose(dist[[2, 2, 0]].mean, dist.mean[[2, 2, 0]], rtol=1e-12)


@pytest.mark.slow
@each
def test_the_distribution_function_is_the_integral_of_the_density(
    dist: PredictiveDistribution,
) -> None:
    points = breaks(dist)
    parts = integrals(dist.pdf, points)
    np.testing.assert_allclose(np.diff(dist.cdf(points), axis=0), parts, rtol=1e-5, atol=1e-10)
    np.testing.assert_allclose(parts.sum(axis=0), 1.0, atol=1e-8)
    mean = integrals(lambda y: y * dist.pdf(y), points).sum(axis=0)
    np.testing.assert_allclose(dist.mean, mean, rtol=1e-5, atol=1e-5)


@each
@pytest.mark.parametrize("q", [1e-9, 0.003, 0.25, 0.5, 0.9, 0.9999])
def test_the_quantile_inverts_the_distribution_function(
    dist: PredictiveDistribution, q: float
) -> None:
    np.testing.assert_allclose(dist.cdf(dist.quantile(q)), q, rtol=1e-7)
    low, high = dist.interval(q)
    np.testing.assert_allclose(dist.cdf(high) - dist.cdf(low), q, rtol=1e-5, atol=1e-12)
    np.testing.assert_allclose(dist.cdf(low), 0.5 * (1.0 - q), rtol=1e-6)


@pytest.mark.slow
@each
@pytest.mark.parametrize("q", [0.001, 0.25, 0.4, 0.9])
def test_crps_is_its_integral(dist: PredictiveDistribution, q: float) -> None:
    y = dist.quantile(q)
    points = np.sort(np.vstack((breaks(dist), y)), axis=0)
    expected = integrals(lambda t: (dist.cdf(t) - (t >= y)) ** 2, points).sum(axis=0)
    np.testing.assert_allclose(dist.crps(y), expected, rtol=1e-6)
    far = y + 1e4 * dist.std
    np.testing.assert_allclose(dist.crps(far), far - dist.mean, rtol=1e-3)


@pytest.mark.parametrize("offset", [0.0, 1e6, 1e12, -1e14])
def test_crps_of_students_does_not_depend_on_an_offset(offset: float) -> None:
    """Offsets and what is added to them are such that sums are exact."""
    rng = np.random.default_rng(0)
    df = rng.choice([3.0, 5.0, 30.0], size=(20, 10))
    location, y = rng.integers(-128, 128, (20, 10)) / 64.0, rng.integers(-256, 256, 20) / 64.0
    scale = rng.uniform(0.1, 2.0, (20, 10))
    here = StudentMixture(np.full(10, 0.1), df, location, scale)
    there = StudentMixture(np.full(10, 0.1), df, location + offset, scale)
    found = there.crps(y + offset)
    np.testing.assert_allclose(found, here.crps(y), rtol=1e-12)
    # Differences of all pairs of quantiles stand for those of draws.
    q = (np.arange(2000) + 0.5) / 2000
    x = here.quantile(q)
    within = np.einsum("i,ij->j", 2.0 * q - 1.0, x) / len(q)
    np.testing.assert_allclose(found, np.abs(x - y).mean(axis=0) - within, rtol=3e-3)
    assert np.isinf(there[0].crps([np.inf])).all()


@pytest.mark.slow
@each
def test_draws_follow_the_distribution(dist: PredictiveDistribution) -> None:
    draws = dist.sample(10_000, random_state=0)
    for below in dist.cdf(draws).T:
        assert stats.kstest(below, "uniform").pvalue > 1e-3
    np.testing.assert_allclose(draws.mean(axis=0), dist.mean, atol=5.0 * dist.std.max() / 100.0)
    # The variance of draws has a standard error only where the fourth moment is finite.
    light = np.array([np.min(getattr(dist[i], "df", np.inf)) > 4.5 for i in range(N)])
    squares = (draws - dist.mean) ** 2
    away = np.abs(squares.mean(axis=0) - dist.var)[light]
    assert (away < 5.0 * squares.std(axis=0)[light] / 100.0).all()
    assert abs(np.corrcoef(draws[:, 0], draws[:, 1])[0, 1]) < 0.03


@pytest.mark.parametrize("q", [1e-30, 1e-100, 1e-200, 1e-300])
def test_far_quantiles_of_students_distribution_are_those_of_its_tail(q: float) -> None:
    # In the tail the density is a power of its argument.
    tails = {
        1.0: 1.0 / (np.pi * q),
        2.0: np.sqrt(0.5 / q),
        3.0: (2.0 * np.sqrt(3.0) / np.pi / q) ** (1.0 / 3.0),
        5.0: (200.0 / (3.0 * np.pi * np.sqrt(5.0)) / q) ** 0.2,
    }
    df, size = np.array(list(tails))[:, None], np.array(list(tails.values()))
    one = StudentMixture([1.0], df, np.ones_like(df), np.full_like(df, 2.0))
    np.testing.assert_allclose(one.quantile(q), 1.0 - 2.0 * size, rtol=1e-9)
    np.testing.assert_allclose(one.cdf(one.quantile(q)), q, rtol=1e-9)
    two = StudentMixture([0.25, 0.75], np.hstack((df, 0.0 * df + 60.0)), *np.ones((2, 4, 2)))
    np.testing.assert_allclose(two.cdf(two.quantile(q)), q, rtol=1e-9)


@pytest.mark.parametrize("df", [0.01, 0.5, 3.0, 100.0, 1e6])
@pytest.mark.parametrize("q", [5e-324, 1e-310, 1e-300, 1e-200, 1.0 - 2.0**-53])
def test_no_quantile_is_nan(df: float, q: float) -> None:
    dist = StudentMixture([0.5, 0.5], [[df, 2.0 * df]], [[1.0, -1.0]], [[1e-3, 1e3]])
    assert np.isfinite(dist.quantile(q)).all()
    assert np.sign(dist.quantile(q)) == np.sign(q - 0.5)


def students_with_copies(n_copies: int) -> StudentMixture:
    """Four components by row, one of them of weight zero, each so many times."""
    weights = np.tile([0.5, 0.2, 0.3, 0.0], n_copies) / n_copies
    parts = [[5.0, 3.0, 8.0, 3.0], [-2.0, 0.0, -0.0, 0.0], [0.25, 1.0, 2.0, 1.0]]
    df, location, scale = (np.tile(part, (20, n_copies)) for part in parts)
    return StudentMixture(weights, df, location + np.arange(20.0)[:, None] // 2, scale)


def test_copies_of_students_change_nothing() -> None:
    one, many = students_with_copies(1), students_with_copies(7)
    y = np.linspace(-5.0, 9.0, 20)
    for name, at in (("cdf", y), ("logpdf", y), ("crps", y), ("quantile", [1e-9, 0.1, 0.5])):
        expected, found = getattr(one, name)(at), getattr(many, name)(at)
        np.testing.assert_allclose(found, expected, rtol=1e-12)
    np.testing.assert_allclose(many.crps(y), PredictiveDistribution.crps(many, y), rtol=1e-12)
    for empty in (many.quantile([]), many.cdf(np.empty((0, 20)))):
        assert empty.shape == (0, 20)
    assert many[:0].crps([]).shape == many[:0].quantile(0.5).shape == (0,)


def test_copies_of_students_cost_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = []

    def counted(df: Any, z: Any) -> Any:
        counts.append(np.size(z))
        return stdtr(df, z)

    monkeypatch.setattr("boscage.distributions._student.stdtr", counted)
    dist = students_with_copies(250)
    limits = {"interval": (0.9, 100), "quantile": (0.5, 50), "cdf": (0.0, 4), "crps": (0.0, 4000)}
    for name, (at, most) in limits.items():
        counts.clear()
        getattr(dist, name)(np.full(20, at) if name == "crps" else at)
        # Each row has four distinct components, of a thousand.
        assert sum(counts) <= most * 20, name


def test_densities_far_away_do_not_vanish() -> None:
    dist = StudentMixture([1.0], [[3.0]], [[0.0]], [[1.0]])
    near, far = dist.logpdf([[1e100], [1e200]])[:, 0]
    np.testing.assert_allclose(far - near, -4.0 * np.log(1e100), rtol=1e-12)


@pytest.mark.parametrize("df", [1.02, 2.0, 2.5, 7.0, 1e6])
def test_one_component_is_scipys_student_distribution(df: float) -> None:
    rng = np.random.default_rng(1)
    location, scale = np.array([0.5, -2.0]), np.array([1.0, 0.3])
    dist = StudentMixture([1.0], np.full((2, 1), df), location[:, None], scale[:, None])
    theirs = stats.t(df, location, scale)
    y = rng.normal(size=(3, 2))
    np.testing.assert_allclose(dist.logpdf(y), theirs.logpdf(y), rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(dist.cdf(y), theirs.cdf(y), rtol=1e-9)
    np.testing.assert_allclose(dist.mean, location)
    np.testing.assert_allclose(dist.var, theirs.var())
    for q in (0.01, 0.5, 0.9):
        np.testing.assert_allclose(dist.quantile(q), theirs.ppf(q), rtol=1e-8)
    # The closed form of Jordan, Krueger and Lerch (2019).
    z = (y[0] - location) / scale
    standard = stats.t(df)
    closed = z * (2.0 * standard.cdf(z) - 1.0)
    closed += 2.0 * standard.pdf(z) * (df + z**2) / (df - 1.0)
    spread = beta(0.5, df - 0.5) / beta(0.5, 0.5 * df) ** 2
    closed -= 2.0 * np.sqrt(df) / (df - 1.0) * spread
    np.testing.assert_allclose(dist.crps(y[0]), scale * closed, rtol=1e-6)


def test_students_of_many_degrees_of_freedom_are_gaussians() -> None:
    mixture = gaussian()[[0, 0]]
    dist = StudentMixture([1.0], [[1e9], [1e9]], mixture.means[:, None], [[1.0], [1.0]])
    y = np.array([-0.4, 2.0])
    np.testing.assert_allclose(dist.crps(y), mixture.crps(y), rtol=1e-6)
    np.testing.assert_allclose(dist.quantile(0.2), mixture.quantile(0.2), rtol=1e-6)


def test_the_generic_score_is_the_closed_form_of_gaussian_mixtures() -> None:
    """`PredictiveDistribution.crps` knows only the distribution function."""
    dist = gaussian()
    for y in (dist.mean, dist.mean + 5.0, dist.quantile(0.01)):
        generic = PredictiveDistribution.crps(dist, y)
        np.testing.assert_allclose(generic, dist.crps(y), rtol=1e-7)
    many = dist[np.tile(np.arange(N), 300)]
    np.testing.assert_allclose(
        PredictiveDistribution.crps(many, many.mean), np.tile(dist.crps(dist.mean), 300), rtol=1e-7
    )
    assert PredictiveDistribution.crps(dist[:0], []).shape == (0,)


@each
def test_bad_arguments_are_refused(dist: PredictiveDistribution) -> None:
    if isinstance(dist, Own):
        return
    with pytest.raises(ValueError, match=r"last axis must have one entry for each of the 4 rows"):
        dist.cdf(np.zeros(3))
    with pytest.raises(ValueError, match=r"y has shape \(3,\), expected \(4,\)"):
        dist.crps(np.zeros(3))
    with pytest.raises(ValueError, match=r"q must lie in \[0, 1\]"):
        dist.quantile([0.5, 1.5])
    with pytest.raises(TypeError, match="q must be a number"):
        dist.quantile("half")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"coverage must lie in \[0, 1\]"):
        dist.interval(90)
    for n in (-1, 1.5, True):
        with pytest.raises(ValueError, match="n must be an integer >= 0"):
            dist.sample(n)  # type: ignore[arg-type]


def test_a_distribution_must_define_the_abstract_methods() -> None:
    class Half(PredictiveDistribution):
        def __len__(self) -> int:
            return 1

    with pytest.raises(TypeError, match="abstract"):
        Half()  # type: ignore[abstract]


@each
def test_every_metric_takes_every_distribution(dist: PredictiveDistribution) -> None:
    y = dist.sample(1, random_state=0)[0]
    assert metrics.nlpd(y, dist) == pytest.approx(-np.log(dist.pdf(y)).mean())
    assert metrics.crps(y, dist) == pytest.approx(dist.crps(y).mean())
    levels = [0.2, 0.5, 0.95]
    table = metrics.calibration_table(y, dist, levels=levels, quantiles="exact")
    expected = [metrics.interval_coverage(y, *dist.interval(level)) for level in levels]
    np.testing.assert_allclose(table.observed, expected)
    normal = metrics.calibration_table(y, dist, levels=levels)
    by_hand = metrics.calibration_table(y, (dist.mean, dist.std), levels=levels)
    np.testing.assert_allclose(normal.observed, by_hand.observed)


@each
def test_every_plot_of_numbers_takes_every_distribution(dist: PredictiveDistribution) -> None:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    from boscage.plots import plot_calibration

    y = dist.sample(1, random_state=1)[0]
    for quantiles in ("exact", "gaussian"):
        ax = plot_calibration(y, dist, quantiles=quantiles)  # type: ignore[arg-type]
        table = metrics.calibration_table(y, dist, quantiles=quantiles)  # type: ignore[arg-type]
        np.testing.assert_array_equal(ax.lines[1].get_ydata(), table.observed)
    plt.close("all")


@pytest.mark.parametrize("name", ["MondrianForestRegressor", "BayesianTreeRegressor"])
def test_moments_are_those_of_predict(name: str) -> None:
    model = {"MondrianForestRegressor": MondrianForestRegressor(3, random_state=0)}.get(
        name, BayesianTreeRegressor(random_state=0)
    )
    rows = X[:N] + 0.1 * (name == "MondrianForestRegressor")
    mean, std = model.fit(X, Y).predict(rows, return_std=True)
    np.testing.assert_allclose(DISTRIBUTIONS[name].mean, mean, rtol=1e-9)
    np.testing.assert_allclose(DISTRIBUTIONS[name].std, std, rtol=1e-9)


@pytest.mark.parametrize("posterior", ["exact", "joint"])
def test_moments_of_a_forest_are_those_of_its_mixture_where_rows_branch_off(posterior: str) -> None:
    """Where local factors differ much, and the joint posterior contracts the mixture in part."""
    rng = np.random.default_rng(1)
    rows = rng.uniform(size=(200, 2))
    target = np.sin(6.0 * rows[:, 0]) + (0.05 + 0.4 * rows[:, 1] ** 2) * rng.normal(size=200)
    model = MondrianForestRegressor(
        8, posterior=posterior, prior_scale=None, feature_weights=None, trend=None, random_state=1
    ).fit(rows, target)
    at = rng.uniform(-0.4, 1.4, size=(40, 2))
    mean, std = model.predict(at, return_std=True)
    dist = model.predict_dist(at)
    assert np.median(np.diff(dist.offsets)) > 3 * model.n_estimators
    np.testing.assert_allclose(dist.mean, mean, rtol=1e-10)
    np.testing.assert_allclose(dist.std, std, rtol=1e-10)


@each
def test_scores_of_values_that_are_not_finite_are_not_finite(dist: PredictiveDistribution) -> None:
    y = dist.sample(1, random_state=0)[0]
    expected = dist.crps(y)
    y[:3] = expected[:3] = np.nan, np.inf, -np.inf
    expected[2] = np.inf
    np.testing.assert_allclose(dist.crps(y), expected, rtol=1e-6)
    assert (dist.crps(np.full(len(dist), np.inf)) == np.inf).all()


@pytest.mark.parametrize(
    ("weights", "location", "scale"),
    [
        ([2.0, 3.0], 0.0, 1.0),
        ([1.5, -0.5], 0.0, 1.0),
        ([np.nan, 1.0], 0.0, 1.0),
        ([0.5, 0.5], np.nan, 1.0),
        ([0.5, 0.5], 0.0, np.inf),
    ],
)
def test_bad_parameters_of_student_mixtures_are_refused(
    weights: list[float], location: float, scale: float
) -> None:
    with pytest.raises(ValueError, match="must"):
        StudentMixture(weights, [[3.0, 3.0]], [[location, 0.0]], [[scale, 1.0]])


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"lifetime": 3.0},
        {"prior_scale": None, "hyperparameters": "ml"},
        {"trend": "linear"},
        {"posterior": "exact"},
        {"posterior": "exact", "prior_scale": 3.0},
    ],
)
def test_means_have_the_same_bits_with_and_without_deviations(settings: dict[str, Any]) -> None:
    rng = np.random.default_rng(0)
    x = rng.uniform(size=(200, 2))
    y = np.sin(6.0 * x[:60, 0]) + 0.2 * rng.normal(size=60)
    model = MondrianForestRegressor(
        8, joint_kernel="trees", feature_weights=None, random_state=1, **settings
    ).fit(x[:60], y)
    rows = np.vstack((x, x[:20] + 3.0, [[1e4, -1e6]]))
    np.testing.assert_array_equal(model.predict(rows), model.predict(rows, return_std=True)[0])
