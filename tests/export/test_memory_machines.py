"""Controllers with memory in C under other compilers, flags and machines."""

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from feature_controllers import random_controller, two_leaf_pi
from spaql.export.compilers import FLAGS
from spaql.export.equivalence import EquivalenceError, check_equivalence
from spaql.export.languages.c import C
from spaql.export.machine import Machine, machine_of

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
from boards import AVR, M3, M4, Arm, NotForMachineError, compile_for, missing


def check(machine: Machine, flags: tuple[str, ...], folder: Path, *, fused: bool = False) -> None:
    target = C(flags=flags)
    files = target.write(machine, "controller")
    if fused:
        lines = files["controller.c"].splitlines()
        files["controller.c"] = b"\n".join(line for line in lines if not line.startswith(b"#pragma"))
    check_equivalence(target, machine, files, "controller", folder, 5000)


@pytest.mark.parametrize("number", ["double", "float"])
def test_sanitizers_find_nothing(number: str, tmp_path: Path) -> None:
    flags = (*FLAGS, "-g", "-fsanitize=undefined,address", "-fno-sanitize-recover=all")
    check(machine_of(random_controller(3), number), flags, tmp_path)


def test_products_and_sums_are_never_fused(tmp_path: Path) -> None:
    if " fma " not in Path("/proc/cpuinfo").read_text():
        pytest.skip("this processor cannot fuse them")
    flags = (*FLAGS[1:], "-std=gnu11", "-O3", "-mfma", "-ffp-contract=fast")
    check(machine_of(random_controller(3)), flags, tmp_path)
    with pytest.raises(EquivalenceError, match="first difference"):
        check(machine_of(random_controller(3)), flags, tmp_path, fused=True)


@pytest.mark.skipif(not shutil.which("clang"), reason="needs clang")
@pytest.mark.parametrize(
    "more", ["", "-O3 -mfma -ffp-contract=fast", "-O3 -mfma -funsafe-math-optimizations"]
)
def test_clang(more: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if "-mfma" in more and " fma " not in Path("/proc/cpuinfo").read_text():
        pytest.skip("this processor cannot fuse them")
    monkeypatch.setenv("CC", "clang")
    check(machine_of(random_controller(2)), (*FLAGS, *more.split()), tmp_path)


@pytest.mark.skipif(not shutil.which("g++"), reason="needs g++")
def test_the_header_is_good_for_cpp(tmp_path: Path) -> None:
    for file, content in C().write(machine_of(two_leaf_pi()), "controller").items():
        (tmp_path / file).write_bytes(content)
    body = "controller_state s; controller_reset(&s); double x[2] = {}, u[1]; controller_act(&s, x, u);"
    (tmp_path / "main.cpp").write_text(f'#include "controller.h"\nint main() {{ {body} return u[0] > 0; }}')
    subprocess.run(["gcc", "-c", "controller.c"], cwd=tmp_path, check=True)
    words = ["g++", "-Wall", "-Wextra", "-Werror", "main.cpp", "controller.o"]
    subprocess.run(words, cwd=tmp_path, check=True)
    assert subprocess.run([tmp_path / "a.out"]).returncode == 0


@pytest.mark.skipif(bool(missing(AVR)), reason="needs avr-gcc and simavr")
def test_it_does_not_compile_for_an_avr(tmp_path: Path) -> None:
    with pytest.raises(NotForMachineError, match="double must have 64 bits: the state needs it"):
        compile_for(AVR, tmp_path, C().write(machine_of(two_leaf_pi(), "float"), "controller"))


@pytest.mark.parametrize("board", [M3, M4], ids=lambda board: board.name)
@pytest.mark.parametrize("made", [two_leaf_pi(), random_controller(4)], ids=["pi", "all features"])
def test_an_episode_is_the_same_on_a_cortex_m(made, board: Arm, tmp_path: Path) -> None:
    if missing(board):
        pytest.skip(f"needs {', '.join(missing(board))}")
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
