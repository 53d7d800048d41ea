"""The responses of controllers to a step of each set-point and to a load."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from spaql.classical import Tuned
from spaql.evaluation.beside import TUNING_STEPS, tuned_methods
from spaql.evaluation.conditions import CONDITION_TEXTS, conditions_of, in_condition
from spaql.evaluation.episodes import Playable, policy_and_problem
from spaql.evaluation.step_test import Response, StepTest, step_test
from spaql.figures.drawing import register
from spaql.figures.style import GREY, NAMES, new_figure
from spaql.formatting import counted, duration, time_unit
from spaql.problems import EnvironmentLike

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_WIDTH = 110
"""Characters of a line below the picture."""
_COLOURS = ("#D55E00", "#0072B2", "#009E73", "#CC79A7")


@dataclass(frozen=True)
class ResponsePanel:
    """One number with its set-point, or one action, which has none."""

    name: str
    setpoint: tuple[float, ...]
    signals: tuple[tuple[float, ...], ...]
    """For each controller, at each sample."""


@dataclass(frozen=True)
class ResponseRecord:
    """The data of a figure of responses."""

    title: str
    note: str
    controllers: tuple[str, ...]
    time_step: float
    time_unit: str
    steps_at: tuple[int, ...]
    load_at: int
    load: str
    panels: tuple[ResponsePanel, ...]


def compute_response(
    agent: Playable,
    env: EnvironmentLike | None = None,
    *,
    beside: Sequence[str | Tuned] = (),
    steps: int = TUNING_STEPS,
    seed: int = 0,
    title: str | None = None,
) -> ResponseRecord:
    """Return the record of a step test (see `spaql.evaluation.step_test`).

    Parameters
    ----------
    agent
        An agent or design; a policy or controller, which needs `env`; or the path of a run folder or file.
    env
        The problem; the agent's own by default.
    beside
        Textbook controllers to show beside it: `pid` and `lqr`, to be tuned for what the agent was designed
        for (see `spaql.evaluation.beside`), or some that are tuned already.
    steps
        Simulator steps for the tuning of each.
    seed
        Of the tuning.
    title
        The title.

    Examples
    --------
    >>> from spaql import RandomPolicy, make_problem
    >>> oven = make_problem("spaql/Oven-v0")
    >>> record = compute_response(RandomPolicy(oven.states, oven.actions), oven)
    >>> [panel.name for panel in record.panels], record.controllers
    (['temperature [°C]', 'heat'], ('this',))
    """
    policy, problem = policy_and_problem(agent, env)
    condition = conditions_of(agent, problem)[0]
    tuned, refused = tuned_methods(in_condition(problem, condition), beside, steps=steps, seed=seed)
    test = step_test(problem, {"this": policy, **{rival.name: rival.policy for rival in tuned}})
    responses = list(test.responses.values())
    panels = [
        ResponsePanel(
            name,
            _floats(test.setpoints[:, j]),
            tuple(_floats(response.signals[:, j]) for response in responses),
        )
        for j, name in enumerate(test.names)
    ]
    panels += [
        ResponsePanel(name, (), tuple(_floats(response.actions[:, k]) for response in responses))
        for k, name in enumerate(test.actions)
    ]
    on = CONDITION_TEXTS[condition]
    spent = {rival.name: f"; {counted(rival.steps, 'step')} on {on}" for rival in tuned}
    remarks = [f"No noise, nominal gains and dead time. {_happens(test)}"]
    for name, response in test.responses.items():
        remarks += textwrap.wrap(f"{name}: {_summary(test, response)}{spent.get(name, '')}.", _WIDTH)
    for name, why in refused.items():
        remarks += textwrap.wrap(f"No {name}: {why}", _WIDTH)
    return ResponseRecord(
        title or f"{NAMES.get(problem.name, problem.name)}: responses to set-points and load",
        "\n".join(remarks),
        tuple(test.responses),
        test.time_step,
        test.time_unit,
        test.begins[:-1],
        test.begins[-1],
        f"load on {test.loaded}",
        tuple(panels),
    )


def _floats(values: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> tuple[float, ...]:
    return tuple(values.tolist())


def _happens(test: StepTest) -> str:
    """Return what happens at the dotted lines."""
    load = f"a load of {test.load:.3g} begins"
    if len(test.names) == 1:
        return f"The set-point steps at the first dotted line; at the second {load}."
    return f"One set-point after the other steps at the dotted lines; at the last {load}."


def _summary(test: StepTest, response: Response) -> str:
    """Return measures of the first number with a set-point, and the largest errors of all."""
    step_response = response.steps[0]
    if math.isinf(step_response.rise_time):
        rise = "never rises"
    else:
        seconds = test.time_unit == "s"
        time = step_response.rise_time
        rise = f"rise {duration(time) if seconds else f'{time:.3g} samples'}"
    rest = max(step.error_at_rest for step in response.steps)
    moved = f", interaction {max(response.interactions):.2g}" if len(test.names) > 1 else ""
    return (
        f"{rise}, overshoot {100 * step_response.overshoot:.1f} %, steady-state error {rest:.2g}{moved}, "
        f"under load {max(response.errors_under_load):.2g}"
    )


def draw_response(record: ResponseRecord) -> Figure:
    """Draw a panel for each number and action, above each other."""
    figure = new_figure(record.title, record.note, 1.4 + 1.7 * len(record.panels))
    panels = figure.subplots(len(record.panels), 1, sharex=True, squeeze=False)[:, 0]
    times = record.time_step * np.arange(len(record.panels[0].signals[0]))
    unit = record.time_unit
    if unit == "s":
        length, unit = time_unit(times[-1])
        times = times / length
    for ax, panel in zip(panels, record.panels, strict=True):
        _draw_panel(ax, panel, times, record)
    handles = panels[0].get_lines()[: len(record.controllers)]
    panels[0].legend(
        handles, record.controllers, loc="lower left", bbox_to_anchor=(0, 1), fontsize=8.5, ncols=4,
        borderaxespad=0.2, borderpad=0,
    )  # fmt: skip
    panels[-1].set_xlabel(f"time [{unit}]")
    panels[0].annotate(
        record.load, (times[record.load_at], 1.0), (0, 3), xycoords=("data", "axes fraction"),
        textcoords="offset points", va="bottom", ha="left", fontsize=8.5, color=GREY,
    )  # fmt: skip
    return figure


def _draw_panel(ax: Axes, panel: ResponsePanel, times: np.ndarray, record: ResponseRecord) -> None:
    for i, signal in enumerate(panel.signals):
        colour = _COLOURS[i % len(_COLOURS)]
        way = "default" if panel.setpoint else "steps-post"
        width = 1.8 if i == 0 else 1.2
        ax.plot(times, signal, color=colour, linewidth=width, drawstyle=way, zorder=3 - 0.1 * i)
    if panel.setpoint:
        ax.plot(times, panel.setpoint, color=GREY, linestyle="--", linewidth=1.0, drawstyle="steps-post")
    for at in (*record.steps_at, record.load_at):
        ax.axvline(times[at], color=GREY, linewidth=0.6, linestyle=":")
    ax.set_ylabel(panel.name)
    ax.margins(x=0.01)


register("response", ResponseRecord, draw_response)
