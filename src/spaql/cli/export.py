"""`spaql export`: a learned policy for the machine that it was made for."""

from __future__ import annotations

import hashlib
import inspect
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from spaql.cli.arguments import Choice, read_action, run_argument
from spaql.cli.report import Report, reports
from spaql.errors import SettingError
from spaql.words import counted, number, places

if TYPE_CHECKING:
    from spaql.export import Proof
    from spaql.training import Agent, Controller

TARGETS = ("c", "st", "onnx", "python", "sql", "json")


@click.command()
@run_argument
@click.option("--to", "target", type=Choice(TARGETS), required=True, help="language or format")
@click.option("--out", type=click.Path(path_type=Path), required=True, help="folder to write in")
@click.option("--name", default="controller", show_default=True, help="of the files and functions")
@click.option("--number", type=Choice(["double", "float", "fixed"]), help="that the machine computes in")
@click.option("--form", type=Choice(["rules", "table"]), help="of the code  [default: by size]")
@click.option("--safe-action", metavar="ACTION", help="for NaN and observations beyond their bounds")
@click.option("--step", type=int, help="time step, of a policy that has another one at each (aql)")
@click.option("--points", type=int, default=1_000_000, show_default=True, help="random points to compare")
@click.option("--report", type=click.Path(path_type=Path), help="file to keep the proof in, as JSON")
@reports("the proof")
def export(
    run: Path,
    target: str,
    out: Path,
    name: str,
    number: str | None,
    form: str | None,
    safe_action: str | None,
    step: int | None,
    points: int,
    report: Path | None,
) -> Report:
    """Write the policy in RUN, a run folder or a model file, for another machine.

    What was made is compiled or loaded, and compared with the policy at every leaf, at every boundary and its
    two neighbouring numbers, and at random points. If they differ anywhere, nothing is written.

    \b
    Examples:
      spaql export runs/cartpole --to c --out firmware
      spaql export runs/cartpole --to c --safe-action "push left" --out firmware
      spaql export runs/pendulum --to st --safe-action 0 --out plc
      spaql export runs/cartpole --to onnx --out service --report proof.json
    """
    from spaql.archive import write_atomically
    from spaql.export import EXPORTERS
    from spaql.interpret import rule_tree
    from spaql.training import read
    from spaql.training.agent import model_file

    exporter, suffix = EXPORTERS[target]
    taken = inspect.signature(exporter).parameters
    given: dict[str, Any] = {"number": number, "form": form, "safe_action": safe_action}
    given = {option: value for option, value in given.items() if value is not None}
    for option in given:
        if option not in taken:
            raise SettingError(f"There is no --{option} for {target}: leave it out.")
    source = read(run)
    tree = rule_tree(source, step)
    if safe_action is not None:
        given["safe_action"] = read_action(tree, safe_action)
    proof = exporter(
        tree,
        out / f"{name}{suffix}",
        provenance=_provenance(source, model_file(run)),
        points=points,
        **given,
    )
    if report is not None:
        write_atomically(report, proof.to_json().encode())
    return Report({"folder": str(out), **json.loads(proof.to_json())}, _text(proof, out))


def _text(proof: Proof, out: Path) -> str:
    shown = ", ".join(f"{n:,} {kind}" for kind, n in proof.points.items())
    lines = [f"wrote   {out / file}" for file in proof.files]
    lines += [f"proven  {shown}: no difference from the policy", f"by      {proof.tool}"]
    if proof.lost:
        lines.append(
            f"lost    doubles in {len(proof.lost):,} boxes get another action when they are converted to "
            f"{proof.number}: --report lists them"
        )
    if proof.rounding:
        lines.append(f"rounded actions, by {proof.rounding:.3g} at most")
    return "\n".join(lines)


def _provenance(source: Agent | Controller, model: Path) -> list[str]:
    """Say where a controller comes from."""
    from spaql.training import Agent

    if isinstance(source, Agent):
        made = f"{source.learner_type.name}, seed {source.seed}, {counted(source.iterations, 'iteration')}"
    else:
        made = ", ".join(["rule tree", *(f"{key}: {value}" for key, value in source.origin.items())])
    lines = [
        f"{source.problem.name}, {made}",
        f"model file of {datetime.fromtimestamp(model.stat().st_mtime, UTC):%Y-%m-%d}, sha256",
        hashlib.sha256(model.read_bytes()).hexdigest(),
    ]
    if isinstance(source, Agent) and len(source.history):
        best = source.history.last()["best_return"]
        shown = number(best, places(best))
        lines.append(f"best return seen in training {shown}: biased upwards, evaluate it afresh")
    return lines
