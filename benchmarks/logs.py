"""Controllers fitted to logs, judged in the environment that was logged.

    python benchmarks/logs.py --rows 10000 --seeds 0-2 --effort 0.2
    python benchmarks/logs.py --rows 3000 10000 30000 --kinds detuned mixture random

For each plant, kind and size of log: the return of its episodes, and the return of 100 fresh episodes in the
environment, which fitting never sees; then how many kept their promise. Logs are of a detuned controller with
noise, of random actions, each held for up to 20 steps, or of a mixture: each episode by the one or the other.
"""

from __future__ import annotations

import csv
import math
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium
import numpy as np

import spaql
from studies import Row, column, groups, parser, run, show

KINDS = ("detuned", "mixture", "random")
CAR = ["position", "velocity"]


class Plant(NamedTuple):
    """An environment with its detuned controller, and what is told of it to `spaql.fit`."""

    behaviour: Callable[[Any, np.random.Generator], Any]
    observations: list[str]
    action: str
    goal: Row


def pendulum(observation: Any, rng: np.random.Generator) -> list[float]:
    """Swing up by energy with 70 % of the torque, then hold by low gains; with noise."""
    cos, sin, speed = map(float, observation)
    angle = math.atan2(sin, cos)
    energy = speed * speed / 6 + 5 * (cos - 1)
    u = -8 * angle - speed if abs(angle) < 0.6 else 1.4 * float(np.sign(-speed * energy + 1e-9))
    return noisy(u, 0.8, 2.0, rng)


def cartpole(observation: Any, rng: np.random.Generator) -> int:
    """Switch by a weighted sum that hardly sees the cart, with noise; 15 % of the pushes are random."""
    x, v, angle, rate = map(float, observation)
    push = int(angle + 0.5 * rate + 0.02 * x + 0.05 * v + rng.normal(0, 0.1) > 0)
    return int(rng.integers(2)) if rng.random() < 0.15 else push


def pushing(number: int) -> Callable[[Any, np.random.Generator], int]:
    """Push where a number of the observation goes; 30 % of the pushes are random."""

    def act(observation: Any, rng: np.random.Generator) -> int:
        return int(rng.integers(3)) if rng.random() < 0.3 else 2 * int(observation[number] > 0)

    return act


def noisy(action: float, noise: float, most: float, rng: np.random.Generator) -> list[float]:
    return [float(np.clip(action + rng.normal(0, noise), -most, most))]


PLANTS = {
    "Pendulum-v1": Plant(
        pendulum,
        ["cos", "sin", "speed [rad/s]"],
        "torque [N m]",
        {
            "cost": "atan2(sin, cos)**2 + 0.1 * speed**2 + 0.001 * torque**2",
            "action_range": [-2, 2],
            "horizon": 200,
        },
    ),
    "CartPole-v1": Plant(
        cartpole,
        ["x", "v", "angle", "rate"],
        "push",
        {"reward": "1", "end": "abs(x) > 2.4 or abs(angle) > 12 * pi / 180", "horizon": 500},
    ),
    "Acrobot-v1": Plant(
        pushing(5),
        ["cos1", "sin1", "cos2", "sin2", "rate1", "rate2"],
        "torque",
        {"reward": "ended - 1", "end": "-cos1 - cos1 * cos2 + sin1 * sin2 > 1", "horizon": 500},
    ),
    "MountainCar-v0": Plant(
        pushing(1), CAR, "push", {"reward": "-1", "end": "position >= 0.5", "horizon": 200}
    ),
    "MountainCarContinuous-v0": Plant(
        lambda seen, rng: noisy(0.7 * float(np.sign(seen[1])), 0.4, 1.0, rng),
        CAR,
        "force",
        {
            "reward": "100 * ended - 0.1 * force**2",
            "end": "position >= 0.45 and velocity >= 0",
            "action_range": [-1, 1],
            "horizon": 999,
        },
    ),
    "spaql/DCMotor-v0": Plant(
        lambda seen, rng: noisy(3 * (float(seen[2]) - float(seen[0])) - 0.1 * float(seen[1]), 1.0, 12.0, rng),
        ["position [rad]", "speed [rad/s]", "setpoint [rad]"],
        "voltage [V]",
        {
            "cost": "(next_position - setpoint)**2 + 0.001 * (voltage / 12)**2",
            "action_range": [-12, 12],
            "horizon": 150,
            "setpoints": {"position": "setpoint"},
        },
    ),
}
"""Their laws push where the plant goes or follow by low gains; 15 to 30 % of listed actions are random."""


