"""`spaql distil`: turn a network, or any other policy, into a small tree and improve it on the simulator."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from spaql.cli.arguments import complete_environment, quiet_option, refuse_occupied
from spaql.cli.command import command
from spaql.cli.option_groups import problem_options
from spaql.cli.report import PATH, Report
from spaql.cli.signatures import options_of
from spaql.formatting import counted, number, places, with_interval

if TYPE_CHECKING:
    from spaql.agents import Distillation
    from spaql.simulate import Evaluation


@command("sizes, returns and steps", more={"The imitation": ("rounds", "episodes", "vec_normalize")})
@click.argument("file", metavar="FILE")
@click.option("--env", required=True, shell_complete=complete_environment, help="environment of the policy")
@click.option("--out", type=PATH, required=True, help="run folder to write")
@options_of(
    "agents/distillation.py:distil",
    "max_leaves",
    "rounds",
    "vec_normalize",
    "seed",
    steps="total_timesteps",
    tolerance="loss",
    episodes="judged_episodes",
    round_episodes="episodes",
)
@problem_options("options", "parallel")
@quiet_option
def distil(
    file: str, env: str, out: Path, described: dict[str, Any], quiet: bool, **arguments: Any
) -> Report:
    """Turn the policy in FILE into a small rule tree, improve it on the simulator, and save a run.

    FILE is a Stable-Baselines3 (.zip) or ONNX (.onnx) model, a run of spaql, or MODULE:NAME, a Python
    function from one observation to one action. A .zip contains pickles, which run code when they are read:
    use only files you trust. Trees imitate the policy in the states that it and they visit (DAgger). The
    smallest good tree is improved by TreeSearch. Policy and tree are then evaluated from equal fresh starts.

    \b
    Examples:
      spaql distil model.zip --env Pendulum-v1 --out runs/readable
      spaql distil policy.onnx --env CartPole-v1 --out readable --max-leaves 4
      spaql distil my_module:law --env CartPole-v1 --out readable --steps 0
    """
    from spaql.agents import distil
    from spaql.problems import make_problem

    refuse_occupied(out)
    problem = make_problem(env, measured=False, **described)
    distillation = distil(file, problem, progress_bar=not quiet, **arguments)
    distillation.save(out)
    return Report({"run": str(out), **distillation.as_data()}, _text(distillation, out))


def _text(distillation: Distillation, out: Path) -> str:
    from gymnasium.spaces import Discrete

    data = distillation.as_data()
    expert = distillation.expert_returned
    before = distillation.imitation_returned
    after = distillation.returned
    difference = data["difference"]
    change = with_interval(difference["mean"], difference["ci95"] or 0.0)
    kept = "" if data["kept"] is None else f"; {data['kept']:.1%} of its return"
    steps = "; ".join(f"{name} {taken:,}" for name, taken in distillation.steps.items())
    listed = isinstance(distillation.tree.action_space, Discrete)
    agrees = "the same action" if listed else "of the variance of its actions"
    size = counted(distillation.imitation.n_leaves, "leaf")
    grown = counted(distillation.tree.n_leaves, "leaf")
    lines = [
        f"expert     {_returned(expert)}  ({distillation.expert.name})",
        f"imitation  {_returned(before)}  ({size}, {distillation.agreement:.1%} {agrees} in "
        f"{distillation.labelled:,} labelled states)",
        f"tree       {_returned(after)}  ({grown}, {counted(distillation.tree.n_numbers, 'parameter')})",
        f"change     {change}  (tree minus expert, from the same {len(after.returns)} fresh starts{kept})",
        f"steps      {steps}",
    ]
    if distillation.expert.clipped:
        lines.append(
            f"note       {distillation.expert.clipped:,} actions of the expert were clipped to a bound."
        )
    return "\n".join([*lines, "", f"Next: spaql show {out} --digits 3"])


def _returned(evaluation: Evaluation) -> str:
    """Return the mean return with its interval, and the worst return, which a mean hides."""
    worst = number(float(evaluation.returns.min()), places(evaluation.mean, evaluation.ci95))
    return f"{with_interval(evaluation.mean, evaluation.ci95)}, worst {worst}"
