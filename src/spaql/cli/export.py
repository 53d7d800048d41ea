"""`spaql export`: a learned policy as code for its target machine."""

from __future__ import annotations

import hashlib
import inspect
import json
import math
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from spaql.cli.arguments import (
    Choice,
    ChoiceOrOwn,
    read,
    read_action,
    read_to_play,
    run_argument,
)
from spaql.cli.report import Report, reports, without_infinities
from spaql.errors import BadEnvironmentError, SettingError, SpaqlError
from spaql.formatting import counted, number, places, with_interval

if TYPE_CHECKING:
    from spaql.agents import Agent, Controller
    from spaql.export import Equivalence, ExportedPolicy

TARGETS = (
    "c", "st", "plcopen", "onnx", "fmu", "rust", "ros2", "octave", "javascript", "wasm", "micropython",
    "python", "sql", "json",
)  # fmt: skip


@click.command()
@run_argument
@click.option(
    "--to",
    "target",
    type=ChoiceOrOwn(TARGETS),
    required=True,
    metavar="TARGET",
    help=f"{', '.join(TARGETS)}, or MODULE:NAME for one of your own",
)
@click.option("--out", type=click.Path(path_type=Path), required=True, help="folder to write in")
@click.option("--name", default="controller", show_default=True, help="of the files and functions")
@click.option("--number", type=Choice(["double", "float", "fixed"]), help="that the machine computes in")
@click.option("--form", type=Choice(["rules", "table"]), help="of the code  [default: by size]")
@click.option("--standard", type=Choice(["misra"]), help="of C, checked by cppcheck, with a trace to tests")
@click.option(
    "--chain", is_flag=True, help="write hashes from the plant to each file; always with --standard"
)
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
@reports("the equivalence check")
def export(
    run: Path,
    target: str,
    out: Path,
    name: str,
    number: str | None,
    form: str | None,
    standard: str | None,
    chain: bool,
    safe_action: str | None,
    tolerance: float | None,
    episodes: int,
    step: int | None,
    points: int | None,
    report: Path | None,
) -> Report:
    """Write the policy in RUN, a run folder or a model file, for another machine.

    What was made is compiled or loaded, and compared with the policy at every leaf, at every boundary and its
    two neighbouring numbers, and at random points. A controller with memory is compared along random episodes
    with random resets, its state included. If they differ anywhere, nothing is written.

    With --safe-action, what was made is also played in fresh episodes with noise on the observations, and the
    steps are counted at which it takes the safe action.

    \b
    Examples:
      spaql export runs/cartpole --to c --out firmware
      spaql export runs/cartpole --to c --safe-action "push left" --out firmware
      spaql export runs/pendulum --to st --safe-action 0 --out plc
      spaql export runs/cartpole --to onnx --out service --report equivalence.json
      spaql export runs/tank --to fmu --out simulation
      spaql export runs/tank --to rust --number float --out src
    """
    from spaql.agents.agent_file import model_file
    from spaql.agents.origin import origin_of
    from spaql.archive import write_atomically
    from spaql.export import ExportedPolicy, chain_of, find_exporter
    from spaql.export.writing import Options
    from spaql.interpret import rule_tree
    from spaql.policy import FeatureController
    from spaql.policy.resolve import policy_of

    exporter, suffix = find_exporter(target)
    taken = {*inspect.signature(exporter).parameters, *Options.__annotations__}
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
    source = _with_plant(run)
    policy = policy_of(source)
    remembers = isinstance(policy, FeatureController)
    tree = policy.tree if isinstance(policy, FeatureController) else rule_tree(source, step)
    if safe_action is not None:
        given["safe_action"] = read_action(tree, safe_action)
    exported = policy if isinstance(policy, FeatureController) else tree
    found = exporter(
        tree if step is not None else source,
        out / f"{name}{suffix}",
        provenance=_provenance(source, model_file(run)),
        **given,
    )
    last: list[str] = []
    if chain or standard is not None:
        written, link = chain_of(origin_of(source, run, exported), found)
        write_atomically(out / f"{name}_chain.json", written)
        digest = hashlib.sha256(written).hexdigest()
        found, last = replace(found, files=found.files | {f"{name}_chain.json": digest}), [link]
    data: dict[str, Any] = json.loads(found.to_json()) | ({"last_link": last[0]} if last else {})
    lines: list[str] = []
    if safe_action is not None and remembers:
        lines = ["safe    not played with noise: this is for controllers without memory only"]
    elif safe_action is not None:
        own = ("form", "points", "standard")
        kept = {option: value for option, value in given.items() if option not in own}
        noisy, lines = _with_noise(run, ExportedPolicy(tree, **kept), episodes, step)
        data |= noisy
    if report is not None:
        write_atomically(report, (json.dumps(without_infinities(data), indent=2) + "\n").encode())
    lines += [f"chain   ends with {link}: keep it, and see `spaql chain`" for link in last]
    return Report({"folder": str(out), **data}, "\n".join([_text(found, out), *lines]))


def _with_plant(run: Path) -> Agent | Controller:
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
        alone = exported.controller.rules
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
    if found.lost:
        lines.append(
            f"lost    doubles in {len(found.lost):,} boxes get another action when they are converted to "
            f"{found.number}: --report lists them"
        )
    if found.lost is None:
        lines.append(
            "lost    not computed: doubles near an oblique cut, or near a tie of a switching law, may get "
            f"another action when they are converted to {found.number}"
        )
    if found.rounding:
        lines.append(f"rounded actions, by {found.rounding:.3g} at most")
    return "\n".join(lines)


def _provenance(source: Agent | Controller, model: Path) -> list[str]:
    """Return lines on the origin of a controller."""
    from spaql.agents import Agent

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
        if math.isfinite(best):
            shown = number(best, places(best))
            lines.append(f"best return seen in training {shown}: biased upwards, evaluate it afresh")
    return lines
