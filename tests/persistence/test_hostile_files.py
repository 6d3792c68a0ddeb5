"""Hostile model files: mutated and truncated bytes are refused, or load to a valid model.

There must be no crash (which would end the process), no unbounded allocation (a subprocess has a
limit on its memory), and no model that violates an invariant.
"""

from __future__ import annotations

import hashlib
import io
import os
import struct
import subprocess
import sys
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import boscage
from boscage import MondrianForestClassifier, MondrianForestRegressor, _core
from boscage.mondrian._missing import fill
from forests import rates_of, trees_of
from reference.arrays import Array
from reference.checks import check_boxes, check_links, check_times

D = 2
LARGE = [2**31, 2**32 - 1, 2**63, 2**64 - 1, 10**9]
CHECKSUM = 32


def rows(seed: int, n: int = 25) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    x = np.round(rng.uniform(size=(n, D)), 2)
    x[::9] *= 20.0
    return x, rng.normal(size=n)


def models() -> dict[str, Any]:
    x, y = rows(0)
    shared: dict[str, Any] = {"low": np.zeros(D), "high": np.ones(D)}
    found: dict[str, Any] = {}
    for predictive in ("averaged", "realised"):
        model = _core.MondrianClassifier(n_estimators=2, predictive=predictive, seed=1)
        codes = (y > 0).astype(np.uint32)
        model.fit(x, codes, ["no", "yes"], declared=["no", "yes", "perhaps"], **shared)
        found[f"classes, {predictive}"] = model
    thesis = _core.MondrianClassifier(n_estimators=2, calibration=None, seed=1)
    thesis.fit(x, codes, ["no", "yes"], **shared)
    found["classes, not calibrated"] = thesis
    for dtype in (np.float32, np.float64):
        model = _core.MondrianRegressor(
            n_estimators=2, min_samples_split=3, joint_kernel="trees", seed=1
        )
        model.fit(x.astype(dtype), y, weights=np.array([1.0, 0.5]), **shared)
        model.predict(x.astype(dtype))
        found[f"numbers, {np.dtype(dtype).name}"] = model
    by_trees: dict[str, Any] = {"n_estimators": 2, "joint_kernel": "trees", "seed": 1}
    mapped = _core.MondrianRegressor(min_samples_split=3, **by_trees)
    linear = (np.empty(0), np.empty(0))
    bent = (np.array([0.0, 0.3, 1.0]), np.array([0.0, 0.8, 1.0]))
    mapped.fit(x, y, maps=[bent, linear], **shared)
    found["numbers, mapped"] = mapped
    together = _core.MondrianRegressor(noise="local", noise_variance=0.1, **by_trees)
    together.fit(x, y, maps=[linear, bent], **shared)
    found["numbers, together"] = together
    line = _core.MondrianRegressor(trend="linear", trend_features=[0], **by_trees)
    line.fit(x, y, **shared)
    found["numbers, with a trend"] = line
    holes = x.copy()
    holes[::4, 1] = holes[1::4, 0] = np.nan
    substitutes: list[Any] = [(0.5, [(1, 0.2, 0.1)]), (0.3, [])]
    filled = _core.MondrianClassifier(n_estimators=2, seed=1)
    filled.fit(holes, codes, ["no", "yes"], substitutes=substitutes, **shared)
    found["classes, with missing values"] = filled
    named = _core.MondrianClassifier(n_estimators=2, seed=1)
    places = x.copy()
    places[:, 1] = np.arange(len(x)) % 3 * 0.5
    tables: Any = [(1, ["blue", "green", "red"], [0.0, 0.5, 1.0], 0.25)]
    named.fit(places, codes, ["no", "yes"], categories=tables, substitutes=substitutes, **shared)
    found["classes, with categories"] = named
    older = _core.MondrianClassifier(n_estimators=2, calibration="loo-power", trend=False, seed=1)
    older.fit(x, codes, ["no", "yes"], **shared)
    found["classes, calibrated by a power alone"] = older
    without = _core.MondrianClassifier(n_estimators=2, trend=False, seed=1)
    without.fit(x, codes, ["no", "yes"], **shared)
    found["classes, without a trend"] = without
    weights = np.resize([0.25, 1.0, 3.5, 1e-3], len(x))
    some = _core.MondrianClassifier(n_estimators=2, seed=1)
    some.fit(x, codes, ["no", "yes"], sample_weight=weights, **shared)
    found["classes, with weights of rows"] = some
    line = _core.MondrianRegressor(trend="linear", trend_features=[0], **by_trees)
    line.fit(x, y, sample_weight=weights, **shared)
    found["numbers, with weights of rows"] = line
    half = "mu gamma1 gamma2 noise_variance trend_variance joint_gamma1 joint_gamma2 joint_share"
    given = dict.fromkeys([*half.split(), "joint_noise_variance", "tree_spread"], 0.5)
    given |= {"tail_share": 0.5, "tail_offset": 0.0, "tail_variance": 1.5, "core_variance": 0.5}
    kept = _core.MondrianRegressor(trend="linear", given=given, **by_trees)
    kept.fit(x, y, **shared)
    found["numbers, with hyperparameters that were kept"] = kept
    limit = _core.MondrianRegressor(n_estimators=2, trend="linear", seed=1)
    # Few rows: some mutations ask for 65,000 trees, which are a valid model.
    limit.fit(x[:8], y[:8], **shared)
    found["numbers, by the limit of trees"] = limit
    return found


