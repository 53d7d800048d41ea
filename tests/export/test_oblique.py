"""Oblique cuts and switching laws: what is compared about them, and that faults there are found."""

import dataclasses
import re
from pathlib import Path

import numpy as np
import onnx
import pytest
from gymnasium.spaces import Box, Discrete
from hypothesis import given, settings
from hypothesis import strategies as st

from export_forms import FORMS
from nightly import thorough
from spaql import Controller
from spaql.controllers import Laws
from spaql.controllers.laws import affine
from spaql.export.equivalence import EquivalenceError, check_equivalence
from spaql.export.machine import Machine, machine_of
from spaql.export.test_states import FOUND, comparison_points
from spaql.program import ir
from spaql.program.controller import controller_program

CARRIERS = ["C double", "C float", "ONNX double"]
"""Whether points find a fault depends on the type of the numbers, and on who adds them."""
SIMPLE = [0.5, -0.25, 1.0]
"""Weights with which sums of single-precision numbers can be equal to a threshold."""


def crossed(weights: list[float], threshold: float, laws: Laws | None = None) -> Controller:
    """An oblique cut, and on its left side, the larger one, a cut of the first number."""
    return Controller(
        feature=[len(weights), 0, -1, -1, -1],
        threshold=[threshold, 0.25, 0, 0, 0],
        left=[1, 3, -1, -1, -1],
        right=[2, 4, -1, -1, -1],
        leaf=[-1, -1, 0, 1, 2],
        laws=laws or [0, 1, 2],
        observation_space=Box(-4.0, 4.0, (len(weights),), np.float64),
        action_space=Discrete(3),
        combinations=[weights],
    )


def switching(seed: int = 0, simple: bool = False) -> Laws:
    """Three laws of three actions."""
    rng = np.random.default_rng(seed)
    gain = rng.normal(size=(3, 3, 3))
    offset = rng.normal(size=(3, 3))
    return Laws(np.round(4 * gain) / 4, np.round(4 * offset) / 4) if simple else Laws(gain, offset)


def compared(form: str, controller: Machine, files: dict[str, bytes], folder: Path) -> dict:
    folder.mkdir(exist_ok=True)
    return check_equivalence(FORMS[form][0], controller, files, "controller", folder, 0).points


def drawn(seed: int) -> tuple[list[float], float]:
    rng = np.random.default_rng(seed)
    return rng.normal(size=3).tolist(), float(rng.normal())


@settings(max_examples=thorough(75))
@given(st.integers(0, 2**32), st.sampled_from(["double", "float"]))
def test_points_lie_on_both_sides_of_an_oblique_cut(seed: int, number: str) -> None:
    weights, t = drawn(seed)
    controller = machine_of(crossed(weights, t), number)
    points = controller.number.values(dict(comparison_points(controller, 0))[FOUND])
    sums = controller.controller.numbers(points)[:, 3]
    assert (sums < t).any()
    assert (sums >= t).any()
    if number == "double":
        assert (sums == t).any()
    for side in (points[sums < t], points[sums >= t]):  # of both leaves that meet there
        assert (side[:, 0] < 0.25).any()
        assert (side[:, 0] >= 0.25).any()


@settings(max_examples=thorough(75))
@given(st.integers(0, 2**32), st.sampled_from(["double", "float"]))
def test_points_lie_on_both_sides_of_a_tie(seed: int, number: str) -> None:
    rng = np.random.default_rng(seed)
    laws = Laws(rng.normal(size=(1, 2, 3)), rng.normal(size=(1, 2)))
    seen = Box(-4, 4, (3,), np.float64)
    tree = Controller(laws=laws, observation_space=seen, action_space=Discrete(2))
    controller = machine_of(tree, number)
    points = controller.number.values(dict(comparison_points(controller, 0))[FOUND])
    scores = affine(laws.offset[[0] * len(points)], laws.gain[[0] * len(points)], points)
    assert {0, 1} == set(tree.act(points).tolist())
    assert np.abs(scores[:, 0] - scores[:, 1]).max() < (1e-12 if number == "double" else 1e-3)
    if number == "double":
        assert (scores[:, 0] == scores[:, 1]).any()


