"""Environments that break their word: a typed error with step and value, and nothing learned from it."""

import hashlib
import math
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

import spaql
from spaql.simulate import EpisodeRunner

Answer = tuple[Any, Any, Any, Any, Any]


class World(gymnasium.Env):
    """Two numbers that are pushed up or down; once it is switched on, step 3 is as bad as can be."""

    def __init__(self, bad: Callable[["World", Answer], Any], switch: list[bool]) -> None:
        self.bad = bad
        self.switch = switch
        self.observation_space = spaces.Box(-1.0, 1.0, (2,))
        self.action_space = spaces.Discrete(2)

    def __deepcopy__(self, memo: dict) -> "World":
        return World(self.bad, self.switch)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.steps = 0
        self.state = self.np_random.uniform(-0.5, 0.5, 2).astype(np.float32)
        return self.state.copy(), {}

    def step(self, action):
        self.steps += 1
        self.state[0] = np.clip(self.state[0] + (0.1 if action else -0.1), -1, 1)
        answer = self.state.copy(), float(-abs(self.state[0])), False, False, {}
        return self.bad(self, answer) if self.steps == 3 and self.switch[0] else answer


def boom(env: World, answer: Answer) -> Answer:
    raise RuntimeError("the simulator has diverged")


def spaces_changed(env: World, answer: Answer) -> Answer:
    env.observation_space = spaces.Box(-1.0, 1.0, (3,))
    return np.zeros(3, np.float32), *answer[1:]


def observing(value: Any) -> Callable[[World, Answer], Any]:
    return lambda env, answer: (value, *answer[1:])


def rewarding(value: Any) -> Callable[[World, Answer], Any]:
    return lambda env, answer: (answer[0], value, *answer[2:])


BAD: dict[str, tuple[Callable[[World, Answer], Any], str]] = {
    "NaN": (observing(np.array([0.0, np.nan], np.float32)), r"holds NaN in number 1: \[ 0. nan\]"),
    "infinity": (observing(np.array([-np.inf, 0.0], np.float32)), "infinite in number 0"),
    "shape": (observing(np.zeros(3, np.float32)), r"shape \(3,\), not \(2,\)"),
    "scalar": (observing(0.5), r"shape \(\), not \(2,\)"),
    "text": (observing(np.array(["a", "b"])), "type <U1"),
    "objects": (observing(np.array([None, None])), "type object"),
    "complex": (observing(np.array([1j, 0.0])), "type complex128"),
    "ragged": (observing([[1.0], 2.0]), "step 3"),
    "reward NaN": (rewarding(np.nan), "reward nan"),
    "reward infinite": (rewarding(-np.inf), "reward -inf"),
    "reward text": (rewarding("1.0"), "'1.0' where a reward"),
    "reward none": (rewarding(None), "None where a reward"),
    "reward vector": (rewarding(np.array([1.0, 2.0])), "where a reward"),
    "terminated none": (lambda env, a: (a[0], a[1], None, *a[3:]), "None where terminated"),
    "truncated text": (lambda env, a: (*a[:3], "no", a[4]), "'no' where truncated"),
    "four answers": (lambda env, a: a[:4], r"expected 5, got 4\)"),
    "raises": (
        boom,
        r"raised RuntimeError: the simulator has diverged( \(.*test_guard.py, line \d+, in boom\))?\.",
    ),
    "other spaces": (spaces_changed, r"shape \(3,\), not \(2,\)"),
}

TAKEN = ("reward text", "terminated none", "truncated text")
"""What Gymnasium's vector environments turn into numbers before anybody sees it."""


def saved(agent: spaql.Agent, path: Path) -> str:
    agent.save(path)
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.mark.parametrize("agent", [spaql.AQL, spaql.SPAQL, spaql.SPAQLTS, spaql.PlanTree])
@pytest.mark.parametrize("compiled", [True, False])
def test_an_iteration_that_is_interrupted_while_it_is_assessed_never_was(
    agent: type[spaql.Agent], compiled: bool, tmp_path: Path
) -> None:
    few = {"effort": 0.01} if agent is spaql.PlanTree else {"rollouts": 2}
    begun, whole = (agent("cartpole200", seed=1, compiled=compiled, **few) for _ in range(2))
    begun.learn(iterations=3, progress_bar=False)
    before = saved(begun, tmp_path / "a.spaql")
    assess = begun._learner.assess

    def interrupted(mean_return: float) -> None:
        assess(mean_return)
        raise KeyboardInterrupt

    for _ in range(3):
        begun._learner.assess = interrupted
        with pytest.raises(KeyboardInterrupt):
            begun.learn(iterations=3, progress_bar=False)
        del begun._learner.assess
        assert saved(begun, tmp_path / "a.spaql") == before
    for part in (3, 6):
        whole.learn(iterations=part, progress_bar=False)
    begun.learn(iterations=6, progress_bar=False)
    assert saved(begun, tmp_path / "a.spaql") == saved(whole, tmp_path / "b.spaql")


