"""Agents: a learner with a problem, a seed and a history, with Stable-Baselines3's methods."""

from __future__ import annotations

import dataclasses
import inspect
import os
import secrets
import sys
from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from spaql import archive
from spaql.agents.agent_file import TYPES, agent_from, identity, load
from spaql.agents.history import History
from spaql.agents.problem_file import problem_to, read_back
from spaql.agents.progress import Progress
from spaql.agents.readable import Readable
from spaql.agents.training_loop import Budget, Callback, joined, train
from spaql.agents.tries import Tries, learn_best
from spaql.algorithms import Algorithm, LearnerSettings
from spaql.controllers import Controller, Policy
from spaql.errors import NotTrainedError, SettingError, nearest
from spaql.problems import EnvironmentLike, Problem, make_problem
from spaql.problems.stage_cost import ConstraintLike
from spaql.values import whole_number


class Agent(Readable):
    """A learner in an environment.

    Parameters
    ----------
    env
        An environment's id, a preset (`pendulum`, `pendulum5`, `cartpole200`), a Gymnasium environment,
        or a `Problem`.
    seed
        Seed of all randomness; the same seed produces the same bytes. Drawn if not given.
    horizon, levels, squash, reference, reward_range, options, compiled, parallel
        See `spaql.make_problem`.
    observation_names, action_names
        Names with their units, for rules, figures and exported code; those of the plant by default.
    cost, constraints
        Expressions of named observations and actions, for each step; see `spaql.make_problem`.
    **settings
        Settings of the algorithm: the fields of `Agent.settings_type`.

    Examples
    --------
    >>> import spaql
    >>> agent = spaql.SPAQL("cartpole200", scaling=20, rollouts=5, seed=0)
    >>> agent.learn(iterations=3, progress_bar=False).history["training_steps"].shape
    (4,)
    """

    learner_type: ClassVar[type[Algorithm]]

    def __init__(
        self,
        env: EnvironmentLike,
        *,
        seed: int | None = None,
        horizon: int | None = None,
        levels: int | None = None,
        squash: Mapping[int, float] | None = None,
        reference: Sequence[float] | None = None,
        reward_range: tuple[float, float] | None = None,
        options: Mapping[str, Any] | None = None,
        compiled: bool = True,
        parallel: bool | str = False,
        observation_names: Sequence[str] | None = None,
        action_names: Sequence[str] | None = None,
        cost: str | None = None,
        constraints: Sequence[ConstraintLike] = (),
        **settings: Any,
    ) -> None:
        self.seed = secrets.randbits(32) if seed is None else whole_number("seed", seed, least=0)
        self.settings = make_settings(self.learner_type, settings)
        if reward_range is not None and not self.learner_type.standardised:
            name = self.learner_type.name
            raise SettingError(f"{name} does not scale rewards: leave out reward_range.")
        self.problem = make_problem(
            env,
            horizon=horizon,
            levels=levels,
            squash=squash,
            reference=reference,
            reward_range=reward_range,
            options=options,
            compiled=compiled,
            parallel=parallel,
            measured=self.learner_type.standardised,
            observation_names=observation_names,
            action_names=action_names,
            cost=cost,
            constraints=constraints,
        )
        self.history = History()
        self.tries: Tries | None = None
        """The results of the tries from which this agent was picked; not saved with it."""
        self._learner: Algorithm = self.learner_type(self.problem, self.settings)
        self._policy: Policy | None = None
        """The current policy of the learner, if it was requested."""
        self._rng = np.random.default_rng(self.seed)

    def __init_subclass__(cls) -> None:
        """Register the algorithm, and add its settings to the class's signature."""
        TYPES[cls.learner_type.name] = cls
        own = inspect.signature(Agent.__init__).parameters
        shown = [p for name, p in own.items() if name not in ("self", "settings")]
        shown += [
            inspect.Parameter(f.name, inspect.Parameter.KEYWORD_ONLY, default=f.default, annotation=f.type)
            for f in dataclasses.fields(cls.learner_type.settings_type)
        ]
        cls.__signature__ = inspect.Signature(shown)  # type: ignore[attr-defined]
        if Agent.__doc__ is not None:  # as it is with -OO
            shared = inspect.cleandoc(Agent.__doc__).partition("Parameters\n")[2].partition("**settings")[0]
            own_settings = dataclasses.fields(cls.learner_type.settings_type)
            lines = [f"{f.name}\n    {_sentence(f.metadata.get('help', ''))}" for f in own_settings]
            head, examples, code = inspect.cleandoc(cls.__dict__.get("__doc__") or "").partition(
                "\n\nExamples\n"
            )
            parameters = "\n".join(["Parameters", shared.rstrip(), *lines])
            cls.__doc__ = f"{head}\n\n{parameters}{examples}{code}"

    def __repr__(self) -> str:
        trained = (
            f"{self.training_steps:,} training steps, {self.policy!r}" if len(self.history) else "not trained"
        )
        return f"{type(self).__name__}({self.problem.name}, seed {self.seed}, {trained})"

    def _move_to(self, problem: Problem) -> None:
        """Continue in another environment of the same problem."""
        self.problem = self._learner.problem = problem
        self._policy = None

    @property
    def policy(self) -> Policy:
        """The policy learned so far. Reading it starts no computation.

        PlanTree has a policy when its budget is spent; if it was stopped before, see `conclude`.
        """
        if self._policy is None:
            self._policy = self._learner.policy
        return self._policy

    def conclude(self) -> Policy:
        """Return the policy from everything learned so far, even in the middle of a training.

        If training was stopped within its budget and made no policy, PlanTree searches for it here.
        `spaql.evaluate`, `predict` and every function that takes an agent call this automatically.
        """
        self._learner.conclude()
        return self.policy

    @property
    def first_law(self) -> Controller | None:
        """The law of one leaf with which training began; None without one, or if it is still the policy."""
        return self._learner.first_law

    @property
    def designed_for(self) -> str:
        """`perturbed` if training is on perturbed plants (see `spaql.problems.perturbed`), else `nominal`."""
        return "perturbed" if self._learner.robust else "nominal"

    @property
    def iterations(self) -> int:
        """Number of training episodes so far."""
        return int(self.history.last()["iteration"]) if len(self.history) else 0

    @property
    def training_steps(self) -> int:
        """Number of steps from which the agent has learned so far."""
        return int(self.history.last()["training_steps"]) if len(self.history) else 0

    def learn(
        self,
        total_timesteps: int | None = None,
        *,
        iterations: int | None = None,
        callback: Callback | Sequence[Callback] | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        checkpoint_every: int = 100,
        progress_bar: bool = False,
        tries: int = 1,
        workers: int = 1,
        selection_episodes: int = 100,
    ) -> Self:
        """Train for more time steps, or for more iterations.

        Parameters
        ----------
        total_timesteps
            Stop after the iteration in which n more training steps are reached. Evaluation steps do
            not count here; `history` counts both.
        iterations
            Number of training episodes, each followed by an evaluation, instead of `total_timesteps`.
        callback
            A function, or a list of them, called after every iteration with the agent and the new row of
            its history; training stops if one returns False.
        checkpoint
            A model file to save to regularly; an agent loaded from it continues to the same bytes.
        checkpoint_every
            Iterations between two checkpoints.
        progress_bar
            Show progress: a live bar on a terminal, occasional lines elsewhere.
        tries
            Train n agents like this untrained one, which differ only in their seed, and become the
            one that selection episodes pick, including its seed: the smallest policy among those that do not
            differ significantly from the best. The first try has this agent's seed, the others have seeds
            drawn from it. `tries` of the agent then has the result and the cost of each; its selection mean
            is biased upwards, so evaluate the agent by `spaql.evaluate`, whose episodes were not used to
            pick. Each try is trained for `total_timesteps` or `iterations`; a line is shown for each.
        workers
            Processes that train the tries; the result does not depend on their number. More than one
            requires that there is no callback and that the environment and agent can be pickled.
        selection_episodes
            Number of new episodes of each try, by which a try is picked.
        """
        budget = Budget(
            total_timesteps=total_timesteps,
            iterations=iterations,
            checkpoint_every=checkpoint_every,
            selection_episodes=selection_episodes,
        )
        if tries == 1 and workers == 1:
            self._train(budget, joined(callback), checkpoint, progress_bar)
            return self
        if checkpoint is not None:
            raise SettingError("A checkpoint contains one agent: leave it out, or train one try.")
        called = None if callback is None else joined(callback)
        self.tries = learn_best(self, budget, tries, workers, called, progress_bar)
        return self

    def _train(
        self, budget: Budget, callback: Callback, checkpoint: str | os.PathLike[str] | None, show: bool
    ) -> None:
        """Train for a budget; if no iteration is finished, the learner is unchanged."""
        total_timesteps = budget.total_timesteps
        if show and total_timesteps is not None and total_timesteps < self.problem.horizon:
            print(
                f"The budget of {total_timesteps:,} steps is less than one episode, which may last "
                f"{self.problem.horizon:,}: the agent will not see what happens later in an episode.",
                file=sys.stderr,
            )
        done = self.iterations
        steps = self.training_steps
        last_iteration = None if budget.iterations is None else done + budget.iterations
        last_step = None if total_timesteps is None else steps + total_timesteps
        steady = self._learner.steady
        with closing(Progress(done, last_iteration, steps, last_step, steady=steady, show=show)) as progress:

            def proceed(row: dict[str, float]) -> bool:
                self._policy = None
                progress.update(row, self._learner.phase)
                iteration = row["iteration"]
                if checkpoint is not None and iteration and iteration % budget.checkpoint_every == 0:
                    self.save(checkpoint)
                if not callback(self, row):
                    return False
                if last_iteration is not None:
                    return iteration < last_iteration
                return last_step is None or row["training_steps"] < last_step

            rows = len(self.history)
            mark = self._learner.mark()
            self._learner.aim(last_iteration, last_step)
            self._learner.announce = progress.begin
            self._policy = None
            try:
                train(self._learner, self.problem, self.settings, self.history, self.seed, proceed)
            except BaseException:
                self._policy = None
                if len(self.history) == rows:  # no iteration was finished
                    self._learner.go_back(mark)
                raise
            finally:
                del self._learner.announce

    def _become(self, other: Agent) -> None:
        """Take over everything that another agent of the same type and problem has learned, and its seed."""
        self.seed = other.seed
        self.history = other.history
        self._learner = other._learner
        self._rng = np.random.default_rng(self.seed)
        self._move_to(self.problem)

    def predict(
        self,
        observation: Any,
        state: tuple[NDArray[Any], ...] | None = None,
        episode_start: NDArray[np.bool_] | None = None,
        deterministic: bool = False,
    ) -> tuple[Any, tuple[NDArray[Any], ...] | None]:
        """Return the action for one observation or a batch of them (see `Policy.predict`)."""
        if not len(self.history):
            raise NotTrainedError(f"This {type(self).__name__} agent has not learned yet: call learn first.")
        return self.conclude().predict(observation, state, episode_start, deterministic, rng=self._rng)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a model file, and read it back: the policy, and everything needed to continue training."""
        archive.write_atomically(path, self.to_bytes())
        read_back(self, agent_from(archive.load(path)))

    def to_bytes(self) -> bytes:
        """Return the content of the model file."""
        data, arrays = self._learner.state()
        problem, problem_arrays = problem_to(self.problem)
        content = {
            "kind": "agent",
            **identity(type(self)),
            "settings": self.settings.as_data(),
            "seed": self.seed,
            "problem": problem,
            "learner": data,
            "history": list(self.history.columns),
        }
        parts = {"learner": arrays, "problem": problem_arrays, "history": self.history.arrays()}
        named = {f"{part}.{key}": a for part, group in parts.items() for key, a in group.items()}
        return archive.dumps(content, named)

    @classmethod
    def load(cls, path: str | os.PathLike[str], env: EnvironmentLike | None = None) -> Self:
        """Read a model file, or a run folder, of this algorithm."""
        agent = load(path, env)
        if not isinstance(agent, cls):
            held = type(agent).__name__
            raise SettingError(f"The file contains {held}, not {cls.__name__}: read it with spaql.load.")
        return agent


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


def make_settings(learner: type[Algorithm], values: Mapping[str, Any]) -> LearnerSettings:
    """Return the settings of a learner; refuse an unknown name, suggesting the nearest valid name."""
    known = [f.name for f in dataclasses.fields(learner.settings_type)]
    for name in values:
        if name not in known:
            raise SettingError(f"{learner.name} has no setting {name!r}: {nearest(name, known)}")
    return learner.settings_type(**values)
