"""Trees changed by hand do what was asked, where it was asked, and nothing else elsewhere."""

import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete
from hypothesis import given, settings
from hypothesis import strategies as st

import spaql
from spaql.interpret import edited, locked, minimised, simplified
from spaql.policy import Choices, Constants, Laws, text
from spaql.policy.nodes import Nodes


@st.composite
def trees(draw: st.DrawFn) -> spaql.RuleTree:
    """Draw a tree over three numbers with few thresholds, so that parts are shared and cuts repeat."""
    nodes = Nodes()

    def grow(depth: int) -> int:
        if depth == 0 or draw(st.booleans()):
            return nodes.leaf(draw(st.integers(0, 2)))
        j, cut = draw(st.integers(0, 2)), draw(st.sampled_from([-1.0, 0.0, 0.5, 1.0]))
        return nodes.rule(j, cut, grow(depth - 1), grow(depth - 1))

    return spaql.RuleTree(
        **nodes.arrays(grow(5)),
        leaves=Choices(np.arange(3)),
        observation_space=Box(-2.0, 2.0, (3,)),
        action_space=Discrete(3),
    )


def _points() -> np.ndarray:
    axis = [-9.0, -1.0, np.nextafter(0.0, -1.0), 0.0, 0.25, np.nextafter(0.5, 0.0), 0.5, 1.0, 9.0]
    return np.stack(np.meshgrid(axis, axis, axis), axis=-1).reshape(-1, 3)


@given(tree=trees(), data=st.data())
@settings(max_examples=100, deadline=None)
def test_an_edit_changes_one_leaf_and_nothing_else(tree: spaql.RuleTree, data: st.DataObject) -> None:
    leaf, action = data.draw(st.integers(1, tree.n_leaves)), data.draw(st.integers(0, 2))
    points = _points()
    inside = np.array([tree.leaf_number(point) == leaf for point in points])
    changed = edited(tree, leaf, action)
    assert np.array_equal(changed.predict(points), np.where(inside, action, tree.predict(points)))


@given(tree=trees(), data=st.data())
@settings(max_examples=100, deadline=None)
def test_a_locked_leaf_outlives_simplification(tree: spaql.RuleTree, data: st.DataObject) -> None:
    leaf, action = data.draw(st.integers(1, tree.n_leaves)), data.draw(st.integers(0, 2))
    points = _points()
    inside = np.array([tree.leaf_number(point) == leaf for point in points])
    changed = edited(tree, leaf, action, lock=True)
    seen = data.draw(st.lists(st.sampled_from(points.tolist()), min_size=1, max_size=5))
    for small in (simplified(changed, seen, price=2.0), simplified(minimised(changed), seen)):
        assert (small.predict(points[inside]) == action).all()
        assert small.locks == changed.locks


def test_a_locked_leaf_cannot_be_edited() -> None:
    tree = locked(_stump(Choices(np.array([0, 1])), Discrete(2)), 2)
    assert edited(tree, 1, 1).predict([[0.0], [9.0]]).tolist() == [1, 1]
    with pytest.raises(spaql.SettingError, match="locked"):
        edited(tree, 2, 0)


def _stump(
    leaves: Choices | Constants | Laws, actions: Box | Discrete, names: tuple[str, ...] = ()
) -> spaql.RuleTree:
    return spaql.RuleTree(
        [0, -1, -1], [0.5, 0, 0], [1, -1, -1], [2, -1, -1], [-1, 0, 1], leaves, Box(-1.0, 1.0, (1,)), actions,
        actions=names,
    )  # fmt: skip


def test_actions_are_given_by_name_number_or_value() -> None:
    listed = _stump(Choices(np.array([0, 1])), Discrete(3), ("left", "none", "right"))
    assert edited(listed, 1, "right").predict([0.0]) == 2
    assert edited(listed, 1, 2).predict([0.0]) == 2
    box = Box(-2.0, 2.0, (1,))
    assert edited(_stump(Constants(np.array([[-1.0], [1.0]])), box), 1, [0.5]).predict([0.0]) == [0.5]
    laws = Laws(np.ones((2, 1, 1)), np.zeros((2, 1)), box.low.astype(float), box.high.astype(float))
    changed = edited(_stump(laws, box), 2, [0.25])
    assert changed.predict([[0.125], [0.75]]).tolist() == [[0.125], [0.25]]


@pytest.mark.parametrize(
    ("leaf", "action", "said"), [(3, 0, "1 to 2"), (1, "up", "no action 'up'"), (1, 7, "0 \\(")]
)
def test_what_there_is_not_is_refused(leaf: int, action: int | str, said: str) -> None:
    with pytest.raises(spaql.SettingError, match=said):
        edited(_stump(Choices(np.array([0, 1])), Discrete(2)), leaf, action)


def test_numbers_in_the_text_are_those_of_the_leaves() -> None:
    tree = _stump(Choices(np.array([0, 1])), Discrete(2))
    assert text(tree, numbered=True).splitlines()[1::2] == [
        "    action 0  # leaf 1",
        "    action 1  # leaf 2",
    ]
    assert [tree.leaf_number(np.array([x])) for x in (0.0, 0.5)] == [1, 2]
