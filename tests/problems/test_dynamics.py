"""Compiled dynamics: equal to Gymnasium's own, proper environments, and clear about what is wrong."""

import math
import os
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import spaql
from nightly import thorough
from spaql.problems import find_dynamics
from spaql.simulate import EpisodeRunner
from spaql.simulate.loop import PlantRows

CLASSIC = ["CartPole-v1", "Pendulum-v1", "MountainCar-v0", "MountainCarContinuous-v0", "Acrobot-v1"]
STEPS = thorough(100_000)
JIT = os.environ.get("NUMBA_DISABLE_JIT") != "1"


@pytest.mark.slow
@pytest.mark.parametrize("name", CLASSIC)
def test_a_step_is_gymnasiums_own(name: str) -> None:
    """Random steps from the same state and action: next state, observation, reward, termination."""
    ours = gymnasium.make(f"spaql/{name}").unwrapped
    theirs = gymnasium.make(name).unwrapped
    single = np.float32 if name == "MountainCarContinuous-v0" else np.float64
    ours.reset(seed=0)
    theirs.reset(seed=0)
    ours.action_space.seed(0)
    worst = np.zeros(3)
    for i in range(STEPS):
        theirs.state = np.array(ours.state, single)
        theirs.steps_beyond_terminated = None
        action = ours.action_space.sample()
        seen, reward, terminated, _, _ = ours.step(action)
        their_seen, their_reward, their_terminated, _, _ = theirs.step(action)
        assert terminated == their_terminated
        off = np.abs(np.array(ours.state) - np.asarray(theirs.state, np.float64)).max()
        worst = np.maximum(worst, [off, np.abs(seen - their_seen).max(), abs(reward - their_reward)])
        if terminated or i % 200 == 199:
            ours.reset()
    assert worst[1] == 0, worst
    if name in ("CartPole-v1", "MountainCar-v0", "MountainCarContinuous-v0"):
        assert worst.max() == 0, worst
    assert worst.max() < 1e-9, worst


@pytest.mark.parametrize("name", CLASSIC)
def test_starts_are_distributed_as_gymnasiums(name: str) -> None:
    problem = spaql.make_problem(name)
    assert isinstance(problem.dynamics, spaql.Dynamics)
    env = gymnasium.make(name)
    n = 300 if JIT else 30
    theirs = np.array([env.reset(seed=i)[0] for i in range(n)])
    states = problem.dynamics.draw(n, np.random.default_rng(0))
    ours = PlantRows(problem.dynamics.plant, states).first
    assert np.allclose(theirs.mean(axis=0), ours.mean(axis=0), atol=4 * theirs.std(axis=0).max() / n**0.5)
    assert ours.min() >= theirs.min() - 0.1
    assert ours.max() <= theirs.max() + 0.1


@pytest.mark.parametrize("name", CLASSIC)
@pytest.mark.filterwarnings("ignore:.*WARN")  # Gymnasium has opinions on the spaces of its own problems
def test_dynamics_are_a_proper_environment(name: str) -> None:
    env = gymnasium.make(f"spaql/{name}")
    check_env(env.unwrapped, skip_render_check=True)
    assert env.observation_space == gymnasium.make(name).observation_space
    assert env.action_space == gymnasium.make(name).action_space
    env.close()


def test_many_episodes_are_as_many_single_ones() -> None:
    one = gymnasium.make("spaql/CartPole-v1").unwrapped
    one.reset(seed=0)
    plant = one.dynamics
    many = PlantRows(plant.plant, plant.draw(5, np.random.default_rng(1)))
    actions = np.random.default_rng(0).integers(0, 2, (100, 5))
    running = np.ones(5, bool)
    for row in actions:
        states = many.states.copy()
        observations, rewards, terminated, _ = many.step(row, running)
        for i in range(5):
            if not running[i]:
                assert np.array_equal(many.states[i], states[i])
                continue
            one.state = tuple(states[i])
            seen, reward, ended, _, _ = one.step(int(row[i]))
            assert np.array_equal(seen, observations[i])
            assert (reward, ended) == (rewards[i], terminated[i])
        running = running & ~terminated
    assert not running.all()


