"""Colours of actions."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

# Okabe and Ito's, those that differ most in lightness first.
_LIST = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442")
_PALEST = 0.15
"""Share of its colour that an action keeps if it is barely the most frequent one."""


def choice_colours(n: int) -> NDArray[np.float64]:
    """Return a colour for each discrete action: rows of red, green and blue from 0 to 1."""
    from matplotlib import colormaps
    from matplotlib.colors import to_rgb

    if n <= len(_LIST):
        return np.array([to_rgb(colour) for colour in _LIST[:n]])
    return np.asarray(colormaps["viridis"](np.linspace(0.0, 1.0, n)))[:, :3]


def number_map(low: float, high: float) -> str:
    """Return the name of the colour map of a number: a diverging one if the number has both signs."""
    return "PuOr" if low < 0.0 < high else "viridis"


def number_colours(values: NDArray[np.float64], low: float, high: float) -> NDArray[np.float64]:
    """Return a colour for each number of a range."""
    from matplotlib import colormaps

    place = (values - low) / (high - low)
    return np.asarray(colormaps[number_map(low, high)](place))[..., :3]


def paler(colours: NDArray[np.float64], share: NDArray[np.float64], n: int) -> NDArray[np.float64]:
    """Blend the colours of the most frequent of n actions with white, the more the smaller their share."""
    least = 1.0 / n
    kept = _PALEST + (1.0 - _PALEST) * np.clip((share - least) / max(1.0 - least, 1e-9), 0.0, 1.0)
    return 1.0 - kept[..., None] * (1.0 - colours)


def ink(colour: NDArray[np.float64]) -> str:
    """Return the colour of text that is readable on a background."""
    return "black" if float(colour @ [0.299, 0.587, 0.114]) > 0.5 else "white"
