"""Controllers of every kind: with every kind of law, with features or without, with memory or without."""

import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete
from hypothesis import given, settings
from hypothesis import strategies as st

from nightly import thorough
from spaql import SettingError, archive
from spaql.controllers import (
    Angle,
    Controller,
    Difference,
    Error,
    Feature,
    FilteredDerivative,
    Integral,
    Lag,
    LastAction,
    Laws,
    LowPass,
    Observed,
    Product,
    SinceChange,
    Square,
    edited,
    locked,
    minimised,
    text,
)
from spaql.controllers.file import controller_from, controller_to
from spaql.controllers.rules import Nodes
from spaql.kernels.controller import LEAF, LEFT, PARENT, RIGHT

SEEN = 3
LISTED = Discrete(3, start=5)
RANGES = Box(np.array([-1.0, 0.0]), np.array([1.0, 0.5]), (2,), np.float64)
KINDS = ("choices", "constants", "laws", "scores")
WEIGHTS = st.sampled_from([0.0, 0.0, 1.0, -1.0, 0.5, 0.1, -3.7])
NUMBERS = st.sampled_from([-1.0, -0.7, 0.0, 0.1 + 0.2, 0.5, 3.0])
PLAIN: tuple[Feature, ...] = (
    Error("error", "x0", "x1"),
    Observed("x2"),
    Product("drive", "error", "x2"),
    Square("energy", "error"),
    Angle("angle", "x0", "x1"),
)
REMEMBERED: tuple[Feature, ...] = (
    Integral("integral", "error", limit=2.0, start=0.25),
    Difference("change", "x2"),
    FilteredDerivative("slope", "x0", time_constant=0.5),
    Lag("before", "x1", 2),
    LowPass("slow", "x2", 1.0),
)


def array(draw: st.DrawFn, of: st.SearchStrategy, *shape: int) -> np.ndarray:
    size = int(np.prod(shape))
    return np.array(draw(st.lists(of, min_size=size, max_size=size))).reshape(shape)


@st.composite
def controllers(draw: st.DrawFn, kind: str, *, over_features: bool, remembers: bool) -> Controller:
    """Draw a controller of a kind."""
    listed = kind in ("choices", "scores")
    outputs = 3 if listed else 2
    features: tuple[Feature, ...] = PLAIN if over_features else ()
    if features and remembers:
        features += (*REMEMBERED, LastAction("done", "action" if listed else "u1", 2))
        features += (SinceChange("since", "action", limit=1.2),) if listed else ()
    dims = len(features) or SEEN
    combinations = array(draw, WEIGHTS, draw(st.integers(0, 2)), dims)
    combinations[~combinations.any(axis=1), 0] = 1.0
    nodes = Nodes()

    def grow(depth: int) -> int:
        if depth == 0 or draw(st.integers(0, 3)) == 0:
            return nodes.leaf(draw(st.integers(0, 2)))
        j = draw(st.integers(0, dims + len(combinations) - 1))
        return nodes.rule(j, draw(NUMBERS), grow(depth - 1), grow(depth - 1))

    root = grow(3)
    if kind == "choices":
        laws = [5, 7, 6]
    elif kind == "constants":
        laws = array(draw, st.sampled_from([0.0, 0.25, 0.5]), 3, outputs)
    else:
        gain = array(draw, WEIGHTS, 3, outputs, dims)
        offset = array(draw, NUMBERS, 3, outputs)
        if kind == "scores":
            never = array(draw, st.booleans(), 3, outputs)
            never[:, draw(st.integers(0, outputs - 1))] = False
            gain[never] = 0.0
            offset[never] = -np.inf
        laws = Laws(gain, offset)
    memory = {}
    if remembers:
        memory = {"sample_time": 0.5}
        if draw(st.booleans()):
            margins = st.sampled_from([0.0, 0.2, 1.0])
            memory["hysteresis"] = tuple(array(draw, margins, dims + len(combinations)))
        memory["start"] = (6.0,) if listed else (0.1, 0.2)
    if remembers and not listed:
        memory["form"] = draw(st.sampled_from(["position", "velocity"]))
        memory["rate_limit"] = (draw(st.sampled_from([0.5, np.inf])), np.inf)
        memory["dead_band"] = (0.0, draw(st.sampled_from([0.0, 0.1])))
    return Controller(
        **nodes.arrays(root),
        laws=laws,
        features=features,
        combinations=combinations,
        observation_space=Box(-2.0, 2.0, (SEEN,), np.float64),
        action_space=LISTED if listed else RANGES,
        **memory,
    )