MODELS = [
    "classes, averaged",
    "classes, realised",
    "numbers, float32",
    "numbers, float64",
    "numbers, mapped",
    "numbers, together",
    "classes, not calibrated",
    "classes, calibrated by a power alone",
    "classes, without a trend",
    "numbers, with a trend",
    "classes, with missing values",
    "classes, with categories",
    "classes, with weights of rows",
    "numbers, with weights of rows",
    "numbers, by the limit of trees",
    "numbers, with hyperparameters that were kept",
]


def assert_refused_or_valid(kind: Any, blob: bytes) -> bool:
    """Whether the bytes were refused; if they were not, the model must be sound and must work."""
    try:
        model = kind.from_bytes(blob)
    except ValueError:
        return True
    at = np.random.default_rng(0).uniform(-1.0, 2.0, size=(5, model.n_features))
    if isinstance(model, _core.MondrianClassifier):
        proba = model.predict_proba(at)
        assert np.isfinite(proba).all()
        np.testing.assert_allclose(proba.sum(axis=1), 1.0, atol=1e-9)
    else:
        mean, variance = model.predict(at)
        assert np.isfinite(mean).all()
        assert (variance > 0.0).all()
        _, weights, means, variances = model.predict_dist(at)
        assert (weights > 0.0).all()
        assert np.isfinite(means).all()
        assert (variances > 0.0).all()
    for tree in trees_of(model):
        check_links(tree)
    model.to_bytes()
    model.digest()
    return False


def mutations(blob: bytes, seed: int, n: int) -> list[bytes]:
    """Flipped bits, changed bytes and words, runs cut out, doubled, zeroed or shuffled."""
    rng = np.random.default_rng(seed)
    special = [0, 1, 0x7F, 0x80, 0xFF]
    out = []
    for _ in range(n):
        b = bytearray(blob)
        for _ in range(int(rng.choice([1, 1, 1, 2, 5]))):
            if not b:
                break
            at = int(rng.integers(min(len(b), 200)) if rng.random() < 0.4 else rng.integers(len(b)))
            size = int(rng.choice([1, 2, 4, 8, 33]))
            how = int(rng.integers(7))
            if how == 0:
                b[at] ^= 1 << int(rng.integers(8))
            elif how == 1:
                b[at] = int(rng.choice(special))
            elif how == 2:  # a count that is much too large
                word = LARGE[int(rng.integers(len(LARGE)))]
                b[at : at + 8] = word.to_bytes(8, "little")
            elif how == 3:
                del b[at : at + size]
            elif how == 4:
                b[at:at] = b[at : at + size]
            elif how == 5:
                b[at : at + size] = bytes(len(b[at : at + size]))
            else:
                b[at : at + size] = rng.bytes(len(b[at : at + size]))
        out.append(bytes(b))
    return out


@pytest.mark.parametrize("name", MODELS)
def test_a_round_trip_is_exact(name: str) -> None:
    model = models()[name]
    blob = model.to_bytes()
    again = type(model).from_bytes(blob)
    assert again.digest() == model.digest()
    assert again.digest() == type(model).from_bytes(again.to_bytes()).digest()
    assert not assert_refused_or_valid(type(model), blob)
    x = again.rows()
    if again.substitutes is not None:
        x = fill(x, again.substitutes, again.low, again.high)
    for tree in trees_of(again):
        check_links(tree)
        check_times(tree, inf)
        check_boxes(tree, x)
    assert rates_of(0.0, 1.0, D).shape == (D,)


