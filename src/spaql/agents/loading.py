"""Reading files of any kind."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable
from typing import Any

from spaql import archive
from spaql.agents.agent import Agent
from spaql.agents.agent_file import agent_from, model_file, moved
from spaql.agents.design import Design, design_from
from spaql.controllers.policy import register_reader
from spaql.errors import ArchiveError, SettingError
from spaql.learned_plants import PlantModel
from spaql.problems import EnvironmentLike

_KINDS: dict[str, Callable[[archive.Document], Agent | Design | PlantModel]] = {
    "agent": agent_from,
    "controller": design_from,
    "plant": PlantModel.from_document,
}
"""The functions that build the content of a file, by the kind that the file states."""


def load(
    path: str | os.PathLike[str],
    env: EnvironmentLike | None = None,
    *,
    parallel: bool | str = False,
) -> Any:
    """Read any file that spaql writes, or a run folder; no code in it is ever run.

    Parameters
    ----------
    path
        A file written by the `save` of an agent, a controller or a learned plant; or the folder of a run.
    env
        The environment to continue in, if the file does not name it.
    parallel
        Run environments in parallel (see `spaql.make_problem`).

    Returns
    -------
    Agent, Design or PlantModel
        The content of the file. `PlanTree.load`, `Design.load` and so on read only one kind.

    Examples
    --------
    >>> import tempfile, spaql
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     spaql.SPAQL("cartpole200", seed=0).save(f"{folder}/agent.spaql")
    ...     type(load(f"{folder}/agent.spaql")).__name__
    'SPAQL'
    """
    document = archive.load(model_file(path))
    kind = document.data.get("kind")
    build = _KINDS.get(kind) if isinstance(kind, str) else None
    if build is None:
        raise ArchiveError(
            f"The file contains {kind!r}, but a spaql file contains one of: {', '.join(_KINDS)}."
        )
    content = build(document)
    if isinstance(content, PlantModel):
        if env is not None or parallel:
            raise SettingError("The file contains a learned plant, which is not run in an environment.")
        return content
    problem = moved(content.problem, env, parallel=parallel)
    if isinstance(content, Design):
        return dataclasses.replace(content, problem=problem)
    content._move_to(problem)
    return content


register_reader(load)
