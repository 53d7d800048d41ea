"""PlanTree as the sequence of its phases: explore, choose or design, play, hand over."""

from __future__ import annotations

from typing import Any

import numpy as np

from spaql.algorithms.first_law import is_affine
from spaql.algorithms.mirrors.mirror import Mirror
from spaql.algorithms.plantree.explore import Plan
from spaql.algorithms.plantree.lags import lagged_controller, names_of
from spaql.algorithms.plantree.learned_plant import episodes_of, fit_model, hold_out
from spaql.algorithms.plantree.rule_trees import idle_rules, within_space
from spaql.algorithms.plantree.settings import PlanTreeSettings
from spaql.algorithms.plantree.state import TURNS, PlanTreeState, PlayedEpisode, Span
from spaql.algorithms.replay import LARGEST, ReplayMemory
from spaql.algorithms.rule_learners import without_units
from spaql.algorithms.treesearch import TreeSearchLearner
from spaql.algorithms.treesearch.ladder.state import Ladder
from spaql.controllers import Controller
from spaql.errors import BadEnvironmentError, SettingError
from spaql.kernels.numerics import Rng
from spaql.learned_plants import PlantModel
from spaql.problems import Problem
from spaql.simulate import Episode, EpisodeRunner, Evaluation

OWN_STEPS = 50_000
"""Steps to learn from: with more it improves no further, so TreeSearch spends the rest of a budget."""
_CHECKED = (200, 400, 800)
"""Steps after which a plant that looks affine is handed over: the first episodes may show too little of it.
Later ones show it mostly near its goal, where any plant looks affine."""
_LAGS = 0.1
"""Share of the budget after which lags are chosen."""
_FEWEST_FOR_LAGS = 2000
"""The fewest steps of which lags are chosen."""


