"""AQL, SPAQL and SPAQL-TS a second time: slow, obvious, and straight from the paper's definitions.

It is two oracles in one. With the rules `TEXT` it is the paper read literally; with the rules `AUTHORS` it
does what the code of its authors does where that differs, apart from two faults of that code: it leaves the
first state of an episode unstandardised, and after some gains it compares with a stale number of arms. (The
code is github.com/jaraujo98/SinglePartitionAdaptiveQLearning, commit 4084a27.) Each difference can be
switched by itself (`Rules`).

Nothing here knows the package. Balls are objects with bounds, a partition is a list of them, and every
search looks at every ball. What the paper leaves open is settled as the package documents it: the
balls that are relevant to a state are listed by action, the lowest first, and a step spends one uniform
number on the choice of a ball and one on each dimension of the action.

Sums are written as loops: from Python 3.12 on, `sum` corrects rounding errors, which the formulas of the
paper do not ask for.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate, product

import numpy as np


@dataclass(frozen=True)
class Rules:
    """What is done where the paper's text and the code of its authors differ."""

    tie_is_gain: bool
    """Is an evaluation as good as the best an improvement?"""
    heats_after_split: bool
    """Does the temperature wait for a split before it rises?"""
    temperature_max: float
    """From where on does it rise no further?"""
    balls_before_reset: int | None
    """After how many splits is the trainee reset? None: after the second iteration that had any."""
    by_maximum: bool
    """Does Boltzmann sampling divide by max Q, and not by max |Q|?"""
    metric: str
    """That of the distance to the reference."""


AUTHORS = Rules(
    tie_is_gain=True,
    heats_after_split=True,
    temperature_max=10.0,
    balls_before_reset=None,
    by_maximum=False,
    metric="euclidean",
)
TEXT = Rules(
    tie_is_gain=False,  # "if agent performance improved"
    heats_after_split=False,  # "increase the temperature at every training iteration [without] improvement"
    temperature_max=math.inf,  # no bound is named
    balls_before_reset=3,  # "if more than two splits occurred"
    by_maximum=True,  # "normalize values [...] by dividing by max"
    metric="infinity",  # D of the equation, which is the infinity product metric in both problems
)


@dataclass(frozen=True, slots=True)
class Interval:
    """One dimension of a ball: [centre - radius, centre + radius), closed at the cube's upper face."""

    centre: float
    radius: float
    low: float = field(init=False)
    end: float = field(init=False)
    """The first point past the interval; that of an interval up to the cube's face holds all there is."""

    def __post_init__(self) -> None:
        high = self.centre + self.radius
        object.__setattr__(self, "low", self.centre - self.radius)
        object.__setattr__(self, "end", high if high < 1.0 else math.inf)

    def holds(self, x: float) -> bool:
        return self.low <= x < self.end

    def parts(self) -> tuple[Interval, ...]:
        half = self.radius / 2
        return Interval(self.centre - half, half), Interval(self.centre + half, half)

    def draw(self, uniform: float) -> float:
        return self.low + uniform * (2 * self.radius)


@dataclass(frozen=True, slots=True)
class Choices:
    """One dimension of the action of a ball: what remains of a finite list."""

    actions: tuple[int, ...]

    def holds(self, action: float) -> bool:
        return action in self.actions

    def parts(self) -> tuple[Choices, ...]:
        """Cut the list into floor(m / 2) and the rest; one action alone is not cut any more."""
        half = len(self.actions) // 2
        if half == 0:
            return (self,)
        return Choices(self.actions[:half]), Choices(self.actions[half:])

    def draw(self, uniform: float) -> int:
        return self.actions[math.floor(uniform * len(self.actions))]


ActionSide = Interval | Choices
State = tuple[float, ...]
Action = tuple[float, ...]


