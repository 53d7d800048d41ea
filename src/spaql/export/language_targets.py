"""Exporters for general languages and for PLC tools: see `spaql.export.c` for their parameters."""

from __future__ import annotations

from typing import Unpack

from spaql.controllers.resolve import PathLike, Source
from spaql.export.equivalence import Equivalence
from spaql.export.languages.javascript import JavaScript
from spaql.export.languages.micropython import MicroPython
from spaql.export.languages.octave import Octave
from spaql.export.languages.plcopen import PlcOpen
from spaql.export.languages.rust import Rust
from spaql.export.wasm.target import Wasm
from spaql.export.writing import ExportOptions, write


def plcopen(
    tree: Source, path: PathLike, *, number: str = "double", **options: Unpack[ExportOptions]
) -> Equivalence:
    """Write a controller as PLCopen XML (TC6), such as `controller.xml`: the function block of `st`.

    It is read back from the XML, interpreted and compared; it is not run on a PLC. For the parameters see
    `st`.
    """
    return write(PlcOpen(), tree, path, number=number, **options)


def rust(
    tree: Source, path: PathLike, *, number: str = "double", **options: Unpack[ExportOptions]
) -> Equivalence:
    """Write a controller as a Rust module, such as `controller.rs`, which uses nothing but `core`.

    Observations and actions are f64 for "double" and f32 for "float". It is compiled by rustc, once without
    `std`, and compared. For the other parameters see `c`.
    """
    return write(Rust(), tree, path, number=number, **options)


def octave(tree: Source, path: PathLike, **options: Unpack[ExportOptions]) -> Equivalence:
    """Write a controller as a function for MATLAB and Octave, such as `controller.m`.

    It is compared by running it in Octave. For the parameters see `c`.
    """
    return write(Octave(), tree, path, number="double", **options)


def javascript(tree: Source, path: PathLike, **options: Unpack[ExportOptions]) -> Equivalence:
    """Write a controller as a JavaScript module, such as `controller.mjs`, compared by running it in node.

    For the parameters see `c`.
    """
    return write(JavaScript(), tree, path, number="double", **options)


def wasm(tree: Source, path: PathLike, **options: Unpack[ExportOptions]) -> Equivalence:
    """Write a controller as WebAssembly, such as `controller.wasm`: the C that `c` writes, compiled by clang.

    `controller.mjs` beside it loads it in node and browsers, and is compared by running it in node. For the
    parameters see `c`.
    """
    return write(Wasm(), tree, path, number="double", **options)


def micropython(
    tree: Source, path: PathLike, *, number: str = "double", **options: Unpack[ExportOptions]
) -> Equivalence:
    """Write a controller as a MicroPython module, such as `controller.py`.

    "double" is for interpreters with floats of 64 bits, "float" for those with 32 bits, in which laws, sums
    and memory cannot be computed. It is compared by running the interpreter as WebAssembly in node, whose
    floats have 64 bits. For the other parameters see `c`.
    """
    return write(MicroPython(), tree, path, number=number, **options)
