"""`spaql simplify`: find smaller trees, and what they cost in return."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from spaql.cli.arguments import read_to_play, run_argument
from spaql.cli.command import command
from spaql.cli.report import PATH, Report
from spaql.formatting import counted, number, places, with_interval

if TYPE_CHECKING:
    from spaql.evaluation import SizedTree
    from spaql.simulate import Evaluation


@command("the trees")
@run_argument
@click.option("--out", type=PATH, help="save the chosen tree as a new controller")
@click.option("--leaves", type=int, help="choose the best with at most n leaves  [default: by --loss]")
@click.option(
    "--loss",
    default=0.02,
    help="choose the smallest that loses at most this fraction of the exact tree's return",
)
@click.option("--episodes", default=100, help="episodes for each tree")
@click.option("--seed", default=0, help="seed of the episodes")
def simplify(
    run: Path, out: Path | None, leaves: int | None, loss: float, episodes: int, seed: int
) -> Report:
    """Find smaller and smaller trees for the policy in RUN, and evaluate each in fresh episodes.

    \b
    Examples:
      spaql simplify runs/cartpole
      spaql simplify runs/cartpole --loss 0.05 --out small.spaql
      spaql show small.spaql
    """
    from spaql.agents import Design
    from spaql.evaluation import evaluate, size_curve
    from spaql.evaluation.size_curve import size_cells
    from spaql.tables import aligned

    source = read_to_play(run)
    curve = size_curve(source, episodes=episodes, seed=seed)
    chosen = _chosen(curve, leaves, loss)
    exact = curve[-1].evaluation.mean
    digits = places(exact, curve[-1].evaluation.ci95)
    how = (
        f"the smallest within {number(loss * abs(exact), digits)} of the exact tree's "
        f"{number(exact, digits)} (--loss {loss:g})"
        if leaves is None
        else f"the best of at most {counted(leaves, 'leaf')} (--leaves)"
    )
    cells = size_cells(curve)
    for row, sized in zip(cells, curve, strict=True):
        row[""] = "<- chosen" if sized is chosen else ""
    lines = [f"{counted(episodes, 'fresh episode')} of each tree", aligned(cells)]
    lines.append(f"Chosen: {how}." + ("" if out else " To save it, give --out FILE.spaql."))
    data: dict[str, Any] = {"trees": [{**_row(sized), "chosen": sized is chosen} for sized in curve]}
    if out is not None:
        controller = Design(chosen.tree, source.problem, {"from": run.name, "agreement": chosen.agreement})
        controller.save(out)
        # These episodes selected the tree, so it is evaluated in others.
        again = evaluate(controller, episodes=episodes, seed=seed + 1)
        data["saved"] = {"file": str(out), "leaves": chosen.tree.n_leaves, **_returned(again)}
        returned = with_interval(again.mean, again.ci95)
        lines.append(f"Saved {counted(chosen.tree.n_leaves, 'leaf')} as {out}: {returned} in other episodes.")
    return Report(data, "\n".join(lines))


def _row(sized: SizedTree) -> dict[str, Any]:
    return {"leaves": sized.tree.n_leaves, "agreement": sized.agreement, **_returned(sized.evaluation)}


def _returned(result: Evaluation) -> dict[str, float]:
    return {"mean": result.mean, "ci95": result.ci95, "worst": float(result.returns.min())}


def _chosen(curve: list[SizedTree], leaves: int | None, loss: float) -> SizedTree:
    from spaql.evaluation import smallest_within

    if leaves is not None:
        small = [sized for sized in curve if sized.tree.n_leaves <= leaves]
        if not small:
            size = counted(curve[0].tree.n_leaves, "leaf")
            raise click.UsageError(f"The smallest tree that was found has {size}.")
        return max(small, key=lambda sized: sized.evaluation.mean)
    return smallest_within(curve, loss)