def batches(seed: int = 0, rows: int = 30, steps: int = 4) -> np.ndarray:
    """Observations of a few samples, some of them on thresholds."""
    rng = np.random.default_rng(seed)
    grid = rng.choice([-1.0, -0.7, 0.0, 0.1 + 0.2, 0.5], (steps, rows // 2, SEEN))
    return np.concatenate([grid, rng.uniform(-2, 2, (steps, rows - rows // 2, SEEN))], axis=1)


def played(controller: Controller, seen: np.ndarray) -> tuple[bytes, bytes]:
    """The bits of all actions, and of the memories at the end."""
    memory = controller.new_memory(seen.shape[1])
    actions = np.array([controller.sample(batch, memory).action for batch in seen])
    return actions.tobytes(), memory.tobytes()


every_kind = pytest.mark.parametrize("kind", KINDS)
features_or_not = pytest.mark.parametrize("over_features", [True, False], ids=["features", "observations"])
memory_or_not = pytest.mark.parametrize("remembers", [True, False], ids=["memory", "none"])


@every_kind
@features_or_not
@memory_or_not
@given(data=st.data())
@settings(max_examples=thorough(20))
def test_what_is_read_from_a_file_acts_as_what_was_written(
    kind: str, over_features: bool, remembers: bool, data: st.DataObject
) -> None:
    controller = data.draw(controllers(kind, over_features=over_features, remembers=remembers))
    written = archive.dumps(*controller_to(controller))
    document = archive.loads(written)
    twin = controller_from(document.data, document.arrays)
    assert played(twin, batches()) == played(controller, batches())
    assert str(twin) == str(controller)
    assert repr(twin) == repr(controller)
    assert archive.dumps(*controller_to(twin)) == written


def _observations(data: st.DataObject, count: int) -> np.ndarray:
    return np.random.default_rng(data.draw(st.integers(0, 1000))).uniform(-2, 2, (count, SEEN))


def leaf_of(controller: Controller, state: tuple[np.ndarray, ...]) -> int:
    """The number of the leaf of a sample, by the memory after it: nodes are copied, breadth first."""
    node = int(state[0][0, LEAF])
    nodes = controller.arrays.arrays.node

    def leaves(below: int) -> int:
        left = nodes[below, LEFT]
        right = nodes[below, RIGHT]
        return 1 if left < 0 else leaves(left) + leaves(right)

    number = 1
    while node > 0:
        parent = int(nodes[node, PARENT])
        if nodes[parent, RIGHT] == node:
            number += leaves(int(nodes[parent, LEFT]))
        node = parent
    return number


@every_kind
@features_or_not
@given(data=st.data())
@settings(max_examples=thorough(30))
def test_explanations_with_memory_name_the_leaf_and_its_action(
    kind: str, over_features: bool, data: st.DataObject
) -> None:
    controller = data.draw(controllers(kind, over_features=over_features, remembers=True))
    state = None
    for observation in _observations(data, 6):
        explained = controller.explain(observation, state)
        action, state = controller.predict(observation, state)
        assert explained.value == tuple(np.ravel(action).tolist())
        assert explained.leaf == f"leaf {leaf_of(controller, state)} of {controller.n_leaves}"


@every_kind
@features_or_not
@memory_or_not
@given(data=st.data())
@settings(max_examples=thorough(15))
def test_changes_of_inputs_are_what_is_played(
    kind: str, over_features: bool, remembers: bool, data: st.DataObject
) -> None:
    """Beyond each boundary the action is another one, for the same memory."""
    controller = data.draw(controllers(kind, over_features=over_features, remembers=remembers))
    state = None
    for observation in _observations(data, 3):
        inputs = controller.inputs_of(observation, state)
        explained = controller.explain_inputs(inputs, state)
        for change in explained.changes:
            j = list(explained.observation).index(change.observation)
            beyond = inputs.copy()
            beyond[j] = change.to if change.by > 0 else np.nextafter(change.to, -np.inf)
            there = controller.explain_inputs(beyond, state)
            assert there.value == change.value != explained.value
        _, state = controller.predict(observation, state)


@every_kind
@features_or_not
@memory_or_not
@given(data=st.data())
@settings(max_examples=thorough(10))
def test_controllers_of_every_kind_are_edited_locked_and_made_smaller(
    kind: str, over_features: bool, remembers: bool, data: st.DataObject
) -> None:
    controller = data.draw(controllers(kind, over_features=over_features, remembers=remembers))
    leaf = data.draw(st.integers(1, controller.n_leaves))
    if not any(controller.hysteresis):
        assert played(minimised(controller), batches())[0] == played(controller, batches())[0]
    if controller.form == "velocity":
        return
    changed = edited(controller, leaf, 6 if controller.discrete else [0.25, 0.25])
    inside = np.array([0.5, -0.7, 0.0])
    if controller.leaf_number(controller.inputs_of(inside)) == leaf and not controller.remembers:
        assert changed.predict(inside)[0].tolist() == (6 if controller.discrete else [0.25, 0.25])
    assert locked(controller, leaf).locks
    assert text(changed, digits=3)


def test_one_law_of_observations_with_memory_has_no_name() -> None:
    controller = Controller(
        laws=Laws([[[1.0, 2.0]]], [[0.1]]),
        observation_space=Box(-1.0, 1.0, (2,)),
        action_space=Box(-1.0, 1.0, (1,)),
        sample_time=1.0,
    )
    assert str(controller).splitlines() == [
        "u0 = 0.1 + x0 + 2.0 * x1",
        "",
        "u0: within -1 and 1; from 0 at a reset",
        "A sample every 1 s.",
    ]


def test_a_leaf_that_hysteresis_keeps_is_the_one_that_is_explained() -> None:
    controller = Controller(
        feature=[0, -1, -1],
        threshold=[0.0, 0.0, 0.0],
        left=[1, -1, -1],
        right=[2, -1, -1],
        leaf=[-1, 0, 1],
        laws=[0, 1],
        observation_space=Box(-1.0, 1.0, (1,)),
        action_space=Discrete(2),
        actions=("close", "open"),
        sample_time=1.0,
        hysteresis=(0.5,),
    )
    _, state = controller.predict([-0.1])
    assert str(controller.explain([0.25], state)).splitlines()[2:] == [
        "does     close",
        "because  x0 < 0.5",
        "         (leaf 1 of 2)",
        "instead  open, if x0 rose by 0.25, to 0.5",
    ]
    assert controller.explain([0.25]).action == "open"


@pytest.mark.parametrize("change", [{"rate_limit": 1.0}, {"dead_band": 0.1}, {"form": "velocity"}])
def test_discrete_actions_have_no_limits(change: dict) -> None:
    with pytest.raises(SettingError, match="Discrete actions have no"):
        Controller(
            laws=[0],
            observation_space=Box(-1.0, 1.0, (1,)),
            action_space=Discrete(2),
            sample_time=1.0,
            **change,
        )
