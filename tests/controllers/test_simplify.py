"""Smaller trees that say nearly the same."""

import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete
from hypothesis import given, settings

import spaql
from nightly import thorough
from oblique_trees import oblique_trees, points
from spaql.controllers import Controller, Laws, shrinking, simplified
from spaql.controllers import simplify as module
from spaql.controllers.rules import Nodes
from spaql.evaluation import size_curve
from spaql.problems import make_problem


@pytest.fixture(scope="module")
def agent() -> spaql.Agent:
    return spaql.SPAQLTS("cartpole200", scaling=20, rollouts=20, seed=1).learn(
        iterations=200, progress_bar=False
    )


@pytest.fixture(scope="module")
def seen() -> np.ndarray:
    return np.random.default_rng(0).normal(size=(3000, 4)) * [0.5, 2.0, 0.1, 1.0]


def test_at_no_price_all_observations_agree(agent: spaql.Agent, seen: np.ndarray) -> None:
    tree = spaql.controller_of(agent)
    small = simplified(tree, seen)
    assert 2 < small.n_leaves < tree.n_leaves
    assert np.array_equal(small.act(seen), tree.act(seen))
    assert not small.smallest


def test_ever_smaller_trees(agent: spaql.Agent, seen: np.ndarray) -> None:
    tree = spaql.controller_of(agent)
    trees = list(shrinking(tree, seen))
    leaves = [one.n_leaves for one in trees]
    errors = [(one.act(seen) != tree.act(seen)).sum() for one in trees]
    assert leaves == sorted(set(leaves), reverse=True)
    assert leaves[-1] >= 2
    assert errors == sorted(errors)
    assert errors[0] == 0


def test_grids_that_are_too_large_are_cut(
    agent: spaql.Agent, seen: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree = spaql.controller_of(agent)
    best = list(shrinking(tree, seen))
    monkeypatch.setattr(module, "_ROOM", 1000)
    trees = list(shrinking(tree, seen))
    assert np.array_equal(trees[0].act(seen), tree.act(seen))
    assert best[0].n_leaves <= trees[0].n_leaves < tree.n_leaves
    assert len(trees) > 2


def test_weights_say_what_matters() -> None:
    nodes = Nodes()
    root = nodes.rule(0, 0.0, nodes.leaf(0), nodes.rule(0, 1.0, nodes.leaf(1), nodes.leaf(0)))
    tree = Controller(**nodes.arrays(root), laws=[0, 1],
                    observation_space=Box(-2, 2, (1,)), action_space=Discrete(2))  # fmt: skip
    x = np.array([[-1.0], [0.5], [1.5]])
    assert simplified(tree, x).n_leaves == 3
    assert simplified(tree, x, price=0.6).n_leaves == 1
    assert simplified(tree, x, price=0.6, weights=[1, 2, 0.1]).n_leaves == 2
    assert simplified(tree, x[1:]).act(x).tolist() == [1, 1, 0]
    for bad in ([1, 2], [1, 0, 1]):
        with pytest.raises(spaql.SettingError, match="weight above 0"):
            simplified(tree, x, weights=bad)
    with pytest.raises(spaql.SettingError, match="one observation or more"):
        simplified(tree, x[:0])


def test_the_curve_from_small_to_exact(agent: spaql.Agent) -> None:
    curve = size_curve(agent, episodes=20, rounds=2, seed=4)
    leaves = [one.tree.n_leaves for one in curve]
    assert leaves == sorted(set(leaves))
    assert curve[-1].agreement == 1.0
    assert 0.5 < curve[0].agreement < 1.0
    fresh = spaql.evaluate(curve[0].tree, agent.problem, episodes=20, seed=4)
    assert np.array_equal(curve[0].evaluation.returns, fresh.returns)
    again = size_curve(curve[-1].tree, "cartpole200", episodes=20, rounds=2, seed=4)
    assert [str(one.tree) for one in again] == [str(one.tree) for one in curve]


def test_what_a_curve_needs(agent: spaql.Agent) -> None:
    with pytest.raises(spaql.SettingError, match="give env"):
        size_curve(spaql.controller_of(agent))
    with pytest.raises(spaql.SettingError, match="rounds is 0"):
        size_curve(agent, rounds=0)


@given(tree=oblique_trees())
@settings(max_examples=thorough(100))
def test_trees_with_sums_agree_on_the_observations(tree: Controller) -> None:
    batch = points(30)
    small = simplified(tree, batch)
    assert np.array_equal(small.act(batch), tree.act(batch))
    assert small.n_leaves <= tree.n_leaves
    assert not small.smallest
    for one in shrinking(tree, batch):
        assert one.n_leaves <= tree.n_leaves


def test_the_agreement_of_switching_laws_is_that_of_actions() -> None:
    """Scores multiplied by 2 or 4 are other laws with the same actions: smaller trees agree everywhere."""
    gain = np.array([[0.0] * 4, [0.1, 0.3, 3.0, 1.0]])
    factor = np.array([1.0, 2.0, 4.0])[:, None, None]
    nodes = Nodes()
    root = nodes.rule(4, 0.0, nodes.leaf(0), nodes.rule(1, 0.0, nodes.leaf(1), nodes.leaf(2)))
    space = make_problem("cartpole200").states.space
    tree = Controller(
        **nodes.arrays(root),
        laws=Laws(gain * factor, np.zeros((3, 2))),
        observation_space=space,
        action_space=Discrete(2),
        combinations=[[1, 0, -1, 0]],
    )
    curve = size_curve(tree, "cartpole200", episodes=5, rounds=1)
    assert [one.agreement for one in curve] == [1.0] * len(curve)
    assert curve[0].tree.n_leaves < curve[-1].tree.n_leaves == 3
