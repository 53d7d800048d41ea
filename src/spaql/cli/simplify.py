"""`spaql simplify`: find smaller trees, and what they cost in return."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from spaql.cli.arguments import read_to_play, run_argument
from spaql.cli.command import command
from spaql.cli.report import PATH, Report, fitted
from spaql.cli.signatures import options_of
from spaql.formatting import counted, number, places, with_interval

if TYPE_CHECKING:
    from spaql.evaluation import SizedTree
    from spaql.simulate import Evaluation


@command("the trees")
@run_argument
@click.option("--out", type=PATH, help="save the chosen tree as a new controller")
@click.option(
    "--max-leaves", type=int, help="choose the best with at most n leaves  [default: by --tolerance]"
)
@click.option(
    "--tolerance",
    "loss",
    default=0.02,
    help="choose the smallest that loses at most this fraction of the exact tree's return",
)
@options_of("evaluation/size_curve.py:size_curve", "episodes", "seed")
def simplify(
    run: Path, out: Path | None, max_leaves: int | None, loss: float, episodes: int, seed: int
) -> Report:
    """Find smaller and smaller trees for the policy in RUN, and evaluate each in fresh episodes.

    \b
    Examples:
      spaql simplify runs/cartpole
      spaql simplify runs/cartpole --tolerance 0.05 --out small.spaql
      spaql show small.spaql
    """
    from spaql.agents import Design
    from spaql.evaluation import evaluate, size_curve
    from spaql.evaluation.size_curve import size_cells

    source = read_to_play(run)
    curve = size_curve(source, episodes=episodes, seed=seed)
    chosen = _chosen(curve, max_leaves, loss)
    exact = curve[-1].evaluation.mean
    digits = places(exact, curve[-1].evaluation.ci95)
    how = (
        f"the smallest within {number(loss * abs(exact), digits)} of the exact tree's "
        f"{number(exact, digits)} (--tolerance {loss:g})"
        if max_leaves is None
        else f"the best of at most {counted(max_leaves, 'leaf')} (--max-leaves)"
    )
    cells = size_cells(curve)
    for row, sized in zip(cells, curve, strict=True):
        row[""] = "<- chosen" if sized is chosen else ""
    lines = [f"{counted(episodes, 'fresh episode')} of each tree", fitted(cells)]
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


def _chosen(curve: list[SizedTree], max_leaves: int | None, loss: float) -> SizedTree:
    from spaql.evaluation import smallest_within

    if max_leaves is not None:
        small = [sized for sized in curve if sized.tree.n_leaves <= max_leaves]
        if not small:
            size = counted(curve[0].tree.n_leaves, "leaf")
            raise click.UsageError(f"The smallest tree that was found has {size}.")
        return max(small, key=lambda sized: sized.evaluation.mean)
    return smallest_within(curve, loss)