@pytest.mark.parametrize("agent", [spaql.AQL, spaql.SPAQL])
@pytest.mark.parametrize("name", BAD)
def test_nothing_is_learned_from_a_step_that_cannot_be(
    name: str, agent: type[spaql.Agent], tmp_path: Path
) -> None:
    (bad, message), switch, checkpoint = BAD[name], [False], tmp_path / "checkpoint.spaql"
    trained = agent(World(bad, switch), horizon=8, seed=0, rollouts=2)
    trained.learn(iterations=3, checkpoint=checkpoint, checkpoint_every=1, progress_bar=False)
    before = saved(trained, tmp_path / "a.spaql")
    partition = trained._learner.trainee.digest()
    switch[0] = True
    with pytest.raises(spaql.BadEnvironmentError, match=message) as caught:
        trained.learn(iterations=3, checkpoint=checkpoint, checkpoint_every=1, progress_bar=False)
    assert "step 3 of a training episode, World" in str(caught.value)
    assert trained._learner.trainee.digest() == partition
    assert saved(trained, tmp_path / "b.spaql") == before
    assert saved(spaql.load(checkpoint), tmp_path / "c.spaql") == before
    if name not in TAKEN:
        with pytest.raises(spaql.BadEnvironmentError, match="step 3 of an evaluation episode"):
            spaql.evaluate(trained, episodes=2)
    switch[0] = False  # the agent goes on as one that never met the fault
    other = spaql.load(tmp_path / "a.spaql", env=World(bad, switch))
    on = [
        saved(one.learn(iterations=2, progress_bar=False), tmp_path / "d.spaql") for one in (trained, other)
    ]
    assert on[0] == on[1]


def test_spaces_that_change_between_episodes_are_noticed() -> None:
    def change(env: World, answer: Answer) -> Answer:
        env.action_space = spaces.Discrete(3)
        return answer

    agent = spaql.SPAQL(World(change, [True]), horizon=8, seed=0, rollouts=1)
    with pytest.raises(
        spaql.BadEnvironmentError, match=r"changed a space from Discrete\(2\) to Discrete\(3\)"
    ):
        agent.learn(iterations=3, progress_bar=False)


@pytest.mark.parametrize("reward", [1e308, -1e308])
def test_rewards_that_overflow_are_named(reward: float, tmp_path: Path) -> None:
    def always(env: World, answer: Answer) -> Answer:
        env.steps -= 1  # so that every step from here on is step 3
        return answer[0], reward, *answer[2:]

    agent = spaql.SPAQL(World(always, [True]), horizon=8, seed=0, rollouts=1)
    with pytest.raises(spaql.BadEnvironmentError, match=r"step 4 of .* add up to -?inf"):
        agent.learn(iterations=2, progress_bar=False)
    agent.save(tmp_path / "a.spaql")
    assert np.isfinite(spaql.load(tmp_path / "a.spaql")._learner.trainee.balls.q).all()


def test_the_last_observation_may_leave_the_bounds_and_others_by_a_little() -> None:
    def end(env: World, answer: Answer) -> Answer:
        return np.array([0.0, 1.7], np.float32), answer[1], True, *answer[3:]

    spaql.SPAQL(World(end, [True]), horizon=8, seed=0, rollouts=1).learn(iterations=2, progress_bar=False)
    a_little = observing(np.array([0.0, 1.15], np.float32))
    spaql.SPAQL(World(a_little, [True]), horizon=8, seed=0, rollouts=1).learn(
        iterations=2, progress_bar=False
    )


