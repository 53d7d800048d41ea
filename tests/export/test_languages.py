"""Targets that are languages: what their files say, large trees, names, and what is refused."""

import operator
import re
import shutil
import subprocess
from pathlib import Path
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete

import spaql
import spaql.export
from export_forms import KINDS, SAFE, SLOW_FORMS
from feature_controllers import two_leaf_pi
from random_trees import random_tree
from spaql import Controller, SettingError
from spaql.export.equivalence import EquivalenceError, check_equivalence
from spaql.export.language import Target
from spaql.export.languages.javascript import JavaScript
from spaql.export.languages.micropython import MicroPython, quotient
from spaql.export.languages.octave import Octave
from spaql.export.languages.plcopen import PlcOpen
from spaql.export.languages.python import Python
from spaql.export.languages.rust import Rust
from spaql.export.languages.structured_text import StructuredText
from spaql.export.machine import machine_of
from spaql.export.running import MissingToolError
from spaql.export.syntax import single_bound
from spaql.program.controller import controller_program

LANGUAGES = {
    "javascript": JavaScript(),
    "rust": Rust(),
    "octave": Octave(),
    "micropython": MicroPython(),
    "python": Python(),
    "st": StructuredText(),
    "plcopen": PlcOpen(),
}


def compared(
    target: Target, tree: Controller, folder: Path, number: str = "double", points: int = 500, safe=None
) -> str:
    controller = machine_of(tree, number, safe)
    files = target.write(controller, "controller")
    check_equivalence(target, controller, files, "controller", folder, points)
    return files["controller" + target.suffix].decode(errors="replace")


@pytest.mark.parametrize("kind", [kind for kind, language in LANGUAGES.items() if language.parts])
def test_a_large_tree_is_written_in_parts(kind: str, tmp_path: Path) -> None:
    for tree in (
        random_tree(np.random.default_rng(3), 3, 1100, "choices"),
        random_tree(np.random.default_rng(0), 1, 300, "laws"),
    ):
        _, parts = controller_program(machine_of(tree).specification())
        assert 1 <= len(parts) <= 8
        text = compared(LANGUAGES[kind], tree, tmp_path)
        assert all(text.count(f"{name}(") >= 2 for name in parts)


@pytest.mark.parametrize("kind", LANGUAGES)
def test_a_tree_of_one_leaf_and_infinite_thresholds(kind: str, tmp_path: Path) -> None:
    space = Box(-1.0, 1.0, (1,), np.float64)
    one = Controller(laws=[[0.1]], observation_space=space, action_space=space)
    compared(LANGUAGES[kind], one, tmp_path)
    endless = Controller(
        feature=[0, -1, -1],
        threshold=[np.inf, 0.0, 0.0],
        left=[1, -1, -1],
        right=[2, -1, -1],
        leaf=[-1, 0, 1],
        laws=[0, 1],
        observation_space=space,
        action_space=Discrete(2),
    )
    compared(LANGUAGES[kind], endless, tmp_path)


@pytest.mark.parametrize("form", SLOW_FORMS)
@pytest.mark.parametrize("guarded", [True, False])
def test_every_kind_of_leaf_and_cut(form: str, guarded: bool, tmp_path: Path) -> None:
    target, number = SLOW_FORMS[form]
    if form == "MicroPython float":  # which has neither laws nor sums
        kind = "choices" if guarded else "constants"
        sums = 0
    else:
        kind = "laws" if guarded else "switching laws"
        sums = 2
    tree = random_tree(np.random.default_rng(KINDS.index(kind)), 3, 40, kind, sums=sums)
    compared(target, tree, tmp_path, number, 2000, SAFE[kind] if guarded else None)


@pytest.mark.parametrize("kind", [kind for kind in LANGUAGES if kind != "plcopen"])
def test_planted_faults_are_found(kind: str, tmp_path: Path) -> None:
    target = LANGUAGES[kind]
    for leaves, old, new in (("choices", " < ", " <= "), ("laws", " + (", " - (")):
        controller = machine_of(random_tree(np.random.default_rng(7), 3, 40, leaves))
        ((name, content),) = target.write(controller, "controller").items()
        other = content.decode().replace(old, new)
        assert other != content.decode()
        with pytest.raises(EquivalenceError, match="first difference"):
            check_equivalence(target, controller, {name: other.encode()}, "controller", tmp_path, 500)


