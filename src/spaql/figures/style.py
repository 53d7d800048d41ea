"""The style of all figures: names, colours, markers, number formats, labels at the end of lines."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spaql.errors import MissingExtraError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.image import AxesImage
    from matplotlib.ticker import Formatter


NAMES: Mapping[str, str] = MappingProxyType(
    {
        "aql": "AQL",
        "spaql": "SPAQL",
        "spaql-ts": "SPAQL-TS",
        "plantree": "PlanTree",
        "treesearch": "TreeSearch",
        "classical": "Textbook",
        "sac": "SAC",
        "tqc": "TQC",
        "td3": "TD3",
        "dqn": "DQN",
        "qr-dqn": "QR-DQN",
        "ppo": "PPO",
        "trpo": "TRPO",
        "ars": "ARS",
        "random": "Random",
        "random-published": "Random, torque in [0, 2] Nm",
        "pendulum": "Pendulum",
        "pendulum-scaled": "Pendulum, rewards scaled",
        "pendulum5": "Pendulum, 5 torques",
        "cartpole200": "CartPole, 200 steps",
    }
)


WIDTH = 8.0
"""Inches: a column of a web page, in which text of 10 points stays readable."""
GREY = "#666666"

# Okabe and Ito's colours, which are distinct with any kind of colour vision.
COLOURS = MappingProxyType(
    {
        "random": GREY,
        "aql": "#0072B2",
        "spaql": "#D55E00",
        "spaql-ts": "#009E73",
        "trpo": "#CC79A7",
        "plantree": "black",
        "classical": GREY,
        "sac": "#0072B2",
        "tqc": "#56B4E9",
        "td3": "#E69F00",
        "dqn": "#0072B2",
        "qr-dqn": "#56B4E9",
        "ppo": "#E69F00",
        "ars": "#6B4C9A",
    }
)
MARKERS = MappingProxyType(
    {
        "aql": "s",
        "spaql": "o",
        "spaql-ts": "^",
        "trpo": "D",
        "plantree": "o",
        "sac": "s",
        "tqc": "v",
        "td3": "P",
        "dqn": "s",
        "qr-dqn": "v",
        "ppo": "P",
        "ars": "X",
    }
)

_STYLE: dict[Any, Any] = {
    "axes.axisbelow": True,
    "axes.edgecolor": "#999999",
    "axes.grid": True,
    "axes.grid.axis": "y",
    "axes.labelsize": 10,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 10,
    "figure.titlesize": 12,
    "font.sans-serif": ["DejaVu Sans", "Verdana", "Arial"],  # the first is drawn; a browser uses any
    "font.size": 10,
    "grid.color": "#e6e6e6",
    "legend.frameon": False,
    "lines.linewidth": 1.5,
    "svg.fonttype": "none",
    "svg.hashsalt": "spaql",
    "xtick.color": "#999999",
    "xtick.labelcolor": "black",
    "xtick.labelsize": 9,
    "ytick.color": "#999999",
    "ytick.labelcolor": "black",
    "ytick.labelsize": 9,
}


@contextmanager
def styled() -> Iterator[None]:
    """Draw and save in one style, whatever the user's own settings are."""
    try:
        import matplotlib
    except ImportError as error:
        raise MissingExtraError("Figures need matplotlib: pip install 'spaql[plot]'.") from error
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_STYLE)
        yield


def new_figure(title: str, note: str, height: float, width: float = WIDTH) -> Figure:
    """Return an empty figure with a title above and a note below."""
    from matplotlib.figure import Figure

    figure = Figure((width, height), layout="constrained")
    figure.suptitle(title, x=0.01, ha="left", fontweight="bold")
    figure.supxlabel(note, x=0.01, ha="left", fontsize=8.5, color=GREY)
    return figure


def name_of(algorithm: str) -> str:
    """Return the display name of an algorithm or a problem."""
    return NAMES.get(algorithm, algorithm)


def distinct_colours(algorithms: Sequence[str]) -> list[str]:
    """Return a colour for each of the algorithms, their own unless an earlier one has it.

    Up to eight are different; then colours come again.

    Examples
    --------
    >>> distinct_colours(["aql", "sac", "spaql"])
    ['#0072B2', '#009E73', '#D55E00']
    """
    own = [COLOURS.get(algorithm) for algorithm in algorithms]
    palette = [colour for colour in dict.fromkeys(COLOURS.values()) if colour != GREY]
    free = itertools.chain([colour for colour in palette if colour not in own], itertools.cycle(palette))
    chosen: list[str] = []
    for colour in own:
        chosen.append(next(free) if colour is None or colour in chosen else colour)
    return chosen


