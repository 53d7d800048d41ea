"""Oblique cuts and switching laws: what is compared about them, and that faults there are found."""

import dataclasses
import json
import re
from pathlib import Path

import jsonschema
import numpy as np
import onnx
import pytest
from click.testing import CliRunner
from gymnasium.spaces import Box, Discrete
from hypothesis import given, settings
from hypothesis import strategies as st

import spaql
import spaql.export
from export_forms import FORMS
from random_trees import random_tree
from spaql import ArchiveError, RuleTree, SettingError
from spaql.cli import main
from spaql.export import tree_from_json
from spaql.export.differences import differences
from spaql.export.equivalence import EquivalenceError, check_equivalence
from spaql.export.json_tree import SCHEMA
from spaql.export.memory import program
from spaql.export.memory.program import Expression
from spaql.export.onnx_graph import _Graph
from spaql.export.rewrite import without_unused_sums
from spaql.export.target_controller import MachineController, controller_of
from spaql.export.test_states import comparison_points
from spaql.policy import Choices, SwitchingLaws
from spaql.policy.leaves import affine
from spaql.policy.tree import Lock

FLOATING = [form for form, (_, number) in FORMS.items() if number != "fixed"]
CUTS, TIES = "oblique cuts and their neighbours", "ties of switching laws and their neighbours"
SIMPLE = [0.5, -0.25, 1.0]
"""Weights with which sums of single-precision numbers can be equal to a threshold."""


def crossed(
    weights: list[float], threshold: float, leaves: Choices | SwitchingLaws | None = None
) -> RuleTree:
    """An oblique cut, and on its left side, the larger one, a cut of the first number."""
    return RuleTree(
        feature=[len(weights), 0, -1, -1, -1],
        threshold=[threshold, 0.25, 0, 0, 0],
        left=[1, 3, -1, -1, -1],
        right=[2, 4, -1, -1, -1],
        leaf=[-1, -1, 0, 1, 2],
        leaves=leaves or Choices(np.array([0, 1, 2])),
        observation_space=Box(-4.0, 4.0, (len(weights),), np.float64),
        action_space=Discrete(3),
        combinations=[weights],
    )


def switching(seed: int = 0, simple: bool = False) -> SwitchingLaws:
    """Three laws of three actions."""
    rng = np.random.default_rng(seed)
    gain, offset = rng.normal(size=(3, 3, 3)), rng.normal(size=(3, 3))
    return (
        SwitchingLaws(np.round(4 * gain) / 4, np.round(4 * offset) / 4)
        if simple
        else SwitchingLaws(gain, offset)
    )


def compared(form: str, controller: MachineController, files: dict[str, bytes], folder: Path) -> dict:
    folder.mkdir(exist_ok=True)
    return check_equivalence(FORMS[form][0], controller, files, "controller", folder, 0).points


def drawn(seed: int) -> tuple[list[float], float]:
    rng = np.random.default_rng(seed)
    return rng.normal(size=3).tolist(), float(rng.normal())


@settings(max_examples=25)
@given(st.integers(0, 2**32), st.sampled_from(["double", "float"]))
def test_points_lie_on_both_sides_of_an_oblique_cut(seed: int, number: str) -> None:
    weights, t = drawn(seed)
    controller = controller_of(crossed(weights, t), number)
    points = controller.number.values(dict(comparison_points(controller, 0))[CUTS])
    sums = controller.exact.numbers(points)[:, 3]
    assert (sums < t).any()
    assert (sums >= t).any()
    if number == "double":
        assert (sums == t).any()
    for side in (points[sums < t], points[sums >= t]):  # of both leaves that meet there
        assert (side[:, 0] < 0.25).any()
        assert (side[:, 0] >= 0.25).any()


@settings(max_examples=25)
@given(st.integers(0, 2**32), st.sampled_from(["double", "float"]))
def test_points_lie_on_both_sides_of_a_tie(seed: int, number: str) -> None:
    rng = np.random.default_rng(seed)
    laws = SwitchingLaws(rng.normal(size=(1, 2, 3)), rng.normal(size=(1, 2)))
    tree = RuleTree([-1], [0.0], [-1], [-1], [0], laws, Box(-4, 4, (3,), np.float64), Discrete(2))
    controller = controller_of(tree, number)
    points = controller.number.values(dict(comparison_points(controller, 0))[TIES])
    scores = affine(laws.offset[[0] * len(points)], laws.gain[[0] * len(points)], points)
    assert {0, 1} == set(tree.act(points).tolist())
    assert np.abs(scores[:, 0] - scores[:, 1]).max() < (1e-12 if number == "double" else 1e-3)
    if number == "double":
        assert (scores[:, 0] == scores[:, 1]).any()


