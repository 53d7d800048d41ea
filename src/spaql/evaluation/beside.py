"""A controller beside textbook controllers, in the same fresh episodes."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

from spaql.agents import Agent, Controller
from spaql.classical import tune
from spaql.evaluation.control import ControlMeasures, evaluate_control
from spaql.evaluation.episodes import Playable, policy_and_problem
from spaql.evaluation.step_test import Response, has_step_test, step_test
from spaql.problems import EnvironmentLike
from spaql.rollouts import Evaluation
from spaql.stats import mean_ci95

TUNING_STEPS = 200_000
"""Simulator steps for the tuning of each controller, if not known from a run."""


def steps_of(agent: Agent | Controller) -> int:
    """Return the simulator steps of a run, or `TUNING_STEPS` where they are not known."""
    if isinstance(agent, Agent) and len(agent.history):
        return max(1, int(agent.history.last()["interactions"]))
    return TUNING_STEPS


@dataclass(frozen=True)
class Judged:
    """A controller, judged in fresh episodes."""

    name: str
    evaluation: Evaluation
    control: ControlMeasures
    law: str = ""
    """Of a textbook controller, for people."""
    numbers: int = 0
    """How many numbers of it were tuned."""
    steps: int = 0
    """Simulator steps of its tuning."""
    difference: float = 0.0
    """Mean return minus that of the first controller, in the same episodes."""
    difference_ci95: float = 0.0
    """Half-width of the 95 % interval of the difference, from paired episodes."""
    response: Response | None = None
    """What it did in a step test, where there is one (see `spaql.evaluation.step_test`)."""


def beside(
    agent: Playable,
    env: EnvironmentLike | None = None,
    *,
    methods: Sequence[str] = ("pid", "lqr"),
    steps: int = TUNING_STEPS,
    episodes: int = 100,
    seed: int = 0,
    deterministic: bool = False,
) -> list[Judged]:
    """Judge a controller, and textbook controllers that are tuned for the same problem.

    Parameters
    ----------
    agent
        An agent or controller; a policy or rule tree, which needs `env`; or the path of a run folder or file.
    env
        The problem to judge and tune on; the agent's own by default.
    methods
        The textbook controllers (see `spaql.classical.tune`).
    steps
        Simulator steps for the tuning of each.
    episodes
        Number of fresh episodes, the same for all. Policies of partitions have other ones in compiled
        dynamics.
    seed
        Of the tuning and of the episodes, which are different streams.
    deterministic
        Play a ball's centre or first action instead of drawing from it.

    Examples
    --------
    >>> from spaql import RandomPolicy, make_problem
    >>> oven = make_problem("spaql/Oven-v0")
    >>> policy = RandomPolicy(oven.states, oven.actions)
    >>> rows = beside(policy, oven, methods=["pid"], steps=20_000, episodes=5)
    >>> [row.name for row in rows], rows[1].difference > 0
    (['this', 'pid'], True)
    """
    policy, problem = policy_and_problem(agent, env)
    tuned = [tune(problem, method, steps=steps, seed=seed) for method in methods]
    evaluated = evaluate_control(policy, problem, episodes=episodes, seed=seed, deterministic=deterministic)
    first = Judged("this", *evaluated)
    rows = [first]
    policies = {"this": policy, **{one.name: one.policy for one in tuned}}
    responses = step_test(problem, policies).responses if has_step_test(problem) else {}
    for one in tuned:
        evaluation, control = evaluate_control(one.policy, problem, episodes=episodes, seed=seed)
        off, half = mean_ci95(evaluation.returns - first.evaluation.returns)
        rows.append(Judged(one.name, evaluation, control, one.text, one.numbers, one.steps, off, half))
    return [dataclasses.replace(row, response=responses.get(row.name)) for row in rows]
