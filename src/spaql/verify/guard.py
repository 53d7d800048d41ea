"""The guard of proofs: episodes of the compiled plant from proven states, before "proven" is said.

A proof is about what the tracer read of a plant and how sets were followed. The guard shares neither: it
plays the compiled functions that training uses. What contradicts the verdict is a fault of the prover.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from types import CodeType
from typing import Any

import numpy as np
from gymnasium.spaces import Discrete
from numpy.typing import NDArray

from spaql.errors import ContradictedProofError
from spaql.formatting import counted
from spaql.kernels.jit import ENABLED
from spaql.kernels.verify.points import CONST
from spaql.verify.closed_loop import ClosedLoop, box_of
from spaql.verify.prover import reduced
from spaql.verify.statement import Box
from spaql.verify.verdict import PROVEN, Verdict

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Ints = NDArray[np.int64]

EPISODES = ((100_000, 50), (10_000, 300), (1_000, 2_000))
"""How many episodes are played for how many steps, if the statement is about as many."""
_AFTER = 200
"""Steps after a target is reached in which a state may leave it, where it has to stay."""
_TOGETHER = 5_000
_SPECIAL = 0.3
"""Share of the starts that are at special values, where these are proven."""
_SMALL = (0.0, -0.0, 5e-324, -5e-324, 2.2250738585072014e-308, -2.2250738585072014e-308)
_MOST_CONSTANTS = 500
_WIDEST = 10.0
"""Range of numbers that do not matter, on either side, where the plant declares none."""


def guarded(verdict: Verdict, loop: ClosedLoop, noise: Sequence[float] | float = 0.0) -> Verdict:
    """Return a verdict with a remark on the episodes that agree with it.

    Parameters
    ----------
    verdict
        What was found.
    loop
        The closed loop that it is about, with all numbers of its state.
    noise
        Bound of the error of each observation, as given to `verify`.

    Raises
    ------
    ContradictedProofError
        If an episode from a proven state does not do what is proven.
    """
    if not ENABLED or verdict.proven == 0.0:  # without compilation there is no compiled plant
        return verdict
    episodes = _Episodes(verdict, loop, noise)
    for first in range(0, EPISODES[0][0], _TOGETHER):
        if contradiction := episodes.contradiction(first):
            raise ContradictedProofError(
                "This is a bug in spaql: the prover says proven, and the plant itself contradicts. "
                f"{contradiction}. So nothing is proven. Please report it with the plant and the controller: "
                "the same call repeats it."
            )
    remark = f"{counted(EPISODES[0][0], 'episode')} played from proven states agree."
    return dataclasses.replace(verdict, remarks=(*verdict.remarks, remark))


class _Episodes:
    """Episodes from proven states, in a fixed order."""

    def __init__(self, verdict: Verdict, loop: ClosedLoop, noise: Sequence[float] | float) -> None:
        self._verdict = verdict
        self._loop = loop
        self._statement = verdict.statement
        plant = loop.dynamics
        self._plant = plant.plant
        self._listed = isinstance(loop.tree.action_space, Discrete)
        self._kept = [loop.names.index(name) for name in verdict.names]
        self._noise = np.broadcast_to(np.asarray(noise, np.float64), loop.noise.shape)
        self._push = loop.push * (np.arange(len(loop.names)) < plant.state_dims)
        self._period = np.zeros(len(loop.names))
        self._period[self._kept] = reduced(loop, self._statement)[0].arrays.period
        self._cells = np.flatnonzero(verdict.status == PROVEN)
        self._special = [_special_values(loop, verdict, j) for j in range(len(loop.names))]

    def contradiction(self, first: int) -> str:
        """Play the next episodes; return what is wrong with the first that contradicts the verdict."""
        rng = np.random.default_rng(first)
        states, times = self._starts(rng)
        starts = states
        last = self._last(first + np.arange(len(states)), times)
        signs = rng.choice([-1.0, 1.0], (len(states), len(self._noise) + len(self._push)))
        ended = np.zeros(len(states), np.bool_)
        for step in range(int(last.max()) + 1):
            observations = self._plant.observe(states[:, : self._loop.dynamics.state_dims])
            failed, over = self._state_of(states, observations, ended, step, times)
            if failed.any():
                row = int(np.argmax(failed))
                start = ", ".join(repr(x) for x in starts[row].tolist())
                return f"From the state {start}, {self._why(states[row], step)} (step {step:,})"
            going_on = ~(over | (step >= last))
            if not going_on.any():
                break
            if not going_on.all():
                states = states[going_on]
                observations = observations[going_on]
                starts = starts[going_on]
                times = times[going_on]
                last = last[going_on]
                signs = signs[going_on]
            states, ended = self._next(states, observations, signs, rng)
        return ""

    def _last(self, number: Ints, times: Ints) -> Ints:
        """Return the last step of episodes: what is proven of them, and no more than `EPISODES` has."""
        statement = self._statement
        proven = times if statement.reaches else np.full(len(times), statement.within or EPISODES[-1][1])
        most = np.full(len(number), EPISODES[0][1])
        for count, steps in EPISODES[1:]:
            most[number < count] = steps
        return np.asarray(np.minimum(proven + _AFTER * statement.stays, most), np.int64)

    def _state_of(
        self, states: Floats, observations: Floats, ended: Flags, step: int, times: Ints
    ) -> tuple[Flags, Flags]:
        """Return which episodes contradict the verdict, and which have done all that is proven."""
        statement = self._statement
        over = ended & (statement.termination == "goal")
        failed = ended & (statement.termination == "failure")
        failed |= ~np.isfinite(states[:, self._kept]).all(axis=1) | np.isnan(observations).any(axis=1)
        failed |= self._outside(statement.allowed, states)
        if statement.termination == "goal":
            return (failed | (step >= times)) & ~over, over
        if statement.target is not None:
            away = self._outside(statement.target, states)
            failed |= away & (step >= times)
            over |= ~away & (not statement.stays)
        return failed, over

    def _outside(self, box: Box, states: Floats) -> Flags:
        """Return which states are outside of a box; NaN is outside of each."""
        outside = np.zeros(len(states), np.bool_)
        for name, (low, high) in box.items():
            j = self._loop.names.index(name)
            x = states[:, j]
            if self._period[j] > 0.0:
                x = x - np.floor((x - 0.5 * (low + high)) / self._period[j] + 0.5) * self._period[j]
            outside |= ~((x >= low) & (x <= high))
        return outside

    def _why(self, state: Floats, step: int) -> str:
        """Return what is wrong with a state that contradicts the verdict."""
        statement = self._statement
        row = state[np.newaxis]
        for name, x in zip(self._loop.names, state, strict=True):
            if name in self._verdict.names and not np.isfinite(x):
                return f"{name} is {x}"
            if name in statement.allowed and self._outside({name: statement.allowed[name]}, row)[0]:
                return f"{name} leaves what is allowed: it is {x}"
        if np.isnan(self._plant.observe(row[:, : self._loop.dynamics.state_dims])).any():
            return "an observation is NaN"
        if statement.termination == "goal":
            return f"it has not terminated after {step:,} steps"
        if statement.target is not None and self._outside(statement.target, row)[0]:
            return f"it is not in the target after {step:,} steps"
        return "it terminates"

    def _next(
        self, states: Floats, observations: Floats, signs: Floats, rng: np.random.Generator
    ) -> tuple[Floats, Flags]:
        """Return the states after a step of the closed loop, and which have terminated."""
        n = self._loop.dynamics.state_dims
        actions = np.asarray(self._loop.tree.act(self._disturbed(observations, signs, rng)), np.float64)
        actions = actions.reshape(len(states), -1)
        waiting = states[:, n:]
        applied = waiting if self._verdict.delayed else actions
        if self._verdict.delayed and self._listed:
            applied = np.clip(np.floor(applied + 0.5), 0.0, len(self._loop.dynamics.actions) - 1.0)
        after = states[:, :n].copy()
        try:
            _, _, ended = self._plant.step_rows(np.ones(len(states), np.bool_), applied.copy(), after)
        except Exception as error:  # whatever a user's function raises
            raise ContradictedProofError(
                "This is a bug in spaql: the prover says proven, and the plant's step raises "
                f"{error!r} in a state that is proven, or comes from one. So nothing is proven. Please "
                "report it."
            ) from error
        after = np.hstack([after, actions]) if self._verdict.delayed else after
        if self._push.any():
            after += self._push * _drawn(signs[:, len(self._noise) :], rng)
        return after, ended

    def _disturbed(self, observations: Floats, signs: Floats, rng: np.random.Generator) -> Floats:
        """Return observations with errors, a step of single precision within their bounds."""
        if not self._noise.any():
            return observations
        single = observations.astype(np.float32)
        wrong = (observations + self._noise * _drawn(signs[:, : len(self._noise)], rng)).astype(np.float32)
        return np.asarray(np.nextafter(wrong, single), np.float64)

    def _starts(self, rng: np.random.Generator) -> tuple[Floats, Ints]:
        """Return proven states, and the steps that are proven to suffice from each."""
        verdict = self._verdict
        n = _TOGETHER
        shape = np.array(verdict.status.shape)
        size = (verdict.high - verdict.low) / shape
        cell = np.stack(np.unravel_index(rng.choice(self._cells, n), verdict.status.shape), axis=1)
        share = rng.random((n, len(shape)))
        kind = rng.integers(0, 6, share.shape)  # the lower end, the upper end, the middle, or anywhere
        for k, place in enumerate((0.0, 1.0, 0.5)):
            share[kind == k] = place
        states = self._all_numbers(verdict.low + (cell + share) * size, rng)
        near = rng.choice([-np.inf, 0.0, np.inf], states.shape)
        states = np.where(near == 0.0, states, np.nextafter(states, near))

        special = states.copy()
        for j, values in enumerate(self._special):
            here = rng.random(n) < 0.7
            special[here, j] = rng.choice(values, int(here.sum()))
        special = np.where(near == 0.0, special, np.nextafter(special, near))
        kept = special[:, self._kept]
        there = np.clip(np.floor((kept - verdict.low) / size), 0, shape - 1).astype(np.int64)
        proven = verdict.status[tuple(there.T)] == PROVEN
        proven &= np.all((kept >= verdict.low) & (kept <= verdict.high), axis=1) & (rng.random(n) < _SPECIAL)
        states[proven] = special[proven]
        cell[proven] = there[proven]

        bottom = verdict.low + cell * size
        top = np.minimum(np.minimum(bottom + size, verdict.low + (cell + 1) * size), verdict.high)
        states[:, self._kept] = np.clip(states[:, self._kept], bottom, top)
        return states, verdict.times[tuple(cell.T)].astype(np.int64)

    def _all_numbers(self, kept: Floats, rng: np.random.Generator) -> Floats:
        """Return whole states: numbers that do not matter are anywhere."""
        loop = self._loop
        known = dict(loop.dynamics.observations) | loop.waiting_ranges() | dict(self._statement.starts)
        low, high = box_of(loop.names, known)
        low = np.maximum(low, -_WIDEST)
        high = np.minimum(high, _WIDEST)
        states = rng.uniform(np.minimum(low, high), high, (len(kept), len(loop.names)))
        states[:, self._kept] = kept
        return states


def _drawn(signs: Floats, rng: np.random.Generator) -> Floats:
    """Return shares of a bound: the same end at every step, any end, or anything, by the row."""
    mode = np.arange(len(signs))[:, np.newaxis] % 3
    changing = rng.uniform(-1.0, 1.0, signs.shape)
    return np.where(mode == 0, signs, np.where(mode == 1, np.sign(changing), changing))


def _special_values(loop: ClosedLoop, verdict: Verdict, j: int) -> Floats:
    """Return values of a state variable at which a plant, a controller or a statement may change."""
    statement = verdict.statement
    name = loop.names[j]
    arrays = loop.arrays
    ends = [box[name] for box in (statement.starts, statement.allowed, statement.target or {}) if name in box]
    period = arrays.period[j]
    known = [*_SMALL, 1.0, -1.0, period, -period, period / 2, -period / 2, *np.ravel(ends)]
    tree = arrays.tree
    compares = (tree.feature >= 0) & (tree.feature < len(arrays.same))
    known += tree.threshold[compares][arrays.same[tree.feature[compares]] == j].tolist()
    written: set[float] = set()
    for function in (loop.dynamics.step, loop.dynamics.observe):
        _add_constants(getattr(function, "py_func", function).__code__, written)
    for tape in (arrays.step, arrays.observe):
        written |= set(tape.value[tape.code == CONST].tolist())
    some = sorted(x for x in written if np.isfinite(x))[:_MOST_CONSTANTS]
    values = np.array([*_SMALL, *_SMALL, *known, *some, *(-x for x in some)], np.float64)
    return values[np.isfinite(values)]


def _add_constants(code: CodeType, constants: set[float]) -> None:
    """Add the numbers that are written in a function."""
    waiting: list[Any] = list(code.co_consts)
    while waiting:
        constant = waiting.pop()
        if isinstance(constant, CodeType):
            waiting += constant.co_consts
        elif isinstance(constant, tuple | frozenset):
            waiting += constant
        elif isinstance(constant, int | float) and abs(constant) < 1e300:
            constants.add(float(constant))