def test_a_point_is_found_in_every_leaf_between_parallel_and_crossing_cuts() -> None:
    """Slabs of |x + y| and |x - y|, of which the last ones are narrow, beyond the bounds too."""
    cuts = [(2, -3.0), (2, -1.0), (2, 0.5), (2, 0.5001), (3, -6.0), (3, 0.0), (3, 1.0), (3, 1.0001)]
    tree = RuleTree(
        [-1], [0.0], [-1], [-1], [0], Choices(np.arange(2)), Box(-1, 1, (2,), np.float64), Discrete(2)
    )
    for j, t in cuts:  # every leaf is cut
        old = tree.n_nodes
        leaves = np.flatnonzero(tree.feature < 0)
        feature, threshold, left, right, leaf = (
            np.concatenate([getattr(tree, name), np.full(2 * len(leaves), value)])
            for name, value in (("feature", -1), ("threshold", 0.0), ("left", -1), ("right", -1), ("leaf", 0))
        )
        feature[leaves], threshold[leaves], leaf[leaves] = j, t, -1
        left[leaves], right[leaves] = old + 2 * np.arange(len(leaves)), old + 1 + 2 * np.arange(len(leaves))
        tree = dataclasses.replace(
            tree, feature=feature, threshold=threshold, left=left, right=right, leaf=leaf,
            combinations=[[1.0, 1.0], [1.0, -1.0]],
        )  # fmt: skip
    points = dict(comparison_points(controller_of(tree), 0))
    assert len(points["leaf centres"]) == 25  # of 256, the others are empty
    found = tree.numbers(points[CUTS])
    for j, t in cuts:
        assert (found[:, j] == t).any()


@pytest.mark.parametrize("form", FLOATING)
@pytest.mark.parametrize("upper", [True, False], ids=["<=", "lower"])
def test_a_moved_oblique_cut_is_found(form: str, upper: bool, tmp_path: Path) -> None:
    """By one double upwards, `sum < threshold` is `sum <= threshold`."""
    target, number = FORMS[form]
    for weights, t in [(SIMPLE, 0.75), drawn(0)]:
        controller = controller_of(crossed(weights, t), number)
        threshold = controller.exact.threshold.copy()
        threshold[0] = np.nextafter(t, np.inf if upper else -np.inf)
        other = dataclasses.replace(controller.exact, threshold=threshold)
        files = target.write(dataclasses.replace(controller, exact=other), "controller")
        with pytest.raises(EquivalenceError, match=f"among the {CUTS}"):
            compared(form, controller, files, tmp_path)


