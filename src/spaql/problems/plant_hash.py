"""Hashes by which a run knows the plant that it was trained on: of its functions, its file or its class."""

from __future__ import annotations

import ast
import dataclasses
import functools
import inspect
import linecache
import sys
import sysconfig
import textwrap
import types
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import gymnasium

from spaql.archive import file_sha256
from spaql.errors import ChangedPlantWarning
from spaql.problems.content import content_of, is_shipped, sha256, value_token
from spaql.problems.dynamics import Dynamics
from spaql.problems.environment import DynamicsEnv
from spaql.problems.meaning import meaning_of

PlantHash = Mapping[str, str]
"""Hashes of the parts of a plant, by their names; empty if it has none."""
UNKNOWN = "unknown"
"""In place of the hash of a part whose content cannot be followed."""
FILE = "file"
"""The part of a plant that is a file: its whole SHA-256, as other tools print it."""
_DIGITS = 16
_SHOWN = 8
_NOT_DECLARED = {"id", "start", "step", "observe", "plant_dims", "state_dims"}


def equations_hash(dynamics: Dynamics) -> PlantHash:
    """Return the hashes of a plant's functions, of all that they refer to, and of what is declared.

    Examples
    --------
    >>> import spaql
    >>> list(equations_hash(spaql.problems.find_dynamics("Pendulum-v1")))[:4]
    ['observe', 'start', 'step', 'declared observations']
    """
    functions = {"start": dynamics.start, "observe": dynamics.observe, "step": dynamics.step}
    hashes = _hashed(functions)
    for declared in dataclasses.fields(dynamics):
        value = getattr(dynamics, declared.name)
        if declared.name not in _NOT_DECLARED and not _is_empty(value):
            hashes[f"declared {declared.name}"] = sha256(value_token(_as_data(value)))[:_DIGITS]
    return hashes


def environment_hash(env: gymnasium.Env[Any, Any]) -> PlantHash:
    """Return the hashes that an environment declares, those of its equations, or that of its class."""
    plant = env.unwrapped
    if isinstance(plant, DynamicsEnv):
        return equations_hash(plant.dynamics)
    return meaning_of(env).plant or _class_hash(type(plant))


def _class_hash(kind: type) -> PlantHash:
    """Return the hash of the text of a class, without comments and layout; none if it is installed."""
    if kind.__module__.startswith(("spaql.", "gymnasium.")) or _is_installed(kind.__module__):
        return {}
    try:
        text = textwrap.dedent(inspect.getsource(kind))
    except (OSError, TypeError):  # it was written in a shell
        return {}
    return {kind.__qualname__: sha256(ast.unparse(ast.parse(text)))[:_DIGITS]}


def file_hash(path: str | Path) -> PlantHash:
    """Return the hash of a plant that is a file; empty if there is none."""
    return {FILE: file_sha256(path)} if Path(path).is_file() else {}


def differences(kept: PlantHash, now: PlantHash) -> list[str]:
    """Return the parts in which two plants differ; none if one of them has no hash.

    Examples
    --------
    >>> differences({"step": "1", "params.GAIN": "2"}, {"step": "1", "params.GAIN": "3"})
    ['params.GAIN']
    """
    if not kept or not now:
        return []
    return [name for name in sorted({**kept, **now}) if kept.get(name) != now.get(name)]


def change_text(name: str, kept: PlantHash, now: PlantHash) -> str:
    """Return how a plant differs from what was trained on; empty if it is not known to."""
    other = differences(kept, now)
    if not other:
        return ""
    if other == [FILE]:
        what = f"its SHA-256 is {now[FILE]}, and that one's was {kept[FILE]}"
    else:
        more = f" and {len(other) - _SHOWN} more" if len(other) > _SHOWN else ""
        what = f"it differs in {', '.join(other[:_SHOWN])}{more}"
    return f"{name} is not the plant that this was trained on: {what}."


def warn_of_change(name: str, kept: PlantHash, now: PlantHash, *, stacklevel: int) -> None:
    """Warn if a plant is not the one that was trained on."""
    if text := change_text(name, kept, now):
        warnings.warn(f"{text} What is run now is another plant.", ChangedPlantWarning, stacklevel=stacklevel)


