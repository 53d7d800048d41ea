"""Logs for TensorBoard, MLflow and Weights & Biases, read back by their own libraries."""

import sys

import numpy as np
import pytest

import spaql
from spaql.errors import MissingExtraError
from spaql.plugins import trackers


def trained(log):
    agent = spaql.SPAQL("cartpole200", seed=3, rollouts=2)
    return agent.learn(iterations=4, callback=log)


def test_tensorboard_reads_the_history(tmp_path):
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    with trackers.tensorboard(tmp_path / "log") as log:
        history = trained(log).history
    read = EventAccumulator(str(tmp_path / "log")).Reload()
    assert set(read.Tags()["scalars"]) == set(history.columns)
    for name in history.columns:
        events = read.Scalars(name)
        np.testing.assert_allclose([one.value for one in events], history[name], rtol=1e-6)
        assert [one.step for one in events] == history["training_steps"].tolist()


@pytest.mark.filterwarnings("ignore")
def test_mlflow_reads_the_history_and_the_settings(tmp_path, monkeypatch):
    library = pytest.importorskip("mlflow")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    store = (tmp_path / "runs").as_uri()
    with trackers.mlflow("cart-pole", run="first", tracking_uri=store) as log:
        agent = trained(log)
    client = library.MlflowClient(tracking_uri=store)
    home = client.get_experiment_by_name("cart-pole").experiment_id
    (run,) = client.search_runs([home])
    assert (run.info.run_name, run.info.status) == ("first", "FINISHED")
    assert run.data.params["seed"] == "3"
    assert run.data.params["algorithm"] == "spaql"
    assert run.data.params["rollouts"] == "2"
    for name in agent.history.columns:
        found = client.get_metric_history(run.info.run_id, name)
        assert [one.value for one in found] == agent.history[name].tolist()
        assert [one.step for one in found] == agent.history["training_steps"].tolist()


@pytest.mark.filterwarnings("ignore")
def test_a_training_that_fails_is_a_failed_run(tmp_path, monkeypatch):
    library = pytest.importorskip("mlflow")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    store = (tmp_path / "runs").as_uri()

    def fail(agent, row):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError), trackers.mlflow(tracking_uri=store) as log:
        spaql.SPAQL("cartpole200", seed=0, rollouts=2).learn(iterations=2, callback=[log, fail])
    (run,) = library.MlflowClient(tracking_uri=store).search_runs(["0"])
    assert run.info.status == "FAILED"


@pytest.mark.filterwarnings("ignore")
def test_weights_and_biases_takes_the_history_offline(tmp_path, monkeypatch):
    pytest.importorskip("wandb")
    monkeypatch.setenv("WANDB_SILENT", "true")
    with trackers.wandb(project="cart-pole", mode="offline", dir=str(tmp_path)) as log:
        trained(log)
    (file,) = tmp_path.glob("wandb/offline-run-*/*.wandb")
    content = file.read_bytes()
    assert all(word in content for word in (b"mean_return", b"training_steps", b"cartpole200"))


@pytest.mark.parametrize("name", ["tensorboard", "mlflow", "wandb"])
def test_a_missing_package_is_named(name, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, name, None)
    arguments = {"tensorboard": {"folder": tmp_path}}.get(name, {})
    opened = getattr(trackers, name)(**arguments)
    with pytest.raises(MissingExtraError, match=rf"pip install 'spaql\[{name}\]'"):
        opened.__enter__()


def test_progress_is_shown_on_request(capsys):
    spaql.SPAQL("cartpole200", seed=0, rollouts=2).learn(iterations=2)
    assert capsys.readouterr().err == ""
    spaql.SPAQL("cartpole200", seed=0, rollouts=2).learn(iterations=2, progress_bar=True)
    assert "iteration 2" in capsys.readouterr().err
