"""The tree of a controller as a drawing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from spaql.controllers import Controller
from spaql.controllers.controller import VELOCITY
from spaql.controllers.text import leaf_text
from spaql.controllers.wording import number_text, sum_text
from spaql.errors import SettingError
from spaql.figures.drawing import register
from spaql.figures.style import GREY, choice_colours, ink, new_figure, number_colours
from spaql.formatting import counted
from spaql.kernels.controller import HIGH, LOW
from spaql.spaces import split_unit

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_LEAVES = 64
_SIZE = 8.5
"""Of text, in points."""
_ROW = 0.32
"""Inches from a leaf to the next."""
_GAP = 0.55
"""Inches from a question to its answers."""
_PAD = 0.06
"""Inches around text."""
_WIDEST = 1600 / 96
"""Inches of a drawing, at most: 1,600 pixels of a browser."""
_INDENT = 0.4
"""Inches by which an answer is indented in an outline."""
_WIDER = 1.1
"""Factor for fonts that are wider than the one text is measured in."""


@dataclass(frozen=True)
class TreeNode:
    """A question, or the action of a leaf."""

    text: str
    depth: int
    row: float
    """Leaves are at 0, 1, 2, ...; a question is half-way between its answers."""
    parent: int
    """Index among the nodes, which come after their parents; -1 for the first."""
    answer: str
    """`yes` or `no` to the parent's question."""
    colour: tuple[float, ...]
    """Of a leaf: red, green and blue from 0 to 1."""


@dataclass(frozen=True)
class TreeRecord:
    """The data of the drawing of a tree."""

    title: str
    note: str
    nodes: tuple[TreeNode, ...]


def compute_tree(tree: Controller, *, title: str = "Rule tree", digits: int = 3) -> TreeRecord:
    """Return the layout of a controller's tree; shared parts are drawn wherever they occur.

    Parameters
    ----------
    tree
        A controller of at most 64 leaves.
    title
        Above it.
    digits
        To which numbers are rounded.

    Examples
    --------
    >>> import spaql
    >>> agent = spaql.SPAQLTS("cartpole200", scaling=20, rollouts=20, seed=1)
    >>> tree = spaql.controller_of(agent.learn(iterations=10, progress_bar=False))
    >>> record = compute_tree(tree)
    >>> len(record.nodes) == 2 * tree.n_leaves - 1
    True
    """
    if tree.n_leaves > MOST_LEAVES:
        raise SettingError(
            f"This tree has {tree.n_leaves:,} leaves, and a drawing takes {MOST_LEAVES} at most: find a "
            "smaller one with `spaql simplify`, or read all of it with `spaql show`."
        )
    size = f"{counted(tree.n_leaves, 'leaf')}, at most {counted(tree.depth, 'question')}"
    note = f"{size}; numbers are rounded to {counted(digits, 'digit')}."
    return TreeRecord(title, note, _nodes(tree, digits))


def _nodes(tree: Controller, digits: int) -> tuple[TreeNode, ...]:
    """Return the nodes with their rows, parents and upper answers first."""
    nodes: list[tuple[int, int, int, str]] = []
    waiting = [(0, 0, -1, "")]
    while waiting:
        node, depth, parent, answer = waiting.pop()
        place = len(nodes)
        nodes.append((node, depth, parent, answer))
        if tree.feature[node] >= 0:
            waiting.append((int(tree.right[node]), depth + 1, place, "no"))
            waiting.append((int(tree.left[node]), depth + 1, place, "yes"))
    rows = np.zeros(len(nodes))
    is_leaf = np.array([tree.feature[node] < 0 for node, *_ in nodes])
    rows[is_leaf] = np.arange(is_leaf.sum())
    for place in range(len(nodes) - 1, 0, -1):
        rows[nodes[place][2]] += rows[place] / 2  # backwards, so that children come before their parent
    return tuple(
        TreeNode(_text(tree, node, digits), depth, float(rows[place]), parent, answer, _colour(tree, node))
        for place, (node, depth, parent, answer) in enumerate(nodes)
    )


def _text(tree: Controller, node: int, digits: int) -> str:
    j = int(tree.feature[node])
    if j < 0:
        return _law(tree, int(tree.leaf[node]), digits)
    if j < tree.dims:
        name, unit = split_unit(tree.inputs[j])
    else:  # in a sum, the weights have units of their own
        short = [split_unit(name)[0] for name in tree.inputs]
        name = sum_text(tree.combinations[j - tree.dims], short, digits)
        unit = ""
    threshold = number_text(float(tree.threshold[node]), digits).replace("-", "−")
    return f"{name}\n< {threshold} {unit}".rstrip()


def _law(tree: Controller, row: int, digits: int) -> str:
    """Return a law as text: one of discrete actions without the units of inputs, in two lines at most."""
    if tree.constant_action(row) is not None or not tree.discrete:
        return leaf_text(tree, row, digits)
    return _two_lines(leaf_text(tree, row, digits, [split_unit(name)[0] for name in tree.inputs]))


