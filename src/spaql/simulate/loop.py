"""The closed loop of a compiled plant and a controller."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from spaql.kernels.closed_loop import Played, Room, run
from spaql.kernels.controller import ACTIONS, MEMORY, OBSERVATIONS, Arrays, ControllerArrays
from spaql.kernels.numerics import Floats, Ints
from spaql.kernels.plant import Plant


class LoopTrace(NamedTuple):
    """Episodes, step by step: starts × steps × values; NaN after the end."""

    x: Floats
    """Observations and features; the last observation of an episode is one more, without features."""
    actions: Floats
    rewards: Floats
    states: Floats
    """Before each step, and after the last."""

    @classmethod
    def of(cls, played: Played, arrays: Arrays) -> LoopTrace:
        """Return the parts of a trace."""
        width = int(arrays.shape[OBSERVATIONS]) + len(arrays.feature)
        last = width + int(arrays.shape[ACTIONS])
        trace = played.trace
        return cls(
            trace[:, :, :width], trace[:, :-1, width:last], trace[:, :-1, last], trace[:, :, last + 1 :]
        )


def play(
    plant: Any,
    arrays: Arrays,
    constants: Floats,
    weights: Floats,
    starts: Floats,
    horizon: int,
    *,
    setpoints: Ints | None = None,
    traced: int = 0,
) -> tuple[Played, int]:
    """Play every start with each of several controllers of one structure; returns the steps, too.

    The plant is of a kind that kernels know (see `spaql.kernels.plant`). The first `traced` steps of the
    first controller are recorded.
    """
    n = len(starts)
    shape = len(constants), n
    n_actions = int(arrays.shape[ACTIONS])
    width = int(arrays.shape[OBSERVATIONS]) + len(arrays.feature)
    goals = np.empty(0, np.int64) if setpoints is None else setpoints
    room = Room(
        np.empty(n, np.int64),
        np.empty(starts.shape),
        np.empty(2),
        np.empty((n, int(arrays.shape[MEMORY]))),
        np.empty(width),
        np.empty(2 * n_actions + width),
        np.empty(n_actions),
        np.empty((n, n_actions)),
        np.empty((n, len(goals))),
    )
    traced_shape = (n, traced + 1, width + n_actions + 1 + starts.shape[1]) if traced else (0, 1, 0)
    played = Played(
        np.empty(shape),
        np.empty(shape, np.int64),
        np.empty(shape),
        np.empty(shape),
        np.empty(shape, np.bool_),
        np.full(traced_shape, np.nan),
    )
    steps = run(
        plant,
        arrays,
        constants,
        weights,
        goals,
        np.ascontiguousarray(starts),
        horizon,
        room,
        played,
    )
    return played, steps


def play_one(
    plant: Plant, controller: ControllerArrays, starts: Floats, horizon: int, *, traced: bool = False
) -> tuple[Played, int]:
    """Play every start with a controller; returns the steps, too."""
    arrays, numbers = controller
    constants = numbers.constant[np.newaxis]
    weights = numbers.weight[np.newaxis]
    return play(plant.addresses, arrays, constants, weights, starts, horizon, traced=horizon if traced else 0)
