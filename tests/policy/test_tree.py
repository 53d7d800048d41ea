"""Trees made by hand: laws, shared parts, text, and what is refused."""

import dataclasses

import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete

from spaql import RuleTree, SettingError
from spaql.interpret import minimised
from spaql.policy import Choices, Constants, Laws, text
from spaql.policy.nodes import Nodes

SEEN = Box(-np.inf, np.inf, (2,), np.float64)
LAWS = Laws(
    gain=np.array([[[-2.5, 0.1]], [[0.0, 1e-3]], [[0.0, 0.0]]]),
    offset=np.array([[0.3], [-0.99999], [0.25]]),
    low=np.array([-1.0]),
    high=np.array([2.0]),
)


def tree_of(nodes: Nodes, root: int, leaves, actions) -> RuleTree:
    return RuleTree(**nodes.arrays(root), leaves=leaves, observation_space=SEEN, action_space=actions)


@pytest.fixture
def laws() -> RuleTree:
    nodes = Nodes()
    lower = nodes.rule(1, -0.25, nodes.leaf(0), nodes.leaf(1))
    root = nodes.rule(0, 0.1, lower, nodes.leaf(2))
    return tree_of(nodes, root, LAWS, Box(-1.0, 2.0, (1,), np.float64))


def by_plain_floats(tree: RuleTree, x: float, y: float) -> float:
    """The law in its fixed order, as other languages would write it."""
    law = (0 if y < -0.25 else 1) if x < 0.1 else 2
    u = float(tree.leaves.offset[law, 0])
    for gain, s in zip(tree.leaves.gain[law, 0].tolist(), (x, y), strict=True):
        if gain != 0.0:
            u = u + gain * s
    return -1.0 if u < -1.0 else 2.0 if u > 2.0 else u


def test_laws_are_plain_floats_to_the_last_bit(laws: RuleTree) -> None:
    points = np.random.default_rng(0).normal(size=(5000, 2)) * 0.8
    points[:3] = [[0.1, np.inf], [0.1, -np.inf], [np.nextafter(0.1, 0), -0.25]]
    given = laws.act(points)
    assert given.shape == (5000, 1)
    assert given[:, 0].tolist() == [by_plain_floats(laws, *point) for point in points.tolist()]
    assert len(np.unique(given)) > 1000
    assert {-1.0, 2.0, 0.25} < set(given.ravel())


def test_infinities_that_cancel_in_a_law_give_the_action_nearest_to_0(laws: RuleTree) -> None:
    far = np.array([[-np.inf, -np.inf], [-np.inf, np.inf], [-1e308, -1e308], [np.inf, np.inf]])
    assert laws.act(far).tolist() == [[0.0], [2.0], [2.0], [0.25]]
    positive = dataclasses.replace(laws, action_space=Box(0.5, 2.0, (1,), np.float64))
    assert positive.predict(far[0])[0].tolist() == [0.5]


def test_laws_are_cast_to_the_action_space(laws: RuleTree) -> None:
    single = dataclasses.replace(laws, action_space=Box(-1.0, 2.0, (1,), np.float32))
    points = np.random.default_rng(0).normal(size=(100, 2))
    assert np.array_equal(single.act(points), laws.act(points).astype(np.float32))


def test_laws_are_minimised_as_wholes(laws: RuleTree) -> None:
    nodes = Nodes()
    leaf = [nodes.leaf(i) for i in range(2)]
    # Law 0 below 0.5 in x, whatever y is, written in too many words.
    lower = nodes.rule(0, 0.5, leaf[0], leaf[1])
    root = nodes.rule(1, 0.0, lower, nodes.rule(0, 0.2, leaf[0], lower))
    wordy = tree_of(nodes, root, LAWS, laws.action_space)
    small = minimised(wordy)
    assert (wordy.n_leaves, small.n_leaves) == (5, 2)
    assert small.smallest
    points = np.random.default_rng(0).normal(size=(500, 2))
    assert np.array_equal(small.act(points), wordy.act(points))


def test_equal_parts_are_kept_once() -> None:
    nodes = Nodes()
    part = nodes.rule(1, 0.0, nodes.leaf(0), nodes.leaf(1))
    assert part == nodes.rule(1, 0.0, nodes.leaf(0), nodes.leaf(1))
    assert nodes.rule(0, 3.0, part, part) == part
    root = nodes.rule(0, -1.0, part, nodes.rule(0, 1.0, nodes.leaf(0), part))
    tree = tree_of(nodes, root, Choices(np.array([0, 1])), Discrete(2))
    assert (tree.n_leaves, tree.n_nodes, tree.depth) == (5, 5, 3)
    assert str(tree).count("x1 < 0.0") == 2
    assert tree.act(np.array([[-2.0, 1.0], [0.0, 1.0], [2.0, 1.0], [2.0, -1.0]])).tolist() == [1, 0, 1, 0]