@dataclass(eq=False, slots=True)
class Ball:
    """A ball of the infinity metric, which is a cube, with its estimate of Q and its visits."""

    states: tuple[Interval, ...]
    actions: tuple[ActionSide, ...]
    q: float
    visits: int = 0

    @property
    def radius(self) -> float:
        return self.states[0].radius

    def holds_state(self, state: State) -> bool:
        return all(side.holds(x) for side, x in zip(self.states, state, strict=True))

    def holds_action(self, action: Action) -> bool:
        return all(side.holds(a) for side, a in zip(self.actions, action, strict=True))

    def holds(self, state: State, action: Action) -> bool:
        return self.holds_state(state) and self.holds_action(action)

    def cover(self) -> list[Ball]:
        """Give balls of half the radius that tile this one and inherit its Q and visits.

        Of the parts of the action, those low in the last dimension come first, and among them those low
        in the dimension before it.
        """
        orthants = product(*(side.parts() for side in self.states))
        sides: list[tuple[ActionSide, ...]] = [side.parts() for side in reversed(self.actions)]
        action_parts = list(product(*sides))
        return [
            Ball(states, actions[::-1], self.q, self.visits)
            for states in orthants
            for actions in action_parts
        ]


class Partition:
    """The balls in a plain list, where children follow their parent: so they stay ordered by action."""

    def __init__(self, state_dims: int, actions: Sequence[ActionSide], q: float) -> None:
        root = Ball((Interval(0.0, 1.0),) * state_dims, tuple(actions), q)
        self.balls = [root]
        self.arms = [root]
        """The balls that were never split. All others are covered by smaller ones: dom(B) is empty."""

    def relevant(self, state: State) -> list[Ball]:
        """RELEVANT(x), without the balls whose domain is known to be empty.

        One dimension after the other, as most of the time of the tests is spent here.
        """
        left = self.arms
        for j, x in enumerate(state):
            left = [ball for ball in left if ball.states[j].low <= x < ball.states[j].end]
        return left

    def relevant_by_definition(self, state: State) -> list[Ball]:
        """RELEVANT(x): the balls whose domain holds (x, a) for some a, with no ball left out.

        A set of actions that meets every cell between the bounds of all balls stands for all actions.
        """
        found: list[Ball] = []
        for action in product(*(self._witnesses(j) for j in range(len(self.balls[0].actions)))):
            found += self.domain_holders(state, action)
        return [ball for ball in self.balls if ball in found]

    def _witnesses(self, j: int) -> list[float]:
        """All actions of a list; of an interval, the lower ends of all balls."""
        sides = [ball.actions[j] for ball in self.balls]
        if isinstance(sides[0], Choices):
            return list(sides[0].actions)
        return sorted({side.low for side in sides if isinstance(side, Interval)})

    def domain_holders(self, state: State, action: Action) -> list[Ball]:
        """Give the balls with (x, a) in their domain (equation 8): in no ball of strictly smaller radius."""
        holders = [ball for ball in self.balls if ball.holds(state, action)]
        return [ball for ball in holders if not any(other.radius < ball.radius for other in holders)]

    def split(self, ball: Ball) -> list[Ball]:
        """SPLIT BALL; gives the children."""
        children = ball.cover()
        place = self.balls.index(ball) + 1
        self.balls[place:place] = children
        place = self.arms.index(ball)
        self.arms[place : place + 1] = children
        return children

    def copy(self) -> Partition:
        twin = object.__new__(Partition)
        twins = {id(b): Ball(b.states, b.actions, b.q, b.visits) for b in self.balls}
        twin.balls = [twins[id(ball)] for ball in self.balls]
        twin.arms = [twins[id(ball)] for ball in self.arms]
        return twin


def greedy(balls: list[Ball]) -> Ball:
    """Choose the ball with the highest Q, and of equals the last, which has the highest action."""
    return max(reversed(balls), key=lambda ball: ball.q)


def boltzmann(balls: list[Ball], temperature: float, by_maximum: bool, uniform: float) -> Ball:
    """BOLTZMANN SAMPLE: P(B) ~ exp(Q(B) / tau), each Q divided by max Q or max |Q|, by inverse distribution.

    Nothing is divided by 0. The exponents are shifted so that the highest is 0: it changes no probability,
    and none overflows. A quotient may, by a max Q just below 0: then the choice is greedy.
    """
    divisor = max(ball.q if by_maximum else abs(ball.q) for ball in balls) or 1.0
    normal = [ball.q / divisor for ball in balls]
    if max(normal) == math.inf:
        return greedy(balls)
    weights = [math.exp((q - max(normal)) / temperature) for q in normal]
    below = list(accumulate(weights))
    for ball, bound in zip(balls, below, strict=True):
        if uniform * below[-1] < bound:
            return ball
    return balls[-1]


