"""`spaql train`: learn a policy, and leave a run folder."""

from __future__ import annotations

import dataclasses
import json
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

import click

from spaql.cli.report import numbers, plain, shown_return
from spaql.errors import SettingError
from spaql.training import Agent, agent_types, evaluate
from spaql.training.run_folder import CHECKPOINT_FILE, resumed, save_run

_FRESH = 100
"""New episodes by which the result is judged."""


def _setting_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give the command an option for every setting of every algorithm."""
    owners: dict[str, list[str]] = {}
    found: dict[str, tuple[dataclasses.Field[Any], Any]] = {}
    for name, agent in agent_types().items():
        settings = agent.learner_type.settings_type
        hints = get_type_hints(settings)
        for item in dataclasses.fields(settings):
            owners.setdefault(item.name, []).append(name)
            found[item.name] = item, hints[item.name]
    for name, (item, hint) in reversed(found.items()):
        kind = click.Choice(get_args(hint)) if get_origin(hint) is Literal else hint
        only = "" if len(owners[name]) == len(agent_types()) else f" ({', '.join(owners[name])})"
        option = click.option(
            f"--{name.replace('_', '-')}",
            type=kind,
            help=f"{item.metadata['help']}{only}  [default: {item.default}]",
        )
        command = option(command)
    return command


@contextmanager
def _stop_on_interrupt() -> Iterator[Callable[[Agent, dict[str, float]], bool]]:
    """Give a callback that ends training after the iteration in which Ctrl-C was pressed."""
    pressed = False

    def on_interrupt(number: int, frame: Any) -> None:
        nonlocal pressed
        pressed = True
        signal.signal(signal.SIGINT, signal.default_int_handler)

    before = signal.signal(signal.SIGINT, on_interrupt)
    try:
        yield lambda agent, row: not pressed
    finally:
        signal.signal(signal.SIGINT, before)
    if pressed:
        click.echo("Interrupted: what was learned so far is saved.", err=True)


@click.command()
@click.argument("env")
@click.option(
    "--algo", type=click.Choice(sorted(agent_types())), default="spaql", show_default=True, help="algorithm"
)
@click.option(
    "--iterations", type=int, help="training episodes, each followed by an evaluation  [default: 100]"
)
@click.option("--total-timesteps", type=int, help="instead: training steps")
@click.option("--seed", type=int, help="of all randomness; drawn if not given")
@click.option("--out", type=click.Path(path_type=Path), help="run folder  [default: runs/ENV/ALGO/seed=SEED]")
@click.option("--horizon", type=int, help="steps of an episode  [default: the environment's limit]")
@click.option("--levels", type=int, help="cut every dimension of a Box of actions into this many levels")
@click.option(
    "--reference",
    callback=numbers,
    help="observation to regulate to (spaql-ts), in raw units, such as 0,0,0,0  [default: known for "
    "CartPole and Pendulum]",
)
@click.option("--gymnasium", is_flag=True, help="step the Gymnasium environment, not its compiled twin")
@click.option(
    "--parallel", is_flag=True, help="a process for every environment of an evaluation: for slow simulators"
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
    "--resume", is_flag=True, help="go on with the run in the run folder, up to --iterations in all"
)
@_setting_options
@click.option("--json", "as_json", is_flag=True, help="print the result as JSON")
@click.option("--quiet", is_flag=True, help="show no progress")
def train(
    env: str,
    algo: str,
    iterations: int | None,
    total_timesteps: int | None,
    seed: int | None,
    out: Path | None,
    horizon: int | None,
    levels: int | None,
    reference: list[float] | None,
    gymnasium: bool,
    parallel: bool,
    step_timeout: float | None,
    checkpoint_every: int,
    resume: bool,
    as_json: bool,
    quiet: bool,
    **settings: Any,
) -> None:
    """Learn a policy for ENV and save it in a run folder.

    ENV is the id of a Gymnasium environment with Box or Discrete observations and Box or Discrete
    actions, one of the paper's setups (pendulum, pendulum5, cartpole200), or a learned plant that
    `spaql model` has written as .spaql.

    \b
    Examples:
      spaql train cartpole200 --algo spaql-ts --iterations 300
      spaql train MountainCar-v0 --iterations 200 --scaling 4
      spaql train Pendulum-v1 --levels 5 --seed 1 --out runs/pendulum
      spaql train Pendulum-v1 --algo plantree --total-timesteps 5000
    """
    if iterations is None and total_timesteps is None:
        iterations = 100
    given = {name: value for name, value in settings.items() if value is not None}
    agent = agent_types()[algo](
        env,
        seed=seed,
        horizon=horizon,
        levels=levels,
        reference=reference,
        compiled=not gymnasium,
        parallel=parallel,
        step_timeout=step_timeout,
        **given,
    )
    folder = out or Path("runs") / env.replace("/", "-") / algo / f"seed={agent.seed}"
    if resume:
        agent = resumed(agent, folder, same_seed=seed is not None)
        iterations = iterations and iterations - agent.iterations
        total_timesteps = total_timesteps and total_timesteps - agent.training_steps
    elif folder.exists() and (not folder.is_dir() or any(folder.glob("[!.]*"))):
        raise SettingError(
            f"{folder} is there already: go on with it by --resume, name another folder with --out, or "
            "remove it."
        )
    if not resume or (iterations or total_timesteps or 0) > 0:
        with _stop_on_interrupt() as go_on:
            agent.learn(
                iterations,
                total_timesteps=total_timesteps,
                callback=go_on,
                checkpoint=folder / CHECKPOINT_FILE,
                checkpoint_every=checkpoint_every,
                progress_bar=not quiet,
            )
    save_run(agent, folder)
    fresh = evaluate(agent, episodes=_FRESH, seed=agent.seed + 1)
    result = {
        "run": str(folder),
        "env": env,
        "algorithm": algo,
        "seed": agent.seed,
        **{name: plain(value) for name, value in agent.history.last().items()},
        "fresh_return": fresh.mean,
        "fresh_ci95": fresh.ci95,
        "fresh_episodes": _FRESH,
    }
    click.echo(json.dumps(result) if as_json else _report(result))


def _report(result: dict[str, Any]) -> str:
    size = "".join(f"{result[name]:,} {name}, " for name in ("arms", "leaves") if name in result)
    evaluated = result["interactions"] > result["training_steps"]
    of = (
        f"{result['iteration'] + 1:,} noisy evaluations" if evaluated else f"{result['iteration']:,} episodes"
    )
    return "\n".join(
        [
            f"fresh return  {shown_return(result['fresh_return'], result['fresh_ci95'])}"
            f"  ({result['fresh_episodes']} new episodes)",
            f"best seen     {result['best_return']:.1f}  (the best of {of}: biased upwards)",
            f"cost          {result['training_steps']:,} training steps, {result['interactions']:,} "
            "interactions "
            f"{'with' if evaluated else 'and no'} evaluations",
            f"policy        {size}seed {result['seed']}, saved in {result['run']}",
            "",
            f"Next: spaql evaluate {result['run']} --episodes 500",
        ]
    )
