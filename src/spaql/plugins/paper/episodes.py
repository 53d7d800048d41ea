"""One episode under each policy, from the same start (figures 3, 5 and 8 of the paper)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from spaql.agents import load
from spaql.controllers import Policy, RandomPolicy
from spaql.figures.drawing import register
from spaql.figures.style import COLOURS, GREY, multiples_of_pi, name_of, new_figure, number
from spaql.plugins.paper.study import ALGORITHMS, Size, long_runs
from spaql.plugins.sweeps.groups import check_finished, fresh_returns
from spaql.plugins.sweeps.run import Run
from spaql.plugins.sweeps.store import RunStore
from spaql.problems import Problem, make_problem
from spaql.simulate import record

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_FALLEN = math.radians(12)
"""The angle from which CartPole's pole counts as fallen."""
_NEAR = 0.1
"""Share of a turn within which a pendulum counts as upright."""
_SEED = 34
"""Of the initial state, in which Pendulum hangs almost straight down, and of the sampled actions."""


@dataclass(frozen=True)
class EpisodeTrace:
    """One episode of a policy."""

    algorithm: str
    run: str
    """The run of the agent: the median one by fresh return, the lower of two; empty for Random."""
    fresh_return: float | None
    total: float
    """The return of this episode."""
    ending: str
    """Why it ended before the horizon, if it did."""
    angle: tuple[float, ...]
    """In rad, before each action and after the last."""
    action: tuple[float, ...]


@dataclass(frozen=True)
class EpisodesRecord:
    """The data of a figure of episodes."""

    title: str
    note: str
    problem: str
    seed: int
    horizon: int
    start: tuple[float, ...]
    """The first observation."""
    traces: tuple[EpisodeTrace, ...]


@dataclass(frozen=True)
class _Plant:
    """How to read a plant's angle and action, and how to draw them."""

    angle: Callable[[NDArray[np.float64]], NDArray[np.float64]]
    angle_label: str
    action_label: str
    begins: str
    """A description of the initial state."""
    dashed: str
    """The meaning of the dashed lines."""
    ending: Callable[[float], str] = lambda angle: ""
    """Why an episode was terminated at this angle."""
    action_values: tuple[float, ...] = ()
    """The values of discrete actions."""


_PENDULUM = _Plant(
    angle=lambda seen: np.unwrap(np.arctan2(seen[:, 1], seen[:, 0])),
    angle_label="angle [rad]",
    action_label="torque [Nm]",
    begins="hanging almost straight down",
    dashed="upright, 2πk rad",
)
_CARTPOLE = _Plant(
    angle=lambda seen: seen[:, 2],
    angle_label="pole angle [rad]",
    action_label="push, 10 N",
    begins="almost upright",
    dashed="±12°, where the pole counts as fallen",
    ending=lambda angle: "pole falls" if abs(angle) > _FALLEN else "cart leaves the track",
    action_values=(-10.0, 10.0),
)
_PLANTS: Mapping[str, _Plant] = MappingProxyType(
    {"pendulum": _PENDULUM, "pendulum5": _PENDULUM, "cartpole200": _CARTPOLE}
)


def compute_episodes(store: RunStore, size: Size, problem: str, title: str) -> EpisodesRecord:
    """Return the record of a problem: Random, then the median agent of each algorithm."""
    runs = [run for run in long_runs(size) if run.problem == problem]
    check_finished(store, runs)
    made = make_problem(problem)
    traces = [_trace(RandomPolicy(made.states, made.actions), made, problem, "random", "", None)]
    for algorithm in ALGORITHMS:
        run, fresh = _median(store, [run for run in runs if run.algorithm == algorithm])
        policy = load(store.folder(run)).policy
        traces.append(_trace(policy, made, problem, algorithm, run.id, fresh))
    with closing(made.make()) as env:
        start, _ = env.reset(seed=_SEED)
    plant = _PLANTS[problem]
    note = (
        f"Each algorithm plays its median agent of {size.seeds} by fresh return.\n"
        f"All begin in the same state, {plant.begins}. Dashed: {plant.dashed}."
    )
    return EpisodesRecord(
        title, note, problem, _SEED, made.horizon, tuple(float(x) for x in start), tuple(traces)
    )


