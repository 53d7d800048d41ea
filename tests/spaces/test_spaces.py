import math

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from hypothesis import given
from hypothesis import strategies as st

from spaql import SettingError, UnsupportedSpaceError
from spaql.errors import ArchiveError
from spaql.spaces import StandardActions, StandardStates, describe_space, space_from, unbounded

INF = np.inf
MIXED = spaces.Box(np.array([-4.8, -INF, 0.0], np.float32), np.array([4.8, INF, 3.0], np.float32))


@given(st.lists(st.floats(-1, 1), min_size=3, max_size=3))
def test_standard_points_come_back(point: list[float]) -> None:
    states = StandardStates.of(MIXED, squash={1: 20.0})
    inner = [0.999 * x for x in point]
    assert states.standardise(states.restore(inner)) == pytest.approx(inner, abs=1e-9)


def test_the_papers_squashing() -> None:
    states = StandardStates.of(MIXED, squash={1: 240.0})
    y = 100.0
    phi = 2 / (1 + math.exp(-2 * y / 240)) - 1
    assert states.standardise([0.0, y, 0.0])[1] == pytest.approx(phi, rel=1e-12)
    assert states.restore([0.0, 1.0, 0.0])[1] == INF


def test_points_outside_go_to_the_border() -> None:
    states = StandardStates.of(MIXED, squash={1: 1.0})
    assert states.standardise([99.0, -INF, -1.0]).tolist() == [1.0, -1.0, -1.0]


def test_unbounded_dimensions_are_measured() -> None:
    samples = np.random.default_rng(0).normal(5.0, 2.0, (1000, 3))
    states = StandardStates.of(MIXED, samples=samples)
    assert states.state_map.squash.tolist() == [False, True, False]
    assert states.state_map.center[1] == pytest.approx(5.0, abs=0.3)
    assert states.state_map.scale[1] == pytest.approx(12.0, abs=0.9)
    with pytest.raises(SettingError, match=r"\[1\] are unbounded"):
        StandardStates.of(MIXED)


def test_largest_floats_are_no_bounds() -> None:
    largest = np.finfo(np.float32).max
    assert unbounded(spaces.Box(-largest, largest, (2,), np.float32)).all()


@pytest.mark.parametrize("n", [1, 2, 5, 16])
def test_discrete_states_lie_in_the_middle_of_even_cells(n: int) -> None:
    states = StandardStates.of(spaces.Discrete(n, start=3))
    points = [states.standardise(3 + i)[0] for i in range(n)]
    assert points == pytest.approx([(2 * i + 1) / n - 1 for i in range(n)])


@pytest.mark.parametrize(
    ("space", "message"),
    [
        (spaces.Dict({"a": spaces.Discrete(2)}), "FlattenObservation"),
        (spaces.MultiBinary(3), "FlattenObservation"),
        (spaces.Box(0, 255, (8, 8, 3), np.uint8), "images"),
    ],
)
def test_unsupported_observations_are_refused_with_advice(space: gymnasium.Space, message: str) -> None:
    with pytest.raises(UnsupportedSpaceError, match=message):
        StandardStates.of(space)


@pytest.mark.parametrize(
    ("space", "message"),
    [
        (spaces.MultiDiscrete([2, 3]), "MultiDiscrete"),
        (spaces.Box(-INF, INF, (1,)), "TransformAction"),
        (spaces.Box(0, 5, (1,), np.int32), "real numbers"),
        (spaces.Box(0, 1, (2, 2)), "vector"),
    ],
)
def test_unsupported_actions_are_refused_with_advice(space: gymnasium.Space, message: str) -> None:
    with pytest.raises(UnsupportedSpaceError, match=message):
        StandardActions.of(space)


def test_levels() -> None:
    box = spaces.Box(np.array([-2.0, 0.0], np.float32), np.array([2.0, 1.0], np.float32))
    actions = StandardActions.of(box, levels=5)
    assert actions.sizes == (5, 5)
    assert actions.restore(np.array([[0.0, 4.0], [3.0, 1.0]])).tolist() == [[-2.0, 1.0], [1.0, 0.25]]
    with pytest.raises(SettingError, match="two levels"):
        StandardActions.of(box, levels=1)
    with pytest.raises(SettingError, match="already finite"):
        StandardActions.of(spaces.Discrete(3), levels=2)


def test_discrete_actions_keep_their_start() -> None:
    actions = StandardActions.of(spaces.Discrete(3, start=-1))
    assert actions.restore(np.array([[0.0], [2.0]])).tolist() == [-1, 1]


@given(st.floats(-1, 1))
def test_restored_actions_lie_in_the_space(x: float) -> None:
    box = spaces.Box(np.float32(-0.1), np.float32(0.3), (1,), np.float32)
    assert box.contains(StandardActions.of(box).restore(np.array([[x]]))[0])


@pytest.mark.parametrize("space", [MIXED, spaces.Discrete(4, start=2), spaces.Box(-1, 1, (2,), np.float64)])
def test_spaces_come_back_from_their_description(space: gymnasium.Space) -> None:
    assert space_from(describe_space(space)) == space


@pytest.mark.parametrize(
    "description",
    [
        {},
        {"kind": "discrete", "n": -1, "start": 0},
        {"kind": "box", "low": ["x"], "high": [], "shape": [1], "dtype": "f4"},
        {"kind": "box", "low": ["0"], "high": ["1"], "shape": [1], "dtype": "O"},
    ],
)
def test_other_descriptions_are_refused(description: dict) -> None:
    with pytest.raises(ArchiveError):
        space_from(description)
