"""Detection of a mirror of the plant from the replay memory."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, product

import numpy as np
from gymnasium.spaces import Discrete

from spaql.algorithms.mirrors.mirror import Mirror, mirror_from
from spaql.algorithms.replay import ActionCode, ReplayMemory, Scale, regressors, spaced
from spaql.kernels.numerics import Bools, Floats, Ints, mean, means, moments, weighted_sum
from spaql.kernels.plantree.pwa_model import find_all, grow_motion
from spaql.kernels.plantree.termination import fit_termination, quadratic
from spaql.problems import Problem

_ERROR = 1.5
"""Most times by which mirrored samples may be predicted worse than held-out ones."""
_DIFFERENCE = 3.0
"""Most times by which laws may differ more from mirrored laws than those of two halves from each other."""
_APART = 1.1
"""Least ratio of the difference under a mirror with one sign changed to that under the mirror itself."""
_NEGLIGIBLE = 0.02
"""Error that counts as none, as a share of the standard deviation of an output's change."""
_PARTS = (0.9, 0.99)
"""Shares of the samples, those with the smallest errors, over which errors are averaged."""
FEWEST = 400
"""Fewest steps of a memory."""
_FEWEST_COVERED = 100
"""Fewest samples whose images are among other samples."""
_COVERED = 0.3
"""Least share of such samples."""
_BLOCK = 25
"""Steps of a block; odd and even blocks are the two halves."""
_MOST = 3000
"""Most samples of a test."""
_SCREENED = 200
"""Samples of a first test."""
_HOPELESS = 4.0
"""The ratio of errors above which the first test is the last."""
_FEWEST_ENDS = 1.5
"""Fewest ends that are predicted as ends in the mirror, too."""
_RECOGNISED = 0.2
"""Least share of such ends."""
_FALSE_ENDS = 0.05
"""The largest share of mirrored samples without an end for which one is predicted."""
_LEAST = 100
_EXACT = 1e-5
_RIDGE = 0.01
"""Of cells, as in `dynamics`; with more samples, so that noise is averaged."""
_SIGNS = 8
"""Most observations that may change their sign."""
_LISTED = 4
"""Most Discrete actions of which all swaps are tried."""
_ALIKE = 1.5
"""Most times by which the standard deviations of swapped observations differ."""
_BIASED = 4.5
"""Most standard errors by which the errors of a mirrored fit may be to one side, on the worst output."""
_NONE = 1e-4
"""Least standard error, as a share of the standard deviation of an output's change: that of an exact fit is
its rounding error."""
_SIDE = 0.05
"""Least share of the samples on either side of 0 of an observation that changes its sign: one that is never
negative, or nearly always 0, would tell nothing about its mirror image."""

_Cells = tuple[Ints, Floats, Ints, Floats, Floats, Floats]


@dataclass(frozen=True)
class Evidence:
    """How well the samples agree with a mirror."""

    mirror: Mirror
    error: float
    """Error of the predictions of mirrored samples, relative to held-out ones; the worst over outputs."""
    difference: float
    """Difference between the mirrored law and the law, relative to that between laws of two halves."""
    ends: bool
    """Whether mirrored ends are predicted as ends, and mirrored samples that go on are not."""

    @property
    def accepted(self) -> bool:
        """Whether the mirror is one of the plant, but for the comparison with a plant without one."""
        return self.ends and self.error <= _ERROR and self.difference <= _DIFFERENCE


def chosen_mirror(
    setting: str, memory: ReplayMemory, code: ActionCode, problem: Problem, *, ends: bool = True
) -> Mirror | None:
    """Return the mirror of a plant: as it is given by the setting, or found (see `find_mirror`), or None."""
    if setting not in ("auto", "off"):
        return mirror_from(setting, problem)
    return find_mirror(memory, code, ends=ends) if setting == "auto" else None


