"""The exporters: each runs the equivalence check before it writes a file."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Unpack

from spaql.errors import SettingError, imported, nearest
from spaql.export.c_code import CCode
from spaql.export.equivalence import Equivalence, Target
from spaql.export.fmu.target import Fmu
from spaql.export.json_tree import JsonTree
from spaql.export.language_targets import javascript, micropython, octave, plcopen, rust, wasm
from spaql.export.onnx_graph import OnnxGraph
from spaql.export.python_code import PythonCode
from spaql.export.rewrite import TOLERANCE
from spaql.export.structured_text import StructuredText
from spaql.export.writing import Options, SafeAction, write
from spaql.policy.resolve import PathLike, Source


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
        A rule tree, which is written as it is; or an agent, a controller, a policy or the path of a file, of
        which the rules are those of `spaql.rule_tree`. A controller with memory is written with its state,
        and compared along random episodes.
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
    >>> tree = spaql.rule_tree(agent.learn(iterations=10, progress_bar=False))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     found = c(tree, Path(folder) / "controller.c", points=1000)
    >>> sorted(found.files)
    ['controller.c', 'controller.h']
    """
    return write(
        CCode(form, standard=standard),
        tree,
        path,
        number=number,
        safe_action=safe_action,
        tolerance=tolerance,
        provenance=provenance,
        points=points,
    )


def st(tree: Source, path: PathLike, *, number: str = "double", **options: Unpack[Options]) -> Equivalence:
    """Write a controller as a function block in Structured Text (IEC 61131-3), such as `controller.st`.

    The numbers are LREAL for "double" and REAL for "float". The text is interpreted according to the standard
    and compared with the tree; it is not run on a PLC. For the other parameters see `c`.
    """
    return write(StructuredText(), tree, path, number=number, **options)


def onnx(tree: Source, path: PathLike, *, number: str = "double", **options: Unpack[Options]) -> Equivalence:
    """Write a controller as an ONNX model, such as `controller.onnx`, compared by running it in onnxruntime.

    It maps a batch `observation` of "double" or "float" numbers to a batch `action`. Needs the extra `onnx`.
    For the other parameters see `c`.
    """
    return write(OnnxGraph(), tree, path, number=number, **options)


def fmu(tree: Source, path: PathLike, **options: Unpack[Options]) -> Equivalence:
    """Write a controller as an FMU, such as `controller.fmu`: co-simulation, FMI 2.0.

    It holds the C that `c` writes, the functions of FMI, and a binary for this platform. Inputs and outputs
    have the names of observations and actions, with units. It is compared by running it in FMPy, which needs
    the extra `fmi`. For the parameters see `c`.
    """
    return write(Fmu(), tree, path, number="double", **options)


def python(
    tree: Source, path: PathLike, *, form: str | None = None, **options: Unpack[Options]
) -> Equivalence:
    """Write a controller as one Python file with a function `act(observation)` and no imports.

    For the parameters see `c`.
    """
    return write(PythonCode(form), tree, path, number="double", **options)


def json(tree: Source, path: PathLike, **options: Unpack[Options]) -> Equivalence:
    """Write a controller as JSON, such as `controller.json`, which `tree_from_json` reads.

    Its schema is `spaql.export.json_tree.SCHEMA`. For the parameters see `c`.
    """
    return write(JsonTree(), tree, path, number="double", **options)


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


def find_exporter(name: str) -> tuple[Exporter, str]:
    """Return an exporter and the suffix of its file.

    Parameters
    ----------
    name
        One of `EXPORTERS`; or `module:name`, which imports the module, and names a subclass of `Target` in
        it, or an instance of one.

    Examples
    --------
    >>> find_exporter("json")[1], find_exporter("spaql.export.json_tree:JsonTree")[1]
    ('.json', '.json')
    """
    module, _, attribute = name.rpartition(":")
    if not module:
        if name not in EXPORTERS:
            raise SettingError(f"There is no export target {name!r}: {nearest(name, EXPORTERS)}")
        return EXPORTERS[name]
    found = getattr(imported(module, attribute), attribute, None)
    target = found() if isinstance(found, type) and issubclass(found, Target) else found
    if not isinstance(target, Target):
        raise SettingError(f"{name} is not a subclass of spaql.export.Target, nor an instance of one.")
    return functools.partial(write, target), target.suffix
