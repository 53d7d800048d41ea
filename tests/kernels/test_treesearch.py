"""The kernels of TreeSearch against slow, obvious definitions."""

import math

import gymnasium
import numpy as np
import pytest

from spaql import make_problem
from spaql.algorithms.treesearch.rule_trees import idle_controller, to_rules
from spaql.algorithms.treesearch.trees import one_leaf, random_tree
from spaql.controllers.arrays import action_range, frame_of
from spaql.kernels.treesearch.candidates import Units, score_candidates
from spaql.kernels.treesearch.cma import ask, new_distribution, population_size, tell
from spaql.simulate import Candidates
from spaql.simulate.candidates import CompiledCandidates


def reference_tell(state, xs, scores):
    """One update of CMA-ES as in Hansen's tutorial, with the whitening by the Cholesky factor."""
    mean, covariance, path, step_path, size, age = state
    n = len(mean)
    count = len(xs)
    mu = count // 2
    weights = np.log(mu + 0.5) - np.log(np.arange(1, mu + 1))
    weights /= weights.sum()
    mass = 1 / (weights**2).sum()
    cc = (4 + mass / n) / (n + 4 + 2 * mass / n)
    cs = (mass + 2) / (n + mass + 5)
    c1 = 2 / ((n + 1.3) ** 2 + mass)
    cmu = min(1 - c1, 2 * (mass - 2 + 1 / mass) / ((n + 2) ** 2 + mass))
    damping = 1 + 2 * max(0, math.sqrt((mass - 1) / (n + 1)) - 1) + cs
    expected = math.sqrt(n) * (1 - 1 / (4 * n) + 1 / (21 * n * n))
    best = np.argsort(-scores, kind="stable")[:mu]
    moves = (xs[best] - mean) / size
    step = weights @ moves
    white = np.linalg.solve(np.linalg.cholesky(covariance), step)
    step_path = (1 - cs) * step_path + math.sqrt(cs * (2 - cs) * mass) * white
    age += 1
    length = np.linalg.norm(step_path)
    moving = length / math.sqrt(1 - (1 - cs) ** (2 * age)) <= (1.4 + 2 / (n + 1)) * expected
    path = (1 - cc) * path + moving * math.sqrt(cc * (2 - cc) * mass) * step
    covariance = (
        (1 - c1 - cmu + (not moving) * c1 * cc * (2 - cc)) * covariance
        + c1 * np.outer(path, path)
        + cmu * (moves.T * weights) @ moves
    )
    return (
        mean + size * step,
        covariance,
        path,
        step_path,
        size * math.exp(min(1, cs / damping * (length / expected - 1))),
        age,
    )


def test_cma_is_hansens():
    rng = np.random.default_rng(0)
    n = 7
    distribution = new_distribution(rng.normal(size=n), np.exp(rng.normal(size=n)), 0.5)
    state = (
        distribution.mean.copy(),
        distribution.covariance.copy(),
        np.zeros(n),
        np.zeros(n),
        0.5,
        0,
    )
    xs = np.empty((population_size(n), n))
    for _ in range(60):
        ask(distribution, rng, xs)
        scores = -(xs**2) @ np.arange(1.0, n + 1)
        state = reference_tell(state, xs, scores)
        tell(distribution, xs, scores)
        np.testing.assert_allclose(distribution.mean, state[0], rtol=1e-8, atol=1e-10)
        np.testing.assert_allclose(distribution.covariance, state[1], rtol=1e-6, atol=1e-12)
        np.testing.assert_allclose(distribution.scalars, state[4:], rtol=1e-8)
        np.testing.assert_allclose(
            distribution.factor @ distribution.factor.T, distribution.covariance, rtol=1e-8, atol=1e-14
        )
    assert np.abs(distribution.mean).max() < 0.05


def test_cma_solves_a_narrow_valley():
    rng = np.random.default_rng(1)
    n = 6
    distribution = new_distribution(np.zeros(n), np.ones(n), 0.5)
    xs = np.empty((population_size(n), n))
    for _ in range(600):
        ask(distribution, rng, xs)
        scores = -np.array([(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum() for x in xs])
        tell(distribution, xs, scores)
    np.testing.assert_allclose(distribution.mean, 1.0, atol=1e-3)


def test_scores_are_means_mixed_with_the_worst_quarter():
    rng = np.random.default_rng(2)
    returns = rng.normal(size=(9, 12))
    movement = rng.random((9, 12))
    scores = np.empty(9)
    agreement = score_candidates(returns, movement, 0.5, 0.2, scores)
    rows = returns - 0.5 * movement
    wanted = 0.8 * rows.mean(axis=1) + 0.2 * np.sort(rows, axis=1)[:, :3].mean(axis=1)
    np.testing.assert_allclose(scores, wanted)
    halves = rows[:, ::2].mean(axis=1), rows[:, 1::2].mean(axis=1)
    assert agreement == pytest.approx(np.corrcoef(*halves)[0, 1])


@pytest.mark.parametrize("name", ["CartPole-v1", "MountainCarContinuous-v0", "Acrobot-v1"])
def test_returns_are_those_of_the_rule_tree_in_gymnasium(name):
    """The loop plays what the tree that is handed over plays, in the environment itself."""
    problem = make_problem(name)
    rng = np.random.default_rng(5)
    dims = problem.states.dims
    ends = action_range(problem.actions.space)
    listed = not len(ends.low)
    rows = int(problem.actions.space.n) if listed else len(ends.low)
    units = Units(np.zeros(dims), np.full(dims, 0.3), np.zeros(rows), np.ones(rows))
    player = CompiledCandidates(problem)
    frame = frame_of(dims, problem.actions.space)
    starts = player.starts(rng, 4)
    tree = random_tree(one_leaf(rows, dims, listed=listed), 3, rng.normal(size=(9, dims)), rng)
    vectors = rng.normal(size=(3, len(tree.vector)))
    played = player.play(
        Candidates.of(tree.left, tree.allowed, tree.raw(units, vectors=vectors), frame), starts
    )
    env = gymnasium.make(name)
    steps = 0
    for c, vector in enumerate(vectors):
        rules = to_rules(tree.with_vector(vector), units, idle_controller(problem))
        for i, start in enumerate(starts):
            env.reset(seed=0)
            env.unwrapped.state = np.array(start)
            x = env.unwrapped._get_ob() if hasattr(env.unwrapped, "_get_ob") else np.array(start, np.float32)
            total = 0.0
            moved = 0.0
            before = None
            over = False
            while not over:
                action = rules.act(np.asarray(x)[np.newaxis])[0]
                if before is not None:
                    change = np.abs(np.asarray(action, float) - before)
                    moved += float(change > 0) if listed else float((change / (ends.high - ends.low)).sum())
                before = np.asarray(action, float)
                x, reward, terminated, truncated, _ = env.step(action)
                total = total + reward
                steps = steps + 1
                over = terminated or truncated
            assert played.returns[c, i] == pytest.approx(total, rel=1e-5)
            assert played.movement[c, i] == pytest.approx(moved, rel=1e-4, abs=1e-6)
    assert played.steps == steps
