"""`spaql train`: learn a policy, and write a run folder."""

from __future__ import annotations

import dataclasses
import itertools
import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin, get_type_hints

import click

from spaql.agents import Agent, PlanTree, TreeSearch, agent_type, agent_types
from spaql.agents.agent_file import MODEL_FILE
from spaql.agents.budget import Budget
from spaql.agents.run_folder import CHECKPOINT_FILE, resumed, save_run
from spaql.agents.train_tries import TRIES_FILE
from spaql.agents.tries import SELECTION_EPISODES
from spaql.cli.arguments import (
    Choice,
    ChoiceOrOwn,
    complete_environment,
    config_option,
    constraint_options,
    quiet_option,
)
from spaql.cli.group import INTERRUPTED
from spaql.cli.interrupt import StopOnInterrupt
from spaql.cli.report import Report, names, numbers, plain, reports, say
from spaql.cli.tries import refuse_tries, report_tries
from spaql.entry_points import load_hook
from spaql.errors import BadEnvironmentError, SettingError
from spaql.evaluation import PlainControllers, evaluate, plain_controllers
from spaql.evaluation.plain_controllers import failure
from spaql.formatting import counted, number, places, with_interval
from spaql.problems import EnvironmentLike, Problem, make_problem
from spaql.problems.registry import plant_of_file
from spaql.tables import aligned

if TYPE_CHECKING:
    from spaql.simulate import Evaluation

_FRESH = 100
"""Number of new episodes that evaluate the result."""
_STEPS, _SEARCH_STEPS = 5_000, 1_000_000
"""Default numbers of training steps, the second of treesearch."""


_SHIPPED = {name: agent for name, agent in agent_types().items() if agent.__module__.startswith("spaql.")}
"""The algorithms that come with spaql."""
_OWN_SETTINGS = "spaql.own_settings"
"""Key of the context for the options of the user's own algorithm."""


