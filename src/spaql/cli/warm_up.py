"""`spaql warm-up`: compile in advance."""

from __future__ import annotations

import time

import click

from spaql.cli.arguments import quiet_option
from spaql.cli.command import command
from spaql.cli.report import Report
from spaql.formatting import duration

_ENVS = ("CartPole-v1", "Pendulum-v1")
"""Discrete actions, and a range of them: each needs kernels of its own."""


@command("what was compiled")
@quiet_option
def warm_up(quiet: bool) -> Report:
    """Compile what the algorithms need, before the first training.

    Numba compiles spaql for this machine on first use and caches the result, for the user or in the
    package's own folder. This command prepares an installation, an image or a classroom in advance: it trains
    each algorithm for a moment.
    """
    import spaql

    began = time.perf_counter()
    trained = []
    for agent, steps, settings in (
        (spaql.SPAQL, 400, {"rollouts": 1}),
        (spaql.TreeSearch, 20_000, {}),
        (spaql.PlanTree, 400, {"effort": 0.01}),
    ):
        for env in _ENVS:
            trained.append(f"{agent.__name__} on {env}")
            if not quiet:
                click.echo(f"compiling: {trained[-1]}", err=True)
            agent(env, seed=0, **settings).learn(total_timesteps=steps, progress_bar=False)
    seconds = time.perf_counter() - began
    return Report(
        {"trained": trained, "seconds": seconds}, f"All algorithms are compiled: {duration(seconds)}."
    )
