"""Nonlinear predictive control of the plants that spaql ships, as a bound from above.

    pip install casadi                                                # beside spaql
    python benchmarks/plants.py --seeds 8000 --out plants.json        # what is held against it
    python benchmarks/plants.py --seeds 8000 --out plants.json --nominal
    python benchmarks/nmpc.py --beside plants.json --out nmpc.json
    python benchmarks/nmpc.py --episodes 2 --plants Oven,Crane        # predictive control alone

The model is the plant itself: its step, traced as for a proof, with its dead time, rate limit and load, run
on symbols of CasADi. At every sample the rewards of the next samples are maximised over the actions by direct
multiple shooting, from the plan of the sample before, and the first action of the plan is given. It is told
the state of the plant without noise, and a load as soon as it begins (`true state`); or the load and the
plant's state as the sensors report it, noise and all, without a filter (`measured`). The episodes are the
first of those of benchmarks/plants.py on the plant itself. What is in the file of --out already is not run
again.

Absolute values are rounded off by a thousandth of the range of the set-points while a plan is looked for. A
plan is kept only if the plant's own equations say that it is better than the one before, so that a solver
that does not converge does no harm; how often it did not is counted.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import math
import time
from pathlib import Path
from typing import Any

import casadi
import numpy as np
from numpy.typing import NDArray

import spaql
from spaql.kernels.verify.codes import CONDITIONS, OPERATIONS
from spaql.problems import Dynamics, find_dynamics
from spaql.registration import HORIZONS
from spaql.rollouts.batches import fresh_states
from spaql.tables import markdown
from spaql.verify.tape import Tape
from spaql.verify.trace import trace_nominal

Floats = NDArray[np.float64]
KINDS = ("true state", "measured")
CLASSICAL = {"pid": "PID", "lqr": "regulator"}
GUESSES = (0.0, -0.5, 0.5)
"""Constant actions, of half the range, from which the first plan of an episode is looked for."""
SMALLEST = 1e-9
"""The least argument of a square root: its slope at 0 is infinite."""

OPERATORS: dict[str, Any] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b,
    "min": casadi.fmin,
    "max": casadi.fmax,
    "neg": lambda a: -a,
    "square": lambda a: a * a,
    "sqrt": lambda a: casadi.sqrt(casadi.fmax(a, SMALLEST)),
    **{name: getattr(casadi, name) for name in ("sin", "cos", "tan", "exp", "log", "atan", "tanh", "atan2")},
}
COMPARISONS = {"<": lambda a, b: a < b, "<=": lambda a, b: a <= b, "==": lambda a, b: a == b}


def on_symbols(tape: Tape, inputs: list[Any], rounding: float) -> list[Any]:
    """Return the outputs of a tape as expressions of CasADi."""
    arrays, rows = tape.arrays, []
    for code, first, second, value in zip(
        arrays.code, arrays.first, arrays.second, arrays.value, strict=True
    ):
        name = OPERATIONS[code]
        if name == "const":
            rows.append(casadi.SX(float(value)))
        elif name == "input":
            rows.append(inputs[first])
        elif name == "abs":
            rows.append(casadi.sqrt(rows[first] ** 2 + rounding**2) if rounding else casadi.fabs(rows[first]))
        else:
            rows.append(OPERATORS[name](rows[first], *([rows[second]] if second >= 0 else [])))

    def outputs(node: int) -> list[Any]:
        kind, a, b, yes, no, leaf, _ = (int(x) for x in arrays.branch[node])
        if kind < 0:
            return [rows[row] for row in arrays.outputs[leaf]]
        holds = COMPARISONS[CONDITIONS[kind]](rows[a], rows[b])
        sides = zip(outputs(yes), outputs(no), strict=True)
        return [x if x is y else casadi.if_else(holds, x, y) for x, y in sides]

    return outputs(0)


class PredictiveController:
    """Plans the next samples of a plant from its simulated state, one episode at a time."""

    def __init__(self, plant: Dynamics, samples: int) -> None:
        known = dataclasses.replace(plant, id=f"known/{plant.id.rpartition('/')[2]}", noise={})
        n, m = known.state_dims, len(known.actions)
        inputs = [casadi.SX.sym(f"x{i}") for i in range(n + m)]
        tape, _ = trace_nominal(known, simulated=True)
        width = max((np.ptp(plant.observations[name]) for name in plant.setpoints.values()), default=0.0)
        self._n, self._m, self._samples = n, m, samples
        # A state ends with the step at which each load begins and its size, a key, and the steps so far.
        disturbed = known.disturbances.is_needed
        self._count = n - 1 if disturbed else None
        self._begins = [n - 2 - 2 * j for j in range(1, len(known.disturbances.loads) + 1)]
        exact, rounded = (on_symbols(tape, inputs, rounding) for rounding in (0.0, 1e-3 * width))
        self._moving = [i for i in range(n - disturbed) if not casadi.is_equal(exact[i], inputs[i])]
        self._held = [i for i in range(n) if i not in self._moving]
        state, constants = (casadi.vertcat(*[inputs[i] for i in of]) for of in (self._moving, self._held))
        # A rate limit cuts what is beyond it, of which a solver sees no slope: plans keep within it.
        self._limited = {
            j: (self._moving.index(known.plant_dims + j), rate)
            for j, rate in enumerate(known.disturbances.rate)
            if math.isfinite(rate)
        }
        low, high = np.array(list(known.actions.values()), np.float64).T  # type: ignore[union-attr]
        self._middle, self._half = (low + high) / 2, (high - low) / 2
        action = casadi.SX.sym("action", m)
        given = casadi.vertcat(*inputs[n:])
        exact, rounded = (
            casadi.Function(
                "step",
                [state, action, constants],
                casadi.substitute(
                    [casadi.vertcat(*[outputs[i] for i in self._moving]), -outputs[n]],
                    [given],
                    [self._middle + self._half * action],
                ),
            )
            for outputs in (exact, rounded)
        )
        self._follow = self._rollout(exact, constants)
        self._solver, self._bounds = self._programme(rounded, constants)
        self._plan: Floats | None = None
        self.solved = self.failed = 0

    def _rollout(self, step: Any, constants: Any) -> Any:
        """Return a function of the state, a plan and constants: its cost, and the states on the way."""
        state, plan = casadi.SX.sym("state", len(self._moving)), casadi.SX.sym("plan", self._m, self._samples)
        states, cost = [state], 0.0
        for k in range(self._samples):
            after, more = step(states[-1], plan[:, k], constants)
            states.append(after)
            cost += more
        return casadi.Function("follow", [state, plan, constants], [cost, casadi.horzcat(*states)])

    def _programme(self, step: Any, constants: Any) -> tuple[Any, dict[str, Floats]]:
        """Return the solver of the programme, whose variables are states and actions in turn."""
        k = len(self._moving)
        begun, state = casadi.SX.sym("begun", k), casadi.SX.sym("state0", k)
        variables, conditions, most, cost = [state], [], [], 0.0
        for i in range(self._samples):
            action, following = casadi.SX.sym(f"action{i}", self._m), casadi.SX.sym(f"state{i + 1}", k)
            after, more = step(state, action, constants)
            conditions += [following - after] + ([state - begun] if i == 0 else [])
            most += [0.0] * (k if i else 2 * k)
            for j, (place, rate) in self._limited.items():
                conditions.append(self._middle[j] + self._half[j] * action[j] - state[place])
                most.append(rate)
            variables += [action, following]
            state, cost = following, cost + more
        programme = {
            "x": casadi.vertcat(*variables),
            "f": cost,
            "g": casadi.vertcat(*conditions),
            "p": casadi.vertcat(begun, constants),
        }
        solver = casadi.nlpsol(
            "solver",
            "fatrop",  # it uses that stages depend on their neighbours alone
            programme,
            {
                "structure_detection": "auto",
                "equality": [x == 0.0 for x in most],
                "print_time": False,
                "error_on_fail": False,
                "fatrop": {"print_level": 0, "tol": 1e-6, "max_iter": 60, "mu_init": 1e-2},
            },
        )
        stage = np.concatenate([np.ones(self._m), np.full(k, math.inf)])
        free = np.concatenate([np.full(k, math.inf), np.tile(stage, self._samples)])
        return solver, {"lbx": -free, "ubx": free, "lbg": -np.array(most), "ubg": np.array(most)}

    def begin(self) -> None:
        """Forget the plan of the last episode."""
        self._plan = None

    def act(self, state: tuple[float, ...]) -> Floats:
        """Return the action at a simulated state."""
        now = np.array(state[: self._n], np.float64)
        for i in self._begins:  # a load that has not begun is not known
            now[i] = -1.0 if state[self._count] >= now[i] else math.inf
        if self._count is not None:
            now[self._count] = 0.0
        begun, constants = now[self._moving], now[self._held]
        if self._plan is None:
            plans = [np.full((self._m, self._samples), x) for x in GUESSES]
        else:
            plans = [np.hstack([self._plan[:, 1:], self._plan[:, -1:]])]
        found = [better for plan in plans for better in self._improved(plan, begun, constants)]
        _, self._plan = min(found, key=lambda pair: pair[0])
        self._expected = np.array(self._follow(begun, self._plan, constants)[1])[:, 1]
        return self._middle + self._half * self._plan[:, 0]

    def surprise(self, state: tuple[float, ...]) -> float:
        """Return how far the state after an action is from what the model expected, relative to its size."""
        after = np.array(state)[self._moving]
        return float(np.max(np.abs(after - self._expected) / (1.0 + np.abs(after))))

    def _improved(self, plan: Floats, begun: Floats, constants: Floats) -> list[tuple[float, Floats]]:
        """Return a plan and what the solver makes of it, with their costs."""
        k = len(self._moving)
        cost, states = self._follow(begun, plan, constants)
        states = np.array(states)
        guess = np.concatenate([states[:, 0], np.vstack([plan, states[:, 1:]]).T.ravel()])
        solution = self._solver(x0=guess, p=np.concatenate([begun, constants]), **self._bounds)
        self.solved += 1
        self.failed += not self._solver.stats()["success"]
        found = [(float(cost), plan)]
        stages = np.array(solution["x"]).ravel()[k:].reshape(self._samples, -1)
        better = np.clip(stages[:, : self._m].T, -1.0, 1.0)
        if np.isfinite(better).all():
            found.append((float(self._follow(begun, better, constants)[0]), better))
        return [pair for pair in found if math.isfinite(pair[0])] or [(math.inf, plan)]


def as_measured(plant: Dynamics, state: tuple[float, ...]) -> tuple[float, ...]:
    """Return a simulated state in which the plant's numbers are those that the sensors report."""
    seen, names, numbers = plant.functions[2](state), list(plant.observations), []
    for i, name in enumerate(names):
        if name.startswith("cos("):
            numbers.append(math.atan2(seen[i + 1], seen[i]))
        elif not name.startswith("sin("):
            numbers.append(seen[i])
    return (*numbers, *state[len(numbers) :])


