"""Plants that anyone would call easy, each compared with a plain law: does every seed learn them?

    python benchmarks/easy.py --steps 20000 --seeds 100-119
    python benchmarks/easy.py --algo PlanTree --steps 5000 --plants room,cruise
    python benchmarks/easy.py --steps 20000 --units 1000

The plain law has a few parameters, tuned by 60 evaluations. Controllers and laws play the same 600 starts,
with the same noise. No set-points are declared, so that a plant is as a stranger's. With --units
observations, actions and rewards are so many times larger.
"""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from gymnasium.spaces import Discrete
from gymnasium.wrappers import RescaleAction, RescaleObservation
from numba import njit
from scipy.optimize import minimize

import spaql
from spaql.controllers import Policy, RandomPolicy
from spaql.kernels.plant import as_tuple
from spaql.simulate.play import returns_from
from studies import Row, column, groups, parser, run, show, spread

EPISODES = 600
NETWORKS = ("SAC", "PPO", "DQN")


@dataclass(frozen=True)
class Plant:
    """A plant, and the plain law of its observations by columns."""

    start: Callable
    step: Callable
    observations: dict[str, tuple[float, float]]
    actions: dict[str, tuple[float, float]] | list[str]
    horizon: int
    law: Callable
    parameters: list[float]
    observe: Callable | None = None

    def dynamics(self, name: str, units: float = 1.0) -> spaql.Dynamics:
        """Return the plant in other units, which are part of its id."""
        step, observe = (self.step, self.observe) if units == 1.0 else in_units(self, units)
        return spaql.Dynamics(
            id=f"easy/{name}x{units:g}-v0",
            start=self.start,
            step=step,
            observations=wider(self.observations, units),
            actions=wider(self.actions, units),
            horizon=self.horizon,
            **({} if observe is None else {"observe": observe}),
        )


def wider(ranges: dict[str, tuple[float, float]] | list[str], units: float) -> Any:
    """Return ranges in other units; a list stays as it is."""
    if isinstance(ranges, list):
        return ranges
    return {name: (low * units, high * units) for name, (low, high) in ranges.items()}


def in_units(plant: Plant, units: float) -> tuple[Callable, Callable]:
    """Return the step and the observations of a plant in other units."""
    inner = njit(plant.step)
    look = njit(plant.observe) if plant.observe else njit(lambda x: x)
    listed = isinstance(plant.actions, list)
    noisy = plant.step.__code__.co_argcount == 3
    scaled = njit((lambda action: action) if listed else (lambda action: action / units))

    def step(x, action):
        x, reward, ended = inner(x, scaled(action))
        return x, reward * units, ended

    def noisy_step(x, action, rng):
        x, reward, ended = inner(x, scaled(action), rng)
        return x, reward * units, ended

    length = len(plant.observations)
    times = njit(lambda y: as_tuple(np.array(y) * units, length))

    def observe(x):
        return times(look(x))

    return (noisy_step if noisy else step), observe


PLANTS: dict[str, Plant] = {}

# A room with a heater, whose wanted temperature steps half way.


def room_start(rng):
    return rng.uniform(14, 26), rng.uniform(18, 24), rng.uniform(-5, 15), rng.uniform(18, 24), 0.0


def room_step(x, action):
    temperature, wanted, outdoor, later, clock = x
    temperature = temperature + 0.05 * (outdoor - temperature) + 2.0 * action[0]
    clock = clock + 1.0
    if clock == 100.0:
        wanted = later
    return (temperature, wanted, outdoor, later, clock), -abs(temperature - wanted), False


def room_law(y, p):
    return p[0] * (y[1] - y[0]) + p[1] * (y[1] - y[2])


PLANTS["room"] = Plant(
    room_start,
    room_step,
    {"temperature": (-30, 80), "wanted": (10, 30), "outdoor": (-20, 40)},
    {"heating": (0.0, 1.0)},
    200,
    room_law,
    [0.4, 0.02],
    observe=lambda x: (x[0], x[1], x[2]),
)

# A double integrator with a quadratic cost.


def integrator_start(rng):
    return rng.uniform(-1, 1), rng.uniform(-1, 1)


def integrator_step(x, action):
    position, speed = x
    reward = -(position * position + 0.1 * speed * speed + 0.01 * action[0] * action[0])
    speed = speed + 0.1 * action[0]
    return (position + 0.1 * speed, speed), reward, False


