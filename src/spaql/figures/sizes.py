"""The return of small rule trees."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from spaql.errors import SettingError
from spaql.evaluation import SizedTree
from spaql.figures.drawing import register
from spaql.figures.style import COLOURS, GREY, new_figure, number, number_ticks
from spaql.formatting import counted

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_BLUE = COLOURS["aql"]
_RED = COLOURS["spaql"]
_NEAR = 1.3
"""Ratio of leaves of two trees below which there is no room for two labels side by side."""


@dataclass(frozen=True)
class SizesRecord:
    """The data of a figure of sizes: the tuples have an entry per tree, the exact one last."""

    title: str
    note: str
    leaves: tuple[int, ...]
    mean: tuple[float, ...]
    """Return of fresh episodes."""
    ci95: tuple[float, ...]
    agreement: tuple[float, ...]
    wanted: float | None


def compute_sizes(
    curve: Sequence[SizedTree], *, title: str = "How small can it be?", wanted: float | None = None
) -> SizesRecord:
    """Return the record of a `spaql.evaluation.size_curve`; `wanted` is a return to be marked.

    Examples
    --------
    >>> import spaql
    >>> from spaql.evaluation import size_curve
    >>> agent = spaql.SPAQLTS("cartpole200", scaling=20, rollouts=20, seed=1)
    >>> agent = agent.learn(iterations=100, progress_bar=False)
    >>> compute_sizes(size_curve(agent, episodes=20, rounds=1)).leaves[0]
    2
    """
    if not curve:
        raise SettingError("There is no tree to show: give what spaql.evaluation.size_curve returns.")
    episodes = len(curve[0].evaluation.returns)
    return SizesRecord(
        title,
        f"Mean return of {episodes} fresh episodes of each tree, with its 95 % interval.\n"
        "Per cent: states of the exact tree in which the same action is given.",
        tuple(sized.tree.n_leaves for sized in curve),
        tuple(sized.evaluation.mean for sized in curve),
        tuple(sized.evaluation.ci95 for sized in curve),
        tuple(sized.agreement for sized in curve),
        wanted,
    )


def draw_sizes(record: SizesRecord) -> Figure:
    """Draw the return against the leaves."""
    figure = new_figure(record.title, record.note, 4.4, width=7.2)
    ax = figure.subplots()
    ax.plot(record.leaves, record.mean, color=_BLUE, linewidth=0.8, alpha=0.5)
    smaller = slice(None, -1)
    exact = slice(-1, None)
    for part, colour, marker in ((smaller, _BLUE, "o"), (exact, _RED, "D")):
        ax.errorbar(
            record.leaves[part],
            record.mean[part],
            record.ci95[part],
            color=colour,
            fmt=marker,
            markersize=5.5,
            linewidth=1.2,
        )
    _label(ax, record)
    ax.set_xscale("log")
    ax.set(xlabel="leaves (log)", ylabel="return")
    ax.minorticks_off()
    ax.set_xticks(*_ticks(record.leaves))
    ax.set_xlim(record.leaves[0] / 1.3, record.leaves[-1] * 1.5)
    ax.yaxis.set_major_formatter(number_ticks())
    if record.wanted is not None:
        ax.axhline(record.wanted, color=GREY, linestyle="--", linewidth=1.0, zorder=1)
        ax.text(
            1.01, record.wanted, f"wanted {number(record.wanted)}", color=GREY, va="center", fontsize=9,
            transform=ax.get_yaxis_transform(),
        )  # fmt: skip
    return figure


def _label(ax: Axes, record: SizesRecord) -> None:
    """Write the agreement below each tree, or above it next to another, and which is the exact one."""
    places = zip(record.leaves, record.mean, record.ci95, record.agreement, strict=True)
    before = 0
    above = False
    for i, (leaves, mean, half, agreement) in enumerate(places):
        last = i == len(record.leaves) - 1
        above = leaves < _NEAR * before and not above
        before = leaves
        half = 0.0 if math.isnan(half) else half
        ax.annotate(
            f"exact\n{counted(leaves, 'leaf')}" if last else f"{100 * agreement:.0f} %",
            (leaves, mean + half if above else mean - half),
            (0, 5 if above else -5),
            textcoords="offset points",
            ha="center",
            va="bottom" if above else "top",
            fontsize=8,
            color=_RED if last else _BLUE,
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.8},
        )
    ax.margins(y=0.2)


def _ticks(leaves: Sequence[int]) -> tuple[list[int], list[str]]:
    """Return the ticks and labels of the sizes that have room."""
    kept: list[int] = []
    for n in reversed(leaves):
        if not kept or kept[-1] / n > 1.12:
            kept.append(n)
    return kept, [f"{n:,}" for n in kept]


register("sizes", SizesRecord, draw_sizes)
