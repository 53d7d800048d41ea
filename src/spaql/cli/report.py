"""Numbers as the commands print them."""

from typing import Any


def shown_return(mean: float, ci95: float) -> str:
    """Show a mean return with its 95 % interval."""
    return f"{mean:.1f} ± {ci95:.1f}"


def plain(value: float) -> Any:
    """Show a whole number as one."""
    return int(value) if float(value).is_integer() else float(value)
