"""Maps of a policy over two of its observations: actions, values, and episodes."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium.spaces import Discrete
from numpy.typing import NDArray

from spaql.errors import SettingError
from spaql.evaluation.episodes import Playable
from spaql.figures.axis import Axis, Floats, find_axis
from spaql.figures.colours import choice_colours, number_map, paler
from spaql.figures.drawing import register
from spaql.figures.scene import Scene, partition_policy, set_scene
from spaql.figures.style import multiples_of_pi, new_figure
from spaql.formatting import counted
from spaql.kernels.partition.lookup import greedy_balls
from spaql.problems import EnvironmentLike
from spaql.spaces import find_observation, split_unit

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_INK = "#222222"
"""Of episodes, and of the outlines of balls."""
_AVERAGED = 64
"""The number of states that a map is averaged over, at most."""
_ROUNDING = 1e-12
"""Relative tolerance: Q is a mean that is updated step by step."""
SHOWN = ("action", "value")
_AT_THE_CLIP = "reward of one step and bonus, not values"


@dataclass(frozen=True)
class AxisRange:
    """An axis of a map."""

    label: str
    low: float
    high: float
    turns: bool
    """Whether it is an angle in rad."""


@dataclass(frozen=True)
class Outline:
    """The states of a ball, clipped to the map."""

    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True)
class Piece:
    """Places that are joined by a line."""

    x: tuple[float, ...]
    y: tuple[float, ...]


@dataclass(frozen=True)
class Trail:
    """The path of an episode; in pieces, where an angle passes half a turn."""

    pieces: tuple[Piece, ...]
    total: float
    """The return."""
    terminated: bool


@dataclass(frozen=True)
class MapRecord:
    """The data of a map: a number for each place of a grid, row by row from the lowest y."""

    title: str
    note: str
    shows: str
    """`action` or `value`."""
    x: AxisRange
    y: AxisRange
    values: tuple[tuple[float, ...], ...]
    """At the centre of each place: the index of the most frequent discrete action, or a mean."""
    share: tuple[tuple[float, ...], ...]
    """The share of that action; empty if it is the only one, or not discrete."""
    choices: tuple[str, ...]
    """The discrete actions; empty for numbers."""
    label: str
    """Of the numbers."""
    low: float
    """Of the colours."""
    high: float
    balls: tuple[Outline, ...] = ()
    trails: tuple[Trail, ...] = ()


@dataclass(frozen=True, eq=False)
class Plane:
    """The plane of a map: its axes, and the states from which all other observations are taken."""

    x: Axis
    y: Axis
    states: Floats
    fixed: str
    """A description of how the other observations are fixed."""
    placed: frozenset[int] = frozenset()
    """The numbers on an axis, or fixed."""

    def grid(self, state: Floats, n: int) -> Floats:
        """Return the observations at the centres of n × n places, row by row from the lowest y."""
        at_x, at_y = (
            axis.low + (np.arange(n) + 0.5) / n * (axis.high - axis.low) for axis in (self.x, self.y)
        )
        rows = np.tile(state, (n * n, 1))
        for axis, places in ((self.x, np.tile(at_x, n)), (self.y, np.repeat(at_y, n))):
            for index, values in axis.put(places).items():
                rows[:, index] = values
        return rows


def compute_map(
    agent: Playable,
    x: str | int | Axis,
    y: str | int | Axis,
    env: EnvironmentLike | None = None,
    *,
    shows: str = "action",
    action: int = 0,
    at: Mapping[str | int, float] | None = None,
    x_limits: tuple[float, float] | None = None,
    y_limits: tuple[float, float] | None = None,
    step: int | None = None,
    episodes: int = 20,
    seed: int = 0,
    resolution: int = 240,
) -> MapRecord:
    """Return a map of a policy over two of its observations, or features.

    Observations that are neither on an axis nor in `at` are averaged over states that the policy visits: of
    discrete actions the most frequent one is shown, and its share. So is the memory of a controller, and with
    it the features, unless these are placed themselves.

    Parameters
    ----------
    agent
        An agent, a policy or a controller.
    x, y
        Observations, by name (its unit may be left out) or number; where `cos(angle)` and `sin(angle)` are
        observed, also `angle`; or any `Axis`.
    env
        Where to play episodes; the agent's own problem by default, and none for a policy or tree.
    shows
        `action`, without sampling; or of a partition the `value`, which is the highest Q of a state. Where no
        Q is below the horizon, as with rewards of 0 or more, Q depends on the visits alone, and the title and
        note say so.
    action
        Which number of a Box of actions.
    at
        Observations that are fixed, by name or number.
    x_limits, y_limits
        Ends of the axes; those of the visited states by default, and a whole turn for an angle.
    step
        The time step, of a policy that depends on it (AQL).
    episodes, seed
        Of the episodes, which are played with deterministic actions.
    resolution
        Places on each axis.

    Examples
    --------
    >>> import spaql
    >>> agent = spaql.SPAQL("pendulum5", rollouts=5, seed=1).learn(iterations=5, progress_bar=False)
    >>> record = compute_map(agent, "angle", "speed", resolution=4)
    >>> record.x.label, record.y.label, len(record.values), record.label
    ('angle [rad]', 'speed [rad/s]', 4, 'torque [Nm]')
    """
    scene = set_scene(agent, env, step=step, episodes=episodes, seed=seed)
    plane = lay_out(scene, (x, y), (x_limits, y_limits), at or {})
    return chart(scene, plane, shows, action, resolution)


def lay_out(
    scene: Scene,
    axes: tuple[str | int | Axis, str | int | Axis],
    limits: tuple[tuple[float, float] | None, tuple[float, float] | None],
    at: Mapping[str | int, float],
    *,
    averaged: bool = True,
) -> Plane:
    """Return the axes and the states of a map; without averaging there is one state, the median."""
    names = scene.observations
    visited = scene.visited
    x, y = (
        find_axis(wanted, names, scene.axis_space, visited, ends)
        for wanted, ends in zip(axes, limits, strict=True)
    )
    laid = [set(axis.put(np.zeros(1))) for axis in (x, y)]
    if laid[0] & laid[1]:
        raise SettingError(f"Both axes are {x.label}: give two different ones.")
    fixed = {find_observation(name, names): float(value) for name, value in at.items()}
    if both := [names[j] for j in fixed if j in laid[0] | laid[1]]:
        raise SettingError(f"{both[0]} is on an axis and cannot be fixed as well: leave out one of the two.")
    placed = laid[0] | laid[1] | fixed.keys()
    free = scene.free(placed)
    if free and visited is None:
        raise SettingError(
            f"{names[free[0]]} is neither on an axis nor fixed: give it in at, or an environment to play "
            "episodes in."
        )
    states = scene.blank
    if (free or scene.policy.remembers) and visited is not None:
        states = visited[np.unique(np.linspace(0, len(visited) - 1, _AVERAGED).astype(np.int64))]
        if not averaged:
            states = np.median(visited, axis=0, keepdims=True)
            fixed |= {j: float(states[0, j]) for j in free}
            free = []
    for j, value in fixed.items():
        states[:, j] = value
    parts = [_fixed(names[j], value) for j, value in fixed.items()]
    if len(states) > 1:
        others = ", ".join([*(split_unit(names[j])[0] for j in free), *["memory"] * scene.policy.remembers])
        parts.append(
            f"{others} averaged over {counted(len(states), 'state')} of "
            f"{counted(len(scene.played), 'episode')}"
        )
    return Plane(x, y, states, "; ".join(parts), frozenset(placed))


def _fixed(name: str, value: float) -> str:
    plain, unit = split_unit(name)
    return f"{plain} {f'{value:.3g}'.replace('-', '−')} {unit}".rstrip()


def chart(scene: Scene, plane: Plane, shows: str, action: int, resolution: int) -> MapRecord:
    """Return the map of a plane."""
    if shows not in SHOWN:
        raise SettingError(f"A map shows {', '.join(SHOWN)}, and not {shows!r}.")
    note = [f"With {plane.fixed}."] if plane.fixed else []
    share: tuple[tuple[float, ...], ...] = ()
    choices: tuple[str, ...] = ()
    label = ""
    subject = "what the policy does"
    if shows == "value":
        values = _mean(plane, resolution, _highest_q(scene))
        label = "highest Q"
        subject = "the highest Q"
        if _is_at_the_clip(scene):
            subject = _AT_THE_CLIP
            note.append(
                f"No Q is below the horizon H = {scene.horizon}, so V = min(H, max Q) is {scene.horizon} in "
                "every state: it does not rank\nstates. Q − H is the mean reward of one "
                "step plus a bonus that falls with visits."
            )
        low = float(values.min())
        high = float(values.max())
    elif isinstance(scene.action_space, Discrete):
        values, shares = _most_frequent(scene, plane, resolution)
        choices = scene.actions
        low = 0.0
        high = float(len(scene.actions) - 1)
        if len(plane.states) > 1:
            share = _rows(shares, resolution)
            note.append("The most frequent action; paler where it is less frequent.")
    else:
        if not 0 <= action < len(scene.actions):
            raise SettingError(f"An action has {len(scene.actions)} numbers, counted from 0.")
        values = _mean(plane, resolution, lambda rows: scene.act(rows, plane.placed)[:, action])
        low, high = (float(end.ravel()[action]) for end in (scene.action_space.low, scene.action_space.high))
        label = scene.actions[action]
    return MapRecord(
        f"{scene.title}: {subject}",
        "\n".join(note),
        shows,
        axis_range(plane.x),
        axis_range(plane.y),
        _rows(values, resolution),
        share,
        choices,
        label,
        low,
        high,
    )


def axis_range(axis: Axis) -> AxisRange:
    """Return an axis as it is written in a record."""
    return AxisRange(axis.label, axis.low, axis.high, axis.turns)


def _rows(values: NDArray[np.float64], n: int) -> tuple[tuple[float, ...], ...]:
    """Return the numbers of a grid as rows."""
    return tuple(tuple(row) for row in values.reshape(n, n).tolist())


def _mean(plane: Plane, n: int, function: Callable[[Floats], Floats]) -> Floats:
    total = np.zeros(n * n)
    for state in plane.states:
        total += function(plane.grid(state, n))
    return total / len(plane.states)


def _most_frequent(scene: Scene, plane: Plane, n: int) -> tuple[Floats, Floats]:
    counts = np.zeros((n * n, len(scene.actions)))
    for state in plane.states:
        counts[np.arange(n * n), scene.act(plane.grid(state, n), plane.placed).ravel().astype(np.int64)] += 1
    return counts.argmax(axis=1).astype(np.float64), counts.max(axis=1) / len(plane.states)


def _highest_q(scene: Scene) -> Callable[[Floats], Floats]:
    policy = partition_policy(scene.policy, "a value")
    balls = policy.partition.balls
    return lambda rows: balls.q[greedy_balls(balls, scene.step, policy.states.state_map, rows)]


def _is_at_the_clip(scene: Scene) -> bool:
    """Return whether every Q is at least the horizon, so that V = min(H, max Q) is H in every state."""
    balls = partition_policy(scene.policy, "a value").partition.balls
    known = balls.q[: balls.counts[0]]
    return scene.horizon is not None and bool(known.min() >= scene.horizon * (1.0 - _ROUNDING))


def draw_map(record: MapRecord) -> Figure:
    """Draw a map, with a key to its colours on the right."""
    figure = new_figure(record.title, record.note, 5.2, width=7.2)
    ax = figure.subplots()
    extent = (record.x.low, record.x.high, record.y.low, record.y.high)
    image = ax.imshow(
        _pixels(record), extent=extent, origin="lower", aspect="auto", interpolation="none", **_scale(record)
    )
    ax.grid(visible=False)
    _draw_balls(ax, record)
    for trail in record.trails:
        _draw_trail(ax, trail)
    x = record.x
    y = record.y
    ax.set(xlabel=x.label, ylabel=y.label, xlim=(x.low, x.high), ylim=(y.low, y.high))
    for axis, along in ((ax.xaxis, x), (ax.yaxis, y)):
        if along.turns:
            _mark_turns(axis)
    _explain_colours(figure, ax, record, image)
    return figure


def _explain_colours(figure: Figure, ax: Axes, record: MapRecord, image: Any) -> None:
    """Draw a legend or colour bar next to the axes."""
    from matplotlib.patches import Patch

    if not record.choices:
        figure.colorbar(image, ax=ax, label=record.label)
        return
    colours = choice_colours(len(record.choices))
    patches = [Patch(facecolor=c, label=name) for c, name in zip(colours, record.choices, strict=True)]
    figure.legend(handles=patches, loc="outside right upper")


def _pixels(record: MapRecord) -> Any:
    values = np.array(record.values)
    if not record.choices:
        return values
    n = len(record.choices)
    colours = choice_colours(n)[values.astype(np.int64)]
    return paler(colours, np.array(record.share), n) if record.share else colours


def _scale(record: MapRecord) -> dict[str, Any]:
    from matplotlib.colors import Normalize

    if record.choices:
        return {}
    colours = "viridis" if record.shows == "value" else number_map(record.low, record.high)
    return {"norm": Normalize(record.low, record.high), "cmap": colours}


def _draw_balls(ax: Axes, record: MapRecord) -> None:
    from matplotlib.collections import PatchCollection
    from matplotlib.patches import Rectangle

    shapes = [Rectangle((ball.x, ball.y), ball.width, ball.height) for ball in record.balls]
    ax.add_collection(PatchCollection(shapes, facecolor="none", edgecolor=_INK, linewidth=0.5))


def _draw_trail(ax: Axes, trail: Trail) -> None:
    """Draw an episode in dark ink with a light border, so that it is visible on every colour."""
    for colour, width in (("white", 1.8), (_INK, 0.8)):
        for piece in trail.pieces:
            ax.plot(piece.x, piece.y, color=colour, linewidth=width, solid_joinstyle="round")
    first = trail.pieces[0]
    last = trail.pieces[-1]
    ax.plot(first.x[0], first.y[0], "o", color=_INK, markerfacecolor="white", markersize=5)
    ax.plot(
        last.x[-1],
        last.y[-1],
        "X" if trail.terminated else "o",
        color=_INK,
        markeredgecolor="white",
        markersize=6,
        zorder=3,
    )


def _mark_turns(axis: Any) -> None:
    from matplotlib.ticker import MultipleLocator

    axis.set_major_locator(MultipleLocator(math.pi))
    axis.set_major_formatter(multiples_of_pi)


register("map", MapRecord, draw_map)