PLANTS["double-integrator"] = Plant(
    integrator_start,
    integrator_step,
    {"position": (-30, 30), "speed": (-15, 15)},
    {"force": (-1.0, 1.0)},
    150,
    lambda y, p: -p[0] * y[0] - p[1] * y[1],
    [2.0, 2.0],
)

# Cruise control, with drag and slopes.


def cruise_start(rng):
    return rng.uniform(5, 25), rng.uniform(10, 30), rng.uniform(-0.05, 0.05)


def cruise_step(x, action):
    speed, wanted, slope = x
    speed = speed + 0.5 * (4.0 * action[0] - 0.002 * speed * speed - 9.81 * slope - 0.1)
    return (min(max(speed, 0.0), 60.0), wanted, slope), -abs(speed - wanted), False


PLANTS["cruise"] = Plant(
    cruise_start,
    cruise_step,
    {"speed": (0, 60), "wanted": (5, 35), "slope": (-0.1, 0.1)},
    {"pedal": (-1.0, 1.0)},
    100,
    lambda y, p: p[0] * (y[1] - y[0]) + p[1] * y[2] + p[2] * y[1] ** 2,
    [0.3, 2.5, 0.0005],
)

# The level of a tank with a free outflow.


def tank_start(rng):
    return rng.uniform(0.1, 1.4), rng.uniform(0.2, 1.2)


def tank_step(x, action):
    level, wanted = x
    level = level + 0.2 * (action[0] - 0.8 * math.sqrt(max(level, 0.0)))
    return (min(max(level, 0.0), 2.0), wanted), -abs(level - wanted), False


PLANTS["tank"] = Plant(
    tank_start,
    tank_step,
    {"level": (0, 2), "wanted": (0, 2)},
    {"inflow": (0.0, 1.0)},
    100,
    lambda y, p: p[0] * (y[1] - y[0]) + 0.8 * p[1] * np.sqrt(np.maximum(y[1], 0.0)),
    [4.0, 1.0],
)

# A position servo.


def servo_start(rng):
    return rng.uniform(-3, 3), 0.0, rng.uniform(-3, 3)


def servo_step(x, action):
    angle, speed, wanted = x
    error = angle - wanted
    speed = speed + 0.05 * (20.0 * action[0] - 2.0 * speed)
    return (angle + 0.05 * speed, speed, wanted), -(error * error + 0.001 * speed * speed), False


PLANTS["servo"] = Plant(
    servo_start,
    servo_step,
    {"angle": (-40, 40), "speed": (-12, 12), "wanted": (-4, 4)},
    {"voltage": (-1.0, 1.0)},
    120,
    lambda y, p: p[0] * (y[2] - y[0]) - p[1] * y[1],
    [2.0, 0.3],
)

# Two rooms with a wall between them, a heater in each.


def rooms_start(rng):
    return (
        rng.uniform(10, 25),
        rng.uniform(10, 25),
        rng.uniform(18, 23),
        rng.uniform(18, 23),
        rng.uniform(-5, 10),
    )


def rooms_step(x, action):
    a, b, wanted_a, wanted_b, outdoor = x
    next_a = a + 0.05 * (outdoor - a) + 0.08 * (b - a) + 2.0 * action[0]
    next_b = b + 0.04 * (outdoor - b) + 0.08 * (a - b) + 1.5 * action[1]
    reward = -abs(next_a - wanted_a) - abs(next_b - wanted_b)
    return (next_a, next_b, wanted_a, wanted_b, outdoor), reward, False


def rooms_law(y, p):
    return (
        p[0] * (y[2] - y[0]) + p[1] * (y[2] - y[4]),
        p[2] * (y[3] - y[1]) + p[3] * (y[3] - y[4]),
    )


PLANTS["two-rooms"] = Plant(
    rooms_start,
    rooms_step,
    {"a": (-30, 80), "b": (-30, 80), "wanted a": (10, 30), "wanted b": (10, 30), "outdoor": (-20, 40)},
    {"heating a": (0.0, 1.0), "heating b": (0.0, 1.0)},
    120,
    rooms_law,
    [0.4, 0.02, 0.4, 0.02],
)

# The shower of many a tutorial: colder, the same or warmer.


