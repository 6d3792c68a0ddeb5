"""The references compared with each other: sampled and extended trees, and their law."""

from __future__ import annotations

from collections.abc import Callable
from math import inf

import numpy as np
import pytest

from reference import checks, law
from reference.arrays import Array, Tree
from reference.mondrian_boxes import (
    NEVER,
    MondrianTree,
    Pausing,
    extend_mondrian_tree,
    sample_mondrian_tree,
    to_arrays,
)

POINTS = np.random.default_rng(7).uniform(size=(6, 2))
LABELS = np.array([0, 0, 1, 0, 1, 1])
RATES = np.array([1.0, 2.5])
N_TREES = 1500

RULES = {
    "never": (NEVER, inf),
    "labels": (Pausing(equal_labels=True), inf),
    "size": (Pausing(min_samples_split=4), inf),
    "both, lifetime": (Pausing(equal_labels=True, min_samples_split=3), 0.9),
}


def batch(rng: np.random.Generator, pausing: Pausing, lifetime: float) -> Tree:
    tree = sample_mondrian_tree(
        rng, POINTS, LABELS, rates=RATES, pausing=pausing, lifetime=lifetime
    )
    return to_arrays(tree)


def online(
    rng: np.random.Generator, pausing: Pausing, lifetime: float, *, as_printed: bool = False
) -> Tree:
    """Rows one at a time in a random order, then numbered as in POINTS again."""
    tree = MondrianTree(rates=RATES, pausing=pausing, lifetime=lifetime)
    for i in rng.permutation(len(POINTS)):
        extend_mondrian_tree(rng, tree, POINTS[i], LABELS[i], as_printed=as_printed)
    return to_arrays(tree)


MOSTLY_SLOW = [
    pytest.param(rule, marks=[pytest.mark.slow] * (rule != "both, lifetime")) for rule in RULES
]


@pytest.mark.parametrize("rule", MOSTLY_SLOW)
def test_sampled_trees_follow_the_law(rule: str) -> None:
    pausing, lifetime = RULES[rule]
    rng = np.random.default_rng(11)
    trees = [batch(rng, pausing, lifetime) for _ in range(N_TREES)]
    u = law.uniforms(rng, trees, POINTS, LABELS, rates=RATES, lifetime=lifetime, pausing=pausing)
    law.assert_all_above(law.law_p_values(u))


@pytest.mark.slow
@pytest.mark.parametrize("rule", MOSTLY_SLOW)
def test_extended_trees_have_the_law_of_sampled_ones(rule: str) -> None:
    """Algorithms 5.5, 5.6, 5.10 and the corrected 6.4 against 5.1, 5.2, 5.9 and 6.2."""
    pausing, lifetime = RULES[rule]
    rng = np.random.default_rng(12)
    ours = [online(rng, pausing, lifetime) for _ in range(N_TREES)]
    theirs = [batch(rng, pausing, lifetime) for _ in range(N_TREES)]
    p = law.compare(ours, theirs, POINTS)
    u = law.uniforms(rng, ours, POINTS, LABELS, rates=RATES, lifetime=lifetime, pausing=pausing)
    law.assert_all_above(p | law.law_p_values(u))


def test_algorithm_6_4_as_printed_breaks_the_law() -> None:
    """The printed algorithm splits above a leaf paused for its size; the tests must detect this."""
    pausing = Pausing(min_samples_split=4)
    rng = np.random.default_rng(13)
    ours = [online(rng, pausing, inf, as_printed=True) for _ in range(300)]
    theirs = [batch(rng, pausing, inf) for _ in range(300)]
    assert min(law.compare(ours, theirs, POINTS).values()) < 1e-12
    with pytest.raises(AssertionError, match="should be paused"):
        law.uniforms(rng, ours, POINTS, LABELS, rates=RATES, pausing=pausing)


@pytest.mark.slow
def test_the_checks_detect_a_wrong_rate() -> None:
    """The tests detect a rate that is wrong by a fifth in one dimension."""
    rng = np.random.default_rng(14)
    trees = [batch(rng, NEVER, inf) for _ in range(N_TREES)]
    wrong = RATES * [1.0, 1.2]
    p = law.law_p_values(law.uniforms(rng, trees, POINTS, LABELS, rates=wrong, pausing=NEVER))
    assert p["wait"] < 1e-3
    assert p["dimension"] < 1e-3


@pytest.mark.parametrize("rule", RULES)
def test_reference_trees_pass_the_checks(rule: str) -> None:
    pausing, lifetime = RULES[rule]
    rng = np.random.default_rng(15)
    for make in (batch, online):
        for _ in range(20):
            tree = make(rng, pausing, lifetime)
            # the online tree numbers rows otherwise, but a tree's boxes know no numbers
            checks.check(tree, POINTS, LABELS, rates=RATES, pausing=pausing, lifetime=lifetime)


CORRUPTIONS: dict[str, Callable[[Tree, int], None]] = {
    "time": lambda tree, j: tree["time"].__setitem__(j, tree["time"][tree["parent"][j]]),
    "lower": lambda tree, j: tree["lower"].__setitem__((j, 0), tree["lower"][j, 0] - 1e-9),
    "upper": lambda tree, j: tree["upper"].__setitem__((j, 1), tree["upper"][j, 1] + 1e-9),
    "n_rows": lambda tree, j: tree["n_rows"].__setitem__(j, tree["n_rows"][j] + 1),
    "parent": lambda tree, j: tree["parent"].__setitem__(j, j),
    "threshold": lambda tree, _: tree["threshold"].__setitem__(0, 9.0),
    "feature": lambda tree, _: tree["feature"].__setitem__(0, 2),
}


@pytest.mark.parametrize("what", CORRUPTIONS)
def test_the_checks_notice_a_corrupted_tree(what: str) -> None:
    tree = batch(np.random.default_rng(16), NEVER, inf)
    CORRUPTIONS[what](tree, len(tree["parent"]) - 1)
    with pytest.raises((AssertionError, IndexError)):
        checks.check(tree, POINTS, LABELS, rates=RATES, pausing=NEVER)


@pytest.mark.slow
def test_restriction_of_a_larger_tree_has_the_law_of_the_smaller() -> None:
    """Projectivity, section 5.3.1: root splits of five rows, from trees of six or of five."""
    rng = np.random.default_rng(17)
    fewer = POINTS[:5]

    def root_side(points: Array, keep: int) -> tuple[int, ...]:
        node = sample_mondrian_tree(rng, points, rates=RATES).root
        while True:  # cuts that do not separate the kept rows are not cuts of the smaller tree
            assert node is not None
            assert node.left is not None
            left = tuple(sorted(i for i in node.left.rows if i < keep))
            if len(left) == keep:
                node = node.left
            elif not left:
                node = node.right
            else:
                return left

    ours = [root_side(POINTS, 5) for _ in range(N_TREES)]
    theirs = [root_side(fewer, 5) for _ in range(N_TREES)]
    assert law.two_sample_p(ours, theirs) > 1e-3
