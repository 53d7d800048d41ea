"""`spaql improve`: improve an existing controller on the simulator."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from spaql.cli.arguments import quiet_option, read_to_play, refuse_occupied, run_argument
from spaql.cli.command import command
from spaql.cli.option_groups import problem_options
from spaql.cli.report import PATH, Report
from spaql.cli.signatures import options_of
from spaql.errors import SettingError
from spaql.formatting import counted, with_interval


@command("the returns before and after")
@run_argument
@click.option("--steps", default=1_000_000, help="simulator steps")
@click.option("--out", type=PATH, required=True, help="run folder to write")
@options_of("algorithms/treesearch/settings.py:TreeSearchSettings", "max_leaves")
@options_of("evaluation/episodes.py:evaluate", "episodes", "seed")
@problem_options("parallel", "ray")
@quiet_option
def improve(
    run: Path,
    steps: int,
    out: Path,
    max_leaves: int,
    episodes: int,
    seed: int,
    described: dict[str, Any],
    quiet: bool,
) -> Report:
    """Improve the policy in RUN on its simulator by TreeSearch, and save the result as a new run.

    The search starts from the rules of the policy, at most 64 leaves, and keeps them if it finds nothing
    better. Locked leaves, features and limits are unchanged; hysteresis is omitted. The policy and the
    result are then evaluated from the same fresh starts. Where the plant declares a perturbation, both the
    search and the evaluation are on perturbed plants.

    \b
    Examples:
      spaql improve runs/swing-up --steps 1000000 --out runs/better
      spaql edit runs/swing-up --leaf 2 --do 0.5 --lock --out edited.spaql
      spaql improve edited.spaql --steps 1000000 --out runs/better
    """
    from dataclasses import replace

    from spaql.agents import TreeSearch
    from spaql.agents.run_folder import save_run
    from spaql.algorithms.treesearch.settings import MOST_LEAVES
    from spaql.controllers import controller_of
    from spaql.evaluation import evaluate
    from spaql.evaluation.conditions import PERTURBED, in_condition
    from spaql.stats import mean_ci95

    refuse_occupied(out)
    source = read_to_play(run)
    rules = controller_of(source, minimise=False)
    plant = source.problem.plant_now or source.problem.plant
    problem = replace(source.problem, plant=plant, **described)
    if rules.n_leaves > MOST_LEAVES:
        raise SettingError(
            f"The policy has {rules.n_leaves} leaves, and the search takes at most {MOST_LEAVES}: make a "
            f"smaller one with `spaql simplify {run} --max-leaves {MOST_LEAVES} --out small.spaql`."
        )
    agent = TreeSearch(problem, seed=seed, max_leaves=max(max_leaves, rules.n_leaves)).start_from(rules)
    agent.learn(steps, progress_bar=not quiet)
    save_run(agent, out)
    improved = controller_of(agent, minimise=False)
    where = in_condition(problem, agent.designed_for)
    before = evaluate(rules, where, episodes=episodes, seed=seed + 1)
    after = evaluate(agent, where, episodes=episodes, seed=seed + 1)
    mean, half = mean_ci95(after.returns - before.returns)
    spent = agent.training_steps
    of = " of perturbed plants" if agent.designed_for == PERTURBED else ""
    lines = [
        f"before  {with_interval(before.mean, before.ci95)}  ({counted(rules.n_leaves, 'leaf')})",
        f"after   {with_interval(after.mean, after.ci95)}  ({counted(improved.n_leaves, 'leaf')})",
        f"change  {with_interval(mean, half)}  (from the same {episodes} fresh starts{of})",
        f"cost    {spent:,} steps",
        "",
        f"Next: spaql show {out} --digits 3",
    ]
    data = {
        "run": str(out),
        "before": {"mean": before.mean, "ci95": before.ci95, "leaves": rules.n_leaves},
        "after": {"mean": after.mean, "ci95": after.ci95, "leaves": improved.n_leaves},
        "change": {"mean": mean, "ci95": half},
        "episodes": episodes,
        "condition": agent.designed_for,
        "steps": spent,
    }
    return Report(data, "\n".join(lines))
