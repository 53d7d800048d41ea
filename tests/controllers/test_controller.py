"""Controllers made by hand: laws, shared parts, text, files, and what is refused."""

import dataclasses
import re

import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete
from hypothesis import given, settings

from nightly import thorough
from oblique_trees import oblique_trees, points
from spaql import Controller, SettingError
from spaql.controllers import Laws, minimised, text
from spaql.controllers.file import controller_from, controller_to
from spaql.controllers.rules import Lock, Nodes
from spaql.errors import ArchiveError

SEEN = Box(-np.inf, np.inf, (2,), np.float64)
LAWS = Laws(
    gain=[[[-2.5, 0.1]], [[0.0, 1e-3]], [[0.0, 0.0]]],
    offset=[[0.3], [-0.99999], [0.25]],
)


def tree_of(nodes: Nodes, root: int, laws, actions, **more) -> Controller:
    return Controller(**nodes.arrays(root), laws=laws, observation_space=SEEN, action_space=actions, **more)


@pytest.fixture
def laws() -> Controller:
    nodes = Nodes()
    lower = nodes.rule(1, -0.25, nodes.leaf(0), nodes.leaf(1))
    root = nodes.rule(0, 0.1, lower, nodes.leaf(2))
    return tree_of(nodes, root, LAWS, Box(-1.0, 2.0, (1,), np.float64))


def by_plain_floats(tree: Controller, x: float, y: float) -> float:
    """The law in its fixed order, as other languages would write it."""
    law = (0 if y < -0.25 else 1) if x < 0.1 else 2
    u = float(tree.laws.offset[law, 0])
    for gain, s in zip(tree.laws.gain[law, 0].tolist(), (x, y), strict=True):
        if gain != 0.0:
            u = u + gain * s
    return -1.0 if u < -1.0 else 2.0 if u > 2.0 else u


def test_laws_are_plain_floats_to_the_last_bit(laws: Controller) -> None:
    points = np.random.default_rng(0).normal(size=(5000, 2)) * 0.8
    points[:3] = [[0.1, np.inf], [0.1, -np.inf], [np.nextafter(0.1, 0), -0.25]]
    given = laws.act(points)
    assert given.shape == (5000, 1)
    assert given[:, 0].tolist() == [by_plain_floats(laws, *point) for point in points.tolist()]
    assert len(np.unique(given)) > 1000
    assert {-1.0, 2.0, 0.25} < set(given.ravel())


def test_infinities_that_cancel_in_a_law_give_the_action_nearest_to_0(laws: Controller) -> None:
    far = np.array([[-np.inf, -np.inf], [-np.inf, np.inf], [-1e308, -1e308], [np.inf, np.inf]])
    assert laws.act(far).tolist() == [[0.0], [2.0], [2.0], [0.25]]
    positive = dataclasses.replace(laws, action_space=Box(0.5, 2.0, (1,), np.float64), start=())
    assert positive.predict(far[0])[0].tolist() == [0.5]


def test_laws_are_cast_to_the_action_space(laws: Controller) -> None:
    single = dataclasses.replace(laws, action_space=Box(-1.0, 2.0, (1,), np.float32))
    points = np.random.default_rng(0).normal(size=(100, 2))
    assert np.array_equal(single.act(points), laws.act(points).astype(np.float32))


def test_laws_are_minimised_as_wholes(laws: Controller) -> None:
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
    tree = tree_of(nodes, root, [0, 1], Discrete(2))
    assert (tree.n_leaves, tree.n_nodes, tree.depth) == (5, 5, 3)
    assert str(tree).count("x1 < 0.0") == 2
    assert tree.act(np.array([[-2.0, 1.0], [0.0, 1.0], [2.0, 1.0], [2.0, -1.0]])).tolist() == [1, 0, 1, 0]


def test_what_cannot_be_reached_is_left_out() -> None:
    nodes = Nodes()
    never = nodes.rule(0, 2.0, nodes.leaf(1), nodes.leaf(0))
    root = nodes.rule(0, 1.0, never, nodes.leaf(2))
    tree = tree_of(nodes, root, [0, 1, 2], Discrete(3))
    assert (tree.n_leaves, minimised(tree).n_leaves) == (3, 2)
    assert minimised(tree, within=Box(-1.0, 0.5, (2,))).n_leaves == 1
    assert minimised(tree, within=Box(-1.0, 1.0, (2,))).n_leaves == 2


