"""`spaql draw`: pictures of a learned policy, or of a study."""

from __future__ import annotations

import dataclasses
from pathlib import Path
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
from spaql.cli.report import PATH, Report, reports
from spaql.entry_points import declared_names, find_declared, load_declared
from spaql.errors import SettingError, require
from spaql.formatting import counted

if TYPE_CHECKING:
    from spaql.agents import Agent, Design
    from spaql.controllers import Controller
    from spaql.figures import Record

_OF_A_PARTITION = ("value", "visits", "balls", "growth")
KINDS = (
    "tree",
    "map",
    "value",
    "visits",
    "balls",
    "phase",
    "growth",
    "sizes",
    "plant",
    "response",
    "coverage",
    "counterexample",
)
"""Pictures of a policy."""
_FIGURES = "spaql.figures"
STUDY_KINDS = tuple(declared_names(_FIGURES))
"""Pictures of the finished runs of a study, which packages declare (see `spaql.figures.drawing.FIGURES`)."""
Along = tuple[str | int, tuple[float, float] | None]


def _observation(value: str) -> str | int:
    if not value:
        raise ValueError("an observation has a name or number")
    return int(value) if value.isdigit() else value


def _parse_axis(ctx: click.Context, param: click.Parameter, value: str | None) -> Along | None:
    """Return the name or number of an observation, and the ends of the axis if they are given."""
    if value is None:
        return None
    name, *ends = value.rsplit(":", 2)
    try:
        return _observation(name), (float(ends[0]), float(ends[1])) if ends else None
    except (ValueError, IndexError) as error:
        raise click.BadParameter(
            "give a name or number, as in 'pole angle' or 'pole angle:-0.2:0.2'"
        ) from error


def _parse_fixed(
    ctx: click.Context, param: click.Parameter, values: tuple[str, ...]
) -> dict[str | int, float]:
    fixed: dict[str | int, float] = {}
    for value in values:
        name, _, at = value.rpartition("=")
        try:
            fixed[_observation(name)] = float(at)
        except ValueError as error:
            raise click.BadParameter("give a name or number and its value, as in 'cart speed=0'") from error
    return fixed


