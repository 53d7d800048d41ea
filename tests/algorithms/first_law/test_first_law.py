"""A law of an affine model: its parts, and what it is worth on plants that anyone would call easy."""

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete
from numba import njit

import spaql
from spaql.algorithms.first_law import FirstLaw
from spaql.algorithms.first_law.model import AffineModel
from spaql.algorithms.first_law.rounds import HeldNoise, exploring
from spaql.algorithms.replay import ReplayMemory
from spaql.errors import BadEnvironmentError
from spaql.kernels.affine_model import DISTANCE, PLANES, QUADRATIC, RANGE
from spaql.simulate import EpisodeRunner, Phase


def heater_start(rng):
    return rng.uniform(14, 26), rng.uniform(18, 24), rng.uniform(-5, 15)


def heater_step(state, action):
    warmth, wanted, outdoor = state
    warmth = warmth + 0.05 * (outdoor - warmth) + 2.0 * action[0]
    return (warmth, wanted, outdoor), -abs(warmth - wanted), False


def heater(**changed):
    """A room without declared set-points."""
    given = {
        "id": "tests/Heater-v0",
        "start": heater_start,
        "step": heater_step,
        "observations": {"warmth": (-30, 80), "wanted": (10, 30), "outdoor": (-20, 40)},
        "actions": {"heating": (0.0, 1.0)},
        "horizon": 100,
    }
    return spaql.Dynamics(**given | changed)


