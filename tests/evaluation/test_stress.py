"""Episodes from chosen starts, against Gymnasium's own environments stepped by hand."""

import math
from collections.abc import Callable

import gymnasium
import numpy as np
import pytest

import spaql
from spaql.evaluation import Bench, find_bench, sample_starts, stress
from spaql.evaluation.stress import known_bench, returns_at_least
from spaql.problems import make_problem
from spaql.simulate import play

CLASSIC = ["CartPole-v1", "Pendulum-v1", "MountainCar-v0", "MountainCarContinuous-v0", "Acrobot-v1"]


@pytest.fixture(scope="module")
def balancing() -> spaql.Agent:
    agent = spaql.SPAQLTS("cartpole200", scaling=20, rollouts=5, seed=1)
    return agent.learn(iterations=60, progress_bar=False)


def by_hand(policy: spaql.Policy, env_id: str, start: np.ndarray, horizon: int):
    """Play from a start with nothing but Gymnasium."""
    env = gymnasium.make(env_id, max_episode_steps=horizon)
    env.reset(seed=0)
    plant = env.unwrapped
    plant.state = np.array(start)
    seen = plant._get_obs() if env_id == "Pendulum-v1" else None
    if env_id == "Acrobot-v1":
        seen = plant._get_ob()
    observations = [np.array(start, np.float32) if seen is None else seen]
    total = 0.0
    ended = False
    while not ended:
        action = policy.act(observations[-1][None], np.array([len(observations) - 1]), None)[0]
        observation, reward, terminated, truncated, _ = env.step(action)
        observations.append(observation)
        total += float(reward)
        ended = terminated or truncated
    env.close()
    return np.array(observations), total, bool(terminated)


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("env_id", CLASSIC)
def test_episodes_begin_where_they_are_told_to(env_id: str, compiled: bool) -> None:
    problem = make_problem(env_id, horizon=25, compiled=compiled)
    policy = spaql.SPAQL(problem, seed=0).policy
    bench = find_bench(problem)
    assert bench is not None
    starts = sample_starts(bench, 6, seed=3)
    for start, episode in zip(starts, play(policy, problem, starts), strict=True):
        observations, total, terminated = by_hand(policy, env_id, start, 25)
        np.testing.assert_array_equal(episode.start, start)
        np.testing.assert_allclose(episode.observations, observations, rtol=1e-4, atol=1e-5)
        assert episode.total == pytest.approx(total, rel=1e-5)
        assert episode.terminated == terminated
        assert len(episode.actions) == episode.length == len(observations) - 1


def test_more_starts_than_run_together_keep_their_order(balancing: spaql.Agent) -> None:
    result = stress(balancing, starts=700, seed=2)
    again = stress(balancing, starts=result.starts[[699, 5]])
    assert again.returns.tolist() == result.returns[[699, 5]].tolist()
    assert again.success.tolist() == result.success[[699, 5]].tolist()
    assert len(result.starts) == 700


def test_the_same_seed_gives_the_same_test_and_another_does_not(balancing: spaql.Agent) -> None:
    one, two, other = (stress(balancing, starts=50, seed=seed) for seed in (4, 4, 5))
    assert one.starts.tobytes() == two.starts.tobytes()
    assert one.returns.tobytes() == two.returns.tobytes()
    assert one.starts.tobytes() != other.starts.tobytes()


def test_what_a_stress_test_tells(balancing: spaql.Agent) -> None:
    result = stress(balancing, starts=400)
    episodes = list(play(balancing.policy, balancing.problem, result.starts))
    fallen = [bool((np.abs(e.observations[-1, [0, 2]]) > (2.4, math.radians(12))).any()) for e in episodes]
    assert result.success.tolist() == [not f for f in fallen]
    assert result.returns[result.success].tolist() == [200.0] * sum(result.success)
    low, high = result.share_ci95
    assert low < result.share < high
    worst = result.worst(7)
    assert [episode.total for episode in worst] == sorted(result.returns)[:7]
    row = np.flatnonzero((result.starts == worst[0].start).all(axis=1))[0]
    assert result.returns[row] == worst[0].total
    assert repr(result).startswith(
        f"StressTest({sum(result.success)} of 400 starts succeed: {100 * result.share:.1f} %"
    )
    assert len(repr(episodes[0])) < 100


