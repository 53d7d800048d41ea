"""Plants of ARCH-COMP's category AINNCS of up to four numbers of state: what small trees are proven to do.

    python benchmarks/archcomp.py
    python benchmarks/archcomp.py tora-reach --steps 100000 --seconds 60

The plants, initial boxes, control periods and specifications are those of the category reports ("ARCH-COMP
Category Report: Artificial Intelligence and Neural Network Control Systems", 2023 and 2024, and the models of
JuliaReach). The competition verifies given neural networks in continuous time. Here TreeSearch finds a tree
for each plant, and what is proven is about the plant as integrated by Runge and Kutta's method of order 4
with the substeps below; where something has to hold at all times, it is checked at every substep.

A specification is a goal within some steps: a clock is a number of the state where the specification names a
time, and an episode terminates at the goal only if nothing was violated before.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Callable
from dataclasses import dataclass

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
    starts: Ranges
    within: int


def _uniform(box: Ranges, extra: tuple[float, ...] = ()) -> Callable[..., tuple[float, ...]]:
    """Return a function that draws starts from a box; numbers after it begin at given values."""
    low = tuple(ends[0] for ends in box.values())
    high = tuple(ends[1] for ends in box.values())

    if len(low) == 2:

        def start(rng):
            return (rng.uniform(low[0], high[0]), rng.uniform(low[1], high[1])) + extra  # noqa: RUF005 (Numba)

    else:

        def start(rng):
            x, y = rng.uniform(low[0], high[0]), rng.uniform(low[1], high[1])
            z, w = rng.uniform(low[2], high[2]), rng.uniform(low[3], high[3])
            return (x, y, z, w) + extra  # noqa: RUF005 (Numba)

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
    x1, x2, x3, x4, clock = state
    worst = 0.0
    for _ in range(10):
        x1, x2, x3, x4 = _tora(x1, x2, x3, x4, action[0], 0.1)
        worst = max(worst, abs(x1), abs(x2), abs(x3), abs(x4))
    violated = worst > 2.0
    after = clock + 1.0
    reward = -(x1 * x1 + x2 * x2 + x3 * x3 + x4 * x4) - (20.0 if violated else 0.0)
    return (x1, x2, x3, x4, _NEVER if violated else after), reward, after > 19.5 and not violated


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
        a, b, v, w, clock = state
        a, b, v, w = _double_pendulum(a, b, v, w, action[0], action[1], period)
        worst = max(abs(a - middle), abs(b - middle), abs(v - middle), abs(w - middle))
        violated = worst > reach
        after = clock + 1.0
        reward = -((a - middle) ** 2 + (b - middle) ** 2 + (v - middle) ** 2 + (w - middle) ** 2)
        reward -= 20.0 if violated else 0.0
        return (a, b, v, w, _NEVER if violated else after), reward, after > 19.5 and not violated

    return step


# Docking of a spacecraft: Clohessy-Wiltshire equations, 12 kg, sampled every second.


@numba.njit
def _docking_rates(x, vx, vy, fx, fy):
    n = 0.001027
    return 3.0 * n * n * x + 2.0 * n * vy + fx / 12.0, -2.0 * n * vx + fy / 12.0


def _step_docking(state, action):
    x, y, vx, vy, clock = state
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
    after = clock + 1.0
    reward = -vx * vx - vy * vy - (20.0 if violated else 0.0)
    return (x, y, vx, vy, _NEVER if violated else after), reward, after > 39.5 and not violated


def _without(count):
    """Return an observation of the first numbers of a state."""
    if count == 2:
        return lambda state: (state[0], state[1])
    return lambda state: (state[0], state[1], state[2], state[3])


def _benchmark(
    name: str, step: Callable, starts: Ranges, actions: Ranges, within: int, **more: float
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
    return Benchmark(plant, {**starts, **extra}, within)


def benchmarks() -> dict[str, Benchmark]:
    """Return the plants by name."""
    torque = {"torque 1": (-4.0, 4.0), "torque 2": (-4.0, 4.0)}
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
            {"u": (-2.0, 2.0)}, 20, clock=0.0,
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
            "DoublePendulumLess", _double_pendulum_step(0.05, -1.0, 1.7), links, torque, 20, clock=0.0
        ),
        "double-pendulum-more-robust": _benchmark(
            "DoublePendulumMore", _double_pendulum_step(0.02, -0.5, 1.5), links, torque, 20, clock=0.0
        ),
        "docking": _benchmark(
            "Docking", _step_docking,
            {"x": (70.0, 106.0), "y": (70.0, 106.0), "speed x": (-0.14, 0.14), "speed y": (-0.14, 0.14)},
            {"force x": (-1.0, 1.0), "force y": (-1.0, 1.0)}, 40, clock=0.0,
        ),
    }  # fmt: skip
    found["unicycle"].starts["state 4"] = (-1e-4, 1e-4)
    return found


def row(name: str, one: Benchmark, steps: int, seconds: float, seed: int) -> dict[str, object]:
    """Return what a tree that is searched for is proven to do."""
    began = time.process_time()
    agent = spaql.TreeSearch(spaql.make_problem(one.plant), seed=seed)
    agent.learn(total_timesteps=steps, progress_bar=False)
    trained = time.process_time() - began
    fresh = spaql.evaluate(agent, episodes=200)
    asked = Statement(starts=one.starts, termination="goal", within=one.within, forward=True)
    verdict = spaql.verify(agent, statement=asked, seconds=seconds)
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
    parser.add_argument("--steps", type=int, default=100_000)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    for name in given.names or known:
        found = row(name, known[name], given.steps, given.seconds, given.seed)
        print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
