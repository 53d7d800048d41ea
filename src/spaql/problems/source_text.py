"""The text of functions as Python parses it: the same for every version of Python and way of formatting."""

from __future__ import annotations

import ast
import functools
import linecache
import types
from typing import Any

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
