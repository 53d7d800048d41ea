"""What notebooks show of agents, controllers, histories and results."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import numpy as np

from spaql.agents import Agent, Design, History
from spaql.controllers import Controller, text
from spaql.figures.drawing import svg
from spaql.figures.trees import MOST_LEAVES, compute_tree
from spaql.languages import in_html


def html(thing: Any) -> str:
    """Return what a thing is as HTML: with the tree of a controller, and the curve of a history."""
    parts = [f"<p>{in_html(repr(thing))}</p>"]
    if isinstance(thing, Agent | History):
        parts.append(_curve(thing if isinstance(thing, History) else thing.history))
    controller = thing.policy if isinstance(thing, Agent | Design) else thing
    if isinstance(controller, Controller):
        parts.append(_tree(controller))
    return "".join(parts)


def _tree(controller: Controller) -> str:
    """Return its drawing; of one law, and without Matplotlib, its text."""
    if 1 < controller.n_leaves <= MOST_LEAVES and find_spec("matplotlib") is not None:
        return svg(compute_tree(controller, title=""))
    return f"<pre>{in_html(text(controller, 4))}</pre>"


def _curve(history: History) -> str:
    """Return the returns over the interactions."""
    if not len(history) or history.n_returns < 2:
        return ""
    returns = history["mean_return"]
    known = np.isfinite(returns)
    low, high = float(returns[known].min()), float(returns[known].max())
    steps = history["interactions"]
    x = 300.0 * steps[known] / steps[-1]
    y = 80.0 * (high - returns[known]) / (high - low or 1.0)
    points = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x, y, strict=True))
    return (
        f'<svg viewBox="-5 -5 310 90" width="310" height="90"><polyline points="{points}" fill="none" '
        f'stroke="#0072b2"/></svg><p>returns from {low:.4g} to {high:.4g} in {steps[-1]:,} interactions</p>'
    )
