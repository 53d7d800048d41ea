"""`spaql design`: from a plant or a log to a controller, and a report that a reviewer can sign."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from spaql.cli.arguments import complete_environment, quiet_option, refuse_occupied
from spaql.cli.command import command
from spaql.cli.group import INTERRUPTED
from spaql.cli.option_groups import LOG_OPTIONS, log_options, problem_options
from spaql.cli.report import PATH, Report, say

_SIMULATED = ("steps", "tries", "episodes", "options", "observation_names", "action_names")
"""Parameters that a log does not have."""
_SUFFIXES = (".csv", ".parquet", ".pq")
"""Of logs."""


@command(
    "the conclusion and the result of each stage",
    short_help="Design a controller, with a report that a reviewer can sign.",
    more={
        "A log, instead of a simulator": tuple(LOG_OPTIONS),
        "The environment": ("horizon", "observation_names", "action_names"),
    },
)
@click.argument("plant", shell_complete=complete_environment)
@click.option("--out", type=PATH, required=True, help="folder of the design")
@click.option("--steps", type=int, help="training steps  [default: as for train]")
@click.option("--seed", default=0, help="seed of all randomness")
@click.option("--tries", default=1, help="train n seeds, and select one in episodes of each")
@click.option("--episodes", default=100, help="episodes of each evaluation")
@click.option("--seconds", default=60.0, help="processor time for the proof")
@problem_options("options", "horizon", "observation_names", "action_names", "cost", "constraints")
@log_options(required=False)
@quiet_option
def design(
    plant: str,
    out: Path,
    seconds: float,
    described: dict[str, Any],
    logged: dict[str, Any],
    quiet: bool,
    **budget: Any,
) -> Report:
    """Design a controller for PLANT, and write a report that a reviewer can sign.

    PLANT is an environment, a plant or an FMU, as for `spaql train`; or a log, with --observations and
    --action, as for `spaql fit`.

    Classical controllers are tuned first. The learned controller is compared with them, simplified,
    stress-tested, proven where that is possible, and exported to C. Interrupted by Ctrl-C, the same command
    continues: each stage keeps its result in the folder.

    \b
    Examples:
      spaql design spaql/Oven-v0 --out designs/oven
      spaql design plant:TwoTanks-v0 --steps 2000000 --tries 4 --out designs/tanks
      spaql design tank.fmu --config tank.toml --steps 3000 --out designs/tank
      spaql design log.csv --observations x,v --action u --action-range -1,1 \\
        --cost "x**2 + 0.1 * u**2" --out designs/from-log
    """
    from spaql.leases import held
    from spaql.plugins.design.closing import close
    from spaql.plugins.design.log import fit_stage
    from spaql.plugins.design.report import print_pdf, write_report
    from spaql.plugins.design.simulator import Simulated
    from spaql.plugins.design.stages import STAGES, Stages

    _check_options(plant, is_log=logged["observations"] is not None)
    if not (out / STAGES).is_dir():
        refuse_occupied(out)
    click.get_current_context().with_resource(held(out))
    stages = Stages(out, quiet=quiet)
    try:
        if logged["observations"] is not None:
            options = {name: described[name] for name in ("horizon", "cost", "constraints")}
            agent = fit_stage(plant, stages, {**options, **logged, "seed": budget["seed"]})
        else:
            agent = Simulated(stages=stages, plant=plant, described=described, **budget).carry_out()
        close(agent, stages, seconds)
    except KeyboardInterrupt:
        say("Interrupted: the same command continues.", err=True)
        raise click.exceptions.Exit(INTERRUPTED) from None
    report = write_report(stages, agent.problem, shlex.join(["spaql", *sys.argv[1:]]))
    pdf = print_pdf(report)
    lines = {name: result.line for name, result in stages.results.items()}
    data = {"conclusion": stages.conclusion, "report": str(report), "print": pdf, "stages": lines}
    return Report(data, f"\nreport     {report}\nprint      {pdf}\n\n{stages.conclusion}")


def _check_options(plant: str, *, is_log: bool) -> None:
    """Refuse a log whose columns are not named, and options that are only for logs or for simulators."""
    context = click.get_current_context()
    given = {
        param.name: param.opts[0]
        for param in context.command.params
        if context.get_parameter_source(param.name or "") is ParameterSource.COMMANDLINE
    }
    if is_log != ("action" in given) or (not is_log and Path(plant).suffix.lower() in _SUFFIXES):
        raise click.UsageError("A log needs --observations and --action, as for `spaql fit`.")
    wrong = [given[name] for name in (_SIMULATED if is_log else LOG_OPTIONS) if name in given]
    if wrong:
        raise click.UsageError(f"Leave out {', '.join(wrong)}: {plant} is {'a' if is_log else 'no'} log.")
