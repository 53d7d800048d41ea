"""Episodes of training and evaluation: in compiled dynamics, or in Gymnasium environments."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Protocol

import numpy as np
from gymnasium.utils.seeding import np_random
from numpy.typing import NDArray

from spaql.controllers import PartitionPolicy, Policy
from spaql.controllers.policy import Rng
from spaql.errors import BadEnvironmentError, SettingError
from spaql.kernels.partition.rollout import Task, iterate
from spaql.kernels.partition.update import UpdateRules
from spaql.partition import Partition
from spaql.problems import Problem
from spaql.problems.disturbances import Perturbation
from spaql.problems.dynamics import Dynamics
from spaql.problems.environment import DynamicsEnv
from spaql.problems.guard import Guard, GuardedEnv, GuardedVectorEnv
from spaql.problems.stage_cost import BROKEN
from spaql.simulate.candidates import (
    CandidateEpisodes,
    CandidatePlayer,
    Candidates,
    CompiledCandidates,
    EnvironmentCandidates,
)
from spaql.simulate.loop import (
    GuardedPlantRows,
    GuardedRow,
    LoopTrace,
    Step,
    episodes_of,
    play_one,
    play_rows,
)
from spaql.simulate.play import record_compiled
from spaql.simulate.returns import Episode, Evaluation, Interactions, Phase

_TOGETHER_AT_MOST = 1_000_000
_TRAINING = "a training episode"
_EVALUATION = "an evaluation episode"


class EpisodeLearner(Protocol):
    """A learner, as the runner uses it."""

    standardised: ClassVar[bool]

    def episode_limit(self) -> int:
        """Return the largest number of steps of the next training episode."""

    def begin(self, observation: Any) -> None:
        """Start a training episode."""

    def act(self, rng: Rng) -> Any:
        """Return the next raw action."""

    def learn(self, reward: float, observation: Any, terminated: bool) -> None:
        """Learn from the transition."""


class EpisodeRunner:
    """Runs training and evaluation episodes, and counts every step.

    Partitions and controllers run in compiled dynamics, if the problem has them; all else in Gymnasium
    environments, which are made when they are first needed.

    Parameters
    ----------
    problem
        The problem.
    rollouts
        Episodes of an evaluation.
    """

    def __init__(self, problem: Problem, rollouts: int) -> None:
        if rollouts > _TOGETHER_AT_MOST:
            raise SettingError(f"rollouts is {rollouts}, and must be at most {_TOGETHER_AT_MOST}.")
        self.interactions = Interactions()
        self._problem = problem
        self._rollouts = rollouts
        self._single: GuardedEnv | None = None
        self._vector: GuardedVectorEnv | None = None
        self._candidates: dict[str, CandidatePlayer] = {}

    @property
    def beyond(self) -> str:
        """The first observation that left its declared range in training, as text; empty if none did."""
        return "" if self._single is None else self._single.guard.beyond

    def close(self) -> None:
        """Close the environments."""
        for opened in (self._single, self._vector, *self._candidates.values()):
            if opened is not None:
                opened.close()

    def candidate_starts(
        self, rng: Rng, n: int, plant: Dynamics | Perturbation | None = None
    ) -> NDArray[np.float64]:
        """Draw starts for `play_candidates`: states of compiled dynamics, else seeds."""
        return self.candidate_player(plant).starts(rng, n)

    def corner_starts(
        self, rng: Rng, n: int, plant: Dynamics | Perturbation | None = None
    ) -> NDArray[np.float64]:
        """Return starts near the corners of their distribution; none where starts are seeds."""
        return self.candidate_player(plant).corners(rng, n)

    def play_candidates(
        self,
        candidates: Candidates,
        starts: NDArray[np.float64],
        phase: Phase,
        visited: int = 0,
        plant: Dynamics | Perturbation | None = None,
    ) -> CandidateEpisodes:
        """Play every start with each candidate of a search, and keep some observations of the first.

        They may be played on another plant with the same spaces, such as a perturbed one.
        """
        episodes = self.candidate_player(plant).play(candidates, starts, visited)
        self.interactions.add(phase, episodes.steps)
        return episodes

    def candidate_player(self, plant: Dynamics | Perturbation | None) -> CandidatePlayer:
        """Return the player of candidates in the problem's plant, or in another with the same spaces."""
        assert not isinstance(plant, Perturbation)  # there are equations, of which a perturbed plant was made
        name = plant.id if plant else ""
        if name not in self._candidates:
            problem = replace(self._problem, dynamics=plant) if plant else self._problem
            compiled = problem.dynamics is not None
            self._candidates[name] = (CompiledCandidates if compiled else EnvironmentCandidates)(problem)
        return self._candidates[name]

    def record(
        self,
        policy: Policy,
        starts: NDArray[np.float64],
        rng: Rng,
        steps: int,
        phase: Phase,
        plant: Dynamics | Perturbation | None = None,
    ) -> list[Episode]:
        """Return an episode from each start of `candidate_starts`, cut after some steps.

        They may be played on another plant with the same spaces, such as a perturbed one.
        """
        assert not isinstance(plant, Perturbation)
        problem = self._problem
        steps = min(steps, problem.horizon)
        if problem.dynamics is not None:
            cut = replace(problem, horizon=steps, dynamics=plant or problem.dynamics)
            episodes = record_compiled(policy, cut, starts, rng)
        else:
            episodes = [self._recorded(policy, int(start[0]), rng, steps) for start in starts]
        self.interactions.add(phase, sum(episode.length for episode in episodes))
        return episodes

    def _recorded(self, policy: Policy, seed: int, rng: Rng, length: int) -> Episode:
        """Return the episode of a seed in the environment, cut after some steps."""
        env = self._environment
        first = np.asarray(env.reset(seed=seed))[np.newaxis]
        (episode,) = episodes_of(first, play_rows(policy, GuardedRow(env), first, length, rng))
        return episode

    def evaluate(
        self,
        policy: Policy,
        rng: Rng,
        *,
        deterministic: bool = False,
        phase: Phase = Phase.EVALUATION,
    ) -> Evaluation:
        """Return the evaluation of a policy."""
        if self._problem.dynamics is not None and self._in_loops(policy):
            assert isinstance(policy, PartitionPolicy)
            rules = UpdateRules(
                self._problem.horizon, 0.0, 0.0, np.zeros(policy.states.dims), math.inf, False
            )
            return self.iterate_partition(
                policy.partition,
                policy.time_variant,
                rules,
                rng,
                trained=False,
                drawn=not deterministic,
                phase=phase,
            )[1]
        evaluation = self._closed_loop(policy, rng)
        if evaluation is None:
            evaluation = self._run_together(policy, rng, None if deterministic else rng)
        self.interactions.add(phase, evaluation.steps)
        return evaluation

    def _closed_loop(self, policy: Policy, rng: Rng) -> Evaluation | None:
        """Return the evaluation of a controller with a compiled plant.

        Returns None for other policies and plants, and where something is not finite: stepping environments
        tells what.
        """
        problem = self._problem
        if problem.dynamics is None or policy.draws or policy.arrays is None:
            return None
        before = rng.bit_generator.state
        states = self.start_states(policy, rng)
        plant = problem.dynamics.plant
        played, _ = play_one(plant, policy.arrays, states, problem.horizon, traced=True)
        if not np.isfinite(played.returns).all():
            rng.bit_generator.state = before
            return None
        trace = LoopTrace.of(played, policy.arrays.arrays)
        lengths = played.lengths[0]
        broken: NDArray[np.bool_] | None = None
        if problem.constraints:
            taken = np.arange(problem.horizon) < lengths[:, np.newaxis]
            breaks = np.zeros((*taken.shape, len(problem.constraints)), np.bool_)
            breaks[taken] = problem.dynamics.broken(trace.states[:, 1:][taken], trace.actions[taken])
            broken = np.asarray(breaks.any(axis=1))
        return Evaluation(
            played.returns[0],
            lengths,
            trace.x[:, 0, : plant.n_seen].copy(),
            problem.constraints,
            broken,
        )

    def _in_loops(self, policy: Policy) -> bool:
        """Return whether compiled loops evaluate a policy, which count no broken constraints."""
        return policy.draws and not self._problem.constraints

    def start_states(self, policy: Policy, rng: Rng) -> NDArray[np.float64]:
        """Return the states in which compiled dynamics start the episodes of `evaluate`, one per row."""
        dynamics = self._problem.dynamics
        if dynamics is None:
            raise SettingError(
                f"The states of {self._problem.name} are not known: it has no compiled dynamics, and runs on "
                f"{self._problem.runs_on}."
            )
        if not self._in_loops(policy):
            rng, _ = np_random(int(rng.integers(2**31)))  # as environments are reset
        return dynamics.draw(self._rollouts, rng)

    def iterate_partition(
        self,
        partition: Partition,
        time_variant: bool,
        rules: UpdateRules,
        rng: Rng,
        *,
        trained: bool,
        drawn: bool = True,
        phase: Phase = Phase.EVALUATION,
    ) -> tuple[int, Evaluation]:
        """Train a partition for an episode, if wanted, and evaluate it, in one compiled call.

        Returns the splits of the training, and the evaluation.
        """
        problem = self._problem
        n = self._rollouts
        assert problem.dynamics is not None
        if trained:
            partition.reserve(problem.horizon * partition.children_at_most)
        evaluation = Evaluation(np.empty(n), np.empty(n, np.int64), np.empty((n, problem.states.dims)))
        last = np.zeros(problem.states.dims + 1)
        plant = problem.dynamics.plant
        task = Task(
            plant.addresses,
            plant.n_state,
            problem.states.state_map,
            problem.states.thresholds,
            problem.actions.action_map,
            *problem.reward_range,
        )
        steps, splits, sound, bad = iterate(
            task,
            partition.balls,
            partition.trees,
            time_variant,
            rules,
            trained,
            drawn,
            rng,
            evaluation.returns,
            evaluation.lengths,
            evaluation.starts,
            last,
        )
        if not sound:
            raise self._not_finite(_TRAINING, steps, last)
        if bad >= 0:
            raise self._not_finite(
                _EVALUATION, int(evaluation.lengths[bad]), last, evaluation.returns[bad], bad
            )
        self.interactions.add(Phase.TRAINING, steps)
        self.interactions.add(phase, evaluation.steps)
        return splits, evaluation

    def _not_finite(
        self,
        episode: str,
        step: int,
        last: NDArray[np.float64],
        total: float | None = None,
        number: int | None = None,
    ) -> BadEnvironmentError:
        """Return the error for the last observation or reward of compiled dynamics, which is not finite."""
        guard = self._guard(episode)
        guard.step = step
        if not np.isfinite(last[:-1]).all():
            return guard.refusal(f"gave the observation {last[:-1]}", number)
        added = "" if total is None else f"; rewards add up to {total}"
        return guard.refusal(f"gave the reward {last[-1]}{added}", number)

    def _guard(self, episode: str) -> Guard:
        states = self._problem.states
        return Guard(self._problem.name, states.space, episode, states.names)

    def train(self, learner: EpisodeLearner, rng: Rng) -> Evaluation:
        """Train a learner for one episode; returns it as an evaluation of one episode, which may be cut."""
        problem = self._problem
        env = self._environment
        observation = env.reset(seed=int(rng.integers(2**31)))
        start = problem.states.batch(np.asarray(observation)[None]).copy()
        learner.begin(observation)
        total = 0.0
        taken = 0
        ended = False
        limit = learner.episode_limit()
        while taken < limit and not ended:
            taken += 1
            observation, reward, terminated, truncated = env.step(learner.act(rng))
            learned = problem.learning_reward(reward) if learner.standardised else reward
            learner.learn(learned, observation, terminated)
            total += reward
            ended = terminated or truncated
        self.interactions.add(Phase.TRAINING, taken)
        cut = not ended and taken < problem.horizon
        return Evaluation(np.array([total]), np.array([taken]), start, cut=cut)

    @property
    def _environment(self) -> GuardedEnv:
        """The environment of training episodes."""
        if self._single is None:
            problem = self._problem
            spaces = problem.states.space, problem.actions.space
            # Compiled dynamics are the same to the last bit for every version of NumPy.
            compiled = problem.dynamics
            make = problem.make if compiled is None else partial(DynamicsEnv, compiled.id)
            self._single = GuardedEnv(make, self._guard(_TRAINING), spaces)
        return self._single

    def _run_together(self, policy: Policy, rng: Rng, draws: Rng | None) -> Evaluation:
        """Run one episode in each of many environments, or from many states of compiled dynamics.

        An environment whose episode has ended is stepped on with the others (Gymnasium resets it on the next
        step), but those steps are not counted.
        """
        problem = self._problem
        n = self._rollouts
        rows: GuardedPlantRows | GuardedVectorEnv
        guard = self._guard(_EVALUATION)
        if problem.dynamics is not None:
            rows = GuardedPlantRows(problem.dynamics.plant, self.start_states(policy, rng), guard)
            observations = rows.first
        else:
            if self._vector is None:
                self._vector = GuardedVectorEnv(problem.make_vector(n), guard)
            rows = self._vector
            observations = rows.reset(seed=int(rng.integers(2**31)))
        starts = problem.states.batch(observations).copy()
        returns = np.zeros(n)
        lengths = np.zeros(n, np.int64)
        broken = np.zeros((n, len(problem.constraints)), np.bool_)
        for step in play_rows(policy, rows, observations, problem.horizon, draws):
            if problem.constraints:
                broken |= step.running[:, np.newaxis] & self._broken(step, rows)
            with np.errstate(over="ignore"):
                returns += np.where(step.running, step.rewards, 0.0)
            lengths += step.running
            if not np.isfinite(returns).all():
                bad = int(np.flatnonzero(~np.isfinite(returns))[0])
                raise rows.guard.refusal(
                    f"gave the reward {step.rewards[bad]}; rewards add up to {returns[bad]}", bad
                )
        return Evaluation(
            returns,
            lengths,
            starts,
            problem.constraints,
            broken if problem.constraints else None,
        )

    def _broken(self, step: Step, rows: GuardedPlantRows | GuardedVectorEnv) -> NDArray[np.bool_]:
        """Return which constraints the last step broke in each episode."""
        problem = self._problem
        n = len(step.running)
        if isinstance(rows, GuardedPlantRows):
            assert problem.dynamics is not None
            return problem.dynamics.broken(rows.states, np.array(step.actions, np.float64).reshape(n, -1))
        broken = np.asarray(rows.info.get(BROKEN, np.zeros(0)))
        if broken.shape != (n, len(problem.constraints)):
            raise BadEnvironmentError(
                f"{problem.name} no longer judges the {len(problem.constraints)} constraints that were "
                "declared when the problem was made: make it again."
            )
        return broken
