"""One training step on a partition."""

import math
from typing import NamedTuple

from spaql.kernels.jit import Fields, njit
from spaql.kernels.numerics import Floats, Ints
from spaql.kernels.partition.balls import Balls, Found, relevant
from spaql.kernels.partition.equations import (
    boltzmann,
    draw,
    greedy,
    reference_weight,
    split_when_due,
    update,
)
from spaql.kernels.partition.standardise import ActionMap, StateMap, coordinates, raw_action, standardise_to


class UpdateRules(NamedTuple):
    """Parameters of the update and of the choice of a ball."""

    horizon: int
    scaling: float
    temperature: float
    """Of Boltzmann sampling; 0 for the greedy choice."""
    reference: Floats
    """In standard coordinates."""
    reference_std: float
    """Infinite where states are not weighted (AQL and SPAQL)."""
    euclidean: bool
    """Metric of the distance to the reference: Euclidean, or infinity."""
    by_maximum: bool = False
    """What Q is divided by in Boltzmann sampling: max Q, or the largest absolute Q."""


@njit
def write_last(observation: Floats, reward: float, last: Floats) -> None:
    """Write the last observation and reward to `last`."""
    for j in range(observation.shape[0]):
        last[j] = observation[j]
    last[-1] = reward


@njit
def choose_from(
    balls: Balls,
    found: Found,
    count: int,
    rules: UpdateRules,
    uniforms: Floats,
    action: Floats,
    sizes: Ints,
) -> tuple[int, int]:
    """Choose one of the relevant balls and draw a standard action from it; returns the ball and its depth.

    The first of `uniforms` chooses the ball, the others the action. The sizes of the ball's action ranges are
    written to `sizes`, for a split.
    """
    if rules.temperature > 0.0:
        chosen = boltzmann(balls, found, count, rules.temperature, rules.by_maximum, uniforms[0])
    else:
        chosen = greedy(balls, found, count)
    for j in range(sizes.shape[0]):
        sizes[j] = found.size[chosen, j]
        action[j] = draw(balls.action_sizes[j], found.low[chosen, j], sizes[j], uniforms[1 + j])
    return found.ball[chosen], found.depth[chosen]


@njit
def learn_from(
    balls: Balls,
    rules: UpdateRules,
    ball: int,
    depth: int,
    sizes: Ints,
    state: Floats,
    reward: float,
    highest: float,
) -> bool:
    """Update the ball that was played and split it when due; returns whether it was split.

    V(x') = weight(x) min(H, highest), where `highest` is the highest Q of RELEVANT(x'), or 0 past the
    horizon (AQL).
    """
    value = min(float(rules.horizon), highest)
    if not math.isinf(rules.reference_std):
        value *= reference_weight(state, rules.reference, rules.reference_std, rules.euclidean)
    update(balls, ball, reward, value, rules.horizon, rules.scaling)
    return split_when_due(balls, ball, depth, sizes, state.shape[0])


@njit
def choose(
    balls_fields: Fields,
    root: int,
    rules_fields: Fields,
    action_fields: Fields,
    state: Floats,
    uniforms: Floats,
    raw: Floats,
    sizes: Ints,
) -> tuple[int, int]:
    """Find the balls relevant to a state, and `choose_from` them; writes the raw action to `raw`."""
    balls = Balls(*balls_fields)
    rules = UpdateRules(*rules_fields)
    action_map = ActionMap(*action_fields)
    found, count = relevant(balls, root, coordinates(state))
    ball, depth = choose_from(balls, found, count, rules, uniforms, raw, sizes)
    for j in range(raw.shape[0]):
        raw[j] = raw_action(action_map, j, raw[j])
    return ball, depth


@njit
def learn(
    balls_fields: Fields,
    next_root: int,
    rules_fields: Fields,
    state_fields: Fields,
    ball: int,
    depth: int,
    sizes: Ints,
    state: Floats,
    reward: float,
    observation: Floats,
    next_state: Floats,
) -> int:
    """Find the balls relevant to the next observation, and `learn_from` them; returns the splits, 0 or 1.

    Writes the observation in standard coordinates to `next_state`; if it holds NaN, nothing is learned, and
    -1 is returned. For a state of value 0 the root is -1.
    """
    balls = Balls(*balls_fields)
    rules = UpdateRules(*rules_fields)
    state_map = StateMap(*state_fields)
    standardise_to(state_map, observation, next_state)
    for j in range(next_state.shape[0]):
        if math.isnan(next_state[j]):
            return -1
    highest = 0.0
    if next_root >= 0:
        found, count = relevant(balls, next_root, coordinates(next_state))
        highest = balls.q[found.ball[greedy(balls, found, count)]]
    return 1 if learn_from(balls, rules, ball, depth, sizes, state, reward, highest) else 0
