"""Balls, coverings and domains (the figures of the paper's appendix)."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from spaql.figures.drawing import register
from spaql.figures.style import WIDTH, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_COLOURS = ("#F0E442", "#56B4E9", "#D55E00")
"""Of the balls of each depth: yellow, blue and red as in the paper, but Okabe and Ito's."""
_EDGES = ("#9a8f00", "#0072B2", "#8f3f00")
_OPACITY = {"solid": 1.0, "faint": 0.4, "white": 1.0, "none": 0.0}


@dataclass(frozen=True)
class Ball:
    """A ball in the plane."""

    x: float
    y: float
    radius: float
    depth: int
    """The number of splits from the first ball."""
    fill: str
    """`solid`, `faint`, `white` (without outline), or `none` (the outline alone)."""
    label: str = ""


@dataclass(frozen=True)
class DomainsPanel:
    """Balls in the order in which they are painted."""

    title: str
    balls: tuple[Ball, ...]


@dataclass(frozen=True)
class DomainsRecord:
    """The data of a figure of the appendix."""

    title: str
    note: str
    metric: str
    """`euclidean`, where a ball is round, or `infinity`, where it is a square."""
    panels: tuple[DomainsPanel, ...]


def covering() -> DomainsRecord:
    """Return the first ball, and a covering of it by balls of half its radius."""
    first = Ball(0.0, 0.0, 1.0, 0, "faint")
    return DomainsRecord(
        "A ball and its covering",
        "Under the Euclidean metric a ball is a disc, and seven discs of half its radius cover it.\n"
        "Once it is covered, its domain, the points in no smaller ball, is empty.",
        "euclidean",
        (
            DomainsPanel("the first ball", (replace(first, fill="solid", label="dom(B) = B"),)),
            DomainsPanel("covered by balls of half the radius: dom(B) = ∅", (first, *_discs(first, "faint"))),
        ),
    )


def neighbours() -> DomainsRecord:
    """Return the covering of one ball of a covering, and the domains of its neighbours."""
    blue = _discs(Ball(0.0, 0.0, 1.0, 0, "none"), "faint")
    split = blue[1]
    others = (blue[0], *blue[2:])
    return DomainsRecord(
        "The domains of neighbouring balls",
        "Red discs of half the radius cover the rightmost blue one, whose domain is empty from then on.\n"
        "The domain of a blue disc beside it is what no red disc covers.",
        "euclidean",
        (
            DomainsPanel("the rightmost ball is covered", (*others, *_discs(split, "faint"))),
            DomainsPanel(
                "what is left to the others: their domains",
                (
                    *(replace(ball, fill="solid") for ball in others),
                    *(replace(ball, fill="none") for ball in others),
                    *_discs(split, "white"),
                    *_discs(split, "none"),
                ),
            ),
        ),
    )


def cubes() -> DomainsRecord:
    """Return balls under the infinity metric, whose children tile them."""
    first = Ball(0.0, 0.0, 1.0, 0, "solid", "B")
    once = _squares(first)
    return DomainsRecord(
        "Balls that tile",
        "Under the infinity metric a ball is a square, and four of half its radius tile it.\n"
        "So the domain of a ball is the whole ball until it is split, and empty afterwards.",
        "infinity",
        (
            DomainsPanel("the first ball", (first,)),
            DomainsPanel("split once", once),
            DomainsPanel("and one of them again", (*once[:3], *_squares(once[3]))),
        ),
    )


def _discs(ball: Ball, fill: str) -> tuple[Ball, ...]:
    """Cover a disc by seven of half its radius: one in the middle, and one over each sixth of the rim."""
    half = ball.radius / 2
    far = ball.radius * math.sqrt(3) / 2
    around = [(far * math.cos(k * math.pi / 3), far * math.sin(k * math.pi / 3)) for k in range(6)]
    return tuple(Ball(ball.x + x, ball.y + y, half, ball.depth + 1, fill) for x, y in [(0.0, 0.0), *around])


def _squares(ball: Ball) -> tuple[Ball, ...]:
    """Cover a square by four of half its radius, side by side."""
    half = ball.radius / 2
    corners = [(x, y) for y in (-half, half) for x in (-half, half)]
    return tuple(
        Ball(ball.x + x, ball.y + y, half, ball.depth + 1, "solid", f"{ball.label}{'₁₂₃₄'[k]}")
        for k, (x, y) in enumerate(corners)
    )


def draw_domains(record: DomainsRecord) -> Figure:
    """Draw the panels side by side, at one scale."""
    n = len(record.panels)
    balls = [ball for panel in record.panels for ball in panel.balls]
    width = 1.02 * max(abs(ball.x) + ball.radius for ball in balls)
    height = 1.02 * max(abs(ball.y) + ball.radius for ball in balls)
    figure = new_figure(record.title, record.note, 1.0 + WIDTH / n * height / width)
    for ax, panel in zip(figure.subplots(1, n, squeeze=False)[0], record.panels, strict=True):
        for ball in panel.balls:
            _draw_ball(ax, ball, round=record.metric == "euclidean")
        ax.set(title=panel.title, xlim=(-width, width), ylim=(-height, height), aspect="equal")
        ax.axis("off")
    return figure


def _draw_ball(ax: Axes, ball: Ball, *, round: bool) -> None:
    from matplotlib.colors import to_rgba
    from matplotlib.patches import Circle, Patch, Rectangle

    r = ball.radius
    face = to_rgba("white" if ball.fill == "white" else _COLOURS[ball.depth], _OPACITY[ball.fill])
    edge = "none" if ball.fill == "white" else _EDGES[ball.depth]
    shape: Patch
    if round:
        shape = Circle((ball.x, ball.y), r, facecolor=face, edgecolor=edge)
    else:
        shape = Rectangle((ball.x - r, ball.y - r), 2 * r, 2 * r, facecolor=face, edgecolor=edge)
    ax.add_patch(shape)
    ax.text(ball.x, ball.y, ball.label, ha="center", va="center", fontsize=10)


register("domains", DomainsRecord, draw_domains)