def held_at_random(space: gymnasium.Space[Any], rng: np.random.Generator) -> Iterator[Any]:
    """Give random actions, each for 1 to 20 steps."""
    while True:
        if isinstance(space, gymnasium.spaces.Box):
            action: Any = [float(rng.uniform(space.low[0], space.high[0]))]
        else:
            action = int(rng.integers(space.n))
        for _ in range(rng.integers(1, 21)):
            yield action


def write_log(path: Path, name: str, rows: int, seed: int, kind: str = "detuned") -> None:
    """Write whole episodes of at least so many rows; the last row of each has no action."""
    behaviour, observations, action, _ = PLANTS[name]
    rng = np.random.default_rng(seed)
    written = 0
    episode = 0
    with gymnasium.make(name) as env, path.open("w", newline="", encoding="utf-8") as file:
        at_random = held_at_random(env.action_space, rng)
        table = csv.writer(file)
        table.writerow(["run", *observations, action])
        while written < rows:
            observation = env.reset(seed=seed * 100_000 + episode)[0]
            over = False
            detuned = kind == "detuned" or (kind == "mixture" and rng.random() < 0.5)
            while not over:
                taken = behaviour(observation, rng) if detuned else next(at_random)
                table.writerow([episode, *map(float, observation), *np.ravel(taken)])
                played = np.array(taken, np.float32) if isinstance(taken, list) else taken
                observation, _, terminated, truncated, _ = env.step(played)
                over = terminated or truncated
                written = written + 1
            table.writerow([episode, *map(float, observation), ""])
            episode += 1


def fitted(case: Row) -> Row:
    """Fit to a log, and judge the controller in the environment."""
    name = case["plant"]
    seed = case["seed"]
    _, observations, action, goal = PLANTS[name]
    cpu = time.process_time()
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log.csv"
        write_log(log, name, case["rows"], seed, case["kind"])
        options = goal | {"episode": "run", "effort": case["effort"], "anyway": True}
        found = spaql.fit(
            [log], observations=observations, action=action, seed=seed, progress_bar=False, **options
        )
    assert found.agent is not None
    real = spaql.evaluate(found.agent, name, episodes=100)
    margin = real.ci95 + found.half
    logged, noise = found.logged
    return {
        "logged": logged,
        "predicted": found.predicted,
        "real": real.mean,
        "verdict": found.verdict,
        "kept": bool(real.mean >= found.predicted - margin),
        "fails": bool(real.mean < logged - noise - real.ci95),
        "leaves": found.leaves,
        "cpu": time.process_time() - cpu,
    }


def main() -> None:
    """Print the mean returns of each kind of log, and what the verdicts were worth."""
    options = parser(__doc__, seeds="0-2")
    options.add_argument("--rows", type=int, nargs="*", default=[10_000])
    options.add_argument("--effort", type=float, default=1.0)
    options.add_argument("--kinds", nargs="*", choices=KINDS, default=["detuned"])
    options.add_argument("--plants", nargs="*", choices=PLANTS, default=list(PLANTS))
    given = options.parse_args()
    cases = [
        {"plant": plant, "kind": kind, "rows": rows, "seed": seed, "effort": given.effort}
        for plant in given.plants
        for kind in given.kinds
        for rows in given.rows
        for seed in given.seeds
    ]
    found = run(fitted, cases, given)
    lines = []
    for (plant, kind, rows), some in groups(found, "plant", "kind", "rows").items():
        real = column(some, "real")
        line: Row = {
            "plant": plant,
            "log": kind,
            "rows": rows,
            "logged": float(column(some, "logged").mean()),
        }
        line |= {"real": float(real.mean()), "worst seed": float(real.min())}
        lines.append(line | {name: float(column(some, name).mean()) for name in ("leaves", "cpu")})
    show(lines)
    lines = []
    for (verdict,), some in groups(found, "verdict").items():
        counts = {
            "promise kept": sum(one["kept"] for one in some),
            "worse": sum(one["fails"] for one in some),
        }
        lines.append({"verdict": verdict, "logs": len(some)} | counts)
    show(lines)


if __name__ == "__main__":
    main()