def draw(ball: Ball, uniforms: Sequence[float]) -> Action:
    """Draw an action uniformly from those of a ball."""
    return tuple(side.draw(u) for side, u in zip(ball.actions, uniforms, strict=True))


def rollout_action(partition: Partition, state: State, rng: np.random.Generator) -> Action:
    """Draw an action of the greedy ball; where one action remains, no random number is spent."""
    ball = greedy(partition.relevant(state))
    return tuple(
        side.actions[0] if isinstance(side, Choices) and len(side.actions) == 1 else side.draw(rng.random())
        for side in ball.actions
    )


class Agent:
    """What the algorithms share: the update of a ball, and its split."""

    relevant: list[Ball]
    """The balls that were relevant to the last state acted on."""
    played: Ball
    """The ball that was, or will be, updated for the last action."""

    def __init__(self, rules: Rules, horizon: int, scaling: float) -> None:
        self.rules = rules
        self.horizon = horizon
        self.scaling = scaling

    def begin(self, state: State) -> None:
        self.step = 0
        self.state = state

    @property
    def partitions(self) -> list[Partition]:
        """All partitions that learn."""
        raise NotImplementedError

    def partition(self) -> Partition:
        """Give the partition of the current time step."""
        raise NotImplementedError

    def select(self, relevant: list[Ball], uniform: float) -> Ball:
        """Choose a relevant ball to draw the action from."""
        raise NotImplementedError

    def value(self, next_state: State) -> float:
        """V(x'), with the current time step already the next one."""
        raise NotImplementedError

    def act(self, rng: np.random.Generator) -> Action:
        dims = len(self.partition().balls[0].actions)
        choice, *uniforms = rng.random(1 + dims).tolist()
        self.relevant = self.partition().relevant(self.state)
        selected = self.select(self.relevant, choice)
        action = draw(selected, uniforms)
        self.played = self.updated_ball(selected, action)
        return action

    def updated_ball(self, selected: Ball, action: Action) -> Ball:
        return selected

    def learn(self, reward: float, next_state: State) -> list[Ball]:
        """Update the ball; gives its children if it was split."""
        partition = self.partition()
        ball = self.played
        self.step += 1
        value = self.value(next_state)
        ball.visits += 1
        v = ball.visits
        alpha = (self.horizon + 1) / (self.horizon + v)
        bonus = self.scaling / math.sqrt(v)
        ball.q = (1 - alpha) * ball.q + alpha * (reward + value + bonus)
        self.state = next_state
        d_max = partition.balls[0].radius
        return partition.split(ball) if v >= (d_max / ball.radius) ** 2 else []

    def clipped(self, partition: Partition, state: State) -> float:
        return min(self.horizon, max(ball.q for ball in partition.relevant(state)))


class AQL(Agent):
    """Algorithm 1: a partition for every time step, and greedy choice."""

    def __init__(
        self, state_dims: int, actions: Sequence[ActionSide], *, rules: Rules, horizon: int, scaling: float
    ) -> None:
        super().__init__(rules, horizon, scaling)
        self.by_step = [Partition(state_dims, actions, float(horizon)) for _ in range(horizon)]

    @property
    def partitions(self) -> list[Partition]:
        return self.by_step

    def partition(self) -> Partition:
        return self.by_step[self.step]

    def select(self, relevant: list[Ball], uniform: float) -> Ball:
        return greedy(relevant)

    def value(self, next_state: State) -> float:
        """The value past the horizon is 0."""
        if self.step == self.horizon:
            return 0.0
        return self.clipped(self.partition(), next_state)


