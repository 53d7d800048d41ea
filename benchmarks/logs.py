"""Controllers fitted to logs of detuned controllers, judged in the environment that was logged.

    python benchmarks/logs.py --rows 10000 --seeds 3 --effort 0.2

prints the table of `docs/logs.md`: for each log the return of its episodes, the prediction, the verdict, and
the return of 100 fresh episodes in Gymnasium's environment, which fitting never sees.
"""

import argparse
import csv
import math
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

import spaql
from spaql.formatting import with_interval

Behaviour = Callable[[Any, np.random.Generator], Any]


def pendulum(observation: Any, rng: np.random.Generator) -> list[float]:
    """Swing up by energy with 70 % of the torque, then hold by low gains; with noise."""
    cos, sin, speed = map(float, observation)
    angle = math.atan2(sin, cos)
    energy = speed * speed / 6 + 5 * (cos - 1)
    u = -8 * angle - speed if abs(angle) < 0.6 else 1.4 * float(np.sign(-speed * energy + 1e-9))
    return [float(np.clip(u + rng.normal(0, 0.8), -2, 2))]


def cartpole(observation: Any, rng: np.random.Generator) -> int:
    """Switch by a weighted sum that hardly sees the cart, with noise; 15 % of the pushes are random."""
    x, v, angle, rate = map(float, observation)
    push = int(angle + 0.5 * rate + 0.02 * x + 0.05 * v + rng.normal(0, 0.1) > 0)
    return int(rng.integers(2)) if rng.random() < 0.15 else push


PLANTS: dict[str, tuple[Behaviour, list[str], str, dict[str, Any]]] = {
    "Pendulum-v1": (
        pendulum,
        ["cos", "sin", "speed [rad/s]"],
        "torque [N m]",
        {
            "cost": "atan2(sin, cos)**2 + 0.1 * speed**2 + 0.001 * torque**2",
            "action_range": [-2, 2],
            "horizon": 200,
        },
    ),
    "CartPole-v1": (
        cartpole,
        ["x", "v", "angle", "rate"],
        "push",
        {"reward": "1", "end": "abs(x) > 2.4 or abs(angle) > 12 * pi / 180", "horizon": 500},
    ),
}


def write_log(
    path: Path, name: str, rows: int, seed: int, signal: list[dict[str, float | None]] | None = None
) -> None:
    """Write whole episodes of at least so many rows; the last row of each has no action.

    A signal of `NextExperiment.excitation` is played on top of the behaviour.
    """
    behaviour, observations, action, _ = PLANTS[name]
    rng, written, run = np.random.default_rng(seed), 0, 0
    with gymnasium.make(name) as env, path.open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(["run", *observations, action])
        while written < rows:
            observation, over = env.reset(seed=seed * 100_000 + run)[0], False
            while not over:
                taken = behaviour(observation, rng)
                if signal is not None:
                    taken = excited(taken, list(signal[written % len(signal)].values())[-1])
                table.writerow([run, *map(float, observation), *np.ravel(taken)])
                played = np.array(taken, np.float32) if isinstance(taken, list) else taken
                observation, _, terminated, truncated, _ = env.step(played)
                over, written = terminated or truncated, written + 1
            table.writerow([run, *map(float, observation), ""])
            run += 1


def excited(taken: Any, level: float | None) -> Any:
    """Return Pendulum's torque with a level added, or the push that is played instead of CartPole's."""
    if isinstance(taken, list):
        return [float(np.clip(taken[0] + (level or 0.0), -2, 2))]
    return taken if level is None else int(level)


def report(label: str, found: spaql.Fitted, name: str, seed: int, seconds: float) -> None:
    """Print a row of the table."""
    assert found.agent is not None
    real = spaql.evaluate(found.agent, name, episodes=100)
    cells = [f"{name}{label}", seed, with_interval(*found.logged), with_interval(found.predicted, found.half)]
    cells += [with_interval(real.mean, real.ci95), found.verdict, f"{found.clipped:.1%}"]
    cells += [found.leaves, f"{seconds:.0f}"]
    print("| " + " | ".join(map(str, cells)) + " |", flush=True)


def main() -> None:
    """Print a row for each log."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--first", type=int, default=0, help="first seed")
    parser.add_argument("--only", type=int, nargs="*", help="these seeds alone")
    parser.add_argument("--effort", type=float, default=1.0)
    parser.add_argument("--plants", nargs="*", default=list(PLANTS))
    parser.add_argument(
        "--again", type=int, default=0, help="rows of a second log, as proposed and as before"
    )
    given = parser.parse_args()
    print("| plant | seed | log | predicted | real | verdict | clipped | leaves | seconds |")
    print("|---|---|---|---|---|---|---|---|---|")
    for name in given.plants:
        for seed in given.only or range(given.first, given.first + given.seeds):
            with tempfile.TemporaryDirectory() as folder:
                study(Path(folder), name, seed, given)


def study(folder: Path, name: str, seed: int, given: argparse.Namespace) -> None:
    """Fit to a log; then, if asked for, to it and a second one with the proposed excitation, or without."""
    _, observations, action, goal = PLANTS[name]
    logs = [folder / "log.csv"]
    write_log(logs[0], name, given.rows, seed)
    signal: list[dict[str, float | None]] = []
    for label in ("", ", excited", ", as before") if given.again else ("",):
        second = [folder / "second.csv"] if label else []
        for file in second:
            write_log(file, name, given.again, 1000 + seed, signal if label == ", excited" else None)
        begun = time.perf_counter()
        found = spaql.fit(
            logs + second,
            observations=observations,
            action=action,
            episode="run",
            seed=seed,
            effort=given.effort,
            anyway=True,
            progress_bar=False,
            **goal,
        )
        signal = signal or found.experiment.excitation(amplitude=0.5, episodes=10, seed=seed)
        report(label, found, name, seed, time.perf_counter() - begun)


if __name__ == "__main__":
    main()
