"""Several seeds in one call: which is picked, what it cost, and that workers change nothing."""

import math
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.wrappers import TransformReward
from hypothesis import given
from hypothesis import strategies as st

import spaql
from sent_worlds import TANK, Own, Walk
from spaql.agents.tries import Try, pick, select
from spaql.errors import SettingError
from spaql.simulate.seeds import try_seeds

QUICK: dict[str, Any] = {"iterations": 3, "progress_bar": False, "selection_episodes": 5}


def saved(agent: spaql.Agent, folder: Path) -> bytes:
    agent.save(folder / "agent.spaql")
    return (folder / "agent.spaql").read_bytes()


@given(
    st.lists(
        st.tuples(st.lists(st.integers(-3, 3), min_size=3, max_size=3), st.none() | st.integers(1, 3)),
        min_size=1,
        max_size=5,
    )
)
def test_the_pick_is_that_of_the_definition(rows: list[tuple[list[int], int | None]]) -> None:
    tries = [
        Try(i, np.array(returns, np.float64), 0, size, "leaf", 0, 0) for i, (returns, size) in enumerate(rows)
    ]
    means = [sum(returns) / 3 for returns, _ in rows]
    best = rows[means.index(max(means))][0]
    error_of_best = math.sqrt(sum((x - max(means)) ** 2 for x in best) / 2) / math.sqrt(3)
    wanted: tuple[float, float, int] | None = None
    for i, (returns, size) in enumerate(rows):
        differences = [a - b for a, b in zip(best, returns, strict=True)]
        mean = sum(differences) / 3
        error = math.sqrt(sum((d - mean) ** 2 for d in differences) / 2) / math.sqrt(3)
        if mean <= min(1.96 * error, error_of_best) + 1e-12:
            key = (size or math.inf, -means[i], i)
            wanted = key if wanted is None else min(wanted, key)
    assert wanted is not None
    assert pick(tries) == wanted[2]


def test_a_small_policy_that_fails_now_and_then_is_not_picked() -> None:
    """Its failures make the interval of the difference so wide that it holds 0."""
    rng = np.random.default_rng(0)
    good = rng.normal(-150, 20, 100)
    erratic = np.where(np.arange(100) % 66 == 0, -1500.0, good)
    other = good + rng.normal(0, 1, 100)
    tries = [
        Try(i, returns, 0, size, "leaf", 0, 0)
        for i, (returns, size) in enumerate([(good, 9), (erratic, 2), (other, 5)])
    ]
    assert pick(tries) == 2


@pytest.mark.parametrize(
    ("make", "settings"),
    [
        (spaql.AQL, {"rollouts": 2}),
        (spaql.SPAQL, {"rollouts": 2}),
        (spaql.SPAQLTS, {"rollouts": 2}),
        (spaql.PlanTree, {"effort": 0.02}),
        (Own, {"rollouts": 2}),
    ],
)
def test_the_agent_becomes_the_try_that_is_picked(
    make: type[spaql.Agent], settings: dict[str, Any], tmp_path: Path
) -> None:
    agent = make("cartpole200", seed=5, **settings)
    assert agent.learn(tries=3, **QUICK) is agent
    tried = agent.tries
    assert tried is not None
    assert [one.seed for one in tried.tries] == try_seeds(5, 3)
    assert tried.tries[0].seed == 5
    assert agent.seed == tried.picked.seed
    alone = make("cartpole200", seed=agent.seed, **settings).learn(iterations=3, progress_bar=False)
    assert saved(agent, tmp_path) == saved(alone, tmp_path)
    agent.learn(iterations=2, progress_bar=False)
    alone.learn(iterations=2, progress_bar=False)
    assert saved(agent, tmp_path) == saved(alone, tmp_path)


def test_every_step_is_counted() -> None:
    counted = 0

    class Counted(Walk):
        def step(self, action: Any) -> Any:
            nonlocal counted
            counted += 1
            return super().step(action)

    # Unbounded observations, which are measured once for all tries.
    class Unbounded(Counted):
        def __init__(self) -> None:
            super().__init__()
            self.observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (1,), np.float64)

    agent = spaql.SPAQL(Unbounded(), horizon=8, seed=0, rollouts=2)
    assert agent.problem.interactions == counted == 1000
    agent.learn(tries=3, **QUICK)
    assert agent.tries is not None
    # Each try trains 3 episodes, evaluates 2 in each of 4 iterations, and plays 5 to be selected.
    assert agent.tries.training_steps == 3 * 3 * 8
    assert agent.tries.training_interactions == 1000 + 3 * (3 + 4 * 2) * 8
    assert agent.tries.selection_steps == 3 * 5 * 8
    assert agent.tries.interactions == counted


