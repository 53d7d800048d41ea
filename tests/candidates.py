"""Actions of candidate trees, by the kernel."""

import numpy as np

from spaql.controllers.arrays import Frame, candidate_arrays
from spaql.kernels.controller import ControllerArrays, Numbers


def sampled(controller: ControllerArrays, states: np.ndarray) -> np.ndarray:
    """Return the first actions of episodes, in double precision; discrete ones from 0 on."""
    return controller.sample(states.astype(np.float64), controller.new_memories(len(states)))[2]


def candidate_action(
    left: np.ndarray, allowed: np.ndarray, numbers: np.ndarray, frame: Frame, state: np.ndarray
) -> np.ndarray:
    """Return the action of one candidate."""
    arrays, constants, weights = candidate_arrays(left, allowed, numbers[np.newaxis], frame)
    return sampled(ControllerArrays(arrays, Numbers(constants[0], weights[0])), state[np.newaxis])[0]