FAULTS = {
    "C: <=": ("C double, rules", rb"sum_0 < ", b"sum_0 <= ", CUTS),
    "C float: <=": ("C float, rules", rb"sum_0 < ", b"sum_0 <= ", CUTS),
    "C: NaN to the left": ("C double, rules", rb"!\(sum_0 < (\S+)\)", rb"sum_0 >= \1", "NaN and infinities"),
    "C table: single precision": ("C double, table", rb"double x\[", b"float x[", "boundaries"),
    "C: a weight rounded": ("C float, rules", rb"\((-?\d\.\d+) \* \(double\)x1", rb"(\1f * (double)x1", CUTS),
    "C table: a sum begins with 1e-16": ("C double, table", rb"sum = 0\.0", b"sum = 1e-16", CUTS),
    "Python: <=": ("Python, rules", rb"sum_0 < ", b"sum_0 <= ", CUTS),
    "Python: NaN to the left": ("Python, rules", rb"not sum_0 < ", b"sum_0 >= ", "NaN and infinities"),
    "ST: <=": ("Structured Text, LREAL", rb"sum_0 < ", b"sum_0 <= ", CUTS),
    "ST: NaN": ("Structured Text, REAL", rb"NOT \(sum_0 < (\S+)\)", rb"sum_0 >= \1", "NaN and infinities"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_at_an_oblique_cut_is_found(fault: str, tmp_path: Path) -> None:
    form, pattern, replacement, kind = FAULTS[fault]
    target, number = FORMS[form]
    rounded = "rounded" in fault or "1e-16" in fault or "single" in fault
    weights, t = drawn(1) if rounded else (SIMPLE, 0.75)
    controller = controller_of(crossed(weights, t), number)
    files = target.write(controller, "controller")
    compared(form, controller, files, tmp_path)
    changed = {file: re.sub(pattern, replacement, text) for file, text in files.items()}
    assert changed != files
    if "single" in fault:
        target = dataclasses.replace(target, flags=("-std=c99", "-O2"))  # without warnings about conversion
        changed = {file: text.replace(b"] = sum", b"] = (float)sum") for file, text in changed.items()}
    with pytest.raises(EquivalenceError, match=f"among the {kind}"):
        check_equivalence(target, controller, changed, "controller", tmp_path, 0)


def last_of_equal(form: str, files: dict[str, bytes]) -> dict[str, bytes]:
    """Change files so that of equal scores the last one is taken."""
    if form.startswith("ONNX"):
        model = onnx.load_from_string(files["controller.onnx"])
        node = next(node for node in model.graph.node if node.op_type == "ArgMax")
        node.attribute.append(onnx.helper.make_attribute("select_last_index", 1))
        return {"controller.onnx": model.SerializeToString()}
    patterns = {
        "PLC": (rb"u &gt; best", b"u &gt;= best"),
        **dict.fromkeys(("Str", "Jav"), (rb"u > best", b"u >= best")),
    }
    pattern, replacement = patterns.get(form[:3], (rb"score > best", b"score >= best"))
    return {file: re.sub(pattern, replacement, text) for file, text in files.items()}


@pytest.mark.parametrize("form", [form for form in FLOATING if form != "JSON"])
def test_the_last_of_equal_scores_is_found(form: str, tmp_path: Path) -> None:
    target, number = FORMS[form]
    for laws in (switching(simple=True), *([switching(2)] if number == "double" else [])):
        controller = controller_of(crossed(SIMPLE, 0.75, laws), number)
        files = target.write(controller, "controller")
        compared(form, controller, files, tmp_path)
        changed = last_of_equal(form, files)
        assert changed != files
        with pytest.raises(EquivalenceError, match=f"among the {TIES}"):
            compared(form, controller, changed, tmp_path)


def reversed_terms(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every target add the terms of sums in the opposite order."""

    def terms(weights: np.ndarray) -> list[tuple[int, float]]:
        return [(j, weight) for j, weight in enumerate(weights.tolist()) if weight != 0.0][::-1]

    def with_sums(self: _Graph, seen: str) -> str:
        weights = self._controller.tree.combinations
        seen = self._add("Cast", seen, to=onnx.TensorProto.DOUBLE)
        zero, sums = self._constant(np.array(0.0)), self._constant(np.zeros((1, len(weights))))
        for j in range(weights.shape[1])[::-1]:
            sums = self._with_term(sums, self._constant(weights[np.newaxis, :, j]), seen, j, zero)
        return self._add("Concat", seen, sums, axis=1)

    def weighted(weights: list[float], names: tuple[str, ...], start: float = 0.0) -> Expression:
        return program.weighted(weights[::-1], names[::-1], start)

    monkeypatch.setattr("spaql.export.source.rules.weighted", weighted)
    for module in ("c_common", "python_code", "structured_text"):
        monkeypatch.setattr(f"spaql.export.{module}.terms", terms)
    monkeypatch.setattr(_Graph, "_with_sums", with_sums)


@pytest.mark.parametrize("form", [form for form in FLOATING if form != "JSON"])
def test_terms_in_another_order_are_found(form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target, number = FORMS[form]
    controller = controller_of(crossed(*drawn(2)), number)
    files = target.write(controller, "controller")
    compared(form, controller, files, tmp_path)
    reversed_terms(monkeypatch)
    changed = target.write(controller, "controller")
    if form.startswith("C") and form.endswith("table"):
        loop, back = rb"for \(j = 0U; j < 3U; \+\+j\) \{(\s+const)", rb"for (j = 3U; j-- > 0U;) {\1"
        changed = {file: re.sub(loop, back, text) for file, text in files.items()}
    assert changed != files
    with pytest.raises(EquivalenceError, match=f"among the {CUTS}"):
        compared(form, controller, changed, tmp_path)


@pytest.mark.parametrize(("kind", "sums"), [("choices", 3), ("switching laws", 0), ("laws", 2)])
def test_json_is_the_tree(kind: str, sums: int, tmp_path: Path) -> None:
    tree = random_tree(np.random.default_rng(4), 3, 12, kind, fresh=1.0, sums=sums)
    path = tmp_path / "controller.json"
    spaql.export.json(tree, path, points=100)
    data = json.loads(path.read_bytes())
    jsonschema.validate(data, json.loads(SCHEMA.read_bytes()))
    assert ("combinations" in data) == (sums > 0)
    read = tree_from_json(path)
    assert np.array_equal(read.combinations, without_unused_sums(tree).combinations)
    points = np.random.default_rng(0).normal(size=(1000, 3)) * 100
    assert np.array_equal(read.act(points), tree.act(points))
    wrong = {"combinations": [[1.0]]} if sums else {"leaves": data["leaves"] | {"offset": [["-inf"] * 6] * 6}}
    path.write_text(json.dumps(data | wrong))
    with pytest.raises(ArchiveError):
        tree_from_json(path)


@pytest.mark.parametrize("form", FLOATING)
def test_a_sum_named_as_an_observation_and_words_of_the_code(form: str, tmp_path: Path) -> None:
    """Names of the user's own must not become those of the code's variables."""
    target, number = FORMS[form]
    names = ("sum_0", "best", "score")
    tree = dataclasses.replace(crossed(SIMPLE, 0.75, switching()), observations=names)
    controller = controller_of(tree, number, 1)
    compared(form, controller, target.write(controller, "controller"), tmp_path)


def test_a_single_action_with_gains_is_not_constant() -> None:
    """Its score may be -infinity, where the first action of the list is taken."""
    laws = SwitchingLaws(np.array([[[0.0], [1.0]]]), np.array([[-np.inf, 0.0]]))
    tree = RuleTree([-1], [0.0], [-1], [-1], [0], laws, Box(-1, 1, (1,), np.float64), Discrete(2))
    controller = controller_of(tree, safe_action=1)
    assert controller.wanted(np.array([[-1.0], [-1.3]])).ravel().tolist() == [1.0, 1.0]
    assert controller_of(tree).wanted(np.array([[-1.0], [-np.inf]])).ravel().tolist() == [1.0, 0.0]
    assert (controller.leaf_name(0), controller.leaf_name(1), controller.leaf_value(1)) == (
        "",
        "action 1",
        (1.0,),
    )
    with pytest.raises(SettingError, match="row 0 is a switching law"):
        controller.leaf_value(0)


def test_sums_that_no_rule_compares_are_left_out() -> None:
    tree = dataclasses.replace(crossed(SIMPLE, 0.75), combinations=[[1.0, 0.0, 0.0], SIMPLE, [0.0, 1.0, 0.0]])
    tree = dataclasses.replace(tree, locks=(Lock(np.full(6, -np.inf), np.full(6, np.inf), 0),))
    moved = dataclasses.replace(tree, feature=[4, 0, -1, -1, -1])
    kept = without_unused_sums(moved)
    assert (kept.combinations.tolist(), kept.feature.tolist(), kept.locks) == (
        [SIMPLE],
        [3, 0, -1, -1, -1],
        (),
    )
    points = np.random.default_rng(0).normal(size=(100, 3))
    assert np.array_equal(kept.act(points), moved.act(points))
    assert without_unused_sums(kept) is kept


def test_fixed_point_is_refused(tmp_path: Path) -> None:
    for tree, what in [
        (crossed(SIMPLE, 0.75), "sums of observations"),
        (crossed(SIMPLE, 1, switching()), "laws"),
    ]:
        with pytest.raises(SettingError, match=f"{what} are computed in double precision: use 'double'"):
            spaql.export.c(tree, tmp_path / "controller.c", number="fixed")
    assert list(tmp_path.iterdir()) == []


def test_what_conversion_changes_is_not_computed_rather_than_said_to_be_nothing(tmp_path: Path) -> None:
    tree = crossed(SIMPLE, 0.75)
    assert spaql.export.onnx(tree, tmp_path / "controller.onnx", points=0).lost == []
    assert spaql.export.onnx(tree, tmp_path / "controller.onnx", number="float", points=0).lost is None
    with pytest.raises(SettingError, match="no set of boxes"):
        differences(tree, tree)
    law = SwitchingLaws(np.array([[[0.0], [1.0]]]), np.zeros((1, 2)))
    line = RuleTree([-1], [0.0], [-1], [-1], [0], law, Box(-1, 1, (1,), np.float64), Discrete(2))
    assert spaql.export.onnx(line, tmp_path / "controller.onnx", number="float", points=0).lost is None


def test_the_command(tmp_path: Path) -> None:
    problem = spaql.make_problem("cartpole200")
    likewise = spaql.rule_tree(spaql.SPAQL(problem, seed=0))
    tree = RuleTree(
        [4, -1, -1], [0.0, 0, 0], [1, -1, -1], [2, -1, -1], [-1, 0, 1], Choices(np.array([0, 1])),
        likewise.observation_space, likewise.action_space, combinations=[[0.0, 0.1, 1.0, 0.3]],
    )  # fmt: skip
    spaql.Controller(tree, problem).save(tmp_path / "lean.spaql")
    words = ["export", str(tmp_path / "lean.spaql"), "--to", "c", "--number", "float", "--points", "100"]
    shown = CliRunner().invoke(
        main, [*words, "--out", str(tmp_path), "--report", str(tmp_path / "check.json")]
    )
    assert shown.exit_code == 0, shown.output
    assert "oblique cuts and their neighbours" in shown.output
    assert "lost    not computed: doubles near an oblique cut" in shown.output
    assert json.loads((tmp_path / "check.json").read_text())["lost"] is None
