"""Controllers changed by hand."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spaql.controllers.controller import VELOCITY, Controller
from spaql.controllers.file import memory_to, with_own_rules
from spaql.controllers.laws import Laws
from spaql.controllers.limits import checked_action
from spaql.controllers.minimise import tree_of
from spaql.controllers.mirrored import folded
from spaql.controllers.rules import Lock, Nodes
from spaql.errors import SettingError
from spaql.spaces import find_observation
from spaql.values import whole_number

Floats = NDArray[np.float64]


def edited(
    tree: Controller,
    leaf: int,
    action: int | str | Sequence[float] | None = None,
    *,
    offset: float | Mapping[Any, float] | None = None,
    gains: Mapping[Any, float] | None = None,
    lock: bool = False,
) -> Controller:
    """Return a tree with another action in a leaf, or other numbers in the law that computes it.

    Parameters
    ----------
    tree
        The tree; it is not modified.
    leaf
        The number of the leaf, as in `text(tree, numbered=True)`.
    action
        Of a list, its name or number; of a Box, its numbers, within their bounds. In velocity form a law is
        the change of the action: give its offset and gains.
    offset
        The new offset of the law; for an action of several numbers, by the name of each that is to change. Of
        discrete actions, the offsets of their scores, by name; -inf is for one that is never taken.
    gains
        Of the law, by the names of observations, with their units or without; others stay as they are. Of an
        action of several numbers, by pairs of a number's name and an observation's. Of discrete actions,
        by pairs of an action's name and an input's.
    lock
        Also lock the leaf (see `locked`).

    Examples
    --------
    >>> import spaql
    >>> agent = spaql.SPAQLTS("cartpole200", scaling=20, rollouts=20, seed=1)
    >>> tree = spaql.controller_of(agent.learn(iterations=100, progress_bar=False))
    >>> other = edited(tree, leaf=1, action="push right")
    >>> other.constant_action(other.box(1)[2])  # 0 is push left, 1 is push right
    (1.0,)
    """

    def change(half: Controller, number: int) -> Controller:
        return _edited(half, number, action, offset, gains or {}, lock=lock)

    return _on_both_sides(tree, change, leaf)


def _edited(
    tree: Controller,
    leaf: int,
    action: int | str | Sequence[float] | None,
    offset: float | Mapping[Any, float] | None,
    gains: Mapping[Any, float],
    *,
    lock: bool,
) -> Controller:
    low, high, row = _box(tree, leaf)
    _refuse_locked(tree, low, high, f"Leaf {leaf}")
    if (action is None) == (offset is None and not gains):
        raise SettingError("A leaf gets an action, or an offset and gains of its law: give one of the two.")
    if action is not None and tree.form == VELOCITY:
        raise SettingError(
            "In velocity form a law is the change of the action in a sample, so no leaf has an action: give "
            "an offset and gains of its law."
        )
    if action is not None:
        laws, row = _with_row(tree, action)
    else:
        laws, row = _with_law(tree, row, offset, gains)
    box = Lock(low, high, row)
    changed = overlaid(dataclasses.replace(tree, laws=laws), box)
    return dataclasses.replace(changed, locks=(*tree.locks, box)) if lock else changed


def moved(tree: Controller, rule: int, threshold: float) -> Controller:
    """Return a tree with another threshold of a rule.

    Parameters
    ----------
    tree
        The tree; it is not modified.
    rule
        The number of the rule, as in `text(tree, numbered=True)`.
    threshold
        The new threshold. It must leave observations to every leaf on both sides.

    Examples
    --------
    >>> import spaql
    >>> agent = spaql.SPAQLTS("cartpole200", scaling=20, rollouts=20, seed=1)
    >>> tree = spaql.controller_of(agent.learn(iterations=100, progress_bar=False))
    >>> other = moved(tree, rule=1, threshold=float(tree.threshold[0]) + 0.001)
    >>> other.n_leaves == tree.n_leaves
    True
    """
    _refuse_below_the_side(tree, rule, threshold)
    return _on_both_sides(tree, lambda half, number: _moved(half, number, threshold), rule)


def _refuse_below_the_side(tree: Controller, rule: int, threshold: float) -> None:
    """Refuse a threshold outside of the half for which the rules of a mirrored tree are written."""
    fold = folded(tree)
    if fold is None or threshold > 0.0 or not 1 <= rule < fold.half.n_leaves:
        return
    if fold.half.feature[fold.half.way_to(rule)[-1][0]] == fold.side:
        raise SettingError(
            f"Rule {rule} compares {tree.inputs[fold.side]} where it is not negative, so its threshold "
            f"lies above 0: not at {threshold!r}."
        )


def _moved(tree: Controller, rule: int, threshold: float) -> Controller:
    if not 1 <= rule < tree.n_leaves:
        raise SettingError(
            f"The rules of this tree have the numbers 1 to {tree.n_leaves - 1}, so there is no rule {rule}."
            if tree.n_leaves > 1
            else "This tree is one leaf, and has no rules."
        )
    way = tree.way_to(rule)
    node = way[-1][0]
    low, high = _region(tree, way[:-1])
    j = int(tree.feature[node])
    old = float(tree.threshold[node])
    first, last = _room(tree, node, low[j], high[j])
    if not first < threshold < last or not np.isfinite(threshold):
        name = tree.number_names()[j]
        raise SettingError(
            f"The threshold of rule {rule}, {name} < {old!r}, can lie between {first!r} and {last!r}, so "
            f"that no leaf loses all of its observations: not at {threshold!r}."
        )
    between = low.copy(), high.copy()
    between[0][j] = min(old, threshold)
    between[1][j] = max(old, threshold)
    _refuse_locked(tree, *between, f"What rule {rule} would decide differently")
    own = with_own_rules(tree)  # a shared subtree stays unchanged elsewhere
    changed = own.threshold.copy()
    changed[own.way_to(rule)[-1][0]] = threshold
    return dataclasses.replace(own, threshold=changed, smallest=False)


def _region(tree: Controller, way: Sequence[tuple[int, bool]]) -> tuple[Floats, Floats]:
    """Return the bounds `low <= x < high` of what follows a path, for the numbers that rules compare."""
    low = np.full(tree.width, -np.inf)
    high = np.full(tree.width, np.inf)
    for node, lower in way:
        j = int(tree.feature[node])
        cut = float(tree.threshold[node])
        if lower:
            high[j] = min(high[j], cut)
        else:
            low[j] = max(low[j], cut)
    return low, high


def _room(tree: Controller, node: int, low: float, high: float) -> tuple[float, float]:
    """Return the ends between which a threshold can be moved without passing another one below it."""
    j = int(tree.feature[node])
    old = float(tree.threshold[node])
    for child, lower in ((int(tree.left[node]), True), (int(tree.right[node]), False)):
        waiting = [child]
        visited = set()
        while waiting:
            i = waiting.pop()
            if i in visited or tree.feature[i] < 0:
                continue
            visited.add(i)
            waiting += [int(tree.left[i]), int(tree.right[i])]
            cut = float(tree.threshold[i])
            if tree.feature[i] == j and lower and cut < old:
                low = max(low, cut)
            elif tree.feature[i] == j and not lower and cut > old:
                high = min(high, cut)
    return float(low), float(high)


def _refuse_locked(tree: Controller, low: Floats, high: Floats, what: str) -> None:
    if any(np.all(np.maximum(low, lock.low) < np.minimum(high, lock.high)) for lock in tree.locks):
        raise SettingError(f"{what} is locked, or a part of it is: begin with a tree in which it is not.")


def locked(tree: Controller, leaf: int) -> Controller:
    """Return a tree with a locked leaf: trees made from it, such as simpler ones, have the same action there.

    Parameters
    ----------
    tree
        A tree.
    leaf
        The number of the leaf, as in `text(tree, numbered=True)`.
    """

    def change(half: Controller, number: int) -> Controller:
        return dataclasses.replace(half, locks=(*half.locks, Lock(*_box(half, number))))

    return _on_both_sides(tree, change, leaf)


def _on_both_sides(
    tree: Controller,
    change: Callable[[Controller, int], Controller],
    number: int,
) -> Controller:
    """Return a tree with a leaf or a rule changed; in one that is its own mirror image, with its image.

    The number is that of the half that is written. Where what it is changed to has no known mirror image, it
    is changed in this half only.
    """
    fold = folded(tree)
    if fold is None:
        return change(tree, number)
    both = fold.unfolded(change(fold.half, number))
    below = tree.n_leaves - fold.half.n_leaves  # of the leaves, and with the first rule of the rules
    return change(tree, below + number) if both is None else both


def overlaid(tree: Controller, lock: Lock) -> Controller:
    """Return a tree with the locked action in a box, and that of the given tree elsewhere."""
    nodes = Nodes()
    whole = np.full(tree.width, np.inf)
    return tree_of(nodes, _Overlay(tree, lock, nodes).lay(0, -whole, whole), tree)


class _Overlay:
    """Rebuilds a tree with a box in it."""

    def __init__(self, tree: Controller, lock: Lock, nodes: Nodes) -> None:
        self._tree = tree
        self._lock = lock
        self._nodes = nodes

    def lay(self, node: int, low: Floats, high: Floats) -> int:
        """Write the subtree of a node, whose region is `low <= x < high`."""
        lock = self._lock
        nodes = self._nodes
        if np.all(lock.low <= low) and np.all(high <= lock.high):
            return nodes.leaf(lock.row)
        j = int(self._tree.feature[node])
        if j >= 0:
            cut = float(self._tree.threshold[node])
            lower = int(self._tree.left[node])
            upper = int(self._tree.right[node])
            if cut <= low[j] or high[j] <= cut:  # only one side can be reached
                return self.lay(upper if cut <= low[j] else lower, low, high)
        elif np.any(high <= lock.low) or np.any(lock.high <= low):
            return nodes.leaf(int(self._tree.leaf[node]))
        else:
            lower = upper = node
            outside = np.stack([lock.low > low, lock.high < high])
            j = int(np.flatnonzero(outside.any(axis=0))[0])
            cut = float(lock.low[j] if outside[0, j] else lock.high[j])
        below = high.copy()
        above = low.copy()
        below[j] = above[j] = cut
        return nodes.rule(j, cut, self.lay(lower, low, below), self.lay(upper, above, high))


def _box(tree: Controller, leaf: int) -> tuple[Floats, Floats, int]:
    leaf = whole_number("leaf", leaf)
    if not 1 <= leaf <= tree.n_leaves:
        raise SettingError(f"There is no leaf {leaf}: the leaves of this tree are 1 to {tree.n_leaves}.")
    return tree.box(leaf)


def _with_row(tree: Controller, action: int | str | Sequence[float]) -> tuple[Laws, int]:
    """Return the table of laws with an action in it, and its row."""
    value = checked_action(tree, action, "The action of a leaf")
    actions = [int(value[0])] if tree.discrete else [value]
    return _last(tree, tree.laws.with_actions(actions, tree.action_space))


def _with_law(
    tree: Controller,
    row: int,
    offset: float | Mapping[Any, float] | None,
    gains: Mapping[Any, float],
) -> tuple[Laws, int]:
    """Return the table of laws with one in it that differs in some numbers from that of a row."""
    new_offset = tree.laws.offset[row].copy()
    new_gain = tree.laws.gain[row].copy()
    if isinstance(offset, Mapping):
        for name, value in offset.items():
            new_offset[_acted(tree, name)] = value
    elif offset is not None:
        new_offset[_only(tree, "offset", offset)] = offset
    if tree.discrete:
        new_gain[new_offset == -np.inf] = 0.0  # as of all actions that are never taken
    for names, value in gains.items():
        acted = (
            _acted(tree, names[0]) if isinstance(names, tuple) else _only(tree, "gain", f"{names}={value}")
        )
        read = names[1] if isinstance(names, tuple) else names
        new_gain[acted, find_observation(read, tree.inputs)] = value
    return _last(tree, tree.laws.with_law(new_gain, new_offset))


def _acted(tree: Controller, name: Any) -> int:
    """Return the place of a discrete action, or of a component of an action."""
    if tree.discrete:
        return tree.action_number(name) - tree.frame.first
    return find_observation(name, tree.actions, what="action")


def _only(tree: Controller, setting: str, value: object) -> int:
    """Refuse an ambiguous component of an action, or score."""
    if len(tree.actions) > 1:
        several = "A law has a score for each action" if tree.discrete else "An action has several components"
        example = f"'{tree.actions[0]}{':' if setting == 'gain' else '='}{value}'"
        message = f"{several}: say which of {', '.join(tree.actions)}."
        raise SettingError(message, settings={setting: example})
    return 0


def _last(tree: Controller, laws: Laws) -> tuple[Laws, int]:
    """Return a table, and the first row that is equal to its last one."""
    return laws, int(laws.first_equal(discrete=tree.discrete)[-1])


def replaced(before: Controller, after: Controller, source: str) -> Controller:
    """Return a controller with the parameters of another, which may differ where the first is not locked."""
    if _declared(after) != _declared(before):
        raise SettingError(f"The controller in {source} has other features, limits or spaces.")
    if not before.locks:
        return after
    if not _same_locked(after, before):
        raise SettingError(f"The tree in {source} changes a rule or a leaf that is locked.")
    return dataclasses.replace(after, locks=before.locks)


def _declared(controller: Controller) -> tuple[Any, ...]:
    """Return all of a controller except its rules and laws."""
    spaces = (controller.observation_space, controller.action_space)
    names = (controller.observations, controller.actions)
    return (*spaces, *names, controller.features, memory_to(controller))


def _same_locked(after: Controller, before: Controller) -> bool:
    """Return whether a controller has the rules of another, and its laws where they are locked."""
    parts = ("feature", "threshold", "left", "right", "leaf", "combinations")
    if not all(np.array_equal(getattr(after, part), getattr(before, part)) for part in parts):
        return False
    if len(after.laws) != len(before.laws):
        return False
    rows = [lock.row for lock in before.locks]
    laws = ("gain", "offset")
    return all(
        np.array_equal(getattr(after.laws, part)[rows], getattr(before.laws, part)[rows]) for part in laws
    )
