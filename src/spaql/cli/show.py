"""`spaql show`: a learned policy as rules for a person, or as a table or graph."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from spaql.cli.arguments import Choice, made_by, read, read_to_play, run_argument
from spaql.cli.report import Report, numbers, reports
from spaql.errors import SettingError, require
from spaql.formatting import counted

if TYPE_CHECKING:
    from spaql.agents import Agent, Controller
    from spaql.policy import FeatureController, RuleTree
    from spaql.policy.explanation import Explanation

FORMS = ("rules", "csv", "markdown", "latex", "dot")


@click.command()
@run_argument
@click.option("--digits", type=int, help="round numbers to so many digits  [default: exact]")
@click.option("--numbers", "numbered", is_flag=True, help="write the number of each leaf and rule")
@click.option(
    "--at", metavar="X,Y,...", callback=numbers, help="instead explain what is done for this observation"
)
@click.option("--as", "form", type=Choice(FORMS), default="rules", show_default=True, help="what to print")
@click.option(
    "--html", "card", type=click.Path(path_type=Path), help="write a page to play with: tree, map and plant"
)
@click.option("--stress", "stressed", is_flag=True, help="add smaller trees and stress tests to that page")
@click.option("--step", type=int, help="time step, of a policy that has another one at each (aql)")
@reports("the tree and its rules")
def show(
    run: Path,
    digits: int | None,
    numbered: bool,
    at: list[float] | None,
    form: str,
    card: Path | None,
    stressed: bool,
    step: int | None,
) -> Report:
    """Print the policy in RUN, a run folder or a model file, as if-then rules in raw units.

    The rules give the same action as the policy for every observation, and there are as few of them as
    could be found. As csv, markdown or latex they are a table with a row for each leaf; as dot, a graph for
    Graphviz. `spaql draw` makes pictures.

    \b
    Examples:
      spaql show runs/cartpole --digits 3
      spaql show runs/cartpole --at 0,0.1,0.05,-0.2
      spaql show runs/cartpole --html page.html
      spaql show runs/cartpole --as csv > table.csv
      spaql show runs/cartpole --as dot --digits 3 | dot -Tsvg > tree.svg
      spaql show runs/aql --step 0
    """
    from spaql.interpret import rule_tree
    from spaql.policy import FeatureController
    from spaql.policy.resolve import policy_of

    if card is not None:
        return _card(run, card, stressed)
    if stressed:
        raise click.UsageError("--stress is for the page of --html.")
    source = read(run)
    if at is not None:
        explanation = _explanation(source, at, step)
        return Report(lambda: dataclasses.asdict(explanation), str(explanation))
    policy = policy_of(source)
    if isinstance(policy, FeatureController):
        return _with_memory(source, policy, form, digits, numbered)
    tree = rule_tree(source, step)
    return Report(lambda: _data(source, tree), lambda: _text(source, tree, form, digits, numbered))


def _with_memory(
    source: Agent | Controller, policy: FeatureController, form: str, digits: int | None, numbered: bool
) -> Report:
    """Report a controller with memory; tables and graphs are those of its tree, which is over features."""
    from spaql.policy.feature_controller_file import declaration_to
    from spaql.policy.feature_text import controller_text
    from spaql.policy.law_names import law_names

    def data() -> dict[str, Any]:
        return _data(source, policy.tree) | {
            "memory": declaration_to(policy),
            "laws": [list(law_names(policy, leaf)) for leaf in range(1, policy.n_leaves + 1)],
        }

    def text() -> str:
        if form != "rules" or numbered:
            return _text(source, policy.tree, form, digits, numbered)
        tree = policy.tree
        size = f"{counted(tree.n_leaves, 'leaf')}; {counted(tree.n_numbers, 'number')}"
        heading = f"# {source.problem.name}, {made_by(source)}: a controller with memory, {size}"
        return "\n".join([heading, *_remarks(source, tree, digits), controller_text(policy, digits)])

    return Report(data, text)


def _card(run: Path, card: Path, stressed: bool) -> Report:
    from spaql.archive import write_atomically
    from spaql.figures import policy_card

    if stressed:
        require("The page", "plot")
    write_atomically(card, policy_card(run, read_to_play(run), stressed=stressed).encode())
    return Report({"file": str(card)}, str(card))


def _explanation(source: Agent | Controller, observation: list[float], step: int | None) -> Explanation:
    from spaql.interpret import rule_tree
    from spaql.policy import FeatureController, PartitionPolicy, RuleTree
    from spaql.policy.resolve import policy_of

    policy = policy_of(source)
    if isinstance(policy, PartitionPolicy):
        return policy.explain(observation, step or 0)
    if isinstance(policy, RuleTree):
        return rule_tree(policy).explain(observation)  # by the numbers of the leaves that are shown
    if isinstance(policy, FeatureController):
        raise SettingError(
            "This controller has memory: what it does depends on more than the observation. In Python, "
            "policy.tree.explain(policy.features_of(observation, state)) explains it for a state."
        )
    raise SettingError(f"A {type(policy).__name__} cannot explain what it does.")


def _data(source: Agent | Controller, tree: RuleTree) -> dict[str, Any]:
    """Return the size of a tree, and the intervals of each leaf, with null for infinite ends."""
    from spaql.agents import Agent
    from spaql.interpret import table
    from spaql.policy.mirrored import folded
    from spaql.policy.text import leaf_text

    fold = folded(tree)
    mirror = {} if fold is None else {"mirror": fold.heading, "half_leaves": fold.half.n_leaves}
    rows = table(tree)
    names = rows.names()
    rules = [
        {
            "when": {
                name: [float(low), float(high)]
                for name, low, high in zip(names, rows.low[i], rows.high[i], strict=True)
                if math.isfinite(low) or math.isfinite(high)
            },
            "do": leaf_text(tree, int(rows.leaf[i]), None),
        }
        for i in range(len(rows))
    ]
    return {
        "problem": source.problem.name,
        "made_by": made_by(source),
        "origin": {} if isinstance(source, Agent) else dict(source.origin),
        "leaves": tree.n_leaves,
        "nodes": tree.n_nodes,
        "depth": tree.depth,
        "numbers": tree.n_numbers,
        "smallest": tree.smallest,
        "rules": rules,
        **mirror,
    }


def _text(source: Agent | Controller, tree: RuleTree, form: str, digits: int | None, numbered: bool) -> str:
    from spaql.interpret import dot, table_csv, table_latex, table_markdown
    from spaql.policy import text
    from spaql.policy.mirrored import leaves_to_read

    if form == "csv":
        return table_csv(tree)
    if form != "rules":
        return {"markdown": table_markdown, "latex": table_latex, "dot": dot}[form](tree, digits)
    proven = ", the fewest that do the same" if tree.smallest else ""
    leaves = counted(tree.n_leaves, "leaf")
    if (half := leaves_to_read(tree)) < tree.n_leaves:
        leaves = f"{counted(half, 'leaf')} for one half and their mirror images"
    heading = (
        f"# {source.problem.name}, {made_by(source)}: {leaves}{proven}; {counted(tree.n_numbers, 'number')}"
    )
    return "\n".join([heading, *_remarks(source, tree, digits), text(tree, digits, numbered=numbered)])


def _edit(origin: Mapping[str, Any]) -> str:
    """Return a text on what was changed by hand."""
    if origin.get("do") is not None:
        return f", leaf {origin.get('leaf')} set by hand to {origin['do']}"
    if "threshold" in origin:
        return f", threshold of rule {origin.get('rule')} set by hand to {origin['threshold']}"
    set_to = [f"offset {one}" for one in origin.get("offset", [])]
    set_to += [f"gain {one}" for one in origin.get("gain", [])]
    return f", leaf {origin.get('leaf')} set by hand: {', '.join(set_to)}" if set_to else ""


def _remarks(source: Agent | Controller, tree: RuleTree, digits: int | None) -> list[str]:
    """Return remarks on what a controller was made from, and where it is locked."""
    from spaql.agents import Controller
    from spaql.policy.explanation import conditions
    from spaql.policy.text import leaf_text

    remarks, log = [], source.problem.log
    if log is not None:
        remarks.append(
            f"# fitted to {', '.join(log['files'])}, {counted(log['steps'], 'step')}: {log['verdict']}"
        )
    if isinstance(source, Controller) and "from" in source.origin:
        remarks.append(f"# made from {source.origin['from']}{_edit(source.origin)}")
    if isinstance(source, Controller) and {"algorithm", "seed", "total_timesteps"} <= source.origin.keys():
        made = source.origin
        remarks.append(
            f"# learned by {made['algorithm']}, seed {made['seed']}, {made['total_timesteps']:,} steps"
        )
    for lock in tree.locks:
        where = (
            " and ".join(conditions(lock.low, lock.high, tree.number_names(digits), digits)) or "everywhere"
        )
        remarks.append(f"# locked: {where}: {leaf_text(tree, lock.row, digits)}")
    return remarks
