"""`spaql evaluate`: fresh episodes of a learned policy."""

from __future__ import annotations

import dataclasses
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from spaql.cli.arguments import parse_methods, read_to_play, run_argument
from spaql.cli.report import Report, reports
from spaql.errors import SettingError
from spaql.formatting import counted, number, places, short, with_interval

if TYPE_CHECKING:
    from spaql.evaluation import Judged
    from spaql.problems import Problem
    from spaql.rollouts import Evaluation


@click.command()
@run_argument
@click.option("--env", help="play in another environment of the same spaces  [default: that of the run]")
@click.option("--episodes", type=int, default=100, show_default=True, help="how many to run")
@click.option("--seed", type=int, default=0, show_default=True, help="of the episodes")
@click.option("--random", "with_random", is_flag=True, help="run the random policy beside it")
@click.option("--deterministic", is_flag=True, help="play a ball's centre or first action, draw nothing")
@click.option("--parallel", is_flag=True, help="a process for every environment: for slow simulators")
@click.option("--perturbed", is_flag=True, help="draw actuator gains and dead time, and add sensor noise")
@click.option(
    "--beside", metavar="pid,lqr", callback=parse_methods, help="tune these, and judge them as well"
)
@click.option("--steps", type=int, help="simulator steps to tune each  [default: as many as the run had]")
@reports("the result")
def evaluate(
    run: Path,
    env: str | None,
    episodes: int,
    seed: int,
    with_random: bool,
    deterministic: bool,
    parallel: bool,
    perturbed: bool,
    beside: list[str] | None,
    steps: int | None,
) -> Report:
    """Run fresh episodes of the policy in RUN, a run folder or a model file.

    Where set-points are declared, the closed loop is measured: rise time, overshoot, settling time, error at
    rest, integral of the absolute error, and the movement of the actuators.

    \b
    Examples:
      spaql evaluate runs/cartpole --episodes 500
      spaql evaluate runs/cartpole/policy.spaql --random --json
      spaql evaluate runs/in-the-model --env Pendulum-v1
      spaql evaluate runs/oven --beside pid,lqr --perturbed
    """
    from spaql.evaluation import beside as judge_beside
    from spaql.evaluation import evaluate as run_episodes
    from spaql.evaluation.beside import steps_of
    from spaql.policy import RandomPolicy
    from spaql.problems import make_problem

    if steps is not None and not beside:
        raise SettingError("Steps are for the tuning of other controllers: give --beside, too.")
    agent = read_to_play(run)
    problem = agent.problem
    if env is not None:
        stage = problem.stage_cost
        problem = make_problem(env, **(stage.as_data if stage is not None else {}))
    if perturbed:
        problem = _perturbed(problem)
    played: dict[str, Any] = {"episodes": episodes, "seed": seed, "deterministic": deterministic}
    judged: list[Judged] = []
    if beside or problem.setpoints:
        steps = steps_of(agent) if steps is None else steps
        where = dataclasses.replace(problem, parallel=True) if parallel else problem
        judged = judge_beside(agent, where, methods=beside or (), steps=steps, **played)
    result = judged[0].evaluation if judged else run_episodes(agent, problem, parallel=parallel, **played)
    random = None
    if with_random:
        policy = RandomPolicy(agent.problem.states, agent.problem.actions)
        random = run_episodes(policy, problem, episodes=episodes, seed=seed, parallel=parallel)
    data, text = _data(result, random), _text(result, random)
    if perturbed:
        data["perturbed"] = True
    if judged:
        data |= _control_data(judged)
        text += f"\n\n{_control_text(judged)}"
    return Report(data, text)


def _perturbed(problem: Problem) -> Problem:
    from spaql.problems import perturbed as with_perturbation

    if problem.dynamics is None:
        raise SettingError(f"Only compiled plants can be perturbed, and this runs on {problem.runs_on}.")
    plant = with_perturbation(problem.dynamics)
    return dataclasses.replace(problem, env=plant.id, dynamics=plant)


def _control_data(judged: list[Judged]) -> dict[str, Any]:
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
            **_measured(row),
        }
        for row in judged[1:]
    ]
    return _measured(judged[0]) | ({"beside": others} if others else {})


def _measured(row: Judged) -> dict[str, Any]:
    data = {"control": dataclasses.asdict(row.control)}
    if row.response is not None:
        steps = [dataclasses.asdict(one) for one in row.response.steps]
        data["step_test"] = {
            "steps": steps,
            "interactions": list(row.response.interactions),
            "errors_under_load": list(row.response.errors_under_load),
        }
    return data


def _control_text(judged: list[Judged]) -> str:
    from spaql.evaluation.control_tables import (
        MEASURES_MEAN,
        actuator_cells,
        return_cells,
        step_test_cells,
        tracking_cells,
    )
    from spaql.tables import aligned

    parts, first = [], judged[0].control
    if len(judged) > 1:
        parts.append(aligned(return_cells(judged)))
        parts.append("\n".join(row.law for row in judged[1:]))
    for j, one in enumerate(first.tracking):
        parts.append(f"{one.name} to {one.setpoint}, in these episodes\n{aligned(tracking_cells(judged, j))}")
        if judged[0].response is not None:
            title = f"{one.name} in a step test without noise, then under load"
            parts.append(f"{title}\n{aligned(step_test_cells(judged, j))}")
    for j, action in enumerate(first.actuators):
        parts.append(f"{action.name}\n{aligned(actuator_cells(judged, j))}")
    return "\n\n".join([*parts, "\n".join(textwrap.wrap(MEASURES_MEAN, 100))])


def _data(result: Evaluation, random: Evaluation | None) -> dict[str, Any]:
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
    if random is not None:
        data["random"] = {"mean": random.mean, "ci95": random.ci95}
    return data


def _text(result: Evaluation, random: Evaluation | None) -> str:
    episodes = counted(len(result.returns), "episode")
    lines = [f"return        {with_interval(result.mean, result.ci95)}  ({episodes})"]
    if random is not None:
        lines.append(f"random policy {with_interval(random.mean, random.ci95)}")
    digits = places(result.mean, result.ci95)
    quantiles = (f"{q:.0%} {number(value, digits)}" for q, value in result.quantiles.items())
    lines.append("quantiles     " + "  ".join(quantiles))
    lines.append("worst starts")
    for episode in result.worst:
        steps = counted(episode.length, "step")
        lines.append(f"  {number(episode.total, digits):>9} after {steps} from {short(episode.start)}")
    for one, count in zip(result.constraints, result.violations.values(), strict=True):
        held = f"broken in {count:,} of {episodes}" if count else f"kept in {episodes}"
        lines.append(f"constraint    {one.label}: {held}")
    return "\n".join(lines)
