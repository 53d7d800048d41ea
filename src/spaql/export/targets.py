"""The exporters: `write` for each target, which runs the equivalence check before it writes a file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any

from spaql.controllers.resolve import PathLike, Source
from spaql.entry_points import declared_names, find_declared, load_declared, origin_of
from spaql.errors import SettingError, imported, nearest
from spaql.export.equivalence import Equivalence
from spaql.export.json_form import Json
from spaql.export.language import Target
from spaql.export.languages.c import C
from spaql.export.languages.javascript import JavaScript
from spaql.export.languages.micropython import MicroPython
from spaql.export.languages.octave import Octave
from spaql.export.languages.onnx import Onnx
from spaql.export.languages.plcopen import PlcOpen
from spaql.export.languages.python import Python
from spaql.export.languages.rust import Rust
from spaql.export.languages.structured_text import StructuredText
from spaql.export.wasm.target import Wasm
from spaql.export.writing import write

c = partial(write, C())
st = partial(write, StructuredText())
plcopen = partial(write, PlcOpen())
onnx = partial(write, Onnx())
rust = partial(write, Rust())
octave = partial(write, Octave())
javascript = partial(write, JavaScript())
wasm = partial(write, Wasm())
micropython = partial(write, MicroPython())
python = partial(write, Python())
json = partial(write, Json())


def fmu(tree: Source, path: PathLike, **options: Any) -> Equivalence:
    """Write a controller as an FMU, such as `controller.fmu`, by the plugin `fmu`: see `write`.

    It holds the C that `c` writes, the functions of FMI 2.0 for co-simulation, and a binary for this
    platform. It is compared by running it in FMPy, which needs the extra `fmi`.
    """
    return write(_declared("fmu"), tree, path, **options)


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
    return partial(write, target), target.suffix


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
