"""`spaql simplify`: how small a tree can be, and what that costs."""

from __future__ import annotations

import json
from pathlib import Path

import click

from spaql.cli.report import shown_return
from spaql.training import Controller, SizedTree, evaluate, read, size_curve, smallest_within


@click.command()
@click.argument("run", type=click.Path(path_type=Path))
@click.option("--out", type=click.Path(path_type=Path), help="save a tree as a controller of its own")
@click.option("--leaves", type=int, help="the best of at most so many leaves  [default: by --loss]")
@click.option(
    "--loss",
    type=float,
    default=0.02,
    show_default=True,
    help="the smallest that loses at most this part of the exact tree's return",
)
@click.option("--episodes", type=int, default=100, show_default=True, help="of each tree")
@click.option("--seed", type=int, default=0, show_default=True, help="of the episodes")
@click.option("--json", "as_json", is_flag=True, help="print the curve as JSON")
def simplify(
    run: Path, out: Path | None, leaves: int | None, loss: float, episodes: int, seed: int, as_json: bool
) -> None:
    """Find ever smaller trees for the policy in RUN, and what each returns in fresh episodes.

    \b
    Examples:
      spaql simplify runs/cartpole
      spaql simplify runs/cartpole --loss 0.05 --out small.spaql
      spaql show small.spaql
    """
    source = read(run)
    curve = size_curve(source, episodes=episodes, seed=seed)
    chosen = _chosen(curve, leaves, loss)
    if as_json:
        rows = [
            {
                "leaves": one.tree.n_leaves,
                "agreement": one.agreement,
                "mean": one.evaluation.mean,
                "ci95": one.evaluation.ci95,
                "worst": float(one.evaluation.returns.min()),
                "chosen": one is chosen,
            }
            for one in curve
        ]
        click.echo(json.dumps(rows))
    else:
        click.echo(f"leaves  same action  return, {episodes} fresh episodes")
        for one in curve:
            returned = shown_return(one.evaluation.mean, one.evaluation.ci95)
            mark = "  <- chosen" if one is chosen and out is not None else ""
            click.echo(f"{one.tree.n_leaves:6}  {one.agreement:11.1%}  {returned}{mark}")
    if out is not None:
        origin = {"from": run.name, "agreement": chosen.agreement}
        controller = Controller(chosen.tree, source.problem, origin)
        controller.save(out)
        if not as_json:
            # These episodes chose the tree: others say what it is worth.
            again = evaluate(controller, episodes=episodes, seed=seed + 1)
            returned = shown_return(again.mean, again.ci95)
            click.echo(f"Saved {chosen.tree.n_leaves} leaves as {out}: {returned} in other episodes.")


def _chosen(curve: list[SizedTree], leaves: int | None, loss: float) -> SizedTree:
    if leaves is not None:
        small = [one for one in curve if one.tree.n_leaves <= leaves]
        if not small:
            raise click.UsageError(f"The smallest tree that was found has {curve[0].tree.n_leaves} leaves.")
        return max(small, key=lambda one: one.evaluation.mean)
    return smallest_within(curve, loss)
