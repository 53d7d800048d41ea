"""`spaql show`: a learned policy as rules for a person, or as a table or graph."""

from __future__ import annotations

import json
from pathlib import Path

import click

from spaql.archive import write_atomically
from spaql.cli.report import numbers
from spaql.errors import SettingError
from spaql.interpret import dot, rule_tree, table_csv, table_latex, table_markdown
from spaql.policy import PartitionPolicy, RuleTree, RuleTreePolicy, text
from spaql.training import Agent, Controller, read

FORMS = ("rules", "csv", "markdown", "latex", "dot")


@click.command()
@click.argument("run", type=click.Path(path_type=Path))
@click.option("--step", type=int, help="time step, of a policy that has another one at each (aql)")
@click.option("--digits", type=int, help="round numbers to so many digits  [default: exact]")
@click.option("--numbers", "numbered", is_flag=True, help="write the number of each leaf")
@click.option(
    "--at", metavar="X,Y,...", callback=numbers, help="instead explain what is done for this observation"
)
@click.option(
    "--as", "form", type=click.Choice(FORMS), default="rules", show_default=True, help="what to print"
)
@click.option(
    "--html", "card", type=click.Path(path_type=Path), help="write the policy card: all about it on a page"
)
@click.option("--json", "as_json", is_flag=True, help="print the size of the tree as JSON, not the rules")
def show(
    run: Path,
    step: int | None,
    digits: int | None,
    numbered: bool,
    at: list[float] | None,
    form: str,
    card: Path | None,
    as_json: bool,
) -> None:
    """Print the policy in RUN, a run folder or a model file, as if-then rules in raw units.

    The rules give the same action as the policy for every observation, and there are as few of them as
    could be found. As csv, markdown or latex they are a table with a row for each leaf; as dot, a graph for
    Graphviz. `spaql draw` makes pictures.

    \b
    Examples:
      spaql show runs/cartpole
      spaql show runs/cartpole --digits 3 --numbers
      spaql show runs/cartpole --at 0,0.1,0.05,-0.2
      spaql show runs/aql --step 0
      spaql show runs/cartpole --html card.html
      spaql show runs/cartpole --as csv > table.csv
      spaql show runs/cartpole --as dot --digits 3 | dot -Tsvg > tree.svg
    """
    source = read(run)
    if at is not None:
        click.echo(_explanation(source, at, step))
        return
    if card is not None:
        from spaql.figures import policy_card

        write_atomically(card, policy_card(run, source).encode())
        click.echo(card)
        return
    tree = rule_tree(source, step)
    if as_json:
        size = {
            "leaves": tree.n_leaves,
            "nodes": tree.n_nodes,
            "depth": tree.depth,
            "smallest": tree.smallest,
        }
        click.echo(json.dumps(size))
        return
    if form != "rules":
        click.echo(_write(tree, form, digits), nl=False)
        return
    proven = ", the fewest that do the same" if tree.smallest else ""
    made_by = source.learner_type.name if isinstance(source, Agent) else "controller"
    click.echo(f"# {source.problem.name}, {made_by}: {tree.n_leaves} leaves{proven}")
    click.echo(text(tree, digits, numbered=numbered))


def _explanation(source: Agent | Controller, observation: list[float], step: int | None) -> str:
    policy = source.policy
    if isinstance(policy, PartitionPolicy):
        return str(policy.explain(observation, step or 0))
    if isinstance(policy, RuleTreePolicy):
        return str(policy.explain(observation))
    raise SettingError(f"A {type(policy).__name__} cannot explain what it does.")


def _write(tree: RuleTree, form: str, digits: int | None) -> str:
    if form == "csv":
        return table_csv(tree)
    return {"markdown": table_markdown, "latex": table_latex, "dot": dot}[form](tree, digits)
