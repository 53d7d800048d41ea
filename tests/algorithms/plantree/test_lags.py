"""Lags in the state of a learned plant: what they are, and which are chosen."""

from __future__ import annotations

from pathlib import Path

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete
from hypothesis import given, settings
from hypothesis import strategies as st

import spaql
from spaql.algorithms.plantree.lags import Lags, chosen_lags
from spaql.algorithms.replay import ActionCode, ReplayMemory
from spaql.controllers import Controller
from spaql.controllers.features import LastAction, Observed
from spaql.problems.environment import DisturbedEnv


def memory_of(episodes: list[tuple[np.ndarray, np.ndarray]], code: ActionCode) -> ReplayMemory:
    """Return a memory of episodes: observations, one more than actions, and actions in raw units."""
    memory = ReplayMemory(episodes[0][0].shape[1], code.numbers)
    for seen, actions in episodes:
        memory.add_episode(seen, code.standard(actions), np.zeros(len(actions)), ended=False)
    return memory


@settings(max_examples=30, deadline=None)
@given(
    differences=st.tuples(st.integers(0, 2), st.integers(0, 2)),
    actions=st.integers(0, 3),
    lengths=st.lists(st.integers(1, 6), min_size=1, max_size=3),
    seed=st.integers(0, 1000),
)
def test_the_lags_of_a_state_are_the_features_of_a_controller(
    differences: tuple[int, int], actions: int, lengths: list[int], seed: int
) -> None:
    rng = np.random.default_rng(seed)
    space = Box(1.0, 3.0, (1,), np.float64)
    lags = Lags(differences, actions)
    controller = Controller.of_laws(
        [Observed("x"), Observed("v"), *lags.features(["x", "v"], ["u"])],
        {"u": {"x": 0.5, "v": 0.3}},
        {"u": 2.0},
        observation_space=Box(-np.inf, np.inf, (2,), np.float64),
        action_space=space,
        observations=("x", "v"),
        actions=("u",),
        sample_time=1.0,
    )
    episodes = []
    features = []
    for length in lengths:
        seen = rng.normal(size=(length + 1, 2))
        memory = controller.new_memory(1)
        samples = [controller.sample(seen[t : t + 1], memory) for t in range(length + 1)]
        episodes.append((seen, np.array([one.action[0] for one in samples[:-1]])))
        features.append(np.array([one.inputs[0] for one in samples]))
    code = ActionCode(space)
    extended = lags.extend(memory_of(episodes, code), code)
    np.testing.assert_allclose(extended.states, np.concatenate([rows[:-1] for rows in features]), atol=1e-12)
    np.testing.assert_allclose(extended.nexts, np.concatenate([rows[1:] for rows in features]), atol=1e-12)


def linear(delay: int, hidden: bool, noise: float, seed: int = 0) -> tuple[ReplayMemory, ActionCode]:
    """Return episodes of a mass with damping, with dead time, or of which the speed is not seen."""
    rng = np.random.default_rng(seed)
    code = ActionCode(Box(-1.0, 1.0, (1,), np.float64))
    episodes = []
    for _ in range(20):
        x = rng.normal()
        v = 0.0
        line = [0.0] * delay
        rows = [(x, v)]
        actions = np.repeat(rng.uniform(-1, 1, (30, 1)), 2, axis=0)
        for action in actions:
            line.append(float(action[0]))
            v += 0.2 * line.pop(0) - 0.1 * v
            x += 0.2 * v
            rows.append((x, v))
        seen = np.array(rows) + noise * rng.normal(size=(len(rows), 2))
        episodes.append((seen[:, :1] if hidden else seen, actions))
    return memory_of(episodes, code), code


@pytest.mark.parametrize("noise", [0.0, 0.003])
@pytest.mark.parametrize("delay", [0, 1, 2, 3])
def test_dead_time_is_found_and_nothing_else(delay: int, noise: float) -> None:
    found = chosen_lags(*linear(delay, False, noise))
    assert found.lags == Lags((0, 0), delay)
    assert found.error < 0.1


def test_a_hidden_speed_is_found() -> None:
    found = chosen_lags(*linear(0, True, 0.0))
    assert found.lags.differences == (1,)
    assert found.error < 0.01


def test_a_late_pendulum_gets_a_tree_over_its_last_action(tmp_path: Path) -> None:
    late = DisturbedEnv(gymnasium.make("Pendulum-v1"), delay=2)

    def new() -> spaql.PlanTree:
        return spaql.PlanTree(late, seed=1, effort=0.02, partitions=4, horizon=200, lags="auto")

    agent = new().learn(2800)
    assert agent.lags is not None
    assert {"u0 a sample before", "u0 2 samples before"} <= {*agent.lags}
    policy = agent.policy
    assert policy.remembers
    assert any(isinstance(one, LastAction) for one in policy.features)
    assert agent._learner.model.dims == 3
    part = new().learn(2800, callback=lambda _, row: row["training_steps"] < 2200)
    part.save(tmp_path / "part.spaql")
    resumed = spaql.load(tmp_path / "part.spaql", env=late)
    resumed.learn(2800 - resumed.training_steps)
    assert resumed.to_bytes() == agent.to_bytes()
    assert str(resumed.policy) == str(policy)


def test_lags_are_for_actions_with_a_range() -> None:
    with pytest.raises(spaql.SettingError, match="actions with a range"):
        spaql.PlanTree("CartPole-v1", lags="auto")
    with pytest.raises(spaql.SettingError, match="must be auto or off"):
        spaql.PlanTree("Pendulum-v1", lags="some")


def test_where_nothing_is_late_nothing_is_chosen() -> None:
    agent = spaql.PlanTree("Pendulum-v1", seed=1, effort=0.02, partitions=4, lags="auto").learn(4000)
    assert agent.lags == []
    assert not agent.policy.remembers


def test_few_episodes_say_nothing() -> None:
    memory, code = linear(2, False, 0.0)
    some = memory.only(np.arange(len(memory.begins)) < 4)
    assert chosen_lags(some, code).lags == Lags((0, 0))


def test_a_list_of_actions_has_the_number_of_the_last_one() -> None:
    code = ActionCode(Discrete(3, start=5))
    memory = memory_of([(np.zeros((3, 1)), np.array([6, 7]))], code)
    extended = Lags((0,), 1).extend(memory, code)
    assert extended.states[:, 1].tolist() == [5.0, 6.0]
    assert extended.nexts[:, 1].tolist() == [6.0, 7.0]
