"""What five seconds prove of plants of one's own, of two numbers: `python benchmarks/verify_plants.py`.

PlanTree learns a tree for each from 3,000 steps, with its defaults; the statement is the default one, that it
comes near the reference and stays there for ever. Seconds are processor time after the first compilation.
"""

import json

import spaql


def start_oscillator(rng):
    return rng.uniform(-2.0, 2.0), rng.uniform(-2.0, 2.0)


def step_oscillator(state, action):
    """Van der Pol's oscillator, whose origin is unstable, pushed by a force; 0.1 s in two steps."""
    x, v = state
    u = min(max(action[0], -1.5), 1.5)
    for _ in range(2):
        v += 0.05 * ((1.0 - x * x) * v - x + u)
        x += 0.05 * v
    return (x, v), -x * x - 0.1 * v * v - 0.01 * u * u, False


def start_levitation(rng):
    return rng.uniform(-4.0, 4.0), rng.uniform(-60.0, 60.0)


def step_levitation(state, action):
    """A steel ball below a magnet, in mm and mm/s around a gap of 10 mm; gravity wins without a current."""
    gap, speed = state
    current = min(max(action[0], 0.0), 2.0)
    for _ in range(4):
        distance = max(10.0 + gap, 2.0)
        pull = 9_810.0 * (current * 10.0 / distance) ** 2
        speed = min(max(speed + 0.0005 * (9_810.0 - pull), -500.0), 500.0)
        gap = min(max(gap + 0.0005 * speed, -8.0), 8.0)
    return (gap, speed), -((gap / 4.0) ** 2) - 0.01 * (speed / 60.0) ** 2, False


PLANTS = {
    "Van der Pol": spaql.Dynamics(
        id="own/VanDerPol-v0",
        start=start_oscillator,
        step=step_oscillator,
        horizon=100,
        reference=(0.0, 0.0),
        observations={"x": (-3.0, 3.0), "speed": (-4.0, 4.0)},
        actions={"force": (-1.5, 1.5)},
    ),
    "magnetic levitation": spaql.Dynamics(
        id="own/Levitation-v0",
        start=start_levitation,
        step=step_levitation,
        horizon=100,
        reference=(0.0, 0.0),
        observations={"gap [mm]": (-8.0, 8.0), "speed [mm/s]": (-500.0, 500.0)},
        actions={"current [A]": (0.0, 2.0)},
    ),
}


def main() -> None:
    """Print a row for each plant."""
    for name, plant in PLANTS.items():
        agent = spaql.PlanTree(spaql.make_problem(plant), seed=0)
        agent.learn(total_timesteps=3_000, progress_bar=False)
        found = spaql.verify(agent, seconds=5.0)
        row = {"plant": name, "leaves": agent.policy.n_leaves, "statement": found.statement.text}
        row |= {share: round(getattr(found, share), 4) for share in ("proven", "refuted", "undecided")}
        print(json.dumps(row | {"seconds": round(found.seconds, 2)}), flush=True)


if __name__ == "__main__":
    main()
