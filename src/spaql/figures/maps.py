"""Maps of a policy over two of its observations: actions, values, balls, and episodes."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium.spaces import Discrete
from numpy.typing import NDArray

from spaql.errors import SettingError
from spaql.evaluation.episodes import Playable
from spaql.figures.drawing import register
from spaql.figures.scene import Axis, Floats, Plane, Scene, lay_out, partition_policy, set_scene
from spaql.figures.style import choice_colours, multiples_of_pi, new_figure, number_map, paler
from spaql.formatting import counted
from spaql.kernels.partition.lookup import greedy_balls
from spaql.problems import EnvironmentLike

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_INK = "#222222"
"""Of episodes, and of the outlines of balls."""
_ROUNDING = 1e-12
"""Relative tolerance: Q is a mean that is updated step by step."""
SHOWN = MappingProxyType({"action": 20, "value": 20, "balls": 20, "phase": 8})
"""What a map shows, with the number of episodes."""
_FINEST = 1.0 - 2.0**-32
"""The last coordinate of the cube, which belongs to its last ball."""


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
    x: Axis
    y: Axis
    values: tuple[tuple[float, ...], ...] = ()
    """At the centre of each place: the index of the most frequent discrete action, or a mean."""
    share: tuple[tuple[float, ...], ...] = ()
    """The share of that action; empty if it is the only one, or not discrete."""
    choices: tuple[str, ...] = ()
    """The discrete actions; empty for numbers."""
    label: str = ""
    """Of the numbers."""
    low: float = 0.0
    """Of the colours of numbers."""
    high: float = 0.0
    balls: tuple[Outline, ...] = ()
    trails: tuple[Trail, ...] = ()


def compute_map(
    agent: Playable,
    x: str | int,
    y: str | int,
    env: EnvironmentLike | None = None,
    *,
    shows: str = "action",
    action: int = 0,
    at: Mapping[str | int, float] | None = None,
    x_limits: tuple[float, float] | None = None,
    y_limits: tuple[float, float] | None = None,
    step: int | None = None,
    episodes: int | None = None,
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
        observed, also `angle`.
    env
        Where to play episodes; the agent's own problem by default, and none for a policy or tree.
    shows
        `action`, without sampling; `phase`, the same with the episodes as trails; of a partition, `balls`,
        the same with the balls that contain the states, for any action, and all other observations at their
        median over the visited states; or `value`, the highest Q of a state. Where no Q is below the horizon,
        as with rewards of 0 or more, Q depends on the visits alone, and the title and note say so.
    action
        Which number of a Box of actions.
    at
        Observations that are fixed, by name or number.
    x_limits, y_limits
        Ends of the axes; those of the visited states by default, and a whole turn for an angle.
    step
        The time step, of a policy that depends on it (AQL).
    episodes, seed
        Of the episodes, which are played with deterministic actions; 20 by default, and 8 for a phase
        portrait.
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
    if shows not in SHOWN:
        raise SettingError(f"A map shows {', '.join(SHOWN)}, and not {shows!r}.")
    episodes = SHOWN[shows] if episodes is None else episodes
    scene = set_scene(agent, env, step=step, episodes=episodes, seed=seed)
    plane = lay_out(scene, (x, y), (x_limits, y_limits), at or {}, averaged=shows != "balls")
    if shows == "value":
        return _value_map(scene, plane, resolution)
    record = _action_map(scene, plane, action, resolution)
    if shows == "balls":
        return _with_balls(record, scene, plane)
    return _with_trails(record, scene, plane) if shows == "phase" else record


def _value_map(scene: Scene, plane: Plane, resolution: int) -> MapRecord:
    """Return the map of the highest Q."""
    values = _mean(plane, resolution, _highest_q(scene))
    note = [f"With {plane.fixed}."] if plane.fixed else []
    subject = "the highest Q"
    if _is_at_the_clip(scene):
        subject = "reward of one step and bonus, not values"
        note.append(
            f"No Q is below the horizon H = {scene.horizon}, so V = min(H, max Q) is {scene.horizon} in "
            "every state: it does not rank\nstates. Q − H is the mean reward of one "
            "step plus a bonus that falls with visits."
        )
    return MapRecord(
        title=f"{scene.title}: {subject}",
        note="\n".join(note),
        shows="value",
        x=plane.x,
        y=plane.y,
        values=_rows(values, resolution),
        label="highest Q",
        low=float(values.min()),
        high=float(values.max()),
    )


def _action_map(scene: Scene, plane: Plane, action: int, resolution: int) -> MapRecord:
    """Return the map of the most frequent discrete action, or of the mean of a component of the action."""
    record = MapRecord(
        title=f"{scene.title}: what the policy does",
        note=f"With {plane.fixed}." if plane.fixed else "",
        shows="action",
        x=plane.x,
        y=plane.y,
    )
    if isinstance(scene.action_space, Discrete):
        values, shares = _most_frequent(scene, plane, resolution)
        record = replace(record, values=_rows(values, resolution), choices=scene.actions)
        if len(plane.states) == 1:
            return record
        note = f"{record.note}\nThe most frequent action; paler where it is less frequent."
        return replace(record, share=_rows(shares, resolution), note=note)
    if not 0 <= action < len(scene.actions):
        raise SettingError(f"An action has {len(scene.actions)} components, counted from 0.")
    values = _mean(plane, resolution, lambda rows: scene.act(rows, plane.placed)[:, action])
    return replace(
        record,
        values=_rows(values, resolution),
        label=scene.actions[action],
        low=float(scene.action_space.low.ravel()[action]),
        high=float(scene.action_space.high.ravel()[action]),
    )


def _with_balls(record: MapRecord, scene: Scene, plane: Plane) -> MapRecord:
    """Return a map with the outlines of the balls that contain its states, for any action."""
    balls = _outlines(scene, plane)
    title = f"{scene.title}: the partition"
    return replace(record, title=title, note=f"{len(balls):,} outlines of balls. {record.note}", balls=balls)


def _outlines(scene: Scene, plane: Plane) -> tuple[Outline, ...]:
    """Return the outlines of the balls that a plane cuts, each once."""
    policy = partition_policy(scene.policy, "balls")
    if plane.x.turns or plane.y.turns:
        raise SettingError("Balls are rectangles over two observations: give those as axes, not an angle.")
    i = plane.x.places[0]
    j = plane.y.places[0]
    leaves = policy.partition.leaves(scene.step)
    at = np.minimum(policy.states.standardise(plane.states[0]), _FINEST)
    others = [k for k in range(len(at)) if k not in (i, j)]
    met = ((leaves.state_low <= at) & (at < leaves.state_high))[:, others].all(axis=1)
    low = leaves.state_low[met]
    high = leaves.state_high[met]
    # The outermost balls contain all states beyond the cube.
    raw_low = np.where(low <= -1.0, -math.inf, policy.states.restore(low))
    raw_high = np.where(high >= 1.0, math.inf, policy.states.restore(high))
    ends = np.stack([raw_low[:, i], raw_high[:, i], raw_low[:, j], raw_high[:, j]], axis=1)
    frame = (plane.x.low, plane.x.high, plane.y.low, plane.y.high)
    ends[:, :2], ends[:, 2:] = np.clip(ends[:, :2], *frame[:2]), np.clip(ends[:, 2:], *frame[2:])
    drawn = np.unique(ends[(ends[:, 0] < ends[:, 1]) & (ends[:, 2] < ends[:, 3])], axis=0)
    return tuple(Outline(a, c, b - a, d - c) for a, b, c, d in drawn.tolist())


def _with_trails(record: MapRecord, scene: Scene, plane: Plane) -> MapRecord:
    """Return a map with all episodes as trails."""
    if not scene.played:
        raise SettingError("A phase portrait shows episodes: give an environment, and one episode at least.")
    trails = tuple(
        Trail(_pieces(states, plane), played.total, played.terminated)
        for states, played in zip(scene.states, scene.played, strict=True)
    )
    shown = counted(len(trails), "episode")
    note = f"{shown}, each from its ring to its dot, or to a cross where it was terminated."
    title = f"{scene.title}: where the policy goes"
    return replace(record, title=title, note=f"{note}\n{record.note}".strip(), trails=trails)


def _pieces(observations: Floats, plane: Plane) -> tuple[Piece, ...]:
    places = [axis.read(observations) for axis in (plane.x, plane.y)]
    jumps = np.zeros(len(observations) - 1, np.bool_)
    for axis, along in zip((plane.x, plane.y), places, strict=True):
        if axis.turns:
            jumps |= np.abs(np.diff(along)) > math.pi
    cuts = np.flatnonzero(jumps) + 1
    parts = zip(*(np.split(along, cuts) for along in places), strict=True)
    return tuple(Piece(tuple(a.tolist()), tuple(b.tolist())) for a, b in parts)


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