class _SettingOption(click.Option):
    """An option for a setting that some algorithms have."""

    def __init__(self, *args: Any, algorithms: list[str], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.algorithms = algorithms


class _TrainCommand(click.Command):
    """A command whose help lists the settings of the algorithms separately from the common options.

    An algorithm of the user's own is imported before the options are read, and adds its settings to them.
    """

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Import the algorithm before parsing."""
        given = [after for option, after in itertools.pairwise(args) if option == "--algo"]
        given += [arg.removeprefix("--algo=") for arg in args if arg.startswith("--algo=")]
        given += [os.environ.get("SPAQL_TRAIN_ALGO", "")]
        if ":" in given[0]:
            ctx.meta[_OWN_SETTINGS] = _options_of({given[0]: agent_type(given[0])})
        return super().parse_args(ctx, args)

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Return all parameters; for settings of one name, the option of the shipped algorithms."""
        params = super().get_params(ctx)
        known = {param.name for param in params}
        return params + [option for option in ctx.meta.get(_OWN_SETTINGS, ()) if option.name not in known]

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options in sections."""
        sections: dict[str, list[tuple[str, str]]] = {}
        for param in self.get_params(ctx):
            if isinstance(param, click.Option) and (record := param.get_help_record(ctx)) is not None:
                of = param.algorithms if isinstance(param, _SettingOption) else []
                title = f"Settings of {', '.join(of)}" if of else "Options"
                sections.setdefault(title, []).append(record)
        for title, records in sections.items():
            with formatter.section(title):
                formatter.write_dl(records)


def _setting_options(command: Callable[..., Report]) -> Callable[..., Report]:
    """Add an option for every setting of every algorithm to the command."""
    # Where click's own decorators collect parameters, in reverse order.
    vars(command).setdefault("__click_params__", []).extend(reversed(_options_of(_SHIPPED)))
    return command


def _options_of(agents: Mapping[str, type[Agent]]) -> list[click.Option]:
    """Return an option for every setting of some algorithms."""
    owners: dict[str, list[str]] = {}
    found: dict[str, tuple[dataclasses.Field[Any], Any]] = {}
    for name, agent in agents.items():
        settings = agent.learner_type.settings_type
        hints = get_type_hints(settings)
        for item in dataclasses.fields(settings):
            owners.setdefault(item.name, []).append(name)
            found[item.name] = item, hints[item.name]
    return [
        _SettingOption(
            [f"--{name.replace('_', '-')}"],
            algorithms=owners[name],
            type=Choice(get_args(hint)) if get_origin(hint) is Literal else hint,
            **({"is_flag": True, "default": None} if hint is bool else {}),
            help=f"{item.metadata.get('help', '')}  [default: {item.default}]",
        )
        for name, (item, hint) in found.items()
    ]


@click.command(cls=_TrainCommand)
@click.argument("env", shell_complete=complete_environment)
@click.option(
    "--algo",
    type=ChoiceOrOwn(sorted(_SHIPPED)),
    help="algorithm, or MODULE:NAME for one of your own  [default: treesearch for a compiled plant with "
    "set-points, plantree for all others]",
)
@click.option(
    "--total-timesteps",
    type=int,
    help=f"training steps  [default: {_STEPS:,}; of treesearch {_SEARCH_STEPS:,}]",
)
@click.option(
    "--iterations",
    type=int,
    help="instead: training episodes, each followed by an evaluation, except plantree's",
)
@click.option("--seed", type=int, help="of all randomness; drawn if not given")
@click.option(
    "--tries",
    type=int,
    default=1,
    show_default=True,
    help="train so many seeds, pick one by episodes of each, and judge it by others",
)
@click.option(
    "--selection-episodes",
    type=int,
    default=SELECTION_EPISODES,
    show_default=True,
    help="episodes of each try, by which one is picked",
)
@click.option(
    "--workers",
    type=int,
    help="processes that train the tries; the result is the same  [default: one for every core]",
)
@click.option("--out", type=click.Path(path_type=Path), help="run folder  [default: runs/ENV/ALGO/seed=SEED]")
@config_option
@click.option("--horizon", type=int, help="steps of an episode  [default: the environment's limit]")
@click.option("--levels", type=int, help="cut every dimension of a Box of actions into this many levels")
@click.option(
    "--reference",
    metavar="X,Y,...",
    callback=numbers,
    help="observation to regulate to (spaql-ts), in raw units, such as 0,0,0,0  [default: known for "
    "CartPole and Pendulum]",
)
@click.option(
    "--reward-range",
    metavar="LOW HIGH",
    type=float,
    nargs=2,
    help="learn from rewards mapped from this range to [0, 1], such as -16.3 0; not plantree  [default: as "
    "they are]",
)
@click.option(
    "--names",
    metavar="NAME,...",
    callback=names,
    help='of the observations, with their units, such as "angle [rad],speed [rad/s]"',
)
@click.option(
    "--action-names",
    metavar="NAME,...",
    callback=names,
    help='of the actions of a list, or of the numbers of an action, such as "force [N]"',
)
@click.option("--cost", metavar="EXPR", help='of a step, in place of the reward, such as "angle**2 + u**2"')
@constraint_options
@click.option("--gymnasium", is_flag=True, help="step the Gymnasium environment, not its compiled twin")
@click.option(
    "--parallel", is_flag=True, help="a process for every environment of an evaluation: for slow simulators"
)
@click.option(
    "--ray", metavar="ADDRESS", help="play the episodes of treesearch on Ray: HOST:PORT, auto, or local"
)
@click.option(
    "--step-timeout", type=float, help="seconds after which a step counts as hung  [default: no limit]"
)
@click.option(
    "--checkpoint-every",
    type=int,
    default=100,
    show_default=True,
    help="iterations after which --resume can go on",
)
@click.option(
    "--resume",
    is_flag=True,
    help="go on with the run in the run folder, up to --total-timesteps or --iterations in all",
)
@click.option("--live", is_flag=True, help="show the controller so far in a browser on this machine")
@click.option(
    "--verify",
    "verified",
    is_flag=True,
    help="at the end, prove or refute what it does for 60 s; of equal tries, keep the one proven most",
)
@quiet_option
@reports("the result")
@_setting_options
def train(
    env: str,
    algo: str | None,
    total_timesteps: int | None,
    iterations: int | None,
    seed: int | None,
    tries: int,
    selection_episodes: int,
    workers: int | None,
    out: Path | None,
    config: dict[str, Any] | None,
    horizon: int | None,
    levels: int | None,
    reference: list[float] | None,
    reward_range: tuple[float, float] | None,
    names: list[str] | None,
    action_names: list[str] | None,
    cost: str | None,
    hard: tuple[str, ...],
    soft: tuple[tuple[str, float], ...],
    gymnasium: bool,
    parallel: bool,
    ray: str | None,
    step_timeout: float | None,
    checkpoint_every: int,
    resume: bool,
    live: bool,
    verified: bool,
    quiet: bool,
    **settings: Any,
) -> Report:
    """Learn a policy for ENV and save it in a run folder.

    ENV is the id of a Gymnasium environment with Box or Discrete observations and actions; one of the
    paper's setups, pendulum, pendulum5 or cartpole200; module:id, where the module defines the
    environment, or a plant as `spaql new` writes it; a learned plant, as `spaql model` writes it (.spaql); or
    an FMU for co-simulation (.fmu), with --config.

    \b
    Examples:
      spaql train Pendulum-v1 --total-timesteps 5000 --seed 1
      spaql train Pendulum-v1 --total-timesteps 5000 --tries 8
      spaql train Acrobot-v1 --algo treesearch --total-timesteps 10000000
      spaql train Pendulum-v1 --algo treesearch --total-timesteps 1000000 --live
      spaql train plant:TwoTanks-v0 --out runs/tanks
      spaql train plant.fmu --config plant.toml --total-timesteps 3000
      spaql train CartPole-v1 --constraint "abs(pole_angle) < 0.1"
      spaql train cartpole200 --algo spaql-ts --iterations 500 --seed 1
      spaql train MountainCar-v0 --algo spaql --iterations 200 --scaling 4
      spaql train Pendulum-v1 --algo spaql --levels 5 --iterations 300
      spaql train cartpole200 --algo my_module:my_algorithm --iterations 100
    """
    if iterations is not None and total_timesteps is not None:
        raise click.UsageError("Give --total-timesteps or --iterations, not both.")
    made: dict[str, Any] = {
        "horizon": horizon,
        "levels": levels,
        "reference": reference,
        "options": config,
        "compiled": not gymnasium,
        "parallel": ray or parallel,
        "step_timeout": step_timeout,
        "observation_names": names,
        "action_names": action_names,
        "cost": cost,
        "constraints": [*hard, *soft],
    }
    problem: EnvironmentLike = env
    if algo is None:
        problem = make_problem(env, measured=False, **made)
        algo = suited(problem)
        made = {}
        if algo != "plantree" and not quiet:
            say(_CHOSEN, err=True)
    if iterations is None and total_timesteps is None:
        total_timesteps = _SEARCH_STEPS if algo == "treesearch" else _STEPS
    budget = Budget(
        total_timesteps=total_timesteps,
        iterations=iterations,
        checkpoint_every=checkpoint_every,
        selection_episodes=selection_episodes,
    )
    given = {name: value for name, value in settings.items() if value is not None}
    _check_owners(algo, given)
    agent = agent_type(algo)(problem, seed=seed, reward_range=reward_range, **made, **given)
    env = agent.problem.name  # an id without a version has got one
    name = agent.learner_type.name
    if (advice := recommended(name, total_timesteps, agent.problem)) and not quiet:
        say(advice, err=True)
    folder = out or Path("runs") / re.sub(r"[/\\:]", "-", env) / name / f"seed={agent.seed}"
    if ray is not None and (name != "treesearch" or agent.problem.dynamics is not None):
        why = f"--algo {name} plays one episode at a time" if name != "treesearch" else f"{env} is compiled"
        raise click.UsageError(f"--ray is for the episodes of treesearch in a Gymnasium environment: {why}.")
    if workers is not None and tries == 1:
        raise click.UsageError("--workers train tries: give --tries, 2 or more.")
    if live and tries != 1:
        raise click.UsageError("--live is for one training: leave out --tries.")
    if verified and agent.problem.dynamics is None:
        raise SettingError(
            f"--verify needs the equations of the plant, and {env} runs on {agent.problem.runs_on}: leave it "
            "out, or write the plant as spaql.Dynamics."
        )
    _take(folder, resume=resume)
    if tries != 1:
        with _advised(env, horizon):
            return report_tries(
                agent,
                folder,
                budget,
                tries=tries,
                workers=workers,
                fresh_episodes=_FRESH,
                resume=resume,
                same_seed=seed is not None,
                quiet=quiet,
                verified=verified,
            )
    if resume:
        refuse_tries(folder)
        agent = resumed(agent, folder, same_seed=seed is not None)
        total_timesteps, iterations = budget.left(agent)
        if not (iterations or total_timesteps):
            say(_nothing_left(agent, folder, by_steps=iterations is None), err=True)
    with StopOnInterrupt() as interrupt, _advised(env, horizon), _kept(agent, folder), _live(live) as page:
        if iterations or total_timesteps or not resume:
            agent.learn(
                total_timesteps,
                iterations=iterations,
                callback=[interrupt, page] if page is not None else interrupt,
                checkpoint=folder / CHECKPOINT_FILE,
                checkpoint_every=checkpoint_every,
                progress_bar=not quiet,
            )
        save_run(agent, folder)
        interrupt.saved()
        if page is not None and not interrupt.pressed:
            page.show(agent)
        if interrupt.pressed:
            say(
                f"Interrupted: what was learned so far is saved in {folder}; --resume goes on with it.\n"
                "Judging it now: Ctrl-C again skips that.",
                err=True,
            )
        fresh = evaluate(agent, episodes=_FRESH, seed=agent.seed + 1)
        if interrupt.pressed:
            save_run(agent, folder)  # with the policy, if the evaluation computed it
    others = None
    if isinstance(agent, PlanTree | TreeSearch) and not interrupt.pressed:
        others = plain_controllers(agent, seed=agent.seed + 1)
    result = {
        "run": str(folder),
        "env": env,
        "algorithm": agent.learner_type.name,
        "seed": agent.seed,
        **{name: plain(value) for name, value in agent.history.last().items()},
        "fresh_return": fresh.mean,
        "fresh_ci95": fresh.ci95,
        "fresh_episodes": _FRESH,
        "designed_for": agent.designed_for,
    }
    if others is not None:
        result["compared_with"] = others.returns
        result["warning"] = failure(agent, fresh, others)
    if fresh.violations:
        result["violations"] = fresh.violations
    if fresh.excursions:
        result["excursions"] = [dataclasses.asdict(one) for one in fresh.excursions]
    size, unit = agent.policy.size
    if unit == "leaf":  # the last row of the history may be older
        result["leaves"] = size
    if isinstance(agent, PlanTree | TreeSearch):
        result["mirror"] = agent.mirror
    named = f" --algo {algo}" if ":" in algo else ""
    rungs = agent.ladder if isinstance(agent, TreeSearch | PlanTree) else []
    if rungs:
        result["ladder"] = rungs
    notes = agent.design_notes if rungs and isinstance(agent, TreeSearch) else []
    if notes:
        result["design_notes"] = notes
    told = _ladder(rungs, notes)
    named = _design(agent) + named
    if isinstance(agent, PlanTree) and agent.lags is not None:
        result["lags"] = agent.lags
        told += _lags(agent.lags, climbed=bool(rungs))
    if verified:
        import spaql
        from spaql.cli.verify import store, verdict_data

        verdict = spaql.verify(agent)
        result["verified"] = verdict_data(verdict)
        named += f"\n\n{verdict.text}{store(verdict, folder)}"
    return Report(
        result,
        told + _text(result, fresh, others, agent.history.n_returns, agent.learner_type.iteration_is) + named,
        code=INTERRUPTED if interrupt.pressed else 0,
    )


def _ladder(rungs: list[dict[str, Any]], notes: list[str]) -> str:
    """Return the structures that were tried as a table, which was chosen, and the notes on the design."""
    if not rungs:
        return ""
    from spaql.evaluation.control_tables import LADDER_MEANS, ladder_cells

    means = [f"{LADDER_MEANS} See docs/ladder.md.", *notes]
    return "\n".join([aligned(ladder_cells(rungs)), *means]) + "\n\n"


def _lags(lags: list[str], *, climbed: bool) -> str:
    """Return what the state of a learned plant is, and that returns of a ladder are from it."""
    from spaql.evaluation.control_tables import LEARNED_MEANS, lags_text

    return f"{LEARNED_MEANS} {lags_text(lags)}\n\n" if climbed else f"{lags_text(lags)}\n\n"


def _design(agent: Agent) -> str:
    """Return which plants the controller was designed for, where there are perturbed ones."""
    plant = agent.problem.dynamics
    if agent.designed_for == "perturbed":
        also = " (evaluate --perturbed: of perturbed ones)" if plant is not None else ""
        return f"\n\nDesigned for perturbed plants; the fresh return is of the nominal plant{also}."
    if plant is not None and plant.perturbation is not None:
        return "\n\nDesigned for the nominal plant: the perturbation that it declares was not trained on."
    return ""


_FEW, _MANY = 20_000, 100_000
"""Below the first, PlanTree is the better choice; above the second, TreeSearch."""
_CHOSEN = (
    "The plant is compiled and declares set-points: training with --algo treesearch, which searches "
    "on it for a PI or PID controller, and adds to that."
)


def suited(problem: Problem) -> str:
    """Return the algorithm that a problem is trained with if none is named."""
    return "treesearch" if problem.dynamics is not None and problem.setpoints else "plantree"


def recommended(algo: str, steps: int | None, problem: Problem) -> str:
    """Return the advice to use another algorithm for a number of steps, if there is a better one."""
    if steps is None or algo not in ("treesearch", "plantree"):
        return ""
    if suited(problem) == "treesearch":
        return (
            "The plant is compiled and declares set-points: --algo treesearch searches on it for a PI or PID "
            "controller, and needs no learned plant."
            if algo == "plantree"
            else ""
        )
    if algo == "treesearch" and steps < _FEW:
        return (
            f"TreeSearch plays whole episodes to compare controllers, and {steps:,} steps are few for that: "
            "--algo plantree learns the plant, and needs fewer steps."
        )
    if algo == "plantree" and steps > _MANY:
        return (
            f"PlanTree is made for simulators whose steps are few or slow. Of {steps:,} steps it learns from "
            "50,000, and TreeSearch spends the rest on its tree; --algo treesearch searches from the start."
        )
    return ""


def _take(folder: Path, *, resume: bool) -> None:
    """Lock a run folder until the command ends; refuse one with a run in it, unless that is resumed."""
    from spaql.leases import held  # imports much that the help does not need

    run_files = (CHECKPOINT_FILE, MODEL_FILE, TRIES_FILE)
    if resume and not any((folder / name).exists() for name in run_files):
        raise SettingError(f"There is no run in {folder} to resume: leave out --resume.")
    if not folder.is_file():
        click.get_current_context().with_resource(held(folder))
    if not resume and folder.exists() and (not folder.is_dir() or any(folder.glob("[!.]*"))):
        raise SettingError(
            f"{folder} is there already: go on with it by --resume, name another folder with --out, or "
            "remove it."
        )


def _check_owners(algo: str, given: dict[str, Any]) -> None:
    """Refuse settings of other algorithms, naming those algorithms."""
    own = {item.name for item in dataclasses.fields(agent_type(algo).learner_type.settings_type)}
    for param in click.get_current_context().command.params:
        if isinstance(param, _SettingOption) and param.name in given and param.name not in own:
            raise SettingError(
                f"{algo} has no setting {param.name!r}: leave out {param.opts[0]}, or give --algo "
                f"{' or '.join(param.algorithms)}."
            )


def _nothing_left(agent: Agent, folder: Path, *, by_steps: bool) -> str:
    done, what, option = (
        (agent.training_steps, "training steps", "--total-timesteps")
        if by_steps
        else (agent.iterations, "iterations", "--iterations")
    )
    return f"{folder} has {done:,} {what} already, and nothing was added: to go on, give more with {option}."


@contextmanager
def _live(wanted: bool) -> Iterator[Any]:
    """Serve the page of a training, if that is wanted, and print where it is."""
    if not wanted:
        yield None
        return
    with load_hook("live")() as page:
        say(f"The controller so far is shown at {page.address}", err=True)
        yield page


@contextmanager
def _kept(agent: Agent, folder: Path) -> Iterator[None]:
    """Save what was learned before an environment fails."""
    try:
        yield
    except BadEnvironmentError as error:
        if not len(agent.history):
            raise
        save_run(agent, folder)
        raise BadEnvironmentError(
            f"{error} What was learned in {agent.training_steps:,} steps before is saved in {folder}."
        ) from error


@contextmanager
def _advised(env: str, horizon: int | None) -> Iterator[None]:
    """Add advice to run `spaql check` to errors of an environment."""
    try:
        yield
    except BadEnvironmentError as error:
        if plant_of_file(env) is not None:  # it names the variable and the time
            raise
        limit = "" if horizon is None else f" --horizon {horizon}"
        raise BadEnvironmentError(f"{error} Try `spaql check {env}{limit}`.") from error


def _cost(result: dict[str, Any], *, evaluated: bool) -> str:
    """Return what was spent on a training, by what it was spent on."""
    steps = f"{result['training_steps']:,}"
    interactions = f"{result['interactions']:,} interactions"
    if "search_steps" in result:
        parts = f"{result['search_steps']:,} of the search and {result['own_play_steps']:,} of judgements"
        return f"{interactions}, {parts}"
    return f"{steps} training steps, {interactions} {'with' if evaluated else 'and no'} evaluations"


def _best(result: dict[str, Any], returns: int, kind: str, digits: int) -> str:
    """Return the best return so far, and of how many."""
    if not returns:
        return "none  (the budget ended within the first episode)"
    return f"{number(result['best_return'], digits)}  (the best of {counted(returns, kind)}: biased upwards)"


def _text(
    result: dict[str, Any], fresh: Evaluation, others: PlainControllers | None, returns: int, iteration: str
) -> str:
    sizes = {"arms": "arm", "leaves": "leaf"}
    size = "".join(f"{counted(result[name], one)}, " for name, one in sizes.items() if name in result)
    evaluated = result["interactions"] > result["training_steps"]
    digits = places(result["fresh_return"], result["fresh_ci95"])
    best = _best(result, returns, "noisy evaluation" if evaluated else iteration, digits)
    return "\n".join(
        [
            f"fresh return  {with_interval(result['fresh_return'], result['fresh_ci95'])}"
            f"  ({result['fresh_episodes']} new episodes)",
            *([f"compared with {others.text}"] if others is not None else []),
            f"best seen     {best}",
            f"cost          {_cost(result, evaluated=evaluated)}",
            *(
                f"constraint    {text}: broken in {count:,} of {result['fresh_episodes']} new episodes"
                for text, count in result.get("violations", {}).items()
            ),
            *(f"bounds        {one.text(len(fresh.returns))}" for one in fresh.excursions),
            f"policy        {size}seed {result['seed']}, saved in {result['run']}",
            *([f"mirror        {result['mirror']}"] if result.get("mirror") else []),
            *(["", result["warning"]] if result.get("warning") else []),
            "",
            f"Next: spaql show {result['run']} --digits 3",
        ]
    )
