"""The interactive part of a page: the tree, its map and the moving plant, to be played with and edited."""

from __future__ import annotations

import html
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium.spaces import Box
from numpy.typing import NDArray

from spaql.agents import Agent, Controller
from spaql.errors import SettingError
from spaql.evaluation import find_bench
from spaql.export.json_tree import FORMAT, VERSION
from spaql.export.tree_data import tree_data
from spaql.figures.play_plant import PagePlant, equations, learned
from spaql.plants import PlantModel
from spaql.policy import RuleTree
from spaql.problems import Problem

Floats = NDArray[np.float64]

_MOST_LEAVES = 400
"""Trees of more leaves are not drawn in a page."""
_MOST_STEPS = 2_000
"""Steps of an episode in a page, at most."""
_ROOM = 0.08
"""Margin of the ranges of a state, as a share of what episodes visit."""
_DRAWN = {
    "Pendulum-v1": "pendulum",
    "CartPole-v1": "cart-pole",
    "MountainCar-v0": "mountain-car",
    "MountainCarContinuous-v0": "mountain-car",
    "Acrobot-v1": "acrobot",
    "spaql/CartPoleSwingUp-v0": "cart-pole",
}
"""Plants that are drawn as what they are; all others as bars, one for each number of the state."""
_SCRIPT, STYLE = (Path(__file__).with_name(name) for name in ("play.js", "play.css"))


@dataclass(frozen=True, eq=False)
class Play:
    """The record of an interactive page: a tree, a plant, and the ranges of its state."""

    tree: RuleTree
    plant: PagePlant
    name: str
    horizon: int
    time_step: float
    """Seconds between two actions; 0.05 where they are not known."""
    drawn: str
    low: Floats
    """Of each number of the state."""
    high: Floats
    axes: tuple[int, int]
    """The numbers of the state that are the first axes of the map."""

    def as_data(self) -> dict[str, Any]:
        """Return all but the code of the plant as data for JSON."""
        about = {"format": FORMAT, "version": VERSION, "provenance": [f"edited in a page of {self.name}"]}
        return {
            "tree": about | tree_data(self.tree, {"safe_action": list(self.tree.default_action)}),
            "locked": sorted({int(lock.row) for lock in self.tree.locks}),
            "name": self.name,
            "horizon": self.horizon,
            "timeStep": self.time_step,
            "drawn": self.drawn,
            "note": self.plant.note,
            "states": list(self.plant.names),
            "turns": list(self.plant.angles),
            "low": self.low.tolist(),
            "high": self.high.tolist(),
            "axes": list(self.axes),
            "starts": self.plant.starts.tolist(),
        }


def compute_play(source: Agent | Controller, tree: RuleTree, *, seed: int = 0) -> Play:
    """Return the record of an interactive page; raises `SettingError` where there is nothing to play with.

    Parameters
    ----------
    source
        The agent or controller, for its problem and the plant that it may have learned.
    tree
        Its rule tree.
    seed
        Of the fixed starts.
    """
    problem = source.problem
    if tree.n_leaves > _MOST_LEAVES:
        raise SettingError(f"The tree has {tree.n_leaves} leaves: a page draws at most {_MOST_LEAVES}.")
    if not isinstance(tree.observation_space, Box):
        raise SettingError("Observations of a list have no map.")
    plant, low, high = _plant(source, tree, seed)
    bench = find_bench(problem)
    dynamics = problem.dynamics
    time_step = (
        (dynamics.sample_time if dynamics is not None else None) or (bench and bench.time_step) or 0.05
    )
    axes = (0, min(1, len(plant.names) - 1))
    if bench is not None and len(bench.region) == len(plant.names):
        axes = bench.axes
        low, high = np.minimum(low, bench.low), np.maximum(high, bench.high)
    name = (problem.env or problem.name).removeprefix("spaql/") if bench is not None else (problem.env or "")
    drawn = _DRAWN.get(name, "") if dynamics is not None else ""
    horizon = min(problem.horizon, _MOST_STEPS)
    return Play(tree, plant, problem.name, horizon, float(time_step), drawn, low, high, axes)


