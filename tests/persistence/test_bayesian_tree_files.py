"""Files of Bayesian trees: whole trees or a refusal, whatever bytes are wrong."""

from __future__ import annotations

import hashlib
import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import boscage
from boscage import MCMC, SMC, BayesianTreeClassifier, BayesianTreeRegressor, _core
from signals import N, X, Y

KINDS = [(BayesianTreeClassifier, Y), (BayesianTreeRegressor, N)]


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


@pytest.mark.slow
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
