"""`spaql model`: print the learned plant."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from spaql.cli.arguments import read_to_play, run_argument
from spaql.cli.command import command
from spaql.cli.report import Report
from spaql.cli.signatures import options_of
from spaql.errors import SettingError

if TYPE_CHECKING:
    from spaql.evaluation import PredictionErrors
    from spaql.learned_plants import PlantModel


@command("its size and errors")
@run_argument
@click.option("--digits", default=3, help="round numbers to n digits")
@click.option("--errors", is_flag=True, help="print prediction errors instead, of --episodes")
@options_of("evaluation/model_errors.py:model_errors", "episodes", "seed")
def model(
    run: Path,
    digits: int,
    errors: bool,
    episodes: int,
    seed: int,
) -> Report:
    """Print the model of the plant that RUN has learned (plantree), in raw units.

    The model is a tree of cells; in each, the next observation and the reward are affine laws of the
    observation and the action.

    \b
    Examples:
      spaql model runs/pendulum --digits 17
      spaql model runs/pendulum --errors
    """
    from spaql.agents import PlanTree
    from spaql.evaluation import model_errors
    from spaql.learned_plants import text

    agent = read_to_play(run)
    if not isinstance(agent, PlanTree):
        raise SettingError(f"{run} has no model of its plant: train with --algo plantree to learn one.")
    plant = agent.model
    if errors:
        tests = (model_errors(agent, episodes=episodes, seed=seed), model_errors(agent, held_out=True))
        data = _size(plant) | {"errors": [_data(test) for test in tests]}
        return Report(data, "\n\n".join(map(str, tests)))
    return Report(_size(plant), lambda: text(plant, digits))


def _size(plant: PlantModel) -> dict[str, Any]:
    return {"name": plant.name, "cells": plant.n_cells, "steps": plant.steps, "horizon": plant.horizon}


def _data(errors: PredictionErrors) -> dict[str, Any]:
    ahead = {
        str(n): {
            "predictions": count,
            "error": errors.error[i].tolist(),
            "median": errors.median[i].tolist(),
            "relative": errors.relative[i].tolist(),
        }
        for i, (n, count) in enumerate(zip(errors.steps, errors.counts, strict=True))
    }
    ends = dict(zip(("there", "told", "told_wrongly"), errors.ends, strict=True))
    return {"on": errors.on, "of": list(errors.names), "steps": ahead, "ends": ends}
