"""Input and output of the commands: numbers, and reports as text for people or JSON for programs."""

from __future__ import annotations

import csv
import math
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from spaql.languages import on_terminal

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


def numbers(ctx: click.Context, param: click.Parameter, value: str | None) -> list[float] | None:
    """Return numbers separated by commas, as an option's callback."""
    return None if value is None else read_numbers(value)


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
        return numbers(ctx, param, value)
    parts = (named(part, "error=0.5,integral=2") for part in value.split(","))
    return {name: read_number(number) for name, number in parts}


def named(text: str, example: str) -> tuple[str, str]:
    """Return the name and the value of NAME=VALUE."""
    name, _, value = text.rpartition("=")
    if not (name.strip() and value.strip()):
        raise click.BadParameter(f"write a name and its value, such as {example}, instead of {text!r}")
    return name.strip(), value.strip()


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
        raise click.BadParameter("separate numbers by commas, such as 0,0,0.5") from error


def plain(value: float) -> Any:
    """Return a whole number as an int, any other as a float."""
    return int(value) if float(value).is_integer() else float(value)