def test_wider_bounds_do_not_replace_those_of_a_tree() -> None:
    nodes = Nodes()
    tree = tree_of(nodes, nodes.rule(0, 1.0, nodes.leaf(0), nodes.leaf(1)), [0, 1], Discrete(2))
    narrow = Box(-1.0, 0.5, (2,))
    small = minimised(tree, within=narrow)
    for other in (Box(-4.0, 4.0, (2,)), None):
        assert minimised(small, within=other).within == narrow
    low, high = np.array([-2.0, -2.0]), np.array([0.25, 4.0])
    both = minimised(small, within=Box(low, high, dtype=np.float64)).within
    assert both is not None
    assert (both.low.tolist(), both.high.tolist()) == ([-1.0, -1.0], [0.25, 0.5])
    with pytest.raises(SettingError, match="do not meet"):
        minimised(small, within=Box(2.0, 3.0, (2,)))


def test_a_node_that_nothing_reaches_is_refused() -> None:
    nodes = {"feature": [0, -1, -1, -1], "threshold": [0.0] * 4, "leaf": [-1, 0, 1, 1]}
    spaces = {"observation_space": Box(-1.0, 1.0, (1,)), "action_space": Discrete(2)}
    with pytest.raises(SettingError, match="Every node but the root is the child of another"):
        Controller(**nodes, left=[1, -1, -1, -1], right=[2, -1, -1, -1], laws=[0, 1], **spaces)


def test_text_of_a_small_tree(laws: Controller) -> None:
    named = dataclasses.replace(laws, observations=("angle [rad]", "speed"), actions=("torque [Nm]",))
    assert str(named) == (
        "if angle [rad] < 0.1:\n"
        "    if speed < -0.25:\n"
        "        torque [Nm] = clip(0.3 - 2.5 * angle [rad] + 0.1 * speed, -1.0, 2.0)\n"
        "    else:\n"
        "        torque [Nm] = clip(-0.99999 + 0.001 * speed, -1.0, 2.0)\n"
        "else:\n"
        "    torque [Nm] = 0.25"
    )
    assert repr(named) == "Controller(3 leaves, depth 2)"


def test_text_of_choices_and_constants() -> None:
    nodes = Nodes()
    inner = nodes.rule(1, -5e-324, nodes.leaf(1), nodes.leaf(0))
    root = nodes.rule(0, 0.1 + 0.2, nodes.leaf(0), inner)
    choices = tree_of(nodes, root, [7, 8], Discrete(2, start=7))
    lines = ["if x0 < 0.30000000000000004:", "    action 7", "elif x1 < 0.0:", "    action 8", "else:"]
    assert str(choices).splitlines() == [*lines, "    action 7"]
    pair = tree_of(nodes, root, [[1 / 3, 2.0], [0.0, -1.0]], Box(-2.0, 2.0, (2,)))
    assert text(pair, digits=2).splitlines()[:2] == ["if x0 < 0.3:", "    u0 = 0.33, u1 = 2"]


def test_a_constant_law_beyond_the_range_is_written_as_it_acts() -> None:
    beyond = Controller(
        laws=Laws(np.zeros((1, 1, 2)), [[5.0]]),
        observation_space=SEEN,
        action_space=Box(-1.0, 2.0, (1,), np.float64),
    )
    assert str(beyond) == "u0 = 2.0"
    assert beyond.predict([0.0, 0.0])[0].tolist() == [2.0]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"left": [0, 2, -1, -1, -1]}, "come after"),
        ({"right": [9, 2, -1, -1, -1]}, "come after"),
        ({"feature": [2, 1, -1, -1, -1]}, "numbers 0 to 1"),
        ({"threshold": [np.nan, 0, 0, 0, 0]}, "threshold"),
        ({"leaf": [-1, -1, 0, 1, 3]}, "row in the table"),
        ({"leaf": [-1]}, "row for each node"),
        ({"observations": ("a",)}, "there are 2 to give"),
        ({"laws": [0, 1, 1]}, "rows of 1 finite numbers"),
        ({"laws": np.zeros((3, 2))}, "rows of 1 finite numbers"),
        ({"laws": [[0.0], [2.1], [0.0]]}, r"from \[-1.0\] to \[2.0\]"),
        ({"laws": Laws(LAWS.gain, np.full((3, 1), -np.inf))}, "finite gains and offsets"),
        ({"action_space": Discrete(2)}, "gains of the shape"),
        ({"action_space": Discrete(2), "laws": [0, 2, 1]}, "from 0 to 1"),
    ],
)
def test_what_is_no_tree_is_refused(laws: Controller, change: dict, message: str) -> None:
    assert laws.n_nodes == 5
    with pytest.raises(SettingError, match=message):
        dataclasses.replace(laws, **{"actions": (), **change})


def test_arrays_cannot_be_written_to(laws: Controller) -> None:
    with pytest.raises(ValueError, match="read-only"):
        laws.threshold[0] = 1.0