def shower_start(rng):
    return 38.0 + math.floor(rng.uniform(-3, 4)), rng.uniform(0, 1)


def shower_step(x, action, rng):
    temperature, idle = x
    temperature = temperature + (action - 1) + math.floor(rng.uniform(-1.0, 2.0))
    return (min(max(temperature, 0.0), 100.0), idle), 1.0 if 37.0 <= temperature <= 39.0 else -1.0, False


PLANTS["shower"] = Plant(
    shower_start,
    shower_step,
    {"temperature": (0, 100)},
    ["colder", "same", "warmer"],
    60,
    lambda y, p: np.where(y[0] > 38, 0, np.where(y[0] < 38, 2, 1)),
    [0.0],
    observe=lambda x: (x[0],),
)

# A stock with random demand, and seven order quantities.


def stock_start(rng):
    return (rng.uniform(0, 20),)


def stock_step(x, action, rng):
    (stock,) = x
    stock = stock + action - math.floor(rng.uniform(0.0, 5.0))
    cost = 0.1 * max(stock, 0.0) + 1.0 * max(-stock, 0.0)
    return (min(max(stock, -20.0), 40.0),), -cost, False


PLANTS["stock"] = Plant(
    stock_start,
    stock_step,
    {"stock": (-20, 40)},
    ["0", "1", "2", "3", "4", "5", "6"],
    60,
    lambda y, p: np.clip(np.round(p[0] - y[0]), 0, 6),
    [6.0],
)

# A ball on a beam, whose angle is limited.


def beam_start(rng):
    return rng.uniform(-0.8, 0.8), 0.0, rng.uniform(-0.1, 0.1), rng.uniform(-0.5, 0.5)


def beam_step(x, action):
    place, speed, angle, wanted = x
    angle = min(max(angle + 0.05 * action[0], -0.3), 0.3)
    speed = speed + 0.05 * 7.0 * math.sin(angle)
    place = place + 0.05 * speed
    if abs(place) > 1.0:
        place = 1.0 if place > 0 else -1.0
        speed = 0.0
    return (place, speed, angle, wanted), -((place - wanted) ** 2) - 0.01 * speed * speed, False


PLANTS["ball-on-beam"] = Plant(
    beam_start,
    beam_step,
    {"place": (-1, 1), "speed": (-5, 5), "angle": (-0.3, 0.3), "wanted": (-1, 1)},
    {"turn": (-1.0, 1.0)},
    200,
    lambda y, p: p[0] * (y[3] - y[0]) - p[1] * y[1] - p[2] * y[2],
    [3.0, 3.0, 15.0],
)

# A tank with a hot and a cold inflow: level and temperature.


def mixing_start(rng):
    return rng.uniform(0.3, 1.5), rng.uniform(15, 55), rng.uniform(0.6, 1.2), rng.uniform(25, 45)


def mixing_step(x, action):
    level, warmth, wanted_level, wanted_warmth = x
    inflow = 0.05 * (action[0] + action[1])
    warmth = (level * warmth + 0.05 * (60.0 * action[0] + 10.0 * action[1])) / (level + inflow)
    level = min(max(level + inflow - 0.05 * math.sqrt(level), 0.05), 2.0)
    reward = -abs(level - wanted_level) * 10.0 - abs(warmth - wanted_warmth) * 0.2
    return (level, warmth, wanted_level, wanted_warmth), reward, False


def mixing_law(y, p):
    hot = p[0] * (y[2] - y[0]) + p[1] * (y[3] - y[1]) + 0.02 * (y[3] - 10.0) * p[2]
    return hot, p[0] * (y[2] - y[0]) - p[1] * (y[3] - y[1]) + 0.02 * (60.0 - y[3]) * p[2]


PLANTS["mixing-tank"] = Plant(
    mixing_start,
    mixing_step,
    {"level": (0, 2), "warmth": (0, 70), "wanted level": (0, 2), "wanted warmth": (10, 60)},
    {"hot": (0.0, 1.0), "cold": (0.0, 1.0)},
    150,
    mixing_law,
    [5.0, 0.2, 0.9],
)

# A thermostat: on or off, with a lock of four steps after each switch and a price of switching.


def thermostat_start(rng):
    return rng.uniform(12, 26), 0.0, 5.0, rng.uniform(-5, 10), rng.uniform(18, 22)


