"""`spaql paper --quick` goes through every stage, and a damaged study heals to the same bytes."""

import json
import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from spaql.experiments import RunStore
from spaql.experiments.paper import ALGORITHMS, FULL, SCALINGS, long_runs, scaling_runs, trpo_runs
from spaql.experiments.paper_criteria import VERDICTS
from spaql.tables import comma_separated, latex, markdown

pytest.importorskip("matplotlib")
pytest.importorskip("scipy")


def spaql_paper(out: Path, *options: str) -> str:
    command = [sys.executable, "-m", "spaql", "paper", "--quick", "--quiet", "--out", str(out), *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return done.stdout


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("paper")
    claims = json.loads(spaql_paper(folder, "--json"))["claims"]
    assert len(claims) == 35
    assert {claim["verdict"] for claim in claims} <= set(VERDICTS)
    assert all(claim["criterion"] for claim in claims)
    return folder


def test_the_studies_are_the_papers() -> None:
    short, long, trpo = scaling_runs(FULL), long_runs(FULL), trpo_runs(FULL)
    assert len(short) == 3 * 13 * len(ALGORITHMS) * 20
    assert len(long) == 3 * 3 * 20
    assert len(trpo) == 2 * 20
    assert {run.settings["scaling"] for run in short} == set(SCALINGS)
    assert {run.iterations for run in long} == {2000}
    assert {run.settings["rollouts"] for run in long if run.problem == "cartpole200"} == {100}


@pytest.mark.slow
def test_every_stage_leaves_its_files(out: Path) -> None:
    assert len(list((out / "figures").glob("*.svg"))) == len(list((out / "data").glob("*.json"))) == 13
    assert {path.name for path in (out / "tables").iterdir()} == {
        f"{name}.{suffix}" for name in ("results", "claims") for suffix in ("md", "csv", "tex")
    }
    page = (out / "report.html").read_text()
    assert page.count("<svg") == 13
    assert "<img" not in page
    assert "http-equiv" not in page


@pytest.mark.slow
def test_deleted_runs_are_restored_to_the_same_bytes(out: Path) -> None:
    before = contents(out / "data"), contents(out / "tables"), contents(out / "figures")
    digests = [RunStore(out / "runs" / name).digest() for name in ("scaling", "long")]
    chosen = random.Random(0)
    for name, count in (("scaling", 6), ("long", 4)):
        for run_id in chosen.sample(RunStore(out / "runs" / name).finished(), count):
            shutil.rmtree(out / "runs" / name / run_id)
    spaql_paper(out)
    assert [RunStore(out / "runs" / name).digest() for name in ("scaling", "long")] == digests
    assert (contents(out / "data"), contents(out / "tables"), contents(out / "figures")) == before


@pytest.mark.slow
def test_one_figure_can_be_drawn_alone(out: Path) -> None:
    printed = spaql_paper(out, "--only", "A3-domain-cubes").split()
    assert [Path(name).name for name in printed] == [
        f"A3-domain-cubes.{suffix}" for suffix in ("json", "svg", "pdf", "png")
    ]


def test_tables_in_three_forms() -> None:
    cells = [{"problem": "Pendulum", "fresh": "-1.0 ± 2.0"}, {"problem": "CartPole", "fresh": "95 %"}]
    assert markdown(cells).splitlines()[2] == "| Pendulum | -1.0 ± 2.0 |"
    assert comma_separated(cells).splitlines() == ["problem,fresh", "Pendulum,-1.0 ± 2.0", "CartPole,95 %"]
    assert r"Pendulum & -1.0 $\pm$ 2.0 \\" in latex(cells)
    assert r"95 \%" in latex(cells)
