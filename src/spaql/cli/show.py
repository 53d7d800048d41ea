"""`spaql show`: print a learned policy as readable rules."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from spaql.cli.arguments import made_by, read, run_argument
from spaql.cli.command import command
from spaql.cli.report import Report, numbers_or_names
from spaql.errors import SettingError
from spaql.formatting import counted

if TYPE_CHECKING:
    from spaql.agents import Agent, Design
    from spaql.controllers import Controller
    from spaql.controllers.explanation import Explanation


@command("the tree and its rules")
@run_argument
@click.option("--digits", type=int, help="round numbers to n digits  [default: exact]")
@click.option("--numbers", "numbered", is_flag=True, help="write the number of each leaf and rule")
@click.option(
    "--at",
    metavar="X,Y,...",
    callback=numbers_or_names,
    help="explain the action for this observation instead; features are given by name, as error=0.2,speed=1",
)
@click.option("--step", type=int, help="time step to show (AQL has one policy per step)")
def show(
    run: Path,
    digits: int | None,
    numbered: bool,
    at: list[float] | dict[str, float] | None,
    step: int | None,
) -> Report:
    """Print the policy in RUN, a run folder or a model file, as if-then rules in raw units.

    The rules give the same action as the policy for every observation, and are the fewest that
    were found. `spaql draw` draws them, and --json prints them as data.

    \b
    Examples:
      spaql show runs/cartpole --digits 3
      spaql show runs/cartpole --at 0,0.1,0.05,-0.2
      spaql show motor.spaql --at error=0.2,speed=1
      spaql show runs/cartpole --json | jq .rules
      spaql show runs/aql --step 0
    """
    from spaql.controllers import controller_of

    source = read(run)
    if at is not None:
        explanation = _explanation(source, at, step)
        return Report(lambda: dataclasses.asdict(explanation), str(explanation))
    tree = controller_of(source, step)
    return Report(lambda: _data(source, tree), lambda: _text(source, tree, digits, numbered))


def _explanation(source: Agent | Design, at: list[float] | dict[str, float], step: int | None) -> Explanation:
    """Return the explanation of an observation, or of given features."""
    from spaql.controllers import PartitionPolicy, controller_of
    from spaql.controllers.policy import policy_of

    policy = policy_of(source)
    if isinstance(policy, PartitionPolicy):
        if isinstance(at, dict):
            raise SettingError("The policy of a partition has no features: give an observation.")
        return policy.explain(at, step or 0)
    controller = controller_of(policy)  # by the numbers of the leaves that are shown
    if isinstance(at, dict):
        return controller.explain_inputs(_by_name(at, controller.inputs))
    return controller.explain(at)


def _by_name(values: dict[str, float], names: tuple[str, ...]) -> list[float]:
    """Return a number for each name; refuse missing and unknown names."""
    from spaql.spaces import find_observation

    known = {find_observation(name, names): x for name, x in values.items()}
    if missing := [name for j, name in enumerate(names) if j not in known]:
        raise SettingError(f"Give all of {', '.join(names)}: {missing[0]} is missing.")
    return [known[j] for j in range(len(names))]


def _data(source: Agent | Design, tree: Controller) -> dict[str, Any]:
    """Return the size, rules and limits of a controller; infinite ends of intervals are null."""
    from spaql.agents import Agent
    from spaql.controllers import table
    from spaql.controllers.feature_table import feature_to
    from spaql.controllers.file import memory_to
    from spaql.controllers.law_names import law_names
    from spaql.controllers.mirrored import folded
    from spaql.controllers.text import leaf_text

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
        "features": [feature_to(feature) for feature in tree.features],
        "memory": memory_to(tree),
        "laws": [list(law_names(tree, leaf)) for leaf in range(1, tree.n_leaves + 1)],
        **mirror,
    }


def _text(source: Agent | Design, tree: Controller, digits: int | None, numbered: bool) -> str:
    from spaql.controllers import text
    from spaql.controllers.mirrored import leaves_to_read

    kind = "a controller with memory, " if tree.remembers else ""
    proven = ", the fewest that are equivalent" if tree.smallest else ""
    leaves = counted(tree.n_leaves, "leaf")
    if (half := leaves_to_read(tree)) < tree.n_leaves:
        leaves = f"{counted(half, 'leaf')} for one half and their mirror images"
    size = f"{kind}{leaves}{proven}; {counted(tree.n_numbers, 'parameter')}"
    heading = f"# {source.problem.name}, {made_by(source)}: {size}"
    return "\n".join([heading, *_remarks(source, tree, digits), text(tree, digits, numbered=numbered)])


def _edit(origin: Mapping[str, Any]) -> str:
    """Describe what was changed by hand."""
    if origin.get("do") is not None:
        return f", leaf {origin.get('leaf')} set by hand to {origin['do']}"
    if "threshold" in origin:
        return f", threshold of rule {origin.get('rule')} set by hand to {origin['threshold']}"
    set_to = [f"offset {change}" for change in origin.get("offset", [])]
    set_to += [f"gain {change}" for change in origin.get("gain", [])]
    return f", leaf {origin.get('leaf')} set by hand: {', '.join(set_to)}" if set_to else ""


def _remarks(source: Agent | Design, tree: Controller, digits: int | None) -> list[str]:
    """Return remarks on the origin of a controller, and on where it is locked."""
    from spaql.agents import Design
    from spaql.controllers.explanation import conditions
    from spaql.controllers.text import leaf_text

    remarks = []
    log = source.problem.log
    if log is not None:
        remarks.append(
            f"# fitted to {', '.join(log['files'])}, {counted(log['steps'], 'step')}: {log['verdict']}"
        )
    origin = source.origin if isinstance(source, Design) else {}
    if "from" in origin:
        remarks.append(f"# made from {origin['from']}{_edit(origin)}")
    if {"algorithm", "seed", "total_timesteps"} <= origin.keys():
        remarks.append(
            f"# learned by {origin['algorithm']}, seed {origin['seed']}, {origin['total_timesteps']:,} steps"
        )
    for lock in tree.locks:
        where = (
            " and ".join(conditions(lock.low, lock.high, tree.number_names(digits), digits)) or "everywhere"
        )
        remarks.append(f"# locked: {where}: {leaf_text(tree, lock.row, digits)}")
    return remarks
