"""Learned plants as text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from gymnasium.spaces import Discrete

from spaql.controllers.wording import number_text, rule_lines
from spaql.formatting import counted

if TYPE_CHECKING:
    from spaql.learned_plants.plant import Floats, Ints, PlantModel


class _Ends(NamedTuple):
    """The termination tree, in the form that is printed."""

    feature: Ints
    threshold: Floats
    left: Ints
    right: Ints


def text(model: PlantModel, digits: int | None = 3) -> str:
    """Return a learned plant as rules: the law of each cell, and where episodes terminate.

    Parameters
    ----------
    model
        The plant.
    digits
        Significant digits of numbers. Terms that are smaller, over all recorded observations, than the last
        digit of the range of the result are left out. With None, every number is written in full.

    Examples
    --------
    >>> import spaql
    >>> agent = spaql.PlanTree("Pendulum-v1", seed=0, effort=0.02)
    >>> model = agent.learn(total_timesteps=600, progress_bar=False).model
    >>> text(model).count("next speed [rad/s] = ") == model.n_cells
    True
    """
    plant = model.plant

    def cell(node: int) -> list[str]:
        return law_lines(model, int(plant.cell[node]), digits)

    size = counted(model.n_cells, "cell")
    steps = counted(model.steps, "step")
    lines = [f"# {model.name}: {size}, learned from {steps}"]
    lines += rule_lines(plant, model.observations, digits, cell)
    return "\n".join([*lines, "", *end_lines(model, digits)])


def law_lines(model: PlantModel, cell: int, digits: int | None = 3) -> list[str]:
    """Return the law of a cell, given by its number from 0, one line per result."""
    results = [*(f"next {name}" for name in model.observations), "reward"]
    lines = [f"# cell {cell + 1}, {counted(int(model.samples[cell]), 'step')}"]
    for k, name in enumerate(results):
        terms = _terms(model, cell, k, digits)
        lines.append(f"{name} = {_sum(float(model.plant.law[cell, k, 0]), terms, digits)}")
    return lines


def end_lines(model: PlantModel, digits: int | None = 3) -> Iterator[str]:
    """Yield the lines of the termination tree."""
    plant = model.plant
    names = [*(f"next {name}" for name in model.observations), "score"]
    if not plant.end_chance.any():
        yield "# no episode was seen to end before its time was up"
        return
    yield "# where an episode ends"
    if len(plant.end_score):
        yield f"score = {_score(model, digits)}"
    tree = _Ends(plant.end_feature, plant.end_threshold, plant.end_left, plant.end_right)
    reward = number_text(float(plant.rewards[2]), digits)

    def leaf(node: int) -> list[str]:
        chance = float(plant.end_chance[node])
        if chance == 0.0:
            return ["it goes on"]
        likely = "" if chance == 1.0 else f" with chance {number_text(chance, digits)}"
        return [f"it ends{likely}, with reward {reward}"]

    yield from rule_lines(tree, names, digits, leaf)


def _terms(model: PlantModel, cell: int, k: int, digits: int | None) -> list[tuple[float, str]]:
    """Return the coefficients of a result, each with its variable, without negligible ones."""
    law = model.plant.law[cell, k, 1:]
    word = "if" if isinstance(model.action_space, Discrete) else "*"
    names = [*(f"* {name}" for name in model.observations), *(f"{word} {name}" for name in model.inputs)]
    named = [(float(value), name) for value, name in zip(law, names, strict=True) if value != 0.0]
    if digits is None:
        return named
    spread = [*np.ptp(model.seen, axis=0), model.plant.rewards[1] - model.plant.rewards[0]]
    least = 0.5 * 10.0**-digits * spread[k]
    adds = np.abs(law) * _largest(model)
    kept = {name for name, added in zip(names, adds, strict=True) if added > least}
    return [(value, name) for value, name in named if name in kept]


def _largest(model: PlantModel) -> Floats:
    """Return the largest recorded magnitude of each observation and input."""
    states = np.abs(model.seen).max(axis=0)
    if isinstance(model.action_space, Discrete):
        return np.concatenate([states, np.ones(len(model.inputs))])
    bound = np.maximum(np.abs(model.action_space.low), np.abs(model.action_space.high)).ravel()
    return np.concatenate([states, bound, bound.astype(np.float64) ** 2])


def _sum(offset: float, terms: Sequence[tuple[float, str]], digits: int | None) -> str:
    written = number_text(offset, digits)
    for value, name in terms:
        written += f" {'-' if value < 0 else '+'} {number_text(abs(value), digits)} {name}"
    return written


def _score(model: PlantModel, digits: int | None) -> str:
    names = [f"next {name}" for name in model.observations]
    first, second = np.triu_indices(model.dims)
    products = [f"* {names[i]} * {names[j]}" for i, j in zip(first, second, strict=True)]
    weights = model.plant.end_score.tolist()
    of = [*(f"* {name}" for name in names), *products]
    terms = [(w, what) for w, what in zip(weights[1:], of, strict=True) if w != 0.0]
    return _sum(weights[0], terms, digits)
