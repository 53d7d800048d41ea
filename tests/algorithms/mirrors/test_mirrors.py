"""Mirrors: found in memories where they are, and only there, and used for the plant and the controller."""

import dataclasses
import runpy
from collections.abc import Callable
from pathlib import Path

import gymnasium
import numpy as np
import pytest
from click.testing import CliRunner
from gymnasium.spaces import Box, Discrete
from hypothesis import given
from hypothesis import strategies as st

import spaql
from plantree_simulations import remember
from random_trees import random_tree
from spaql.algorithms.mirrors.detection import _BLOCK, find_mirror
from spaql.algorithms.mirrors.mirror import Mirror, mirror_from
from spaql.algorithms.plantree.learned_plant import CAUTIOUS, fit_plant
from spaql.algorithms.plantree.rule_trees import Half, half_of, with_smallest_half, within_space
from spaql.algorithms.replay import ActionCode, ReplayMemory, Scale
from spaql.cli import main
from spaql.controllers import Controller
from spaql.controllers.mirrored import folded, leaves_to_read
from spaql.errors import SettingError
from spaql.export import ExportedPolicy
from spaql.kernels.plantree.controllers import ControllerTree
from spaql.kernels.plantree.rollout import Simulation, play_all

QUICK = {"effort": 0.005, "leaves": 8}


class Windy(gymnasium.Wrapper):
    """A pendulum in a constant wind, which has no mirror."""

    def step(self, action):
        result = self.env.step(action)
        pendulum = self.env.unwrapped
        pendulum.state = pendulum.state + np.array([0.05, 1.0]) * 3.0 * 0.03 * 0.05  # 0.03 Nm
        return pendulum._get_obs(), *result[1:]


def recorded(
    env: str, steps: int, seed: int, noise: float = 0.0, *, wind: bool = False
) -> tuple[ReplayMemory, ActionCode]:
    """Play random actions that are held for a while; noise is a share of the deviation of observations."""
    world = gymnasium.make(env)
    rng = np.random.default_rng(seed)
    world = Windy(world) if wind else world
    code = ActionCode(world.action_space)
    memory = ReplayMemory(world.observation_space.shape[0], code.numbers)
    over = True
    held = 0
    for _ in range(steps):
        if over:
            state = world.reset(seed=int(rng.integers(2**31)))[0].astype(np.float64)
            memory.begin()
            held = 0
        if held == 0:
            held = int(rng.integers(1, 20))
            action = code.tried()[rng.integers(len(code.tried()))]
        held -= 1
        after, reward, terminated, truncated, _ = world.step(code.raw(action))
        memory.add(state, action, float(reward), after.astype(np.float64), ended=terminated)
        state = after.astype(np.float64)
        over = terminated or truncated
    return (disturbed(memory, code, noise, rng) if noise else memory), code


def disturbed(memory: ReplayMemory, code: ActionCode, noise: float, rng: np.random.Generator) -> ReplayMemory:
    arrays = memory.arrays()
    width = arrays["states"].std(axis=0)
    for name in ("states", "nexts"):
        arrays[name] = arrays[name] + noise * width * rng.normal(size=arrays[name].shape)
    listed = int(code.space.n) if isinstance(code.space, Discrete) else 0
    return ReplayMemory.from_arrays(arrays, len(width), code.numbers, listed)


def cart(
    rng: np.random.Generator,
    ends: Callable[[float], bool] = lambda x: False,
    slope: float = 0.0,
    steps: int = 2000,
) -> tuple[ReplayMemory, ActionCode]:
    """A cart with a sensor on either side, and four actions: nothing, push left, brake, push right."""
    code = ActionCode(Discrete(4))
    memory = ReplayMemory(4, 1)
    x = 0.0
    v = 0.0

    def seen() -> np.ndarray:
        return np.array([x, v, np.exp(-((x + 1) ** 2)), np.exp(-((x - 1) ** 2))])

    over = True
    action = 0
    for step in range(steps):
        if over:
            x, v = rng.uniform(-1, 1, 2)
            memory.begin()
        if step % 4 == 0:
            action = int(rng.integers(4))
        state = seen()
        v = 0.97 * (
            (0.7 if action == 2 else 1.0) * v + 0.3 * ((action == 3) - (action == 1)) - 0.1 * x + slope
        )
        x += 0.2 * v
        over = ends(x)
        memory.add(state, np.array([float(action)]), -x * x, seen(), ended=over)
        over = over or step % 100 == 99
    return memory, code


