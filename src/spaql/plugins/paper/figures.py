"""Every figure of "Control with adaptive Q-learning" (Araújo, Figueiredo, Ayala Botto, 2020)."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from types import MappingProxyType

from spaql.errors import SettingError
from spaql.figures.drawing import Record, save, write
from spaql.plugins.paper.curves import compute_curves
from spaql.plugins.paper.domains import covering, cubes, neighbours
from spaql.plugins.paper.episodes import compute_episodes
from spaql.plugins.paper.scaling import compute_scaling
from spaql.plugins.paper.study import Size
from spaql.plugins.sweeps.store import RunStore

_PENDULUM_PANELS = (
    ("pendulum", "learning from rewards as they are"),
    ("pendulum-scaled", "learning from rewards scaled to [0, 1] (returns are shown unscaled)"),
)

Compute = Callable[[RunStore, RunStore, Size], Record]

_FIGURES: Mapping[str, Compute] = MappingProxyType(
    {
        "01-scaling-pendulum": lambda xi, _, size: compute_scaling(
            xi, size, "Pendulum: how much ξ matters", _PENDULUM_PANELS
        ),
        "02-curves-pendulum": lambda _, long, size: compute_curves(
            long, size, "pendulum", "Pendulum: learning"
        ),
        "03-episode-pendulum": lambda _, long, size: compute_episodes(
            long, size, "pendulum", "Pendulum: one episode"
        ),
        "04-curves-pendulum5": lambda _, long, size: compute_curves(
            long, size, "pendulum5", "Pendulum with five torques: learning"
        ),
        "05-episode-pendulum5": lambda _, long, size: compute_episodes(
            long, size, "pendulum5", "Pendulum with five torques: one episode"
        ),
        "06-scaling-cartpole": lambda xi, _, size: compute_scaling(
            xi, size, "CartPole: how much ξ matters", [("cartpole200", "")]
        ),
        "07-curves-cartpole": lambda _, long, size: compute_curves(
            long, size, "cartpole200", "CartPole: learning"
        ),
        "08-episode-cartpole": lambda _, long, size: compute_episodes(
            long, size, "cartpole200", "CartPole: one episode"
        ),
        "09-trpo-pendulum": lambda _, long, size: compute_curves(
            long, size, "pendulum", "Pendulum: compared with TRPO", trpo=True
        ),
        "10-trpo-cartpole": lambda _, long, size: compute_curves(
            long, size, "cartpole200", "CartPole: compared with TRPO", trpo=True
        ),
        "A1-domain-covering": lambda *_: covering(),
        "A2-domain-neighbours": lambda *_: neighbours(),
        "A3-domain-cubes": lambda *_: cubes(),
    }
)

NAMES = tuple(_FIGURES)
"""Of the figures, in the paper's order."""


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
        Names of figures (see `NAMES`); all by default.

    Returns
    -------
    list
        The files that were written.

    Examples
    --------
    >>> import tempfile
    >>> from spaql.plugins.paper.study import QUICK
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = RunStore(folder)
    ...     paths = paper_figures(store, store, QUICK, folder, only=["A3-domain-cubes"])
    >>> [path.name for path in paths]
    ['A3-domain-cubes.json', 'A3-domain-cubes.svg', 'A3-domain-cubes.pdf', 'A3-domain-cubes.png']
    """
    if unknown := set(only or ()) - set(NAMES):
        raise SettingError(f"There is no figure {', '.join(sorted(unknown))}: there is {', '.join(NAMES)}.")
    folder = Path(out)
    written = []
    for name, compute in _FIGURES.items():
        if only is None or name in only:
            record = compute(scaling, long, size)
            if size.rules != "authors" and not name.startswith("A"):  # the appendix shows no study
                record = dataclasses.replace(record, title=f"{record.title} (rules: {size.rules})")
            data = folder / "data" / f"{name}.json"
            write(record, data)
            written += [data, *save(record, folder / "figures", name)]
    return written
