"""A controller from a log: PlanTree's search in plants fitted to it, and what the data support."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from gymnasium.spaces import Discrete

from spaql.algorithms.plantree.build import Candidate, choose, search
from spaql.algorithms.plantree.encoding import ActionCode, Scale
from spaql.algorithms.plantree.exact_sums import mean
from spaql.algorithms.plantree.planning import make_plan
from spaql.algorithms.plantree.replay_memory import Floats, Memory
from spaql.algorithms.plantree.rule_trees import to_rules, within_space
from spaql.algorithms.plantree.settings import PlanTreeSettings
from spaql.algorithms.plantree.support import ModelEpisodes, TestPlant
from spaql.errors import SettingError
from spaql.formatting import counted
from spaql.kernels.plantree.controllers import grow_choices, grow_laws
from spaql.policy import RuleTree
from spaql.problems import Problem
from spaql.problems.from_log import LoggedProblem
from spaql.stats import t975

SUPPORTED, DOUBTFUL, UNSUPPORTED = "supported", "doubtful", "not supported by the data"
"""The verdicts."""
_CLIPPED_DOUBTFUL, _CLIPPED_REFUSED = 0.015, 0.03
"""Shares of clipped steps above which a controller is doubtful, and not supported."""
_UNSEEN = 0.1
"""Share of steps with unseen actions above which a controller is doubtful."""
_WIDE = 0.15
"""Half-width of the interval, as a share of the spread of returns, above which a controller is doubtful."""
_NEAR = 0.05
"""Share of the spread of returns by which a candidate may be below the best, to be compared further."""
_FOLDS = 5
_STARTS, _FEWEST_STARTS = 200, 40
"""Most starts of a measurement, and the fewest, some of them repeated, of a fold."""
_CLONES = (6, 16, 4)
"""Most leaves of the clones of the logged behaviour; the first is improved by the search, too."""
_LEAST_CHOICES, _LEAST_LAWS = 20, 30
"""Fewest samples of a leaf of a clone."""
_RIDGE, _REPEATS = 0.1, 2
"""Of the clone's laws (see `distil`)."""


@dataclass(frozen=True, eq=False)
class LogFit:
    """The controller that was chosen, and what the data say about it."""

    rules: RuleTree
    memory: Memory
    predicted: float
    """The mean return in plants that were fitted without the episodes from whose starts it is played."""
    half: float
    """Half the width of its interval."""
    logged: tuple[float, ...]
    """The returns of the logged episodes that ended or lasted until the horizon; of all if there are none."""
    clipped: float
    unseen: float
    is_clone: bool
    """Whether it is the clone of the logged behaviour."""
    verdict: str
    reasons: tuple[str, ...]


def fit_log(given: LoggedProblem, settings: PlanTreeSettings, seed: int) -> LogFit:
    """Search for a controller in plants fitted to a log, and judge what the data support."""
    problem, code = given.problem, ActionCode(given.problem.actions.space)
    memory = memory_of(given, code)
    if len(memory.begins) < 2:
        raise SettingError(
            "The log is one episode, and some must be held out to test predictions: give a column of "
            "episodes, several files, or a horizon of fewer steps than the log has.",
            settings={"horizon": "N"},
        )
    steps, edge = problem.horizon, _edge_price(memory)
    rng = np.random.default_rng((seed, 0))
    clones = [Candidate(clone_of(memory, code, problem, leaves)) for leaves in _CLONES]
    plan = make_plan(memory, code, settings, np.zeros((2, len(memory))), rng, final=True)
    found = search(memory, plan, code, settings, problem, clones[:1], rng, steps=steps, edge=edge)
    candidates = clones + [Candidate(rules) for rules in found]
    logged = _logged_returns(memory, steps)
    plant = TestPlant(memory, code, given.objective.rewards, given.objective.ends)
    starts = _some(memory.states[memory.begins], _STARTS)
    within = _within_the_data(
        candidates, [plant.roll(c.rules, starts, steps) for c in candidates], edge, logged
    )
    rng = np.random.default_rng((seed, 1))
    best = choose(memory, code, settings, within, rng, last=True, steps=steps, edge=edge)
    played = plant.roll(best.rules, starts, steps)
    predicted, half = _held_out(given, memory, code, best.rules, np.random.default_rng((seed, 2)))
    spread = max(float(np.ptp(logged)), abs(predicted - mean(np.array(logged))))
    verdict, reasons = _verdict(given, memory, played, half, spread)
    if verdict != UNSUPPORTED and predicted < mean(np.array(logged)) - settings.tolerance * spread:
        verdict, reasons = DOUBTFUL, (*reasons, "the predicted return is below that of the log")
    return LogFit(
        rules=within_space(best.rules),
        memory=memory,
        predicted=predicted,
        half=half,
        logged=logged,
        clipped=played.clipped,
        unseen=played.unseen,
        is_clone=best in clones,
        verdict=verdict,
        reasons=reasons,
    )


def memory_of(given: LoggedProblem, code: ActionCode) -> Memory:
    """Return the transitions of a log as a memory."""
    listed = int(code.space.n) if isinstance(code.space, Discrete) else 0
    actions = given.actions if listed else np.clip((given.actions - code.middle) / code.half, -1.0, 1.0)
    arrays = {
        "states": given.states,
        "actions": actions,
        "rewards": given.rewards,
        "nexts": given.nexts,
        "ended": given.ended,
        "begins": given.begins,
    }
    return Memory.from_arrays(arrays, given.states.shape[1], code.numbers, listed)