def count(value: float, _: Any = None) -> str:
    """Return a count in short form.

    Examples
    --------
    >>> [count(value) for value in (0, 850, 1290, 40_000, 195_033, 8_400_000)]
    ['0', '850', '1.3k', '40k', '195k', '8.4M']
    """
    for unit, suffix in ((1e6, "M"), (1e3, "k")):
        if abs(value) >= unit:
            short = value / unit
            return f"{short:.1f}".removesuffix(".0") + suffix if short < 10 else f"{short:.0f}{suffix}"
    return f"{value:.0f}"


def number(value: float, _: Any = None) -> str:
    """Return a whole number with separated thousands and a true minus sign.

    Examples
    --------
    >>> number(-1225.3)
    '−1,225'
    """
    return f"{value:,.0f}".replace("-", "−")


def number_ticks() -> Formatter:
    """Return a formatter of ticks like `number`, with as many decimals as they need to differ."""
    from matplotlib.ticker import Formatter

    class NumberFormatter(Formatter):
        def __call__(self, x: float, pos: int | None = None) -> str:
            return number(x)

        def format_ticks(self, values: Sequence[float]) -> list[str]:
            step = min(np.diff(np.unique(values)), default=1.0)
            exact = (d for d in range(10) if np.allclose(np.round(values, d), values, 0, 1e-3 * step))
            decimals = next(exact, 10)
            return [f"{x:,.{decimals}f}".replace("-", "−") for x in values]

    return NumberFormatter()


def short_number(value: float) -> str:
    """Return a number as `number` does, with two decimals below 10.

    Examples
    --------
    >>> short_number(-1225.3), short_number(-0.254)
    ('−1,225', '−0.25')
    """
    return number(value) if abs(value) >= 10 else f"{value:.2f}".replace("-", "−")


def algorithm_label(height: float, text: str, algorithm: str) -> tuple[float, str, str]:
    """Return the label of an algorithm for `label_ends`."""
    return height, f"{name_of(algorithm)}  {text}", COLOURS[algorithm]


def label_ends(ax: Axes, labels: Sequence[tuple[float, str, str]], inches: float) -> None:
    """Write labels right of the axes, each at its height, but apart from each other.

    Each label is a height, in the units of the data, a text, and its colour. The axes are about so many
    inches high, and their limits must be final.
    """
    gap = 0.18 / inches
    ordered = sorted(labels)
    to_axes = ax.transScale + ax.transLimits
    heights = [float(to_axes.transform((1.0, y))[1]) for y, _, _ in ordered]
    for (_, text, colour), height in zip(ordered, _apart(heights, gap), strict=True):
        ax.text(
            1.02,
            height,
            text,
            color=colour,
            transform=ax.transAxes,
            va="center",
            fontsize=9,
        )


def _apart(heights: Sequence[float], gap: float) -> list[float]:
    """Return sorted heights moved as little as needed to be a gap apart, neighbours by equal parts."""
    moved = list(heights)
    for _ in range(200):
        for low in range(len(moved) - 1):
            overlap = gap - (moved[low + 1] - moved[low])
            if overlap > 0:
                moved[low] -= overlap / 2
                moved[low + 1] += overlap / 2
    return moved


def draw_grid(
    ax: Axes, values: ArrayLike, x: tuple[float, float], y: tuple[float, float], **colours: Any
) -> AxesImage:
    """Draw the number of each place of a grid, row by row from the lowest y, instead of grid lines."""
    ax.grid(visible=False)
    ax.set(xlim=x, ylim=y)
    options: dict[str, Any] = {"interpolation": "nearest", **colours}
    return ax.imshow(values, extent=(*x, *y), origin="lower", aspect="auto", **options)


def mark_quarter_turns(ax: Axes) -> None:
    """Mark an angle in quarters of a turn, if the x axis is a whole turn."""
    if ax.get_xlim() == (-math.pi, math.pi):
        quarters = [-math.pi, -math.pi / 2, 0.0, math.pi / 2, math.pi]
        ax.set_xticks(quarters, ["−π", "−π/2", "0", "π/2", "π"])


def multiples_of_pi(value: float, _: Any = None) -> str:
    """Return an angle in multiples of pi.

    Examples
    --------
    >>> [multiples_of_pi(k * math.pi) for k in (-2, -1, 0, 1)]
    ['−2π', '−π', '0', 'π']
    """
    k = round(value / math.pi)
    return {0: "0", 1: "π", -1: "−π"}.get(k, f"{k}π".replace("-", "−"))


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
