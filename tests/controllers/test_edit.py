"""Trees changed by hand do what was asked, where it was asked, and nothing else elsewhere."""

from pathlib import Path

import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete
from hypothesis import given, settings
from hypothesis import strategies as st

import spaql
import spaql.export
from nightly import thorough
from oblique_trees import START, oblique_trees, points
from spaql.controllers import Laws, edited, locked, minimised, moved, simplified, text
from spaql.controllers.mirrored import folded
from spaql.controllers.rules import Nodes


def trees() -> st.SearchStrategy[spaql.Controller]:
    """Draw trees that are not their own mirror images: those have a test file of their own."""
    return drawn_trees().filter(lambda tree: folded(tree) is None)


@st.composite
def drawn_trees(draw: st.DrawFn) -> spaql.Controller:
    """Draw a tree over three numbers with few thresholds, so that parts are shared and cuts repeat."""
    nodes = Nodes()

    def grow(depth: int) -> int:
        if depth == 0 or draw(st.booleans()):
            return nodes.leaf(draw(st.integers(0, 2)))
        j = draw(st.integers(0, 2))
        cut = draw(st.sampled_from([-1.0, 0.0, 0.5, 1.0]))
        return nodes.rule(j, cut, grow(depth - 1), grow(depth - 1))

    return spaql.Controller(
        **nodes.arrays(grow(5)),
        laws=np.arange(3),
        observation_space=Box(-2.0, 2.0, (3,)),
        action_space=Discrete(3),
    )


def _points() -> np.ndarray:
    axis = [-9.0, -1.0, np.nextafter(0.0, -1.0), 0.0, 0.25, np.nextafter(0.5, 0.0), 0.5, 1.0, 9.0]
    return np.stack(np.meshgrid(axis, axis, axis), axis=-1).reshape(-1, 3)


@given(tree=trees(), data=st.data())
@settings(max_examples=thorough(100))
def test_an_edit_changes_one_leaf_and_nothing_else(tree: spaql.Controller, data: st.DataObject) -> None:
    leaf = data.draw(st.integers(1, tree.n_leaves))
    action = data.draw(st.integers(0, 2))
    points = _points()
    inside = np.array([tree.leaf_number(point) == leaf for point in points])
    changed = edited(tree, leaf, action)
    assert np.array_equal(changed.act(points), np.where(inside, action, tree.act(points)))


@given(tree=trees(), data=st.data())
@settings(max_examples=thorough(100))
def test_a_locked_leaf_outlives_simplification(tree: spaql.Controller, data: st.DataObject) -> None:
    leaf = data.draw(st.integers(1, tree.n_leaves))
    action = data.draw(st.integers(0, 2))
    points = _points()
    inside = np.array([tree.leaf_number(point) == leaf for point in points])
    changed = edited(tree, leaf, action, lock=True)
    seen = data.draw(st.lists(st.sampled_from(points.tolist()), min_size=1, max_size=5))
    for small in (simplified(changed, seen, price=2.0), simplified(minimised(changed), seen)):
        assert (small.act(points[inside]) == action).all()
        assert small.locks == changed.locks


def test_a_locked_leaf_cannot_be_edited() -> None:
    tree = locked(_stump([0, 1], Discrete(2)), 2)
    assert edited(tree, 1, 1).act([[0.0], [9.0]]).tolist() == [1, 1]
    with pytest.raises(spaql.SettingError, match="locked"):
        edited(tree, 2, 0)


def _stump(laws: Laws | list, actions: Box | Discrete, names: tuple[str, ...] = ()) -> spaql.Controller:
    return spaql.Controller(
        feature=[0, -1, -1],
        threshold=[0.5, 0, 0],
        left=[1, -1, -1],
        right=[2, -1, -1],
        leaf=[-1, 0, 1],
        laws=laws,
        observation_space=Box(-1.0, 1.0, (1,)),
        action_space=actions,
        actions=names,
    )


def test_actions_are_given_by_name_number_or_value() -> None:
    listed = _stump([0, 1], Discrete(3), ("left", "none", "right"))
    assert edited(listed, 1, "right").predict([0.0])[0] == 2
    assert edited(listed, 1, 2).predict([0.0])[0] == 2
    box = Box(-2.0, 2.0, (1,))
    assert edited(_stump([[-1.0], [1.0]], box), 1, [0.5]).predict([0.0])[0] == [0.5]
    laws = Laws(np.ones((2, 1, 1)), np.zeros((2, 1)))
    changed = edited(_stump(laws, box), 2, [0.25])
    assert changed.act([[0.125], [0.75]]).tolist() == [[0.125], [0.25]]


