"""Callbacks that write the history of a training where researchers keep their runs.

Each is a context manager that opens a log and yields the callback; at its end the log is closed. The packages
are extras, which are imported when a log is opened.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from spaql.agents.agent_file import identity
from spaql.agents.callbacks import Callback
from spaql.errors import require

if TYPE_CHECKING:
    from spaql.agents.agent import Agent

STEP = "training_steps"
"""The column of the history that is the step of a log, on whose axis all others are drawn."""


@contextmanager
def tensorboard(folder: str | os.PathLike[str]) -> Iterator[Callback]:
    """Write every column of the history as a scalar of TensorBoard (extra `tensorboard`).

    Parameters
    ----------
    folder
        The folder of the log, which `tensorboard --logdir` reads.

    Examples
    --------
    >>> import tempfile, spaql
    >>> with tempfile.TemporaryDirectory() as folder, tensorboard(folder) as log:  # doctest: +SKIP
    ...     spaql.SPAQL("cartpole200", seed=0).learn(iterations=5, callback=log)
    """
    require("A log for TensorBoard", "tensorboard")
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.compat.proto.summary_pb2 import Summary
    from tensorboard.summary.writer.event_file_writer import EventFileWriter

    writer = EventFileWriter(os.fspath(folder))

    def log(agent: Agent, row: dict[str, float]) -> None:
        values = [Summary.Value(tag=name, simple_value=value) for name, value in _finite(row).items()]
        event = Event(wall_time=time.time(), step=int(row[STEP]), summary=Summary(value=values))
        writer.add_event(event)
        writer.flush()  # a training that is killed leaves its log

    try:
        yield log
    finally:
        writer.close()


@contextmanager
def mlflow(
    experiment: str = "Default", *, run: str | None = None, tracking_uri: str | None = None
) -> Iterator[Callback]:
    """Write the history as metrics of a run of MLflow, and settings as its parameters (extra `mlflow`).

    Parameters
    ----------
    experiment
        The experiment that the run belongs to; it is made if there is none of this name.
    run
        The name of the run; MLflow makes one up by default.
    tracking_uri
        Where MLflow keeps its runs; as MLflow is configured, by default.
    """
    require("A run of MLflow", "mlflow")
    from mlflow import MlflowClient
    from mlflow.entities import Metric, Param

    client = MlflowClient(tracking_uri=tracking_uri)
    known_experiment = client.get_experiment_by_name(experiment)
    home = (
        client.create_experiment(experiment) if known_experiment is None else known_experiment.experiment_id
    )
    run_id = client.create_run(home, run_name=run).info.run_id
    known: dict[str, str] = {}

    def log(agent: Agent, row: dict[str, float]) -> None:
        now = time.time_ns() // 1_000_000
        metrics = [Metric(name, value, now, int(row[STEP])) for name, value in _finite(row).items()]
        new = {} if known else {name: str(value) for name, value in about(agent).items()}
        known.update(new)
        client.log_batch(run_id, metrics, [Param(name, value) for name, value in new.items()])

    try:
        yield log
    except BaseException:
        client.set_terminated(run_id, "FAILED")
        raise
    client.set_terminated(run_id, "FINISHED")


@contextmanager
def wandb(**options: Any) -> Iterator[Callback]:
    """Write the history to a run of Weights & Biases, and the agent's settings as its config (extra `wandb`).

    Parameters
    ----------
    **options
        Of `wandb.init`, such as `project` and `mode="offline"`.
    """
    require("A run of Weights & Biases", "wandb")
    import wandb as library

    run: Any = library.init(**options)

    def log(agent: Agent, row: dict[str, float]) -> None:
        run.config.update(about(agent), allow_val_change=True)
        run.log(_finite(row), step=int(row[STEP]))

    failed = 1
    try:
        yield log
        failed = 0
    finally:
        run.finish(exit_code=failed)


def about(agent: Agent) -> dict[str, Any]:
    """Return what identifies a training: the algorithm, its settings, the problem and the seed."""
    return {
        **identity(type(agent)),
        "problem": agent.problem.name,
        "horizon": agent.problem.horizon,
        "seed": agent.seed,
        **agent.settings.as_data(),
    }


def _finite(row: dict[str, float]) -> dict[str, float]:
    """Return the columns that are numbers a log can draw."""
    return {name: float(value) for name, value in row.items() if math.isfinite(value)}
