"""`spaql fit`: learn a controller from a log of the plant."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from spaql.cli.arguments import refuse_occupied
from spaql.cli.command import command
from spaql.cli.group import FAILED
from spaql.cli.option_groups import log_options
from spaql.cli.report import PATH, Report
from spaql.cli.signatures import options_of

_FIT = "agents/fitting.py:fit"


@command(
    "the verdict and its evidence",
    more={
        "The log": ("end", "time", "horizon", "setpoints", "constraints"),
        "The search": ("seed", "effort", "mirror", "extrapolate"),
    },
)
@click.argument("logs", type=PATH, nargs=-1, required=True)
@log_options(required=True)
@options_of(_FIT, "cost", "horizon", "seed", constraint="constraints")
@options_of("algorithms/plantree/settings.py:PlanTreeSettings", "effort", "mirror")
@click.option("--out", type=PATH, help="run folder  [default: runs/LOG/fit/seed=SEED]")
@options_of(_FIT, "anyway")
def fit(
    logs: tuple[Path, ...],
    seed: int,
    out: Path | None,
    anyway: bool,
    logged: dict[str, Any],
    **arguments: Any,
) -> Report:
    """Fit a controller to LOGS of a plant, without a simulator: CSV or Parquet files.

    A row has the observations and the action then taken; the next row has the resulting observations.
    Expressions may use the columns without their units, `next_COLUMN` for the value after the step,
    `ended`, arithmetic, comparisons, and functions such as abs, atan2, min and sqrt.

    The verdict on the controller is supported, doubtful, or not supported by the data. In the last case
    nothing is saved, and the exit code is 1, unless --anyway is given.

    \b
    Examples:
      spaql fit log.csv --observations cos,sin,speed --action torque \\
        --action-range -2,2 --episode run --horizon 200 \\
        --cost "atan2(sin, cos)**2 + 0.1 * speed**2" --out runs/fit
      spaql fit a.csv b.csv --observations x,v,angle,rate --action push \\
        --reward 1 --end "abs(x) > 2.4 or abs(angle) > 0.2095" --horizon 500
      spaql evaluate runs/fit --env Pendulum-v1
    """
    from spaql.agents import fit as fit_log

    folder = out or Path("runs") / logs[0].stem / "fit" / f"seed={seed}"
    refuse_occupied(folder)
    fitted = fit_log(list(logs), seed=seed, anyway=anyway, **logged, **arguments)
    text = f"{fitted}\n\n"
    data = fitted.as_data() | {"run": None}
    if fitted.agent is None:
        advice = "log more data, with other actions or starts, or give --anyway."
        return Report(data, f"{text}No controller was saved: {advice}", code=FAILED)
    data["mirror"] = fitted.agent.mirror
    if fitted.agent.mirror is not None:
        text = f"mirror     {fitted.agent.mirror}\n{text}"
    fitted.save(folder)
    return Report(data | {"run": str(folder)}, f"{text}Next: spaql show {folder} --digits 3")
