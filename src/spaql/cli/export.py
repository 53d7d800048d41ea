"""`spaql export`: export a learned policy as code for its target machine."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from spaql.cli.arguments import (
    number_option,
    read,
    read_action,
    read_to_play,
    run_argument,
)
from spaql.cli.command import command
from spaql.cli.group import FAILED
from spaql.cli.report import PATH, Report
from spaql.errors import BadEnvironmentError, SettingError
from spaql.formatting import counted, number, places

if TYPE_CHECKING:
    from spaql.agents import Agent, Design
    from spaql.controllers import Controller
    from spaql.export import Equivalence

TARGETS = (
    "c", "st", "plcopen", "onnx", "fmu", "rust", "octave", "javascript", "micropython", "python", "json",
)  # fmt: skip


def _targets() -> list[str]:
    """Return the names of the targets that spaql and installed packages declare."""
    from spaql.entry_points import declared_names

    return list(dict.fromkeys([*TARGETS, *declared_names("spaql.targets")]))


def _complete_target(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    return [name for name in _targets() if name.startswith(incomplete)]


class _TargetOption(click.Option):
    """An option whose help lists the targets: entry points are read only when the help is shown."""

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """Return the option and its help."""
        self.help = f"{', '.join(_targets())}, or MODULE:NAME for your own"
        return super().get_help_record(ctx)


@command("the equivalence check")
@run_argument
@click.option(
    "--to",
    "target",
    cls=_TargetOption,
    metavar="TARGET",
    shell_complete=_complete_target,
)
@click.option("--out", type=PATH, help="output folder")
@click.option("--name", default="controller", help="name of the files and functions")
@number_option
@click.option(
    "--safe-action", metavar="ACTION", help="action for NaN and for observations beyond their bounds"
)
@click.option(
    "--margin",
    "tolerance",
    type=float,
    metavar="SHARE",
    help="fraction of its range by which an observation may exceed its bounds  [default: 0.1]",
)
@click.option("--step", type=int, help="time step to export (AQL has one policy per step)")
@click.option(
    "--points",
    type=int,
    help="random points at which to compare  [default: 1000000; 100000 for octave and micropython]",
)
@click.option(
    "--check",
    "checked",
    type=PATH,
    help="instead compare the hashes in an exported file with those of RUN",
)
def export(
    run: Path,
    target: str | None,
    out: Path | None,
    name: str,
    step: int | None,
    checked: Path | None,
    **options: Any,
) -> Report:
    """Export the policy in RUN, a run folder or a model file.

    The exported code is compiled or loaded, and compared with the policy in every leaf, at every boundary and
    its two neighbouring numbers, and at random points. A controller with memory is compared along random
    episodes with random resets, including its state. If they differ anywhere, nothing is written.

    With --check, nothing is written: the hashes of controller and plant in the comment of an exported
    file are compared with those of RUN. The exit code is 1 if they differ.

    \b
    Examples:
      spaql export runs/cartpole --to c --out firmware
      spaql export runs/cartpole --to c --safe-action "push left" --out firmware
      spaql export runs/pendulum --to st --safe-action 0 --out plc
      spaql export runs/cartpole --to onnx --out service --json
      spaql export runs/tank --to fmu --out simulation
      spaql export runs/tank --to rust --number float --out src
      spaql export runs/tank --check src/controller.rs
    """
    from spaql.agents import Design
    from spaql.controllers import controller_of
    from spaql.export import find_exporter

    source = _with_plant(run)
    exported = controller_of(source, step)
    if checked is not None and target is None:
        return _check(checked, source, exported)
    if target is None or out is None or checked is not None:
        raise SettingError("Give --to TARGET and --out FOLDER, or --check FILE.")
    exporter, suffix = find_exporter(target)
    options = _options_of(exported, options)
    equivalence = exporter(
        Design(exported, source.problem) if step is not None else source,
        out / f"{name}{suffix}",
        provenance=provenance(source),
        **options,
    )
    return Report(
        {"folder": str(out), **json.loads(equivalence.to_json())}, equivalence_text(equivalence, out)
    )


def _options_of(exported: Controller, options: dict[str, Any]) -> dict[str, Any]:
    """Return the options that were given, for the exporter."""
    options = {name: value for name, value in options.items() if value is not None}
    if "tolerance" in options and "safe_action" not in options:
        raise SettingError("--margin is for the safe action: give --safe-action as well.")
    if "safe_action" in options:
        options["safe_action"] = read_action(exported, options["safe_action"])
    return options


def _check(file: Path, source: Agent | Design, exported: Controller) -> Report:
    """Compare the hashes in an exported file with those of a run."""
    from spaql.export.targets import difference, hashes_of

    hashes = hashes_of(exported, source.problem)
    differs = difference(file, hashes)
    same = f"belongs to this run: the same {' and '.join(hashes)}"
    text = f"{file} {f'does NOT belong to this run: {differs}' if differs else same}."
    return Report({"of_run": not differs, "hashes": hashes}, text, code=FAILED if differs else 0)


def _with_plant(run: Path) -> Agent | Design:
    """Return an agent or controller with the equations of its plant, if its environment is found here."""
    try:
        return read_to_play(run)
    except BadEnvironmentError:
        return read(run)


def equivalence_text(equivalence: Equivalence, out: Path = Path()) -> str:
    """Return the files that were written, and what was compared, for people."""
    shown = ", ".join(f"{n:,} {kind}" for kind, n in equivalence.points.items())
    lines = [f"wrote   {out / file}" for file in equivalence.files]
    lines += [f"checked {shown}: no difference from the policy", f"by      {equivalence.tool}"]
    if equivalence.rounding:
        lines.append(f"rounded actions, by at most {equivalence.rounding:.3g}")
    return "\n".join(lines)


def provenance(source: Agent | Design) -> list[str]:
    """Return lines on the origin of a controller."""
    from spaql.agents import Agent

    if isinstance(source, Agent):
        origin = f"{source.learner_type.name}, seed {source.seed}, {counted(source.iterations, 'iteration')}"
    else:
        origin = ", ".join(["controller", *(f"{key}: {value}" for key, value in source.origin.items())])
    lines = [f"{source.problem.name}, {origin}"]
    if isinstance(source, Agent) and len(source.history):
        best = source.history.last()["best_return"]
        if math.isfinite(best):
            shown = number(best, places(best))
            lines.append(
                f"best return seen in training {shown}: biased upwards, evaluate it in fresh episodes"
            )
    return lines