def test_what_cannot_be_reached_is_left_out() -> None:
    nodes = Nodes()
    never = nodes.rule(0, 2.0, nodes.leaf(1), nodes.leaf(0))
    root = nodes.rule(0, 1.0, never, nodes.leaf(2))
    tree = tree_of(nodes, root, Choices(np.array([0, 1, 2])), Discrete(3))
    assert (tree.n_leaves, minimised(tree).n_leaves) == (3, 2)
    assert minimised(tree, within=Box(-1.0, 0.5, (2,))).n_leaves == 1
    assert minimised(tree, within=Box(-1.0, 1.0, (2,))).n_leaves == 2


def test_text_of_a_small_tree(laws: RuleTree) -> None:
    named = dataclasses.replace(laws, observations=("angle [rad]", "speed"), actions=("torque [Nm]",))
    assert str(named) == (
        "if angle [rad] < 0.1:\n"
        "    if speed < -0.25:\n"
        "        torque [Nm] = clip(0.3 - 2.5 * angle [rad] + 0.1 * speed, -1.0, 2.0)\n"
        "    else:\n"
        "        torque [Nm] = clip(-0.99999 + 0.001 * speed, -1.0, 2.0)\n"
        "else:\n"
        "    torque [Nm] = clip(0.25, -1.0, 2.0)"
    )
    assert repr(named) == "RuleTree(3 leaves, depth 2)"


def test_text_of_choices_and_constants() -> None:
    nodes = Nodes()
    inner = nodes.rule(1, -5e-324, nodes.leaf(1), nodes.leaf(0))
    root = nodes.rule(0, 0.1 + 0.2, nodes.leaf(0), inner)
    choices = tree_of(nodes, root, Choices(np.array([7, 8])), Discrete(2, start=7))
    lines = ["if x0 < 0.30000000000000004:", "    action 7", "elif x1 < 0.0:", "    action 8", "else:"]
    assert str(choices).splitlines() == [*lines, "    action 7"]
    constants = Constants(np.array([[1 / 3, 2.0], [0.0, -1.0]]))
    pair = tree_of(nodes, root, constants, Box(-2.0, 2.0, (2,)))
    assert text(pair, digits=2).splitlines()[:2] == ["if x0 < 0.3:", "    u0 = 0.33, u1 = 2"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"left": [0, 2, -1, -1, -1]}, "come after"),
        ({"right": [9, 2, -1, -1, -1]}, "come after"),
        ({"feature": [2, 1, -1, -1, -1]}, "observations 0 to 1"),
        ({"threshold": [np.nan, 0, 0, 0, 0]}, "threshold"),
        ({"leaf": [-1, -1, 0, 1, 3]}, "row in the table"),
        ({"leaf": [-1]}, "row for each node"),
        ({"observations": ("a",)}, "2 numbers in an observation"),
        ({"leaves": Choices(np.array([0, 1, 1]))}, "for a list"),
        ({"leaves": Constants(np.zeros((3, 2)))}, "rows of 1 finite numbers"),
        ({"leaves": dataclasses.replace(LAWS, low=np.zeros(2))}, "bounds on either side"),
        ({"action_space": Discrete(2)}, "no laws"),
        ({"action_space": Discrete(2), "leaves": Choices(np.array([0, 2, 1]))}, "from 0 to 1"),
    ],
)
def test_what_is_no_tree_is_refused(laws: RuleTree, change: dict, message: str) -> None:
    assert laws.n_nodes == 5
    with pytest.raises(SettingError, match=message):
        dataclasses.replace(laws, **{"actions": (), **change})


def test_arrays_cannot_be_written_to(laws: RuleTree) -> None:
    with pytest.raises(ValueError, match="read-only"):
        laws.threshold[0] = 1.0


def test_a_batch_of_one_observation_with_rows_is_a_batch() -> None:
    """Of the shape (1, 2), a batch of one flattened observation looks like a single one."""
    tree = RuleTree(
        [0, -1, -1], [0.5, 0, 0], [1, -1, -1], [2, -1, -1], [-1, 0, 1],
        Choices(np.array([0, 1])), Box(-1.0, 1.0, (1, 2)), Discrete(2),
    )  # fmt: skip
    actions = tree.act(np.ones((1, 1, 2)), np.zeros(1, np.int64), None)
    assert actions.tolist() == [1]