def clone_of(memory: Memory, code: ActionCode, problem: Problem, leaves: int) -> RuleTree:
    """Return a small tree fitted to the logged actions: a controller that stays where the data are."""
    scale = Scale.of(memory)
    z = np.ascontiguousarray(scale.z(memory.states))
    if isinstance(code.space, Discrete):
        votes = np.asarray(memory.actions == np.arange(float(code.space.n)), np.float64)
        tree = grow_choices(z, votes, leaves, _LEAST_CHOICES)
    else:
        u = np.ascontiguousarray(memory.actions)
        tree = grow_laws(z, u, np.ones(len(z)), leaves, _LEAST_LAWS, _RIDGE, _REPEATS)
    return to_rules(tree, scale, code, problem)


def _within_the_data(
    candidates: list[Candidate], played: list[ModelEpisodes], edge: float, logged: tuple[float, ...]
) -> list[Candidate]:
    """Return candidates that are nearly the best by exact returns less the price of all clipped steps.

    If some of these stay within the data, only those.
    """
    scores = np.array([mean(one.returns) - edge * one.clipped * one.length for one in played])
    best = float(scores.max())
    spread = max(float(np.ptp(logged)), abs(best - mean(np.array(logged))))
    near = [i for i, score in enumerate(scores) if score >= best - _NEAR * spread]
    inside = [i for i in near if played[i].clipped <= _CLIPPED_DOUBTFUL]
    return [candidates[i] for i in inside or near]


def _edge_price(memory: Memory) -> float:
    """Return the penalty on a step that leaves the data: the largest reward of a step, or their range."""
    usual = memory.rewards[~memory.ended] if not memory.ended.all() else memory.rewards
    return max(float(np.abs(usual).max()), float(np.ptp(usual)))


def _held_out(
    given: LoggedProblem, memory: Memory, code: ActionCode, rules: RuleTree, rng: np.random.Generator
) -> tuple[float, float]:
    """Return the predicted mean return and half the width of its interval.

    Each part of the episodes is left out once: a plant is fitted to the others, and the controller is played
    in it from the starts of that part, with errors that its predictions made there. The interval is that of
    the means of the parts, wider by the difference that those errors make.
    """
    episodes = np.arange(len(memory.begins))
    folds = min(_FOLDS, len(episodes))
    quiet, noisy = np.zeros(folds), np.zeros(folds)
    for fold in range(folds):
        out = episodes % folds == fold
        rest, held = memory.only(~out), memory.only(out)
        if rest.ended.all():
            raise SettingError("Every step of the log ends an episode: there is no motion to learn.")
        plant = TestPlant(rest, code, given.objective.rewards, given.objective.ends)
        starts = _some(held.states[held.begins], _STARTS)
        starts = np.resize(starts, (max(len(starts), _FEWEST_STARTS), starts.shape[1]))
        steps = given.problem.horizon
        quiet[fold] = mean(plant.roll(rules, starts, steps).returns)
        noisy[fold] = mean(plant.roll(rules, starts, steps, plant.errors(held), rng).returns)
    spread = float(np.sqrt(np.sum((noisy - mean(noisy)) ** 2) / (folds - 1)))
    half = t975(folds - 1) * spread / math.sqrt(folds) + abs(mean(noisy) - mean(quiet))
    return mean(noisy), half


def _verdict(
    given: LoggedProblem, memory: Memory, played: ModelEpisodes, half: float, spread: float
) -> tuple[str, tuple[str, ...]]:
    """Return the verdict on a controller, and its reasons."""
    refused, doubts, clipped, unseen = [], [], played.clipped, played.unseen
    at_the_edge = f"{clipped:.1%} of its steps in the learned plant are cut at the edge of the data"
    varied = given.objective.sees_states and float(np.ptp(memory.rewards)) > 0.0
    if not varied and given.objective.end is None:
        refused.append("no reward in the log depends on the state, and no episode ends")
    elif not varied and not memory.ended.any():
        doubts.append(
            "the end condition never holds in the log, so that nothing is known of what leads to it"
        )
    if clipped > _CLIPPED_REFUSED:
        refused.append(f"{at_the_edge}, more than {_CLIPPED_REFUSED:.1%}")
    elif clipped > _CLIPPED_DOUBTFUL:
        doubts.append(f"{at_the_edge}, more than {_CLIPPED_DOUBTFUL:.1%}")
    if unseen > _UNSEEN:
        doubts.append(f"{unseen:.1%} of its actions are outside those logged near that state")
    if half > _WIDE * spread and half > 0.0:
        doubts.append("the predicted return depends much on which episodes the plant is fitted to")
    if len(memory.begins) < _FOLDS:
        doubts.append(f"the log has only {counted(len(memory.begins), 'episode')}")
    if refused:
        return UNSUPPORTED, (*refused, *doubts)
    return (DOUBTFUL, tuple(doubts)) if doubts else (SUPPORTED, ())


def _logged_returns(memory: Memory, horizon: int) -> tuple[float, ...]:
    """Return the returns of whole episodes; of all episodes if none is whole."""
    ends = np.append(memory.begins[1:], len(memory))
    pairs = list(zip(memory.begins.tolist(), ends.tolist(), strict=True))
    whole = [(a, b) for a, b in pairs if b - a == horizon or memory.ended[b - 1]]
    return tuple(math.fsum(memory.rewards[a:b].tolist()) for a, b in whole or pairs)


def _some(starts: Floats, most: int) -> Floats:
    """Return at most so many starts, equally spaced in the log."""
    chosen = np.unique(np.linspace(0, len(starts) - 1, min(most, len(starts))).astype(np.int64))
    return np.asarray(starts[chosen])
