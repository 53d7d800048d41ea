"""Exports at length: `python benchmarks/export.py controllers`, `equality`, `mutation` and `machines`.

`controllers` writes those of the zoo in every target. `equality` compares every form of 200 random trees with
the trees, `mutation` changes one threshold or one action in each form 100 times and counts how often the
equivalence check finds it, and `machines` measures C on simulated microcontrollers.
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

from boards import BOARDS, Board, DoesNotFitError, compile_for, missing, room
from export_forms import FORMS, KINDS, SAFE, mutant
from feature_controllers import random_controller
from random_trees import random_tree
from spaql import zoo
from spaql.export import EXPORTERS, find_exporter
from spaql.export.equivalence import EquivalenceError, check_equivalence
from spaql.export.language import Target
from spaql.export.languages.c import C
from spaql.export.machine import Machine, machine_of
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
            machine = machine_of(tree, number, safe)
            try:
                found = _check(target, machine, target.write(machine, "controller"), points)
                checked[form] += sum(found.values())
            except EquivalenceError as error:
                wrong[form] += 1
                click.echo(f"{form}: {error}", err=True)
    click.echo(f"{trees} trees, {time.perf_counter() - began:,.0f} s")
    for form in FORMS:
        click.echo(f"{form:24} {checked[form]:>12,} inputs  {wrong[form]} trees with a difference")


def _check(target: Target, machine: Machine, files: dict[str, bytes], points: int) -> dict[str, int]:
    with tempfile.TemporaryDirectory() as folder:
        return check_equivalence(target, machine, files, "controller", Path(folder), points).points


@main.command()
@click.option("--points", default=200_000, show_default=True, help="random points or samples")
@click.option("--names", default=",".join(zoo.names()), help="controllers of the zoo")
@click.option("--targets", default=",".join(EXPORTERS), show_default=True)
def controllers(points: int, names: str, targets: str) -> None:
    """Compare every target with the controllers of the zoo, and with one of every kind of feature."""
    made = {name: zoo.load(name).controller for name in names.split(",")}
    made["every feature"] = random_controller(3)
    for target in targets.split(","):
        exporter, suffix = find_exporter(target)
        began = time.process_time()
        counts = []
        for controller in made.values():
            with tempfile.TemporaryDirectory() as folder:
                found = exporter(controller, Path(folder) / f"controller{suffix}", points=points)
            counts.append(sum(found.points.values()))
        spent = time.process_time() - began
        inputs = f"{len(counts)} controllers, {min(counts):,} to {max(counts):,} inputs"
        click.echo(f"{target:12} {inputs}: no difference, {spent:.0f} s")


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
            kind = KINDS[int(rng.integers(3))]
            machine = machine_of(random_tree(rng, int(rng.integers(1, 7)), leaves, kind), number)
            changed = mutant(machine, rng, "threshold" if i % 2 else "action")
            try:
                _check(target, machine, target.write(changed, "controller"), 0)
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
    for board in BOARDS:
        if missing(board):
            click.echo(f"{board.name}: {', '.join(missing(board))} is missing", err=True)
            continue
        for number in ("float",) if board.name == "ATmega328P" else ("double", "float"):
            for size in map(int, sizes.split(",")):
                tree = random_tree(np.random.default_rng(seed), dims, size, fresh=1.0)
                rows.append(_measured(board, machine_of(tree, number)))
                if not as_json:
                    click.echo("  ".join(f"{key} {value}" for key, value in rows[-1].items()))
    if as_json:
        click.echo(json.dumps(rows))


def _measured(board: Board, machine: Machine) -> dict[str, object]:
    tree = machine.controller
    number = machine.number
    row: dict[str, object] = {"machine": board.name, "number": number.name}
    row |= {"leaves": tree.n_leaves, "depth": tree.depth}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        compile_for(board, folder, C().write(machine, "controller"))
        inputs = number.inputs(np.array(list(leaf_centres(tree, number))))
        try:
            needs = room(board, folder, machine)
            answers = board.run(folder, machine, inputs)
        except DoesNotFitError:
            return row | {"flash": "does not fit"}
        if not np.array_equal(answers.actions, machine.wanted(inputs)):
            raise click.ClickException(f"{board.name} gives other actions than the tree.")
        worst = round(float(answers.cost.max()))
        return row | {"flash": needs.flash, "ram": needs.ram, "stack": needs.stack, board.unit: worst}


if __name__ == "__main__":
    main()
