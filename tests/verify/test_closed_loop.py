"""Closed loops on sets, against states that the plant's own functions compute."""

from contextlib import suppress

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import spaql
from nightly import thorough
from spaql.controllers import Laws
from spaql.kernels.verify.closed_loop import advance, new_memory, put_box
from spaql.kernels.verify.forms import HIGH, LOW, A, C, R
from spaql.kernels.verify.points import play
from spaql.problems.classic import find_dynamics
from spaql.verify.closed_loop import ClosedLoop
from spaql.verify.replay import played
from verify_programs import controller_for, one_cut, plant, program


def random_tree(rng, dynamics, scale, *, oblique=False, kind=None):
    """Return a tree with a cut on each of some observations, and any kind of laws."""
    seen = dynamics.observation_space
    actions = dynamics.action_space
    dims = seen.shape[0]
    inner = int(rng.integers(1, 6))
    sums = rng.normal(size=(2, dims)) / scale if oblique else np.empty((0, dims))
    feature = np.concatenate([rng.integers(0, dims + len(sums), inner), np.full(inner + 1, -1)])
    size = np.concatenate([scale, np.ones(len(sums))])
    threshold = np.where(feature >= 0, rng.uniform(-0.7, 0.7, len(feature)) * size[feature], 0.0)
    left = np.full(2 * inner + 1, -1)
    right = np.full(2 * inner + 1, -1)
    left[:inner] = 2 * np.arange(inner) + 1
    right[:inner] = 2 * np.arange(inner) + 2
    order = np.arange(2 * inner + 1)
    n = inner + 1
    if hasattr(actions, "n"):
        laws = rng.integers(0, actions.n, n)
        if kind == "switching":
            laws = Laws(rng.normal(size=(n, actions.n, dims)) / scale, rng.normal(size=(n, actions.n)))
    elif kind == "constants":
        laws = rng.uniform(actions.low, actions.high, (n, 1))
    else:
        laws = Laws(rng.normal(size=(n, 1, dims)) / scale, rng.normal(size=(n, 1)))
    leaf = np.where(order >= inner, order - inner, -1)
    rules = {"feature": feature, "threshold": threshold, "left": left, "right": right, "leaf": leaf}
    return controller_for(dynamics, laws, **rules, combinations=sums)


def holds(part, state, period):
    """Return whether a part holds a state, by its intervals and by the bounds of its forms."""
    for j, x in enumerate(state):
        c, r, low, high = part[j, [C, R, LOW, HIGH]]
        if period[j] > 0.0:
            x -= np.round((x - 0.5 * (low + high)) / period[j]) * period[j]
        wide = r + np.abs(part[j, A:]).sum()
        slack = 1e-13 * (1.0 + abs(x)) if period[j] > 0.0 else 0.0
        if not (low - slack <= x <= high + slack and abs(x - c) <= wide * (1 + 1e-12) + slack):
            return False
    return True


def followed(loop, low, high, steps):
    """Return, for each step, the parts that a box is cut into, with their termination; None if not known."""
    arrays = loop.arrays
    mem = new_memory(arrays)
    n = len(low)
    put_box(mem.m, 0, low, high)
    parts = [mem.m[:n, : A + n].copy()]
    result = []
    for _ in range(steps):
        after = []
        for part in parts:
            count = advance(arrays, mem, part[np.newaxis].copy(), 0)
            if count < 0 or len(after) > 200:
                return result
            after += [(mem.parts[c].copy(), bool(mem.terminated[c])) for c in range(count)]
        result.append(after)
        parts = [part for part, ended in after if not ended]
    return result


def check(dynamics, tree, rng, low, high, steps, episodes, **disturbed):
    loop = ClosedLoop.of(dynamics, tree, **disturbed)
    period = loop.arrays.period
    checked = 0
    sets = followed(loop, low, high, steps)
    for k in range(episodes):
        start = rng.uniform(low, high) if k else np.array(low)
        states = played(dynamics, loop.tree, start, delayed=disturbed.get("delayed", False))
        for (state, ended), parts in zip(states, [None, *sets], strict=False):
            if parts is not None:
                checked += 1
                inside = any(flag == ended and (ended or holds(part, state, period)) for part, flag in parts)
                assert inside, (start, state, ended)
            if ended:
                break
    return checked


SCALES = {
    "CartPole-v1": [1.0, 1.0, 0.1, 1.0],
    "Pendulum-v1": [np.pi, 4.0],
    "MountainCar-v0": [0.9, 0.06],
    "MountainCarContinuous-v0": [0.9, 0.06],
}


