"""`spaql edit`: change what a controller does in one place, by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from spaql.cli.arguments import read_action, read_to_play, run_argument
from spaql.cli.report import Report, reports
from spaql.words import counted, number, places, with_interval


@click.command()
@run_argument
@click.option("--leaf", type=int, required=True, help="number of the leaf (see spaql show RUN --numbers)")
@click.option("--do", "action", metavar="ACTION", help="name or number of an action, or numbers: 0.5,-1")
@click.option("--lock", is_flag=True, help="simpler trees made from this one do the same there")
@click.option("--out", type=click.Path(path_type=Path), required=True, help="model file to write")
@click.option("--episodes", type=int, default=100, show_default=True, help="to compare before and after")
@click.option("--seed", type=int, default=0, show_default=True, help="of the episodes")
@reports("the returns before and after")
def edit(run: Path, leaf: int, action: str | None, lock: bool, out: Path, episodes: int, seed: int) -> Report:
    """Change the action of a leaf of the policy in RUN, try it, and save it as a controller of its own.

    Every other command takes the file that is written, such as spaql evaluate.

    \b
    Examples:
      spaql show runs/cartpole --numbers
      spaql edit runs/cartpole --leaf 7 --do "push left" --lock --out edited.spaql
      spaql evaluate edited.spaql --episodes 500
    """
    from spaql.interpret import edited, locked, rule_tree
    from spaql.policy import RuleTreePolicy
    from spaql.training import Controller, evaluate

    if action is None and not lock:
        raise click.UsageError("Give --do, --lock, or both.")
    source = read_to_play(run)
    tree = rule_tree(source)
    after = locked(tree, leaf) if action is None else edited(tree, leaf, read_action(tree, action), lock=lock)
    origin = {"from": run.name, "leaf": leaf, "do": action, "lock": lock}
    data: dict[str, Any] = {"file": str(out), "leaf": leaf, "do": action, "lock": lock}
    lines = []
    for word, one in (("before", tree), ("after", after)):
        result = evaluate(RuleTreePolicy(one), source.problem, episodes=episodes, seed=seed)
        worst = float(result.returns.min())
        data[word] = {"leaves": one.n_leaves, "mean": result.mean, "ci95": result.ci95, "worst": worst}
        returned = with_interval(result.mean, result.ci95)
        shown = number(worst, places(result.mean, result.ci95))
        lines.append(f"{word:7} {counted(one.n_leaves, 'leaf')}, return {returned}, worst {shown}")
    Controller(after, source.problem, origin).save(out)
    return Report(data, "\n".join([*lines, f"Saved as {out}."]))
