"""Make the zoo: train its controllers, judge them, and write the package's files and docs/zoo.md.

    python benchmarks/zoo.py                              # all of them
    python benchmarks/zoo.py --only oven-treesearch       # one; the page is written from all figures
    python benchmarks/zoo.py --only page                  # the page alone

Every controller has the seed 0, which was not selected by its result, the default settings of its algorithm,
and 1,000 fresh episodes. Classical controllers are tuned for the problem with as many simulator steps as
TreeSearch has, and judged in the same episodes. Figures of networks and bounds, which are those of
docs/compare.md, stay as they are in the entries.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import spaql
from boards import M4, compile_for, missing, sizes_of
from spaql import zoo
from spaql.classical import tune
from spaql.controllers import Controller
from spaql.errors import SettingError
from spaql.export.languages.c import C
from spaql.export.machine import machine_of
from spaql.formatting import number, places, with_interval
from spaql.plugins.compare.baselines import CLASSICAL
from spaql.plugins.compare.baselines.classical import ClassicalPolicy
from spaql.tables import markdown
from spaql.zoo import CONTROLLERS, ENTRIES, entry_from
from studies import parser

ROOT = Path(__file__).parents[1]
FILES = ROOT / "src" / "spaql" / "zoo"
PAGE = ROOT / "docs" / "zoo.md"
SEED = 0
EPISODES = 1_000
EVALUATION_SEED = 1_000_000
MILLION = 1_000_000


class Recipe(NamedTuple):
    problem: str
    algorithm: str
    steps: int


RECIPES = {
    "cartpole-plantree": Recipe("CartPole-v1", "plantree", 10_000),
    "cartpole-treesearch": Recipe("CartPole-v1", "treesearch", MILLION),
    "mountain-car-plantree": Recipe("MountainCar-v0", "plantree", 10_000),
    "mountain-car-treesearch": Recipe("MountainCar-v0", "treesearch", 10 * MILLION),
    "mountain-car-continuous-plantree": Recipe("MountainCarContinuous-v0", "plantree", 10_000),
    "mountain-car-continuous-treesearch": Recipe("MountainCarContinuous-v0", "treesearch", 10 * MILLION),
    "acrobot-plantree": Recipe("Acrobot-v1", "plantree", 10_000),
    "acrobot-treesearch": Recipe("Acrobot-v1", "treesearch", 10 * MILLION),
    "pendulum-plantree": Recipe("Pendulum-v1", "plantree", 10_000),
    "pendulum-treesearch": Recipe("Pendulum-v1", "treesearch", 10 * MILLION),
    "dc-motor-treesearch": Recipe("spaql/DCMotor-v0", "treesearch", 5 * MILLION),
    "oven-treesearch": Recipe("spaql/Oven-v0", "treesearch", 5 * MILLION),
    "quadruple-tank-treesearch": Recipe("spaql/QuadrupleTank-v0", "treesearch", 5 * MILLION),
    "quadruple-tank-fixed-treesearch": Recipe("spaql/QuadrupleTankFixed-v0", "treesearch", 5 * MILLION),
    "cartpole-swing-up-treesearch": Recipe("spaql/CartPoleSwingUp-v0", "treesearch", 5 * MILLION),
}


def made(name: str, beside: tuple[zoo.Beside, ...]) -> zoo.Entry:
    """Train a controller, write its file, and return what is measured of it."""
    problem, algorithm, steps = RECIPES[name]
    design = zoo.train(problem, algorithm, seed=SEED, total_timesteps=steps)
    file = FILES / CONTROLLERS / f"{name}.spaql"
    design.save(file)
    fresh = spaql.evaluate(design, episodes=EPISODES, seed=EVALUATION_SEED)
    return zoo.Entry(
        name=name,
        problem=problem,
        algorithm=algorithm,
        seed=SEED,
        total_timesteps=steps,
        interactions=design.origin["interactions"],
        mean=fresh.mean,
        ci95=fresh.ci95,
        worst=fresh.worst[0].total,
        worst_start=fresh.worst[0].start,
        episodes=EPISODES,
        evaluation_seed=EVALUATION_SEED,
        leaves=design.controller.n_leaves,
        numbers=design.controller.n_numbers,
        flash=flash(design.controller),
        file_bytes=file.stat().st_size,
        beside=beside,
    )


def flash(controller: Controller) -> int | None:
    """Return the bytes of `spaql export --to c --number float` on a Cortex-M; None without its compiler."""
    if missing(M4):
        return None
    with TemporaryDirectory() as folder:
        compile_for(M4, Path(folder), C().write(machine_of(controller, "float"), "controller"))
        text, data, _ = sizes_of(M4, Path(folder) / "controller.o")
    return text + data


def classical(problem: str) -> Iterator[zoo.Beside]:
    """Yield tuned classical controllers and those of a textbook, judged in the same episodes."""
    world = spaql.make_problem(problem, measured=False)
    steps = max(one.steps for one in RECIPES.values() if one.problem == problem)
    found = []
    for method in ("pid", "lqr"):
        try:
            tuned = tune(world, method, steps=steps, seed=SEED)
            found.append((method, tuned.policy, tuned.numbers, tuned.steps))
        except SettingError as error:
            print(f"{problem}: no {method}: {error}", flush=True)
    if problem in CLASSICAL:
        found.append(("textbook", ClassicalPolicy(world), CLASSICAL[problem].numbers, 0))
    for name, policy, numbers, interactions in found:
        fresh = spaql.evaluate(policy, world, episodes=EPISODES, seed=EVALUATION_SEED)
        yield zoo.Beside(
            kind="classical",
            name=name,
            mean=fresh.mean,
            ci95=fresh.ci95,
            numbers=numbers,
            interactions=interactions,
            source="the same episodes",
        )


def page(entries: list[zoo.Entry]) -> str:
    """Return docs/zoo.md with the figures between its marks."""
    text = PAGE.read_text(encoding="utf-8")
    for mark, table in (("controllers", controllers_table(entries)), ("beside", beside_table(entries))):
        block = f"<!-- {mark}: benchmarks/zoo.py -->\n\n{table}\n<!-- end -->"
        text, count = re.subn(
            rf"<!-- {mark}: .*?<!-- end -->", lambda _, block=block: block, text, flags=re.DOTALL
        )
        if count != 1:
            raise SystemExit(f"{PAGE} has {count} places for the table {mark!r}, and must have one.")
    return text


def controllers_table(entries: list[zoo.Entry]) -> str:
    return markdown(
        [
            {
                "name": f"`{one.name}`",
                "problem": one.problem,
                "return": with_interval(one.mean, one.ci95),
                "worst start": number(one.worst, places(one.mean, one.ci95)),
                "leaves": str(one.leaves),
                "parameters": str(one.numbers),
                "interactions": f"{one.interactions:,}",
                "flash": f"{one.flash:,}" if one.flash is not None else "",
                "file": f"{one.file_bytes:,}",
            }
            for one in entries
        ]
    )


def beside_table(entries: list[zoo.Entry]) -> str:
    rows = []
    seen = set()
    for one in entries:
        for other in one.beside:
            if (one.problem, other.name) in seen:
                continue
            seen.add((one.problem, other.name))
            digits = places(one.mean, one.ci95)
            own = {e.algorithm: e.mean for e in entries if e.problem == one.problem}
            mean = number(other.mean, digits) if other.ci95 is None else with_interval(other.mean, other.ci95)
            rows.append(
                {
                    "problem": one.problem,
                    "kind": other.kind,
                    "name": other.name,
                    "return": mean,
                    "parameters": f"{other.numbers:,}" if other.numbers is not None else "",
                    "PlanTree": number(own["plantree"], digits) if "plantree" in own else "",
                    "TreeSearch": number(own["treesearch"], digits) if "treesearch" in own else "",
                }
            )
    return markdown(rows)


def main() -> None:
    """Make what was asked for."""
    options = parser(__doc__)
    options.add_argument("--only", choices=[*RECIPES, "page"], help="one controller, or the page alone")
    only = options.parse_args().only
    figures = FILES / ENTRIES
    rows = json.loads(figures.read_text(encoding="utf-8")) if figures.exists() else []
    kept = {row["name"]: entry_from(row) for row in rows if row["name"] in RECIPES}
    stands: dict[str, list[zoo.Beside]] = {}
    for name, (problem, _, _) in RECIPES.items():
        if only is not None and only != name:
            continue
        stands[problem] = stands[problem] if problem in stands else list(classical(problem))
        others = [one for one in kept[name].beside if one.kind != "classical"] if name in kept else []
        kept[name] = made(name, (*stands[problem], *others))
        print(kept[name], flush=True)
        ordered = [dataclasses.asdict(kept[one]) for one in RECIPES if one in kept]
        figures.write_text(json.dumps(ordered, indent=1) + "\n", encoding="utf-8")
    for file in (FILES / CONTROLLERS).glob("*.spaql"):
        if file.stem not in kept:
            file.unlink()
    PAGE.write_text(page([kept[name] for name in RECIPES if name in kept]), encoding="utf-8")


if __name__ == "__main__":
    main()