def test_what_is_no_program_is_reported(tmp_path: Path) -> None:
    controller = machine_of(random_tree(np.random.default_rng(1), 2, 3))
    for target, message in (
        (JavaScript(), r"failed \(1\)"),
        (Octave(), r"failed \(1\)"),
        (MicroPython(), r"failed \(1\)"),
        (Rust(), "rustc does not compile"),
    ):
        files = target.write(controller, "controller")
        files["controller" + target.suffix] = b"}{"
        with pytest.raises(spaql.SpaqlError, match=message):
            check_equivalence(target, controller, files, "controller", tmp_path, 10)


@pytest.mark.parametrize("kind", ["javascript", "octave"])
def test_numbers_that_a_target_does_not_have(kind: str, tmp_path: Path) -> None:
    tree = random_tree(np.random.default_rng(1), 2, 3)
    target = LANGUAGES[kind]
    with pytest.raises(SettingError, match="number is 'float', and must be 'double'"):
        spaql.export.write(target, tree, tmp_path / f"controller{target.suffix}", number="float")
    assert not list(tmp_path.iterdir())


def test_single_precision_in_micropython_is_for_constants(tmp_path: Path) -> None:
    laws = random_tree(np.random.default_rng(1), 2, 3, "laws")
    cuts = random_tree(np.random.default_rng(1), 2, 3, sums=1)
    for given in (laws, cuts, two_leaf_pi()):
        with pytest.raises(SettingError, match="MicroPython with floats of 32 bits has no doubles"):
            spaql.export.micropython(given, tmp_path / "controller.py", number="float")
    assert not list(tmp_path.iterdir())


def single(expression: str) -> float:
    """Compute a quotient of integers as an interpreter with floats of 32 bits does: every number rounded."""
    parts = expression.split(" / ")
    value = np.float32(eval(parts[0]))
    with np.errstate(over="raise"):
        for part in parts[1:]:
            value = value / np.float32(eval(part))
    return float(value)


def test_constants_of_micropython_are_exact_in_either_precision() -> None:
    rng = np.random.default_rng(0)
    ends = [5e-324, 2.2250738585072014e-308, 1.7976931348623157e308, 0.1, 1e22, 1e23, -1e-30]
    for x in [*ends, *(rng.normal(size=200) * 10.0 ** rng.integers(-300, 300, 200)).tolist()]:
        assert eval(quotient(x)) == x
    ends = [1e-45, 1.1754944e-38, 3.4028234663852886e38, 0.1, 1e10]
    for x in [*ends, *(rng.normal(size=200) * 10.0 ** rng.integers(-38, 37, 200)).tolist()]:
        near = float(np.float32(x))
        assert single(quotient(near)) == near


def test_single_precision_numbers_compare_with_a_bound_as_with_its_constant() -> None:
    rng = np.random.default_rng(0)
    constants = [0.1, -0.1, 0.0, 1e-46, -1e-46, 1e30, -1e30, 1e-40, 3.4028234663852886e38, 1e16 + 2.0]
    for x in [*constants, *(rng.normal(size=200) * 10.0 ** rng.integers(-44, 37, 200)).tolist()]:
        near = np.float32(x)
        ends = np.float32(-np.inf), np.float32(np.inf)
        with np.errstate(over="ignore"):
            points = [*ends, near, *(np.nextafter(near, end) for end in ends), np.float32(np.nan)]
        for word in ("<", "<=", ">", ">="):
            compare = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}[word]
            bound = single_bound(word, x)
            assert bound == float(np.float32(bound))
            assert all(compare(float(y), bound) == compare(float(y), x) for y in points)


