"""Numbers as people read them."""

from collections.abc import Iterable

_PLURALS = {"leaf": "leaves"}
"""Of those that do not just take an s."""


def counted(count: float, one: str, digits: int = 0) -> str:
    """Say how many there are of something, of which the name of one is given.

    Examples
    --------
    >>> counted(1, "leaf"), counted(1307, "arm"), counted(1.5, "leaf", digits=1)
    ('1 leaf', '1,307 arms', '1.5 leaves')
    """
    word = one if count == 1 else _PLURALS.get(one, f"{one}s")
    return f"{count:,.{digits}f} {word}"


def short(state: Iterable[float]) -> str:
    """Write the numbers of a state with four digits each.

    Examples
    --------
    >>> short([0.99971, -2.0, 0.00012345])
    '[0.9997, -2, 0.0001234]'
    """
    return f"[{', '.join(f'{x:.4g}' for x in state)}]"
