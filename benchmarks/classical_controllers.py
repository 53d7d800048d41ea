"""Classical controllers on the plants that spaql ships, nominal and perturbed, as a Markdown table.

    python benchmarks/classical_controllers.py                       # 3 seeds x 300,000 simulator steps
    python benchmarks/classical_controllers.py --seeds 1 --steps 50000 --plants Oven,Crane

Each controller is tuned on the plant it is judged on, in 100 fresh episodes (seed 1000). The returns are the
mean of the seeds, and the return of the worst seed; movement and the error at rest are means of the seeds.
"""

from __future__ import annotations

import argparse

import numpy as np

import spaql
from spaql.classical import tune
from spaql.evaluation import evaluate_control
from spaql.problems import find_dynamics, perturbed
from spaql.registration import HORIZONS
from spaql.tables import markdown


def row(problem: spaql.Problem, name: str, method: str, seeds: int, steps: int) -> dict[str, str]:
    """Return the row of a controller on a plant."""
    returns, worst, movement, rest, law = [], [], [], [], ""
    for seed in range(seeds):
        tuned = tune(problem, method, steps=steps, seed=seed)
        evaluation, control = evaluate_control(tuned.policy, problem, episodes=100, seed=1000)
        returns.append(evaluation.mean)
        worst.append(float(evaluation.returns.min()))
        movement.append(np.mean([one.movement for one in control.actuators]))
        rest += [one.error_at_rest for one in control.tracking]
        law = law or tuned.text
    print(f"{name} {method}: {law}", flush=True)
    return {
        "plant": name,
        "controller": method,
        "return": f"{np.mean(returns):.2f}",
        "worst seed": f"{min(returns):.2f}",
        "worst episode": f"{min(worst):.1f}",
        "movement": f"{100 * np.mean(movement):.2f} %",
        "error at rest": f"{np.mean(rest):.2g}" if rest else "",
    }


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=300_000)
    parser.add_argument("--plants", default="", help="parts of names, separated by commas; all by default")
    asked = parser.parse_args()
    rows = []
    for name_of_plant in HORIZONS:
        if not any(part in name_of_plant for part in asked.plants.split(",")):
            continue
        plant = find_dynamics(name_of_plant)
        assert plant is not None
        short = name_of_plant.removeprefix("spaql/").removesuffix("-v0")
        for name, judged in ((short, plant), (f"{short}, perturbed", perturbed(plant))):
            problem = spaql.make_problem(judged, measured=False)
            for method in ("pid", "lqr") if problem.setpoints else ("lqr",):
                rows.append(row(problem, name, method, asked.seeds, asked.steps))
    print(markdown(rows))


if __name__ == "__main__":
    main()