class PlanTreeLearner(PlanTreeState):
    """Explore by look-ahead in a learned plant; controllers play the last part of the budget.

    Of a large budget TreeSearch spends the rest, beginning with the controller that was found.
    """

    name = "plantree"
    steady = False  # a search takes longer than many episodes
    settings_type = PlanTreeSettings
    evaluated = False
    standardised = False

    def __init__(self, problem: Problem, settings: PlanTreeSettings) -> None:
        super().__init__(problem, settings)
        self._play: PlayedEpisode | None = None
        """The episode, if a controller plays it."""
        self._budget_end = 0
        """The step at which a budget in steps ends, whoever spends it."""

    # -- the budget ----------------------------------------------------------------------------------------

    def aim(self, last_iteration: int | None, last_step: int | None) -> None:
        """Store the budget; an unfinished one is continued."""
        unit = "episodes" if last_step is None else "steps"
        last = last_step if last_step is not None else last_iteration
        assert last is not None
        if unit == "steps":
            self._budget_end = last
        if self._search is not None:
            self._aim(self._search, unit, last)
            return
        if unit == "steps" and self.settings.lags != "auto":
            last = min(last, max(OWN_STEPS, len(self.memory)))
        if (unit, last) != (self._span.unit, self._span.last):
            self._span = Span(unit, self._spent(unit), last)
            self._turn = 0
            self._rules = None

    def _aim(self, search: TreeSearchLearner, unit: str, last: int) -> None:
        """Let a search spend the rest of a budget."""
        if unit == "steps":
            search.aim(None, last - self._own_steps)
        else:
            search.aim(last - self.episodes, None)

    def _spent(self, unit: str) -> int:
        return len(self.memory) if unit == "steps" else self.episodes

    def episode_limit(self) -> int:
        """Return the largest number of steps of the next episode: the rest of the budget."""
        left = self._span.last - len(self.memory) if self._span.unit == "steps" else 0
        return min(self.problem.horizon, left) if left > 0 else self.problem.horizon

    def iterate(self, runner: EpisodeRunner, rng: Rng, *, trained: bool) -> Evaluation:
        """Play an episode; of a large budget's rest, search."""
        unit, _, last = self._span
        if self._search is None and unit == "steps" and len(self.memory) >= last < self._budget_end:
            self._hand_over()
        if self._search is not None:
            evaluation = self._search.iterate(runner, rng, trained=True)
            if self._search.explored is not None:  # the steps that a first law was made from
                self.memory.append(self._search.explored)
                self._search.explored = None
            return evaluation
        return super().iterate(runner, rng, trained=trained)

    def _hand_over(self) -> None:
        """Let TreeSearch spend the rest of the budget."""
        unit, _, last = self._span
        self._own_steps = len(self.memory)
        self._search = self._new_search()
        self._aim(self._search, unit, self._budget_end if unit == "steps" else last)

    # -- an episode ----------------------------------------------------------------------------------------

    def begin(self, observation: Any) -> None:
        """Start an episode: of exploration, or of the controller whose turn it is."""
        self._limit = self.episode_limit()
        self._state = self.experience.first_state(observation)
        self._first = len(self.memory)
        self._return = 0.0
        self.memory.begin()
        self._explorer.begin()
        self._play = None
        if self._turn > 0:
            self._play = PlayedEpisode(self.controllers.players[self._playing], self.code)

    def act(self, rng: Rng) -> Any:
        """Return the action of the controller whose turn it is; else explore by look-ahead."""
        self._rng = rng
        if self._play is not None:
            raw, self._action = self._play.act(self._state)
            return raw
        self._action = self._explorer.act(self._state, rng)
        return self.code.raw(self._action)

    def learn(self, reward: float, observation: Any, terminated: bool) -> None:
        """Add the transition to the memory."""
        if not abs(reward) <= LARGEST:
            step = len(self.memory) - self._first + 1
            raise BadEnvironmentError(f"The reward of step {step} is {reward}, and must be finite.")
        after = self.experience.next_state(self._state, self._action, observation)
        self.memory.add(self._state, self._action, reward, after, ended=terminated)
        self._state = after
        self._return = self._return + reward
        self._ended = terminated
        if self._play is None:
            self._explorer.learn(self._rng)

    def assess(self, mean_return: float) -> None:
        """End the episode, and take the next phase if it is due."""
        super().assess(mean_return)
        if self._search is not None:
            self._search.assess(mean_return)
            return
        self.episodes += 1
        self._end_episode()
        self._next_phase()

    def _end_episode(self) -> None:
        """Learn from the whole episode. Seeds are drawn in this order, which results depend on."""
        length = len(self.memory) - self._first
        is_whole = self._ended or length < self._limit or length == self.problem.horizon
        if self._play is not None and is_whole:
            self._play.player.add_episode(self.memory.states[self._first].copy(), self._return)
        self._explorer.end_episode(self._rng)
        if self.experience.lags is None and self._shows_lags():
            has_lags = self.experience.choose_lags()
            if has_lags:
                self._explorer.forget()
                self._explorer.replan(self._rng)
        self._build_seed = int(self._rng.integers(2**62))
        self._rules = None

    def _next_phase(self) -> None:
        """Hand over, make the last controller, or let the next one play, if that is due."""
        spent = self._spent(self._span.unit)
        is_checked = any(self._first < steps <= len(self.memory) for steps in _CHECKED)
        if is_checked and 2 * spent <= self._span.last and self._looks_affine():
            self._hand_over()
        elif spent >= self._span.last:
            self.announce("choosing the controller")
            self._turn = 0
            self._rules = self.controllers.controller(self._build_seed, anew=False)
        else:
            turn = self._span.turn(spent, self.settings.own_share)
            if turn > self._turn and self.memory.goal_seen:
                anew = turn % 2 == 1 or not self.controllers.players
                if anew:
                    self.announce(f"search, round {(turn + 1) // 2} of {TURNS // 2}")
                self._turn = turn
                self._playing = self.controllers.next_player(
                    self._build_seed, anew=anew, last=turn + 2 > TURNS
                )

    def _looks_affine(self) -> bool:
        """Return whether a first law is all that the plant seems to need."""
        if self.tracks or self.settings.lags == "auto":
            return False
        return is_affine(self.memory, self.problem, np.random.default_rng((self._build_seed, 3)))

    def _shows_lags(self) -> bool:
        """Whether lags are to be chosen, and the memory has grown enough for that."""
        unit, first, last = self._span
        is_wanted = self.settings.lags == "auto" and not self.tracks
        is_enough = self._spent(unit) - first >= _LAGS * (last - first)
        return is_wanted and self._turn == 0 and is_enough and len(self.memory) >= _FEWEST_FOR_LAGS

    # -- what is there ------------------------------------------------------------------------------------

    @property
    def policy(self) -> Controller:
        """The controller that was made when the budget was spent; the idle one, before the first step."""
        if self._search is not None:
            return self._search.policy
        if self._rules is not None:
            lags = self.experience.lags
            return lagged_controller(self._rules, self.problem, lags) if lags and lags.count else self._rules
        if not len(self.memory):
            return within_space(idle_rules(self.code, self.problem))
        raise SettingError(
            f"Training was stopped after {len(self.memory):,} steps, within its budget, so there is no "
            "controller yet: go on with learn, or make one of what is known with conclude."
        )

    def conclude(self) -> None:
        """Search for the controller of the memory as it is now, unless that was done."""
        if self._rules is None and self._search is None:
            self._rules = self.controllers.controller(self._build_seed, anew=True)

    @property
    def first_law(self) -> Controller | None:
        """That of TreeSearch, if it took over."""
        return self._search.first_law if self._search is not None else None

    @property
    def ladder(self) -> Ladder | None:
        """The ladder on which the controller was chosen, if it is one with memory."""
        if self._search is not None:
            return self._search.ladder if self._search.given is None else None
        return self.designs[-1].ladder if self._is_design else None

    @property
    def robust(self) -> bool:
        """Whether it designs for perturbed plants: the learned one, or in a long training those declared."""
        if self._search is not None:
            return self._search.robust
        return self.ladder is not None and self.ladder.design is not None

    @property
    def lags(self) -> list[str] | None:
        """The names of the lags in the state of the learned plant, if they were asked for or chosen."""
        observations, actions = names_of(self.problem)
        lags = self.experience.lags
        if lags is None:
            if self._search is not None or not self._is_design:
                return None
            setpoints = without_units(self.problem.setpoints.values())
            observations = [name for name in observations if name not in setpoints]
            lags = self.experience.prediction().lags
        return [feature.name for feature in lags.features(observations, actions)]

    @property
    def mirror(self) -> Mirror | None:
        """The mirror that was given, or that the whole memory shows, or None."""
        return self.experience.mirror

    @property
    def _observed_mirror(self) -> Mirror | None:
        """The mirror, unless it is one of states with lags."""
        return None if self.experience.has_lags else self.mirror

    @property
    def model(self) -> PlantModel:
        """The plant fitted to the current memory, each time anew and to the same bits."""
        return fit_model(self.experience.observed, self.code, self.problem, self._observed_mirror)

    def hold_out(self) -> tuple[PlantModel, list[Episode]]:
        """Return a plant fitted to four fifths of the episodes, and the other episodes."""
        return hold_out(self.experience.observed, self.code, self.problem, self._observed_mirror)

    def logged_episodes(self) -> list[Episode]:
        """Return the episodes of the current memory."""
        return episodes_of(self.experience.observed, self.code)

    def final_plan(self, rng: Rng) -> Plan:
        """Return the plan for the current memory from which controllers are distilled."""
        return self._explorer.final_plan(rng, self.mirror)

    def adopt(self, memory: ReplayMemory, rules: Controller) -> None:
        """Take over transitions that were not played here, and the controller that was made from them."""
        self.experience.replace(memory)
        self._explorer.forget()
        self.controllers.players = []
        self.episodes = len(memory.begins)
        self._span = Span("steps", 0, len(memory))
        self._turn = 0
        self._rules = rules

    @property
    def phase(self) -> str:
        """What the next episode is for."""
        if self._search is not None:
            return self._search.phase
        if self._rules is not None:
            return "done"
        return f"playing controllers, turn {self._turn} of {TURNS}" if self._turn else "exploring"

    def columns(self) -> dict[str, float]:
        """Return the turn, the leaves of the last controller, and whether the current plan is mirrored."""
        controller = self._rules
        if controller is None and self._play is not None:
            controller = self._play.player.controller
        if self._search is not None:
            controller = self.policy
        columns: dict[str, float] = {"turn": self._turn, "leaves": controller.n_leaves if controller else 0}
        if self.settings.mirror != "off":
            columns["mirrored"] = int(self.experience.mirror_of(self._explorer.planned) is not None)
        return columns
