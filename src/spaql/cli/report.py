"""Numbers as the commands print them."""

from typing import Any

import click


def shown_return(mean: float, ci95: float) -> str:
    """Show a mean return with its 95 % interval."""
    return f"{mean:.1f} ± {ci95:.1f}"


def plain(value: float) -> Any:
    """Show a whole number as one."""
    return int(value) if float(value).is_integer() else float(value)


def numbers(given: str) -> list[float]:
    """Read numbers with commas between them."""
    try:
        return [float(x) for x in given.split(",")]
    except ValueError:
        raise click.UsageError(
            f"{given!r} are no numbers with commas between them, such as 0,0.5,-1."
        ) from None
