"""Trees that are their own mirror image, in the race and after it."""

import warnings

import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete
from hypothesis import given
from hypothesis import strategies as st

import spaql
from candidates import candidate_action
from spaql.algorithms.mirrors.mirror import Mirror, mirror_from
from spaql.algorithms.treesearch.finish import _simpler
from spaql.algorithms.treesearch.racer import Racer
from spaql.algorithms.treesearch.symmetry import (
    basis_if_symmetric,
    mirror_from_data,
    mirror_of,
    symmetric_basis,
    usable_in_cuts,
)
from spaql.algorithms.treesearch.trees import CandidateTree, one_leaf, random_tree
from spaql.controllers.arrays import frame_of
from spaql.errors import ArchiveError

MIRRORS = {
    "CartPole-v1": "cart position,cart speed,pole angle,pole speed:push left=push right",
    "Pendulum-v1": "sin(angle),speed:torque",
    "MountainCar-v0": None,
}


def acted(tree: CandidateTree, state: np.ndarray) -> np.ndarray:
    """The action of a tree in the units of the search: a number, or numbers in [-1, 1]."""
    rows = tree.numbers.shape[1]
    space = Discrete(rows) if tree.listed else Box(-1.0, 1.0, (rows,))
    return candidate_action(tree.left, tree.allowed, tree.numbers, frame_of(len(state), space), state)


def mirrors(listed: bool) -> st.SearchStrategy[Mirror]:
    """Mirrors of four observations, of which two may be exchanged, and of four or two actions."""
    orders = st.sampled_from([(0, 1, 2, 3), (0, 1, 3, 2)])
    signs = st.sampled_from([(-1, 1), (1, -1), (-1, -1)])
    if listed:
        swaps = st.sampled_from([(0, 3, 2, 1), (1, 0, 2, 3), (3, 2, 1, 0), (1, 0, 3, 2), (0, 1, 2, 3)])
        actions = swaps.map(lambda order: (order, ()))
    else:
        pairs = st.tuples(st.sampled_from([1, -1]), st.sampled_from([1, -1]))
        actions = st.tuples(st.sampled_from([(0, 1), (1, 0)]), pairs).map(
            lambda one: (one[0], one[1] if one[0] == (0, 1) else (one[1][0],) * 2)
        )
    return st.builds(lambda o, s, a: Mirror(o, (*s, 1, 1), *a), orders, signs, actions)


@pytest.mark.parametrize("listed", [True, False], ids=["list", "numbers"])
@given(data=st.data(), seed=st.integers(0, 1000), leaves=st.integers(1, 4))
def test_a_tree_of_the_basis_is_its_own_mirror_image(
    listed: bool, data: st.DataObject, seed: int, leaves: int
) -> None:
    mirror = data.draw(mirrors(listed))
    rng = np.random.default_rng(seed)
    base = one_leaf(4 if listed else 2, 4, listed=listed)
    used = usable_in_cuts(mirror, -1)
    states = rng.normal(size=(20, 4))
    tree = random_tree(base, leaves if used.any() else 1, states, rng, used=used)
    racer = Racer.of(tree, basis=symmetric_basis(tree, mirror))
    assert racer.basis is not None
    found = racer.found
    for state, image in zip(states, mirror.states(states), strict=True):
        expected = mirror.actions(acted(found, state)[np.newaxis])[0]
        np.testing.assert_allclose(acted(found, image), expected, atol=1e-12)
    again = Racer.of(found, basis=racer.basis).found  # what is symmetric is found again
    np.testing.assert_allclose(again.numbers, found.numbers, atol=1e-12)
    assert basis_if_symmetric(found, mirror) is not None
    uneven = found.with_vector(found.vector + rng.normal(size=len(found.vector)))
    assert basis_if_symmetric(uneven, mirror) is None or racer.basis.shape[1] == len(found.vector)
    products = racer.basis.T @ racer.basis
    np.testing.assert_allclose(products, np.diag(products.diagonal()), atol=1e-12)
    if listed and mirror.action_order != (0, 1, 2, 3):  # fewer numbers, and no fewer than about half of them
        assert tree.free.sum() / 3 <= racer.basis.shape[1] < tree.free.sum()


