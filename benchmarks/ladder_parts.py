"""What each part of the ladder is worth: the design without it, beside the whole, on several seeds.

    python benchmarks/ladder_parts.py --seeds 8100-8102

Parts are switched off by replacing a constant or a method, or by a setting where there is one; anti-windup
in the exported Python of the controllers that were found, which are not tuned again. Every controller is
judged in 100 fresh episodes of the perturbed plant and of the plant itself.
"""

from __future__ import annotations

import argparse
import re
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from treesearch_ideas import without

import spaql
from plants import judged
from spaql.algorithms.treesearch import ladder, lqr, structures
from spaql.algorithms.treesearch.ladder import Ladder
from spaql.algorithms.treesearch.structures import (
    CHANGE,
    DERIVATIVE,
    INTEGRAL,
    LAST,
    MORE,
    NEXT,
    OTHERS,
    PLAIN,
    SECOND,
    Structure,
)
from spaql.export import python
from spaql.policy import FeatureController, Policy
from spaql.policy.feature_tree import POSITION
from spaql.problems import find_dynamics, perturbed
from spaql.tables import markdown

PLANTS = ("DCMotor", "Oven", "QuadrupleTank", "CartPoleSwingUp")
REGULATOR = lqr.lqr_structure
POLE, PUMPING = lqr.pole_law, lqr.pumping_law


def without_kinds(*kinds: str) -> list[Any]:
    """Return changes by which no structure has some kinds of features."""

    def regulator(*args: Any) -> Structure:
        found = REGULATOR(*args)
        return found.with_kinds([kind for kind in found.kinds if kind not in kinds])

    plain = tuple((form, of) for form, of in PLAIN if not set(of) & set(kinds))
    forms = [form for form in MORE if form in dict(plain)]
    more = {form: tuple(kind for kind in MORE[form] if kind not in kinds) for form in forms}
    return [
        (structures, "MORE", more),
        (structures, "PLAIN", plain),
        (ladder, "lqr_structure", regulator),
    ]


def idle(law: Any) -> Any:
    """Return what gives a law of 0 instead of a law."""

    def made(*args: Any) -> Any:
        found = law(*args)
        return found.with_vector(0.0 * found.vector)

    return made


NO_VELOCITY = [
    (structures, "PLAIN", tuple(one for one in PLAIN if one[0] == POSITION)),
    (structures, "MORE", {POSITION: MORE[POSITION]}),
]
PARTS: dict[str, tuple[list[Any], dict[str, Any]]] = {
    "everything": ([], {}),
    "no anti-windup (the same controllers)": ([], {}),
    "no integral, nor velocity form": (without_kinds(INTEGRAL, CHANGE), {}),
    "no derivative": (
        [*without_kinds(DERIVATIVE, SECOND), (ladder, "NEXT", dict.fromkeys(NEXT, OTHERS))],
        {},
    ),
    "no last actions": (without_kinds(LAST), {}),
    "no velocity form": (NO_VELOCITY, {}),
    "no regulator": (
        [(Ladder, "_regulate", lambda self, *rest: None), (lqr, "pole_law", idle(POLE))],
        {},
    ),
    "no energy pumping": ([(lqr, "pumping_law", idle(PUMPING))], {}),
    "one leaf": ([], {"max_leaves": 1}),
    "no price of movement": ([], {"movement_price": 0.0}),
    "nominal design": ([], {"nominal": True}),
}


class WithoutWaiting(Policy):
    """A controller whose integrals never wait: its exported Python without that condition."""

    time_variant = True

    def __init__(self, controller: FeatureController) -> None:
        self.observation_space, self.action_space = controller.observation_space, controller.action_space
        with tempfile.TemporaryDirectory() as folder:
            python(controller, Path(folder) / "controller.py", points=100)
            text = (Path(folder) / "controller.py").read_text("utf-8")
        names: dict[str, Any] = {}
        exec(re.sub(r"waits = .*", "waits = False", text), names)
        self.make, self.rows = names["Controller"], list[Any]()

    def act(self, observations: Any, steps: Any, rng: Any) -> Any:
        """Return a batch of actions; step 0 resets a row."""
        if len(self.rows) != len(steps):
            self.rows = [self.make() for _ in steps]
        for row, step in zip(self.rows, steps, strict=True):
            if step == 0:
                row.reset()
        return np.array([row.act(seen) for row, seen in zip(self.rows, observations, strict=True)])


def cell(returns: list[list[float]], movement: list[float]) -> str:
    """Return the mean return, that of the worst seed, and the movement."""
    means = np.mean(returns, axis=1)
    return f"{means.mean():.2f} ({means.min():.2f}), {100 * np.mean(movement):.1f} %"


def main() -> None:
    """Print a table for the perturbed plants, and one for the plants themselves."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", default="8100-8102", help="one seed, or a range")
    parser.add_argument("--steps", type=int, default=5_000_000)
    parser.add_argument("--plants", default=",".join(PLANTS))
    asked = parser.parse_args()
    first, _, last = asked.seeds.partition("-")
    seeds = range(int(first), int(last or first) + 1)
    tables: dict[str, list[dict[str, str]]] = {"perturbed": [], "nominal": []}
    for part, (changes, settings) in PARTS.items():
        rows = {form: {"": part} for form in tables}
        for name in asked.plants.split(","):
            plant = find_dynamics(f"spaql/{name}-v0")
            assert plant is not None
            worlds = {
                "perturbed": spaql.make_problem(perturbed(plant), measured=False),
                "nominal": spaql.make_problem(plant, measured=False),
            }
            policies = []
            for seed in seeds:
                with without(changes):
                    agent = spaql.TreeSearch(worlds["nominal"], seed=seed, **settings)
                    policies.append(agent.learn(asked.steps, progress_bar=False).policy)
            if "anti-windup" in part:
                policies = [WithoutWaiting(one) for one in policies]
            for form, world in worlds.items():
                found = [judged(one, world, seed) for one, seed in zip(policies, seeds, strict=True)]
                rows[form][name] = cell([one["returns"] for one in found], [one["movement"] for one in found])
        for form in tables:
            tables[form].append(rows[form])
        print(rows, flush=True)
    for form, found in tables.items():
        print(f"\n{form}\n{markdown(found)}")


if __name__ == "__main__":
    main()
