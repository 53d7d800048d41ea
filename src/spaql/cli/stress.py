"""`spaql stress`: find the starts and the changes of the plant under which a controller fails."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from spaql.cli.arguments import read_to_play, run_argument
from spaql.cli.command import command
from spaql.cli.report import PATH, Report, fitted, named, numbers, read_numbers
from spaql.cli.signatures import options_of
from spaql.errors import SettingError, require
from spaql.formatting import number

if TYPE_CHECKING:
    from spaql.agents import Agent, Design
    from spaql.evaluation import Bench, RobustnessRow, StressTest
    from spaql.problems import Problem


def _varied(ctx: click.Context, param: click.Parameter, texts: tuple[str, ...]) -> dict[str, list[float]]:
    """Return parameters, each with its values."""
    values: dict[str, list[float]] = {}
    for text in texts:
        name, listed = named(text, "length=0.3,0.7")
        values.setdefault(name, []).extend(read_numbers(listed))
    return values


@command("the result", more={"The map": ("map_file", "axes"), "The starts": ("low", "high", "seed")})
@run_argument
@options_of("evaluation/stress.py:stress", "seed", episodes="starts")
@click.option(
    "--low",
    metavar="X,Y,...",
    callback=numbers,
    help="lowest start, a plant state: 0,-1  [default: that of the plant]",
)
@click.option("--high", metavar="X,Y,...", callback=numbers, help="highest start")
@click.option(
    "--success",
    "threshold",
    type=float,
    help="smallest return that counts as a success  [default: the plant's own rule]",
)
@click.option("--worst", default=10, help="number of worst starts to list")
@click.option(
    "--robustness",
    "with_robustness",
    is_flag=True,
    help="also change the plant, and add noise, disturbances and delay",
)
@click.option(
    "--vary",
    metavar="NAME=VALUE,...",
    multiple=True,
    callback=_varied,
    help="values of a parameter of the environment, for --robustness",
)
@click.option("--map", "map_file", type=PATH, help="draw which starts succeed (svg, pdf, png)")
@click.option(
    "--axes",
    metavar="I J",
    type=int,
    nargs=2,
    help="indices of the state variables on the axes of the map, such as 0 2",
)
def stress(
    run: Path,
    starts: int,
    seed: int,
    low: list[float] | None,
    high: list[float] | None,
    threshold: float | None,
    worst: int,
    with_robustness: bool,
    vary: dict[str, list[float]],
    map_file: Path | None,
    axes: tuple[int, int] | None,
) -> Report:
    """Run the policy in RUN, a run folder or a model file, from starts all over the state space.

    Actions are not sampled: the controller is the one that `spaql show` prints. --robustness runs the
    environment from its own starts, and works with any environment. --vary takes arguments of its constructor
    and attributes, instead of its known parameters.

    \b
    Examples:
      spaql stress runs/cartpole
      spaql stress runs/cartpole --map basin.svg --axes 0 2
      spaql stress runs/cartpole --robustness --json
      spaql stress runs/cartpole --robustness --vary length=0.3,0.7
    """
    from spaql.evaluation import stress as run_stress
    from spaql.evaluation.stress import find_bench

    if vary and not with_robustness:
        raise SettingError("--vary is for --robustness: give that as well.")
    if map_file is not None:
        require("The map", "plot")
    agent = read_to_play(run)
    asked = any(option is not None for option in (low, high, threshold, map_file))
    if with_robustness and not asked and find_bench(agent.problem) is None:
        return _robustness_alone(agent, vary, seed)
    bench = _bench(agent.problem, low, high, threshold)
    result = run_stress(agent, bench=bench, starts=starts, seed=seed)
    rows, remark = _robustness(agent, bench, vary, seed) if with_robustness else ([], "")
    if map_file is not None:
        from spaql.figures import compute_basin, save_as

        side = max(1, round(math.sqrt(starts)))
        save_as(compute_basin(agent, bench=bench, axes=axes, side=side), map_file)
    files = [] if map_file is None else [str(map_file)]
    return Report(
        lambda: _data(result, bench, rows, worst) | {"files": files},
        lambda: (
            stress_text(result, bench, worst)
            + _robustness_text(rows, remark)
            + "".join(f"\nWrote {file}.\n" for file in files)
        ),
    )


def _robustness(
    agent: Agent | Design, bench: Bench | None, vary: dict[str, list[float]], seed: int
) -> tuple[list[RobustnessRow], str]:
    """Return the rows of the table, and a remark if they vary no parameter."""
    from spaql.evaluation import parameters_of, robustness
    from spaql.evaluation.robustness import varied_parameters

    rows = robustness(agent, bench=bench, parameters=() if vary else None, values=vary, seed=seed)
    if vary or varied_parameters(agent.problem, bench):
        return rows, ""
    known = ", ".join(sorted(parameters_of(agent.problem)))
    can = (
        f"--vary NAME=VALUE,... takes {known}."
        if known
        else "it has no parameter that can be changed by name."
    )
    return rows, f"No parameter of {agent.problem.name} was varied: {can}"


def _robustness_alone(agent: Agent | Design, vary: dict[str, list[float]], seed: int) -> Report:
    """Return a report of robustness alone, for a plant without a known region of starts."""
    rows, remark = _robustness(agent, None, vary, seed)
    why = f"The region of starts of {agent.problem.name} is not known: give --low X,Y,... and --high X,Y,..."
    data = {"starts": None, "not_tested": why, "robustness": [dataclasses.asdict(row) for row in rows]}
    return Report(data, lambda: f"starts     not tested. {why}\n" + _robustness_text(rows, remark))


def _robustness_text(rows: list[RobustnessRow], remark: str) -> str:
    from spaql.evaluation.result_tables import robustness_cells

    if not rows:
        return ""
    return "\n".join(["", "robustness", fitted(robustness_cells(rows)), *([remark] if remark else []), ""])


def _bench(
    problem: Problem, low: list[float] | None, high: list[float] | None, threshold: float | None
) -> Bench:
    """Return the bench of the plant, with the requested region and threshold."""
    from spaql.evaluation import Bench, find_bench
    from spaql.evaluation.stress import known_bench, returns_at_least

    if (low is None) != (high is None):
        raise SettingError("A region has two bounds: give both --low and --high.")
    if low is None or high is None:
        bench = known_bench(problem)
    else:
        if len(low) != len(high):
            raise SettingError(f"--low has {len(low)} components, and --high {len(high)}.")
        known = find_bench(problem)
        for names in (tuple(known.region) if known else (), problem.states.names):
            if len(names) == len(low):
                break
        else:
            names = tuple(f"state {j}" for j in range(len(low)))
        region = dict(zip(names, zip(low, high, strict=True), strict=True))
        bench = dataclasses.replace(known, region=region) if known else Bench(region=region)
    return bench if threshold is None else dataclasses.replace(bench, success=returns_at_least(threshold))


def _data(result: StressTest, bench: Bench, rows: list[RobustnessRow], worst: int) -> dict[str, Any]:
    low, high = result.share_ci95
    return {
        "starts": len(result.starts),
        "region": {name: list(ends) for name, ends in bench.region.items()},
        "success": {"means": result.success_means, "share": result.share, "low": low, "high": high},
        "quantiles": {f"{q:g}": value for q, value in result.quantiles.items()},
        "worst": [
            {
                "start": dict(zip(result.names, episode.start, strict=True)),
                "length": episode.length,
                "return": episode.total,
            }
            for episode in result.worst(worst)
        ],
        "robustness": [dataclasses.asdict(row) for row in rows],
    }


def stress_text(result: StressTest, bench: Bench, worst: int) -> str:
    """Return the region, the share of successes, quantiles and the worst starts, for people."""
    from spaql.evaluation.result_tables import worst_cells

    low, high = result.share_ci95
    quantiles = "  ".join(f"{q:.0%} {number(value, result.digits)}" for q, value in result.quantiles.items())
    region = ", ".join(f"{name} {a:.3g} to {b:.3g}" for name, (a, b) in bench.region.items())
    lines = [
        f"starts     {len(result.starts):,}, spread over {region}",
        "           (spaql evaluate uses the environment's own starts)",
        f"success    {100 * result.share:.1f} % of {len(result.starts):,} starts "
        f"(95 % interval {100 * low:.1f} to {100 * high:.1f} %)",
        f"           {result.success_means}",
        f"return     {quantiles}",
        "           (quantiles over these starts)",
    ]
    if worst:
        lines += ["", "worst starts", fitted(worst_cells(result, worst))]
    return "\n".join(lines) + "\n"
