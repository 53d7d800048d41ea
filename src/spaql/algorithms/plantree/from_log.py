"""A controller from a log: PlanTree's search in plants fitted to it, and what the data support."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from gymnasium.spaces import Discrete

from spaql.algorithms.mirrors.detection import chosen_mirror
from spaql.algorithms.plantree.candidates import CandidateController, search
from spaql.algorithms.plantree.experience import known_ends
from spaql.algorithms.plantree.explore import make_plan
from spaql.algorithms.plantree.rule_trees import to_rules, with_smallest_half, within_space
from spaql.algorithms.plantree.settings import PlanTreeSettings
from spaql.algorithms.plantree.support import ModelEpisodes, TestPlant
from spaql.algorithms.replay import ActionCode, ReplayMemory, Scale, spaced
from spaql.controllers import Controller
from spaql.errors import SettingError
from spaql.formatting import counted
from spaql.kernels.numerics import Floats, Ints, deviation, mean
from spaql.kernels.plantree.controllers import grow_choices, grow_laws
from spaql.problems import Problem
from spaql.problems.from_log import LoggedProblem
from spaql.stats import t975

SUPPORTED = "supported"
DOUBTFUL = "doubtful"
UNSUPPORTED = "not supported by the data"
"""The verdicts."""
_CLIPPED_DOUBTFUL = 0.015
"""The share of clipped steps above which a controller is doubtful."""
_CLIPPED_REFUSED = 0.03
"""The share above which it is not supported."""
_UNSEEN = 0.1
_UNSEEN_EPISODES = 0.3
"""Shares of steps with unseen actions, and of episodes with such a step, above which one is doubtful."""
_WIDE = 0.3
"""Half-width of the interval above which a controller is doubtful, as a share of the standard deviation of
logged returns or, if that is larger, of the predicted improvement."""
_BELOW = 0.01
"""Share of the range of logged returns by which a prediction may be below their mean without doubt."""
_NEAR = 0.05
"""Share of the spread of returns by which a candidate may be below the best, to be compared further."""
_FOLDS = 5
_STARTS = 200
"""Most starts of a measurement."""
_FEWEST_STARTS = 40
"""The fewest, some of them repeated, of a fold."""
_CLONES = (6, 16, 4)
"""Most leaves of the clones of the logged behaviour; the first is improved by the search, too."""
_LEAST_CHOICES = 20
_LEAST_LAWS = 30
"""Fewest samples of a leaf of a clone."""


@dataclass(frozen=True, eq=False)
class LogFit:
    """The controller that was chosen, and what the data say about it."""

    rules: Controller
    memory: ReplayMemory
    predicted: float
    """The mean return in plants that were fitted without the episodes from whose starts it is played."""
    half: float
    """Half the width of its interval."""
    logged: tuple[float, ...]
    """The returns of the logged episodes that ended or lasted until the horizon; of all if there are none."""
    clipped: float
    unseen: float
    untried: float
    is_clone: bool
    """Whether it is the clone of the logged behaviour."""
    verdict: str
    reasons: tuple[str, ...]


def fit_log(logged_problem: LoggedProblem, settings: PlanTreeSettings, seed: int) -> LogFit:
    """Search for a controller in plants fitted to a log, and judge what the data support."""
    problem = logged_problem.problem
    code = ActionCode(problem.actions.space)
    memory = memory_of(logged_problem, code)
    memory.known_ends = known_ends(memory, problem)
    if len(memory.begins) < 2:
        raise SettingError(
            "The log is one episode, copies counted once, and some must be held out to test predictions: "
            "give a column of episodes, several files, or a horizon of fewer steps than the log has.",
            settings={"horizon": "N"},
        )
    steps = problem.horizon
    edge = _edge_price(memory)
    rng = np.random.default_rng((seed, 0))
    clones = [CandidateController(clone_of(memory, code, problem, leaves)) for leaves in _CLONES]
    mirror = chosen_mirror(settings.mirror, memory, code, problem)
    fitted = memory if mirror is None else mirror.memory(memory)
    plan = make_plan(fitted, code, settings, np.zeros((2, len(fitted))), rng, final=True)
    controllers = search(
        fitted, plan, code, settings, problem, clones[:1], rng, steps=steps, edge=edge, mirror=mirror
    )
    candidates = clones + [CandidateController(controller) for controller in controllers]
    logged = _logged_returns(memory, steps)
    plant = TestPlant(memory, code, logged_problem.objective.rewards, logged_problem.objective.ends)
    starts = spaced(memory.states[memory.begins], _STARTS)
    rolled = [plant.roll(candidate.controller, starts, steps) for candidate in candidates]
    near = _nearly_best(rolled, edge, logged)
    held_out = _HeldOut(logged_problem, memory, code, seed)
    promises = {i: held_out.promise(candidates[i].controller) for i in near}
    chosen = _most_promising(candidates, promises, settings.tolerance)
    best = candidates[chosen]
    predicted, half = promises[chosen]
    played = rolled[chosen]
    verdict, reasons = _verdict(logged_problem, memory, played, predicted, half, np.array(logged))
    return LogFit(
        rules=with_smallest_half(within_space(best.controller), mirror),
        memory=memory,
        predicted=predicted,
        half=half,
        logged=logged,
        clipped=played.clipped,
        unseen=played.unseen,
        untried=played.untried,
        is_clone=best in clones,
        verdict=verdict,
        reasons=reasons,
    )


def memory_of(logged_problem: LoggedProblem, code: ActionCode) -> ReplayMemory:
    """Return the transitions of a log as a memory."""
    actions = logged_problem.actions if code.listed else (logged_problem.actions - code.middle) / code.half
    arrays = {
        "states": logged_problem.states,
        "actions": actions,
        "rewards": logged_problem.rewards,
        "nexts": logged_problem.nexts,
        "ended": logged_problem.ended,
        "begins": logged_problem.begins,
    }
    return ReplayMemory.from_arrays(arrays, logged_problem.states.shape[1], code.numbers, code.n_listed)


def clone_of(memory: ReplayMemory, code: ActionCode, problem: Problem, leaves: int) -> Controller:
    """Return a small tree fitted to the logged actions: a controller that stays where the data are."""
    scale = Scale.of(memory)
    z = np.ascontiguousarray(scale.z(memory.states))
    if isinstance(code.space, Discrete):
        votes = np.asarray(memory.actions == np.arange(float(code.space.n)), np.float64)
        tree = grow_choices(z, votes, leaves, _LEAST_CHOICES)
    else:
        u = np.ascontiguousarray(memory.actions)
        tree = grow_laws(z, u, np.ones(len(z)), leaves, _LEAST_LAWS)
    return to_rules(tree, scale, code, problem)


def _nearly_best(played: list[ModelEpisodes], edge: float, logged: tuple[float, ...]) -> list[int]:
    """Return which candidates are nearly the best by exact returns less the price of all clipped steps.

    If some of these stay within the data, only those.
    """
    scores = np.array(
        [mean(episodes.returns) - edge * episodes.clipped * episodes.length for episodes in played]
    )
    best = float(scores.max())
    spread = max(float(np.ptp(logged)), abs(best - mean(np.array(logged))))
    near = [i for i, score in enumerate(scores) if score >= best - _NEAR * spread]
    inside = [i for i in near if played[i].clipped <= _CLIPPED_DOUBTFUL]
    return inside or near


def _most_promising(
    candidates: list[CandidateController], promises: dict[int, tuple[float, float]], tolerance: float
) -> int:
    """Return the smallest candidate that is nearly the best at the low end of its predicted interval."""
    low = {i: predicted - half for i, (predicted, half) in promises.items()}
    best = max(low.values())
    return min(
        (i for i, value in low.items() if value >= best - tolerance * abs(best)),
        key=lambda i: (candidates[i].controller.n_leaves, -low[i]),
    )


def _edge_price(memory: ReplayMemory) -> float:
    """Return the penalty on a step that leaves the data: the largest reward of a step, or their range."""
    usual = memory.rewards[~memory.ended] if not memory.ended.all() else memory.rewards
    return max(float(np.abs(usual).max()), float(np.ptp(usual)))


class _HeldOut:
    """Plants that were fitted without a part of the episodes, and that part, for each of several parts."""

    def __init__(
        self, logged_problem: LoggedProblem, memory: ReplayMemory, code: ActionCode, seed: int
    ) -> None:
        self._steps = logged_problem.problem.horizon
        self._seed = seed
        self._parts: list[tuple[TestPlant, Floats, tuple[Ints, Floats]]] = []
        episodes = np.arange(len(memory.begins))
        folds = min(_FOLDS, len(episodes))
        for fold in range(folds):
            out = episodes % folds == fold
            rest = memory.only(~out)
            held = memory.only(out)
            if rest.ended.all():
                raise SettingError("Nearly every step of the log ends an episode: no motion can be learned.")
            plant = TestPlant(rest, code, logged_problem.objective.rewards, logged_problem.objective.ends)
            starts = spaced(held.states[held.begins], _STARTS)
            starts = np.resize(starts, (max(len(starts), _FEWEST_STARTS), starts.shape[1]))
            self._parts.append((plant, starts, plant.errors(held)))

    def promise(self, rules: Controller) -> tuple[float, float]:
        """Return the predicted mean return of a controller, and half the width of its interval.

        It is played from the starts of each part, in the plant that was fitted without it, with errors that
        its predictions made there. The interval is that of the means of the parts, wider by the difference
        that those errors make.
        """
        rng = np.random.default_rng((self._seed, 1))
        steps = self._steps
        quiet = np.array([mean(plant.roll(rules, starts, steps).returns) for plant, starts, _ in self._parts])
        noisy = np.array(
            [
                mean(plant.roll(rules, starts, steps, errors, rng).returns)
                for plant, starts, errors in self._parts
            ]
        )
        count = len(noisy)
        error = deviation(noisy, ddof=1) / math.sqrt(count)
        return mean(noisy), t975(count - 1) * error + abs(mean(noisy) - mean(quiet))


def _verdict(
    logged_problem: LoggedProblem,
    memory: ReplayMemory,
    played: ModelEpisodes,
    predicted: float,
    half: float,
    logged: Floats,
) -> tuple[str, tuple[str, ...]]:
    """Return the verdict on a controller, and its reasons."""
    refused = []
    doubts = []
    clipped = played.clipped
    unseen = played.unseen
    at_the_edge = f"{clipped:.1%} of its steps in the learned plant are cut at the edge of the data"
    varied = logged_problem.objective.sees_states and float(np.ptp(memory.rewards)) > 0.0
    if not varied and logged_problem.objective.end is None:
        refused.append("no reward in the log depends on the state, and no episode ends")
    elif not varied and not memory.ended.any():
        doubts.append(
            "the end condition never holds in the log, so that nothing was seen of what leads to it"
        )
    if clipped > _CLIPPED_REFUSED:
        refused.append(f"{at_the_edge}, more than {_CLIPPED_REFUSED:.1%}")
    elif clipped > _CLIPPED_DOUBTFUL:
        doubts.append(f"{at_the_edge}, more than {_CLIPPED_DOUBTFUL:.1%}")
    if played.untried > 0.0:
        refused.append(
            f"{played.untried:.2g} of its actions are outside those that the log has tried: extrapolation"
        )
    if unseen > _UNSEEN or played.unseen_episodes > _UNSEEN_EPISODES:
        doubts.append(
            f"{unseen:.1%} of its actions, in {played.unseen_episodes:.0%} of its episodes, are outside "
            "those logged near that state"
        )
    if predicted < mean(logged) - _BELOW * float(np.ptp(logged)):
        doubts.append("the predicted return is below that of the log")
    if half > _WIDE * max(deviation(logged), abs(predicted - mean(logged))):
        doubts.append("the predicted return depends much on which episodes the plant is fitted to")
    if len(memory.begins) < _FOLDS:
        doubts.append(f"the log has only {counted(len(memory.begins), 'episode')}")
    if refused:
        return UNSUPPORTED, (*refused, *doubts)
    return (DOUBTFUL, tuple(doubts)) if doubts else (SUPPORTED, ())


def _logged_returns(memory: ReplayMemory, horizon: int) -> tuple[float, ...]:
    """Return the returns of whole episodes; of all episodes if none is whole."""
    pairs = list(zip(memory.begins.tolist(), memory.ends.tolist(), strict=True))
    whole = [(a, b) for a, b in pairs if b - a == horizon or memory.ended[b - 1]]
    return tuple(math.fsum(memory.rewards[a:b].tolist()) for a, b in whole or pairs)
