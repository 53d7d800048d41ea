"""The exporters: each runs the equivalence check before it writes a file."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Unpack

from spaql.controllers.resolve import PathLike, Source
from spaql.entry_points import declared_names, find_declared, load_declared, origin_of
from spaql.errors import SettingError, imported, nearest
from spaql.export.equivalence import Equivalence
from spaql.export.json_form import Json
from spaql.export.language import Target
from spaql.export.language_targets import javascript, micropython, octave, plcopen, rust, wasm
from spaql.export.languages.c import C
from spaql.export.languages.onnx import Onnx
from spaql.export.languages.python import Python
from spaql.export.languages.structured_text import StructuredText
from spaql.export.machine import TOLERANCE
from spaql.export.writing import ExportOptions, SafeAction, write


def c(
    tree: Source,
    path: PathLike,
    *,
    number: str = "double",
    form: str | None = None,
    standard: str | None = None,
    safe_action: SafeAction = None,
    tolerance: float = TOLERANCE,
    provenance: Sequence[str] = (),
    points: int | None = None,
) -> Equivalence:
    """Write a controller as C99, after compiling it and comparing it with the tree.

    Parameters
    ----------
    tree
        A controller, which is written as it is; or an agent, a design, a policy or the path of a file, of
        which the controller is that of `spaql.controller_of`. One with memory is written with its state, and
        compared along random episodes.
    path
        Path of the source, such as `controller.c`; the header `controller.h` is written beside it, with the
        function `controller_act(observation, action)`, which writes a Discrete action as its number.
    number
        Number type of the target: "double", "float", or "fixed" for integers of 32 bits.
    form
        "rules" for nested conditions, "table" for constants and a loop; by default "rules" up to 256 leaves.
    standard
        "misra" for C in which cppcheck finds no violation of MISRA C:2012. Beside it are written a statement
        with the deviations, `controller_misra.md`, a trace from each rule to the points at which it was
        compared, `controller_trace.csv`, and the operations and measured cycles of a decision,
        `controller_timing.json`.
    safe_action
        The action for NaN, and for observations out of bounds by more than the tolerance; a Discrete action
        by its number or name. By default the rules apply beyond the bounds, as in Python, and the action for
        NaN is the first Discrete action, or the one nearest to 0.
    tolerance
        By how much an observation may be out of bounds before the safe action is taken, as a share of its
        range, so that sensor noise at a bound does not trigger it.
    provenance
        Lines about the origin of the tree, for the comment at the head, which has the hashes of controller
        and plant besides.
    points
        Random points to compare, besides all leaves and boundaries; samples of a controller with memory. A
        million by default, and 100,000 in Octave and MicroPython.

    Returns
    -------
    Equivalence
        What was compared. A difference raises `EquivalenceError`, and no file is written.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import spaql
    >>> agent = spaql.SPAQLTS("cartpole200", scaling=20, rollouts=20, seed=1)
    >>> tree = spaql.controller_of(agent.learn(iterations=10, progress_bar=False))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     found = c(tree, Path(folder) / "controller.c", points=1000)
    >>> sorted(found.files)
    ['controller.c', 'controller.h']
    """
    return write(
        C(form, standard=standard),
        tree,
        path,
        number=number,
        safe_action=safe_action,
        tolerance=tolerance,
        provenance=provenance,
        points=points,
    )


def st(
    tree: Source, path: PathLike, *, number: str = "double", **options: Unpack[ExportOptions]
) -> Equivalence:
    """Write a controller as a function block in Structured Text (IEC 61131-3), such as `controller.st`.

    The numbers are LREAL for "double" and REAL for "float". The text is interpreted according to the standard
    and compared with the tree; it is not run on a PLC. For the other parameters see `c`.
    """
    return write(StructuredText(), tree, path, number=number, **options)


def onnx(
    tree: Source, path: PathLike, *, number: str = "double", **options: Unpack[ExportOptions]
) -> Equivalence:
    """Write a controller as an ONNX model, such as `controller.onnx`, compared by running it in onnxruntime.

    It maps a batch `observation` of "double" or "float" numbers to a batch `action`. Needs the extra `onnx`.
    For the other parameters see `c`.
    """
    return write(Onnx(), tree, path, number=number, **options)


def fmu(tree: Source, path: PathLike, **options: Unpack[ExportOptions]) -> Equivalence:
    """Write a controller as an FMU, such as `controller.fmu`: co-simulation, FMI 2.0.

    It holds the C that `c` writes, the functions of FMI, and a binary for this platform. Inputs and outputs
    have the names of observations and actions, with units. It is compared by running it in FMPy, which needs
    the extra `fmi`, and it is written by the plugin `fmu`. For the parameters see `c`.
    """
    return write(_declared("fmu"), tree, path, number="double", **options)


def python(tree: Source, path: PathLike, **options: Unpack[ExportOptions]) -> Equivalence:
    """Write a controller as one Python file with a function `act(observation)` and no imports.

    For the parameters see `c`.
    """
    return write(Python(), tree, path, number="double", **options)


def json(tree: Source, path: PathLike, **options: Unpack[ExportOptions]) -> Equivalence:
    """Write a controller as JSON, such as `controller.json`, which `controller_from_json` reads.

    Its schema is `spaql.export.json_form.SCHEMA`. For the parameters see `c`.
    """
    return write(Json(), tree, path, number="double", **options)


Exporter = Callable[..., Equivalence]
EXPORTERS: Mapping[str, tuple[Exporter, str]] = MappingProxyType(
    {
        "c": (c, ".c"),
        "st": (st, ".st"),
        "plcopen": (plcopen, ".xml"),
        "onnx": (onnx, ".onnx"),
        "fmu": (fmu, ".fmu"),
        "rust": (rust, ".rs"),
        "octave": (octave, ".m"),
        "javascript": (javascript, ".mjs"),
        "wasm": (wasm, ".wasm"),
        "micropython": (micropython, ".py"),
        "python": (python, ".py"),
        "json": (json, ".json"),
    }
)
"""Every exporter with its file suffix."""
GROUP = "spaql.targets"
"""The entry points by which a package declares targets, each under its name for `spaql export --to`."""


def find_exporter(name: str) -> tuple[Exporter, str]:
    """Return an exporter and the suffix of its file.

    Parameters
    ----------
    name
        One of `EXPORTERS`; the name of a target that an installed package declares in the entry-point group
        `spaql.targets`; or `module:name`, which imports the module. What a package declares, or a module
        defines, is a subclass of `Target` or an instance of one.

    Examples
    --------
    >>> find_exporter("json")[1], find_exporter("spaql.export.json_form:Json")[1]
    ('.json', '.json')
    """
    if name in EXPORTERS:
        return EXPORTERS[name]
    module, _, attribute = name.rpartition(":")
    target = _made(getattr(imported(module, attribute), attribute, None), name) if module else _declared(name)
    return functools.partial(write, target), target.suffix


def _declared(name: str) -> Target:
    """Return a target that an installed package declares."""
    entry = find_declared(GROUP, name)
    if entry is None:
        known = [*EXPORTERS, *declared_names(GROUP)]
        raise SettingError(f"There is no export target {name!r}: {nearest(name, known)}")
    return _made(load_declared(entry), origin_of(entry))


def _made(declared: object, what: str) -> Target:
    """Return a target, which may be given by its class; raises `SettingError` for anything else."""
    if isinstance(declared, type) and issubclass(declared, Target):
        try:
            return declared()
        except Exception as error:
            raise SettingError(f"{what} cannot be made: {type(error).__name__}: {error}.") from error
    if not isinstance(declared, Target):
        raise SettingError(f"{what} is not a subclass of spaql.export.Target, nor an instance of one.")
    return declared