@pytest.mark.parametrize(
    ("leaf", "action", "said"), [(3, 0, "1 to 2"), (1, "up", "no action 'up'"), (1, 7, "0 \\(")]
)
def test_what_there_is_not_is_refused(leaf: int, action: int | str, said: str) -> None:
    with pytest.raises(spaql.SettingError, match=said):
        edited(_stump([0, 1], Discrete(2)), leaf, action)


def test_numbers_in_the_text_are_those_of_the_leaves() -> None:
    tree = _stump([0, 1], Discrete(2))
    assert text(tree, numbered=True).splitlines()[1::2] == [
        "    action 0  # leaf 1",
        "    action 1  # leaf 2",
    ]
    assert [tree.leaf_number(np.array([x])) for x in (0.0, 0.5)] == [1, 2]


def _laws(rows: int = 2, actions: int = 1) -> tuple[Laws, Box]:
    box = Box(-2.0, 2.0, (actions,))
    return Laws(np.ones((rows, actions, 1)), np.zeros((rows, actions))), box


def test_gains_and_offsets_of_a_law_are_changed_one_by_one() -> None:
    tree = _stump(*_laws())
    changed = edited(tree, 2, gains={"x0": -2.0})
    assert changed.act([[0.25], [0.75]]).tolist() == [[0.25], [-1.5]]
    changed = edited(changed, 2, offset=1.0)
    assert changed.act([[0.25], [0.75]]).tolist() == [[0.25], [-0.5]]
    assert text(changed).splitlines()[-1] == "    u0 = clip(1.0 - 2.0 * x0, -2.0, 2.0)"
    assert tree.act([[0.75]]).tolist() == [[0.75]]
    # Back to what it was: both leaves say the same again.
    assert edited(edited(changed, 2, offset=0.0), 2, gains={0: 1.0}).n_leaves == 1


def test_of_several_numbers_it_is_said_which() -> None:
    tree = _stump(*_laws(actions=2), names=("torque [Nm]", "force [N]"))
    changed = edited(tree, 1, offset={"force": 0.5}, gains={("torque", "x0"): 3.0})
    assert changed.predict([0.25])[0].tolist() == [0.75, 0.75]
    for wrong in ({"offset": 0.5}, {"gains": {"x0": 1.0}}):
        with pytest.raises(spaql.SettingError, match=r"say which of torque \[Nm\], force \[N\]"):
            edited(tree, 1, **wrong)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"offset": np.nan}, "Laws have finite gains"),
        ({"gains": {"x0": np.inf}}, "Laws have finite gains"),
        ({"gains": {"x1": 1.0}}, "no observation 'x1': there is 0 x0"),
        ({"offset": {"u9": 1.0}}, "no action 'u9'"),
        ({"action": [2.5]}, "u0 from -2 to 2"),
        ({"action": [np.nan]}, "one finite number for each of"),
        ({"action": [0.5], "offset": 1.0}, "give one of the two"),
        ({}, "give one of the two"),
    ],
)
def test_what_no_law_can_have_is_refused(change: dict, said: str) -> None:
    with pytest.raises(spaql.SettingError, match=said):
        edited(_stump(*_laws()), 1, **change)


def test_constants_have_bounds_and_become_laws() -> None:
    tree = _stump([[-0.5], [0.5]], Box(-0.7, 0.7, (1,)))
    assert edited(tree, 1, [0.7]).predict([0.0])[0] == [np.float32(0.7)]  # which is less than 0.7
    with pytest.raises(spaql.SettingError, match=r"u0 from -0.7 to 0.7"):
        edited(tree, 1, [0.8])
    assert text(edited(tree, 1, offset=0.25)).splitlines()[1] == "    u0 = 0.25"
    assert edited(tree, 1, gains={"x0": 1.0}).predict([0.25])[0] == [-0.25]


def test_a_locked_law_stays() -> None:
    changed = edited(_stump(*_laws()), 2, gains={"x0": -2.0}, lock=True)
    for attempt in ({"offset": 1.0}, {"gains": {"x0": 1.0}}, {"action": [0.0]}):
        with pytest.raises(spaql.SettingError, match="Leaf 2 is locked"):
            edited(changed, 2, **attempt)
    small = simplified(changed, [[0.0]], price=2.0)
    assert small.predict([0.75])[0].tolist() == [-1.5]


