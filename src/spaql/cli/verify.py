"""`spaql verify`: prove or refute a statement about a controller on a plant given as equations."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from spaql.cli.arguments import Choice, algorithm_option, existing_run, quiet_option, read_to_play
from spaql.cli.command import command
from spaql.cli.report import PATH, Report, named, numbers, read_numbers
from spaql.entry_points import load_hook
from spaql.errors import SettingError, require
from spaql.formatting import duration

if TYPE_CHECKING:
    from spaql.verify import Statement, Verdict

_SECONDS_A_FRAME = 0.2

Ranges = dict[str, tuple[float, float]]


def _ranges(ctx: click.Context, param: click.Parameter, texts: tuple[str, ...]) -> Ranges:
    """Return ranges of state variables by name."""
    ranges = {}
    for text in texts:
        name, ends = named(text, '"speed [rad/s]=-2,2"')
        pair = read_numbers(ends)
        if len(pair) != 2:
            raise click.BadParameter(f"{text!r} does not have two bounds: write a lower and an upper bound")
        ranges[name] = pair[0], pair[1]
    return ranges


@command("the result")
@click.argument("run", type=PATH, required=False)
@click.option("--seconds", default=60.0, help="processor time for the search")
@click.option("--starts", metavar="NAME=LOW,HIGH", multiple=True, callback=_ranges, help="initial states")
@click.option("--target", metavar="NAME=LOW,HIGH", multiple=True, callback=_ranges, help="states to reach")
@click.option("--stays/--passes", default=True, help="stay in the target forever, or reach it once")
@click.option(
    "--allowed", metavar="NAME=LOW,HIGH", multiple=True, callback=_ranges, help="states that must not be left"
)
@click.option("--goal", is_flag=True, help="termination is the goal, not a failure")
@click.option("--ignore-termination", is_flag=True, help="continue as if the plant did not terminate")
@click.option(
    "--within",
    type=int,
    help="steps to reach the target or goal  [default: five horizons]; without either, steps for which "
    "the allowed states are not left  [default: forever]",
)
@click.option("--forward", is_flag=True, help="propagate the starts forwards: for a small box of starts")
@click.option("--noise", metavar="X,Y,...", callback=numbers, help="bound on the error of each observation")
@click.option(
    "--push", metavar="X,Y,...", callback=numbers, help="bound on a disturbance of the state at every step"
)
@click.option("--late", is_flag=True, help="every action takes effect one step late")
@click.option(
    "--number",
    type=Choice(["double", "float", "fixed"]),
    help="verify the exported controller, in the number format of the target",
)
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
    noise: list[float] | None,
    push: list[float] | None,
    late: bool,
    number: str | None,
    **asked: Any,
) -> Report:
    """Prove or refute a statement about the controller in RUN, for every start in a box.

    The plant must be given as equations: a classic control problem, or your own plant. Without
    --starts, --target and so on, a sensible statement for the plant is used. Every cell of the
    state space is proven, refuted by an episode, or undecided. The verdict is stored next to the model, for
    `spaql page` and `spaql draw RUN counterexample`.

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
        "delayed": late,
        "number": number,
    }
    if checked is not None:
        return _check(checked, run, options)
    assert run is not None
    if map_file is not None:
        require("The map", "plot")
    if certificate is not None:
        load_hook("save_certificate")  # fails before the search if it is not installed
    import spaql
    from spaql.verify.run import closed_loop

    agent = read_to_play(existing_run(run))
    statement = _statement(closed_loop(agent, delayed=late), asked)
    bar = _Bar(seconds, show=not quiet)
    try:
        verdict = spaql.verify(agent, statement=statement, seconds=seconds, progress=bar, **options)
    finally:
        bar.close()
    files, about, missing = _write(verdict, map_file, axes, certificate)
    wrote = "".join(f"\nWrote {file}." for file in files) + about + store(verdict, run)
    return Report(
        verdict_data(verdict) | {"files": files} | ({"no_certificate": missing} if missing else {}),
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


def _one_or_many(values: list[float] | None) -> list[float] | float:
    return 0.0 if values is None else values[0] if len(values) == 1 else values


def _statement(loop: Any, asked: dict[str, Any]) -> Statement | None:
    """Return the default statement, changed as the options ask; None if none is given."""
    import dataclasses

    from spaql.verify import Statement, default_statement

    if (
        not any(
            asked[name]
            for name in ("starts", "target", "allowed", "goal", "ignore_termination", "within", "forward")
        )
        and asked["stays"]
    ):
        return None
    if asked["goal"] and asked["ignore_termination"]:
        raise SettingError("Termination is either the goal or ignored: give one of the two options.")
    default = default_statement(loop)
    starts = {**default.starts, **asked["starts"]}
    termination = "goal" if asked["goal"] else "ignored" if asked["ignore_termination"] else None
    if not (asked["target"] or asked["allowed"] or termination):
        changes: dict[str, Any] = {"starts": starts, "forward": asked["forward"] or default.forward}
        if asked["within"] is not None:
            changes["within"] = asked["within"]
        if default.target is not None and not asked["stays"]:
            changes["stays"] = False
        return dataclasses.replace(default, **changes)
    reaches = bool(asked["target"]) or termination == "goal"
    within = asked["within"] or (5 * loop.dynamics.horizon if reaches else None)
    return Statement(
        starts=starts,
        target=asked["target"] or None,
        stays=bool(asked["target"]) and asked["stays"],
        termination=termination or "failure",  # type: ignore[arg-type]
        allowed=asked["allowed"],
        within=within,
        forward=asked["forward"],
    )


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


def verdict_data(verdict: Verdict) -> dict[str, Any]:
    """Return a verdict as JSON data."""
    counterexample = verdict.counterexample
    return {
        "plant": verdict.plant,
        "statement": verdict.sentence,
        "proven": verdict.proven,
        "refuted": verdict.refuted,
        "undecided": verdict.undecided,
        "seconds": verdict.seconds,
        "finished": verdict.finished,
        "longest": verdict.longest,
        "counterexample": None if counterexample is None else list(counterexample.start),
        "why": None if counterexample is None else counterexample.why,
        "step": None if counterexample is None else counterexample.step,
        "numbers": list(verdict.names),
        "left_out": list(verdict.left_out),
        "remarks": list(verdict.remarks),
    }


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