def follow(agent: spaql.Agent, iterations: int) -> str:
    """Train an agent's twin step by step in Gymnasium's own CartPole, from the same starts and numbers."""
    from spaql.simulate.seeds import Purpose, generator

    twin = spaql.SPAQLTS("cartpole200", seed=agent.seed, rollouts=agent.settings.rollouts, compiled=False)
    learner = twin._learner
    env = gymnasium.make("CartPole-v1").unwrapped
    env.reset(seed=0)
    start = find_dynamics("CartPole-v1").start

    def begin(rng: np.random.Generator) -> np.ndarray:
        env.state = np.array(start(rng))
        env.steps_beyond_terminated = None
        return env.state

    for iteration in range(iterations + 1):
        rng = generator(agent.seed, Purpose.TRAINING, iteration)
        if iteration:
            learner.begin(np.float32(begin(rng)))
            for _ in range(200):
                observation, reward, terminated, _, _ = env.step(learner.act(rng))
                learner.learn(float(reward), observation, terminated)
                if terminated:
                    break
        policy = learner.candidate
        states = [begin(rng) for _ in range(agent.settings.rollouts)]
        returns = np.zeros(len(states))
        running = list(range(len(states)))
        for step in range(200):
            for i in list(running):
                action = policy.act(np.float32(states[i])[np.newaxis], np.array([step]), rng)[0]
                env.state = states[i]
                env.steps_beyond_terminated = None
                _, reward, terminated, _, _ = env.step(action)
                states[i] = env.state
                returns[i] += reward
                if terminated:
                    running.remove(i)
        learner.assess(returns.mean())
    return learner.trainee.digest() + learner.best.digest()


@pytest.mark.slow
def test_the_compiled_path_is_the_gymnasium_path() -> None:
    """50 iterations on CartPole: the same partitions, bit for bit."""
    agent = spaql.SPAQLTS("cartpole200", seed=5, rollouts=5).learn(iterations=50, progress_bar=False)
    learner = agent._learner
    assert follow(agent, 50) == learner.trainee.digest() + learner.best.digest()
    assert learner.best.arms > 100


def test_a_variant_with_its_own_steps_is_not_bypassed() -> None:
    from spaql.algorithms import SPAQLLearner

    class Counting(SPAQLLearner):
        name = "counting"
        learned = 0

        def learn(self, reward: float, observation: object, terminated: bool) -> None:
            self.learned += 1
            super().learn(reward, observation, terminated)

    class CountingAgent(spaql.Agent):
        learner_type = Counting

    agent = CountingAgent("cartpole200", seed=0, rollouts=2).learn(iterations=3, progress_bar=False)
    assert agent._learner.learned == agent.history.last()["training_steps"]


def spring(**changes) -> spaql.Dynamics:
    def start(rng):
        return (rng.uniform(-1.0, 1.0), 0.0)

    def step(state, action):
        x, v = state
        v += 0.1 * (action[0] - x)
        return (x + 0.1 * v, v), -x * x, abs(x) > 3.0

    whole = {
        "id": "test/Spring-v0",
        "start": start,
        "step": step,
        "observations": {"position [m]": (-3, 3), "speed [m/s]": (-math.inf, math.inf)},
        "actions": {"force [N]": (-1, 1)},
        "horizon": 50,
    }
    return spaql.Dynamics(**(whole | changes))


def test_a_plant_of_ones_own(tmp_path: Path) -> None:
    agent = spaql.SPAQLTS(spring(), levels=3, reference=[0, 0], seed=0, rollouts=4)
    agent.learn(iterations=30, progress_bar=False)
    assert agent.problem.interactions == 1000  # the speed had to be measured
    agent.save(tmp_path / "spring.spaql")
    again = spaql.load(tmp_path / "spring.spaql")
    assert spaql.evaluate(again, episodes=20).mean == spaql.evaluate(agent, episodes=20).mean
    assert gymnasium.make("test/Spring-v0").reset(seed=0)[0].shape == (2,)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"start": lambda rng: [0.0, 0.0]}, "start must return a state as a tuple of floats"),
        ({"start": lambda rng: (0, 0.0)}, "start must return a state as a tuple of floats"),
        ({"step": lambda state, action: state}, "step must return"),
        ({"step": lambda state, action: ((0.0,), 0.0, False)}, "2 numbers into one of 1"),
        ({"observe": lambda state: (state[0],)}, "returns 1 numbers, and 2 are named"),
        ({"reference": (0.0,)}, "reference must have 2"),
    ],
)
def test_what_is_wrong_with_dynamics_is_said(changes: dict, message: str) -> None:
    with pytest.raises(spaql.SettingError, match=message):
        spring(**changes)


