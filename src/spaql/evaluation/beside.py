"""A controller compared with others in fresh episodes: classical ones, and random and constant actions."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from gymnasium.spaces import Box, Discrete
from numpy.typing import ArrayLike

from spaql.agents import Agent, Design
from spaql.classical import Tuned, tune
from spaql.classical.tuning import check_method
from spaql.controllers import Controller, Laws, Policy, RandomPolicy
from spaql.controllers.arrays import action_range
from spaql.errors import SettingError
from spaql.evaluation.conditions import CONDITION_TEXTS, conditions_of, in_condition
from spaql.evaluation.control import ControlMeasures, evaluate_control
from spaql.evaluation.episodes import Playable, evaluate, policy_and_problem
from spaql.formatting import number, places, with_interval
from spaql.problems import EnvironmentLike, Problem
from spaql.simulate import Evaluation
from spaql.stats import mean_ci95, standard_error, t975
from spaql.tables import TextTable
from spaql.values import whole_number

TUNING_STEPS = 200_000
"""Simulator steps for the tuning of each controller, if not known from a run."""
_LEAST = 0.01
"""Fraction of the return below which a difference does not count, as in the comparison of structures."""
_NAMES = {"pid": "a PID controller", "lqr": "an LQR"}


def steps_of(agent: Agent | Design) -> int:
    """Return the simulator steps of a run, or `TUNING_STEPS` where they are not known."""
    if isinstance(agent, Agent) and len(agent.history):
        return max(1, int(agent.history.last()["interactions"]))
    return TUNING_STEPS


@dataclass(frozen=True)
class Judged:
    """A controller, evaluated in fresh episodes."""

    name: str
    evaluation: Evaluation
    control: ControlMeasures
    law: str = ""
    """The law of a classical controller, for people."""
    numbers: int = 0
    """Number of tuned parameters."""
    steps: int = 0
    """Simulator steps of its tuning."""
    difference: float = 0.0
    """Mean return minus that of the first controller, in the same episodes."""
    difference_ci95: float = 0.0
    """Half-width of the 95 % interval of the difference, from paired episodes."""

    @property
    def is_outdone(self) -> bool:
        """Whether the first controller is significantly better, by at least 1 %."""
        size = max(_LEAST * abs(self.evaluation.mean), self.difference_ci95)
        return -self.difference > size

    @property
    def is_better(self) -> bool:
        """Whether it is significantly better than the first controller, by at least 1 %."""
        return self.difference > max(_LEAST * abs(self.evaluation.mean), self.difference_ci95)


@dataclass(frozen=True)
class ClassicalComparison:
    """A controller and classical controllers, evaluated in the same episodes of each condition."""

    conditions: Mapping[str, list[Judged]]
    """Rows by condition, `perturbed` or `nominal`: first the condition of the design, and in each the
    controller first."""
    refused: Mapping[str, str] = field(default_factory=dict)
    """Classical controllers that could not be built, and why."""

    @property
    def rows(self) -> list[Judged]:
        """The rows of the first condition, for which all controllers were designed."""
        return next(iter(self.conditions.values()))

    @property
    def verdict(self) -> str:
        """A sentence on the best classical controller; empty if there is none."""
        if len(self.rows) == 1:
            return ""
        best = max(range(1, len(self.rows)), key=lambda i: self.rows[i].evaluation.mean)
        rivals = {condition: rows[best] for condition, rows in self.conditions.items()}
        rival = _NAMES[self.rows[best].name]
        parts = ", ".join(
            f"{_difference(row, self.conditions[condition][0])} on {CONDITION_TEXTS[condition]}"
            for condition, row in rivals.items()
        )
        first = next(iter(rivals.values()))
        leads = first.difference < -_LEAST * abs(
            first.evaluation.mean
        )  # perhaps not significant, but not equal
        if leads or any(row.is_outdone for row in rivals.values()):
            return f"Compared with {rival}: {parts}."
        good = "better" if any(row.is_better for row in rivals.values()) else "as good"
        return f"{rival[0].upper()}{rival[1:]} is {good} here: use it (this controller: {parts})."


def _difference(row: Judged, this: Judged) -> str:
    """Return how much better or worse the first controller is than a classical controller."""
    gain = -row.difference
    theirs = row.evaluation.mean
    if abs(gain) < _LEAST * abs(theirs) or gain == 0.0:
        return "as good"
    word = "better" if gain > 0 else "worse"
    size = f"{100 * abs(gain / theirs):.0f} % {word}" if theirs * this.evaluation.mean > 0 else ""
    chance = "" if abs(gain) > row.difference_ci95 else " (not significant)"
    return (size or f"{word} by {abs(gain):.3g}") + chance


def tuned_methods(
    problem: Problem, methods: Sequence[str | Tuned], *, steps: int, seed: int
) -> tuple[list[Tuned], dict[str, str]]:
    """Return classical controllers, each tuned separately, and why others could not be built.

    Those that are tuned already are returned as they are.
    """
    steps = whole_number("steps", steps, least=1)
    tuned: list[Tuned] = []
    refused: dict[str, str] = {}
    for method in methods:
        if isinstance(method, Tuned):
            tuned.append(method)
            continue
        check_method(method)
        try:
            tuned.append(tune(problem, method, steps=steps, seed=seed))
        except SettingError as error:
            refused[method] = str(error)
        except np.linalg.LinAlgError as error:
            refused[method] = f"Its equations cannot be solved: {error}."
    return tuned, refused


def beside(
    agent: Playable,
    env: EnvironmentLike | None = None,
    *,
    methods: Sequence[str | Tuned] = ("pid", "lqr"),
    conditions: Sequence[str] | None = None,
    steps: int = TUNING_STEPS,
    episodes: int = 100,
    seed: int = 0,
) -> ClassicalComparison:
    """Evaluate a controller, and classical controllers tuned for the same plant.

    Parameters
    ----------
    agent
        An agent or design; a policy or controller, which needs `env`; or the path of a run folder or file.
    env
        The problem to evaluate and tune on; the agent's own by default.
    methods
        The classical controllers (see `spaql.classical.tune`), by name or tuned.
    conditions
        `perturbed` plants, the `nominal` plant, or both. Classical controllers are tuned for the first. By
        default that is the condition of the agent's design, followed by the other if it exists.
    steps
        Simulator steps for the tuning of each controller.
    episodes
        Number of fresh episodes in each condition, the same for all controllers. Partition policies have
        different episodes in compiled dynamics.
    seed
        Seed of the tuning and of the episodes, which use different streams.

    Examples
    --------
    >>> from spaql import RandomPolicy, make_problem
    >>> oven = make_problem("spaql/Oven-v0")
    >>> policy = RandomPolicy(oven.states, oven.actions)
    >>> result = beside(policy, oven, methods=["pid"], steps=20_000, episodes=5)
    >>> [row.name for row in result.rows], list(result.conditions), result.rows[1].difference > 0
    (['this', 'pid'], ['perturbed', 'nominal'], True)
    """
    policy, problem = policy_and_problem(agent, env)
    if conditions is None:
        conditions = conditions_of(agent, problem)
    tuned, refused = tuned_methods(in_condition(problem, conditions[0]), methods, steps=steps, seed=seed)
    judged: dict[str, list[Judged]] = {}
    for condition in conditions:
        where = in_condition(problem, condition)
        own = evaluate_control(policy, where, episodes=episodes, seed=seed)
        rows = [Judged("this", *own)]
        for method in tuned:
            evaluation, control = evaluate_control(method.policy, where, episodes=episodes, seed=seed)
            off, half = mean_ci95(evaluation.returns - own[0].returns)
            more = method.text, method.numbers, method.steps, off, half
            rows.append(Judged(method.name, evaluation, control, *more))
        judged[condition] = rows
    return ClassicalComparison(judged, refused)


_CHOSEN, _FEW, _MANY = 3, 20, 100
"""Episodes for the choice of the best constant; and for each baseline, in an environment and in
compiled dynamics."""
_MOST_ACTIONS = 10
"""Largest number of discrete actions that are tried as constants."""
_SURE = 2.0
"""Standard errors by which a controller must be better than one that has learned nothing."""
_RISING = 0.1
"""Share of the total improvement that came in the last fifth of the budget."""


@dataclass(frozen=True)
class PlainControllers:
    """Mean returns of trivial controllers, in fresh episodes."""

    returns: dict[str, float]
    errors: dict[str, float]
    """Standard errors of the means."""
    episodes: int
    steps: int
    """Simulator steps to choose and to evaluate them."""

    @property
    def text(self) -> str:
        """One line."""
        shown = ", ".join(f"{name} {number(mean, places(mean))}" for name, mean in self.returns.items())
        return f"{shown}  ({self.episodes} new episodes each)"

    @property
    def cells(self) -> TextTable:
        """A row for each."""
        return [
            {"controller": name, "return": with_interval(mean, t975(self.episodes - 1) * self.errors[name])}
            for name, mean in self.returns.items()
        ]

    def better(self, fresh: Evaluation) -> str:
        """Return which of them is better, or as good if it has learned nothing; empty if none is."""
        error = standard_error(fresh.returns)
        for name, mean in sorted(self.returns.items(), key=lambda item: -item[1]):
            sure = _SURE * math.hypot(error, self.errors[name])
            gain = fresh.mean - mean
            if gain < -sure or (gain <= sure and name != ONE_LEAF):
                word = "better" if mean > fresh.mean else "not significantly worse"
                return f"{name} is {word}"
        return ""


ONE_LEAF = "a law of one leaf"


def plain_controllers(agent: Agent, *, seed: int) -> PlainControllers:
    """Evaluate random actions, the best constant, and a law of one leaf, if the training had one.

    Examples
    --------
    >>> import spaql
    >>> agent = spaql.PlanTree("CartPole-v1", seed=0).learn(600, progress_bar=False)
    >>> list(plain_controllers(agent, seed=1).returns)
    ['random', 'always push right']
    """
    problem = agent.problem
    steps = 0

    def played(policy: Policy, episodes: int, seed: int) -> Evaluation:
        nonlocal steps
        evaluation = evaluate(policy, problem, episodes=episodes, seed=seed)
        steps += evaluation.steps
        return evaluation

    constants = _constants(problem)
    chosen = max(constants, key=lambda name: played(constants[name], _CHOSEN, seed + 1).mean)
    rivals: dict[str, Policy] = {
        "random": RandomPolicy(problem.states, problem.actions),
        f"always {chosen}": constants[chosen],
    }
    if agent.first_law is not None:
        rivals[ONE_LEAF] = agent.first_law
    episodes = _FEW if problem.dynamics is None else _MANY
    evaluations = {name: played(policy, episodes, seed) for name, policy in rivals.items()}
    return PlainControllers(
        {name: evaluation.mean for name, evaluation in evaluations.items()},
        {name: standard_error(evaluation.returns) for name, evaluation in evaluations.items()},
        episodes,
        steps,
    )


def failure(agent: Agent, fresh: Evaluation, plain: PlainControllers) -> str:
    """Return why training seems to have failed or ended too early, and what to do; empty otherwise."""
    better = plain.better(fresh)
    if better:
        why = f"Training seems to have failed: {better}."
    elif agent.learner_type.name == "treesearch" and is_rising(agent):
        why = "The returns were still rising when the budget ended."
    else:
        return ""
    other = {"plantree": "treesearch", "treesearch": "plantree"}[agent.learner_type.name]
    return f"{why} Try more steps (--steps), several seeds (--tries 8), or --algo {other}."


def is_rising(agent: Agent) -> bool:
    """Return whether returns were still rising in the last fifth of the iterations."""
    returns = agent.history["mean_return"]
    returns = returns[np.isfinite(returns)]
    fifth = len(returns) // 5
    if fifth < 2:
        return False
    first = returns[:fifth].mean()
    before = returns[-2 * fifth : -fifth].mean()
    last = returns[-fifth:].mean()
    return bool(last - before > _RISING * abs(last - first))


def _constants(problem: Problem) -> dict[str, Policy]:
    """Return constant policies: each of a few discrete actions, or the middle and the ends of ranges."""
    space = problem.actions.space
    if isinstance(space, Discrete):
        count = min(int(space.n), _MOST_ACTIONS)
        names = problem.actions.names or tuple(map(str, range(count)))
        return {names[k]: _always(problem, int(space.start) + k) for k in range(count)}
    assert isinstance(space, Box)
    low, high = action_range(space)
    policies: dict[str, Policy] = {}
    for share in (0.0, 0.5, 1.0):
        action = low + share * (high - low)
        name = ", ".join(number(value, places(value)) for value in action.tolist())
        policies[name] = _always(problem, action)
    return policies


def _always(problem: Problem, action: ArrayLike) -> Controller:
    """Return a controller with one leaf and a constant action."""
    return Controller(
        laws=Laws.of_actions(np.array([action]), problem.actions.space, problem.states.dims),
        observation_space=problem.states.space,
        action_space=problem.actions.space,
        observations=problem.states.names,
        actions=problem.actions.names,
    )
