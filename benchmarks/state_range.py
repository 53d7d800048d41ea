"""The range of a plant's states, and which of their numbers are angles."""

import math

import numpy as np
from numpy.typing import NDArray

from spaql.problems import Dynamics

Floats = NDArray[np.float64]

_ROWS = 256
"""Random episodes, and states from which a step is tried."""
_HOLDS = (1.0, 5.0, 25.0, 125.0)
"""Mean numbers of steps for which random actions are held."""
_SAME = 1e-6
"""Largest difference, relative to 1 or the number itself, that counts as rounding."""
FAR = 1e12
"""States with larger numbers are left out: a plant may explode."""
_AT_MOST = 2.0
"""The range is widened on either side by at most this many times its width in random episodes."""


def state_range(dynamics: Dynamics, horizon: int, starts: Floats, actions: Floats) -> Floats:
    """Return the lowest and highest states of interest, one row each.

    The range of episodes of random actions is widened until a step from it does not leave it, but not without
    end: a plant may move on for ever.
    """
    rng = np.random.default_rng(0)
    seen = _of_random_episodes(dynamics, horizon, starts, actions, rng)
    width = seen[1] - seen[0]
    furthest = np.array([seen[0] - _AT_MOST * width, seen[1] + _AT_MOST * width])
    for _ in range(horizon):
        wider = led_to(dynamics, seen, actions, rng)
        wider = np.array([np.maximum(wider[0], furthest[0]), np.minimum(wider[1], furthest[1])])
        if np.array_equal(wider, seen):
            break
        seen = wider
    return seen


def led_to(dynamics: Dynamics, seen: Floats, actions: Floats, rng: np.random.Generator) -> Floats:
    """Return the range that contains a range and where steps lead from random states and corners of it."""
    inner = rng.uniform(seen[0], seen[1], (_ROWS, seen.shape[1]))
    corners = np.where(rng.random(inner.shape) < 0.5, seen[0], seen[1])
    played = actions[rng.integers(len(actions), size=2 * _ROWS)]
    after, _, ended = _step(dynamics, np.concatenate([inner, corners]), played)
    return _widened(seen, after[~ended])


def periodic_numbers(dynamics: Dynamics, seen: Floats, actions: Floats) -> NDArray[np.bool_]:
    """Return which numbers of a state are angles: turning them by 2 pi changes nothing but themselves.

    Next states (up to such turns), rewards and ends of steps are compared from random states in the range, by
    random actions and numbers of turns.
    """
    rng = np.random.default_rng(1)
    states = rng.uniform(seen[0], seen[1], (4 * _ROWS, seen.shape[1]))
    played = actions[rng.integers(len(actions), size=len(states))]
    turns = rng.choice([-3, -2, -1, 1, 2, 3], len(states)) * math.tau
    after, rewards, ended = _step(dynamics, states, played)
    found = np.zeros(seen.shape[1], np.bool_)
    for j in range(len(found)):
        turned = states.copy()
        turned[:, j] += turns
        other, other_rewards, other_ended = _step(dynamics, turned, played)
        apart = other - after
        apart[:, j] -= math.tau * np.round(apart[:, j] / math.tau)
        found[j] = bool(
            (np.abs(apart) <= _SAME * (1.0 + np.abs(other))).all()
            and (np.abs(other_rewards - rewards) <= _SAME * (1.0 + np.abs(rewards))).all()
            and np.array_equal(ended, other_ended)
        )
    return found


def _of_random_episodes(
    dynamics: Dynamics, horizon: int, starts: Floats, actions: Floats, rng: np.random.Generator
) -> Floats:
    """Return the range of the starts and of episodes in which random actions are held for a while."""
    seen = np.array([starts.min(0), starts.max(0)])
    states = starts[np.arange(_ROWS) % len(starts)]
    hold = np.array(_HOLDS)[np.arange(_ROWS) % len(_HOLDS)]
    played = actions[rng.integers(len(actions), size=_ROWS)]
    running = np.ones(_ROWS, np.bool_)
    for _ in range(horizon):
        drawn = actions[rng.integers(len(actions), size=_ROWS)]
        played = np.where((rng.random(_ROWS) * hold < 1.0)[:, None], drawn, played)
        states, _, ended = _step(dynamics, states, played)
        running &= ~ended & _are_near(states)
        if not running.any():
            break
        seen = _widened(seen, states[running])
    return seen


def _widened(seen: Floats, states: Floats) -> Floats:
    """Return the range that contains these states as well, without those that are too far or not finite."""
    near = states[_are_near(states)]
    if not len(near):
        return seen
    return np.array([np.minimum(seen[0], near.min(0)), np.maximum(seen[1], near.max(0))])


def _are_near(states: Floats) -> NDArray[np.bool_]:
    return np.asarray((np.abs(states) < FAR).all(1))  # NaN is not


def _step(dynamics: Dynamics, states: Floats, played: Floats) -> tuple[Floats, Floats, NDArray[np.bool_]]:
    """Return the next states, the rewards, and which steps end an episode."""
    after = states.copy()
    _, rewards, ended = dynamics.plant.step_rows(np.ones(len(states), np.bool_), played.copy(), after)
    return after, rewards, ended