def test_a_micropython_module_looks_at_the_floats_of_its_interpreter(tmp_path: Path) -> None:
    tree = random_tree(np.random.default_rng(1), 2, 5)
    for number, bits in (("double", 52), ("float", 23)):
        spaql.export.micropython(tree, tmp_path / "controller.py", number=number, points=100)
        (line,) = re.findall(r"^if (.*) == 1:$", (tmp_path / "controller.py").read_text(), re.MULTILINE)
        assert line == f"1 + 1 / (1 << {bits})"
        # The smallest step above 1 in each type.
        assert eval(line, {}) != 1
        assert (np.float32(1) + np.float32(2.0**-bits) == 1) == (number == "double")
        assert np.float16(1) + np.float16(2.0**-bits) == 1


def test_a_rust_module_needs_no_std(tmp_path: Path) -> None:
    text = compared(Rust(), random_tree(np.random.default_rng(1), 2, 5, "laws"), tmp_path, "float")
    assert "pub fn act(observation: &[f32; 2]) -> [f32; 2] {" in text
    assert "std::" not in text
    with_std = text.replace("pub fn act", "pub fn other() -> String { String::new() }\npub fn act")
    controller = machine_of(random_tree(np.random.default_rng(1), 2, 5, "laws"), "float")
    with pytest.raises(spaql.SpaqlError, match="rustc does not compile"):
        Rust().load(controller, {"controller.rs": with_std.encode()}, "controller", tmp_path)


def test_a_missing_tool_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tree = random_tree(np.random.default_rng(1), 2, 5)
    monkeypatch.setenv("PATH", str(tmp_path))
    for kind, tool in (("javascript", "node"), ("rust", "rustc"), ("octave", "octave-cli")):
        exporter, suffix = spaql.export.find_exporter(kind)
        with pytest.raises(MissingToolError, match=f"{tool} is not installed, which the equivalence check"):
            exporter(tree, tmp_path / f"controller{suffix}")
    assert not list(tmp_path.iterdir())


def test_plcopen_xml_holds_the_structured_text(tmp_path: Path) -> None:
    spaql.export.st(two_leaf_pi(), tmp_path / "pump.st", points=100)
    spaql.export.plcopen(two_leaf_pi(), tmp_path / "pump.xml", points=100)
    content = (tmp_path / "pump.xml").read_bytes()
    plain = StructuredText().read((tmp_path / "pump.st").read_bytes())
    read = PlcOpen().read(content)
    assert (read.name, read.variables) == (plain.name, plain.variables)
    assert re.sub(r"\(\*.*\*\)", "", read.body).split() == plain.body.split()
    space = {"": "http://www.plcopen.org/xml/tc6_0201", "x": "http://www.w3.org/1999/xhtml"}
    pou = ET.fromstring(content).find("types/pous/pou", space)
    assert pou.attrib == {"name": "Pump", "pouType": "functionBlock"}
    assert [one.tag.rpartition("}")[2] for one in pou] == ["interface", "body", "documentation"]
    level = pou.find("interface/inputVars/variable[@name='level_m']", space)
    assert level.find("type/LREAL", space) is not None
    assert level.find("documentation/x:p", space).text == "level [m]"
    assert pou.find("interface/localVars//simpleValue[@value='LREAL#0.0']", space) is not None
    spaql.export.plcopen(two_leaf_pi(), tmp_path / "pump.xml", points=100)
    assert (tmp_path / "pump.xml").read_bytes() == content
    for old, new in ((b"LREAL#3.1", b"LREAL#3.2"), (b"functionBlock", b"program")):
        target = PlcOpen()
        machine = machine_of(two_leaf_pi())
        files = {"pump.xml": content.replace(old, new)}
        with pytest.raises(EquivalenceError, match=r"differs|does not hold one function block"):
            check_equivalence(target, machine, files, "pump", tmp_path, 2000)


@pytest.mark.skipif(not shutil.which("node"), reason="needs node")
def test_the_action_in_javascript_is_that_of_python(tmp_path: Path) -> None:
    """As a user calls it: a list of numbers, and a number for a Discrete action."""
    tree = random_tree(np.random.default_rng(1), 2, 20)
    spaql.export.javascript(tree, tmp_path / "valve.mjs", points=100)
    code = 'import { act } from "./valve.mjs"; console.log(act([0.25, -1]), act([NaN, 0]))'
    words = ["node", "--input-type=module", "--eval", code]
    said = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    assert [int(x) for x in said.split()] == [tree.act(np.array([[0.25, -1.0]]))[0], 3]
