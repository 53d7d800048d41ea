"""`spaql show`: a learned policy as rules for a person."""

from __future__ import annotations

import json
from pathlib import Path

import click

from spaql.interpret import rule_tree
from spaql.policy import text
from spaql.training import load


@click.command()
@click.argument("run", type=click.Path(path_type=Path))
@click.option("--step", type=int, help="time step, of a policy that has another one at each (aql)")
@click.option("--digits", type=int, help="round numbers to so many digits  [default: exact]")
@click.option("--json", "as_json", is_flag=True, help="print the size of the tree as JSON, not the rules")
def show(run: Path, step: int | None, digits: int | None, as_json: bool) -> None:
    """Print the policy in RUN, a run folder or a model file, as if-then rules in raw units.

    The rules give the same action as the policy for every observation, and there are as few of them as
    could be found.

    \b
    Examples:
      spaql show runs/cartpole
      spaql show runs/cartpole --digits 3
      spaql show runs/aql --step 0
    """
    agent = load(run)
    tree = rule_tree(agent, step)
    if as_json:
        size = {
            "leaves": tree.n_leaves,
            "nodes": tree.n_nodes,
            "depth": tree.depth,
            "smallest": tree.smallest,
        }
        click.echo(json.dumps(size))
        return
    proven = ", the fewest that do the same" if tree.smallest else ""
    click.echo(f"# {agent.problem.name}, {agent.learner_type.name}: {tree.n_leaves} leaves{proven}")
    click.echo(text(tree, digits))