def test_a_pendulum_that_hangs_or_turns_is_no_success() -> None:
    class Torque(spaql.Policy):
        observation_space = make_problem("pendulum").states.space
        action_space = make_problem("pendulum").actions.space

        def act(self, observations, steps, rng):
            angle = np.arctan2(observations[:, 1], observations[:, 0])
            speed = observations[:, 2]
            return np.clip(-20 * angle - 5 * speed, -2, 2)[:, None]

    starts = [[0.05, 0.0], [math.pi, 0.0], [0.05 + math.tau, 0.0]]
    result = stress(Torque(), "pendulum", starts=starts)
    assert result.success.tolist() == [True, False, True]


def test_starts_fill_the_region() -> None:
    bench = Bench(region={"x": (2.0, 6.0), "y": (-1.0, 0.0)})
    points = sample_starts(bench, 64)
    # A Sobol sequence has a point in each of 8 x 8 boxes.
    boxes = {(int((x - 2.0) * 2), int((y + 1.0) * 8)) for x, y in points}
    assert len(boxes) == 64
    assert sample_starts(bench, 2000).shape == (2000, 2)


class Opaque(gymnasium.Env):
    """An environment that keeps its state to itself."""

    observation_space = gymnasium.spaces.Box(-1.0, 1.0, (1,))
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self._x = 0.0
        return np.float32([self._x]), {}

    def step(self, action):
        self._x /= 2
        return np.float32([self._x]), -abs(self._x), False, False, {}


def test_an_environment_of_ones_own() -> None:
    problem = make_problem(Opaque(), horizon=20)
    policy = spaql.SPAQL(problem, seed=0).policy
    with pytest.raises(spaql.SettingError, match="give a bench"):
        stress(policy, problem)
    region = {"x": (-1.0, 1.0)}
    with pytest.raises(spaql.SettingError, match="set_state"):
        stress(policy, problem, bench=Bench(region=region), starts=4)

    def set_state(env, state):
        env.unwrapped._x = float(state[0])
        return state.astype(np.float32)

    bench = Bench(region=region, set_state=set_state, success=returns_at_least(-0.5))
    result = stress(policy, problem, bench=bench, starts=[[0.9], [0.3], [-0.7]])
    assert result.success.tolist() == [False, True, False]


@pytest.mark.parametrize(
    ("starts", "message"), [(0, "starts is 0"), ([[1.0, 2.0]], "4 components"), ([], "4 components")]
)
def test_starts_that_are_none(balancing: spaql.Agent, starts, message: str) -> None:
    with pytest.raises(spaql.SettingError, match=message):
        stress(balancing, starts=starts)


def test_regions_that_are_none() -> None:
    for region in ({"x": (0.0, math.inf)}, {"x": (1.0, 0.0)}):
        with pytest.raises(spaql.SettingError, match="finite"):
            sample_starts(Bench(region=region), 4)


@pytest.mark.parametrize("compiled", [True, False])
def test_a_start_of_another_plant(compiled: bool) -> None:
    problem = make_problem("CartPole-v1", compiled=compiled)
    policy = spaql.SPAQL(problem, seed=0).policy
    with pytest.raises(spaql.SettingError, match="has 2 numbers, and must have 4"):
        next(play(policy, problem, np.zeros((1, 2))))


def _plant(
    name: str, observe: Callable[[tuple[float, ...]], tuple[float, ...]], high: float
) -> spaql.Problem:
    spaql.Dynamics(
        id=f"test/{name}-v0",
        start=lambda rng: (0.5, 0.0),
        step=lambda state, action: (state, 0.0, False),
        observe=observe,
        observations={"level [m]": (0.0, 1.0), "speed [m/s]": (-1.0, high)},
        actions=("off", "on"),
        horizon=5,
    )
    return spaql.make_problem(f"test/{name}-v0", squash={1: 1.0} if high == np.inf else None)


def test_a_plant_of_ones_own_begins_in_the_ranges_that_it_declares() -> None:
    bench = known_bench(_plant("Seen", lambda state: (state[0], state[1]), 1.0))
    assert bench.region == {"level [m]": (0.0, 1.0), "speed [m/s]": (-1.0, 1.0)}
    for other in (
        _plant("Endless", lambda state: (state[0], state[1]), np.inf),
        _plant("Disguised", lambda state: (state[0], 2.0 * state[1]), 1.0),
    ):
        with pytest.raises(spaql.SettingError, match="give a bench with a range for each state variable"):
            known_bench(other)