def find_mirror(memory: ReplayMemory, code: ActionCode, *, ends: bool = True) -> Mirror | None:
    """Return the mirror of the plant that the memory shows, or None.

    The plant is fitted to two halves of the memory. Under a mirror, the law of one half, applied to the
    mirrored samples of the other, must err no more than `_ERROR` times as much as on the samples themselves,
    for each output. It must also differ no more from the mirrored law of the other half than `_DIFFERENCE`
    times what the laws of the halves differ: laws average noise, which hides a wrong mirror in the errors.
    None is accepted that the samples do not distinguish from the same one with one sign changed; so none that
    changes one sign and nothing else, which differs by one sign from no mirror at all. By default mirrored
    ends must be predicted as ends. At last the errors of a plant that is fitted to one half and its mirror
    images must not be to one side on the samples of the other half.
    """
    if len(memory) < FEWEST or memory.ended.all():
        return None
    halves = _Halves(memory, code, tests_ends=ends)
    tested = [halves.test(mirror) for mirror in _candidates(memory, code) if halves.hopeful(mirror)]
    accepted = [
        evidence
        for evidence in tested
        if evidence.accepted and not _rival(evidence.mirror, _no_change(evidence.mirror))
    ]
    if not accepted:
        return None
    best = min(accepted, key=lambda evidence: evidence.difference)
    rivals = [evidence for evidence in tested if evidence.ends and _rival(best.mirror, evidence.mirror)]
    apart = all(rival.difference >= _APART * max(1.0, best.difference) for rival in rivals)
    return best.mirror if apart and halves.bias(best.mirror) <= _BIASED else None


def _rival(mirror: Mirror, other: Mirror) -> bool:
    """Return whether mirrors differ in one sign of an observation, or in the action only."""
    if mirror.order != other.order:
        return False
    signs = sum(a != b for a, b in zip(mirror.signs, other.signs, strict=True))
    same = (mirror.action_order, mirror.action_signs) == (other.action_order, other.action_signs)
    return signs + (not same) == 1


def _no_change(mirror: Mirror) -> Mirror:
    """Return the map of the same observations and actions that changes nothing."""
    order = range(len(mirror.order))
    actions = range(len(mirror.action_order))
    return Mirror(tuple(order), (1,) * len(order), tuple(actions), (1,) * len(mirror.action_signs))


def _candidates(memory: ReplayMemory, code: ActionCode) -> Iterator[Mirror]:
    """Yield mirrors with signs only, then those with one swap of two observations that are alike."""
    dims = memory.states.shape[1]
    least = _SIDE * len(memory)
    sides = np.minimum((memory.states > 0).sum(axis=0), (memory.states < 0).sum(axis=0))
    choices = [(1, -1) if side >= least else (1,) for side in sides.tolist()]
    if choices.count((1, -1)) > _SIGNS:
        return
    orders = [tuple(range(dims))]
    centre, width = moments(memory.states)
    for i, j in combinations(range(dims), 2):
        wider = max(width[i], width[j])
        narrower = min(width[i], width[j])
        if wider <= _ALIKE * narrower and abs(centre[i] - centre[j]) <= narrower:
            orders.append(tuple({i: j, j: i}.get(k, k) for k in range(dims)))
    for order in orders:
        for signs in product(*choices):
            if any(signs[j] < 0 and order[j] != j for j in range(dims)):
                continue
            for action_order, action_signs in _action_mirrors(code):
                mirror = Mirror(order, signs, action_order, action_signs)
                if len(mirror.sides):
                    yield mirror


