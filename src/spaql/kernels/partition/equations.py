"""The equations of the paper, one function each."""

import math

from spaql.kernels.jit import njit
from spaql.kernels.numerics import Floats, Ints
from spaql.kernels.partition.balls import INTERVAL, Balls, Found, lower_bound, split, width


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
    """Return the index of the relevant ball with the highest Q; of ties, the one with the highest action.

    The paper does not define ties. They are common, because children inherit Q.
    """
    best = 0
    for i in range(1, count):
        if balls.q[found.ball[i]] >= balls.q[found.ball[best]]:
            best = i
    return best


@njit
def boltzmann(
    balls: Balls, found: Found, count: int, temperature: float, by_maximum: bool, uniform: float
) -> int:
    """Sample a relevant ball with P(B) ~ exp(Q(B) / tau), Q divided by its largest size (BOLTZMANN SAMPLE).

    By the paper's text Q is divided by max Q, which prefers the lowest Q where all are negative. Division by
    0 is left out; where a quotient is not finite, the choice is greedy.
    """
    largest = 0.0
    highest = -math.inf
    for i in range(count):
        q = balls.q[found.ball[i]]
        largest = max(largest, abs(q))
        highest = max(highest, q)
    divisor = highest if by_maximum else largest
    if divisor == 0.0:
        divisor = 1.0
    top = (highest if divisor > 0.0 else -largest) / divisor
    total = 0.0
    for i in range(count):
        # A common factor of all weights cancels: the highest is scaled to 1, so that none overflows.
        exponent = (balls.q[found.ball[i]] / divisor - top) / temperature
        # A weight below e^-40 of the highest does not change the sum in double precision.
        found.weight[i] = math.exp(exponent) if exponent > -40.0 else 0.0
        total += found.weight[i]
    remaining = uniform * total
    for i in range(count):
        remaining -= found.weight[i]
        if remaining < 0.0:
            return i
    return greedy(balls, found, count)


@njit
def reference_weight(state: Floats, reference: Floats, std: float, euclidean: bool) -> float:
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
def split_when_due(balls: Balls, ball: int, depth: int, sizes: Ints, state_dims: int) -> bool:
    """Split a ball with at least (d_max / r)^2 = 4^depth visits; returns whether it was split."""
    if balls.visits[ball] < 1 << (2 * depth):
        return False
    split(balls, ball, sizes, state_dims)
    return True


@njit
def draw(action_size: int, low: int, size: int, uniform: float) -> float:
    """Draw from a range of one action dimension: a point of an interval, an index of a finite list."""
    if action_size == INTERVAL:
        return lower_bound(low) + uniform * width(size)
    return float(low + math.floor(uniform * size))


@njit
def middle(action_size: int) -> float:
    """Return the uniform number for which `draw` returns an interval's centre, or the first of a list."""
    return 0.5 if action_size == INTERVAL else 0.0