def _two_lines(law: str) -> str:
    """Return a switching law in two lines at most: its condition and the other action, or all its scores."""
    if " else " in law:
        return "\nelse ".join(law.rsplit(" else ", 1))
    scores = law.split(", ")
    half = (len(scores) + 1) // 2
    return ",\n".join(", ".join(part) for part in (scores[:half], scores[half:]) if part)


def _colour(tree: Controller, node: int) -> tuple[float, ...]:
    """Return the colour of a leaf's action, or of its first number; laws that vary have the same colour."""
    if tree.feature[node] >= 0:
        return ()
    action = tree.constant_action(int(tree.leaf[node]))
    if action is None or tree.form == VELOCITY:
        colour = np.full(3, 0.9)
    elif tree.discrete:
        colour = choice_colours(len(tree.actions))[int(action[0]) - tree.frame.first]
    else:
        low, high = tree.frame.limit[[LOW, HIGH], 0].tolist()
        colour = number_colours(np.array(action[:1]), low, high)[0]
    return tuple(colour.tolist())


def draw_tree(record: TreeRecord) -> Figure:
    """Draw a tree from left to right: questions, and the answers to them, `yes` above `no`.

    One that would be wider than 1,600 pixels is drawn as an outline: a row for each question and leaf.
    """
    sizes = [_measure(node.text) for node in record.nodes]
    # Leaves of two lines are as high as a row.
    row = _ROW * (1.25 if any(node.colour and "\n" in node.text for node in record.nodes) else 1.0)
    places = [(x, node.row * row) for x, node in zip(_columns(record, sizes), record.nodes, strict=True)]
    outline = _right(places, sizes) + 0.3 > _WIDEST
    if outline:
        row = 1.25 * _ROW
        places = [(_INDENT * node.depth, i * row) for i, node in enumerate(record.nodes)]
    right = _right(places, sizes)
    height = row + max(y for _, y in places)
    width = max(right + 0.3, 5.5)
    scale = min(1.0, _WIDEST / width)
    figure = new_figure(record.title, record.note, scale * height + 0.9, width=scale * width)
    ax = figure.subplots()
    for node, place, size in zip(record.nodes, places, sizes, strict=True):
        if node.parent >= 0:
            x, y = places[node.parent]
            start = (x, y + 0.49 * _ROW) if outline else (x + sizes[node.parent], y)
            _draw_answer(ax, node.answer, start, place, scale)
        _draw_node(ax, node, *place, size, scale)
    ax.set(xlim=(-0.1, max(right + 0.1, 5.3)), ylim=(height - row / 2, -row / 2))
    ax.axis("off")
    return figure


def _columns(record: TreeRecord, sizes: list[float]) -> list[float]:
    """Return where each node begins: behind the widest question of every depth before."""
    left = 0.0
    columns = []
    for depth in range(1 + max(node.depth for node in record.nodes)):
        questions = (i for i, node in enumerate(record.nodes) if node.depth == depth and not node.colour)
        columns.append(left)
        left += max((sizes[i] for i in questions), default=0.0) + _GAP
    return [columns[node.depth] for node in record.nodes]


def _right(places: list[tuple[float, float]], sizes: list[float]) -> float:
    """Return where the last node ends."""
    return max(x + size for (x, _), size in zip(places, sizes, strict=True))


def _measure(text: str) -> float:
    """Return the width of a box around text, in inches."""
    from matplotlib.textpath import TextPath

    points = max(TextPath((0, 0), line, size=_SIZE).get_extents().width for line in text.split("\n"))
    return float(_WIDER * points / 72 + 2 * _PAD)


def _draw_node(ax: Axes, node: TreeNode, x: float, y: float, width: float, scale: float) -> None:
    from matplotlib.patches import FancyBboxPatch

    height = _ROW * (0.98 if "\n" in node.text else 0.72)
    ax.add_patch(
        FancyBboxPatch(
            (x, y - height / 2),
            width,
            height,
            boxstyle="round,pad=0,rounding_size=0.05",
            facecolor=node.colour or "white",
            edgecolor="#bbbbbb" if node.colour else GREY,
            linewidth=0.8,
        )
    )
    colour = ink(np.array(node.colour)) if node.colour else "black"
    ax.text(
        x + width / 2, y, node.text, ha="center", va="center", fontsize=scale * _SIZE, color=colour,
        linespacing=1.1,
    )  # fmt: skip


def _draw_answer(
    ax: Axes, answer: str, start: tuple[float, float], end: tuple[float, float], scale: float
) -> None:
    bend = start[0] + 0.12
    ax.plot([start[0], bend, bend, end[0]], [start[1], start[1], end[1], end[1]], color=GREY, linewidth=0.8)
    ax.text(bend + 0.05, end[1] - 0.02, answer, va="bottom", fontsize=scale * 7, color=GREY)


register("tree", TreeRecord, draw_tree)
