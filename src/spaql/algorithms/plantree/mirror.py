"""Mirrors of a plant: maps of observations and actions that leave its motion, rewards and ends unchanged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from gymnasium.spaces import Discrete
from numpy.typing import NDArray

from spaql.algorithms.plantree.replay_memory import Floats, Memory
from spaql.errors import SettingError
from spaql.problems import Problem
from spaql.spaces import action_names, count_actions, observation_names, split_unit


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

    def memory(self, memory: Memory) -> Memory:
        """Return the memory with every episode once more, as seen in the mirror."""
        return memory.doubled(self.states, self.actions)

    @property
    def sides(self) -> NDArray[np.int64]:
        """The observations of which one sign can be chosen: those that only change their sign."""
        own = np.array(self.order) == np.arange(len(self.order))
        return np.flatnonzero(own & (np.array(self.signs) < 0))

    def text(self, problem: Problem) -> str:
        """Return the mirror by names, as `mirror_from` reads it."""
        seen, done = _names(problem)
        signs = self.action_signs or (1,) * len(self.action_order)
        return f"{_text(self.order, self.signs, seen)}:{_text(self.action_order, signs, done)}"


def mirror_from(text: str, problem: Problem) -> Mirror:
    """Return the mirror that is given by names, as `angle,speed:torque`.

    Listed observations change their sign, and so do listed numbers of an action, about the middle of their
    range; `left=right` swaps two, as actions of a list are. Without a colon, all numbers of an action change
    their sign, or the list of actions is reversed.
    """
    observations, actions = _names(problem)
    seen, colon, done = text.partition(":")
    order, signs = _read(seen, observations, "observation")
    count = count_actions(problem.actions.space)
    listed = isinstance(problem.actions.space, Discrete)
    if not colon:
        same = tuple(range(count))
        action_order, action_signs = (same[::-1], ()) if listed else (same, (-1,) * count)
    else:
        action_order, action_signs = _read(done, actions, "action")
        if listed and -1 in action_signs:
            raise SettingError(
                f"The mirror {text!r} changes the sign of an action of a list: swap two of them, as in "
                f"{'='.join(map(_bare, actions[:2]))}."
            )
        action_signs = () if listed else action_signs
    mirror = Mirror(order, signs, action_order, action_signs)
    if not len(mirror.sides):
        raise SettingError(f"The mirror {text!r} changes the sign of no observation: name one at least.")
    return mirror


def _names(problem: Problem) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the names of the numbers of an observation, and of an action or the actions of a list."""
    states = problem.states
    actions = problem.actions
    return observation_names(states.space, states.names), action_names(actions.space, actions.names)


def _read(text: str, names: Sequence[str], what: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the order and signs of names such as `a,b=c`."""
    order = list(range(len(names)))
    signs = [1] * len(names)
    used = set[int]()
    for part in filter(None, (part.strip() for part in text.split(","))):
        found = [_place(name.strip(), names, what) for name in part.split("=")]
        if len(found) > 2 or not used.isdisjoint(found) or len(set(found)) < len(found):
            raise SettingError(
                f"The mirror names {part!r}, and each {what} can be named once, alone or in a pair."
            )
        used.update(found)
        if len(found) == 1:
            signs[found[0]] = -1
        else:
            order[found[0]] = found[1]
            order[found[1]] = found[0]
    return tuple(order), tuple(signs)


def _place(given: str, names: Sequence[str], what: str) -> int:
    for form in (list(names), [_bare(name) for name in names]):
        if form.count(given) == 1:
            return form.index(given)
    raise SettingError(
        f"The mirror names the {what} {given!r}, and there are {', '.join(map(_bare, names))}. "
        "Give auto, off, or some of these, as in angle,speed:torque."
    )


def _text(order: Sequence[int], signs: Sequence[int], names: Sequence[str]) -> str:
    parts = []
    for j, (other, sign) in enumerate(zip(order, signs, strict=True)):
        if other > j:
            parts.append(f"{_bare(names[j])}={_bare(names[other])}")
        elif other == j and sign < 0:
            parts.append(_bare(names[j]))
    return ",".join(parts)


def _bare(name: str) -> str:
    return split_unit(name)[0]