def test_the_version_is_the_oldest_that_can_hold_the_model() -> None:
    def version(model: Any) -> int:
        return int.from_bytes(model.to_bytes()[8:12], "little")

    found = {name: version(model) for name, model in models().items()}
    assert found["classes, averaged"] == found["classes, realised"] == 19
    assert found["classes, without a trend"] == 18
    assert found["classes, calibrated by a power alone"] == 4
    assert found["classes, not calibrated"] == 1
    numbers = [of for name, of in found.items() if name.startswith("numbers")]
    assert numbers == [20] * 6 + [22, 20]
    x, y = rows(0)
    linear, bent = (np.empty(0), np.empty(0)), (np.array([0.0, 1.0]), np.array([0.0, 1.0]))
    for kernel, maps, expected in (
        ("trees", None, 1),
        ("trees", [bent, linear], 2),
        ("limit", None, 13),
    ):
        thesis = _core.MondrianRegressor(
            n_estimators=2, prior_scale=None, joint_kernel=kernel, seed=1
        )
        thesis.fit(x, y, low=np.zeros(D), high=np.ones(D), maps=maps)
        assert version(thesis) == expected
    model = models()["numbers, mapped"]
    blob = model.to_bytes()
    x, _ = rows(0)
    again = _core.MondrianRegressor.from_bytes(blob)
    assert again.maps is not None
    np.testing.assert_array_equal(again.maps[0][1], [0.0, 0.8, 1.0])
    at = np.vstack([x, 3.0 * x - 1.0])
    np.testing.assert_array_equal(again.predict(at), model.predict(at))


@pytest.mark.parametrize("weight", [0.0, -1.0, 1e-13, 2e9, np.nan, np.inf])
def test_weights_of_rows_that_cannot_be_are_refused(weight: float) -> None:
    model = models()["classes, with weights of rows"]
    blob = model.to_bytes()
    assert int.from_bytes(blob[8:12], "little") == 19
    weights = model.sample_weight()
    at = blob.index(weights.astype("<f8").tobytes()) + 8 * 6
    forged = blob[:at] + np.array([weight], "<f8").tobytes() + blob[at + 8 : -CHECKSUM]
    forged += hashlib.sha256(forged).digest()
    message = rf"byte {at:,}, sample_weight\[6\]: expected from 1e-12 to 1e9, found"
    with pytest.raises(ValueError, match=message):
        type(model).from_bytes(forged)


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_truncated_files_are_refused(name: str) -> None:
    """Every length from zero to all but one byte, and files with additional bytes."""
    model = models()[name]
    blob = model.to_bytes()
    for length in range(len(blob)):
        with pytest.raises(ValueError, match=r".+"):
            type(model).from_bytes(blob[:length])
    for tail in (b"\0", b"more", blob):
        with pytest.raises(ValueError, match=r".+"):
            type(model).from_bytes(blob + tail)


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_mutated_files_are_refused_or_load_to_a_valid_model(name: str) -> None:
    model = models()[name]
    blob = model.to_bytes()
    changed = [b for b in mutations(blob, 1, 2000) if b != blob]
    refused = sum(assert_refused_or_valid(type(model), b) for b in changed)
    assert refused > 0.99 * len(changed), "the checksum should see nearly all"


def repaired(blob: bytes) -> bytes:
    """The bytes with a matching checksum, as a forger would make it."""
    content = blob[:-CHECKSUM]
    return content + hashlib.sha256(content).digest()


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_forged_files_are_refused_or_load_to_a_valid_model(name: str, tmp_path: Path) -> None:
    """The same mutations with the right checksum: now every field has to be checked itself.

    In a process that may not have more than 1 GiB of memory beyond what it starts with.
    """
    blob = models()[name].to_bytes()
    assert repaired(blob) == blob
    done = in_a_small_process("forge", name, tmp_path, blob)
    assert done.stdout.startswith("ok "), done.stderr[-2000:]
    refused, loaded = map(int, done.stdout.split()[1:])
    assert refused > 100
    assert loaded > 100, "else this test tests nothing"


