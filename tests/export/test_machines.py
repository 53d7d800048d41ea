"""Exported C under other compilers, flags and machines."""

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from feature_controllers import random_controller, two_leaf_pi
from nightly import thorough
from random_trees import random_tree
from spaql.export.equivalence import EquivalenceError, check_equivalence
from spaql.export.languages.c import C
from spaql.export.machine import Machine, machine_of
from spaql.export.running import FLAGS
from spaql.export.test_states import comparison_points

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
from boards import AVR, BOARDS, M3, M4, Arm, Board, NotForMachineError, compile_for, missing, room

POINTS = thorough(100_000)
"""Random ones, of which a share shows that products are fused."""


def controller(number: str, kind: str, leaves: int = 40, seed: int = 3, sums: int = 0) -> Machine:
    return machine_of(random_tree(np.random.default_rng(seed), 3, leaves, kind, sums=sums), number)


def check(made: Machine, flags: tuple[str, ...], folder: Path, without: bytes | None = None) -> None:
    """Compare a controller that is compiled with some flags, and without the lines that begin with a text."""
    target = C(flags=flags)
    files = target.write(made, "controller")
    if without is not None:
        lines = files["controller.c"].splitlines()
        files["controller.c"] = b"\n".join(line for line in lines if not line.startswith(without))
    check_equivalence(
        target, made, files, "controller", folder, 5_000 if made.controller.remembers else POINTS
    )


MEMORY = machine_of(random_controller(3))
SANITISED = (*FLAGS, "-g", "-fsanitize=undefined,address", "-fno-sanitize-recover=all")


@pytest.mark.parametrize("number", ["double", "float"])
def test_sanitizers_find_nothing(number: str, tmp_path: Path) -> None:
    check(controller(number, "constants"), SANITISED, tmp_path)
    check(machine_of(random_controller(3), number), SANITISED, tmp_path)


FUSED = "-std=gnu11 -O3 -mfma -ffp-contract=fast"
REORDERED = "-std=gnu11 -O3 -mfma -fassociative-math -fno-signed-zeros -fno-trapping-math -freciprocal-math"
FUSES = pytest.mark.skipif(
    " fma " not in Path("/proc/cpuinfo").read_text(), reason="this processor cannot fuse them"
)
SUMS = {
    "laws": controller("double", "laws"),
    "a sum": controller("double", "choices", sums=1),
    "switching laws": controller("double", "switching laws"),
    "memory": MEMORY,
}


@pytest.mark.skipif(
    " fma " not in Path("/proc/cpuinfo").read_text(), reason="this processor cannot fuse them"
)
@pytest.mark.parametrize("kind", SUMS)
def test_products_and_sums_are_never_fused(kind: str, tmp_path: Path) -> None:
    flags = (*FLAGS[1:], *FUSED.split())
    check(SUMS[kind], flags, tmp_path)
    with pytest.raises(EquivalenceError, match="first difference"):
        check(SUMS[kind], flags, tmp_path, without=b"#pragma")


@pytest.mark.skipif(
    " fma " not in Path("/proc/cpuinfo").read_text(), reason="this processor cannot fuse them"
)
@pytest.mark.skipif(not shutil.which("clang"), reason="needs clang")
@pytest.mark.parametrize(
    ("kind", "flags"),
    [
        ("laws", FUSED),
        ("a sum", REORDERED),
        ("switching laws", "-std=gnu11 -O3 -mfma -funsafe-math-optimizations"),
        ("memory", REORDERED),
    ],
)
def test_clang_neither_fuses_nor_reorders(
    kind: str, flags: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not even with flags for which it ignores the pragma of C99, or has no macro by which to refuse them."""
    monkeypatch.setenv("CC", "clang")
    target = C(flags=(*FLAGS[1:], *flags.split()))
    check(SUMS[kind], target.flags, tmp_path)
    if flags is FUSED:
        files = target.write(SUMS[kind], "controller")
        careless = {"controller.c": files["controller.c"].replace(b" volatile\n", b"\n")}
        with pytest.raises(EquivalenceError, match="first difference"):
            check_equivalence(target, SUMS[kind], files | careless, "controller", tmp_path, POINTS)


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
def test_the_headers_are_good_for_cpp(tmp_path: Path) -> None:
    files = C().write(controller("float", "choices"), "valve") | C().write(MEMORY, "pump")
    for file, content in files.items():
        (tmp_path / file).write_bytes(content)
    (tmp_path / "main.cpp").write_text("""#include "valve.h"
#include "pump.h"
int main()
{
    float x[3] = {}, u[1];
    valve_act(x, u);
    pump_state state;
    double seen[PUMP_OBSERVATIONS] = {}, done[PUMP_ACTIONS];
    pump_reset(&state);
    pump_act(&state, seen, done);
    return u[0] < 3 || !(done[0] >= -1 && done[0] <= 1);
}
""")
    subprocess.run(["gcc", "-c", "valve.c", "pump.c"], cwd=tmp_path, check=True)
    words = ["g++", "-Wall", "-Wextra", "-Werror", "main.cpp", "valve.o", "pump.o"]
    subprocess.run(words, cwd=tmp_path, check=True)
    assert subprocess.run([tmp_path / "a.out"]).returncode == 0


@pytest.mark.skipif(not shutil.which("clang"), reason="needs clang")
@pytest.mark.parametrize("kind", ["choices", "constants"])
def test_clang(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "clang")
    check(controller("double", kind), FLAGS, tmp_path)


@pytest.mark.parametrize("board", BOARDS, ids=lambda board: board.name)
@pytest.mark.parametrize("number", ["double", "float"])
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
        ("double", "choices", 0, "export float numbers instead"),
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


@pytest.mark.skipif(bool(missing(AVR)), reason="needs avr-gcc and simavr")
def test_memory_does_not_compile_for_an_avr(tmp_path: Path) -> None:
    with pytest.raises(NotForMachineError, match="double must have 64 bits: the state needs it"):
        compile_for(AVR, tmp_path, C().write(machine_of(two_leaf_pi(), "float"), "controller"))


@pytest.mark.parametrize("board", [M3, M4], ids=lambda board: board.name)
def test_an_episode_is_the_same_on_a_cortex_m(board: Arm, tmp_path: Path) -> None:
    if missing(board):
        pytest.skip(f"needs {', '.join(missing(board))}")
    made = random_controller(4)
    machine = machine_of(made)
    compile_for(board, tmp_path, C().write(machine, "controller"))
    rng = np.random.default_rng(0)
    inputs = (
        rng.uniform(0, 2, (300, 1)) + np.cumsum(rng.normal(size=(300, len(made.observations))), axis=0) / 20
    )
    given = board.run(tmp_path, machine, inputs)
    memory = made.new_memory(1)
    wanted = [machine.sample(seen[np.newaxis], memory)[0][0] for seen in inputs]
    assert np.array_equal(given.actions, wanted)
    assert given.cost.max() < 20_000


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