@click.command()
@click.argument("run", type=PATH)
@click.argument("kind", type=Choice((*KINDS, *STUDY_KINDS)), metavar="KIND")
@click.option("--x", metavar="NAME[:LOW:HIGH]", callback=_parse_axis, help="observation from left to right")
@click.option("--y", metavar="NAME[:LOW:HIGH]", callback=_parse_axis, help="observation from bottom to top")
@click.option(
    "--at",
    metavar="NAME=VALUE",
    multiple=True,
    callback=_parse_fixed,
    help="fix another one; may be repeated",
)
@click.option("--step", type=int, help="time step of aql or of --episode")
@click.option("--episode", type=int, help="show the policy at --step of the episode of this seed")
@click.option("--leaves", type=int, help="draw the best tree with at most n leaves, not the exact one")
@click.option("--episodes", type=int, help="episodes to play  [default: as many as the picture needs]")
@click.option("--wanted", type=float, help="return to mark among the sizes")
@click.option(
    "--beside",
    metavar="pid,lqr",
    callback=parse_methods,
    help="compared with in a response  [default: pid]",
)
@click.option(
    "--out",
    type=PATH,
    help="file: .svg, .pdf, .png, of growth also .gif  [default: KIND.svg]",
)
@algorithm_option
@reports("the name of the file")
def draw(
    run: Path,
    kind: str,
    x: Along | None,
    y: Along | None,
    at: dict[str | int, float],
    step: int | None,
    episode: int | None,
    leaves: int | None,
    episodes: int | None,
    wanted: float | None,
    beside: list[str] | None,
    out: Path | None,
) -> Report:
    """Draw the policy in RUN, a run folder or a model file, or the study in it.

    \b
    KIND is one of
      tree    the rules as a tree, 64 leaves at most
      map     the action over the observations --x and --y
      value   the highest Q over them, or what it counts if that is no value
      visits  how often the ball that the action comes from was visited
      balls   the partition over them, others fixed at their median
      phase   episodes over the map of actions
      growth  the partition while the agent learns; trains anew, to the same bytes
      sizes   the return of smaller trees
      plant   the cells of the learned plant, and where it is wrong (plantree)
      response  a step of each set-point, then a load, compared with a tuned PID
      coverage  the states of the log it was fitted to, and where it leaves them
      counterexample  an episode that refutes what `spaql verify` asked

    \b
    or, of the finished runs in a folder that `spaql sweep` has left,
      curves   return against interactions, with 95 % intervals over seeds
      scores   returns at the end, by algorithm and problem

    Observations are known by name, with or without their unit, or by number; if cos(angle) and sin(angle)
    are observed, then angle is known too. The features of a controller are known by name. What is neither on
    an axis nor fixed, and what a controller remembers, is averaged over the states that it visits; with
    --episode and --step it is as in that sample.

    \b
    Examples:
      spaql draw runs/cartpole tree --leaves 10 --out tree.svg
      spaql draw runs/cartpole map --x "pole angle" --y "pole speed:-2:2"
      spaql draw runs/cartpole balls --x 0 --y 2 --at "cart speed=0"
      spaql draw runs/pendulum phase --x angle --y speed --episodes 5
      spaql draw runs/plantree plant --x angle --y speed
      spaql draw runs/oven map --x error --y integral --episode 0 --step 40
      spaql draw runs/oven response --beside pid,lqr --out response.png
      spaql draw runs/swing-up counterexample --out fails.png
      spaql draw runs/pendulum growth --x "sin(angle)" --y speed --out growth.gif
      spaql draw studies/first curves
    """
    require("A picture", "plot")
    asked: dict[str, Any] = {"x": x, "y": y, "at": at or None, "step": step, "episode": episode}
    asked |= {"leaves": leaves, "episodes": episodes, "wanted": wanted, "beside": beside}
    options = {name: value for name, value in asked.items() if value is not None}
    if kind in STUDY_KINDS:
        if options:
            raise click.UsageError(f"{kind} is drawn of a study, and takes --out alone.")
        return _drawn(_of_study(run, kind), kind, out)
    _check_options(kind, options)
    existing_run(run)
    agent = read(run) if kind == "tree" and leaves is None else read_to_play(run)
    _check_kind(agent, kind)
    return _drawn(_of_run(run, agent, kind, options), kind, out)


def _check_options(kind: str, options: dict[str, Any]) -> None:
    """Refuse options of other kinds of picture."""
    if "beside" in options and kind != "response":
        raise click.UsageError(f"Other controllers are drawn in a response, and not in a {kind}.")
    if "episode" in options and kind not in ("map", "phase"):
        raise click.UsageError("--episode is for a map and a phase portrait.")
    if kind == "counterexample" and options:
        raise click.UsageError(f"A {kind} is drawn as it was found, and takes --out alone.")


def _of_run(run: Path, agent: Agent | Design, kind: str, options: dict[str, Any]) -> Record:
    """Return the record of a picture of a policy, with the options that were given."""
    from spaql.evaluation import size_curve
    from spaql.evaluation.beside import steps_of
    from spaql.figures import compute_counterexample, compute_response, compute_sizes, compute_tree
    from spaql.figures.names import NAMES

    played = {name: options[name] for name in ("episodes",) if name in options}
    if kind == "counterexample":
        return compute_counterexample(run, agent)
    if kind == "response":
        return compute_response(agent, beside=options.get("beside", ["pid"]), steps=steps_of(agent))
    if kind == "tree":
        name = NAMES.get(agent.problem.name, agent.problem.name)
        tree = _tree(agent, options.get("step"), options.get("leaves"), played)
        return compute_tree(tree, title=f"{name}: the rules")
    if kind == "sizes":
        return compute_sizes(size_curve(agent, **played), wanted=options.get("wanted"))
    x, x_limits = _axis(agent, kind, options, "x")
    y, y_limits = _axis(agent, kind, options, "y")
    plane = {"at": options.get("at", {}), "x_limits": x_limits, "y_limits": y_limits}
    plane |= {"step": options.get("step"), **played}
    plane |= {name: options[name] for name in ("episode",) if name in options}
    return _over_plane(kind, agent, x, y, plane)