def _action_mirrors(code: ActionCode) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    same = tuple(range(code.numbers))
    if not isinstance(code.space, Discrete):
        for signs in product((-1, 1), repeat=code.numbers) if code.numbers <= 3 else [(-1,) * code.numbers]:
            yield same, signs
        return
    listed = tuple(range(int(code.space.n)))
    orders = [listed[::-1], listed]
    if len(listed) <= _LISTED:
        for count in range(1, len(listed) // 2 + 1):
            for pairs in combinations(combinations(listed, 2), count):
                swap = {a: b for pair in pairs for a, b in (pair, pair[::-1])}
                if len(swap) == 2 * count:
                    orders.append(tuple(swap.get(i, i) for i in listed))
    for order in dict.fromkeys(orders):
        yield order, ()


class _Halves:
    """The plant fitted to each half of a memory, and the other half to test mirrors by."""

    def __init__(self, memory: ReplayMemory, code: ActionCode, *, tests_ends: bool) -> None:
        self._memory = memory
        self._code = code
        self._scale = Scale.of(memory)
        self._dims = memory.states.shape[1]
        odd = np.arange(len(memory)) // _BLOCK % 2 == 1
        rows = [np.flatnonzero(~odd), np.flatnonzero(odd)]
        z = self._scale.z(memory.states)
        after = self._scale.z(memory.nexts)
        inputs = code.inputs(memory.actions, squares=True)
        x, y = self._samples(memory.states, memory.actions, memory.nexts)
        going = ~memory.ended
        spread = moments(y[going])[1]
        self._used = spread > 1e-9
        self._spread = np.where(self._used, spread, 1.0)
        self._fitted = [half[going[half]] for half in rows]
        self._cells = [_cells(x, y / self._spread, half, self._dims) for half in self._fitted]
        self._ends = fit_termination(after, memory.ended) if tests_ends and memory.ended.any() else None
        self._held = [spaced(half, _MOST // 2) for half in self._fitted[::-1]]
        """Rows that test the law of each half: those of the other half that end no episode."""
        own = [self._predict(self._cells[k], z[held], inputs[held]) for k, held in enumerate(self._held)]
        self._other = [
            self._predict(self._cells[1 - k], z[held], inputs[held])[0] for k, held in enumerate(self._held)
        ]
        error = [(law - self._truth(k, after))[inside] for k, (law, inside) in enumerate(own)]
        difference = [(law - other)[inside] for (law, inside), other in zip(own, self._other, strict=True)]
        self._own = self._sizes(error), self._sizes(difference)

    def _samples(self, states: Floats, actions: Floats, nexts: Floats) -> tuple[Floats, Floats]:
        """Return what laws are fitted to: their inputs, and changes of states with rewards."""
        z = self._scale.z(states)
        inputs = self._code.inputs(actions, squares=True)
        x = regressors(z, inputs)
        rewards = self._memory.rewards[:, np.newaxis]
        return x, np.concatenate([self._scale.z(nexts) - z, rewards], axis=1)

    def _predict(self, fitted: _Cells, z: Floats, inputs: Floats) -> tuple[Floats, Bools]:
        """Return next states and rewards by fitted laws, and whether each is among their samples."""
        feature, threshold, left, law, low, high = fitted
        cells = find_all(feature, threshold, left, 0, np.ascontiguousarray(z))
        x = np.concatenate([z, inputs], axis=1)
        predicted = law[cells, 0]
        for j in range(x.shape[1]):
            predicted = predicted + law[cells, 1 + j] * x[:, [j]]
        predicted = predicted * self._spread
        predicted[:, : self._dims] += z
        inside = (x >= low[cells] - 1e-9) & (x <= high[cells] + 1e-9)
        return predicted, np.asarray(inside.all(axis=1))

    def _truth(self, half: int, after: Floats) -> Floats:
        held = self._held[half]
        return np.concatenate([after[held], self._memory.rewards[held, np.newaxis]], axis=1)

    def _mirrored(self, mirror: Mirror, z: Floats) -> Floats:
        scale = self._scale
        return scale.z(mirror.states(z * scale.deviation + scale.mean))

    def _sizes(self, errors: list[Floats]) -> Floats:
        """Return the root mean squares of each used output over the smallest errors (see `_PARTS`)."""
        joined = np.sort(np.abs(np.concatenate(errors) / self._spread), axis=0)
        squares = joined[:, self._used] ** 2
        if not len(squares):  # the samples of one half lie outside of those of the other
            return np.zeros((len(_PARTS), squares.shape[1]))
        counts = [max(1, int(part * len(squares))) for part in _PARTS]
        return np.sqrt([[mean(column[:count]) for column in squares.T] for count in counts])

    def hopeful(self, mirror: Mirror) -> bool:
        """Return whether some samples do not exclude a mirror at once."""
        error, _, covered = self._compare(mirror, _SCREENED // 2)
        return covered >= _COVERED / 2 * _SCREENED and error <= _HOPELESS

    def test(self, mirror: Mirror) -> Evidence:
        """Return the evidence for a mirror."""
        error, difference, covered = self._compare(mirror, _MOST // 2)
        if covered < max(_FEWEST_COVERED, _COVERED * sum(map(len, self._held))):
            return Evidence(mirror, np.inf, np.inf, ends=False)
        return Evidence(mirror, error, difference, self._ends_agree(mirror))

    def _compare(self, mirror: Mirror, most: int) -> tuple[float, float, int]:
        """Return the ratios of errors and of differences, the worst over outputs, and the samples covered."""
        memory = self._memory
        errors = []
        differences = []
        for k, held in enumerate(self._held):
            chosen = spaced(np.arange(len(held)), most)
            rows = held[chosen]
            z = self._scale.z(mirror.states(memory.states[rows]))
            predicted, inside = self._predict(
                self._cells[k], z, self._code.inputs(mirror.actions(memory.actions[rows]), squares=True)
            )
            after = self._scale.z(mirror.states(memory.nexts[rows]))
            truth = np.concatenate([after, memory.rewards[rows, np.newaxis]], axis=1)
            errors.append((predicted - truth)[inside])
            other = self._other[k][chosen]
            law = np.concatenate(
                [self._mirrored(mirror, other[:, : self._dims]), other[:, self._dims :]], axis=1
            )
            differences.append((predicted - law)[inside])
        covered = sum(map(len, errors))
        if not covered:
            return np.inf, np.inf, 0
        ratios = [
            float((self._sizes(errors_by_half) / np.maximum(own, _NEGLIGIBLE)).max(initial=0.0))
            for errors_by_half, own in zip((errors, differences), self._own, strict=True)
        ]
        return ratios[0], ratios[1], covered

    def bias(self, mirror: Mirror) -> float:
        """Return how many standard errors the errors of a mirrored fit are from treating both sides alike.

        Laws of a half with its mirror images cannot tell one side from the other. So on the held-out samples
        of the other half, which are on one side each, their errors must cancel: those of an output that
        changes its sign, the differences of swapped ones, and of all others the errors on one side and those
        on the other. That is the worst over outputs. The largest hundredth of the errors is cut, and means
        are over blocks: steps that follow each other err alike.
        """
        memory = self._memory
        own = self._samples(memory.states, memory.actions, memory.nexts)
        images = mirror.states(memory.states), mirror.actions(memory.actions), mirror.states(memory.nexts)
        x, y = (np.concatenate(pair) for pair in zip(own, self._samples(*images), strict=True))
        after = self._scale.z(memory.nexts)
        errors = []
        for k, held in enumerate(self._held):
            rows = np.concatenate([self._fitted[k], len(memory) + self._fitted[k]])
            cells = _cells(x, y / self._spread, rows, self._dims)
            predicted, _ = self._predict(cells, x[held, 1 : 1 + self._dims], x[held, 1 + self._dims :])
            errors.append((predicted - self._truth(k, after)) / self._spread)
        held = np.concatenate(self._held)
        sides = np.sign(memory.states[held][:, mirror.sides])
        sided = _sided(np.concatenate(errors), self._used, mirror, sides)
        most = np.sort(np.abs(sided), axis=0)[int(_PARTS[-1] * (len(sided) - 1))]
        sided = np.clip(sided, -most, most)
        block = held // _BLOCK
        blocks = np.array([means(sided[block == index].T) for index in np.unique(block)])
        average, spread = moments(blocks)
        error = spread / math.sqrt(len(blocks) - 1)
        return float((np.abs(average) / np.maximum(error, _NONE)).max(initial=0.0))

    def _ends_agree(self, mirror: Mirror) -> bool:
        memory = self._memory
        if self._ends is None:
            return True
        feature, threshold, left, chance, weights = self._ends
        z = self._scale.z(mirror.states(memory.nexts))
        if len(weights):
            z = np.concatenate([z, weighted_sum(quadratic(z), weights)[:, np.newaxis]], axis=1)
        predicted = chance[find_all(feature, threshold, left, 0, np.ascontiguousarray(z))]
        ended = predicted[memory.ended]
        recognised = mean(ended)
        enough = recognised * len(ended) >= _FEWEST_ENDS and recognised >= _RECOGNISED
        return enough and mean(predicted[~memory.ended]) <= _FALSE_ENDS


def _sided(errors: Floats, used: Bools, mirror: Mirror, sides: Floats) -> Floats:
    """Return the parts of errors that cancel over both sides of a mirror, one per column."""
    columns = []
    for j in np.flatnonzero(used).tolist():
        other = mirror.order[j] if j < len(mirror.order) else j
        if other != j:
            columns.append(errors[:, j] - errors[:, other])
        elif j < len(mirror.signs) and mirror.signs[j] < 0:
            columns.append(errors[:, j])
        else:  # the reward, too
            columns.extend(errors[:, j] * side for side in sides.T)
    return np.stack(columns, axis=1)


def _cells(x: Floats, y: Floats, rows: Ints, dims: int) -> _Cells:
    """Return cells with an affine law each, fitted to some rows, and the box of the rows of each."""
    feature, threshold, left, law = grow_motion(x[rows], y[rows], dims, _LEAST, _EXACT, _RIDGE)
    cells = find_all(feature, threshold, left, 0, np.ascontiguousarray(x[rows, 1 : 1 + dims]))
    low = np.full((len(feature), x.shape[1] - 1), np.inf)
    high = -low
    np.minimum.at(low, cells, x[rows, 1:])
    np.maximum.at(high, cells, x[rows, 1:])
    return feature, threshold, left, law, low, high
