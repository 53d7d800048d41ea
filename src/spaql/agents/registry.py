"""The agents that ship with spaql, and the lookup of any agent by the name of its algorithm."""

import inspect
import math
from collections.abc import Mapping
from typing import Any, Self

from spaql.agents.agent import Agent, make_settings
from spaql.agents.agent_file import agent_types
from spaql.agents.history import History
from spaql.algorithms import AQLLearner, PlanTreeLearner, SPAQLLearner, SPAQLTSLearner, TreeSearchLearner
from spaql.algorithms.replay import ReplayMemory
from spaql.controllers import Controller
from spaql.errors import SettingError, imported, nearest
from spaql.learned_plants import PlantModel
from spaql.simulate import Episode


class AQL(Agent):
    """Adaptive Q-learning: a policy for every time step."""

    learner_type = AQLLearner


class SPAQL(Agent):
    """Single-partition adaptive Q-learning: one policy for all time steps."""

    learner_type = SPAQLLearner


class SPAQLTS(Agent):
    """SPAQL with terminal state, for regulators: values fall with the distance to a reference."""

    learner_type = SPAQLTSLearner


class PlanTree(Agent):
    """Learn the plant from a few thousand steps, plan on it, and distil the plan into a small tree.

    Every step is counted in `interactions`, and none is spent on evaluations; an iteration is an episode. The
    policy is a `Controller`: its leaves hold a discrete action, or an affine law for a Box.

    Examples
    --------
    >>> agent = PlanTree("Pendulum-v1", seed=0, effort=0.02).learn(total_timesteps=600, progress_bar=False)
    >>> int(agent.history["interactions"][-1])
    600
    """

    learner_type = PlanTreeLearner
    _learner: PlanTreeLearner

    @property
    def model(self) -> PlantModel:
        """The learned plant, fitted to all steps so far; recomputed on each access, to the same bits."""
        return self._learner.model

    @property
    def ladder(self) -> list[dict[str, Any]]:
        """The structures of controllers with memory that were tried on the learned plant, the simplest first.

        As in `TreeSearch.ladder`; empty for problems without set-points, and before there is a controller.
        """
        ladder = self._learner.ladder
        return ladder.rows() if ladder is not None else []

    @property
    def lags(self) -> list[str] | None:
        """Names of the state variables of the learned plant in addition to an observation.

        Earlier values and last actions are chosen by the prediction errors on held-out episodes, as few as
        suffice. None if no structures with memory were tried on the learned plant.
        """
        return self._learner.lags

    @property
    def mirror(self) -> str | None:
        """The mirror symmetry in use, by names: as given, or as detected so far; None without one.

        The text has the form of the setting `mirror`, such as "sin(angle),speed:torque".
        """
        symmetry = self._learner.mirror
        return None if symmetry is None else symmetry.text(self._learner.experience.task)

    def adopt(self, memory: ReplayMemory, rules: Controller) -> Self:
        """Take over the transitions of a log as episodes, and the controller fitted to them."""
        self._learner.adopt(memory, rules)
        self.history = History()
        best = -math.inf
        ends = [*memory.begins[1:].tolist(), len(memory)]
        for i, (first, last) in enumerate(zip(memory.begins.tolist(), ends, strict=True)):
            total = math.fsum(memory.rewards[first:last].tolist())
            best = max(best, total)
            row = {"iteration": i + 1, "mean_return": total, "best_return": best}
            row |= {"training_steps": last, "interactions": last, "turn": 0}
            self.history.append(row | {"leaves": rules.n_leaves if last == len(memory) else 0})
        self._learner.best_return = best
        self._policy = None
        return self

    def logged_episodes(self) -> list[Episode]:
        """Return the episodes in the memory: those run so far, or those of a log."""
        return self._learner.logged_episodes()

    def hold_out(self) -> tuple[PlantModel, list[Episode]]:
        """Return a model fitted to four fifths of the episodes so far, and the others as a test set."""
        return self._learner.hold_out()


class TreeSearch(Agent):
    """Search for a small tree on the simulator itself, for simulators with cheap steps.

    Every step is counted, including evaluations. The policy is a `Controller`: its rules may compare
    weighted sums of observations, and its leaves hold affine laws for a Box, or switching laws otherwise.
    Where set-points are declared, the controller may have memory, and the simplest that suffices is chosen.

    Examples
    --------
    >>> agent = TreeSearch("CartPole-v1", seed=0).learn(total_timesteps=100_000, progress_bar=False)
    >>> agent.policy.n_leaves <= 6
    True
    """

    learner_type = TreeSearchLearner
    _learner: TreeSearchLearner

    @property
    def ladder(self) -> list[dict[str, Any]]:
        """The structures of controllers with memory that were tried, the simplest first.

        All are evaluated from the same starts: on perturbed plants, unless the plant has no equations or the
        design is nominal. The chosen structure is marked. Empty for problems without set-points.
        """
        return self._learner.ladder.rows() if self._learner.ladder is not None else []

    @property
    def design_notes(self) -> list[str]:
        """How the episodes of the design differ from the plant's own, and where the search started."""
        return self._learner.ladder.notes() if self._learner.ladder is not None else []

    @property
    def mirror(self) -> str | None:
        """The mirror symmetry of the plant, by names: as given, or as detected; None without one.

        Half of the initial trees of the search are their own mirror images, and so have about half as
        many parameters. See `PlanTree.mirror` for the form.
        """
        symmetry = self._learner.search.mirror
        return None if symmetry is None else symmetry.text(self.problem)

    def start_from(self, tree: Controller) -> Self:
        """Start the search from a tree instead of random ones; its locked leaves are unchanged."""
        if len(self.history):
            raise SettingError("The search has already started: make a new agent to start from a tree.")
        self._learner.start_from(tree)
        self._policy = None
        return self


def agent_type(name: str) -> type[Agent]:
    """Return the agent of an algorithm.

    Parameters
    ----------
    name
        The name of the algorithm (`spaql-ts`); `module:name` imports the module first, and names the
        algorithm or the class of its agent (`my_module:MyAgent`).

    Examples
    --------
    >>> agent_type("plantree").__name__, agent_type("spaql.agents:SPAQLTS").learner_type.name
    ('PlanTree', 'spaql-ts')
    """
    module, _, algorithm = name.rpartition(":")
    known: dict[str, type[Agent]] = {}
    if module:
        home = imported(module, algorithm)
        agents = [
            member for member in vars(home).values() if isinstance(member, type) and issubclass(member, Agent)
        ]
        known |= {member.__name__: member for member in agents if member is not Agent}
    known |= agent_types()
    if algorithm not in known:
        raise SettingError(f"There is no algorithm {algorithm!r}: {nearest(algorithm, known)}")
    return known[algorithm]


def check_settings(algorithm: str, settings: Mapping[str, Any]) -> None:
    """Refuse keyword arguments that the agent of an algorithm does not take."""
    agent = agent_type(algorithm)
    own = set(inspect.signature(Agent.__init__).parameters) - {"self", "env", "seed", "settings"}
    make_settings(agent.learner_type, {name: value for name, value in settings.items() if name not in own})