def test_numbers_that_are_not_finite_are_refused() -> None:
    bad = spring(id="test/Bad-v0", step=lambda state, action: (state, math.inf, False))
    with pytest.raises(spaql.BadEnvironmentError, match="inf"):
        spaql.SPAQL(bad, rollouts=1, seed=0).learn(iterations=1, progress_bar=False)
    late = spring(
        id="test/Late-v0",
        step=lambda state, action: ((state[0], state[1] + 1.0), math.log(5.5 - state[1]), False),
    )
    agent = spaql.SPAQL(late, rollouts=1, seed=0, squash={1: 1.0})
    with (
        closing(EpisodeRunner(agent.problem, 1)) as runner,
        pytest.raises(spaql.BadEnvironmentError, match="step 7 of a"),
    ):
        agent._learner.iterate(runner, np.random.default_rng(0), trained=True)


PLANT = """
import numba, spaql
from helper import gain
def start(rng): return (1.0, 0.0)
def step(state, action): return (state[0], state[1] + 1.0), gain(state[0]), False
plant = spaql.Dynamics(id="test/Edited-v0", start=start, step=step, horizon=10, actions=("a", "b"),
                       observations={"x": (-1, 1), "t": (0, 10)})
agent = spaql.SPAQL(plant, seed=0, rollouts=1).learn(iterations=1, progress_bar=False)
print(spaql.evaluate(agent, episodes=1).mean)
"""


@pytest.mark.long
@pytest.mark.skipif(not JIT, reason="nothing is compiled")
def test_an_edit_in_what_a_plant_calls_is_seen(tmp_path: Path) -> None:
    """The compiled loops of a plant are cached, and not for longer than it stays as it is."""
    (tmp_path / "plant.py").write_text(PLANT)

    def mean_return(gain: str) -> float:
        (tmp_path / "helper.py").write_text(
            f"import numba\nK = {gain}\n@numba.njit\ndef gain(x): return K * x\n"
        )
        env = dict(os.environ, PYTHONDONTWRITEBYTECODE="1", NUMBA_CACHE_DIR=str(tmp_path / "cache"))
        run = subprocess.run(
            [sys.executable, "plant.py"], cwd=tmp_path, env=env, capture_output=True, text=True, check=True
        )
        return float(run.stdout)

    assert mean_return("2.0") == 20.0
    cached = len(list((tmp_path / "cache").rglob("*.nbc")))
    assert mean_return("2.0") == 20.0
    assert len(list((tmp_path / "cache").rglob("*.nbc"))) == cached
    assert mean_return("3.0") == 30.0


def test_an_id_of_another_environment_is_refused_and_left_alone() -> None:
    """A plant that is made again, as in a notebook, takes the place of the first one."""
    given = {
        "start": lambda rng: (0.0,),
        "step": lambda state, action: (state, 0.0, False),
        "observations": {"x": (-1, 1)},
        "actions": ("a", "b"),
    }
    before = gymnasium.spec("CartPole-v1")
    with pytest.raises(spaql.SettingError, match=r"CartPole-v1 is the id of another .*own/CartPole-v1"):
        spaql.Dynamics(id="CartPole-v1", horizon=5, **given)
    assert gymnasium.spec("CartPole-v1") is before
    assert spaql.problems.find_dynamics("CartPole-v1").id == "spaql/CartPole-v1"
    for horizon in (5, 7):
        spaql.Dynamics(id="test/MadeAgain-v0", horizon=horizon, **given)
        assert gymnasium.spec("test/MadeAgain-v0").max_episode_steps == horizon
