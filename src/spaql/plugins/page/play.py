"""The interactive part of a page: the tree, its map and the moving plant, to be played with and edited."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium.spaces import Box
from numpy.typing import NDArray

from spaql.agents import Agent, Design
from spaql.controllers import Controller
from spaql.controllers.controller import VELOCITY
from spaql.controllers.feature_table import formulas
from spaql.controllers.file import with_own_rules
from spaql.controllers.mirrored import Fold, folded
from spaql.errors import SettingError
from spaql.evaluation import find_bench
from spaql.evaluation.step_test import StepPlan, has_step_test, step_plan
from spaql.export.json_form import controller_data
from spaql.export.languages.javascript import JavaScript, class_lines
from spaql.export.machine import machine_of
from spaql.kernels.controller import HIGH, LOW
from spaql.languages import in_html, in_script
from spaql.learned_plants import PlantModel
from spaql.plugins.page.play_plant import PagePlant, equations, learned, nominal, quiet
from spaql.problems import Problem
from spaql.problems.disturbances import Functions
from spaql.program.controller import controller_program
from spaql.spaces import describe_space

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
    "CartPoleSwingUp-v0": "cart-pole",
    "MountainCar-v0": "mountain-car",
    "MountainCarContinuous-v0": "mountain-car",
    "Acrobot-v1": "acrobot",
    "Oven-v0": "oven",
    "DCMotor-v0": "motor",
    "TwoTanks-v0": "two-tanks",
    "QuadrupleTank-v0": "four-tanks",
    "QuadrupleTankFixed-v0": "four-tanks",
    "Crane-v0": "crane",
    "BallAndBeam-v0": "ball-and-beam",
}
"""Plants of spaql that are drawn as what they are; all others as bars, one for each number of the state."""
_SCRIPT = Path(__file__).with_name("play.js")
STYLE = Path(__file__).with_name("play.css")


@dataclass(frozen=True, eq=False)
class Play:
    """The record of an interactive page: a controller, a plant, and the ranges of its state."""

    controller: Controller
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
    plan: StepPlan | None = None
    """The step test that the page begins with, where there are set-points."""
    fold: Fold | None = None
    """How one half of the rules is the image of the other, which alone is shown and edited."""

    def as_data(self) -> dict[str, Any]:
        """Return all but the code of the plant as data for JSON."""
        controller = self.controller
        return {
            "file": controller_data(machine_of(controller, provenance=[f"edited in a page of {self.name}"])),
            "inputs": _inputs(controller),
            "remembers": _remembers(controller),
            "observationSpace": describe_space(controller.observation_space),
            "actionSpace": describe_space(controller.action_space),
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
            "plan": None if self.plan is None else self._plan(self.plan),
            "mirror": None if self.fold is None else self._mirror(self.fold),
        }

    def _mirror(self, fold: Fold) -> dict[str, Any]:
        """Return how nodes, laws and sums of the lower half, which come first, follow from the upper one."""
        limit = self.controller.frame.limit
        return {
            "heading": fold.heading.removesuffix(":"),
            "nodes": self.controller.n_nodes // 2,
            "laws": len(self.controller.laws) // 2,
            "sums": len(self.controller.combinations) // 2,
            "images": [fold.images.get(j, (j, 1)) for j in range(self.controller.dims)],
            "signs": fold.action_signs,
            "middle": [] if self.controller.discrete else (limit[[LOW, HIGH]].sum(axis=0) / 2).tolist(),
            "actions": [fold.action_images.get(a, a) for a in range(len(self.controller.actions))],
        }

    def _plan(self, plan: StepPlan) -> dict[str, Any]:
        """Return the step test as data."""
        names = list(plan.plant.observations)
        seen = np.array(list(plan.plant.observations.values()), np.float64)
        ends = []
        for (_, goal), place, *goals in zip(plan.pairs, plan.places, plan.before, plan.after, strict=True):
            low, high = seen[goal]  # of the set-points that are possible, or else of those at starts
            both = [*self.plant.starts[:, place].tolist(), *map(float, goals)]
            ends.append([low if np.isfinite(low) else min(both), high if np.isfinite(high) else max(both)])
        return {
            "first": plan.first.tolist(),
            "places": list(plan.places),
            "pairs": [list(pair) for pair in plan.pairs],
            "outputs": [names[number] for number, _ in plan.pairs],
            "setpoints": [names[goal] for _, goal in plan.pairs],
            "goals": np.transpose([plan.before, plan.after]).tolist(),
            "ends": ends,
            "steps": list(plan.begins[:-1]),
            "begins": plan.begins[-1],
            "samples": len(plan.goals),
            "load": plan.load,
            "loaded": plan.loaded,
            "loadPlace": plan.load_place,
        }


def compute_play(source: Agent | Design, controller: Controller, *, seed: int = 0) -> Play:
    """Return the record of an interactive page; raises `SettingError` where there is nothing to play with.

    Parameters
    ----------
    source
        The agent or controller, for its problem and the plant that it may have learned.
    controller
        What to play with: its own (see `spaql.controller_of`).
    seed
        Of the fixed starts.
    """
    problem = source.problem
    if controller.n_leaves > _MOST_LEAVES:
        raise SettingError(f"The tree has {controller.n_leaves} leaves: a page draws at most {_MOST_LEAVES}.")
    if not isinstance(controller.observation_space, Box):
        raise SettingError("Observations of a list have no map.")
    plant, plan, low, high = _plant(source, controller, seed)
    bench = find_bench(problem)
    dynamics = problem.dynamics
    time_step = (
        (dynamics.sample_time if dynamics is not None else None) or (bench and bench.time_step) or 0.05
    )
    turning = plant.angles.index(True) if any(plant.angles) else 0
    axes = (turning, min(turning + 1, len(plant.names) - 1))
    if bench is not None and len(bench.region) == len(plant.names):
        axes = bench.axes
        low = np.minimum(low, bench.low)
        high = np.maximum(high, bench.high)
    own = dynamics is not None and dynamics.id.startswith("spaql/")
    drawn = _DRAWN.get(dynamics.id.removeprefix("spaql/"), "") if own and dynamics is not None else ""
    horizon = min(problem.horizon, _MOST_STEPS)
    fold = None if controller.locks else folded(controller)
    if fold is not None:  # with images of its own for each node and law
        controller = fold.unfolded(with_own_rules(fold.half)) or controller
    return Play(
        controller, plant, problem.name, horizon, float(time_step), drawn, low, high, axes, plan, fold
    )


def _plant(
    source: Agent | Design, controller: Controller, seed: int
) -> tuple[PagePlant, StepPlan | None, Floats, Floats]:
    """Return the plant of a page, the step test of one with set-points, and the ranges of its state."""
    problem = source.problem
    dynamics = source.problem.dynamics
    refused = "The environment has no equations that are known"
    if dynamics is not None:
        plan = None
        if has_step_test(problem):
            most = _MOST_STEPS // (2 + len(problem.setpoints))
            plan = step_plan(problem, horizon=min(-(-problem.horizon // 2), most))
        simulated = nominal(dynamics) if plan is None else plan.plant
        try:
            plant = equations(dynamics, simulated, seed) if plan is None else quiet(dynamics, plan, seed)
        except SettingError as error:
            refused = str(error).rstrip(".").replace(simulated.id, dynamics.id)
        else:
            visited = _visited(controller, problem, simulated.functions, plant)
            if plan is not None:
                visited[:2, list(plan.places)] = plan.before, plan.after  # which are in the ranges too
            low = visited.min(axis=0)
            high = visited.max(axis=0)
            room = _ROOM * np.where(high > low, high - low, np.maximum(1.0, np.abs(high)))
            low = low - room
            high = high + room
            turns = np.array(plant.angles)
            return plant, plan, np.where(turns, -np.pi, low), np.where(turns, np.pi, high)
    model = getattr(source, "model", None)
    if controller.remembers or not isinstance(model, PlantModel):
        raise SettingError(f"{refused}, and no plant was learned (PlanTree learns one).")
    plant = learned(model, seed)
    low, high = model.seen
    return plant, None, low, np.where(high > low, high, low + 1.0)


def _visited(controller: Controller, problem: Problem, functions: Functions, plant: PagePlant) -> Floats:
    """Return states that a controller visits from the fixed starts, one per row."""
    _, step, observe = functions
    states = [tuple(row) for row in plant.starts.tolist()]
    visited = list(states)
    listed = not isinstance(problem.actions.space, Box)
    playing = controller.for_episodes(len(states))
    going = [True] * len(states)
    for t in range(min(problem.horizon, 200)):
        seen = np.array([observe(state) for state in states]).astype(np.float32)
        acted = np.asarray(playing.act(seen, np.full(len(seen), t), None), np.float64)
        for i, action in enumerate(acted.reshape(len(seen), -1)):
            if going[i]:
                after, _, ended = step(states[i], int(action[0]) if listed else action)
                going[i] = not ended and bool(np.isfinite(after).all())
            if going[i]:
                states[i] = tuple(float(x) for x in after)
                visited.append(states[i])
        if not any(going):
            break
    return np.array(visited)[:, : len(plant.names)]


def play_section(play: Play) -> str:
    """Return the interactive part of a page as HTML, with its script."""
    data = in_script(play.as_data())
    script = _SCRIPT.read_text("utf-8").replace("/*PLANT*/null", play.plant.code)
    notes = [play.plant.note]
    if _has_class(play.controller):
        script = script.replace("/*CONTROLLER*/null", _controller_code(play.controller))
        notes += [_MAPS] * _remembers(play.controller) + [_FIXED]
    notes.append("Edit what you like: nothing leaves this page until you download it.")
    return (
        f'<section id="play" aria-label="The controller, to play with">{_SKELETON}'
        f'<p class="soft">{in_html(" ".join(notes))}</p></section>'
        f'<script type="application/json" id="play-data">{data}</script><script>{script}</script>'
    )


def _inputs(controller: Controller) -> list[dict[str, Any]]:
    """Return the names of what rules and laws read, and of features how they are computed."""
    if not controller.features:
        return [{"name": name, "formula": "", "remembers": False} for name in controller.inputs]
    time = controller.sample_time or 1.0
    lines = formulas(controller.features, controller.observations, controller.components, time)
    return [
        {"name": name, "formula": line, "remembers": one.memory() > 0}
        for name, line, one in zip(controller.inputs, lines, controller.features, strict=True)
    ]


def _has_class(controller: Controller) -> bool:
    """Return whether the page has the class of the exported code: for features and memory."""
    return controller.remembers or bool(controller.features)


def _controller_code(controller: Controller) -> str:
    """Return the class of a controller as it is exported, with numbers that can be changed.

    Its `act` returns the inputs of rules and laws after the numbers of the action.
    """
    if not controller.remembers:  # the page asks the class for the last leaf, which only a memory has
        controller = replace(controller, sample_time=1.0)
    machine = machine_of(controller)
    program, _ = controller_program(machine.specification(adjustable=True))
    inputs = [machine.names.x[column] for column in controller.frame.columns]
    program = replace(
        program,
        outputs=(*program.outputs, *inputs),
        numbers=tuple(name for name in program.numbers if name not in inputs),
    )
    source = replace(JavaScript().source(machine, "controller"), program=program)
    return "\n".join(class_lines(source, "class"))


def _remembers(controller: Controller) -> bool:
    """Return whether an action depends on more than the observation."""
    limits = any(map(math.isfinite, controller.rate_limit)) or any(controller.dead_band)
    held = any(controller.hysteresis) or controller.form == VELOCITY
    return limits or held or any(one.memory() > 0 for one in controller.features)


_MAPS = "This controller remembers: a map shows what it would do with what it remembers at the moment shown."
_FIXED = (
    "Its features, their time constants and its limits cannot be changed here; gains and thresholds can, but "
    "for gains of 0."
)
_SKELETON = """
<div class="panel p-map"><div class="bar"><h2 id="view">Map</h2>
<label>across <select id="axis-x"></select></label><label>up <select id="axis-y"></select></label>
<label>shows <select id="shows"></select></label></div>
<canvas id="map" tabindex="0" role="application" aria-describedby="said"></canvas>
<div class="legend" id="legend"></div>
<p class="soft hint" id="hint"></p><div id="plan"></div></div>
<div class="panel p-plant"><div class="bar"><h2>Plant</h2><button id="go" aria-pressed="false">Play</button>
<span id="clock" class="number"></span></div>
<canvas id="plant" role="img" aria-label="The plant in its present state"></canvas>
<canvas id="trace" role="img" aria-label="The action over time, above the leaf that computed it"></canvas>
<input id="time" type="range" min="0" value="0" step="1" aria-label="Time">
<p id="said" aria-live="polite"></p><div id="features"></div></div>
<div class="panel p-tree"><div class="bar"><h2>Tree</h2><span class="soft" id="size"></span></div>
<div id="tree"></div></div>
<div class="panel p-edit"><div class="bar"><h2>Edit</h2><span id="what"></span></div>
<div id="sliders"></div>
<canvas id="returns" role="img" aria-label="Returns from the fixed starts, before and after edits"></canvas>
<p id="return" aria-live="polite"></p>
<div class="bar"><button id="reset">Undo all</button><button id="save">Download the controller</button></div>
<p class="soft" id="command"></p></div>
"""
