"""Sweeps and searches on a real Ray cluster of several nodes on this machine."""

import threading
import time
from pathlib import Path

import pytest

import spaql
from spaql import Run
from spaql.plugins.sweeps.store import RunStore

ray = pytest.importorskip("ray")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore"),  # Ray's own
    pytest.mark.xdist_group("ray"),
]

SIXTY = spaql.grid(
    ["cartpole200"], ["spaql", "spaql-ts"], seeds=15, iterations=20, fresh_episodes=5,
    settings={"rollouts": 5}, scaling=[0.4, 20],
)  # fmt: skip


@pytest.fixture(scope="module")
def cluster():
    """Start a cluster: a head that takes no tasks, and two nodes that do."""
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
    for _ in range(2):
        cluster.add_node(num_cpus=1)
    cluster.wait_for_nodes()
    yield cluster
    cluster.shutdown()


@pytest.mark.long
def test_sixty_runs_have_the_bytes_that_local_workers_give(cluster, tmp_path: Path) -> None:
    digests = set()
    for name, how in {"one": {"workers": 1}, "two": {"workers": 2}, "ray": {"ray": cluster.address}}.items():
        summary = spaql.sweep(SIXTY, tmp_path / name, **how, progress_bar=False)
        assert (summary.finished, summary.failed) == (60, {})
        digests.add(RunStore(tmp_path / name).digest())
    assert len(digests) == 1


def test_a_failing_run_is_reported_after_some_attempts(cluster, tmp_path: Path) -> None:
    bad = Run(problem="cartpole200", algorithm="spaql", iterations=2, settings={"horizon": -1})
    summary = spaql.sweep([bad, *SIXTY[:2]], tmp_path, ray=cluster.address, progress_bar=False)
    assert summary.finished == 2
    assert "horizon is -1, and must be a whole number" in summary.failed[bad.id]


def test_a_search_has_the_bytes_that_it_has_alone(cluster) -> None:
    settings = {"seed": 1, "horizon": 40, "compiled": False}
    alone, apart = (
        spaql.TreeSearch("CartPole-v1", parallel=how, **settings).learn(6_000, progress_bar=False)
        for how in (False, cluster.address)
    )
    assert apart.to_bytes() == alone.to_bytes()


@pytest.mark.long
def test_no_run_is_lost_with_a_node(cluster, tmp_path: Path) -> None:
    runs = spaql.grid(
        ["cartpole200"], ["spaql"], seeds=40, iterations=400, fresh_episodes=5, settings={"rollouts": 40}
    )
    node = cluster.add_node(num_cpus=1)
    cluster.wait_for_nodes()
    removed = []

    def remove_in_mid_sweep() -> None:
        store = RunStore(tmp_path / "ray")
        while len(store.finished()) < 8:
            time.sleep(0.05)
        cluster.remove_node(node, allow_graceful=False)
        removed.append(len(store.finished()))

    thread = threading.Thread(target=remove_in_mid_sweep)
    thread.start()
    summary = spaql.sweep(runs, tmp_path / "ray", ray=cluster.address, progress_bar=False)
    thread.join()
    assert removed[0] < 40
    assert (summary.finished, summary.failed) == (40, {})
    spaql.sweep(runs, tmp_path / "local", workers=2, progress_bar=False)
    assert RunStore(tmp_path / "ray").digest() == RunStore(tmp_path / "local").digest()


def test_no_cluster_is_said_in_a_sentence(cluster, tmp_path: Path) -> None:
    with pytest.raises(spaql.SettingError, match="No Ray cluster"):
        spaql.sweep(SIXTY[:1], tmp_path, ray="127.0.0.1:1", progress_bar=False)
