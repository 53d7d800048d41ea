"""`spaql warm-up`: compile in advance."""

from __future__ import annotations

import time
from contextlib import closing, suppress

import click

from spaql.cli.arguments import complete_environment, quiet_option
from spaql.cli.report import Report, reports, say
from spaql.formatting import counted, duration

_STEPS, _EFFORT = 300, 0.001
"""Length of the training that triggers compilation."""


@click.command("warm-up")
@click.argument("envs", metavar="[ENV]...", nargs=-1, shell_complete=complete_environment)
@quiet_option
@reports("what was compiled")
def warm_up(envs: tuple[str, ...], quiet: bool) -> Report:
    """Compile PlanTree now, and what ENVs need, so that the first training does not have to.

    Numba compiles spaql for this machine when it is first used, and keeps the result: for the user, or in the
    package's own folder. So an installation, an image or a classroom can be made ready beforehand. For each
    ENV a short training with PlanTree and one with SPAQL compile its plant.

    \b
    Examples:
      spaql warm-up
      spaql warm-up Pendulum-v1 plant:TwoTanks-v0
    """
    from spaql.agents import SPAQL, PlanTree
    from spaql.agents.progress import Compiling
    from spaql.errors import SettingError, UnsupportedSpaceError
    from spaql.evaluation import evaluate
    from spaql.kernels.warm_up import are_warm, kernels
    from spaql.kernels.warm_up import warm_up as compile_kernels

    began = time.perf_counter()
    new = not are_warm(kernels())
    with closing(Compiling(show=not quiet)) as compiling:
        compile_kernels(kernels(), compiling)
    for env in envs:
        if not quiet:
            say(f"compiling what {env} needs", err=True)
        with suppress(UnsupportedSpaceError, SettingError):
            agent = PlanTree(env, seed=0, effort=_EFFORT)
            evaluate(agent.learn(total_timesteps=_STEPS, progress_bar=False), episodes=1)
        with suppress(UnsupportedSpaceError):
            evaluate(SPAQL(env, seed=0, rollouts=1).learn(iterations=1, progress_bar=False), episodes=1)
    count = len(kernels())
    seconds = time.perf_counter() - began
    data = {"kernels": count, "compiled": new, "environments": list(envs), "seconds": seconds}
    done = f"{counted(count, 'kernel')} {'compiled' if new else 'were compiled already'}"
    also = f", and all that {', '.join(envs)} needs" if envs else ""
    return Report(data, f"{done}{also}: {duration(seconds)}.")
