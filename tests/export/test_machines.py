"""Exported C under other compilers, flags and machines; each is left out only where its tool is missing."""

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from nightly import thorough
from random_trees import random_tree
from spaql.export.compilers import FLAGS
from spaql.export.equivalence import EquivalenceError, check_equivalence
from spaql.export.languages.c import C
from spaql.export.machine import Machine, machine_of
from spaql.export.test_states import comparison_points

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
from boards import AVR, BOARDS, Board, NotForMachineError, compile_for, missing, room

KINDS = ("choices", "constants", "laws", "switching laws")
POINTS = thorough(100_000)
"""Random ones, of which a share shows that products are fused."""


def controller(number: str, kind: str, leaves: int = 40, seed: int = 3, sums: int = 0) -> Machine:
    return machine_of(random_tree(np.random.default_rng(seed), 3, leaves, kind, sums=sums), number)


@pytest.mark.parametrize("number", ["double", "float", "fixed"])
def test_sanitizers_find_nothing(number: str, tmp_path: Path) -> None:
    flags = (*FLAGS, "-g", "-fsanitize=undefined,address", "-fno-sanitize-recover=all")
    made = controller(number, "constants")
    target = C(flags=flags)
    check_equivalence(target, made, target.write(made, "controller"), "controller", tmp_path, 20_000)


@pytest.mark.parametrize(("kind", "sums"), [("laws", 0), ("choices", 1), ("switching laws", 0)])
@pytest.mark.parametrize("flags", ["-std=gnu99 -O3 -march=native", "-std=gnu11 -O3 -mfma -ffp-contract=fast"])
def test_products_and_sums_are_never_fused(kind: str, sums: int, flags: str, tmp_path: Path) -> None:
    if " fma " not in Path("/proc/cpuinfo").read_text():
        pytest.skip("this processor cannot fuse them")
    made = controller("double", kind, sums=sums)
    target = C(flags=(*FLAGS[1:], *flags.split()))
    files = target.write(made, "controller")
    check_equivalence(target, made, files, "controller", tmp_path, POINTS)
    lines = files["controller.c"].splitlines()
    careless = b"\n".join(line for line in lines if not line.startswith(b"#pragma"))
    with pytest.raises(EquivalenceError, match="first difference"):
        check_equivalence(target, made, files | {"controller.c": careless}, "controller", tmp_path, POINTS)


FAST = "-std=gnu11 -O3 -march=native -ffp-contract=fast"
REORDERED = "-std=gnu11 -O3 -mfma -fassociative-math -fno-signed-zeros -fno-trapping-math -freciprocal-math"


