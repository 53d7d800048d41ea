"""What was given is what is trained and judged: an object is copied as it is, an id may be compiled."""

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.envs.classic_control import pendulum
from gymnasium.wrappers import (
    ClipReward,
    RecordEpisodeStatistics,
    RepeatAction,
    RescaleAction,
    TimeLimit,
    TransformObservation,
    TransformReward,
)

import spaql
from spaql.problems.environment import DynamicsEnv

Env = gymnasium.Env[Any, Any]
CLASSIC = ["CartPole-v1", "Pendulum-v1", "MountainCar-v0", "MountainCarContinuous-v0", "Acrobot-v1"]
STEPS = 12


def with_attributes(name: str, **attributes: Any) -> Callable[[], Env]:
    def make() -> Env:
        env = gymnasium.make(name)
        for attribute, value in attributes.items():
            setattr(env.unwrapped, attribute, value)
        return env

    return make


def not_of_its_spec() -> Env:
    env = pendulum.PendulumEnv(g=3.0)
    env.spec = gymnasium.spec("Pendulum-v1")
    return env


class Half(pendulum.PendulumEnv):
    def step(self, action: Any) -> Any:
        return super().step(action / 2)


def subclass_of_the_same_spec() -> Env:
    env = Half()
    env.spec = gymnasium.spec("Pendulum-v1")
    return env


class Flip(gymnasium.Wrapper):
    def __init__(self, env: Env, sign: int) -> None:
        super().__init__(env)
        self.sign = sign

    def step(self, action: Any) -> Any:
        return self.env.step(self.sign * action)


def pendulum_in(wrapper: Callable[..., Env], *arguments: Any, **options: Any) -> Callable[[], Env]:
    return lambda: wrapper(gymnasium.make("Pendulum-v1"), *arguments, **options)


def referring_wrapper() -> Env:
    env = gymnasium.make("Pendulum-v1")
    return TransformObservation(env, lambda x: x / env.observation_space.high, spaces.Box(-1, 1, (3,)))


def changed_under_a_wrapper() -> Env:
    env = RecordEpisodeStatistics(gymnasium.make("CartPole-v1"))
    env.unwrapped.length = 2.0
    return env


def changed_in_an_episode() -> Env:
    env = gymnasium.make("CartPole-v1")
    env.reset(seed=0)
    env.step(1)
    env.unwrapped.gravity = 99.0
    return env


class Tank:
    """A part of an environment."""

    def __init__(self, area: float) -> None:
        self.area = area


class Plant(gymnasium.Env):
    observation_space = spaces.Box(-100.0, 100.0, (1,))
    action_space = spaces.Discrete(2)

    def __init__(self) -> None:
        self.parts = {"tanks": [Tank(1.0), Tank(2.0)]}

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.level = self.np_random.random()
        return np.float32([self.level]), {}

    def step(self, action):
        self.level += float(action) / self.parts["tanks"][1].area
        return np.float32([self.level]), self.level, False, False, {}


gymnasium.register("test/Plant-v0", entry_point=Plant, max_episode_steps=30)


def changed_in_a_part() -> Env:
    env = gymnasium.make("test/Plant-v0")
    env.unwrapped.parts["tanks"][1].area = 0.5
    return env


def counting_episodes() -> Env:
    """An environment that does something else in each episode, of which two were played."""
    env = gymnasium.make("test/Counting-v0")
    for _ in range(2):
        env.reset(seed=0)
    return env


class Counting(Plant):
    def __init__(self) -> None:
        super().__init__()
        self.episodes = 0

    def reset(self, *, seed=None, options=None):
        self.episodes += 1
        super().reset(seed=seed)
        self.level += self.episodes
        return np.float32([self.level]), {}


gymnasium.register("test/Counting-v0", entry_point=Counting, max_episode_steps=30)

