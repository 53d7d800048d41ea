"""Controllers fitted to logs, judged in the environment that was logged.

    python benchmarks/logs.py --rows 10000 --seeds 3 --effort 0.2
    python benchmarks/logs.py --rows 3000 10000 30000 --kinds detuned mixture random --plants all

prints tables of `docs/logs.md`: for each log the return of its episodes, the prediction, the verdict, and the
return of 100 fresh episodes in the environment, which fitting never sees; then how many kept their promise.
Logs are of a detuned controller with noise, of random actions, each held for up to 20 steps, or of a mixture:
each episode by the one or the other. What is in the file of --out already is not done again.
"""

import argparse
import csv
import json
import math
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium
import numpy as np

import spaql
from spaql.formatting import with_interval
from spaql.tables import markdown

Behaviour = Callable[[Any, np.random.Generator], Any]
KINDS = ("detuned", "mixture", "random")


class Plant(NamedTuple):
    """An environment with its detuned controller, and what is told of it to `spaql.fit`."""

    behaviour: Behaviour
    observations: list[str]
    action: str
    goal: dict[str, Any]


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


def acrobot(observation: Any, rng: np.random.Generator) -> int:
    """Push the second joint where it goes; 30 % of the torques are random."""
    return int(rng.integers(3)) if rng.random() < 0.3 else 2 * int(observation[5] > 0)


def mountain_car(observation: Any, rng: np.random.Generator) -> int:
    """Push where the car goes; 30 % of the pushes are random."""
    return int(rng.integers(3)) if rng.random() < 0.3 else 2 * int(observation[1] > 0)


def mountain_car_continuous(observation: Any, rng: np.random.Generator) -> list[float]:
    """Push where the car goes with 70 % of the force, and noise."""
    return [float(np.clip(0.7 * np.sign(observation[1]) + rng.normal(0, 0.4), -1, 1))]


