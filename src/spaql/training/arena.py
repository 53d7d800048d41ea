"""Where episodes happen: in compiled dynamics, or in Gymnasium environments."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from spaql.algorithms import Learner, PartitionLearner
from spaql.errors import BadEnvironmentError, SettingError
from spaql.kernels.batch import tally
from spaql.kernels.steps import Rules
from spaql.partition import Partition
from spaql.policy import PartitionPolicy, Policy
from spaql.policy.policy import Rng
from spaql.problems import Problem
from spaql.training.results import Evaluation

_TOGETHER_AT_MOST = 1_000_000


class Arena:
    """Runs training episodes, and the episodes of evaluations.

    What follows the kernels runs in compiled dynamics, if the problem has them; all else in Gymnasium
    environments, which are made when they are first needed.
    """

    def __init__(self, problem: Problem, rollouts: int) -> None:
        if rollouts > _TOGETHER_AT_MOST:
            raise SettingError(f"{rollouts} episodes are too many to run together: ask for fewer rollouts.")
        self._problem = problem
        self._rollouts = rollouts
        self._single: Any = None
        self._vector: Any = None

    def close(self) -> None:
        """Close the environments."""
        for env in (self._single, self._vector):
            if env is not None:
                env.close()

    def iterate(self, learner: Learner, rng: Rng, *, trained: bool) -> tuple[int, Evaluation]:
        """Train for an episode, if wanted, and evaluate; gives the training steps and the evaluation."""
        compiled = self._problem.dynamics is not None
        if compiled and isinstance(learner, PartitionLearner) and learner.follows_the_kernels:
            steps, learner.splits, evaluation = self._iterate_compiled(
                learner.trainee, learner.time_variant, learner.rules, rng, trained=trained, drawn=True
            )
            return steps, evaluation
        steps = self._train_episode(learner, rng) if trained else 0
        return steps, self.evaluate(learner.candidate, rng)

    def evaluate(self, policy: Policy, rng: Rng, *, deterministic: bool = False) -> Evaluation:
        """Run the episodes of an evaluation."""
        if self._problem.dynamics is not None and isinstance(policy, PartitionPolicy):
            rules = Rules(self._problem.horizon, 0.0, 0.0, np.zeros(policy.states.dims), math.inf, False)
            return self._iterate_compiled(
                policy.partition, policy.time_variant, rules, rng, trained=False, drawn=not deterministic
            )[2]
        return _checked(self._run_together(policy, rng, None if deterministic else rng))

    def _iterate_compiled(
        self, partition: Partition, time_variant: bool, rules: Rules, rng: Rng, *, trained: bool, drawn: bool
    ) -> tuple[int, int, Evaluation]:
        """Train, if wanted, and evaluate in one call; gives the steps and splits of the training."""
        problem, n = self._problem, self._rollouts
        assert problem.dynamics is not None
        if trained:
            partition.reserve(problem.horizon * partition.children_at_most)
        evaluation = Evaluation(np.empty(n), np.empty(n, np.int64), np.empty((n, problem.states.dims)))
        steps, splits, sound = problem.dynamics.loops.iterate(
            partition.balls,
            partition.trees,
            time_variant,
            rules,
            problem.states.state_map,
            problem.states.thresholds,
            problem.actions.action_map,
            *problem.reward_range,
            trained,
            drawn,
            rng,
            evaluation.returns,
            evaluation.lengths,
            evaluation.starts,
        )
        if not sound:
            raise BadEnvironmentError(
                f"Step {steps} of a training episode of {problem.name} gave NaN, or an infinite reward."
            )
        return steps, splits, _checked(evaluation)

    def _train_episode(self, learner: Learner, rng: Rng) -> int:
        """Let the learner play and learn from one episode; gives the number of its steps."""
        if self._single is None:
            self._single = self._problem.make()
        observation, _ = self._single.reset(seed=int(rng.integers(2**31)))
        learner.begin(observation)
        for taken in range(1, self._problem.horizon + 1):
            observation, reward, terminated, truncated, _ = self._single.step(learner.act(rng))
            learner.learn(self._problem.learning_reward(float(reward)), observation, bool(terminated))
            if terminated or truncated:
                return taken
        return self._problem.horizon

    def _run_together(self, policy: Policy, rng: Rng, draws: Rng | None) -> Evaluation:
        """Run one episode in each of many environments.

        An environment whose episode has ended is stepped on with the others (Gymnasium resets it on
        the next step), but what it does then counts for nothing.
        """
        if self._vector is None:
            self._vector = self._problem.make_vector(self._rollouts)
        n = self._rollouts
        observations, _ = self._vector.reset(seed=int(rng.integers(2**31)))
        starts = self._problem.states.batch(observations).copy()
        returns, lengths = np.zeros(n), np.zeros(n, np.int64)
        running = np.ones(n, np.bool_)
        steps = np.zeros(n, np.int64)
        for _ in range(self._problem.horizon):
            actions = policy.act(observations, steps, draws)
            observations, rewards, terminated, truncated, _ = self._vector.step(actions)
            rewards, terminated = np.asarray(rewards), np.asarray(terminated)  # some give JAX's arrays
            if not tally(rewards, terminated, np.asarray(truncated), running, returns, lengths):
                break
            steps += 1
        return Evaluation(returns, lengths, starts)


def _checked(evaluation: Evaluation) -> Evaluation:
    sound = np.isfinite(evaluation.returns)
    if not sound.all():
        bad = int(np.flatnonzero(~sound)[0])
        raise BadEnvironmentError(f"The rewards of episode {bad} add up to {evaluation.returns[bad]}.")
    return evaluation
