"""`spaql check`: batteries of checks on an environment, or on the algorithm of a run."""

from __future__ import annotations

import json
from pathlib import Path

import click

from spaql.checks import check_agent, check_problem
from spaql.errors import SettingError
from spaql.training import Agent, read


@click.command()
@click.argument("subject", metavar="ENV_OR_RUN")
@click.option("--horizon", type=int, help="steps of an episode, for an environment that sets no limit")
@click.option("--json", "as_json", is_flag=True, help="print the report as JSON")
def check(subject: str, horizon: int | None, as_json: bool) -> None:
    """Try whether ENV_OR_RUN keeps what its users rely on.

    ENV is an environment, as for `spaql train`. RUN, a run folder or a model file, stands for its algorithm,
    settings and problem: it is trained anew, for a few iterations. The exit code is 1 if a check fails.

    \b
    Examples:
      spaql check CartPole-v1
      spaql check my_package:MyPlant-v0 --horizon 200 --json
      spaql check runs/cartpole
    """
    if Path(subject).exists():
        agent = read(Path(subject))
        if not isinstance(agent, Agent):
            raise SettingError("A controller does not learn: check the run that it comes from.")
        report = check_agent(agent)
    else:
        report = check_problem(subject, horizon=horizon)
    click.echo(json.dumps(report.data()) if as_json else str(report))
    if not report:
        raise click.exceptions.Exit(1)