def test_a_batch_of_one_observation_with_rows_is_a_batch() -> None:
    """Of the shape (1, 2), a batch of one flattened observation looks like a single one."""
    tree = Controller(
        feature=[0, -1, -1],
        threshold=[0.5, 0, 0],
        left=[1, -1, -1],
        right=[2, -1, -1],
        leaf=[-1, 0, 1],
        laws=[0, 1],
        observation_space=Box(-1.0, 1.0, (1, 2)),
        action_space=Discrete(2),
    )
    actions = tree.act(np.ones((1, 1, 2)), np.zeros(1, np.int64), None)
    assert actions.tolist() == [1]


def _value(written: str, names: tuple[str, ...], numbers: np.ndarray) -> float:
    """Compute a printed sum as Python would."""
    known = {f"n{i}": x for i, x in enumerate(numbers.tolist())}
    for i, name in enumerate(names):
        written = re.sub(rf"\b{name}\b", f"n{i}", written)
    return float(eval(written, {"clip": lambda u, a, b: a if u < a else b if u > b else u}, known))


def _read(tree: Controller, point: np.ndarray) -> float | str:
    """Follow the printed text of a tree, and nothing else; return the number or the name of the action."""
    level = 0  # of the block that is read
    for line in str(tree).splitlines():
        indent = (len(line) - len(line.lstrip())) // 4
        said = line.strip()
        if indent > level:  # in a block that is not entered
            continue
        rule = re.fullmatch(r"(?:el)?if (.+) < (.+):", said)
        if said != "else:" and not rule:
            return _read_leaf(tree, said, point)
        if not rule or _value(rule[1], tree.observations, point) < float(rule[2]):
            level = indent + 1
    raise AssertionError("The text has no action for this observation.")


def _read_leaf(tree: Controller, leaf: str, point: np.ndarray) -> float | str:
    def value(written: str) -> float:
        return _value(written, tree.observations, point)

    if two := re.fullmatch(r"(.+) if (.+) ([<>]) (.+) else (.+)", leaf):
        a = value(two[2])
        b = value(two[4])
        return two[1] if (a > b if two[3] == ">" else a < b) else two[5]
    if several := re.fullmatch(r"highest of (.+)", leaf):
        scores = dict(one.split(": ") for one in several[1].split(", "))
        return max(scores, key=lambda name: value(scores[name]))  # the first of equal ones
    if " = " in leaf:
        return value(leaf.split(" = ")[1])
    return leaf


@given(tree=oblique_trees())
@settings(max_examples=thorough(150))
def test_the_text_is_all_there_is(tree: Controller) -> None:
    """Python computes the same action from the printed text, to the last bit."""
    for point in points(40)[:-3]:
        done = tree.predict(point)[0]
        read = _read(tree, point)
        if isinstance(tree.action_space, Discrete):
            assert read == tree.actions[int(done) - int(tree.action_space.start)]
        else:
            assert read == done[0]


SCORES = Laws(
    gain=[[[0.0, 0.0], [1.0, -2.5]], [[0.5, 0.0], [0.0, 0.0]], [[1.0, 0.0], [0.0, -1.0]], [[0.0] * 2] * 2],
    offset=[[0.25, 0.0], [0.0, 0.1], [0.125, -1 / 3], [-np.inf, 3.0]],
)


@pytest.mark.parametrize(
    ("row", "exact", "rounded"),
    [
        (0, "open if x - 2.5 * v > 0.25 else close", "open if x - 2.5 * v > 0.25 else close"),
        (1, "open if 0.5 * x < 0.1 else close", "open if 0.5 * x < 0.1 else close"),
        (2, "open if -0.3333333333333333 - v > 0.125 + x else close", "open if x + v < -0.458 else close"),
        (3, "open", "open"),
    ],
)
def test_text_of_scores(row: int, exact: str, rounded: str) -> None:
    tree = Controller(
        leaf=[row],
        laws=SCORES,
        observation_space=SEEN,
        action_space=Discrete(2),
        observations=("x", "v"),
        actions=("close", "open"),
    )
    assert str(tree) == exact
    assert text(tree, digits=3) == rounded


def test_numbers_that_a_person_reads(laws: Controller) -> None:
    """Two thresholds, and of three laws 3, 2 and 1 numbers."""
    assert laws.n_numbers == 8
    nodes = Nodes()
    part = nodes.rule(2, 0.0, nodes.leaf(0), nodes.leaf(3))
    root = nodes.rule(2, 1.0, part, nodes.rule(3, 0.5, part, nodes.leaf(2)))
    sums = [[1.0, 0.0], [1.0, -1.0], [5.0, 5.0]]
    tree = tree_of(nodes, root, SCORES, Discrete(2), combinations=sums)
    # Three different rules, two sums of which one has two weights, and laws of 3, 0 and 4 numbers.
    assert tree.n_numbers == 3 + 3 + 3 + 0 + 4
    choices = tree_of(nodes, nodes.leaf(0), [0, 1], Discrete(2))
    assert choices.n_numbers == 0


