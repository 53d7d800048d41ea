"""Names are labels and their order is data: every way from one file to the next keeps the same controller.

Problems have set-points, inputs, outputs and actions in any order and with any names. What is read back,
resumed, improved, edited, simplified, exported, fitted or distilled acts as what is in memory, to the bit.
"""

import itertools
import runpy
import string
from collections.abc import Callable, Iterator
from keyword import iskeyword
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import spaql
from fmus import tank_fmu
from nightly import thorough
from spaql import archive
from spaql.controllers import Laws, edited, simplified

PHASES = (Phase.explicit, Phase.reuse, Phase.generate)  # to shrink an example takes minutes
FEW = settings(
    max_examples=thorough(25), deadline=None, suppress_health_check=list(HealthCheck), phases=PHASES
)
IDS = itertools.count()
LETTERS = st.text(string.ascii_letters, min_size=1, max_size=6).filter(lambda name: not iskeyword(name))


def start(rng):
    return (0.0, 0.0, rng.uniform(-1.0, 1.0), rng.uniform(-1.0, 1.0))


def step(state, action):
    first, second, wanted_first, wanted_second = state
    first += 0.2 * (action[0] + 0.3 * action[1] - 0.3 * first)
    second += 0.2 * (2.0 * action[1] - 0.1 * action[0] - 0.5 * second)
    cost = (first - wanted_first) ** 2 + 2.0 * (second - wanted_second) ** 2
    return (first, second, wanted_first, wanted_second), -cost, False


def mixed(names: list[str], exchanged: bool) -> spaql.Dynamics:
    """Return a plant of two inputs and two outputs, with these names and its set-points in either order."""
    pairs = [(names[0], names[2]), (names[1], names[3])]
    return spaql.Dynamics(
        id=f"order/Mixed{next(IDS)}-v0",
        start=start,
        step=step,
        observations=dict.fromkeys(names[:4], (-20.0, 20.0)),
        actions=dict.fromkeys(names[4:], (-1.0, 1.0)),
        horizon=40,
        setpoints=dict(pairs[::-1] if exchanged else pairs),
        sample_time=1.0,
    )


plants = st.builds(
    mixed, st.lists(LETTERS, min_size=6, max_size=6, unique_by=str.lower), exchanged=st.booleans()
)


def actions(policy: Any, observations: np.ndarray) -> np.ndarray:
    """Return the actions along one episode."""
    playing = policy.for_episodes(1)
    return np.array([playing.act(row[None], np.array([i]), None)[0] for i, row in enumerate(observations)])


def assert_same(found: Any, expected: Any) -> None:
    """Compare actions at random observations, and returns from the same starts."""
    space = expected.problem.states.space
    walk = np.random.default_rng(1).uniform(-1.5, 1.5, (50, *space.shape)).astype(space.dtype)
    np.testing.assert_array_equal(actions(found.policy, walk), actions(expected.policy, walk))
    returns = [spaql.evaluate(one, episodes=4, seed=3).returns for one in (found, expected)]
    np.testing.assert_array_equal(*returns)
    assert list(found.problem.setpoints.items()) == list(expected.problem.setpoints.items())
    assert found.problem.states.names == expected.problem.states.names
    assert found.problem.actions.names == expected.problem.actions.names


def law(problem: spaql.Problem) -> spaql.Design:
    """Return a tree of two affine laws, which treats its observations and actions differently."""
    far = [[-1.0, 0.1, 1.0, 0.0], [0.0, -0.4, 0.0, 0.4]]
    near = [[-0.5, 0.0, 0.5, 0.0], [0.1, -0.2, 0.0, 0.2]]
    tree = spaql.Controller(
        feature=[1, -1, -1],
        threshold=[0.25, 0.0, 0.0],
        left=[1, -1, -1],
        right=[2, -1, -1],
        leaf=[-1, 0, 1],
        laws=Laws([far, near], [[0.1, 0.0], [0.0, -0.1]]),
        observation_space=problem.states.space,
        action_space=problem.actions.space,
        observations=problem.states.names,
        actions=problem.actions.names,
    )
    return spaql.Design(tree, problem)


