"""Actions of candidate trees, by the kernel."""

import numpy as np

from spaql.kernels.controller import ACTIONS, LAST, MEMORY, RESET, Arrays, ControllerArrays, Numbers, act_rows
from spaql.policy.arrays import Frame, candidate_arrays


def sampled(controller: ControllerArrays, states: np.ndarray) -> np.ndarray:
    """Return the first actions of episodes, in double precision; discrete ones from 0 on."""
    arrays, numbers = controller
    actions, memory = arrays.shape[[ACTIONS, MEMORY]].tolist()
    x = np.hstack([states.astype(np.float64), np.empty((len(states), len(arrays.feature)))])
    memories = np.zeros((len(states), memory))
    memories[:, LAST : LAST + actions] = arrays.limit[RESET]
    found = np.empty((len(states), actions))
    act_rows(arrays, numbers, memories, x, np.empty((len(states), 2 * actions + x.shape[1])), found)
    return found


def candidate_action(
    left: np.ndarray, allowed: np.ndarray, numbers: np.ndarray, frame: Frame, state: np.ndarray
) -> np.ndarray:
    """Return the action of one candidate."""
    arrays: Arrays
    arrays, constants, weights = candidate_arrays(left, allowed, numbers[np.newaxis], frame)
    return sampled(ControllerArrays(arrays, Numbers(constants[0], weights[0])), state[np.newaxis])[0]
