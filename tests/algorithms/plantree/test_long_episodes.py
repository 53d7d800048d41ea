"""Episodes of many thousand steps."""

import math
import time

import pytest

import spaql
from spaql import Dynamics
from spaql.algorithms import PlanTreeLearner


def plant(horizon: int) -> Dynamics:
    def start(rng):
        return (rng.uniform(-1.0, 1.0), 0.0)

    def step(state, action):
        x, v = state
        v = 0.99 * v + 0.05 * action[0]
        x = min(max(x + 0.05 * v, -2.0), 2.0)
        return (x, v), -x * x - 0.01 * action[0] * action[0], False

    return Dynamics(
        id=f"test/Long{horizon}-v0",
        start=start,
        step=step,
        observations={"x [m]": (-2, 2), "v [m/s]": (-math.inf, math.inf)},
        actions={"force [N]": (-1, 1)},
        horizon=horizon,
    )


@pytest.mark.long
def test_long_episodes_take_no_longer_than_short_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    """111 s against 17 before: whole episodes were played from a thousand starts by every candidate."""
    monkeypatch.setattr(PlanTreeLearner, "_looks_affine", lambda self: False)  # it would hand the plant over
    spent = {}
    for horizon in (100, 20_000):
        agent = spaql.PlanTree(plant(horizon), seed=0, effort=0.1)
        agent.learn(total_timesteps=400, progress_bar=False)  # what is compiled, is compiled
        agent = spaql.PlanTree(plant(horizon), seed=0, effort=0.1)
        began = time.process_time()
        agent.learn(total_timesteps=5000, progress_bar=False)
        spent[horizon] = time.process_time() - began
    assert spent[20_000] < 3 * spent[100]


def test_a_budget_below_one_episode_is_pointed_out(capsys: pytest.CaptureFixture[str]) -> None:
    agent = spaql.PlanTree(plant(300), seed=0, effort=0.001)
    agent.learn(total_timesteps=250, progress_bar=True)
    assert "250 steps is less than one episode, which may last 300" in capsys.readouterr().err
    agent.learn(total_timesteps=300, progress_bar=True)
    assert "less than one episode" not in capsys.readouterr().err
