"""Our learners beside tuned classical controllers and random actions on the plants that spaql ships.

    python benchmarks/plants.py --seeds 8000-8009                     # 5,000,000 steps each
    python benchmarks/plants.py --seeds 8000 --steps 500000 --plants Oven
    python benchmarks/plants.py --seeds 8000-8002 --algo plantree --steps 20000
    python benchmarks/plants.py --seeds 8000 --nominal                # designed for the plants themselves

Every controller is designed for perturbed plants, unless --nominal is given, with the same number of
simulator steps, and judged in 100 fresh episodes (seed 1,000,000 + its own seed) of the perturbed plant and
of the plant itself. A seed counts as no worse if the paired difference to its best classical controller is
above -1.96 standard errors, which a difference of a tenth of a per cent may be below; so the seeds whose mean
is within 1 % are counted too. What is in the file of --out already is not run again, so that a run that was
stopped can go on.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import spaql
from spaql.classical import tune
from spaql.evaluation import evaluate_control
from spaql.problems import find_dynamics, perturbed
from spaql.registration import HORIZONS
from spaql.stats import standard_error
from spaql.tables import markdown

LEARNERS = {"treesearch": spaql.TreeSearch, "plantree": spaql.PlanTree}


def judged(policy: Any, problem: spaql.Problem, seed: int) -> dict[str, Any]:
    """Return what 100 fresh episodes say of a policy."""
    evaluation, control = evaluate_control(policy, problem, episodes=100, seed=10**6 + seed)
    return {
        "returns": evaluation.returns.tolist(),
        "movement": float(np.mean([one.movement for one in control.actuators])),
        "error at rest": max((one.error_at_rest for one in control.tracking), default=0.0),
    }


def one_seed(name: str, seed: int, steps: int, algo: str, design: str) -> dict[str, Any]:
    """Design all controllers of a seed, and judge them."""
    plant = find_dynamics(name)
    assert plant is not None
    problem, rough = (spaql.make_problem(one, measured=False) for one in (plant, perturbed(plant)))
    cpu, nominal = time.process_time(), design == "nominal"
    agent = LEARNERS[algo](problem, seed=seed, nominal=nominal)
    agent.learn(total_timesteps=steps, progress_bar=False)
    cpu = time.process_time() - cpu
    policies: dict[str, Any] = {algo: agent.policy}
    for method in ("pid", "lqr") if problem.setpoints else ("lqr",):
        policies[method] = tune(problem if nominal else rough, method, steps=steps, seed=seed).policy
    policies["random"] = spaql.RandomPolicy(problem.states, problem.actions)
    ladder = agent.ladder
    chosen = next((row for row in ladder if row["chosen"]), {})
    return {
        "plant": name,
        "seed": seed,
        "budget": steps,
        "design": design,
        "cpu": cpu,
        "steps": agent.training_steps,
        "structure": chosen.get("structure", ""),
        "leaves": agent.policy.n_leaves,
        "rules": str(agent.policy),
        "nominal": {key: judged(policy, problem, seed) for key, policy in policies.items()},
        "perturbed": {key: judged(policy, rough, seed) for key, policy in policies.items()},
    }


def rivals(found: dict[str, Any], form: str) -> tuple[str, list[str]]:
    """Return the name of the learner, and those of the classical controllers beside it."""
    (learner,) = LEARNERS.keys() & found[form].keys()
    return learner, [key for key in found[form] if key not in (learner, "random")]


def no_worse(found: dict[str, Any], form: str) -> bool:
    """Whether the learner is no worse than the best classical controller of a seed."""
    learner, others = rivals(found, form)
    best = max(others, key=lambda key: np.mean(found[form][key]["returns"]))
    own, rival = (np.array(found[form][key]["returns"]) for key in (learner, best))
    return bool((own - rival).mean() > -1.96 * standard_error(own - rival))


def within(found: dict[str, Any], form: str, share: float = 0.01) -> bool:
    """Whether the return of the learner is within a share of the best classical controller's, or better."""
    means = {key: float(np.mean(one["returns"])) for key, one in found[form].items()}
    learner, others = rivals(found, form)
    best = max(means[key] for key in others)
    return means[learner] >= best - share * abs(best)


