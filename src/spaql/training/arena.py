"""Where episodes happen: in compiled dynamics, or in Gymnasium environments."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
from numpy.typing import NDArray

from spaql.algorithms import Learner, PartitionLearner
from spaql.errors import BadEnvironmentError, SettingError
from spaql.kernels.batch import tally
from spaql.kernels.steps import Journal, Rules, new_journal
from spaql.partition import Partition
from spaql.policy import PartitionPolicy, Policy
from spaql.policy.policy import Rng
from spaql.problems import Problem
from spaql.problems.environment import DynamicsEnv
from spaql.problems.guard import Guard, GuardedEnv, GuardedVectorEnv
from spaql.training.results import Evaluation

_TOGETHER_AT_MOST = 1_000_000
_TRAINING, _EVALUATION = "a training episode", "an evaluation episode"


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
        self._single: GuardedEnv | None = None
        self._vector: GuardedVectorEnv | None = None

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
                learner.trainee,
                learner.time_variant,
                learner.rules,
                rng,
                journal=learner.journal,
                trained=trained,
                drawn=True,
            )
            return steps, evaluation
        steps = self.train_episode(learner, rng)[0] if trained else 0
        return steps, self.evaluate(learner.candidate, rng)

    def evaluate(self, policy: Policy, rng: Rng, *, deterministic: bool = False) -> Evaluation:
        """Run the episodes of an evaluation."""
        if self._problem.dynamics is not None and isinstance(policy, PartitionPolicy):
            rules = Rules(self._problem.horizon, 0.0, 0.0, np.zeros(policy.states.dims), math.inf, False)
            return self._iterate_compiled(
                policy.partition,
                policy.time_variant,
                rules,
                rng,
                journal=new_journal(0),
                trained=False,
                drawn=not deterministic,
            )[2]
        return self._run_together(policy, rng, None if deterministic else rng)

    def _iterate_compiled(
        self,
        partition: Partition,
        time_variant: bool,
        rules: Rules,
        rng: Rng,
        *,
        journal: Journal,
        trained: bool,
        drawn: bool,
    ) -> tuple[int, int, Evaluation]:
        """Train, if wanted, and evaluate in one call; gives the steps and splits of the training."""
        problem, n = self._problem, self._rollouts
        assert problem.dynamics is not None
        if trained:
            partition.reserve(problem.horizon * partition.children_at_most)
        evaluation = Evaluation(np.empty(n), np.empty(n, np.int64), np.empty((n, problem.states.dims)))
        told = np.zeros(problem.states.dims + 1)
        steps, splits, sound, bad = problem.dynamics.loops.iterate(
            partition.balls,
            journal,
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
            told,
        )
        if not sound:
            raise self._lost(_TRAINING, steps, told)
        if bad >= 0:
            raise self._lost(_EVALUATION, int(evaluation.lengths[bad]), told, evaluation.returns[bad], bad)
        return steps, splits, evaluation

    def _lost(
        self,
        episode: str,
        step: int,
        told: NDArray[np.float64],
        total: float | None = None,
        number: int | None = None,
    ) -> BadEnvironmentError:
        """Say what compiled dynamics told last: an observation, and a reward."""
        guard = self._guard(episode)
        guard.step = step
        if not np.isfinite(told[:-1]).all():
            return guard.refusal(f"gave the observation {told[:-1]}", number)
        added = "" if total is None else f"; rewards add up to {total}"
        return guard.refusal(f"gave the reward {told[-1]}{added}", number)

    def _guard(self, episode: str) -> Guard:
        return Guard(self._problem.name, self._problem.states.space, episode)

    def train_episode(self, learner: Learner, rng: Rng) -> tuple[int, float]:
        """Let the learner play and learn from one episode; gives its steps and its return."""
        problem = self._problem
        if self._single is None:
            spaces = problem.states.space, problem.actions.space
            # In compiled dynamics, a step is the same to the last bit for every version of NumPy.
            compiled = problem.dynamics
            make = problem.make if compiled is None else partial(DynamicsEnv, compiled.id)
            self._single = GuardedEnv(make, self._guard(_TRAINING), spaces, problem.step_timeout)
        observation = self._single.reset(seed=int(rng.integers(2**31)))
        learner.begin(observation)
        total = 0.0
        limit = learner.episode_limit()
        for taken in range(1, limit + 1):
            observation, reward, terminated, truncated = self._single.step(learner.act(rng))
            learned = problem.learning_reward(reward) if learner.standardised else reward
            learner.learn(learned, observation, terminated)
            total += reward
            if terminated or truncated:
                return taken, total
        return limit, total

    def _run_together(self, policy: Policy, rng: Rng, draws: Rng | None) -> Evaluation:
        """Run one episode in each of many environments.

        An environment whose episode has ended is stepped on with the others (Gymnasium resets it on
        the next step), but what it does then counts for nothing.
        """
        problem, n = self._problem, self._rollouts
        if self._vector is None:
            guard = self._guard(_EVALUATION)
            self._vector = GuardedVectorEnv(problem.make_vector(n), guard, problem.step_timeout)
        observations = self._vector.reset(seed=int(rng.integers(2**31)))
        starts = problem.states.batch(observations).copy()
        returns, lengths = np.zeros(n), np.zeros(n, np.int64)
        running = np.ones(n, np.bool_)
        steps = np.zeros(n, np.int64)
        for _ in range(problem.horizon):
            actions = policy.act(observations, steps, draws)
            observations, rewards, terminated, truncated = self._vector.step(actions, running)
            going_on = tally(rewards, terminated, truncated, running, returns, lengths)
            if not np.isfinite(returns).all():
                bad = int(np.flatnonzero(~np.isfinite(returns))[0])
                raise self._vector.guard.refusal(
                    f"gave the reward {rewards[bad]}; rewards add up to {returns[bad]}", bad
                )
            if not going_on:
                break
            steps += 1
        return Evaluation(returns, lengths, starts)