def thermostat_step(x, action):
    temperature, on, since, outdoor, wanted = x
    cost = 0.0
    if action != on and since >= 4.0:
        on = 1.0 - on
        since = 0.0
        cost = 0.3
    temperature = temperature + 0.03 * (outdoor - temperature) + 1.0 * on
    reward = -abs(temperature - wanted) - cost
    return (temperature, on, min(since + 1.0, 5.0), outdoor, wanted), reward, False


PLANTS["thermostat"] = Plant(
    thermostat_start,
    thermostat_step,
    {"temperature": (-20, 60), "on": (0, 1), "since": (0, 5), "outdoor": (-10, 20), "wanted": (15, 25)},
    ["off", "on"],
    200,
    lambda y, p: y[4] + p[0] + p[1] * (2 * y[1] - 1) - y[0] > 0,
    [0.0, 0.3],
)

# Follow a car at 1.5 s, with five pedals in no order.


def follow_start(rng):
    return rng.uniform(5, 60), rng.uniform(5, 30), rng.uniform(8, 28)


def follow_step(x, action, rng):
    gap, speed, lead = x
    pull = 0.0
    if action == 0:
        pull = 1.0
    elif action == 1:
        pull = -3.0
    elif action == 2:
        pull = 2.0
    elif action == 4:
        pull = -1.0
    lead = min(max(lead + rng.uniform(-0.3, 0.3), 5.0), 30.0)
    speed = min(max(speed + 0.5 * pull, 0.0), 40.0)
    gap = min(max(gap + 0.5 * (lead - speed), 0.0), 150.0)
    return (gap, speed, lead), -abs(gap - 2.0 - 1.5 * speed) * 0.1, False


def follow_law(y, p):
    wish = p[0] * (y[0] - 2.0 - 1.5 * y[1]) + p[1] * (y[2] - y[1])
    return np.select([wish > 1.5, wish > 0.5, wish > -0.5, wish > -2.0], [2, 0, 3, 4], 1)


PLANTS["follow"] = Plant(
    follow_start,
    follow_step,
    {"gap": (0, 150), "speed": (0, 40), "lead": (0, 40)},
    ["soft", "brake", "full", "none", "drag"],
    120,
    follow_law,
    [0.2, 0.8],
)


# The plants from here on were written when the method was fixed.

# The pressure of a vessel in Pa, and a valve in kg/s; the demand is measured.


def vessel_start(rng):
    return rng.uniform(5e3, 15e3), rng.uniform(6e3, 14e3), rng.uniform(0.5e-3, 2e-3)


def vessel_step(x, action, rng):
    pressure, wanted, demand = x
    pressure = pressure + 5e5 * (action[0] - demand) + rng.uniform(-20.0, 20.0)
    return (max(pressure, 0.0), wanted, demand), -abs(pressure - wanted) / 1000.0, False


PLANTS["vessel"] = Plant(
    vessel_start,
    vessel_step,
    {"pressure": (0, 1e5), "wanted": (0, 2e4), "demand": (0, 5e-3)},
    {"inflow": (0.0, 4e-3)},
    150,
    lambda y, p: y[2] + p[0] * 1e-6 * (y[1] - y[0]),
    [1.0],
)

# The speed of a DC motor, with its current and a measured load.


def motor_start(rng):
    return 0.0, rng.uniform(-50, 50), rng.uniform(-80, 80), rng.uniform(-0.2, 0.2)


def motor_step(x, action):
    current, speed, wanted, load = x
    current = current + 0.3 * ((action[0] - 0.1 * speed) / 1.0 - current)
    speed = speed + 0.02 * (0.1 * current - load) / 0.002 - 0.01 * speed
    return (current, speed, wanted, load), -1e-3 * (speed - wanted) ** 2 - 1e-3 * current * current, False


PLANTS["motor"] = Plant(
    motor_start,
    motor_step,
    {"current": (-40, 40), "speed": (-400, 400), "wanted": (-100, 100), "load": (-0.5, 0.5)},
    {"voltage": (-24.0, 24.0)},
    150,
    lambda y, p: p[0] * (y[2] - y[1]) - p[1] * y[0] + p[2] * y[2] + p[3] * y[3],
    [0.3, 0.2, 0.12, 10.0],
)

# A crane: a trolley whose load swings.