def test_a_point_is_found_in_every_leaf_between_parallel_and_crossing_cuts() -> None:
    """Slabs of |x + y| and |x - y|, of which the last ones are narrow, beyond the bounds too."""
    cuts = [(2, -3.0), (2, -1.0), (2, 0.5), (2, 0.51), (3, -6.0), (3, 0.0), (3, 1.0), (3, 1.01)]
    seen = Box(-1, 1, (2,), np.float64)
    tree = Controller(laws=[0, 1], observation_space=seen, action_space=Discrete(2))
    for j, t in cuts:  # every leaf is cut
        old = tree.n_nodes
        leaves = np.flatnonzero(tree.feature < 0)
        feature, threshold, left, right, leaf = (
            np.concatenate([getattr(tree, name), np.full(2 * len(leaves), value)])
            for name, value in (("feature", -1), ("threshold", 0.0), ("left", -1), ("right", -1), ("leaf", 0))
        )
        feature[leaves] = j
        threshold[leaves] = t
        leaf[leaves] = -1
        left[leaves] = old + 2 * np.arange(len(leaves))
        right[leaves] = old + 1 + 2 * np.arange(len(leaves))
        tree = dataclasses.replace(
            tree, feature=feature, threshold=threshold, left=left, right=right, leaf=leaf,
            combinations=[[1.0, 1.0], [1.0, -1.0]], hysteresis=(),
        )  # fmt: skip
    points = dict(comparison_points(machine_of(tree), 0))[FOUND]
    assert len(set(tree.find_nodes(points).tolist())) == 25  # of 256, the others are empty
    numbers = tree.numbers(points)
    for j, t in cuts:
        assert (numbers[:, j] == t).any()


@pytest.mark.parametrize("form", CARRIERS)
@pytest.mark.parametrize("upper", [True, False], ids=["<=", "lower"])
def test_a_moved_oblique_cut_is_found(form: str, upper: bool, tmp_path: Path) -> None:
    """By one double upwards, `sum < threshold` is `sum <= threshold`."""
    target, number = FORMS[form]
    for weights, t in [(SIMPLE, 0.75), drawn(0)]:
        controller = machine_of(crossed(weights, t), number)
        threshold = controller.controller.threshold.copy()
        threshold[0] = np.nextafter(t, np.inf if upper else -np.inf)
        other = dataclasses.replace(controller.controller, threshold=threshold)
        files = target.write(dataclasses.replace(controller, controller=other), "controller")
        with pytest.raises(EquivalenceError, match=f"among the {FOUND}"):
            compared(form, controller, files, tmp_path)


