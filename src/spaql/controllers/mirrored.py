"""Controllers that are mirror images of themselves, written for one half."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium.spaces import Box
from numpy.typing import NDArray

from spaql.controllers.laws import Laws
from spaql.kernels.controller import HIGH, LOW

if TYPE_CHECKING:
    from spaql.controllers.controller import Controller
    from spaql.controllers.rules import Lock

_NODES = ("feature", "threshold", "left", "right", "leaf")


@dataclass(frozen=True, eq=False)
class Fold:
    """A controller for one half of the observations; for all others its rules hold in the mirror."""

    half: Controller
    side: int
    """The number that is not negative in the half."""
    action_signs: tuple[int, ...]
    """Of a Box: 1, or -1 for a number of an action that is mirrored about the middle of its range."""
    images: Mapping[int, tuple[int, int]]
    """The image of each observation that the rules use, with its sign; of others it is not known."""
    action_images: Mapping[int, int]
    """The image of each action of a list, from 0 on, that the leaves have; of a Box, components that change
    places."""

    @property
    def heading(self) -> str:
        """The line that is written above the rules of the half."""
        tree = self.half
        images = sorted(self.images.items())
        negated = [tree.inputs[j] for j, (other, sign) in images if other == j and sign < 0]
        negated += [name for name, sign in zip(tree.actions, self.action_signs, strict=False) if sign < 0]
        parts = [f"{_listed(negated)} {'change' if len(negated) > 1 else 'changes'} sign"]
        pairs = [(tree.inputs[j], tree.inputs[other]) for j, (other, _) in images if j < other]
        exchanged = sorted(self.action_images.items())
        pairs += [(tree.actions[a], tree.actions[b]) for a, b in exchanged if a < b]
        parts += [f"{first} and {second} are exchanged" for first, second in pairs]
        return f"mirror so that {tree.inputs[self.side]} >= 0 ({'; '.join(parts)}):"

    def place(self, point: NDArray[np.float64]) -> str:
        """Return which leaf of the half decides on an observation, and whether it does so in the mirror."""
        mirrored = point[self.side] < 0.0
        if mirrored:
            image = point.copy()
            for j, (other, sign) in self.images.items():
                image[other] = sign * point[j]
            point = image
        leaf = f"leaf {self.half.leaf_number(point)} of {self.half.n_leaves} for one half"
        return f"{leaf}, in the mirror" if mirrored else leaf

    def unfolded(self, half: Controller) -> Controller | None:
        """Return other rules for the half with their mirror images, for all observations.

        Returns None if the image of an observation or of an action in them is not known.
        """
        rows = np.unique([*half.leaf[half.feature < 0], *(lock.row for lock in half.locks)])
        place = np.full(len(half.laws), -1)
        place[rows] = np.arange(len(rows))
        inner = half.feature >= 0
        laws = self._with_images(half, rows)
        sums = self._images_of_sums(half.combinations)
        images = dict(self.images)
        for j in range(half.dims, half.width):
            images[j] = (j + len(half.combinations), 1)
        if laws is None or sums is None or not {*half.feature[inner].tolist()} <= images.keys():
            return None
        count = len(inner)
        upper = {name: getattr(half, name).copy() for name in _NODES}
        upper["leaf"] = np.where(inner, -1, place[upper["leaf"]])
        lower = {name: array.copy() for name, array in upper.items()}
        lower["leaf"] = np.where(inner, -1, upper["leaf"] + len(rows))
        for node in np.flatnonzero(inner):
            lower["feature"][node], sign = images[int(half.feature[node])]
            if sign < 0:
                lower["threshold"][node] = np.nextafter(-half.threshold[node], np.inf)
                lower["left"][node] = half.right[node]
                lower["right"][node] = half.left[node]
        first = {"feature": self.side, "threshold": 0.0, "left": 1, "right": 1 + count, "leaf": -1}
        nodes: dict[str, Any] = {}
        for name in _NODES:
            parts = [lower[name], upper[name]]
            if name in ("left", "right"):
                parts = [np.where(inner, part + 1 + i * count, -1) for i, part in enumerate(parts)]
            nodes[name] = np.concatenate([[first[name]], *parts])
        least = np.where(np.arange(half.width) == self.side, 0.0, -np.inf)
        locks = [
            replace(lock, low=np.maximum(lock.low, least), row=int(place[lock.row])) for lock in half.locks
        ]
        locks += [replace(self.image(lock), row=lock.row + len(rows)) for lock in locks]
        both = np.concatenate([half.combinations, sums])
        return replace(half, **nodes, laws=laws, locks=tuple(locks), combinations=both)

    def _images_of_sums(self, combinations: NDArray[np.float64]) -> NDArray[np.float64] | None:
        """Return the weights of sums in the mirror; None if they use an observation without an image."""
        if not {*np.flatnonzero(combinations.any(axis=0)).tolist()} <= self.images.keys():
            return None
        images = np.zeros_like(combinations)
        for j, (other, sign) in self.images.items():
            images[:, other] = sign * combinations[:, j] + 0.0
        return images

    def image(self, lock: Lock) -> Lock:
        """Return the mirror image of a lock of the half, which has the same row."""
        low = lock.low.copy()
        high = lock.high.copy()
        for j, (other, sign) in self.images.items():
            ends = lock.low[j], lock.high[j]
            low[other], high[other] = ends if sign > 0 else (_turned(ends[1]), _turned(ends[0]))
        if lock.low[self.side] == 0.0:
            high[self.side] = 0.0
        return replace(lock, low=low, high=high)

    def _with_images(self, half: Controller, rows: NDArray[np.int64]) -> Laws | None:
        """Return laws for the half, followed by their images; None if one is not known."""
        gain = half.laws.gain[rows]
        offset = half.laws.offset[rows]
        if half.discrete:
            numbers = offset.argmax(axis=1)
            if not half.laws.constant[rows].all() or not {*numbers.tolist()} <= self.action_images.keys():
                return None
            images = [self.action_images[number] for number in numbers.tolist()]
            first = half.frame.first
            return Laws.of_actions(first + np.append(numbers, images), half.action_space, half.dims)
        if not {*np.flatnonzero(gain.any(axis=(0, 1))).tolist()} <= self.images.keys():
            return None
        order = [self.action_images.get(k, k) for k in range(len(self.action_signs))]
        low, high = half.frame.limit[[LOW, HIGH]]
        middle = (low + high) / 2
        factors = np.array(self.action_signs) * ((high - low) / (high - low)[order])
        below = np.zeros_like(gain)
        for j, (other, sign) in self.images.items():
            below[:, :, other] = sign * factors * gain[:, order, j]
        # A sum with 0 turns -0 into 0.
        mirrored = middle + factors * (offset - middle)[:, order] + 0.0
        return Laws(np.concatenate([gain, below + 0.0]), np.concatenate([offset, mirrored]))


def folded(tree: Controller) -> Fold | None:
    """Return a tree written for one half, if it is its own mirror image there; else None.

    It is one if its root compares an observation with 0, and the rules below are, to the last bit, the mirror
    image of those above: each observation and action has the same place and sign, or the other sign, or is
    exchanged with another, wherever it occurs. Only then a fold replaces reading the other half.
    """
    side = int(tree.feature[0])
    if not 0 <= side < tree.dims or tree.threshold[0] != 0.0 or (len(tree.combinations) and tree.locks):
        return None
    if not isinstance(tree.input_space, Box) or tree.feature[tree.right[0]] < 0 or tree.remembers:
        return None
    images: dict[int, tuple[int, int]] = {}
    sums = [(np.zeros(tree.dims), np.zeros(tree.dims))]
    pairs = _pairs(tree, images, sums)
    if pairs is None or images.setdefault(side, (side, -1)) != (side, -1):
        return None
    for j, (other, sign) in list(images.items()):
        if images.setdefault(other, (j, sign)) != (j, sign) or (other != j and sign < 0):
            return None  # no mirror; or one that exchanges and changes signs, for which the text has no words
    rows = np.array(sorted(pairs))
    below = np.array(sums)[:, 0]
    above = np.array(sums)[:, 1]
    if tree.discrete:
        if not tree.laws.constant[rows].all():
            return None
        exchanged = _exchanged(tree.laws.offset[rows].argmax(axis=2))
        if exchanged is None or not _columns_agree(below, above, images):
            return None
        return _fold(tree, side, images, exchanged, ())
    for signs in product((-1, 1), repeat=len(tree.actions)):
        known = dict(images)
        turned = np.array(signs, np.float64)
        gains = (tree.laws.gain[rows[:, 0]], turned[:, np.newaxis] * tree.laws.gain[rows[:, 1]])
        lower, upper = (
            np.concatenate([weights, gain.reshape(-1, tree.dims)])
            for weights, gain in zip((below, above), gains, strict=True)
        )
        if _offsets_agree(tree, rows, turned) and _columns_agree(lower, upper, known):
            return _fold(tree, side, known, {}, signs)
    return None


def leaves_to_read(tree: Controller) -> int:
    """Return how many leaves a person has to read: those of one half, if the tree can be folded."""
    fold = folded(tree)
    return tree.n_leaves if fold is None else fold.half.n_leaves


def _pairs(
    tree: Controller,
    images: dict[int, tuple[int, int]],
    sums: list[tuple[NDArray[np.float64], NDArray[np.float64]]],
) -> set[tuple[int, int]] | None:
    """Return the rows of leaves below and above, and write which number with which sign is the image of each.

    The weights of sums below and above are added to `sums`. Returns None if the rules differ.
    """
    leaves: set[tuple[int, int]] = set()
    waiting = [(int(tree.left[0]), int(tree.right[0]))]
    while waiting:
        below, above = waiting.pop()
        j = int(tree.feature[above])
        i = int(tree.feature[below])
        if (j < 0) != (i < 0):
            return None
        if j < 0:
            leaves.add((int(tree.leaf[below]), int(tree.leaf[above])))
            continue
        t = tree.threshold[above]
        u = tree.threshold[below]
        if j >= tree.dims and i >= tree.dims and u == t:
            sums.append((tree.combinations[i - tree.dims], tree.combinations[j - tree.dims]))
            waiting += [
                (int(tree.left[below]), int(tree.left[above])),
                (int(tree.right[below]), int(tree.right[above])),
            ]
            continue
        if max(i, j) >= tree.dims:
            return None
        first = int(tree.left[below])
        second = int(tree.right[below])
        if u == t:
            sign = 1
        elif u == np.nextafter(-t, np.inf):
            sign = -1
            first, second = second, first
        else:
            return None
        if images.setdefault(j, (i, sign)) != (i, sign):
            return None
        waiting += [(first, int(tree.left[above])), (second, int(tree.right[above]))]
    return leaves


def _exchanged(places: NDArray[np.int64]) -> dict[int, int] | None:
    """Return the image of each discrete action, given pairs; None if these contradict each other."""
    image: dict[int, int] = {}
    for below, above in places.tolist():
        if image.setdefault(above, below) != below or image.setdefault(below, above) != above:
            return None
    return image


def _offsets_agree(tree: Controller, rows: NDArray[np.int64], signs: NDArray[np.float64]) -> bool:
    """Return whether the offsets of laws are images of each other for given signs of the action."""
    middle = tree.frame.limit[[LOW, HIGH]].sum(axis=0) / 2
    offset = tree.laws.offset
    return np.array_equal(offset[rows[:, 0]], middle + signs * (offset[rows[:, 1]] - middle))


def _columns_agree(
    below: NDArray[np.float64], above: NDArray[np.float64], images: dict[int, tuple[int, int]]
) -> bool:
    """Return whether weights are images of each other, in columns by observation; completes the images."""
    for j in range(below.shape[1]):
        if j not in images and above[:, j].any():
            same = [sign for sign in (1, -1) if np.array_equal(below[:, j], sign * above[:, j])]
            if not same:
                return False
            images[j] = (j, same[0])
        i, sign = images.get(j, (j, 1))
        if not np.array_equal(below[:, i], sign * above[:, j]):
            return False
    return True


def _fold(
    tree: Controller,
    side: int,
    images: dict[int, tuple[int, int]],
    actions: dict[int, int],
    signs: tuple[int, ...],
) -> Fold | None:
    """Return the fold of a tree, unless one of its locks has no mirror image."""
    upper = [lock for lock in tree.locks if lock.low[side] >= 0.0]
    half = replace(_half(tree), locks=tuple(upper))
    fold = Fold(half, side, signs, images, actions)
    locked = {(*lock.low, *lock.high) for lock in tree.locks}
    mirrored = {(*box.low, *box.high) for lock in upper for box in (lock, fold.image(lock))}
    return fold if locked == mirrored else None


def _half(tree: Controller) -> Controller:
    """Return the part of a tree in which the number of its root is not below the threshold."""
    root = int(tree.right[0])
    nodes: dict[str, Any] = {}
    reached = [root]
    place = {root: 0}
    for node in reached:  # which grows
        for child in (int(tree.left[node]), int(tree.right[node])) if tree.feature[node] >= 0 else ():
            if child not in place:
                place[child] = -1
                reached.append(child)
    order = sorted(reached)
    place = {node: i for i, node in enumerate(order)} | {-1: -1}
    for name in _NODES:
        nodes[name] = getattr(tree, name)[order]
    for name in ("left", "right"):
        nodes[name] = np.array([place[int(child)] for child in nodes[name]])
    used = sorted({j for j in nodes["feature"].tolist() if j >= tree.dims})
    nodes["feature"] = np.array([tree.dims + used.index(j) if j in used else j for j in nodes["feature"]])
    sums = tree.combinations[[j - tree.dims for j in used]]
    return replace(tree, **nodes, combinations=sums, smallest=False)


def _turned(end: float) -> float:
    """Return the end of an interval in the mirror, where the end that belongs to it is the other one."""
    return float(-end if np.isinf(end) else np.nextafter(-end, np.inf))


def _listed(names: Sequence[str]) -> str:
    return f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else "".join(names)
