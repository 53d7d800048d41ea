"""Structured Text through MATIEC, the compiler of Beremiz and OpenPLC: `python benchmarks/plc.py MATIEC`.

MATIEC is a folder in which it was built from its sources: `iec2c` translates the function blocks to C, and
the system's compiler makes programs of them. Rule trees with all kinds of leaves and controllers with memory
are compared with the policy at all leaves and boundaries and at random points, to the last bit.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

import click
import numpy as np

sys.path.append(str(Path(__file__).parents[1] / "tests"))

from export_forms import KINDS, SAFE
from feature_controllers import random_controller, two_leaf_pi
from random_trees import random_tree
from spaql.export.memory.check import episodes
from spaql.export.memory.machine import machine_of
from spaql.export.structured_text import StructuredText
from spaql.export.target_controller import controller_of
from spaql.export.test_states import comparison_points

FLAGS = ("-std=gnu99", "-O1", "-w", "-ffp-contract=off")
DRIVER = """#include <stdio.h>
#include "POUS.h"
TIME __CURRENT_TIME;
BOOL __DEBUG;
#include "POUS.c"

int main(void)
{{
    static CONTROLLER block; /* its flags are 0 */
    double sample[{n}];
    CONTROLLER_init__(&block, 0);
    while (fread(sample, sizeof sample, 1, stdin) == 1) {{
        {set}
        CONTROLLER_body__(&block);
        double after[] = {{{get}}};
        if (fwrite(after, sizeof after, 1, stdout) != 1) return 1;
    }}
    return 0;
}}
"""


def compiled(text: str, matiec: Path, folder: Path, kept: int) -> Path:
    """Compile a function block; the program writes its outputs and so many of its other variables."""
    (folder / "controller.st").write_text(text)
    words = [str(matiec / "iec2c"), "-I", str(matiec / "lib"), "-T", str(folder), "controller.st"]
    subprocess.run(words, cwd=folder, check=True, stdout=subprocess.DEVNULL)
    plain = re.sub(r"\(\*.*?\*\)", "", text)
    parts = dict(re.findall(r"(VAR_INPUT|VAR_OUTPUT|VAR)\n(.*?)END_VAR", plain, re.DOTALL))
    inputs, outputs, own = (
        [name.upper() for name in re.findall(r"^ *(\w+) : ", parts.get(part, ""), re.MULTILINE)]
        for part in ("VAR_INPUT", "VAR_OUTPUT", "VAR")
    )
    written = "\n        ".join(f"block.{name}.value = sample[{j}];" for j, name in enumerate(inputs))
    read = ", ".join(f"(double)block.{name}.value" for name in [*outputs, *own[:kept]])
    (folder / "driver.c").write_text(DRIVER.format(n=len(inputs), set=written, get=read))
    program = folder / "driver"
    library = str(matiec / "lib" / "C")
    subprocess.run(["gcc", *FLAGS, "-I", library, "driver.c", "-o", str(program)], cwd=folder, check=True)
    return program


def played(program: Path, samples: np.ndarray) -> np.ndarray:
    given = subprocess.run([str(program)], input=samples.tobytes(), capture_output=True, check=True)
    return np.frombuffer(given.stdout).reshape(len(samples), -1)


@click.command(help=__doc__)
@click.argument("matiec", type=click.Path(exists=True, path_type=Path))
@click.option("--points", default=100_000, show_default=True, help="random points, or samples")
def main(matiec: Path, points: int) -> None:
    for number in ("double", "float"):
        for kind in KINDS:
            for sums in (0, 2):
                rng = np.random.default_rng(5)
                controller = controller_of(random_tree(rng, 3, 60, kind, sums=sums), number, SAFE[kind])
                text = StructuredText().write(controller, "controller")["controller.st"].decode()
                inputs = np.concatenate([batch for _, batch in comparison_points(controller, points)])
                with tempfile.TemporaryDirectory() as folder:
                    given = played(compiled(text, matiec, Path(folder), 0), inputs.astype(np.float64))
                wrong = int((given != controller.wanted(inputs)).any(axis=1).sum())
                click.echo(f"{number}, {kind}, {sums} sums: {len(inputs):,} points, {wrong} differences")
        for name, made in (
            ("PI", two_leaf_pi(hysteresis=(0.1, 0.0))),
            ("all features", random_controller(2)),
        ):
            machine = machine_of(made, number)
            text = StructuredText().with_memory().write(machine, "controller")["controller.st"].decode()
            wrong = total = 0
            with tempfile.TemporaryDirectory() as folder:
                program = compiled(text, matiec, Path(folder), made.memory_size)
                for part in episodes(machine, points, manual=True):
                    steps, rows, _ = part.inputs.shape
                    flags = part.resets.T[..., np.newaxis]
                    inputs = np.concatenate([part.inputs, part.commands], axis=2).transpose(1, 0, 2)
                    samples = np.concatenate([flags, inputs], axis=2, dtype=np.float64)
                    given = played(program, samples.reshape(rows * steps, -1))
                    wanted = np.concatenate([part.actions, part.states], axis=2).transpose(1, 0, 2)
                    wrong += int((given != wanted.reshape(rows * steps, -1)).any(axis=1).sum())
                    total += rows * steps
            click.echo(f"{number}, memory, {name}: {total:,} samples, {wrong} differences")


if __name__ == "__main__":
    main()
