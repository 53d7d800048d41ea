"""Model files: reading agents and controllers from them, and moving these to other environments."""

from __future__ import annotations

import dataclasses
import os
import weakref
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spaql import archive
from spaql.agents.design import design_from
from spaql.agents.history import History
from spaql.agents.problem_file import problem_from
from spaql.archive import number, reading
from spaql.controllers.policy import register_reader
from spaql.errors import ArchiveError
from spaql.problems import EnvironmentLike, Problem, make_problem
from spaql.problems.plant_hash import warn_of_change

if TYPE_CHECKING:
    from spaql.agents.agent import Agent

MODEL_FILE = "policy.spaql"
"""The agent file of a run folder."""

TYPES: weakref.WeakValueDictionary[str, type[Agent]] = weakref.WeakValueDictionary()
"""Every agent class, by the name of its algorithm."""


def agent_types() -> dict[str, type[Agent]]:
    """Return every agent class by the name of its algorithm, including those defined elsewhere."""
    return dict(TYPES)


def identity(kind: type[Agent]) -> dict[str, str]:
    """Return the identification of an algorithm in files: its name, and its module if it is not spaql's own.

    The module is for people: a file never causes an import.
    """
    module = kind.__module__
    shipped = module.partition(".")[0] in ("spaql", "__main__")
    return {"algorithm": kind.learner_type.name} | ({} if shipped else {"module": module})


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
        A file written by the `save` of an agent or a controller; or the folder of a run.
    env
        The environment to continue in, if the file does not name it.
    parallel
        Run environments in parallel (see `spaql.make_problem`).

    Returns
    -------
    Agent or Design
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
    if document.data.get("kind") == "controller":
        design = design_from(document)
        return dataclasses.replace(design, problem=moved(design.problem, env, parallel=parallel))
    agent = agent_from(document)
    agent._move_to(moved(agent.problem, env, parallel=parallel))
    return agent


def model_file(path: str | os.PathLike[str]) -> Path:
    """Return the model file of a run folder; any other path is returned as it is."""
    target = Path(path)
    return target / MODEL_FILE if target.is_dir() else target


def verdict_file(path: str | os.PathLike[str]) -> Path:
    """Return the file in which the last verdict of `spaql verify` on a run folder or model file is stored.

    Examples
    --------
    >>> verdict_file("swing-up.spaql").name
    'swing-up.verdict'
    """
    return model_file(path).with_suffix(".verdict")


def agent_from(document: archive.Document) -> Agent:
    """Return the agent in a model file."""
    data = document.data
    part = document.part
    with reading("agent"):
        if data["kind"] != "agent":
            raise ArchiveError(f"The file contains a {data['kind']}, neither an agent nor a controller.")
        algorithm = data["algorithm"]
        agent_type = agent_types().get(algorithm)
        if agent_type is None:
            raise _undefined(algorithm, data.get("module"))
        problem = problem_from(data["problem"], part("problem."))
        agent_type.learner_type.check_size(problem, part("learner."))
        settings = data["settings"]
        agent = agent_type(problem, seed=number(data, "seed", 0, whole=True), **settings)
        agent._learner.restore(data["learner"], part("learner."))
        columns = part("history.")
        agent.history = History.from_arrays({name: columns[name] for name in data["history"]})
    return agent


def _undefined(algorithm: Any, module: Any) -> ArchiveError:
    """Return the error for an agent of an unknown algorithm, which says how to read the file."""
    holds = f"The file contains an agent of the algorithm {algorithm!r}, which is not defined here"
    if not isinstance(module, str) or not all(part.isidentifier() for part in module.split(".")):
        advice = f"{holds}: import the module that defines the algorithm before loading the file."
        return ArchiveError(advice, settings={"import": f"MODULE:{algorithm}"})
    return ArchiveError(
        f"{holds}. The file names the module {module}: if you trust that module, import it before "
        "loading the file.",
        settings={"import": f"{module}:{algorithm}"},
    )


def moved(problem: Problem, env: EnvironmentLike | None, *, parallel: bool | str) -> Problem:
    """Return the same problem, in another environment if one is given, run in parallel or not.

    Warns with `ChangedPlantWarning` if the plant has changed.
    """
    changes: dict[str, Any] = {"parallel": parallel}
    if env is not None:
        other = make_problem(env, **({} if isinstance(env, Problem) else _asked(problem)))
        kept = ("env", "options", "dynamics", "template", "stage_cost", "constraints", "plant")
        changes |= {name: getattr(other, name) for name in kept}
        warn_of_change(other.name, problem.plant, other.plant, stacklevel=4)
    else:
        warn_of_change(problem.name, problem.plant, problem.plant_now, stacklevel=4)
    return dataclasses.replace(problem, **changes)


def _asked(problem: Problem) -> dict[str, Any]:
    """Return the arguments that make the same problem from another environment."""
    stage = problem.stage_cost
    if stage is None:
        return {"horizon": problem.horizon}
    names = {"observation_names": problem.states.names, "action_names": problem.actions.names}
    return {
        "horizon": problem.horizon,
        **stage.as_data,
        **{name: value for name, value in names.items() if value},  # the expressions use them
    }


register_reader(load)
