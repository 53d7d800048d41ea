"""The rules of the paper, one function an equation."""

import math

import numpy as np
from numpy.typing import NDArray

from spaql.kernels.jit import njit
from spaql.kernels.tree import INTERVAL, Balls, Found, lower_bound, relevant, split, width


@njit
def learning_rate(visits: int, horizon: int) -> float:
    """alpha_v = (H + 1) / (H + v)."""
    return (horizon + 1.0) / (horizon + visits)


@njit
def bonus(visits: int, scaling: float) -> float:
    """b_xi(v) = xi / sqrt(v), the upper confidence bound."""
    return scaling / math.sqrt(visits)


@njit
def greedy(balls: Balls, found: Found, count: int) -> int:
    """Index of the relevant ball with the highest Q; of equals, the one of the lowest action."""
    best = 0
    for i in range(1, count):
        if balls.q[found.ball[i]] > balls.q[found.ball[best]]:
            best = i
    return best


@njit
def boltzmann(balls: Balls, found: Found, count: int, temperature: float, uniform: float) -> int:
    """Sample a relevant ball with P(B) ~ exp(Q(B) / tau), Q divided by max |Q| (BOLTZMANN SAMPLE)."""
    largest = 0.0
    for i in range(count):
        largest = max(largest, abs(balls.q[found.ball[i]]))
    if largest == 0.0:
        largest = 1.0
    # A common factor of all weights cancels: the highest weight is made 1, so none overflows.
    highest = balls.q[found.ball[greedy(balls, found, count)]] / largest
    total = 0.0
    for i in range(count):
        total += math.exp((balls.q[found.ball[i]] / largest - highest) / temperature)
    remaining = uniform * total
    for i in range(count):
        remaining -= math.exp((balls.q[found.ball[i]] / largest - highest) / temperature)
        if remaining < 0.0:
            return i
    return count - 1


@njit
def highest_q(balls: Balls, root: int, state: NDArray[np.int64], found: Found) -> tuple[Found, float]:
    """Highest Q among the balls relevant to a state."""
    found, count = relevant(balls, root, state, found)
    return found, balls.q[found.ball[greedy(balls, found, count)]]


@njit
def reference_weight(
    state: NDArray[np.float64], reference: NDArray[np.float64], std: float, euclidean: bool
) -> float:
    """exp(-(D(x, x_ref) / lambda)^2), the weight of SPAQL-TS, for states of the standard cube."""
    distance = 0.0
    for j in range(state.shape[0]):
        difference = abs(state[j] - reference[j])
        if euclidean:
            distance += difference * difference
        else:
            distance = max(distance, difference)
    if euclidean:
        distance = math.sqrt(distance)
    ratio = distance / std
    return math.exp(-(ratio * ratio))


@njit
def update(balls: Balls, ball: int, reward: float, value: float, horizon: int, scaling: float) -> None:
    """Q <- (1 - alpha_v) Q + alpha_v (r + V(x') + b_xi(v)), with v the visits, this one included."""
    balls.visits[ball] += 1
    visits = balls.visits[ball]
    alpha = learning_rate(visits, horizon)
    target = reward + value + bonus(visits, scaling)
    balls.q[ball] = (1.0 - alpha) * balls.q[ball] + alpha * target


@njit
def split_when_due(balls: Balls, ball: int, depth: int, sizes: NDArray[np.int64], state_dims: int) -> bool:
    """Split a ball with at least (d_max / r)^2 = 4^depth visits; tells whether it did."""
    if balls.visits[ball] < 1 << (2 * depth):
        return False
    split(balls, ball, sizes, state_dims)
    return True


@njit
def draw_action(
    action_sizes: NDArray[np.int64],
    low: NDArray[np.int64],
    size: NDArray[np.int64],
    uniforms: NDArray[np.float64],
    action: NDArray[np.float64],
) -> None:
    """Draw an action uniformly from a ball: a point of an interval, an index of a finite list."""
    for j in range(low.shape[0]):
        if action_sizes[j] == INTERVAL:
            action[j] = lower_bound(low[j]) + uniforms[j] * width(size[j])
        else:
            action[j] = low[j] + math.floor(uniforms[j] * size[j])
