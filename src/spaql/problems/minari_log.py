"""Minari datasets as columns of a log."""

from __future__ import annotations

from typing import Any

import numpy as np

from spaql.errors import SettingError, require


def minari_columns(name: str) -> dict[str, Any]:
    """Return a local dataset as columns: `episode`, `obs0`, `obs1`, ... and `action`, or `action0`, ...

    The last row of an episode has no action. Nothing is downloaded.
    """
    require("A Minari dataset", "minari")
    import minari

    try:
        dataset = minari.load_dataset(name)
    except (FileNotFoundError, ValueError, ImportError) as error:
        raise SettingError(
            f"The Minari dataset {name!r} cannot be read: {error} Is it on this machine? If not: minari "
            f"download {name}."
        ) from error
    observed = []
    done = []
    labels = []
    for episode in dataset.iterate_episodes():
        observations, actions = (_numbers(name, values) for values in (episode.observations, episode.actions))
        observed.append(observations)
        done.append(np.concatenate([actions, np.full((1, actions.shape[1]), np.nan)]))
        labels += [str(episode.id)] * len(observations)
    if not observed:
        raise SettingError(f"The Minari dataset {name!r} has no episodes.")
    states = np.concatenate(observed)
    taken = np.concatenate(done)
    columns: dict[str, Any] = {"episode": labels}
    columns |= {f"obs{j}": column for j, column in enumerate(states.T)}
    alone = taken.shape[1] == 1
    return columns | {"action" if alone else f"action{j}": column for j, column in enumerate(taken.T)}


def _numbers(name: str, values: Any) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return observations or actions as rows of numbers; dictionaries and tuples are refused."""
    if not isinstance(values, np.ndarray) or values.dtype.kind not in "fiub":
        raise SettingError(
            f"The Minari dataset {name!r} has observations or actions of several parts, or of no numbers: "
            "write the numbers that the controller is to use to a CSV file."
        )
    return values.reshape(len(values), -1).astype(np.float64)
