"""Our learners beside tuned classical controllers and random actions on the plants that spaql ships.

    python benchmarks/plants.py --seeds 8000-8009                     # 5,000,000 steps each
    python benchmarks/plants.py --seeds 8000 --steps 500000 --plants Oven
    python benchmarks/plants.py --seeds 8000-8002 --algo PlanTree --steps 20000
    python benchmarks/plants.py --seeds 8000 --nominal                # designed for the plants themselves

Every controller is designed for perturbed plants, unless --nominal is given, with the same number of
simulator steps, and judged in 100 fresh episodes (seed 1,000,000 + its own seed) of the perturbed plant and
of the plant itself. A seed counts as no worse if the paired difference to its best classical controller is
above -1.96 standard errors, which a difference of a tenth of a per cent may be below; so the seeds whose mean
is within 1 % are counted too.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

import spaql
from spaql.classical import tune
from spaql.evaluation import evaluate_control
from spaql.problems import find_dynamics, perturbed
from spaql.registration import HORIZONS
from spaql.stats import standard_error
from studies import Row, column, groups, parser, run, show

LEARNER = "learner"
FORMS = ("nominal", "perturbed")


def judged(policy: Any, problem: spaql.Problem, seed: int) -> Row:
    """Return what 100 fresh episodes say of a policy."""
    evaluation, control = evaluate_control(policy, problem, episodes=100, seed=seed)
    return {
        "returns": evaluation.returns.tolist(),
        "movement": float(np.mean([one.movement for one in control.actuators])),
        "rest": max((one.error_at_rest for one in control.tracking), default=0.0),
    }


def one_seed(case: Row) -> Row:
    """Design all controllers of a seed, and judge them."""
    plant = find_dynamics(case["plant"])
    steps = case["steps"]
    seed = case["seed"]
    nominal = case["nominal"]
    assert plant is not None
    worlds = [spaql.make_problem(one, measured=False) for one in (plant, perturbed(plant))]
    problem, rough = worlds
    cpu = time.process_time()
    agent = getattr(spaql, case["algo"])(problem, seed=seed, nominal=nominal)
    agent.learn(total_timesteps=steps, progress_bar=False)
    cpu = time.process_time() - cpu
    policies: dict[str, Any] = {LEARNER: agent.policy}
    for method in ("pid", "lqr") if problem.setpoints else ("lqr",):
        policies[method] = tune(problem if nominal else rough, method, steps=steps, seed=seed).policy
    policies["random"] = spaql.RandomPolicy(problem.states, problem.actions)
    return {"cpu": cpu, "leaves": agent.policy.n_leaves, "rules": str(agent.policy)} | {
        form: {key: judged(policy, one, 10**6 + seed) for key, policy in policies.items()}
        for form, one in zip(FORMS, worlds, strict=True)
    }


def behind(found: Row) -> tuple[bool, bool]:
    """Whether the learner is no worse than the best classical controller of a seed, and within 1 % of it."""
    own = np.array(found[LEARNER]["returns"])
    rivals = [key for key in ("pid", "lqr") if key in found]
    best = max((np.array(found[key]["returns"]) for key in rivals), key=np.mean)
    difference = own - best
    close = difference.mean() >= -0.01 * abs(best.mean())
    return bool(difference.mean() > -1.96 * standard_error(difference)), bool(close)


def rows_of(name: str, seeds: list[Row]) -> list[Row]:
    """Return the rows of a plant."""
    rows = []
    for form in FORMS:
        verdicts = [behind(one[form]) for one in seeds]
        for key in seeds[0][form]:
            some = [one[form][key] for one in seeds]
            returns = np.array([one["returns"] for one in some])
            row: Row = {"plant": f"{name.removeprefix('spaql/')}, {form}", "controller": key}
            row |= {"return": float(returns.mean()), "worst seed": float(returns.mean(axis=1).min())}
            row |= {"worst episode": float(returns.min()), "error at rest": float(column(some, "rest").max())}
            row |= {"movement": f"{column(some, 'movement').mean():.2%}"}
            own: Row = {name: float(column(seeds, name).mean()) for name in ("leaves", "cpu")}
            for name_of, counts in zip(("no worse", "within 1 %"), zip(*verdicts, strict=True), strict=True):
                own[name_of] = f"{sum(counts)} of {len(seeds)}"
            rows.append(row | (own if key == LEARNER else dict.fromkeys(own, "")))
    return rows


def main() -> None:
    """Print the table."""
    options = parser(__doc__, seeds="8000-8009")
    options.add_argument("--steps", type=int, default=5_000_000)
    options.add_argument("--algo", choices=("TreeSearch", "PlanTree"), default="TreeSearch")
    options.add_argument("--nominal", action="store_true", help="design for the plants themselves")
    options.add_argument("--plants", default="", help="parts of names, separated by commas; all by default")
    given = options.parse_args()
    names = [name for name in HORIZONS if any(part in name for part in given.plants.split(","))]
    same = {"steps": given.steps, "algo": given.algo, "nominal": given.nominal}
    cases = [{"plant": name, "seed": seed} | same for seed in given.seeds for name in names]
    found = groups(run(one_seed, cases, given), "plant")
    show([row for (name,), seeds in found.items() for row in rows_of(name, seeds)])


if __name__ == "__main__":
    main()