@FEW
@given(plants)
def test_set_points_in_any_order_survive_saving_loading_resuming_and_exporting(
    tmp_path_factory: pytest.TempPathFactory, plant: spaql.Dynamics
) -> None:
    folder = tmp_path_factory.mktemp("mixed")
    agent = spaql.TreeSearch(plant.id, seed=1).learn(total_timesteps=4_000)
    agent.save(folder / "agent.spaql")
    assert_same(spaql.load(folder / "agent.spaql"), agent)
    spaql.Design(agent.policy, agent.problem).save(folder / "controller.spaql")
    assert_same(spaql.load(folder / "controller.spaql"), agent)

    half = spaql.TreeSearch(plant.id, seed=1)
    half.learn(total_timesteps=4_000, callback=lambda _, row: row["iteration"] < 2)
    half.save(folder / "half.spaql")
    resumed = spaql.load(folder / "half.spaql").learn(total_timesteps=4_000 - half.training_steps)
    assert_same(resumed, half.learn(total_timesteps=4_000 - half.training_steps))

    spaql.export.python(agent, folder / "code.py", points=200)
    code = runpy.run_path(str(folder / "code.py"))["Controller"]()
    walk = np.random.default_rng(2).uniform(-1.5, 1.5, (30, 4))
    exported = np.array([code.act(list(row)) for row in walk])
    expected = actions(agent.policy, walk.astype(np.float64))
    np.testing.assert_array_equal(exported.astype(np.float32), expected.astype(np.float32).reshape(30, -1))


@FEW
@given(plants)
def test_trees_in_any_order_survive_editing_simplifying_and_exporting(
    tmp_path_factory: pytest.TempPathFactory, plant: spaql.Dynamics
) -> None:
    folder = tmp_path_factory.mktemp("tree")
    whole = law(spaql.make_problem(plant))
    changed = spaql.Design(edited(whole.controller, 1, [0.5, -0.5]), whole.problem)
    walk = np.random.default_rng(3).uniform(-1.5, 1.5, (200, 4)).astype(np.float32)
    small = spaql.Design(simplified(whole.controller, walk, price=20.0), whole.problem)
    for name, one in (("whole", whole), ("edited", changed), ("small", small)):
        one.save(folder / f"{name}.spaql")
        assert_same(spaql.load(folder / f"{name}.spaql"), one)
        spaql.export.json(one, folder / f"{name}.json", points=200)
        read = spaql.Design(spaql.export.controller_from_json(folder / f"{name}.json"), one.problem)
        np.testing.assert_array_equal(actions(read.policy, walk), actions(one.policy, walk))


def without_set_points(plant: spaql.Dynamics) -> spaql.Dynamics:
    """Return the same plant, of which nothing is declared, so that trees are searched for."""
    return spaql.Dynamics(
        id=f"order/Plain{next(IDS)}-v0",
        start=start,
        step=step,
        observations=plant.observations,
        actions=plant.actions,
        horizon=40,
    )


@settings(FEW, max_examples=thorough(10))
@given(plants)
def test_trees_in_any_order_survive_improving_and_distilling(
    tmp_path_factory: pytest.TempPathFactory, plant: spaql.Dynamics
) -> None:
    folder = tmp_path_factory.mktemp("improved")
    problem = spaql.make_problem(without_set_points(plant))
    rules = law(problem).controller
    improved = spaql.TreeSearch(problem, seed=0).start_from(rules)
    np.testing.assert_array_equal(
        spaql.evaluate(improved, episodes=4).returns, spaql.evaluate(rules, problem, episodes=4).returns
    )
    improved.learn(3_000).save(folder / "improved.spaql")
    assert_same(spaql.load(folder / "improved.spaql"), improved)
    copied = spaql.distil(
        lambda seen: np.clip([seen[2] - seen[0], seen[3] - seen[1]], -1, 1),
        problem,
        total_timesteps=0,
        rounds=1,
        episodes=4,
        judged_episodes=4,
        seed=0,
    )
    copied.save(folder / "distilled")
    assert_same(spaql.load(folder / "distilled"), copied.agent)