@pytest.mark.parametrize("env", SCALES)
@pytest.mark.parametrize("kind", ["plain", "oblique", "other laws"])
def test_played_states_are_in_their_sets(env, kind):
    dynamics = find_dynamics(env)
    rng = np.random.default_rng(0)
    scale = np.array(SCALES[env])
    seen = np.array([1.0, 1.0, 4.0]) if env == "Pendulum-v1" else scale
    checked = 0
    for _ in range(12):
        listed = hasattr(dynamics.action_space, "n")
        other = ("switching" if listed else "constants") if kind == "other laws" else None
        tree = random_tree(rng, dynamics, seen, oblique=kind == "oblique", kind=other)
        middle = rng.uniform(-0.9, 0.9, len(scale)) * scale
        half = scale * rng.choice([1e-3, 1e-2, 5e-2])
        checked += check(dynamics, tree, rng, middle - half, middle + half, 6, 12)
    assert checked > 300


@settings(max_examples=thorough(100), deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_played_states_of_random_plants_are_in_their_sets(seed):
    rng = np.random.default_rng(seed)
    dynamics = plant(program(rng, int(rng.integers(2, 8)), 3))
    tree = random_tree(rng, dynamics, np.ones(2), oblique=bool(rng.integers(2)))
    middle = rng.uniform(-1.5, 1.5, 2)
    half = rng.choice([1e-6, 1e-2, 0.1, 0.4], 2)
    check(dynamics, tree, rng, middle - half, middle + half, 3, 8)


def test_what_the_compiled_step_returns_is_in_the_sets_or_they_are_not_known():
    """Of plants that return NaN or refuse a number somewhere: wherever a set is known, all is a number."""
    rng = np.random.default_rng(0)
    known_sets = 0
    checked = 0
    odd = 0
    for _ in range(12):
        dynamics = None
        while dynamics is None:
            with suppress(spaql.SettingError, ArithmeticError, ValueError, RuntimeWarning):  # at once
                dynamics = plant(program(rng, int(rng.integers(4, 9)), 2, partial=True))
        tree = controller_for(dynamics, [[0.25]])
        loop = ClosedLoop.of(dynamics, tree)
        step = dynamics.compiled_functions[1]
        for _ in range(60):
            middle = rng.uniform(-1.5, 1.5, 2)
            half = rng.choice([1e-6, 1e-2, 0.2], 2)
            middle = np.where(rng.random(2) < 0.2, 0.0, middle)
            sets = followed(loop, middle - half, middle + half, 1)
            known_sets += bool(sets)
            for k in range(12):
                state = tuple((middle + half * rng.uniform(-1, 1, 2) if k else middle).tolist())
                try:
                    after, _, ended = step(state, np.array([0.25]))
                except ArithmeticError:  # compiled, a division by 0 is refused, too
                    after = (np.nan, np.nan)
                    ended = False
                odd += not np.all(np.isfinite(after))
                for parts in sets:
                    checked += 1
                    assert np.all(np.isfinite(after)), (state, after)
                    inside = (flag == ended and holds(part, after, np.zeros(2)) for part, flag in parts)
                    assert any(inside), (state, after)
    assert known_sets > 100
    assert odd > 100
    assert checked > 1000


MIXED = (
    *("np.float32(x) - 0.1", "np.float32(x) * 3 - 0.3", "np.float32(0.1) * 0.3 - x", "GAIN * 0.3 - x"),
    *("max(np.float32(x), x)", "max(x, np.float32(x))", "min(np.float32(x), x)", "min(0.1, np.float32(x))"),
    *("1.0 if np.float32(x) < 0.1 else 0.0", "1.0 if x >= np.float32(0.1) else 0.0"),
    *("1.0 if np.float32(x) == 0.1 else 0.0", "float(np.float32(x)) * float(np.float32(x))"),
    *("math.sqrt(np.float64(x)) - np.float32(x)", "math.fabs(np.float64(x)) - np.float32(x)"),
    *("math.radians(np.float64(x)) - np.float32(x)", "math.pow(np.float64(x), 2) - np.float32(x)"),
    *("math.sin(np.float64(x)) - np.float32(x)", "np.float64(x) - np.float32(x)"),
    *(
        "max(np.float64(x), 0.1) - np.float32(x)",
        "math.sqrt(np.float32(x)) - 0.3",
        "np.float32(x) ** 3 - 1e-3",
    ),
)


@pytest.mark.parametrize("form", MIXED)
def test_sets_hold_what_numpy_and_numba_compute_with_single_precision(form):
    """Between a single and a float of Python, NumPy computes in single and Numba in double precision."""
    dynamics = plant(
        f"def step(state, action):\n    x, y = state\n    return (float({form}), y), 0.0, False\n"
    )
    plain = dynamics.step
    compiled = numba.njit(plain)
    first = np.float32(0.1)
    tree = controller_for(dynamics, [[0.0]])
    loop = ClosedLoop.of(dynamics, tree)
    near = [np.nextafter(first, np.float32(end)) for end in (0.0, 1.0)]
    middles = [0.5 * (float(x) + float(first)) for x in near]
    singles = [float(x) for x in (first, *near)]
    for x in (
        0.1,
        *singles,
        *middles,
        *np.random.default_rng(0).uniform(0.1 - 2e-8, 0.1 + 2e-8, 30).tolist(),
    ):
        (parts,) = followed(loop, np.array([x, 0.0]), np.array([x, 0.0]), 1)
        for step in (plain, compiled):
            (after, y), _, _ = step((x, 0.0), np.zeros(1))
            assert any(holds(part, (after, y), [0.0, 0.0]) for part, _ in parts), (x, after)


def test_disturbed_states_are_in_their_sets():
    dynamics = find_dynamics("Pendulum-v1")
    rng = np.random.default_rng(3)
    noise = np.array([0.02, 0.02, 0.1])
    push = np.array([0.01, 0.05])
    for _ in range(10):
        tree = random_tree(rng, dynamics, np.array([1.0, 1.0, 4.0]))
        middle = rng.uniform([-3, -4], [3, 4])
        loop = ClosedLoop.of(dynamics, tree, noise=noise, push=push)
        low = middle - 0.02
        high = middle + 0.02
        sets = followed(loop, low, high, 4)
        for _ in range(20):
            state = tuple(rng.uniform(low, high).tolist())
            for parts in sets:
                seen = np.array(dynamics.observe(state)) + rng.choice([-1.0, 1.0], 3) * noise
                action = tree.act(seen.astype(np.float32)[None])[0].astype(float)
                after, _, _ = dynamics.step(state, action)
                state = tuple((np.array(after) + rng.choice([-1.0, 1.0], 2) * push).tolist())
                assert any(holds(part, state, loop.arrays.period) for part, _ in parts)


def test_an_error_that_is_rounded_up_to_single_precision_is_covered():
    """An error of 0.1 of an observation of 0 is 0.1000000015 in single precision."""

    def step(state, action):
        return (0.5 * state[0] + action[0],), 0.0, False

    dynamics = spaql.Dynamics(
        id="verified/Rounded-v0",
        start=lambda rng: (0.0,),
        step=step,
        observations={"x": (-1, 1)},
        actions={"u": (-1, 1)},
        horizon=9,
    )
    tree = controller_for(dynamics, [[-1.0], [1.0]], **one_cut(0.1000000012))
    assert tree.act(np.array([[0.0 + 0.1]], np.float32))[0] == 1.0
    loop = ClosedLoop.of(dynamics, tree, noise=0.1)
    (parts,) = followed(loop, np.array([0.0]), np.array([1e-12]), 1)
    assert any(holds(part, (1.0,), [0.0]) for part, _ in parts)


@pytest.mark.parametrize("env", ["MountainCar-v0", "CartPole-v1"])
def test_states_with_a_late_action_of_a_list_are_in_their_sets(env):
    dynamics = find_dynamics(env)
    rng = np.random.default_rng(7)
    scale = np.array(SCALES[env])
    checked = 0
    for k in range(16):
        tree = random_tree(rng, dynamics, scale, kind="switching" if k % 2 else None)
        middle = rng.uniform(-0.9, 0.9, len(scale)) * scale
        half = scale * rng.choice([1e-3, 1e-2])
        first = rng.integers(0, dynamics.action_space.n) + rng.uniform(-0.4, 0.0)
        low = np.append(middle - half, first)
        high = np.append(middle + half, first + rng.choice([0.2, 0.9]))
        checked += check(dynamics, tree, rng, low, high, 4, 12, delayed=True)
    assert checked > 300


def test_a_set_in_two_leaves_is_cut():
    dynamics = find_dynamics("MountainCar-v0")
    tree = controller_for(dynamics, [0, 2], **one_cut(-0.5))
    (parts,) = followed(ClosedLoop.of(dynamics, tree), np.array([-0.6, -0.001]), np.array([-0.4, 0.001]), 1)
    assert len(parts) == 2
    widths = sorted(part[0, HIGH] - part[0, LOW] for part, _ in parts)
    assert widths[1] < 0.105


def test_numbers_that_nothing_depends_on_are_left_out():
    dynamics = find_dynamics("CartPole-v1")
    tree = controller_for(dynamics, [0, 1], **one_cut(0.0, feature=2))
    loop = ClosedLoop.of(dynamics, tree)
    assert loop.needed([2], flags=False) == [2, 3]
    assert loop.needed([2], flags=True) == [0, 1, 2, 3]
    smaller = loop.restricted([2, 3], flags=False)
    assert smaller.names == ("pole angle [rad]", "pole speed [rad/s]")
    assert not smaller.step.arrays.flags.any()
    after = dynamics.step((0.0, 0.0, 0.1, -0.2), 1)[0]
    assert smaller.step([0.1, -0.2, 1.0])[0].tolist() == list(after[2:])


def inside_any(parts, states, period):
    """Return for each state whether a part that has not terminated holds it, by intervals and forms."""
    found = np.zeros(len(states), np.bool_)
    for part, ended in parts:
        if ended:
            continue
        holds = np.ones(len(states), np.bool_)
        for j in range(states.shape[1]):
            c, r, low, high = part[j, [C, R, LOW, HIGH]]
            x = states[:, j]
            slack = 0.0
            if period[j] > 0.0:
                x = x - np.round((x - 0.5 * (low + high)) / period[j]) * period[j]
                slack = 1e-12
            wide = (r + np.abs(part[j, A:]).sum()) * (1 + 1e-12) + slack
            holds &= (x >= low - slack) & (x <= high + slack) & (np.abs(x - c) <= wide)
        found |= holds
    return found


def played_states(rng, boxes, starts, steps):
    """Return how many states of played episodes were compared with sets, and how many were outside."""
    compared = outside = 0
    for k in range(boxes):
        env = list(SCALES)[k % len(SCALES)]
        dynamics = find_dynamics(env)
        scale = np.array(SCALES[env])
        seen = np.array([1.0, 1.0, 4.0]) if env == "Pendulum-v1" else scale
        kind = [None, "switching" if hasattr(dynamics.action_space, "n") else "constants"][k % 2]
        tree = random_tree(rng, dynamics, seen, oblique=bool(rng.integers(2)), kind=kind)
        middle = rng.uniform(-0.9, 0.9, len(scale)) * scale
        half = scale * rng.choice([1e-4, 1e-3, 1e-2, 3e-2])
        loop = ClosedLoop.of(dynamics, tree)
        arrays = loop.arrays
        sets = followed(loop, middle - half, middle + half, steps)
        first = rng.uniform(middle - half, middle + half, (starts, len(scale)))
        path, ended = play(arrays.step, arrays.observe, arrays.tree, first, len(sets))
        for i, parts in enumerate(sets, 1):
            alive = (ended < 0) | (ended > i)
            compared += int(alive.sum())
            outside += int((~inside_any(parts, path[alive, i], arrays.period)).sum())
            assert any(flag for _, flag in parts) or not np.any(ended == i)
    return compared, outside


def test_played_states_of_many_boxes_are_in_their_sets():
    compared, outside = played_states(np.random.default_rng(0), 24, 400, 8)
    assert compared > 30_000
    assert outside == 0


@pytest.mark.long
def test_ten_million_played_states_are_in_their_sets():
    compared, outside = played_states(np.random.default_rng(1), 900, 1_500, 16)
    assert compared > 10_000_000
    assert outside == 0


def test_an_observation_that_depends_on_conditions_is_covered():
    def observe(state):
        return (state[0] if state[0] > 0.1 else -2.0 * state[0] - 0.3, state[1])

    def step(state, action):
        return (0.9 * state[0] + 0.2 * action[0], 0.8 * state[1] + 0.1 * state[0]), 0.0, False

    rng = np.random.default_rng(5)
    dynamics = spaql.Dynamics(
        id="observed/Plant-v0",
        start=lambda rng: (0.0, 0.0),
        step=step,
        observe=observe,
        observations={"x": (-2, 2), "y": (-2, 2)},
        actions={"u": (-1, 1)},
        horizon=50,
    )
    for _ in range(12):
        tree = random_tree(rng, dynamics, np.ones(2))
        middle = rng.uniform(-0.3, 0.3, 2)
        half = rng.choice([0.01, 0.2], 2)
        check(dynamics, tree, rng, middle - half, middle + half, 3, 12)
