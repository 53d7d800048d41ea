"""`spaql study compare`: returns against interactions, beside other people's algorithms."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import click

from spaql.cli.arguments import quiet_option
from spaql.cli.command import command
from spaql.cli.report import Report, say
from spaql.errors import require
from spaql.formatting import counted
from spaql.plugins.sweeps.options import ray_option, refuse_failed, workers_option

if TYPE_CHECKING:
    from spaql.plugins.compare.ranking import PairComparison

_REPORT = "report"


@command("the verdicts", short_help="Compare returns and interactions with those of other algorithms.")
@click.option(
    "--out", type=click.Path(path_type=Path), default=Path("compare"), show_default=True, help="folder"
)
@click.option("--quick", is_flag=True, help="one or two seeds and short runs: through every stage")
@click.option(
    "--only",
    multiple=True,
    metavar="NAME",
    help="an algorithm, a problem, or `report`: tables and figures of what is there; may be repeated",
)
@click.option(
    "--steps",
    "budgets",
    multiple=True,
    type=click.IntRange(min=1),
    metavar="N",
    help="interactions of PlanTree; may be repeated  [default: 3000, 5000, 10000, 20000, 50000]",
)
@click.option(
    "--first-seed", type=click.IntRange(min=0), default=6000, show_default=True, help="seeds count from here"
)
@click.option("--seeds", type=click.IntRange(min=1), help="how many  [default: 20, and 5 for networks]")
@workers_option
@ray_option
@quiet_option
def compare(
    out: Path,
    quick: bool,
    only: tuple[str, ...],
    budgets: tuple[int, ...],
    first_seed: int,
    seeds: int | None,
    workers: int | None,
    ray: str | None,
    quiet: bool,
) -> Report:
    """Compare PlanTree with SPAQL, a textbook's controllers, and networks, by the steps each learns from.

    Algorithms: plantree, spaql, spaql-ts, classical, sac, tqc, td3, dqn, qr-dqn, ppo, trpo, ars. Problems:
    Pendulum-v1, CartPole-v1, MountainCar-v0, Acrobot-v1, MountainCarContinuous-v0.

    Needs the extras `paper` and `baselines` (torch, for the networks alone):
    pip install "spaql[paper,baselines]".

    It may be stopped at any time; the same command goes on with what is missing. The whole takes many hours
    of one core.

    \b
    Examples:
      spaql study compare --quick --out compare-quick
      spaql study compare --only plantree --only spaql --only spaql-ts --only classical
      spaql study compare --only plantree --only Pendulum-v1 --steps 10000 --seeds 5
      spaql study compare --only sac --only dqn --workers 1
      spaql study compare --only report
    """
    from spaql.plugins.compare.baselines import NETWORKS
    from spaql.plugins.compare.report import write_comparison
    from spaql.plugins.compare.study import FULL, QUICK, compare_runs
    from spaql.plugins.sweeps.store import RunStore
    from spaql.plugins.sweeps.sweeps import sweep

    require("The report", "plot", "stats")
    store = RunStore(out / "runs")
    names = [name for name in only if name != _REPORT]
    size = QUICK if quick else FULL
    if names or not only:
        runs = compare_runs(size, only=names, budgets=budgets, first_seed=first_seed, seeds=seeds)
        if ray is None and any(run.algorithm in NETWORKS for run in runs):
            require("A network", "baselines")
        if not quiet:
            say(f"{len(runs):,} runs", err=True)
        refuse_failed(sweep(runs, store.root, workers=workers, ray=ray, progress_bar=not quiet))
    pairs = write_comparison(store, out, "spaql study compare" + " --quick" * quick)
    verdicts = Counter(pair.verdict for pair in pairs)
    return Report({"pairs": len(pairs), **verdicts}, _text(pairs, verdicts, out))


def _text(pairs: list[PairComparison], verdicts: Counter[str], out: Path) -> str:
    from spaql.plugins.sweeps.table import number_cell

    lines = [
        f"behind  {pair.ours.problem} at {pair.ours.at:,}: {number_cell(pair.ours.returns.mean())}, "
        f"{pair.theirs.algorithm} {number_cell(pair.theirs.returns.mean())}"
        for pair in pairs
        if pair.verdict == "behind"
    ]
    if pairs:
        lines.append(
            f"Of {counted(len(pairs), 'pair')}, PlanTree is ahead in {verdicts['ahead']}, behind in "
            f"{verdicts['behind']}; {verdicts['cannot tell']} cannot be told."
        )
    return "\n".join([*lines, f"Open {out / 'report.html'}"])