MIRRORS = {
    "CartPole-v1": Mirror((0, 1, 2, 3), (-1, -1, -1, -1), (1, 0)),
    "Pendulum-v1": Mirror((0, 1, 2), (1, -1, -1), (0,), (-1,)),
}
CART = Mirror((0, 1, 3, 2), (-1, -1, 1, 1), (0, 3, 2, 1))


@pytest.mark.parametrize("noise", [0.0, 0.01])
@pytest.mark.parametrize("env", ["CartPole-v1", "Pendulum-v1", "MountainCar-v0", "MountainCarContinuous-v0"])
def test_a_mirror_is_found_where_there_is_one(env: str, noise: float) -> None:
    memory, code = recorded(env, 2000, seed=1, noise=noise)
    assert find_mirror(memory, code) == MIRRORS.get(env)


def test_observations_and_actions_are_exchanged() -> None:
    assert find_mirror(*cart(np.random.default_rng(0))) == CART
    both = cart(np.random.default_rng(0), ends=lambda x: abs(x) > 1.2)
    assert both[0].ended.sum() > 10
    assert find_mirror(*both) == CART


def test_a_slope_or_one_end_that_differs_is_no_mirror() -> None:
    assert find_mirror(*cart(np.random.default_rng(0), slope=0.1)) is None
    one_sided = cart(np.random.default_rng(0), ends=lambda x: x > 1.0)
    assert one_sided[0].ended.sum() > 10
    assert find_mirror(*one_sided) is None


def room(seed: int) -> tuple[ReplayMemory, ActionCode]:
    """A heated room, insulated so well that the outdoor temperature, the last number, does not matter."""
    rng = np.random.default_rng(seed)
    code = ActionCode(Box(0.0, 1.0, (1,)))
    memory = ReplayMemory(3, 1)
    for _ in range(25):
        inside, wanted, outdoor = rng.uniform([14, 18, -8], [26, 24, 8])
        memory.begin()
        for _ in range(100):
            action = rng.choice(code.tried()[:, 0], 1)
            state = np.array([inside, wanted, outdoor])
            inside += 0.05 * (10.0 - inside) + 2.0 * float(code.raw(action)[0])
            after = np.array([inside, wanted, outdoor])
            memory.add(state, action, -abs(inside - wanted), after, ended=False)
    return memory, code


@pytest.mark.parametrize("seed", [100, 101, 102])
def test_the_sign_of_one_number_is_no_mirror(seed: int) -> None:
    """Warmth outside is no frost, though its sign does not matter to these predictions."""
    assert find_mirror(*room(seed)) is None


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_slight_wind_is_no_mirror(seed: int) -> None:
    """Errors of a fit are larger than what it does, and do not cancel."""
    assert find_mirror(*recorded("Pendulum-v1", 6000, seed)) == MIRRORS["Pendulum-v1"]
    assert find_mirror(*recorded("Pendulum-v1", 6000, seed, wind=True)) is None


def test_nothing_is_found_where_nothing_can_be_told() -> None:
    memory, code = recorded("Pendulum-v1", 2000, seed=1)
    assert find_mirror(memory.until(300), code) is None  # too few steps
    arrays = memory.arrays()
    rng = np.random.default_rng(0)
    noise = {name: rng.normal(size=arrays[name].shape) for name in ("nexts", "rewards")}
    assert find_mirror(ReplayMemory.from_arrays(arrays | noise, 3, 1, 0), code) is None
    above = arrays["states"][:, 2] > 0.0  # one side only
    kept = {name: arrays[name][above] for name in ("states", "actions", "rewards", "nexts", "ended")}
    assert (
        find_mirror(ReplayMemory.from_arrays(kept | {"begins": np.zeros(1, np.int64)}, 3, 1, 0), code) is None
    )


