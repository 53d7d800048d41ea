"""A plant whose step draws random numbers, in the interactive page: they are drawn anew at every step."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
from gymnasium.spaces import Box

import spaql
from browser import Page
from spaql.controllers import Controller, Laws
from spaql.kernels.draws import draws_of
from spaql.plugins.page.card import policy_card
from spaql.plugins.page.play import compute_play
from spaql.plugins.page.play_plant import nominal
from spaql.problems import Dynamics
from spaql.problems.tapes import trace_nominal

GUST = (0.0, 0.6, -0.3, 0.1)


def start(rng):
    return rng.uniform(-1.0, 1.0), 0.0


def step(state, action, parameters, rng):
    """Draw what a step can draw, some of it on one path only."""
    x, v = state
    v += 0.1 * (action[0] - parameters[0] * x) + rng.normal(0.0, 0.2) + GUST[rng.integers(0, 4)]
    if rng.random() < 0.3:
        v += rng.uniform(-0.5, 1.0)
    else:
        v *= 0.9 + rng.normal(0.0, 0.01)
    x += 0.1 * v
    return (x, v), -x * x, False


def windy(**changes):
    """A mass on a spring in the wind."""
    given = {
        "id": "test/Windy-v0",
        "start": start,
        "step": step,
        "observations": {"position [m]": (-math.inf, math.inf), "speed [m/s]": (-math.inf, math.inf)},
        "actions": {"force [N]": (-5.0, 5.0)},
        "parameters": {"stiffness": 1.0},
        "horizon": 60,
    }
    return Dynamics(**{**given, **changes})


def controller(plant):
    problem = spaql.make_problem(plant.id)
    tree = Controller(
        laws=Laws([[[-2.0, -3.0]]], [[0.0]]),
        observation_space=problem.states.space,
        action_space=Box(-5.0, 5.0, (1,), np.float32),
        observations=tuple(plant.observations),
    )
    return spaql.Design(tree, problem)


@pytest.fixture(scope="module")
def windy_page(tmp_path_factory):
    """A controller of the windy mass, and its page."""
    folder = tmp_path_factory.mktemp("windy")
    source = controller(windy())
    source.save(folder / "policy.spaql")
    (folder / "page.html").write_text(policy_card(folder / "policy.spaql", source, episodes=2))
    return source, folder / "page.html"


def test_the_step_draws_what_it_draws_in_python(page: Page, windy_page) -> None:
    """The generator is the same: only logarithms and cosines may differ in the last bit."""
    source, file = windy_page
    page.open(file)
    assert page.errors == []
    _, python, observe = nominal(source.problem.dynamics).functions
    drawn = []
    for first in page.run("spaqlPage.data.starts")[:5]:
        path = page.run(f"spaqlPage.rollout({first})")
        assert len(path["actions"]) == source.problem.horizon
        state = tuple(first)
        total = 0.0
        for t, action in enumerate(path["actions"]):
            seen = np.array(observe(state)).astype(np.float32)
            np.testing.assert_allclose(np.ravel(source.policy.act(seen[None])[0]), action, rtol=1e-5)
            before = state
            state, reward, _ = python(state, np.array(action))
            total += reward
            np.testing.assert_allclose(path["states"][t + 1], state, rtol=1e-6, atol=1e-8)
            drawn.append(state[1] - before[1] - 0.1 * (action[0] - before[0]))
        assert path["total"] == pytest.approx(total, rel=1e-6)
    assert len(np.unique(drawn)) == len(drawn)
    assert np.std(drawn) > 0.1


def test_the_mean_return_is_that_of_an_evaluation(page: Page, windy_page) -> None:
    source, file = windy_page
    page.open(file)
    starts = np.concatenate([compute_play(source, source.policy, seed=k).plant.starts for k in range(20)])
    totals = page.run(f"{json.dumps(starts.tolist())}.map((one) => spaqlPage.rollout(one).total)")
    evaluated = spaql.evaluate(source, episodes=400).returns
    error = math.hypot(np.std(totals), np.std(evaluated)) / math.sqrt(400)
    assert abs(np.mean(totals) - np.mean(evaluated)) < 4 * error
    assert np.std(totals) == pytest.approx(np.std(evaluated), rel=0.3)
    note = page.run("document.querySelector('#play').textContent")
    assert "by its equations, with the random numbers that its step draws." in note


def test_a_plant_with_set_points_that_draws_has_a_step_test() -> None:
    def at_goal(rng):
        return 0.0, 0.0, rng.uniform(0.2, 1.0)

    def to_goal(state, action, parameters, rng):
        (x, v), _, _ = step((state[0], state[1]), action, parameters, rng)
        return (x, v, state[2]), -((x - state[2]) ** 2), False

    plant = windy(
        id="test/WindyGoal-v0",
        start=at_goal,
        step=to_goal,
        observations=dict.fromkeys(("position", "speed", "goal"), (-math.inf, math.inf)),
        setpoints={"position": "goal"},
    )
    agent = spaql.TreeSearch(plant.id, seed=0)
    made = compute_play(agent, agent.policy)
    assert made.plan is not None
    assert "drawn(...s.slice(-2))" in made.plant.code


def test_draws_are_inputs_of_a_tape() -> None:
    plant = nominal(windy())
    tape, _ = trace_nominal(plant, simulated=True)
    rng = np.random.default_rng(0)
    for count in range(20):
        state = (*rng.uniform(-1, 1, 2), rng.random(), float(count))
        action = rng.uniform(-5, 5, 1)
        inputs = [*state, *action]
        for k in range(tape.draws):
            for draw in ("random", "normal"):
                generator = draws_of(*state[-2:])
                generator.memory[1] = 2 * k
                inputs.append(getattr(generator, draw)())
        after, reward, _ = plant.functions[1](state, action)
        np.testing.assert_allclose(tape(inputs)[0], [*after, reward], rtol=1e-12)


def test_what_cannot_be_traced_is_said(tmp_path: Path) -> None:
    def rounded(state, action, parameters, rng):
        x = state[0] + round(rng.normal())
        return (x, state[1]), -x * x, False

    source = controller(windy(id="test/Rounded-v0", step=rounded))
    source.save(tmp_path / "policy.spaql")
    page = policy_card(tmp_path / "policy.spaql", source, episodes=2)
    assert "Cannot trace the step of test/Rounded-v0" in page
    assert "round() is not traced" in page
    assert "spaqlPage" not in page
