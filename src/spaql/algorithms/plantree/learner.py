"""PlanTree: learn the plant, plan in it, and distil the plan into a small tree."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from gymnasium.spaces import Discrete
from numpy.typing import NDArray

from spaql.algorithms.first_law import is_affine
from spaql.algorithms.learner import Learner
from spaql.algorithms.mirrors.detection import chosen_mirror
from spaql.algorithms.mirrors.mirror import Mirror, mirror_from
from spaql.algorithms.plantree.build import Candidate, choose, keeps_mirror, search
from spaql.algorithms.plantree.coverage import Coverage, coverage_of
from spaql.algorithms.plantree.folding import with_smallest_half
from spaql.algorithms.plantree.known_ends import known_ends
from spaql.algorithms.plantree.lags import (
    Lags,
    Prediction,
    chosen_lags,
    lagged_controller,
    lags_from,
    names_of,
    with_lags,
)
from spaql.algorithms.plantree.learned_plant import episodes_of, fit_model, hold_out
from spaql.algorithms.plantree.planning import Plan, make_plan, warm_start
from spaql.algorithms.plantree.rule_trees import idle_rules, rules_from, rules_to, within_space
from spaql.algorithms.plantree.settings import PlanTreeSettings
from spaql.algorithms.plantree.tracking import Design, design, fit_tracked, new_search, without_setpoints
from spaql.algorithms.replay.encoding import ActionCode
from spaql.algorithms.replay.memory import LARGEST, Floats, Memory
from spaql.algorithms.rule_learners import refuse_other_spaces
from spaql.algorithms.treesearch import TreeSearchLearner, TreeSearchSettings
from spaql.algorithms.treesearch.ladder import Ladder
from spaql.archive import number
from spaql.controllers import Controller
from spaql.controllers.policy import Rng
from spaql.errors import ArchiveError, BadEnvironmentError, SettingError
from spaql.kernels.warm_up import for_training, warm_up
from spaql.plants import PlantModel
from spaql.problems import Problem
from spaql.simulate import Episode, EpisodeRunner, Evaluation
from spaql.spaces import split_unit

_FIRST_PLAN = 200
"""Fewest steps before the first plan, and between two plans."""
_CHECKED = (200, 400, 800)
"""Steps after which a plant that looks affine is handed over: the first episodes may show too little of it.
Later ones show it mostly near its goal, where any plant looks affine."""
_GROWTH = 1.4
"""Least ratio of the steps of a plan to those of the one before."""
_RANDOM = 0.05
"""Share of random actions."""
_TURNS = 4
"""Turns in which a controller plays. Before every other turn candidates are searched for, and before each
turn one is chosen."""
_OWN_STEPS = 50_000
"""Steps to learn from: with more it improves no further, so TreeSearch spends the rest of a budget."""
_LAGS, _FEWEST = 0.1, 2000
"""Share of the budget, and fewest steps, after which lags are chosen."""
_MODEL_STEPS = 5_000_000
"""Steps in the learned plant for each design of a controller with memory."""


class PlanTreeLearner(Learner):
    """Explore by look-ahead in a learned plant; controllers play the last part of the budget.

    Of a large budget TreeSearch spends the rest, beginning with the controller that was found.
    """

    name = "plantree"
    settings_type = PlanTreeSettings
    evaluated = False
    standardised = False

    def __init__(self, problem: Problem, settings: PlanTreeSettings) -> None:
        super().__init__(problem, settings)
        refuse_other_spaces(problem, "PlanTree")
        self.settings = settings
        self.code = ActionCode(problem.actions.space)
        self.memory = Memory(problem.states.dims, self.code.numbers)
        self.episodes = 0
        if settings.mirror not in ("auto", "off"):
            mirror_from(settings.mirror, problem)  # refuses what it cannot read
        self._mirrors: dict[int, Mirror | None] = {}
        """The mirror of so many first steps of the memory."""
        self._unmirrored: int | None = None
        """The steps after which a search without the mirror found a better controller: it is used no more."""
        if settings.lags == "auto" and self.code.listed:
            raise SettingError(
                "lags is for actions with a range: a controller with memory has no list of actions."
            )
        self._lags: Lags | None = None
        """The lags in the states of the memory, once they are chosen."""
        self.task = problem
        """The problem with these lags, for which rules are made."""
        self._prediction: tuple[int, Prediction] | None = None
        """What the last design was made with, and for how many steps."""
        self.candidates: list[Candidate] = []
        self.tracks = bool(problem.setpoints) and not self.code.listed
        """Whether controllers with memory are designed, to follow set-points."""
        self.designs: list[Design] = []
        """These controllers, those that have played and the last one."""
        self._tried_actions = self.code.tried()
        self._plan: Plan | None = None
        self._warm = np.zeros((2, 0))
        """The initial values of the last plan, which with its seed determine the plan."""
        self._plan_seed = 0
        self._build_seed = 0
        """The seed of the plan, search and choice after the last episode."""
        self._optimistic_steps = 0
        """Steps that were taken by optimistic values."""
        self._turn = 0
        self._playing = 0
        """Index of the candidate or design that plays in this turn."""
        self._player: Candidate | Design | None = None
        """What plays this episode, if it is a controller's turn."""
        self._rules: Controller | None = None
        self._span: tuple[str, int, int] = ("steps", 0, 0)
        """The unit of the budget ("steps" or "episodes"), and where it begins and ends."""
        self._budget_end = 0
        """The step at which a budget in steps ends, whoever spends it."""
        self._successor: TreeSearchLearner | None = None
        """Spends the rest of a large budget, or that of any budget if the plant looks affine."""
        self._own_steps = 0
        """The steps before its own."""

    def warm_up(self, progress: Callable[[int, int], object]) -> None:
        """Compile the kernels ahead of time, in two processes, unless they are cached."""
        warm_up(for_training(listed=self.code.listed), progress)

    # -- the budget ----------------------------------------------------------------------------------------

    def aim(self, last_iteration: int | None, last_step: int | None) -> None:
        """Store the budget; an unfinished one is continued."""
        kind = "episodes" if last_step is None else "steps"
        last = last_step if last_step is not None else last_iteration
        assert last is not None
        if self._successor is not None:
            self._aim_successor(kind, last)
        if kind == "steps":
            own = last if self.settings.lags == "auto" else max(_OWN_STEPS, len(self.memory))
            self._budget_end = last
            last = min(last, own)
        if self._successor is None and (kind, last) != (self._span[0], self._span[2]):
            self._span = (kind, self._spent(kind), last)
            self._turn = 0
            self._rules = None

    def _aim_successor(self, kind: str, last: int) -> None:
        assert self._successor is not None
        if kind == "steps":
            self._successor.aim(None, last - self._own_steps)
        else:
            self._successor.aim(last - self.episodes, None)

    def _spent(self, kind: str) -> int:
        return len(self.memory) if kind == "steps" else self.episodes

    def _bounds(self) -> list[int]:
        """Return where the turns of controllers begin, and where the budget ends."""
        _, first, last = self._span
        own = math.floor(self.settings.own_share * (last - first))
        return [last - own + own * turn // _TURNS for turn in range(_TURNS)] + [last]

    def episode_limit(self) -> int:
        """Return the largest number of steps of the next episode: the rest of the budget."""
        kind, _, last = self._span
        left = last - len(self.memory) if kind == "steps" else 0
        return min(self.problem.horizon, left) if left > 0 else self.problem.horizon

    def iterate(self, runner: EpisodeRunner, rng: Rng, *, trained: bool) -> Evaluation:
        """Play an episode; of a large budget's rest, search."""
        kind, _, last = self._span
        if self._successor is None and kind == "steps" and len(self.memory) >= last < self._budget_end:
            self._hand_over()
        if self._successor is not None:
            found = self._successor.iterate(runner, rng, trained=trained)
            if self._successor.explored is not None:
                self.memory.append(self._successor.explored)
                self._successor.explored = None
            return found
        return super().iterate(runner, rng, trained=trained)

    def _hand_over(self) -> None:
        """Let TreeSearch spend the rest of the budget."""
        kind, _, last = self._span
        self._successor = self._new_successor()
        self._own_steps = len(self.memory)
        self._aim_successor(kind, self._budget_end if kind == "steps" else last)

    def _new_successor(self) -> TreeSearchLearner:
        """Return a search that begins at the controller that was made, if there is one."""
        if self._rules is None or self._rules.remembers:
            successor = TreeSearchLearner(self.problem, TreeSearchSettings(nominal=self.settings.nominal))
            if self._rules is not None:
                assert successor.ladder is not None
                successor.ladder.begin_at(self.designs[-1].ladder)
            return successor
        leaves = max(TreeSearchSettings.max_leaves, self._rules.n_leaves)
        successor = TreeSearchLearner(
            self.problem, TreeSearchSettings(max_leaves=leaves, nominal=self.settings.nominal)
        )
        successor.start_from(self._rules)
        return successor

    # -- an episode ----------------------------------------------------------------------------------------

    def begin(self, observation: Any) -> None:
        """Start an episode."""
        self._limit = self.episode_limit()
        self._state = self._checked(observation)
        if self._lags is not None:
            self._state = self._lags.first(self._state, self.code)
        self._first = len(self.memory)
        self._return = 0.0
        self.memory.begin()
        self._hopeful = self._optimistic_steps <= len(self.memory) / 2 or not self.memory.goal_seen
        self._player = None
        if self._turn > 0:
            players = self.designs if self.tracks else self.candidates
            self._player = players[self._playing]
            self._acting = self._player.controller.for_episodes(1)

    def act(self, rng: Rng) -> Any:
        """Return the action of the controller whose turn it is; else explore by look-ahead.

        Look-ahead is optimistic in half of the steps, and in all until a goal is seen.
        """
        self._rng = rng
        if self._player is not None:
            raw = self._acting.act(self._state[np.newaxis], np.zeros(1, np.int64), None)[0]
            self._action = self.code.standard(np.asarray(raw)[np.newaxis])[0]
            return raw
        plan = self._current_plan()
        if plan is None or rng.random() < _RANDOM:
            choice = int(rng.integers(len(self._tried_actions)))
        else:
            choice = int(np.argmax(plan.values(self._state, optimistic=self._hopeful)))
        self._action = self._tried_actions[choice]
        return self.code.raw(self._action)

    def learn(self, reward: float, observation: Any, terminated: bool) -> None:
        """Add the transition to the memory; replan when the memory has grown enough."""
        if not abs(reward) <= LARGEST:
            step = len(self.memory) - self._first + 1
            raise BadEnvironmentError(f"The reward of step {step} is {reward}, and must be finite.")
        after = self._checked(observation)
        if self._lags is not None:
            after = self._lags.after(self._state, self.code.raw_numbers(self._action), after)
        self.memory.add(self._state, self._action, reward, after, ended=terminated)
        self._state = after
        self._return = self._return + reward
        self._ended = terminated
        self._optimistic_steps += self._player is None and self._hopeful
        planned = self._warm.shape[1]
        if self._player is None and len(self.memory) >= max(planned + _FIRST_PLAN, int(planned * _GROWTH)):
            self._replan(int(self._rng.integers(2**62)))

    def assess(self, mean_return: float) -> None:
        """End the episode; replan if it was the first to see a goal, and make the next controller when due.

        It is due at the start of a turn, and at the end of the budget.
        """
        if self._successor is not None:
            self._successor.assess(mean_return)
        else:
            self.episodes += 1
        if not math.isnan(mean_return) and (self.best_return is None or mean_return > self.best_return):
            self.best_return = mean_return
        if self._successor is None:
            self._end_episode()

    def _end_episode(self) -> None:
        length = len(self.memory) - self._first
        whole = self._ended or length < self._limit or length == self.problem.horizon
        if self._player is not None and whole:
            if isinstance(self._player, Candidate):
                self._player.starts.append(self.memory.states[self._first].copy())
            self._player.returns.append(self._return)
        plan = self._current_plan()
        if plan is not None and plan.searching and self.memory.goal_seen:
            self._replan(int(self._rng.integers(2**62)))
        if self._lags is None and self._shows_lags():
            self._choose_lags()
        self._build_seed = int(self._rng.integers(2**62))
        self._rules = None
        kind, _, last = self._span
        bounds = self._bounds()
        spent = self._spent(kind)
        grown = any(self._first < size <= len(self.memory) for size in _CHECKED)
        if grown and 2 * spent <= last and self._looks_affine():
            self._hand_over()
            return
        if spent >= last:
            self._turn = 0
            self._rules = (
                self._designed()
                if self.tracks
                else self._last_choice(self.candidates or self._search(last=True))
            )
        else:
            turn = sum(spent >= bound for bound in bounds)
            if turn > self._turn and self.memory.goal_seen:
                again = turn % 2 == 1 or not (self.designs or self.candidates)
                self._turn = turn
                if self.tracks:
                    if again:
                        self._designed()
                    self._playing = len(self.designs) - 1
                    return
                if again:
                    self.candidates = self._search(last=turn + 2 > _TURNS)
                self._playing = self.candidates.index(self._choose(self.candidates, last=False))

    def _looks_affine(self) -> bool:
        """Return whether a first law is all that the plant seems to need."""
        if self.tracks or self.settings.lags == "auto":
            return False
        return is_affine(self.memory, self.problem, np.random.default_rng((self._build_seed, 3)))

    # -- plans and controllers -----------------------------------------------------------------------------

    @property
    def candidate(self) -> Controller:
        """The same as `policy`: no episode is spent on evaluation."""
        return self.policy

    @property
    def policy(self) -> Controller:
        """The controller that was made when the budget was spent; the idle one, before the first step."""
        if self._successor is not None:
            return self._successor.policy
        if self._rules is not None:
            lags = self._lags
            return lagged_controller(self._rules, self.problem, lags) if lags and lags.count else self._rules
        if not len(self.memory):
            return within_space(idle_rules(self.code, self.problem))
        raise SettingError(
            f"Training was stopped after {len(self.memory):,} steps, within its budget, so there is no "
            "controller yet: go on with learn, or make one of what is known with conclude."
        )

    @property
    def first_law(self) -> Controller | None:
        """That of TreeSearch, if it took over."""
        return self._successor.first_law if self._successor is not None else None

    @property
    def ladder(self) -> Ladder | None:
        """The ladder on which the controller was chosen, if it is one with memory."""
        if self._successor is not None:
            return self._successor.ladder if self._successor.given is None else None
        return self.designs[-1].ladder if self._is_design else None

    @property
    def _is_design(self) -> bool:
        """Whether the controller that was made is one with memory."""
        return self._rules is not None and self._rules.remembers

    @property
    def robust(self) -> bool:
        """Whether it designs for perturbed plants: the learned one, or in a long training those declared."""
        if self._successor is not None:
            return self._successor.robust
        return self.ladder is not None and self.ladder.design is not None

    def conclude(self) -> None:
        """Search for the controller of the memory as it is now, unless that was done."""
        if self._rules is None and self._successor is None:
            self._rules = self._designed() if self.tracks else self._last_choice(self._search(last=True))

    def adopt(self, memory: Memory, rules: Controller) -> None:
        """Take over transitions that were not played here, and the controller that was made from them."""
        self.memory = memory
        self.episodes = len(memory.begins)
        self.candidates = []
        self.designs = []
        self._plan = None
        self._warm = np.zeros((2, 0))
        self._mirrors = {}
        self._prediction = None
        self._span = ("steps", 0, len(memory))
        self._turn = 0
        self._rules = rules

    @property
    def model(self) -> PlantModel:
        """The plant fitted to the current memory, each time anew and to the same bits."""
        return fit_model(self._plain_memory(), self.code, self.problem, self._plain_mirror())

    def hold_out(self) -> tuple[PlantModel, list[Episode]]:
        """Return a plant fitted to four fifths of the episodes, and the other episodes."""
        return hold_out(self._plain_memory(), self.code, self.problem, self._plain_mirror())

    def logged_episodes(self) -> list[Episode]:
        """Return the episodes of the current memory."""
        return episodes_of(self._plain_memory(), self.code)

    def coverage(self) -> Coverage:
        """Return the states of the memory, and where the controller goes in the learned plant."""
        assert self._rules is not None
        return coverage_of(self.memory, self.code, self.problem, self._rules)

    def final_plan(self, rng: Rng) -> Plan:
        """Return the plan for the current memory from which controllers are distilled."""
        return self._final_plan(rng, self.mirror)

    def _final_plan(self, rng: Rng, mirror: Mirror | None) -> Plan:
        worth = warm_start(self.memory, self._current_plan())
        return self._plan_of(self.memory, worth, rng, mirror, final=True)

    def _replan(self, seed: int) -> None:
        self._warm = warm_start(self.memory, self._current_plan())
        self._plan_seed = seed
        self._plan = self._make_plan()

    def _make_plan(self) -> Plan:
        rng = np.random.default_rng(self._plan_seed)
        memory = self.memory.until(self._warm.shape[1])
        return self._plan_of(memory, self._warm, rng, self.mirror_of(memory), final=False)

    def _plan_of(
        self, memory: Memory, worth: Floats, rng: Rng, mirror: Mirror | None, *, final: bool
    ) -> Plan:
        """Return a plan for a memory, and for its mirror images if the plant has a mirror."""
        if mirror is None:
            return make_plan(memory, self.code, self.settings, worth, rng, final=final)
        both = mirror.memory(memory)
        values = np.tile(worth, 2)
        plan = make_plan(both, self.code, self.settings, values, rng, final=final)
        return replace(plan, state_values=plan.state_values[:, : len(memory)])

    def mirror_of(self, memory: Memory) -> Mirror | None:
        """Return the mirror that was given, or that these first steps of the memory show, or None."""
        if self._unmirrored is not None and len(memory) > self._unmirrored:
            return None
        if len(memory) not in self._mirrors:
            mirror = chosen_mirror(self.settings.mirror, memory, self.code, self.task)
            self._mirrors[len(memory)] = mirror
        return self._mirrors[len(memory)]

    def prediction(self) -> Prediction:
        """Return the lags that predictions of the memory need, without set-points."""
        if self._prediction is None or self._prediction[0] != len(self.memory):
            found = chosen_lags(without_setpoints(self.memory, self.problem), self.code)
            self._prediction = len(self.memory), found
        return self._prediction[1]

    @property
    def lags(self) -> list[str] | None:
        """The names of the lags in the state of the learned plant, if they were asked for or chosen."""
        seen, done = names_of(self.problem)
        if self._lags is not None:
            return [one.name for one in self._lags.features(seen, done)]
        if self._successor is not None or not self._is_design:
            return None
        goals = [split_unit(one)[0] for one in self.problem.setpoints.values()]
        found = self.prediction().lags.features([one for one in seen if one not in goals], done)
        return [one.name for one in found]

    def _shows_lags(self) -> bool:
        """Whether lags are to be chosen, and the memory has grown enough for that."""
        kind, first, last = self._span
        wanted = self.settings.lags == "auto" and not self.tracks
        enough = self._spent(kind) - first >= _LAGS * (last - first) and len(self.memory) >= _FEWEST
        return wanted and self._turn == 0 and enough

    def _choose_lags(self) -> None:
        """Choose the lags of all states, those of the memory included, once it shows them."""
        found = chosen_lags(self.memory, self.code).lags
        self.memory = found.extend(self.memory, self.code)
        self._remember(found)
        if found.count:
            self._plan = None
            self._warm = np.zeros((2, 0))
            self._replan(int(self._rng.integers(2**62)))

    def _remember(self, lags: Lags) -> None:
        self._lags, self.task, self._mirrors = lags, with_lags(self.problem, lags), {}

    @property
    def _lagged(self) -> bool:
        """Whether the states of the memory have lags."""
        return self._lags is not None and self._lags.count > 0

    def _plain_mirror(self) -> Mirror | None:
        """Return the mirror, unless it is one of states with lags."""
        return None if self._lagged else self.mirror

    def _plain_memory(self) -> Memory:
        """Return the memory without lags."""
        dims = self.problem.states.dims
        if not self._lagged:
            return self.memory
        return self.memory.with_states(self.memory.states[:, :dims], self.memory.nexts[:, :dims])

    @property
    def mirror(self) -> Mirror | None:
        """The mirror that was given, or that the whole memory shows, or None."""
        return None if self._unmirrored == len(self.memory) else self.mirror_of(self.memory)

    def _mirrored(self, mirror: Mirror | None) -> Memory:
        """Return the memory, with its mirror images if there is a mirror."""
        return self.memory if mirror is None else mirror.memory(self.memory)

    def _current_plan(self) -> Plan | None:
        if self._plan is None and self._warm.shape[1]:
            self._plan = self._make_plan()
        return self._plan

    def _search(self, *, last: bool) -> list[Candidate]:
        """Return the candidates that have played, and those of a new search.

        The last search is also made without the mirror that was found, which is kept only if it is as good.
        """
        played = [one for one in self.candidates if one.returns]
        if not len(self.memory):
            return [Candidate(idle_rules(self.code, self.task))]
        mirror = self.mirror
        found = self._search_with(mirror, played)
        if last and mirror is not None and self.settings.mirror == "auto":
            plain = self._search_with(None, played)
            rng = np.random.default_rng((self._build_seed, 2))
            if not keeps_mirror(self.memory, self.code, self.settings, found, plain, rng):
                self._unmirrored = len(self.memory)
                found = plain
        return played + [Candidate(rules) for rules in found]

    def _search_with(self, mirror: Mirror | None, played: list[Candidate]) -> list[Controller]:
        """Return the controllers of a search with a mirror, or without one."""
        rng = np.random.default_rng((self._build_seed, 0))
        memory = self._mirrored(mirror)
        plan = self._final_plan(rng, mirror)
        return search(memory, plan, self.code, self.settings, self.task, played, rng, mirror=mirror)

    def _designed(self) -> Controller:
        """Design a controller with memory in the plant of the memory as it is now."""
        played = [one for one in self.designs if one.returns]
        tracked = fit_tracked(self.memory, self.code, self.problem, self.prediction())
        rng = np.random.default_rng((self._build_seed, 0))
        steps = int(self.settings.effort * _MODEL_STEPS)
        found = design(tracked, self.problem, played, rng, steps, nominal=self.settings.nominal)
        self.designs = [*played, found]
        return found.controller

    def _last_choice(self, candidates: list[Candidate]) -> Controller:
        chosen = within_space(self._choose(candidates, last=True).controller)
        return with_smallest_half(chosen, self.mirror, self.code)

    def _choose(self, candidates: list[Candidate], *, last: bool) -> Candidate:
        if len(candidates) == 1:
            return candidates[0]
        rng = np.random.default_rng((self._build_seed, 1))
        return choose(self._mirrored(self.mirror), self.code, self.settings, candidates, rng, last=last)

    def _checked(self, observation: Any) -> Floats:
        state = np.array(observation, np.float64).ravel()
        if np.isnan(state).any():
            raise BadEnvironmentError(f"The observation of step {len(self.memory)} holds NaN: {observation}.")
        return state

    def columns(self) -> dict[str, float]:
        """Return the turn, the leaves of the last controller, and whether the current plan is mirrored."""
        last = self._rules
        if last is None and self._player is not None:
            last = self._player.controller
        if self._successor is not None:
            last = self.policy
        found: dict[str, float] = {"turn": self._turn, "leaves": last.n_leaves if last is not None else 0}
        if self.settings.mirror != "off":
            found["mirrored"] = int(self.mirror_of(self.memory.until(self._warm.shape[1])) is not None)
        return found

    def state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return the memory, the inputs of the last plan, the controllers, and the search that goes on."""
        data: dict[str, Any] = {
            "best_return": self.best_return,
            "episodes": self.episodes,
            "plan_seed": self._plan_seed,
            "lot": self._build_seed,
            "turn": self._turn,
            "span": list(self._span),
            "hoped": self._optimistic_steps,
            "playing": self._playing,
            "returns": [one.returns for one in self.candidates],
        }
        if self._unmirrored is not None:
            data["unmirrored"] = self._unmirrored
        arrays = {f"memory.{name}": array for name, array in self.memory.arrays().items()}
        arrays["warm"] = self._warm
        for i, one in enumerate(self.candidates):
            arrays |= {f"candidate.{i}.{name}": array for name, array in rules_to(one.controller).items()}
            arrays[f"candidate.{i}.starts"] = np.array(one.starts).reshape(-1, self.task.states.dims)
        if self._rules is not None and not self._is_design:
            arrays |= {f"rules.{name}": array for name, array in rules_to(self._rules).items()}
        if self._lags is not None:
            data["lags"] = {"differences": list(self._lags.differences), "actions": self._lags.actions}
        if self.tracks:
            data |= {"designs": [], "designed": self._is_design}
        for i, made in enumerate(self.designs):
            searched, found = made.search.state()
            data["designs"].append({"search": searched, "returns": made.returns})
            arrays |= {f"design.{i}.{name}": array for name, array in found.items()}
        if self._successor is not None:
            data["own_steps"] = self._own_steps
            data["search"], found = self._successor.state()
            arrays |= {f"search.{name}": array for name, array in found.items()}
        return data, arrays

    def restore(self, data: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
        """Restore the result of `state`."""

        def part(prefix: str) -> dict[str, NDArray[Any]]:
            return {n.removeprefix(prefix): a for n, a in arrays.items() if n.startswith(prefix)}

        self._lags = None
        self.task = self.problem
        if "lags" in data:
            self._remember(lags_from(data["lags"], self.problem.states.dims))
        best = data["best_return"]
        dims = self.task.states.dims
        self.best_return = None if best is None else float(number(data, "best_return"))
        for name in ("episodes", "plan_seed", "lot", "hoped", "playing"):
            number(data, name, 0, whole=True)
        self.episodes = data["episodes"]
        self._optimistic_steps = data["hoped"]
        self._playing = data["playing"]
        self._plan_seed = data["plan_seed"]
        self._build_seed = data["lot"]
        self._turn, self._span = number(data, "turn", 0, _TURNS, whole=True), _span_from(data["span"])
        listed = int(self.code.space.n) if isinstance(self.code.space, Discrete) else 0
        self.memory = Memory.from_arrays(part("memory."), dims, self.code.numbers, listed)
        self._mirrors = {}
        self._prediction = None
        self._unmirrored = None
        if "unmirrored" in data:
            self._unmirrored = number(data, "unmirrored", 0, len(self.memory), whole=True)
        self.memory.known_ends = known_ends(self.memory, self.problem)
        self._warm = np.array(arrays["warm"], order="C")
        self._plan = None
        known = self._warm.shape[1]
        if self._warm.dtype != np.float64 or len(self._warm) != 2 or known > len(self.memory):
            raise ArchiveError("The plan in the file does not match its memory.")
        if np.isnan(self._warm).any():
            raise ArchiveError("The plan in the file holds NaN.")
        played = enumerate(data["returns"])
        self.candidates = [self._candidate_from(part(f"candidate.{i}."), one) for i, one in played]
        self.designs = [
            self._design_from(one, part(f"design.{i}.")) for i, one in enumerate(data.get("designs", []))
        ]
        players = self.designs if self.tracks else self.candidates
        if self._turn > 0 and self._playing >= len(players):
            raise ArchiveError(f"The file has no controller {self._playing}, whose turn it is.")
        rules = part("rules.")
        self._rules = rules_from(rules, self.code, self.task) if rules else None
        if data.get("designed"):
            if not self.designs:
                raise ArchiveError("The file has no design of the controller that was chosen.")
            self._rules = self.designs[-1].controller
        self._successor = None
        if "search" in data:
            self._own_steps = number(data, "own_steps", 0, len(self.memory), whole=True)
            self._successor = self._new_successor()
            self._successor.restore(data["search"], part("search."))

    def _design_from(self, data: Mapping[str, Any], arrays: dict[str, NDArray[Any]]) -> Design:
        search = new_search(self.problem, nominal=self.settings.nominal)
        search.restore(data["search"], arrays)
        returns = [float(number({"return": one}, "return")) for one in data["returns"]]
        found = Design(search, returns)
        if not found.ladder.rungs:
            raise ArchiveError("A design in the file has no rung.")
        return found

    def _candidate_from(self, arrays: dict[str, NDArray[Any]], returns: list[Any]) -> Candidate:
        starts = arrays.pop("starts")
        fits = starts.shape == (len(returns), self.task.states.dims) and np.isfinite(starts).all()
        if not fits or not np.isfinite(np.array(returns, np.float64)).all():
            raise ArchiveError("A controller in the file has starts and returns that do not match.")
        rules = rules_from(arrays, self.code, self.task)
        inner = rules.feature >= 0
        pairs = 1 + 2 * np.arange(inner.sum())  # the order of `to_rules`, on which the kernels rely
        if not (np.array_equal(rules.left[inner], pairs) and np.array_equal(rules.right[inner], pairs + 1)):
            raise ArchiveError("A controller in the file has children in the wrong order.")
        return Candidate(rules, list(starts.astype(np.float64)), [float(one) for one in returns])


def _span_from(given: list[Any]) -> tuple[str, int, int]:
    kind, first, last = given
    if kind not in ("steps", "episodes"):
        raise ArchiveError(f"The budget in the file is in {kind!r}, and must be in steps or episodes.")
    ends = {"first": first, "last": last}
    return kind, number(ends, "first", 0, whole=True), number(ends, "last", 0, whole=True)