def servo(observation: Any, rng: np.random.Generator) -> list[float]:
    """Follow the set-point by low gains, with noise."""
    position, speed, setpoint = map(float, observation)
    return [float(np.clip(3 * (setpoint - position) - 0.1 * speed + rng.normal(0, 1), -12, 12))]


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
        acrobot,
        ["cos1", "sin1", "cos2", "sin2", "rate1", "rate2"],
        "torque",
        {"reward": "ended - 1", "end": "-cos1 - cos1 * cos2 + sin1 * sin2 > 1", "horizon": 500},
    ),
    "MountainCar-v0": Plant(
        mountain_car,
        ["position", "velocity"],
        "push",
        {"reward": "-1", "end": "position >= 0.5", "horizon": 200},
    ),
    "MountainCarContinuous-v0": Plant(
        mountain_car_continuous,
        ["position", "velocity"],
        "force",
        {
            "reward": "100 * ended - 0.1 * force**2",
            "end": "position >= 0.45 and velocity >= 0",
            "action_range": [-1, 1],
            "horizon": 999,
        },
    ),
    "spaql/DCMotor-v0": Plant(
        servo,
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


def held_at_random(space: gymnasium.Space[Any], rng: np.random.Generator) -> Iterator[Any]:
    """Give random actions, each for 1 to 20 steps."""
    while True:
        if isinstance(space, gymnasium.spaces.Box):
            action: Any = [float(rng.uniform(space.low[0], space.high[0]))]
        else:
            assert isinstance(space, gymnasium.spaces.Discrete)
            action = int(rng.integers(space.n))
        for _ in range(rng.integers(1, 21)):
            yield action


def write_log(
    path: Path,
    name: str,
    rows: int,
    seed: int,
    kind: str = "detuned",
    signal: list[dict[str, float | None]] | None = None,
) -> None:
    """Write whole episodes of at least so many rows; the last row of each has no action.

    A signal of `NextExperiment.excitation` is played on top of the behaviour.
    """
    behaviour, observations, action, _ = PLANTS[name]
    rng, written, run = np.random.default_rng(seed), 0, 0
    with gymnasium.make(name) as env, path.open("w", newline="", encoding="utf-8") as file:
        at_random = held_at_random(env.action_space, rng)
        table = csv.writer(file)
        table.writerow(["run", *observations, action])
        while written < rows:
            observation, over = env.reset(seed=seed * 100_000 + run)[0], False
            detuned = kind == "detuned" or (kind == "mixture" and rng.random() < 0.5)
            while not over:
                taken = behaviour(observation, rng) if detuned else next(at_random)
                if signal is not None:
                    taken = excited(taken, list(signal[written % len(signal)].values())[-1], env.action_space)
                table.writerow([run, *map(float, observation), *np.ravel(taken)])
                played = np.array(taken, np.float32) if isinstance(taken, list) else taken
                observation, _, terminated, truncated, _ = env.step(played)
                over, written = terminated or truncated, written + 1
            table.writerow([run, *map(float, observation), ""])
            run += 1


def excited(taken: Any, level: float | None, space: gymnasium.Space[Any]) -> Any:
    """Return the action with a level added, or, of a list of actions, the one that is played instead."""
    if isinstance(space, gymnasium.spaces.Box):
        return [float(np.clip(taken[0] + (level or 0.0), space.low[0], space.high[0]))]
    return taken if level is None else int(level)


def measure(
    log: dict[str, Any], logs: list[Path], label: str, effort: float
) -> tuple[dict[str, Any], spaql.Fitted]:
    """Fit to files, and judge the controller in the environment."""
    name, seed = log["plant"], log["seed"]
    _, observations, action, goal = PLANTS[name]
    cpu = time.process_time()
    found = spaql.fit(
        logs,
        observations=observations,
        action=action,
        episode="run",
        seed=seed,
        effort=effort,
        anyway=True,
        progress_bar=False,
        **goal,
    )
    cpu = time.process_time() - cpu
    assert found.agent is not None
    real = spaql.evaluate(found.agent, name, episodes=100)
    row = log | {"label": label, "logged": found.logged, "predicted": (found.predicted, found.half)}
    row |= {"real": (real.mean, real.ci95), "verdict": found.verdict, "clipped": found.clipped}
    return row | {"leaves": found.leaves, "cpu": cpu}, found


def study(log: dict[str, Any], effort: float, again: int) -> Iterator[dict[str, Any]]:
    """Fit to a log; then, if asked for, to it and a second one with the proposed excitation, or without."""
    name, seed, kind = log["plant"], log["seed"], log["kind"]
    with tempfile.TemporaryDirectory() as folder:
        first, second = Path(folder) / "log.csv", Path(folder) / "second.csv"
        write_log(first, name, log["rows"], seed, kind)
        row, found = measure(log, [first], "", effort)
        yield row
        if again:
            signal = found.experiment.excitation(amplitude=0.5, episodes=10, seed=seed)
            for label in ("excited", "as before"):
                write_log(second, name, again, 1000 + seed, kind, signal if label == "excited" else None)
                yield measure(log, [first, second], label, effort)[0]


def line(row: dict[str, Any]) -> list[str]:
    """Return a row of the table of logs."""
    cells = [
        ", ".join(filter(None, (row["plant"], row["label"]))),
        row["kind"],
        f"{row['rows']:,}",
        row["seed"],
    ]
    cells += [with_interval(*row[name]) for name in ("logged", "predicted", "real")]
    return [
        *map(str, cells),
        row["verdict"],
        f"{row['clipped']:.1%}",
        str(row["leaves"]),
        f"{row['cpu']:.0f}",
    ]


def kept(row: dict[str, Any]) -> bool:
    """Whether the real return is no lower than promised, within both intervals."""
    return bool(row["real"][0] >= row["predicted"][0] - row["predicted"][1] - row["real"][1])


def fails(row: dict[str, Any]) -> bool:
    """Whether the controller is worse than the behaviour in the log, beyond both intervals."""
    return bool(row["real"][0] < row["logged"][0] - row["logged"][1] - row["real"][1])


def summary(rows: list[dict[str, Any]]) -> str:
    """Return the mean returns of each kind of log, its own in brackets, and what the verdicts were worth."""
    first = [row for row in rows if not row["label"]]
    lines = []
    for plant, kind in dict.fromkeys((row["plant"], row["kind"]) for row in first):
        cells = {"plant": plant, "log": kind}
        for size in sorted({row["rows"] for row in first}):
            some = [r for r in first if (r["plant"], r["kind"], r["rows"]) == (plant, kind, size)]
            means = [float(np.mean([row[name][0] for row in some])) for name in ("real", "logged")]
            worst = min((row["real"][0] for row in some), default=math.nan)
            cells[f"{size:,} rows"] = f"{means[0]:.1f}, worst {worst:.1f} ({means[1]:,.1f})" if some else ""
        lines.append(cells)
    text = [markdown(lines)]
    for verdict in dict.fromkeys(row["verdict"] for row in first):
        such = [row for row in first if row["verdict"] == verdict]
        text.append(
            f"{verdict}: {sum(map(kept, such))} of {len(such)} no lower than promised, "
            f"{sum(map(fails, such))} worse than the log"
        )
    return "\n".join(text)


def main() -> None:
    """Print a row for each log, and what they say together."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="*", default=[10_000])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--first", type=int, default=0, help="first seed")
    parser.add_argument("--only", type=int, nargs="*", help="these seeds alone")
    parser.add_argument("--effort", type=float, default=1.0)
    parser.add_argument("--kinds", nargs="*", choices=KINDS, default=["detuned"])
    parser.add_argument(
        "--plants", nargs="*", choices=[*PLANTS, "all"], default=["Pendulum-v1", "CartPole-v1"]
    )
    parser.add_argument(
        "--again", type=int, default=0, help="rows of a second log, as proposed and as before"
    )
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    done = given.out is not None and given.out.exists()
    rows = [json.loads(text) for text in given.out.read_text().splitlines()] if done else []
    names = ("plant", "kind", "rows", "seed")
    finished = {tuple(row[name] for name in names) for row in rows}
    print("| plant | log | rows | seed | logged | predicted | real | verdict | clipped | leaves | cpu |")
    print("|" + "---|" * 11)
    for seed in given.only or range(given.first, given.first + given.seeds):
        for plant in PLANTS if "all" in given.plants else given.plants:
            for key in ((plant, kind, size, seed) for size in given.rows for kind in given.kinds):
                if key in finished:
                    continue
                for row in study(dict(zip(names, key, strict=True)), given.effort, given.again):
                    rows.append(row)
                    if given.out is not None:
                        with given.out.open("a") as file:
                            file.write(json.dumps(row) + "\n")
                    print("| " + " | ".join(line(row)) + " |", flush=True)
    print()
    print(summary(rows))


if __name__ == "__main__":
    main()
