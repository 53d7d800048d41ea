"""Options from the signature and docstring of what a command calls, read without importing it."""

from __future__ import annotations

import ast
import functools
import pkgutil
import re
from collections.abc import Callable, Iterator
from typing import Any

import click

from spaql.cli.arguments import Choice
from spaql.cli.report import PATH, names, numbers, pairs, ranges

_KINDS: dict[str, dict[str, Any]] = {
    "int": {"type": int, "metavar": "N"},
    "float": {"type": float, "metavar": "X"},
    "str": {"metavar": "TEXT"},
    "bool": {"is_flag": True},
    "PathLike": {"type": PATH, "metavar": "FILE"},
    "Sequence[float]": {"type": str, "metavar": "X,Y,...", "callback": numbers},
    "Sequence[str]": {"metavar": "NAME,...", "callback": names},
    "Mapping[str, str]": {"metavar": "NAME=NAME", "multiple": True, "callback": pairs},
    "Iterable[ConstraintLike]": {"metavar": "EXPR", "multiple": True},
    "Box": {"metavar": "NAME=LOW,HIGH", "multiple": True, "callback": ranges},
}
"""How an option reads its value, by the annotation of the parameter."""
_Parameter = tuple[str, ast.expr | None, ast.expr | None]
"""A name, an annotation and a default."""


def options_of(source: str, *parameters: str, **renamed: str) -> Callable[[Any], Any]:
    """Return a decorator that adds an option for each of these parameters of a function or of settings.

    `source` is FILE:NAME. Types, defaults and the first sentence of each description are those of the source.
    Options with names of their own are given by keyword. The command receives the values by the names of the
    parameters.
    """
    known = _options(source)

    def decorate(command: Any) -> Any:
        for option, name in reversed((dict(zip(parameters, parameters, strict=True)) | renamed).items()):
            click.option(f"--{option.replace('_', '-')}", name, **known[name])(command)
        return command

    return decorate


@functools.cache
def _options(source: str) -> dict[str, dict[str, Any]]:
    """Return the arguments of `click.option` for each parameter."""
    file, _, name = source.partition(":")
    code = pkgutil.get_data("spaql", file)
    assert code is not None
    found = next(node for node in ast.parse(code).body if getattr(node, "name", None) == name)
    assert isinstance(found, ast.FunctionDef | ast.ClassDef)
    texts = _descriptions(ast.get_docstring(found) or "")
    options = {}
    for name, annotation, default in _parameters(found):
        if isinstance(default, ast.Call) and len(default.args) == 2:  # setting(default, help)
            texts[name] = ast.literal_eval(default.args[1])
            default = default.args[0]
        options[name] = _option(ast.unparse(annotation or ast.Constant("")), default, texts.get(name, ""))
    return options


def _parameters(found: ast.FunctionDef | ast.ClassDef) -> Iterator[_Parameter]:
    """Return the parameters of a function, or the fields of a class."""
    if isinstance(found, ast.ClassDef):
        for item in found.body:
            if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name):
                yield item.target.id, item.annotation, item.value
        return
    arguments = found.args
    positional = [None] * (len(arguments.args) - len(arguments.defaults)) + [*arguments.defaults]
    for argument, default in zip(
        arguments.args + arguments.kwonlyargs, positional + arguments.kw_defaults, strict=True
    ):
        yield argument.arg, argument.annotation, default


def _option(annotation: str, default: ast.expr | None, text: str) -> dict[str, Any]:
    """Return the arguments of `click.option` for a parameter; without a default, the option is required."""
    kinds = sorted(annotation.split(" | "), key=len)
    kind = next((_KINDS[kind] for kind in reversed(kinds) if kind in _KINDS), {})
    if annotation.startswith("Literal["):
        kind = {"type": Choice(ast.literal_eval(annotation.removeprefix("Literal")))}
    if kind.get("multiple"):
        return {**kind, "help": f"{text}; may be repeated"}
    value = None if default is None else ast.literal_eval(default)
    return {**kind, "help": text, "default": value, "required": default is None}


def _descriptions(docstring: str) -> dict[str, str]:
    """Return the first sentence on each parameter in a docstring, as the text of an option."""
    section = docstring.partition("Parameters\n----------\n")[2].partition("\n\n")[0]
    texts = {}
    for entry in re.split(r"\n(?=\S)", section):
        name, _, lines = entry.partition("\n")
        text = " ".join(lines.split()).split(". ")[0].removesuffix(".").replace("`", "")
        texts[name] = text if text[1:2].isupper() else text[:1].lower() + text[1:]
    return texts
