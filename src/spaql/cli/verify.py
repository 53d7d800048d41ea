"""`spaql verify`: prove or refute a statement about a controller on a plant given as equations."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from spaql.cli.arguments import algorithm_option, existing_run, quiet_option, read_to_play
from spaql.cli.command import command
from spaql.cli.report import PATH, Report
from spaql.cli.signatures import options_of
from spaql.entry_points import load_hook
from spaql.errors import SettingError, require
from spaql.formatting import duration

if TYPE_CHECKING:
    from spaql.verify import Statement, Verdict

_SECONDS_A_FRAME = 0.2

_VERIFY = "verify/run.py:verify"


@command(
    "the result",
    more={
        "The statement": ("allowed", "passes", "termination", "within", "forward"),
        "Uncertainty": ("noise", "push", "delayed"),
        "The map": ("map_file", "axes"),
    },
)
@click.argument("run", type=PATH, required=False)
@options_of(_VERIFY, "seconds")
@options_of("verify/statement.py:Statement", "starts", "target", "allowed")
@click.option("--passes", is_flag=True, help="reach the target once, instead of staying in it for ever")
@options_of("verify/statement.py:Statement", "termination", "within", "forward")
@options_of(_VERIFY, "noise", "push", "delayed")
@click.option("--map", "map_file", type=PATH, help="draw the cells (svg, pdf, png)")
@click.option(
    "--axes", metavar="I J", type=int, nargs=2, help="indices of the state variables on the axes of the map"
)
@click.option(
    "--certificate",
    type=PATH,
    help="write a certificate of the proof, which --check can check",
)
@click.option(
    "--check",
    "checked",
    type=PATH,
    help="check a certificate; with RUN, also that it is about this plant and controller",
)
@quiet_option
@algorithm_option
def verify(
    run: Path | None,
    seconds: float,
    map_file: Path | None,
    axes: tuple[int, int] | None,
    certificate: Path | None,
    checked: Path | None,
    quiet: bool,
    noise: list[float] | float,
    push: list[float] | float,
    delayed: bool,
    **asked: Any,
) -> Report:
    """Prove or refute a statement about the controller in RUN, for every start in a box.

    The plant must be given as equations: a classic control problem, or your own plant. Without
    --starts, --target and so on, a sensible statement for the plant is used; a target or goal is to be
    reached within five horizons. Every cell of the state space is proven, refuted by an episode, or
    undecided. The verdict is stored next to the model, for `spaql page` and `spaql draw RUN counterexample`.

    \b
    Examples:
      spaql verify runs/swing-up
      spaql verify runs/swing-up --map proven.png --seconds 20
      spaql verify runs/swing-up --noise 0.002,0.002,0.01
      spaql verify runs/tanks --target "lower level [m]=0.4,0.6"
      spaql verify runs/tanks --certificate tanks.proof
      spaql verify --check tanks.proof
      spaql verify runs/tanks --check tanks.proof
    """
    if run is None and checked is None:
        raise SettingError("Give RUN, a run folder or model file, or --check FILE, or both.")
    options: dict[str, Any] = {
        "noise": _one_or_many(noise),
        "push": _one_or_many(push),
        "delayed": delayed,
    }
    if checked is not None:
        return _check(checked, run, options)
    assert run is not None
    if map_file is not None:
        require("The map", "plot")
    if certificate is not None:
        load_hook("save_certificate")  # fails before the search if it is not installed
    from spaql.verify.run import closed_loop
    from spaql.verify.run import verify as prove

    agent = read_to_play(existing_run(run))
    statement = _statement(closed_loop(agent, delayed=delayed), asked)
    bar = _Bar(seconds, show=not quiet)
    try:
        verdict = prove(agent, statement=statement, seconds=seconds, progress=bar, **options)
    finally:
        bar.close()
    files, about, missing = _write(verdict, map_file, axes, certificate)
    wrote = "".join(f"\nWrote {file}." for file in files) + about + store(verdict, run)
    return Report(
        verdict.as_data() | {"files": files} | ({"no_certificate": missing} if missing else {}),
        verdict.text + wrote + (missing and f"\nNo certificate is written. {missing}"),
        code=1 if missing else 0,
    )


def store(verdict: Verdict, run: Path) -> str:
    """Write a verdict next to the model file of a run; return why that failed, or nothing."""
    from spaql.agents.agent_file import verdict_file
    from spaql.verify.stored import save_verdict

    try:
        save_verdict(verdict, verdict_file(run))
    except OSError as error:
        return f"\nThe verdict is not stored: {verdict_file(run)} cannot be written ({error.strerror})."
    return ""


def _one_or_many(values: list[float] | float) -> list[float] | float:
    return values[0] if isinstance(values, list) and len(values) == 1 else values


def _statement(loop: Any, asked: dict[str, Any]) -> Statement | None:
    """Return the default statement, changed as the options ask; None if none is given."""
    import dataclasses

    from spaql.verify import Statement, default_statement

    changes = {name: value for name, value in asked.items() if value and value != "failure"}
    passes = changes.pop("passes", False)
    if not changes and not passes:
        return None
    default = default_statement(loop)
    changes["starts"] = {**default.starts, **asked["starts"]}
    if not changes.keys() & {"target", "allowed", "termination"}:
        stays = default.stays and not passes
        return dataclasses.replace(default, **changes, stays=stays)
    if "target" in changes or changes.get("termination") == "goal":
        changes.setdefault("within", 5 * loop.dynamics.horizon)
    return Statement(**changes, stays="target" in changes and not passes)


def _write(
    verdict: Verdict, map_file: Path | None, axes: tuple[int, int] | None, certificate: Path | None
) -> tuple[list[str], str, str]:
    """Write the map and the certificate; return their paths, what is certified, or why that is missing."""
    files = []
    about = ""
    missing = ""
    if map_file is not None:
        from spaql.figures import compute_verdict, save_as

        save_as(compute_verdict(verdict, axes or (0, 1)), map_file)
        files.append(str(map_file))
    if certificate is not None:
        save_certificate = load_hook("save_certificate")
        try:
            about = f"\nThe certificate proves this: {save_certificate(verdict, certificate)}."
            files.append(str(certificate))
        except SettingError as error:
            missing = str(error)
    return files, about, missing


def _check(file: Path, run: Path | None, options: dict[str, Any]) -> Report:
    """Check a certificate and, if a run is given, whether it is about the closed loop of the run."""
    if run is None:
        result = load_hook("check_certificate")(file)
    else:
        result = load_hook("check_of_run")(file, read_to_play(existing_run(run)), **options)
    return Report(result.data, result.text, code=0 if result.holds else 1)


class _Bar:
    """Show the proven share as a bar on a terminal; show nothing elsewhere."""

    def __init__(self, seconds: float, *, show: bool) -> None:
        self._seconds = seconds
        self._drawn = 0.0
        self._bar: Any = None
        self._show = show and sys.stderr.isatty()
        if show and not self._show:
            print(
                "verifying: on first use, the kernels are compiled, which takes about half a minute",
                file=sys.stderr,
            )

    def __call__(self, proven: float, spent: float) -> None:
        if not self._show or time.monotonic() - self._drawn < _SECONDS_A_FRAME:
            return
        self._drawn = time.monotonic()
        if self._bar is None:
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TextColumn

            columns = TextColumn("proven {task.description}"), BarColumn(), TextColumn("{task.fields[left]}")
            self._bar = Progress(*columns, console=Console(stderr=True), transient=True)
            self._task = self._bar.add_task("", total=1.0, left="")
            self._bar.start()
        left = f"{duration(round(max(0.0, 1.0 - spent) * self._seconds))} left at most"
        self._bar.update(self._task, completed=proven, description=f"{100 * proven:.1f} %", left=left)

    def close(self) -> None:
        """Remove the bar."""
        if self._bar is not None:
            self._bar.stop()
