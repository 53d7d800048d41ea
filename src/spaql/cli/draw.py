"""`spaql draw`: figures of a learned policy, or of a study."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import click

from spaql.cli.arguments import (
    Choice,
    algorithm_option,
    existing_run,
    made_by,
    parse_methods,
    read,
    read_to_play,
)
from spaql.cli.command import command
from spaql.cli.report import PATH, Report, named, read_number
from spaql.entry_points import declared_names, find_declared, load_declared
from spaql.errors import SettingError, require

if TYPE_CHECKING:
    from spaql.agents import Agent, Design
    from spaql.figures import Record

_PLANE = ("x", "y", "at", "step", "episodes")
_TAKES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "tree": ("step",),
        "map": _PLANE,
        "value": _PLANE,
        "balls": _PLANE,
        "phase": _PLANE,
        "response": ("beside",),
        "counterexample": (),
    }
)
"""The figures of a policy, with the options that each takes; all take --out."""
_FIGURES = "spaql.figures"
STUDY_KINDS = tuple(declared_names(_FIGURES))
"""Figures of the finished runs of a study, which packages declare (see `spaql.figures.drawing.FIGURES`)."""
Along = tuple[str | int, tuple[float, float] | None]


def _observation(value: str) -> str | int:
    if not value:
        raise ValueError("an observation has a name or an index")
    return int(value) if value.isdigit() else value


def _parse_axis(ctx: click.Context, param: click.Parameter, value: str | None) -> Along | None:
    """Return the name or index of an observation, and the ends of the axis if they are given."""
    if value is None:
        return None
    name, *ends = value.rsplit(":", 2)
    try:
        return _observation(name), (float(ends[0]), float(ends[1])) if ends else None
    except (ValueError, IndexError) as error:
        raise click.BadParameter(
            "give a name or an index, as in 'pole angle' or 'pole angle:-0.2:0.2'"
        ) from error


def _parse_fixed(
    ctx: click.Context, param: click.Parameter, values: tuple[str, ...]
) -> dict[str | int, float]:
    pairs = (named(value, "'cart speed=0'") for value in values)
    return {_observation(name): read_number(number) for name, number in pairs}


@command("the name of the file")
@click.argument("run", type=PATH)
@click.argument("kind", type=Choice((*_TAKES, *STUDY_KINDS)), metavar="KIND")
@click.option(
    "--x", metavar="NAME[:LOW:HIGH]", callback=_parse_axis, help="observation on the horizontal axis"
)
@click.option("--y", metavar="NAME[:LOW:HIGH]", callback=_parse_axis, help="observation on the vertical axis")
@click.option(
    "--fix",
    "at",
    metavar="NAME=VALUE",
    multiple=True,
    callback=_parse_fixed,
    help="fix another observation; may be repeated",
)
@click.option("--step", type=int, help="time step to show (AQL has one policy per step)")
@click.option("--episodes", type=int, help="number of episodes  [default: depends on KIND]")
@click.option(
    "--beside",
    metavar="pid,lqr",
    callback=parse_methods,
    help="classical controllers to compare with in a response  [default: pid]",
)
@click.option("--out", type=PATH, help="file: .svg, .pdf or .png  [default: KIND.svg]")
@algorithm_option
def draw(run: Path, kind: str, out: Path | None, **options: Any) -> Report:
    """Draw the policy in RUN, a run folder or a model file, or the study in it.

    \b
    KIND is one of
      tree    the rules as a tree, at most 64 leaves
      map     the action over the observations --x and --y
      value   the highest Q over them, or its other meaning if it is not a value
      balls   the partition over them, others fixed at their median
      phase   trajectories over the map of actions
      response  a step of each set-point, then a load, compared with a tuned PID
      counterexample  an episode that refutes the statement of `spaql verify`

    \b
    or, for the finished runs in a folder written by `spaql study run`,
      curves   return against interactions, with 95 % intervals over seeds

    Observations are given by name, with or without the unit, or by index. If cos(angle) and sin(angle) are
    observed, so is angle. Features of a controller are given by name. Observations that are neither
    on an axis nor fixed, and the controller's memory, are averaged over the states that it visits.

    \b
    Examples:
      spaql draw runs/cartpole tree --out tree.svg
      spaql draw runs/cartpole map --x "pole angle" --y "pole speed:-2:2"
      spaql draw runs/cartpole balls --x 0 --y 2 --fix "cart speed=0"
      spaql draw runs/pendulum phase --x angle --y speed --episodes 5
      spaql draw runs/oven map --x error --y integral
      spaql draw runs/oven response --beside pid,lqr --out response.png
      spaql draw runs/swing-up counterexample --out fails.png
      spaql draw studies/first curves
    """
    require("A figure", "plot")
    options = {name: value for name, value in options.items() if value not in (None, {})}
    takes = (*_TAKES.get(kind, ()), "out")
    if others := [f"--{name}" for name in options if name not in takes]:
        known = " and ".join(f"--{name}" for name in takes)
        raise click.UsageError(f"{kind} takes {known}: leave out {' and '.join(others)}.")
    record = _of_study(run, kind) if kind in STUDY_KINDS else _of_run(existing_run(run), kind, options)
    from spaql.figures import save_as

    file = out or Path(f"{kind}.svg")
    save_as(record, file)
    return Report({"file": str(file)}, str(file))


def _of_run(run: Path, kind: str, options: dict[str, Any]) -> Record:
    """Return the record of a figure of a policy, with the options that were given."""
    from spaql.controllers import controller_of
    from spaql.evaluation.beside import steps_of
    from spaql.figures import (
        compute_counterexample,
        compute_map,
        compute_response,
        compute_tree,
    )
    from spaql.figures.style import NAMES

    agent = read(run) if kind == "tree" else read_to_play(run)
    _check_kind(agent, kind)
    if kind == "counterexample":
        return compute_counterexample(run, agent)
    if kind == "response":
        return compute_response(agent, beside=options.get("beside", ["pid"]), steps=steps_of(agent))
    if kind == "tree":
        name = NAMES.get(agent.problem.name, agent.problem.name)
        return compute_tree(controller_of(agent, options.get("step")), title=f"{name}: the rules")
    x, x_limits = _axis(agent, kind, options, "x")
    y, y_limits = _axis(agent, kind, options, "y")
    plane = {name: value for name, value in options.items() if name not in ("x", "y")}
    plane |= {"x_limits": x_limits, "y_limits": y_limits}
    return compute_map(agent, x, y, shows="action" if kind == "map" else kind, **plane)


def _axis(agent: Agent | Design, kind: str, options: dict[str, Any], name: str) -> Along:
    """Return the observation along an axis; without one, the error names the observations."""
    from spaql.controllers.policy import policy_of
    from spaql.figures.scene import angles

    if name not in options:
        known = policy_of(agent).known or agent.problem.states.names
        names = ", ".join([*known, *angles(known)]) or f"0 to {agent.problem.states.dims - 1}"
        raise click.UsageError(f"A {kind} needs two observations: give --x and --y, out of {names}.")
    axis: Along = options[name]
    return axis


def _of_study(study: Path, kind: str) -> Record:
    """Return the record of a study; refuse a single run."""
    from spaql.agents.agent_file import MODEL_FILE

    if study.is_file() or (study / MODEL_FILE).exists():
        raise SettingError(
            f"{study} is a single run, and {kind} needs a study: give a folder written by `spaql study run`, "
            f"or draw one of {', '.join(_TAKES)}."
        )
    entry = find_declared(_FIGURES, kind)
    assert entry is not None
    record: Record = load_declared(entry)(study)
    return record


def _check_kind(agent: Agent | Design, kind: str) -> None:
    """Refuse figures that the run cannot provide, before any episode is run."""
    from spaql.controllers.policy import policy_of

    lacks: dict[str, str] = {}
    if not agent.problem.setpoints:
        lacks["response"] = "has no set-points to follow"
    if not policy_of(agent).draws:
        lacks |= dict.fromkeys(("value", "balls"), "has no partition")
    if agent.problem.log is not None:
        why = "was fitted to a log, and has no environment to run episodes in"
        lacks |= dict.fromkeys(("value", "balls", "phase", "response"), why)
    if kind in lacks:
        others = ", ".join(other for other in _TAKES if other not in lacks)
        raise SettingError(f"Cannot draw {kind}: {made_by(agent)} {lacks[kind]}. Draw one of {others}.")
