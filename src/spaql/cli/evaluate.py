"""`spaql evaluate`: fresh episodes of a learned policy."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from spaql.cli.arguments import read_to_play, run_argument
from spaql.cli.report import Report, reports
from spaql.formatting import counted, number, places, short, with_interval

if TYPE_CHECKING:
    from spaql.rollouts import Evaluation


@click.command()
@run_argument
@click.option("--env", help="play in another environment of the same spaces  [default: that of the run]")
@click.option("--episodes", type=int, default=100, show_default=True, help="how many to run")
@click.option("--seed", type=int, default=0, show_default=True, help="of the episodes")
@click.option("--random", "with_random", is_flag=True, help="run the random policy beside it")
@click.option("--deterministic", is_flag=True, help="play a ball's centre or first action, draw nothing")
@click.option("--parallel", is_flag=True, help="a process for every environment: for slow simulators")
@reports("the result")
def evaluate(
    run: Path,
    env: str | None,
    episodes: int,
    seed: int,
    with_random: bool,
    deterministic: bool,
    parallel: bool,
) -> Report:
    """Run fresh episodes of the policy in RUN, a run folder or a model file.

    \b
    Examples:
      spaql evaluate runs/cartpole --episodes 500
      spaql evaluate runs/cartpole/policy.spaql --random --json
      spaql evaluate runs/in-the-model --env Pendulum-v1
    """
    from spaql.evaluation import evaluate as run_episodes
    from spaql.policy import RandomPolicy
    from spaql.problems import make_problem

    agent = read_to_play(run)
    problem = agent.problem if env is None else make_problem(env)
    result = run_episodes(
        agent, problem, episodes=episodes, seed=seed, deterministic=deterministic, parallel=parallel
    )
    random = None
    if with_random:
        policy = RandomPolicy(agent.problem.states, agent.problem.actions)
        random = run_episodes(policy, problem, episodes=episodes, seed=seed, parallel=parallel)
    return Report(_data(result, random), _text(result, random))


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
    return "\n".join(lines)