def _axis(agent: Agent | Design, kind: str, options: dict[str, Any], name: str) -> Along:
    """Return the observation along an axis; without one, those to choose from are named."""
    from spaql.controllers.resolve import policy_of
    from spaql.figures.axis import angles

    if name not in options:
        known = policy_of(agent).known or agent.problem.states.names
        names = ", ".join([*known, *angles(known)]) or f"0 to {agent.problem.states.dims - 1}"
        raise click.UsageError(f"A {kind} lies over two observations: give --x and --y, of {names}.")
    axis: Along = options[name]
    return axis


def _drawn(record: Record, kind: str, out: Path | None) -> Report:
    from spaql.figures import save_as

    file = out or Path(f"{kind}.{'gif' if kind == 'growth' else 'svg'}")
    save_as(record, file)
    return Report({"file": str(file)}, str(file))


def _of_study(study: Path, kind: str) -> Record:
    """Return the record of a study; a single run is refused."""
    from spaql.agents.agent_file import MODEL_FILE

    if study.is_file() or (study / MODEL_FILE).exists():
        raise SettingError(
            f"{study} is a single run, and {kind} is drawn of a study: give a folder that `spaql sweep` has "
            f"left, or draw one of {', '.join(KINDS)}."
        )
    entry = find_declared(_FIGURES, kind)
    assert entry is not None
    record: Record = load_declared(entry)(study)
    return record


def _check_kind(agent: Agent | Design, kind: str) -> None:
    """Refuse pictures that the run cannot provide, before anything is played or trained."""
    from spaql.agents import PlanTree
    from spaql.controllers.resolve import policy_of

    has = {*KINDS} - {"plant"} | ({"plant"} if isinstance(agent, PlanTree) else set())
    why = "learns no model of its plant, as plantree does"
    if not agent.problem.setpoints:
        has -= {"response"}
        why = "has no set-points to follow" if kind == "response" else why
    if not policy_of(agent).draws:
        has -= {*_OF_A_PARTITION}
        why = "has no partition" if kind in _OF_A_PARTITION else why
    if agent.problem.log is None:
        has -= {"coverage"}
        why = "was not fitted to a log" if kind == "coverage" else why
    else:
        has &= {"tree", "map", "coverage", "counterexample"}
        why = "was fitted to a log, and there is no environment to play episodes in"
    if kind not in has:
        others = ", ".join(other for other in KINDS if other in has)
        raise SettingError(f"There is no {kind} to draw: {made_by(agent)} {why}. Draw one of {others}.")


def _tree(agent: Agent | Design, step: int | None, leaves: int | None, played: dict[str, Any]) -> Controller:
    from spaql.controllers import controller_of
    from spaql.evaluation import size_curve

    if leaves is None:
        return controller_of(agent, step)
    small = [sized.tree for sized in size_curve(agent, **played) if sized.tree.n_leaves <= leaves]
    if not small:
        raise SettingError(f"No tree of at most {counted(leaves, 'leaf')} was found: allow more.")
    return small[-1]


def _over_plane(
    kind: str, agent: Agent | Design, x: str | int, y: str | int, plane: dict[str, Any]
) -> Record:
    from spaql.agents import Agent, PlanTree
    from spaql.figures import (
        Growth,
        compute_balls,
        compute_coverage,
        compute_growth,
        compute_map,
        compute_phase,
        compute_plant,
    )

    if kind == "coverage":
        assert isinstance(agent, PlanTree)
        if plane.pop("at") or plane.pop("step") is not None or "episodes" in plane:
            raise click.UsageError("Coverage is drawn over all rows of the log: give --x and --y alone.")
        return compute_coverage(agent, x, y, **plane)
    if kind == "balls":
        return compute_balls(agent, x, y, **plane)
    if kind == "phase":
        return compute_phase(agent, x, y, **plane)
    if kind == "plant":
        assert isinstance(agent, PlanTree)
        del plane["step"]
        return compute_plant(agent, x, y, **plane)
    if kind == "growth":
        assert isinstance(agent, Agent)
        growth = Growth()
        again = _untrained(agent)
        again.learn(iterations=max(agent.iterations, 1), callback=growth)
        return compute_growth(growth, again, x, y, **plane)
    return compute_map(agent, x, y, shows="action" if kind == "map" else kind, **plane)


def _untrained(agent: Agent) -> Agent:
    return type(agent)(agent.problem, seed=agent.seed, **dataclasses.asdict(agent.settings))
