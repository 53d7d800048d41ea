"""Robustness: what a controller returns on a plant that is not the one it was learned on."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from spaql.evaluation.bench import Bench, find_bench
from spaql.evaluation.episodes import Playable, evaluate, policy_and_problem
from spaql.evaluation.parameters import parameters_of, with_parameters
from spaql.policy import DelayedPolicy, DisturbedPolicy, NoisyPolicy, Policy, RecordingPolicy
from spaql.problems import EnvironmentLike, Problem, make_problem
from spaql.rollouts.returns import Evaluation
from spaql.rollouts.seeds import Purpose, generator
from spaql.stats import mean_ci95


@dataclass(frozen=True)
class RobustnessRow:
    """Episodes under one change, from the same starts as under all others."""

    change: str
    mean: float
    ci95: float
    """Half-width of the 95 % interval of the mean."""
    worst: float
    """The lowest return."""
    difference: float
    """Mean return less the nominal one."""
    difference_ci95: float
    """Half-width of its 95 % interval, from the differences of each episode."""


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
    """Change the plant, add noise, disturb and delay the actions, and compare with the nominal episodes.

    It takes any Gymnasium environment, which begins its episodes where it always does. No actions are drawn.
    All rows have the same starts and noise (common random numbers), so that small differences can be seen.

    Parameters
    ----------
    agent
        An agent or controller; a policy or rule tree, which needs `env`; or the path of a run folder or file.
    env
        The nominal plant; the agent's own problem by default.
    bench
        Says which parameters there are; known for the problems of classic control.
    parameters
        Arguments of the environment's constructor, or attributes of its `unwrapped`, to change (see
        `spaql.evaluation.parameters_of`); those of the bench by default.
    factors
        Each parameter is multiplied by each of them.
    values
        Parameters with values that they are to have, each in a row of its own.
    noise
        Standard deviations of Gaussian noise on every observation, as parts of the standard deviation that it
        has in the nominal episodes.
    disturbance
        The same for Gaussian noise on every number of an action, which is cut to its bounds; of a list of
        actions, how often one that is drawn at random is played instead.
    variants
        Other plants by name, for what no attribute changes, such as `spaql.Dynamics` of other constants.
    episodes
        Of each row.
    seed
        Of the episodes and the noise.

    Returns
    -------
    list of RobustnessRow
        The first is the nominal plant, the last one that acts a step late.

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
        parameters = bench.parameters if bench is not None else ()
    values = values or {}
    plain = changed(problem, {}) if parameters or values else problem

    def run(policy: Policy, where: Problem) -> Evaluation:
        # In compiled loops a partition would begin elsewhere than the policies around it do.
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
        results[name] = run(policy, make_problem(variant))
    spread = watched.visited.std(axis=0)
    for level in noise:
        noisy = NoisyPolicy(policy, level * spread, generator(seed, Purpose.DISTURBANCE, 0))
        results[f"noise {100 * level:.3g} %"] = run(noisy, plain)
    for level in disturbance:
        disturbed = DisturbedPolicy(policy, level, watched.played, generator(seed, Purpose.DISTURBANCE, 1))
        results[f"actions {100 * level:.3g} % off"] = run(disturbed, plain)
    results["one step late"] = run(DelayedPolicy(policy), plain)
    return [_row(name, result, results["nominal"]) for name, result in results.items()]


def changed(problem: Problem, factors: Mapping[str, float], bench: Bench | None = None) -> Problem:
    """Multiply parameters of a problem's environment, and compute anew what depends on them.

    Compiled dynamics hold their constants in the code, so it is for Gymnasium's environments.

    Examples
    --------
    >>> problem = make_problem("cartpole200")
    >>> heavy = changed(problem, {"masspole": 2.0})
    >>> heavy.make().unwrapped.total_mass
    1.2
    """
    known = parameters_of(problem) if factors else {}
    # An unknown name is refused below.
    values = {name: factor * known.get(name, 1.0) for name, factor in factors.items()}
    return with_parameters(problem, values, bench)


def _row(change: str, result: Evaluation, nominal: Evaluation) -> RobustnessRow:
    difference, half = mean_ci95(result.returns - nominal.returns)
    return RobustnessRow(change, result.mean, result.ci95, float(result.returns.min()), difference, half)
