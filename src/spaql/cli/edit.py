"""`spaql edit`: change a leaf or a rule of a controller, by hand."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from spaql.cli.arguments import read_action, read_to_play, run_argument
from spaql.cli.command import command
from spaql.cli.report import PATH, Report, named, read_number
from spaql.cli.signatures import options_of
from spaql.formatting import counted, number, places, with_interval

if TYPE_CHECKING:
    from spaql.agents import Agent, Design
    from spaql.controllers import Controller


@command("the returns before and after", more={"The comparison": ("episodes", "seed")})
@run_argument
@click.option("--leaf", type=int, help="number of the leaf to change (see spaql show RUN --numbers)")
@click.option(
    "--do", "action", metavar="ACTION", help="name or index of a discrete action, or components: 0.5,-1"
)
@click.option(
    "--offset",
    metavar="[ACTION=]VALUE",
    multiple=True,
    help="offset of the leaf's law, or of an action's score",
)
@click.option(
    "--gain",
    metavar="[ACTION:]OBSERVATION=VALUE",
    multiple=True,
    help="gain of the leaf's law, or of an action's score",
)
@click.option("--lock", is_flag=True, help="keep what the leaf does in later simplification and search")
@click.option("--rule", type=int, help="number of the rule to change instead")
@click.option("--threshold", type=float, help="new threshold of the rule")
@click.option(
    "--tree",
    "file",
    metavar="FILE",
    type=PATH,
    help="take all parameters from a JSON file, as saved from the page of `spaql page`",
)
@click.option("--out", type=PATH, required=True, help="model file to write")
@options_of("evaluation/episodes.py:evaluate", "episodes", "seed")
def edit(
    run: Path,
    leaf: int | None,
    action: str | None,
    offset: tuple[str, ...],
    gain: tuple[str, ...],
    lock: bool,
    rule: int | None,
    threshold: float | None,
    file: Path | None,
    out: Path,
    episodes: int,
    seed: int,
) -> Report:
    """Change a leaf or a rule of the policy in RUN, evaluate it, and save it as a new controller.

    A leaf gets another action or other parameters of its law; a rule gets another threshold. A switching law
    has an offset and gains for each action. Names of observations, features and components of an action may
    omit their units. Every other command, such as spaql evaluate, takes the file that is written.

    \b
    Examples:
      spaql show runs/cartpole --numbers
      spaql edit runs/cartpole --leaf 7 --do "push left" --lock --out edited.spaql
      spaql edit runs/swing-up --leaf 2 --gain speed=-2.5 --out edited.spaql
      spaql edit runs/pole --leaf 1 --gain "push left:angle=-3" --out e.spaql
      spaql edit runs/swing-up --rule 1 --threshold -2.5 --out edited.spaql
      spaql edit runs/oven --tree edited-controller.json --out edited.spaql
      spaql evaluate edited.spaql --episodes 500
    """
    from spaql.controllers import controller_of, edited, locked, moved
    from spaql.controllers.edit import replaced
    from spaql.export import controller_from_json

    law = bool(offset or gain)
    if file is not None and (leaf, rule, action, threshold, law, lock) != (None,) * 4 + (False,) * 2:
        raise click.UsageError("--tree replaces all parameters: leave out the other changes.")
    if file is None and (leaf is None) == (rule is None):
        raise click.UsageError("Give the number of a leaf (--leaf) or of a rule (--rule).")
    if (rule is None) != (threshold is None) or (rule is not None and (action is not None or law or lock)):
        raise click.UsageError("A rule has a --threshold; --do, --offset, --gain and --lock are for leaves.")
    if leaf is not None and action is None and not law and not lock:
        raise click.UsageError("Give --do, --lock, or both; or --offset and --gain of a law.")
    source = read_to_play(run)
    what: dict[str, Any]
    before = controller_of(source)
    if file is not None:
        after = replaced(before, controller_from_json(file), str(file))
        what = {"tree": file.name}
    elif leaf is None:
        assert rule is not None
        assert threshold is not None
        after = moved(before, rule, threshold)
        what = {"rule": rule, "threshold": threshold}
    else:
        if action is None and not law:
            after = locked(before, leaf)
        else:
            do = None if action is None else read_action(before, action)
            gains = _gains(gain, before)
            after = edited(before, leaf, do, offset=_offsets(offset), gains=gains, lock=lock)
        changed = {"offset": list(offset), "gain": list(gain)} if law else {"do": action}
        what = {"leaf": leaf, **changed, "lock": lock}
    return _saved(source, before, after, what, run, out, episodes, seed)


def _saved(
    source: Agent | Design,
    before: Controller,
    after: Controller,
    what: dict[str, Any],
    run: Path,
    out: Path,
    episodes: int,
    seed: int,
) -> Report:
    """Compare a controller before and after an edit, and save it."""
    from spaql.agents import Design
    from spaql.controllers.mirrored import folded
    from spaql.evaluation import evaluate

    data: dict[str, Any] = {"file": str(out), **what}
    lines = []
    for label, controller in (("before", before), ("after", after)):
        result = evaluate(controller, source.problem, episodes=episodes, seed=seed)
        worst = float(result.returns.min())
        data[label] = {
            "leaves": controller.n_leaves,
            "mean": result.mean,
            "ci95": result.ci95,
            "worst": worst,
        }
        returned = with_interval(result.mean, result.ci95)
        shown = number(worst, places(result.mean, result.ci95))
        lines.append(f"{label:7} {counted(controller.n_leaves, 'leaf')}, return {returned}, worst {shown}")
    if (fold := folded(before)) is not None:
        side = fold.half.inputs[fold.side]
        data["mirrored"] = folded(after) is not None
        lines.append(
            f"Changed where {side} >= 0, and mirrored where it is below 0."
            if data["mirrored"]
            else f"The tree is no longer its own mirror image: nothing was changed where {side} < 0, and "
            "leaves and rules are numbered anew."
        )
    Design(after, source.problem, {"from": run.name, **what}).save(out)
    return Report(data, "\n".join([*lines, f"Saved as {out}."]))


def _offsets(values: tuple[str, ...]) -> float | dict[str, float] | None:
    """Return offsets: a number, or numbers by the name of an action or of a component."""
    if len(values) == 1 and "=" not in values[0]:
        return read_number(values[0])
    pairs = (named(value, "--offset torque=0.5") for value in values)
    return {name: read_number(number) for name, number in pairs} or None


def _gains(values: tuple[str, ...], tree: Controller) -> dict[str | tuple[str, str], float]:
    """Return gains by the names of inputs, and of components of the action if it has several."""
    gains: dict[str | tuple[str, str], float] = {}
    for text in values:
        name, value = named(text, "--gain speed=-2.5, or --gain torque:speed=-2.5")
        action, colon, observation = name.partition(":")
        pair = colon and name not in tree.inputs
        gains[(action.strip(), observation.strip()) if pair else name] = read_number(value)
    return gains
