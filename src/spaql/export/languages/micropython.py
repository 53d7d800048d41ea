"""A controller as one MicroPython module, run in the interpreter as WebAssembly under node.

Older interpreters, above all those of single precision, round decimal numbers to a neighbour of the nearest
one. So constants are integers, or quotients of integers, which are exact on all of them.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Collection, Iterator
from pathlib import Path

import numpy as np

from spaql.errors import SettingError
from spaql.export.language import SLOW_POINTS, Source, Target
from spaql.export.languages.python import PythonSyntax, definitions, docstring
from spaql.export.running import (
    PLAYED,
    SAMPLES,
    MissingToolError,
    Player,
    driven,
    find_program,
    run,
    version_of,
)
from spaql.program.ir import Program

PACKAGE = "@micropython/micropython-webassembly-pyscript"
"""Of npm."""
_LARGEST_SINGLE = 3.4028234663852886e38
_BITS = {"double": 52, "float": 23}
_WIDTH = {"double": 64, "float": 32}


class MicroPython(Target):
    """One module without imports."""

    name = "MicroPython"
    suffix = ".py"
    points = SLOW_POINTS
    numbers = ("double", "float")

    def refuse(self, source: Source) -> None:
        """Raise if a controller cannot be written."""
        if source.number == "float" and source.computes:
            raise SettingError(
                "number is 'float', and MicroPython with floats of 32 bits has no doubles, in which laws, "
                "sums of observations and memory are computed: use 'double', with an interpreter that has "
                "them."
            )

    def text(self, source: Source) -> str:
        """Return the content of the file."""
        constants = _Constants(single=source.number == "float")
        body = [*definitions(source, functools.partial(MicroPythonSyntax, constants=constants))]
        lines = [docstring(source), "", *_width_check(source.number), *constants.lines(), *body]
        return "\n".join(lines) + "\n"

    def player(self, source: Source, folder: Path) -> Player:
        """Return the function that plays samples by the file in a folder."""
        (folder / "driver.mjs").write_text(_host(source), encoding="utf-8")
        (folder / "driver.py").write_text(_driver(source), encoding="utf-8")
        return driven(["node", "driver.mjs", str(_interpreter())], folder, source.played)

    def tool(self) -> str:
        """Return the name and version of the tool that runs the files."""
        node = version_of("node")
        release = re.search(
            r'"version": "(.*?)"', (_interpreter().parent / "package.json").read_text("utf-8")
        )
        return (
            f"MicroPython {release[1] if release else ''} with floats of 64 bits, WebAssembly in node {node}"
        )


class MicroPythonSyntax(PythonSyntax):
    """Python whose constants have names."""

    def __init__(self, program: Program, integers: Collection[str], constants: _Constants) -> None:
        super().__init__(program, integers)
        self._constants = constants

    def number(self, x: float) -> str:
        """Return a constant."""
        return self._constants.name(x)


class _Constants:
    """Constants of a module, with names that say their value."""

    def __init__(self, *, single: bool) -> None:
        self._single = single
        self._values: dict[str, float] = {}

    def name(self, x: float) -> str:
        """Return how a number is written: an integer, or the name of a constant."""
        if self._single:
            x = float(np.float32(min(max(x, -_LARGEST_SINGLE), _LARGEST_SINGLE)))
        if x == int(x) and abs(x) < 1 << 20:
            return str(int(x))
        shown = str(np.float32(x)) if self._single else repr(x)
        word = "_" + shown.replace("-", "m").replace(".", "p").replace("+", "")
        self._values[word] = x
        return word

    def lines(self) -> Iterator[str]:
        """Yield the definitions of the constants."""
        yield from (f"{word} = {quotient(x)}" for word, x in self._values.items())


def quotient(x: float) -> str:
    """Return a number as an expression of integers that is exact in binary arithmetic.

    Examples
    --------
    >>> quotient(0.1), quotient(-2.5), quotient(2.0**60), quotient(5e-324)
    ('3602879701896397 / (1 << 55)', '-5 / (1 << 1)', '(1 << 60) / 1', '1 / (1 << 537) / (1 << 537)')
    """
    above, below = x.as_integer_ratio()
    bits = below.bit_length() - 1
    if bits == 0:
        zeros = (above & -above).bit_length() - 1
        return f"({above >> zeros} << {zeros}) / 1"
    if bits <= 100:
        return f"{above} / (1 << {bits})"
    # Neither divisor may be beyond the largest float, and the first quotient must be a normal number.
    return f"{above} / (1 << {bits // 2}) / (1 << {bits - bits // 2})"


def _width_check(number: str) -> Iterator[str]:
    """Yield the lines that raise an error in an interpreter with another number type."""
    bits = _BITS[number]
    width = _WIDTH[number]
    more = "" if number == "double" else " or more"
    yield f"if 1 + 1 / (1 << {bits}) == 1:"
    yield f'    raise ValueError("floats must have {width} bits{more}: this interpreter has fewer")'


@functools.cache
def _interpreter() -> Path:
    """Return the path of the interpreter, in the folders in which node looks for packages, or npm."""
    node = find_program("node", MicroPython.name)
    usual = 'require("path").join(process.execPath, "../../lib/node_modules"), "/usr/local/lib/node_modules"'
    ask = f"console.log(require.resolve('{PACKAGE}', {{paths: [process.cwd(), {usual}]}}))"
    failed = (
        f"The npm package {PACKAGE} is not installed, which the equivalence check of MicroPython needs: "
        "npm install it here, or set NODE_PATH to its folder"
    )
    return Path(run([node, "-e", ask], Path.cwd(), MissingToolError, failed).decode().strip())


def _host(source: Source) -> str:
    """Return the JavaScript that runs MicroPython with files of a folder."""
    return f"""import {{ readFileSync, writeFileSync }} from "node:fs";
const {{ loadMicroPython }} = await import("file://" + process.argv[2]);
const python = await loadMicroPython({{ heapsize: 64 * 1024 * 1024 }});
for (const file of ["{source.name}.py", "{SAMPLES}"]) python.FS.writeFile("/" + file, readFileSync(file));
python.runPython(readFileSync("driver.py", "utf8"));
writeFileSync("{PLAYED}", python.FS.readFile("/{PLAYED}"));
"""


def _driver(source: Source) -> str:
    """Return the MicroPython that plays samples, in batches that fit into its memory."""
    width = source.widths[0] + 1
    state = ", ".join(f"controller.{variable.name}" for variable in source.program.state)
    done = "[action]" if source.discrete else "list(action)"
    return f"""import array, sys
sys.path.insert(0, "/")
import {source.name} as controller
{"controller = controller.Controller()" if state else ""}
read, write = open("/{SAMPLES}", "rb"), open("/{PLAYED}", "wb")
while True:
    rows = array.array("d", read.read({8 * width * 4096}))
    if not rows:
        break
    played = []
    for at in range(0, len(rows), {width}):
        if rows[at] > 0:
            controller.reset()
        action = controller.act(rows[at + 1 : at + {width}])
        played += {done} + [{state}]
    write.write(array.array("d", played))
write.close()
"""
