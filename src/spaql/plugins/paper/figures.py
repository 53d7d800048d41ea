"""The figures of the paper's results (Araújo, Figueiredo, Ayala Botto, 2020)."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Collection, Mapping
from pathlib import Path
from types import MappingProxyType

from spaql.errors import SettingError
from spaql.figures.drawing import Record, save, write
from spaql.plugins.paper.curves import compute_curves
from spaql.plugins.paper.episodes import compute_episodes
from spaql.plugins.paper.scaling import compute_scaling
from spaql.plugins.paper.study import Size
from spaql.plugins.sweeps.store import RunStore

FIGURES: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "01-scaling-pendulum": (
            "Pendulum: how much ξ matters",
            "Pendulum: fresh return after the short runs for each xi, without and with reward scaling. Bars "
            "are 95 % intervals over the agents, dashed lines the mean over the xi above 0, shaded its "
            "standard deviation.",
        ),
        "02-curves-pendulum": (
            "Pendulum: learning",
            "Pendulum: return and arms while learning. SPAQL and SPAQL-TS show the best evaluation so far, "
            "AQL the last one; the marks at the end are fresh episodes.",
        ),
        "03-episode-pendulum": (
            "Pendulum: one episode",
            "Pendulum: angle and torque in one episode of each policy, from the same start.",
        ),
        "04-curves-pendulum5": (
            "Pendulum with five torques: learning",
            "Pendulum with five torques: return and arms while learning.",
        ),
        "05-episode-pendulum5": (
            "Pendulum with five torques: one episode",
            "Pendulum with five torques: angle and torque in one episode under each policy.",
        ),
        "06-scaling-cartpole": (
            "CartPole: how much ξ matters",
            "CartPole: fresh return after the short runs for each xi.",
        ),
        "07-curves-cartpole": ("CartPole: learning", "CartPole: return and arms while learning."),
        "08-episode-cartpole": (
            "CartPole: one episode",
            "CartPole: pole angle and pushes in one episode under each policy.",
        ),
        "09-trpo-pendulum": (
            "Pendulum: compared with TRPO",
            "Pendulum: compared with TRPO, against samples and against all interactions.",
        ),
        "10-trpo-cartpole": (
            "CartPole: compared with TRPO",
            "CartPole: compared with TRPO, against samples and against all interactions.",
        ),
    }
)
"""Title and caption of each figure, in the paper's order. A name has the kind of figure and its problem."""

_PROBLEMS = {"pendulum": "pendulum", "pendulum5": "pendulum5", "cartpole": "cartpole200"}
_PANELS = {
    "pendulum": (
        ("pendulum", "learning from rewards as they are"),
        ("pendulum-scaled", "learning from rewards scaled to [0, 1] (returns are shown unscaled)"),
    ),
    "cartpole": (("cartpole200", ""),),
}
"""Of the figures of xi: the problem and the title of each panel."""


def _record(name: str, scaling: RunStore, long: RunStore, size: Size) -> Record:
    """Return the record of a figure."""
    title = FIGURES[name][0]
    _, kind, place = name.split("-")
    if kind == "scaling":
        return compute_scaling(scaling, size, title, _PANELS[place])
    if kind == "episode":
        return compute_episodes(long, size, _PROBLEMS[place], title)
    return compute_curves(long, size, _PROBLEMS[place], title, trpo=kind == "trpo")


def paper_figures(
    scaling: RunStore,
    long: RunStore,
    size: Size,
    out: str | os.PathLike[str],
    only: Collection[str] | None = None,
) -> list[Path]:
    """Compute and draw the paper's figures; equal stores have equal files.

    Parameters
    ----------
    scaling
        The store of `spaql.plugins.paper.study.scaling_runs`.
    long
        That of `long_runs` and, if they are finished, of `trpo_runs`.
    size
        The size of the studies.
    out
        For each figure, `data/NAME.json` and `figures/NAME.svg`, `.pdf` and `.png` are written here.
    only
        Names of figures (see `FIGURES`); all by default.

    Returns
    -------
    list
        The files that were written.
    """
    if unknown := set(only or ()) - set(FIGURES):
        raise SettingError(f"There is no figure {', '.join(sorted(unknown))}: there is {', '.join(FIGURES)}.")
    folder = Path(out)
    written = []
    for name in FIGURES:
        if only is None or name in only:
            record = _record(name, scaling, long, size)
            if size.rules != "authors":
                record = dataclasses.replace(record, title=f"{record.title} (rules: {size.rules})")
            data = folder / "data" / f"{name}.json"
            write(record, data)
            written += [data, *save(record, folder / "figures", name)]
    return written