DIFFERENT: dict[str, Callable[[], Env]] = {
    "pendulum without torque": with_attributes("Pendulum-v1", max_torque=0.0),
    "pendulum on the moon": with_attributes("Pendulum-v1", g=1.6),
    "pendulum with a whole number": with_attributes("Pendulum-v1", m=2),
    "cart with less force": with_attributes("CartPole-v1", force_mag=1.0),
    "cart on a short track": with_attributes("CartPole-v1", x_threshold=0.03),
    "cart with another integrator": with_attributes("CartPole-v1", kinematics_integrator="semi-implicit"),
    "car with less force": with_attributes("MountainCar-v0", force=0.0001),
    "car with more power": with_attributes("MountainCarContinuous-v0", power=0.1),
    "acrobot's class attribute on the object": with_attributes("Acrobot-v1", LINK_MASS_1=3.0),
    "acrobot's torques": with_attributes("Acrobot-v1", AVAIL_TORQUE=[-9.0, 0.0, 9.0]),
    "acrobot with noise": with_attributes("Acrobot-v1", torque_noise_max=3.0),
    "acrobot of the other paper": with_attributes("Acrobot-v1", book_or_nips="nips"),
    "constructor's argument in the spec": lambda: gymnasium.make("Pendulum-v1", g=3.0),
    "constructor's argument not in the spec": not_of_its_spec,
    "subclass of the same spec": subclass_of_the_same_spec,
    "rewards transformed": pendulum_in(TransformReward, lambda r: r + 1.0),
    "rewards clipped": pendulum_in(ClipReward, -0.1, 0.0),
    "observations transformed by a function of the environment": referring_wrapper,
    "actions rescaled": pendulum_in(RescaleAction, np.float32(-1), np.float32(1)),
    "actions repeated": pendulum_in(RepeatAction, 3),
    "a wrapper of one's own": pendulum_in(Flip, sign=-1),
    "changed under a wrapper": changed_under_a_wrapper,
    "changed in an episode": changed_in_an_episode,
    "changed in a part of a part": changed_in_a_part,
    "episodes that count": counting_episodes,
}


def played(env: Env) -> list[Any]:
    """Play a few steps, and give all that was seen."""
    seen = [np.asarray(env.reset(seed=3)[0]).tolist()]
    actions = spaces.Box(-1.0, 1.0, (1,)) if isinstance(env.action_space, spaces.Box) else env.action_space
    actions.seed(5)
    for _ in range(STEPS):
        observation, reward, terminated, truncated, _ = env.step(actions.sample())
        seen.append((np.asarray(observation).tolist(), float(reward), bool(terminated)))
        if terminated or truncated:
            break
    return seen


@pytest.mark.parametrize("name", DIFFERENT)
def test_an_object_is_what_is_trained_on(name: str) -> None:
    env = DIFFERENT[name]()
    usual = played(gymnasium.make(env.unwrapped.spec.id))
    problem = spaql.make_problem(env, horizon=20)
    assert problem.dynamics is None
    played(other := problem.make())  # a copy that shares nothing with the next
    first = played(problem.make())
    assert first != usual
    assert first == played(problem.make())
    assert other.unwrapped is not env.unwrapped
    assert first == played(env)  # last, for it is played in
    with closing(problem.make_vector(2)) as many:
        assert many.reset(seed=3)[0][0].tolist() == pytest.approx(first[0], rel=1e-6)
    assert problem.runs_on.startswith("copies of the ")


def test_what_is_changed_later_is_not_what_was_given() -> None:
    env = with_attributes("CartPole-v1", force_mag=1.0)()
    problem = spaql.make_problem(env)
    env.unwrapped.force_mag = 2.0
    assert problem.make().unwrapped.force_mag == 1.0


def test_spaces_that_were_replaced_are_kept() -> None:
    wide = spaces.Box(-9.0, 9.0, (2,))
    for layer in (lambda env: env, lambda env: env.unwrapped):
        env = gymnasium.make("MountainCar-v0")
        layer(env).observation_space = wide
        problem = spaql.make_problem(env)
        assert (problem.env, problem.dynamics, problem.states.space) == (None, None, wide)


@contextmanager
def registered(name: str, **spec: Any) -> Iterator[None]:
    before = gymnasium.registry.pop(name)
    gymnasium.register(name, **spec)
    try:
        yield
    finally:
        gymnasium.registry[name] = before


PATCHES: dict[str, Callable[[], Any]] = {
    "another class of the same id": lambda: registered(
        "Pendulum-v1", entry_point=Half, max_episode_steps=200
    ),
    "other arguments of the same id": lambda: registered(
        "Pendulum-v1",
        entry_point="gymnasium.envs.classic_control.pendulum:PendulumEnv",
        max_episode_steps=200,
        kwargs={"g": 2.0},
    ),
    "a wrapper of the same id": lambda: registered(
        "Pendulum-v1",
        entry_point="gymnasium.envs.classic_control.pendulum:PendulumEnv",
        max_episode_steps=200,
        additional_wrappers=(RepeatAction.wrapper_spec(num_repeats=3),),
    ),
}