def test_a_single_score_that_may_be_infinite_is_no_constant() -> None:
    """At -inf the score of the only action taken is not higher than any other: the first action is played."""
    tree = Controller(
        laws=Laws([[[0.0], [1.0]]], [[-np.inf, 0.0]]),
        observation_space=Box(-np.inf, np.inf, (1,)),
        action_space=Discrete(2),
    )
    assert tree.act([[-np.inf], [0.0]]).tolist() == [0, 1]
    assert tree.constant_action(0) is None


@given(tree=oblique_trees())
@settings(max_examples=thorough(100))
def test_files_of_controllers_with_sums_and_scores(tree: Controller) -> None:
    again = controller_from(*controller_to(tree))
    batch = points()
    assert np.array_equal(again.act(batch), tree.act(batch))
    assert str(again) == str(tree)
    assert np.array_equal(again.combinations, tree.combinations)


@pytest.mark.parametrize(
    ("name", "array"),
    [
        ("combinations", np.array([[1.0, 0.0], [1.0, -1.0], [np.nan, 5.0]])),
        ("combinations", np.array([[1.0, 0.0], [1.0, -1.0], [0.0, 0.0]])),
        ("combinations", np.array([[1.0, 0.0]])),
        ("combinations", np.array([1.0, 0.0])),
        ("combinations", np.array([[1, 0], [0, 1]])),
        ("combinations", np.zeros((3, 1))),
        ("laws.gain", np.zeros((4, 3, 2))),
        ("laws.gain", np.full((4, 2, 2), np.inf)),
        ("laws.gain", np.ones((4, 2, 2))),
        ("laws.offset", np.full((4, 2), -np.inf)),
        ("laws.offset", np.full((4, 2), np.nan)),
        ("laws.offset", np.zeros((3, 2))),
        ("laws.offset", np.zeros((4, 2), np.int64)),
        ("locks.low", np.zeros((1, 2))),
    ],
)
def test_a_file_with_other_sums_or_scores_is_refused(name: str, array: np.ndarray) -> None:
    nodes = Nodes()
    root = nodes.rule(2, 1.0, nodes.leaf(0), nodes.rule(3, 0.5, nodes.leaf(1), nodes.leaf(2)))
    locks = (Lock(np.zeros(4), np.ones(4), 0),)
    sums = [[1.0, 0.0], [1.0, -1.0]]
    tree = tree_of(nodes, root, SCORES, Discrete(2), combinations=sums, locks=locks)
    data, arrays = controller_to(tree)
    controller_from(data, arrays)
    with pytest.raises(ArchiveError):
        controller_from(data, {**arrays, name: array})
    with pytest.raises(ArchiveError):
        controller_from({**data, "action_space": {"kind": "discrete", "n": 3, "start": 0}}, arrays)


def shared_rules(depth: int) -> Controller:
    """A tree of depth + 1 nodes, whose rules have both children in common."""
    place = np.arange(depth + 1)
    after = np.minimum(place + 1, depth)
    inner = place < depth
    return Controller(
        feature=np.where(inner, place % 2, -1),
        threshold=0.1 * place,
        left=after,
        right=after,
        leaf=np.where(inner, -1, 0),
        laws=[0],
        observation_space=SEEN,
        action_space=Discrete(2),
    )


def test_a_file_has_a_copy_of_each_shared_rule_and_is_a_tree() -> None:
    tree = shared_rules(5)
    data, arrays = controller_to(tree)
    again = controller_from(data, arrays)
    assert (tree.n_nodes, again.n_nodes) == (6, 32)
    assert str(again) == str(tree)
    with pytest.raises(SettingError, match="simplify it first"):
        controller_to(shared_rules(60))


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (shared_rules(60).left, shared_rules(60).right),  # 2^60 ways
        ([1, 2, -1, -1, -1], [2, 3, -1, -1, -1]),  # a leaf of two rules is sound, and one of none is not
        ([1, 0, -1], [2, 2, -1]),
        ([1, 1, -1], [2, 2, -1]),
        ([9, 2, -1], [2, 2, -1]),
        ([-1, 2, -1], [2, 2, -1]),
    ],
)
def test_files_with_rules_that_are_not_a_tree_are_refused(left, right) -> None:
    left = np.array(left, np.int32)
    right = np.array(right, np.int32)
    inner = (left >= 0) & (np.arange(len(left)) < len(left) - 1)
    inner[0] = True
    data, arrays = controller_to(shared_rules(1))
    arrays |= {
        "feature": np.where(inner, 0, -1).astype(np.int32),
        "threshold": np.zeros(len(left)),
        "left": left,
        "right": right,
        "leaf": np.where(inner, -1, 0).astype(np.int32),
    }
    with pytest.raises(ArchiveError, match="not a tree"):
        controller_from(data, arrays)
