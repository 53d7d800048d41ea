"""`spaql check`: check an environment, or the algorithm of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from spaql.cli.arguments import algorithm_option, read_to_play
from spaql.cli.command import command
from spaql.cli.group import FAILED
from spaql.cli.option_groups import problem_options
from spaql.cli.report import Report
from spaql.errors import SettingError


@command("the findings")
@click.argument("subject", metavar="ENV_OR_RUN")
@problem_options("horizon", "options")
@algorithm_option
def check(subject: str, described: dict[str, Any]) -> Report:
    """Check whether ENV_OR_RUN meets its contract.

    ENV is an environment, as for `spaql train`. RUN, a run folder or a model file, gives an algorithm and its
    settings and problem: a new agent is trained for a few iterations. The exit code is 1 if a check fails.

    \b
    Examples:
      spaql check CartPole-v1
      spaql check my_package:MyPlant-v0 --horizon 200 --json
      spaql check plant.fmu --config plant.toml
      spaql check runs/cartpole
    """
    from spaql.agents import Agent
    from spaql.checks import check_agent, check_problem
    from spaql.problems.registry import plant_of_file

    if Path(subject).exists() and plant_of_file(subject) is None:
        if described["options"] is not None:
            raise SettingError("A run contains the options of its environment: leave out --config.")
        agent = read_to_play(Path(subject))
        if not isinstance(agent, Agent):
            raise SettingError("A controller does not learn: check the run in which it was trained.")
        report = check_agent(agent)
    else:
        report = check_problem(subject, **described)
    return Report(report.data(), str(report), code=0 if report else FAILED)
