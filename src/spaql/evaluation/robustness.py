"""Robustness: returns of a controller on plants that differ from the one in training."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spaql.evaluation.bench import Bench, find_bench
from spaql.evaluation.conditions import PERTURBED, in_condition
from spaql.evaluation.episodes import Playable, evaluate, policy_and_problem
from spaql.evaluation.plant_parameters import parameters_of, with_parameters
from spaql.policy import DelayedPolicy, DisturbedPolicy, NoisyPolicy, Policy, RecordingPolicy
from spaql.problems import EnvironmentLike, Problem, make_problem
from spaql.problems.perturbed import paired_states
from spaql.simulate.batches import fresh_states
from spaql.simulate.play import play
from spaql.simulate.returns import Evaluation
from spaql.simulate.seeds import Purpose, generator
from spaql.stats import mean_ci95


@dataclass(frozen=True)
class RobustnessRow:
    """Episodes under one change of the plant, with the same starts for all changes."""

    change: str
    mean: float
    ci95: float
    """Half-width of the 95 % interval of the mean."""
    worst: float
    """The lowest return."""
    difference: float
    """Mean return minus the nominal one."""
    difference_ci95: float
    """Half-width of its 95 % interval, from paired differences."""


def robustness(
    agent: Playable,
    env: EnvironmentLike | None = None,
    *,
    bench: Bench | None = None,
    parameters: Sequence[str] | None = None,
    factors: Sequence[float] = (0.8, 1.2),
    values: Mapping[str, Sequence[float]] | None = None,
    noise: Sequence[float] = (0.01, 0.05),
    disturbance: Sequence[float] = (0.05,),
    variants: Mapping[str, EnvironmentLike] | None = None,
    episodes: int = 100,
    seed: int = 0,
) -> list[RobustnessRow]:
    """Compare returns under changed parameters, noise, disturbed and delayed actions with nominal ones.

    It takes any Gymnasium environment, with its own initial states. Actions are deterministic. All rows have
    the same starts and noise (common random numbers), so that small differences are visible.

    Parameters
    ----------
    agent
        An agent or controller; a policy or rule tree, which needs `env`; or the path of a run folder or file.
    env
        The nominal plant; the agent's own problem by default.
    bench
        Declares the parameters; known for the problems of classic control.
    parameters
        Arguments of the environment's constructor, or attributes of its `unwrapped`, to change (see
        `spaql.evaluation.parameters_of`); by default those that the plant declares, or those of the bench.
    factors
        Factors by which each parameter is multiplied, one row each.
    values
        Values of parameters, one row each.
    noise
        Standard deviations of Gaussian noise on every observation, relative to its standard deviation in the
        nominal episodes.
    disturbance
        The same for Gaussian noise on every number of an action, which is cut to its bounds; for Discrete
        actions, the probability that a random action replaces the chosen one.
    variants
        Other plants by name, such as `spaql.Dynamics` with other constants.
    episodes
        Number of episodes of each row.
    seed
        Of the episodes and the noise.

    Returns
    -------
    list of RobustnessRow
        The first is the nominal plant, the last one has actions that are delayed by a step. A plant that
        declares disturbances, parameters or set-points has a row with its `spaql.problems.perturbed`, whose
        gains, dead time and parameters are drawn for each episode.

    Examples
    --------
    >>> import spaql
    >>> agent = spaql.SPAQL("cartpole200", seed=0)
    >>> rows = robustness(agent, parameters=["length"], noise=[0.05], episodes=5)
    >>> [row.change for row in rows]
    ['nominal', 'length × 0.8', 'length × 1.2', 'noise 5 %', 'actions 5 % off', 'one step late']
    """
    policy, problem = policy_and_problem(agent, env)
    bench = bench or find_bench(problem)
    if parameters is None:
        parameters = varied_parameters(problem, bench)
    values = values or {}
    plain = changed(problem, {}) if parameters or values else problem

    declares = problem.dynamics is not None and problem.dynamics.declares_more
    # In compiled loops a partition would have other starts than the policies that wrap it.
    states = fresh_states(RecordingPolicy(policy), problem, episodes, seed) if declares else None

    def run(policy: Policy, where: Problem) -> Evaluation:
        if states is not None and where.dynamics is not None:
            return _paired(policy, problem, states, where, seed)
        stepped = dataclasses.replace(where, dynamics=None)
        return evaluate(policy, stepped, episodes=episodes, seed=seed, deterministic=True)

    watched = RecordingPolicy(policy)
    results = {"nominal": run(watched, plain)}
    for name in parameters:
        for factor in factors:
            results[f"{name} × {factor:g}"] = run(policy, changed(problem, {name: factor}, bench))
    for name, wanted in values.items():
        for value in wanted:
            results[f"{name} = {value:g}"] = run(policy, with_parameters(problem, {name: value}, bench))
    for name, variant in (variants or {}).items():
        results[name] = run(policy, dataclasses.replace(make_problem(variant), dynamics=None))
    if declares:
        results[PERTURBED] = run(policy, in_condition(problem, PERTURBED))
    spread = watched.visited.std(axis=0)
    for level in noise:
        noisy = NoisyPolicy(policy, level * spread, generator(seed, Purpose.DISTURBANCE, 0))
        results[f"noise {100 * level:.3g} %"] = run(noisy, plain)
    for level in disturbance:
        disturbed = DisturbedPolicy(policy, level, watched.played, generator(seed, Purpose.DISTURBANCE, 1))
        results[f"actions {100 * level:.3g} % off"] = run(disturbed, plain)
    results["one step late"] = run(DelayedPolicy(policy), plain)
    return [_row(name, result, results["nominal"]) for name, result in results.items()]


def varied_parameters(problem: Problem, bench: Bench | None) -> tuple[str, ...]:
    """Return the parameters that are varied by default: those that the plant declares, or its bench."""
    if problem.dynamics is not None and problem.dynamics.parameters:
        return tuple(problem.dynamics.parameters)
    return bench.parameters if bench is not None else ()


def _paired(
    policy: Policy, nominal: Problem, states: NDArray[np.float64], where: Problem, seed: int
) -> Evaluation:
    """Return episodes on a changed plant with the starts, loads and noise of those on the nominal one."""
    assert nominal.dynamics is not None
    assert where.dynamics is not None
    rng = generator(seed, Purpose.DISTURBANCE, 2)
    starts = paired_states(nominal.dynamics, states, where.dynamics, rng)
    played = list(play(policy, where, starts))
    return Evaluation(
        np.array([episode.total for episode in played]),
        np.array([episode.length for episode in played]),
        np.array([episode.observations[0] for episode in played]),
    )


def changed(problem: Problem, factors: Mapping[str, float], bench: Bench | None = None) -> Problem:
    """Return a problem whose environment has parameters multiplied by factors (see `with_parameters`).

    Compiled dynamics have constants in the code, so that it is for Gymnasium's environments.

    Examples
    --------
    >>> problem = make_problem("cartpole200")
    >>> heavy = changed(problem, {"masspole": 2.0})
    >>> heavy.make().unwrapped.total_mass
    1.2
    """
    known = parameters_of(problem) if factors else {}
    # Unknown names raise below.
    values = {name: factor * known.get(name, 1.0) for name, factor in factors.items()}
    return with_parameters(problem, values, bench)


def _row(change: str, result: Evaluation, nominal: Evaluation) -> RobustnessRow:
    difference, half = mean_ci95(result.returns - nominal.returns)
    return RobustnessRow(change, result.mean, result.ci95, float(result.returns.min()), difference, half)
