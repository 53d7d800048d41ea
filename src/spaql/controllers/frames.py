"""What surrounds the tree of a controller, as the kernel reads it: features, limits and memory."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from gymnasium.spaces import Discrete

from spaql.controllers.arrays import Frame, frame_of
from spaql.controllers.feature_table import FeatureTable, feature_table
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
    table, memory = declared_features(controller)
    column, feature, setting = table.computed(len(controller.observations))
    limit = plain.limit.copy()
    limit[RATE] = np.array(controller.rate_limit) * (controller.sample_time or 1.0)
    limit[DEAD_BAND] = controller.dead_band
    if controller.remembers:  # otherwise it is the action where none can be computed
        limit[RESET] = np.array(controller.start) - plain.first
    return replace(
        plain,
        limit=limit,
        columns=column if controller.features else plain.columns,
        feature=feature,
        setting=setting,
        velocity=controller.form == VELOCITY,
        remembers=controller.remembers,
        memory=memory,
    )


def declared_features(controller: Controller) -> tuple[FeatureTable, int]:
    """Return the features of a controller as a table, and the length of its memory."""
    first = int(controller.action_space.start) if isinstance(controller.action_space, Discrete) else 0
    start = [x - first for x in controller.start]
    names = controller.observations, controller.components
    table, memory = feature_table(controller.features, *names, controller.sample_time or 1.0, start)
    if memory > _MOST_MEMORY:
        raise SettingError(f"The features remember more than {_MOST_MEMORY} numbers.")
    return table, memory