@settings(FEW, max_examples=thorough(10))
@given(st.lists(LETTERS, min_size=4, max_size=4, unique_by=str.lower), st.booleans())
def test_logs_with_columns_in_any_order_give_the_same_controller(
    tmp_path_factory: pytest.TempPathFactory, names: list[str], exchanged: bool
) -> None:
    """Which of the columns comes first in the log is no data: what was asked for is."""
    rng = np.random.default_rng(0)
    rows: dict[str, list[float]] = {name: [] for name in ("run number", *names)}
    state = (0.0, 0.0)
    for i in range(900):
        state = tuple(rng.uniform(-1, 1, 2)) if i % 15 == 0 else state
        u = rng.uniform(-1, 1, 2)
        for name, value in zip(rows, (i // 15, *state, *u), strict=True):
            rows[name].append(float(value))
        state = (0.8 * state[0] + 0.4 * u[0], 0.7 * state[1] + 0.2 * u[1])
    columns = dict(reversed(rows.items())) if exchanged else rows
    first, second = names[:2]
    fits = [
        spaql.fit(
            table,
            observations=names[:2],
            action=names[2:],
            action_range=[-1, 1],
            episode="run number",
            cost=f"{first}**2 + 3 * {second}**2",
            effort=0.01,
            leaves=4,
            members=2,
            partitions=2,
            anyway=True,
        )
        for table in (rows, columns)
    ]
    folder = tmp_path_factory.mktemp("fitted")
    agents = [one.agent for one in fits]
    fits[1].save(folder)
    agents.append(spaql.load(folder))
    walk = rng.uniform(-1, 1, (100, 2)).astype(np.float32)
    for agent in agents[1:]:
        np.testing.assert_array_equal(actions(agent.policy, walk), actions(agents[0].policy, walk))


class Unnamed(gymnasium.Env[Any, Any]):
    """Two rooms without names, as most environments are."""

    observation_space = Box(-20.0, 20.0, (4,), np.float32)
    action_space = Box(-1.0, 1.0, (2,), np.float32)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.state = start(self.np_random)
        return np.array(self.state, np.float32), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.state, reward, ended = step(self.state, action)
        return np.array(self.state, np.float32), float(reward), ended, False, {}


@pytest.fixture(scope="module")
def unnamed() -> Iterator[str]:
    gymnasium.register("order/Unnamed-v0", Unnamed, max_episode_steps=40)
    yield "order/Unnamed-v0"
    gymnasium.registry.pop("order/Unnamed-v0")


@pytest.mark.parametrize(
    "trained",
    [
        lambda env: spaql.TreeSearch(env, seed=0).learn(3_000),
        lambda env: spaql.PlanTree(env, seed=0, effort=0.02).learn(400),
        lambda env: spaql.SPAQL(env, seed=0).learn(iterations=5),
    ],
    ids=["treesearch", "plantree", "spaql"],
)
def test_an_environment_without_names_survives_every_path(
    trained: Callable[[str], Any], unnamed: str, tmp_path: Path
) -> None:
    agent = trained(unnamed)
    agent.save(tmp_path / "agent.spaql")
    loaded = spaql.load(tmp_path / "agent.spaql")
    assert_same(loaded, agent)
    if not isinstance(agent, spaql.SPAQL):
        assert loaded.mirror == agent.mirror
    tree = spaql.controller_of(agent)
    spaql.Design(tree, agent.problem).save(tmp_path / "tree.spaql")
    assert_same(spaql.load(tmp_path / "tree.spaql"), spaql.Design(tree, agent.problem))
    spaql.export.c(tree, tmp_path / "code.c", points=1000)


@pytest.mark.parametrize("inputs", list(itertools.permutations(["valve", "leak"])), ids="-".join)
@pytest.mark.parametrize("outputs", list(itertools.permutations(["level", "rate"])), ids="-".join)
def test_an_fmu_with_inputs_and_set_points_in_any_order_survives_saving_and_loading(
    inputs: tuple[str, ...], outputs: tuple[str, ...], tmp_path: Path
) -> None:
    pytest.importorskip("fmpy")
    options = {
        "cost": "(level - level_set_point)**2 + (rate - rate_set_point)**2 + 0.1 * leak",
        "step_size": 1.0,
        "horizon": 20,
        "inputs": {name: [0.0, 1.0 if name == "valve" else 0.02] for name in inputs},
        "outputs": {name: [-2.0, 2.0] for name in outputs},
        "setpoints": {name: [0.0, 0.5] for name in reversed(outputs)},
    }
    env = str(tank_fmu(tmp_path))
    agent = spaql.PlanTree(env, seed=0, effort=0.02, options=options).learn(120)
    agent.save(tmp_path / "agent.spaql")
    loaded = spaql.load(tmp_path / "agent.spaql")
    assert_same(loaded, agent)
    assert list(loaded.problem.options["inputs"]) == list(inputs)


def test_a_file_that_acts_otherwise_is_reported(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """With keys sorted, as they once were, the set-points are exchanged: nothing says "saved"."""
    plant = mixed(["b", "a", "wanted b", "wanted a", "u", "v"], exchanged=False)
    agent = spaql.TreeSearch(plant.id, seed=1).learn(total_timesteps=4_000)
    kept = archive.plain

    def in_alphabetical_order(data: Any) -> Any:
        made = kept(data)
        if isinstance(made, dict) and "problem" in made:
            made["problem"]["setpoints"] = dict(sorted(made["problem"]["setpoints"].items()))
        return made

    monkeypatch.setattr(archive, "plain", in_alphabetical_order)
    with pytest.raises(spaql.ArchiveError, match="does not act as the saved agent"):
        agent.save(tmp_path / "agent.spaql")
