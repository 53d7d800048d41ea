"""C by MISRA C:2012: cppcheck finds no violation but of one advisory rule."""

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from export_forms import KINDS, SAFE
from feature_controllers import ALL, random_controller, two_leaf_pi
from random_trees import random_tree
from spaql.controllers import Controller
from spaql.export.languages.c import C
from spaql.export.machine import machine_of
from spaql.program import rules

pytestmark = pytest.mark.skipif(shutil.which("cppcheck") is None, reason="needs cppcheck")

# What the headers of the compiler define; cppcheck reads none of them.
DEFINED = ("DBL_MANT_DIG=53", "FLT_MANT_DIG=24", "FLT_EVAL_METHOD=0")
UNDEFINED = ("__FAST_MATH__", "__FINITE_MATH_ONLY__", "__clang__", "__cplusplus")


def findings(controller: Controller, folder: Path, number: str, safe=None) -> list[str]:
    for file, content in C().write(machine_of(controller, number, safe), "controller").items():
        (folder / file).write_bytes(content)
    return checked(folder)


def checked(folder: Path) -> list[str]:
    words = ["cppcheck", "--addon=misra", "--std=c99", "--quiet", "--template={file}:{line}: {id}"]
    # Macros of the header (rule 2.5, advisory) are for the program that includes it.
    words += ["--suppress=missingIncludeSystem", "--suppress=misra-c2012-2.5:controller.h"]
    words += [f"-D{macro}" for macro in DEFINED] + [f"-U{macro}" for macro in UNDEFINED]
    done = subprocess.run([*words, "controller.c"], cwd=folder, capture_output=True, text=True, check=True)
    return done.stderr.splitlines()


@pytest.mark.parametrize(
    ("number", "kind", "sums"),
    [
        ("double", "choices", 0),
        ("float", "constants", 0),
        ("float", "laws", 2),
        ("double", "switching laws", 1),
    ],
)
@pytest.mark.parametrize("part", [4, 256], ids=["in parts", "whole"])
def test_cppcheck_finds_no_violation(
    number: str, kind: str, sums: int, part: int, tmp_path: Path, monkeypatch
) -> None:
    monkeypatch.setattr(rules, "RULES_UP_TO", part)
    tree = random_tree(np.random.default_rng(KINDS.index(kind)), 3, 12, kind, sums=sums)
    assert findings(tree, tmp_path, number, SAFE[kind]) == []


@pytest.mark.parametrize("case", [0, 1, 2])
def test_cppcheck_finds_no_violation_with_memory(case: int, tmp_path: Path) -> None:
    margins = (0.2, *[0.0] * (len(ALL) - 1), 0.3)
    controller = [two_leaf_pi(), random_controller(3, hysteresis=margins), random_controller(4)][case]
    assert findings(controller, tmp_path, "float" if case == 2 else "double") == []


@pytest.mark.parametrize(
    ("old", "new", "rule"),
    [
        ("action[0] = 4.0;", "goto end; end: action[0] = 4.0;", "15.1"),
        ("} else {", "} else if (x0 > 1.0) {", "15.7"),
        ("const double x1", "const double octal = 077; (void)octal; const double x1", "7.1"),
    ],
)
def test_a_violation_is_found(old: str, new: str, rule: str, tmp_path: Path) -> None:
    assert findings(random_tree(np.random.default_rng(0), 3, 12), tmp_path, "double", 4) == []
    head, found, tail = (tmp_path / "controller.c").read_text().rpartition(old)
    assert found
    (tmp_path / "controller.c").write_text(head + new + tail)
    assert any(line.endswith(f"misra-c2012-{rule}") for line in checked(tmp_path))
