"""Exports at length: `python benchmarks/export.py equality`, `mutation` and `machines`.

`equality` compares every form of 200 random trees with the trees, `mutation` changes one threshold or one
action in each form 100 times and counts how often the equivalence check finds it, and `machines` measures C
on simulated microcontrollers.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import click
import numpy as np

sys.path.append(str(Path(__file__).parents[1] / "tests"))

from export_forms import FORMS, KINDS, SAFE, mutant
from random_trees import random_tree
from spaql.export.c_code import CCode
from spaql.export.equivalence import EquivalenceError, Target, check_equivalence
from spaql.export.machines.boards import MACHINES, DoesNotFitError, Machine, compile_for, missing, room
from spaql.export.target_controller import MachineController, controller_of
from spaql.export.test_states import leaf_centres


@click.group(help=__doc__)
def main() -> None:
    pass


@main.command()
@click.option("--trees", default=200, show_default=True)
@click.option("--points", default=20_000, show_default=True, help="random points a tree and form")
@click.option("--seed", default=0, show_default=True)
def equality(trees: int, points: int, seed: int) -> None:
    """Compare every form of random trees with the trees."""
    rng = np.random.default_rng(seed)
    checked: Counter[str] = Counter()
    wrong: Counter[str] = Counter()
    began = time.perf_counter()
    for i in range(trees):
        if i % 20 == 0:
            click.echo(f"tree {i}, {time.perf_counter() - began:,.0f} s", err=True)
        kind = KINDS[int(rng.integers(3))]
        leaves = int(np.exp(rng.uniform(0, np.log(2000))) + 0.5)
        tree = random_tree(rng, int(rng.integers(1, 7)), leaves, kind)
        safe = None if rng.random() < 0.5 else SAFE[kind]
        for form, (target, number) in FORMS.items():
            if number == "fixed" and kind == "laws":
                continue
            controller = controller_of(tree, number, safe)
            try:
                found = _check(target, controller, target.write(controller, "controller"), points)
                checked[form] += sum(found.values())
            except EquivalenceError as error:
                wrong[form] += 1
                click.echo(f"{form}: {error}", err=True)
    click.echo(f"{trees} trees, {time.perf_counter() - began:,.0f} s")
    for form in FORMS:
        click.echo(f"{form:24} {checked[form]:>12,} inputs  {wrong[form]} trees with a difference")


def _check(
    target: Target, controller: MachineController, files: dict[str, bytes], points: int
) -> dict[str, int]:
    with tempfile.TemporaryDirectory() as folder:
        return check_equivalence(target, controller, files, "controller", Path(folder), points).points


@main.command()
@click.option("--mutants", default=100, show_default=True)
@click.option("--leaves", default=60, show_default=True)
@click.option("--seed", default=0, show_default=True)
def mutation(mutants: int, leaves: int, seed: int) -> None:
    """Change one threshold by one number of the machine, or one action: does the check find it?"""
    for form, (target, number) in FORMS.items():
        rng = np.random.default_rng(seed)
        found: Counter[str] = Counter()
        for i in range(mutants):
            kind = KINDS[int(rng.integers(2 if number == "fixed" else 3))]
            controller = controller_of(random_tree(rng, int(rng.integers(1, 7)), leaves, kind), number)
            changed = mutant(controller, rng, "threshold" if i % 2 else "action")
            try:
                _check(target, controller, target.write(changed, "controller"), 0)
                found["missed"] += 1
            except EquivalenceError:
                found["found"] += 1
        click.echo(f"{form:24} {found['found']} of {mutants} changes found")


@main.command()
@click.option("--sizes", default="16,64,256,1024", show_default=True, help="leaves")
@click.option("--dims", default=4, show_default=True)
@click.option("--seed", default=0, show_default=True)
@click.option("--json", "as_json", is_flag=True, help="print the rows as JSON")
def machines(sizes: str, dims: int, seed: int, as_json: bool) -> None:
    """Measure flash, RAM, stack and the slowest decision of trees of several sizes."""
    rows = []
    for machine in MACHINES:
        if missing(machine):
            click.echo(f"{machine.name}: {', '.join(missing(machine))} is missing", err=True)
            continue
        for number in ("float", "fixed") if machine.name == "ATmega328P" else ("double", "float", "fixed"):
            for size in map(int, sizes.split(",")):
                tree = random_tree(np.random.default_rng(seed), dims, size, fresh=1.0)
                for form in ("rules", "table"):
                    rows.append(_measured(machine, controller_of(tree, number), form))
                    if not as_json:
                        click.echo("  ".join(f"{key} {value}" for key, value in rows[-1].items()))
    if as_json:
        click.echo(json.dumps(rows))


def _measured(machine: Machine, controller: MachineController, form: str) -> dict[str, object]:
    tree, number = controller.tree, controller.number
    row: dict[str, object] = {"machine": machine.name, "number": number.name, "form": form}
    row |= {"leaves": tree.n_leaves, "depth": tree.depth}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        compile_for(machine, folder, CCode(form).write(controller, "controller"))
        inputs = number.inputs(np.array(list(leaf_centres(tree, number))))
        try:
            needs = room(machine, folder, controller)
            answers = machine.run(folder, controller, inputs)
        except DoesNotFitError:
            return row | {"flash": "does not fit"}
        if not np.array_equal(answers.actions, controller.wanted(inputs)):
            raise click.ClickException(f"{machine.name} gives other actions than the tree.")
        worst = round(float(answers.cost.max()))
        return row | {"flash": needs.flash, "ram": needs.ram, "stack": needs.stack, machine.unit: worst}


if __name__ == "__main__":
    main()