def _hashed(functions: Mapping[str, Any]) -> dict[str, str]:
    """Return the hashes of functions, by their text, and of what they refer to but installed packages."""
    followed = {"spaql", *(str(function.__module__).partition(".")[0] for function in functions.values())}

    def by_name(module: str | None) -> bool:
        own = (module or "").partition(".")[0] in followed
        return is_shipped(module) or (not own and _is_installed(module))

    content = content_of(functions, written, by_name)
    hashes = {name: content.parts[name][:_DIGITS] for name in sorted(content.parts)}
    return hashes | dict.fromkeys(sorted(content.unknown), UNKNOWN)


def _is_installed(module: str | None) -> bool:
    """Return whether a module is one of an installed package, and not a file of the user's."""
    file = getattr(sys.modules.get(module or ""), "__file__", None)
    folders = {sysconfig.get_path(name) for name in ("purelib", "platlib")}
    return file is not None and any(file.startswith(str(folder)) for folder in folders)


def _is_empty(value: Any) -> bool:
    return value is None or (isinstance(value, Mapping | tuple | list) and not value) or value == 0


def _as_data(value: Any) -> Any:
    """Return what is declared, with the same numbers written in the same way."""
    if isinstance(value, Mapping):
        return [(name, _as_data(item)) for name, item in value.items()]
    if isinstance(value, str) or value is None:
        return value
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return _as_data(dataclasses.asdict(value))
    return [_as_data(item) for item in value] if isinstance(value, list | tuple) else float(value)


_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_Key = tuple[str, int]
_Codes = dict[_Key, list[types.CodeType]]
_Nodes = dict[_Key, list[ast.AST]]


def written(function: types.FunctionType) -> Any:
    """Return the syntax of a function, without names of types, docstrings, comments and formatting.

    It is read from the function's file, and taken only if it compiles to the very code of the function: the
    file may have been edited since it was imported. Otherwise the result is None.
    """
    code = function.__code__
    linecache.checkcache(code.co_filename)
    codes, nodes = _parsed("".join(linecache.getlines(code.co_filename, function.__globals__)))
    key = (code.co_name, code.co_firstlineno)
    if code not in codes.get(key, ()):
        return None
    return [_syntax(node) for node in nodes[key]]  # several lambdas may be on a line


@functools.lru_cache(maxsize=64)
def _parsed(text: str) -> tuple[_Codes, _Nodes]:
    """Return the compiled functions of a file and their syntax, by name and first line."""
    codes: _Codes = {}
    nodes: _Nodes = {}
    try:
        tree = ast.parse(text)
        waiting = [compile(text, "", "exec", dont_inherit=True)]
    except (SyntaxError, ValueError):  # it was read while it was being written, or is no Python
        return codes, nodes
    for node in ast.walk(tree):
        if isinstance(node, _FUNCTIONS):
            lines = [node.lineno, *(decorator.lineno for decorator in getattr(node, "decorator_list", ()))]
            nodes.setdefault((getattr(node, "name", "<lambda>"), min(lines)), []).append(node)
    while waiting:
        code = waiting.pop()
        codes.setdefault((code.co_name, code.co_firstlineno), []).append(code)
        waiting += [constant for constant in code.co_consts if isinstance(constant, types.CodeType)]
    return codes, nodes


def _syntax(node: ast.AST) -> Any:
    """Return a function's parameters and statements; values of defaults are followed as values."""
    assert isinstance(node, _FUNCTIONS)
    parameters = node.args
    lists: list[Any] = [
        parameters.posonlyargs,
        parameters.args,
        [parameters.vararg],
        parameters.kwonlyargs,
        [parameters.kwarg],
    ]
    names = [[parameter.arg for parameter in arguments if parameter is not None] for arguments in lists]
    body: list[Any] = [node.body] if isinstance(node, ast.Lambda) else node.body
    return (names, [_dumped(statement) for statement in body if not _is_text(statement)])


def _is_text(node: ast.AST) -> bool:
    """Return whether a statement is a docstring, or a text in its place."""
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def _dumped(node: Any) -> Any:
    """Return a tree of syntax without what is empty, which versions of Python write differently."""
    if isinstance(node, list):
        return [_dumped(item) for item in node if not _is_text(item)]
    if isinstance(node, ast.Constant):
        return ("Constant", type(node.value).__name__, repr(node.value))
    if not isinstance(node, ast.AST):
        return repr(node)
    skipped = ("ctx", "type_comment", "annotation", "returns")
    fields = [(name, value) for name, value in ast.iter_fields(node) if name not in skipped]
    return (type(node).__name__, [(name, _dumped(v)) for name, v in fields if v is not None and v != []])