def rows_of(seeds: list[dict[str, Any]]) -> list[dict[str, str]]:
    """Return the rows of a plant."""
    rows = []
    for form in ("nominal", "perturbed"):
        for key in seeds[0][form]:
            returns = np.array([one[form][key]["returns"] for one in seeds])
            own = key in LEARNERS
            rows.append(
                {
                    "plant": f"{seeds[0]['plant'].removeprefix('spaql/')}, {form}",
                    "controller": key,
                    "return": f"{returns.mean():.2f}",
                    "worst seed": f"{returns.mean(axis=1).min():.2f}",
                    "worst episode": f"{returns.min():.1f}",
                    "error at rest": f"{max(one[form][key]['error at rest'] for one in seeds):.2g}",
                    "movement": f"{100 * np.mean([one[form][key]['movement'] for one in seeds]):.2f} %",
                    "leaves": f"{np.mean([one['leaves'] for one in seeds]):.1f}" if own else "",
                    "no worse": f"{sum(no_worse(one, form) for one in seeds)} of {len(seeds)}" if own else "",
                    "within 1 %": f"{sum(within(one, form) for one in seeds)} of {len(seeds)}" if own else "",
                    "CPU s": f"{np.mean([one['cpu'] for one in seeds]):.0f}" if own else "",
                }
            )
    return rows


def short_row(seeds: list[dict[str, Any]]) -> dict[str, str]:
    """Return a plant in one row: perturbed (nominal); differences are of means to the best classical one."""
    learner = rivals(seeds[0], "nominal")[0]
    keys = (learner, "pid", "lqr")

    def mean(form: str, key: str, what: str = "returns") -> float:
        return float(np.mean([one[form][key][what] for one in seeds])) if key in seeds[0][form] else math.nan

    def listed(form: str, what: str, write: Callable[[float], str]) -> str:
        return ", ".join("–" if math.isnan(x) else write(x) for x in (mean(form, k, what) for k in keys))

    row = {"plant": seeds[0]["plant"].removeprefix("spaql/").removesuffix("-v0")}
    for key, title in zip((*keys, "random"), (learner, "PID", "regulator", "random"), strict=True):
        found = [mean(form, key) for form in ("perturbed", "nominal")]
        row[title] = (
            ""
            if math.isnan(found[0])
            else "{} ({})".format(*(f"{x:.0f}" if abs(x) >= 100 else f"{x:#.3g}" for x in found))
        )
    forms = ("perturbed", "nominal")
    best = [np.nanmax([mean(form, "pid"), mean(form, "lqr")]) for form in forms]
    more = [(mean(form, learner) - x) / abs(x) for form, x in zip(forms, best, strict=True)]
    counts = [sum(no_worse(one, form) for one in seeds) for form in forms]
    tracks = not math.isnan(mean("nominal", "pid"))
    return row | {
        "to the best": "{:+.1%} ({:+.1%})".format(*more),
        "no worse": f"{counts[0]} ({counts[1]}) of {len(seeds)}",
        "movement, perturbed": listed("perturbed", "movement", lambda x: f"{x:.1%}"),
        "error at rest, nominal": listed("nominal", "error at rest", lambda x: f"{x:.2g}") if tracks else "",
        "leaves": f"{np.mean([one['leaves'] for one in seeds]):.1f}",
    }


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", default="8000-8009", help="one seed, or a range")
    parser.add_argument("--steps", type=int, default=5_000_000)
    parser.add_argument("--algo", choices=LEARNERS, default="treesearch")
    parser.add_argument("--nominal", action="store_true", help="design for the plants themselves")
    parser.add_argument("--plants", default="", help="parts of names, separated by commas; all by default")
    parser.add_argument("--out", type=Path, help="a JSON file for everything that was measured")
    asked = parser.parse_args()
    first, _, last = asked.seeds.partition("-")
    seeds = range(int(first), int(last or first) + 1)
    names = [name for name in HORIZONS if any(part in name for part in asked.plants.split(","))]
    found = json.loads(asked.out.read_text()) if asked.out and asked.out.exists() else []
    design = "nominal" if asked.nominal else "perturbed"
    for seed in seeds:
        for name in names:
            of_run = {"plant": name, "seed": seed, "budget": asked.steps, "design": design}
            if any(of_run.items() <= one.items() for one in found):
                continue
            found.append(one_seed(name, seed, asked.steps, asked.algo, design))
            print(f"{name} {seed}: {found[-1]['structure']}\n{found[-1]['rules']}\n", flush=True)
            if asked.out:
                asked.out.write_text(json.dumps(found, indent=1))
    rows, short = [], []
    for name in names:
        of_plant = [one for one in found if one["plant"] == name and one["seed"] in seeds]
        of_plant = [one for one in of_plant if (one["budget"], one["design"]) == (asked.steps, design)]
        rows += rows_of(of_plant)
        short.append(short_row(of_plant))
    print(markdown(rows))
    print(markdown(short))


if __name__ == "__main__":
    main()