@pytest.mark.parametrize("env", ["pendulum5", "Pendulum-v1"])
def test_tries_start_alike_and_are_judged_from_other_starts(env: str) -> None:
    made = [
        spaql.SPAQL(env, seed=seed, levels=5, rollouts=2).learn(iterations=4, progress_bar=False)
        for seed in (1, 2)
    ]
    first, second = (select(agent, episodes=20, seed=1) for agent in made)
    assert np.array_equal(first.starts, second.starts)
    assert not np.array_equal(first.returns, second.returns)
    assert len(np.unique(first.starts, axis=0)) == 20
    for seed in (0, 1, 2):
        judged = spaql.evaluate(made[0], episodes=20, seed=seed).starts
        assert not {tuple(row) for row in judged} & {tuple(row) for row in first.starts}


def test_one_try_is_the_training_that_there_was(tmp_path: Path) -> None:
    one = spaql.SPAQL("cartpole200", seed=3, rollouts=2).learn(iterations=3, tries=1, progress_bar=False)
    plain = spaql.SPAQL("cartpole200", seed=3, rollouts=2).learn(iterations=3, progress_bar=False)
    assert one.tries is None
    assert saved(one, tmp_path) == saved(plain, tmp_path)


def test_a_callback_sees_every_try_in_this_process_and_is_refused_in_others() -> None:
    seen = []
    agent = spaql.SPAQL("cartpole200", seed=3, rollouts=2)
    agent.learn(tries=2, callback=lambda one, row: seen.append(one.seed), **QUICK)
    assert seen == [seed for seed in try_seeds(3, 2) for _ in range(4)]
    with pytest.raises(SettingError, match="callback cannot be called from a worker process"):
        spaql.SPAQL("cartpole200").learn(tries=2, workers=2, callback=lambda one, row: None, **QUICK)


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"tries": 0}, "tries is 0, and must be a whole number"),
        ({"tries": 2, "workers": 0}, "workers is 0, and must be a whole number"),
        ({"workers": 2}, "workers is for tries"),
        ({"tries": 2, "checkpoint": "a.spaql"}, "A checkpoint contains one agent"),
        (
            {"tries": 2, "selection_episodes": 0},
            "selection_episodes is 0, and must be a whole number, at least 1",
        ),
        ({"tries": 2, "total_timesteps": 5}, "either iterations or total_timesteps"),
    ],
)
def test_what_cannot_be_is_refused(how: dict[str, Any], message: str) -> None:
    agent = spaql.SPAQL("cartpole200", rollouts=2)
    with pytest.raises(SettingError, match=message):
        agent.learn(**{**QUICK, **how})


def test_a_trained_agent_is_refused() -> None:
    agent = spaql.SPAQL("cartpole200", rollouts=2).learn(iterations=1, progress_bar=False)
    with pytest.raises(SettingError, match="Tries start untrained"):
        agent.learn(tries=2, **QUICK)


def test_what_cannot_be_sent_is_refused_before_a_process_is_started() -> None:
    env = TransformReward(gymnasium.make("CartPole-v1"), lambda reward: 2 * reward)
    agent = spaql.SPAQL(env, horizon=20, rollouts=2)
    with pytest.raises(SettingError, match=r"cannot be sent to a worker process .*workers=1"):
        agent.learn(tries=2, workers=2, **QUICK)
    assert agent.learn(tries=2, **QUICK).tries is not None


@pytest.mark.long
def test_workers_make_the_same_of_ones_own_agents_and_environments(tmp_path: Path) -> None:
    for env in (TANK, "SentWalk-v0", gymnasium.make("SentWalk-v0"), Walk()):
        horizon = 8 if isinstance(env, Walk) else None
        here, apart = (Own(env, seed=1, rollouts=2, horizon=horizon) for _ in range(2))
        here.learn(tries=2, **QUICK)
        apart.learn(tries=2, workers=2, **QUICK)
        assert saved(here, tmp_path) == saved(apart, tmp_path)
        assert here.tries is not None
        assert apart.tries is not None
        assert [one.returns.tolist() for one in here.tries.tries] == [
            one.returns.tolist() for one in apart.tries.tries
        ]


def test_a_plant_that_another_process_does_not_make_is_refused() -> None:
    spaql.Dynamics(
        id="OnlyHere-v0",
        start=lambda rng: (rng.uniform(0.0, 1.0),),
        step=lambda state, action: (state, -state[0], False),
        observations={"level": (0.0, 1.0)},
        actions=("off", "on"),
        horizon=5,
    )
    with pytest.raises(SettingError, match="OnlyHere-v0 is not made, or not as it was") as refusal:
        spaql.SPAQL("OnlyHere-v0", seed=0, rollouts=2).learn(tries=2, workers=2, **QUICK)
    assert "In try" in refusal.value.__notes__[0]


def test_a_worker_that_dies_is_replaced(tmp_path: Path) -> None:
    mark = str(tmp_path / "died")
    apart = spaql.SPAQL(Walk(mark), horizon=8, seed=1, rollouts=2).learn(tries=2, workers=2, **QUICK)
    assert Path(mark).exists()
    here = spaql.SPAQL(Walk(mark), horizon=8, seed=1, rollouts=2).learn(tries=2, **QUICK)
    assert saved(apart, tmp_path) == saved(here, tmp_path)