def crane_start(rng):
    return rng.uniform(-2, 2), 0.0, rng.uniform(-0.1, 0.1), 0.0, rng.uniform(-2, 2)


def crane_step(x, action):
    place, speed, angle, rate, wanted = x
    push = 2.0 * action[0] - 0.5 * speed
    rate = rate + 0.05 * (-9.81 * math.sin(angle) - push * math.cos(angle)) / 2.0 - 0.005 * rate
    angle = angle + 0.05 * rate
    speed = speed + 0.05 * push
    place = place + 0.05 * speed
    return (place, speed, angle, rate, wanted), -((place - wanted) ** 2) - 5.0 * angle * angle, False


PLANTS["crane"] = Plant(
    crane_start,
    crane_step,
    {"place": (-20, 20), "speed": (-10, 10), "angle": (-2, 2), "rate": (-5, 5), "wanted": (-3, 3)},
    {"force": (-1.0, 1.0)},
    250,
    lambda y, p: p[0] * (y[4] - y[0]) - p[1] * y[1] + p[2] * y[2] + p[3] * y[3],
    [0.8, 1.0, 1.0, 0.3],
)

# A drone that holds a height in gusts.


def hover_start(rng):
    return rng.uniform(0, 5), rng.uniform(-1, 1), rng.uniform(1, 4)


def hover_step(x, action, rng):
    height, climb, wanted = x
    climb = climb + 0.05 * (action[0] / 1.2 - 9.81 - 0.1 * climb) + rng.uniform(-0.05, 0.05)
    height = height + 0.05 * climb
    return (height, climb, wanted), -abs(height - wanted) - 0.1 * abs(climb), False


PLANTS["hover"] = Plant(
    hover_start,
    hover_step,
    {"height": (-50, 50), "climb": (-20, 20), "wanted": (0, 5)},
    {"thrust": (0.0, 20.0)},
    200,
    lambda y, p: 11.8 + p[0] * (y[2] - y[0]) - p[1] * y[1],
    [10.0, 7.0],
)

# Three tanks in a row with a pump each.


def tanks_start(rng):
    a = rng.uniform(0.2, 1.5)
    b = rng.uniform(0.2, 1.5)
    c = rng.uniform(0.2, 1.5)
    return a, b, c, rng.uniform(0.4, 1.2), rng.uniform(0.4, 1.2), rng.uniform(0.4, 1.2)


def tanks_step(x, action):
    a, b, c, wanted_a, wanted_b, wanted_c = x
    ab = 0.1 * (a - b)
    bc = 0.1 * (b - c)
    a = max(a + 0.2 * action[0] - ab - 0.03 * a, 0.0)
    b = max(b + 0.2 * action[1] + ab - bc - 0.03 * b, 0.0)
    c = max(c + 0.2 * action[2] + bc - 0.06 * c, 0.0)
    lost = (a - wanted_a) ** 2 + (b - wanted_b) ** 2 + (c - wanted_c) ** 2
    return (a, b, c, wanted_a, wanted_b, wanted_c), -lost, False


def tanks_law(y, p):
    return tuple(p[0] * (y[3 + i] - y[i]) + p[1] * y[3 + i] for i in range(3))


PLANTS["three-tanks"] = Plant(
    tanks_start,
    tanks_step,
    dict.fromkeys(("a", "b", "c", "wanted a", "wanted b", "wanted c"), (0, 3)),
    {"pump a": (0.0, 1.0), "pump b": (0.0, 1.0), "pump c": (0.0, 1.0)},
    100,
    tanks_law,
    [4.0, 0.2],
)

# A lift with five drives, in their order.


def lift_start(rng):
    return rng.uniform(0, 20), 0.0, rng.uniform(0, 20)


def lift_step(x, action):
    height, speed, wanted = x
    speed = speed + 0.2 * (1.5 * (action - 2) - 0.5 * speed)
    height = height + 0.2 * speed
    return (height, speed, wanted), -abs(height - wanted) - 0.05 * abs(speed), False


PLANTS["lift"] = Plant(
    lift_start,
    lift_step,
    {"height": (-100, 120), "speed": (-10, 10), "wanted": (0, 20)},
    ["fast down", "down", "hold", "up", "fast up"],
    100,
    lambda y, p: np.clip(np.round(2 + p[0] * (y[2] - y[0]) - p[1] * y[1]), 0, 4),
    [1.0, 1.0],
)

