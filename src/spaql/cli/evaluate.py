"""`spaql evaluate`: evaluate a learned policy in fresh episodes."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from spaql.cli.arguments import parse_methods, read_to_play, run_argument
from spaql.cli.command import command
from spaql.cli.option_groups import problem_options
from spaql.cli.report import Report, fitted, wrapped
from spaql.cli.signatures import options_of
from spaql.errors import SettingError
from spaql.formatting import counted, number, places, short, with_interval

if TYPE_CHECKING:
    from spaql.evaluation import ClassicalComparison, Judged
    from spaql.simulate import Evaluation


@command("the result")
@run_argument
@click.option("--env", help="use another environment with the same spaces  [default: that of the run]")
@options_of("evaluation/episodes.py:evaluate", "episodes", "seed")
@problem_options("parallel")
@click.option(
    "--perturbed", is_flag=True, help="evaluate on perturbed plants: gains, dead time and noise as declared"
)
@click.option(
    "--beside",
    metavar="pid,lqr",
    callback=parse_methods,
    help="classical controllers to tune and compare with",
)
@click.option(
    "--steps", type=int, help="simulator steps to tune each of them  [default: as many as the run used]"
)
def evaluate(
    run: Path,
    env: str | None,
    episodes: int,
    seed: int,
    described: dict[str, Any],
    perturbed: bool,
    beside: list[str] | None,
    steps: int | None,
) -> Report:
    """Evaluate the policy in RUN, a run folder or a model file, in fresh episodes.

    Where set-points are declared, the closed loop is measured: rise time, overshoot, settling time,
    steady-state error, integral of the absolute error, and the movement of the actuators.

    With --beside, classical controllers are tuned on the plants for which the policy was designed, perturbed
    or nominal, and all are evaluated on both; with --perturbed, on perturbed plants only.

    \b
    Examples:
      spaql evaluate runs/cartpole --episodes 500
      spaql evaluate runs/cartpole/policy.spaql --json
      spaql evaluate runs/in-the-model --env Pendulum-v1
      spaql evaluate runs/oven --perturbed
      spaql evaluate runs/oven --beside pid,lqr
    """
    from spaql.agents import Agent
    from spaql.evaluation import beside as compare_with
    from spaql.evaluation import evaluate as run_episodes
    from spaql.evaluation.beside import steps_of
    from spaql.evaluation.conditions import NOMINAL, PERTURBED, conditions_of, in_condition
    from spaql.problems import make_problem

    if steps is not None and not beside:
        raise SettingError("--steps is for the tuning of other controllers: give --beside as well.")
    agent = read_to_play(run)
    problem = agent.problem
    if env is not None:
        stage = problem.stage_cost
        problem = make_problem(env, **(stage.as_data if stage is not None else {}))
    problem = dataclasses.replace(problem, **described) if described["parallel"] else problem
    possible = conditions_of(agent, problem)
    conditions: tuple[str, ...] = possible if beside else (NOMINAL,)
    if perturbed:
        conditions = (PERTURBED,)
    designed_for = agent.designed_for if isinstance(agent, Agent) else None
    where = in_condition(problem, conditions[0])
    played: dict[str, Any] = {"episodes": episodes, "seed": seed}
    compared: ClassicalComparison | None = None
    if beside or problem.setpoints:
        steps = steps_of(agent) if steps is None else steps
        compared = compare_with(
            agent, problem, methods=beside or (), conditions=conditions, steps=steps, **played
        )
    result = compared.rows[0].evaluation if compared else run_episodes(agent, where, **played)
    data = _data(result) | {"condition": conditions[0], "designed_for": designed_for}
    of = _condition(conditions[0], designed_for) if len(possible) > 1 else ""
    text = evaluation_text(result, of)
    if compared is not None:
        data |= _control_data(compared)
        text += f"\n\n{_control_text(compared)}"
    return Report(data, text)


def _condition(condition: str, designed_for: str | None) -> str:
    """Return on which plants the episodes were run, and for which the policy was designed, if known."""
    from spaql.evaluation.conditions import CONDITION_TEXTS

    played = f" of {CONDITION_TEXTS[condition]}"
    if designed_for is None:
        return played
    if designed_for == condition:
        return f"{played}, for which it was designed"
    return f"{played}; designed for {CONDITION_TEXTS[designed_for]}"


def _control_data(compared: ClassicalComparison) -> dict[str, Any]:
    data = [_condition_data(rows) | {"condition": name} for name, rows in compared.conditions.items()]
    content: dict[str, Any] = {
        name: value for name, value in data[0].items() if name in ("control", "beside")
    }
    if len(data) > 1:
        content["other_conditions"] = data[1:]
    if compared.refused:
        content["refused"] = dict(compared.refused)
    if compared.verdict:
        content["verdict"] = compared.verdict
    return content


def _condition_data(judged: list[Judged]) -> dict[str, Any]:
    first = judged[0]
    data: dict[str, Any] = {
        "mean": first.evaluation.mean,
        "ci95": first.evaluation.ci95,
        "worst_return": float(first.evaluation.returns.min()),
    }
    others = [
        {
            "name": row.name,
            "mean": row.evaluation.mean,
            "ci95": row.evaluation.ci95,
            "worst": float(row.evaluation.returns.min()),
            "difference": row.difference,
            "difference_ci95": row.difference_ci95,
            "law": row.law,
            "numbers": row.numbers,
            "steps": row.steps,
            **({"violations": row.evaluation.violations} if row.evaluation.constraints else {}),
            "control": dataclasses.asdict(row.control),
        }
        for row in judged[1:]
    ]
    data["control"] = dataclasses.asdict(first.control)
    return data | ({"beside": others} if others else {})


def _control_text(compared: ClassicalComparison) -> str:
    from spaql.evaluation.conditions import CONDITION_TEXTS
    from spaql.evaluation.result_tables import MEASURES_MEAN, loop_tables, return_cells

    judged = compared.rows
    parts = []
    where = CONDITION_TEXTS[next(iter(compared.conditions))]
    if len(judged) > 1 or len(compared.conditions) > 1:
        for condition, rows in compared.conditions.items():
            parts.append(f"on {CONDITION_TEXTS[condition]}\n{fitted(return_cells(rows))}")
    if len(judged) > 1:
        parts.append(wrapped(compared.verdict))
        parts.append("\n".join([f"tuned on {where}", *(row.law for row in judged[1:])]))
    parts += [wrapped(f"{name} could not be built: {why}") for name, why in compared.refused.items()]
    parts += [f"{title}\n{fitted(cells)}" for title, cells in loop_tables(judged, where)]
    return "\n\n".join([*parts, wrapped(MEASURES_MEAN)])


def _data(result: Evaluation) -> dict[str, Any]:
    data = {
        "episodes": len(result.returns),
        "mean": result.mean,
        "ci95": result.ci95,
        "quantiles": {f"{q:g}": value for q, value in result.quantiles.items()},
        "worst": [
            {"start": list(episode.start), "length": episode.length, "return": episode.total}
            for episode in result.worst
        ],
        "interactions": result.steps,
    }
    if result.constraints:
        data["violations"] = result.violations
    return data


def evaluation_text(result: Evaluation, condition: str = "") -> str:
    """Return returns, quantiles, worst starts and constraints of an evaluation, for people."""
    episodes = counted(len(result.returns), "episode")
    lines = [f"return        {with_interval(result.mean, result.ci95)}  ({episodes}{condition})"]
    digits = places(result.mean, result.ci95)
    quantiles = (f"{q:.0%} {number(value, digits)}" for q, value in result.quantiles.items())
    lines.append("quantiles     " + "  ".join(quantiles))
    lines.append("worst starts")
    for episode in result.worst:
        steps = counted(episode.length, "step")
        lines.append(f"  {number(episode.total, digits):>9} after {steps} from {short(episode.start)}")
    for constraint, count in zip(result.constraints, result.violations.values(), strict=True):
        held = f"violated in {count:,} of {episodes}" if count else f"satisfied in {episodes}"
        lines.append(f"constraint    {constraint.label}: {held}")
    return "\n".join(lines)
