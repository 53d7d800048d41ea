"""Overlays of a map of actions: the balls of the partition, and the trails of episodes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from spaql.errors import SettingError
from spaql.evaluation.episodes import Playable
from spaql.figures.axis import Axis, Floats
from spaql.figures.maps import MapRecord, Outline, Piece, Plane, Trail, chart, lay_out
from spaql.figures.scene import Scene, partition_policy, set_scene
from spaql.formatting import counted
from spaql.problems import EnvironmentLike

_FINEST = 1.0 - 2.0**-32
"""The last coordinate of the cube, which belongs to its last ball."""


def compute_balls(
    agent: Playable,
    x: str | int | Axis,
    y: str | int | Axis,
    env: EnvironmentLike | None = None,
    *,
    at: Mapping[str | int, float] | None = None,
    x_limits: tuple[float, float] | None = None,
    y_limits: tuple[float, float] | None = None,
    step: int | None = None,
    episodes: int = 20,
    seed: int = 0,
    resolution: int = 240,
) -> MapRecord:
    """Return a map with the balls of the partition that contain its states, for any action.

    The parameters are those of `compute_map`; but observations not in `at` are fixed at their median over
    the visited states, and both axes are observations, because over an angle balls are not rectangles.
    """
    scene = set_scene(agent, env, step=step, episodes=episodes, seed=seed)
    plane = lay_out(scene, (x, y), (x_limits, y_limits), at or {}, averaged=False)
    record = chart(scene, plane, "action", 0, resolution)
    balls = outlines(scene, plane)
    title = f"{scene.title}: the partition"
    return replace(record, title=title, note=f"{len(balls):,} outlines of balls. {record.note}", balls=balls)


def outlines(scene: Scene, plane: Plane) -> tuple[Outline, ...]:
    """Return the outlines of the balls that a plane cuts, each once."""
    policy = partition_policy(scene.policy, "balls")
    i = plane.x.index
    j = plane.y.index
    if i is None or j is None:
        raise SettingError("Balls are rectangles over two observations: give those as axes, not an angle.")
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


def compute_phase(
    agent: Playable,
    x: str | int | Axis,
    y: str | int | Axis,
    env: EnvironmentLike | None = None,
    *,
    action: int = 0,
    at: Mapping[str | int, float] | None = None,
    x_limits: tuple[float, float] | None = None,
    y_limits: tuple[float, float] | None = None,
    step: int | None = None,
    episodes: int = 8,
    seed: int = 0,
    resolution: int = 240,
) -> MapRecord:
    """Return a phase portrait: episodes as trails over the map of actions.

    The parameters are those of `compute_map`; every episode that is played is shown.
    """
    scene = set_scene(agent, env, step=step, episodes=episodes, seed=seed)
    if not scene.played:
        raise SettingError("A phase portrait shows episodes: give an environment, and one episode at least.")
    plane = lay_out(scene, (x, y), (x_limits, y_limits), at or {})
    record = chart(scene, plane, "action", action, resolution)
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
