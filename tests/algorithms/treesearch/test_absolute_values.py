"""Mirrored trees whose cuts use the absolute value of an observation, and their controllers."""

from dataclasses import replace

import numpy as np
import pytest
from gymnasium.spaces import Box
from hypothesis import given
from hypothesis import strategies as st

import spaql
from candidates import candidate_action
from spaql.algorithms.mirrors.mirror import Mirror
from spaql.algorithms.treesearch.racers import changed_neighbour, neighbour
from spaql.algorithms.treesearch.rule_trees import idle_controller, in_other_units, to_rules
from spaql.algorithms.treesearch.search import begins_anew
from spaql.algorithms.treesearch.symmetry import basis_if_symmetric, nearest_in, symmetric_basis, symmetrised
from spaql.algorithms.treesearch.trees import CandidateTree, find_leaf, one_leaf, random_tree
from spaql.controllers.arrays import frame_of
from spaql.controllers.mirrored import folded, leaves_to_read
from spaql.errors import ArchiveError
from spaql.kernels.treesearch.candidates import Units
from spaql.simulate import EpisodeRunner

MIRROR = Mirror((0, 1, 2), (1, -1, -1), (0,), (-1,))
"""Of a pendulum: its cosine stays, its sine, its speed and the torque change their sign."""
UNITS = Units(np.array([0.2, 0.0, 0.0]), np.array([0.7, 0.6, 3.0]), np.zeros(1), np.full(1, 2.0))
FRAME = frame_of(3, Box(-2.0, 2.0, (1,)))
PROBLEM = spaql.make_problem("Pendulum-v1")


def random_mirrored(seed: int, leaves: int) -> CandidateTree:
    """A random tree that is its own mirror image, with cuts by the absolute speed."""
    rng = np.random.default_rng(seed)
    base = replace(one_leaf(1, 3, listed=False), side=2)
    tree = random_tree(base, leaves, rng.normal(size=(20, 3)), rng, used=np.array([True, False, True]))
    return tree.with_vector(nearest_in(symmetric_basis(tree, MIRROR), tree.vector))


def acted(tree: CandidateTree, observation: np.ndarray) -> float:
    """The action of a tree, by its definition, one number at a time."""
    numbers = tree.raw(UNITS, 6)[0]
    node = 0
    while tree.left[node] >= 0:
        seen = [abs(x) if j == tree.side else x for j, x in enumerate(observation)]
        below = sum(w * x for w, x in zip(numbers[node, 0, 1:], seen, strict=True)) < numbers[node, 0, 0]
        node = tree.left[node] + (0 if below else 1)
    law = numbers[node, 0]
    return float(np.clip(law[0] + sum(w * x for w, x in zip(law[1:], observation, strict=True)), -2.0, 2.0))


@given(seed=st.integers(0, 10_000), leaves=st.integers(1, 5))
def test_a_tree_without_absolute_values_acts_the_same(seed: int, leaves: int) -> None:
    tree = random_mirrored(seed, leaves)
    rng = np.random.default_rng(~seed & 0xFFFFFF)
    left, allowed, numbers = tree.unfolded(tree.raw(UNITS, 6))
    assert (left < 0).sum() == (2 * leaves if leaves > 1 else 1)
    for observation in rng.normal(size=(50, 3)) * UNITS.scale + UNITS.centre:
        raw = candidate_action(left, allowed, numbers[0], FRAME, observation)
        assert raw[0] == pytest.approx(acted(tree, observation), abs=1e-12)
        mirrored = observation * np.array(MIRROR.signs)
        raw = candidate_action(left, allowed, numbers[0], FRAME, mirrored)
        assert raw[0] == pytest.approx(-acted(tree, observation), abs=1e-12)


@given(seed=st.integers(0, 10_000), leaves=st.integers(2, 5))
def test_its_rule_tree_is_read_as_one_half(seed: int, leaves: int) -> None:
    tree = random_mirrored(seed, leaves)
    rng = np.random.default_rng(~seed & 0xFFFFFF)
    rules = to_rules(tree, UNITS, idle_controller(PROBLEM), 6)
    fold = folded(rules)
    assert fold is not None
    assert fold.side == 2
    assert leaves_to_read(rules) == leaves
    assert str(rules).startswith("mirror so that speed [rad/s] >= 0")
    for observation in rng.normal(size=(20, 3)) * UNITS.scale + UNITS.centre:
        action = rules.act(observation[np.newaxis].astype(np.float32), np.zeros(1, np.int64), None)
        expected = acted(tree, observation.astype(np.float32).astype(np.float64))
        assert float(action[0, 0]) == pytest.approx(expected, abs=1e-5)
    again = fold.unfolded(fold.half)
    assert again is not None
    assert str(again) == str(rules)


