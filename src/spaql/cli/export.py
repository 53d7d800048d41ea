"""`spaql export`: a learned policy as code for its target machine."""

from __future__ import annotations

import inspect
import json
import math
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from spaql.cli.arguments import (
    Choice,
    read,
    read_action,
    read_to_play,
    run_argument,
)
from spaql.cli.group import FAILED
from spaql.cli.report import Report, reports, without_infinities
from spaql.errors import BadEnvironmentError, SettingError, SpaqlError
from spaql.formatting import counted, number, places, with_interval

if TYPE_CHECKING:
    from spaql.agents import Agent, Design
    from spaql.controllers import Controller
    from spaql.export import Equivalence, ExportedPolicy

TARGETS = (
    "c", "st", "plcopen", "onnx", "fmu", "rust", "octave", "javascript", "wasm", "micropython", "python",
    "json",
)  # fmt: skip


def _targets() -> list[str]:
    """Return the names of the shipped targets, and of those that installed packages declare."""
    from spaql.entry_points import declared_names

    return list(dict.fromkeys([*TARGETS, *declared_names("spaql.targets")]))


def _complete_target(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    return [name for name in _targets() if name.startswith(incomplete)]


class _TargetOption(click.Option):
    """An option whose help lists the targets: entry points are read when it is shown, and not before."""

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """Return the option and its help."""
        self.help = f"{', '.join(_targets())}, or MODULE:NAME for one of your own"
        return super().get_help_record(ctx)


@click.command()
@run_argument
@click.option(
    "--to",
    "target",
    cls=_TargetOption,
    metavar="TARGET",
    shell_complete=_complete_target,
)
@click.option("--out", type=click.Path(path_type=Path), help="folder to write in")
@click.option("--name", default="controller", show_default=True, help="of the files and functions")
@click.option("--number", type=Choice(["double", "float", "fixed"]), help="that the machine computes in")
@click.option("--form", type=Choice(["rules", "table"]), help="of the code  [default: by size]")
@click.option("--standard", type=Choice(["misra"]), help="of C, checked by cppcheck, with a trace to tests")
@click.option("--safe-action", metavar="ACTION", help="for NaN and observations beyond their bounds")
@click.option(
    "--tolerance",
    type=float,
    metavar="SHARE",
    help="of each range, that observations may be out of bounds before it  [default: 0.1]",
)
@click.option(
    "--episodes",
    type=int,
    default=100,
    show_default=True,
    help="with noise, to count how often it triggers the safe action; 0 for none",
)
@click.option("--step", type=int, help="time step, of a policy that has another one at each (aql)")
@click.option(
    "--points",
    type=int,
    help="random points to compare  [default: 1000000; 100000 for octave and micropython]",
)
@click.option(
    "--report", type=click.Path(path_type=Path), help="file to keep the equivalence check in, as JSON"
)
@click.option(
    "--check",
    "checked",
    type=click.Path(path_type=Path),
    help="instead compare the hashes in an exported file with those of RUN",
)
@reports("the equivalence check")
def export(
    run: Path,
    target: str | None,
    out: Path | None,
    name: str,
    number: str | None,
    form: str | None,
    standard: str | None,
    safe_action: str | None,
    tolerance: float | None,
    episodes: int,
    step: int | None,
    points: int | None,
    report: Path | None,
    checked: Path | None,
) -> Report:
    """Write the policy in RUN, a run folder or a model file, for another machine.

    What was made is compiled or loaded, and compared with the policy at every leaf, at every boundary and its
    two neighbouring numbers, and at random points. A controller with memory is compared along random episodes
    with random resets, its state included. If they differ anywhere, nothing is written.

    With --safe-action, what was made is also played in fresh episodes with noise on the observations, and the
    steps are counted at which it takes the safe action.

    With --check, nothing is written: the hashes of controller and plant in the comment of an exported file
    are compared with those of RUN. The exit code is 1 if they differ.

    \b
    Examples:
      spaql export runs/cartpole --to c --out firmware
      spaql export runs/cartpole --to c --safe-action "push left" --out firmware
      spaql export runs/pendulum --to st --safe-action 0 --out plc
      spaql export runs/cartpole --to onnx --out service --report equivalence.json
      spaql export runs/tank --to fmu --out simulation
      spaql export runs/tank --to rust --number float --out src
      spaql export runs/tank --check src/controller.rs
    """
    from spaql.agents import Design
    from spaql.archive import write_atomically
    from spaql.controllers import controller_of
    from spaql.export import ExportedPolicy, find_exporter
    from spaql.export.writing import ExportOptions

    source = _with_plant(run)
    exported = controller_of(source, step)
    if checked is not None and target is None:
        return _check(checked, source, exported)
    if target is None or out is None or checked is not None:
        raise SettingError("Give --to TARGET and --out FOLDER, or --check FILE.")
    exporter, suffix = find_exporter(target)
    taken = {*inspect.signature(exporter).parameters, *ExportOptions.__annotations__}
    if tolerance is not None and safe_action is None:
        raise SettingError("A tolerance is for the safe action: give --safe-action, too.")
    if episodes < 0:
        raise SettingError(f"--episodes is a number of episodes, 0 or more: not {episodes}.")
    given: dict[str, Any] = {"number": number, "form": form, "safe_action": safe_action}
    given |= {"tolerance": tolerance, "points": points, "standard": standard}
    given = {option: value for option, value in given.items() if value is not None}
    for option in given:
        if option not in taken:
            raise SettingError(f"There is no --{option} for {target}: leave it out.")
    if safe_action is not None:
        given["safe_action"] = read_action(exported, safe_action)
    found = exporter(
        Design(exported, source.problem) if step is not None else source,
        out / f"{name}{suffix}",
        provenance=_provenance(source),
        **given,
    )
    data: dict[str, Any] = json.loads(found.to_json())
    lines: list[str] = []
    if safe_action is not None and exported.remembers:
        lines = ["safe    not played with noise: this is for controllers without memory only"]
    elif safe_action is not None:
        own = ("form", "points", "standard")
        kept = {option: value for option, value in given.items() if option not in own}
        noisy, lines = _with_noise(run, ExportedPolicy(exported, **kept), episodes, step)
        data |= noisy
    if report is not None:
        write_atomically(report, (json.dumps(without_infinities(data), indent=2) + "\n").encode())
    return Report({"folder": str(out), **data}, "\n".join([_text(found, out), *lines]))


def _check(file: Path, source: Agent | Design, exported: Controller) -> Report:
    """Compare the hashes in an exported file with those of a run."""
    from spaql.export.hashes import difference, hashes_of

    hashes = hashes_of(exported, source.problem)
    differs = difference(file, hashes)
    same = f"is of this run: the same {' and '.join(hashes)}"
    text = f"{file} {f'is NOT of this run: {differs}' if differs else same}."
    return Report({"of_run": not differs, "hashes": hashes}, text, code=FAILED if differs else 0)


def _with_plant(run: Path) -> Agent | Design:
    """Return an agent or controller with the equations of its plant, if its environment is found here."""
    try:
        return read_to_play(run)
    except BadEnvironmentError:
        return read(run)


def _with_noise(
    run: Path, exported: ExportedPolicy, episodes: int, step: int | None
) -> tuple[dict[str, Any], list[str]]:
    """Return how often fresh episodes with noise take the safe action: as data, and as lines."""
    from spaql.evaluation import safe_action_use

    try:
        if not episodes:
            raise SettingError("No episodes were asked for.")
        if step is not None:
            raise SettingError("The policy has other rules at every time step, and these are for one.")
        alone = exported.machine.controller
        problem = read_to_play(run).problem
        rows = safe_action_use(exported, alone, problem, exported.is_safe_action, episodes=episodes)
    except SpaqlError as error:
        return {"noisy_episodes": None, "not_played": str(error)}, [f"safe    not played with noise: {error}"]
    lines = [
        f"safe    action in {100 * row.steps:.3g} % of the steps and {100 * row.episodes:.3g} % of "
        f"{counted(episodes, 'episode')} with {100 * row.noise:g} % noise: "
        f"return {with_interval(row.mean, row.ci95)}, without it "
        f"{number(row.without, places(row.mean, row.ci95))}"
        for row in rows
    ]
    return {"noisy_episodes": [asdict(row) for row in rows]}, lines


def _text(found: Equivalence, out: Path) -> str:
    shown = ", ".join(f"{n:,} {kind}" for kind, n in found.points.items())
    lines = [f"wrote   {out / file}" for file in found.files]
    lines += [f"checked {shown}: no difference from the policy", f"by      {found.tool}"]
    if found.rounding:
        lines.append(f"rounded actions, by {found.rounding:.3g} at most")
    return "\n".join(lines)


def _provenance(source: Agent | Design) -> list[str]:
    """Return lines on the origin of a controller."""
    from spaql.agents import Agent

    if isinstance(source, Agent):
        made = f"{source.learner_type.name}, seed {source.seed}, {counted(source.iterations, 'iteration')}"
    else:
        made = ", ".join(["controller", *(f"{key}: {value}" for key, value in source.origin.items())])
    lines = [f"{source.problem.name}, {made}"]
    if isinstance(source, Agent) and len(source.history):
        best = source.history.last()["best_return"]
        if math.isfinite(best):
            shown = number(best, places(best))
            lines.append(f"best return seen in training {shown}: biased upwards, evaluate it afresh")
    return lines