# A cart that is pushed to the left, to the right, or not at all.


def cart_start(rng):
    return rng.uniform(-3, 3), rng.uniform(-1, 1)


def cart_step(x, action):
    place, speed = x
    speed = 0.98 * speed + 0.1 * (action - 1)
    place = place + 0.1 * speed
    return (place, speed), -place * place - 0.1 * speed * speed - 0.05 * abs(action - 1), False


PLANTS["cart"] = Plant(
    cart_start,
    cart_step,
    {"place": (-60, 60), "speed": (-6, 6)},
    ["left", "none", "right"],
    200,
    lambda y, p: np.clip(np.round(1 - p[0] * y[0] - p[1] * y[1]), 0, 2),
    [1.0, 1.5],
)

# A greenhouse with a heater and a vent, random clouds, and the weather measured.


def house_start(rng):
    return (
        rng.uniform(10, 30),
        rng.uniform(40, 90),
        rng.uniform(0, 15),
        rng.uniform(18, 24),
        rng.uniform(50, 70),
    )


def house_step(x, action, rng):
    warmth, damp, outdoor, wanted_warmth, wanted_damp = x
    cooling = 0.03 + 0.1 * action[1]
    warmth = warmth + cooling * (outdoor - warmth) + 2.0 * action[0] + rng.uniform(-0.2, 0.2)
    damp = damp + 1.5 - (0.02 + 0.06 * action[1]) * (damp - 30.0) + rng.uniform(-0.5, 0.5)
    reward = -abs(warmth - wanted_warmth) - 0.1 * abs(damp - wanted_damp)
    return (warmth, damp, outdoor, wanted_warmth, wanted_damp), reward, False


def house_law(y, p):
    return p[0] * (y[3] - y[0]) + p[1] * (y[3] - y[2]), p[2] * (y[1] - y[4]) + p[3]


PLANTS["greenhouse"] = Plant(
    house_start,
    house_step,
    {
        "warmth": (-20, 100),
        "damp": (0, 150),
        "outdoor": (-5, 20),
        "wanted warmth": (15, 30),
        "wanted damp": (40, 80),
    },
    {"heating": (0.0, 1.0), "vent": (0.0, 1.0)},
    150,
    house_law,
    [0.4, 0.05, 0.1, 0.3],
)

# A pole that is to stay upright, where an episode ends if it falls.


def upright_start(rng):
    return rng.uniform(-0.2, 0.2), rng.uniform(-0.2, 0.2)


def upright_step(x, action, rng):
    angle, rate = x
    rate = rate + 0.02 * (9.81 * math.sin(angle) + 4.0 * action[0]) + rng.uniform(-0.02, 0.02)
    angle = angle + 0.02 * rate
    return (angle, rate), 1.0 - angle * angle, abs(angle) > 0.8


PLANTS["upright"] = Plant(
    upright_start,
    upright_step,
    {"angle": (-2, 2), "rate": (-10, 10)},
    {"torque": (-1.0, 1.0)},
    200,
    lambda y, p: -p[0] * y[0] - p[1] * y[1],
    [5.0, 1.5],
)


class PlainLaw(Policy):
    """The plain law of a plant."""

    def __init__(self, plant: Plant, problem: spaql.Problem, parameters: np.ndarray, units: float) -> None:
        self.plant = plant
        self.parameters = parameters
        self.units = units
        self.observation_space = problem.states.space
        self.action_space = problem.actions.space

    def act(self, observations, steps, rng):
        """Return a batch of actions."""
        y = observations.astype(np.float64).T / self.units
        actions = np.atleast_2d(self.plant.law(y, self.parameters)).T
        if isinstance(self.plant.actions, list):
            return actions[:, 0].astype(np.int64)
        return np.clip(self.units * actions, self.action_space.low, self.action_space.high)