def test_a_cut_by_the_absolute_value_alone_is_a_plain_rule_on_both_sides() -> None:
    tree = random_mirrored(0, 2)
    numbers = tree.numbers.copy()
    numbers[0, 0] = [0.5, 0.0, 0.0, 1.0]
    rules = to_rules(replace(tree, numbers=numbers), UNITS, idle_controller(PROBLEM), 6)
    assert not len(rules.combinations)
    assert "if speed [rad/s] < 1.5:" in str(rules)
    assert folded(rules) is not None


@given(seed=st.integers(0, 10_000), leaves=st.integers(1, 6))
def test_neighbours_of_a_mirrored_tree_are_mirrored(seed: int, leaves: int) -> None:
    tree = random_mirrored(seed, leaves)
    rng = np.random.default_rng(~seed & 0xFFFFFF)
    for make in (neighbour, changed_neighbour):
        found = make(tree, rng.normal(size=(20, 3)), 6, rng, MIRROR)
        assert found.n_leaves <= 6
        assert basis_if_symmetric(found, MIRROR) is not None


@given(seed=st.integers(0, 10_000), leaves=st.integers(1, 5))
def test_a_tree_is_made_symmetric_only_as_far_as_it_is_not(seed: int, leaves: int) -> None:
    rng = np.random.default_rng(seed)
    tree = random_tree(one_leaf(1, 3, listed=False), leaves, rng.normal(size=(20, 3)), rng)
    image = symmetrised(tree, MIRROR)
    assert image is not None
    assert basis_if_symmetric(image, MIRROR) is not None
    again = symmetrised(image, MIRROR)
    assert again is not None
    np.testing.assert_allclose(again.numbers, image.numbers, rtol=1e-9, atol=1e-12)


def test_a_tree_whose_cut_has_no_weight_that_a_mirror_keeps_is_not_made_symmetric() -> None:
    tree = random_mirrored(0, 2)
    numbers = tree.numbers.copy()
    numbers[0, 0] = [0.5, 0.0, 1.0, 0.0]
    assert symmetrised(replace(tree, numbers=numbers), MIRROR) is None


def test_a_changed_neighbour_differs() -> None:
    tree = random_mirrored(1, 3)
    rng = np.random.default_rng(0)
    states = rng.normal(size=(50, 3))
    changed = [changed_neighbour(tree, states, 6, rng, MIRROR) for _ in range(100)]
    assert {one.n_leaves for one in changed} == {3, 4}
    same = [one for one in changed if all(acted(one, x) == acted(tree, x) for x in states)]
    assert len(same) < 30


@given(seed=st.integers(0, 10_000), leaves=st.integers(1, 5))
def test_a_tree_in_other_units_acts_the_same(seed: int, leaves: int) -> None:
    tree = random_mirrored(seed, leaves)
    rng = np.random.default_rng(~seed & 0xFFFFFF)
    other = UNITS._replace(centre=np.array([-1.0, 0.0, 0.0]), scale=10.0 ** rng.uniform(-2, 2, 3))
    found = in_other_units(tree, UNITS, other)
    before, after = (one.raw(units) for one, units in ((tree, UNITS), (found, other)))
    np.testing.assert_allclose(after, before, rtol=1e-9, atol=1e-9)
    assert found.n_leaves == tree.n_leaves
    assert found.side == tree.side
    x = rng.normal(size=3)
    leaf = find_leaf(found, (x * UNITS.scale + UNITS.centre - other.centre) / other.scale)
    assert leaf == find_leaf(tree, x)


def test_files_with_a_side_that_there_is_not_are_refused() -> None:
    tree = random_mirrored(0, 2)
    arrays = tree.arrays()
    assert CandidateTree.from_arrays(arrays, tree).side == 2
    for side in (np.array([3]), np.array([-2]), np.array([0, 1])):
        with pytest.raises(ArchiveError, match=r"The tree in the file|side of the wrong shape"):
            CandidateTree.from_arrays(arrays | {"side": side}, tree)


def test_a_search_with_wrong_scales_begins_anew() -> None:
    agent = spaql.TreeSearch("CartPole-v1", seed=0, mirror="off").learn(20_000, progress_bar=False)
    search = agent._learner.search
    evaluator = search.evaluator
    rng = np.random.default_rng(0)
    evaluator.runner = EpisodeRunner(agent.problem, 1)
    right = evaluator.units
    wrong = right._replace(scale=right.scale * np.array([1.0, 1.0, 8.0, 1.0]))
    search.incumbent = in_other_units(search.incumbent, right, wrong)
    search.racers = [search.racer_at(search.incumbent)]
    evaluator.units = wrong
    search.restarts = 0
    assert begins_anew(search, rng)
    assert search.stage == "measure"
    assert search.restarts == 1
    assert evaluator.units.scale[2] < wrong.scale[2] / 2
    search.racers = [search.racer_at(search.incumbent)]
    assert not begins_anew(search, rng)
