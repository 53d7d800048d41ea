"""`spaql model`: what was learned of the plant."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from spaql import archive
from spaql.cli.report import numbers
from spaql.errors import SettingError
from spaql.model import PlantModel, PredictionErrors, end_lines, law_lines, text, write_json
from spaql.policy.text import number_text
from spaql.training import PlanTree, model_errors, read


@click.command()
@click.argument("run", type=click.Path(path_type=Path))
@click.option("--digits", type=int, default=3, show_default=True, help="round numbers to so many digits")
@click.option("--exact", is_flag=True, help="write all digits of all numbers")
@click.option(
    "--at", metavar="X,Y,...", callback=numbers, help="print only the cell of this observation, and its law"
)
@click.option("--errors", is_flag=True, help="print how far predictions are from what happens instead")
@click.option("--episodes", type=int, default=20, show_default=True, help="fresh ones, for --errors")
@click.option("--seed", type=int, default=0, show_default=True, help="of the fresh episodes")
@click.option(
    "--out", type=click.Path(path_type=Path), help="write the model: as .spaql to train in, or as .json"
)
@click.option("--json", "as_json", is_flag=True, help="print its size, and the errors, as JSON")
def model(
    run: Path,
    digits: int,
    exact: bool,
    at: list[float] | None,
    errors: bool,
    episodes: int,
    seed: int,
    out: Path | None,
    as_json: bool,
) -> None:
    """Print the model of the plant that RUN has learned (plantree), in raw units.

    RUN is a run folder, or a model file of an agent or of a plant. The model is a tree of cells; in each, the
    next observation and the reward are affine laws of the observation and the action.

    A plant that was written as .spaql is an environment of its own: other algorithms can be trained in it.

    \b
    Examples:
      spaql model runs/pendulum
      spaql model runs/pendulum --at 1,0,0
      spaql model runs/pendulum --errors
      spaql model runs/pendulum --out plant.json
      spaql model runs/pendulum --out plant.spaql
      spaql train plant.spaql --algo spaql --iterations 200
    """
    agent, plant = _read(run)
    if out is not None:
        _write(plant, out)
        click.echo(out)
        return
    found: tuple[PredictionErrors, ...] = ()
    if errors:
        if agent is None:
            raise SettingError(f"{run} holds a plant alone: give the run that it was learned in.")
        found = (model_errors(agent, episodes=episodes, seed=seed), model_errors(agent, held_out=True))
    if as_json:
        click.echo(json.dumps(_size(plant) | ({"errors": [_plain(one) for one in found]} if errors else {})))
    elif errors:
        click.echo("\n\n".join(map(str, found)))
    elif at is not None:
        click.echo("\n".join(_cell(plant, at, None if exact else digits)))
    else:
        click.echo(text(plant, None if exact else digits))


def _read(run: Path) -> tuple[PlanTree | None, PlantModel]:
    if run.is_file() and archive.load(run).data.get("kind") == "plant":
        return None, PlantModel.load(run)
    agent = read(run)
    if not isinstance(agent, PlanTree):
        raise SettingError(f"{run} has learned no model of its plant: that is what --algo plantree does.")
    return agent, agent.model


def _write(plant: PlantModel, out: Path) -> None:
    if out.suffix == ".json":
        write_json(plant, out)
    elif out.suffix == ".spaql":
        plant.save(out)
    else:
        raise SettingError(f"{out} ends in no format of models: call it .spaql or .json.")


def _cell(plant: PlantModel, at: list[float], digits: int | None) -> list[str]:
    if len(at) != plant.dims:
        raise SettingError(f"An observation has {plant.dims} numbers: {', '.join(plant.observations)}.")
    cell = int(plant.find(at)[0])
    lines = []
    for name, low, high in zip(plant.observations, *plant.box(cell), strict=True):
        ends = (number_text(float(end), digits) for end in (low, high))
        lines.append(f"{next(ends)} <= {name} < {next(ends)}")
    return [*lines, *law_lines(plant, cell, digits), "", *end_lines(plant, digits)]


def _size(plant: PlantModel) -> dict[str, Any]:
    return {"name": plant.name, "cells": plant.n_cells, "steps": plant.steps, "horizon": plant.horizon}


def _plain(errors: PredictionErrors) -> dict[str, Any]:
    def column(values: Any) -> list[float | None]:
        return [None if x != x else x for x in values.tolist()]

    ahead = {
        str(n): {"predictions": count, "error": column(e), "median": column(m), "relative": column(r)}
        for n, count, e, m, r in zip(
            errors.steps, errors.counts, errors.error, errors.median, errors.relative, strict=True
        )
    }
    ends = dict(zip(("there", "told", "told_wrongly"), errors.ends, strict=True))
    return {"on": errors.on, "of": list(errors.names), "steps": ahead, "ends": ends}