@pytest.mark.parametrize("name", PATCHES)
def test_an_id_that_was_taken_by_another_has_no_compiled_dynamics(name: str) -> None:
    usual = played(gymnasium.make("Pendulum-v1"))
    with PATCHES[name]():
        problem = spaql.make_problem("Pendulum-v1")
        assert problem.dynamics is None
        assert played(problem.make()) == played(gymnasium.make("Pendulum-v1")) != usual
    assert spaql.make_problem("Pendulum-v1").dynamics is not None


def test_an_object_is_not_what_its_id_has_become() -> None:
    env = gymnasium.make("Pendulum-v1")
    usual = played(env)
    with registered("Pendulum-v1", entry_point=Half, max_episode_steps=200):
        problem = spaql.make_problem(env)
        assert (problem.env, problem.dynamics) == (None, None)
        assert played(problem.make()) == usual


def plant(gain: float) -> spaql.Dynamics:
    def start(rng):
        return (rng.uniform(-1.0, 1.0),)

    def step(state, action):
        return (gain * state[0],), -abs(state[0]), False

    return spaql.Dynamics(
        id="test/Gain-v0", start=start, step=step, observations={"x": (-3, 3)}, actions=("a", "b"), horizon=10
    )


def test_a_plant_whose_id_was_taken_is_refused() -> None:
    first = plant(1.0)
    given = gymnasium.make("test/Gain-v0")
    second = plant(0.5)
    with pytest.raises(spaql.SettingError, match="an id of its own"):
        spaql.make_problem(first)
    assert spaql.make_problem(second).dynamics is second
    kept = spaql.make_problem(given)  # an environment of the first, which has no id any more
    assert kept.dynamics is None
    assert kept.make().unwrapped.dynamics is first
    del gymnasium.registry["test/Gain-v0"]
    gymnasium.register("test/Gain-v0", entry_point=Plant, max_episode_steps=30)
    assert spaql.make_problem("test/Gain-v0").dynamics is None


@pytest.mark.parametrize("name", [*CLASSIC, "spaql/DCMotor-v0"])
def test_an_object_is_not_compiled_and_says_that_its_id_would_be(name: str) -> None:
    assert spaql.make_problem(name, measured=False).dynamics is not None
    problem = spaql.make_problem(TimeLimit(gymnasium.make(name), 77), measured=False)
    assert (problem.env, problem.dynamics, problem.horizon) == (None, None, 77)
    assert f'("{name}" as an id trains on compiled dynamics, which is faster)' in problem.runs_on


def test_an_object_of_another_id_says_nothing_of_it() -> None:
    assert spaql.make_problem(gymnasium.make("test/Plant-v0")).runs_on == "copies of the Plant that was given"


def test_an_object_of_declared_dynamics_keeps_their_meaning() -> None:
    by_id = spaql.make_problem("spaql/DCMotor-v0")
    problem = spaql.make_problem(gymnasium.make("spaql/DCMotor-v0"))
    assert isinstance(problem.make().unwrapped, DynamicsEnv)
    assert problem.states.names == by_id.states.names
    assert problem.setpoints == by_id.setpoints


def test_a_method_that_was_replaced_on_the_object_is_refused() -> None:
    env = gymnasium.make("Pendulum-v1")
    before = env.unwrapped.step
    env.unwrapped.step = lambda action: before(0 * action)
    with pytest.raises(spaql.BadEnvironmentError, match=r"its step was replaced.*give 'Pendulum-v1' instead"):
        spaql.make_problem(env)


def test_a_cart_without_force_is_judged_as_one() -> None:
    env = with_attributes("CartPole-v1", force_mag=0.0)()
    agent = spaql.SPAQL(env, rollouts=2, seed=0).learn(iterations=2, progress_bar=False)
    assert agent.problem.dynamics is None
    lengths = [spaql.evaluate(agent, episodes=3, seed=seed).lengths for seed in range(3)]
    assert np.min(lengths) > 25  # nobody pushes: the pole takes its time to fall
    assert spaql.evaluate(agent, "CartPole-v1", episodes=20).lengths.min() < 25


def test_a_file_does_not_claim_the_id_of_what_differs(tmp_path: Any) -> None:
    env = with_attributes("CartPole-v1", force_mag=1.0)()
    agent = spaql.SPAQL(env, rollouts=1, seed=0, horizon=10).learn(iterations=1, progress_bar=False)
    agent.save(tmp_path / "a.spaql")
    with pytest.raises(spaql.BadEnvironmentError, match="pass it again"):
        spaql.evaluate(spaql.load(tmp_path / "a.spaql"), episodes=1)
    again = spaql.load(tmp_path / "a.spaql", env=env)
    assert again.problem.make().unwrapped.force_mag == 1.0