@given(tree=trees(), data=st.data())
@settings(max_examples=thorough(100))
def test_a_moved_threshold_decides_otherwise_between_its_two_places_and_nowhere_else(
    tree: spaql.Controller, data: st.DataObject
) -> None:
    tree = minimised(tree)
    if tree.n_leaves == 1:
        with pytest.raises(spaql.SettingError, match="has no rules"):
            moved(tree, 1, 0.0)
        return
    rule = data.draw(st.integers(1, tree.n_leaves - 1))
    threshold = data.draw(st.sampled_from([-1.5, -0.5, 0.0, 0.25, 0.75, 5.0]))
    node = tree.way_to(rule)[-1][0]
    j = int(tree.feature[node])
    old = float(tree.threshold[node])
    number = text(tree, numbered=True).splitlines()
    assert f"{tree.observations[j]} < {old!r}:  # rule {rule}" in "\n".join(number)
    first, last = _room_by_definition(tree, rule)
    if not first < threshold < last:
        with pytest.raises(spaql.SettingError, match="can lie between"):
            moved(tree, rule, threshold)
        return
    changed = moved(tree, rule, threshold)
    assert changed.n_leaves <= tree.n_leaves
    points = _points()
    here = np.array([_passes(tree, point, rule) for point in points])
    low, high = sorted((old, threshold))
    between = here & (points[:, j] >= low) & (points[:, j] < high)
    before = tree.act(points)
    after = changed.act(points)
    assert np.array_equal(after[~between], before[~between])
    # Between the two places, what was on the one side of the old one is now on the other.
    other = points.copy()
    other[:, j] = np.nextafter(old, -np.inf) if threshold > old else old
    assert np.array_equal(after[between], tree.act(other)[between])


def _room_by_definition(tree: spaql.Controller, rule: int) -> tuple[float, float]:
    """Give the nearest thresholds of the same observation, on the way to a rule and under it."""
    node = tree.way_to(rule)[-1][0]
    j = int(tree.feature[node])
    old = float(tree.threshold[node])
    first = -np.inf
    last = np.inf
    for i, lower in tree.way_to(rule)[:-1]:
        if tree.feature[i] == j:
            cut = float(tree.threshold[i])
            first, last = (first, min(last, cut)) if lower else (max(first, cut), last)

    def under(i: int) -> set[float]:
        if tree.feature[i] < 0:
            return set()
        own = {float(tree.threshold[i])} if tree.feature[i] == j else set()
        return own | under(int(tree.left[i])) | under(int(tree.right[i]))

    first = max([first, *(cut for cut in under(int(tree.left[node])) if cut < old)])
    return first, min([last, *(cut for cut in under(int(tree.right[node])) if cut > old)])


def _passes(tree: spaql.Controller, point: np.ndarray, rule: int) -> bool:
    """Tell whether an observation comes to a rule, counted as they are printed."""
    for node, lower in tree.way_to(rule)[:-1]:
        if (point[tree.feature[node]] < tree.threshold[node]) != lower:
            return False
    return True


def _three_steps() -> spaql.Controller:
    """Give 0 below 0, 1 up to 1, 2 from there on."""
    return spaql.Controller(
        feature=[0, -1, 0, -1, -1],
        threshold=[0.0, 0, 1.0, 0, 0],
        left=[1, -1, 3, -1, -1],
        right=[2, -1, 4, -1, -1],
        leaf=[-1, 0, -1, 1, 2],
        laws=np.arange(3),
        observation_space=Box(-9.0, 9.0, (1,)),
        action_space=Discrete(3),
    )


@pytest.mark.parametrize(
    ("rule", "threshold", "said"),
    [
        (1, 1.0, r"x0 < 0.0, can lie between -inf and 1.0"),
        (2, 0.0, r"x0 < 1.0, can lie between 0.0 and inf"),
        (2, np.nan, "not at nan"),
        (2, np.inf, "not at inf"),
        (3, 0.5, "1 to 2, so there is no rule 3"),
        (0, 0.5, "no rule 0"),
    ],
)
def test_a_threshold_stays_between_its_neighbours(rule: int, threshold: float, said: str) -> None:
    with pytest.raises(spaql.SettingError, match=said):
        moved(_three_steps(), rule, threshold)


def test_a_threshold_is_not_moved_over_what_is_locked() -> None:
    tree = locked(_three_steps(), 2)
    with pytest.raises(spaql.SettingError, match="What rule 1 would decide differently is locked"):
        moved(tree, 1, 0.5)
    with pytest.raises(spaql.SettingError, match="What rule 2 would"):
        moved(tree, 2, 0.5)
    wider = moved(tree, 2, 1.0)
    assert wider.act([[0.5]]).tolist() == [1]
    assert moved(locked(_three_steps(), 1), 2, 5.0).act([[4.0]]).tolist() == [1]