def _median(store: RunStore, runs: list[Run]) -> tuple[Run, float]:
    fresh = fresh_returns(store, runs)
    middle = int(np.argsort(fresh, kind="stable")[(len(runs) - 1) // 2])
    return runs[middle], float(fresh[middle])


def _trace(
    policy: Policy, made: Problem, problem: str, algorithm: str, run: str, fresh: float | None
) -> EpisodeTrace:
    """Play an episode in Gymnasium's environment; actions are sampled as in evaluations."""
    plant = _PLANTS[problem]
    (played,) = record(policy, made, [_SEED], np.random.default_rng([_SEED, 1]))
    actions = [float(np.ravel(action)[0]) for action in played.actions]
    if plant.action_values:
        actions = [plant.action_values[int(action)] for action in actions]
    angle = plant.angle(played.observations).tolist()
    ending = plant.ending(angle[-1]) if played.terminated else ""
    return EpisodeTrace(algorithm, run, fresh, played.total, ending, tuple(angle), tuple(actions))


def draw_episodes(record: EpisodesRecord) -> Figure:
    """Draw a row for each policy: the angle on the left, the action on the right."""
    plant = _PLANTS[record.problem]
    n = len(record.traces)
    figure = new_figure(record.title, record.note, 0.9 + 1.5 * n)
    axes = figure.subplots(n, 2, sharex=True, sharey="col")
    for (left, right), trace in zip(axes, record.traces, strict=True):
        _draw_angle(left, trace)
        if plant.action_values:
            _draw_pushes(right, trace)
        else:
            colour = COLOURS[trace.algorithm]
            right.step(range(len(trace.action)), trace.action, where="post", color=colour, linewidth=0.8)
        left.set_ylabel(plant.angle_label)
        right.set_ylabel(plant.action_label)
    axes[0, 0].set_xlim(0, record.horizon)
    for ax in axes[-1]:
        ax.set_xlabel("time step")
    if plant is _PENDULUM:
        _mark_upright(axes[:, 0])
    else:
        _mark_limits(axes[:, 0])
    return figure


def _draw_angle(ax: Axes, trace: EpisodeTrace) -> None:
    colour = COLOURS[trace.algorithm]
    steps = len(trace.action)
    ax.plot(trace.angle, color=colour)
    ending = f", {trace.ending} at step {steps}" if trace.ending else ""
    ax.set_title(f"{name_of(trace.algorithm)}: return {number(trace.total)}{ending}", color=colour)
    if trace.ending:
        ax.plot(steps, trace.angle[-1], "x", color=colour, markersize=6, markeredgewidth=2, clip_on=False)


def _draw_pushes(ax: Axes, trace: EpisodeTrace) -> None:
    """Draw a line for each push: upwards to the right, downwards to the left."""
    middles = np.arange(len(trace.action)) + 0.5
    ax.vlines(middles, 0.0, trace.action, color=COLOURS[trace.algorithm], linewidth=0.9)
    ax.set_yticks([-10, 10], ["left", "right"])
    ax.grid(visible=False)


def _mark_upright(axes: Sequence[Axes]) -> None:
    """Mark the angles at which a pendulum is upright, 2 pi k, and show those that it came near to."""
    from matplotlib.ticker import MultipleLocator

    low = min(ax.dataLim.y0 for ax in axes) / math.tau
    high = max(ax.dataLim.y1 for ax in axes) / math.tau
    first = math.floor(low + _NEAR)
    last = math.ceil(high - _NEAR)
    for ax in axes:
        for turn in range(first, last + 1):
            ax.axhline(turn * math.tau, color=GREY, linestyle="--", linewidth=1.0, zorder=1)
        ax.grid(visible=False)
    axes[0].set_ylim(math.tau * (min(first, low) - _NEAR), math.tau * (max(last, high) + _NEAR))
    axes[0].yaxis.set_major_locator(MultipleLocator(math.tau))
    axes[0].yaxis.set_major_formatter(multiples_of_pi)


def _mark_limits(axes: Sequence[Axes]) -> None:
    """Mark the angles at which a pole counts as fallen."""
    for ax in axes:
        for limit in (-_FALLEN, _FALLEN):
            ax.axhline(limit, color=GREY, linestyle="--", linewidth=1.0, zorder=1)
        ax.set_yticks([-0.2, 0.0, 0.2], ["−0.2", "0", "0.2"])


register("episodes", EpisodesRecord, draw_episodes)