class SPAQL(Agent):
    """Algorithm 3: one partition, Boltzmann choice, and the best agent kept."""

    def __init__(
        self,
        state_dims: int,
        actions: Sequence[ActionSide],
        *,
        rules: Rules,
        horizon: int,
        scaling: float,
        temperature_min: float,
        growth: float,
        damping: float,
    ) -> None:
        super().__init__(rules, horizon, scaling)
        self.trainee = Partition(state_dims, actions, float(horizon))
        self.best = self.trainee.copy()
        self.temperature_min = self.temperature = temperature_min
        self.growth = growth
        self.damping = damping
        self.best_return: float | None = None
        self.changes = 0
        """Of the partition, since the trainee was last equal to the best: splits, or iterations with any."""
        self.resets = 0
        """Whether the last evaluation led to a reset."""

    @property
    def partitions(self) -> list[Partition]:
        return [self.trainee]

    def partition(self) -> Partition:
        return self.trainee

    def begin(self, state: State) -> None:
        super().begin(state)
        self.splits_before = len(self.trainee.balls) - len(self.trainee.arms)

    def select(self, relevant: list[Ball], uniform: float) -> Ball:
        return boltzmann(relevant, self.temperature, self.rules.by_maximum, uniform)

    def updated_ball(self, selected: Ball, action: Action) -> Ball:
        """Give the ball that holds the played pair; that there is one and no more is part of the test."""
        (holder,) = [ball for ball in self.relevant if ball.holds_action(action)]
        return holder

    def value(self, next_state: State) -> float:
        """The same at every step: the value past the horizon, or of a terminal state, is not 0."""
        return self.clipped(self.trainee, next_state)

    def assess(self, mean_return: float) -> None:
        """Follow an evaluation; the first is that of the untrained agent, before iteration 1."""
        self.resets = 0
        if self.best_return is None:
            self.best_return = mean_return
        elif mean_return > self.best_return or (mean_return == self.best_return and self.rules.tie_is_gain):
            self.best_return = mean_return
            self.best = self.trainee.copy()
            self.growth = self.growth**self.damping
            self._back_to_best()
        else:
            self._without_improvement()

    def _without_improvement(self) -> None:
        rules = self.rules
        splits = len(self.trainee.balls) - len(self.trainee.arms) - self.splits_before
        if rules.balls_before_reset is None:
            self.changes += 1 if splits > 0 else 0
            due = self.changes == 2
        else:
            self.changes += splits
            due = self.changes >= rules.balls_before_reset
        if self.temperature < rules.temperature_max and (self.changes > 0 or not rules.heats_after_split):
            self.temperature = min(self.temperature * self.growth, sys.float_info.max)
        if due:
            self.trainee = self.best.copy()
            self.resets = 1
            self._back_to_best()

    def _back_to_best(self) -> None:
        self.temperature = self.temperature_min
        self.changes = 0


class SPAQLTS(SPAQL):
    """SPAQL with terminal state: V(x_{h+1}) is weighted by the distance of x_h to the reference."""

    def __init__(
        self,
        state_dims: int,
        actions: Sequence[ActionSide],
        *,
        reference: State,
        reference_std: float,
        rules: Rules,
        horizon: int,
        scaling: float,
        temperature_min: float,
        growth: float,
        damping: float,
    ) -> None:
        super().__init__(
            state_dims,
            actions,
            rules=rules,
            horizon=horizon,
            scaling=scaling,
            temperature_min=temperature_min,
            growth=growth,
            damping=damping,
        )
        self.reference = reference
        self.reference_std = reference_std
        self.distance = {"euclidean": euclidean, "infinity": infinity}[rules.metric]

    def value(self, next_state: State) -> float:
        ratio = self.distance(self.state, self.reference) / self.reference_std
        return math.exp(-(ratio * ratio)) * super().value(next_state)


def euclidean(x: State, y: State) -> float:
    total = 0.0
    for a, b in zip(x, y, strict=True):
        total += (a - b) * (a - b)
    return math.sqrt(total)


def infinity(x: State, y: State) -> float:
    return max(abs(a - b) for a, b in zip(x, y, strict=True))