def _plant(source: Agent | Controller, tree: RuleTree, seed: int) -> tuple[PagePlant, Floats, Floats]:
    """Return the plant of a page, and the ranges of its state."""
    problem = source.problem
    refused = "The environment has no equations that are known"
    if problem.dynamics is not None:
        try:
            plant = equations(problem.dynamics, seed)
        except SettingError as error:
            refused = str(error).rstrip(".")
        else:
            visited = _visited(tree, problem, plant)
            low, high = visited.min(axis=0), visited.max(axis=0)
            room = _ROOM * np.where(high > low, high - low, np.maximum(1.0, np.abs(high)))
            low, high = low - room, high + room
            turns = np.array(plant.angles)
            return plant, np.where(turns, -np.pi, low), np.where(turns, np.pi, high)
    model = getattr(source, "model", None)
    if not isinstance(model, PlantModel):
        raise SettingError(f"{refused}, and no plant was learned (PlanTree learns one).")
    plant = learned(model, seed)
    low, high = model.seen
    return plant, low, np.where(high > low, high, low + 1.0)


def _visited(tree: RuleTree, problem: Problem, plant: PagePlant) -> Floats:
    """Return states that a tree visits from the fixed starts, one per row, without disturbances."""
    dynamics = problem.dynamics
    assert dynamics is not None
    _, step, observe = dynamics.nominal_functions
    states = [tuple(row) for row in plant.starts.tolist()]
    visited, listed = list(states), not isinstance(problem.actions.space, Box)
    for _ in range(min(problem.horizon, 200)):
        seen = np.array([observe(state) for state in states]).astype(np.float32)
        acted = np.asarray(tree.act(seen))
        going = []
        for state, action in zip(states, acted.reshape(len(seen), -1).astype(np.float64), strict=True):
            after, _, ended = step(state, int(action[0]) if listed else action)
            if not ended and np.isfinite(after).all():
                going.append(tuple(float(x) for x in after))
        states = going
        visited += states
        if not states:
            break
    return np.array(visited)


def play_section(play: Play) -> str:
    """Return the interactive part of a page as HTML, with its script."""
    data = json.dumps(play.as_data(), allow_nan=False).replace("</", "<\\/")
    script = _SCRIPT.read_text("utf-8").replace("/*PLANT*/null", play.plant.code)
    return (
        f'<section id="play" aria-label="The controller, to play with">{_SKELETON}'
        f'<p class="soft">{html.escape(play.plant.note)} Edit what you like: nothing leaves this page until '
        "you download it.</p></section>"
        f'<script type="application/json" id="play-data">{data}</script><script>{script}</script>'
    )


_SKELETON = """
<div class="panel p-map"><div class="bar"><h2>Map</h2>
<label>across <select id="axis-x"></select></label><label>up <select id="axis-y"></select></label>
<label>shows <select id="shows"></select></label></div>
<canvas id="map" tabindex="0" role="application" aria-describedby="said"
 aria-label="Map of the state. Arrow keys move the start; Shift for larger steps; Space plays."></canvas>
<div class="legend" id="legend"></div>
<p class="soft hint">Drag the state, or focus the map and use the arrow keys.
Thin lines: episodes from fixed starts; of each, 120 steps.</p></div>
<div class="panel p-plant"><div class="bar"><h2>Plant</h2><button id="go" aria-pressed="false">Play</button>
<span id="clock" class="number"></span></div>
<canvas id="plant" role="img" aria-label="The plant in its present state"></canvas>
<canvas id="trace" role="img" aria-label="The action over time, above the leaf that computed it"></canvas>
<input id="time" type="range" min="0" value="0" step="1" aria-label="Time">
<p id="said" aria-live="polite"></p></div>
<div class="panel p-tree"><div class="bar"><h2>Tree</h2><span class="soft" id="size"></span></div>
<div id="tree"></div></div>
<div class="panel p-edit"><div class="bar"><h2>Edit</h2><span id="what"></span></div>
<div id="sliders"></div>
<canvas id="returns" role="img" aria-label="Returns from the fixed starts, before and after edits"></canvas>
<p id="return" aria-live="polite"></p>
<div class="bar"><button id="reset">Undo all</button><button id="save">Download the tree</button></div>
<p class="soft" id="command"></p></div>
"""