def played(plant: Dynamics, starts: Floats, samples: int, kind: str) -> dict[str, Any]:
    """Return the returns of predictive control from simulated states."""
    controller, step = PredictiveController(plant, samples), plant.functions[1]
    returns, surprise, cpu = [], 0.0, time.process_time()
    for start in starts:
        controller.begin()
        state, total = tuple(start.tolist()), 0.0
        for _ in range(plant.horizon):
            told = as_measured(plant, state) if kind == "measured" else state
            state, reward, ended = step(state, controller.act(told))
            total += float(reward)
            surprise = max(surprise, controller.surprise(state))
            if ended:
                break
        returns.append(total)
    return {
        "returns": returns,
        "not converged": controller.failed / controller.solved,
        "surprise": surprise,
        "cpu": time.process_time() - cpu,
    }


def row(found: dict[str, Any], beside: list[dict[str, Any]]) -> dict[str, str]:
    """Return the row of a plant: learner and best classical controller of each design in the same episodes.

    In brackets are their differences to predictive control, for each of its kinds.
    """
    kinds = [kind for kind in KINDS if kind in found]
    n = len(found[kinds[0]]["returns"])
    bounds = {f"NMPC, {kind}": float(np.mean(found[kind]["returns"])) for kind in kinds}

    def written(x: float) -> str:
        return f"{x:.0f}" if abs(x) >= 100 else f"{x:#.3g}"

    def compared(x: float) -> str:
        return f"{written(x)} ({', '.join(f'{(x - y) / abs(y):+.1%}' for y in bounds.values())})"

    told = {"plant": found["plant"].removeprefix("spaql/").removesuffix("-v0"), "episodes": str(n)}
    told |= {name: written(mean) for name, mean in bounds.items()}
    for one in beside:
        means = {key: float(np.mean(policy["returns"][:n])) for key, policy in one["nominal"].items()}
        best = max((key for key in means if key in CLASSICAL), key=lambda key: means[key])
        (own,) = means.keys() - {*CLASSICAL, "random"}
        told[f"{own}, {one['design']} design"] = compared(means[own])
        told[f"classical, {one['design']} design"] = f"{CLASSICAL[best]} {compared(means[best])}"
    return told | {
        "not converged": f"{found[kinds[0]]['not converged']:.1%}",
        "CPU s an episode": f"{found[kinds[0]]['cpu'] / n:.1f}",
    }


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--beside", type=Path, help="a JSON file of benchmarks/plants.py")
    parser.add_argument("--seed", type=int, default=8000, help="of the controllers that it is held against")
    parser.add_argument("--episodes", type=int, default=20, help="at most 100")
    parser.add_argument("--samples", type=int, default=40, help="how far it looks ahead")
    parser.add_argument("--kinds", default=",".join(KINDS), help="what it is told, separated by commas")
    parser.add_argument("--plants", default="", help="parts of names, separated by commas; all by default")
    parser.add_argument("--out", type=Path, help="a JSON file for everything that was measured")
    asked = parser.parse_args()
    designed = json.loads(asked.beside.read_text()) if asked.beside else []
    done = json.loads(asked.out.read_text()) if asked.out and asked.out.exists() else {}
    rows = []
    for name in HORIZONS:
        if not any(part in name for part in asked.plants.split(",")):
            continue
        plant = find_dynamics(name)
        assert plant is not None
        problem = spaql.make_problem(plant, measured=False)
        anyone = spaql.RandomPolicy(problem.states, problem.actions)
        starts = fresh_states(anyone, problem, 100, 10**6 + asked.seed)[: asked.episodes]
        settings = f"{name}, seed {asked.seed}, {asked.episodes} episodes, {asked.samples} samples"
        found = done.setdefault(settings, {"plant": name})
        for kind in asked.kinds.split(","):
            if kind not in found:
                found[kind] = played(plant, starts, asked.samples, kind)
                mean, surprise = np.mean(found[kind]["returns"]), found[kind]["surprise"]
                print(f"{name}, {kind}: {mean:.4g}, surprised by {surprise:.1g}", flush=True)
                if asked.out:
                    asked.out.write_text(json.dumps(done, indent=1))
        beside = [one for one in designed if (one["plant"], one["seed"]) == (name, asked.seed)]
        rows.append(row(found, beside))
    titles = max(rows, key=len)
    print(markdown([{title: one.get(title, "") for title in titles} for one in rows]))


if __name__ == "__main__":
    main()
