"""Worlds that PlanTree was never tuned on: two plants that Gymnasium has not, noise and wind."""

import math
from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Discrete

import spaql

TRACK = 2.4  # m, to either side
CART, POLE, HALF_LENGTH = 1.0, 0.1, 0.5  # kg, kg, m
GRAVITY = 9.8  # m/s2
SUBSTEP = 0.02  # s, two of them a step


def hang(rng):
    """The cart near the middle, the pole hanging."""
    return rng.uniform(-0.2, 0.2), 0.0, math.pi + rng.uniform(-0.2, 0.2), 0.0


def swing(state, action):
    """Push the cart for 0.04 s; the more upright and the nearer to the middle, the better."""
    x, v, angle, speed = state
    for _ in range(2):
        sin, cos = math.sin(angle), math.cos(angle)
        pushed = (action[0] + POLE * HALF_LENGTH * speed * speed * sin) / (CART + POLE)
        turn = (GRAVITY * sin - cos * pushed) / (HALF_LENGTH * (4.0 / 3.0 - POLE * cos * cos / (CART + POLE)))
        push = pushed - POLE * HALF_LENGTH * turn * cos / (CART + POLE)
        v, speed = v + SUBSTEP * push, speed + SUBSTEP * turn
        x, angle = x + SUBSTEP * v, angle + SUBSTEP * speed
    reward = 0.5 * (1.0 + math.cos(angle)) * (1.0 - abs(x) / TRACK)
    return (x, v, angle, speed), reward, abs(x) > TRACK


def see(state):
    """An angle is seen as its cosine and sine, so that it has no jump."""
    x, v, angle, speed = state
    return x, v, math.cos(angle), math.sin(angle), speed


SWING_UP = spaql.Dynamics(
    id="CartPoleSwingUp-v0",
    start=hang,
    step=swing,
    observe=see,
    observations={
        "cart position [m]": (-math.inf, math.inf),
        "cart speed [m/s]": (-math.inf, math.inf),
        "cos(angle)": (-1.0, 1.0),
        "sin(angle)": (-1.0, 1.0),
        "pole speed [rad/s]": (-math.inf, math.inf),
    },
    actions={"force [N]": (-15.0, 15.0)},
    horizon=250,
)


def fill(rng):
    """Both levels anywhere below the brim."""
    return rng.uniform(0.0, 1.0), rng.uniform(0.0, 1.0)


def pump(state, action):
    """Pump for 2 s; the nearer the lower level is to 0.5 m, the better."""
    upper, lower = state
    between, outflow = 0.006 * math.sqrt(upper), 0.006 * math.sqrt(lower)
    upper = min(max(upper + 10.0 * (0.010 * action[0] - between), 0.0), 1.5)
    lower = min(max(lower + 10.0 * (between - outflow), 0.0), 1.5)
    return (upper, lower), 1.0 - abs(lower - 0.5), False


TWO_TANKS = spaql.Dynamics(
    id="TwoTanks-v0",
    start=fill,
    step=pump,
    observations={"upper level [m]": (0.0, 1.5), "lower level [m]": (0.0, 1.5)},
    actions={"pump power": (0.0, 1.0)},
    horizon=200,
)


class Windy(gymnasium.Wrapper):
    """A constant torque in Nm on Gymnasium's pendulum, besides that of the motor."""

    def __init__(self, env: gymnasium.Env, torque: float) -> None:
        super().__init__(env)
        self._torque = torque

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        _, *rest = self.env.step(action)
        pendulum: Any = self.env.unwrapped
        angle, speed = pendulum.state
        push = 3.0 / (pendulum.m * pendulum.l**2) * self._torque * pendulum.dt
        faster = np.clip(speed + push, -pendulum.max_speed, pendulum.max_speed)
        pendulum.state = np.array([angle + (faster - speed) * pendulum.dt, faster])
        return pendulum._get_obs(), *rest


class Noisy(gymnasium.Wrapper):
    """Gaussian noise on what is done and seen, as shares of half the range; a range without end counts as 4.

    A listed action has no neighbours: it is replaced by a random one, in a share of the steps.
    """

    def __init__(self, env: gymnasium.Env, done: float, seen: float) -> None:
        super().__init__(env)
        assert isinstance(env.observation_space, Box)
        low, high = env.observation_space.low, env.observation_space.high
        self._seen = seen * np.where(np.isfinite(high - low) & (high - low < 1e6), high - low, 4.0) / 2
        self._done = done

    def reset(self, **options: Any) -> tuple[Any, dict[str, Any]]:
        observation, info = self.env.reset(**options)
        return self._blurred(observation), info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        rng, space = self.env.unwrapped.np_random, self.env.action_space
        if isinstance(space, Discrete):
            action = int(rng.integers(space.n)) if rng.random() < self._done else action
        elif isinstance(space, Box):
            noise = rng.normal(size=space.shape) * self._done * (space.high - space.low) / 2
            action = np.clip(action + noise, space.low, space.high).astype(space.dtype)
        observation, *rest = self.env.step(action)
        return self._blurred(observation), *rest

    def _blurred(self, observation: Any) -> Any:
        space = self.env.observation_space
        noise = self.env.unwrapped.np_random.normal(size=space.shape) * self._seen
        return np.clip(observation + noise, space.low, space.high).astype(space.dtype)
