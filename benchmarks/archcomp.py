"""Plants of ARCH-COMP's category AINNCS with small states: what small trees are proven to do.

    python benchmarks/archcomp.py
    python benchmarks/archcomp.py tora-reach --steps 100000 --seconds 60

The plants, initial boxes, control periods and specifications are those of the category reports ("ARCH-COMP
Category Report: Artificial Intelligence and Neural Network Control Systems", 2023 and 2024, and the models of
JuliaReach). The competition verifies given neural networks in continuous time. Here TreeSearch finds a tree
for each plant, and what is proven is about the plant as integrated by Runge and Kutta's method of order 4
with the substeps below; where something has to hold at all times, it is checked at every substep.

A specification is that nothing is violated in some steps, or a goal within some: then a clock is a number of
the state where the specification names a time, and an episode terminates at the goal only if nothing was
violated before.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import numba

import spaql
from spaql.verify import Statement

Ranges = dict[str, tuple[float, float]]
_CLOCK = (-0.1, 0.1)
_NEVER = -1e6
"""A clock that never comes to its end: something was violated."""


@dataclass(frozen=True)
class Benchmark:
    """A plant with its specification."""

    plant: spaql.Dynamics
    asked: Statement


def _uniform(box: Ranges, extra: tuple[float, ...] = ()) -> Callable[..., tuple[float, ...]]:
    """Return a function that draws starts from a box; numbers after it begin at given values."""
    low = tuple(ends[0] for ends in box.values())
    high = tuple(ends[1] for ends in box.values())

    if len(low) == 2:

        def start(rng):
            return (rng.uniform(low[0], high[0]), rng.uniform(low[1], high[1])) + extra  # noqa: RUF005 (Numba)

    elif len(low) == 4:

        def start(rng):
            x, y = rng.uniform(low[0], high[0]), rng.uniform(low[1], high[1])
            z, w = rng.uniform(low[2], high[2]), rng.uniform(low[3], high[3])
            return (x, y, z, w) + extra  # noqa: RUF005 (Numba)

    else:

        def start(rng):
            x, y = rng.uniform(low[0], high[0]), rng.uniform(low[1], high[1])
            z, w = rng.uniform(low[2], high[2]), rng.uniform(low[3], high[3])
            return (x, y, z, w, rng.uniform(low[4], high[4]), rng.uniform(low[5], high[5]))

    return start


# Single pendulum: m = L = 0.5, g = 1, no friction; sampled every 0.05.


@numba.njit
def _pendulum(x, v, u, h):
    a1 = 2.0 * math.sin(x) + 8.0 * u
    v2 = v + 0.5 * h * a1
    a2 = 2.0 * math.sin(x + 0.5 * h * v) + 8.0 * u
    v3 = v + 0.5 * h * a2
    a3 = 2.0 * math.sin(x + 0.5 * h * v2) + 8.0 * u
    v4 = v + h * a3
    a4 = 2.0 * math.sin(x + h * v3) + 8.0 * u
    return x + h / 6.0 * (v + 2.0 * v2 + 2.0 * v3 + v4), v + h / 6.0 * (a1 + 2.0 * a2 + 2.0 * a3 + a4)


def _step_pendulum(state, action):
    x, v, clock = state
    x, v = _pendulum(x, v, action[0], 0.05)
    after = clock + 1.0
    violated = after > 9.5 and (x < 0.0 or x > 1.0)
    reward = -((x - 0.5) ** 2) - 0.01 * v * v - (5.0 if violated else 0.0)
    return (x, v, _NEVER if violated else after), reward, after > 19.5 and not violated


# TORA: a cart on a spring, with a rotating weight.


@numba.njit
def _tora(x1, x2, x3, x4, u, h):
    a1 = -x1 + 0.1 * math.sin(x3)
    y1, y2, y3, y4 = x1 + 0.5 * h * x2, x2 + 0.5 * h * a1, x3 + 0.5 * h * x4, x4 + 0.5 * h * u
    a2 = -y1 + 0.1 * math.sin(y3)
    z1, z2, z3, z4 = x1 + 0.5 * h * y2, x2 + 0.5 * h * a2, x3 + 0.5 * h * y4, x4 + 0.5 * h * u
    a3 = -z1 + 0.1 * math.sin(z3)
    w1, w2, w3, w4 = x1 + h * z2, x2 + h * a3, x3 + h * z4, x4 + h * u
    a4 = -w1 + 0.1 * math.sin(w3)
    return (
        x1 + h / 6.0 * (x2 + 2.0 * y2 + 2.0 * z2 + w2),
        x2 + h / 6.0 * (a1 + 2.0 * a2 + 2.0 * a3 + a4),
        x3 + h / 6.0 * (x4 + 2.0 * y4 + 2.0 * z4 + w4),
        x4 + h * u,
    )


def _step_tora_safe(state, action):
    x1, x2, x3, x4 = state
    worst = 0.0
    for _ in range(10):
        x1, x2, x3, x4 = _tora(x1, x2, x3, x4, action[0], 0.1)
        worst = max(worst, abs(x1), abs(x2), abs(x3), abs(x4))
    violated = worst > 2.0
    reward = 0.0 if violated else 2.0 - (0.5 * worst) ** 2
    return (x1, x2, x3, x4), reward, violated


def _step_tora_reach(state, action):
    x1, x2, x3, x4 = state
    for _ in range(5):
        x1, x2, x3, x4 = _tora(x1, x2, x3, x4, action[0], 0.1)
    reached = x1 >= -0.1 and x1 <= 0.2 and x2 >= -0.9 and x2 <= -0.6
    reward = -((x1 - 0.05) ** 2 + (x2 + 0.75) ** 2) - (0.0 if reached else 0.2)
    return (x1, x2, x3, x4), reward, reached


# Unicycle: the disturbance w is constant, and not known.


@numba.njit
def _unicycle(x, y, angle, speed, turn, push, h):
    middle, late = angle + 0.5 * h * turn, angle + h * turn
    s2, s4 = speed + 0.5 * h * push, speed + h * push
    return (
        x + h / 6.0 * (speed * math.cos(angle) + 4.0 * s2 * math.cos(middle) + s4 * math.cos(late)),
        y + h / 6.0 * (speed * math.sin(angle) + 4.0 * s2 * math.sin(middle) + s4 * math.sin(late)),
        late,
        s4,
    )


def _step_unicycle(state, action):
    x, y, angle, speed, w = state
    for _ in range(2):
        x, y, angle, speed = _unicycle(x, y, angle, speed, action[1], action[0] + w, 0.1)
    reached = abs(x) <= 0.6 and abs(y) <= 0.2 and abs(angle) <= 0.06 and abs(speed) <= 0.3
    cost = 0.02 * abs(x) + 0.05 * abs(y) + 0.05 * abs(angle) + 0.02 * abs(speed)
    return (x, y, angle, speed, w), -cost - (0.0 if reached else 0.5), reached


# NAV: a robot that avoids a square.


def _step_nav(state, action):
    x, y, speed, angle, clock = state
    violated = False
    for _ in range(2):
        x, y, angle, speed = _unicycle(x, y, angle, speed, action[1], action[0], 0.1)
        if x > 1.0 and x < 2.0 and y > 1.0 and y < 2.0:
            violated = True
    after = clock + 1.0
    late = after > 29.5 and (abs(x) > 0.5 or abs(y) > 0.5)
    failed = violated or late
    reward = -0.1 * (abs(x) + abs(y)) - (20.0 if failed else 0.0)
    return (x, y, speed, angle, _NEVER if failed else after), reward, after > 29.5 and not failed


# Double pendulum: m = L = 0.5, g = 1, no friction.


@numba.njit
def _links(a, b, v, w, t1, t2):
    gap = a - b
    near, apart = math.cos(gap), math.sin(gap)
    half = 0.5 * w * w * apart
    first = 2.0 * math.sin(a) + 4.0 * t1
    other = v * v * apart - near * (first - half) + 2.0 * math.sin(b) + 8.0 * t2
    under = 0.5 * near * near - 1.0
    return near * other / (2.0 * under) - half + first, -other / under


@numba.njit
def _double_pendulum(a, b, v, w, t1, t2, h):
    p1, q1 = _links(a, b, v, w, t1, t2)
    v2, w2 = v + 0.5 * h * p1, w + 0.5 * h * q1
    p2, q2 = _links(a + 0.5 * h * v, b + 0.5 * h * w, v2, w2, t1, t2)
    v3, w3 = v + 0.5 * h * p2, w + 0.5 * h * q2
    p3, q3 = _links(a + 0.5 * h * v2, b + 0.5 * h * w2, v3, w3, t1, t2)
    v4, w4 = v + h * p3, w + h * q3
    p4, q4 = _links(a + h * v3, b + h * w3, v4, w4, t1, t2)
    return (
        a + h / 6.0 * (v + 2.0 * v2 + 2.0 * v3 + v4),
        b + h / 6.0 * (w + 2.0 * w2 + 2.0 * w3 + w4),
        v + h / 6.0 * (p1 + 2.0 * p2 + 2.0 * p3 + p4),
        w + h / 6.0 * (q1 + 2.0 * q2 + 2.0 * q3 + q4),
    )


def _double_pendulum_step(period, low, high):
    middle = 0.5 * (low + high)
    reach = 0.5 * (high - low)

    def step(state, action):
        a, b, v, w = state
        a, b, v, w = _double_pendulum(a, b, v, w, action[0], action[1], period)
        worst = max(abs(a - middle), abs(b - middle), abs(v - middle), abs(w - middle))
        violated = worst > reach
        effort = 0.001 * (action[0] * action[0] + action[1] * action[1])
        reward = 0.0 if violated else 2.0 - (worst / reach) ** 4 - effort
        return (a, b, v, w), reward, violated

    return step


# Docking of a spacecraft: Clohessy-Wiltshire equations, 12 kg, sampled every second.


@numba.njit
def _docking_rates(x, vx, vy, fx, fy):
    n = 0.001027
    return 3.0 * n * n * x + 2.0 * n * vy + fx / 12.0, -2.0 * n * vx + fy / 12.0


def _step_docking(state, action):
    x, y, vx, vy = state
    fx, fy = action[0], action[1]
    a1, b1 = _docking_rates(x, vx, vy, fx, fy)
    vx2, vy2 = vx + 0.5 * a1, vy + 0.5 * b1
    a2, b2 = _docking_rates(x + 0.5 * vx, vx2, vy2, fx, fy)
    vx3, vy3 = vx + 0.5 * a2, vy + 0.5 * b2
    a3, b3 = _docking_rates(x + 0.5 * vx2, vx3, vy3, fx, fy)
    vx4, vy4 = vx + a3, vy + b3
    a4, b4 = _docking_rates(x + vx3, vx4, vy4, fx, fy)
    x += (vx + 2.0 * vx2 + 2.0 * vx3 + vx4) / 6.0
    y += (vy + 2.0 * vy2 + 2.0 * vy3 + vy4) / 6.0
    vx += (a1 + 2.0 * a2 + 2.0 * a3 + a4) / 6.0
    vy += (b1 + 2.0 * b2 + 2.0 * b3 + b4) / 6.0
    excess = math.sqrt(vx * vx + vy * vy) - 0.2 - 0.002054 * math.sqrt(x * x + y * y)
    violated = excess > 0.0
    reward = 0.0 if violated else 1.0 - vx * vx - vy * vy - 0.1 * (fx * fx + fy * fy)
    return (x, y, vx, vy), reward, violated


# Adaptive cruise control: the car ahead brakes with 2 m/s²; sampled every 0.1 s.


@numba.njit
def _car(x, v, a, wanted, h):
    r1, s1 = a, -2.0 * a + 2.0 * wanted - 0.0001 * v * v
    v2, a2 = v + 0.5 * h * r1, a + 0.5 * h * s1
    r2, s2 = a2, -2.0 * a2 + 2.0 * wanted - 0.0001 * v2 * v2
    v3, a3 = v + 0.5 * h * r2, a + 0.5 * h * s2
    r3, s3 = a3, -2.0 * a3 + 2.0 * wanted - 0.0001 * v3 * v3
    v4, a4 = v + h * r3, a + h * s3
    r4, s4 = a4, -2.0 * a4 + 2.0 * wanted - 0.0001 * v4 * v4
    return (
        x + h / 6.0 * (v + 2.0 * v2 + 2.0 * v3 + v4),
        v + h / 6.0 * (r1 + 2.0 * r2 + 2.0 * r3 + r4),
        a + h / 6.0 * (s1 + 2.0 * s2 + 2.0 * s3 + s4),
    )


def _step_cruise(state, action):
    ahead, their_speed, theirs, own, speed, acceleration = state
    ahead, their_speed, theirs = _car(ahead, their_speed, theirs, -2.0, 0.1)
    own, speed, acceleration = _car(own, speed, acceleration, action[0], 0.1)
    spare = ahead - own - 10.0 - 1.4 * speed
    violated = spare < 0.0
    reward = 0.0 if violated else 2.0 - 0.001 * (speed - 30.0) ** 2 - 1.0 / (1.0 + spare)
    return (ahead, their_speed, theirs, own, speed, acceleration), reward, violated


# Attitude of a rigid body, as three rates and three numbers of Rodrigues; sampled every 0.1.


@numba.njit
def _attitude_rates(w1, w2, w3, p1, p2, p3, u1, u2, u3):
    s = p1 * p1 + p2 * p2 + p3 * p3
    return (
        0.25 * (u1 + w2 * w3),
        0.5 * (u2 - 3.0 * w1 * w3),
        u3 + 2.0 * w1 * w2,
        0.5 * (w2 * (s - p3) + w3 * (s + p2) + w1 * (s + 1.0)),
        0.5 * (w1 * (s + p3) + w3 * (s - p1) + w2 * (s + 1.0)),
        0.5 * (w1 * (s - p2) + w2 * (s + p1) + w3 * (s + 1.0)),
    )


def _step_attitude(state, action):
    w1, w2, w3, p1, p2, p3 = state
    u1, u2, u3 = action[0], action[1], action[2]
    h, violated = 0.05, False
    for _ in range(2):
        a1, a2, a3, a4, a5, a6 = _attitude_rates(w1, w2, w3, p1, p2, p3, u1, u2, u3)
        g = 0.5 * h
        b1, b2, b3, b4, b5, b6 = _attitude_rates(
            w1 + g * a1, w2 + g * a2, w3 + g * a3, p1 + g * a4, p2 + g * a5, p3 + g * a6, u1, u2, u3
        )
        c1, c2, c3, c4, c5, c6 = _attitude_rates(
            w1 + g * b1, w2 + g * b2, w3 + g * b3, p1 + g * b4, p2 + g * b5, p3 + g * b6, u1, u2, u3
        )
        d1, d2, d3, d4, d5, d6 = _attitude_rates(
            w1 + h * c1, w2 + h * c2, w3 + h * c3, p1 + h * c4, p2 + h * c5, p3 + h * c6, u1, u2, u3
        )
        k = h / 6.0
        w1, w2, w3 = (
            w1 + k * (a1 + 2.0 * b1 + 2.0 * c1 + d1),
            w2 + k * (a2 + 2.0 * b2 + 2.0 * c2 + d2),
            w3 + k * (a3 + 2.0 * b3 + 2.0 * c3 + d3),
        )
        p1, p2, p3 = (
            p1 + k * (a4 + 2.0 * b4 + 2.0 * c4 + d4),
            p2 + k * (a5 + 2.0 * b5 + 2.0 * c5 + d5),
            p3 + k * (a6 + 2.0 * b6 + 2.0 * c6 + d6),
        )
        inside = max(abs(w1 + 0.1) - 0.1, abs(w2 + 0.45) - 0.05, abs(w3 - 0.1) - 0.1)
        inside = max(inside, abs(p1 + 0.65) - 0.05, abs(p2 - 0.75) - 0.05, abs(p3 + 0.3) - 0.1)
        violated = violated or inside <= 0.0
    size = w1 * w1 + w2 * w2 + w3 * w3 + p1 * p1 + p2 * p2 + p3 * p3
    violated = violated or size > 50.0  # these numbers have no bound: it is upside down
    reward = 0.0 if violated else 5.0 - min(size, 4.0)
    return (w1, w2, w3, p1, p2, p3), reward, violated


def _without(count):
    """Return an observation of the first numbers of a state."""
    if count == 2:
        return lambda state: (state[0], state[1])
    if count == 6:
        return lambda state: state
    return lambda state: (state[0], state[1], state[2], state[3])


def _benchmark(
    name: str, step: Callable, starts: Ranges, actions: Ranges, within: int, safe: bool = False, **more: float
) -> Benchmark:
    """Return a plant whose numbers after the observed ones are given with their value at the start."""
    observed = len(starts)
    plant = spaql.Dynamics(
        id=f"archcomp/{name}-v0",
        start=_uniform(starts, tuple(more.values())),
        step=step,
        observe=_without(observed),
        observations=dict.fromkeys(starts, (-math.inf, math.inf)),
        actions=actions,
        horizon=within,
    )
    extra = {f"state {observed + i}": _CLOCK for i in range(len(more))}
    asked = Statement(
        starts={**starts, **extra}, termination="failure" if safe else "goal", within=within, forward=True
    )
    return Benchmark(plant, asked)


def benchmarks() -> dict[str, Benchmark]:
    """Return the plants by name."""
    torque = {"torque 1": (-10.0, 10.0), "torque 2": (-10.0, 10.0)}
    links = dict.fromkeys(("angle 1", "angle 2", "speed 1", "speed 2"), (1.0, 1.3))
    tora = ("x1", "x2", "x3", "x4")
    robot = {"acceleration": (-2.0, 2.0), "turn": (-2.0, 2.0)}
    found = {
        "single-pendulum": _benchmark(
            "SinglePendulum", _step_pendulum, {"angle": (1.0, 1.2), "speed": (0.0, 0.2)},
            {"torque": (-2.0, 2.0)}, 20, clock=0.0,
        ),
        "tora-safe": _benchmark(
            "TORASafe", _step_tora_safe,
            dict(zip(tora, ((0.6, 0.7), (-0.7, -0.6), (-0.4, -0.3), (0.5, 0.6)), strict=True)),
            {"u": (-2.0, 2.0)}, 20, safe=True,
        ),
        "tora-reach": _benchmark(
            "TORAReach", _step_tora_reach,
            dict(zip(tora, ((-0.77, -0.75), (-0.45, -0.43), (0.51, 0.54), (-0.3, -0.28)), strict=True)),
            {"u": (-11.0, 11.0)}, 10,
        ),
        "unicycle": _benchmark(
            "Unicycle", _step_unicycle,
            {"x": (9.5, 9.55), "y": (-4.5, -4.45), "angle": (2.1, 2.11), "speed": (1.5, 1.51)},
            {"acceleration": (-5.0, 5.0), "turn": (-5.0, 5.0)}, 50, disturbance=0.0,
        ),
        "nav": _benchmark(
            "NAV", _step_nav,
            {"x": (2.9, 3.1), "y": (2.9, 3.1), "speed": (-1e-6, 1e-6), "angle": (-1e-6, 1e-6)},
            robot, 30, clock=0.0,
        ),
        "double-pendulum-less-robust": _benchmark(
            "DoublePendulumLess", _double_pendulum_step(0.05, -1.0, 1.7), links, torque, 20, safe=True
        ),
        "double-pendulum-more-robust": _benchmark(
            "DoublePendulumMore", _double_pendulum_step(0.02, -0.5, 1.5), links, torque, 20, safe=True
        ),
        "docking": _benchmark(
            "Docking", _step_docking,
            {"x": (70.0, 106.0), "y": (70.0, 106.0), "speed x": (-0.14, 0.14), "speed y": (-0.14, 0.14)},
            {"force x": (-1.0, 1.0), "force y": (-1.0, 1.0)}, 40, safe=True,
        ),
        "cruise-control": _benchmark(
            "CruiseControl", _step_cruise,
            {
                "ahead": (90.0, 110.0), "speed ahead": (32.0, 32.2), "acceleration ahead": (-1e-6, 1e-6),
                "position": (10.0, 11.0), "speed": (30.0, 30.2), "acceleration": (-1e-6, 1e-6),
            },
            {"wanted acceleration": (-3.0, 2.0)}, 50, safe=True,
        ),
        "attitude": _benchmark(
            "Attitude", _step_attitude,
            {
                "rate 1": (-0.45, -0.44), "rate 2": (-0.55, -0.54), "rate 3": (0.65, 0.66),
                "angle 1": (-0.75, -0.74), "angle 2": (0.85, 0.86), "angle 3": (-0.65, -0.64),
            },
            dict.fromkeys(("torque 1", "torque 2", "torque 3"), (-5.0, 5.0)), 30, safe=True,
        ),
    }  # fmt: skip
    starts = {**found["unicycle"].asked.starts, "state 4": (-1e-4, 1e-4)}
    found["unicycle"] = replace(found["unicycle"], asked=replace(found["unicycle"].asked, starts=starts))
    return found


def row(name: str, one: Benchmark, steps: int, leaves: int, seconds: float, seed: int) -> dict[str, object]:
    """Return what a tree that is searched for is proven to do."""
    began = time.process_time()
    agent = spaql.TreeSearch(spaql.make_problem(one.plant), seed=seed, max_leaves=leaves)
    agent.learn(total_timesteps=steps, progress_bar=False)
    trained = time.process_time() - began
    fresh = spaql.evaluate(agent, episodes=200)
    verdict = spaql.verify(agent, statement=one.asked, seconds=seconds)
    return {
        "benchmark": name,
        "leaves": agent.policy.n_leaves,
        "return": round(fresh.mean, 3),
        "proven": round(verdict.proven, 4),
        "refuted": round(verdict.refuted, 4),
        "seconds": round(verdict.seconds, 2),
        "search": round(trained, 1),
        "counterexample": None if verdict.counterexample is None else verdict.counterexample.start,
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    known = benchmarks()
    parser.add_argument("names", nargs="*", help=f"of {', '.join(known)}; all by default")
    parser.add_argument("--steps", type=int, default=1_000_000)
    parser.add_argument("--leaves", type=int, default=1, help="most leaves of a tree")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    for name in given.names or known:
        found = row(name, known[name], given.steps, given.leaves, given.seconds, given.seed)
        print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