@pytest.mark.parametrize("kind", [np.int32, np.uint8, np.int64])
@pytest.mark.parametrize("agent", [spaql.SPAQL, spaql.PlanTree])
def test_a_box_of_whole_numbers_holds_no_others(kind: type, agent: type[spaql.Agent]) -> None:
    class Counter(World):
        def __init__(self, whole: bool) -> None:
            super().__init__(lambda env, answer: answer, [False])
            self.whole = whole
            self.observation_space = spaces.Box(0, 9, (2,), kind)

        def __deepcopy__(self, memo: dict) -> "Counter":
            return Counter(self.whole)

        def seen(self):
            return (5 + 4 * self.state).astype(kind) if self.whole else 5 + 4 * self.state

        def reset(self, *, seed=None, options=None):
            super().reset(seed=seed)
            return self.seen(), {}

        def step(self, action):
            return self.seen(), *super().step(action)[1:]

    few = {"effort": 0.02} if agent is spaql.PlanTree else {"rollouts": 2}
    name = np.dtype(kind).name
    said = f"At step 0 .*(one of {name}: make it one|Cannot cast)"
    with pytest.raises(spaql.BadEnvironmentError, match=said):
        agent(Counter(whole=False), horizon=8, seed=0, **few).learn(total_timesteps=40, progress_bar=False)
    trained = agent(Counter(whole=True), horizon=8, seed=0, **few).learn(
        total_timesteps=40, progress_bar=False
    )
    assert np.isfinite(spaql.evaluate(trained, episodes=2).mean)


def test_numbers_of_a_list_are_in_it() -> None:
    class Corridor(World):
        def __init__(self, bad: Any, switch: list[bool]) -> None:
            super().__init__(bad, switch)
            self.observation_space = spaces.Discrete(5)

        def __deepcopy__(self, memo: dict) -> "Corridor":
            return Corridor(self.bad, self.switch)

        def reset(self, *, seed=None, options=None):
            super().reset(seed=seed)
            return 2, {}

        def step(self, action):
            answer = super().step(action)
            return (2 if isinstance(answer[0], np.ndarray) else answer[0]), *answer[1:]

    for value, message in ((5, "out of bounds"), (1.5, "step 3 of .*float64")):
        agent = spaql.SPAQL(Corridor(observing(value), [True]), horizon=8, seed=0, rollouts=1)
        with pytest.raises(spaql.BadEnvironmentError, match=message):
            agent.learn(iterations=1, progress_bar=False)


def plant(**changes: Any) -> spaql.Dynamics:
    def start(rng):
        return (rng.uniform(-0.5, 0.5), 0.0)

    whole = {
        "id": "test/BadWorld-v0",
        "start": start,
        "observations": {"x": (-1, 1), "t": (0, 20)},
        "actions": ("down", "up"),
        "horizon": 10,
    }
    return spaql.Dynamics(**(whole | changes))


def far_too_much(state, action):
    return (state[0], state[1] + 1.0), 1e308, False


def escaped(state, action):
    return (state[0] if state[1] < 5.0 else math.inf, state[1] + 1.0), 0.0, False


def priceless(state, action):
    return (state[0], state[1] + 1.0), math.nan if state[1] == 5.0 else 1.0, False


@pytest.mark.parametrize(
    ("step", "message"),
    [
        (escaped, r"step 6 of .* the observation \[inf  6.\]"),
        (priceless, "step 6 of .* the reward nan"),
        (
            far_too_much,
            "step 2 of .*number 0., .* the reward 1e.308; rewards add up to inf",
        ),
    ],
)
def test_a_compiled_plant_is_watched_as_well(step: Callable[..., Any], message: str, tmp_path: Path) -> None:
    agent = spaql.AQL(plant(step=step), seed=0, rollouts=3)
    with pytest.raises(spaql.BadEnvironmentError, match=message):
        spaql.evaluate(agent, episodes=3)
    before = saved(agent, tmp_path / "a.spaql")
    mark = agent._learner.mark()
    with (
        closing(EpisodeRunner(agent.problem, 1)) as runner,
        pytest.raises(spaql.BadEnvironmentError, match="step"),
    ):
        agent._learner.iterate(runner, np.random.default_rng(0), trained=True)
    assert agent._learner.trainee.n_balls > agent._learner.trainee.trees
    agent._learner.go_back(mark)
    assert saved(agent, tmp_path / "b.spaql") == before