class Network(Policy):
    """A network of Stable-Baselines3 with its defaults; observations and actions are scaled to [-1, 1]."""

    def __init__(self, name: str, problem: spaql.Problem, steps: int, seed: int) -> None:
        import stable_baselines3
        import torch

        torch.set_num_threads(1)
        env = RescaleObservation(problem.make(), -1.0, 1.0)
        self.observation_space = problem.states.space
        self.action_space = problem.actions.space
        self.listed = isinstance(self.action_space, Discrete)
        if not self.listed:
            env = RescaleAction(env, -1.0, 1.0)
        self.model = getattr(stable_baselines3, name)("MlpPolicy", env, seed=seed, device="cpu")
        self.model.learn(steps)

    def act(self, observations, steps, rng):
        """Return a batch of actions."""
        low = self.observation_space.low
        high = self.observation_space.high
        actions = self.model.predict(2.0 * (observations - low) / (high - low) - 1.0, deterministic=True)[0]
        if self.listed:
            return actions
        low = self.action_space.low
        high = self.action_space.high
        return low + (actions + 1.0) / 2.0 * (high - low)


def trained(algorithm: str, dynamics: spaql.Dynamics, steps: int, seed: int) -> tuple[Policy, int]:
    """Return what an algorithm learns, and the steps that it took."""
    if algorithm in NETWORKS:
        return Network(algorithm, spaql.make_problem(dynamics), steps, seed), steps
    agent = getattr(spaql, algorithm)(dynamics, seed=seed).learn(total_timesteps=steps, progress_bar=False)
    return agent.policy, agent.training_steps


def mean_return(policy: Policy, problem: spaql.Problem, episodes: int, seed: int) -> float:
    """Return the mean return from starts that the seed draws."""
    return float(
        returns_from(policy, problem, problem.dynamics.draw(episodes, np.random.default_rng(seed)))[0].mean()
    )


@functools.cache
def problem_of(name: str, units: float) -> spaql.Problem:
    """Return the problem of a plant, which is the same one for all seeds."""
    return spaql.make_problem(PLANTS[name].dynamics(name, units))


@functools.cache
def references(name: str, units: float) -> tuple[float, float]:
    """Return the mean return of random actions and of the tuned plain law."""
    plant = PLANTS[name]
    problem = problem_of(name, units)

    def cost(parameters):
        return -mean_return(PlainLaw(plant, problem, parameters, units), problem, 20, 9)

    parameters = minimize(cost, plant.parameters, method="Nelder-Mead", options={"maxfev": 60}).x
    low = spaql.evaluate(RandomPolicy(problem.states, problem.actions), problem, episodes=50, seed=5).mean
    return float(low), mean_return(PlainLaw(plant, problem, parameters, units), problem, EPISODES, 5)


def one_seed(case: Row) -> Row:
    """Train with a seed, and judge what was learned."""
    problem = problem_of(case["plant"], case["units"])
    low, bound = references(case["plant"], case["units"])
    before = time.process_time()
    policy, steps = trained(case["algo"], problem.dynamics, case["budget"], case["seed"])
    cpu = time.process_time() - before
    mean = mean_return(policy, problem, EPISODES, 5)
    found = {"mean": mean, "random": low, "law": bound, "cpu": cpu, "steps": steps}
    return found | {"rules": str(policy)}


def line(name: str, found: list[Row]) -> Row:
    """Return a line of the table."""
    means = column(found, "mean")
    one = found[0]
    return {
        "plant": name,
        "random actions": one["random"],
        "plain law": one["law"],
        **spread(means),
        "worst, % of the way": 100 * float((means.min() - one["random"]) / (one["law"] - one["random"])),
        "worst, % behind": 100 * float((one["law"] - means.min()) / abs(one["law"])),
        "CPU s": float(column(found, "cpu").mean()),
        "most steps": max(row["steps"] for row in found),
    }


def main() -> None:
    """Train on each plant with each seed, and print a line for each plant."""
    options = parser(__doc__, seeds="0-4")
    options.add_argument("--algo", default="TreeSearch", choices=("TreeSearch", "PlanTree", *NETWORKS))
    options.add_argument("--steps", type=int, default=20_000)
    options.add_argument("--plants", default=",".join(PLANTS))
    options.add_argument("--units", type=float, default=1.0)
    given = options.parse_args()
    same = {"algo": given.algo, "budget": given.steps, "units": given.units}
    plants = given.plants.split(",")
    cases = [{"plant": name, "seed": seed} | same for name in plants for seed in given.seeds]
    found = groups(run(one_seed, cases, given), "plant")
    show([line(name, found[name,]) for name in plants])


if __name__ == "__main__":
    main()