def test_nothing_is_found_where_the_halves_have_no_states_in_common() -> None:
    """The halves are blocks by turns, and so are the values of the second number."""
    memory, code = recorded("Pendulum-v1", 2000, seed=1)
    arrays = memory.arrays()
    turn = (np.arange(2001) // _BLOCK % 2).astype(float)
    arrays["states"] = np.column_stack([arrays["states"], turn[:-1]])
    arrays["nexts"] = np.column_stack([arrays["nexts"], turn[1:]])
    assert find_mirror(ReplayMemory.from_arrays(arrays, 4, 1, 0), code) is None


def test_a_number_on_one_side_of_0_changes_no_sign() -> None:
    memory, code = recorded("Pendulum-v1", 2000, seed=1)
    arrays = memory.arrays()
    contact = (np.random.default_rng(0).random(2001) < 0.03).astype(float)
    arrays["states"] = np.column_stack([arrays["states"], contact[:-1]])
    arrays["nexts"] = np.column_stack([arrays["nexts"], contact[1:]])
    found = find_mirror(ReplayMemory.from_arrays(arrays, 4, 1, 0), code)
    assert found == Mirror((0, 1, 2, 3), (1, -1, -1, 1), (0,), (-1,))


def test_the_mirrored_fit_is_the_fit_of_doubled_data() -> None:
    memory, code = recorded("Pendulum-v1", 600, seed=0)
    both = MIRRORS["Pendulum-v1"].memory(memory)
    arrays = memory.arrays()
    flip = np.array([1.0, -1.0, -1.0])
    doubled = {
        "states": np.concatenate([arrays["states"], arrays["states"] * flip]),
        "actions": np.concatenate([arrays["actions"], -arrays["actions"]]),
        "rewards": np.tile(arrays["rewards"], 2),
        "nexts": np.concatenate([arrays["nexts"], arrays["nexts"] * flip]),
        "ended": np.tile(arrays["ended"], 2),
        "begins": np.concatenate([arrays["begins"], arrays["begins"] + len(memory)]),
    }
    plants = [
        fit_plant(one, Scale.of(one), code, [np.arange(len(one))], squares=True, margin=CAUTIOUS)
        for one in (both, ReplayMemory.from_arrays(doubled, 3, 1, 0))
    ]
    for ours, theirs in zip(*plants, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    scale = Scale.of(both)  # so that a mirror changes signs of standardised states, too
    np.testing.assert_array_equal(scale.mean[1:], 0.0)
    assert len(memory) == 600


def test_a_controller_of_the_half_returns_what_the_whole_one_does() -> None:
    rng = np.random.default_rng(0)
    code = ActionCode(Box(-1.0, 1.0, (1,)))
    mirror = Mirror((0, 1), (-1, -1), (0,), (-1,))

    def step(s: np.ndarray, u: np.ndarray) -> tuple[np.ndarray, float]:
        return np.array([s[0] + 0.3 * s[1], s[1] - 0.3 * s[0] + 0.2 * u[0]]), -1.0

    memory = remember(step, rng.uniform(-1, 1, (1000, 2)), rng.uniform(-1, 1, (1000, 1)))
    both = mirror.memory(memory)
    plant = fit_plant(both, Scale.of(both), code, [np.arange(2000)], squares=True, margin=CAUTIOUS)
    starts = rng.uniform(-1, 1, (50, 2))
    whole = Simulation(
        plant, code.inputs(code.tried(), squares=True), starts, np.zeros(50, np.int64), 60, 0.5
    )
    low = np.array([[0.2, 0.5, -0.4]])
    high = np.array([[-0.3, 0.1, 0.7]])
    turned = np.array([-1.0, 1.0, 1.0])  # the image of c + K s
    half_tree = ControllerTree(
        np.array([1, -1, -1]), np.array([0.3, 0.0, 0.0]), np.array([1, 0, 0]), np.array([low, low, high])
    )
    whole_tree = ControllerTree(
        np.array([0, 1, 1, -1, -1, -1, -1]),
        np.array([0.0, -0.3, 0.3, 0.0, 0.0, 0.0, 0.0]),
        np.array([1, 3, 5, 0, 0, 0, 0]),
        np.array([low, low, low, high * turned, low * turned, low, high]),
    )
    returns = play_all(whole, whole_tree)
    assert np.ptp(returns) > 1.0  # by the price of changes of the action, across the cut, too
    np.testing.assert_allclose(play_all(Half(mirror, 0).simulation(whole), half_tree), returns, rtol=1e-6)


def unfolded(rng: np.random.Generator, kind: str) -> tuple[Controller, Half, Controller]:
    """A random tree of one half, and the same for all observations; two observations may be exchanged."""
    dims = 3
    half = random_tree(rng, dims, int(rng.integers(1, 12)), kind)
    half = dataclasses.replace(half, threshold=np.clip(half.threshold, -1e9, 1e9))
    code = ActionCode(half.action_space)
    swap = kind == "choices" and rng.random() < 0.5
    order, signs = ((0, 2, 1), (-1, 1, 1)) if swap else ((0, 1, 2), (-1, *rng.choice([-1, 1], 2).tolist()))
    numbers = code.numbers
    if isinstance(half.action_space, Discrete):
        mirror = Mirror(order, signs, tuple(range(int(half.action_space.n)))[::-1])
    else:
        mirror = Mirror(order, signs, tuple(range(numbers)), tuple(rng.choice([-1, 1], numbers).tolist()))
    one = Half(mirror, 0)
    return half, one, one.unfold(half)


def images(mirror: Mirror, tree: Controller, actions: np.ndarray) -> np.ndarray:
    if isinstance(tree.action_space, Discrete):
        first = int(tree.action_space.start)
        return first + np.array(mirror.action_order)[actions - first]
    return actions * np.array(mirror.action_signs)


def points_of(tree: Controller, rng: np.random.Generator) -> np.ndarray:
    """Observations on thresholds and beside them, none with 0 where the halves meet."""
    points = rng.normal(size=(300, tree.dims)) * 10.0 ** rng.integers(-3, 4, (300, tree.dims))
    for j, cuts in enumerate(tree.thresholds):
        if len(cuts):
            near = np.concatenate([cuts, np.nextafter(cuts, -np.inf), np.nextafter(cuts, np.inf), -cuts])
            chosen = rng.random(len(points)) < 0.5
            points[chosen, j] = rng.choice(near, int(chosen.sum()))
    points[np.abs(points[:, 0]) < 1e-300, 0] = 1.0
    return points


@given(st.integers(0, 2**32), st.sampled_from(["choices", "laws"]))
def test_the_action_in_the_mirror_is_the_mirrored_action(seed: int, kind: str) -> None:
    rng = np.random.default_rng(seed)
    half, one, tree = unfolded(rng, kind)
    points = points_of(tree, rng)
    turned = one.mirror.states(points)
    np.testing.assert_array_equal(tree.act(turned), images(one.mirror, tree, tree.act(points)))
    np.testing.assert_array_equal(tree.act(np.abs(points)), half.act(np.abs(points)))
    exported = ExportedPolicy(tree)
    steps = np.zeros(len(points), np.int64)
    np.testing.assert_array_equal(
        exported.act(turned, steps, None), images(one.mirror, tree, exported.act(points, steps, None))
    )
    np.testing.assert_array_equal(half_of(tree, 0).act(points), half.act(points))


@given(st.integers(0, 2**32), st.sampled_from(["choices", "laws"]))
def test_the_smallest_half_does_the_same(seed: int, kind: str) -> None:
    rng = np.random.default_rng(seed)
    _, one, tree = unfolded(rng, kind)
    rules = within_space(tree)
    small = with_smallest_half(rules, one.mirror)
    points = points_of(tree, rng)
    np.testing.assert_array_equal(small.act(points), rules.act(points))
    assert leaves_to_read(small) <= leaves_to_read(rules)
    if folded(rules) is not None:
        assert folded(small) is not None or small.n_leaves < leaves_to_read(rules)
    other = Mirror((0, 2, 1), (-1, 1, 1), one.mirror.action_order, one.mirror.action_signs)
    np.testing.assert_array_equal(with_smallest_half(rules, other).act(points), rules.act(points))


@given(st.integers(0, 2**32), st.sampled_from(["choices", "laws"]))
def test_a_mirrored_tree_is_written_for_one_half(seed: int, kind: str) -> None:
    rng = np.random.default_rng(seed)
    half, one, tree = unfolded(rng, kind)
    fold = folded(tree)
    if half.n_leaves == 1:
        assert fold is None
        return
    assert fold is not None
    assert fold.side == 0
    points = points_of(tree, rng)
    np.testing.assert_array_equal(fold.half.act(points), half.act(points))
    for point in points[:2]:
        here = np.where(point[0] < 0.0, one.mirror.states(point[np.newaxis]), point)[0]
        mirrored = ", in the mirror" if point[0] < 0.0 else ""
        leaf = f"leaf {half.leaf_number(here)} of {half.n_leaves} for one half{mirrored}"
        assert tree.explain(point).leaf == leaf
    assert leaves_to_read(tree) == half.n_leaves == tree.n_leaves // 2
    assert str(tree).startswith("mirror so that ")
    assert len(str(tree).splitlines()) == 1 + len(str(half).splitlines())
    # With one number changed by a bit it is no mirror image any more.
    threshold = tree.threshold.copy()
    node = int(rng.choice(np.flatnonzero(tree.feature >= 0)[1:]))
    threshold[node] = np.nextafter(np.nextafter(threshold[node], np.inf), np.inf)
    assert folded(dataclasses.replace(tree, threshold=threshold)) is None


def test_exactly_0_belongs_to_the_half_that_is_written() -> None:
    half, _, tree = unfolded(np.random.default_rng(4), "choices")
    points = np.random.default_rng(0).normal(size=(50, 3))
    for zero in (0.0, -0.0):
        points[:, 0] = zero
        np.testing.assert_array_equal(tree.act(points), half.act(points))


@pytest.mark.parametrize("kind", ["choices", "laws"])
def test_exported_code_is_mirrored(kind: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    _, one, tree = unfolded(rng, kind)
    spaql.export.c(tree, tmp_path / "controller.c")  # compares it with the tree, to the last bit
    spaql.export.python(tree, tmp_path / "controller.py")
    act = runpy.run_path(str(tmp_path / "controller.py"))["act"]
    points = points_of(tree, rng)
    here, there = (
        np.array([act(point.tolist()) for point in some]) for some in (points, one.mirror.states(points))
    )
    np.testing.assert_array_equal(there, images(one.mirror, tree, here))


def test_a_mirror_by_names() -> None:
    problem = spaql.PlanTree("Pendulum-v1").problem
    assert mirror_from("sin(angle),speed:torque", problem) == MIRRORS["Pendulum-v1"]
    assert mirror_from("sin(angle), speed [rad/s]", problem).text(problem) == "sin(angle),speed:torque"
    problem = spaql.PlanTree("CartPole-v1").problem
    whole = MIRRORS["CartPole-v1"]
    assert mirror_from(whole.text(problem), problem) == whole


@pytest.mark.parametrize(
    ("env", "mirror", "reason"),
    [
        ("Pendulum-v1", True, "must be auto, off, or names"),
        ("Pendulum-v1", "height", "names the observation 'height', and there are cos"),
        ("Pendulum-v1", "speed:force", "names the action 'force', and there are torque"),
        ("Pendulum-v1", "speed,speed", "can be named once"),
        ("Pendulum-v1", "sin(angle)=speed", "changes the sign of no observation"),
        ("CartPole-v1", "pole angle:push left", "swap two of them"),
    ],
)
def test_a_mirror_that_cannot_be_is_refused(env: str, mirror: object, reason: str) -> None:
    with pytest.raises(SettingError, match=reason.replace("(", r"\(")):
        spaql.PlanTree(env, mirror=mirror)


def test_a_given_mirror_is_used_counted_and_printed(tmp_path: Path) -> None:
    agent = spaql.PlanTree("Pendulum-v1", seed=0, mirror="sin(angle),speed:torque", **QUICK)
    agent.learn(total_timesteps=600, progress_bar=False)
    assert agent.history["interactions"][-1] == 600
    assert agent.history["mirrored"][-1] == 1
    assert agent.mirror == "sin(angle),speed:torque"
    assert agent.model.steps == 600
    assert agent.policy.laws.gain.any()
    points = np.random.default_rng(0).uniform([-1, -1, -8], [1, 1, 8], (200, 3))
    turned = points * [1.0, -1.0, -1.0]
    np.testing.assert_array_equal(agent.policy.act(turned), -agent.policy.act(points))
    agent.save(tmp_path / "agent.spaql")
    again = spaql.load(tmp_path / "agent.spaql")
    assert again.mirror == agent.mirror
    np.testing.assert_array_equal(again.model.plant.law, agent.model.plant.law)


class Spring(gymnasium.Env):
    """A mass on a spring whose observations and actions have no names."""

    observation_space = Box(-np.inf, np.inf, (2,), np.float64)
    action_space = Box(-1.0, 1.0, (1,), np.float64)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self._state = self.np_random.uniform(-1, 1, 2)
        return self._state.copy(), {}

    def step(self, action):
        x, v = self._state
        v = v - 0.2 * np.sin(x) + 0.2 * float(action[0])
        self._state = np.array([x + 0.2 * v, v])
        return self._state.copy(), -x * x, False, False, {}


@pytest.mark.parametrize(
    ("algorithm", "steps", "settings"), [(spaql.PlanTree, 1_500, QUICK), (spaql.TreeSearch, 40_000, {})]
)
def test_a_mirror_of_an_environment_without_names_has_default_names(algorithm, steps, settings) -> None:
    agent = algorithm(Spring(), seed=0, horizon=50, **settings).learn(steps, progress_bar=False)
    assert agent.problem.states.names == agent.problem.actions.names == ()
    assert agent.mirror == "x0,x1:u0"
    given = algorithm(Spring(), seed=0, horizon=50, mirror=agent.mirror, **settings)
    assert mirror_from(given.settings.mirror, given.problem) == Mirror((0, 1), (-1, -1), (0,), (-1,))


def test_a_run_finds_the_mirror_and_says_so(tmp_path: Path) -> None:
    run = tmp_path / "run"
    words = ["--quiet", "--effort", "0.02", "--leaves", "8", "--seed", "1"]
    train = [
        "train",
        "CartPole-v1",
        "--steps",
        "1200",
        "--out",
        str(run),
        *words,
    ]
    done = CliRunner().invoke(main, train)
    assert done.exit_code == 0, done.output
    mirror = "cart position,cart speed,pole angle,pole speed:push left=push right"
    assert f"mirror        {mirror}" in done.output
    shown = CliRunner().invoke(main, ["show", str(run), "--digits", "3"])
    assert "for one half and their mirror images" in shown.output
    assert "mirror so that" in shown.output


def test_an_interrupted_run_finds_the_same(tmp_path: Path) -> None:
    def make(**more) -> spaql.Agent:
        agent = spaql.PlanTree("CartPole-v1", horizon=60, seed=3, **QUICK)
        return agent.learn(total_timesteps=900, progress_bar=False, **more)

    make(callback=lambda agent, row: row["training_steps"] < 600).save(tmp_path / "part.spaql")
    part = spaql.load(tmp_path / "part.spaql")
    assert 600 <= part.training_steps < 900
    part.learn(total_timesteps=900 - part.training_steps, progress_bar=False)
    whole = make()
    assert whole.history["mirrored"].max() == 1
    assert part.to_bytes() == whole.to_bytes()