def memory_of(step, n=600, states=2, actions=1):
    """Random transitions of a function of an observation and an action."""
    rng = np.random.default_rng(0)
    memory = ReplayMemory(states, actions)
    for _ in range(n // 20):
        seen = [rng.normal(size=states)]
        done = []
        paid = []
        for _ in range(20):
            action = rng.uniform(-1.0, 1.0, actions)
            following, reward = step(seen[-1], action)
            seen.append(following)
            done.append(action)
            paid.append(reward)
        memory.add_episode(np.array(seen), np.array(done), np.array(paid), ended=False)
    return memory


def fitted(step):
    memory = memory_of(step)
    return AffineModel.fit(memory, memory.actions, RANGE, 100, np.random.default_rng(1))


def motion(x, action):
    return np.array([0.9 * x[0] + 0.2 * x[1] + 0.3 * action[0] - 0.1, x[1]])


def test_an_affine_plant_is_found_and_what_stands_still_stands_still():
    model = fitted(lambda x, a: (motion(x, a), -(x[0] ** 2)))
    assert list(model.moves) == [True, False]
    assert np.abs(model.errors).max() < 1e-4
    assert model.motion[:, 1] == pytest.approx([0, 1, 0, 0])


@pytest.mark.parametrize(
    ("reward", "shapes"),
    [
        (lambda x, a: -((x[0] - x[1]) ** 2) - 0.1 * a[0] ** 2, {QUADRATIC}),
        (lambda x, a: -abs(x[0] - x[1]), {DISTANCE, PLANES}),
        (lambda x, a: 3.0 - abs(x[0]) - abs(x[1] - 0.5), {DISTANCE, PLANES}),
    ],
)
def test_the_shape_of_the_reward_is_found(reward, shapes):
    model = fitted(lambda x, a: (motion(x, a), reward(x, a)))
    assert model.reward.shape in shapes
    assert model.reward.unexplained < 0.05


def test_a_reward_of_actions_alone_makes_no_law():
    assert fitted(lambda x, a: (motion(x, a), -(a[0] ** 2))) is None


def test_random_actions_are_held_for_some_steps():
    noise = HeldNoise(None, Box(-2.0, 4.0, (1,)), 1.0, 4.0).for_episodes(50)
    rng = np.random.default_rng(0)
    rows = np.array([noise.act(np.zeros((50, 1)), np.full(50, k), rng)[:, 0] for k in range(100)], np.float64)
    changed = (np.diff(rows, axis=0) != 0).mean()
    assert 0.2 < changed < 0.3
    assert -2.0 <= rows.min() < -1.9
    assert 3.9 < rows.max() <= 4.0
    listed = HeldNoise(None, Discrete(3, start=1), 1.0, 1.0).for_episodes(50)
    assert set(listed.act(np.zeros((50, 1)), np.zeros(50, np.int64), rng)) == {1, 2, 3}


def search(dynamics, budget, seed):
    """The search for a first law, and its problem."""
    problem = spaql.make_problem(dynamics)
    runner = EpisodeRunner(problem, 1)
    found = FirstLaw(problem, budget, runner, Phase.SEARCH, np.random.default_rng(seed))
    found.search(6)
    assert runner.interactions[Phase.SEARCH] == found.spent
    return found, problem


def test_a_search_that_does_not_promise_anything_is_given_up():
    problem = spaql.make_problem(heater())
    spent = []
    for rounds in (0, 1, 2):
        runner = EpisodeRunner(problem, 1)
        first = FirstLaw(problem, 20_000, runner, Phase.SEARCH, np.random.default_rng(0))
        first.search(1, lambda turn, last=rounds: turn < last)
        assert first.one_leaf is first.law
        spent.append(first.spent)
    assert spent[0] < spent[1] < spent[2]


@pytest.mark.parametrize("budget", [2_000, 10_000, 40_000])
def test_the_budget_is_kept(budget):
    found, _ = search(heater(), budget, 0)
    assert found.spent <= budget
    assert found.law is not None


def test_units_do_not_matter():
    begin = njit(heater_start)
    step = njit(heater_step)

    def large_start(rng):
        warmth, wanted, outdoor = begin(rng)
        return warmth * 1e3, wanted * 1e3, outdoor * 1e3

    def large_step(x, action):
        x, reward, ended = step((x[0] * 1e-3, x[1] * 1e-3, x[2] * 1e-3), (action[0] * 1e-3,))
        return (x[0] * 1e3, x[1] * 1e3, x[2] * 1e3), reward * 1e3, ended

    large = heater(
        id="tests/LargeHeater-v0",
        start=large_start,
        step=large_step,
        observations={"warmth": (-3e4, 8e4), "wanted": (1e4, 3e4), "outdoor": (-2e4, 4e4)},
        actions={"heating": (0.0, 1e3)},
    )
    small_law, large_law = (search(plant, 8_000, 1)[0].law for plant in (heater(), large))
    seen = np.array([[20.0, 21.0, 5.0], [22.0, 21.0, 0.0], [19.0, 19.5, 10.0]])
    steps = np.zeros(3, np.int64)
    expected = 1e3 * small_law.act(seen, steps, None)
    assert large_law.act(1e3 * seen, steps, None) == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize("seed", [1, 2])
def test_a_room_is_heated_by_every_seed(seed):
    agent = spaql.TreeSearch(heater(), seed=seed).learn(20_000, progress_bar=False)
    # u = 0.5 (wanted - warmth) + 0.025 (wanted - outdoor) returns -7.5, and random actions -620
    assert spaql.evaluate(agent, episodes=200, seed=9).mean > -12.0


def test_the_same_seed_makes_the_same_bytes_and_a_file_has_the_law(tmp_path):
    whole = spaql.TreeSearch(heater(), seed=3).learn(20_000, progress_bar=False)
    again = spaql.TreeSearch(heater(), seed=3).learn(20_000, progress_bar=False)
    whole.save(tmp_path / "whole.spaql")
    again.save(tmp_path / "again.spaql")
    assert (tmp_path / "whole.spaql").read_bytes() == (tmp_path / "again.spaql").read_bytes()
    loaded = spaql.load(tmp_path / "whole.spaql")
    assert str(loaded.policy) == str(whole.policy)


class Failing(gymnasium.Env):
    """An environment that fails in its third episode."""

    observation_space = Box(-1.0, 1.0, (1,), np.float32)
    action_space = Box(-1.0, 1.0, (1,), np.float32)
    episodes = 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.episodes += 1
        self.x = np.float32(0.5)
        return np.array([self.x]), {}

    def step(self, action):
        if self.episodes == 3:
            raise ValueError("the valve is stuck")
        self.x = np.float32(0.9 * self.x + 0.1 * action[0])
        return np.array([self.x]), float(-abs(self.x)), False, False, {}


def test_a_fault_of_an_environment_is_explained():
    gymnasium.register("tests/Failing-v0", Failing, max_episode_steps=50)
    try:
        with pytest.raises(BadEnvironmentError, match="the valve is stuck"):
            spaql.TreeSearch("tests/Failing-v0", seed=0).learn(5_000, progress_bar=False)
    finally:
        del gymnasium.registry["tests/Failing-v0"]


def test_noise_of_a_law_is_clipped_to_the_range():
    problem = spaql.make_problem(heater())
    law = search(heater(), 4_000, 0)[0].law
    noisy = exploring(law, problem).for_episodes(40)
    rng = np.random.default_rng(0)
    seen = rng.uniform([14, 18, -5], [26, 24, 15], (40, 3))
    actions = noisy.act(seen, np.zeros(40, np.int64), rng)
    assert actions.min() >= 0.0
    assert actions.max() <= 1.0
    assert not np.array_equal(actions, law.act(seen, np.zeros(40, np.int64), None))
