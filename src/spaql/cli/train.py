"""`spaql train`: learn a policy, and write a run folder."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from spaql.agents import Agent, agent_type
from spaql.agents.agent_file import MODEL_FILE
from spaql.agents.run_folder import CHECKPOINT_FILE
from spaql.agents.training_loop import SELECTION_EPISODES, Budget
from spaql.agents.tries import TRIES_FILE
from spaql.cli.arguments import ChoiceOrOwn, complete_environment, quiet_option
from spaql.cli.command import command
from spaql.cli.default_algorithm import (
    CHOSEN,
    DEFAULT_STEPS,
    SEARCH_STEPS,
    default_algorithm,
    default_steps,
    recommended,
)
from spaql.cli.option_groups import problem_options
from spaql.cli.report import PATH, Report, say
from spaql.cli.setting_options import SHIPPED, TrainCommand, own_settings, setting_options
from spaql.cli.training import Training, train_once
from spaql.cli.tries import train_several
from spaql.errors import BadEnvironmentError, SettingError
from spaql.problems import EnvironmentLike, make_problem
from spaql.problems.registry import plant_of_file


@command(
    "the result",
    cls=TrainCommand,
    more={
        "Several seeds": ("selection_episodes", "workers"),
        "The environment": (
            "horizon", "levels", "reference", "observation_names", "action_names", "gymnasium", "parallel",
            "ray",
        ),
        "Training by iterations": ("iterations",),
    },
)  # fmt: skip
@click.argument("env", shell_complete=complete_environment)
@click.option(
    "--algo",
    type=ChoiceOrOwn(sorted(SHIPPED)),
    help="algorithm, or MODULE:NAME for your own  [default: treesearch for a compiled plant with "
    "set-points, plantree otherwise]",
)
@click.option(
    "--steps",
    "total_timesteps",
    type=int,
    help=f"training steps  [default: {DEFAULT_STEPS:,}; for treesearch {SEARCH_STEPS:,}]",
)
@click.option(
    "--iterations",
    type=int,
    help="training episodes, instead of --steps; each is followed by an evaluation, except with plantree",
)
@click.option("--seed", type=int, help="seed of all randomness; drawn if not given")
@click.option(
    "--tries",
    default=1,
    help="train n seeds, select one in episodes of each, and evaluate it in other episodes",
)
@click.option(
    "--selection-episodes", default=SELECTION_EPISODES, help="episodes of each try for the selection"
)
@click.option(
    "--workers",
    type=int,
    help="processes that train the tries; the result does not depend on it  [default: one per core]",
)
@click.option("--out", type=PATH, help="run folder  [default: runs/ENV/ALGO/seed=SEED]")
@problem_options()
@click.option(
    "--resume",
    is_flag=True,
    help="resume the run in the run folder, up to a total of --steps or --iterations",
)
@click.option(
    "--verify",
    "verified",
    is_flag=True,
    help="afterwards, verify the closed loop for 60 s",
)
@quiet_option
@setting_options
def train(
    env: str,
    algo: str | None,
    total_timesteps: int | None,
    iterations: int | None,
    selection_episodes: int,
    seed: int | None,
    tries: int,
    workers: int | None,
    out: Path | None,
    described: dict[str, Any],
    resume: bool,
    verified: bool,
    quiet: bool,
    **settings: Any,
) -> Report:
    """Learn a policy for ENV and save it in a run folder.

    ENV is the id of a Gymnasium environment with Box or Discrete observations and actions; one of the
    paper's setups, pendulum, pendulum5 or cartpole200; module:id, where the module registers the
    environment or plant, as in a project of `spaql new`; or an FMU for co-simulation (.fmu),
    with --config.

    \b
    Examples:
      spaql train Pendulum-v1 --steps 5000 --seed 1
      spaql train Pendulum-v1 --steps 5000 --tries 8
      spaql train Acrobot-v1 --algo treesearch --steps 10000000
      spaql train plant:TwoTanks-v0 --out runs/tanks
      spaql train plant.fmu --config plant.toml --steps 3000
      spaql train CartPole-v1 --constraint "abs(pole_angle) < 0.1"
      spaql train cartpole200 --algo spaql-ts --iterations 500 --seed 1
      spaql train MountainCar-v0 --algo spaql --iterations 200 --scaling 4
      spaql train Pendulum-v1 --algo spaql --levels 5 --iterations 300
      spaql train cartpole200 --algo my_module:my_algorithm --iterations 100
    """
    if iterations is not None and total_timesteps is not None:
        raise click.UsageError("Give --steps or --iterations, not both.")
    problem: EnvironmentLike = env
    options = described
    if algo is None:
        problem = make_problem(env, measured=False, **described)
        options = {}  # the problem has them
        algo = default_algorithm(problem)
        if algo != "plantree" and not quiet:
            say(CHOSEN, err=True)
    if iterations is None and total_timesteps is None:
        total_timesteps = default_steps(algo)
    budget = Budget(
        total_timesteps=total_timesteps, iterations=iterations, selection_episodes=selection_episodes
    )
    agent = agent_type(algo)(problem, seed=seed, **options, **own_settings(algo, settings))
    advice = recommended(agent.learner_type.name, total_timesteps, agent.problem)
    if advice and not quiet:
        say(advice, err=True)
    _check_options(agent, described["parallel"], tries, workers, verified=verified)
    training = Training(
        agent=agent,
        algo=algo,
        budget=budget,
        folder=out or _default_folder(agent),
        resume=resume,
        same_seed=seed is not None,
        verified=verified,
        quiet=quiet,
    )
    _take(training.folder, resume=resume)
    with _advised(agent.problem.name, described["horizon"]):
        return train_once(training) if tries == 1 else train_several(training, tries, workers)


def _default_folder(agent: Agent) -> Path:
    env = re.sub(r"[/\\:]", "-", agent.problem.name)
    return Path("runs") / env / agent.learner_type.name / f"seed={agent.seed}"


def _check_options(
    agent: Agent, parallel: bool | str, tries: int, workers: int | None, *, verified: bool
) -> None:
    """Refuse options that do not fit the algorithm, the problem or each other."""
    name = agent.learner_type.name
    env = agent.problem.name  # an id without a version has got one
    if isinstance(parallel, str) and (name != "treesearch" or agent.problem.dynamics is not None):
        why = f"--algo {name} runs one episode at a time" if name != "treesearch" else f"{env} is compiled"
        raise click.UsageError(f"--ray is only for treesearch in a Gymnasium environment: {why}.")
    if workers is not None and tries == 1:
        raise click.UsageError("--workers is for tries: give --tries, at least 2.")
    if verified and agent.problem.dynamics is None:
        raise SettingError(
            f"--verify needs the equations of the plant, and {env} runs on {agent.problem.runs_on}: leave it "
            "out, or write the plant as spaql.Dynamics."
        )


def _take(folder: Path, *, resume: bool) -> None:
    """Lock a run folder until the command ends; refuse a folder that contains a run, unless it is resumed."""
    from spaql.leases import held  # imports much that the help does not need

    run_files = (CHECKPOINT_FILE, MODEL_FILE, TRIES_FILE)
    if resume and not any((folder / name).exists() for name in run_files):
        raise SettingError(f"{folder} contains no run to resume: leave out --resume.")
    if not folder.is_file():
        click.get_current_context().with_resource(held(folder))
    if not resume and folder.exists() and (not folder.is_dir() or any(folder.glob("[!.]*"))):
        raise SettingError(
            f"{folder} already exists: resume it with --resume, choose another folder with --out, or "
            "remove it."
        )


@contextmanager
def _advised(env: str, horizon: int | None) -> Iterator[None]:
    """Add the advice to run `spaql check` to errors of an environment."""
    try:
        yield
    except BadEnvironmentError as error:
        if plant_of_file(env) is not None:  # it names the variable and the time
            raise
        limit = "" if horizon is None else f" --horizon {horizon}"
        raise BadEnvironmentError(f"{error} Try `spaql check {env}{limit}`.") from error
