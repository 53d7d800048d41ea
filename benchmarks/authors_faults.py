"""What two faults of the authors' code are worth, which neither rule set has.

    python benchmarks/authors_faults.py                             # 20 seeds x 2,000 iterations
    python benchmarks/authors_faults.py --seeds 2 --iterations 100

The first state of each episode is used as the environment returns it, not mapped into the cube; and after a
gain the schedule of SPAQL and SPAQL-TS compares with a number of arms from before it. Each fault is added to
the rules of the authors' code by itself, then both. All else is as in `rule_differences.py`.
"""

from __future__ import annotations

import math
from dataclasses import asdict

import numpy as np
from rule_differences import AUTHORS_NAME, Case, agent_for, judged, main

import spaql
from spaql.algorithms.rule_sets import AUTHORS
from spaql.algorithms.spaql import SPAQLLearner
from spaql.kernels.jit import callable_by_kernels
from spaql.problems import make_problem
from spaql.problems.classic import (
    observe_pendulum,
    start_cartpole,
    start_pendulum,
    step_cartpole,
    step_pendulum,
)
from spaql.problems.dynamics import DYNAMICS, Dynamics
from spaql.problems.presets import PRESETS

FIRST, STALE, BOTH = "first state not scaled", "stale number of arms", "both faults"
TILT = 24 * math.pi / 180
pendulum_starts, pendulum_steps = callable_by_kernels(start_pendulum), callable_by_kernels(step_pendulum)
pendulum_seen = callable_by_kernels(observe_pendulum)
cartpole_starts, cartpole_steps = callable_by_kernels(start_cartpole), callable_by_kernels(step_cartpole)


# The last number of a state is 1 at the start. What is observed there is standardised to the plain state.


def start_first_pendulum(rng: np.random.Generator) -> tuple[float, float, float]:
    angle, speed = pendulum_starts(rng)
    return angle, speed, 1.0


def step_first_pendulum(state, action):
    (angle, speed), reward, terminated = pendulum_steps((state[0], state[1]), action)
    return (angle, speed, 0.0), reward, terminated


def observe_first_pendulum(state):
    cos, sin, speed = pendulum_seen((state[0], state[1]))
    return cos, sin, speed * (8.0 if state[2] > 0.0 else 1.0)


def start_first_cartpole(rng: np.random.Generator) -> tuple[float, float, float, float, float]:
    x, x_dot, theta, theta_dot = cartpole_starts(rng)
    return x, x_dot, theta, theta_dot, 1.0


def step_first_cartpole(state, action):
    (x, x_dot, theta, theta_dot), reward, terminated = cartpole_steps(
        (state[0], state[1], state[2], state[3]), action
    )
    return (x, x_dot, theta, theta_dot, 0.0), reward, terminated


def observe_first_cartpole(state):
    x, x_dot, theta, theta_dot, first = state
    if first > 0.0:
        return 4.8 * x, 240.0 * math.atanh(x_dot), TILT * theta, 21.0 * math.atanh(theta_dot)
    return x, x_dot, theta, theta_dot


def unscaled(problem: str) -> spaql.Problem:
    """Return a problem of the paper of which first states are not mapped into the cube."""
    preset = PRESETS[problem]
    plain = DYNAMICS[f"spaql/{preset.env}"]
    start, step, observe = (
        (start_first_pendulum, step_first_pendulum, observe_first_pendulum)
        if problem == "pendulum"
        else (start_first_cartpole, step_first_cartpole, observe_first_cartpole)
    )
    plant = Dynamics(
        id=f"faults/{problem}-v0",
        start=start,
        step=step,
        observe=observe,
        observations=plain.observations,
        actions=plain.actions,
        horizon=preset.horizon,
        reference=plain.reference,
    )
    return make_problem(plant, squash=preset.squash)


class StaleArms(SPAQLLearner):
    """The schedule of the authors' code, which does not forget the number of arms at a gain."""

    arms = 1

    def assess(self, mean_return: float) -> None:
        self.resets = 0
        if self.best_return is None:
            self.best_return = mean_return
            self.arms = self.best.arms
            return
        here = self.trainee.arms
        if self.arms == self.best.arms:
            self.arms = here
        if mean_return >= self.best_return:
            self.best_return = mean_return
            self.keep(self.trainee.copy())
            self.growth **= self.settings.temperature_damping
            self.cool()
            return
        splits_known = self.arms != self.best.arms
        if splits_known and here != self.arms:
            self.arms = self.best.arms
            self.trainee = self.best.copy()
            self.resets = 1
            self.cool()
        elif splits_known and self.temperature < self.rule_set.temperature_max:
            self.heat()


def run_all(case: Case) -> list[dict[str, object]]:
    """Train an agent without and with each fault; AQL has no schedule."""
    rows = {AUTHORS_NAME: judged(case, agent_for(case, AUTHORS))}
    rows[FIRST] = judged(case, agent_for(case, AUTHORS, unscaled(case.problem)))
    if case.algorithm != "aql":
        rows[STALE] = judged(case, agent_for(case, AUTHORS, schedule=(StaleArms,)))
        rows[BOTH] = judged(case, agent_for(case, AUTHORS, unscaled(case.problem), schedule=(StaleArms,)))
    return [{**asdict(case), "change": change, **row} for change, row in rows.items()]


if __name__ == "__main__":
    main(run_all, __doc__, "authors-faults.json")
