"""`spaql chain`: whether exported files, and what they were made from, are still the same."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from spaql.cli.arguments import algorithm_option, existing_run, read
from spaql.cli.group import FAILED
from spaql.cli.report import Report, reports


@click.command()
@click.argument("file", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option(
    "--run",
    type=click.Path(path_type=Path),
    callback=lambda _, __, run: None if run is None else existing_run(run),
    help="run folder or model file, to compare the model file, the policy, the settings and the plant",
)
@click.option("--env", metavar="MODULE:ID", help="plant of your own, whose module is imported to compare it")
@click.option("--step", type=int, help="time step, of a policy that has another one at each (aql)")
@click.option("--last", metavar="HASH", help="the last link, as it was kept elsewhere")
@algorithm_option
@reports("what became of each link")
def chain(file: Path, run: Path | None, env: str | None, step: int | None, last: str | None) -> Report:
    """Check the chain of hashes in FILE, which `spaql export --chain` writes, and the files beside it.

    Each link stands for one thing: the plant, the settings and the seed, the model file, the policy, the
    export, and each file. The exit code is 1 if one of them has changed. Who can change files can also write
    a chain anew: keep its last link elsewhere, and give it as --last.

    \b
    Examples:
      spaql chain firmware/controller_chain.json
      spaql chain firmware/controller_chain.json --run runs/cartpole
    """
    from spaql.agents.origin import origin_of
    from spaql.export import check_chain
    from spaql.interpret import rule_tree
    from spaql.policy import FeatureController
    from spaql.policy.resolve import policy_of
    from spaql.problems import check_environment

    origin = None
    if run is not None:
        if env is not None:
            check_environment(env)
        source = read(run)
        policy = policy_of(source)
        if not isinstance(policy, FeatureController):
            policy = rule_tree(source, step)
        origin = origin_of(source, run, policy)
    found = check_chain(file, origin, last)
    lines = [f"{one.outcome:<13} {one.name}{one.reason and f': {one.reason}'}" for one in found]
    changed = any(one.outcome == "changed" for one in found)
    return Report(
        {"changed": changed, "links": [asdict(one) for one in found]},
        "\n".join(lines),
        code=FAILED if changed else 0,
    )