@pytest.mark.parametrize(
    ("n_classes", "sparse"),
    [
        (0, False),
        *(
            pytest.param(*case, marks=pytest.mark.slow)
            for case in ((0, True), (2, False), (2, True), (3, False), (3, True))
        ),
    ],
)
def test_forged_chains_continue_or_are_refused(n_classes: int, sparse: bool) -> None:
    """No file of BART causes a crash, neither on loading nor when its chains are continued."""
    x, y = rows(0)
    sizes: dict[str, Any] = {"n_trees": 3, "n_chains": 2, "n_burn": 2, "seed": 1, "sparse": sparse}
    half, all_of_it = (_core.BartSettings(n_draws=n, **sizes) for n in (2, 3))
    if n_classes:
        kind: Any = _core.BartClassifier
        data: tuple[Any, ...] = (x, (np.arange(25) % n_classes).astype(np.uint32))
        data += (["a", "b", "c"][:n_classes],)
    else:
        kind, data = _core.BartRegressor, (x, y)
    blob = kind.fit(*data, half).to_bytes()
    once = kind.fit(*data, all_of_it).to_bytes()
    refused, gone_on = 0, 0
    for changed in mutations(blob, 1, 1500):
        try:
            model = kind.from_bytes(repaired(changed))
            assert model.predict_draws(x).shape[0] == model.n_draws
            model.cuts(), model.traces(), model.trees(0)
            assert kind.from_bytes(model.to_bytes()).to_bytes() == model.to_bytes()
            gone_on += kind.fit(*data, all_of_it, start=model).to_bytes() != once
        except ValueError:
            refused += 1
    assert refused > 300
    assert gone_on > 100, "else this test tests nothing"


def test_random_bytes_are_refused() -> None:
    rng = np.random.default_rng(2)
    blob = models()[MODELS[0]].to_bytes()
    for _ in range(500):
        noise = rng.bytes(int(rng.integers(400)))
        for kind in (_core.MondrianClassifier, _core.MondrianRegressor):
            for b in (noise, blob[:16] + noise):
                with pytest.raises(ValueError, match=r".+"):
                    kind.from_bytes(b)


def test_the_wrong_kind_of_model_is_refused_by_name(tmp_path: Path) -> None:
    found = models()
    with pytest.raises(ValueError, match=r"(?i)classif"):
        _core.MondrianRegressor.from_bytes(found[MODELS[0]].to_bytes())
    with pytest.raises(ValueError, match=r"(?i)regress"):
        _core.MondrianClassifier.from_bytes(found[MODELS[2]].to_bytes())
    x, y = rows(0)
    MondrianForestRegressor(2).fit(x, y).save(tmp_path / "model")
    with pytest.raises((ValueError, TypeError)):
        MondrianForestClassifier.load(tmp_path / "model")
    assert isinstance(boscage.load(tmp_path / "model"), MondrianForestRegressor)