def test_an_edited_law_is_exported_and_saved_as_it_is(tmp_path: Path) -> None:
    changed = moved(edited(_stump(*_laws()), 2, gains={"x0": -2.0}, offset=1.0), 1, 0.25)
    proof = spaql.export.python(changed, tmp_path / "controller.py", points=1000)
    assert proof.leaves == 2
    space: dict = {}
    exec((tmp_path / "controller.py").read_text(), space)
    assert [space["act"]([x]) for x in (0.2, 0.25)] == [(0.2,), (0.5,)]


@given(tree=oblique_trees(), data=st.data())
@settings(max_examples=thorough(150))
def test_an_edit_of_a_tree_with_sums_changes_one_leaf(tree: spaql.Controller, data: st.DataObject) -> None:
    leaf = data.draw(st.integers(1, tree.n_leaves))
    batch = points(60)
    inside = np.array([tree.leaf_number(point) == leaf for point in batch])
    listed = isinstance(tree.action_space, Discrete)
    action = data.draw(st.integers(START, START + 2)) if listed else 0.25
    changed = edited(tree, leaf, action if listed else [action], lock=True)
    wanted = np.where(inside, action, tree.act(batch).ravel())
    assert np.array_equal(changed.act(batch).ravel(), wanted)
    # Trees made from it keep the locked leaf.
    for small in (minimised(changed), simplified(changed, batch[:9], price=2.0)):
        assert (small.act(batch[inside]).ravel() == action).all()
    for point in batch[inside][:1]:
        with pytest.raises(spaql.SettingError, match="locked"):
            edited(changed, changed.leaf_number(point), action)


@given(tree=oblique_trees().filter(lambda tree: tree.n_leaves > 1), data=st.data())
@settings(max_examples=thorough(100))
def test_a_threshold_of_a_sum_is_moved(tree: spaql.Controller, data: st.DataObject) -> None:
    rule = data.draw(st.integers(1, tree.n_leaves - 1))
    node = tree.way_to(rule)[-1][0]
    j = int(tree.feature[node])
    old = float(tree.threshold[node])
    try:
        changed = moved(tree, rule, old + 1e-3)
    except spaql.SettingError as error:
        assert tree.number_names()[j] in str(error)  # noqa: PT017 - what is refused is named
        return
    batch = points(60)
    numbers = tree.numbers(batch)[:, j]
    between = (numbers >= old) & (numbers < old + 1e-3)
    assert np.array_equal(changed.act(batch)[~between], tree.act(batch)[~between])
    assert text(changed) != text(tree) or changed.n_leaves < tree.n_leaves


def _switching() -> spaql.Controller:
    """Open where 2 x > 0.5, and stay as it is in the leaf after it."""
    never = -np.inf
    offset = [[0.5, never, 0.0], [never, 1.0, never]]
    laws = Laws([[[0.0], [0.0], [2.0]], [[0.0], [0.0], [0.0]]], offset)
    return _stump(laws, Discrete(3), ("close", "stay", "open"))


def test_scores_are_changed_one_by_one() -> None:
    tree = _switching()
    assert text(edited(tree, 2, "open")).splitlines()[-1] == "    open"
    assert text(edited(tree, 1, 1)).splitlines()[0] == "stay"  # as in the other leaf, whatever its score
    changed = edited(tree, 1, offset={"close": 0.25}, gains={("open", "x0"): 3.0})
    assert text(changed).splitlines()[1] == "    open if 3.0 * x0 > 0.25 else close"
    changed = edited(tree, 1, offset={"stay": 0.1}, gains={("stay", 0): -1.0})
    assert text(changed).splitlines()[1] == "    highest of close: 0.5, stay: 0.1 - x0, open: 2.0 * x0"
    assert text(edited(tree, 1, offset={2: -np.inf})).splitlines()[1] == "    close"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"offset": 0.5}, "a score for each action: say which of close, stay, open"),
        ({"gains": {"x0": 0.5}}, "say which of close, stay, open"),
        ({"offset": {"shut": 0.5}}, "no action 'shut'"),
        ({"offset": {"open": np.inf}}, "Laws have finite gains"),
        ({"offset": {"open": np.nan}}, "Laws have finite gains"),
        ({"gains": {("open", "x0"): np.inf}}, "Laws have finite gains"),
        ({"offset": {"open": -np.inf, "close": -np.inf}}, "A law takes a discrete action at least"),
        ({"gains": {("stay", "x0"): 1.0}}, "one that is never taken has gains of 0"),
        ({"action": "shut"}, "no action 'shut'"),
    ],
)
def test_what_no_switching_law_can_have_is_refused(change: dict, said: str) -> None:
    with pytest.raises(spaql.SettingError, match=said):
        edited(_switching(), 1, **change)
