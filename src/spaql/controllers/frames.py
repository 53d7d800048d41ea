"""What surrounds the tree of a controller, as the kernel reads it: features, limits and memory."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from spaql.controllers.arrays import Frame, frame_of
from spaql.controllers.feature_table import feature_table
from spaql.controllers.limits import VELOCITY
from spaql.errors import SettingError
from spaql.kernels.controller import DEAD_BAND, RATE, RESET

if TYPE_CHECKING:
    from spaql.controllers.controller import Controller

_MOST_MEMORY = 2**14


def controller_frame(controller: Controller) -> Frame:
    """Return a controller but for its tree."""
    plain = frame_of(len(controller.observations), controller.action_space)
    if not controller.features and not controller.remembers:
        return plain
    names = controller.observations, controller.components
    start = [x - plain.first for x in controller.start]
    table = feature_table(controller.features, *names, controller.sample_time or 1.0, start)
    if table.memory > _MOST_MEMORY:
        raise SettingError(f"The features remember more than {_MOST_MEMORY} numbers.")
    limit = plain.limit.copy()
    limit[RATE] = np.array(controller.rate_limit) * (controller.sample_time or 1.0)
    limit[DEAD_BAND] = controller.dead_band
    if controller.remembers:  # otherwise it is the action where none can be computed
        limit[RESET] = start
    return replace(
        plain,
        limit=limit,
        columns=table.columns if controller.features else plain.columns,
        feature=table.rows,
        setting=table.settings,
        velocity=controller.form == VELOCITY,
        remembers=controller.remembers,
        memory=table.memory,
    )
