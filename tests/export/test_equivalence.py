"""Every export does what the tree does, and what does not is found."""

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from export_forms import FORMS, KINDS, SAFE, mutant
from random_trees import random_tree
from spaql import Controller
from spaql.export.equivalence import EquivalenceError, check_equivalence
from spaql.export.language import Target
from spaql.export.machine import Machine, machine_of


def drawn(seed: int, dims: int, leaves: int, kind: str, sums: int = 0) -> Controller:
    return random_tree(np.random.default_rng(seed), dims, leaves, kind, sums=sums)


def check(target: Target, machine: Machine, files: dict, folder: Path, points: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    check_equivalence(target, machine, files, "controller", folder, points)


def plain_sum(total: float, weights: list[float], x: list[float]) -> float:
    for weight, v in zip(weights, x, strict=True):
        if weight != 0.0:
            total = total + weight * v
    return total


def plainly(tree: Controller, safe: tuple[float, ...], x: list[float], guarded: bool) -> list[float]:
    """The definition, in plain Python: guard, sums, walk, law."""
    low = tree.observation_space.low.tolist()
    high = tree.observation_space.high.tolist()
    # A tenth of the range, as far as that is finite.
    room = [0.1 * (b - a) if math.isfinite(b - a) else 0.0 for a, b in zip(low, high, strict=True)]
    if any(math.isnan(v) for v in x):
        return list(safe)
    if guarded and any(v < a - r or v > b + r for v, a, b, r in zip(x, low, high, room, strict=True)):
        return list(safe)
    numbers = [*x, *(plain_sum(0.0, weights, x) for weights in tree.combinations.tolist())]
    node = 0
    while tree.feature[node] >= 0:
        node = int((tree.left if numbers[tree.feature[node]] < tree.threshold[node] else tree.right)[node])
    row = int(tree.leaf[node])
    laws = tree.laws
    gains = zip(laws.offset[row].tolist(), laws.gain[row].tolist(), strict=True)
    sums = [plain_sum(offset, gain, x) for offset, gain in gains]
    if tree.discrete:
        scores = [u if u > -1e300 else -math.inf for u in sums]
        return [float(tree.action_space.start + scores.index(max(scores)))]
    ends = zip(tree.action_space.low.tolist(), tree.action_space.high.tolist(), strict=True)
    action = []
    for i, (u, (low, high)) in enumerate(zip(sums, ends, strict=True)):
        u = low if u < low else high if u > high else u
        action.append(safe[i] if math.isnan(u) else float(u))
    return action


@settings(max_examples=30)
@given(
    st.integers(0, 2**32),
    st.integers(1, 6),
    st.integers(1, 40),
    st.sampled_from(KINDS),
    st.booleans(),
    st.sampled_from([0, 1, 4]),
)
def test_what_is_wanted_is_the_definition(
    seed: int, dims: int, leaves: int, kind: str, guarded: bool, sums: int
) -> None:
    tree = drawn(seed, dims, leaves, kind, sums)
    controller = machine_of(tree, "double", SAFE[kind] if guarded else None)
    rng = np.random.default_rng(seed)
    cuts = [
        np.append(tree.threshold[tree.feature == j], [math.inf, -math.inf, math.nan, 0]) for j in range(dims)
    ]
    for j, bound in enumerate(tree.observation_space.high.tolist()):
        limit = bound + 0.1 * (2 * bound)
        near = (bound, limit, math.nextafter(limit, 0), math.nextafter(limit, math.inf))
        cuts[j] = np.append(cuts[j], [*near, *(-x for x in near)])
    points = np.stack(
        [rng.choice(np.append(cut, cut + rng.normal(size=len(cut))), 300) for cut in cuts], axis=1
    )
    wanted = [plainly(tree, controller.safe, x, guarded) for x in points.tolist()]
    assert controller.wanted(points).tolist() == wanted
    if not guarded:  # then the policy says the same, wherever it says anything
        told = ~np.isnan(points).any(axis=1)
        acted = tree.act(points[told]).reshape(-1, len(controller.safe))
        assert np.array_equal(acted, np.array(wanted)[told].astype(acted.dtype))


@pytest.mark.parametrize("form", FORMS)
@settings(max_examples=3, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.integers(0, 2**32),
    st.integers(1, 6),
    st.sampled_from([1, 2, 7, 50, 300]),
    st.sampled_from(KINDS),
    st.booleans(),
    st.sampled_from([0, 1, 4]),
)
def test_every_form_does_what_the_tree_does(
    tmp_path: Path, form: str, seed: int, dims: int, leaves: int, kind: str, guarded: bool, sums: int
) -> None:
    target, number = FORMS[form]
    tree = drawn(seed, dims, leaves, kind, sums)
    controller = machine_of(tree, number, SAFE[kind] if guarded else None)
    check(target, controller, target.write(controller, "controller"), tmp_path / str(seed), 3000)


@pytest.mark.parametrize("form", ["C double", "C float", "ONNX double"])
def test_a_change_is_found(form: str, tmp_path: Path) -> None:
    target, number = FORMS[form]
    rng = np.random.default_rng(sum(map(ord, form)))
    controller = machine_of(drawn(7, 3, 40, "choices"), number, 4)
    for i in range(4):
        files = target.write(mutant(controller, rng, ("threshold", "action")[i % 2]), "controller")
        with pytest.raises(EquivalenceError, match="first difference"):
            check(target, controller, files, tmp_path / str(i), 0)


@given(st.floats(allow_nan=False), st.floats(allow_nan=False, width=32))
def test_float_thresholds_decide_as_in_double(t: float, x: float) -> None:
    number = machine_of(drawn(0, 1, 2, "choices"), "float").number
    assert (np.float32(x) < np.float32(number.up(t))) == (x < t)
