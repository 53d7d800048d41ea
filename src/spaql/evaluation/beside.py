"""A controller compared with classical controllers, in the same fresh episodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from spaql.agents import Agent, Design
from spaql.classical import Tuned, tune
from spaql.classical.tuning import check_method
from spaql.errors import SettingError
from spaql.evaluation.conditions import CONDITION_TEXTS, conditions_of, in_condition
from spaql.evaluation.control import ControlMeasures, evaluate_control
from spaql.evaluation.episodes import Playable, policy_and_problem
from spaql.problems import EnvironmentLike, Problem
from spaql.simulate import Evaluation
from spaql.stats import mean_ci95
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
class Comparison:
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
) -> Comparison:
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
    return Comparison(judged, refused)
