"""Input and output of the commands: numbers, and reports as text for people or JSON for programs."""

from __future__ import annotations

import csv
import math
import os
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from spaql.languages import on_terminal
from spaql.tables import aligned

_WIDEST = 1_000_000
"""The width of an output that is no terminal."""
PATH = click.Path(path_type=Path)
"""The type of an argument or option that is a path."""


@dataclass(frozen=True)
class Report:
    """The result of a command, as data for programs and as text for people.

    Parts that take time to compute are given as functions, called only if needed.
    """

    data: Any
    text: str | Callable[[], str]
    code: int = 0
    """Exit code: 1 if faults were found."""


def say(text: str, *, nl: bool = True, err: bool = False) -> None:
    """Print text without the control sequences that names may contain."""
    click.echo(on_terminal(text), nl=nl, err=err)


def fitted(cells: Sequence[Mapping[str, str]]) -> str:
    """Return a table that fits the terminal, if there is one."""
    return aligned(cells, shutil.get_terminal_size((_WIDEST, 0)).columns)


def wrapped(text: str) -> str:
    """Return a text in lines that fit the terminal, of at most 100 characters."""
    return textwrap.fill(text, min(100, shutil.get_terminal_size((_WIDEST, 0)).columns))


@contextmanager
def others_on_stderr() -> Iterator[None]:
    """Redirect stdout of environments, compilers and workers to stderr."""
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)


def without_infinities(data: Any) -> Any:
    """Return the data with None for infinities and NaN, which JSON does not have."""
    if isinstance(data, dict):
        return {key: without_infinities(value) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [without_infinities(value) for value in data]
    return None if isinstance(data, float) and not math.isfinite(data) else data


def numbers(ctx: click.Context, param: click.Parameter, value: Any) -> Any:
    """Return numbers separated by commas, or the default, as an option's callback."""
    return read_numbers(value) if isinstance(value, str) else value


def names(ctx: click.Context, param: click.Parameter, value: str | None) -> list[str] | None:
    """Return names separated by commas, as an option's callback; one that contains a comma is quoted."""
    if value is None:
        return None
    try:
        return next(csv.reader([value], skipinitialspace=True, strict=True))
    except (csv.Error, StopIteration) as error:
        raise click.BadParameter('separate names by commas, such as "angle [rad],speed [rad/s]"') from error


def numbers_or_names(
    ctx: click.Context, param: click.Parameter, value: str | None
) -> list[float] | dict[str, float] | None:
    """Return numbers, or numbers by name, as in error=0.5,integral=2, as an option's callback."""
    if value is None or "=" not in value:
        return None if value is None else read_numbers(value)
    parts = (named(part, "error=0.5,integral=2") for part in value.split(","))
    return {name: read_number(number) for name, number in parts}


def named(text: str, example: str) -> tuple[str, str]:
    """Return the name and the value of NAME=VALUE."""
    name, _, value = text.rpartition("=")
    if not (name.strip() and value.strip()):
        raise click.BadParameter(f"write a name and its value, such as {example}, instead of {text!r}")
    return name.strip(), value.strip()


def pairs(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    """Return names by name, as in speed=target, as an option's callback."""
    return dict(named(value, "speed=target") for value in values)


def ranges(
    ctx: click.Context, param: click.Parameter, values: tuple[str, ...]
) -> dict[str, tuple[float, float]]:
    """Return ranges by name, as in speed=-2,2, as an option's callback."""
    found = {}
    for value in values:
        name, ends = named(value, '"speed [rad/s]=-2,2"')
        found[name] = read_range(ends)
    return found


def read_range(value: str) -> tuple[float, float]:
    """Return a lower and an upper bound."""
    bounds = read_numbers(value)
    if len(bounds) != 2 or not bounds[0] <= bounds[1]:
        raise click.BadParameter(f"{value!r} is not a range: write a lower and an upper bound, such as -2,2")
    return bounds[0], bounds[1]


def read_number(value: str) -> float:
    """Return a single number."""
    try:
        return float(value)
    except ValueError as error:
        raise click.BadParameter(f"{value!r} is not a number") from error


def read_numbers(value: str) -> list[float]:
    """Return numbers separated by commas."""
    try:
        return [float(x) for x in value.split(",")]
    except ValueError as error:
        raise click.BadParameter(f"{value!r} is no list of numbers, such as 0,0,0.5") from error


def plain(value: float) -> Any:
    """Return a whole number as an int, any other as a float."""
    return int(value) if float(value).is_integer() else float(value)
