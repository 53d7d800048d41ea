"""Mirrors of a plant: maps of observations and actions that leave its motion, rewards and ends unchanged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from gymnasium.spaces import Discrete

from spaql.algorithms.replay import ReplayMemory
from spaql.algorithms.rule_learners import actions_of, observations_of, without_units
from spaql.errors import SettingError
from spaql.kernels.numerics import Floats, Ints
from spaql.problems import Problem
from spaql.spaces import count_actions


@dataclass(frozen=True)
class Mirror:
    """A map of observations and actions to their mirror images, which is its own inverse.

    Number j of a mirrored observation is `signs[j]` times number `order[j]`. Of a Box the same holds for the
    numbers of an action about the middle of their ranges; of Discrete actions, number i becomes
    `action_order[i]`, and `action_signs` is empty.
    """

    order: tuple[int, ...]
    signs: tuple[int, ...]
    action_order: tuple[int, ...]
    action_signs: tuple[int, ...] = ()

    def states(self, states: Floats) -> Floats:
        """Return the mirror images of states, one per row, raw or standardised over a mirrored memory."""
        return np.ascontiguousarray(states[:, self.order] * np.array(self.signs, np.float64))

    def actions(self, actions: Floats) -> Floats:
        """Return the mirror images of actions as the memory has them, one per row."""
        if self.action_signs:
            return np.asarray(actions[:, self.action_order] * np.array(self.action_signs, np.float64))
        return np.array(self.action_order, np.float64)[actions[:, 0].astype(np.int64), np.newaxis]

    def memory(self, memory: ReplayMemory) -> ReplayMemory:
        """Return the memory with every episode once more, as seen in the mirror."""
        return memory.doubled(self.states, self.actions)

    @property
    def sides(self) -> Ints:
        """The observations of which one sign can be chosen: those that only change their sign."""
        own = np.array(self.order) == np.arange(len(self.order))
        return np.flatnonzero(own & (np.array(self.signs) < 0))

    def text(self, problem: Problem) -> str:
        """Return the mirror by names, as `mirror_from` reads it."""
        signs = self.action_signs or (1,) * len(self.action_order)
        observations = _text(self.order, self.signs, observations_of(problem))
        return f"{observations}:{_text(self.action_order, signs, actions_of(problem))}"


def mirror_from(text: str, problem: Problem) -> Mirror:
    """Return the mirror that is given by names, as `angle,speed:torque`.

    Listed observations change their sign, and so do listed numbers of an action, about the middle of their
    range; `left=right` swaps two, as actions of a list are. Without a colon, all numbers of an action change
    their sign, or the list of actions is reversed.
    """
    actions = actions_of(problem)
    observed, colon, acted = text.partition(":")
    order, signs = _read(observed, observations_of(problem), "observation")
    count = count_actions(problem.actions.space)
    listed = isinstance(problem.actions.space, Discrete)
    if not colon:
        same = tuple(range(count))
        action_order, action_signs = (same[::-1], ()) if listed else (same, (-1,) * count)
    else:
        action_order, action_signs = _read(acted, actions, "action")
        if listed and -1 in action_signs:
            raise SettingError(
                f"The mirror {text!r} changes the sign of an action of a list: swap two of them, as in "
                f"{'='.join(without_units(actions[:2]))}."
            )
        action_signs = () if listed else action_signs
    mirror = Mirror(order, signs, action_order, action_signs)
    if not len(mirror.sides):
        raise SettingError(f"The mirror {text!r} changes the sign of no observation: name one at least.")
    return mirror


def _read(text: str, names: Sequence[str], what: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the order and signs of names such as `a,b=c`."""
    order = list(range(len(names)))
    signs = [1] * len(names)
    used = set[int]()
    for part in filter(None, (part.strip() for part in text.split(","))):
        places = [_place(name.strip(), names, what) for name in part.split("=")]
        if len(places) > 2 or not used.isdisjoint(places) or len(set(places)) < len(places):
            raise SettingError(
                f"The mirror names {part!r}, and each {what} can be named once, alone or in a pair."
            )
        used.update(places)
        if len(places) == 1:
            signs[places[0]] = -1
        else:
            order[places[0]] = places[1]
            order[places[1]] = places[0]
    return tuple(order), tuple(signs)


def _place(name: str, names: Sequence[str], what: str) -> int:
    for form in (list(names), without_units(names)):
        if form.count(name) == 1:
            return form.index(name)
    raise SettingError(
        f"The mirror names the {what} {name!r}, and there are {', '.join(without_units(names))}. "
        "Give auto, off, or some of these, as in angle,speed:torque."
    )


def _text(order: Sequence[int], signs: Sequence[int], names: Sequence[str]) -> str:
    short = without_units(names)
    parts = []
    for j, (other, sign) in enumerate(zip(order, signs, strict=True)):
        if other > j:
            parts.append(f"{short[j]}={short[other]}")
        elif other == j and sign < 0:
            parts.append(short[j])
    return ",".join(parts)
