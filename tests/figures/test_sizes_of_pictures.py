"""Pictures are at most 1,600 pixels wide, and their times are in s, min or h."""

import re
import struct
from pathlib import Path

import numpy as np
import pytest
from gymnasium.spaces import Box

from spaql.controllers import Controller
from spaql.figures import compute_tree, save_as
from spaql.figures.drawing import draw
from spaql.figures.response import ResponsePanel, ResponseRecord

NAMES = ("upper level [m]", "lower level [m]", "temperature of the inflow [°C]")


def tree_of(leaves: int, *, balanced: bool) -> Controller:
    """A tree with so many leaves, as shallow as possible, or a chain of questions."""
    feature = []
    threshold = []
    left = []
    right = []
    leaf = []
    rng = np.random.default_rng(0)

    def add(count: int) -> int:
        node = len(feature)
        for column, value in zip((feature, threshold, left, right, leaf), (-1, 0.0, -1, -1, -1), strict=True):
            column.append(value)
        if count == 1:
            leaf[node] = sum(one >= 0 for one in leaf)
            return node
        feature[node] = int(rng.integers(3))
        threshold[node] = float(rng.normal())
        half = count // 2 if balanced else 1
        left[node] = add(half)
        right[node] = add(count - half)
        return node

    add(leaves)
    return Controller(
        feature=feature,
        threshold=threshold,
        left=left,
        right=right,
        leaf=leaf,
        laws=rng.uniform(-2, 2, (leaves, 1)),
        observation_space=Box(-3.0, 3.0, (3,), np.float32),
        action_space=Box(-2.0, 2.0, (1,), np.float32),
        observations=NAMES,
    )


@pytest.mark.parametrize("balanced", [True, False])
def test_a_tree_of_forty_leaves_is_at_most_1600_pixels_wide(balanced: bool, tmp_path: Path) -> None:
    record = compute_tree(tree_of(40, balanced=balanced))
    save_as(record, tmp_path / "tree.png")
    save_as(record, tmp_path / "tree.svg")
    (width,) = struct.unpack(">I", (tmp_path / "tree.png").read_bytes()[16:20])
    assert width <= 1600
    points = float(re.search(r'<svg [^>]*?\bwidth="([\d.]+)pt"', (tmp_path / "tree.svg").read_text())[1])
    assert points * 96 / 72 <= 1600.5
    sizes = [text.get_fontsize() for text in draw(record).axes[0].texts if "<" in text.get_text()]
    assert min(sizes) * 96 / 72 > 9  # pixels in a browser


@pytest.mark.parametrize(
    ("seconds", "unit", "last"),
    [(0.5, "s", 49.5), (10.0, "min", 16.5), (72.0, "min", 118.8), (720.0, "h", 19.8)],
)
def test_the_axis_of_a_response_is_in_s_min_or_h(seconds: float, unit: str, last: float) -> None:
    signal = tuple(np.zeros(100))
    panel = ResponsePanel("level [m]", signal, (signal,))
    record = ResponseRecord("", "", ("this",), seconds, "s", (30,), 60, "load", (panel,))
    axes = draw(record).axes[0]
    assert axes.get_xlabel() == f"time [{unit}]"
    assert axes.get_lines()[0].get_xdata()[-1] == pytest.approx(last)