@pytest.mark.skipif(not shutil.which("clang"), reason="needs clang")
@pytest.mark.parametrize(("kind", "sums"), [("laws", 0), ("choices", 1), ("switching laws", 0)])
@pytest.mark.parametrize("flags", [FAST, REORDERED, "-std=gnu11 -O3 -mfma -funsafe-math-optimizations"])
def test_clang_neither_fuses_nor_reorders(
    kind: str, sums: int, flags: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not even with flags for which it ignores the pragma of C99, or has no macro by which to refuse them."""
    if " fma " not in Path("/proc/cpuinfo").read_text():
        pytest.skip("this processor cannot fuse them")
    monkeypatch.setenv("CC", "clang")
    made = controller("double", kind, sums=sums)
    target = C(flags=(*FLAGS[1:], *flags.split()))
    files = target.write(made, "controller")
    check_equivalence(target, made, files, "controller", tmp_path, POINTS)
    if flags is FAST:
        careless = files["controller.c"].replace(b" volatile\n", b"\n")
        with pytest.raises(EquivalenceError, match="first difference"):
            check_equivalence(
                target, made, files | {"controller.c": careless}, "controller", tmp_path, POINTS
            )


@pytest.mark.parametrize(
    "flag",
    [
        "-ffast-math",
        "-Ofast",
        "-ffinite-math-only",
        "-m32 -mfpmath=387",
        "-mfpmath=387",
        "-funsafe-math-optimizations",
        "-fassociative-math -fno-signed-zeros -fno-trapping-math",
        "-freciprocal-math",
        "-fsingle-precision-constant",
    ],
)
def test_flags_that_change_numbers_do_not_compile(flag: str, tmp_path: Path) -> None:
    for file, content in C().write(controller("double", "laws"), "controller").items():
        (tmp_path / file).write_bytes(content)
    words = ["gcc", *flag.split(), "-fsyntax-only", "controller.c"]
    run = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True)
    assert run.returncode != 0
    assert "#error" in run.stderr or "compile without -fsingle-precision-constant" in run.stderr


@pytest.mark.skipif(not shutil.which("g++"), reason="needs g++")
def test_the_header_is_good_for_cpp(tmp_path: Path) -> None:
    for file, content in C().write(controller("float", "choices"), "controller").items():
        (tmp_path / file).write_bytes(content)
    main = "int main() { float x[3] = {}, u[1]; controller_act(x, u); return u[0] < 3; }"
    (tmp_path / "main.cpp").write_text(f'#include "controller.h"\n{main}')
    subprocess.run(["gcc", "-c", "controller.c"], cwd=tmp_path, check=True)
    subprocess.run(
        ["g++", "-Wall", "-Wextra", "-Werror", "main.cpp", "controller.o"], cwd=tmp_path, check=True
    )
    assert subprocess.run([tmp_path / "a.out"]).returncode == 0


@pytest.mark.skipif(not shutil.which("clang"), reason="needs clang")
@pytest.mark.parametrize("kind", KINDS)
def test_clang(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "clang")
    made = controller("double", kind)
    check_equivalence(C(), made, C().write(made, "controller"), "controller", tmp_path, 20_000)


@pytest.mark.parametrize("board", BOARDS, ids=lambda board: board.name)
@pytest.mark.parametrize("number", ["double", "float", "fixed"])
def test_small_machines(board: Board, number: str, tmp_path: Path) -> None:
    if missing(board):
        pytest.skip(f"needs {', '.join(missing(board))}")
    if board is AVR and number == "double":
        pytest.skip("an AVR has no doubles, and the code says so")
    made = controller(number, "constants", 16)
    compile_for(board, tmp_path, C().write(made, "controller"))
    inputs = np.concatenate([batch for _, batch in comparison_points(made, 0)])
    inputs = inputs[np.random.default_rng(0).permutation(len(inputs))[:240]]
    answers = board.run(tmp_path, made, inputs)
    assert np.array_equal(answers.actions, made.wanted(inputs))
    assert 5 < answers.cost.min() <= answers.cost.max() < 10_000
    assert room(board, tmp_path, made).ram == 0


@pytest.mark.skipif(bool(missing(AVR)), reason="needs avr-gcc and simavr")
@pytest.mark.parametrize(
    ("number", "leaves", "sums", "message"),
    [
        ("double", "choices", 0, "export float or fixed numbers instead"),
        ("double", "laws", 0, "laws and sums need it"),
        ("float", "laws", 0, "laws and sums need it"),
        ("float", "switching laws", 0, "laws and sums need it"),
        ("float", "choices", 1, "laws and sums need it"),
    ],
)
def test_doubles_do_not_compile_for_an_avr(
    number: str, leaves: str, sums: int, message: str, tmp_path: Path
) -> None:
    with pytest.raises(NotForMachineError, match=f"double must have 64 bits: {message}"):
        compile_for(AVR, tmp_path, C().write(controller(number, leaves, sums=sums), "controller"))


ANY = """
#include "controller.h"
extern volatile {kind} any;
void check(void)
{{
    {kind} observation[CONTROLLER_OBSERVATIONS], action[CONTROLLER_ACTIONS];
    for (int i = 0; i < CONTROLLER_OBSERVATIONS; ++i) observation[i] = any;
    controller_act(observation, action);
}}
"""


@pytest.mark.skipif(not shutil.which("frama-c"), reason="needs frama-c")
@pytest.mark.parametrize(
    ("kind", "sums"),
    [("choices", 0), ("laws", 0), ("switching laws", 3)],
)
def test_no_input_reads_out_of_bounds(kind: str, sums: int, tmp_path: Path) -> None:
    """Frama-C's value analysis of all inputs at once, NaN and infinities included."""
    made = controller("double", kind, sums=sums)
    for file, content in C().write(made, "controller").items():
        (tmp_path / file).write_bytes(content)
    (tmp_path / "any.c").write_text(ANY.format(kind="double"))
    words = ["frama-c", "-eva", "-main", "check", "-warn-special-float", "none", "-eva-precision", "9"]
    words += ["-c11", str(tmp_path / "controller.c"), str(tmp_path / "any.c")]
    shown = subprocess.run(words, capture_output=True, text=True, timeout=300)
    assert "0 alarms generated by the analysis" in shown.stdout, shown.stdout[-3000:] + shown.stderr
    code = (tmp_path / "controller.c").read_text()
    (tmp_path / "controller.c").write_text(code.replace("= observation[2]", "= observation[3]"))
    shown = subprocess.run(words, capture_output=True, text=True, timeout=300)
    assert "0 alarms generated by the analysis" not in shown.stdout