@pytest.mark.parametrize("env", list(MIRRORS))
def test_random_actions_show_the_mirror(env: str) -> None:
    problem = spaql.make_problem(env)
    found, steps = mirror_of("auto", problem, 500_000, np.random.default_rng(1))
    assert 10_000 <= steps < 12_000
    assert found == (None if MIRRORS[env] is None else mirror_from(MIRRORS[env], problem))
    assert mirror_of("off", problem, 500_000, np.random.default_rng(1)) == (None, 0)
    assert mirror_of("auto", problem, 10_000, np.random.default_rng(1)) == (None, 0)  # too few to tell


def test_a_mirror_that_random_actions_hid_is_found_in_steps_of_laws(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spaql.algorithms.treesearch.start.mirror_of", lambda *given: (None, 0))
    agent = spaql.TreeSearch("CartPole-v1", seed=0).learn(50_000)
    assert agent._learner.search.mirror == mirror_from(MIRRORS["CartPole-v1"], agent.problem)


def test_a_mirror_without_names_is_written_and_read() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # SWIG's, on import
        pytest.importorskip("Box2D")
    problem = spaql.make_problem("LunarLander-v3")
    found, _ = mirror_of("auto", problem, 500_000, np.random.default_rng(1))
    assert found is not None
    assert found.text(problem) == "x0,x2,x4,x5,x6=x7:action 1=action 3"
    assert mirror_from(found.text(problem), problem) == found


def test_a_search_says_its_mirror_and_pays_for_it() -> None:
    agent = spaql.TreeSearch("Pendulum-v1", seed=0).learn(100_000, progress_bar=False)
    assert agent.mirror == MIRRORS["Pendulum-v1"]
    assert sum(agent._learner.counts.values()) == agent.training_steps
    without = spaql.TreeSearch("Pendulum-v1", seed=0, mirror="off").learn(30_000, progress_bar=False)
    assert without.mirror is None
    given = spaql.TreeSearch("Pendulum-v1", seed=0, mirror="speed").learn(5_000, progress_bar=False)
    assert given.mirror == "speed:torque"


def test_what_is_removed_of_a_symmetric_law_is_removed_with_its_image() -> None:
    mirror = Mirror((0, 1, 3, 2), (-1, 1, 1, 1), (0, 3, 2, 1))  # a lander with two contacts
    tree = one_leaf(4, 4, listed=True)
    basis = symmetric_basis(tree, mirror)
    found = tree.with_vector(basis @ np.random.default_rng(0).normal(size=basis.shape[1]))
    assert all(
        basis_if_symmetric(one, mirror) is not None for one, _ in _simpler(found, basis) if one.allowed.all()
    )
    assert any(basis_if_symmetric(one, mirror) is None for one, _ in _simpler(found, None))


def test_the_law_of_a_symmetric_plant_has_no_other_terms() -> None:
    agent = spaql.TreeSearch("CartPole-v1", seed=2).learn(100_000, progress_bar=False)
    assert agent.policy.laws.gain.any()
    assert basis_if_symmetric(agent._learner.search.incumbent, agent._learner.search.mirror) is not None


def test_a_mirror_in_a_file_is_checked() -> None:
    tree = one_leaf(3, 2, listed=True)
    data = {"order": [0, 1], "signs": [-1, -1], "action_order": [2, 1, 0], "action_signs": []}
    assert mirror_from_data(data, tree) == Mirror((0, 1), (-1, -1), (2, 1, 0))
    for name, value in (("order", [0, 0]), ("signs", [1]), ("signs", [0, 1]), ("action_signs", [1, 1, 1])):
        with pytest.raises(ArchiveError, match="mirror"):
            mirror_from_data(data | {name: value}, tree)
