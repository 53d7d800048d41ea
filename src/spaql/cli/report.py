"""Numbers as the commands read and print them."""

from typing import Any

import click


def numbers(ctx: click.Context, param: click.Parameter, value: str | None) -> list[float] | None:
    """Read numbers with commas between them, as an option's callback."""
    return None if value is None else read_numbers(value)


def read_numbers(value: str) -> list[float]:
    """Read numbers with commas between them."""
    try:
        return [float(x) for x in value.split(",")]
    except ValueError as error:
        raise click.BadParameter("write numbers with commas between them, such as 0,0,0.5") from error


def shown_return(mean: float, ci95: float) -> str:
    """Show a mean return with its 95 % interval."""
    return f"{mean:.1f} ± {ci95:.1f}"


def plain(value: float) -> Any:
    """Show a whole number as one."""
    return int(value) if float(value).is_integer() else float(value)