def test_files_that_are_no_models(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        boscage.load(tmp_path / "nothing")
    for content in (b"", b"PK\x03\x04", b"a,b\n1,2\n", b"\x80\x04N."):
        (tmp_path / "other").write_bytes(content)
        with pytest.raises(ValueError, match=r".+"):
            boscage.load(tmp_path / "other")


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_mutated_files_load_in_bounded_memory(name: str, tmp_path: Path) -> None:
    """Mutated files, in a process that may not have more than 1 GiB beyond what it starts with."""
    done = in_a_small_process("mutate", name, tmp_path, models()[name].to_bytes())
    assert done.stdout.startswith("ok "), done.stderr[-2000:]


def in_a_small_process(
    what: str, name: str, folder: Path, blob: bytes
) -> subprocess.CompletedProcess[str]:
    """Load 1,000 changed files where an allocation without bound, or an endless loop, is fatal."""
    pytest.importorskip("resource")
    (folder / "blob").write_bytes(blob)
    return subprocess.run(
        [sys.executable, __file__, what, name, folder / "blob"],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )


def test_trees_that_have_no_room_are_refused_once_the_first_is_drawn(tmp_path: Path) -> None:
    """A short file that asks for 100,000 trees of 300 rows each: some 5 GiB."""
    x = np.random.default_rng(0).random((300, 2))
    model = _core.MondrianClassifier(n_estimators=2, seed=1)
    codes = np.arange(300, dtype=np.uint32) % 2
    model.fit(x, codes, ["no", "yes"], low=np.zeros(2), high=np.ones(2))
    blob = model.to_bytes()
    wanted = struct.pack("<Qd", 2, model.lifetime), struct.pack("<Qd", 100_000, model.lifetime)
    assert blob.count(wanted[0]) == 1
    done = in_a_small_process("predict", "classes", tmp_path, repaired(blob.replace(*wanted)))
    assert "MemoryError: not enough memory for all trees" in done.stderr, done.stderr[-2000:]


def without_many_trees(changed: list[bytes], model: Any) -> list[bytes]:
    """Those of a model's forged files that do not ask for more than 10,000 trees.

    So many may have no room in a small process, whether a file asks for them or a user.
    """
    place = struct.pack("<Qd", model.n_estimators, model.lifetime)
    at = model.to_bytes().index(place)

    def asks_for_many(b: bytes) -> bool:
        n_trees = int.from_bytes(b[at : at + 8], "little")
        return 10_000 < n_trees <= 100_000 and b[at + 8 : at + 16] == place[8:]

    return [b for b in changed if not asks_for_many(b)]


def _small_process(what: str, name: str, path: str) -> None:
    import resource

    blob = Path(path).read_bytes()
    kind = _core.MondrianClassifier if "classes" in name else _core.MondrianRegressor
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + 2**30
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    if what == "predict":
        kind.from_bytes(blob).predict_proba(np.zeros((1, 2)))
    if what == "forge":
        content = mutations(blob[:-CHECKSUM], 3, 1000)
        changed = [repaired(b + bytes(CHECKSUM)) for b in content]
        changed = without_many_trees(changed, kind.from_bytes(blob))
    else:
        changed = mutations(blob, 5, 1000)
    refused = 0
    for i, b in enumerate(changed):
        try:
            refused += assert_refused_or_valid(kind, b)
        except AssertionError as error:
            raise AssertionError(f"mutation {i} of seed {3 if what == 'forge' else 5}") from error
    print("ok", refused, len(changed) - refused)


if __name__ == "__main__":
    _small_process(*sys.argv[1:])


@pytest.mark.parametrize("kind", ["bayesian-regressor-smc", "bart-regressor", "bart-probit"])
def test_splits_of_categories_are_rules(kind: str) -> None:
    """Numbers of categories that no feature can have, and splits that are no rule of theirs."""
    blob = (Path(__file__).parent / "files" / f"{kind}-categories-v10.boscage").read_bytes()
    n = len(next(names for names in boscage.load(io.BytesIO(blob)).categories_ if names))
    numbers = np.array([0, n, 0], dtype="<u4").tobytes()
    at = blob.index((3).to_bytes(8, "little") + numbers)
    for wrong, message in (
        ([0, 0, 0], r"n_categories: expected 3 numbers, one for each feature, not all 0"),
        (
            [0, 5000, 0],
            r"n_categories: .* must be at most 1024 \(group rare categories\), found 5000",
        ),
        (
            [1, n, 0],
            "right_categories: expected a rule that parts 1 categories|names of categories",
        ),
        ([0, n + 1, 0], "right_categories: expected a rule that parts|names of categories"),
    ):
        changed = np.array(wrong, dtype="<u4").tobytes()
        forged = repaired(blob[: at + 8] + changed + blob[at + 20 :])
        with pytest.raises(ValueError, match=message):
            boscage.load(io.BytesIO(forged))
    split = (1).to_bytes(4, "little")
    found = 0
    for place in range(at + 20, len(blob) - CHECKSUM - 12):
        if blob[place : place + 4] == split and -40.0 <= rule_at(blob, place + 4) <= 40.0:
            forged = repaired(blob[: place + 4] + np.float64(0.5).tobytes() + blob[place + 12 :])
            try:
                boscage.load(io.BytesIO(forged))
            except ValueError as error:
                found += "right_categories: expected a rule that parts" in str(error)
    assert found


def rule_at(blob: bytes, place: int) -> float:
    number = float(np.frombuffer(blob[place : place + 8], "<f8")[0])
    return number if number and number == round(number) else np.inf


@pytest.mark.parametrize("kind", ["bayesian-regressor-smc", "bart-regressor", "bart-probit"])
def test_missing_values_lie_beyond_infinite_thresholds(kind: str) -> None:
    """A split between missing and present values whose side is the wrong one would be no split."""
    blob = (Path(__file__).parent / "files" / f"{kind}-missing-v9.boscage").read_bytes()
    minus_infinity, left = np.float64(-np.inf).tobytes(), b"\x00"
    places = [at for at in range(len(blob) - 9) if blob[at : at + 9] == minus_infinity + left]
    assert places
    for at in places:
        forged = repaired(blob[: at + 8] + b"\x01" + blob[at + 9 :])
        with pytest.raises(ValueError, match="expected 0 with the threshold -inf, found 1"):
            boscage.load(io.BytesIO(forged))