FAULTS = {
    "C: <=": ("C double", rb"(\*.*) < ", rb"\1 <= ", FOUND),
    "C float: <=": ("C float", rb"(\*.*) < ", rb"\1 <= ", FOUND),
    "C: NaN to the left": ("C double", rb"!\((.*\*.*) < (\S+)\)", rb"\1 >= \2", "NaN and infinities"),
    "C: single precision": ("C double", rb"const double (\w+) = obs", rb"const float \1 = obs", FOUND),
    "C: a weight rounded": ("C float", rb"\((-?\d\.\d+) \* x1", rb"(\1f * x1", FOUND),
    "C: a sum begins with 1e-16": ("C double", rb"\((rounded\([^)]*\))", rb"((1e-16 + \1)", FOUND),
    "Python: <=": ("Python", rb"(\*.*) < ", rb"\1 <= ", FOUND),
    "Python: NaN to the left": ("Python", rb"not \((.*) < (\S+)\)", rb"\1 >= \2", "NaN and infinities"),
    "ST: <=": ("Structured Text, LREAL", rb"(\*.*) < ", rb"\1 <= ", FOUND),
    "ST: NaN": ("Structured Text, REAL", rb"NOT \((.*\*.*) < (\S+)\)", rb"\1 >= \2", "NaN and infinities"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_at_an_oblique_cut_is_found(fault: str, tmp_path: Path) -> None:
    form, pattern, replacement, kind = FAULTS[fault]
    target, number = FORMS[form]
    rounded = "rounded" in fault or "1e-16" in fault or "single" in fault
    weights, t = drawn(1) if rounded else (SIMPLE, 0.75)
    controller = machine_of(crossed(weights, t), number)
    files = target.write(controller, "controller")
    compared(form, controller, files, tmp_path)
    changed = {file: re.sub(pattern, replacement, text) for file, text in files.items()}
    assert changed != files
    if "single" in fault:
        target = dataclasses.replace(target, flags=("-std=c99", "-O2"))  # without warnings about conversion
    with pytest.raises(EquivalenceError, match=f"among the {kind}"):
        check_equivalence(target, controller, changed, "controller", tmp_path, 0)


def last_of_equal(form: str, files: dict[str, bytes]) -> dict[str, bytes]:
    """Change files so that of equal scores the last one is taken."""
    if form.startswith("ONNX"):
        model = onnx.load_from_string(files["controller.onnx"])
        for node in model.graph.node:
            node.op_type = node.op_type.replace("Greater", "GreaterOrEqual")
        return {"controller.onnx": model.SerializeToString()}
    return {file: text.replace(b"score > best", b"score >= best") for file, text in files.items()}


@pytest.mark.parametrize("form", CARRIERS)
def test_the_last_of_equal_scores_is_found(form: str, tmp_path: Path) -> None:
    target, number = FORMS[form]
    for laws in (switching(simple=True), *([switching(2)] if number == "double" else [])):
        controller = machine_of(crossed(SIMPLE, 0.75, laws), number)
        files = target.write(controller, "controller")
        compared(form, controller, files, tmp_path)
        changed = last_of_equal(form, files)
        assert changed != files
        with pytest.raises(EquivalenceError, match=f"among the {FOUND}"):
            compared(form, controller, changed, tmp_path)


def reversed_terms(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every target add the terms of sums in the opposite order."""

    def weighted(weights: list[float], names: tuple[str, ...], start: float = 0.0) -> ir.Expression:
        return ir.weighted(weights[::-1], names[::-1], start)

    monkeypatch.setattr("spaql.program.rules.weighted", weighted)


@pytest.mark.parametrize("form", CARRIERS)
def test_terms_in_another_order_are_found(form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target, number = FORMS[form]
    controller = machine_of(crossed(*drawn(2)), number)
    files = target.write(controller, "controller")
    compared(form, controller, files, tmp_path)
    reversed_terms(monkeypatch)
    changed = target.write(controller, "controller")
    assert changed != files
    with pytest.raises(EquivalenceError, match=f"among the {FOUND}"):
        compared(form, controller, changed, tmp_path)


@pytest.mark.parametrize("form", FORMS)
def test_a_sum_named_as_an_observation_and_words_of_the_code(form: str, tmp_path: Path) -> None:
    """Names of the user's own must not become those of the code's variables."""
    target, number = FORMS[form]
    names = ("sum_0", "best", "score")
    tree = dataclasses.replace(crossed(SIMPLE, 0.75, switching()), observations=names)
    controller = machine_of(tree, number, 1)
    compared(form, controller, target.write(controller, "controller"), tmp_path)


def test_a_single_action_with_gains_is_not_constant() -> None:
    """Its score may be -infinity, where the first action of the list is taken."""
    laws = Laws(np.array([[[0.0], [1.0]]]), np.array([[-np.inf, 0.0]]))
    seen = Box(-1, 1, (1,), np.float64)
    tree = Controller(laws=laws, observation_space=seen, action_space=Discrete(2))
    controller = machine_of(tree, safe_action=1)
    assert controller.wanted(np.array([[-1.0], [-1.3]])).ravel().tolist() == [1.0, 1.0]
    assert machine_of(tree).wanted(np.array([[-1.0], [-np.inf]])).ravel().tolist() == [1.0, 0.0]


def test_sums_that_no_rule_compares_are_left_out() -> None:
    sums = [[1.0, 0.0, 0.0], SIMPLE, [0.0, 1.0, 0.0]]
    tree = dataclasses.replace(crossed(SIMPLE, 0.75), combinations=sums, hysteresis=())
    moved = dataclasses.replace(tree, feature=[4, 0, -1, -1, -1])
    programs = (controller_program(machine_of(one).specification()) for one in (moved, crossed(SIMPLE, 0.75)))
    assert next(programs) == next(programs)
